#include "cli/period.h"

#include "cli/verb.h"
#include "model/ledger.h"

static void must(int r, const struct err *e)
{
    if (r < 0)
        verb_refuse("%s", e->text);
}

bool period_parse(int key, const char *arg, struct period *p)
{
    struct err e = ERR_INIT;
    if (key != 'm' && key != 'f' && key != 't')
        return false;
    *(key == 'm' ? &p->by_month : &p->by_day) = true;
    if (p->by_month && p->by_day)
        verb_refuse("--month says all; leave --from and --to out");
    if (key == 'm')
        must(month_parse(arg, &p->from_day, &p->to_day, &e), &e);
    if (key == 'f')
        must(day_parse(arg, "--from", &p->from_day, &e), &e);
    if (key == 't') {
        must(day_parse(arg, "--to", &p->to_day, &e), &e);
        p->to_day = day_next(p->to_day);
    }
    return true;
}

bool period_settle(struct period *p, int32_t from_day, int32_t to_day)
{
    if (!p->from_day)
        p->from_day = from_day;
    if (!p->to_day)
        p->to_day = to_day;
    return p->to_day > p->from_day;
}
