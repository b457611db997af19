#include "cli/sbatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/request.h"

enum how {
    TAKE = 0, /* the same value under our name */
    FLAG,     /* no value on either side */
    GPUS,     /* "2" or "a100:2" */
    GRES,     /* "gpu:2", "gpu:2g.20gb:1" */
    MEM,      /* a number alone is MiB */
    SIGNAL,   /* "B:USR1@60" */
    ONE,      /* only 1 makes sense here */
    TASKS,    /* so many processes srun starts */
    PER_TASK, /* GPUS, times those */
    OPEN_MODE,
    INVALID_DEPENDENCY,
    LEFT_OUT,
    LEFT_OUT_FLAG,
};

static const struct known {
    const char *name;
    char letter;
    const char *ours; /* or what is nearest; NULL: nothing is */
    enum how how;
} known[] = {
    { "job-name", 'J', "--name", TAKE },
    { "output", 'o', "--output", TAKE },
    { "time", 't', "--time", TAKE },
    { "account", 'A', "--account", TAKE },
    { "array", 'a', "--array", TAKE },
    { "dependency", 'd', "--dependency", TAKE },
    { "begin", 'b', "--begin", TAKE },
    { "deadline", 0, "--deadline", TAKE },
    { "qos", 'q', "--qos", TAKE },
    { "chdir", 'D', "--chdir", TAKE },
    { "export", 0, "--env", TAKE },
    { "cpus-per-task", 'c', "--cpus", TAKE },
    { "mem", 0, "--mem", MEM },
    { "gpus", 'G', "--gpus", GPUS },
    { "gpus-per-node", 0, "--gpus", GPUS },
    { "gres", 0, "--gpus", GRES },
    { "signal", 0, "--signal", SIGNAL },
    { "hold", 'H', "--hold", FLAG },
    { "requeue", 0, "--requeue-on-fault", FLAG },
    { "no-requeue", 0, "--no-requeue", FLAG },
    { "nodes", 'N', NULL, ONE },
    { "ntasks", 'n', "--tasks", TASKS },
    { "ntasks-per-node", 0, NULL, TASKS },
    { "partition", 'p', NULL, LEFT_OUT },
    { "error", 'e', "--error", TAKE },
    { "mail-type", 0, NULL, LEFT_OUT },
    { "mail-user", 0, NULL, LEFT_OUT },
    { "constraint", 'C', NULL, LEFT_OUT },
    { "comment", 0, NULL, LEFT_OUT },
    { "open-mode", 0, "--append", OPEN_MODE },
    { "kill-on-invalid-dep", 0, "--keep-invalid", INVALID_DEPENDENCY },
    { "nice", 0, NULL, LEFT_OUT },
    { "mem-per-cpu", 0, "--mem", LEFT_OUT },
    { "mem-per-gpu", 0, "--mem", LEFT_OUT },
    { "cpus-per-gpu", 0, "--cpus", LEFT_OUT },
    { "gpus-per-task", 0, NULL, PER_TASK },
    { "exclude", 'x', NULL, LEFT_OUT },
    { "nodelist", 'w', NULL, LEFT_OUT },
    { "reservation", 0, NULL, LEFT_OUT },
    { "licenses", 'L', NULL, LEFT_OUT },
    { "exclusive", 0, NULL, LEFT_OUT_FLAG },
    { "verbose", 'v', NULL, LEFT_OUT_FLAG },
    { "quiet", 'Q', NULL, LEFT_OUT_FLAG },
    { "parsable", 0, "--quiet", LEFT_OUT_FLAG },
};
#define KNOWN (sizeof known / sizeof *known)

struct translation {
    const char *file;
    unsigned line;
    struct script_options *ret;
    struct text left_out;
    unsigned gpu_line; /* where a GPU was asked for; 0: nowhere yet */
    uint32_t tasks;    /* 0: not said */
    const char *per_task;
    unsigned per_task_line;
    struct err *e;
};

static bool takes_value(const struct known *k)
{
    return k->how != FLAG && k->how != LEFT_OUT_FLAG;
}

static void emit(struct translation *t, char *take_word)
{
    struct script_options *o = t->ret;
    ARRAY_ROOM(o->argv, o->alloc, o->count + 2);
    ARRAY_ROOM(o->lines, o->lines_alloc, o->count + 1);
    o->lines[o->count] = t->line;
    o->argv[o->count++] = take_word;
    o->argv[o->count] = NULL;
}

