#include "supervise/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define PROGRAM "divvy-session"
#define WAIT_US (30 * CLOCK_SECOND)
#define ENTRIES_MAX 1024
#define UNLIMITED (-1)

static json_t *limit_to_json(const struct rlimit *l)
{
    json_t *pair = json_array();
    rlim_t both[] = { l->rlim_cur, l->rlim_max };
    for (size_t i = 0; i < 2; i++)
        (void)json_array_append_new(
            pair, json_integer(both[i] == RLIM_INFINITY ? UNLIMITED : (json_int_t)both[i]));
    return pair;
}

json_t *session_to_json(const struct session *s)
{
    json_t *j = json_object();
    json_t *limits = json_array();
    for (size_t i = 0; i < RLIM_NLIMITS; i++)
        (void)json_array_append_new(limits,
                                    s->limited[i] ? limit_to_json(&s->limits[i]) : json_null());
    json_put(j, "limits", limits);
    json_put_u64(j, "umask", s->umask);
    json_put_i64(j, "nice", s->nice);
    json_put(j, "env", s->env ? json_strv(s->env) : json_null());
    return j;
}

static bool limit_from_json(const json_t *pair, struct rlimit *ret)
{
    const json_t *cur = json_array_get(pair, 0);
    const json_t *max = json_array_get(pair, 1);
    if (!json_is_integer(cur) || !json_is_integer(max))
        return false;
    json_int_t c = json_integer_value(cur);
    json_int_t m = json_integer_value(max);
    ret->rlim_cur = c < 0 ? RLIM_INFINITY : (rlim_t)c;
    ret->rlim_max = m < 0 ? RLIM_INFINITY : (rlim_t)m;
    return true;
}

int session_from_json(json_t *j, struct session *ret, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "session", e);
    json_t *limits = fields_array(&f, "limits", FIELD_REQUIRED, RLIM_NLIMITS);
    mode_t mask = (mode_t)fields_u64(&f, "umask", FIELD_REQUIRED, 0, 0777, 022);
    int nice_value = (int)fields_i64(&f, "nice", FIELD_REQUIRED, -20, 19, 0);
    char **env = fields_strv(&f, "env", FIELD_OPTIONAL, ENTRIES_MAX, SESSION_MESSAGE_MAX);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r < 0) {
        strv_free(env);
        return r;
    }
    for (size_t i = 0; i < json_array_size(limits) && i < RLIM_NLIMITS; i++)
        ret->limited[i] = limit_from_json(json_array_get(limits, i), &ret->limits[i]);
    ret->umask = mask;
    ret->nice = nice_value;
    ret->env = env;
    return 0;
}

/* ---- the program -------------------------------------------------------- */

static char *beside(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    return slash ? text_fmt("%.*s/%s", (int)(slash - self), self, name) : text_dup(name);
}

static _Noreturn void child(const char *program, const struct jobdir_spec *spec, int hold, int say)
{
    sigset_t none;
    auto_free char *below = file_under(spec->root, "/etc/pam.d");
    char *const argv[] = { (char *)(uintptr_t)program, spec->pam, spec->user,
                           text_same(spec->root, "/") ? NULL : below, NULL };
    char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL };
    (void)setsid(); /* a new child leads no group: cannot fail */
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL); /* KILL and STOP say no, rightly */
    (void)signal(SIGTERM, SIG_IGN); /* told to the supervisor; the end of `hold` is what counts */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(hold, 0) < 0 || dup2(say, 1) < 0)
        _exit(126);
    (void)syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC); /* all are so already */
    (void)execve(program, argv, env);
    _exit(127);
}

