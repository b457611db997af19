/*
 * map.h - from a 64-bit key, or a string, to a pointer.
 *
 * Open addressing, grows by itself; values are borrowed and must not be NULL.
 * String keys are borrowed too and must live as long as their entry.
 *
 *     AUTO(map) struct map m = MAP_INIT;
 *     map_put(&m, job->id, job);
 *     struct job *j = map_get(&m, 41);
 */
#ifndef DIVVY_BASE_MAP_H
#define DIVVY_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_entry {
    uint64_t key;
    const char *name; /* NULL for number keys */
    void *value;      /* NULL: free */
};

struct map {
    struct map_entry *entries;
    size_t count;
    size_t alloc; /* 0 or a power of two */
};

#define MAP_INIT                                                                                   \
    {                                                                                              \
        .entries = NULL, .count = 0, .alloc = 0                                                    \
    }

void map_done(struct map *m);
void *map_get(const struct map *m, uint64_t key);
void map_put(struct map *m, uint64_t key, void *value); /* replaces */
void *map_remove(struct map *m, uint64_t key);          /* the value that was there, or NULL */

/* The same by name. One map holds either numbers or names. */
void *map_get_name(const struct map *m, const char *name);
void map_put_name(struct map *m, const char *name, void *value);
void *map_remove_name(struct map *m, const char *name);

/* Walk: for (size_t i = 0; (v = map_next(m, &i)); ). The map must not change. */
void *map_next(const struct map *m, size_t *i);

#endif
