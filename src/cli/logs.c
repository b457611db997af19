#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/ids.h"
#include "model/array.h"

#define LOOK_US (200 * 1000) /* how late a line may be shown with -f */
#define PIECE 65536

struct logs_call {
    struct ids jobs;
    bool follow;
    uint64_t lines; /* UINT64_MAX: all */
    uint64_t task;
};

static const char doc[] = "What a job has written so far.\vThe file is opened as you: what you may "
                          "not read is not shown. "
                          "A job that is attached (divvy run) has no file.";

static const struct argp_option options[] = {
    { "follow", 'f', NULL, 0, "go on until the job has ended", 1 },
    { "lines", 'n', "N", 0, "only the last N lines", 1 },
    { "task", 'T', "N", 0, "of this task, where each has a file of its own (%t)", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct logs_call *c = state->input;
    struct err e = ERR_INIT;
    switch (key) {
    case 'f':
        c->follow = true;
        return 0;
    case 'n':
        if (text_parse_u64(arg, 0, UINT32_MAX, "--lines", &c->lines, &e) < 0)
            verb_refuse("%s", e.text);
        return 0;
    case 'T':
        if (text_parse_u64(arg, 0, REQUEST_TASKS_MAX - 1, "--task", &c->task, &e) < 0)
            verb_refuse("%s", e.text);
        return 0;
    case ARGP_KEY_ARG:
        ids_take(&c->jobs, arg);
        if (c->jobs.count > 1)
            verb_refuse("one job at a time");
        return 0;
    case ARGP_KEY_NO_ARGS:
        verb_refuse("of which job? divvy logs 41");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Copies what has come since; 1 when something had. */
static int copy_new(int fd, struct err *e)
{
    char buf[PIECE];
    int any = 0;
    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0)
            return any;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "cannot read the output");
        if (file_write_all(STDOUT_FILENO, buf, (size_t)n, e) < 0)
            return e->code;
        any = 1;
    }
}

/* Moves to where the last `lines` lines begin, from the end backwards. */
static int seek_lines(int fd, uint64_t lines, struct err *e)
{
    char buf[PIECE];
    off_t at = lseek(fd, 0, SEEK_END);
    uint64_t seen = 0;
    if (at < 0)
        return errno == ESPIPE ? 0 : err_sys(e, "cannot find the end of the output");
    off_t end = at;
    while (at > 0) {
        size_t n = at < PIECE ? (size_t)at : PIECE;
        ssize_t got = pread(fd, buf, n, at - (off_t)n);
        if (got < 0)
            return err_sys(e, "cannot read the output");
        for (size_t i = (size_t)got; i-- > 0;) {
            off_t here = at - (off_t)n + (off_t)i;
            /* A newline at the very end ends the last line and begins none. */
            if (buf[i] != '\n' || here + 1 == end)
                continue;
            if (++seen == lines)
                return lseek(fd, here + 1, SEEK_SET) < 0 ? err_sys(e, "cannot seek") : 0;
        }
        at -= (off_t)n;
    }
    return lseek(fd, lines ? 0 : end, SEEK_SET) < 0 ? err_sys(e, "cannot seek") : 0;
}

static int open_output(const struct job_view *v, uint32_t task, struct err *e)
{
    if (v->attached)
        return err_set(e, -EINVAL,
                       "#%" PRIu64 " is attached (divvy run): its output went there, and "
                       "nothing of it is kept",
                       v->id);
    if (!v->output)
        return err_set(e, -EACCES, "#%" PRIu64 " is %s's; only they and operators see its output",
                       v->id, v->user);
    if (task >= v->tasks || (task && !job_output_by_task(v->output)))
        return err_set(e, -EINVAL, "#%" PRIu64 " has no output of a task %u of its own", v->id,
                       task);
    auto_free char *of_array =
        job_array_output(v->output, v->array_id ? v->array_id : v->id, v->array_index);
    auto_free char *path = job_output_path(of_array, v->id, task);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        return fd;
    if (errno == ENOENT && !v->start_wall_us)
        return err_set(e, -EAGAIN,
                       "#%" PRIu64 " has not started, so there is no output yet; logs -f "
                       "waits for it",
                       v->id);
    return err_sys(e, "cannot open %s, where #%" PRIu64 " writes", path, v->id);
}

/* Until it has started; then its file is there. */
static int wait_for_file(struct client *c, uint64_t id, uint32_t task, struct err *e)
{
    for (;;) {
        struct job_view v = { .id = 0 };
        int fd = client_wait(c, id, CLIENT_UNTIL_STARTED, -1, &v, e);
        if (fd == 0)
            fd = open_output(&v, task, e);
        bool again = fd == -ENOENT && !job_state_ended(v.state);
        job_view_done(&v);
        if (!again)
            return fd;
        usleep(LOOK_US);
    }
}

static int follow(struct client *c, uint64_t id, int fd, struct err *e)
{
    for (;;) {
        struct job_view v = { .id = 0 };
        int r = copy_new(fd, e);
        if (r >= 0)
            r = client_wait(c, id, CLIENT_UNTIL_ENDED, LOOK_US, &v, e);
        if (r < 0)
            return r;
        bool ended = job_state_ended(v.state);
        job_view_done(&v);
        if (ended)
            return copy_new(fd, e);
    }
}

static int show(struct client *c, const struct logs_call *call, struct err *e)
{
    struct job_view v = { .id = 0 };
    uint64_t id = call->jobs.items[0].id;
    uint32_t task = (uint32_t)call->task;
    int r = client_job(c, id, &v, e);
    if (r < 0)
        return r;
    auto_close int fd = open_output(&v, task, e);
    job_view_done(&v);
    if (fd == -EAGAIN && call->follow)
        fd = wait_for_file(c, id, task, e);
    if (fd < 0)
        return fd;
    r = call->lines == UINT64_MAX ? 0 : seek_lines(fd, call->lines, e);
    if (r == 0)
        r = call->follow ? follow(c, id, fd, e) : copy_new(fd, e);
    return r < 0 ? r : 0;
}

int verb_logs(struct session *s, int argc, char **argv)
{
    struct logs_call call = { .lines = UINT64_MAX };
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .options = options, .parser = parse, .args = "ID", .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (c)
        status = ids_resolve(s, c, false, &call.jobs);
    if (c && status == STATUS_OK && show(c, &call, &e) < 0 && e.code != -EPIPE)
        status = verb_fail(s, &e);
    ids_done(&call.jobs);
    return status;
}
