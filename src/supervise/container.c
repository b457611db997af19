#include "supervise/container.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "supervise/docker.h"
#include "supervise/payload.h"

#define INIT_PROGRAM "/usr/libexec/podman/catatonit"
#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define CLEAR_WAIT_S 20
#define EMPTY_WAIT_US (2 * CLOCK_SECOND)
#define CLEAR_TRIES 3 /* podman's first try on what was killed brings its record up to date */

/* ---- what there is ---- */

void container_host_done(struct container_host *h)
{
    free(h->program);
    free(h->oci);
    *h = (struct container_host)CONTAINER_HOST_INIT;
}

static const char *own_path(void)
{
    const char *path = getenv("PATH");
    return path && path[0] ? path : USUAL_PATH;
}

/* crun refuses hosts with a unified hierarchy beside others; runc takes them. */
static void look_at_cgroups(struct container_host *h)
{
    struct cgroup_host host;
    cgroup_host_detect(NULL, NULL, &host);
    h->unified = host.kind == CGROUP_V2;
    cgroup_host_done(&host);
    if (!h->unified)
        h->oci = file_find_program(own_path(), "runc");
}

int container_find(const struct job_container *c, struct container_host *ret, struct err *e)
{
    struct container_host h = CONTAINER_HOST_INIT;
    for (size_t i = 0; container_runtimes[i] && !h.program; i++) {
        if (c->runtime && strcmp(c->runtime, container_runtimes[i]) != 0)
            continue;
        h.runtime = container_runtimes[i];
        h.program = file_find_program(own_path(), h.runtime);
    }
    if (job_container_is_docker(c)) {
        h.runtime = "docker";
        h.program = file_find_program(own_path(), h.runtime);
    }
    if (!h.program && c->runtime)
        return err_set(e, -ENOENT, "there is no %s on this machine to run the container with",
                       c->runtime);
    if (!h.program)
        return err_set(e, -ENOENT,
                       "there is neither podman nor apptainer on this machine to run the container "
                       "with");
    if (strcmp(h.runtime, "podman") == 0) {
        look_at_cgroups(&h);
        h.init = access(INIT_PROGRAM, X_OK) == 0;
    }
    *ret = h;
    return 0;
}

/* ---- words ---- */

static void add(char ***words, char *take_word)
{
    auto_free char *word = take_word;
    strv_add(words, word);
}

/* Did the user say this himself? "--network" also as "--network=none". */
static bool said(const struct jobdir_spec *s, const char *option)
{
    size_t len = strlen(option);
    for (char **a = s->job.container.args; a && *a; a++)
        if (strncmp(*a, option, len) == 0 && ((*a)[len] == '=' || !(*a)[len]))
            return true;
    return false;
}

static char *container_name(const struct jobdir_spec *s, unsigned task)
{
    return text_fmt("divvy-%" PRIu64 ".%" PRIu32 "-%u", s->job_id, s->attempt, task);
}

static int check_colon(const char *path, const char *what, struct err *e)
{
    if (!strchr(path, ':'))
        return 0;
    return err_set(e, -EINVAL,
                   "%s %.128s has a colon in its name, which the container's runtime takes for the "
                   "end of it",
                   what, path);
}

const char *container_below_root(const char *driver_root, const char *path)
{
    size_t len = strcmp(driver_root, "/") == 0 ? 0 : strlen(driver_root);
    return strncmp(path, driver_root, len) == 0 && path[len] == '/' ? path + len : path;
}

static int add_devices(const struct jobdir_spec *s, unsigned task, char ***words, struct err *e)
{
    const struct jobdir_task *t = &s->tasks[task];
    for (size_t i = 0; i < t->device_count; i++) {
        const char *path = t->devices[i].path;
        int r = check_colon(path, "the device node", e);
        if (r < 0)
            return r;
        add(words, text_fmt("--device=%s:%s:rw", path, container_below_root(s->driver_root, path)));
    }
    for (char **b = t->device_count ? s->binds : NULL; b && *b; b++)
        add(words, text_fmt("--volume=%s:ro", *b));
    return 0;
}

static int add_folder(const struct jobdir_spec *s, char ***words, struct err *e)
{
    const char *cwd = s->job.cwd;
    int r = check_colon(cwd, "the working directory", e);
    if (r < 0)
        return r;
    if (strcmp(cwd, "/") != 0)
        add(words, text_fmt("--volume=%s:%s", cwd, cwd));
    add(words, text_fmt("--workdir=%s", cwd));
    return 0;
}

void container_each_name(const struct jobdir_spec *s, unsigned task, container_name_fn each,
                         void *user)
{
    static const char *const marks[] = { "DIVVY_ATTEMPT", "DIVVY_ROOT" };
    char *const *env = s->tasks[task].env;
    for (size_t i = 0; env && env[i]; i++)
        if (!text_starts(env[i], "DIVVY_ROOT=") && !text_starts(env[i], "NVIDIA_VISIBLE_DEVICES="))
            each(user, env[i], strcspn(env[i], "="));
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        each(user, marks[i], strlen(marks[i]));
    for (char **name = s->job.container.env; name && *name; name++)
        each(user, *name, strlen(*name));
}

