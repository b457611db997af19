/*
 * `divvy`, where it can be linked statically: the verbs that scripts call by
 * the hundred, and for everything else divvy-all, which knows all verbs.
 *
 * Of what a submit costs, half was to load and relocate shared libraries that
 * other verbs need. So this program links nothing that asks a name service or
 * loads a driver, which static glibc cannot do; a call that needs that after
 * all is handed over whole, before it has done anything.
 */
#include "cli/verb.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ALL "divvy-all"

static const struct {
    const char *name;
    verb_fn run;
} quick[] = { { "submit", verb_submit }, { "run", verb_run }, { "wait", verb_wait } };

/* Beside this program, or where it was installed. */
static int hand_over(const struct session *s)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    auto_free char *beside = text_fmt("%.*s" ALL, slash ? (int)(slash - self) + 1 : 0, self);
    (void)signal(SIGPIPE, SIG_DFL); /* as it was when this program began */
    (void)execv(beside, s->argv);   /* comes back only when it fails, as the next */
    (void)execv(DIVVY_LIBEXECDIR "/" ALL, s->argv);
    verb_note("cannot start " DIVVY_LIBEXECDIR "/" ALL ", which belongs to it: %s",
              strerror(errno));
    return STATUS_REFUSED;
}

static verb_fn find(const char *word)
{
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (strcmp(quick[i].name, word) == 0)
            return quick[i].run;
    return NULL;
}

int main(int argc, char **argv)
{
    struct session s = { .hand_over = hand_over, .argv = argv };
    int at = session_globals(&s, argc, argv);
    verb_fn run = at < argc && !session_is_mig_parted(argc, argv) ? find(argv[at]) : NULL;
    int status;
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
    json_object_seed(1);            /* or it opens /dev/urandom: against whom? */
    if (run) {
        s.verb = argv[at];
        s.screen = screen_of_stdout();
        status = run(&s, argc - at, argv + at);
    } else {
        status = hand_over(&s);
    }
    free(s.root);
    return status;
}
