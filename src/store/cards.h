/*
 * cards.h - what Divvy itself knows about cards and slices: ordinals, pools,
 * modes, quarantines, and the generation of every slice.
 *
 * A card is its UUID. Its ordinal is given when it is first seen and is never
 * given to another, even when the card is gone for good.
 *
 * A slice is (card UUID, GI, CI) and a generation from one counter that never
 * goes back: MIG UUIDs are the same again after a re-cut, generations are not.
 * A slice that ends keeps its row (with the time) until it is pruned.
 */
#ifndef DIVVY_STORE_CARDS_H
#define DIVVY_STORE_CARDS_H

#include "model/inventory.h"
#include "store/store.h"

struct card_row {
    char uuid[CARD_UUID_SIZE];
    uint32_t ordinal;
    char bus_id[CARD_BUS_ID_SIZE]; /* where it was last seen */
    char name[BOARD_NAME_SIZE];
    enum card_pool pool;
    enum card_mode mode;
    char quarantine[160]; /* why it takes nothing; "": it is not quarantined */
    /* What was set on it when nobody had it: between two owners it becomes so again. */
    struct card_settings settings;
    unsigned int settings_known; /* KNOW_COMPUTE_MODE, KNOW_APP_CLOCKS */
    int64_t first_seen_wall_us, last_seen_wall_us;
    bool no_turn; /* since this boot no reset works on it: its MIG mode changes with the next one */
    /* The slices it is to have, JSON; "": whatever jobs need. Only for the callback; else NULL. */
    const char *layout;
};

struct slice_row {
    uint64_t generation;
    char card_uuid[CARD_UUID_SIZE];
    uint32_t gi, ci; /* ci NOT_AN_INSTANCE: a GPU instance without any */
    uint32_t profile_id;
    char profile[PROFILE_NAME_SIZE];
    uint32_t start, units;
    uint32_t ci_profile_id, ci_start, ci_slices;
    char uuid[CARD_UUID_SIZE]; /* the MIG UUID; "": none */
    bool adopted;              /* found, not made by Divvy: never destroyed unless named */
    uint64_t job_id;           /* made for this one; 0: for a layout, or adopted */
    int64_t made_wall_us;      /* when it was made, or first seen */
};

typedef int (*store_card_fn)(const struct card_row *row, void *arg);
typedef int (*store_slice_fn)(const struct slice_row *row, void *arg);

/*
 * A card is there: remembers where and when. One never seen gets the lowest
 * ordinal that was never given, and `pool` and `mode`; call in PCI order, so
 * that ordinals follow it. `ret` (may be NULL) gets the row as it is then.
 * To be called when the set of cards changes, not for every snapshot.
 */
int store_see_card(struct store *s, const struct card *card, enum card_pool pool,
                   enum card_mode mode, struct now now, struct card_row *ret, struct err *e);

/* -ENOENT for a card that was never seen. `why` "" ends the quarantine. */
int store_set_card_pool(struct store *s, const char *uuid, enum card_pool pool, struct err *e);
int store_set_card_mode(struct store *s, const char *uuid, enum card_mode mode, struct err *e);
int store_set_card_layout(struct store *s, const char *uuid, const char *layout, struct err *e);
int store_set_card_quarantine(struct store *s, const char *uuid, const char *why, struct err *e);

/* No reset works on it; forgotten after a reboot of the machine. -ENOENT. */
int store_set_card_no_turn(struct store *s, const char *uuid, struct err *e);

int store_set_card_settings(struct store *s, const char *uuid, const struct card_settings *settings,
                            unsigned int known, struct err *e);

/* All cards ever seen, by ordinal. */
int store_each_card(struct store *s, store_card_fn fn, void *arg, struct err *e);

/* -EEXIST when one with the same card, GI and CI is still alive. row->generation is ignored. */
int store_add_slice(struct store *s, const struct slice_row *row, struct now now,
                    uint64_t *ret_generation, struct err *e);
/* It was destroyed, or is found gone. -ENOENT: it is not alive. */
int store_end_slice(struct store *s, uint64_t generation, struct now now, struct err *e);
/* Living ones, by card ordinal and start. */
int store_each_slice(struct store *s, store_slice_fn fn, void *arg, struct err *e);

#endif