static void add_env_word(void *user, const char *name, size_t len)
{
    add(user, text_fmt("--env=%.*s", (int)len, name));
}

static void add_how(const struct jobdir_spec *s, const struct container_host *h, char ***words)
{
    if (h->unified)
        strv_add(words, "--cgroups=disabled");
    if (!s->new_privileges)
        strv_add(words, "--security-opt=no-new-privileges");
    if (h->init && !said(s, "--init"))
        strv_add(words, "--init");
    if (!said(s, "--network") && !said(s, "--net"))
        strv_add(words, "--network=host");
    if (!said(s, "--shm-size") && !said(s, "--ipc"))
        strv_add(words, "--shm-size=0"); /* as much as the job's memory limit leaves */
    if (s->job.attached)
        strv_add(words, "--interactive");
    if (s->job.attached && s->job.pty)
        strv_add(words, "--tty");
    if (s->job.script)
        strv_add(words, "--preserve-fds=1");
}

static void add_podman(const struct container_host *h, char ***words)
{
    strv_add(words, h->program);
    strv_add(words, "--remote=false");
    strv_add(words, "--cgroup-manager=cgroupfs");
    if (h->oci)
        add(words, text_fmt("--runtime=%s", h->oci));
}

static int podman_words(const struct jobdir_spec *s, unsigned task, const struct container_host *h,
                        char ***words, struct err *e)
{
    auto_free char *name = container_name(s, task);
    add_podman(h, words);
    strv_add(words, "run");
    strv_add(words, "--rm");
    add(words, text_fmt("--name=%s", name));
    strv_add(words, "--log-driver=none"); /* the output is the job's own file, or its client */
    strv_add(words, "--no-healthcheck");
    strv_add(words, "--security-opt=label=disable"); /* SELinux would close the nodes */
    add_how(s, h, words);
    int r = add_folder(s, words, e);
    if (r == 0)
        r = add_devices(s, task, words, e);
    container_each_name(s, task, add_env_word, words);
    /* The devices are there already; NVIDIA's older hook is not to look for them. */
    strv_add(words, "--env=NVIDIA_VISIBLE_DEVICES=void");
    return r;
}

static int apptainer_words(const struct jobdir_spec *s, unsigned task,
                           const struct container_host *h, char ***words, struct err *e)
{
    int r = check_colon(s->job.cwd, "the working directory", e);
    strv_add(words, h->program);
    strv_add(words, "exec");
    strv_add(words, "--cleanenv");
    if (s->tasks[task].device_count)
        strv_add(words, "--nv"); /* it knows the driver's files; nodes are the gate's business */
    if (strcmp(s->job.cwd, "/") != 0)
        add(words, text_fmt("--bind=%s", s->job.cwd));
    add(words, text_fmt("--pwd=%s", s->job.cwd));
    return r;
}

int container_run_words(const struct jobdir_spec *s, unsigned task, const struct container_host *h,
                        char ***ret, struct err *e)
{
    const struct job_container *c = &s->job.container;
    char **words = NULL;
    int r = text_same(h->runtime, "podman") ? podman_words(s, task, h, &words, e)
                                            : apptainer_words(s, task, h, &words, e);
    if (r < 0) {
        strv_free(words);
        return r;
    }
    for (char **a = c->args; a && *a; a++)
        strv_add(&words, *a);
    strv_add(&words, c->image);
    if (s->job.script)
        add(&words, text_fmt("/proc/self/fd/%d", CONTAINER_SCRIPT_FD));
    for (char **a = s->job.argv + (s->job.script ? 1 : 0); *a; a++)
        strv_add(&words, *a);
    *ret = words;
    return 0;
}

char **container_inside_words(const struct jobdir_spec *s, unsigned task,
                              const struct container_host *h)
{
    char **words = NULL;
    if (!text_same(h->runtime, "podman"))
        return NULL; /* apptainer's tasks are processes of the host's like any other */
    add_podman(h, &words);
    strv_add(&words, "exec");
    strv_add(&words, "--interactive");
    if (s->job.pty) {
        strv_add(&words, "--tty");
        strv_add(&words, "--env=TERM");
    }
    add(&words, text_fmt("--workdir=%s", s->job.cwd));
    add(&words, container_name(s, task));
    for (char **a = s->job.argv; *a; a++)
        strv_add(&words, *a);
    return words;
}

char **container_clear_words(const struct jobdir_spec *s, unsigned task,
                             const struct container_host *h)
{
    char **words = NULL;
    if (!text_same(h->runtime, "podman"))
        return NULL; /* apptainer keeps no record of what it runs */
    add_podman(h, &words);
    strv_add(&words, "rm");
    strv_add(&words, "--force");
    strv_add(&words, "--ignore");
    strv_add(&words, "--time=0");
    add(&words, container_name(s, task));
    return words;
}

