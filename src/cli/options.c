#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/moment.h"
#include "config/nearest.h"
#include "model/job_json.h"

/* Keys of options without a letter; argp takes letters below 256 for itself. */
#define KEY(option) (0x100 + (int)(option))

static const struct argp_option table[] = {
    { NULL, 0, NULL, 0, "What it needs (nothing: no GPU):", 1 },
    { "gpus", 'G', "N", 0, "N whole cards, the best connected ones", 1 },
    { "slice", KEY(OPT_SLICE), "PROFILE[:N]", 0,
      "a slice, or N of them for N tasks: each task is a process of its own", 1 },
    { "gpu-mem", KEY(OPT_GPU_MEM), "SIZE", 0,
      "the smallest thing with so much memory, as in 18G; 10G takes a 1g.10gb with its 9.5 GiB",
      1 },
    { "gpu-compute", KEY(OPT_GPU_COMPUTE), "PART", 0,
      "and at least this part of a card's compute: 0.25, 25% or 1/4", 1 },
    { "tasks", 'n', "N", 0, "N tasks, each with what --slice or --gpu-mem asks for", 1 },
    { "spread", KEY(OPT_SPREAD), NULL, 0,
      "tasks on different cards: a card that fails takes all its slices along", 1 },
    { "exact", KEY(OPT_EXACT), NULL, 0, "not a byte less than --gpu-mem says", 1 },
    { "or-7g", KEY(OPT_OR_7G), NULL, 0, "with --gpus: a card's full slice is as good", 1 },
    { "bind", KEY(OPT_BIND), "HOW", 0,
      "how the program is told: uuid (default), index, or none, for programs that choke on UUIDs",
      1 },
    { NULL, 0, NULL, 0, "When:", 2 },
    { "array", 'a', "INDICES", 0,
      "many jobs at once, as in 0-99, 1,3,5-9:2 or, at most 4 at a time, 0-99%4; each finds its "
      "index in DIVVY_ARRAY_INDEX",
      2 },
    { "dependency", 'd', "WHAT", 0,
      "after:ID (has started), afterok:ID (has completed), afternotok:ID, afterany:ID (has ended), "
      "several with , (all) or ? (one of them); singleton: one of this name at a time",
      2 },
    { "keep-invalid", KEY(OPT_KEEP_INVALID), NULL, 0,
      "stay in the queue when the dependency cannot be met any more (default: it is cancelled)",
      2 },
    { "begin", 'b', "TIME", 0, "no earlier than 16:40, tomorrow, now+2h or 2026-11-30T08:00", 2 },
    { "deadline", KEY(OPT_DEADLINE), "TIME", 0, "it has ended by then, or is not started any more",
      2 },
    { "hold", 'H', NULL, 0, "wait until divvy release", 2 },
    { "no-requeue", KEY(OPT_NO_REQUEUE), NULL, 0, "never start it a second time", 2 },
    { NULL, 0, NULL, 0, "The job:", 2 },
    { "name", 'J', "NAME", 0, "shown in the queue (default: the command's)", 2 },
    { "account", 'A', "NAME", 0, "whose share it is charged to", 2 },
    { "qos", KEY(OPT_QOS), "CLASS", 0, "the class of jobs it belongs to", 2 },
    { "time", 't', "LIMIT", 0,
      "end it after 90m, 2h, 1-12:00:00 …; short limits start sooner (backfill)", 2 },
    { "mem", KEY(OPT_MEM), "SIZE", 0,
      "a task that uses more memory than this is ended (default: no limit)", 2 },
    { "cpus", KEY(OPT_CPUS), "N", 0,
      "CPU time of each task, as in 4 or 1.5, on CPUs near its card (default: no limit)", 2 },
    { "signal", KEY(OPT_SIGNAL), "SIGNAL[@TIME]", 0,
      "send this to every process of the job TIME (default 60s) before --time ends it", 2 },
    { "output", 'o', "FILE", 0,
      "standard output and error; %j is the job's number, %t the task's, %A_%a array and index, "
      "%x the job's name, %u yours "
      "(default: divvy-%j.out, of an array divvy-%A_%a.out)",
      2 },
    { "error", 'e', "FILE", 0, "standard error alone (default: where the output goes)", 2 },
    { "srun", KEY(OPT_SRUN), "N", 0,
      "run the command once, in the first task, and let srun in it start N processes; each: one "
      "for each task (what scripts with #SBATCH lines do by themselves)",
      2 },
    { "env", KEY(OPT_ENV), "WHAT", 0,
      "its environment: all of yours (default), none, or only NAME,NAME,…; NAME=VALUE sets one on "
      "top; may be repeated",
      2 },
    { "chdir", 'D', "DIR", 0, "run there (default: here)", 2 },
    { "keep-going", KEY(OPT_KEEP_GOING), NULL, 0, "a task that fails does not end the others", 2 },
    { "requeue-on-fault", KEY(OPT_REQUEUE_ON_FAULT), NULL, 0,
      "try it again when its card failed under it", 2 },
    { "append", KEY(OPT_APPEND), NULL, 0, "add to the output file instead of emptying it first",
      2 },
    { "on-start", KEY(OPT_ON_START), "COMMAND", 0,
      "run this with sh -c when the job runs, as a small job of its own without a card", 2 },
    { "on-end", KEY(OPT_ON_END), "COMMAND", 0, "the same when the job has ended in whatever way",
      2 },
    { "container", KEY(OPT_CONTAINER), "IMAGE", 0,
      "in a container of this image, with the working directory mounted; --env NAME,… names what "
      "of the environment goes in",
      2 },
    { "container-runtime", KEY(OPT_CONTAINER_RUNTIME), "NAME", 0,
      "podman, apptainer or, where that is allowed, docker (default: the first that is there)", 2 },
    { "container-arg", KEY(OPT_CONTAINER_ARG), "OPTION", 0,
      "one more option for the runtime, as in --container-arg=--volume=/data:/data; may be "
      "repeated",
      2 },
    { 0 },
};

