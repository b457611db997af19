/*
 * promises.h - what was said of starts, and how it came.
 *
 * Invariant. A job has at most one expected start that was said and not yet
 * kept; the sums are those of model/promise.h.
 */
#ifndef DIVVY_STORE_PROMISES_H
#define DIVVY_STORE_PROMISES_H

#include "model/promise.h"
#include "store/store.h"

/* The first start that was announced for a job; 0 takes it back. -ENOENT. */
int store_set_expected(struct store *s, uint64_t id, int64_t wall_us, struct err *e);
/* A job began so much later than was said; below 0: earlier. */
int store_add_promise(struct store *s, int64_t off_us, struct err *e);
int store_read_promises(struct store *s, struct promises *ret, struct err *e);

#endif
