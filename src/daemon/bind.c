/* What a task is told about its cards, and which device nodes it may open. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "driver/node.h"

#define MINORS_MAX (4 * 1024 * 1024)

static void add_env(struct jobdir_task *t, const char *name, const char *value)
{
    auto_free char *entry = text_fmt("%s=%s", name, value);
    strv_add(&t->env, entry);
}

/*
 * Nodes that are not there are made, since the task cannot have that done for
 * it. What is none (a simulated machine without privileges) cannot be granted.
 */
static void grant(struct jobdir_task *t, const char *driver_root, const char *node)
{
    struct stat st;
    struct err e = ERR_INIT;
    auto_free char *path = file_under(driver_root, node);
    if (driver_node_make(driver_root, node, &e) < 0)
        log_line(LOG_WARN, "%s", e.text);
    if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
        return;
    struct jobdir_device *dev = jobdir_task_add_device(t);
    dev->path = take_ptr(path);
    dev->major = major(st.st_rdev);
    dev->minor = minor(st.st_rdev);
}

/* Capability minors: "gpu0/gi3/ci0/access 31", one a line. */
static int cap_minor(const char *minors, const char *name, uint32_t *ret)
{
    size_t len = strlen(name);
    for (const char *line = minors; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            return sscanf(line + len, "%" SCNu32, ret) == 1 ? 0 : -EINVAL;
    return -ENOENT;
}

static int grant_cap(struct jobdir_task *t, const char *driver_root, const char *minors,
                     const char *name, struct err *e)
{
    uint32_t minor = 0;
    if (cap_minor(minors, name, &minor) < 0)
        return err_set(e, -ENODEV, "the driver lists no capability %s", name);
    auto_free char *node = text_fmt("/dev/nvidia-caps/nvidia-cap%u", minor);
    grant(t, driver_root, node);
    return 0;
}

/*
 * A slice's task gets the parent's node, which with MIG off would be the whole
 * card: never without having seen that MIG is on.
 */
static int grant_slice(struct daemon *d, struct jobdir_task *t, const struct card *c,
                       const struct placed *item, struct err *e)
{
    auto_free char *minors = NULL;
    auto_free char *path = file_under(d->paths.driver_root, "/proc/driver/nvidia-caps/mig-minors");
    auto_free char *gi = text_fmt("gpu%u/gi%u/access", c->minor, item->gi);
    auto_free char *ci = text_fmt("gpu%u/gi%u/ci%u/access", c->minor, item->gi, item->ci);
    if (!c->mig_now)
        return err_set(e, -ENODEV, "gpu%u has MIG off: its slice cannot be given out", c->ordinal);
    int r = file_read(AT_FDCWD, path, MINORS_MAX, &minors, NULL, e);
    if (r == 0)
        r = grant_cap(t, d->paths.driver_root, minors, gi, e);
    return r < 0 ? r : grant_cap(t, d->paths.driver_root, minors, ci, e);
}

static int grant_placed(struct daemon *d, struct jobdir_task *t, const struct placed *item,
                        bool gate, struct err *e)
{
    const struct card_memory *m = cards_find(d, item->card_uuid);
    if (!m || !m->seen)
        return err_set(e, -ENODEV, "gpu%u is not there any more", item->ordinal);
    if (m->last.minor != UINT32_MAX) {
        auto_free char *node = text_fmt("/dev/nvidia%u", m->last.minor);
        grant(t, d->paths.driver_root, node);
    }
    return item->whole || !gate ? 0 : grant_slice(d, t, &m->last, item, e);
}

static int grant_task(struct daemon *d, struct jobdir_spec *s, uint32_t task, const struct place *p,
                      struct err *e)
{
    static const char *const common[] = { "/dev/nvidiactl", "/dev/nvidia-uvm",
                                          "/dev/nvidia-uvm-tools" };
    struct jobdir_task *t = &s->tasks[task];
    bool any = false;
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].task != task)
            continue;
        int r = grant_placed(d, t, &p->items[i], s->gate, e);
        if (r < 0)
            return r;
        any = true;
    }
    for (size_t i = 0; any && i < sizeof common / sizeof *common; i++)
        grant(t, d->paths.driver_root, common[i]);
    return 0;
}

static void visible_devices(struct text *t, enum job_bind bind, uint32_t task,
                            const struct place *p)
{
    unsigned int n = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].task != task)
            continue;
        if (n)
            text_add(t, ",");
        if (bind == BIND_INDEX) /* behind a gate nothing else is there to be counted */
            text_addf(t, "%u", n);
        else
            text_add(t, p->items[i].uuid);
        n++;
    }
}

static void add_number(struct jobdir_task *t, const char *name, uint64_t n)
{
    auto_free char *number = text_fmt("%" PRIu64, n);
    add_env(t, name, number);
}

static void tell_array(const struct job *j, struct jobdir_task *t)
{
    const struct job_array *a = &j->waits->array;
    add_number(t, "DIVVY_ARRAY_JOB_ID", j->waits->id);
    add_number(t, "DIVVY_ARRAY_INDEX", j->array_index);
    add_number(t, "DIVVY_ARRAY_COUNT", a->count);
    add_number(t, "DIVVY_ARRAY_MIN", a->indices[0]);
    add_number(t, "DIVVY_ARRAY_MAX", a->indices[a->count - 1]);
}

