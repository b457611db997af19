#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "sched/queue.h"

#define CARDS_TOLD 3 /* in one sentence */

/* "16:40", and the day where it is not within 20 hours. */
void why_add_time(struct text *t, int64_t boot_us, struct now now)
{
    struct tm tm;
    char words[32];
    time_t at = (time_t)((now.wall_us + (boot_us - now.boot_us)) / CLOCK_SECOND);
    bool near = boot_us - now.boot_us < 20 * CLOCK_HOUR;
    if (localtime_r(&at, &tm) && strftime(words, sizeof words, near ? "%H:%M" : "%F %H:%M", &tm))
        text_add(t, words);
    else
        text_add_duration(t, boot_us - now.boot_us);
}

/* Who of a card's holders keeps it longest; NULL: nobody has it. */
static const struct hold *last_holder(const struct inventory_card *c, uint32_t *ret_count)
{
    const struct hold *last = NULL;
    uint64_t seen = 0;
    *ret_count = 0;
    for (size_t k = 0; k <= c->card.slice_count; k++) {
        const struct hold *h = k < c->card.slice_count ? &c->slices[k].hold : &c->hold;
        if (h->kind == HOLD_NONE)
            continue;
        *ret_count += !(h->kind == HOLD_JOB && h->job_id == seen);
        seen = h->kind == HOLD_JOB ? h->job_id : seen;
        if (!last ||
            (last->until_boot_us && (!h->until_boot_us || h->until_boot_us > last->until_boot_us)))
            last = h;
    }
    return last;
}

static void add_holder(struct text *t, const struct hold *h, struct now now)
{
    if (h->kind != HOLD_JOB) {
        text_addf(t, " has pid %d%s%s, which is no job", (int)h->pid, h->name[0] ? " " : "",
                  h->name);
        return;
    }
    if (h->until_boot_us > now.boot_us) {
        text_add(t, " until ");
        why_add_time(t, h->until_boot_us, now);
    } else {
        text_add(t, h->until_boot_us ? " any moment now" : " without a time limit");
    }
    text_addf(t, " (#%" PRIu64 "%s%s)", h->job_id, h->user[0] ? " " : "", h->user);
}

static void add_card(struct text *t, const struct inventory_card *c, bool kept, struct now now)
{
    uint32_t count;
    const struct hold *h = last_holder(c, &count);
    text_addf(t, "gpu%u", c->card.ordinal);
    if (!h) {
        text_add(t, kept ? " is free and kept for it" : " is free");
        return;
    }
    add_holder(t, h, now);
    if (count > 1)
        text_addf(t, " and %u more", count - 1);
}

static void add_cards(struct text *t, const struct inventory *inv, const size_t *cards, size_t n,
                      bool kept, struct now now)
{
    for (size_t i = 0; i < n && i < CARDS_TOLD; i++) {
        text_add(t, i ? "; " : ": ");
        add_card(t, &inv->cards[cards[i]], kept, now);
    }
    if (n > CARDS_TOLD)
        text_addf(t, "; and %zu more cards", n - CARDS_TOLD);
}

static void list_cards(const struct inventory *inv, const size_t *cards, size_t n,
                       struct sched_explanation *x)
{
    for (size_t i = 0; i < n && i < SCHED_WHY_CARDS; i++)
        x->cards[x->card_count++] = inv->cards[cards[i]].card.ordinal;
}

static void say(struct sched_explanation *x, const struct text *t)
{
    (void)snprintf(x->text, sizeof x->text, "%s", t->buf); /* a sentence that is too long is cut */
}

/* An auto card that nobody has is waited for only because its MIG mode may not turn yet. */
static bool only_modes(const struct inventory *inv, const size_t *cards, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!inventory_card_free(&inv->cards[cards[i]]))
            return false;
    return n > 0;
}

/* Cards of the queue of which nobody can say when they are free. */
static size_t add_endless(struct text *t, const struct inventory *inv, struct now now)
{
    size_t told = 0;
    for (size_t i = 0; i < inv->card_count && told < CARDS_TOLD; i++) {
        const struct inventory_card *c = &inv->cards[i];
        uint32_t count;
        const struct hold *h = last_holder(c, &count);
        if (c->pool != POOL_QUEUE || !h || h->until_boot_us)
            continue;
        text_add(t, told++ ? "; " : ": ");
        add_card(t, c, false, now);
    }
    return told;
}

