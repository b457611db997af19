#include "daemon/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"

#define TICK_US (200 * 1000)
#define RESTART_US CLOCK_SECOND

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *user);

static int slot_start(struct child_slot *slot, struct err *e)
{
    struct children *c = slot->owner;
    char **argv = NULL;
    strv_add(&argv, c->settings.program);
    for (size_t i = 0; c->settings.options && c->settings.options[i]; i++)
        strv_add(&argv, c->settings.options[i]);
    strv_add(&argv, "--child");
    strv_add(&argv, driver_child_word(slot->kind));
    int r = driver_child_start(argv, slot->kind, NULL, &slot->child, e);
    strv_free(argv);
    if (r < 0)
        return r;
    r = sd_event_add_io(c->event, &slot->io, driver_child_fd(slot->child), EPOLLIN, on_readable,
                        slot);
    if (r < 0) {
        (void)driver_child_abandon(slot->child); /* the loop's failure is the one to tell */
        slot->child = NULL;
        return err_set(e, r, "cannot watch the driver's child: %s", strerror(-r));
    }
    return 0;
}

/* Children are reaped by the kernel (SIGCHLD is ignored), so no pid is kept. */
static void slot_drop(struct child_slot *slot)
{
    slot->io = sd_event_source_disable_unref(slot->io);
    if (slot->child)
        (void)driver_child_abandon(slot->child); /* see above */
    slot->child = NULL;
}

static void watch_begin(struct children *c)
{
    struct err e = ERR_INIT;
    int every_ms = (int)(c->settings.snapshot_every_us / 1000);
    c->refresh_open = c->refresh_again = false;
    if (driver_child_ask_watch(c->watch.child, every_ms, c->silent, c->silent_count, NULL, &e) < 0)
        log_line(LOG_WARN, "the driver's watcher takes no request: %s", e.text);
    children_refresh(c);
}

/* Starts what does not run, at most once a second. */
static void slots_restart(struct children *c)
{
    struct err e = ERR_INIT;
    int64_t now = clock_now().boot_us;
    if (c->paused || now < c->restart_boot_us)
        return;
    if (!c->watch.child) {
        c->restart_boot_us = now + RESTART_US;
        if (slot_start(&c->watch, &e) < 0)
            log_line(LOG_ERROR, "cannot start the driver's watcher: %s", e.text);
        else
            watch_begin(c);
    }
    if (!c->act.child) {
        c->restart_boot_us = now + RESTART_US;
        if (slot_start(&c->act, &e) < 0)
            log_line(LOG_ERROR, "cannot start the driver's hand: %s", e.text);
    }
}

/* The step's child went away with it: whether it happened must be looked up. */
static void step_lost(struct children *c, const char *why)
{
    struct err e = ERR_INIT;
    if (!c->step_open)
        return;
    c->step_open = false;
    c->events->step(c->ctx, err_set(&e, -ETIMEDOUT, "%s", why), NULL, &e);
}

static void release_over(struct children *c)
{
    bool asked = c->release_open;
    c->release_open = false;
    if (asked)
        c->events->released(c->ctx);
}

static void slot_lost(struct child_slot *slot, const char *why)
{
    struct children *c = slot->owner;
    slot_drop(slot);
    if (slot == &c->watch) {
        c->refresh_open = c->refresh_again = false;
        release_over(c); /* who is gone holds nothing */
    }
    if (slot == &c->act) {
        c->events->restored(c->ctx, 0, NULL, NULL);
        step_lost(c, why);
    }
}

static bool same_card(const struct driver_skip *a, const struct driver_skip *b)
{
    if (a->uuid[0] && b->uuid[0])
        return strcmp(a->uuid, b->uuid) == 0;
    if (a->bus_id[0] && b->bus_id[0])
        return strcmp(a->bus_id, b->bus_id) == 0;
    return a->index >= 0 && a->index == b->index;
}

static const struct driver_skip *find(const struct driver_skip *list, size_t count,
                                      const struct driver_skip *card)
{
    for (size_t i = 0; i < count; i++)
        if (same_card(&list[i], card))
            return &list[i];
    return NULL;
}

/*
 * A call for the handle itself may hang, and then only the index of the card
 * is told. It is left out by that, since whatever else needs the handle; who is
 * told about it is told which card that was.
 */
static struct driver_skip identity(const struct children *c, const struct driver_skip *card)
{
    const struct driver_skip *k =
        card->uuid[0] || card->bus_id[0] ? NULL : find(c->known, c->known_count, card);
    return k ? *k : *card;
}

static void card_silenced(struct children *c, const struct driver_skip *card)
{
    if (find(c->silent, c->silent_count, card))
        return;
    struct driver_skip who = identity(c, card);
    ARRAY_ROOM(c->silent, c->silent_alloc, c->silent_count + 1);
    c->silent[c->silent_count++] = *card;
    c->probed_boot_us = clock_now().boot_us;
    c->events->silent(c->ctx, &who, true);
}

