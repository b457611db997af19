#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "sim/command.h"
#include "sim/root.h"

DEFINE_AUTO_PTR(struct machine, machine_close);

int command_card(const struct machine *m, const char *word, uint32_t *ret_card, struct err *e)
{
    const char *digits = text_starts(word, "gpu") ? word + 3 : word;
    uint32_t count = machine_card_count(m);
    uint64_t n;
    for (uint32_t i = 0; i < count; i++) {
        struct sim_card card;
        machine_card(m, i, &card);
        if (strcmp(card.uuid, word) == 0) {
            *ret_card = i;
            return 0;
        }
    }
    if (text_parse_u64(digits, 0, UINT32_MAX, "card", &n, NULL) < 0 || n >= count)
        return err_set(e, -EINVAL, "there is no card '%.32s'; this machine has %s%u%s", word,
                       count > 1 ? "gpu0 to gpu" : "gpu", count - 1, count > 1 ? "" : " alone");
    *ret_card = (uint32_t)n;
    return 0;
}

static int need_card(const struct call *c, const struct machine *m, uint32_t *ret_card,
                     struct err *e)
{
    if (c->count == 0)
        return err_set(e, -EINVAL, "say which card: gpu0");
    return command_card(m, c->words[0], ret_card, e);
}

int command_fault(const struct call *c, struct err *e)
{
    AUTO_PTR(machine_close) struct machine *m = NULL;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    uint32_t card;
    int rc = machine_open(c->dir, &m, e);
    if (rc >= 0)
        rc = need_card(c, m, &card, e);
    if (rc >= 0 && c->count < 2)
        rc = err_set(e, -EINVAL,
                     "say which fault: lost, in-use, reset-required, create-fails:N, destroy-lies, "
                     "slow:MS, hang, passthrough, nvlink, leak:MIB, xid:N, or none");
    if (rc >= 0)
        rc = machine_edit_begin(m, &edit, e);
    for (size_t i = 1; i < c->count && rc >= 0; i++)
        rc = sim_fault_set(edit.state, card, c->words[i], e);
    return rc < 0 ? rc : machine_edit_commit(&edit);
}

static int kill_users(struct machine *m, struct err *e)
{
    struct sim_proc *procs = NULL;
    uint32_t count = 0;
    int rc = sim_procs_read(m, &procs, &count, e);
    for (uint32_t i = 0; rc >= 0 && i < count; i++)
        (void)kill(procs[i].pid,
                   SIGKILL); /* gone already, or another user's: the boot forgets it */
    free(procs);
    return rc;
}

struct restart {
    const char *noun, *done;
    void (*apply)(struct sim_state *st, const struct sim_board *boards);
    bool while_used; /* else refused while a process uses a card */
};

static int need_idle(struct machine *m, const struct sim_state *st, struct err *e)
{
    for (uint32_t i = 0; i < st->card_count; i++)
        if (sim_card_busy(m, i))
            return err_set(e, -EBUSY,
                           "gpu%u is in use, so the driver cannot be unloaded; divvy-sim status "
                           "shows by whom, and --kill ends them",
                           i);
    return 0;
}

static int restart_machine(const struct call *c, const struct restart *how, struct err *e)
{
    AUTO_PTR(machine_close) struct machine *m = NULL;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    int rc = machine_open(c->dir, &m, e);
    if (rc >= 0 && c->count)
        rc = err_set(e, -EINVAL, "%s is for the whole machine; divvy-sim reset takes a card",
                     how->noun);
    if (rc >= 0)
        rc = machine_edit_begin(m, &edit, e);
    if (rc >= 0)
        rc = c->kill ? kill_users(m, e) : how->while_used ? 0 : need_idle(m, edit.state, e);
    if (rc < 0)
        return rc;
    how->apply(edit.state, machine_boards(m));
    uint32_t boot = edit.state->boot;
    rc = machine_edit_commit(&edit);
    if (rc >= 0)
        rc = sim_root_version(m, e);
    if (rc >= 0)
        rc = sim_root_sync(m, e);
    if (rc >= 0)
        printf("%s; this is boot %u.\n", how->done, boot);
    return rc;
}

int command_reboot(const struct call *c, struct err *e)
{
    static const struct restart how = { "a reboot", "Rebooted", sim_reboot, true };
    return restart_machine(c, &how, e);
}

int command_reload(const struct call *c, struct err *e)
{
    static const struct restart how = { "a reload", "Loaded the driver anew", sim_reload, false };
    return restart_machine(c, &how, e);
}

