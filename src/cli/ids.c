#include "cli/ids.h"

void ids_done(struct ids *l)
{
    free(l->ids);
    *l = (struct ids){ .ids = NULL };
}

void ids_take(struct ids *l, const char *word)
{
    const char *digits = word[0] == '#' ? word + 1 : word;
    uint64_t id = 0;
    if (text_parse_u64(digits, 1, INT64_MAX, "job", &id, NULL) < 0)
        verb_refuse("'%.64s' is no job; jobs have numbers, as 'divvy queue' shows them", word);
    ARRAY_ROOM(l->ids, l->alloc, l->count + 1);
    l->ids[l->count++] = id;
}
