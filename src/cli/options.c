#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config/nearest.h"

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
      "after:ID (has started; after:ID+10: ten minutes later), afterok:ID (has completed), "
      "afternotok:ID, afterany:ID (has ended), "
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
    { NULL, 0, NULL, 0, "The job:", 3 },
    { "name", 'J', "NAME", 0, "shown in the queue (default: the command's)", 3 },
    { "account", 'A', "NAME", 0, "whose share it is charged to", 3 },
    { "qos", KEY(OPT_QOS), "CLASS", 0, "the class of jobs it belongs to", 3 },
    { "time", 't', "LIMIT", 0,
      "end it after 90m, 2h, 1-12:00:00 …; short limits start sooner (backfill)", 3 },
    { "mem", KEY(OPT_MEM), "SIZE", 0,
      "memory for each task; one that uses more is ended (default: its part by its cards)", 3 },
    { "cpus", KEY(OPT_CPUS), "N", 0,
      "CPU time of each task, as in 4 or 1.5, on CPUs near its card (default: as --mem)", 3 },
    { "signal", KEY(OPT_SIGNAL), "SIGNAL[@TIME]", 0,
      "send this to every process of the job TIME (default 60s) before --time ends it", 3 },
    { "output", 'o', "FILE", 0,
      "standard output and error; %j is the job's number, %t the task's, %A_%a array and index, "
      "%x the job's name, %u yours "
      "(default: divvy-%j.out, of an array divvy-%A_%a.out)",
      3 },
    { "error", 'e', "FILE", 0, "standard error alone (default: where the output goes)", 3 },
    { "srun", KEY(OPT_SRUN), "N", 0,
      "run the command once, in the first task, and let srun in it start N processes; each: one "
      "for each task (what scripts with #SBATCH lines do by themselves)",
      3 },
    { "env", KEY(OPT_ENV), "WHAT", 0,
      "its environment: all of yours (default), none, or only NAME,NAME,…; NAME=VALUE sets one on "
      "top; may be repeated",
      3 },
    { "chdir", 'D', "DIR", 0, "run there (default: here)", 3 },
    { "keep-going", KEY(OPT_KEEP_GOING), NULL, 0, "a task that fails does not end the others", 3 },
    { "requeue-on-fault", KEY(OPT_REQUEUE_ON_FAULT), NULL, 0,
      "try it again when its card failed under it", 3 },
    { "append", KEY(OPT_APPEND), NULL, 0, "add to the output file instead of emptying it first",
      3 },
    { "on-start", KEY(OPT_ON_START), "COMMAND", 0,
      "run this with sh -c when the job runs, as a small job of its own without a card", 3 },
    { "on-end", KEY(OPT_ON_END), "COMMAND", 0, "the same when the job has ended in whatever way",
      3 },
    { "container", KEY(OPT_CONTAINER), "IMAGE", 0,
      "in a container of this image, with the working directory mounted; --env NAME,… names what "
      "of the environment goes in",
      3 },
    { "container-runtime", KEY(OPT_CONTAINER_RUNTIME), "NAME", 0,
      "podman, apptainer or, where that is allowed, docker (default: the first that is there)", 3 },
    { "container-arg", KEY(OPT_CONTAINER_ARG), "OPTION", 0,
      "one more option for the runtime, as in --container-arg=--volume=/data:/data; may be "
      "repeated",
      3 },
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
