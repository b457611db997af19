#include "srun/words.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/request.h"

enum {
    LEFT_OUT = 0x100,
    REFUSED,
    NODES,
    TASKS,
    OVERLAP,
    LABEL,
    QUIET, /* it is so anyway */
};

#define NOTHING no_argument, NULL
#define VALUE required_argument, NULL
#define MAYBE optional_argument, NULL

static const struct option table[] = {
    { "ntasks", VALUE, TASKS },
    { "ntasks-per-node", VALUE, TASKS },
    { "nodes", VALUE, NODES },
    { "output", VALUE, 'o' },
    { "error", VALUE, 'e' },
    { "input", VALUE, 'i' },
    { "chdir", VALUE, 'D' },
    { "overlap", NOTHING, OVERLAP },
    { "kill-on-bad-exit", MAYBE, 'K' },
    { "version", NOTHING, 'V' },
    { "unbuffered", NOTHING, QUIET },
    { "exclusive", MAYBE, QUIET },
    { "exact", NOTHING, QUIET },
    { "quiet", NOTHING, QUIET },
    { "verbose", NOTHING, QUIET },
    { "job-name", VALUE, QUIET },
    { "multi-prog", NOTHING, REFUSED },
    { "pty", NOTHING, REFUSED },
    { "gres", VALUE, LEFT_OUT },
    { "gpus", VALUE, LEFT_OUT },
    { "gpus-per-node", VALUE, LEFT_OUT },
    { "gpus-per-task", VALUE, LEFT_OUT },
    { "gpu-bind", VALUE, LEFT_OUT },
    { "cpus-per-task", VALUE, LEFT_OUT },
    { "cpus-per-gpu", VALUE, LEFT_OUT },
    { "cpu-bind", VALUE, LEFT_OUT },
    { "mem-bind", VALUE, LEFT_OUT },
    { "mem", VALUE, LEFT_OUT },
    { "mem-per-cpu", VALUE, LEFT_OUT },
    { "mem-per-gpu", VALUE, LEFT_OUT },
    { "mpi", VALUE, LEFT_OUT },
    { "label", NOTHING, LABEL },
    { "distribution", VALUE, LEFT_OUT },
    { "export", VALUE, LEFT_OUT },
    { "time", VALUE, LEFT_OUT },
    { "account", VALUE, LEFT_OUT },
    { "partition", VALUE, LEFT_OUT },
    { "qos", VALUE, LEFT_OUT },
    { "constraint", VALUE, LEFT_OUT },
    { "nodelist", VALUE, LEFT_OUT },
    { "exclude", VALUE, LEFT_OUT },
    { "relative", VALUE, LEFT_OUT },
    { "hint", VALUE, LEFT_OUT },
    { "threads-per-core", VALUE, LEFT_OUT },
    { "wait", VALUE, LEFT_OUT },
    { "comment", VALUE, LEFT_OUT },
    { "signal", VALUE, LEFT_OUT },
    { "open-mode", VALUE, LEFT_OUT },
    { "jobid", VALUE, LEFT_OUT },
    { 0 },
};

/* A letter, and what it is short for. */
static const struct {
    char letter;
    const char *name;
} letters[] = {
    { 'n', "ntasks" },        { 'N', "nodes" },        { 'u', "unbuffered" }, { 'Q', "quiet" },
    { 'v', "verbose" },       { 'J', "job-name" },     { 'G', "gpus" },       { 'l', "label" },
    { 'c', "cpus-per-task" }, { 'm', "distribution" }, { 't', "time" },       { 'A', "account" },
    { 'p', "partition" },     { 'q', "qos" },          { 'C', "constraint" }, { 'w', "nodelist" },
    { 'x', "exclude" },       { 'r', "relative" },     { 'W', "wait" },
};

static const char short_words[] = "+:n:N:o:e:i:D:K::VuQvJ:G:lc:m:t:A:p:q:C:w:x:r:W:";

static const struct option *by_name(const char *name)
{
    for (const struct option *o = table; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static const struct option *by_key(int key, int index)
{
    if (index >= 0)
        return &table[index];
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == key)
            return by_name(letters[i].name);
    for (const struct option *o = table; o->name; o++)
        if (o->val == key)
            return o;
    return NULL;
}

static void leave_out(struct words *w, const char *name)
{
    text_addf(&w->left_out, "%s--%s", w->left_out.len ? ", " : "", name);
}

static int take_count(const char *name, const char *value, uint32_t *ret, struct err *e)
{
    uint64_t n = 0;
    auto_free char *what = text_fmt("--%s", name);
    int r = text_parse_u64(value, 1, REQUEST_TASKS_MAX, what, &n, e);
    if (r == 0)
        *ret = (uint32_t)n;
    return r < 0 ? -EINVAL : 0;
}

static int take(const struct option *o, const char *value, struct words *w, struct err *e)
{
    switch (o->val) {
    case TASKS:
        return take_count(o->name, value, &w->tasks, e);
    case NODES:
        return strcmp(value, "1") == 0 || strcmp(value, "1-1") == 0
                   ? 0
                   : err_set(e, -EINVAL, "this is one machine: --nodes can only be 1");
    case REFUSED:
        return err_set(e, -EINVAL, "--%s does not work here; %s", o->name,
                       strcmp(o->name, "pty") == 0
                           ? "divvy attach opens a shell inside the job"
                           : "SLURM_PROCID tells each process which one it is");
    case 'o':
        w->output = value;
        return 0;
    case 'e':
        w->error = value;
        return 0;
    case 'i':
        w->input = value;
        return 0;
    case 'D':
        w->cwd = value;
        return 0;
    case 'K':
        w->kill_on_bad_exit = !value || strcmp(value, "0") != 0;
        return 0;
    case 'V':
        w->version = true;
        return 0;
    case OVERLAP:
        w->overlap = true;
        return 0;
    case LABEL:
        w->label = true;
        return 0;
    case LEFT_OUT:
        leave_out(w, o->name);
        return 0;
    default:
        return 0;
    }
}

static int unknown(int key, char **argv, struct err *e)
{
    const char *word = argv[optind - 1];
    if (key == ':')
        return err_set(e, -EINVAL, "%.64s needs a value", word);
    if (optopt)
        return err_set(e, -EINVAL, "there is no option -%c here", optopt);
    return err_set(e, -EINVAL, "there is no option %.64s here", word);
}

void words_done(struct words *w)
{
    text_done(&w->left_out);
}

int words_parse(int argc, char **argv, struct words *ret, struct err *e)
{
    int r = 0;
    *ret = (struct words){ .left_out = TEXT_INIT };
    optind = 0; /* anew, also in tests */
    opterr = 0;
    while (r == 0) {
        int index = -1;
        int key = getopt_long(argc, argv, short_words, table, &index);
        if (key == -1)
            break;
        const struct option *o = key == '?' || key == ':' ? NULL : by_key(key, index);
        r = o ? take(o, optarg, ret, e) : unknown(key, argv, e);
    }
    if (r < 0)
        return r;
    ret->command = argv + optind;
    if (optind >= argc && !ret->version)
        return err_set(e, -EINVAL, "which command? srun ./train");
    return 0;
}
