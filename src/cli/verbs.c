#include "cli/verb.h"

#include <string.h>

#include "config/nearest.h"

const struct verb verbs[] = {
    { "submit", verb_submit, "queue a command or a script, and come back at once" },
    { "run", verb_run, "queue a command, attach to it, and exit as it did" },
    { "queue", verb_queue, "jobs that wait and run, where, and why not yet" },
    { "show", verb_show, "all about one job" },
    { "attach", verb_attach, "run a shell or a command inside a job that runs" },
    { "logs", verb_logs, "what a job has written" },
    { "why", verb_why, "why a job waits, and what would start it sooner" },
    { "usage", verb_usage_of, "what was handed out, to whom, and how much of it lay idle" },
    { "history", verb_history, "attempts that ended, for a table or a replay" },
    { "shares", verb_shares, "who has which share, what was used of it, and who goes first" },
    { "wait", verb_wait, "wait for jobs to end, and exit as they did" },
    { "cancel", verb_cancel, "end jobs, or take them out of the queue" },
    { "replay", verb_replay, "what another policy or other cards would have made of past jobs" },
    { "hold", verb_hold, "keep jobs that wait from starting" },
    { "release", verb_release, "let jobs that are held start" },
    { "requeue", verb_requeue, "end jobs that run, and put them back into the queue" },
    { "gpus", verb_gpus, "the cards, their slices, and who has them" },
    { "profiles", verb_profiles, "how a card can be cut" },
    { "layout", verb_layout, "what the cards should be, from a file: check, plan, apply, export" },
    { "mig-parted", verb_mig_parted, "as nvidia-mig-parted: apply, assert, export and more" },
    { "maintenance", verb_maintenance, "give cards to the administrator, and take them back" },
    { "slice", verb_slice, "make or destroy one slice, and touch nothing else" },
    { "cdi", verb_cdi, "cards and slices for container runtimes (CDI)" },
    { "pool", verb_pool, "who may hand out a card: queue, slurm, kubernetes or off" },
    { "mode", verb_mode, "what a card may become: whole, slices or auto" },
    { "status", verb_status, "the daemon, the driver and the queue in a few lines" },
    { "setup", verb_setup, "make this machine ready: group, folders, units, divvy.yaml" },
    { "version", verb_version, "the version of this command" },
    { "help", verb_help, "this list, or the options of a verb" },
    { NULL, NULL, NULL },
};

verb_fn verb_find(const char *name)
{
    for (const struct verb *v = verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v->run;
    return NULL;
}

/* Words that users of Slurm, Docker and nvidia-smi bring along. */
static const struct {
    const char *word, *verb;
} habits[] = {
    { "sbatch", "submit" },   { "srun", "run" },    { "squeue", "queue" },  { "scancel", "cancel" },
    { "sinfo", "gpus" },      { "ps", "queue" },    { "ls", "queue" },      { "kill", "cancel" },
    { "exec", "attach" },     { "log", "logs" },    { "tail", "logs" },     { "inspect", "show" },
    { "top", "gpus" },        { "stop", "cancel" }, { "rm", "cancel" },     { "list", "queue" },
    { "nvidia-smi", "gpus" }, { "info", "status" }, { "sshare", "shares" },
};

const char *verb_nearest(const char *name)
{
    const char *names[sizeof verbs / sizeof *verbs];
    size_t n = 0;
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(habits[i].word, name) == 0)
            return habits[i].verb;
    for (const struct verb *v = verbs; v->name; v++)
        names[n++] = v->name;
    return nearest_name(name, names, n);
}
