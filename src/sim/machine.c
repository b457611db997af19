#include "sim/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/machine_file.h"

#define HANG_LOOK_MS 100U

struct machine {
    char *dir;
    int dir_fd;
    const struct sim_file *file;
};

char *machine_default_dir(void)
{
    const char *dir = getenv("DIVVY_SIM");
    if (dir && *dir)
        return text_dup(dir);
    if (geteuid() == 0)
        return text_dup("/run/divvy-sim");
    dir = getenv("XDG_RUNTIME_DIR");
    if (dir && *dir)
        return text_fmt("%s/divvy-sim", dir);
    return text_fmt("/tmp/divvy-sim-%u", (unsigned int)geteuid());
}

static int check_file(const char *dir, const struct sim_file *f, struct err *e)
{
    if (f->magic != SIM_FILE_MAGIC || f->size != sizeof *f || f->board_count > SIM_BOARDS_MAX ||
        f->card_count > SIM_CARDS_MAX)
        return err_set(e, -EINVAL,
                       "%s/state is not a simulated machine of this version; take it down and up "
                       "again (divvy-sim down, divvy-sim up)",
                       dir);
    return 0;
}

static int map_state(int dir_fd, const char *dir, const struct sim_file **ret_file, struct err *e)
{
    auto_close int fd = openat(dir_fd, "state", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, -ENOENT, "no simulated machine is up in %s; divvy-sim up makes one", dir);
    if (fd < 0)
        return err_sys(e, "cannot open %s/state", dir);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "cannot look at %s/state", dir);
    if (!S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof(struct sim_file))
        return err_set(e, -EINVAL,
                       "%s/state has another size than this version makes; take the machine down "
                       "and up again (divvy-sim down, divvy-sim up)",
                       dir);
    void *map = mmap(NULL, sizeof(struct sim_file), PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_sys(e, "cannot map %s/state", dir);
    int rc = check_file(dir, map, e);
    if (rc < 0)
        (void)munmap(map, sizeof(struct sim_file)); /* cannot fail for a mapping just made */
    else
        *ret_file = map;
    return rc;
}

int machine_open(const char *dir, struct machine **ret_machine, struct err *e)
{
    auto_free char *where = dir ? text_dup(dir) : machine_default_dir();
    auto_free struct machine *m = mem_new(sizeof *m);
    auto_close int fd = open(where, O_DIRECTORY | O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, -ENOENT, "no simulated machine is up in %s; divvy-sim up makes one",
                       where);
    if (fd < 0)
        return err_sys(e, "cannot open %s", where);
    int rc = map_state(fd, where, &m->file, e);
    if (rc < 0)
        return rc;
    m->dir = take_ptr(where);
    m->dir_fd = take_fd(fd);
    *ret_machine = take_ptr(m);
    return 0;
}

void machine_close(struct machine *m)
{
    if (!m)
        return;
    (void)munmap((void *)(uintptr_t)m->file, sizeof *m->file); /* our own mapping */
    (void)close(m->dir_fd);                                    /* O_PATH: nothing to lose */
    free(m->dir);
    free(m);
}

const char *machine_dir(const struct machine *m)
{
    return m->dir;
}

const struct sim_board *machine_boards(const struct machine *m)
{
    return m->file->boards;
}

uint32_t machine_board_count(const struct machine *m)
{
    return m->file->board_count;
}

uint32_t machine_card_count(const struct machine *m)
{
    return m->file->card_count;
}

bool machine_is_ours(const struct machine *m)
{
    return faccessat(m->dir_fd, "state", W_OK, AT_EACCESS) == 0;
}

bool machine_is_gone(const struct machine *m)
{
    return __atomic_load_n(&m->file->gone, __ATOMIC_ACQUIRE) != 0;
}

int64_t machine_up_us(const struct machine *m)
{
    return m->file->up_us;
}

uint64_t machine_version(const struct machine *m)
{
    return __atomic_load_n(&m->file->active, __ATOMIC_ACQUIRE);
}

/*
 * Copies from the active slot until nobody could have written there meanwhile:
 * its slot is written again only after `active` has moved on.
 */
static void read_slot(const struct machine *m, size_t offset, size_t len, void *ret)
{
    uint64_t before, after;
    do {
        before = machine_version(m);
        const char *slot = (const char *)&m->file->slots[before & 1];
        memcpy(ret, slot + offset, len);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = __atomic_load_n(&m->file->active, __ATOMIC_RELAXED);
    } while (before != after);
}

void machine_read(const struct machine *m, struct sim_state *ret_state)
{
    read_slot(m, 0, sizeof *ret_state, ret_state);
}

void machine_card(const struct machine *m, uint32_t ordinal, struct sim_card *ret_card)
{
    read_slot(m, offsetof(struct sim_state, cards) + ordinal * sizeof *ret_card, sizeof *ret_card,
              ret_card);
}

