#include "supervise/payload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "supervise/child.h"
#include "supervise/container.h"
#include "supervise/docker.h"

/* As fork, with the child born in the cgroup. -ENOSYS and others: the kernel cannot. */
static pid_t fork_into(int cgroup)
{
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (unsigned)cgroup };
    long pid = syscall(SYS_clone3, &args, sizeof args);
    return pid < 0 ? -errno : (pid_t)pid;
}

static pid_t fork_plain(void)
{
    pid_t pid = fork();
    return pid < 0 ? -errno : pid;
}

static int memory_file(const char *name, const char *text, mode_t mode, int *ret_fd, struct err *e)
{
    int fd = memfd_create(name, MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(e, "cannot make a file in memory");
    int r = file_write_all(fd, text, strlen(text), e);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = err_sys(e, "cannot set the mode of a file in memory");
    if (r < 0) {
        (void)close(fd); /* only memory */
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* Scripts come as text; a memory file gives the kernel something to exec. */
static int script_file(const struct job_spec *job, int *ret_fd, struct err *e)
{
    if (!job->script || job_container_is_docker(&job->container))
        return 0;
    int r = memory_file("divvy-script", job->script, 0555, ret_fd, e);
    return r < 0 ? err_wrap(e, r, "the script") : 0;
}

static bool names(const char *entry, const char *other)
{
    size_t len = strcspn(other, "=");
    return strncmp(entry, other, len) == 0 && entry[len] == '=';
}

static void put(char **env, size_t *count, char *take_entry)
{
    for (size_t i = 0; i < *count; i++)
        if (names(env[i], take_entry)) {
            free(env[i]);
            env[i] = take_entry;
            return;
        }
    env[(*count)++] = take_entry;
}

char **payload_environment(const struct jobdir_spec *s, unsigned task)
{
    char *const *own = s->tasks[task].env;
    char **env = mem_new((strv_count(s->job.env) + strv_count(own) + 3) * sizeof *env);
    size_t count = 0;
    for (size_t i = 0; s->job.env && s->job.env[i]; i++)
        env[count++] = text_dup(s->job.env[i]); /* copied as it is: its order is the user's */
    for (size_t i = 0; own && own[i]; i++)
        put(env, &count, text_dup(own[i]));
    put(env, &count, text_fmt("DIVVY_ATTEMPT=%" PRIu64 ".%" PRIu32, s->job_id, s->attempt));
    put(env, &count, text_fmt("DIVVY_ROOT=%s", s->root));
    return env;
}

static int open_channels(int go[2], int told[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, go) < 0)
        return err_sys(e, "cannot make a socket pair");
    if (pipe2(told, O_CLOEXEC | O_NONBLOCK) < 0) {
        int r = err_sys(e, "cannot make a pipe");
        (void)close(go[0]); /* nothing was sent */
        (void)close(go[1]);
        go[0] = go[1] = -1;
        return r;
    }
    return 0;
}

struct plan {
    const struct payload *p;
    int into; /* directory to be born in, or -1 */
    int script;
    int go[2], told[2];
    char **env;
    char **words; /* of a container's runtime; NULL: none */
    bool client;  /* they are docker's, for root to run beside the job */
    char **reach; /* what they have mounted and the user has to reach */
};

_Static_assert(CHILD_PROCS_MAX >= CGROUP_HIERARCHIES, "a child keeps one descriptor of each");

static pid_t start_child(const struct plan *plan, bool into, struct err *e)
{
    int procs[CGROUP_HIERARCHIES];
    int count = 0;
    if (plan->p->cgroup->kind != CGROUP_NONE && !plan->client)
        count = cgroup_procs_fds(plan->p->cgroup, plan->p->task, !into, procs, e);
    if (count < 0)
        return count;
    pid_t pid = into ? fork_into(plan->into) : fork_plain();
    if (pid == 0) {
        struct child child = { .spec = plan->p->spec,
                               .task = plan->p->task,
                               .session = plan->p->session,
                               .env = plan->env,
                               .script = plan->script,
                               .words = plan->words,
                               .client = plan->client,
                               .reach = plan->reach,
                               .go = plan->go[1],
                               .told = plan->told[1],
                               .procs = procs,
                               .procs_count = count };
        child_run(&child);
    }
    for (int i = 0; i < count; i++)
        (void)close(procs[i]); /* the child has written to its own copies */
    if (pid < 0)
        err_set(e, (int)pid, "cannot make a process: %s", strerror(-(int)pid));
    return pid;
}

/* The child's first word; none when it was killed at birth. */
static bool was_born(int go)
{
    char byte;
    ssize_t n;
    do
        n = recv(go, &byte, 1, 0);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static int try_spawn(struct plan *plan, bool into, struct payload_process *ret, struct err *e)
{
    int r = open_channels(plan->go, plan->told, e);
    if (r < 0)
        return r;
    pid_t pid = start_child(plan, into, e);
    (void)close(plan->go[1]); /* the child's ends */
    (void)close(plan->told[1]);
    if (pid > 0 && was_born(plan->go[0])) {
        *ret = (struct payload_process){ .pid = pid, .go = plan->go[0], .told = plan->told[0] };
        return 0;
    }
    (void)close(plan->go[0]); /* there is nobody at the other end */
    (void)close(plan->told[0]);
    if (pid < 0)
        return (int)pid;
    (void)waitpid(pid, NULL, 0);
    return err_set(e, -ESRCH, "the task's process was killed before it did anything");
}

/*
 * Born in its cgroup where that works. It does not on old kernels; and Linux
 * since 6.16 kills what is cloned into another cgroup when the supervisor's own
 * was killed by cgroup.kill at any time before.
 */
static int spawn(struct plan *plan, struct payload_process *ret, struct err *e)
{
    if (plan->into >= 0 && try_spawn(plan, true, ret, NULL) == 0)
        return 0;
    return try_spawn(plan, false, ret, e);
}

/* A file that docker's daemon can mount: the job folder is root's alone. */
static int docker_script(const struct payload *p, struct docker_host *d, struct err *e)
{
    const char *script = p->spec->job.script;
    auto_free char *link = text_fmt("/proc/self/fd/%d", p->dir);
    auto_free char *folder = NULL;
    if (!script)
        return 0;
    int r = file_replace(p->dir, "script", script, strlen(script), 0555, e);
    if (r < 0)
        return r;
    folder = realpath(link, NULL);
    if (!folder)
        return err_sys(e, "cannot find the job folder");
    d->script = text_fmt("%s/script", folder);
    return 0;
}

/* Its variables go in by a file: the client's own environment is nothing of the user's. */
static int take_variables(struct plan *plan, int *ret_fd, struct err *e)
{
    const struct payload *p = plan->p;
    AUTO(text) struct text text = TEXT_INIT;
    int r = docker_env_file(p->spec, p->task, plan->env, &text, e);
    if (r == 0)
        r = memory_file("divvy-env", text.buf ? text.buf : "", 0400, ret_fd, e);
    strv_free(plan->env);
    plan->env = docker_environment(p->spec);
    return r;
}

static int take_docker(struct plan *plan, int *ret_fd, struct err *e)
{
    const struct payload *p = plan->p;
    AUTO(container_host) struct container_host h = CONTAINER_HOST_INIT;
    AUTO(docker_host) struct docker_host d = DOCKER_HOST_INIT;
    plan->client = true;
    int r = container_find(&p->spec->job.container, &h, e);
    if (r == 0 && p->inside) {
        plan->words = docker_inside_words(p->spec, p->task, h.program);
    } else if (r == 0) {
        r = docker_look(p->spec, p->cgroup, p->task, &d, e);
        if (r == 0)
            r = docker_script(p, &d, e);
        if (r == 0)
            r = docker_run_words(p->spec, p->task, &d, h.program, &plan->words, e);
        plan->reach = take_ptr(d.reach);
    }
    return r < 0 ? r : take_variables(plan, ret_fd, e);
}

/* Words and environment of the container's runtime, where there is one. */
static int take_runtime(struct plan *plan, struct err *e)
{
    const struct payload *p = plan->p;
    AUTO(container_host) struct container_host found = CONTAINER_HOST_INIT;
    const struct container_host *h = p->runtime;
    int r = 0;
    if (!p->spec->job.container.image)
        return 0;
    if (h) {
        plan->words = strv_copy(p->spec->job.argv);
    } else {
        h = &found;
        r = container_find(&p->spec->job.container, &found, e);
        if (r == 0 && p->inside)
            plan->words = container_inside_words(p->spec, p->task, h);
        else if (r == 0)
            r = container_run_words(p->spec, p->task, h, &plan->words, e);
    }
    if (r == 0 && plan->words)
        plan->env = container_environment(plan->env, p->spec, p->task, h);
    return r;
}

int payload_spawn(const struct payload *p, struct payload_process *ret, struct err *e)
{
    auto_close int into = -1;
    auto_close int script = -1;
    int r = script_file(&p->spec->job, &script, e);
    if (r < 0)
        return r;
    if (p->cgroup->kind != CGROUP_NONE && !job_container_is_docker(&p->spec->job.container) &&
        cgroup_task_fd(p->cgroup, p->task, &into, NULL) < 0)
        into = -1;
    struct plan plan = {
        .p = p, .into = into, .script = script, .env = payload_environment(p->spec, p->task)
    };
    if (p->session)
        session_add_env(p->session, &plan.env);
    if (job_container_is_docker(&p->spec->job.container)) {
        r = take_docker(&plan, &script, e);
        plan.script = script;
    } else {
        r = take_runtime(&plan, e);
    }
    if (r == 0)
        r = spawn(&plan, ret, e);
    strv_free(plan.env);
    strv_free(plan.words);
    strv_free(plan.reach);
    return r;
}

int payload_release(struct payload_process *c, const int streams[3], bool terminal, struct err *e)
{
    char byte = terminal ? CHILD_GO_TERMINAL : CHILD_GO;
    struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (streams) {
        msg.msg_control = &control;
        msg.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(3 * sizeof(int));
        memcpy(CMSG_DATA(head), streams, 3 * sizeof(int));
    }
    int r = sendmsg(c->go, &msg, MSG_NOSIGNAL) < 0 ? err_sys(e, "cannot release the task") : 0;
    payload_drop(c);
    return r;
}

void payload_drop(struct payload_process *c)
{
    if (c->go >= 0)
        (void)close(take_fd(c->go)); /* what was sent stays readable at the other end */
}

bool payload_report(struct payload_process *c, struct job_exit *ret)
{
    struct child_report report;
    auto_close int told = take_fd(c->told);
    if (told < 0 || read(told, &report, sizeof report) != (ssize_t)sizeof report)
        return false;
    ret->kind = EXIT_NOT_STARTED;
    ret->value = report.value;
    (void)snprintf(ret->text, sizeof ret->text, "%.*s", (int)sizeof report.text - 1, report.text);
    return true;
}
