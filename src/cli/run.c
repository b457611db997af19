#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/submission.h"
#include "client/attach.h"

#define KEY_NO_PTY 'T'
#define KEY_KEEP 0x1101

#define SLICE_US (5 * CLOCK_SECOND) /* a signal that comes between two polls is seen after it */
#define QUIET_US CLOCK_SECOND       /* who waits no longer is told nothing */
#define RETRY_US (CLOCK_SECOND / 5)
#define SOCKET_US (30 * CLOCK_SECOND) /* until the supervisor has made its socket */

struct run_call {
    struct submission submission;
    bool no_pty, keep;
};

static const struct argp_option own_options[] = {
    { NULL, 0, NULL, 0, "How to attach:", 4 },
    { "no-pty", KEY_NO_PTY, NULL, 0, "no terminal for the command, even from one", 4 },
    { "keep-on-hangup", KEY_KEEP, NULL, 0, "the job goes on when this command is lost", 4 },
    { 0 },
};

static const char doc[] =
    "Queues a command, attaches to it once it starts, and exits as it did.\vWith a terminal the "
    "command gets one, too; otherwise its standard input, output and error are this command's own. "
    "Ctrl-C while it waits takes it out of the queue; later it goes to the job. When Divvy itself "
    "fails, the exit status is 125.\n\n"
    "  divvy run --slice 1g.10gb -- nvidia-smi -L\n  divvy run --gpus 1 --time 2h -- bash";

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int sig)
{
    asked_to_stop = sig;
}

static void handle_signals(void (*handler)(int))
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action = { .sa_handler = handler };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL); /* known signals: cannot fail */
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run_call *c = state->input;
    switch (key) {
    case KEY_NO_PTY:
        c->no_pty = true;
        return 0;
    case KEY_KEEP:
        c->keep = true;
        return 0;
    default:
        return submission_parse(&c->submission, key, arg, state);
    }
}

static int give_up(const struct session *s, struct client *c, uint64_t id)
{
    struct err e = ERR_INIT;
    auto_free char *note = NULL;
    int sig = asked_to_stop;
    asked_to_stop = 0;
    if (client_act(c, id, JOB_ACTION_CANCEL, NULL, &note, &e) < 0 && e.code != -EALREADY)
        return verb_fail(s, &e);
    verb_note("#%" PRIu64 " was taken out of the queue", id);
    return 128 + sig;
}

static void tell_waiting(const struct session *s, const struct job_view *v)
{
    if (s->json)
        return;
    if (v->reason && text_starts(v->reason, "waits ")) /* it says so itself */
        verb_note("#%" PRIu64 " %s", v->id, v->reason);
    else
        verb_note("#%" PRIu64 " waits%s%s", v->id, v->reason ? ": " : "",
                  v->reason ? v->reason : "");
}

/* Until it may be attached to. `ret` is set on STATUS_OK. */
static int wait_for_start(const struct session *s, struct client *c, uint64_t id,
                          struct job_view *ret)
{
    bool told = false;
    for (;;) {
        struct err e = ERR_INIT;
        struct job_view v = { .id = 0 };
        int r = client_wait(c, id, CLIENT_UNTIL_STARTING, told ? SLICE_US : QUIET_US, &v, &e);
        if (asked_to_stop) {
            job_view_done(&v);
            return give_up(s, c, id);
        }
        if (r < 0 && r != -EINTR)
            return verb_fail(s, &e);
        if (r == 0 && v.state >= JOB_STARTING) {
            *ret = v;
            return STATUS_OK;
        }
        if (r == 0 && !told) {
            tell_waiting(s, &v);
            told = true;
        }
        job_view_done(&v);
    }
}

static char *attach_path(const struct session *s, const struct job_view *v)
{
    auto_free char *root = client_root(s->root);
    auto_free char *below =
        text_fmt("/run/divvy/jobs/%" PRIu64 ".%u.sock", v->id, (unsigned)v->attempt);
    return file_under(root, below);
}

