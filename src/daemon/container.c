/* Jobs in containers, and the CDI specification for those of others. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cdi/cdi.h"

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- jobs ---- */

static bool is_there(const char *runtime)
{
    const char *path = getenv("PATH");
    auto_free char *program = file_find_program(path && path[0] ? path : USUAL_PATH, runtime);
    return program != NULL;
}

static bool has_own_runtime(const char *wanted)
{
    for (size_t i = 0; container_runtimes[i]; i++)
        if ((!wanted || strcmp(wanted, container_runtimes[i]) == 0) &&
            is_there(container_runtimes[i]))
            return true;
    return false;
}

static int check_docker(const struct daemon *d, const struct job_container *c, struct err *e)
{
    if (!d->config.docker)
        return err_set(e, -ENOTSUP,
                       "no job may have its container made by docker here: whoever asks docker's "
                       "daemon is root by another name, so an administrator has to allow it "
                       "(divvy.yaml: docker: on); podman runs the same images");
    if (geteuid() != 0 || d->cgroup_host.kind == CGROUP_NONE || d->cgroup_host.kind == CGROUP_V1)
        return err_set(e, -ENOTSUP,
                       "docker cannot be had here: divvyd has to be root and to have a unified "
                       "cgroup hierarchy, or nothing would hold a container to its job");
    if (!is_there("docker"))
        return err_set(e, -ENOTSUP,
                       "there is no docker program on this machine; an administrator "
                       "can install docker's command line (docker.io, docker-ce-cli)");
    return job_container_check(c, e);
}

int container_check(const struct daemon *d, struct job_spec *s, uid_t uid, struct err *e)
{
    struct job_container *c = &s->container;
    if (uid == 0)
        return err_set(e, -EPERM,
                       "root's jobs run in no container: a job has no root rights over the "
                       "machine, and without them root's podman does not work; submit it as an "
                       "ordinary user");
    bool own = has_own_runtime(c->runtime);
    if (!c->runtime && !own && d->config.docker && is_there("docker"))
        c->runtime = text_dup("docker");
    if (job_container_is_docker(c))
        return check_docker(d, c, e);
    if (own)
        return 0;
    return err_set(e, -ENOTSUP,
                   "no container can be run here: there is no %s on this machine; an administrator "
                   "can install %s",
                   c->runtime ? c->runtime : "podman or apptainer",
                   c->runtime ? c->runtime : "one");
}

/*
 * By name where what is kept tells of all it has; a container's /dev is made of
 * the machine's, so not where the driver stands elsewhere.
 */
static void name_devices(const struct daemon *d, struct jobdir_spec *s)
{
    const struct place *p = &s->place;
    if (!d->paths.cdi || !d->cdi_written || strcmp(d->paths.driver_root, "/") != 0)
        return;
    for (size_t i = 0; i < p->count; i++)
        if (!strstr(d->cdi_written, p->items[i].uuid))
            return; /* it is not written yet */
    s->docker.cdi =
        text_fmt("%.*s", (int)(strrchr(d->paths.cdi, '/') - d->paths.cdi), d->paths.cdi);
    for (size_t i = 0; i < p->count; i++) {
        auto_free char *name = text_fmt(CDI_KIND "=%s", p->items[i].uuid);
        strv_add(&s->tasks[p->items[i].task].cdi, name);
    }
}

static void bind_docker(const struct daemon *d, struct jobdir_spec *s)
{
    if (!job_container_is_docker(&s->job.container) || !d->config.docker)
        return; /* switched off since: the supervisor says so */
    s->docker.socket = text_dup(d->config.docker_socket);
    s->docker.pull = d->config.docker == DOCKER_PULL;
    name_devices(d, s);
}

void container_bind(const struct daemon *d, struct jobdir_spec *s)
{
    struct err e = ERR_INIT;
    AUTO(cdi_facts) struct cdi_facts f = CDI_FACTS_INIT;
    bind_docker(d, s);
    if (s->job.request.kind == REQUEST_NOTHING)
        return;
    if (cdi_facts_read(d->paths.driver_root, d->driver_version, &f, &e) < 0) {
        log_line(LOG_WARN, "the container of job %llu gets no files of the driver: %s",
                 (unsigned long long)s->job_id, e.text);
        return;
    }
    for (size_t i = 0; i < f.file_count && i < JOBDIR_BINDS_MAX; i++) {
        auto_free char *host = file_under(d->paths.driver_root, f.files[i].real);
        auto_free char *bind = text_fmt("%s:%s", host, f.files[i].path);
        if (!strchr(host, ':') && !strchr(f.files[i].path, ':'))
            strv_add(&s->binds, bind);
    }
}