/* Cards of the queue that take nothing now, each with its trouble. */
static size_t add_trouble(struct text *t, const struct inventory *inv, size_t told)
{
    for (size_t i = 0; i < inv->card_count && told < CARDS_TOLD; i++) {
        const struct inventory_card *c = &inv->cards[i];
        bool turns = c->card.mig_now != c->card.mig_pending && !c->no_turn;
        bool open = c->card.health == CARD_OK && !c->quarantined && !c->reserved[0] && !turns;
        if (c->pool != POOL_QUEUE || open)
            continue;
        text_addf(t, "%sgpu%u ", told++ ? "; " : ": ", c->card.ordinal);
        if (c->card.health != CARD_OK)
            text_addf(t, "is %s", card_health_word(c->card.health));
        else if (!c->quarantined && !c->reserved[0])
            text_addf(t, "waits for a reset that turns MIG %s", c->card.mig_pending ? "on" : "off");
        else
            text_addf(t, "takes no jobs (%s)", c->quarantined ? c->quarantine : c->reserved);
    }
    return told;
}

static bool on_cards(const struct place *p, const struct place *q)
{
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < q->count; k++)
            if (p->items[i].ordinal == q->items[k].ordinal)
                return true;
    return false;
}

static int by_begin(const void *a, const void *b)
{
    const struct booking *const *x = a;
    const struct booking *const *y = b;
    if ((*x)->from_us != (*y)->from_us)
        return (*x)->from_us < (*y)->from_us ? -1 : 1;
    return (*x)->entry->id < (*y)->entry->id ? -1 : (*x)->entry->id > (*y)->entry->id;
}

/* Others with an earlier start on the same cards, and maintenance there until it begins. */
static void add_before(struct text *t, const struct sched *s, const struct booking *b,
                       struct now now)
{
    const struct booking *list[SCHED_RESERVATIONS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < s->bookings.count; i++) {
        const struct booking *other = &s->bookings.list[i];
        if (other != b && other->from_us < b->from_us && on_cards(&other->place, &b->place))
            list[n++] = other;
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_begin);
    for (size_t i = 0; i < n && i < CARDS_TOLD; i++)
        text_addf(t, "%s #%" PRIu64, i ? "," : ";", list[i]->entry->id);
    if (n > CARDS_TOLD)
        text_addf(t, " and %zu more", n - CARDS_TOLD);
    if (n)
        text_add(t, n == 1 ? " goes there first" : " go there first");
    for (size_t i = 0; i < s->bookings.closed_count; i++) {
        const struct sched_closed *c = &s->bookings.closed[i];
        bool there = false;
        for (size_t k = 0; k < b->place.count; k++)
            there = there || b->place.items[k].ordinal == c->ordinal;
        if (!there || c->until_us > b->from_us || c->until_us <= now.boot_us)
            continue;
        text_addf(t, "; maintenance on gpu%u until ", c->ordinal);
        why_add_time(t, c->until_us, now);
    }
}

/* `b`: the start that is kept for it; NULL: none is. */
static void tell_wait(struct sched *s, const struct inventory *inv, const struct entry *e,
                      const size_t *cards, size_t n, const struct booking *b, struct now now,
                      struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "waits for ");
    request_add(&t, &e->shape->question->request);
    list_cards(inv, cards, n, x);
    add_cards(&t, inv, cards, n, x->why == WHY_RESERVED, now);
    if (b)
        add_before(&t, s, b, now);
    if (n == 0 && !add_trouble(&t, inv, add_endless(&t, inv, now)))
        text_add(&t, ": what is in the way has no time limit");
    if (only_modes(inv, cards, n) && s->policy.mode_hold_us) {
        text_add(&t, "; an idle card changes its MIG mode after ");
        text_add_duration(&t, s->policy.mode_hold_us);
    }
    say(x, &t);
}