const struct argp_option *job_options_argp(void)
{
    return table;
}

static const struct {
    int key;
    enum job_option option;
} letters[] = {
    { 'G', OPT_GPUS },  { 'n', OPT_TASKS },  { 'J', OPT_NAME },       { 'A', OPT_ACCOUNT },
    { 't', OPT_TIME },  { 'o', OPT_OUTPUT }, { 'D', OPT_CHDIR },      { 'a', OPT_ARRAY },
    { 'e', OPT_ERROR }, { 'b', OPT_BEGIN },  { 'd', OPT_DEPENDENCY }, { 'H', OPT_HOLD },
};

bool job_option_set(struct job_options *o, int key, const char *arg)
{
    int option = key - KEY(0);
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].key == key)
            option = (int)letters[i].option;
    if (option < 0 || option >= JOB_OPTIONS)
        return false;
    o->values[option] = (struct job_option_value){ .words = arg ? arg : "" };
    if (option == OPT_ENV) {
        char *joined = o->env ? text_fmt("%s,%s", o->env, arg) : text_dup(arg);
        free(o->env);
        o->values[option].words = o->env = joined;
    } else if (option == OPT_CONTAINER_ARG) {
        char *joined =
            o->container_args ? text_fmt("%s\n%s", o->container_args, arg) : text_dup(arg);
        free(o->container_args);
        o->values[option].words = o->container_args = joined;
    }
    return true;
}

void job_options_done(struct job_options *o)
{
    free(o->env);
    free(o->container_args);
    *o = (struct job_options)JOB_OPTIONS_INIT;
}

/* ---- a script's words ---- */

static const struct argp_option *find_long(const char *name, size_t len)
{
    for (const struct argp_option *t = table; t->name || t->doc; t++)
        if (t->name && strlen(t->name) == len && strncmp(t->name, name, len) == 0)
            return t;
    return NULL;
}

