/* Who has the cards, for one that waits. */
#include "daemon/daemon.h"

#include <inttypes.h>

static void add_until(struct text *t, const struct hold *h, struct now now)
{
    if (!h->until_boot_us) {
        text_add(t, ", without a time limit");
        return;
    }
    text_add(t, ", for ");
    text_add_duration(t, h->until_boot_us > now.boot_us ? h->until_boot_us - now.boot_us : 0);
    text_add(t, " more at most");
}

static void add_hold(struct text *t, const struct hold *h, struct now now)
{
    if (h->kind == HOLD_NONE)
        return;
    if (t->len)
        text_add(t, "; ");
    if (h->kind != HOLD_JOB) {
        text_addf(t, "pid %d %s%s%s%s is on it and is no Divvy job", (int)h->pid, h->name,
                  h->user[0] ? " (" : "", h->user, h->user[0] ? ")" : "");
        return;
    }
    text_addf(t, "#%" PRIu64 " (%s, %s)", h->job_id, h->user, h->name);
    if (h->since_boot_us && h->since_boot_us <= now.boot_us) {
        text_add(t, " has had it for ");
        text_add_duration(t, now.boot_us - h->since_boot_us);
    }
    add_until(t, h, now);
}

static void why_card(const struct inventory_card *c, struct now now, struct why_view *v)
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
    add_hold(&t, &c->hold, now);
    for (size_t i = 0; i < c->card.slice_count; i++)
        add_hold(&t, &c->slices[i].hold, now);
    if (c->no_turn)
        text_addf(&t, "%sits MIG mode stays %s until this machine is rebooted", t.len ? "; " : "",
                  c->card.mig_now ? "on" : "off");
    why_view_add(v, name, "%s", t.len ? t.buf : "free");
}

void why_cards(const struct daemon *d, struct now now, struct why_view *v)
{
    for (size_t i = 0; i < d->inventory.card_count; i++)
        why_card(&d->inventory.cards[i], now, v);
}
