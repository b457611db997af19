/* The commands of a hooks file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "cli/mig_parted.h"

static void add_value(char ***envs, const char *name, const char *value)
{
    auto_free char *entry = text_fmt("%s=%s", name, value ? value : "");
    strv_add(envs, entry);
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static void add_ours(char ***envs, const struct mig_call *c)
{
    add_value(envs, "MIG_PARTED_HOOKS_FILE", c->hooks_file);
    add_value(envs, "MIG_PARTED_MODE_CHANGE_ONLY", truth(c->mode_only));
    if (strcmp(c->verb, "restore") == 0) {
        add_value(envs, "MIG_PARTED_CHECKPOINT_FILE", c->checkpoint_file);
        return;
    }
    add_value(envs, "MIG_PARTED_CONFIG_FILE", c->config_file);
    add_value(envs, "MIG_PARTED_SELECTED_CONFIG", c->selected_config);
    add_value(envs, "MIG_PARTED_SKIP_RESET", truth(c->skip_reset));
}

static bool is_given(char *const *envs, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (size_t i = 0; envs && envs[i]; i++)
        if (strncmp(envs[i], entry, name) == 0)
            return true;
    return false;
}

/* Ours win over the file's; nothing else is there, not even a PATH. */
static char **environment_of(const struct mig_hook *h, const struct mig_call *c)
{
    char **envs = NULL;
    add_ours(&envs, c);
    for (size_t i = 0; i < h->envs.count; i++)
        if (!is_given(envs, h->envs.words[i]))
            strv_add(&envs, h->envs.words[i]);
    return envs;
}

static void prepare(posix_spawn_file_actions_t *actions, const struct mig_hook *h, bool shown)
{
    (void)posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!shown) {
        (void)posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        (void)posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (h->workdir && h->workdir[0])
        (void)posix_spawn_file_actions_addchdir_np(actions, h->workdir);
}

static int start(const struct mig_hook *h, const struct mig_call *c, pid_t *ret, struct err *e)
{
    posix_spawn_file_actions_t actions;
    auto_free char *found =
        strchr(h->command, '/') ? NULL : file_find_program(getenv("PATH"), h->command);
    const char *program = found ? found : h->command;
    char **argv = NULL;
    strv_add(&argv, h->command);
    for (size_t i = 0; i < h->args.count; i++)
        strv_add(&argv, h->args.words[i]);
    char **envs = environment_of(h, c);
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        prepare(&actions, h, c->debug);
        failed = posix_spawn(ret, program, &actions, NULL, argv, envs);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    strv_free(argv);
    strv_free(envs);
    if (!failed)
        return 0;
    return err_set(e, -failed, "cannot run %.200s%s%.200s: %s", program, h->workdir ? " in " : "",
                   h->workdir ? h->workdir : "", strerror(failed));
}

static int run_one(const struct mig_hook *h, const struct mig_call *c, struct err *e)
{
    pid_t pid;
    int status = 0;
    int code = start(h, c, &pid, e);
    if (code < 0)
        return code;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    const char *hint = c->debug ? "" : "; --debug shows what it says";
    if (WIFSIGNALED(status))
        return err_set(e, -ECHILD, "%.200s was killed by signal %d%s", h->command, WTERMSIG(status),
                       hint);
    return err_set(e, -ECHILD, "%.200s ended with status %d%s", h->command, WEXITSTATUS(status),
                   hint);
}

int mig_hook_run(const struct mig_hooks *hooks, enum mig_hook_point p, const struct mig_call *c,
                 struct err *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < hooks->count[p]; i++)
        code = run_one(&hooks->list[p][i], c, e);
    return code < 0 ? err_wrap(e, code, "hook %s", mig_hook_word(p)) : 0;
}
