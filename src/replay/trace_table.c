#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "replay/trace.h"

#define COLUMNS_MAX 256

enum column {
    COL_ID,
    COL_USER,
    COL_ACCOUNT,
    COL_QOS,
    COL_GPUS,
    COL_SLICE,
    COL_MEM,
    COL_COMPUTE,
    COL_TRES,
    COL_MEMORY,
    COL_CPUS,
    COL_SUBMIT,
    COL_START,
    COL_END,
    COL_RUN,
    COL_LIMIT,
    COL_LIMIT_MINUTES,
    COL_ATTACHED,
    COLUMNS,
};

static const struct {
    const char *word;
    enum column column;
} names[] = {
    { "id", COL_ID },
    { "jobid", COL_ID },
    { "job_id", COL_ID },
    { "user", COL_USER },
    { "account", COL_ACCOUNT },
    { "vc", COL_ACCOUNT },
    { "group", COL_ACCOUNT },
    { "qos", COL_QOS },
    { "gpus", COL_GPUS },
    { "cards", COL_GPUS },
    { "slice", COL_SLICE },
    { "gpu_mem", COL_MEM },
    { "gpu_compute", COL_COMPUTE },
    { "memory", COL_MEMORY },
    { "cpus", COL_CPUS },
    { "alloctres", COL_TRES },
    { "reqtres", COL_TRES },
    { "submitted", COL_SUBMIT },
    { "submit", COL_SUBMIT },
    { "submit_time", COL_SUBMIT },
    { "started", COL_START },
    { "start", COL_START },
    { "ended", COL_END },
    { "end", COL_END },
    { "run", COL_RUN },
    { "duration", COL_RUN },
    { "elapsed", COL_RUN },
    { "elapsedraw", COL_RUN },
    { "limit", COL_LIMIT },
    { "timelimit", COL_LIMIT },
    { "timelimitraw", COL_LIMIT_MINUTES },
    { "attached", COL_ATTACHED },
};

struct table {
    const char *file;
    unsigned line;
    char between;
    int column_of[COLUMNS_MAX]; /* enum column, or -1 */
    bool has[COLUMNS];
    const char *cells[COLUMNS]; /* of this line; "" where there is none */
};

/* The next line, ended with NUL; NULL: no more. A quoted cell may go over lines. */
static char *next_line(char **at, char between, unsigned *line)
{
    char *begin = *at;
    bool quoted = false;
    if (!*begin)
        return NULL;
    for (char *p = begin;; p++) {
        if (*p == '"' && between == ',')
            quoted = !quoted;
        if (*p == '\n')
            ++*line;
        if (*p == '\0' || (*p == '\n' && !quoted)) {
            *at = *p ? p + 1 : p;
            if (p > begin && p[-1] == '\r')
                p--;
            *p = '\0';
            return begin;
        }
    }
}

/* The next cell, unquoted in place; NULL: no more in this line. */
static char *next_cell(char **at, char between)
{
    char *begin = *at, *to = begin, *p = begin;
    if (!begin)
        return NULL;
    bool quoted = between == ',' && *p == '"';
    for (p += quoted; *p && (quoted || *p != between); p++) {
        if (quoted && *p == '"' && *++p != '"') {
            quoted = false;
            p--;
            continue;
        }
        *to++ = *p;
    }
    *at = *p ? p + 1 : NULL;
    *to = '\0';
    return begin;
}

static int column_named(const char *word)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i].word, word) == 0)
            return (int)names[i].column;
    return -1;
}

static int read_names(struct table *t, char *line, struct err *e)
{
    size_t n = 0;
    for (char *cell; (cell = next_cell(&line, t->between)); n++) {
        if (n == COLUMNS_MAX)
            return err_set(e, -EINVAL, "%s:1: more than %d columns", t->file, COLUMNS_MAX);
        int column = column_named(cell);
        t->column_of[n] = column;
        if (column >= 0)
            t->has[column] = true;
    }
    for (; n < COLUMNS_MAX; n++)
        t->column_of[n] = -1;
    if (!t->has[COL_SUBMIT])
        return err_set(e, -EINVAL, "%s:1: no column 'submitted' (or submit, submit_time)", t->file);
    if (!t->has[COL_RUN] && !(t->has[COL_START] && t->has[COL_END]))
        return err_set(e, -EINVAL, "%s:1: neither a column 'run' nor 'started' and 'ended'",
                       t->file);
    return 0;
}

static void read_cells(struct table *t, char *line)
{
    size_t n = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        t->cells[i] = "";
    for (char *cell; (cell = next_cell(&line, t->between)); n++)
        if (n < COLUMNS_MAX && t->column_of[n] >= 0 && !t->cells[t->column_of[n]][0])
            t->cells[t->column_of[n]] = cell;
}

static int bad(const struct table *t, const char *what, const char *word, const char *wanted,
               struct err *e)
{
    return err_set(e, -EINVAL, "%s:%u: %s '%.40s' is no %s", t->file, t->line, what, word, wanted);
}

