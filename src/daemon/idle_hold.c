/* What follows when a job holds cards and does nothing with them: divvy.yaml's `idle`. */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/hooks.h"

#define PROC_FILE_MAX 65536
/* One that was idle each time it ran is not put back for ever. */
#define REQUEUES_MAX 3

/* ---- is it idle? ---- */

enum look {
    LOOK_NONE, /* nobody can say */
    LOOK_BUSY,
    LOOK_IDLE,
};

/* CPU time of one process; false: it is gone. */
static bool cpu_of_pid(pid_t pid, int64_t *sum_us)
{
    auto_free char *path = text_fmt("/proc/%d/stat", (int)pid);
    auto_free char *text = NULL;
    uint64_t user = 0, system = 0;
    if (file_read(AT_FDCWD, path, PROC_FILE_MAX, &text, NULL, NULL) < 0)
        return false;
    const char *end = strrchr(text, ')'); /* the name may have any character inside */
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
                       &user, &system) != 2)
        return false;
    *sum_us += (int64_t)((user + system) * CLOCK_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

/* Of its processes on its cards: what can be known where no cgroup counts for the whole job. */
static int64_t cpu_of_card_processes(const struct job *j)
{
    const struct place *p = &j->attempt->place;
    int64_t sum_us = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct card_memory *m = cards_find(j->daemon, p->items[i].card_uuid);
        bool again = i > 0 && strcmp(p->items[i].card_uuid, p->items[i - 1].card_uuid) == 0;
        for (size_t k = 0; m && m->owners && !again && k < m->last.process_count; k++)
            if (m->owners[k] == j->id && !cpu_of_pid(m->last.processes[k].pid, &sum_us))
                return -1;
    }
    return sum_us;
}

/* CPU time of the whole job so far; 0: not counted here. */
static int64_t cpu_of_cgroup(const struct job *j)
{
    const struct daemon *d = j->daemon;
    struct jobdir_started s = JOBDIR_STARTED_INIT;
    struct cgroup c = CGROUP_INIT;
    auto_close int dir = -1;
    auto_free char *name = text_fmt("%" PRIu64 ".%u", j->id, j->attempt->number);
    int64_t sum_us = 0;
    if (jobdir_open(d->paths.jobs, j->id, j->attempt->number, &dir, NULL) < 0 ||
        jobdir_read_started(dir, &s, NULL) < 0)
        return 0;
    if (s.cgroup && cgroup_open(&d->cgroup_host, s.cgroup, name, &c, NULL) == 0) {
        for (unsigned task = 0; task < request_tasks(&j->request); task++) {
            struct cgroup_usage u;
            cgroup_usage(&c, task, &u);
            sum_us += u.cpu_us;
        }
        cgroup_done(&c);
    }
    jobdir_started_done(&s);
    return sum_us;
}

/* Since the last look. Unknown counts as busy: it ends nobody. */
static enum look look_at_cpu(struct job *j, int64_t span_us)
{
    struct idle_hold *h = &j->attempt->idle;
    int64_t now_us = cpu_of_cgroup(j);
    if (!now_us)
        now_us = cpu_of_card_processes(j);
    int64_t before_us = h->cpu_us;
    h->cpu_us = now_us;
    if (now_us < 0 || before_us < 0 || now_us < before_us || span_us <= 0)
        return LOOK_NONE;
    uint32_t percent = j->daemon->config.idle.cpu_percent;
    bool low = (double)(now_us - before_us) * 100 < (double)percent * (double)span_us;
    return low ? LOOK_IDLE : LOOK_BUSY;
}

static bool has_process(const struct card_memory *m, const struct placed *item, uint64_t job_id)
{
    for (size_t i = 0; i < m->last.process_count; i++)
        if (m->owners[i] == job_id && (item->whole || m->last.processes[i].gi == item->gi))
            return true;
    return false;
}

/* What its cards alone can tell. *ret_ask_cpu: processes are on a part that tells no activity. */
static enum look look_at_cards(const struct job *j, bool *ret_ask_cpu, bool *ret_processes)
{
    const struct place *p = &j->attempt->place;
    enum look look = p->count ? LOOK_IDLE : LOOK_BUSY;
    *ret_ask_cpu = *ret_processes = false;
    for (size_t i = 0; i < p->count; i++) {
        const struct card_memory *m = cards_find(j->daemon, p->items[i].card_uuid);
        if (!m || !m->present || m->silent || !m->owners || !(m->last.known & KNOW_PROCESSES))
            return LOOK_NONE;
        if (!has_process(m, &p->items[i], j->id))
            continue;
        *ret_processes = true;
        uint32_t percent = 0;
        if (!samples_load(j, &p->items[i], &percent))
            *ret_ask_cpu = true;
        else if (percent > j->daemon->config.idle.load_percent)
            look = LOOK_BUSY;
    }
    return look;
}

