#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* splitmix64's finisher: job ids are dense, so the bits must be spread. */
static uint64_t spread(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* FNV-1a, 64 bit. */
static uint64_t name_key(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

void map_done(struct map *m)
{
    free(m->entries);
    *m = (struct map)MAP_INIT;
}

/* The slot of the key, or the free slot where it would go. The table is never full. */
static size_t find(const struct map *m, uint64_t key, const char *name)
{
    size_t mask = m->alloc - 1;
    size_t i = (size_t)spread(key) & mask;
    while (m->entries[i].value &&
           !(m->entries[i].key == key && text_same(m->entries[i].name, name)))
        i = (i + 1) & mask;
    return i;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->alloc = old.alloc ? old.alloc * 2 : 16;
    m->entries = mem_new(m->alloc * sizeof *m->entries);
    for (size_t i = 0; i < old.alloc; i++)
        if (old.entries[i].value)
            m->entries[find(m, old.entries[i].key, old.entries[i].name)] = old.entries[i];
    free(old.entries);
}

static void put(struct map *m, uint64_t key, const char *name, void *value)
{
    if ((m->count + 1) * 4 > m->alloc * 3)
        grow(m);
    size_t i = find(m, key, name);
    if (!m->entries[i].value)
        m->count++;
    m->entries[i] = (struct map_entry){ .key = key, .name = name, .value = value };
}

/* Closes the gap so that probing still reaches what lay behind it. */
static void close_gap(struct map *m, size_t gap)
{
    size_t mask = m->alloc - 1;
    for (size_t i = (gap + 1) & mask; m->entries[i].value; i = (i + 1) & mask) {
        size_t home = (size_t)spread(m->entries[i].key) & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        m->entries[gap] = m->entries[i];
        gap = i;
    }
    m->entries[gap] = (struct map_entry){ .value = NULL };
}

static void *take(struct map *m, uint64_t key, const char *name)
{
    if (!m->count)
        return NULL;
    size_t i = find(m, key, name);
    void *value = m->entries[i].value;
    if (!value)
        return NULL;
    m->count--;
    close_gap(m, i);
    return value;
}

void *map_get(const struct map *m, uint64_t key)
{
    return m->count ? m->entries[find(m, key, NULL)].value : NULL;
}

void map_put(struct map *m, uint64_t key, void *value)
{
    put(m, key, NULL, value);
}

void *map_remove(struct map *m, uint64_t key)
{
    return take(m, key, NULL);
}

void *map_get_name(const struct map *m, const char *name)
{
    return m->count ? m->entries[find(m, name_key(name), name)].value : NULL;
}

void map_put_name(struct map *m, const char *name, void *value)
{
    put(m, name_key(name), name, value);
}

void *map_remove_name(struct map *m, const char *name)
{
    return take(m, name_key(name), name);
}

void *map_next(const struct map *m, size_t *i)
{
    while (*i < m->alloc) {
        void *value = m->entries[(*i)++].value;
        if (value)
            return value;
    }
    return NULL;
}
