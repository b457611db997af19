#include "jobdir/spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_json.h"

#define PATH_BYTES 4096
#define LIST_BYTES 4096

struct jobdir_task *jobdir_spec_add_task(struct jobdir_spec *s)
{
    ARRAY_ROOM(s->tasks, s->task_alloc, s->task_count + 1);
    return &s->tasks[s->task_count++];
}

struct jobdir_device *jobdir_task_add_device(struct jobdir_task *t)
{
    ARRAY_ROOM(t->devices, t->device_alloc, t->device_count + 1);
    return &t->devices[t->device_count++];
}

static void task_done(struct jobdir_task *t)
{
    for (size_t i = 0; i < t->device_count; i++)
        free(t->devices[i].path);
    free(t->devices);
    strv_free(t->env);
    strv_free(t->cdi);
    free(t->limits.cpus);
    free(t->limits.mems);
}

void jobdir_spec_done(struct jobdir_spec *s)
{
    for (size_t i = 0; i < s->task_count; i++)
        task_done(&s->tasks[i]);
    free(s->tasks);
    job_spec_done(&s->job);
    place_done(&s->place);
    free(s->user);
    free(s->groups);
    free(s->root);
    free(s->driver_root);
    free(s->cgroup_root);
    free(s->attach_socket);
    free(s->prolog);
    free(s->pam);
    free(s->epilog);
    strv_free(s->binds);
    free(s->docker.socket);
    free(s->docker.cdi);
    memset(s, 0, sizeof *s);
}

static json_t *devices_to_json(const struct jobdir_task *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->device_count; i++) {
        json_t *j = json_object();
        json_put_text(j, "path", t->devices[i].path);
        json_put_u64(j, "major", t->devices[i].major);
        json_put_u64(j, "minor", t->devices[i].minor);
        json_add(list, j);
    }
    return list;
}

static json_t *limits_to_json(const struct jobdir_limits *l)
{
    json_t *j = json_object();
    json_put_u64(j, "mem_bytes", l->mem_bytes);
    json_put_u64(j, "cpu_milli", l->cpu_milli);
    json_put_u64(j, "pids", l->pids);
    json_put_text(j, "cpus", l->cpus);
    json_put_text(j, "mems", l->mems);
    return j;
}

static json_t *tasks_to_json(const struct jobdir_spec *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->task_count; i++) {
        json_t *j = json_object();
        json_put(j, "env", json_strv(s->tasks[i].env));
        json_put(j, "devices", devices_to_json(&s->tasks[i]));
        json_put(j, "limits", limits_to_json(&s->tasks[i].limits));
        if (s->tasks[i].cdi)
            json_put(j, "cdi", json_strv(s->tasks[i].cdi));
        json_add(list, j);
    }
    return list;
}

static json_t *docker_to_json(const struct jobdir_docker *d)
{
    json_t *j = json_object();
    json_put_text(j, "socket", d->socket);
    json_put_bool(j, "pull", d->pull);
    json_put_text(j, "cdi", d->cdi);
    return j;
}

static json_t *groups_to_json(const struct jobdir_spec *s)
{
    if (!s->groups)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < s->group_count; i++)
        json_add(list, json_integer((json_int_t)s->groups[i]));
    return list;
}

json_t *jobdir_spec_to_json(const struct jobdir_spec *s)
{
    json_t *j = json_object();
    json_put_u64(j, "v", JOBDIR_VERSION);
    json_put_u64(j, "job_id", s->job_id);
    json_put_u64(j, "attempt", s->attempt);
    json_put_u64(j, "uid", s->uid);
    json_put_u64(j, "gid", s->gid);
    json_put_text(j, "user", s->user);
    json_put(j, "groups", groups_to_json(s));
    json_put(j, "job", job_spec_to_json(&s->job, true));
    json_put(j, "place", place_to_json(&s->place));
    json_put(j, "tasks", tasks_to_json(s));
    json_put_i64(j, "kill_grace_us", s->kill_grace_us);
    json_put_i64(j, "attach_wait_us", s->attach_wait_us);
    json_put_text(j, "root", s->root);
    json_put_text(j, "driver_root", s->driver_root);
    json_put_text(j, "cgroup_root", s->cgroup_root);
    json_put_text(j, "attach_socket", s->attach_socket);
    if (s->binds)
        json_put(j, "binds", json_strv(s->binds));
    if (s->docker.socket)
        json_put(j, "docker", docker_to_json(&s->docker));
    json_put_text(j, "prolog", s->prolog);
    json_put_text(j, "epilog", s->epilog);
    json_put_i64(j, "hook_limit_us", s->hook_limit_us);
    json_put_text(j, "pam", s->pam);
    json_put_bool(j, "remove_shm", s->remove_shm);
    json_put_bool(j, "gate", s->gate);
    json_put_bool(j, "new_privileges", s->new_privileges);
    return j;
}