/* The end as the daemon knows it. */
static int ask_end(const struct session *s, struct client *c, uint64_t id)
{
    struct err e = ERR_INIT;
    struct job_view v = { .id = 0 };
    if (client_wait(c, id, CLIENT_UNTIL_ENDED, -1, &v, &e) < 0)
        return verb_fail(s, &e);
    submission_tell_end(&v);
    int status = v.exit.kind == EXIT_NONE ? STATUS_OURS : job_exit_status(&v.exit);
    job_view_done(&v);
    return status;
}

static void tell_exit(uint64_t id, const struct job_exit *x)
{
    if (x->kind == EXIT_TIMEOUT)
        verb_note("#%" PRIu64 " reached its time limit; --time asks for more", id);
    else if (x->kind == EXIT_OOM)
        verb_note("#%" PRIu64 " used more memory than its limit and was ended", id);
    else if (x->kind != EXIT_CODE && x->kind != EXIT_SIGNAL && x->text[0])
        verb_note("#%" PRIu64 ": %s", id, x->text);
}

/*
 * A supervisor that died before the job ran is followed by another, on the same socket. It counts
 * as running once that one has begun, which may be before we look, and it waits for us there.
 */
static bool starts_again(struct client *c, const struct job_view *was)
{
    struct job_view v = { .id = 0 };
    int r = client_wait(c, was->id, CLIENT_UNTIL_ENDED, RETRY_US, &v, NULL);
    bool again =
        r == 0 && v.attempt == was->attempt && (v.state == JOB_STARTING || v.state == JOB_RUNNING);
    job_view_done(&v);
    return again;
}

static int attach(const struct session *s, struct client *c, const struct job_view *v, bool pty)
{
    auto_free char *path = attach_path(s, v);
    auto_close int sock = -1;
    struct err e = ERR_INIT;
    struct job_exit end = { .kind = EXIT_NONE };
    int64_t wait_us = SOCKET_US;
    int r;
    do {
        auto_close int tried = take_fd(sock);
        (void)tried; /* closed here */
        r = attach_open(path, wait_us, &sock, &e);
        wait_us = RETRY_US; /* from now on the end is looked for, too */
        if (r == 0) {
            handle_signals(SIG_DFL); /* the relay takes them from here */
            r = attach_relay(sock, pty, &end, &e);
        }
    } while ((r == -EPIPE || r == -ENOENT) && starts_again(c, v));
    if (r == 0) {
        tell_exit(v->id, &end);
        return job_exit_status(&end);
    }
    if (r == -EINTR)
        return 130;
    if (r == -EPIPE || r == -ENOENT)
        return ask_end(s, c, v->id);
    return verb_fail(s, &e);
}

static int run_job(struct session *s, struct job_spec *spec)
{
    int status = STATUS_OK;
    uint64_t id = 0;
    auto_free char *note = NULL;
    struct job_view v = { .id = 0 };
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (c)
        status = submission_send(s, c, spec, &id, &note);
    if (status != STATUS_OK)
        return status;
    handle_signals(on_signal);
    status = wait_for_start(s, c, id, &v);
    if (status != STATUS_OK)
        return status;
    status = job_state_ended(v.state) ? ask_end(s, c, id) : attach(s, c, &v, spec->pty);
    job_view_done(&v);
    return status;
}

int verb_run(struct session *s, int argc, char **argv)
{
    struct run_call call = { .keep = false };
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    struct argp_option options[64];
    size_t n = 0;
    for (const struct argp_option *o = job_options_argp(); o->name || o->doc; o++)
        if (o->key != 'o')
            options[n++] = *o;
    memcpy(options + n, own_options, sizeof own_options);
    s->own_failure = STATUS_OURS;
    struct verb_words words = { .options = options,
                                .parser = parse,
                                .args = "[--] COMMAND [ARGUMENT...]",
                                .doc = doc,
                                .flags = ARGP_IN_ORDER };
    verb_parse(s, &words, argc, argv, &call);
    int status = submission_spec(s, &call.submission, false, &spec);
    if (status != STATUS_OK)
        return status;
    spec.pty = !call.no_pty && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    spec.keep_on_hangup = call.keep;
    return run_job(s, &spec);
}
