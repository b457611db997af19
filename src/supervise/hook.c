#include "supervise/hook.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/secure.h"
#include "supervise/client.h"

#define LOOK_MS 100 /* between two looks for a stop */
#define SAID_BYTES 2048

static void put(char ***env, const char *name, const char *value)
{
    auto_free char *entry = text_fmt("%s=%s", name, value ? value : "");
    strv_add(env, entry);
}

static const char *value_of(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            return env[i] + len + 1;
    return NULL;
}

/* What the tasks are told of it, joined: a hook is for all of them. */
static void put_joined(char ***env, const struct jobdir_spec *s, const char *name)
{
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; i < s->task_count; i++) {
        const char *value = value_of(s->tasks[i].env, name);
        if (value && value[0])
            text_addf(&all, "%s%s", all.len ? "," : "", value);
    }
    put(env, name, all.buf);
}

static char **environment(const struct hook *h, const struct jobdir_spec *s)
{
    char **env = NULL;
    auto_free char *uid = text_fmt("%u", (unsigned)s->uid);
    auto_free char *gid = text_fmt("%u", (unsigned)s->gid);
    put(&env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    put(&env, "DIVVY_HOOK", h->name);
    put(&env, "DIVVY_UID", uid);
    put(&env, "DIVVY_GID", gid);
    put(&env, "DIVVY_USER", s->user);
    put(&env, "DIVVY_ROOT", s->root);
    put(&env, "DIVVY_JOB_ID", value_of(s->tasks[0].env, "DIVVY_JOB_ID"));
    put_joined(&env, s, "CUDA_VISIBLE_DEVICES");
    put_joined(&env, s, "NVIDIA_VISIBLE_DEVICES");
    put_joined(&env, s, "DIVVY_SLICES");
    return env;
}

/* Its last line, for the one sentence that people will read. */
static char *last_line(int said)
{
    char bytes[SAID_BYTES + 1];
    off_t size = lseek(said, 0, SEEK_END);
    ssize_t n = pread(said, bytes, SAID_BYTES, size > SAID_BYTES ? size - SAID_BYTES : 0);
    if (n <= 0)
        return text_dup("");
    bytes[n] = '\0';
    while (n > 0 && strchr(" \r\n\t", bytes[n - 1]))
        bytes[--n] = '\0';
    char *line = strrchr(bytes, '\n');
    line = line ? line + 1 : bytes;
    return text_fmt("%s%.160s", *line && text_is_printable(line) ? ": " : "",
                    text_is_printable(line) ? line : "");
}

/* 0: it ended; else why it was not waited for any longer. */
static int wait_for(const struct hook *h, pid_t pid, int64_t until_us, int *ret_status)
{
    for (;;) {
        int64_t left_us = until_us - clock_now().boot_us;
        if (waitpid(pid, ret_status, WNOHANG) == pid)
            return 0;
        if (left_us <= 0)
            return -ETIME;
        if (h->dir >= 0 && jobdir_read_stop(h->dir, NULL) != JOBDIR_STOP_NONE)
            return -ECANCELED;
        auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        struct pollfd p = { .fd = fd, .events = POLLIN };
        (void)poll(&p, 1, left_us < LOOK_MS * 1000 ? (int)(left_us / 1000) + 1 : LOOK_MS);
    }
}

static int judge(const struct hook *h, int r, int status, int said, struct err *e)
{
    auto_free char *line = last_line(said);
    if (r == -ECANCELED)
        return err_set(e, r, "told to stop during the %s", h->name);
    if (r == -ETIME)
        return err_set(e, r, "the %s %s took too long and was killed%s", h->name, h->program, line);
    if (WIFSIGNALED(status))
        return err_set(e, -EIO, "the %s %s was killed by signal %d%s", h->name, h->program,
                       WTERMSIG(status), line);
    if (WEXITSTATUS(status) != 0)
        return err_set(e, -EIO, "the %s %s ended with %d%s", h->name, h->program,
                       WEXITSTATUS(status), line);
    return 0;
}

int hook_run(const struct hook *h, const struct jobdir_spec *spec, struct err *e)
{
    struct secure secure = { .owner = geteuid(), .refused = 022 };
    int r = secure_check(&secure, h->program, e);
    if (r < 0)
        return err_wrap(e, r, "the %s is not run", h->name);
    auto_close int said = memfd_create("divvy-hook", MFD_CLOEXEC);
    if (said < 0)
        return err_sys(e, "cannot make a file for what the %s says", h->name);
    char **env = environment(h, spec);
    char *const words[] = { (char *)(uintptr_t)h->program, NULL };
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        client_become(words, env, said);
    strv_free(env);
    if (pid < 0)
        return err_sys(e, "cannot start the %s", h->name);
    r = wait_for(h, pid, clock_now().boot_us + spec->hook_limit_us, &status);
    if (r < 0)
        (void)kill(pid, SIGKILL); /* maybe before it has a group */
    (void)kill(-pid, SIGKILL);    /* and what it left behind */
    if (r < 0)
        (void)waitpid(pid, &status, 0);
    return judge(h, r, status, said, e);
}