static void leave_out(struct translation *t, const char *word)
{
    text_addf(&t->left_out, "%s%.64s (line %u)", t->left_out.len ? ", " : "", word, t->line);
}

static int wrong(const struct translation *t, const char *why)
{
    return err_set(t->e, -EINVAL, "%s:%u: %s", t->file, t->line, why);
}

static int emit_gpu(struct translation *t, char *take_word)
{
    auto_free char *word = take_word;
    if (t->gpu_line) {
        auto_free char *why = text_fmt("a GPU was asked for in line %u already", t->gpu_line);
        return wrong(t, why);
    }
    t->gpu_line = t->line;
    emit(t, take_ptr(word));
    return 0;
}

static bool is_number(const char *s)
{
    return s[0] && !s[strspn(s, "0123456789")];
}

/* "1g.10gb", "2g.20gb+me", "1c.3g.40gb": what is no slice is the name of a card. */
static bool is_profile(const char *s)
{
    size_t digits = strspn(s, "0123456789");
    return digits && (s[digits] == 'g' || s[digits] == 'c') && s[digits + 1] == '.';
}

/* "2", "a100:2", "2g.20gb:1", "a100". */
static int take_gpus(struct translation *t, const char *value, uint32_t times)
{
    uint64_t count = 0;
    struct err e = ERR_INIT;
    const char *colon = strrchr(value, ':');
    const char *number = colon ? colon + 1 : is_number(value) ? value : "1";
    auto_free char *type = text_fmt("%.*s",
                                    (int)(colon              ? (size_t)(colon - value)
                                          : is_number(value) ? 0
                                                             : strlen(value)),
                                    value);
    if (!is_number(number))
        return wrong(t, "this is no number of GPUs");
    if (text_parse_u64(number, 0, REQUEST_TASKS_MAX, "number of GPUs", &count, &e) < 0)
        return wrong(t, e.text);
    count *= times;
    if (is_profile(type) && count)
        return emit_gpu(t, count == 1 ? text_fmt("--slice=%s", type)
                                      : text_fmt("--slice=%s:%" PRIu64, type, count));
    if (type[0]) {
        auto_free char *word = text_fmt("the kind of card, %s", type);
        leave_out(t, word);
    }
    return count == 0 ? 0 : emit_gpu(t, text_fmt("--gpus=%" PRIu64, count));
}

static int take_gres(struct translation *t, const char *value)
{
    const char *rest = value + strlen("gpu");
    if (!text_starts(value, "gpu") || (*rest && *rest != ':') || strchr(value, ',')) {
        auto_free char *word = text_fmt("--gres=%.64s", value);
        leave_out(t, word);
        return 0;
    }
    return take_gpus(t, *rest ? rest + 1 : "1", 1);
}

static void take_signal(struct translation *t, const char *value)
{
    const char *at = strchr(value, '@');
    if (text_starts(value, "B:"))
        value += 2;
    emit(t, text_fmt("--signal=%s%s", value, at && is_number(at + 1) ? "s" : ""));
}

static int take_one(struct translation *t, const char *value)
{
    return strcmp(value, "1") == 0 ? 0 : wrong(t, "this is one machine: --nodes can only be 1");
}

/* One word is an option of ours, the other what happens without it. */
static int take_either(struct translation *t, const struct known *k, const char *value,
                       const char *ours, const char *usual)
{
    auto_free char *why = text_fmt("--%s is %s or %s", k->name, ours, usual);
    if (strcmp(value, ours) == 0)
        emit(t, text_dup(k->ours));
    else if (strcmp(value, usual) != 0)
        return wrong(t, why);
    return 0;
}

static int take_tasks(struct translation *t, const struct known *k, const char *value)
{
    uint64_t n = 0;
    struct err e = ERR_INIT;
    auto_free char *what = text_fmt("--%s", k->name);
    if (text_parse_u64(value, 1, REQUEST_TASKS_MAX, what, &n, &e) < 0)
        return wrong(t, e.text);
    if (t->tasks && t->tasks != n)
        return wrong(t, "--ntasks and --ntasks-per-node say two things, and this is one machine");
    t->tasks = (uint32_t)n;
    return 0;
}

