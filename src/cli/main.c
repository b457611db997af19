#include "cli/verb.h"

#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_verbs(struct text *t)
{
    text_add(t, "divvy divides the GPUs of this server among the people and jobs that share it.\n\n"
                "  divvy [--root DIR] VERB [OPTIONS]\n\n");
    for (const struct verb *v = verbs; v->name; v++)
        text_addf(t, "  %-10s %s\n", v->name, v->summary);
    text_add(t, "\n  divvy submit --slice 2g.20gb --time 2h -- python3 train.py\n"
                "  divvy run --gpu-mem 10G -- nvidia-smi -L\n\n"
                "'divvy VERB --help' tells a verb's options; man divvy tells all of it.\n"
                "Exit status: 0 done, 1 refused or failed, 2 usage, 3 divvyd does not answer,\n"
                "4 no such job or card, 5 not for this user, 10 to 15 see man 5 layout.\n"
                "run and wait exit as the job did.\n");
}

int verb_help(struct session *s, int argc, char **argv)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (argc > 1 && argv[1][0] != '-') {
        verb_fn run = verb_find(argv[1]);
        if (!run || run == verb_help)
            return verb_usage(s, "there is no verb '%.32s'; 'divvy help' lists them", argv[1]);
        char *help[] = { argv[1], (char *)"--help", NULL };
        s->verb = argv[1];
        return run(s, 2, help);
    }
    add_verbs(&t);
    return verb_print(&t);
}

int verb_version(struct session *s, int argc, char **argv)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct verb_words words = { .doc = "The version of this command." };
    verb_parse(s, &words, argc, argv, NULL);
    if (s->json)
        text_addf(&t, "{\"version\": \"%s\"}\n", DIVVY_VERSION);
    else
        text_addf(&t, "divvy %s\n", DIVVY_VERSION);
    return verb_print(&t);
}

static int unknown_verb(const struct session *s, const char *name)
{
    const char *near = verb_nearest(name);
    if (near)
        return verb_usage(s, "there is no verb '%.32s'; did you mean 'divvy %s'?", name, near);
    return verb_usage(s, "there is no verb '%.32s'; 'divvy help' lists them", name);
}

static int dispatch(struct session *s, int argc, char **argv)
{
    if (session_is_mig_parted(argc, argv)) {
        s->verb = "mig-parted";
        return verb_mig_parted(s, argc, argv);
    }
    int at = session_globals(s, argc, argv);
    const char *word = at < argc ? argv[at] : "help";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    s->verb = word;
    if (strcmp(word, "--root") == 0)
        return verb_usage(s, "--root needs a value");
    if (word[0] == '-')
        return verb_usage(s, "there is no option '%.32s' before the verb; 'divvy help' lists verbs",
                          word);
    verb_fn run = verb_find(word);
    if (!run)
        return unknown_verb(s, word);
    char *alone[] = { argv[0], NULL };
    int status = at < argc ? run(s, argc - at, argv + at) : run(s, 1, alone);
    return at < argc ? status : STATUS_USAGE; /* no verb at all: the list, and not a success */
}

static const char *caller_name(void)
{
    const struct passwd *user = getpwuid(getuid());
    return user ? user->pw_name : NULL;
}

int main(int argc, char **argv)
{
    struct session s = { .caller_name = caller_name };
    /* Not LC_NUMERIC: "0.25" is a fraction everywhere. Without a locale, plain ASCII. */
    (void)setlocale(LC_CTYPE, "");
    (void)setlocale(LC_TIME, "");
    (void)signal(SIGPIPE, SIG_IGN);
    s.screen = screen_of_stdout();
    int status = dispatch(&s, argc, argv);
    free(s.root);
    return status;
}
