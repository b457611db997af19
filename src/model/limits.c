#include "model/limits.h"

bool limits_any(const struct limits *l)
{
    return l->compute_ppm != LIMIT_NONE || l->mem_ppm != LIMIT_NONE || l->cards != LIMIT_NONE ||
           l->running != LIMIT_NONE || l->pending != LIMIT_NONE || l->submits != LIMIT_NONE ||
           l->time_us > 0 || l->slice_count > 0;
}
