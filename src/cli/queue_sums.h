/*
 * queue_sums.h - the queue added up by account or by user. Pure.
 */
#ifndef DIVVY_CLI_QUEUE_SUMS_H
#define DIVVY_CLI_QUEUE_SUMS_H

#include "cli/screen.h"
#include "model/view.h"

struct queue_sum {
    const char *key;                  /* borrowed from the jobs */
    uint32_t running, waiting, ended; /* running: all that hold something */
    uint64_t compute_ppm, mem_ppm;    /* of one card, held now */
    int64_t next_start_wall_us;       /* the earliest that is expected; 0: none is known */
};

/* By name; the list is the caller's. */
struct queue_sum *queue_sums(const struct job_view *jobs, size_t count, bool by_user,
                             size_t *ret_count);
void queue_sums_draw(const struct queue_sum *sums, size_t count, bool by_user, int64_t now_wall_us,
                     const struct screen *s, struct text *ret);
/* New reference: {"by": "account", "lines": [...]}. */
json_t *queue_sums_json(const struct queue_sum *sums, size_t count, bool by_user);

#endif
