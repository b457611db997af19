#include "cli/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/moment.h"
#include "model/job_json.h"

/* ---- the request ---- */

/* Says where an option stood, when that was in a script. */
static int wrong(const struct job_option_value *v, int r, struct err *e)
{
    if (r < 0 && v->file)
        return err_wrap(e, r, "%s:%u", v->file, v->line);
    return r;
}

static int one_kind_only(const struct job_options *o, struct err *e)
{
    bool need = o->values[OPT_GPU_MEM].words || o->values[OPT_GPU_COMPUTE].words;
    const char *slice = o->values[OPT_SLICE].words;
    const char *gpus = o->values[OPT_GPUS].words;
    if (gpus && slice)
        return err_set(e, -EINVAL,
                       "--gpus asks for whole cards and --slice for parts of cards; a job has one "
                       "or the other");
    if (gpus && need)
        return err_set(e, -EINVAL,
                       "--gpus asks for whole cards; --gpu-mem and --gpu-compute choose something "
                       "smaller, so leave one out");
    if (slice && need)
        return err_set(
            e, -EINVAL,
            "--slice names a profile already; --gpu-mem and --gpu-compute choose one, so "
            "leave one out");
    return 0;
}

static int read_kind(const struct job_options *o, struct request *r, struct err *e)
{
    const struct job_option_value *v = &o->values[OPT_GPUS];
    uint64_t n = 0;
    if (v->words) {
        int code = text_parse_u64(v->words, 1, REQUEST_TASKS_MAX, "--gpus", &n, e);
        r->kind = REQUEST_CARDS;
        r->count = (uint32_t)n;
        return wrong(v, code, e);
    }
    v = &o->values[OPT_SLICE];
    if (v->words)
        return wrong(v, request_parse_slice(v->words, r, e), e);
    v = &o->values[OPT_GPU_MEM];
    if (v->words) {
        r->kind = REQUEST_NEED;
        int code = wrong(v, text_parse_size(v->words, "--gpu-mem", &r->mem_bytes, e), e);
        if (code < 0)
            return code;
        if (!r->mem_bytes)
            return wrong(v, err_set(e, -EINVAL, "--gpu-mem: 0 is no need; leave it out"), e);
        if (r->mem_bytes < UINT64_C(1) << 20) /* "18" meant 18G */
            return wrong(v,
                         err_set(e, -EINVAL,
                                 "--gpu-mem: '%.32s' is less than 1M; say the unit, as in 18G",
                                 v->words),
                         e);
    }
    v = &o->values[OPT_GPU_COMPUTE];
    if (v->words) {
        r->kind = REQUEST_NEED;
        return wrong(v, request_parse_fraction(v->words, "--gpu-compute", &r->compute_ppm, e), e);
    }
    return 0;
}

static int read_tasks(const struct job_options *o, struct request *r, struct err *e)
{
    const struct job_option_value *v = &o->values[OPT_TASKS];
    uint64_t n = 0;
    if (!v->words)
        return 0;
    int code = wrong(v, text_parse_u64(v->words, 1, REQUEST_TASKS_MAX, "--tasks", &n, e), e);
    if (code < 0)
        return code;
    if (r->kind == REQUEST_SLICES && r->count > 1 && r->count != n)
        return err_set(e, -EINVAL, "--slice asks for %u tasks and --tasks for %u; say it once",
                       r->count, (unsigned)n);
    if (n > 1 && (r->kind == REQUEST_CARDS || r->kind == REQUEST_NOTHING))
        return err_set(e, -EINVAL,
                       "--tasks goes with --slice or --gpu-mem, where each task has a slice of its "
                       "own; whole cards belong to one task");
    if (r->kind == REQUEST_SLICES || r->kind == REQUEST_NEED)
        r->count = (uint32_t)n;
    return 0;
}

