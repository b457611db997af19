/*
 * ledger.h - what was handed out, to whom, and whether it was used.
 *
 * The unit is card·µs: a whole card for a microsecond is 1, a slice counts
 * with its dominant share (model/charge.h). What was held is booked by local
 * day, so that a month is the sum of its days; a piece that spans midnight is
 * cut there.
 *
 *   asked  share × time limit of the attempt (what it held, where it named none)
 *   held   share × time from its place to its end
 *   seen   the part of `held` in which divvyd looked at the processes there
 *   idle   the part of `seen` in which there was none
 *   measured  the part of `seen` for which the card told how busy it was there
 *   busy   of `measured`, each moment weighted with that: an hour at 30 % is 0.3
 *
 * What was not seen is not known: idle/seen is the idle part, and no number
 * at all where seen is 0; the same for busy/measured.
 *
 *     AUTO(ledger) struct ledger l = LEDGER_INIT;
 *     ledger_book(&l, "alice", &(struct held){ .parts = 1, .held = 3.6e9 });
 */
#ifndef DIVVY_MODEL_LEDGER_H
#define DIVVY_MODEL_LEDGER_H

#include "base/map.h"
#include "model/fields.h"

/* Sums; card·µs but for `parts`. */
struct held {
    uint64_t parts; /* slices and whole cards handed out; counted on the day of their end */
    double asked, held;
    double compute, mem; /* the two shares that `held` is the larger of */
    double seen, idle;
    double measured, busy;
};

void held_add(struct held *to, const struct held *more);

/* {"parts", "asked_card_hours", "held_card_hours", …}; null where nothing was seen or measured. */
json_t *held_to_json(const struct held *h);

enum ledger_by { LEDGER_BY_USER = 0, LEDGER_BY_ACCOUNT, LEDGER_BY_PROFILE, LEDGER_BY_CARD };
/* "user", "account", "profile", "card". */
const char *ledger_by_word(enum ledger_by by);
int ledger_by_parse(const char *word, enum ledger_by *ret, struct err *e);

struct ledger_line {
    char *key; /* owned: a user, an account, "2g.20gb" or "whole", "gpu0" */
    struct held sum;
};

struct ledger {
    enum ledger_by by;
    int32_t from_day, to_day; /* days as in day_of; `to` is not in it */
    struct ledger_line **lines;
    size_t count, alloc;
    struct map by_key;
};

#define LEDGER_INIT                                                                                \
    {                                                                                              \
        .lines = NULL                                                                              \
    }

void ledger_done(struct ledger *l);
/* Adds to the line of `key`, which is made where it is missing. */
void ledger_book(struct ledger *l, const char *key, const struct held *h);
/* Most held first, then by key. */
void ledger_sort(struct ledger *l);

/* {"by", "from", "to", "lines": […]}: a line is held_to_json with its "key". */
json_t *ledger_to_json(const struct ledger *l);
/* `ret` is ledger_done's. -EINVAL. */
int ledger_from_json(json_t *j, struct ledger *ret, struct err *e);

/* ---- days ---- */

/*
 * A local day as the number 20261130. day_begin gives its first moment (µs
 * since 1970 UTC), day_next the day after it. Read TZ through localtime.
 */
int32_t day_of(int64_t wall_us);
int64_t day_begin(int32_t day);
int32_t day_next(int32_t day);
/* "2026-11-30", exactly. -EINVAL names `what`. */
int day_parse(const char *text, const char *what, int32_t *ret, struct err *e);
/* "2026-10": its first day, and the first of the month after it. */
int month_parse(const char *text, int32_t *ret_from, int32_t *ret_to, struct err *e);
void day_text(int32_t day, char ret[11]);

#endif