static const char *find_env(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            return env[i] + len + 1;
    return NULL;
}

/* `srun` is found by such jobs alone: others may have Slurm's own. */
static void add_srun(struct daemon *d, const struct job_spec *s, struct jobdir_task *t)
{
    const char *path = find_env(s->env, "PATH");
    auto_free char *with =
        text_fmt("%s:%s", d->paths.srun, path && path[0] ? path : "/usr/local/bin:/usr/bin:/bin");
    if (!s->container.image)
        add_env(t, "PATH", with);
}

static void tell_slurm(const struct job *j, const struct jobdir_spec *s, struct jobdir_task *t)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    (void)gethostname(host, sizeof host - 1); /* cut, or as above */
    add_number(t, "SLURM_JOB_ID", j->id);
    add_number(t, "SLURM_JOBID", j->id);
    add_env(t, "SLURM_JOB_NAME", s->job.name);
    add_env(t, "SLURM_SUBMIT_DIR", s->job.submit_dir ? s->job.submit_dir : s->job.cwd);
    add_env(t, "SLURM_JOB_NODELIST", host);
    add_env(t, "SLURM_NODELIST", host);
    add_env(t, "SLURMD_NODENAME", host);
    add_number(t, "SLURM_NNODES", 1);
    add_number(t, "SLURM_JOB_NUM_NODES", 1);
    add_number(t, "SLURM_NODEID", 0);
    add_number(t, "SLURM_NTASKS", s->job.srun_tasks);
    add_number(t, "SLURM_NPROCS", s->job.srun_tasks);
    add_number(t, "SLURM_PROCID", 0);
    add_number(t, "SLURM_LOCALID", 0);
    add_number(t, "SLURM_GPUS_ON_NODE", j->attempt->place.count);
    add_number(t, "SLURM_RESTART_COUNT", j->attempt->number - 1);
    if (s->job.cpu_milli)
        add_number(t, "SLURM_CPUS_PER_TASK", (s->job.cpu_milli + 999) / 1000);
    if (!j->waits || !j->waits->array.count)
        return;
    const struct job_array *a = &j->waits->array;
    add_number(t, "SLURM_ARRAY_JOB_ID", j->waits->id);
    add_number(t, "SLURM_ARRAY_TASK_ID", j->array_index);
    add_number(t, "SLURM_ARRAY_TASK_COUNT", a->count);
    add_number(t, "SLURM_ARRAY_TASK_MIN", a->indices[0]);
    add_number(t, "SLURM_ARRAY_TASK_MAX", a->indices[a->count - 1]);
}

static void tell_task(struct daemon *d, const struct job *j, struct jobdir_spec *s, uint32_t task)
{
    const struct place *p = &j->attempt->place;
    struct jobdir_task *t = &s->tasks[task];
    AUTO(text) struct text devices = TEXT_INIT;
    AUTO(text) struct text uuids = TEXT_INIT;
    AUTO(text) struct text slices = TEXT_INIT;
    auto_free char *id = text_fmt("%" PRIu64, j->id);
    auto_free char *number = text_fmt("%u", task);
    visible_devices(&devices, s->job.bind, task, p);
    visible_devices(&uuids, BIND_UUID, task, p);
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].task == task) {
            if (slices.len)
                text_add(&slices, ",");
            placed_add_text(&slices, &p->items[i]);
        }
    if (s->job.bind != BIND_NONE)
        add_env(t, "CUDA_VISIBLE_DEVICES", devices.buf);
    add_env(t, "NVIDIA_VISIBLE_DEVICES", uuids.buf);
    add_env(t, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    add_env(t, "DIVVY_JOB_ID", id);
    add_env(t, "DIVVY_TASK_ID", number);
    add_env(t, "DIVVY_SLICES", slices.buf);
    add_env(t, "DIVVY_ROOT", d->paths.root);
    if (j->waits && j->waits->array.count)
        tell_array(j, t);
    if (s->job.srun_tasks) {
        tell_slurm(j, s, t);
        add_srun(d, &s->job, t);
        add_number(t, "DIVVY_SRUN_TASKS", request_tasks(&j->request));
    }
}

/* With --bind none the task must not see the submitter's own choice either. */
static void drop_env(char **env, const char *name)
{
    size_t kept = 0;
    size_t len = strlen(name);
    for (size_t i = 0; env && env[i]; i++) {
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            free(env[i]);
        else
            env[kept++] = env[i];
    }
    if (env)
        env[kept] = NULL;
}

int bind_tasks(struct daemon *d, const struct job *j, struct jobdir_spec *s, struct err *e)
{
    uint32_t tasks = request_tasks(&j->request);
    s->gate = d->isolation != ISOLATION_NONE;
    if (s->job.bind == BIND_NONE)
        drop_env(s->job.env, "CUDA_VISIBLE_DEVICES");
    for (uint32_t i = 0; i < tasks; i++) {
        (void)jobdir_spec_add_task(s); /* reached by index: additions move them */
        tell_task(d, j, s, i);
        limits_bind(d, s, i, &j->attempt->place);
        int r = grant_task(d, s, i, &j->attempt->place, e);
        if (r < 0)
            return r;
    }
    return 0;
}