/* ---- the runtime's own environment ---- */

static const char *value_of(char *const *env, const char *name, size_t len)
{
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

static bool leads_elsewhere(const char *variable)
{
    /* A service of podman's, and sockets that are not this job's. */
    static const char *const names[] = { "CONTAINER_HOST=", "CONTAINER_CONNECTION=",
                                         "NOTIFY_SOCKET=", "LISTEN_FDS=", "LISTEN_PID=" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_starts(variable, names[i]))
            return true;
    return false;
}

static void add_prefixed(void *user, const char *name, size_t len)
{
    char ***env = user;
    const char *value = value_of(*env, name, len);
    if (value)
        add(env, text_fmt("APPTAINERENV_%.*s=%s", (int)len, name, value));
}

char **container_environment(char **take_env, const struct jobdir_spec *s, unsigned task,
                             const struct container_host *h)
{
    char **env = NULL;
    for (char **v = take_env; v && *v; v++)
        if (!leads_elsewhere(*v))
            strv_add(&env, *v);
    strv_free(take_env);
    if (!value_of(env, "PATH", 4)) /* its helpers (newuidmap, conmon) are looked for there */
        strv_add(&env, "PATH=" USUAL_PATH);
    if (strcmp(h->runtime, "apptainer") == 0)
        container_each_name(s, task, add_prefixed, &env);
    return env;
}

/* ---- clearing ---- */

/* Its status; -ETIMEDOUT when it has not ended in time. */
static int wait_for(pid_t pid)
{
    int64_t end_us = clock_now().boot_us + CLEAR_WAIT_S * CLOCK_SECOND;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) != 0)
            return status;
        int64_t left_us = end_us - clock_now().boot_us;
        if (left_us <= 0)
            return -ETIMEDOUT;
        struct timespec wait = { .tv_sec = left_us / CLOCK_SECOND,
                                 .tv_nsec = left_us % CLOCK_SECOND * 1000 };
        (void)sigtimedwait(&child, NULL, &wait); /* whatever it was: look */
    }
}

static int clear_task(const struct jobdir_spec *s, unsigned task, const struct tree *t,
                      const struct container_host *h, struct err *e)
{
    char **words = container_clear_words(s, task, h);
    struct payload_process process = PAYLOAD_PROCESS_INIT;
    struct job_exit ignored;
    if (!words)
        return 0;
    /* The same user in the same cgroup, but nothing of the job's streams or folder. */
    struct jobdir_spec quiet = *s;
    quiet.job.argv = words;
    quiet.job.script = quiet.job.output = NULL;
    quiet.job.cwd = (char *)"/";
    quiet.job.attached = false;
    struct payload p = { .spec = &quiet, .task = task, .cgroup = &t->cgroup, .runtime = h };
    int r = payload_spawn(&p, &process, e);
    if (r == 0)
        r = payload_release(&process, NULL, false, e);
    strv_free(words);
    if (r < 0)
        return r;
    int status = wait_for(process.pid);
    if (status < 0) {
        tree_signal(t, SIGKILL);
        (void)waitpid(process.pid, NULL, 0);
        r = err_set(e, -ETIMEDOUT, "it took longer than %d s", CLEAR_WAIT_S);
    } else if (status > 0) {
        r = err_set(e, -EAGAIN, "%s rm ended with %d", h->runtime,
                    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    (void)payload_report(&process, &ignored); /* closes */
    return r;
}

/* podman leaves a process behind that holds its user namespace. */
static void empty(const struct tree *t)
{
    int64_t end_us = clock_now().boot_us + EMPTY_WAIT_US;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (tree_populated(t) && clock_now().boot_us < end_us) {
        tree_signal(t, SIGKILL);
        (void)sigtimedwait(&child, NULL, &(struct timespec){ .tv_nsec = 5000000 });
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
}

void container_clear(const struct jobdir_spec *s, const struct tree *t)
{
    struct err e = ERR_INIT;
    AUTO(container_host) struct container_host h = CONTAINER_HOST_INIT;
    if (container_find(&s->job.container, &h, &e) < 0)
        return; /* then none was started */
    if (job_container_is_docker(&s->job.container)) {
        (void)docker_clear(s, h.program); /* it has logged what stays */
        empty(t);
        return;
    }
    for (unsigned i = 0; i < s->task_count; i++) {
        int r = -EAGAIN;
        for (int k = 0; r == -EAGAIN && k < CLEAR_TRIES; k++)
            r = clear_task(s, i, t, &h, &e);
        if (r < 0)
            log_line(LOG_WARN, "what is left of the container of task %u was not removed: %s", i,
                     e.text);
    }
    empty(t);
}
