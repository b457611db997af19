/* Who has the cards, for one that waits. */
#include "daemon/daemon.h"

#include <inttypes.h>

#include "model/address.h"

/* "until 16:40: ", of a job. */
static void add_until(struct text *t, const struct hold *h, struct now now)
{
    if (!h->until_boot_us)
        text_add(t, "without a time limit");
    else if (h->until_boot_us <= now.boot_us)
        text_add(t, "until any moment now");
    else {
        text_add(t, "until ");
        waits_add_moment(t, now.wall_us + (h->until_boot_us - now.boot_us), now.wall_us);
    }
    text_add(t, ": ");
}

static void add_age(struct text *t, const struct hold *h, struct now now)
{
    if (!h->since_boot_us || h->since_boot_us > now.boot_us)
        return;
    text_add(t, ", ");
    text_add_duration(t, now.boot_us - h->since_boot_us);
}

/* A stranger's hold has the number of its user; NULL: not known. */
static const char *holder_user(struct daemon *d, const struct hold *h)
{
    uint64_t uid = 0;
    if (h->kind == HOLD_JOB)
        return h->user;
    return text_parse_u64(h->user, 0, UINT32_MAX - 1, "uid", &uid, NULL) == 0
               ? user_name(d, (uid_t)uid)
               : NULL;
}

static void add_holder(struct daemon *d, struct text *t, const struct hold *h, struct now now)
{
    const char *user = holder_user(d, h);
    if (t->len)
        text_add(t, "; ");
    if (h->kind == HOLD_JOB) {
        add_until(t, h, now);
        text_addf(t, "#%" PRIu64 " of %s (%s)", h->job_id, user, h->name);
    } else {
        text_addf(t, "no Divvy job: %s%s%s", h->name[0] ? h->name : "a process", user ? " of " : "",
                  user ? user : "");
    }
    add_age(t, h, now);
    if (h->pid)
        text_addf(t, ", pid %d", (int)h->pid);
}

/* All of them there: a task's first process, then whatever the driver lists of it. */
static json_t *pids_of(const struct daemon *d, const struct inventory_card *c, const struct hold *h,
                       const struct slice *s)
{
    const struct card_memory *m = cards_find(d, c->card.uuid);
    json_t *list = json_array();
    if (h->pid)
        (void)json_array_append_new(list, json_integer(h->pid)); /* a short list */
    for (size_t i = 0; m && m->owners && i < m->last.process_count; i++) {
        const struct gpu_process *p = &m->last.processes[i];
        bool there = !s || (p->gi == s->gi && p->ci == s->ci);
        if (there && m->owners[i] == h->job_id && p->pid != h->pid)
            (void)json_array_append_new(list, json_integer(p->pid));
    }
    return list;
}

static json_t *moment(int64_t boot_us, struct now now)
{
    return boot_us ? json_integer(now.wall_us + (boot_us - now.boot_us)) : json_null();
}

/* `s` NULL: the whole card. */
static void list_holder(struct daemon *d, const struct inventory_card *c, const struct hold *h,
                        const struct slice *s, struct now now, struct why_view *v)
{
    AUTO(text) struct text where = TEXT_INIT;
    json_t *j = json_object();
    if (s)
        address_add(&where, &c->card, s);
    else
        text_addf(&where, "gpu%u", c->card.ordinal);
    json_put_text(j, "where", where.buf);
    json_put(j, "job", h->kind == HOLD_JOB ? json_integer((json_int_t)h->job_id) : json_null());
    json_put_text(j, "user", holder_user(d, h));
    json_put_text(j, "name", h->name);
    json_put(j, "since_wall_us", moment(h->since_boot_us, now));
    json_put(j, "until_wall_us", moment(h->until_boot_us, now));
    json_put(j, "pids", pids_of(d, c, h, s));
    if (!v->holders)
        v->holders = json_array();
    (void)json_array_append_new(v->holders, j); /* a short list */
}

static void tell_holder(struct daemon *d, const struct inventory_card *c, const struct hold *h,
                        const struct slice *s, struct text *t, struct now now, struct why_view *v)
{
    if (h->kind == HOLD_NONE)
        return;
    add_holder(d, t, h, now);
    list_holder(d, c, h, s, now, v);
}

static void why_card(struct daemon *d, const struct inventory_card *c, struct now now,
                     struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    auto_free char *name = text_fmt("gpu%u", c->card.ordinal);
    if (c->card.health != CARD_OK)
        text_addf(&t, "%s: %s", card_health_word(c->card.health), c->card.trouble);
    if (c->quarantined)
        text_addf(&t, "%stakes no jobs: %s", t.len ? "; " : "", c->quarantine);
    if (c->reserved[0])
        text_addf(&t, "%sreserved: %s", t.len ? "; " : "", c->reserved);
    if (c->pool != POOL_QUEUE)
        text_addf(&t, "%sin pool %s", t.len ? "; " : "", card_pool_word(c->pool));
    tell_holder(d, c, &c->hold, NULL, &t, now, v);
    for (size_t i = 0; i < c->card.slice_count; i++)
        tell_holder(d, c, &c->slices[i].hold, &c->card.slices[i], &t, now, v);
    if (c->card.mig_now != c->card.mig_pending && !c->no_turn)
        text_addf(&t, "%stakes no jobs before a reset that turns MIG %s", t.len ? "; " : "",
                  c->card.mig_pending ? "on" : "off");
    if (c->no_turn)
        text_addf(&t, "%sits MIG mode stays %s until this machine is rebooted", t.len ? "; " : "",
                  c->card.mig_now ? "on" : "off");
    why_view_add(v, name, "%s", t.len ? t.buf : "free");
}

void why_cards(struct daemon *d, struct now now, struct why_view *v)
{
    for (size_t i = 0; i < d->inventory.card_count; i++)
        why_card(d, &d->inventory.cards[i], now, v);
}
