#include "replay/figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void replay_figures_done(struct replay_figures *f)
{
    free(f->accounts);
    memset(f, 0, sizeof *f);
}

double replay_slowdown(int64_t completion_us, int64_t run_us)
{
    int64_t run = run_us > SLOWDOWN_RUN_US ? run_us : SLOWDOWN_RUN_US;
    double x = (double)completion_us / (double)run;
    return x > 1 ? x : 1;
}

/* All values of one kind, to be sorted. */
struct sample {
    double *list;
    size_t count;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double mean(const struct sample *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->list[i];
    return s->count ? sum / (double)s->count : 0;
}

/* The value that `part` of them do not exceed; sorted. */
static double quantile(const struct sample *s, double part)
{
    if (!s->count)
        return 0;
    size_t at = (size_t)(part * (double)s->count);
    return s->list[at < s->count ? at : s->count - 1];
}

static void sort(struct sample *s)
{
    if (s->count)
        qsort(s->list, s->count, sizeof *s->list, by_size);
}

static void add(struct sample *s, double x)
{
    s->list[s->count++] = x;
}

struct samples {
    struct sample wait, completion, slowdown;
};

static void samples_init(struct samples *s, size_t count)
{
    s->wait = (struct sample){ .list = mem_new((count + 1) * sizeof(double)) };
    s->completion = (struct sample){ .list = mem_new((count + 1) * sizeof(double)) };
    s->slowdown = (struct sample){ .list = mem_new((count + 1) * sizeof(double)) };
}

static void samples_done(struct samples *s)
{
    free(s->wait.list);
    free(s->completion.list);
    free(s->slowdown.list);
}

static void add_to_account(struct replay_account *a, double wait_s, double completion_s,
                           double slow, double card_hours)
{
    a->jobs++;
    a->wait_s += wait_s;
    a->completion_s += completion_s;
    a->slowdown += slow;
    a->card_hours += card_hours;
}

static void take_job(const struct trace_job *t, const struct replay_job *r, struct samples *s,
                     struct replay_figures *f)
{
    double wait = (double)(r->start_us - t->submit_us) / 1e6;
    double completion = (double)(r->end_us - t->submit_us) / 1e6;
    double slow = replay_slowdown(r->end_us - t->submit_us, t->run_us);
    double held = (double)r->held_us / 1e6;
    add(&s->wait, wait);
    add(&s->completion, completion);
    add(&s->slowdown, slow);
    add_to_account(&f->accounts[t->account], wait, completion, slow,
                   held * (double)r->share_ppm / PPM / 3600);
    f->compute += held * (double)r->compute_ppm / PPM;
    f->mem += held * (double)r->mem_ppm / PPM;
    f->cut_short += r->cut_short;
}

static void find_worst(struct replay_figures *f, size_t least_jobs)
{
    for (size_t i = 0; i < f->account_count; i++) {
        const struct replay_account *a = &f->accounts[i];
        if (a->jobs < least_jobs || (f->worst && a->slowdown <= f->worst_slowdown))
            continue;
        f->worst = a->name;
        f->worst_slowdown = a->slowdown;
    }
}

static void settle_accounts(struct replay_figures *f)
{
    double sum = 0, squares = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->account_count; i++) {
        struct replay_account *a = &f->accounts[i];
        if (!a->jobs)
            continue;
        a->wait_s /= (double)a->jobs;
        a->completion_s /= (double)a->jobs;
        a->slowdown /= (double)a->jobs;
        n++;
        sum += 1 / a->slowdown;
        squares += 1 / (a->slowdown * a->slowdown);
    }
    f->jain = n ? sum * sum / ((double)n * squares) : 0;
    find_worst(f, FIGURES_JOBS_MIN);
    if (!f->worst)
        find_worst(f, 1);
}

static void settle(struct samples *s, struct replay_figures *f)
{
    f->wait_mean_s = mean(&s->wait);
    f->completion_mean_s = mean(&s->completion);
    f->slowdown_mean = mean(&s->slowdown);
    sort(&s->wait);
    sort(&s->completion);
    sort(&s->slowdown);
    f->wait_p50_s = quantile(&s->wait, 0.5);
    f->wait_p95_s = quantile(&s->wait, 0.95);
    f->wait_max_s = quantile(&s->wait, 1);
    f->completion_p50_s = quantile(&s->completion, 0.5);
    f->completion_p95_s = quantile(&s->completion, 0.95);
    f->slowdown_p95 = quantile(&s->slowdown, 0.95);
}

void replay_figures(const struct trace *t, const struct replay_result *r,
                    struct replay_figures *ret)
{
    struct samples s;
    int64_t last = t->count ? t->jobs[0].submit_us : 0;
    int64_t first = last;
    *ret = (struct replay_figures){ .account_count = t->accounts.count, .never = r->never };
    ret->recuts = r->recuts;
    ret->preemptions = r->preemptions;
    ret->accounts = mem_new((t->accounts.count + 1) * sizeof *ret->accounts);
    for (size_t i = 0; i < t->accounts.count; i++)
        ret->accounts[i].name = t->accounts.words[i];
    samples_init(&s, t->count);
    for (size_t i = 0; i < t->count; i++) {
        if (r->jobs[i].end_us < 0)
            continue;
        take_job(&t->jobs[i], &r->jobs[i], &s, ret);
        last = r->jobs[i].end_us > last ? r->jobs[i].end_us : last;
    }
    ret->jobs = s.wait.count;
    ret->span_s = (double)(last - first) / 1e6;
    double room = ret->span_s * r->cards;
    ret->compute = room > 0 ? ret->compute / room : 0;
    ret->mem = room > 0 ? ret->mem / room : 0;
    settle(&s, ret);
    settle_accounts(ret);
    samples_done(&s);
}