int jobdir_check_version(json_t *j, const char *what, struct err *e)
{
    struct fields f;
    fields_open(&f, j, what, e);
    uint64_t v = fields_u64(&f, "v", FIELD_REQUIRED, 1, UINT32_MAX, 0);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0 && v > JOBDIR_VERSION)
        r = err_set(
            e, -EPROTONOSUPPORT,
            "%s has format %u, this divvy knows up to %d; the program that wrote it is newer", what,
            (unsigned)v, JOBDIR_VERSION);
    return r;
}

static int device_from_json(json_t *j, struct jobdir_device *d, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "device", e);
    d->path = text_dup(fields_text(&f, "path", FIELD_OPTIONAL, PATH_BYTES));
    d->major = (uint32_t)fields_u64(&f, "major", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    d->minor = (uint32_t)fields_u64(&f, "minor", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

static int limits_from_json(json_t *j, struct jobdir_limits *l, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "limits", e);
    l->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    l->cpu_milli = (uint32_t)fields_u64(&f, "cpu_milli", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    l->pids = (uint32_t)fields_u64(&f, "pids", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    l->cpus = text_dup(fields_text(&f, "cpus", FIELD_OPTIONAL, LIST_BYTES));
    l->mems = text_dup(fields_text(&f, "mems", FIELD_OPTIONAL, LIST_BYTES));
    return fields_close(&f, FIELDS_OPEN);
}

static int task_from_json(json_t *j, struct jobdir_task *t, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "task", e);
    t->env = fields_strv(&f, "env", FIELD_OPTIONAL, JOB_ARGS_MAX, JOB_ENV_MAX);
    json_t *devices = fields_array(&f, "devices", FIELD_OPTIONAL, JOBDIR_DEVICES_MAX);
    json_t *limits = fields_object(&f, "limits", FIELD_OPTIONAL);
    t->cdi = fields_strv(&f, "cdi", FIELD_OPTIONAL, JOBDIR_DEVICES_MAX, JOB_ENV_MAX);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0 && limits)
        r = limits_from_json(limits, &t->limits, e);
    for (size_t i = 0; r == 0 && devices && i < json_array_size(devices); i++)
        r = device_from_json(json_array_get(devices, i), jobdir_task_add_device(t), e);
    return r;
}

static int docker_from_json(json_t *j, struct jobdir_docker *d, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "docker", e);
    d->socket = text_dup(fields_text(&f, "socket", FIELD_REQUIRED, PATH_BYTES));
    d->pull = fields_bool(&f, "pull", false);
    d->cdi = text_dup(fields_text(&f, "cdi", FIELD_OPTIONAL, PATH_BYTES));
    return fields_close(&f, FIELDS_OPEN);
}

static int groups_from_json(json_t *list, struct jobdir_spec *s, struct err *e)
{
    s->group_count = json_array_size(list);
    s->groups = mem_new((s->group_count + 1) * sizeof *s->groups);
    for (size_t i = 0; i < s->group_count; i++) {
        json_t *item = json_array_get(list, i);
        json_int_t gid = json_integer_value(item);
        if (!json_is_integer(item) || gid < 0 || gid >= UINT32_MAX)
            return err_set(e, -EINVAL, "spec: 'groups' must hold group numbers");
        s->groups[i] = (gid_t)gid;
    }
    return 0;
}