static const struct argp_option *find_letter(char letter)
{
    for (const struct argp_option *t = table; t->name || t->doc; t++)
        if (t->name && t->key == letter)
            return t;
    return NULL;
}

static int unknown_option(const char *file, unsigned line, const char *word, struct err *e)
{
    const char *names[JOB_OPTIONS + 1];
    size_t n = 0;
    auto_free char *given = text_dup(word + strspn(word, "-"));
    given[strcspn(given, "=")] = '\0';
    for (const struct argp_option *t = table; t->name || t->doc; t++)
        if (t->name)
            names[n++] = t->name;
    const char *near = nearest_name(given, names, n);
    if (near)
        return err_set(e, -EINVAL, "%s:%u: there is no option '%.64s'; did you mean --%s?", file,
                       line, word, near);
    return err_set(e, -EINVAL,
                   "%s:%u: there is no option '%.64s'; 'divvy submit --help' lists them", file,
                   line, word);
}

/* One option at words[i], and its value there or in the next word. How many words, or negative. */
static int take_words(const char *file, char *const *words, const unsigned *lines, size_t i,
                      size_t n, struct job_options *ret, struct err *e)
{
    const char *word = words[i];
    const char *value = NULL;
    const struct argp_option *option = NULL;
    if (word[0] != '-' || !word[1])
        return err_set(e, -EINVAL,
                       "%s:%u: '%.64s' is no option; the command stands in the script itself", file,
                       lines[i], word);
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        option = find_long(word + 2, len);
        value = word[2 + len] ? word + 3 + len : NULL;
    } else {
        option = find_letter(word[1]);
        value = word[2] ? word + 2 : NULL;
    }
    if (!option)
        return unknown_option(file, lines[i], word, e);
    int used = 1;
    if (option->arg && !value && i + 1 < n) {
        value = words[i + 1];
        used = 2;
    }
    if (!option->arg != !value)
        return err_set(e, -EINVAL, "%s:%u: --%s %s", file, lines[i], option->name,
                       option->arg ? "needs a value" : "takes no value");
    struct job_option_value before[JOB_OPTIONS];
    memcpy(before, ret->values, sizeof before);
    (void)job_option_set(ret, option->key, value); /* it is in the table */
    for (size_t k = 0; k < JOB_OPTIONS; k++)
        if (ret->values[k].words != before[k].words) {
            ret->values[k].file = file;
            ret->values[k].line = lines[i];
        }
    return used;
}

int job_option_words(const char *file, char *const *words, const unsigned *lines, size_t n,
                     struct job_options *ret, struct err *e)
{
    for (size_t i = 0; i < n;) {
        int used = take_words(file, words, lines, i, n, ret, e);
        if (used < 0)
            return used;
        i += (size_t)used;
    }
    return 0;
}

static bool asks_for_gpu(const struct job_options *o)
{
    return o->values[OPT_GPUS].words || o->values[OPT_SLICE].words ||
           o->values[OPT_GPU_MEM].words || o->values[OPT_GPU_COMPUTE].words;
}

void job_options_merge(struct job_options *o, const struct job_options *below)
{
    bool own_gpu = asks_for_gpu(o);
    for (size_t k = 0; k < JOB_OPTIONS; k++) {
        bool about_gpu = k <= OPT_OR_7G;
        if (!o->values[k].words && !(about_gpu && own_gpu))
            o->values[k] = below->values[k];
    }
}

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

static int read_limits(const struct job_options *o, struct job_spec *s, struct err *e)
{
    const struct job_option_value *mem = &o->values[OPT_MEM];
    const struct job_option_value *cpus = &o->values[OPT_CPUS];
    int r = 0;
    if (mem->words)
        r = wrong(mem, text_parse_size(mem->words, "--mem", &s->mem_bytes, e), e);
    if (r == 0 && mem->words && s->mem_bytes < JOB_MEM_MIN)
        r = wrong(mem, err_set(e, -EINVAL, "--mem: less than 1M leaves no room to start"), e);
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
