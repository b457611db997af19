#include "driver/child.h"

#include <errno.h>
#include <linux/close_range.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/killpoint.h"
#include "base/text.h"
#include "driver/wire.h"
#include "model/card_json.h"

#define PAUSE_US (30 * CLOCK_SECOND) /* a parent that forgets to ask again is not left blind */
#define EVENT_TICK_MS 200            /* events are looked for this often while watching */

/* The board last sent for a card, so that it is not sent again. */
struct sent_board {
    char uuid[CARD_UUID_SIZE];
    struct board board;
};

struct server {
    int sock;
    struct driver_options options;
    struct driver *d; /* NULL until the first request that needs it */
    struct sent_board *sent;
    size_t sent_count, sent_alloc;
    int every_ms; /* 0: not watching */
    uint64_t watch_seq;
    struct driver_skip *watch_skip;
    size_t watch_skip_count;
    int64_t next_boot_us; /* of the next snapshot while watching */
    bool paused; /* NVML was let go on request: no snapshot of its own until the next request */
    bool events_none;
    bool gone; /* the parent */
};

static const char *const kind_words[] = { "watch", "act" };

const char *driver_child_word(enum driver_child_kind k)
{
    return kind_words[k];
}

int driver_child_parse(const char *word, enum driver_child_kind *ret, struct err *e)
{
    for (int k = 0; k < 2; k++)
        if (strcmp(word, kind_words[k]) == 0) {
            *ret = (enum driver_child_kind)k;
            return 0;
        }
    return err_set(e, -EINVAL, "'%.32s' is no child of divvyd; it is watch or act", word);
}

static void say(struct server *s, json_t *take_message)
{
    if (message_send(s->sock, take_message, 0, NULL) < 0)
        s->gone = true;
}

static json_t *message(const char *word, uint64_t seq)
{
    json_t *j = json_object();
    json_put_text(j, "say", word);
    json_put_u64(j, "seq", seq);
    return j;
}

static json_t *result(const char *word, uint64_t seq, int code, const struct err *e)
{
    json_t *j = message(word, seq);
    json_put_i64(j, "code", code);
    json_put_text(j, "text", code < 0 ? e->text : "");
    return j;
}

static void say_at(const char *card, void *arg)
{
    json_t *j = message("at", 0);
    json_put_text(j, "card", card);
    json_put_i64(j, "since", clock_now().boot_us);
    say(arg, j);
}

static int need_driver(struct server *s, struct err *e)
{
    return s->d ? 0 : driver_open(&s->options, &s->d, e);
}

/* True when the parent has this very board already; else it is noted as sent. */
static bool board_is_known(struct server *s, const struct card *c)
{
    for (size_t i = 0; i < s->sent_count; i++) {
        if (strcmp(s->sent[i].uuid, c->uuid) != 0)
            continue;
        /* Both were copied whole from zeroed memory, padding and all; else it is sent again. */
        bool same =
            memcmp((const char *)&s->sent[i].board, (const char *)&c->board, sizeof c->board) == 0;
        s->sent[i].board = c->board;
        return same;
    }
    ARRAY_ROOM(s->sent, s->sent_alloc, s->sent_count + 1);
    struct sent_board *b = &s->sent[s->sent_count++];
    memcpy(b->uuid, c->uuid, sizeof b->uuid);
    b->board = c->board;
    return false;
}

static void say_card(struct server *s, uint64_t seq, struct card *c)
{
    json_t *j = message("card", seq);
    bool same = c->uuid[0] && board_is_known(s, c);
    if (same)
        c->board.profile_count = 0;
    json_put(j, "card", card_to_json(c));
    json_put_bool(j, "same_board", same);
    say(s, j);
}

static void say_snapshot(struct server *s, uint64_t seq, const struct driver_skip *skip, size_t n)
{
    struct err e = ERR_INIT;
    AUTO(snapshot) struct snapshot snap = SNAPSHOT_INIT;
    KILLPOINT(WATCH_LOOK);
    int code = need_driver(s, &e);
    if (code == 0)
        code = driver_snapshot(s->d, skip, n, &snap, &e);
    say(s, message("begin", seq));
    for (size_t i = 0; i < snap.card_count && !s->gone; i++)
        say_card(s, seq, &snap.cards[i]);
    KILLPOINT(WATCH_TOLD);
    json_t *j = result("snapshot", seq, code, &e);
    json_put_i64(j, "taken_boot_us", snap.taken.boot_us);
    json_put_i64(j, "taken_wall_us", snap.taken.wall_us);
    json_put_text(j, "driver_version", snap.driver_version);
    json_put_text(j, "nvml_version", snap.nvml_version);
    say(s, j);
}

static void do_step(struct server *s, uint64_t seq, json_t *step_json)
{
    struct err e = ERR_INIT;
    struct step step = { .kind = STEP_RESET };
    int code = step_from_json(step_json, &step, &e);
    if (code == 0)
        code = need_driver(s, &e);
    KILLPOINT(ACT_STEP);
    if (code == 0)
        code = driver_step(s->d, &step, &step, &e);
    KILLPOINT(ACT_DONE);
    json_t *j = result("step", seq, code, &e);
    json_put(j, "step", step_to_json(&step));
    say(s, j);
}

static void do_restore(struct server *s, uint64_t seq, json_t *what_json)
{
    struct err e = ERR_INIT;
    struct driver_restore what = { .known = 0 };
    int code = restore_from_json(what_json, &what, &e);
    if (code == 0)
        code = need_driver(s, &e);
    if (code == 0)
        code = driver_restore(s->d, &what, &e);
    json_t *j = result("restored", seq, code, &e);
    json_put(j, "restore", restore_to_json(&what));
    say(s, j);
}