static int needs_gpu(const struct job_options *o, const struct request *r, struct err *e)
{
    static const struct {
        enum job_option option;
        const char *name;
    } parts[] = { { OPT_SPREAD, "--spread" }, { OPT_EXACT, "--exact" }, { OPT_OR_7G, "--or-7g" } };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (o->values[parts[i].option].words && r->kind == REQUEST_NOTHING)
            return wrong(&o->values[parts[i].option],
                         err_set(e, -EINVAL,
                                 "%s says how, and nothing says what: add --gpus, "
                                 "--slice or --gpu-mem",
                                 parts[i].name),
                         e);
    return 0;
}

static int read_request(const struct job_options *o, struct request *ret, struct err *e)
{
    struct request r = { .kind = REQUEST_NOTHING, .count = 1 };
    int code = one_kind_only(o, e);
    if (code == 0)
        code = read_kind(o, &r, e);
    if (code == 0)
        code = read_tasks(o, &r, e);
    if (code == 0)
        code = needs_gpu(o, &r, e);
    if (code < 0)
        return code;
    r.spread = o->values[OPT_SPREAD].words != NULL;
    r.exact = o->values[OPT_EXACT].words != NULL;
    r.or_7g = o->values[OPT_OR_7G].words != NULL;
    code = request_check(&r, e);
    if (code == 0)
        *ret = r;
    return code;
}

/* ---- the environment ---- */

static const char *find_variable(char *const *env, const char *name, size_t len)
{
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            return env[i];
    return NULL;
}

/* Any text but control characters other than newline and tab: functions exported by shells have those. */
static bool is_utf8(const char *s)
{
    auto_free char *copy = text_dup(s);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    return text_is_printable(copy);
}

struct env_list {
    char **v;
    struct text left_out;
};

/* A later one wins. */
static void add_variable(struct env_list *l, const char *variable)
{
    size_t len = strcspn(variable, "=");
    if (!variable[len] || !len)
        return; /* no assignment: execve takes such things, nobody can use them */
    if (!is_utf8(variable)) {
        auto_free char *name = text_fmt("%s%.*s", l->left_out.len ? ", " : "", (int)len, variable);
        text_add(&l->left_out, name);
        return;
    }
    char *old = (char *)find_variable(l->v, variable, len);
    if (!old) {
        strv_add(&l->v, variable);
        return;
    }
    for (size_t i = 0; l->v && l->v[i]; i++)
        if (l->v[i] == old)
            l->v[i] = text_dup(variable);
    free(old);
}

static void add_all(struct env_list *l, char *const *env)
{
    for (size_t i = 0; env && env[i]; i++)
        add_variable(l, env[i]);
}

static int add_word(struct env_list *l, const char *word, char *const *env, struct err *e)
{
    size_t len = strcspn(word, "=");
    if (strcmp(word, "all") == 0 || strcmp(word, "ALL") == 0) {
        add_all(l, env);
        return 0;
    }
    if (strcmp(word, "none") == 0 || strcmp(word, "NONE") == 0)
        return 0;
    if (word[len] && len) {
        add_variable(l, word);
        return 0;
    }
    const char *found = len ? find_variable(env, word, len) : NULL;
    if (!found)
        return err_set(e, -EINVAL,
                       "--env: '%.64s' is not set here; write NAME=VALUE, all, none, or the name "
                       "of a variable that is set",
                       word);
    add_variable(l, found);
    return 0;
}

/* Only settings, as in "EPOCHS=3": then they go on top of everything. */
static bool only_settings(const char *words)
{
    for (const char *w = words; *w; w += strcspn(w, ","), w += *w == ',')
        if (strcspn(w, "=") >= strcspn(w, ","))
            return false;
    return true;
}

static int read_env(const struct job_option_value *v, char *const *env, struct env_list *l,
                    struct err *e)
{
    auto_free char *words = text_dup(v->words ? v->words : "all");
    char *save = NULL;
    int r = 0;
    if (only_settings(words))
        add_all(l, env);
    for (char *w = strtok_r(words, ",", &save); w && r == 0; w = strtok_r(NULL, ",", &save))
        r = add_word(l, w, env, e);
    return wrong(v, r, e);
}