/* Indices of the cards of its place, each once. */
static size_t booked_cards(const struct inventory *inv, const struct booking *b, size_t *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < inv->card_count; i++)
        for (size_t k = 0; k < b->place.count; k++)
            if (b->place.items[k].ordinal == inv->cards[i].card.ordinal) {
                ret[n++] = i;
                break;
            }
    return n;
}

static void explain_no_room(struct sched *s, const struct inventory *inv, const struct entry *e,
                            struct now now, struct sched_explanation *x)
{
    struct place_rules rules = reserve_rules(s, false);
    auto_free size_t *cards = mem_new((inv->card_count + 1) * sizeof *cards);
    int64_t when = INT64_MAX;
    size_t n = place_soonest(inv, &e->shape->question->request, &rules, now, cards, &when);
    x->why = WHY_NO_ROOM;
    x->earliest_boot_us = n ? when : 0;
    tell_wait(s, inv, e, cards, n, NULL, now, x);
}

/* ALONE: as if nothing were kept. */
#define ALONE SIZE_MAX

static enum place_verdict ask(struct sched *s, const struct inventory *inv, const struct entry *e,
                              size_t level, bool with_bans, struct now now, struct err *ret_why)
{
    struct place_rules rules = reserve_rules(s, with_bans);
    struct place place = { .items = NULL };
    struct plan plan = { .steps = NULL };
    rules.kept = level == ALONE || inv->bulk ? NULL : booking_kept(s, inv, level, now);
    enum place_verdict verdict =
        place_request(inv, &e->shape->question->request, &rules, now, &place, &plan, ret_why);
    if (verdict == PLACE_NOW) {
        place_done(&place);
        plan_done(&plan);
    }
    return verdict;
}

/* The longest limit below that level with which it would go now; 0: with none. */
static int64_t longest_us(struct sched *s, const struct inventory *inv, const struct entry *e,
                          size_t level, struct now now)
{
    while (level-- > 0)
        if (ask(s, inv, e, level, true, now, NULL) == PLACE_NOW)
            return booking_level_us(s, level, now);
    return 0;
}

/* Would it go now, short as it is, on cards that are kept for who has no time? */
static bool goes_on_kept(struct sched *s, const struct inventory *inv, const struct entry *e,
                         size_t level, struct now now)
{
    struct place_rules rules = reserve_rules(s, false);
    struct place place = { .items = NULL };
    struct plan plan = { .steps = NULL };
    rules.kept = inv->bulk ? NULL : booking_kept(s, inv, level, now);
    if (place_request(inv, &e->shape->question->request, &rules, now, &place, &plan, NULL) !=
        PLACE_NOW)
        return false;
    bool goes = reserve_allows(s, inv, &plan, s->reservation.short_us);
    place_done(&place);
    plan_done(&plan);
    return goes;
}

/* The longest limit with which it would; 0: with none. */
static int64_t longest_on_kept_us(struct sched *s, const struct inventory *inv,
                                  const struct entry *e, struct now now)
{
    int64_t short_us = s->reservation.entry ? s->reservation.short_us : 0;
    size_t level = short_us ? booking_level(s, inv, short_us, now) + 1 : 0;
    while (level-- > 0)
        if (goes_on_kept(s, inv, e, level, now)) {
            int64_t most = booking_level_us(s, level, now);
            return most < short_us ? most : short_us;
        }
    return 0;
}

void why_add_sooner(struct text *t, int64_t limit_us)
{
    if (limit_us < CLOCK_MINUTE)
        return;
    text_add(t, "; with a time limit of at most ");
    text_add_duration(t, limit_us / CLOCK_MINUTE * CLOCK_MINUTE);
    text_add(t, " it could start now");
}

