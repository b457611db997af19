#include "model/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/address.h"
#include "model/array.h"
#include "model/depend.h"

#define NO (-1)
#define BY_VERDICT (-2)

/* Rows: state; columns: event. The table of ARCHITECTURE.md. */
static const int next_state[JOB_STATES][JOB_EVENTS] = {
    /*                  PLACE          READY         UNREADY      STARTED      STOP        EXITED      VANISHED    CLEARED     REQUEUE      DROP */
    [JOB_PENDING] = { JOB_PREPARING, NO, NO, NO, NO, NO, NO, NO, NO, BY_VERDICT },
    [JOB_PREPARING] = { NO, JOB_STARTING, JOB_PENDING, NO, NO, NO, NO, NO, NO, BY_VERDICT },
    [JOB_STARTING] = { NO, NO, NO, JOB_RUNNING, JOB_ENDING, JOB_ENDING, JOB_ENDING, NO, NO, NO },
    [JOB_RUNNING] = { NO, NO, NO, NO, JOB_ENDING, JOB_ENDING, JOB_ENDING, NO, NO, NO },
    [JOB_ENDING] = { NO, NO, NO, NO, NO, NO, NO, BY_VERDICT, JOB_PENDING, NO },
    [JOB_COMPLETED... JOB_LOST] = { NO, NO, NO, NO, NO, NO, NO, NO, NO, NO },
};

bool job_state_ended(enum job_state s)
{
    return s >= JOB_COMPLETED && s < JOB_STATES;
}

int job_next_state(enum job_state from, enum job_event ev, enum job_state verdict,
                   enum job_state *ret, struct err *e)
{
    int to = next_state[from][ev];
    if (to == BY_VERDICT && job_state_ended(verdict))
        to = (int)verdict;
    if (to < 0)
        return err_set(e, -EINVAL, "a job that is %s cannot be %s", job_state_word(from),
                       job_event_word(ev));
    *ret = (enum job_state)to;
    return 0;
}

static const char *const state_words[JOB_STATES] = {
    "pending", "preparing", "starting", "running", "ending",    "completed",
    "failed",  "cancelled", "timeout",  "oom",     "preempted", "lost",
};

static const char *const event_words[JOB_EVENTS] = {
    "placed", "readied",        "unreadied", "started",  "stopped",
    "exited", "found vanished", "cleared",   "requeued", "dropped",
};

static const char *const exit_words[] = {
    "none",      "exited",      "signaled", "oom",         "timeout",
    "cancelled", "not started", "lost",     "interrupted",
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int find_word(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return (int)i;
    return -EINVAL;
}

const char *job_state_word(enum job_state s)
{
    return state_words[s];
}

const char *job_event_word(enum job_event ev)
{
    return event_words[ev];
}

int job_state_parse(const char *word, enum job_state *ret)
{
    int i = find_word(word, state_words, COUNT(state_words));
    if (i < 0)
        return i;
    *ret = (enum job_state)i;
    return 0;
}

static const char *const hold_words[] = { "", "user", "operator" };

const char *job_hold_word(enum job_hold h)
{
    return hold_words[h];
}

int job_hold_parse(const char *word, enum job_hold *ret)
{
    int i = find_word(word, hold_words, COUNT(hold_words));
    if (i < 0)
        return i;
    *ret = (enum job_hold)i;
    return 0;
}

const char *exit_kind_word(enum exit_kind k)
{
    return exit_words[k];
}

int exit_kind_parse(const char *word, enum exit_kind *ret)
{
    int i = find_word(word, exit_words, COUNT(exit_words));
    if (i < 0)
        return i;
    *ret = (enum exit_kind)i;
    return 0;
}

/* As the shell and timeout(1) do; 125 to 127 as docker and env(1) do. */
int job_exit_status(const struct job_exit *x)
{
    switch (x->kind) {
    case EXIT_CODE:
        return x->value;
    case EXIT_SIGNAL:
        return 128 + x->value;
    case EXIT_OOM:
        return 137;
    case EXIT_TIMEOUT:
        return 124;
    case EXIT_CANCELLED:
        return 130;
    case EXIT_NOT_STARTED:
        return x->value ? x->value : 126;
    case EXIT_NONE:
    case EXIT_LOST:
    case EXIT_INTERRUPTED:
        break;
    }
    return 125;
}

enum job_state job_exit_verdict(const struct job_exit *x)
{
    static const enum job_state by_kind[] = {
        [EXIT_NONE] = JOB_LOST,          [EXIT_CODE] = JOB_FAILED,
        [EXIT_SIGNAL] = JOB_FAILED,      [EXIT_OOM] = JOB_OOM,
        [EXIT_TIMEOUT] = JOB_TIMEOUT,    [EXIT_CANCELLED] = JOB_CANCELLED,
        [EXIT_NOT_STARTED] = JOB_FAILED, [EXIT_LOST] = JOB_LOST,
        [EXIT_INTERRUPTED] = JOB_LOST,
    };
    return x->kind == EXIT_CODE && x->value == 0 ? JOB_COMPLETED : by_kind[x->kind];
}

void place_done(struct place *p)
{
    free(p->items);
    *p = (struct place){ .items = NULL };
}

void place_copy(const struct place *p, struct place *ret)
{
    *ret = (struct place){ .items = mem_dup(p->items, p->count * sizeof *p->items),
                           .count = p->count,
                           .alloc = p->count };
}

struct placed *place_add(struct place *p)
{
    ARRAY_ROOM(p->items, p->alloc, p->count + 1);
    struct placed *item = &p->items[p->count++];
    memset(item, 0, sizeof *item);
    item->gi = item->ci = NOT_AN_INSTANCE;
    return item;
}

void place_add_text(struct text *t, const struct place *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct placed *item = &p->items[i];
        if (i)
            text_add(t, ", ");
        if (item->whole)
            text_addf(t, "gpu%u", item->ordinal);
        else
            address_add_place(t, item->ordinal, item->profile, item->start);
    }
}

