/*
 * request.h - what a job asks for, and what that comes to on a board.
 *
 * Three kinds: N whole cards for one task; N slices of a profile for N tasks;
 * or a need (memory, and a fraction of a card's compute), again for N tasks,
 * which is met by the smallest thing that is enough. Time limits are not part
 * of a request: requests that are equal here have the same shape, and a
 * scheduling cycle asks for each shape once.
 */
#ifndef DIVVY_MODEL_REQUEST_H
#define DIVVY_MODEL_REQUEST_H

#include "base/text.h"
#include "model/board.h"

#define REQUEST_TASKS_MAX 128
#define PPM 1000000u

enum request_kind {
    REQUEST_NOTHING = 0, /* no GPU: CUDA_VISIBLE_DEVICES is empty */
    REQUEST_CARDS,       /* --gpus N */
    REQUEST_SLICES,      /* --slice PROFILE[:N] */
    REQUEST_NEED,        /* --gpu-mem SIZE [--gpu-compute FRACTION] */
};

struct request {
    enum request_kind kind;
    uint32_t count; /* cards of one task, or tasks with one slice each; 1 to REQUEST_TASKS_MAX */
    char profile[PROFILE_NAME_SIZE]; /* REQUEST_SLICES, else "" */
    uint64_t mem_bytes;              /* REQUEST_NEED; 0: no matter */
    uint32_t compute_ppm;            /* REQUEST_NEED; 0: no matter */
    bool or_7g;                      /* a card's full slice is as good as a whole card */
    bool spread;                     /* tasks on different cards */
    bool exact;                      /* a size slightly above a profile's memory does not take it */
};

/* A profile (or the whole card, profile NULL) that is enough for one task. */
struct fit {
    const struct profile *profile;
    uint32_t dominant_ppm; /* the larger of its memory and compute part */
    bool rounded;          /* taken although up to REQUEST_SLACK_PERCENT short of the size asked */
};

/* "10G" takes 1g.10gb with its 9.5 GiB: a size this far above still counts as that profile. */
#define REQUEST_SLACK_PERCENT 6

/* -EINVAL with a sentence: fields contradict each other or are out of range. */
int request_check(const struct request *r, struct err *e);

/* Parses "PROFILE[:N]" into kind, profile and count. -EINVAL, -ERANGE. */
int request_parse_slice(const char *s, struct request *r, struct err *e);
/* Parses a fraction "0.25", "25%" or "1/4" into ppm, above 0 and at most 1. */
int request_parse_fraction(const char *s, const char *what, uint32_t *ret_ppm, struct err *e);

/*
 * All ways in which one task of `r` can be met on a card of this board, best
 * first: by dominant share, then by compute, then by profile id, which puts a
 * plain profile before its +me, +gfx and -me forms on every board. With
 * REQUEST_NEED the whole card is the last resort. Returns the number written
 * to `ret`, at most BOARD_PROFILES_MAX + 1; 0: this board cannot serve it.
 */
size_t request_fits(const struct request *r, const struct board *b,
                    struct fit ret[BOARD_PROFILES_MAX + 1]);

/* "2g.20gb", "3 x 1g.10gb", "2 whole cards", "18.0 GiB", "no GPU". */
void request_add(struct text *t, const struct request *r);

bool request_same(const struct request *a, const struct request *b);
uint64_t request_hash(const struct request *r);

/* "one task" of the request needs a process each; whole cards are one task with all of them. */
uint32_t request_tasks(const struct request *r);

#endif
