#include "sim/lib/cuda/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BRANCH_SEVERAL_PARTS 570 /* first driver that gives a process more than one MIG device */
#define ENTRY_MAX 127

struct found {
    size_t count;
    struct visible_device devices[VISIBLE_MAX];
};

static int fastest_first(const void *a, const void *b)
{
    const struct visible_card *x = a;
    const struct visible_card *y = b;
    if (x->speed != y->speed)
        return x->speed > y->speed ? -1 : 1;
    return x->ordinal < y->ordinal ? -1 : 1;
}

static void add(struct found *f, const struct visible_card *c, const struct visible_part *p)
{
    if (f->count < VISIBLE_MAX)
        f->devices[f->count++] = (struct visible_device){
            .ordinal = c->ordinal,
            .gi = p ? p->gi : VISIBLE_CARD,
            .ci = p ? p->ci : VISIBLE_CARD,
        };
}

/* The card itself, or the first MIG device it is cut into; false when there is none. */
static bool add_card(struct found *f, const struct visible_card *c)
{
    if (c->mig && c->part_count == 0)
        return false;
    add(f, c, c->mig ? &c->parts[0] : NULL);
    return true;
}

static bool add_ordinal(struct found *f, const struct visible_world *w, const char *entry)
{
    char *end;
    unsigned long n = strtoul(entry, &end, 10);
    if (!isdigit((unsigned char)entry[0]) || *end || n >= w->card_count)
        return false;
    return add_card(f, &w->cards[n]);
}

static bool add_gpu_uuid(struct found *f, const struct visible_world *w, const char *entry)
{
    const struct visible_card *match = NULL;
    for (uint32_t i = 0; i < w->card_count; i++) {
        if (strncasecmp(w->cards[i].uuid, entry, strlen(entry)) != 0)
            continue;
        if (match)
            return false;
        match = &w->cards[i];
    }
    return match && add_card(f, match);
}

static bool add_mig_uuid(struct found *f, const struct visible_world *w, const char *entry)
{
    const struct visible_card *card = NULL;
    const struct visible_part *match = NULL;
    for (uint32_t i = 0; i < w->card_count; i++) {
        for (uint32_t p = 0; p < w->cards[i].part_count; p++) {
            if (strncasecmp(w->cards[i].parts[p].uuid, entry, strlen(entry)) != 0)
                continue;
            if (match)
                return false;
            card = &w->cards[i];
            match = &card->parts[p];
        }
    }
    if (match)
        add(f, card, match);
    return match != NULL;
}

/* "MIG-GPU-<uuid>/<gi>/<ci>" */
static bool add_old_mig(struct found *f, const struct visible_world *w, const char *entry)
{
    const char *uuid = entry + strlen("MIG-");
    const char *slash = strchr(uuid, '/');
    if (!slash)
        return false;
    char *end;
    unsigned long gi = strtoul(slash + 1, &end, 10);
    if (end == slash + 1 || *end != '/')
        return false;
    const char *ci_text = end + 1;
    unsigned long ci = strtoul(ci_text, &end, 10);
    if (end == ci_text || *end)
        return false;
    size_t len = (size_t)(slash - uuid);
    for (uint32_t i = 0; i < w->card_count; i++) {
        const struct visible_card *c = &w->cards[i];
        if (strlen(c->uuid) != len || strncasecmp(c->uuid, uuid, len) != 0)
            continue;
        for (uint32_t p = 0; p < c->part_count; p++) {
            if (c->parts[p].gi == gi && c->parts[p].ci == ci) {
                add(f, c, &c->parts[p]);
                return true;
            }
        }
    }
    return false;
}

static bool add_entry(struct found *f, const struct visible_world *w, const char *entry)
{
    if (strncasecmp(entry, "MIG-GPU-", 8) == 0)
        return add_old_mig(f, w, entry);
    if (strncasecmp(entry, "MIG-", 4) == 0)
        return add_mig_uuid(f, w, entry);
    if (strncasecmp(entry, "GPU-", 4) == 0)
        return add_gpu_uuid(f, w, entry);
    return add_ordinal(f, w, entry);
}

static bool last_is_double(const struct found *f)
{
    const struct visible_device *last = &f->devices[f->count - 1];
    for (size_t i = 0; i + 1 < f->count; i++)
        if (memcmp(&f->devices[i], last, sizeof *last) == 0)
            return true;
    return false;
}

static void add_list(struct found *f, const struct visible_world *w, const char *list)
{
    while (f->count < VISIBLE_MAX) {
        char entry[ENTRY_MAX + 1];
        list += strspn(list, " \t");
        size_t len = strcspn(list, ",");
        size_t used = len;
        while (used && isspace((unsigned char)list[used - 1]))
            used--;
        if (used == 0 || used > ENTRY_MAX)
            return;
        memcpy(entry, list, used);
        entry[used] = '\0';
        if (!add_entry(f, w, entry))
            return;
        if (last_is_double(f)) {
            f->count = 0;
            return;
        }
        if (list[len] == '\0')
            return;
        list += len + 1;
    }
}

static void add_all(struct found *f, const struct visible_world *w)
{
    for (uint32_t i = 0; i < w->card_count; i++) {
        const struct visible_card *c = &w->cards[i];
        if (!c->mig)
            add(f, c, NULL);
        for (uint32_t p = 0; c->mig && p < c->part_count; p++)
            add(f, c, &c->parts[p]);
    }
}

static bool is_part(const struct visible_device *d)
{
    return d->gi != VISIBLE_CARD;
}

/* Only the first MIG device when there is one, and then no card. */
static void keep_one_part(struct found *f)
{
    for (size_t i = 0; i < f->count; i++) {
        if (is_part(&f->devices[i])) {
            f->devices[0] = f->devices[i];
            f->count = 1;
            return;
        }
    }
}

static void keep_one_of_each_instance(struct found *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->count; i++) {
        const struct visible_device d = f->devices[i];
        bool again = false;
        for (size_t k = 0; k < kept && is_part(&d); k++)
            again |= f->devices[k].ordinal == d.ordinal && f->devices[k].gi == d.gi;
        if (!again)
            f->devices[kept++] = d;
    }
    f->count = kept;
}

size_t visible_devices(struct visible_world *w, const char *list, const char *order,
                       struct visible_device ret[VISIBLE_MAX])
{
    struct found f = { .count = 0 };
    if (!order || strcmp(order, "PCI_BUS_ID") != 0)
        qsort(w->cards, w->card_count, sizeof *w->cards, fastest_first);
    if (list)
        add_list(&f, w, list);
    else
        add_all(&f, w);
    if (w->branch < BRANCH_SEVERAL_PARTS)
        keep_one_part(&f);
    else
        keep_one_of_each_instance(&f);
    memcpy(ret, f.devices, f.count * sizeof *ret);
    return f.count;
}