/* ---- the container ---- */

/* What --env names goes into the container, too; "all" and "none" are about the host. */
static void name_variables(const char *words, struct job_container *c)
{
    auto_free char *copy = text_dup(words);
    char *save = NULL;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        bool setting = strchr(w, '=') != NULL;
        w[strcspn(w, "=")] = '\0';
        bool about_all = strcasecmp(w, "all") == 0 || strcasecmp(w, "none") == 0;
        if (w[0] && (setting || !about_all))
            strv_add(&c->env, w);
    }
}

static int read_container(const struct job_options *o, struct job_container *c, struct err *e)
{
    const struct job_option_value *image = &o->values[OPT_CONTAINER];
    const struct job_option_value *runtime = &o->values[OPT_CONTAINER_RUNTIME];
    const struct job_option_value *args = &o->values[OPT_CONTAINER_ARG];
    const struct job_option_value *first = runtime->words ? runtime : args;
    if (!image->words && first->words)
        return wrong(first,
                     err_set(e, -EINVAL,
                             "--container-runtime and --container-arg say how; --container IMAGE "
                             "says what runs"),
                     e);
    if (!image->words)
        return 0;
    c->image = text_dup(image->words);
    c->runtime = text_dup(runtime->words);
    auto_free char *lines = text_dup(args->words ? args->words : "");
    char *save = NULL;
    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        strv_add(&c->args, line);
    if (o->values[OPT_ENV].words)
        name_variables(o->values[OPT_ENV].words, c);
    return wrong(image, job_container_check(c, e), e);
}

/* ---- the rest ---- */

/* "4", "1.5", "0.25": in thousandths. */
static int parse_cpus(const char *words, uint32_t *ret, struct err *e)
{
    char *end = NULL;
    errno = 0;
    double n = strtod(words, &end);
    bool plain = words[strspn(words, "0123456789.")] == '\0'; /* no sign, exponent or nan */
    if (!plain || end == words || *end || errno || n < 0.001 || n * 1000 > JOB_CPU_MILLI_MAX)
        return err_set(e, -EINVAL, "--cpus: '%.32s' is no number of CPUs, as 4 or 1.5 are", words);
    *ret = (uint32_t)(n * 1000 + 0.5);
    return 0;
}

/* Slurm means MiB by a number alone. */
static int too_small(const char *words, struct err *e)
{
    bool number = words[strspn(words, "0123456789")] == '\0';
    return number
               ? err_set(e, -EINVAL, "--mem: %s bytes leave no room to start; %sM is so many MiB",
                         words, words)
               : err_set(e, -EINVAL, "--mem: less than 1M leaves no room to start");
}

static int read_limits(const struct job_options *o, struct job_spec *s, struct err *e)
{
    const struct job_option_value *mem = &o->values[OPT_MEM];
    const struct job_option_value *cpus = &o->values[OPT_CPUS];
    int r = 0;
    if (mem->words)
        r = wrong(mem, text_parse_size(mem->words, "--mem", &s->mem_bytes, e), e);
    if (r == 0 && mem->words && s->mem_bytes < JOB_MEM_MIN)
        r = wrong(mem, too_small(mem->words, e), e);
    if (r == 0 && cpus->words)
        r = wrong(cpus, parse_cpus(cpus->words, &s->cpu_milli, e), e);
    return r;
}

static char *join(const char *dir, const char *path)
{
    if (path[0] == '/')
        return text_dup(path);
    return text_fmt("%s%s%s", dir, text_same(dir, "/") ? "" : "/", path);
}

