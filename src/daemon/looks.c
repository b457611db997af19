/* Whoever wants the cards as they are, and not as they were when they were last looked at. */
#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "model/card_json.h"

#define LATE_US (5 * CLOCK_SECOND) /* then the last picture will do: a card that hangs is in it */

/* One that waits for the next picture. */
struct looker {
    struct api_request *request;
    int64_t asked_boot_us;
};

void looks_op(void *ctx, struct api_request *req)
{
    struct daemon *d = ctx;
    ARRAY_ROOM(d->lookers, d->looker_alloc, d->looker_count + 1);
    d->lookers[d->looker_count++] =
        (struct looker){ .request = req, .asked_boot_us = clock_now().boot_us };
    children_refresh(&d->children);
}

static bool may_come(const struct daemon *d)
{
    return d->children.watch.child && !d->driver_trouble[0];
}

void looks_turn(struct daemon *d)
{
    size_t kept = 0;
    int64_t late = clock_now().boot_us - LATE_US;
    for (size_t i = 0; i < d->looker_count; i++) {
        const struct looker *l = &d->lookers[i];
        struct owed o = { .request = l->request, .kind = OWED_JSON };
        const struct inventory *inv = NULL;
        bool seen = d->snapshot_came && d->snapshot_taken.boot_us > l->asked_boot_us;
        if (!seen && may_come(d) && l->asked_boot_us > late)
            d->lookers[kept++] = *l;
        else if (answers_inventory(d, &inv, &o.err) == 0)
            o.json = inventory_to_json(inv);
        else
            o.kind = OWED_ERROR;
        if (o.json || o.kind == OWED_ERROR)
            turn_owe(d, &o);
    }
    d->looker_count = kept;
}

void looks_done(struct daemon *d)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, -ESHUTDOWN, "divvyd is stopping");
    for (size_t i = 0; i < d->looker_count; i++)
        api_answer_error(d->lookers[i].request, &e);
    free(d->lookers);
}
