#include "sim/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "nvml/nvml.h"

#define RECORD_MAGIC 0x31434f5250565644ULL /* "DVVPROC1" */

struct record {
    uint64_t magic;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat */
    uint32_t boot;
    uint32_t use_count;
    struct sim_use uses[SIM_USES_MAX];
};

/* ---- what /proc says ---- */

static bool read_small(const char *path, char *buf, size_t size)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, size - 1);
    if (n < 0)
        return false;
    buf[n] = '\0';
    return true;
}

static bool start_ticks(pid_t pid, uint64_t *ret_ticks)
{
    char path[48], buf[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid); /* fits */
    if (!read_small(path, buf, sizeof buf))
        return false;
    char *at = strrchr(buf, ')'); /* the name in front may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    *ret_ticks = strtoull(at + 1, NULL, 10);
    return true;
}

/* From status, not the folder's owner: that is root's for a process that changed its user. */
static bool effective_uid(pid_t pid, uid_t *ret_uid)
{
    char path[48], buf[2048];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid); /* fits */
    if (!read_small(path, buf, sizeof buf))
        return false;
    const char *line = strstr(buf, "\nUid:");
    if (!line)
        return false;
    char *end;
    (void)strtoul(line + strlen("\nUid:"), &end, 10); /* the real one comes first */
    *ret_uid = (uid_t)strtoul(end, &end, 10);
    return *end == '\t';
}

static void read_name(pid_t pid, char *ret_name, size_t size)
{
    char path[48], buf[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid); /* fits */
    if (!read_small(path, buf, sizeof buf) || buf[0] == '\0') {
        (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid); /* fits */
        if (!read_small(path, buf, sizeof buf))
            buf[0] = '\0'; /* it just ended */
        buf[strcspn(buf, "\n")] = '\0';
    }
    (void)snprintf(ret_name, size, "%s", buf); /* cut is all right */
}

/* ---- records ---- */

static int open_procs(const struct machine *m)
{
    auto_free char *path = text_fmt("%s/procs", machine_dir(m));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool record_is_sane(const struct record *r, const struct machine *m)
{
    if (r->magic != RECORD_MAGIC || r->use_count == 0 || r->use_count > SIM_USES_MAX)
        return false;
    for (uint32_t i = 0; i < r->use_count; i++)
        if (r->uses[i].card >= machine_card_count(m))
            return false;
    return true;
}

/* Reads procs/PID; false when there is none or it cannot be believed. */
static bool read_record(const struct machine *m, int procs_fd, const char *name, uid_t *ret_uid,
                        struct record *ret)
{
    auto_close int fd = openat(procs_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    *ret_uid = st.st_uid;
    return read(fd, ret, sizeof *ret) == sizeof *ret && record_is_sane(ret, m);
}

/* Names are "PID.UID": a number that comes round again under another user meets no old file. */
static void record_name(char *ret_name, size_t size, const char *before)
{
    (void)snprintf(ret_name, size, "%s%d.%u", before, (int)getpid(),
                   (unsigned int)geteuid()); /* fits 32 bytes */
}

static bool pid_of_name(const char *name, pid_t *ret_pid)
{
    char *end;
    long pid = strtol(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end != '.' || pid < 1 || pid > 0x7fffffff)
        return false;
    *ret_pid = (pid_t)pid;
    return true;
}

static bool record_is_live(const struct record *r, pid_t pid, uid_t owner, uint32_t boot)
{
    uint64_t ticks;
    uid_t uid;
    return r->boot == boot && start_ticks(pid, &ticks) && ticks == r->start_ticks &&
           effective_uid(pid, &uid) && uid == owner;
}

static void clear_dead(int procs_fd, const char *name, pid_t pid)
{
    if (kill(pid, 0) < 0 && errno == ESRCH)
        (void)unlinkat(procs_fd, name, 0); /* not ours to remove: whoever may will */
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct sim_proc *)a)->pid, y = ((const struct sim_proc *)b)->pid;
    return (x > y) - (x < y);
}