/* It would be there still when somebody else has a start, who holds the reservation. */
static void explain_draining(struct sched *s, const struct inventory *inv, const struct entry *e,
                             size_t level, struct now now, struct sched_explanation *x)
{
    const struct reservation *res = &s->reservation;
    AUTO(text) struct text t = TEXT_INIT;
    auto_free size_t *cards = mem_new((inv->card_count + 1) * sizeof *cards);
    size_t at = booking_in_the_way(s, e->limit_us, true, now), n = res->count;
    if (at == SIZE_MAX && !n) /* a card that is to turn its mode is kept earlier */
        at = booking_in_the_way(s, INT64_MAX, true, now);
    const struct entry *holder = at == SIZE_MAX ? res->entry : s->bookings.list[at].entry;
    x->why = WHY_DRAINING;
    x->short_limit_us = longest_us(s, inv, e, level, now);
    int64_t on_kept = longest_on_kept_us(s, inv, e, now);
    if (x->short_limit_us < on_kept)
        x->short_limit_us = on_kept;
    if (!holder) { /* the random streams look for it: who asks must not end divvyd */
        (void)snprintf(x->text, sizeof x->text, "what would do is kept for others");
        return;
    }
    x->reserved_for = holder->id;
    if (at == SIZE_MAX)
        memcpy(cards, res->cards, n * sizeof *cards);
    else
        n = booked_cards(inv, &s->bookings.list[at], cards);
    for (size_t i = 0; i < n && i < CARDS_TOLD; i++)
        text_addf(&t, i ? ", gpu%u" : "gpu%u", inv->cards[cards[i]].card.ordinal);
    text_addf(&t, " would do, but %s kept for #%" PRIu64, n == 1 ? "is" : "are", holder->id);
    why_add_sooner(&t, x->short_limit_us);
    say(x, &t);
}

/* It would be there still when an administrator has the card. */
static void tell_closed(struct sched *s, const struct inventory *inv, const struct entry *e,
                        size_t level, const struct sched_closed *c, struct now now,
                        struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    x->short_limit_us = longest_us(s, inv, e, level, now);
    text_addf(&t, "gpu%u would do, but maintenance ", c->ordinal);
    text_add(&t, c->from_us > now.boot_us ? "begins there at " : "goes on there until ");
    why_add_time(&t, c->from_us > now.boot_us ? c->from_us : c->until_us, now);
    if (c->from_us > now.boot_us && e->limit_us == INT64_MAX)
        text_add(&t, ", and this has no time limit");
    why_add_sooner(&t, x->short_limit_us);
    say(x, &t);
}

/* The first on that place that a start now would run into; NULL: none. */
static const struct sched_closed *closed_on(const struct sched *s, const struct place *p,
                                            int64_t until_us, struct now now)
{
    const struct sched_closed *first = NULL;
    for (size_t i = 0; i < s->bookings.closed_count; i++) {
        const struct sched_closed *c = &s->bookings.closed[i];
        bool meets = false;
        for (size_t k = 0; k < p->count; k++)
            meets = meets || p->items[k].ordinal == c->ordinal;
        if (meets && c->from_us < until_us && now.boot_us < c->until_us &&
            (!first || c->from_us < first->from_us))
            first = c;
    }
    return first;
}

/* Maintenance on the place that it would have now; NULL: it has none, or nothing is planned. */
static const struct sched_closed *closed_in_the_way(struct sched *s, const struct inventory *inv,
                                                    const struct entry *e, struct now now)
{
    struct place place = { .items = NULL };
    struct plan plan = { .steps = NULL };
    struct place_rules rules = reserve_rules(s, false);
    int64_t end = e->limit_us < INT64_MAX - now.boot_us ? now.boot_us + e->limit_us : INT64_MAX;
    if (inv->bulk || !s->bookings.closed_count ||
        place_request(inv, &e->shape->question->request, &rules, now, &place, &plan, NULL) !=
            PLACE_NOW)
        return NULL;
    const struct sched_closed *c = closed_on(s, &place, end, now);
    place_done(&place);
    plan_done(&plan);
    return c;
}

/* If nothing were kept for others. */
static bool cards_would_do(struct sched *s, const struct inventory *inv, const struct entry *e,
                           struct now now)
{
    return ask(s, inv, e, ALONE, false, now, NULL) == PLACE_NOW;
}