/* A script that was written for sbatch runs once, and srun in it starts the others. */
static int finish(struct translation *t)
{
    int r = 0;
    if (t->per_task) {
        t->line = t->per_task_line;
        r = take_gpus(t, t->per_task, t->tasks ? t->tasks : 1);
    }
    if (r == 0)
        emit(t, t->tasks ? text_fmt("--srun=%u", t->tasks) : text_dup("--srun=each"));
    return r;
}

static int take_option(struct translation *t, const struct known *k, const char *value)
{
    switch (k->how) {
    case TAKE:
        emit(t, text_fmt("%s=%s", k->ours, value));
        return 0;
    case FLAG:
        emit(t, text_dup(k->ours));
        return 0;
    case GPUS:
        return take_gpus(t, value, 1);
    case PER_TASK: /* --ntasks may come later */
        t->per_task = value;
        t->per_task_line = t->line;
        return 0;
    case TASKS:
        return take_tasks(t, k, value);
    case GRES:
        return take_gres(t, value);
    case MEM:
        if (strcmp(value, "0") != 0) /* Slurm's word for all there is */
            emit(t, text_fmt("--mem=%s%s", value, is_number(value) ? "M" : ""));
        return 0;
    case SIGNAL:
        take_signal(t, value);
        return 0;
    case ONE:
        return take_one(t, value);
    case OPEN_MODE:
        return take_either(t, k, value, "append", "truncate");
    case INVALID_DEPENDENCY:
        return take_either(t, k, value, "no", "yes");
    case LEFT_OUT:
    case LEFT_OUT_FLAG:
        break;
    }
    auto_free char *word = text_fmt("--%s", k->name);
    leave_out(t, word);
    return 0;
}

static const struct known *find(const char *word, const char **ret_value)
{
    size_t len = strcspn(word + 1 + (word[1] == '-'), "=");
    *ret_value = NULL;
    for (size_t i = 0; i < KNOWN; i++) {
        const struct known *k = &known[i];
        if (word[1] == '-' && strlen(k->name) == len && strncmp(word + 2, k->name, len) == 0) {
            *ret_value = word[2 + len] ? word + 3 + len : NULL;
            return k;
        }
        if (word[1] != '-' && k->letter && word[1] == k->letter) {
            *ret_value = word[2] ? word + 2 + (word[2] == '=') : NULL;
            return k;
        }
    }
    return NULL;
}

const char *sbatch_nearest(const char *word)
{
    const char *value;
    const struct known *k = word[0] == '-' && word[1] ? find(word, &value) : NULL;
    return k && k->ours ? k->ours + strlen("--") : NULL;
}

/* How many words were used, or negative. */
static int take_word(struct translation *t, const struct script_options *found, size_t i)
{
    const char *word = found->argv[i];
    const char *value = NULL;
    int used = 1;
    t->line = found->lines[i];
    if (word[0] != '-' || !word[1])
        return wrong(t, "this is no option; the command stands in the script itself");
    const struct known *k = find(word, &value);
    if (!k) {
        leave_out(t, word);
        bool has_value = !strchr(word, '=') && i + 1 < found->count &&
                         found->argv[i + 1][0] != '-' && found->lines[i + 1] == t->line;
        return has_value ? 2 : 1;
    }
    if (takes_value(k) && !value) {
        if (i + 1 == found->count || found->lines[i + 1] != t->line)
            return wrong(t, "this option needs a value");
        value = found->argv[i + 1];
        used = 2;
    }
    int r = take_option(t, k, value);
    return r < 0 ? r : used;
}

int sbatch_words(const char *file, const struct script_options *found, struct script_options *ret,
                 char **ret_note, struct err *e)
{
    AUTO(script_options) struct script_options ours = SCRIPT_OPTIONS_INIT;
    struct translation t = { .file = file, .ret = &ours, .left_out = TEXT_INIT, .e = e };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < found->count; i += (size_t)(r > 0 ? r : 0))
        r = take_word(&t, found, i);
    if (r >= 0 && found->count)
        r = finish(&t);
    *ret_note = NULL;
    if (r >= 0 && t.left_out.len)
        *ret_note = text_fmt("%s: #SBATCH options without a counterpart here were left out: %s",
                             file, t.left_out.buf);
    text_done(&t.left_out);
    if (r < 0)
        return r;
    *ret = ours;
    ours = (struct script_options)SCRIPT_OPTIONS_INIT;
    return 0;
}
