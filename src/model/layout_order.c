#include "model/layout_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const outcome_words[] = { "open",   "done",     "partly",
                                             "in use", "no reset", "refused",
                                             "failed", "stopped",  "needs reboot" };

void layout_order_done(struct layout_order *o)
{
    free(o->text);
    free(o->file);
    free(o->label);
    free(o->make);
    free(o->unmake);
    *o = (struct layout_order)LAYOUT_ORDER_INIT;
}

json_t *layout_order_to_json(const struct layout_order *o)
{
    json_t *j = json_object();
    json_put_text(j, "text", o->text);
    json_put_text(j, "file", o->file);
    json_put_text(j, "label", o->label);
    json_put_text(j, "make", o->make);
    json_put_text(j, "unmake", o->unmake);
    json_put_bool(j, "wait", o->wait);
    json_put_bool(j, "agreed", o->agreed);
    json_put_bool(j, "move_idle", o->move_idle);
    return j;
}

static char *take(struct fields *f, const char *key, size_t max)
{
    return text_dup(fields_text(f, key, FIELD_OPTIONAL, max));
}

int layout_order_from_json(json_t *j, struct layout_order *ret, struct err *e)
{
    struct fields f;
    AUTO(layout_order) struct layout_order o = LAYOUT_ORDER_INIT;
    fields_open(&f, j, "the layout", e);
    o.text = take(&f, "text", LAYOUT_TEXT_MAX);
    o.file = take(&f, "file", 4096);
    o.label = take(&f, "label", 256);
    o.make = take(&f, "make", 128);
    o.unmake = take(&f, "unmake", 128);
    o.wait = fields_bool(&f, "wait", false);
    o.agreed = fields_bool(&f, "agreed", false);
    o.move_idle = fields_bool(&f, "move_idle", false);
    int r = fields_close(&f, FIELDS_STRICT);
    if (r < 0)
        return r;
    if (!!o.text + !!o.make + !!o.unmake != 1)
        return err_set(e, -EINVAL,
                       "the layout: say one of 'text' (a layout file), 'make' and 'unmake' (a "
                       "slice)");
    *ret = o;
    o = (struct layout_order)LAYOUT_ORDER_INIT;
    return 0;
}

const char *layout_outcome_word(enum layout_outcome o)
{
    return outcome_words[o];
}

int layout_outcome_parse(const char *word, enum layout_outcome *ret, struct err *e)
{
    for (size_t i = 0; i < sizeof outcome_words / sizeof *outcome_words; i++)
        if (strcmp(word, outcome_words[i]) == 0) {
            *ret = (enum layout_outcome)i;
            return 0;
        }
    return err_set(e, -EINVAL, "'%.32s' is no end of a layout change", word);
}
