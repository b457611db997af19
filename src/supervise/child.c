#include "supervise/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "supervise/container.h"
#include "supervise/docker.h"

static _Noreturn void give_up(const struct child *c, int value, const char *text)
{
    struct child_report report = { .value = value };
    (void)snprintf(report.text, sizeof report.text, "%s", text); /* cut when too long */
    (void)!write(c->told, &report, sizeof report); /* nobody listens: nobody is left to tell */
    _exit(126);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void close_between(int first, int last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (int fd = first; fd <= last && fd < 1024; fd++) /* kernels before 5.9 */
        (void)close(fd);
}

/*
 * The rest is the supervisor's. Its lock above all: held here, a supervisor
 * that died would seem to live until this child has seen that it died.
 */
static void close_others(const struct child *c)
{
    int keep[3 + CHILD_PROCS_MAX];
    size_t count = 0;
    keep[count++] = c->go;
    keep[count++] = c->told;
    if (c->script >= 0)
        keep[count++] = c->script;
    for (int i = 0; i < c->procs_count; i++)
        keep[count++] = c->procs[i];
    qsort(keep, count, sizeof *keep, by_number);
    int next = 3;
    for (size_t i = 0; i < count; i++) {
        close_between(next, keep[i] - 1);
        next = keep[i] + 1;
    }
    close_between(next, INT_MAX);
}

static int enter_cgroups(const struct child *c, struct err *e)
{
    for (int i = 0; i < c->procs_count; i++)
        if (write(c->procs[i], "0", 1) < 0)
            return err_sys(e, "cannot enter its cgroup");
    return 0;
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL); /* KILL and STOP say no, rightly */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void reset_oom_score(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "0", 1); /* without privileges it never was anything else */
}

/*
 * Who has CAP_SYS_ADMIN has every MIG capability, and who has CAP_MKNOD or may
 * load modules or programs needs no gate: root's own jobs go without, too.
 */
static int drop_capabilities(struct err *e)
{
    static const unsigned long dropped[] = { CAP_SYS_ADMIN,  CAP_MKNOD,  CAP_SYS_MODULE,
                                             CAP_SYS_RAWIO,  CAP_BPF,    CAP_SYS_BOOT,
                                             CAP_SYS_PTRACE, CAP_PERFMON };
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (prctl(PR_CAPBSET_DROP, dropped[i], 0, 0, 0) < 0 && errno != EINVAL)
            return err_sys(e, "cannot drop capability %lu", dropped[i]);
    return 0;
}

static int set_groups(const struct jobdir_spec *s, struct err *e)
{
    int r = s->groups ? setgroups(s->group_count, s->groups) : setgroups(1, &s->gid);
    return r < 0 ? err_sys(e, "cannot set the groups of %s", s->user ? s->user : "the user") : 0;
}

static bool is_user(const struct jobdir_spec *s)
{
    uid_t ur, ue, us;
    gid_t gr, ge, gs;
    return getresuid(&ur, &ue, &us) == 0 && getresgid(&gr, &ge, &gs) == 0 && ur == s->uid &&
           ue == s->uid && us == s->uid && gr == s->gid && ge == s->gid && gs == s->gid;
}

