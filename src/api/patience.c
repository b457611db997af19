/* How long one connection may take, and how much all of them may hold. */
#include <sys/socket.h>

#include "api/request.h"

/* An answer of which nothing is taken is dropped by libmicrohttpd sooner; this is for drips. */
#define TAKE_ANSWER_S 60
#define LOOK_US CLOCK_SECOND

void patience_add(struct api *api, struct api_connection *c)
{
    c->next = api->open;
    if (c->next)
        c->next->prev = c;
    api->open = c;
    patience_phase(c, PHASE_ASKS);
}

void patience_remove(struct api_connection *c)
{
    struct api *api = c->api;
    patience_let_go(c);
    if (c->prev)
        c->prev->next = c->next;
    else
        api->open = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void patience_phase(struct api_connection *c, enum api_phase phase)
{
    c->phase = phase;
    c->since_boot_us = api_now(c->api).boot_us;
}

/* ---- memory ---- */

static size_t uid_held(const struct api *api, uid_t uid)
{
    return (size_t)(uintptr_t)map_get(&api->held_by, uid);
}

static void set_uid_held(struct api *api, uid_t uid, size_t bytes)
{
    if (bytes)
        map_put(&api->held_by, uid, (void *)(uintptr_t)bytes);
    else
        (void)map_remove(&api->held_by, uid); /* it holds nothing any more */
}

bool patience_room(const struct api_connection *c, size_t more)
{
    const struct api *api = c->api;
    return api->held + more <= API_HELD_MAX &&
           (c->caller.is_operator || uid_held(api, c->caller.uid) + more <= API_HELD_BY_UID_MAX);
}

void patience_hold(struct api_connection *c, size_t more)
{
    c->held += more;
    c->api->held += more;
    set_uid_held(c->api, c->caller.uid, uid_held(c->api, c->caller.uid) + more);
}

void patience_let_go(struct api_connection *c)
{
    c->api->held -= c->held;
    set_uid_held(c->api, c->caller.uid, uid_held(c->api, c->caller.uid) - c->held);
    c->held = 0;
}

/* ---- time ---- */

static bool too_slow(const struct api_connection *c, struct now now)
{
    int64_t waited = now.boot_us - c->since_boot_us;
    if (c->phase == PHASE_ASKS)
        return waited > c->api->cfg.half_request_s * CLOCK_SECOND;
    return c->phase == PHASE_TAKES && waited > TAKE_ANSWER_S * CLOCK_SECOND;
}

void patience_look(struct api *api, struct now now)
{
    if (now.boot_us < api->look_boot_us)
        return;
    api->look_boot_us = now.boot_us + LOOK_US;
    for (struct api_connection *c = api->open; c; c = c->next)
        if (too_slow(c, now))
            (void)shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd finds it closed and lets go */
}

int64_t patience_timeout_us(const struct api *api, struct now now)
{
    if (!api->open)
        return -1;
    return api->look_boot_us > now.boot_us ? api->look_boot_us - now.boot_us : 0;
}
