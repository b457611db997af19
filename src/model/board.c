#include "model/board.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

const struct profile *board_profile_by_id(const struct board *b, uint32_t id)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].id == id)
            return &b->profiles[i];
    return NULL;
}

bool profile_name_matches(const char *name, const char *asked)
{
    if (strncasecmp(asked, "MIG ", 4) == 0)
        asked += 4;
    return strcasecmp(name, asked) == 0;
}

const struct profile *board_profile_by_name(const struct board *b, const char *name)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (profile_name_matches(b->profiles[i].name, name))
            return &b->profiles[i];
    return NULL;
}

const struct ci_profile *profile_full_ci(const struct profile *p)
{
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->cis[i].slices == p->slices)
            return &p->cis[i];
    return NULL;
}

const struct ci_profile *profile_ci_by_id(const struct profile *p, uint32_t id)
{
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->cis[i].id == id)
            return &p->cis[i];
    return NULL;
}

bool profile_starts_at(const struct profile *p, uint32_t start)
{
    for (uint32_t i = 0; i < p->start_count; i++)
        if (p->starts[i] == start)
            return true;
    return false;
}

const char *board_short_name(const struct board *b)
{
    return text_starts(b->name, "NVIDIA ") ? b->name + strlen("NVIDIA ") : b->name;
}

char *board_profiles_sentence(const struct board *b)
{
    struct text t = TEXT_INIT;
    text_add(&t, b->name[0] ? board_short_name(b) : "A card that does not answer");
    if (!b->name[0])
        text_add(&t, " does not tell its profiles");
    else if (!b->profile_count)
        text_add(&t, b->activation == MIG_NONE ? " cannot be cut (no MIG)"
                                               : " does not tell its profiles while MIG is off");
    for (uint32_t i = 0; i < b->profile_count; i++)
        text_addf(&t, "%s%s", i ? ", " : " has ", b->profiles[i].name);
    return text_take(&t);
}

static uint32_t part_ppm(uint32_t part, uint32_t whole)
{
    if (!whole || part >= whole)
        return 1000000;
    return (uint32_t)((uint64_t)part * 1000000 / whole);
}

uint32_t profile_compute_ppm(const struct board *b, const struct profile *p)
{
    return part_ppm(p->slices, b->slices);
}

uint32_t profile_mem_ppm(const struct board *b, const struct profile *p)
{
    return part_ppm(p->units, b->units);
}