static void card_answers(struct children *c, const struct driver_skip *card)
{
    for (size_t i = 0; i < c->silent_count; i++)
        if (same_card(&c->silent[i], card)) {
            struct driver_skip back = identity(c, &c->silent[i]);
            c->silent[i] = c->silent[--c->silent_count];
            c->events->silent(c->ctx, &back, false);
            if (c->watch.child)
                watch_begin(c);
            return;
        }
}

static void remember_cards(struct children *c, const struct snapshot *s)
{
    struct driver_skip *now = mem_new((s->card_count + 1) * sizeof *now);
    for (size_t i = 0; i < s->card_count; i++) {
        struct driver_skip *k = &now[i];
        memcpy(k->uuid, s->cards[i].uuid, sizeof k->uuid);
        memcpy(k->bus_id, s->cards[i].bus_id, sizeof k->bus_id);
        k->index = s->cards[i].index;
        *k = identity(c, k); /* one that was left out by its index tells nothing else */
    }
    free(c->known);
    c->known = now;
    c->known_count = s->card_count;
}

static void snapshot_arrived(struct child_slot *slot, struct driver_reply *r)
{
    struct children *c = slot->owner;
    if (slot == &c->probe) {
        struct driver_skip card = c->probed;
        slot_drop(slot);
        if (r->code == 0)
            card_answers(c, &card);
        return;
    }
    if (r->code < 0) {
        c->events->no_driver(c->ctx, &r->err);
    } else {
        remember_cards(c, &r->snapshot);
        struct snapshot taken = r->snapshot;
        r->snapshot = (struct snapshot)SNAPSHOT_INIT;
        c->events->snapshot(c->ctx, &taken);
    }
    c->refresh_open = false;
    if (c->refresh_again) {
        c->refresh_again = false;
        children_refresh(c);
    }
}

static void reply_arrived(struct child_slot *slot, struct driver_reply *r)
{
    struct children *c = slot->owner;
    switch (r->kind) {
    case DRIVER_REPLY_SNAPSHOT:
        snapshot_arrived(slot, r);
        break;
    case DRIVER_REPLY_STEP:
        if (c->step_open) {
            c->step_open = false;
            c->events->step(c->ctx, r->code, &r->step, &r->err);
        }
        break;
    case DRIVER_REPLY_RESTORED:
        c->events->restored(c->ctx, r->code, &r->restore, &r->err);
        break;
    case DRIVER_REPLY_EVENT:
        c->events->event(c->ctx, &r->event);
        break;
    case DRIVER_REPLY_RELEASED:
        release_over(c);
        break;
    }
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *user)
{
    struct child_slot *slot = user;
    (void)s, (void)fd, (void)revents; /* the slot knows them */
    while (slot->child) {
        struct err e = ERR_INIT;
        struct driver_reply r;
        int n = driver_child_read(slot->child, &r, &e);
        if (n == 0)
            break;
        if (n < 0) {
            log_line(LOG_WARN, "the driver's %s child is gone: %s", driver_child_word(slot->kind),
                     e.text);
            slot_lost(slot, "the process that carried it out ended");
            break;
        }
        reply_arrived(slot, &r);
        driver_reply_done(&r);
    }
    return 0;
}

/* A child whose present call began too long ago is given up, and its card with it. */
static void slot_check(struct child_slot *slot, int64_t limit_us, int64_t now)
{
    int64_t since = 0;
    if (!slot->child)
        return;
    const struct driver_skip *at = driver_child_at(slot->child, &since);
    int64_t busy = driver_child_busy_since(slot->child);
    bool stuck_at_card = at && now - since > limit_us;
    bool stuck = busy && now - busy > 4 * limit_us;
    if (!stuck_at_card && !stuck)
        return;
    struct driver_skip card = at ? *at : (struct driver_skip){ .index = -1 };
    log_line(LOG_ERROR, "a driver call on %s does not come back; the %s process is abandoned",
             at && at->bus_id[0] ? at->bus_id : "a card", driver_child_word(slot->kind));
    slot_lost(slot, "the driver call does not come back");
    if (at && slot != &slot->owner->probe)
        card_silenced(slot->owner, &card);
}

/* Asks one silent card, in a process of its own, whether it is back. */
static void probe_silent(struct children *c, int64_t now)
{
    struct err e = ERR_INIT;
    if (c->paused || !c->silent_count || c->probe.child ||
        now - c->probed_boot_us < c->settings.probe_every_us)
        return;
    c->probed_boot_us = now;
    c->probed = c->silent[0];
    memmove(c->silent, c->silent + 1, (c->silent_count - 1) * sizeof *c->silent);
    c->silent[c->silent_count - 1] = c->probed;
    auto_free struct driver_skip *others = mem_new((c->known_count + 1) * sizeof *others);
    size_t n = 0;
    for (size_t i = 0; i < c->known_count; i++) {
        const struct driver_skip *silent = find(c->silent, c->silent_count, &c->known[i]);
        if (!same_card(&c->known[i], &c->probed))
            others[n++] = silent ? *silent : c->known[i];
    }
    if (slot_start(&c->probe, &e) < 0 ||
        driver_child_ask_snapshot(c->probe.child, others, n, NULL, &e) < 0) {
        log_line(LOG_WARN, "cannot ask a silent card again: %s", e.text);
        slot_drop(&c->probe);
    }
}