static bool not_told(const char *word)
{
    return !word[0] || strcmp(word, "Unknown") == 0 || strcmp(word, "None") == 0 ||
           strcmp(word, "-") == 0;
}

/* ---- what was asked -------------------------------------------------------- */

/* gres/gpu=2, gres/gpu:a100=2, gres/mig:2g.20gb=1: the most exact one counts. */
static void read_tres(const char *tres, struct request *r)
{
    auto_free char *words = text_dup(tres);
    char *save = NULL;
    *r = (struct request){ .kind = REQUEST_NOTHING };
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        char *count = strchr(w, '=');
        if (!count || !text_starts(w, "gres/"))
            continue;
        *count++ = '\0';
        const char *type = strchr(w, ':');
        if (type && strchr(type, 'g') && isdigit((unsigned char)type[1]) && strchr(type, '.'))
            (void)request_parse_slice(type + 1, r, NULL); /* else it stays what it was */
        else if (text_starts(w, "gres/gpu") && r->kind != REQUEST_SLICES)
            r->kind = REQUEST_CARDS;
        else
            continue;
        r->count = (uint32_t)strtoul(count, NULL, 10);
    }
}

static bool parse_cpus(const char *word, uint64_t *ret_milli)
{
    char *end;
    double n = strtod(word, &end);
    if (end == word || *end || !(n >= 0) || n * 1000 > JOB_CPU_MILLI_MAX)
        return false;
    *ret_milli = (uint64_t)(n * 1000 + 0.5);
    return true;
}

/* Of the whole job; what Slurm writes otherwise is not told. */
static void read_tres_machine(const char *tres, struct trace_job *job)
{
    auto_free char *words = text_dup(tres);
    char *save = NULL;
    uint64_t mem = 0, milli = 0;
    uint32_t tasks = request_tasks(&job->request);
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (text_starts(w, "cpu=") && !parse_cpus(w + 4, &milli))
            milli = 0;
        if (text_starts(w, "mem=") && text_parse_size(w + 4, "mem", &mem, NULL) < 0)
            mem = 0;
    }
    job->mem_bytes = mem / (tasks ? tasks : 1);
    job->cpu_milli = (uint32_t)(milli / (tasks ? tasks : 1));
}

static int read_machine(const struct table *t, struct trace_job *job, struct err *e)
{
    const char *memory = t->cells[COL_MEMORY], *cpus = t->cells[COL_CPUS];
    uint64_t milli = 0;
    if (t->has[COL_TRES]) {
        read_tres_machine(t->cells[COL_TRES], job);
        return 0;
    }
    if (memory[0] && text_parse_size(memory, "memory", &job->mem_bytes, NULL) < 0)
        return bad(t, "memory", memory, "size", e);
    if (cpus[0] && !parse_cpus(cpus, &milli))
        return bad(t, "cpus", cpus, "number", e);
    job->cpu_milli = (uint32_t)milli;
    return 0;
}

static int read_request(const struct table *t, struct request *r, struct err *e)
{
    uint64_t n = 1;
    *r = (struct request){ .kind = REQUEST_CARDS, .count = 1 };
    if (t->has[COL_TRES]) {
        read_tres(t->cells[COL_TRES], r);
        return 0;
    }
    if (t->cells[COL_SLICE][0]) {
        struct err why = ERR_INIT;
        if (request_parse_slice(t->cells[COL_SLICE], r, &why) < 0)
            return err_set(e, -EINVAL, "%s:%u: %.200s", t->file, t->line, why.text);
        return 0;
    }
    if (t->cells[COL_MEM][0] || t->cells[COL_COMPUTE][0]) {
        r->kind = REQUEST_NEED;
        if (t->cells[COL_MEM][0] &&
            text_parse_size(t->cells[COL_MEM], "gpu_mem", &r->mem_bytes, NULL) < 0)
            return bad(t, "gpu_mem", t->cells[COL_MEM], "size", e);
        if (t->cells[COL_COMPUTE][0] &&
            request_parse_fraction(t->cells[COL_COMPUTE], "gpu_compute", &r->compute_ppm, NULL) < 0)
            return bad(t, "gpu_compute", t->cells[COL_COMPUTE], "fraction", e);
        return 0;
    }
    if (t->cells[COL_GPUS][0] &&
        text_parse_u64(t->cells[COL_GPUS], 0, UINT32_MAX, "gpus", &n, NULL) < 0)
        return bad(t, "gpus", t->cells[COL_GPUS], "number", e);
    r->kind = n ? REQUEST_CARDS : REQUEST_NOTHING;
    r->count = (uint32_t)n;
    return 0;
}

/* ---- a line ---------------------------------------------------------------- */

