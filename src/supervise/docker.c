#include "supervise/docker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "model/fields.h"
#include "supervise/client.h"
#include "supervise/container.h"

#define ASK_US (20 * CLOCK_SECOND)
#define VOLUME "--volume="
#define SAID_MAX 200 /* of the client's words, in a sentence of ours */

void docker_host_done(struct docker_host *d)
{
    free(d->parent);
    free(d->script);
    strv_free(d->mounts);
    strv_free(d->reach);
    *d = (struct docker_host)DOCKER_HOST_INIT;
}

static void add(char ***words, char *take_word)
{
    auto_free char *word = take_word;
    strv_add(words, word);
}

/* ---- what the daemon says of itself ---- */

static const char *word_of(const json_t *j, const char *key)
{
    const char *word = json_string_value(json_object_get(j, key));
    return word ? word : "";
}

static bool lists(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (text_same(json_string_value(json_array_get(list, i)), word))
            return true;
    return false;
}

int docker_judge(const struct jobdir_spec *s, const char *info, struct docker_host *ret,
                 struct err *e)
{
    const char *begin = strchr(info, '{'); /* warnings come before it, or after */
    auto_json json_t *j = json_loads(begin ? begin : "{}", JSON_DISABLE_EOF_CHECK, NULL);
    const char *driver = word_of(j, "CgroupDriver");
    const char *why = json_string_value(json_array_get(json_object_get(j, "ServerErrors"), 0));
    if (!word_of(j, "ServerVersion")[0])
        return err_set(e, -EIO, "docker's daemon does not answer at %.100s%s%.*s", s->docker.socket,
                       why ? ": " : "", SAID_MAX, why ? why : "");
    if (strcmp(driver, "cgroupfs") != 0)
        return err_set(e, -ENOTSUP,
                       "docker's daemon uses the cgroup driver %.32s here, which can put no "
                       "container below a job; with \"exec-opts\": "
                       "[\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json it can",
                       driver);
    if (lists(json_object_get(j, "SecurityOptions"), "name=rootless"))
        return err_set(e, -ENOTSUP,
                       "docker's daemon at %.100s is not root, and can put no container below a "
                       "job",
                       s->docker.socket);
    ret->init = word_of(json_object_get(j, "InitCommit"), "ID")[0] != '\0';
    ret->cdi = s->docker.cdi && lists(json_object_get(j, "CDISpecDirs"), s->docker.cdi);
    return 0;
}

static int ask(const struct jobdir_spec *s, const char *program, struct docker_host *ret,
               struct err *e)
{
    const char *const words[] = { program, "info", "--format", "{{json .}}", NULL };
    struct client_call call = { .words = (char **)(uintptr_t)words, .limit_us = ASK_US };
    auto_free char *said = NULL;
    call.env = docker_environment(s);
    int r = client_run(&call, &said, e);
    strv_free(call.env);
    return r < 0 ? err_wrap(e, r, "docker's daemon") : docker_judge(s, said, ret, e);
}

static char *find_parent(const struct cgroup *c, unsigned task)
{
    AUTO(cgroup_host) struct cgroup_host host;
    cgroup_host_detect(NULL, NULL, &host);
    return cgroup_task_name(&host, c, task);
}

/* ---- what may be mounted ---- */

static int cannot_mount(const char *path, struct err *e)
{
    return err_set(e, -EACCES, "cannot mount %.200s: it is not there, or you may not go there",
                   path);
}

/* Nobody else can exchange what is in this directory. */
static bool is_roots(const char *dir)
{
    struct stat st;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 && !(st.st_mode & 022);
}

int docker_source(const char *path, char **ret, struct err *e)
{
    auto_free char *real = realpath(path, NULL);
    if (!real)
        return cannot_mount(path, e);
    if (strpbrk(real, ",\"\n"))
        return err_set(e, -EINVAL,
                       "cannot mount %.200s: docker's words have no room for its comma, quote or "
                       "line break",
                       real);
    for (char *slash = strchr(real + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!is_roots(real))
            break; /* from here on others can exchange what is there */
        *slash = '/';
    }
    *ret = take_ptr(real);
    return 0;
}

