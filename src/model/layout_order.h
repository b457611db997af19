/*
 * layout_order.h - a change of layouts that somebody asks of divvyd, and what
 * became of it.
 *
 * An order is one of three: a layout file's text (with the file's name for
 * messages, and the label where it has several layouts), one slice to be made,
 * or one to be destroyed. It is what POST /v1/layout carries and what the
 * store keeps until the order is over.
 *
 *     AUTO(layout_order) struct layout_order o = LAYOUT_ORDER_INIT;
 *     r = layout_order_from_json(body, &o, e);
 */
#ifndef DIVVY_MODEL_LAYOUT_ORDER_H
#define DIVVY_MODEL_LAYOUT_ORDER_H

#include "model/fields.h"

#define LAYOUT_TEXT_MAX (512u * 1024u)

struct layout_order {
    char *text;     /* of a layout file; NULL with make or unmake */
    char *file;     /* its name; NULL: "the layout" */
    char *label;    /* NULL: it has one layout */
    char *make;     /* "gpu0/2g.20gb@4", or without a place */
    char *unmake;   /* the address of a slice */
    bool wait;      /* for who is in the way; new jobs stay away meanwhile */
    bool agreed;    /* idle slices may be destroyed, MIG modes may be turned */
    bool move_idle; /* idle slices may be made again elsewhere */
};

#define LAYOUT_ORDER_INIT                                                                          \
    {                                                                                              \
        .text = NULL                                                                               \
    }

void layout_order_done(struct layout_order *o);
/* New reference. */
json_t *layout_order_to_json(const struct layout_order *o);
/* Strictly. -EINVAL: not exactly one of text, make and unmake, or too long. */
int layout_order_from_json(json_t *j, struct layout_order *ret, struct err *e);

/* How an order ended. */
enum layout_outcome {
    LAYOUT_OPEN = 0, /* it has not */
    LAYOUT_DONE,
    LAYOUT_PARTLY,   /* some cards; others were in use */
    LAYOUT_IN_USE,   /* nothing was changed: in use */
    LAYOUT_NO_RESET, /* a card needs a reset that it did not get */
    LAYOUT_REFUSED,  /* not agreed to, unreachable, or never possible: the cards say which */
    LAYOUT_FAILED,   /* a step failed and all was undone, or not: `reason` */
    LAYOUT_STOPPED,  /* somebody called it off */
    LAYOUT_REBOOT,   /* no reset works on a card: the rest follows by itself after a reboot */
};

/* "open", "done", "partly", "in use", "no reset", "refused", "failed", "stopped", "needs reboot". */
const char *layout_outcome_word(enum layout_outcome o);
/* -EINVAL for what is none of these. */
int layout_outcome_parse(const char *word, enum layout_outcome *ret, struct err *e);

#endif