static bool read_proc(const struct machine *m, int procs_fd, const char *name, uint32_t boot,
                      struct sim_proc *ret)
{
    struct record r;
    uid_t owner;
    pid_t pid;
    if (name[0] == '.' && pid_of_name(name + 1, &pid))
        clear_dead(procs_fd, name, pid); /* killed while it wrote its record */
    if (!pid_of_name(name, &pid))
        return false;
    if (!read_record(m, procs_fd, name, &owner, &r) || !record_is_live(&r, pid, owner, boot)) {
        clear_dead(procs_fd, name, pid);
        return false;
    }
    *ret = (struct sim_proc){ .pid = pid, .uid = owner, .use_count = r.use_count };
    memcpy(ret->uses, r.uses, sizeof ret->uses);
    read_name(pid, ret->name, sizeof ret->name);
    return true;
}

int sim_procs_read(const struct machine *m, struct sim_proc **ret_procs, uint32_t *ret_count,
                   struct err *e)
{
    auto_free char *path = text_fmt("%s/procs", machine_dir(m));
    auto_dir DIR *dir = opendir(path);
    if (!dir)
        return err_sys(e, "cannot read %s", path);
    uint32_t boot = machine_boot(m), count = 0;
    size_t room = 0;
    auto_free struct sim_proc *procs = NULL;
    for (struct dirent *d; (d = readdir(dir));) {
        ARRAY_ROOM(procs, room, count + 1U);
        count += read_proc(m, dirfd(dir), d->d_name, boot, &procs[count]);
    }
    if (count > 0)
        qsort(procs, count, sizeof *procs, by_pid);
    *ret_procs = count > 0 ? take_ptr(procs) : NULL;
    *ret_count = count;
    return 0;
}

/* ---- registering ---- */

static bool instance_exists(const struct sim_card *c, const struct sim_use *u)
{
    return c->mig_current && u->gi < SIM_GI_MAX && u->ci < SIM_CI_MAX && c->gi[u->gi].used &&
           c->gi[u->gi].ci[u->ci].used;
}

static int check_place(const struct machine *m, const struct sim_use *u, struct sim_card *ret_card,
                       struct err *e)
{
    if (u->card >= machine_card_count(m))
        return err_set(e, -ENODEV, "there is no gpu%u; the machine has %u cards", u->card,
                       machine_card_count(m));
    machine_card(m, u->card, ret_card);
    if (ret_card->faults & SIM_FAULT_LOST)
        return err_set(e, -ENODEV, "gpu%u is lost", u->card);
    bool whole = u->gi == SIM_NO_INSTANCE && u->ci == SIM_NO_INSTANCE;
    if (whole && ret_card->mig_current)
        return err_set(e, -EINVAL, "gpu%u has MIG on: only its compute instances can be used",
                       u->card);
    if (!whole && !instance_exists(ret_card, u))
        return err_set(e, -ENOENT, "gpu%u has no compute instance %u in GPU instance %u", u->card,
                       u->ci, u->gi);
    return 0;
}

static bool others_use(const struct sim_proc *procs, uint32_t count, const struct sim_use *u)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; procs[i].pid != getpid() && j < procs[i].use_count; j++)
            if (procs[i].uses[j].card == u->card && procs[i].uses[j].gi == u->gi &&
                procs[i].uses[j].ci == u->ci)
                return true;
    return false;
}