static int become_user(const struct jobdir_spec *s, struct err *e)
{
    if (geteuid() != 0) {
        if (s->uid == getuid())
            return 0;
        return err_set(e, -EPERM, "a Divvy that runs as uid %u cannot start a job of uid %u",
                       (unsigned)getuid(), (unsigned)s->uid);
    }
    int r = drop_capabilities(e);
    if (r == 0)
        r = set_groups(s, e);
    if (r < 0)
        return r;
    if (setresgid(s->gid, s->gid, s->gid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0)
        return err_sys(e, "cannot become uid %u", (unsigned)s->uid);
    if (!is_user(s))
        return err_set(e, -EPERM, "did not become uid %u", (unsigned)s->uid);
    return 0;
}

/* A rootless runtime needs newuidmap, a setuid program; what it starts goes without. */
static int shut_doors(const struct child *c, struct err *e)
{
    const struct jobdir_spec *s = c->spec;
    if (!s->new_privileges && !c->words && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "cannot set no_new_privs");
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return 0;
    for (int fd = 3; fd < 1024; fd++) /* kernels before 5.11 */
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

static int enter_folder(const struct jobdir_spec *s, struct err *e)
{
    if (chdir(s->job.cwd) < 0)
        return err_sys(e, "cannot enter the working directory %s", s->job.cwd);
    return 0;
}

/* As the user: never another's file by a link, never a device that blocks. */
static int open_output(const struct child *c, const char *output, int *ret_fd, struct err *e)
{
    const struct jobdir_spec *s = c->spec;
    auto_free char *named = job_output_path(output, s->job_id, c->task);
    const char *path = named ? named : "/dev/null";
    /* What an earlier job of that number left is not this job's; an earlier attempt's is. All
       tasks open it before any of them runs. */
    int anew = s->attempt == 1 && !s->job.append ? O_TRUNC : 0;
    int fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | anew,
        0666);
    if (fd < 0 && errno == ELOOP)
        return err_set(e, -ELOOP, "the output %s is a symbolic link; name the file itself", path);
    if (fd < 0)
        return err_sys(e, "cannot open the output %s", path);
    (void)fcntl(fd, F_SETFL, O_APPEND); /* blocking again; a pipe with no reader was refused */
    *ret_fd = fd;
    return 0;
}

static int use(int in, int out, int error, struct err *e)
{
    const int from[3] = { in, out, error };
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0)
            return err_sys(e, "cannot set up the standard streams");
    return 0;
}

static int use_file(const struct child *c, struct err *e)
{
    const struct job_spec *job = &c->spec->job;
    auto_close int out = -1;
    auto_close int error = -1;
    auto_close int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return err_sys(e, "cannot open /dev/null");
    int r = open_output(c, job->output, &out, e);
    if (r == 0 && job->error)
        r = open_output(c, job->error, &error, e);
    return r < 0 ? r : use(in, out, job->error ? error : out, e);
}

/* For a while, to open the user's files with his rights; `real` stays root. */
static int act_as_user(const struct jobdir_spec *s, struct err *e)
{
    int r = set_groups(s, e);
    if (r == 0 && (setegid(s->gid) < 0 || seteuid(s->uid) < 0))
        r = err_sys(e, "cannot act as uid %u", (unsigned)s->uid);
    return r;
}

static int act_as_root(struct err *e)
{
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
        return err_sys(e, "cannot act as root again");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0,
                0); /* after the last change of ids, which clears it */
    return 0;
}

/* To ask the daemon it has to be root by number, and nothing more: what it writes is the user's. */
static int drop_everything(struct err *e)
{
    for (unsigned long cap = 0; cap <= CAP_LAST_CAP; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
            return err_sys(e, "cannot drop capability %lu", cap);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "cannot set no_new_privs");
    return 0;
}

/* docker's client asks for a container as root; files and folders are the user's to open. */
static int prepare_client(const struct child *c, struct err *e)
{
    const struct jobdir_spec *s = c->spec;
    reset_signals();
    (void)setsid(); /* as below */
    (void)umask(022);
    int r = act_as_user(s, e);
    if (r == 0)
        r = enter_folder(s, e);
    if (r == 0)
        r = docker_reachable(c->reach, e);
    if (r == 0 && !s->job.attached)
        r = use_file(c, e);
    if (r == 0)
        r = act_as_root(e);
    if (r == 0)
        r = drop_everything(e);
    if (r == 0)
        r = shut_doors(c, e);
    if (r == 0 && chdir("/") < 0)
        r = err_sys(e, "cannot enter /");
    return r;
}

