/* Maintenance that is planned. */
#include "daemon/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define META "maintenance windows"

struct window {
    uint64_t id;
    int64_t from_wall_us, until_wall_us;
    char *who, *reason; /* owned; reason: NULL, none was told */
    char **cards;       /* UUIDs, owned */
    int64_t from_boot_us, until_boot_us;
};

struct windows {
    uint64_t last_id;
    struct window list[WINDOWS_MAX]; /* by when they begin */
    size_t count;
    bool begun; /* one began or ended since the queue was told */
    int64_t told_wall_us;
};

static void window_done(struct window *w)
{
    free(w->who);
    free(w->reason);
    strv_free(w->cards);
}

/* ---- the store ---- */

static json_t *window_to_json(const struct window *w)
{
    json_t *j = json_object();
    json_put_u64(j, "id", w->id);
    json_put(j, "from_wall_us", json_integer(w->from_wall_us));
    json_put(j, "until_wall_us", json_integer(w->until_wall_us));
    json_put_text(j, "who", w->who);
    json_put_text(j, "reason", w->reason);
    return j;
}

static int save(struct daemon *d, struct err *e)
{
    const struct windows *all = d->windows;
    auto_json json_t *j = json_object();
    json_t *list = json_array();
    json_put_u64(j, "last_id", all->last_id);
    json_put(j, "windows", list);
    for (size_t i = 0; i < all->count; i++) {
        json_t *one = window_to_json(&all->list[i]);
        json_put(one, "cards", json_strv(all->list[i].cards));
        (void)json_array_append_new(list, one); /* 64 at most */
    }
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    d->schedule = true;
    return text ? store_set_meta(d->store, META, text, e) : err_set(e, -ENOMEM, "no memory");
}

static void insert(struct windows *all, const struct window *w)
{
    size_t at = all->count++;
    for (; at > 0 && all->list[at - 1].from_wall_us > w->from_wall_us; at--)
        all->list[at] = all->list[at - 1];
    all->list[at] = *w;
}

static int read_window(json_t *j, struct windows *all, struct err *e)
{
    struct fields f;
    struct window w = { .id = 0 };
    fields_open(&f, j, "the store's maintenance windows", e);
    w.id = fields_u64(&f, "id", FIELD_REQUIRED, 1, INT64_MAX, 0);
    w.from_wall_us = (int64_t)fields_u64(&f, "from_wall_us", FIELD_REQUIRED, 0, INT64_MAX, 0);
    w.until_wall_us = (int64_t)fields_u64(&f, "until_wall_us", FIELD_REQUIRED, 0, INT64_MAX, 0);
    const char *who = fields_text(&f, "who", FIELD_REQUIRED, 256);
    const char *reason = fields_text(&f, "reason", FIELD_OPTIONAL, MAINTENANCE_REASON_MAX);
    w.cards = fields_strv(&f, "cards", FIELD_REQUIRED, 1024, 1024 * CARD_UUID_SIZE);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r < 0) {
        strv_free(w.cards);
        return r;
    }
    w.who = text_dup(who);
    w.reason = reason ? text_dup(reason) : NULL;
    insert(all, &w);
    return 0;
}

static int read_saved(const char *text, struct windows *all, struct err *e)
{
    struct fields f;
    auto_json json_t *j = NULL;
    int r = json_parse(text, strlen(text), "the store's maintenance windows", &j, e);
    if (r < 0)
        return r;
    fields_open(&f, j, "the store's maintenance windows", e);
    all->last_id = fields_u64(&f, "last_id", FIELD_REQUIRED, 0, INT64_MAX, 0);
    json_t *list = fields_array(&f, "windows", FIELD_REQUIRED, WINDOWS_MAX);
    r = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = read_window(json_array_get(list, i), all, e);
    return r;
}

int windows_load(struct daemon *d, struct err *e)
{
    auto_free char *text = NULL;
    d->windows = mem_new(sizeof *d->windows);
    int r = store_meta(d->store, META, &text, e);
    return r == 0 && text ? read_saved(text, d->windows, e) : r;
}