void strv_free(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

size_t strv_count(char *const *v)
{
    size_t n = 0;
    while (v && v[n])
        n++;
    return n;
}

char **strv_copy(char *const *v)
{
    size_t n = strv_count(v);
    char **copy = mem_new((n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = text_dup(v[i]);
    return copy;
}

void strv_add(char ***v, const char *s)
{
    size_t n = strv_count(*v);
    char **grown = mem_new((n + 2) * sizeof *grown);
    if (n)
        memcpy(grown, *v, n * sizeof *grown);
    grown[n] = text_dup(s);
    free(*v);
    *v = grown;
}

int job_tells(const struct job_spec *s)
{
    return (s->on_start ? JOB_TELLS_START : 0) | (s->on_end ? JOB_TELLS_END : 0);
}

void job_spec_done(struct job_spec *s)
{
    free(s->on_start);
    free(s->on_end);
    free(s->name);
    free(s->account);
    free(s->qos);
    strv_free(s->argv);
    strv_free(s->env);
    free(s->cwd);
    free(s->output);
    free(s->error);
    free(s->submit_dir);
    free(s->script);
    free(s->array);
    free(s->dependency);
    job_container_done(&s->container);
    memset(s, 0, sizeof *s);
}

char *job_output_path(const char *output, uint64_t id, uint32_t task)
{
    struct text t = TEXT_INIT;
    if (!output)
        return NULL;
    for (const char *p = output; *p; p++) {
        if (p[0] == '%' && p[1] == 'j')
            text_addf(&t, "%" PRIu64, id);
        else if (p[0] == '%' && p[1] == 't')
            text_addf(&t, "%u", task);
        else
            text_addn(&t, p, 1);
        if (p[0] == '%' && p[1] && strchr("jt%", p[1]))
            p++;
    }
    return text_take(&t);
}

bool job_output_by_task(const char *output)
{
    for (const char *p = output; p && *p; p++) {
        if (p[0] == '%' && p[1] == 't')
            return true;
        if (p[0] == '%' && p[1] == '%')
            p++;
    }
    return false;
}

static size_t strv_bytes(char *const *v)
{
    size_t bytes = 0;
    for (size_t i = 0; v && v[i]; i++)
        bytes += strlen(v[i]) + 1;
    return bytes;
}

static int check_label(const char *s, size_t max, const char *what, struct err *e)
{
    if (!s || !s[0])
        return err_set(e, -EINVAL, "%s is missing", what);
    if (strlen(s) > max)
        return err_set(e, -E2BIG, "%s has %zu bytes, at most %zu work", what, strlen(s), max);
    if (!text_is_printable(s))
        return err_set(e, -EINVAL, "%s has characters that are no printable UTF-8", what);
    return 0;
}

/* JSON holds UTF-8 alone, and half a name would name another file. */
static int check_utf8(const struct job_spec *s, struct err *e)
{
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        if (!text_is_utf8(s->argv[i]))
            return err_set(e, -EINVAL, "the command has an argument that is no UTF-8: %s",
                           s->argv[i]);
    for (size_t i = 0; s->env && s->env[i]; i++)
        if (!text_is_utf8(s->env[i]))
            return err_set(e, -EINVAL,
                           "the environment has a variable that is no UTF-8: %.256s; unset it, or "
                           "--env none leaves all out",
                           s->env[i]);
    if (!text_is_utf8(s->cwd))
        return err_set(e, -EINVAL, "the working directory's name is no UTF-8: %s", s->cwd);
    if (s->output && !text_is_utf8(s->output))
        return err_set(e, -EINVAL, "the output file's name is no UTF-8: %s", s->output);
    if ((s->error && !text_is_utf8(s->error)) || (s->submit_dir && !text_is_utf8(s->submit_dir)))
        return err_set(e, -EINVAL, "the error file's or the folder's name is no UTF-8");
    if (s->script && !text_is_utf8(s->script))
        return err_set(e, -EINVAL, "the script is no UTF-8");
    return 0;
}

static int check_tell(const char *command, const char *option, struct err *e)
{
    if (!command)
        return 0;
    if (!command[0] || strlen(command) > JOB_TELL_MAX)
        return err_set(e, -EINVAL, "%s: a command of 1 to %d bytes works", option, JOB_TELL_MAX);
    return text_is_utf8(command) ? 0 : err_set(e, -EINVAL, "%s: the command is no UTF-8", option);
}

/* When it may start: what does not need to know what time it is. */
static int check_order(const struct job_spec *s, struct err *e)
{
    AUTO(job_array) struct job_array array = { .indices = NULL };
    AUTO(depend_list) struct depend_list depend = { .items = NULL };
    int r = s->array ? job_array_parse(s->array, &array, e) : 0;
    if (r == 0 && s->array && s->attached)
        r = err_set(e, -EINVAL, "an array has many tasks and nobody can attach to all; use submit");
    if (r == 0 && s->dependency)
        r = depend_parse(s->dependency, &depend, e);
    if (r == 0 && s->no_requeue && s->requeue_on_fault)
        r = err_set(e, -EINVAL,
                    "--requeue-on-fault and --no-requeue say the opposite; leave one out");
    if (r < 0 || !s->deadline_wall_us)
        return r;
    if (s->limit_us > s->deadline_wall_us - s->begin_wall_us)
        return err_set(e, -EINVAL,
                       "--deadline: a job that begins at --begin and may run as long as --time "
                       "says ends later");
    return 0;
}

/* What srun starts beside the script, the script's container would have to let out. */
static int check_srun(const struct job_spec *s, struct err *e)
{
    if (s->srun_tasks && s->container.image && request_tasks(&s->request) > 1)
        return err_set(e, -EINVAL,
                       "a script in a container runs once and has no srun; several slices go with "
                       "a command behind --, which runs once for each");
    if (s->error && !s->output)
        return err_set(e, -EINVAL, "an error file goes with an output file");
    return 0;
}

int job_spec_check(const struct job_spec *s, struct err *e)
{
    int r = check_label(s->name, JOB_NAME_MAX, "the job's name", e);
    if (r == 0)
        r = check_label(s->account, JOB_ACCOUNT_MAX, "the account's name", e);
    if (r == 0 && s->qos)
        r = check_label(s->qos, JOB_QOS_MAX, "the class's name", e);
    if (r == 0)
        r = check_srun(s, e);
    if (r < 0)
        return r;
    if (!strv_count(s->argv) || !s->argv[0][0])
        return err_set(e, -EINVAL,
                       "there is no command; put it after --, as in: divvy submit -- ./train.sh");
    if (strv_count(s->argv) > JOB_ARGS_MAX || strv_bytes(s->argv) > JOB_COMMAND_MAX)
        return err_set(e, -E2BIG, "the command is too long, %d arguments and %d bytes work",
                       JOB_ARGS_MAX, JOB_COMMAND_MAX);
    if (strv_bytes(s->env) > JOB_ENV_MAX)
        return err_set(e, -E2BIG,
                       "the environment has %zu bytes, at most %d work; --env none leaves it out",
                       strv_bytes(s->env), JOB_ENV_MAX);
    if (!s->cwd || s->cwd[0] != '/')
        return err_set(e, -EINVAL, "the working directory must be an absolute path");
    if (s->limit_us < 0)
        return err_set(e, -EINVAL, "the time limit is negative");
    r = check_utf8(s, e);
    if (r == 0 && s->mem_bytes && s->mem_bytes < JOB_MEM_MIN)
        return err_set(e, -EINVAL, "a limit of less than 1M of memory leaves no room to start");
    if (r == 0 && s->limit_us)
        r = job_warning_check(&s->warning, s->limit_us, e);
    if (r == 0)
        r = check_order(s, e);
    if (r == 0)
        r = job_container_check(&s->container, e);
    if (r == 0)
        r = check_tell(s->on_start, "--on-start", e);
    if (r == 0)
        r = check_tell(s->on_end, "--on-end", e);
    return r < 0 ? r : request_check(&s->request, e);
}