static void do_release(struct server *s, uint64_t seq)
{
    if (s->d)
        driver_release(s->d);
    s->events_none = false;
    s->paused = true;
    s->next_boot_us = clock_now().boot_us + PAUSE_US;
    say(s, message("released", seq));
}

/* Takes `take_skip`. */
static void start_watching(struct server *s, uint64_t seq, int every_ms,
                           struct driver_skip *take_skip, size_t n)
{
    free(s->watch_skip);
    s->watch_skip = take_skip;
    s->watch_skip_count = n;
    s->every_ms = every_ms;
    s->watch_seq = seq;
    s->next_boot_us = clock_now().boot_us;
    s->events_none = false;
}

static int serve_request(struct server *s, json_t *request, struct err *e)
{
    struct fields f;
    auto_free struct driver_skip *skip = NULL;
    size_t skip_count = 0;
    fields_open(&f, request, "request", e);
    const char *word = fields_text(&f, "ask", FIELD_REQUIRED, 16);
    uint64_t seq = fields_u64(&f, "seq", FIELD_REQUIRED, 0, INT64_MAX, 0);
    json_t *skips = fields_array(&f, "skip", FIELD_OPTIONAL, WIRE_SKIPS_MAX);
    json_t *step = fields_object(&f, "step", FIELD_OPTIONAL);
    json_t *restore = fields_object(&f, "restore", FIELD_OPTIONAL);
    int every_ms = (int)fields_i64(&f, "every_ms", FIELD_OPTIONAL, 0, INT32_MAX, 0);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0 && skips)
        code = skips_from_json(skips, &skip, &skip_count, e);
    if (code < 0)
        return code;
    if (s->paused)
        s->next_boot_us = clock_now().boot_us + (int64_t)s->every_ms * 1000;
    s->paused = false;
    if (strcmp(word, "snapshot") == 0)
        say_snapshot(s, seq, skip, skip_count);
    else if (strcmp(word, "step") == 0)
        do_step(s, seq, step);
    else if (strcmp(word, "restore") == 0)
        do_restore(s, seq, restore);
    else if (strcmp(word, "release") == 0)
        do_release(s, seq);
    else if (strcmp(word, "watch") == 0)
        start_watching(s, seq, every_ms, take_ptr(skip), skip_count);
    else
        return err_set(e, -EPROTO, "'%s' is no request", word);
    return 0;
}

static void say_events(struct server *s)
{
    struct driver_event ev;
    int n = 1;
    while (n > 0 && !s->gone && !s->events_none && s->d) {
        n = driver_wait_event(s->d, s->watch_skip, s->watch_skip_count, 0, &ev, NULL);
        if (n > 0) {
            json_t *j = message("event", s->watch_seq);
            event_put(j, &ev);
            say(s, j);
        }
        s->events_none = n < 0;
    }
}

static int wait_ms(const struct server *s)
{
    if (!s->every_ms)
        return -1;
    int64_t ms = (s->next_boot_us - clock_now().boot_us + 999) / 1000;
    if (ms < 0)
        ms = 0;
    return s->paused || s->events_none || ms < EVENT_TICK_MS ? (int)ms : EVENT_TICK_MS;
}

static void watch(struct server *s)
{
    int64_t now = clock_now().boot_us;
    if (s->paused && now >= s->next_boot_us)
        s->paused = false;
    if (!s->every_ms || s->paused || s->gone)
        return;
    if (now >= s->next_boot_us) {
        s->next_boot_us = now + (int64_t)s->every_ms * 1000;
        s->events_none = false; /* a failure to wait is tried again as often as this */
        say_snapshot(s, s->watch_seq, s->watch_skip, s->watch_skip_count);
    }
    say_events(s);
}

/* 0 as long as the parent is there. */
static int serve_one(struct server *s)
{
    struct pollfd p = { .fd = s->sock, .events = POLLIN };
    if (poll(&p, 1, wait_ms(s)) < 0 && errno != EINTR)
        return -errno;
    if (p.revents) {
        auto_json json_t *request = NULL;
        int n = message_receive(s->sock, MSG_DONTWAIT, &request, NULL);
        if (n < 0)
            return n;
        if (n > 0 && serve_request(s, request, NULL) < 0)
            return -EPROTO; /* same program on both sides: only a bug gets here */
    }
    watch(s);
    return s->gone ? -EPIPE : 0;
}

static void close_between(int first, int last)
{
    if (first <= last)
        (void)close_range((unsigned int)first, (unsigned int)last, 0); /* older kernels: exec did */
}

/* Everything but the standard streams, the socket, and what is above it to be kept (-1: nothing). */
static void close_others(int sock, int keep)
{
    close_between(3, sock - 1);
    if (keep > sock)
        close_between(sock + 1, keep - 1);
    close_between(keep > sock ? keep + 1 : sock + 1, INT_MAX);
}

int driver_child_main(enum driver_child_kind kind, int sock, const struct driver_options *options,
                      int alive)
{
    struct server s = { .sock = sock };
    int code = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* beside the end of the socket */
    (void)prctl(PR_SET_NAME, kind == DRIVER_CHILD_WATCH ? "divvyd-watch" : "divvyd-act");
    close_others(sock, alive);
    if (options)
        s.options = *options;
    s.options.at = say_at;
    s.options.at_arg = &s;
    while (code == 0)
        code = serve_one(&s);
    driver_close(s.d);
    free(s.sent);
    free(s.watch_skip);
    return code == -EPIPE ? 0 : 1;
}