static int check_memory(const struct machine *m, const struct sim_use *uses, uint32_t n,
                        const struct sim_use *u, const struct sim_card *c,
                        const struct sim_proc *procs, uint32_t count, struct err *e)
{
    uint64_t usable = sim_memory_usable(&machine_boards(m)[c->board], c, u->gi);
    uint64_t wanted = 0, taken = 0;
    for (uint32_t i = 0; i < n; i++)
        if (uses[i].card == u->card && uses[i].gi == u->gi &&
            __builtin_add_overflow(wanted, uses[i].memory_bytes, &wanted))
            wanted = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (procs[i].pid != getpid())
            taken += sim_memory_used(&procs[i], 1, u->card, u->gi);
    if (taken > usable || wanted > usable - taken)
        return err_set(e, -ENOMEM, "gpu%u has %llu MiB free there, %llu MiB were asked for",
                       u->card, (unsigned long long)(taken > usable ? 0 : (usable - taken) >> 20),
                       (unsigned long long)(wanted >> 20));
    return 0;
}

static int check_uses(const struct machine *m, const struct sim_use *uses, uint32_t n,
                      struct err *e)
{
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    int rc = n > 0 ? sim_procs_read(m, &list, &count, e) : 0;
    auto_free struct sim_proc *procs = list;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct sim_card c;
        rc = check_place(m, &uses[i], &c, e);
        if (rc == 0 && c.compute_mode == NVML_COMPUTEMODE_PROHIBITED)
            rc = err_set(e, -EACCES, "gpu%u is in compute mode PROHIBITED", uses[i].card);
        if (rc == 0 && c.compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS &&
            others_use(procs, count, &uses[i]))
            rc = err_set(e, -EBUSY, "gpu%u is in compute mode EXCLUSIVE_PROCESS and has a process",
                         uses[i].card);
        if (rc == 0)
            rc = check_memory(m, uses, n, &uses[i], &c, procs, count, e);
    }
    return rc;
}

static int write_record(int procs_fd, const struct record *r, struct err *e)
{
    char name[32], temporary[32];
    record_name(name, sizeof name, "");
    record_name(temporary, sizeof temporary, ".");
    (void)unlinkat(procs_fd, temporary, 0); /* left by an earlier process that was killed here */
    auto_close int fd =
        openat(procs_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_sys(e, "cannot register this process");
    if (fchmod(fd, 0644) < 0 || write(fd, r, sizeof *r) != sizeof *r ||
        renameat(procs_fd, temporary, procs_fd, name) < 0) {
        int rc = err_sys(e, "cannot register this process");
        (void)unlinkat(procs_fd, temporary, 0); /* the first error is the one to tell */
        return rc;
    }
    return 0;
}

static int end_registration(int procs_fd, struct err *e)
{
    char name[32];
    record_name(name, sizeof name, "");
    if (unlinkat(procs_fd, name, 0) < 0 && errno != ENOENT)
        return err_sys(e, "cannot end the registration of this process");
    return 0;
}

int sim_use_set(struct machine *m, const struct sim_use *uses, uint32_t count, struct err *e)
{
    struct record r = { .magic = RECORD_MAGIC, .use_count = count };
    if (count > SIM_USES_MAX)
        return err_set(e, -EINVAL, "a process can use %d instances, not %u", SIM_USES_MAX, count);
    if (!start_ticks(getpid(), &r.start_ticks))
        return err_set(e, -ENOSYS, "/proc does not tell when this process started");
    auto_close int lock_fd = machine_lock(m, e);
    if (lock_fd < 0)
        return lock_fd;
    auto_close int procs_fd = open_procs(m);
    if (procs_fd < 0)
        return err_sys(e, "cannot open %s/procs", machine_dir(m));
    if (count == 0)
        return end_registration(procs_fd, e);
    int rc = check_uses(m, uses, count, e);
    if (rc < 0)
        return rc;
    r.boot = machine_boot(m);
    memcpy(r.uses, uses, count * sizeof *uses);
    for (uint32_t i = 0; i < count; i++)
        if (r.uses[i].since_us == 0)
            r.uses[i].since_us = clock_now().boot_us;
    return write_record(procs_fd, &r, e);
}

/* ---- sums ---- */

static bool any_use(const struct machine *m, uint32_t card, uint32_t gi, uint32_t ci)
{
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    if (sim_procs_read(m, &list, &count, NULL) < 0)
        return true; /* not known to be free */
    auto_free struct sim_proc *procs = list;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < procs[i].use_count; j++) {
            const struct sim_use *u = &procs[i].uses[j];
            if (u->card == card && (gi == SIM_NO_INSTANCE || u->gi == gi) &&
                (ci == SIM_NO_INSTANCE || u->ci == ci))
                return true;
        }
    return false;
}

