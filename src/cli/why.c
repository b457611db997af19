#include "cli/ids.h"
#include "cli/table.h"

static const char doc[] =
    "Why a job waits: who is ahead, who has the cards, and what would start it "
    "sooner.";

/* A sentence that goes on in the next line where the terminal ends. */
static void draw_line(const char *words, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    t.untitled = true;
    table_column(&t, "", TABLE_WRAP);
    table_cell(&t, words);
    table_draw(&t, s, ret);
}

static void draw(const struct why_view *v, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    AUTO(text) struct text sooner = TEXT_INIT;
    t.untitled = true;
    table_column(&t, "", 0);
    table_column(&t, "", 0);
    table_column(&t, "", TABLE_WRAP);
    draw_line(v->summary, s, ret);
    for (size_t i = 0; i < v->term_count; i++) {
        table_cell(&t, "");
        table_cell(&t, v->terms[i].what);
        table_cell(&t, v->terms[i].text);
    }
    table_draw(&t, s, ret);
    for (size_t i = 0; v->sooner && v->sooner[i]; i++)
        text_addf(&sooner, "%s%s", i ? ", or " : "  would start sooner with ", v->sooner[i]);
    if (sooner.len)
        draw_line(sooner.buf, s, ret);
}

static int tell(const struct session *s, struct client *c, uint64_t id, struct text *ret)
{
    struct err e = ERR_INIT;
    struct why_view v = { .id = 0 };
    if (client_why(c, id, &v, &e) < 0)
        return verb_fail(s, &e);
    int status = STATUS_OK;
    if (s->json)
        status = verb_print_json(v.json);
    else
        draw(&v, &s->screen, ret);
    why_view_done(&v);
    return status;
}

int verb_why(struct session *s, int argc, char **argv)
{
    return ids_each(s, argc, argv, "why", doc, tell);
}
