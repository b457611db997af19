#include "model/card.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void card_done(struct card *c)
{
    free(c->slices);
    free(c->processes);
    memset(c, 0, sizeof *c);
}

void card_copy(const struct card *c, struct card *ret)
{
    *ret = *c;
    ret->slices = mem_dup(c->slices, c->slice_count * sizeof *c->slices);
    ret->slice_alloc = c->slice_count;
    ret->processes = mem_dup(c->processes, c->process_count * sizeof *c->processes);
    ret->process_alloc = c->process_count;
}

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a;
    const struct slice *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->gi != y->gi)
        return x->gi < y->gi ? -1 : 1;
    return x->ci < y->ci ? -1 : x->ci > y->ci;
}

void card_sort_slices(struct card *c)
{
    if (c->slice_count > 1)
        qsort(c->slices, c->slice_count, sizeof *c->slices, by_place);
}

void snapshot_done(struct snapshot *s)
{
    for (size_t i = 0; i < s->card_count; i++)
        card_done(&s->cards[i]);
    free(s->cards);
    *s = (struct snapshot)SNAPSHOT_INIT;
}

void snapshot_copy(const struct snapshot *s, struct snapshot *ret)
{
    *ret = *s;
    ret->cards = mem_new(s->card_count * sizeof *s->cards);
    ret->card_alloc = s->card_count;
    for (size_t i = 0; i < s->card_count; i++)
        card_copy(&s->cards[i], &ret->cards[i]);
}

struct card *snapshot_card(const struct snapshot *s, const char *uuid)
{
    for (size_t i = 0; i < s->card_count; i++)
        if (uuid[0] && strcmp(s->cards[i].uuid, uuid) == 0)
            return &s->cards[i];
    return NULL;
}

struct card *snapshot_ordinal(const struct snapshot *s, uint32_t ordinal)
{
    for (size_t i = 0; i < s->card_count; i++)
        if (s->cards[i].ordinal == ordinal)
            return &s->cards[i];
    return NULL;
}

struct slice *card_slice(const struct card *c, uint32_t gi, uint32_t ci)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].gi == gi && c->slices[i].ci == ci)
            return &c->slices[i];
    return NULL;
}

struct card *snapshot_add_card(struct snapshot *s)
{
    ARRAY_ROOM(s->cards, s->card_alloc, s->card_count + 1);
    struct card *c = &s->cards[s->card_count++];
    memset(c, 0, sizeof *c);
    c->minor = UINT32_MAX;
    c->numa_node = -1;
    return c;
}

struct slice *card_add_slice(struct card *c)
{
    ARRAY_ROOM(c->slices, c->slice_alloc, c->slice_count + 1);
    struct slice *s = &c->slices[c->slice_count++];
    memset(s, 0, sizeof *s);
    s->ci = NOT_AN_INSTANCE;
    return s;
}

struct gpu_process *card_add_process(struct card *c)
{
    ARRAY_ROOM(c->processes, c->process_alloc, c->process_count + 1);
    struct gpu_process *p = &c->processes[c->process_count++];
    memset(p, 0, sizeof *p);
    p->gi = p->ci = NOT_AN_INSTANCE;
    p->uid = (uid_t)-1;
    return p;
}

static int by_bus_id(const void *a, const void *b)
{
    return strcmp(((const struct card *)a)->bus_id, ((const struct card *)b)->bus_id);
}

void snapshot_number(struct snapshot *s)
{
    if (s->card_count > 1)
        qsort(s->cards, s->card_count, sizeof *s->cards, by_bus_id);
    for (size_t i = 0; i < s->card_count; i++)
        s->cards[i].ordinal = (uint32_t)i;
}

const char *card_health_word(enum card_health h)
{
    static const char *const words[] = {
        [CARD_OK] = "ok",
        [CARD_LOST] = "lost",
        [CARD_UNRESPONSIVE] = "unresponsive",
        [CARD_RESET_REQUIRED] = "reset required",
        [CARD_HIDDEN] = "hidden",
    };
    return words[h];
}

const struct card_peer *card_peer(const struct card *c, const char *bus_id)
{
    for (uint32_t i = 0; i < c->peer_count; i++)
        if (strcmp(c->peers[i].bus_id, bus_id) == 0)
            return &c->peers[i];
    return NULL;
}
