/*
 * driver.h - the one door to the NVIDIA driver.
 *
 * Nothing else in Divvy calls NVML. The library is opened at run time
 * (libnvidia-ml.so.1), every function is looked up by its exact suffixed name,
 * and what an older or newer driver lacks is got around by the presence of
 * symbols and by older structure tags, never by a version string. Geometry,
 * names and placements are asked of the driver; nothing is computed from names.
 *
 * Calls may hang for ever when the hardware does. divvyd therefore makes them
 * in child processes (driver/child.h) and never itself; a command without a
 * daemon calls them directly. `at` tells, before the first call on each card,
 * which card the following calls belong to.
 *
 *     AUTO_PTR(driver_close) struct driver *d = NULL;
 *     if (driver_open(NULL, &d, e) < 0)
 *         return ...;
 *     AUTO(snapshot) struct snapshot s = SNAPSHOT_INIT;
 *     driver_snapshot(d, NULL, 0, &s, e);
 *
 * Invariants: a card that is lost, hidden or skipped never hides another one.
 * driver_step carries out exactly one step and reads back what came of it.
 * No handle of a slice is kept over a call. A struct driver belongs to one
 * thread, but for driver_wait_event, which may run in another.
 */
#ifndef DIVVY_DRIVER_DRIVER_H
#define DIVVY_DRIVER_DRIVER_H

#include "base/cleanup.h"
#include "model/step.h"

struct driver;

/*
 * Geometry of a board where the driver does not tell it (before R550 while MIG
 * is off): fill `ret` and return true. `name` is what NVML calls the card,
 * `pci_device_id` is device << 16 | vendor. Only the profiles and the number
 * of units and slices are taken from it.
 */
typedef bool (*driver_board_fn)(const char *name, uint32_t pci_device_id, struct board *ret,
                                void *arg);

/*
 * Called before the calls on each card: its bus id ("index:3" before that is
 * known), and NULL after the last one. For whoever must know which card a call
 * that never returns belongs to. Must not call into the driver.
 */
typedef void (*driver_at_fn)(const char *card, void *arg);

struct driver_options {
    const char *nvml;        /* path of the library; NULL: DIVVY_NVML, else "libnvidia-ml.so.1" */
    const char *driver_root; /* where /proc and /sys stand; NULL: DIVVY_DRIVER_ROOT, else "/" */
    /*
     * Command that resets a card, NULL-terminated; "{uuid}" and "{bus}" in an
     * argument are replaced. NULL: the words of DIVVY_RESET_COMMAND, else
     * nvidia-smi --gpu-reset -i {uuid}. NVML is let go while it runs.
     */
    char *const *reset_argv;
    bool no_activity; /* what slices do is not asked: it takes a card's profiling counters */
    driver_board_fn board;
    void *board_arg;
    driver_at_fn at;
    void *at_arg;
};

/* A card to leave alone: one name that is set and agrees is enough. */
struct driver_skip {
    char uuid[CARD_UUID_SIZE];     /* "": not known */
    char bus_id[CARD_BUS_ID_SIZE]; /* "": not known */
    int64_t index;                 /* NVML's; looked at only where both others are "" */
};

/*
 * Opens the library and starts NVML. Blocks. `options` may be NULL; its
 * strings are copied, functions and arguments borrowed until driver_close.
 *   -ENOENT      no library ("no NVIDIA driver here: libnvidia-ml.so.1 was not found; …")
 *   -ELIBBAD     a library that is not NVML, or a stub: the text names what it lacks
 *   -ENODEV      the kernel module is not loaded
 *   -EPROTO      library and kernel module are of different versions
 *   -EACCES      the caller may not open the driver's devices
 *   -EIO         anything else, with NVML's own words
 */
int driver_open(const struct driver_options *options, struct driver **ret, struct err *e);

/*
 * Lets go of NVML and unloads the library, so that nothing here holds a card,
 * and keeps what is known of boards. The next call that needs it opens it again.
 */
void driver_release(struct driver *d);

/* As driver_release, and frees `d`. NULL is fine. */
void driver_close(struct driver *d);
DEFINE_AUTO_PTR(struct driver, driver_close);

/*
 * Everything about every card, sorted and numbered in PCI order. Geometry is
 * asked once per card and MIG mode and kept; the rest is asked each time. What
 * one card does not tell is absent from it; a skipped card is CARD_UNRESPONSIVE
 * with the identity that the skip (or an earlier snapshot) knows.
 * Fails only when no card can be counted. The caller ends `ret`.
 */
int driver_snapshot(struct driver *d, const struct driver_skip *skip, size_t skip_count,
                    struct snapshot *ret, struct err *e);

/*
 * Carries out one step. On success `ret_done` is the step with gi, ci and uuid
 * filled in (it may be `s` itself). The result is read back: what claims to be
 * done and is not is -EIO. A create that came out wrong is destroyed again.
 * Finding things as the step wants them already is an error (-EEXIST for a
 * create, -ENOENT for a destroy): somebody else was there, or the card was started
 * anew.
 *   -EBUSY   in use: by processes, or (GI destroy) by a compute instance. A
 *            mode change waits about a second for others to let go first.
 *   -ENOSPC  no room for it
 *   -EACCES  this needs root, or access to the mig/config capability
 *   -ENODEV  the card is lost, or not there
 *   -ENOENT  CI_CREATE: there is no GPU instance to make it in
 *   -ESTALE  another GPU instance is at that place by now
 *   -ENXIO   an instance is to be made, and MIG is off
 *   -ENOTSUP the card cannot do that (no MIG, unknown profile). RESET: no reset
 *            works here, as in a virtual machine; a reboot does what it would do
 *   -EAGAIN  MIG_ON, MIG_OFF: stored, and needs a STEP_RESET to become current.
 *            `ret_done` is filled. Others: the driver wants a reset first.
 *   -EIO     the driver claims what is not so, or answers something unknown:
 *            look again before going on
 * Except after -EIO and a mode's -EAGAIN, failure means that nothing changed.
 */
int driver_step(struct driver *d, const struct step *s, struct step *ret_done, struct err *e);

/* Settings of a card as they shall be again. */
struct driver_restore {
    char uuid[CARD_UUID_SIZE];
    unsigned int known; /* which of `settings` count: KNOW_COMPUTE_MODE, KNOW_APP_CLOCKS */
    struct card_settings settings;
    bool unlock; /* lift locked clocks, too: nobody can be asked whether there are any */
};

/*
 * Sets what differs, and reads it back. -EACCES: this needs root. -ENOTSUP,
 * -ENODEV, -EIO as driver_step; some of it may have been done then.
 */
int driver_restore(struct driver *d, const struct driver_restore *what, struct err *e);

struct driver_event {
    char uuid[CARD_UUID_SIZE]; /* "" where it could not be told */
    char bus_id[CARD_BUS_ID_SIZE];
    uint64_t xid;    /* an XID error; 0: the MIG configuration changed */
    uint32_t gi, ci; /* NOT_AN_INSTANCE: the whole card */
};

/*
 * Waits for an XID error or a change of the MIG configuration: 1 and `ret`
 * filled, or 0 after `timeout_ms`. -ENOTSUP when no card here has events. The
 * first call, and the first after a failure, subscribes to all cards that are
 * not skipped by `skip`.
 */
int driver_wait_event(struct driver *d, const struct driver_skip *skip, size_t skip_count,
                      int timeout_ms, struct driver_event *ret, struct err *e);

#endif