static int read_times(const struct table *t, struct trace_job *job, struct err *e)
{
    const char *start = t->cells[COL_START], *end = t->cells[COL_END], *run = t->cells[COL_RUN];
    int64_t start_us = 0, end_us = 0;
    if (!trace_time(t->cells[COL_SUBMIT], &job->submit_us))
        return bad(t, "submitted", t->cells[COL_SUBMIT], "time", e);
    if (!not_told(start) && !trace_time(start, &start_us))
        return bad(t, "started", start, "time", e);
    if (!not_told(end) && !trace_time(end, &end_us))
        return bad(t, "ended", end, "time", e);
    job->wait_us = not_told(start) || start_us < job->submit_us ? -1 : start_us - job->submit_us;
    if (!not_told(start) && !not_told(end))
        job->run_us = end_us - start_us;
    else if (run[0] && !trace_duration(run, &job->run_us))
        return bad(t, "run", run, "duration", e);
    if (not_told(start) && t->has[COL_START])
        job->run_us = 0; /* cancelled before it ever ran */
    return 0;
}

static int read_limit(const struct table *t, struct trace_job *job, struct err *e)
{
    const char *minutes = t->cells[COL_LIMIT_MINUTES];
    if (!trace_duration(t->cells[COL_LIMIT], &job->limit_us))
        return bad(t, "limit", t->cells[COL_LIMIT], "duration", e);
    if (minutes[0] && isdigit((unsigned char)minutes[0]))
        job->limit_us = strtol(minutes, NULL, 10) * CLOCK_MINUTE;
    return 0;
}

static int read_attached(const struct table *t, struct trace_job *job, struct err *e)
{
    const char *word = t->cells[COL_ATTACHED];
    job->attached = strcmp(word, "yes") == 0;
    if (!job->attached && word[0] && strcmp(word, "no") != 0)
        return err_set(e, -EINVAL, "%s:%u: attached is yes or no, not '%.40s'", t->file, t->line,
                       word);
    return 0;
}

static bool is_step(const char *id)
{
    return strchr(id, '.') != NULL;
}

static int read_job(struct table *t, struct trace *trace, struct err *e)
{
    struct trace_job job = { .wait_us = -1, .qos = UINT32_MAX };
    const char *user = t->cells[COL_USER], *account = t->cells[COL_ACCOUNT];
    if (t->between == '|' && is_step(t->cells[COL_ID]))
        return 0;
    int r = read_request(t, &job.request, e);
    if (r >= 0)
        r = read_machine(t, &job, e);
    if (r >= 0)
        r = read_times(t, &job, e);
    if (r >= 0)
        r = read_limit(t, &job, e);
    if (r >= 0)
        r = read_attached(t, &job, e);
    if (r < 0)
        return r;
    if (job.request.kind == REQUEST_NOTHING)
        job.run_us = 0;                            /* takes no card: left out */
    job.id = strtoull(t->cells[COL_ID], NULL, 10); /* 0 where it is no number: its place */
    job.user = trace_name(&trace->users, user[0] ? user : "-");
    job.account = trace_name(&trace->accounts, account[0] ? account : user[0] ? user : "-");
    if (t->cells[COL_QOS][0])
        job.qos = trace_name(&trace->qos, t->cells[COL_QOS]);
    trace_add(trace, &job);
    return 0;
}

int trace_read_table(const char *file, char *text, char between, struct trace *t, struct err *e)
{
    auto_free struct table *table = mem_new(sizeof *table);
    unsigned next = 1;
    *table = (struct table){ .file = file, .line = 1, .between = between };
    char *line = next_line(&text, between, &next);
    int r = line ? read_names(table, line, e) : 0;
    for (table->line = next; r >= 0 && (line = next_line(&text, between, &next));
         table->line = next) {
        if (!line[strspn(line, " \t")])
            continue;
        read_cells(table, line);
        r = read_job(table, t, e);
    }
    return r;
}

/* ---- without names --------------------------------------------------------- */

static int read_numbers(const char *file, unsigned number, char *line, struct trace *t,
                        struct err *e)
{
    char *words[5], *save = NULL;
    size_t n = 0;
    struct trace_job job = { .wait_us = -1, .qos = UINT32_MAX };
    uint64_t cards;
    for (char *w = strtok_r(line, " \t", &save); w && n < 5; w = strtok_r(NULL, " \t", &save))
        words[n++] = w;
    if (n == 0)
        return 0;
    if (n != 4 || !trace_time(words[0], &job.submit_us) || !trace_duration(words[1], &job.run_us) ||
        text_parse_u64(words[2], 0, UINT32_MAX, "cards", &cards, NULL) < 0)
        return err_set(e, -EINVAL,
                       "%s:%u: not three numbers and an account: submit time and duration in "
                       "seconds, cards, account",
                       file, number);
    job.request = (struct request){ .kind = REQUEST_CARDS, .count = (uint32_t)cards };
    job.account = trace_name(&t->accounts, words[3]);
    job.user = trace_name(&t->users, words[3]);
    trace_add(t, &job);
    return 0;
}

int trace_read_plain(const char *file, char *text, struct trace *t, struct err *e)
{
    unsigned next = 1;
    int r = 0;
    for (unsigned number = 1; r >= 0; number = next) {
        char *line = next_line(&text, ' ', &next);
        if (!line)
            break;
        r = read_numbers(file, number, line, t, e);
    }
    return r;
}
