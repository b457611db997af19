/*
 * children.h - the two children that hold the driver, kept alive and watched.
 *
 * `watch` takes snapshots and tells events; `act` carries out one step at a
 * time. A third, `probe`, lives for one question: does a card that stopped
 * answering answer again? The loop never waits for any of them. When a call
 * on a card takes longer than the configured limit, the child is abandoned,
 * the card is `unresponsive` and left out of every later snapshot until a
 * probe gets through to it; the other cards go on.
 *
 *     children_open(&c, event, &settings, &events, ctx, e);
 *     children_step(&c, step, e);      // answer: events.step
 *     children_refresh(&c);            // answer: events.snapshot
 */
#ifndef DIVVY_DAEMON_CHILDREN_H
#define DIVVY_DAEMON_CHILDREN_H

#include <systemd/sd-event.h>

#include "driver/child.h"

struct children_settings {
    const char *program;       /* path of divvyd */
    char *const *options;      /* its options for a child (--nvml …); NULL-terminated */
    int64_t call_limit_us;     /* a driver call past this marks its card unresponsive */
    int64_t step_limit_us;     /* the same for a step that resets a card, which takes long */
    int64_t snapshot_every_us; /* without being asked */
    bool paused;               /* nothing is started before children_resume */
    int64_t probe_every_us;    /* how often a silent card is tried again */
};

/* What the children report; called from the loop. */
struct children_events {
    /* All cards. Taken over by the callee (snapshot_done). */
    void (*snapshot)(void *ctx, struct snapshot *take);
    /* No snapshot could be taken at all: no driver, wrong versions. */
    void (*no_driver)(void *ctx, const struct err *why);
    /* The step that was asked: code as driver_step. -ETIMEDOUT: it never came back. */
    void (*step)(void *ctx, int code, const struct step *done, const struct err *why);
    /* A card's settings were set back, or could not be; `what` NULL: nobody knows, ask again. */
    void (*restored)(void *ctx, int code, const struct driver_restore *what, const struct err *why);
    void (*event)(void *ctx, const struct driver_event *ev);
    /* `watch` has let go of NVML and stays away from it until the next snapshot is asked. */
    void (*released)(void *ctx);
    /* A card stopped answering (or answers again). `card` names it by whatever is known. */
    void (*silent)(void *ctx, const struct driver_skip *card, bool silent);
};

struct child_slot {
    struct children *owner;
    enum driver_child_kind kind;
    struct driver_child *child; /* NULL: not running */
    sd_event_source *io;
    bool told_no_driver;
};

struct children {
    struct children_settings settings;
    const struct children_events *events;
    void *ctx;
    sd_event *event;
    sd_event_source *tick;
    struct child_slot watch, act, probe;
    struct driver_skip *silent; /* cards left out */
    size_t silent_count, silent_alloc;
    struct driver_skip probed; /* what `probe` is asking about */
    struct driver_skip *known; /* every card of the last snapshot, for the probe's skip list */
    size_t known_count;
    int64_t probed_boot_us;  /* last try */
    bool paused;             /* none runs, and none is started */
    bool step_open;          /* a step was sent and nothing came back yet */
    bool step_is_long;       /* it changes a mode, or resets: step_limit_us holds for it */
    bool release_open;       /* `watch` was asked to let go and did not say so yet */
    bool refresh_open;       /* a snapshot was asked and did not come yet */
    int64_t refresh_boot_us; /* when */
    bool refresh_again;      /* asked once more meanwhile */
    int64_t
        restart_boot_us; /* not before this: a child that dies at once is not restarted in a loop */
};

/* Starts both children. Strings and arrays of `settings` are borrowed until children_close. */
int children_open(struct children *c, sd_event *event, const struct children_settings *settings,
                  const struct children_events *events, void *ctx, struct err *e);
void children_close(struct children *c);

/* Asks for a snapshot that is taken after this call. Calls in between are one. */
void children_refresh(struct children *c);
/* The same, unless one is on its way that was asked for at `since_boot_us` or later. */
void children_refresh_since(struct children *c, int64_t since_boot_us);

/* Hands a step to `act`. -EBUSY while one is open; -EPIPE when there is no child now. */
int children_step(struct children *c, const struct step *s, struct err *e);

/* Asks `act` to set a card's settings back. Answer: events.restored. -EPIPE, -EAGAIN: not now. */
int children_restore(struct children *c, const struct driver_restore *what, struct err *e);

/* Ends all children: nothing here holds a card or the library until children_resume. */
void children_pause(struct children *c);
void children_resume(struct children *c);

/*
 * Asks `watch` to let go of NVML until the next snapshot is asked: before a
 * reset or a mode change. Answer: events.released, at once when no watcher runs.
 */
void children_release(struct children *c);

#endif
