#include "jobdir/record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "jobdir/spec.h"
#include "model/job_json.h"

void jobdir_started_done(struct jobdir_started *s)
{
    free(s->tasks);
    free(s->cgroup);
    *s = (struct jobdir_started)JOBDIR_STARTED_INIT;
}

void jobdir_exit_done(struct jobdir_exit *x)
{
    free(x->tasks);
    memset(x, 0, sizeof *x);
}

static json_t *process_to_json(const struct jobdir_process *p)
{
    json_t *j = json_object();
    json_put_i64(j, "pid", p->pid);
    json_put_u64(j, "start_ticks", p->start_ticks);
    return j;
}

static json_t *started_task_to_json(const struct jobdir_started_task *t)
{
    json_t *j = json_object();
    json_put(j, "process", process_to_json(&t->process));
    json_put_bool(j, "memory_enforced", t->memory_enforced);
    json_put_bool(j, "cpu_enforced", t->cpu_enforced);
    json_put_bool(j, "cpus_enforced", t->cpus_enforced);
    json_put_bool(j, "pids_enforced", t->pids_enforced);
    json_put_u64(j, "mem_bytes", t->mem_bytes);
    json_put_u64(j, "cpu_milli", t->cpu_milli);
    json_put_u64(j, "pids", t->pids);
    json_put_text(j, "cpus", t->cpus);
    return j;
}

json_t *jobdir_started_to_json(const struct jobdir_started *s)
{
    json_t *j = json_object();
    json_put_u64(j, "v", JOBDIR_VERSION);
    json_put_text(j, "boot_id", s->boot_id);
    json_put_i64(j, "boot_us", s->boot_us);
    json_put_i64(j, "wall_us", s->wall_us);
    json_put(j, "supervisor", process_to_json(&s->supervisor));
    json_t *tasks = json_array();
    for (size_t i = 0; i < s->task_count; i++)
        json_add(tasks, started_task_to_json(&s->tasks[i]));
    json_put(j, "tasks", tasks);
    json_put_text(j, "isolation", s->isolation);
    json_put_text(j, "isolation_reason", s->isolation_reason);
    json_put_text(j, "tracking", s->tracking);
    json_put_text(j, "tracking_reason", s->tracking_reason);
    json_put_text(j, "cgroup", s->cgroup);
    return j;
}

static int process_from_json(json_t *j, struct jobdir_process *p, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "process", e);
    p->pid = (pid_t)fields_i64(&f, "pid", FIELD_REQUIRED, 1, INT_MAX, 0);
    p->start_ticks = fields_u64(&f, "start_ticks", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

static int started_task_from_json(json_t *j, struct jobdir_started *s, struct err *e)
{
    ARRAY_ROOM(s->tasks, s->task_alloc, s->task_count + 1);
    struct jobdir_started_task *t = &s->tasks[s->task_count++];
    struct fields f;
    fields_open(&f, j, "task", e);
    json_t *process = fields_object(&f, "process", FIELD_REQUIRED);
    t->memory_enforced = fields_bool(&f, "memory_enforced", false);
    t->cpu_enforced = fields_bool(&f, "cpu_enforced", false);
    t->cpus_enforced = fields_bool(&f, "cpus_enforced", false);
    t->pids_enforced = fields_bool(&f, "pids_enforced", false);
    t->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    t->cpu_milli = (uint32_t)fields_u64(&f, "cpu_milli", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    t->pids = (uint32_t)fields_u64(&f, "pids", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    fields_copy(&f, "cpus", FIELD_OPTIONAL, t->cpus, sizeof t->cpus);
    int r = fields_close(&f, FIELDS_OPEN);
    return r < 0 ? r : process_from_json(process, &t->process, e);
}

static void read_words(struct fields *f, struct jobdir_started *s)
{
    fields_copy(f, "boot_id", FIELD_OPTIONAL, s->boot_id, sizeof s->boot_id);
    s->boot_us = fields_i64(f, "boot_us", FIELD_REQUIRED, 0, INT64_MAX, 0);
    s->wall_us = fields_i64(f, "wall_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    fields_copy(f, "isolation", FIELD_OPTIONAL, s->isolation, sizeof s->isolation);
    fields_copy(f, "isolation_reason", FIELD_OPTIONAL, s->isolation_reason,
                sizeof s->isolation_reason);
    fields_copy(f, "tracking", FIELD_OPTIONAL, s->tracking, sizeof s->tracking);
    fields_copy(f, "tracking_reason", FIELD_OPTIONAL, s->tracking_reason,
                sizeof s->tracking_reason);
    s->cgroup = text_dup(fields_text(f, "cgroup", FIELD_OPTIONAL, PATH_MAX));
}

int jobdir_started_from_json(json_t *j, struct jobdir_started *ret, struct err *e)
{
    int r = jobdir_check_version(j, "started", e);
    if (r < 0)
        return r;
    struct fields f;
    AUTO(jobdir_started) struct jobdir_started s = JOBDIR_STARTED_INIT;
    fields_open(&f, j, "started", e);
    read_words(&f, &s);
    json_t *supervisor = fields_object(&f, "supervisor", FIELD_REQUIRED);
    json_t *tasks = fields_array(&f, "tasks", FIELD_REQUIRED, REQUEST_TASKS_MAX);
    r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        r = process_from_json(supervisor, &s.supervisor, e);
    for (size_t i = 0; r == 0 && i < json_array_size(tasks); i++)
        r = started_task_from_json(json_array_get(tasks, i), &s, e);
    if (r < 0)
        return r;
    *ret = s;
    s = (struct jobdir_started)JOBDIR_STARTED_INIT;
    return 0;
}

json_t *jobdir_exit_to_json(const struct jobdir_exit *x)
{
    json_t *j = json_object();
    json_put_u64(j, "v", JOBDIR_VERSION);
    json_put(j, "job", exit_to_json(&x->job));
    json_t *tasks = json_array();
    for (size_t i = 0; i < x->task_count; i++)
        json_add(tasks, exit_to_json(&x->tasks[i]));
    json_put(j, "tasks", tasks);
    if (x->prolog[0])
        json_put_text(j, "prolog", x->prolog);
    if (x->epilog[0])
        json_put_text(j, "epilog", x->epilog);
    return j;
}

int jobdir_exit_from_json(json_t *j, struct jobdir_exit *ret, struct err *e)
{
    int r = jobdir_check_version(j, "exit", e);
    if (r < 0)
        return r;
    struct fields f;
    struct jobdir_exit x = { .tasks = NULL };
    fields_open(&f, j, "exit", e);
    json_t *job = fields_object(&f, "job", FIELD_REQUIRED);
    json_t *tasks = fields_array(&f, "tasks", FIELD_OPTIONAL, REQUEST_TASKS_MAX);
    fields_copy(&f, "prolog", FIELD_OPTIONAL, x.prolog, sizeof x.prolog);
    fields_copy(&f, "epilog", FIELD_OPTIONAL, x.epilog, sizeof x.epilog);
    r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        r = exit_from_json(job, &x.job, e);
    for (size_t i = 0; r == 0 && tasks && i < json_array_size(tasks); i++) {
        ARRAY_ROOM(x.tasks, x.task_alloc, x.task_count + 1);
        r = exit_from_json(json_array_get(tasks, i), &x.tasks[x.task_count++], e);
    }
    if (r < 0)
        jobdir_exit_done(&x);
    else
        *ret = x;
    return r;
}
