/*
 * queue_draw.h - jobs as a table, and one job in full. Pure.
 */
#ifndef DIVVY_CLI_QUEUE_DRAW_H
#define DIVVY_CLI_QUEUE_DRAW_H

#include "cli/screen.h"
#include "model/view.h"

/* Running jobs first, then those that wait, then those that have ended; sorts `jobs`. */
void queue_draw(struct job_view *jobs, size_t count, int64_t now_wall_us, const struct screen *s,
                struct text *ret);

void job_draw(const struct job_view *v, int64_t now_wall_us, const struct screen *s,
              struct text *ret);

/* "exit 3", "killed by signal 9 (Killed)", "time limit" …; "" while it has not ended. */
void job_add_end(struct text *t, const struct job_view *v);

#endif
