#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/ids.h"
#include "client/attach.h"
#include "model/request.h"

#define KEY_NO_PTY 'T'
#define SOCKET_US (5 * CLOCK_SECOND) /* a job that has just started has no socket yet */

struct attach_call {
    struct ids jobs;
    char **argv;
    uint64_t task;
    bool no_pty;
};

static const char doc[] =
    "Runs a command inside your job while it runs, or your shell.\vThe command has the job's "
    "slice and nothing else, its environment and its folder, and counts towards its limits. It "
    "ends with the job at the latest; the job does not end with it. The exit status is the "
    "command's, or 125 when Divvy itself fails.\n\n"
    "  divvy attach 41                         a shell\n"
    "  divvy attach 41 -- py-spy dump --pid 8121";

static const struct argp_option options[] = {
    { "task", 't', "N", 0, "of a job with several tasks, the one to enter (0)", 1 },
    { "no-pty", KEY_NO_PTY, NULL, 0, "no terminal for the command, even from one", 1 },
    { 0 },
};

static void take_argument(struct attach_call *c, char *arg, const struct argp_state *state)
{
    if (c->jobs.count == 0)
        ids_take(&c->jobs, arg);
    else if (state->quoted && state->next > state->quoted)
        strv_add(&c->argv, arg);
    else
        verb_refuse("'%.64s' is one too many; a command stands behind --", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct attach_call *c = state->input;
    struct err e = ERR_INIT;
    switch (key) {
    case 't':
        if (text_parse_u64(arg, 0, REQUEST_TASKS_MAX - 1, "task", &c->task, &e) < 0)
            verb_refuse("--task: %s", e.text);
        return 0;
    case KEY_NO_PTY:
        c->no_pty = true;
        return 0;
    case ARGP_KEY_ARG:
        take_argument(c, arg, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        verb_refuse("which job? divvy attach 41");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *own_shell(void)
{
    const char *shell = getenv("SHELL");
    if (shell && shell[0] == '/')
        return shell;
    struct passwd *p = getpwuid(getuid());
    return p && p->pw_shell && p->pw_shell[0] ? p->pw_shell : "/bin/sh";
}

/* What is no running job is said before anything is tried. */
static int check(const struct session *s, const struct job_view *v)
{
    struct err e = ERR_INIT;
    if (v->state == JOB_RUNNING || v->state == JOB_STARTING)
        return STATUS_OK;
    if (job_state_ended(v->state))
        err_set(&e, -ESRCH, "#%" PRIu64 " has ended (%s); there is nothing to attach to", v->id,
                job_state_word(v->state));
    else if (v->state == JOB_ENDING)
        err_set(&e, -ESRCH, "#%" PRIu64 " is ending", v->id);
    else
        err_set(&e, -EAGAIN, "#%" PRIu64 " does not run yet; divvy why %" PRIu64 " tells why",
                v->id, v->id);
    return verb_fail(s, &e);
}

static int enter(const struct session *s, const struct attach_call *call, const struct job_view *v)
{
    auto_free char *root = client_root(s->root);
    auto_free char *below =
        text_fmt("/run/divvy/jobs/%" PRIu64 ".%u.sock", v->id, (unsigned)v->attempt);
    auto_free char *path = file_under(root, below);
    auto_close int sock = -1;
    struct err e = ERR_INIT;
    struct job_exit end = { .kind = EXIT_NONE };
    bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    int r = attach_open(path, SOCKET_US, &sock, &e);
    if (r == 0)
        r = attach_enter(sock, !call->no_pty && terminal, (unsigned)call->task,
                         terminal ? getenv("TERM") : NULL, call->argv, &end, &e);
    if (r == -EPIPE)
        err_set(&e, -EPIPE, "#%" PRIu64 " ended meanwhile, and the command with it", v->id);
    if (r < 0)
        return verb_fail(s, &e);
    if (end.kind == EXIT_NOT_STARTED)
        verb_note("%s", end.text);
    return job_exit_status(&end);
}

int verb_attach(struct session *s, int argc, char **argv)
{
    struct attach_call call = { .argv = NULL };
    struct job_view v = { .id = 0 };
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    struct verb_words words = {
        .options = options, .parser = parse, .args = "ID [-- COMMAND...]", .doc = doc
    };
    s->own_failure = STATUS_OURS;
    verb_parse(s, &words, argc, argv, &call);
    if (!call.argv)
        strv_add(&call.argv, own_shell());
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (c)
        status = ids_resolve(s, c, false, &call.jobs);
    if (c && status == STATUS_OK && client_job(c, call.jobs.items[0].id, &v, &e) < 0)
        status = verb_fail(s, &e);
    else if (c && status == STATUS_OK)
        status = check(s, &v);
    if (c && status == STATUS_OK)
        status = enter(s, &call, &v);
    job_view_done(&v);
    strv_free(call.argv);
    ids_done(&call.jobs);
    return status;
}
