/*
 * layout.h - what the words of `divvy layout` share: a file, the cards, and
 * what the file would change on them.
 */
#ifndef DIVVY_CLI_LAYOUT_H
#define DIVVY_CLI_LAYOUT_H

#include "apply/reboot.h"
#include "cli/verb.h"
#include "config/layout.h"
#include "driver/holders.h"
#include "plan/layout.h"

/* Exit statuses beside those of verb.h; layout(5) and divvy(1) list them. */
enum layout_status {
    LAYOUT_STATUS_DIFFERS = 10,    /* plan: there is something to do */
    LAYOUT_STATUS_INVALID = 11,    /* the file, or a wish for a card that has no such thing */
    LAYOUT_STATUS_IMPOSSIBLE = 12, /* no arrangement holds it */
    LAYOUT_STATUS_BUSY = 13,       /* somebody is in the way */
    LAYOUT_STATUS_RESET = 14,      /* a card needs a reset that it did not get */
    LAYOUT_STATUS_PARTIAL = 15,    /* apply: some cards are done, others were in use */
};

struct layout_call {
    const char *word; /* "check", "plan", … */
    const char *file;
    const char *label;
    const char *boards[32];
    size_t board_count;
    const char *make;   /* slice create: "gpu0/2g.20gb@4"; no file then */
    const char *unmake; /* slice destroy: the address */
    bool wait, yes, move_idle;
};

/* A layout against the cards. */
struct layout_work {
    char *text; /* of the file */
    struct layout_list list;
    const struct layout *layout; /* the one that was chosen */
    bool boards_told;            /* names of boards that nobody knows, once */
    struct inventory inv;
    const struct layout_wish **wishes; /* of each card; NULL: none */
    struct layout_change *changes;     /* of each card with a wish */
    struct holders *holders; /* of each card, once layout_work_find_holders looked; else NULL */
};

void layout_work_done(struct layout_work *w);
/* Lets go of the cards and of what was planned; the file stays. */
void layout_work_forget(struct layout_work *w);

/* Reads the file; chooses one of its layouts. On failure prints, and returns the exit status. */
int layout_work_read(struct layout_work *w, const struct session *s,
                     const struct layout_call *call);
int layout_work_choose(struct layout_work *w, const struct session *s,
                       const struct layout_call *call);

/* Plans for `w->inv` (again, when the cards have changed). The same on failure. */
int layout_work_plan(struct layout_work *w, const struct session *s);

/*
 * Finds out who is on the cards that are busy or whose MIG mode changes (driver/holders.h). Where
 * a mode change needs the card to itself and somebody has it open, its verdict becomes busy, too.
 */
void layout_work_find_holders(struct layout_work *w);
/*
 * Gives the verdict LAYOUT_NEEDS_REBOOT to cards whose MIG mode is stored as the wish wants it and
 * was found to wait for a reboot. The second takes what is kept from the file, where this user may
 * read it.
 */
void layout_work_mark_reboots(struct layout_work *w, const struct reboot *r);
void layout_work_find_reboots(struct layout_work *w, const struct session *s);
/* The same from divvyd, which answers on `c`. */
void layout_work_ask_reboots(struct layout_work *w, struct client *c);
/* A user's name for messages; NULL: not known. */
const char *layout_user_name(uid_t uid, void *arg);

/* The worst verdict of all cards with a wish. */
enum layout_verdict layout_work_worst(const struct layout_work *w);
/* What the worst card asks for: of LAYOUT_STATUS_…, STATUS_REFUSED, STATUS_OK. */
int layout_work_status(const struct layout_work *w);

/* Names boards by their files, since layouts and filters know them by these. */
void layout_know_boards(struct inventory *inv);

/* The screen of `plan`, and its JSON. */
void layout_draw(const struct layout_work *w, const struct screen *s, struct text *ret);
json_t *layout_json(const struct layout_work *w);

/*
 * `slice create`, `slice destroy`: the layout that keeps all else of the card as
 * w->inv shows it, instead of a file. The same on failure.
 */
int layout_work_slice(struct layout_work *w, const struct session *s,
                      const struct layout_call *call);

/* Nothing is begun while any card's wish can never be. */
bool layout_is_refused(const struct layout_work *w);
/* Has, or gives, whoever calls the agreement that it takes? STATUS_OK, or why not. */
int layout_agree(const struct layout_work *w, const struct layout_call *call);
/* The last words: what is there now. `changed`: cards. The exit status. */
int layout_report(const struct layout_work *w, const struct session *s, uint64_t changed);

int layout_apply(struct session *s, const struct layout_call *call);
/*
 * Gives divvyd an order (model/layout_order.h) and waits until it is over. `*ret_change` is the
 * change as GET /v1/layout tells it then; NULL before.
 */
int layout_order_post(struct client *c, json_t *order, json_t **ret_change, struct err *e);

/* The same through divvyd, which answers on `c`; `w` has the file. */
int layout_through_daemon(struct layout_work *w, struct session *s, const struct layout_call *call,
                          struct client *c);
/* layout save, layout restore: to a file or a name, and back. */
int layout_save(struct session *s, const struct layout_call *call);
int layout_restore(struct session *s, const struct layout_call *call);
/* Slices that the wish knows by another UUID than they have, a sentence or an object each. */
void layout_add_identities(const struct layout_work *w, struct text *ret);
json_t *layout_identities_json(const struct layout_work *w);
/* A sentence for each card that waits for a reboot, of GET /v1/layout. */
void layout_add_reboots(struct text *t, json_t *list);
/* Of its `kept`: cards that have not got their layout back, and slices with another UUID now. */
void layout_add_restores(struct text *t, json_t *kept);
/* layout status, layout stop: of the change that divvyd has. */
int layout_show_change(struct session *s, const struct layout_call *call);
int layout_stop_change(struct session *s, const struct layout_call *call);

#endif
