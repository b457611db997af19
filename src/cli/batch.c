#include "cli/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "config/script.h"

#define BATCH_BYTES_MAX (64u * 1024u * 1024u)

struct batch {
    const struct session *session;
    const struct submission *all; /* options of the command line: for every job */
    const char *name;             /* of the file, in messages */
    const char *text, *end;
    unsigned line;                  /* of the next line, from 1 */
    unsigned queued_line;           /* up to here all are queued; 0: none is */
    unsigned open_line, open_until; /* of these nobody knows; 0: there are none */
    bool told;                      /* what is left out of everybody's environment */
};

/* What stands in a line: options, and behind "--" a command; or a command alone. */
static int read_words(const struct batch *b, unsigned line, const struct script_options *words,
                      struct job_options *ret, char ***ret_command, struct err *e)
{
    size_t n = 0;
    while (n < words->count && strcmp(words->argv[n], "--") != 0)
        n++;
    bool marked = n < words->count;
    if (!marked && words->argv[0][0] == '-')
        return err_set(e, -EINVAL,
                       "%s:%u: where the command begins is not clear; put -- in front of it, as in "
                       "--time 2h -- ./train.sh",
                       b->name, line);
    if (marked && n + 1 == words->count)
        return err_set(e, -EINVAL, "%s:%u: there is no command behind --", b->name, line);
    *ret_command = words->argv + (marked ? n + 1 : 0);
    return marked ? job_option_words(b->name, words->argv, words->lines, n, ret, e) : 0;
}

/* One line: 1 with a job for job_spec_done; 0: an empty one, or a comment. */
static int read_line(struct batch *b, unsigned line, const char *text, size_t len,
                     struct job_spec *ret, struct err *e)
{
    AUTO(script_options) struct script_options words = SCRIPT_OPTIONS_INIT;
    AUTO(job_options) struct job_options options = JOB_OPTIONS_INIT;
    struct submission one = { .quoted = true, .quiet = b->told };
    int r = script_words(b->name, line, text, len, &words, e);
    if (r < 0 || !words.count)
        return r;
    r = read_words(b, line, &words, &options, &one.command, e);
    if (r < 0)
        return r;
    one.options = options;
    job_options_merge(&one.options, &b->all->options);
    r = submission_make(b->session, &one, ret, e);
    if (r < 0 && !strstr(e->text, b->name)) /* an option's own place is told already */
        return err_wrap(e, r, "%s:%u", b->name, line);
    b->told = true;
    return r < 0 ? r : 1;
}

