#include "model/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const pool_words[] = { "off", "queue", "slurm", "kubernetes" };
static const char *const mode_words[] = { "whole", "slices", "auto" };

const char *card_pool_word(enum card_pool p)
{
    return pool_words[p];
}

const char *card_mode_word(enum card_mode m)
{
    return mode_words[m];
}

int card_pool_parse(const char *word, enum card_pool *ret, struct err *e)
{
    for (size_t i = 0; i < 4; i++)
        if (strcmp(word, pool_words[i]) == 0) {
            *ret = (enum card_pool)i;
            return 0;
        }
    return err_set(e, -EINVAL, "'%.32s' is no pool; it is off, queue, slurm or kubernetes", word);
}

int card_mode_parse(const char *word, enum card_mode *ret, struct err *e)
{
    for (size_t i = 0; i < 3; i++)
        if (strcmp(word, mode_words[i]) == 0) {
            *ret = (enum card_mode)i;
            return 0;
        }
    return err_set(e, -EINVAL, "'%.32s' is no mode; it is whole, slices or auto", word);
}

void inventory_done(struct inventory *inv)
{
    for (size_t i = 0; i < inv->card_count; i++) {
        card_done(&inv->cards[i].card);
        free(inv->cards[i].slices);
    }
    free(inv->cards);
    if (inv->bulk)
        bulk_done(inv->bulk);
    free(inv->bulk);
    memset(inv, 0, sizeof *inv);
}

static void hold_unknown(struct hold *h, const struct gpu_process *p)
{
    h->kind = HOLD_UNKNOWN;
    h->pid = p->pid;
    memcpy(h->name, p->name, sizeof p->name);
}

/* Marks what the processes that the driver lists are on: the card where no slice is known. */
static void hold_by_processes(struct inventory_card *c)
{
    for (size_t i = 0; i < c->card.process_count; i++) {
        const struct gpu_process *p = &c->card.processes[i];
        const struct slice *s = card_slice(&c->card, p->gi, p->ci);
        if (s && p->gi != NOT_AN_INSTANCE)
            hold_unknown(&c->slices[s - c->card.slices].hold, p);
        else
            hold_unknown(&c->hold, p);
    }
}

void inventory_from_snapshot(const struct snapshot *s, struct inventory *ret)
{
    *ret = (struct inventory){ .now = s->taken, .card_count = s->card_count };
    memcpy(ret->driver_version, s->driver_version, sizeof ret->driver_version);
    ret->cards = mem_new(s->card_count * sizeof *ret->cards);
    for (size_t i = 0; i < s->card_count; i++) {
        struct inventory_card *c = &ret->cards[i];
        card_copy(&s->cards[i], &c->card);
        c->mode = c->card.mig_now ? MODE_SLICES : MODE_WHOLE;
        c->slices = mem_new(c->card.slice_count * sizeof *c->slices);
        hold_by_processes(c);
    }
}

struct inventory_card *inventory_card(const struct inventory *inv, uint32_t ordinal)
{
    for (size_t i = 0; i < inv->card_count; i++)
        if (inv->cards[i].card.ordinal == ordinal)
            return &inv->cards[i];
    return NULL;
}

struct inventory_card *inventory_uuid(const struct inventory *inv, const char *uuid)
{
    for (size_t i = 0; i < inv->card_count; i++)
        if (uuid[0] && strcmp(inv->cards[i].card.uuid, uuid) == 0)
            return &inv->cards[i];
    return NULL;
}

bool inventory_card_free(const struct inventory_card *c)
{
    if (c->hold.kind != HOLD_NONE)
        return false;
    for (size_t i = 0; i < c->card.slice_count; i++)
        if (c->slices[i].hold.kind != HOLD_NONE)
            return false;
    return true;
}