static int on_tick(sd_event_source *s, uint64_t usec, void *user)
{
    struct children *c = user;
    int64_t now = clock_now().boot_us;
    (void)usec; /* the boot clock is asked */
    slot_check(&c->watch, c->settings.call_limit_us, now);
    bool is_long = c->step_open && c->step_is_long;
    slot_check(&c->act, is_long ? c->settings.step_limit_us : c->settings.call_limit_us, now);
    slot_check(&c->probe, c->settings.call_limit_us, now);
    slots_restart(c);
    probe_silent(c, now);
    (void)sd_event_source_set_time_relative(s, TICK_US);    /* a valid timer */
    (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT); /* the same */
    return 0;
}

int children_open(struct children *c, sd_event *event, const struct children_settings *settings,
                  const struct children_events *events, void *ctx, struct err *e)
{
    *c = (struct children){ .settings = *settings, .events = events, .ctx = ctx, .event = event };
    c->watch = (struct child_slot){ .owner = c, .kind = DRIVER_CHILD_WATCH };
    c->act = (struct child_slot){ .owner = c, .kind = DRIVER_CHILD_ACT };
    c->probe = (struct child_slot){ .owner = c, .kind = DRIVER_CHILD_WATCH };
    c->paused = settings->paused;
    int r = c->paused ? 0 : slot_start(&c->watch, e);
    if (r == 0 && !c->paused)
        r = slot_start(&c->act, e);
    if (r == 0) {
        r = sd_event_add_time_relative(event, &c->tick, CLOCK_BOOTTIME, TICK_US, 0, on_tick, c);
        if (r < 0)
            (void)err_set(e, r, "cannot make a timer: %s", strerror(-r));
    }
    if (r < 0) {
        children_close(c);
        return r;
    }
    if (!c->paused)
        watch_begin(c);
    return 0;
}

void children_close(struct children *c)
{
    c->tick = sd_event_source_disable_unref(c->tick);
    slot_drop(&c->watch);
    slot_drop(&c->act);
    slot_drop(&c->probe);
    free(c->silent);
    free(c->known);
    c->silent = c->known = NULL;
}

void children_pause(struct children *c)
{
    c->paused = true;
    slot_drop(&c->watch);
    slot_drop(&c->act);
    slot_drop(&c->probe);
    c->refresh_open = c->refresh_again = false;
    release_over(c); /* who is gone holds nothing */
}

void children_resume(struct children *c)
{
    c->paused = false;
    c->restart_boot_us = 0;
    slots_restart(c);
}

void children_refresh(struct children *c)
{
    struct err e = ERR_INIT;
    if (!c->watch.child)
        return;
    if (c->refresh_open) {
        c->refresh_again = true;
        return;
    }
    c->refresh_boot_us = clock_now().boot_us;
    if (driver_child_ask_snapshot(c->watch.child, c->silent, c->silent_count, NULL, &e) < 0)
        log_line(LOG_WARN, "cannot ask for a snapshot: %s", e.text);
    else
        c->refresh_open = true;
}

void children_refresh_since(struct children *c, int64_t since_boot_us)
{
    if (!c->refresh_open || c->refresh_boot_us < since_boot_us)
        children_refresh(c);
}

int children_step(struct children *c, const struct step *s, struct err *e)
{
    if (c->step_open)
        return err_set(e, -EBUSY, "another step is being carried out");
    if (!c->act.child)
        return err_set(e, -EPIPE, "the process that carries out steps is being restarted");
    int r = driver_child_ask_step(c->act.child, s, NULL, e);
    c->step_is_long = s->kind == STEP_MIG_ON || s->kind == STEP_MIG_OFF || s->kind == STEP_RESET;
    if (r == 0)
        c->step_open = true;
    return r;
}

int children_restore(struct children *c, const struct driver_restore *what, struct err *e)
{
    if (!c->act.child)
        return err_set(e, -EPIPE, "the process that carries out steps is being restarted");
    return driver_child_ask_restore(c->act.child, what, NULL, e);
}

void children_release(struct children *c)
{
    struct err e = ERR_INIT;
    c->release_open = true;
    if (c->watch.child && driver_child_ask_release(c->watch.child, NULL, &e) == 0)
        return;
    if (e.code < 0)
        log_line(LOG_WARN, "the watcher does not let go of the driver: %s", e.text);
    release_over(c);
}