/* The next job: 1, with its line; 0: that was all. */
static int next_job(struct batch *b, struct job_spec *ret, unsigned *ret_line, struct err *e)
{
    while (b->text < b->end) {
        const char *newline = memchr(b->text, '\n', (size_t)(b->end - b->text));
        const char *end = newline ? newline : b->end;
        const char *begin = b->text;
        *ret_line = b->line++;
        b->text = newline ? newline + 1 : b->end;
        int r = read_line(b, *ret_line, begin, (size_t)(end - begin), ret, e);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Every line, before the first is sent: nothing is queued of a file with a slip in it. */
static int check_all(struct batch *b, size_t *ret_jobs, struct err *e)
{
    const char *begin = b->text;
    unsigned line = 0;
    int r = 1;
    *ret_jobs = 0;
    while (r > 0) {
        AUTO(job_spec) struct job_spec spec = { .name = NULL };
        r = next_job(b, &spec, &line, e);
        *ret_jobs += r > 0;
    }
    b->text = begin;
    b->line = 1;
    return r;
}

/* Jobs of one request. */
struct load {
    struct job_spec specs[JOB_MANY_MAX];
    unsigned lines[JOB_MANY_MAX];
    uint64_t ids[JOB_MANY_MAX];
    size_t count;
};

static void empty(struct load *l)
{
    for (size_t i = 0; i < l->count; i++)
        job_spec_done(&l->specs[i]);
    l->count = 0;
}

/* The answer was lost, not the request: it may have been done. */
static bool is_open(const struct load *l, size_t refused, int r)
{
    return refused == l->count && (r == -EREMOTEIO || r == -EINTR);
}

static int send_load(struct batch *b, struct client *c, struct load *l, json_t *ids, struct err *e)
{
    size_t taken = 0;
    size_t refused = 0;
    int r = client_submit_many(c, l->specs, l->count, l->ids, &taken, &refused, e);
    for (size_t i = 0; i < taken; i++)
        (void)json_array_append_new(ids, json_integer((json_int_t)l->ids[i])); /* or no memory */
    if (taken)
        b->queued_line = l->lines[taken - 1];
    if (r < 0 && is_open(l, refused, r)) {
        b->open_line = l->lines[0];
        b->open_until = l->lines[l->count - 1];
    }
    if (r < 0 && refused < l->count)
        r = err_wrap(e, r, "%s:%u", b->name, l->lines[refused]);
    empty(l);
    return r;
}

static int send_all(struct batch *b, struct client *c, json_t *ids, struct err *e)
{
    auto_free struct load *l = mem_new(sizeof *l);
    int r = 1;
    while (r > 0) {
        r = next_job(b, &l->specs[l->count], &l->lines[l->count], e);
        l->count += r > 0;
        if (l->count == JOB_MANY_MAX || (r == 0 && l->count)) {
            int sent = send_load(b, c, l, ids, e);
            r = sent < 0 ? sent : r;
        }
    }
    empty(l);
    return r;
}

static int print_ids(const struct session *s, json_t *ids)
{
    AUTO(text) struct text t = TEXT_INIT;
    size_t i;
    json_t *id;
    if (s->json) {
        auto_json json_t *j = json_object();
        json_put(j, "ids", json_incref(ids));
        return verb_print_json(j);
    }
    json_array_foreach(ids, i, id)
        text_addf(&t, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(id));
    return verb_print(&t);
}

/* Which lines are in, where not all of them are. */
static void tell_rest(const struct batch *b, size_t queued, size_t jobs)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (queued)
        text_addf(&t, "%zu job%s of %s %s queued, up to line %u", queued, queued == 1 ? "" : "s",
                  b->name, queued == 1 ? "is" : "are", b->queued_line);
    if (b->open_line)
        text_addf(
            &t,
            "%s of the jobs of lines %u to %u%s%s all are queued or none is, and which is not "
            "known; what follows them is not queued",
            queued ? ";" : "", b->open_line, b->open_until, queued ? "" : " of ",
            queued ? "" : b->name);
    else if (queued)
        text_addf(&t, ", and %zu %s not", jobs - queued, jobs - queued == 1 ? "is" : "are");
    if (t.len)
        verb_note("%s:", t.buf);
}

static int send_file(const struct session *s, struct batch *b)
{
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    size_t jobs = 0;
    auto_json json_t *ids = json_array();
    if (check_all(b, &jobs, &e) < 0)
        return verb_usage(s, "%s", e.text);
    if (!jobs)
        return verb_usage(s,
                          "%s: there is no job in it; each line is one, as in --time 2h -- "
                          "./train.sh 1",
                          b->name);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    int r = send_all(b, c, ids, &e);
    int printed = print_ids(s, ids);
    if (r == 0)
        return printed;
    tell_rest(b, json_array_size(ids), jobs);
    return verb_fail(s, &e);
}

/* Asked of the whole text: that a name is looked up in vain does no harm. */
static bool names_caller(const struct batch *b)
{
    const char *output = b->all->options.values[OPT_OUTPUT].words;
    const char *error = b->all->options.values[OPT_ERROR].words;
    return strstr(b->text, "%u") || (output && strstr(output, "%u")) ||
           (error && strstr(error, "%u"));
}

int batch_submit(const struct session *s, const char *file, const struct submission *all)
{
    auto_free char *text = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;
    bool in = strcmp(file, "-") == 0;
    if (in && !s->caller_name)
        return s->hand_over(s); /* what is read here cannot be read again there */
    int r = file_read(AT_FDCWD, in ? "/dev/stdin" : file, BATCH_BYTES_MAX, &text, &len, &e);
    struct batch b = { .session = s, .all = all, .name = in ? "standard input" : file, .line = 1 };
    if (r == -EFBIG)
        return verb_usage(s, "%.200s has more than 64 MiB; submit it in parts", b.name);
    if (r < 0)
        return verb_usage(s, "cannot read %.200s: %s", b.name, strerror(-r));
    b.text = text;
    b.end = text + len;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        b.text += 3; /* the mark that editors of Windows begin a file with */
    if (!s->caller_name && names_caller(&b))
        return s->hand_over(s);
    return send_file(s, &b);
}