int docker_reachable(char *const *reach, struct err *e)
{
    for (; reach && *reach; reach++) {
        auto_close int fd = open(*reach, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return cannot_mount(*reach, e);
    }
    return 0;
}

static void add_mount(struct docker_host *d, const char *from, const char *to, const char *how)
{
    add(&d->mounts, text_fmt("--mount=type=bind,src=%s,dst=%s%s", from, to, how));
    strv_add(&d->reach, from);
}

static int add_folder(const struct jobdir_spec *s, struct docker_host *d, struct err *e)
{
    auto_free char *source = NULL;
    if (strcmp(s->job.cwd, "/") == 0)
        return 0;
    int r = docker_source(s->job.cwd, &source, e);
    if (r == 0)
        add_mount(d, source, source, "");
    return r;
}

/* "/data:/set:ro": the whole of it has to be root's to exchange. */
static int add_volume(const char *volume, struct docker_host *d, struct err *e)
{
    const char *colon = strchr(volume, ':'); /* model/container.h has seen to its form */
    auto_free char *from = text_fmt("%.*s", (int)(colon - volume), volume);
    auto_free char *to = text_fmt("%.*s", (int)strcspn(colon + 1, ":"), colon + 1);
    auto_free char *source = NULL;
    auto_free char *real = realpath(from, NULL);
    bool read_only = text_same(strchr(colon + 1, ':'), ":ro");
    int r = docker_source(from, &source, e);
    if (r < 0)
        return r;
    if (!text_same(source, real))
        return err_set(
            e, -EINVAL,
            "cannot mount %.128s: root's daemon would, and others than root can exchange "
            "what lies below %.128s; --volume with that works",
            from, source);
    add_mount(d, source, to, read_only ? ",readonly" : "");
    return 0;
}

static int find_mounts(const struct jobdir_spec *s, struct docker_host *d, struct err *e)
{
    int r = add_folder(s, d, e);
    for (char **a = s->job.container.args; r == 0 && a && *a; a++)
        if (text_starts(*a, VOLUME))
            r = add_volume(*a + strlen(VOLUME), d, e);
    return r;
}

int docker_look(const struct jobdir_spec *s, const struct cgroup *c, unsigned task,
                struct docker_host *ret, struct err *e)
{
    AUTO(docker_host) struct docker_host d = DOCKER_HOST_INIT;
    AUTO(container_host) struct container_host h = CONTAINER_HOST_INIT;
    if (!s->docker.socket)
        return err_set(e, -EPERM,
                       "no job may have its container made by docker here any more; an "
                       "administrator has to allow it (divvy.yaml: docker: on)");
    if (geteuid() != 0 || (c->kind != CGROUP_V2 && c->kind != CGROUP_HYBRID))
        return err_set(e, -ENOTSUP,
                       "without a unified cgroup nothing would hold a container of "
                       "docker's to its job");
    int r = container_find(&s->job.container, &h, e);
    if (r == 0)
        r = ask(s, h.program, &d, e);
    if (r == 0)
        r = find_mounts(s, &d, e);
    if (r < 0)
        return r;
    d.parent = find_parent(c, task);
    *ret = d;
    d = (struct docker_host)DOCKER_HOST_INIT;
    return 0;
}

/* ---- words ---- */

/* Several Divvys can share one daemon: "divvy-41.1-0", another's "divvy-3f0c…-41.1-0". */
static char *container_name(const struct jobdir_spec *s, unsigned task)
{
    auto_free char *root = cgroup_root_for(s->root);
    return text_fmt("%s-%" PRIu64 ".%" PRIu32 "-%u", root + 1, s->job_id, s->attempt, task);
}

static bool said(const struct jobdir_spec *s, const char *option)
{
    for (char **a = s->job.container.args; a && *a; a++)
        if (text_starts(*a, option))
            return true;
    return false;
}

/* Who it is inside, and what it cannot become there. */
static void add_user(const struct jobdir_spec *s, char ***words)
{
    add(words, text_fmt("--user=%u:%u", (unsigned)s->uid, (unsigned)s->gid));
    for (size_t i = 0; s->groups && i < s->group_count; i++)
        add(words, text_fmt("--group-add=%u", (unsigned)s->groups[i]));
    strv_add(words,
             "--userns=host"); /* a daemon that renumbers users would make it somebody else */
    strv_add(words, "--cap-drop=ALL");
    strv_add(words, "--security-opt=no-new-privileges");
    strv_add(words, "--security-opt=label=disable"); /* SELinux would close nodes and folders */
}

static uint64_t shared_memory(const struct jobdir_spec *s, unsigned task)
{
    uint64_t limit = s->tasks[task].limits.mem_bytes;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return limit ? limit : (uint64_t)pages / 2 * (uint64_t)page;
}

static void add_how(const struct jobdir_spec *s, unsigned task, const struct docker_host *d,
                    char ***words)
{
    add(words, text_fmt("--cgroup-parent=%s", d->parent));
    strv_add(words, "--log-driver=none"); /* the output is the job's own file, or its client */
    strv_add(words, "--no-healthcheck");
    add(words, text_fmt("--pull=%s", s->docker.pull ? "missing" : "never"));
    if (d->init)
        strv_add(words, "--init");
    if (!said(s, "--network="))
        strv_add(words, "--network=host");
    if (!said(s, "--shm-size=")) /* the job's memory limit counts it */
        add(words, text_fmt("--shm-size=%" PRIu64, shared_memory(s, task)));
    if (!said(s, "--workdir="))
        add(words, text_fmt("--workdir=%s", s->job.cwd));
    if (s->job.attached)
        strv_add(words, "--interactive");
    if (s->job.attached && s->job.pty)
        strv_add(words, "--tty");
}

/* A gate lets nobody make nodes, so the machine's own are mounted and only allowed. */
static void add_nodes(const struct jobdir_spec *s, unsigned task, char ***words)
{
    const struct jobdir_task *t = &s->tasks[task];
    for (size_t i = 0; i < t->device_count; i++) {
        const struct jobdir_device *n = &t->devices[i];
        add(words, text_fmt("--mount=type=bind,src=%s,dst=%s", n->path,
                            container_below_root(s->driver_root, n->path)));
        add(words, text_fmt("--device-cgroup-rule=c %u:%u rw", n->major, n->minor));
    }
    for (char **b = t->device_count ? s->binds : NULL; b && *b; b++)
        add(words, text_fmt("--mount=type=bind,src=%.*s,dst=%s,readonly", (int)strcspn(*b, ":"), *b,
                            strchr(*b, ':') + 1));
}

static void add_devices(const struct jobdir_spec *s, unsigned task, const struct docker_host *d,
                        char ***words)
{
    char **cdi = d->cdi ? s->tasks[task].cdi : NULL;
    for (char **name = cdi; name && *name; name++)
        add(words, text_fmt("--device=%s", *name));
    if (!cdi)
        add_nodes(s, task, words);
    /* The devices are there already; NVIDIA's older hook is not to look for them. */
    strv_add(words, "--env=NVIDIA_VISIBLE_DEVICES=void");
}

static void add_job(const struct jobdir_spec *s, const struct docker_host *d, char ***words)
{
    for (char **m = d->mounts; m && *m; m++)
        strv_add(words, *m);
    if (d->script)
        add(words, text_fmt("--mount=type=bind,src=%s,dst=" DOCKER_SCRIPT ",readonly", d->script));
    add(words, text_fmt("--env-file=/proc/self/fd/%d", CONTAINER_SCRIPT_FD));
    for (char **a = s->job.container.args; a && *a; a++)
        if (!text_starts(*a, VOLUME))
            strv_add(words, *a);
    strv_add(words, s->job.container.image);
    if (d->script)
        strv_add(words, DOCKER_SCRIPT);
    for (char **a = s->job.argv + (d->script ? 1 : 0); *a; a++)
        strv_add(words, *a);
}

static int check_paths(const struct jobdir_spec *s, unsigned task, struct err *e)
{
    const struct jobdir_task *t = &s->tasks[task];
    for (size_t i = 0; i < t->device_count; i++)
        if (strpbrk(t->devices[i].path, ",\"\n"))
            return err_set(e, -EINVAL, "docker's words have no room for the device node %.128s",
                           t->devices[i].path);
    return 0;
}

int docker_run_words(const struct jobdir_spec *s, unsigned task, const struct docker_host *d,
                     const char *program, char ***ret, struct err *e)
{
    char **words = NULL;
    auto_free char *name = container_name(s, task);
    int r = check_paths(s, task, e);
    if (r < 0)
        return r;
    strv_add(&words, program);
    strv_add(&words, "run");
    strv_add(&words, "--rm");
    add(&words, text_fmt("--name=%s", name));
    add_user(s, &words);
    add_how(s, task, d, &words);
    add_devices(s, task, d, &words);
    add_job(s, d, &words);
    *ret = words;
    return 0;
}

char **docker_inside_words(const struct jobdir_spec *s, unsigned task, const char *program)
{
    char **words = NULL;
    strv_add(&words, program);
    strv_add(&words, "exec");
    strv_add(&words, "--interactive");
    if (s->job.pty)
        strv_add(&words, "--tty");
    add(&words, text_fmt("--user=%u:%u", (unsigned)s->uid, (unsigned)s->gid));
    add(&words, text_fmt("--workdir=%s", s->job.cwd));
    add(&words, text_fmt("--env-file=/proc/self/fd/%d", CONTAINER_SCRIPT_FD));
    add(&words, container_name(s, task));
    for (char **a = s->job.argv; *a; a++)
        strv_add(&words, *a);
    return words;
}

char **docker_clear_words(const struct jobdir_spec *s, unsigned task, const char *program)
{
    char **words = NULL;
    strv_add(&words, program);
    strv_add(&words, "rm");
    strv_add(&words, "--force");
    add(&words, container_name(s, task));
    return words;
}

char **docker_environment(const struct jobdir_spec *s)
{
    char **env = NULL;
    strv_add(&env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    strv_add(&env, "HOME=/");
    strv_add(&env, "LC_ALL=C.UTF-8");
    strv_add(&env, "DOCKER_CONFIG=/var/empty/divvy"); /* not root's own, with its passwords */
    add(&env, text_fmt("DOCKER_HOST=unix://%s", s->docker.socket ? s->docker.socket : ""));
    return env;
}

/* ---- variables ---- */

struct env_file {
    char *const *env;
    struct text *text;
    struct err *e;
    int code;
};

static void add_variable(void *user, const char *name, size_t len)
{
    struct env_file *f = user;
    for (char *const *v = f->env; v && *v; v++) {
        if (strncmp(*v, name, len) != 0 || (*v)[len] != '=')
            continue;
        if (strpbrk(*v, "\r\n"))
            f->code = err_set(f->e, -EINVAL,
                              "the variable %.*s has a line break in it, which docker cannot hand "
                              "into a container; leave it out of --env",
                              (int)len, name);
        else
            text_addf(f->text, "%s\n", *v);
        return;
    }
}

int docker_env_file(const struct jobdir_spec *s, unsigned task, char *const *env, struct text *ret,
                    struct err *e)
{
    struct env_file f = { .env = env, .text = ret, .e = e };
    container_each_name(s, task, add_variable, &f);
    if (s->job.pty)
        add_variable(&f, "TERM", strlen("TERM"));
    return f.code;
}

/* ---- the end ---- */

static int clear_task(const struct jobdir_spec *s, unsigned task, const char *program)
{
    struct err e = ERR_INIT;
    auto_free char *words_said = NULL;
    struct client_call call = { .words = docker_clear_words(s, task, program),
                                .env = docker_environment(s),
                                .limit_us = ASK_US };
    int r = client_run(&call, &words_said, &e);
    if (r < 0 || (call.status && !strstr(words_said, "No such container")))
        log_line(LOG_WARN, "the container of task %u was not removed: %s%.*s", task, e.text,
                 SAID_MAX, words_said ? words_said : "");
    strv_free(call.words);
    strv_free(call.env);
    return r;
}

int docker_clear(const struct jobdir_spec *s, const char *program)
{
    int worst = 0;
    for (unsigned i = 0; i < s->task_count; i++) {
        int r = clear_task(s, i, program);
        worst = r < 0 ? r : worst;
    }
    return worst;
}
