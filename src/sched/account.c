#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/charge.h"
#include "sched/queue.h"

struct account *account_get(struct sched *s, const char *name)
{
    struct account *a = map_get_name(&s->accounts_by_name, name);
    if (a)
        return a;
    a = mem_new(sizeof *a);
    a->name = text_dup(name);
    a->index = s->account_count;
    a->weight = 1;
    a->stamp_us = INT64_MIN;
    ARRAY_ROOM(s->accounts, s->account_alloc, s->account_count + 1);
    s->accounts[s->account_count++] = a;
    map_put_name(&s->accounts_by_name, a->name, a);
    return a;
}

/* What a share of `ppm` adds up to in that time, each moment's part decayed to its end. */
static double held(uint64_t ppm, int64_t elapsed_us, int64_t half_life_us)
{
    double share = (double)ppm / PPM;
    double elapsed = (double)elapsed_us;
    if (half_life_us <= 0)
        return share * elapsed;
    double rate = M_LN2 / (double)half_life_us;
    return share * -expm1(-elapsed * rate) / rate;
}

void account_settle(const struct sched *s, struct account *a, int64_t now_us)
{
    if (a->stamp_us == INT64_MIN)
        a->stamp_us = now_us;
    int64_t elapsed = now_us - a->stamp_us;
    if (elapsed <= 0)
        return;
    a->used_card_us = charge_decay(a->used_card_us, elapsed, s->policy.half_life_us) +
                      held(a->running_ppm, elapsed, s->policy.half_life_us);
    a->stamp_us = now_us;
}

double account_key(const struct sched *s, const struct account *a)
{
    double soon = (double)a->running_ppm / PPM * (double)s->policy.advance_us;
    return (a->used_card_us + soon) / a->weight;
}

bool account_before(const struct account *a, const struct account *b)
{
    if (a->key < b->key || a->key > b->key)
        return a->key < b->key;
    if (a->first && b->first && a->first->order != b->first->order)
        return a->first->order < b->first->order;
    return a->index < b->index;
}

void sched_set_weight(struct sched *s, const char *account, double weight)
{
    account_get(s, account)->weight = weight > 0 ? weight : 1;
}

void sched_set_usage(struct sched *s, const char *account, double used_card_us, int64_t as_of_us)
{
    struct account *a = account_get(s, account);
    a->used_card_us = used_card_us > 0 ? used_card_us : 0;
    a->stamp_us = as_of_us;
}

static int by_turn(const void *a, const void *b)
{
    const struct account *x = *(struct account *const *)a;
    const struct account *y = *(struct account *const *)b;
    return account_before(x, y) ? -1 : account_before(y, x);
}

struct account **account_line(struct sched *s, int64_t now_us, size_t *ret_count)
{
    struct account **line = mem_new((s->account_count + 1) * sizeof(struct account *));
    size_t n = 0;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = s->accounts[i];
        account_settle(s, a, now_us);
        a->key = account_key(s, a);
        a->rank = 0;
        if (a->pending)
            line[n++] = a;
    }
    qsort(line, n, sizeof(struct account *), by_turn);
    for (size_t i = 0; i < n; i++)
        line[i]->rank = (uint32_t)i + 1;
    *ret_count = n;
    return line;
}

static struct sched_account facts(const struct account *a)
{
    return (struct sched_account){
        .name = a->name,
        .weight = a->weight,
        .used_card_us = a->used_card_us,
        .running_ppm = a->running_ppm,
        .running = a->running,
        .pending = a->pending,
        .rank = a->rank,
    };
}

void sched_each_account(struct sched *s, struct now now, sched_account_fn fn, void *arg)
{
    size_t count;
    free(account_line(s, now.boot_us, &count)); /* for the ranks */
    for (size_t i = 0; i < s->account_count; i++) {
        struct sched_account f = facts(s->accounts[i]);
        fn(&f, arg);
    }
}

bool sched_account(struct sched *s, const char *account, struct now now, struct sched_account *ret)
{
    size_t count;
    const struct account *a = map_get_name(&s->accounts_by_name, account);
    if (!a)
        return false;
    free(account_line(s, now.boot_us, &count)); /* for the ranks */
    *ret = facts(a);
    return true;
}