static void explain_reserved(struct sched *s, const struct inventory *inv, const struct entry *e,
                             struct now now, struct sched_explanation *x)
{
    const struct reservation *res = &s->reservation;
    size_t at = booking_of(s, e);
    x->why = WHY_RESERVED;
    if (at == SIZE_MAX && cards_would_do(s, inv, e, now) && why_node_waits(s, inv, e, now, x))
        return;
    if (at == SIZE_MAX) {
        tell_wait(s, inv, e, res->cards, res->count, NULL, now, x);
        return;
    }
    const struct booking *b = &s->bookings.list[at];
    auto_free size_t *cards = mem_new((inv->card_count + 1) * sizeof *cards);
    size_t n = booked_cards(inv, b, cards);
    x->expected_boot_us = b->from_us;
    x->earliest_boot_us = b->from_us;
    x->expected_place = &b->place;
    const struct sched_closed *closed = closed_in_the_way(s, inv, e, now);
    if (closed)
        tell_closed(s, inv, e, booking_level(s, inv, e->limit_us, now), closed, now, x);
    else if (!cards_would_do(s, inv, e, now) || !why_node_waits(s, inv, e, now, x))
        tell_wait(s, inv, e, cards, n, b, now, x);
}

static void explain_next(const struct entry *e, struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    x->why = WHY_NEXT;
    request_add(&t, &e->shape->question->request);
    text_add(&t, " can be had: starts next");
    if (x->ahead)
        text_addf(&t, ", unless the %u ahead in %s take%s it first", x->ahead, x->account,
                  x->ahead == 1 ? "s" : "");
    say(x, &t);
}

static void explain_held(const struct entry *e, struct now now, struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    x->why = WHY_HELD;
    x->held_until_us = e->held_until_us;
    if (e->held_until_us == INT64_MAX) {
        text_add(&t, "held until it is released");
    } else {
        text_add(&t, "held until ");
        why_add_time(&t, e->held_until_us, now);
    }
    say(x, &t);
}

/* True: it would have one, and `x` tells why it does not have it yet. */
static bool has_place(struct sched *s, const struct inventory *inv, const struct entry *e,
                      size_t level, struct now now, struct sched_explanation *x)
{
    struct sched_decision d;
    struct place_rules rules = reserve_rules(s, true);
    rules.kept = inv->bulk ? NULL : booking_kept(s, inv, level, now);
    if (place_request(inv, &e->shape->question->request, &rules, now, &d.place, &d.plan, NULL) !=
        PLACE_NOW)
        return false;
    if (!why_node(s, inv, e, &d.place, now, x))
        explain_next(e, x);
    sched_decision_done(&d);
    return true;
}

static void explain_pending(struct sched *s, const struct inventory *inv, const struct entry *e,
                            struct now now, struct sched_explanation *x)
{
    struct err err = ERR_INIT;
    size_t level = booking_level(s, inv, e->limit_us, now);
    const struct sched_closed *closed = closed_in_the_way(s, inv, e, now);
    if (cards_would_do(s, inv, e, now) && why_node(s, inv, e, NULL, now, x))
        return;
    if (has_place(s, inv, e, level, now, x))
        return;
    enum place_verdict verdict = ask(s, inv, e, ALONE, false, now, &err);
    if (verdict == PLACE_NOW && (s->bookings.count || s->reservation.entry) && !closed) {
        explain_draining(s, inv, e, level, now, x);
    } else if (verdict == PLACE_NOW && closed) {
        x->why = WHY_CLOSED;
        tell_closed(s, inv, e, level, closed, now, x);
    } else if (verdict == PLACE_NEVER) {
        x->why = WHY_NEVER;
        (void)snprintf(x->text, sizeof x->text, "%s", err.text); /* cut when too long */
    } else {
        explain_no_room(s, inv, e, now, x);
    }
}

/* Jobs of the same leaf that go before it, whatever they ask for. */
static uint32_t ahead_of(const struct entry *e)
{
    uint32_t n = 0;
    for (const struct shape *sh = e->shape->leaf->shapes; sh; sh = sh->next)
        if (sh->class->priority > e->shape->class->priority)
            n += tree_size(sh->root);
        else if (sh->class->priority == e->shape->class->priority)
            n += tree_before(sh->root, e);
    return n;
}

bool sched_goes_before(const struct sched *s, uint64_t a, uint64_t b, struct now now)
{
    struct entry *x = entries_get(&s->entries, a), *y = entries_get(&s->entries, b);
    if (!x || !y || x == y || x->state != ENTRY_PENDING || y->state != ENTRY_PENDING)
        return false;
    return line_before(s, x, y, now.boot_us);
}