/* Linked cards, none of which may be left out; names those that are. */
static int check_links(const struct sim_state *st, uint32_t named, struct err *e)
{
    AUTO(text) struct text left = TEXT_INIT;
    bool linked = false;
    for (uint32_t i = 0; i < st->card_count; i++) {
        bool has = st->cards[i].faults & SIM_FAULT_NVLINK;
        linked = linked || (has && (named & 1u << i));
        if (has && !(named & 1u << i))
            text_addf(&left, "%sgpu%u %s", left.len ? ", " : "", i, st->cards[i].uuid);
    }
    if (!linked || !left.len)
        return 0;
    return err_set(e, -EPERM, "it is connected by NVLink, and can be reset only together with %s",
                   left.buf);
}

static int reset_one(struct machine *m, struct machine_edit *edit, uint32_t card, struct err *e)
{
    int rc = sim_card_reset(edit->state, card, sim_card_busy(m, card));
    if (rc == -EBUSY)
        return err_set(
            e, rc, "gpu%u is in use, so it cannot be reset; divvy-sim status shows by whom", card);
    if (rc == -EOPNOTSUPP)
        return err_set(e, rc, "gpu%u: resetting it is not supported in a virtual machine", card);
    return rc < 0 ? err_set(e, rc, "gpu%u cannot be reset: %s", card, strerror(-rc)) : 0;
}

int command_reset(const struct call *c, struct err *e)
{
    AUTO_PTR(machine_close) struct machine *m = NULL;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    uint32_t card;
    uint32_t named = 0;
    int rc = machine_open(c->dir, &m, e);
    if (rc >= 0)
        rc = need_card(c, m, &card, e);
    for (size_t i = 0; i < c->count && rc >= 0; i++) {
        rc = command_card(m, c->words[i], &card, e);
        named |= rc >= 0 ? 1u << card : 0;
    }
    if (rc >= 0)
        rc = machine_edit_begin(m, &edit, e);
    if (rc >= 0)
        rc = check_links(edit.state, named, e);
    for (card = 0; card < SIM_CARDS_MAX && rc >= 0; card++)
        if (named & 1u << card)
            rc = reset_one(m, &edit, card, e);
    if (rc < 0)
        return rc;
    rc = machine_edit_commit(&edit);
    return rc < 0 ? rc : sim_root_sync(m, e);
}

/* Beside the program in a build tree, else where they are installed. */
static char *library_dir(void)
{
    const char *env = getenv("DIVVY_SIM_LIB");
    if (env && *env)
        return text_dup(env);
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        auto_free char *lib = text_fmt("%s/sim/lib/libnvidia-ml.so.1", self);
        if (access(lib, R_OK) == 0)
            return text_fmt("%s/sim/lib", self);
    }
    return text_dup(DIVVY_SIM_LIBDIR);
}

static void print_export(const char *name, const char *value, const char *after)
{
    printf("export %s='", name);
    for (; *value; value++) {
        if (*value == '\'')
            printf("'\\''");
        else
            putchar(*value);
    }
    printf("'%s\n", after);
}

int command_env(const struct call *c, struct err *e)
{
    AUTO_PTR(machine_close) struct machine *m = NULL;
    int rc = machine_open(c->dir, &m, e);
    if (rc < 0)
        return rc;
    auto_free char *dir = realpath(machine_dir(m), NULL);
    auto_free char *lib = library_dir();
    auto_free char *self = realpath("/proc/self/exe", NULL);
    if (!dir)
        return err_sys(e, "cannot find %s", machine_dir(m));
    auto_free char *nvml = text_fmt("%s/libnvidia-ml.so.1", lib);
    auto_free char *root = text_fmt("%s/root", dir);
    if (access(nvml, R_OK) < 0)
        return err_set(e, -ENOENT,
                       "the simulated libraries are not in %s; DIVVY_SIM_LIB can name "
                       "their folder",
                       lib);
    print_export("DIVVY_SIM", dir, "");
    print_export("LD_LIBRARY_PATH", lib, "\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"");
    print_export("DIVVY_NVML", nvml, "");
    print_export("DIVVY_DRIVER_ROOT", root, "");
    if (self) { /* where a real machine has nvidia-smi --gpu-reset */
        auto_free char *reset = text_fmt("%s reset {uuid}", self);
        print_export("DIVVY_RESET_COMMAND", reset, "");
    }
    return 0;
}
