#include "config/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define MARK "#DIVVY"
#define SBATCH "#SBATCH"

struct reader {
    const char *file;
    const char *mark;
    unsigned line;
    const char *begin; /* of the line */
    const char *p;
    const char *end; /* of the line, without newline and carriage return */
    struct script_options *ret;
};

void script_options_done(struct script_options *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->argv[i]);
    free(o->argv);
    free(o->lines);
    *o = (struct script_options)SCRIPT_OPTIONS_INIT;
}

static int fail(const struct reader *r, const char *at, struct err *e, const char *sentence)
{
    return err_set(e, -EINVAL, "%s:%u:%zu: %s", r->file, r->line, (size_t)(at - r->begin) + 1,
                   sentence);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool expands(const struct reader *r)
{
    return *r->p == '$' || *r->p == '`';
}

static int fail_expansion(const struct reader *r, struct err *e)
{
    return fail(r, r->p, e,
                "variables and commands are not expanded in these lines; write the value itself, "
                "or 'single quotes' around a $ that is meant");
}

static int read_single(struct reader *r, struct text *word, struct err *e)
{
    const char *open = r->p++;
    const char *close = memchr(r->p, '\'', (size_t)(r->end - r->p));
    if (!close)
        return fail(r, open, e, "this quote is not closed in its line");
    text_addn(word, r->p, (size_t)(close - r->p));
    r->p = close + 1;
    return 0;
}

static int read_double(struct reader *r, struct text *word, struct err *e)
{
    const char *open = r->p++;
    while (r->p < r->end && *r->p != '"') {
        if (expands(r))
            return fail_expansion(r, e);
        if (*r->p == '\\' && r->p + 1 < r->end && strchr("\"\\$`", r->p[1]))
            r->p++;
        text_addn(word, r->p++, 1);
    }
    if (r->p == r->end)
        return fail(r, open, e, "this quote is not closed in its line");
    r->p++;
    return 0;
}

static int read_plain(struct reader *r, struct text *word, struct err *e)
{
    if (expands(r))
        return fail_expansion(r, e);
    if (*r->p == '\\' && ++r->p == r->end)
        return fail(r, r->p - 1, e,
                    "such a line does not go on in the next one; begin that in the same way");
    text_addn(word, r->p++, 1);
    return 0;
}

static int read_word(struct reader *r, struct err *e)
{
    AUTO(text) struct text word = TEXT_INIT;
    const char *begin = r->p;
    while (r->p < r->end && !is_blank(*r->p)) {
        int rc = *r->p == '\''  ? read_single(r, &word, e)
                 : *r->p == '"' ? read_double(r, &word, e)
                                : read_plain(r, &word, e);
        if (rc < 0)
            return rc;
    }
    struct script_options *o = r->ret;
    if (o->count == SCRIPT_WORDS_MAX)
        return fail(r, begin, e, "more options than anybody means (1024 words)");
    ARRAY_ROOM(o->argv, o->alloc, o->count + 2);
    ARRAY_ROOM(o->lines, o->lines_alloc, o->count + 1);
    o->lines[o->count] = r->line;
    o->argv[o->count++] = text_take(&word);
    o->argv[o->count] = NULL;
    return 0;
}

static int read_line(struct reader *r, struct err *e)
{
    for (;;) {
        while (r->p < r->end && is_blank(*r->p))
            r->p++;
        if (r->p == r->end || *r->p == '#')
            return 0;
        int rc = read_word(r, e);
        if (rc < 0)
            return rc;
    }
}

static bool is_directive(const struct reader *r)
{
    size_t mark = strlen(r->mark);
    size_t len = (size_t)(r->end - r->begin);
    return len >= mark && memcmp(r->begin, r->mark, mark) == 0 &&
           (len == mark || is_blank(r->begin[mark]));
}

static bool is_comment_or_empty(const struct reader *r)
{
    const char *p = r->begin;
    while (p < r->end && is_blank(*p))
        p++;
    return p == r->end || *p == '#';
}

static int read_script(const char *file, const char *mark, const char *text, const char *end,
                       struct script_options *ret, struct err *e)
{
    struct reader r = { .file = file, .mark = mark, .ret = ret };
    bool code = false;
    ret->interpreter = end - text >= 2 && text[0] == '#' && text[1] == '!';
    while (text < end && !ret->late_line) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        r.line++;
        r.begin = text;
        r.end = newline ? newline : end;
        text = newline ? newline + 1 : end;
        if (r.end > r.begin && r.end[-1] == '\r')
            r.end--;
        if (!is_comment_or_empty(&r))
            code = true;
        if (!is_directive(&r))
            continue;
        if (code) {
            ret->late_line = r.line;
            continue;
        }
        r.p = r.begin + strlen(mark);
        int rc = read_line(&r, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int parse_marked(const char *file, const char *mark, const char *text, size_t len,
                        struct script_options *ret, struct err *e)
{
    if (len > SCRIPT_BYTES_MAX)
        return err_set(e, -EFBIG, "%s: larger than %u KiB; a script this long is no job script",
                       file, SCRIPT_BYTES_MAX / 1024);
    if (memchr(text, '\0', len))
        return err_set(e, -EINVAL,
                       "%s: has a NUL byte and so is no script; to run a program write: divvy "
                       "submit -- %s",
                       file, file);
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    int rc = read_script(file, mark, text, text + len, &o, e);
    if (rc < 0)
        return rc;
    *ret = o;
    o = (struct script_options)SCRIPT_OPTIONS_INIT;
    return 0;
}

int script_parse(const char *file, const char *text, size_t len, struct script_options *ret,
                 struct err *e)
{
    return parse_marked(file, MARK, text, len, ret, e);
}

int script_parse_sbatch(const char *file, const char *text, size_t len, struct script_options *ret,
                        struct err *e)
{
    return parse_marked(file, SBATCH, text, len, ret, e);
}

int script_words(const char *file, unsigned line, const char *text, size_t len,
                 struct script_options *ret, struct err *e)
{
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    struct reader r = { .file = file, .line = line, .begin = text, .p = text, .ret = &o };
    r.end = text + len - (len && text[len - 1] == '\r');
    if (memchr(text, '\0', len))
        return fail(&r, text, e, "this line has a NUL byte in it");
    int rc = read_line(&r, e);
    if (rc < 0)
        return rc;
    *ret = o;
    o = (struct script_options)SCRIPT_OPTIONS_INIT;
    return 0;
}