static void find_turn(struct sched *s, const struct inventory *inv, const struct entry *e,
                      struct now now, struct sched_explanation *x)
{
    const struct leaf *l = e->shape->leaf;
    s->cards = inv->bulk ? inv->bulk->cards : inv->card_count;
    question_look(s, inv, e->shape->question);
    tree_rank(s, now.boot_us);
    struct turn t = turn_of(s, e, now.boot_us);
    x->account = l->account->name;
    x->user = l->user;
    x->qos = e->shape->class->name;
    x->inside = l->account->inside;
    x->rank = s->tree[l->node].rank;
    x->leaves = (uint32_t)s->leaf_count;
    x->account_level = s->tree[l->account->node].level;
    x->user_level = s->tree[l->node].level;
    x->tier = t.tier;
    x->factor = t.factor;
    x->age = t.age;
    x->size = t.size;
    x->points = t.points;
    x->order = s->policy.order;
    x->level = e->level;
    x->attained_card_us = sched_attained(s, e->id, now.boot_us);
    if (e->state == ENTRY_PENDING)
        x->ahead = ahead_of(e);
}

static void explain_limit(struct sched *s, const struct excess *over, struct now now,
                          struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    uint64_t job = 0;
    x->why = WHY_LIMIT;
    x->limit = over->kind;
    int64_t frees_us = excess_ends_us(s, over, &job);
    text_add(&t, "waits for a limit: ");
    excess_add(&t, over);
    if (frees_us != INT64_MAX) {
        x->limit_frees_us = frees_us;
        text_add(&t, "; room by ");
        why_add_time(&t, frees_us > now.boot_us ? frees_us : now.boot_us, now);
        text_addf(&t, ", when #%" PRIu64 " ends at the latest", job);
    } else if (job) {
        text_addf(&t, "; #%" PRIu64 " has no time limit, so nobody can say when there is room",
                  job);
    }
    say(x, &t);
}

static bool limited(struct sched *s, const struct inventory *inv, const struct entry *e,
                    struct now now, struct sched_explanation *x)
{
    struct place place = { .items = NULL };
    struct plan plan = { .steps = NULL };
    struct place_rules rules = reserve_rules(s, true);
    struct excess over = { .meter = NULL };
    if (!e->shape->meter_count)
        return false;
    size_t level = booking_level(s, inv, e->limit_us, now);
    rules.kept = inv->bulk ? NULL : booking_kept(s, inv, level, now);
    over = meters_full(e->shape);
    if (!over.meter && place_request(inv, &e->shape->question->request, &rules, now, &place, &plan,
                                     NULL) == PLACE_NOW) {
        over = meters_over(e->shape, &place);
        place_done(&place);
        plan_done(&plan);
    }
    if (over.meter)
        explain_limit(s, &over, now, x);
    if (over.meter == &s->keep.meter && ask(s, inv, e, level, true, now, NULL) == PLACE_NOW)
        x->short_limit_us = s->policy.keep_for_us;
    return over.meter;
}

static uint64_t first_reserved(const struct sched *s)
{
    struct sched_reservation r;
    return sched_reservation(s, 0, &r) ? r.job_id : 0;
}

void sched_explain(struct sched *s, const struct inventory *inv, uint64_t id, struct now now,
                   struct sched_explanation *ret)
{
    const struct entry *e = entries_get(&s->entries, id);
    *ret = (struct sched_explanation){ .why = WHY_UNKNOWN };
    if (!e)
        return;
    s->bookings.stale = true;
    node_look(s, inv);
    reserve_look(s, inv);
    keep_look(s, inv, false);
    find_turn(s, inv, e, now, ret);
    ret->reserved_for = first_reserved(s);
    if (e->state == ENTRY_RUNNING)
        ret->why = WHY_RUNNING;
    else if (e->state == ENTRY_HELD)
        explain_held(e, now, ret);
    else if (limited(s, inv, e, now, ret))
        return;
    else if (s->reservation.entry == e || booking_of(s, e) != SIZE_MAX)
        explain_reserved(s, inv, e, now, ret);
    else
        explain_pending(s, inv, e, now, ret);
}