static void read_scalars(struct fields *f, struct jobdir_spec *s)
{
    s->job_id = fields_u64(f, "job_id", FIELD_REQUIRED, 1, INT64_MAX, 0);
    s->attempt = (uint32_t)fields_u64(f, "attempt", FIELD_REQUIRED, 1, UINT32_MAX, 0);
    s->uid = (uid_t)fields_u64(f, "uid", FIELD_REQUIRED, 0, UINT32_MAX - 1, 0);
    s->gid = (gid_t)fields_u64(f, "gid", FIELD_REQUIRED, 0, UINT32_MAX - 1, 0);
    s->user = text_dup(fields_text(f, "user", FIELD_OPTIONAL, 256));
    s->kill_grace_us =
        fields_i64(f, "kill_grace_us", FIELD_OPTIONAL, 0, CLOCK_DAY, 10 * CLOCK_SECOND);
    s->attach_wait_us =
        fields_i64(f, "attach_wait_us", FIELD_OPTIONAL, 0, CLOCK_DAY, 10 * CLOCK_SECOND);
    s->root = text_dup(fields_text(f, "root", FIELD_OPTIONAL, PATH_BYTES));
    s->driver_root = text_dup(fields_text(f, "driver_root", FIELD_OPTIONAL, PATH_BYTES));
    s->cgroup_root = text_dup(fields_text(f, "cgroup_root", FIELD_OPTIONAL, PATH_BYTES));
    s->attach_socket = text_dup(fields_text(f, "attach_socket", FIELD_OPTIONAL, PATH_BYTES));
    s->binds = fields_strv(f, "binds", FIELD_OPTIONAL, JOBDIR_BINDS_MAX,
                           JOBDIR_BINDS_MAX * 2 * PATH_BYTES);
    s->prolog = text_dup(fields_text(f, "prolog", FIELD_OPTIONAL, PATH_BYTES));
    s->epilog = text_dup(fields_text(f, "epilog", FIELD_OPTIONAL, PATH_BYTES));
    s->hook_limit_us = fields_i64(f, "hook_limit_us", FIELD_OPTIONAL, 0, CLOCK_DAY, CLOCK_MINUTE);
    s->pam = text_dup(fields_text(f, "pam", FIELD_OPTIONAL, 64));
    s->remove_shm = fields_bool(f, "remove_shm", false);
    s->gate = fields_bool(f, "gate", false);
    s->new_privileges = fields_bool(f, "new_privileges", false);
}

static void fill_absent(struct jobdir_spec *s)
{
    if (!s->root)
        s->root = text_dup("/");
    if (!s->driver_root)
        s->driver_root = text_dup("/");
    if (!s->cgroup_root)
        s->cgroup_root = text_dup("");
}

static int read_parts(struct fields *f, struct jobdir_spec *s, struct err *e)
{
    json_t *groups = fields_array(f, "groups", FIELD_OPTIONAL, JOBDIR_GROUPS_MAX);
    json_t *job = fields_object(f, "job", FIELD_REQUIRED);
    json_t *place = fields_array(f, "place", FIELD_OPTIONAL, BOARD_UNITS_MAX * REQUEST_TASKS_MAX);
    json_t *tasks = fields_array(f, "tasks", FIELD_REQUIRED, REQUEST_TASKS_MAX);
    json_t *docker = fields_object(f, "docker", FIELD_OPTIONAL);
    int r = fields_close(f, FIELDS_OPEN);
    if (r == 0 && docker)
        r = docker_from_json(docker, &s->docker, e);
    if (r == 0 && groups)
        r = groups_from_json(groups, s, e);
    if (r == 0)
        r = job_spec_from_json_open(job, &s->job, e);
    if (r == 0 && place)
        r = place_from_json(place, &s->place, e);
    for (size_t i = 0; r == 0 && i < json_array_size(tasks); i++)
        r = task_from_json(json_array_get(tasks, i), jobdir_spec_add_task(s), e);
    if (r == 0 && s->task_count == 0)
        r = err_set(e, -EINVAL, "spec: there is no task");
    return r;
}

int jobdir_spec_from_json(json_t *j, struct jobdir_spec *ret, struct err *e)
{
    int r = jobdir_check_version(j, "spec.json", e);
    if (r < 0)
        return r;
    struct fields f;
    AUTO(jobdir_spec) struct jobdir_spec s = { .job_id = 0 };
    fields_open(&f, j, "spec", e);
    read_scalars(&f, &s);
    r = read_parts(&f, &s, e);
    if (r < 0)
        return r;
    fill_absent(&s);
    *ret = s;
    s = (struct jobdir_spec){ .job_id = 0 };
    return 0;
}