/* The command's base name, if that can be a name; too long ones are cut between letters. */
static char *default_name(const char *command)
{
    const char *slash = strrchr(command, '/');
    char *name = text_dup(slash && slash[1] ? slash + 1 : command);
    size_t len = strlen(name);
    if (len > JOB_NAME_MAX) {
        len = JOB_NAME_MAX;
        while (len && ((unsigned char)name[len] & 0xc0) == 0x80)
            len--;
        name[len] = '\0';
    }
    if (name[0] && text_is_printable(name))
        return name;
    free(name);
    return text_dup("job");
}

/* %x and %u are known here; in what they stand for, a % is no sign. */
static char *file_name(const struct job_spec *s, const struct submit_place *where,
                       const char *words)
{
    AUTO(text) struct text t = TEXT_INIT;
    for (const char *p = words; *p; p++) {
        const char *with = p[0] == '%' && p[1] == 'x'   ? s->name
                           : p[0] == '%' && p[1] == 'u' ? where->user
                                                        : NULL;
        bool pair = p[0] == '%' && p[1];
        for (const char *w = with; w && *w; w++)
            text_addf(&t, *w == '%' ? "%%%%" : "%c", *w);
        if (!with)
            text_addn(&t, p, pair ? 2 : 1);
        p += pair;
    }
    return join(where->cwd, t.buf ? t.buf : "");
}

static int read_srun(const struct job_options *o, struct job_spec *s, struct err *e)
{
    const struct job_option_value *v = &o->values[OPT_SRUN];
    uint64_t n = request_tasks(&s->request);
    int r = 0;
    if (!v->words)
        return 0;
    if (strcmp(v->words, "each") != 0)
        r = text_parse_u64(v->words, 1, REQUEST_TASKS_MAX, "--srun", &n, e);
    s->srun_tasks = (uint32_t)n;
    return wrong(v, r, e);
}

static int read_texts(const struct job_options *o, const struct submit_place *where,
                      struct job_spec *s, struct err *e)
{
    const struct job_option_value *v = o->values;
    const char *account = v[OPT_ACCOUNT].words ? v[OPT_ACCOUNT].words : where->account_hint;
    s->cwd = join(where->cwd, v[OPT_CHDIR].words ? v[OPT_CHDIR].words : where->cwd);
    if (v[OPT_CHDIR].words)
        s->submit_dir = text_dup(where->cwd);
    s->account = text_dup(account);
    s->qos = text_dup(v[OPT_QOS].words);
    if (v[OPT_NAME].words)
        s->name = text_dup(v[OPT_NAME].words);
    else
        s->name = default_name(where->command && where->command[0] ? where->command[0] : "");
    if (!where->attached)
        s->output = file_name(s, where,
                              v[OPT_OUTPUT].words  ? v[OPT_OUTPUT].words
                              : v[OPT_ARRAY].words ? "divvy-%A_%a.out"
                                                   : "divvy-%j.out");
    if (!where->attached && v[OPT_ERROR].words)
        s->error = file_name(s, where, v[OPT_ERROR].words);
    int r = read_srun(o, s, e);
    if (r == 0 && v[OPT_TIME].words)
        r = wrong(&v[OPT_TIME], text_parse_duration(v[OPT_TIME].words, "--time", &s->limit_us, e),
                  e);
    if (r == 0 && v[OPT_TIME].words && !s->limit_us)
        r = wrong(&v[OPT_TIME], err_set(e, -EINVAL, "--time: a limit of 0 leaves no time to run"),
                  e);
    if (r == 0 && v[OPT_SIGNAL].words) {
        r = job_warning_parse(v[OPT_SIGNAL].words, &s->warning, e);
        r = wrong(&v[OPT_SIGNAL], r < 0 ? err_wrap(e, r, "--signal") : r, e);
    }
    if (r == 0 && v[OPT_BIND].words) {
        r = job_bind_parse(v[OPT_BIND].words, &s->bind, e);
        r = wrong(&v[OPT_BIND], r < 0 ? err_wrap(e, r, "--bind") : r, e);
    }
    return r;
}