/* All that it says, until it closes its end; NULL when that takes too long. */
static char *listen_to(int said)
{
    struct text t = TEXT_INIT;
    int64_t until_us = clock_now().boot_us + WAIT_US;
    for (;;) {
        char bytes[4096];
        int64_t left_us = until_us - clock_now().boot_us;
        struct pollfd p = { .fd = said, .events = POLLIN };
        if (left_us <= 0 || t.len > SESSION_MESSAGE_MAX) {
            text_done(&t);
            return NULL;
        }
        if (poll(&p, 1, (int)(left_us / 1000) + 1) <= 0)
            continue;
        ssize_t n = read(said, bytes, sizeof bytes);
        if (n > 0)
            text_addn(&t, bytes, (size_t)n);
        else if (n == 0 || errno != EINTR)
            return text_take(&t);
    }
}

static int understand(const char *said, struct session *s, struct err *e)
{
    auto_json json_t *j = NULL;
    if (!said)
        return err_set(e, -ETIMEDOUT, "it did not come about in 30 s");
    if (!said[0])
        return err_set(e, -EIO, "%s ended without a word", PROGRAM);
    int r = json_parse(said, strlen(said), PROGRAM, &j, e);
    const char *trouble = r == 0 ? json_string_value(json_object_get(j, "trouble")) : NULL;
    if (trouble)
        return err_set(e, -EPERM, "%s", trouble);
    return r < 0 ? r : session_from_json(j, s, e);
}

static int start(struct session *s, const char *program, const struct jobdir_spec *spec,
                 int *ret_said, struct err *e)
{
    int hold[2], say[2];
    if (pipe2(hold, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    auto_close int theirs = hold[0];
    s->hold = hold[1];
    if (pipe2(say, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    auto_close int speaks = say[1];
    *ret_said = say[0];
    s->pid = fork();
    if (s->pid == 0)
        child(program, spec, theirs, speaks);
    return s->pid < 0 ? err_sys(e, "cannot make a process") : 0;
}

int session_open(struct session *s, const struct jobdir_spec *spec, struct err *e)
{
    auto_free char *said = NULL;
    auto_close int from = -1;
    if (!spec->pam)
        return 0;
    auto_free char *program = beside(PROGRAM);
    if (access(program, X_OK) < 0)
        return err_set(e, -ENOENT, "divvy.yaml says pam: on, and there is no %s", program);
    int r = start(s, program, spec, &from, e);
    if (r == 0) {
        said = listen_to(from);
        r = understand(said, s, e);
    }
    if (r == 0)
        return 0;
    session_close(s);
    return err_wrap(e, r, "no PAM session for %s", spec->user ? spec->user : "the user");
}

int session_enter(const struct session *s, struct err *e)
{
    for (int i = 0; s->pid && i < RLIM_NLIMITS; i++)
        if (s->limited[i] && setrlimit((__rlimit_resource_t)i, &s->limits[i]) < 0)
            return err_sys(e, "cannot set resource limit %d of its PAM session", i);
    if (s->pid && setpriority(PRIO_PROCESS, 0, s->nice) < 0)
        return err_sys(e, "cannot take the nice value of its PAM session");
    if (s->pid)
        (void)umask(s->umask);
    return 0;
}

static bool has(char *const *env, const char *entry)
{
    size_t len = strcspn(entry, "=") + 1;
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], entry, len) == 0)
            return true;
    return false;
}

void session_add_env(const struct session *s, char ***env)
{
    for (size_t i = 0; s->env && s->env[i]; i++)
        if (!has(*env, s->env[i]))
            strv_add(env, s->env[i]);
}

/* One that hangs in a module is killed: its session is then as closed as it can be. */
static void wait_for(pid_t pid)
{
    int status;
    auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (waitpid(pid, &status, WNOHANG) != 0)
        return;
    if (fd < 0 || poll(&p, 1, (int)(WAIT_US / 1000)) != 1)
        (void)kill(pid, SIGKILL); /* a child of ours that was not reaped */
    (void)waitpid(pid, &status, 0);
}

void session_close(struct session *s)
{
    if (s->hold >= 0)
        (void)close(take_fd(s->hold)); /* that it closes is the message */
    if (s->pid > 0)
        wait_for(s->pid);
    strv_free(s->env);
    *s = (struct session)SESSION_INIT;
}
