#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "sim/machine_file.h"
#include "sim/uuid.h"

#define FIRST_BUS 0x07U
#define BUS_STEP 7U /* 32 cards end at bus 0xE0 */

static int check_plan(const struct machine_plan *p, struct err *e)
{
    if (p->card_count == 0 || p->card_count > SIM_CARDS_MAX)
        return err_set(e, -EINVAL, "a simulated machine has 1 to %d cards, not %u", SIM_CARDS_MAX,
                       p->card_count);
    if (p->board_count == 0 || p->board_count > SIM_BOARDS_MAX)
        return err_set(e, -EINVAL, "a simulated machine has 1 to %d kinds of boards, not %u",
                       SIM_BOARDS_MAX, p->board_count);
    for (uint32_t i = 0; i < p->card_count; i++)
        if (p->cards[i] >= p->board_count)
            return err_set(e, -EINVAL, "card %u has board %u of %u", i, p->cards[i],
                           p->board_count);
    return 0;
}

static void name_card(struct sim_card *c, uint64_t seed, uint32_t ordinal)
{
    char identity[80];
    (void)snprintf(identity, sizeof identity, "divvy-sim card %llu/%u", (unsigned long long)seed,
                   ordinal); /* fits */
    char uuid[UUID_TEXT_SIZE];
    uuid_v5(identity, uuid);
    (void)snprintf(c->uuid, sizeof c->uuid, "GPU-%s", uuid); /* 40 characters */
    uint8_t digest[20];
    sha1(identity, strlen(identity), digest);
    uint64_t number = 0;
    memcpy(&number, digest, 5); /* 40 bits: up to 13 digits */
    (void)snprintf(c->serial, sizeof c->serial, "1%012llu",
                   (unsigned long long)(number % 1000000000000ULL));
}

static void plug_card(struct sim_card *c, const struct machine_plan *p, uint32_t ordinal)
{
    c->board = p->cards[ordinal];
    c->minor = ordinal;
    c->pci_bus = FIRST_BUS + BUS_STEP * ordinal;
    name_card(c, p->seed, ordinal);
}

static void fill(struct sim_file *f, const struct machine_plan *p)
{
    f->magic = SIM_FILE_MAGIC;
    f->size = sizeof *f;
    f->up_us = clock_now().boot_us;
    f->board_count = p->board_count;
    f->card_count = p->card_count;
    memcpy(f->boards, p->boards, p->board_count * sizeof f->boards[0]);
    struct sim_state *st = &f->slots[0];
    (void)snprintf(st->driver_version, sizeof st->driver_version, "%s",
                   p->driver_version ? p->driver_version : "550.163.01"); /* cut is all right */
    st->cuda_version = p->cuda_version ? p->cuda_version : 12040;
    memcpy(st->installed.version, st->driver_version, sizeof st->installed.version);
    st->installed.cuda_version = st->cuda_version;
    st->boot = 1;
    st->card_count = p->card_count;
    for (uint32_t i = 0; i < p->card_count; i++)
        plug_card(&st->cards[i], p, i);
}

/* Sticky and for everybody, whatever the umask. */
static int make_procs(int dir_fd, const char *dir, struct err *e)
{
    if (mkdirat(dir_fd, "procs", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make %s/procs", dir);
    if (fchmodat(dir_fd, "procs", 01777, 0) < 0)
        return err_sys(e, "cannot open %s/procs for everybody", dir);
    return 0;
}

static int take_lock(int dir_fd, const char *dir, struct err *e)
{
    auto_close int fd = openat(dir_fd, "lock", O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_sys(e, "cannot open %s/lock", dir);
    if (fchmod(fd, 0644) < 0)
        return err_sys(e, "cannot open %s/lock for everybody", dir);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot lock %s/lock", dir);
    return take_fd(fd);
}

static int open_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cannot open %s", dir) : fd;
}

int machine_make(const char *dir, const struct machine_plan *plan, struct err *e)
{
    int rc = check_plan(plan, e);
    if (rc == 0)
        rc = file_mkdirs(dir, 0755, e);
    if (rc < 0)
        return rc;
    auto_close int dir_fd = open_dir(dir, e);
    if (dir_fd < 0)
        return dir_fd;
    auto_close int lock_fd = take_lock(dir_fd, dir, e);
    if (lock_fd < 0)
        return lock_fd;
    if (faccessat(dir_fd, "state", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, -EEXIST,
                       "a simulated machine is already up in %s; divvy-sim down takes it down",
                       dir);
    auto_free struct sim_file *f = mem_new(sizeof *f);
    fill(f, plan);
    rc = make_procs(dir_fd, dir, e);
    if (rc == 0)
        rc = file_replace(dir_fd, "state", f, sizeof *f, 0644, e);
    if (rc == 0 && fchmodat(dir_fd, "state", 0644, 0) < 0)
        rc = err_sys(e, "cannot open %s/state for everybody", dir);
    return rc;
}

/* A foreign process may hold an old handle: it must see that this is over. */
static int mark_gone(int dir_fd, const char *dir, struct err *e)
{
    auto_close int fd = openat(dir_fd, "state", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, -ENOENT, "no simulated machine is up in %s", dir);
    if (fd < 0)
        return err_sys(e, "cannot open %s/state", dir);
    uint64_t gone = 1;
    if (pwrite(fd, &gone, sizeof gone, offsetof(struct sim_file, gone)) != sizeof gone)
        return err_sys(e, "cannot write %s/state", dir);
    return 0;
}

int machine_remove(const char *dir, struct err *e)
{
    auto_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 && errno == ENOENT)
        return err_set(e, -ENOENT, "no simulated machine is up in %s", dir);
    if (dir_fd < 0)
        return err_sys(e, "cannot open %s", dir);
    if (faccessat(dir_fd, "state", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return err_set(e, -ENOENT, "no simulated machine is up in %s", dir);
    auto_close int lock_fd = take_lock(dir_fd, dir, e);
    if (lock_fd < 0)
        return lock_fd;
    int rc = mark_gone(dir_fd, dir, e);
    if (rc < 0)
        return rc;
    if (unlinkat(dir_fd, "state", 0) < 0)
        return err_sys(e, "cannot remove %s/state", dir);
    rc = file_remove_tree(dir_fd, "procs", e);
    if (rc == 0 && unlinkat(dir_fd, "lock", 0) < 0 && errno != ENOENT)
        rc = err_sys(e, "cannot remove %s/lock", dir);
    return rc;
}