/* ---- the specification ---- */

static void forget(struct daemon *d)
{
    free(d->cdi_written);
    d->cdi_written = NULL;
    if (unlink(d->paths.cdi) < 0 && errno != ENOENT)
        log_line(LOG_ERROR, "cannot remove %s, which may name slices that are gone: %s",
                 d->paths.cdi, strerror(errno));
}

void cdi_open(struct daemon *d)
{
    const char *word = d->config.cdi;
    if (!word || strcmp(word, "off") == 0)
        return;
    if (strcmp(word, "on") != 0)
        d->paths.cdi = text_dup(word);
    else if (strcmp(d->paths.root, "/") == 0)
        d->paths.cdi = text_dup("/var/run/cdi/divvy.json");
    else
        d->paths.cdi = file_under(d->paths.root, "/run/cdi/divvy.json");
    forget(d);
}

/* Its mode is about to change: it is neither whole nor cut. */
static bool changes_mode(const struct daemon *d, const struct card *c)
{
    const struct card_memory *m = cards_find(d, c->uuid);
    return !m || m->last.mig_now != c->mig_now;
}

/* All that the specification depends on but for what the driver's files say. */
static char *picture(const struct daemon *d)
{
    struct text t = TEXT_INIT;
    text_add(&t, d->driver_version);
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        const struct card *c = &d->inventory.cards[i].card;
        text_addf(&t, "\n%s gpu%u minor %u %s %d%d", c->uuid, c->ordinal, c->minor,
                  card_health_word(c->health), c->mig_now, changes_mode(d, c));
        for (size_t k = 0; k < c->slice_count; k++) {
            const struct slice *s = &c->slices[k];
            text_addf(&t, " %u/%u=%s", s->gi, s->ci, s->uuid);
        }
    }
    return text_take(&t);
}

static int write_spec(const struct daemon *d, const char *words, struct err *e)
{
    char *slash = strrchr(d->paths.cdi, '/');
    auto_free char *folder = text_fmt("%.*s/", (int)(slash - d->paths.cdi), d->paths.cdi);
    int r = file_mkdirs(folder, 0755, e);
    if (r < 0)
        return r;
    auto_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open %s", folder);
    return file_replace(dir, slash + 1, words, strlen(words), 0644, e);
}

static int make_spec(const struct daemon *d, json_t **ret, struct err *e)
{
    AUTO(cdi_facts) struct cdi_facts f = CDI_FACTS_INIT;
    struct inventory inv = d->inventory;
    int r = cdi_facts_read(d->paths.driver_root, d->driver_version, &f, e);
    if (r < 0)
        return r;
    inv.cards = mem_new((inv.card_count + 1) * sizeof *inv.cards);
    inv.card_count = 0;
    for (size_t i = 0; i < d->inventory.card_count; i++)
        if (!changes_mode(d, &d->inventory.cards[i].card))
            inv.cards[inv.card_count++] = d->inventory.cards[i]; /* borrows what it points to */
    *ret = cdi_spec(&inv, &f, CDI_KIND);
    free(inv.cards);
    return 0;
}

/*
 * The inventory is what will be once the plans under way are carried out: a
 * slice that is about to go is not in it any more, and one that is not cut yet
 * has no UUID. So what is written never names more than there is.
 */
void cdi_follow(struct daemon *d)
{
    struct err e = ERR_INIT;
    auto_json json_t *j = NULL;
    if (!d->paths.cdi || !d->snapshot_came)
        return;
    if (d->inventory_stale)
        cards_rebuild(d);
    auto_free char *now = picture(d);
    if (text_same(now, d->cdi_written))
        return;
    int r = make_spec(d, &j, &e);
    auto_free char *words = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
    if (r == 0 && words)
        r = write_spec(d, words, &e);
    if (r < 0 || !words)
        forget(d); /* better none than one that is wrong */
    if (r < 0)
        log_line(LOG_ERROR, "the CDI specification was not written: %s", e.text);
    free(d->cdi_written);
    d->cdi_written = take_ptr(now); /* a failure is not tried again until something changes */
}

void cdi_done(struct daemon *d)
{
    if (d->paths.cdi)
        forget(d);
    free(take_ptr(d->paths.cdi));
}
