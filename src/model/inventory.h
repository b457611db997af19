/*
 * inventory.h - the cards as Divvy manages them: what the driver shows, who
 * may hand a card out, and who holds what.
 *
 * The daemon makes one from a snapshot and the store; without a daemon it is
 * made from a snapshot alone, and then owners are unknown. It is what `divvy
 * gpus` draws and what plan/ and sched/ decide on.
 */
#ifndef DIVVY_MODEL_INVENTORY_H
#define DIVVY_MODEL_INVENTORY_H

#include "model/bulk.h"
#include "model/card.h"
#include "model/job.h"

enum card_pool { POOL_OFF = 0, POOL_QUEUE, POOL_SLURM, POOL_KUBERNETES };
enum card_mode { MODE_WHOLE = 0, MODE_SLICES, MODE_AUTO };

const char *card_pool_word(enum card_pool p);
int card_pool_parse(const char *word, enum card_pool *ret, struct err *e);
const char *card_mode_word(enum card_mode m);
int card_mode_parse(const char *word, enum card_mode *ret, struct err *e);

enum hold_kind {
    HOLD_NONE = 0,
    HOLD_JOB,     /* an attempt of ours has it, or is about to */
    HOLD_FOREIGN, /* a process that no job owns is on it */
    HOLD_UNKNOWN, /* no daemon to say whose it is, and a process is on it */
};

/* Who has a card or a slice. */
struct hold {
    enum hold_kind kind;
    uint64_t job_id;
    uint32_t attempt, task;
    char user[33];
    char name[JOB_NAME_MAX + 1];
    int64_t since_boot_us; /* HOLD_FOREIGN: when it was started; 0: not known */
    int64_t until_boot_us; /* its time limit; 0: no limit */
    pid_t pid; /* HOLD_JOB: its task's first process, 0: none yet. Else one that is there */
};

struct inventory_slice {
    uint64_t generation; /* ours; 0: no store */
    bool adopted; /* found, not made by Divvy: used when idle, never destroyed unless named */
    bool leaving; /* it is to be destroyed: nobody new gets it */
    struct hold hold;
};

/* Maintenance that is planned: from when to when an administrator has the card. */
struct card_window {
    int64_t from_wall_us, until_wall_us;
};

#define CARD_WINDOWS_MAX 4u

struct inventory_card {
    struct card card;
    enum card_pool pool;
    enum card_mode mode;
    bool owners_known; /* false without a daemon */
    bool quarantined;  /* takes nothing; `quarantine` says why */
    char quarantine[160];
    bool laid_out;      /* its slices are an administrator's: jobs use them, and cut nothing */
    bool no_turn;       /* its MIG mode changes with a reboot alone; till then it serves as it is */
    bool no_cuts;       /* for a while nothing is cut: a new layout waits for it */
    char reserved[160]; /* why it takes nobody new for a while (maintenance, a new layout); "" */
    struct card_window planned[CARD_WINDOWS_MAX]; /* the next ones; for people, not for plan/ */
    uint32_t planned_count;
    int64_t idle_since_boot_us;     /* when its last holder left; 0: in use, or not known */
    struct hold hold;               /* of the whole card */
    struct inventory_slice *slices; /* card.slice_count of them, same order */
};

struct inventory {
    struct now now;
    char driver_version[32];
    bool from_daemon;
    struct inventory_card *cards;
    size_t card_count;
    struct bulk *bulk; /* cards that are only counted (model/bulk.h); owned; NULL: none */
};

void inventory_done(struct inventory *inv);
/* From a snapshot alone: pool off, owners unknown; processes become HOLD_UNKNOWN. */
void inventory_from_snapshot(const struct snapshot *s, struct inventory *ret);
struct inventory_card *inventory_card(const struct inventory *inv, uint32_t ordinal);
struct inventory_card *inventory_uuid(const struct inventory *inv, const char *uuid);
/* True while nobody holds the card or any slice of it. */
bool inventory_card_free(const struct inventory_card *c);

#endif