/* ---- what follows ---- */

static const char *what_was_seen(const struct idle_hold *h)
{
    static const char *const words[] = { [IDLE_NO_PROCESS] = "no process on what it holds",
                                         [IDLE_NO_LOAD] = "what it holds has nothing to do",
                                         [IDLE_NO_CPU] = "its processes do next to nothing" };
    return words[h->how];
}

static bool may_requeue(const struct job *j)
{
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    return j->attempt->number < REQUEUES_MAX &&
           store_job_spec(j->daemon->store, j->id, &spec, NULL) == 0 && !spec.no_requeue &&
           !spec.attached;
}

char *idle_words(const struct job *j, int64_t now_us)
{
    const struct config_idle *c = &j->daemon->config.idle;
    if (j->state != JOB_RUNNING || !j->attempt->idle.warned_boot_us)
        return NULL;
    const struct idle_hold *h = &j->attempt->idle;
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "idle for ");
    text_add_duration(&t, now_us > h->since_boot_us ? now_us - h->since_boot_us : 0);
    text_addf(&t, ": %s", what_was_seen(h));
    if (c->then == IDLE_WARN)
        return text_take(&t);
    int64_t left = h->warned_boot_us + c->grace_us - now_us;
    text_addf(&t, "; it %s in ", h->goes_back ? "goes back to the queue" : "is ended");
    text_add_duration(&t, left > 0 ? left : 0);
    text_add(&t, " unless it begins to use it");
    return text_take(&t);
}

static void warn(struct job *j, int64_t now_us)
{
    struct idle_hold *h = &j->attempt->idle;
    h->warned_boot_us = now_us;
    h->goes_back = j->daemon->config.idle.then == IDLE_REQUEUE && may_requeue(j);
    auto_free char *why = idle_words(j, now_us);
    hooks_note(j, HOOK_IDLE, why);
    log_line(LOG_NOTE, "job %" PRIu64 " of %s is %s", j->id, j->user, why);
    api_job_changed(j->daemon->api, j->id);
}

static void end(struct job *j, int64_t now_us)
{
    struct err e = ERR_INIT;
    const struct idle_hold *h = &j->attempt->idle;
    AUTO(text) struct text why = TEXT_INIT;
    text_add(&why, "it was idle for ");
    text_add_duration(&why, now_us - h->since_boot_us);
    text_addf(&why, ": %s", what_was_seen(h));
    auto_free char *words = text_fmt("%s: %s", h->goes_back ? "requeued" : "cancelled", why.buf);
    log_line(LOG_NOTE, "job %" PRIu64 " of %s: %s", j->id, j->user, words);
    if (h->goes_back && job_requeue(j, words, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    else if (!h->goes_back)
        (void)job_stop(j, JOB_CANCELLED, JOBDIR_STOP_CANCEL, words); /* tried again when it fails */
}

static bool is_exempt(const struct job *j)
{
    const struct field_words *w = &j->daemon->config.idle.exempt;
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->words[i], j->qos) == 0)
            return true;
    return false;
}

static void follow(struct job *j, int64_t now_us)
{
    const struct config_idle *c = &j->daemon->config.idle;
    const struct idle_hold *h = &j->attempt->idle;
    if (!h->warned_boot_us && now_us - h->since_boot_us >= c->after_us)
        warn(j, now_us);
    else if (h->warned_boot_us && c->then != IDLE_WARN && now_us - h->warned_boot_us >= c->grace_us)
        end(j, now_us);
}

/* Whatever was known before is not held against it any more. */
static void forget(struct job *j)
{
    struct idle_hold *h = &j->attempt->idle;
    bool warned = h->warned_boot_us;
    h->since_boot_us = h->warned_boot_us = 0;
    if (warned)
        api_job_changed(j->daemon->api, j->id);
}

void idle_hold_look(struct job *j, int64_t since_us, int64_t until_us, bool seen)
{
    struct idle_hold *h = &j->attempt->idle;
    bool ask_cpu, processes;
    if (!j->daemon->config.idle.after_us || is_exempt(j))
        return;
    if (!seen) {
        forget(j);
        h->cpu_us = -1;
    }
    enum look look = look_at_cards(j, &ask_cpu, &processes);
    if (look == LOOK_IDLE && ask_cpu)
        look = look_at_cpu(j, until_us - since_us);
    else
        h->cpu_us = -1;
    if (look != LOOK_IDLE) {
        forget(j);
        return;
    }
    h->how = !processes ? IDLE_NO_PROCESS : ask_cpu ? IDLE_NO_CPU : IDLE_NO_LOAD;
    if (!h->since_boot_us)
        h->since_boot_us = until_us;
    else
        follow(j, until_us);
}