void windows_done(struct daemon *d)
{
    for (size_t i = 0; d->windows && i < d->windows->count; i++)
        window_done(&d->windows->list[i]);
    free(d->windows);
    d->windows = NULL;
}

/* ---- as time goes on ---- */

static void drop(struct windows *all, size_t at)
{
    window_done(&all->list[at]);
    all->count--;
    memmove(&all->list[at], &all->list[at + 1], (all->count - at) * sizeof *all->list);
}

static void sooner(int64_t at_us, int64_t after_us, int64_t *next_us)
{
    if (at_us > after_us && at_us < *next_us)
        *next_us = at_us;
}

int64_t windows_next_us(const struct daemon *d)
{
    int64_t next = INT64_MAX;
    const struct windows *all = d->windows;
    for (size_t i = 0; i < all->count; i++) {
        sooner(all->list[i].from_wall_us, all->told_wall_us, &next);
        sooner(all->list[i].until_wall_us, 0, &next);
    }
    return next;
}

void windows_clock(struct daemon *d)
{
    struct err e = ERR_INIT;
    struct windows *all = d->windows;
    int64_t now_us = clock_now().wall_us;
    bool over = false;
    if (now_us < windows_next_us(d) || !turn_write(d))
        return;
    for (size_t i = all->count; i-- > 0;)
        if (all->list[i].until_wall_us <= now_us) {
            log_line(LOG_NOTE, "maintenance window %" PRIu64 " is over", all->list[i].id);
            drop(all, i);
            over = true;
        }
    all->told_wall_us = now_us;
    d->schedule = true;
    if (over && save(d, &e) < 0)
        log_line(LOG_ERROR, "the store's maintenance windows: %s", e.text);
}

static int64_t boot_of(int64_t wall_us, struct now now)
{
    return now.boot_us + (wall_us - now.wall_us);
}

/* Both clocks are read one after the other: what is the same but for that stays the same. */
static void settle(int64_t *boot_us, int64_t at_us)
{
    int64_t off = *boot_us - at_us;
    if (off > CLOCK_SECOND || off < -CLOCK_SECOND)
        *boot_us = at_us;
}

void windows_close(struct daemon *d, struct now now)
{
    struct sched_closed *list = NULL;
    size_t count = 0, alloc = 0;
    for (size_t i = 0; i < d->windows->count; i++) {
        struct window *w = &d->windows->list[i];
        settle(&w->from_boot_us, boot_of(w->from_wall_us, now));
        settle(&w->until_boot_us, boot_of(w->until_wall_us, now));
        for (size_t k = 0; w->cards && w->cards[k]; k++) {
            const struct inventory_card *c = inventory_uuid(&d->inventory, w->cards[k]);
            if (!c)
                continue;
            ARRAY_ROOM(list, alloc, count + 1);
            list[count++] = (struct sched_closed){ .ordinal = c->card.ordinal,
                                                   .from_us = w->from_boot_us,
                                                   .until_us = w->until_boot_us };
        }
    }
    sched_set_closed(d->sched, list, count);
    free(list);
}

/* ---- plan and cancel ---- */

static bool is_named(const struct maintenance_order *o, uint32_t ordinal)
{
    bool named = !o->count;
    for (size_t i = 0; i < o->count; i++)
        named = named || o->gpus[i] == ordinal;
    return named;
}

static int name_cards(const struct daemon *d, const struct maintenance_order *o, char ***ret,
                      struct err *e)
{
    size_t n = 0;
    char **cards = NULL;
    for (size_t i = 0; i < d->card_count; i++)
        if (is_named(o, d->cards[i]->row.ordinal)) {
            strv_add(&cards, d->cards[i]->row.uuid);
            n++;
        }
    if (!n || (o->count && n != o->count)) {
        strv_free(cards);
        return err_set(e, -ENOENT, "there is no such card here; divvy gpus shows what there is");
    }
    *ret = cards;
    return 0;
}