static int prepare(const struct child *c, struct err *e)
{
    const struct jobdir_spec *s = c->spec;
    if (c->client)
        return prepare_client(c, e);
    int r = enter_cgroups(c, e);
    if (r < 0)
        return r;
    reset_signals();
    (void)setsid(); /* fails only for a group leader, which a new child is not */
    (void)umask(022);
    reset_oom_score();
    r = c->session ? session_enter(c->session, e) : 0;
    if (r == 0)
        r = become_user(s, e);
    if (r == 0)
        r = shut_doors(c, e);
    if (r == 0)
        r = enter_folder(s, e);
    if (r == 0 && !s->job.attached)
        r = use_file(c, e);
    return r;
}

/* Blocks until released. 0 without descriptors, 3 with; -EPIPE when the supervisor is gone. */
static int wait_for_go(int go, char *ret_byte, int streams[3])
{
    struct iovec iov = { .iov_base = ret_byte, .iov_len = 1 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t n;
    do
        n = recvmsg(go, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        return -EPIPE;
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    if (!head || head->cmsg_len != CMSG_LEN(3 * sizeof(int)))
        return 0;
    memcpy(streams, CMSG_DATA(head), 3 * sizeof(int));
    return 3;
}

/*
 * execvp says EACCES when a folder of PATH is closed to the user, even where
 * the program is in none of them; people know that as "not found".
 */
static int why_not_run(const char *name, int code)
{
    const char *path = getenv("PATH");
    if (code != EACCES || strchr(name, '/') || !path)
        return code;
    for (const char *p = path; *p; p += strspn(p, ":")) {
        size_t len = strcspn(p, ":");
        auto_free char *file = text_fmt("%.*s/%s", (int)len, p, name);
        if (access(file, F_OK) == 0)
            return EACCES;
        p += len;
    }
    return ENOENT;
}

/* Where the runtime hands a script on; what else had that number moves. */
static void pass_script(struct child *c)
{
    if (c->script < 0 || c->script == CONTAINER_SCRIPT_FD)
        return;
    if (c->told == CONTAINER_SCRIPT_FD)
        c->told = fcntl(c->told, F_DUPFD_CLOEXEC, CONTAINER_SCRIPT_FD + 1);
    (void)dup2(c->script, CONTAINER_SCRIPT_FD); /* without it the script is not found: seen */
}

static _Noreturn void run_runtime(struct child c)
{
    struct err e = ERR_INIT;
    pass_script(&c);
    if (c.script == CONTAINER_SCRIPT_FD)
        (void)fcntl(c.script, F_SETFD, 0);
    (void)execve(c.words[0], c.words, c.env);
    int code = errno;
    err_sys(&e, "cannot run %.150s", c.words[0]);
    give_up(&c, code == ENOENT ? 127 : 126, e.text);
}

static _Noreturn void run_program(const struct child *c)
{
    if (c->words)
        run_runtime(*c);
    char path[64];
    char *const *argv = c->spec->job.argv;
    const char *name = argv[0];
    environ = c->env; /* execvp looks along the PATH that the job brought */
    if (c->script >= 0) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", c->script);
        (void)fcntl(c->script, F_SETFD, 0); /* its interpreter opens it by that path */
        name = path;
    }
    execvp(name, argv);
    struct err e = ERR_INIT;
    int code = errno = why_not_run(name, errno);
    err_sys(&e, "cannot run %.150s", argv[0]);
    give_up(c, code == ENOENT ? 127 : 126, e.text);
}

void child_run(const struct child *c)
{
    struct err e = ERR_INIT;
    int streams[3];
    char byte = CHILD_BORN;
    (void)send(c->go, &byte, 1, MSG_NOSIGNAL); /* a supervisor that is gone is seen below */
    close_others(c);
    if (prepare(c, &e) < 0)
        give_up(c, 126, e.text);
    int got = wait_for_go(c->go, &byte, streams);
    if (got < 0)
        _exit(126); /* the supervisor died or was told to stop: nothing was run */
    if (got == 3 && use(streams[0], streams[1], streams[2], &e) < 0)
        give_up(c, 126, e.text);
    if (byte == CHILD_GO_TERMINAL)
        (void)ioctl(0, TIOCSCTTY, 0); /* without it only Ctrl-C is missing */
    run_program(c);
}