uint32_t machine_branch(const struct machine *m)
{
    char version[sizeof((struct sim_state *)0)->driver_version];
    read_slot(m, offsetof(struct sim_state, driver_version), sizeof version, version);
    return sim_branch_of(version);
}

uint32_t machine_boot(const struct machine *m)
{
    uint32_t boot;
    read_slot(m, offsetof(struct sim_state, boot), sizeof boot, &boot);
    return boot;
}

uint64_t machine_last_event(const struct machine *m)
{
    uint64_t last;
    read_slot(m, offsetof(struct sim_state, last_event), sizeof last, &last);
    return last;
}

void machine_profile_name(const struct machine *m, const char *name, char ret_name[64])
{
    struct sim_rename renames[SIM_RENAMES_MAX];
    uint32_t count;
    read_slot(m, offsetof(struct sim_state, rename_count), sizeof count, &count);
    read_slot(m, offsetof(struct sim_state, renames), sizeof renames, renames);
    sim_profile_name(renames, count, name, ret_name);
}

void machine_library_version(const struct machine *m, char ret_version[40])
{
    read_slot(m, offsetof(struct sim_state, installed.version), 40, ret_version);
}

bool machine_library_fits(const struct machine *m, const char *version)
{
    char loaded[sizeof((struct sim_state *)0)->driver_version];
    read_slot(m, offsetof(struct sim_state, driver_version), sizeof loaded, loaded);
    return strcmp(version, loaded) == 0;
}

void machine_wait(const struct machine *m, uint64_t version, uint32_t timeout_ms)
{
    struct timespec t = { .tv_sec = timeout_ms / 1000, .tv_nsec = (timeout_ms % 1000) * 1000000L };
    if (machine_version(m) != version)
        return;
    /* Woken, timed out or interrupted: the caller looks again either way. */
    (void)syscall(SYS_futex, &m->file->active, FUTEX_WAIT, (uint32_t)version, &t, NULL, 0);
}

static void sleep_ms(uint32_t ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

void machine_gate(const struct machine *m, uint32_t ordinal, struct sim_card *ret_card)
{
    uint64_t version = machine_version(m);
    machine_card(m, ordinal, ret_card);
    if (ret_card->slow_ms > 0)
        sleep_ms(ret_card->slow_ms);
    while ((ret_card->faults & SIM_FAULT_HANG) && !machine_is_gone(m)) {
        machine_wait(m, version, HANG_LOOK_MS);
        version = machine_version(m);
        machine_card(m, ordinal, ret_card);
    }
}

int machine_lock(const struct machine *m, struct err *e)
{
    auto_close int fd = openat(m->dir_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(e, "cannot open %s/lock", m->dir);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot lock %s/lock", m->dir);
    if (machine_is_gone(m))
        return err_set(e, -ESHUTDOWN, "the simulated machine in %s was taken down", m->dir);
    return take_fd(fd);
}

static int map_for_change(struct machine *m, struct sim_file **ret_map, struct err *e)
{
    auto_close int fd = openat(m->dir_fd, "state", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return err_set(e, -EACCES,
                       "only the owner of the simulated machine in %s and root may change it",
                       m->dir);
    if (fd < 0)
        return err_sys(e, "cannot open %s/state to change it", m->dir);
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(struct sim_file))
        return err_set(e, -ESHUTDOWN, "the simulated machine in %s was taken down", m->dir);
    void *map = mmap(NULL, sizeof(struct sim_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_sys(e, "cannot map %s/state to change it", m->dir);
    *ret_map = map;
    return 0;
}

int machine_edit_begin(struct machine *m, struct machine_edit *ret_edit, struct err *e)
{
    auto_close int lock_fd = machine_lock(m, e);
    if (lock_fd < 0)
        return lock_fd;
    auto_free struct sim_state *copy = mem_new(sizeof *copy);
    int rc = map_for_change(m, &ret_edit->map, e);
    if (rc < 0)
        return rc;
    machine_read(m, copy);
    ret_edit->machine = m;
    ret_edit->state = take_ptr(copy);
    ret_edit->lock_fd = take_fd(lock_fd);
    return 0;
}

int machine_edit_commit(struct machine_edit *edit)
{
    struct sim_file *f = edit->map;
    uint64_t next = f->active + 1; /* only the holder of the lock writes it */
    memcpy(&f->slots[next & 1], edit->state, sizeof *edit->state);
    __atomic_store_n(&f->active, next, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &f->active, FUTEX_WAKE, 0x7fffffff, NULL, NULL,
                  0); /* count of woken */
    machine_edit_done(edit);
    return 0;
}

void machine_edit_done(struct machine_edit *edit)
{
    if (!edit->machine)
        return;
    free(edit->state);
    (void)munmap(edit->map, sizeof *edit->map); /* our own mapping */
    (void)close(edit->lock_fd);                 /* which gives the lock back */
    *edit = (struct machine_edit)MACHINE_EDIT_INIT;
}