static int read_order(const struct job_options *o, const struct submit_place *where,
                      struct job_spec *s, struct err *e)
{
    const struct job_option_value *begin = &o->values[OPT_BEGIN];
    const struct job_option_value *deadline = &o->values[OPT_DEADLINE];
    int r = 0;
    s->array = text_dup(o->values[OPT_ARRAY].words);
    s->dependency = text_dup(o->values[OPT_DEPENDENCY].words);
    s->hold = o->values[OPT_HOLD].words != NULL;
    s->keep_invalid = o->values[OPT_KEEP_INVALID].words != NULL;
    s->no_requeue = o->values[OPT_NO_REQUEUE].words != NULL;
    s->on_start = text_dup(o->values[OPT_ON_START].words);
    s->on_end = text_dup(o->values[OPT_ON_END].words);
    s->append = o->values[OPT_APPEND].words != NULL;
    if (begin->words)
        r = wrong(begin,
                  moment_parse(begin->words, where->now_wall_us, "--begin", &s->begin_wall_us, e),
                  e);
    if (r == 0 && deadline->words)
        r = wrong(deadline,
                  moment_parse(deadline->words, where->now_wall_us, "--deadline",
                               &s->deadline_wall_us, e),
                  e);
    return r;
}

/* What goes into JSON must be UTF-8; that only the arguments can break here. */
static int check_words(const struct job_spec *s, struct err *e)
{
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        if (!is_utf8(s->argv[i]))
            return err_set(e, -EINVAL,
                           "argument %zu of the command is no UTF-8; put it into a script and "
                           "submit that",
                           i);
    if (!is_utf8(s->cwd) || (s->output && !is_utf8(s->output)) ||
        (s->error && !is_utf8(s->error)) || (s->submit_dir && !is_utf8(s->submit_dir)))
        return err_set(e, -EINVAL,
                       "the working directory or the output file has a name that is no "
                       "UTF-8; choose others with --chdir and --output");
    if (s->script && !is_utf8(s->script))
        return err_set(e, -EINVAL,
                       "the script is no UTF-8 text; submit it as a command: divvy "
                       "submit -- ./it");
    return 0;
}

static int check_spec(struct job_spec *s, struct err *e)
{
    int r = check_words(s, e);
    if (r < 0)
        return r;
    /* The daemon fills in an account that was not named; everything else is checked here. */
    struct job_spec whole = *s;
    if (!whole.account)
        whole.account = (char *)"default";
    return job_spec_check(&whole, e);
}

int job_options_spec(const struct job_options *o, const struct submit_place *where,
                     struct job_spec *ret, char **ret_left_out, struct err *e)
{
    AUTO(job_spec) struct job_spec s = { .name = NULL };
    struct env_list env = { .v = NULL, .left_out = TEXT_INIT };
    int r = read_request(o, &s.request, e);
    if (r == 0)
        r = read_texts(o, where, &s, e);
    if (r == 0)
        r = read_limits(o, &s, e);
    if (r == 0)
        r = read_order(o, where, &s, e);
    if (r == 0)
        r = read_env(&o->values[OPT_ENV], where->environ_, &env, e);
    if (r == 0)
        r = read_container(o, &s.container, e);
    s.env = env.v;
    s.argv = strv_copy(where->command);
    s.script = text_dup(where->script);
    s.attached = where->attached;
    s.requeue_on_fault = o->values[OPT_REQUEUE_ON_FAULT].words != NULL;
    s.keep_going = o->values[OPT_KEEP_GOING].words != NULL;
    if (r == 0)
        r = check_spec(&s, e);
    if (r == 0) {
        *ret_left_out = env.left_out.len ? text_take(&env.left_out) : NULL;
        *ret = s;
        s = (struct job_spec){ .name = NULL };
    }
    text_done(&env.left_out);
    return r;
}