int windows_plan(struct daemon *d, const char *who, const struct maintenance_order *o,
                 struct err *e)
{
    struct windows *all = d->windows;
    struct window w = { .from_wall_us = o->from_wall_us, .until_wall_us = o->until_wall_us };
    if (w.until_wall_us <= clock_now().wall_us)
        return err_set(e, -EINVAL, "maintenance that is over by now cannot be planned");
    if (all->count == WINDOWS_MAX)
        return err_set(e, -ENOSPC,
                       "%u windows are planned, which is the most; cancel one with divvy "
                       "maintenance cancel ID",
                       WINDOWS_MAX);
    int r = name_cards(d, o, &w.cards, e);
    if (r < 0)
        return r;
    w.id = ++all->last_id;
    w.who = text_dup(who);
    w.reason = o->reason[0] ? text_dup(o->reason) : NULL;
    insert(all, &w);
    all->told_wall_us = clock_now().wall_us;
    return save(d, e);
}

int windows_cancel(struct daemon *d, uint64_t id, struct err *e)
{
    struct windows *all = d->windows;
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].id == id) {
            drop(all, i);
            return save(d, e);
        }
    return err_set(e, -ENOENT,
                   "no maintenance window %" PRIu64 " is planned; divvy maintenance lists them",
                   id);
}

/* ---- what is told ---- */

/* "gpu0: #12 alice train", of who may still be there when it begins. */
static void add_stayer(json_t *list, const struct inventory_card *c, const struct hold *h,
                       int64_t from_boot_us)
{
    bool stays = h->kind == HOLD_JOB && (!h->until_boot_us || h->until_boot_us > from_boot_us);
    if (!stays)
        return;
    auto_free char *words = text_fmt("gpu%u: #%" PRIu64 " %s %s%s", c->card.ordinal, h->job_id,
                                     h->user, h->name, h->until_boot_us ? "" : ", no time limit");
    (void)json_array_append_new(list, json_string(words)); /* a short list */
}

static bool has_card(const struct window *w, const char *uuid)
{
    for (size_t i = 0; w->cards && w->cards[i]; i++)
        if (strcmp(w->cards[i], uuid) == 0)
            return true;
    return false;
}

static void put_cards(const struct daemon *d, const struct window *w, struct now now, json_t *j)
{
    json_t *gpus = json_array(), *stayers = json_array();
    json_put(j, "gpus", gpus);
    json_put(j, "holders", stayers);
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        const struct inventory_card *c = &d->inventory.cards[i];
        int64_t from_us = boot_of(w->from_wall_us, now);
        if (!has_card(w, c->card.uuid))
            continue;
        (void)json_array_append_new(gpus, json_integer(c->card.ordinal)); /* a short list */
        add_stayer(stayers, c, &c->hold, from_us);
        for (size_t k = 0; k < c->card.slice_count; k++)
            add_stayer(stayers, c, &c->slices[k].hold, from_us);
    }
}

void windows_show(struct daemon *d)
{
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        struct inventory_card *c = &d->inventory.cards[i];
        c->planned_count = 0;
        for (size_t k = 0; k < d->windows->count && c->planned_count < CARD_WINDOWS_MAX; k++) {
            const struct window *w = &d->windows->list[k];
            if (has_card(w, c->card.uuid))
                c->planned[c->planned_count++] =
                    (struct card_window){ w->from_wall_us, w->until_wall_us };
        }
    }
}

json_t *windows_to_json(const struct daemon *d)
{
    struct now now = clock_now();
    json_t *list = json_array();
    for (size_t i = 0; i < d->windows->count; i++) {
        const struct window *w = &d->windows->list[i];
        json_t *j = window_to_json(w);
        json_put_bool(j, "begun", w->from_wall_us <= now.wall_us);
        put_cards(d, w, now, j);
        (void)json_array_append_new(list, j); /* 64 at most */
    }
    return list;
}