bool sim_card_busy(const struct machine *m, uint32_t card)
{
    return any_use(m, card, SIM_NO_INSTANCE, SIM_NO_INSTANCE);
}

bool sim_gi_busy(const struct machine *m, uint32_t card, uint32_t gi)
{
    return any_use(m, card, gi, SIM_NO_INSTANCE);
}

bool sim_ci_busy(const struct machine *m, uint32_t card, uint32_t gi, uint32_t ci)
{
    return any_use(m, card, gi, ci);
}

uint64_t sim_memory_used(const struct sim_proc *procs, uint32_t count, uint32_t card, uint32_t gi)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < procs[i].use_count; j++) {
            const struct sim_use *u = &procs[i].uses[j];
            if (u->card == card && (gi == SIM_NO_INSTANCE || u->gi == gi) &&
                __builtin_add_overflow(sum, u->memory_bytes, &sum))
                return UINT64_MAX; /* somebody lies; no sum of theirs wraps to a small one */
        }
    return sum;
}

uint64_t sim_memory_usable(const struct sim_board *board, const struct sim_card *c, uint32_t gi)
{
    if (gi < SIM_GI_MAX && c->gi[gi].used)
        return (uint64_t)board->profiles[c->gi[gi].profile].memory_mib << 20;
    return (uint64_t)(board->memory_mib - board->reserved_mib) << 20;
}

/* A compute instance's part of its GPU instance, or that one's of the card, in ppm. */
static uint64_t part_ppm(uint32_t slices, uint32_t of)
{
    return of == 0 ? 1000000 : (uint64_t)slices * 1000000 / of;
}

static uint64_t ci_ppm_of_gi(const struct sim_profile *p, const struct sim_gi *g, uint32_t ci)
{
    if (ci >= SIM_CI_MAX || !g->ci[ci].used)
        return 0;
    return part_ppm(g->ci[ci].span.size, p->slices);
}

uint32_t sim_gi_load(const struct sim_board *board, const struct sim_card *c,
                     const struct sim_proc *procs, uint32_t count, uint32_t card, uint32_t gi)
{
    const struct sim_gi *g = &c->gi[gi];
    const struct sim_profile *p = &board->profiles[g->profile];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < procs[i].use_count; j++) {
            const struct sim_use *u = &procs[i].uses[j];
            uint32_t load = u->load_percent > 100 ? 100 : u->load_percent;
            if (u->card == card && u->gi == gi)
                sum += load * ci_ppm_of_gi(p, g, u->ci) / 1000000;
        }
    return sum > 100 ? 100 : (uint32_t)sum;
}

uint32_t sim_card_load(const struct sim_board *board, const struct sim_card *c,
                       const struct sim_proc *procs, uint32_t count, uint32_t card)
{
    uint64_t sum = 0;
    if (!c->mig_current) {
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < procs[i].use_count; j++)
                if (procs[i].uses[j].card == card)
                    sum +=
                        procs[i].uses[j].load_percent > 100 ? 100 : procs[i].uses[j].load_percent;
    }
    for (uint32_t gi = 0; c->mig_current && gi < SIM_GI_MAX; gi++)
        if (c->gi[gi].used)
            sum += sim_gi_load(board, c, procs, count, card, gi) *
                   part_ppm(board->profiles[c->gi[gi].profile].slices, board->slices) / 1000000;
    return sum > 100 ? 100 : (uint32_t)sum;
}
