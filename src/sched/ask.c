#include "sched/queue.h"

#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

/* Cards of one model stand for each other. */
static bool told_before(const struct inventory *inv, size_t card)
{
    const struct board *b = &inv->cards[card].card.board;
    for (size_t i = 0; i < card; i++) {
        const struct board *other = &inv->cards[i].card.board;
        if (other->profile_count == b->profile_count && strcmp(other->name, b->name) == 0)
            return true;
    }
    return false;
}

static uint64_t boards_key(const struct inventory *inv)
{
    uint64_t h = 1;
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct board *b = &inv->cards[i].card.board;
        for (const char *p = b->name; *p; p++)
            h = mix(h, (unsigned char)*p);
        h = mix(h, b->profile_count);
    }
    return h ? h : 1;
}

/* There are few senses (profiles times counts), and users cannot choose their hashes. */
static uint64_t find_sense(const struct inventory *inv, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    uint64_t h = mix(mix(r->kind, r->count), (uint64_t)(r->spread | r->or_7g << 1));
    for (size_t i = 0; i < inv->card_count; i++) {
        if (told_before(inv, i))
            continue;
        size_t n = request_fits(r, &inv->cards[i].card.board, fits);
        h = mix(h, n);
        for (size_t k = 0; k < n; k++)
            h = mix(h, fits[k].profile ? fits[k].profile->id : UINT32_MAX);
    }
    return h;
}

static void least(uint64_t *n, uint64_t other)
{
    if (other < *n)
        *n = other;
}

/* The least of each, over all ways on all boards: no place takes less. */
static struct need find_need(const struct inventory *inv, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    struct need n = { .compute_ppm = UINT64_MAX,
                      .mem_ppm = UINT64_MAX,
                      .dominant_ppm = UINT64_MAX };
    if (r->kind == REQUEST_NOTHING)
        return (struct need){ .cards = 0 };
    if (r->kind == REQUEST_CARDS) {
        uint64_t all = (uint64_t)r->count * PPM;
        return (struct need){ all, all, all, .cards = r->or_7g ? 0 : r->count };
    }
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct board *b = &inv->cards[i].card.board;
        if (told_before(inv, i))
            continue;
        for (size_t count = request_fits(r, b, fits), k = 0; k < count; k++) {
            const struct profile *p = fits[k].profile;
            least(&n.compute_ppm, p ? profile_compute_ppm(b, p) : PPM);
            least(&n.mem_ppm, p ? profile_mem_ppm(b, p) : PPM);
            least(&n.dominant_ppm, fits[k].dominant_ppm);
        }
    }
    if (n.dominant_ppm == UINT64_MAX)
        return (struct need){ .cards = 0 };
    return (struct need){ n.compute_ppm * r->count, n.mem_ppm * r->count, n.dominant_ppm * r->count,
                          .cards = 0 };
}

void question_look(struct sched *s, const struct inventory *inv, struct question *q)
{
    if (!s->boards)
        s->boards = boards_key(inv);
    if (q->boards == s->boards)
        return;
    q->sense = find_sense(inv, &q->request);
    q->need = find_need(inv, &q->request);
    q->boards = s->boards;
}

static uint64_t sense_of(struct sched *s, const struct inventory *inv, struct question *q)
{
    question_look(s, inv, q);
    return q->sense;
}

static void forget_answers(struct sched *s)
{
    map_done(&s->refused);
    map_done(&s->speakers);
    s->spoken++;
}

void ask_forget(struct sched *s)
{
    forget_answers(s);
    s->boards = 0;
}

/* ---- who speaks for whom ------------------------------------------------------ */

/* Questions that come to the same, and say the same of the machine. */
static uint64_t like(const struct question *q)
{
    return mix(mix(q->sense, q->said.cpu_milli), q->said.mem_bytes);
}

const struct question *ask_speaker(const struct sched *s, const struct question *q)
{
    if (!s->speakers.count || q->boards != s->boards)
        return NULL;
    const struct question *other = map_get(&s->speakers, like(q));
    return other && other->sense == q->sense && node_same(&other->said, &q->said) ? other : NULL;
}

void ask_speak(struct sched *s, const struct inventory *inv, struct question *q)
{
    question_look(s, inv, q);
    map_put(&s->speakers, like(q), q);
    s->spoken++;
}

void ask_hush(struct sched *s, const struct question *q)
{
    if (map_get(&s->speakers, like(q)) != q)
        return;
    (void)map_remove(&s->speakers, like(q));
    s->spoken++;
}

/* ---- questions ------------------------------------------------------------------ */

/* What is remembered about a sense, by what was asked. */
enum asked { ASKED_ALONE = 1, ASKED_SOONEST, ASKED_UNRESERVED, ASKED_ALL };

static enum place_verdict ask(struct sched *s, const struct inventory *inv, struct question *q,
                              const struct place_rules *rules, uint64_t key, struct now now,
                              struct place *ret_place, struct plan *ret_plan)
{
    static const enum place_verdict verdicts[] = { PLACE_NOW, PLACE_LATER, PLACE_NEVER };
    const enum place_verdict *known = map_get(&s->refused, key);
    if (known)
        return *known;
    /* no sentence: sched_explain asks again where somebody wants to read it */
    enum place_verdict verdict =
        place_request(inv, &q->request, rules, now, ret_place, ret_plan, NULL);
    if (verdict != PLACE_NOW)
        map_put(&s->refused, key, (void *)&verdicts[verdict]); /* only ever read */
    return verdict;
}

enum place_verdict ask_place(struct sched *s, const struct inventory *inv, struct question *q,
                             size_t level, bool with_bans, struct now now, struct place *ret_place,
                             struct plan *ret_plan)
{
    struct place_rules rules = reserve_rules(s, with_bans);
    rules.kept = inv->bulk ? NULL : booking_kept(s, inv, level, now);
    uint64_t key = mix(sense_of(s, inv, q), rules.bans ? ASKED_UNRESERVED : ASKED_ALL);
    return ask(s, inv, q, &rules, mix(key, level), now, ret_place, ret_plan);
}

enum place_verdict ask_alone(struct sched *s, const struct inventory *inv, struct question *q,
                             struct now now)
{
    struct place_rules rules = reserve_rules(s, false);
    struct place place;
    struct plan plan;
    enum place_verdict verdict =
        ask(s, inv, q, &rules, mix(sense_of(s, inv, q), ASKED_ALONE), now, &place, &plan);
    if (verdict == PLACE_NOW) {
        place_done(&place);
        plan_done(&plan);
    }
    return verdict;
}

bool ask_reservation(struct sched *s, const struct inventory *inv, struct entry *e, struct now now)
{
    static const bool no = false;
    question_look(s, inv, e->shape->question);
    uint64_t key = mix(like(e->shape->question), ASKED_SOONEST);
    if (!booking_room(s, e) || map_get(&s->refused, key))
        return false;
    if (booking_make(s, inv, e, now) ||
        ((!s->reservation.entry || s->reservation.entry == e) && reserve_for(s, inv, e, now))) {
        forget_answers(s); /* with more that is kept, others */
        return true;
    }
    e->shape->question->undated = s->cycle;
    map_put(&s->refused, key, (void *)&no); /* only that it is there counts */
    return false;
}
