/* divvyd: options, opening in order, the loop, closing in mirror order. */
#include "daemon/daemon.h"

#include <argp.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "base/secure.h"
#include "config/board.h"
#include "daemon/check.h"
#include "daemon/hooks.h"
#include "daemon/layouts.h"
#include "daemon/maintenance.h"
#include "daemon/windows.h"
#include "daemon/units.h"

const char *argp_program_version = "divvyd " DIVVY_VERSION;

struct arguments {
    const char *root, *config, *child, *alive, *driver_root, *nvml;
    bool verbose, no_activity, check;
};

#define SERVE_US (3 * CLOCK_SECOND) /* a driver that is silent for so long is told of */

#define OLD_HAND_MS 5000 /* and a step of an earlier divvyd is waited for */

enum { OPT_CHECK = 256, OPT_CHILD, OPT_ALIVE, OPT_DRIVER_ROOT, OPT_NVML, OPT_NO_ACTIVITY };

static const struct argp_option options[] = {
    { "root", 'r', "DIR", 0, "Keep everything below DIR (default: DIVVY_ROOT, else /)", 0 },
    { "config", 'c', "FILE", 0, "Read FILE (default: DIR/etc/divvy/divvy.yaml)", 0 },
    { "driver-root", OPT_DRIVER_ROOT, "DIR", 0, "Where /dev, /proc and /sys of the driver stand",
      0 },
    { "nvml", OPT_NVML, "FILE", 0, "The driver's library (default: libnvidia-ml.so.1)", 0 },
    { "check", OPT_CHECK, NULL, 0, "Tell whether divvy.yaml can be used, and end", 0 },
    { "verbose", 'v', NULL, 0, "Tell more", 0 },
    { NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0 }, /* --help is argp's */
    { "child", OPT_CHILD, "KIND", OPTION_HIDDEN, "Serve the driver on descriptor 3", 0 },
    { "alive", OPT_ALIVE, "FILE", OPTION_HIDDEN, "Hold FILE locked while carrying out steps", 0 },
    { "no-activity", OPT_NO_ACTIVITY, NULL, OPTION_HIDDEN, "Do not ask what slices do", 0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'r':
        a->root = arg;
        return 0;
    case 'c':
        a->config = arg;
        return 0;
    case 'v':
        a->verbose = true;
        return 0;
    case OPT_CHECK:
        a->check = true;
        return 0;
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* ends the program */
        return 0;
    case OPT_DRIVER_ROOT:
        a->driver_root = arg;
        return 0;
    case OPT_NVML:
        a->nvml = arg;
        return 0;
    case OPT_CHILD:
        a->child = arg;
        return 0;
    case OPT_NO_ACTIVITY:
        a->no_activity = true;
        return 0;
    case OPT_ALIVE:
        a->alive = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "there is no argument '%s'; divvyd takes options only", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Shares the GPUs of this machine among the people and jobs that use it.\v"
           "With a root of his own an ordinary user runs a private Divvy, for his own jobs only. "
           "It stays in the foreground; SIGTERM ends it, and jobs run on.",
};

/* ---- a child that holds the driver ---- */

static bool board_by_name(const char *name, uint32_t pci_device_id, struct board *ret, void *arg)
{
    (void)arg; /* boards need no context */
    return board_find_device(name, pci_device_id, ret, NULL) >= 0;
}

static int child_main(const struct arguments *a)
{
    struct err e = ERR_INIT;
    enum driver_child_kind kind;
    if (strncmp(a->child, "hook:", 5) == 0)
        return hooks_child_main(a->child + 5);
    if (driver_child_parse(a->child, &kind, &e) < 0) {
        log_line(LOG_ERROR, "%s", e.text);
        return EXIT_FAILURE;
    }
    struct driver_options o = { .nvml = a->nvml,
                                .driver_root = a->driver_root,
                                .no_activity = a->no_activity,
                                .board = board_by_name };
    auto_close int alive = -1;
    if (kind == DRIVER_CHILD_ACT && a->alive)
        alive = driver_child_hold(a->alive, &e);
    if (e.code < 0) {
        log_line(LOG_ERROR, "%s", e.text);
        return EXIT_FAILURE;
    }
    return driver_child_main(kind, DRIVER_CHILD_FD, &o, alive);
}

/* ---- opening ---- */

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a && a[0] ? a : b && b[0] ? b : c;
}

static char *own_path(void)
{
    char buf[4096];
    ssize_t n = readlink("/proc/self/exe", buf, sizeof buf - 1);
    if (n < 0)
        return text_dup("divvyd");
    buf[n] = '\0';
    return text_dup(buf);
}

/* A sibling: DIVVY_LIBEXEC, beside this program, or where it was installed. */
static char *sibling(const char *self, const char *name)
{
    const char *libexec = getenv("DIVVY_LIBEXEC");
    if (libexec)
        return text_fmt("%s/%s", libexec, name);
    const char *slash = strrchr(self, '/');
    char *beside = text_fmt("%.*s/%s", slash ? (int)(slash - self) : 1, slash ? self : ".", name);
    if (access(beside, X_OK) == 0)
        return beside;
    free(beside);
    return text_fmt("%s/%s", DIVVY_LIBEXECDIR, name);
}

/* A folder with nothing else in it. */
static char *srun_folder(const char *self)
{
    const char *slash = strrchr(self, '/');
    char *built = text_fmt("%.*s/srun", slash ? (int)(slash - self) : 1, slash ? self : ".");
    auto_free char *program = text_fmt("%s/srun", built);
    if (access(program, X_OK) == 0)
        return built;
    free(built);
    return sibling(self, "slurm");
}

static int make_absolute(const char *path, char **ret, struct err *e)
{
    char *real = realpath(path, NULL);
    if (!real)
        return err_sys(e, "cannot use %s as root", path);
    *ret = real;
    return 0;
}

static const char *root_of(const struct arguments *a)
{
    return first_of(a->root, getenv("DIVVY_ROOT"), "/");
}

static char *config_path(const struct arguments *a, const char *root)
{
    auto_free char *here = getcwd(NULL, 0);
    if (a->config && a->config[0] != '/')
        return text_fmt("%s/%s", here ? here : "", a->config);
    return a->config ? text_dup(a->config) : file_under(root, "/etc/divvy/divvy.yaml");
}

static int paths_open(struct paths *p, const struct arguments *a, struct err *e)
{
    const char *root = root_of(a);
    int r = file_mkdirs(root, 0755, e);
    if (r == 0)
        r = make_absolute(root, &p->root, e);
    if (r < 0)
        return r;
    p->config = config_path(a, p->root);
    p->state = file_under(p->root, "/var/lib/divvy");
    p->jobs = file_under(p->root, "/var/lib/divvy/jobs");
    p->run = file_under(p->root, "/run/divvy");
    p->attach = file_under(p->root, "/run/divvy/jobs");
    p->socket = file_under(p->root, "/run/divvy/divvyd.sock");
    p->self = own_path();
    p->supervisor = sibling(p->self, "divvy-supervise");
    p->srun = srun_folder(p->self);
    r = file_mkdirs(p->state, 0755, e);
    if (r == 0)
        r = file_mkdirs(p->jobs, 0700, e);
    if (r == 0)
        r = file_mkdirs(p->run, 0755, e);
    return r == 0 ? file_mkdirs(p->attach, 0755, e) : r;
}

/*
 * Who can write there can be root, or this user. A private root is held to it
 * from its own folder down; with root's powers over the machine, from / down.
 */
static int paths_secure(const struct paths *p, struct err *e)
{
    const char *const kept[] = { p->config, p->state, p->jobs, p->run, p->attach };
    bool whole = text_same(p->root, "/");
    struct secure s = { .owner = geteuid(),
                        .refused = geteuid() == 0 ? 022 : 002,
                        .top = whole ? NULL : p->root };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        int r = secure_check(&s, kept[i], e);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

static void paths_close(struct paths *p)
{
    free(p->root);
    free(p->config);
    free(p->state);
    free(p->jobs);
    free(p->run);
    free(p->attach);
    free(p->socket);
    free(p->driver_root);
    free(p->self);
    free(p->supervisor);
    free(p->srun);
}

/* Without a file the defaults hold: a fresh installation watches and touches nothing. */
static int config_open(struct daemon *d, const struct arguments *a, struct err *e)
{
    int r = divvyd_config_read(d->paths.config, &d->config, e);
    if (r == -ENOENT && !a->config)
        divvyd_config_init(&d->config);
    else if (r < 0)
        return r;
    const char *driver_root =
        first_of(a->driver_root, d->config.driver_root, getenv("DIVVY_DRIVER_ROOT"));
    d->paths.driver_root = text_dup(first_of(driver_root, "/", NULL));
    const char *nvml = first_of(a->nvml, d->config.nvml, NULL);
    strv_add(&d->child_options, "--driver-root");
    strv_add(&d->child_options, d->paths.driver_root);
    if (nvml) {
        strv_add(&d->child_options, "--nvml");
        strv_add(&d->child_options, nvml);
    }
    if (!d->config.slice_activity)
        strv_add(&d->child_options, "--no-activity");
    log_init("divvyd", a->verbose ? LOG_TRACE : (enum log_level)d->config.log_level);
    return 0;
}

static void isolation_open(struct daemon *d)
{
    struct err e = ERR_INIT;
    cgroup_host_detect(NULL, NULL, &d->cgroup_host);
    d->cgroup_root =
        d->config.cgroup_root ? text_dup(d->config.cgroup_root) : cgroup_root_for(d->paths.root);
    if (d->cgroup_host.kind == CGROUP_NONE)
        (void)err_set(&e, -ENOTSUP, "%s", d->cgroup_host.reason);
    else
        (void)cgroup_root_check(&d->cgroup_host, d->cgroup_root, &e); /* e.code tells */
    if (e.code < 0 && d->private_root)
        (void)err_wrap(&e, e.code, "divvyd is not run by root and can keep nothing from its jobs");
    if (e.code < 0) {
        free(d->cgroup_root);
        d->cgroup_root = text_dup("");
    } else if (d->config.isolation == GATE_NEVER) {
        (void)err_set(&e, -ENOTSUP, "divvy.yaml says isolation: none");
    } else {
        d->isolation = gate_probe(&d->cgroup_host, d->cgroup_root, &e);
    }
    if (d->cgroup_root[0])
        cgroup_root_hold(&d->cgroup_host, d->cgroup_root);
    if (d->isolation == ISOLATION_NONE)
        (void)snprintf(d->isolation_why, sizeof d->isolation_why, "%s", e.text); /* same size */
}

static int gate_required(const struct daemon *d, struct err *e)
{
    if (d->config.isolation != GATE_REQUIRE || d->isolation != ISOLATION_NONE)
        return 0;
    return err_set(e, -ENOTSUP,
                   "%s says isolation: require, and jobs cannot be kept apart here: %s",
                   d->paths.config, d->isolation_why);
}

/* Better now than in each job. */
static int pam_possible(const struct daemon *d, struct err *e)
{
    auto_free char *program = sibling(d->paths.self, "divvy-session");
    auto_free char *service = file_under(d->paths.root, "/etc/pam.d/divvy");
    if (!d->config.pam)
        return 0;
    if (d->private_root)
        return err_set(e, -EPERM, "%s says pam: on, which needs a divvyd that runs as root",
                       d->paths.config);
    if (access(program, X_OK) < 0)
        return err_set(e, -ENOENT,
                       "%s says pam: on, and %s is not there: this Divvy was built "
                       "without PAM",
                       d->paths.config, program);
    if (access(service, R_OK) < 0)
        return err_set(e, -ENOENT, "%s says pam: on, and there is no service file %s",
                       d->paths.config, service);
    return 0;
}

static int api_start(struct daemon *d, struct err *e)
{
    struct group *operators = d->config.operators ? getgrnam(d->config.operators) : NULL;
    int fd = api_listen(d->paths.socket, d->private_root ? 0600 : 0666, e);
    if (fd < 0)
        return fd;
    struct api_config c = { .listen_fd = fd,
                            .ops = &daemon_api_ops,
                            .ctx = d,
                            .has_operators = operators != NULL,
                            .operators_gid = operators ? operators->gr_gid : 0,
                            .private_root = d->private_root };
    int r = api_open(&c, &d->api, e);
    if (r < 0)
        (void)close(fd); /* api_open did not take it */
    return r;
}

/* ---- what the children report ---- */

static void on_snapshot(void *ctx, struct snapshot *take)
{
    cards_snapshot(ctx, take);
}

static void on_no_driver(void *ctx, const struct err *why)
{
    struct daemon *d = ctx;
    if (!d->driver_trouble[0])
        log_line(LOG_WARN, "%s", why->text);
    memcpy(d->driver_trouble, why->text, sizeof d->driver_trouble);
    d->layouts->driver_was_gone = true;
    maintenance_no_driver(d, why);
    attempts_clear(d);
}

static void on_step(void *ctx, int code, const struct step *done, const struct err *why)
{
    cut_step_answer(ctx, code, done, why);
}

static void on_restored(void *ctx, int code, const struct driver_restore *what,
                        const struct err *why)
{
    tidy_restored(ctx, code, what, why);
}

static void on_event(void *ctx, const struct driver_event *ev)
{
    struct daemon *d = ctx;
    struct card_memory *m = cards_find(d, ev->uuid);
    if (ev->xid)
        log_line(LOG_WARN, "XID %llu on %s", (unsigned long long)ev->xid, ev->bus_id);
    if (m && ev->xid)
        m->last.xid_last = ev->xid;
    if (m && cards_xid_is_fault(ev->xid))
        m->fault_boot_us = clock_now().boot_us;
    children_refresh(&d->children);
}

static void on_released(void *ctx)
{
    cuts_released(ctx);
}

static void on_silent(void *ctx, const struct driver_skip *card, bool silent)
{
    cards_silent(ctx, card, silent);
}

static const struct children_events child_events = {
    .snapshot = on_snapshot,
    .no_driver = on_no_driver,
    .step = on_step,
    .restored = on_restored,
    .event = on_event,
    .released = on_released,
    .silent = on_silent,
};

static int children_start(struct daemon *d, struct err *e)
{
    int64_t limit = d->config.driver_timeout_us;
    auto_free char *alive = text_fmt("%s/act.alive", d->paths.run);
    struct err still = ERR_INIT;
    int r = driver_child_wait_alone(alive, OLD_HAND_MS, &still);
    if (r < 0 && r != -EBUSY)
        return err_set(e, r, "%s", still.text);
    if (r < 0) /* a card that hangs for it hangs for us: it is found out as any other */
        log_line(LOG_WARN, "%s", still.text);
    strv_add(&d->child_options, "--alive");
    strv_add(&d->child_options, alive);
    struct children_settings s = { .program = d->paths.self,
                                   .options = d->child_options,
                                   .call_limit_us = limit,
                                   .step_limit_us = limit * 6,
                                   .snapshot_every_us = 2 * CLOCK_SECOND,
                                   .paused = maintenance_away(d),
                                   .probe_every_us = limit * 2 };
    return children_open(&d->children, d->event, &s, &child_events, d, e);
}

static int loop_open(struct daemon *d, struct err *e)
{
    sigset_t blocked;
    (void)sigemptyset(&blocked);        /* cannot fail */
    (void)sigaddset(&blocked, SIGTERM); /* nor these */
    (void)sigaddset(&blocked, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps supervisors and children */
    (void)signal(SIGPIPE, SIG_IGN); /* a client that left is an error code */
    int r = sd_event_default(&d->event);
    return r < 0 ? err_set(e, r, "cannot make an event loop: %s", strerror(-r)) : 0;
}

static int daemon_open(struct daemon *d, const struct arguments *a, struct err *e)
{
    d->private_root = geteuid() != 0;
    d->started_wall_us = clock_now().wall_us;
    d->serve_boot_us = clock_now().boot_us + SERVE_US;
    int r = paths_open(&d->paths, a, e);
    if (r == 0)
        r = paths_secure(&d->paths, e);
    if (r == 0)
        r = config_open(d, a, e);
    if (r == 0)
        r = loop_open(d, e);
    if (r == 0)
        r = store_open(d->paths.state, clock_boot_id(), &d->store, e);
    if (r < 0)
        return r;
    KILLPOINT(STORE_OPENED);
    hooks_open(d);
    isolation_open(d);
    cdi_open(d);
    r = gate_required(d, e);
    if (r == 0)
        r = pam_possible(d, e);
    if (r == 0)
        r = units_open(d, e);
    if (r == 0)
        r = api_start(d, e);
    if (r == 0)
        r = cards_load(d, e);
    if (r == 0)
        r = jobs_load(d, e);
    if (r == 0)
        r = layouts_load(d, e);
    if (r == 0)
        r = maintenance_load(d, e);
    if (r == 0)
        r = windows_load(d, e);
    KILLPOINT(LOADED);
    if (r == 0)
        r = children_start(d, e);
    if (r == 0)
        r = turn_open(d, e);
    if (r == 0)
        r = bin_open(&d->bin, d->event, d->paths.jobs, attempt_gone, d, e);
    if (r == 0)
        attempts_sweep(d);
    KILLPOINT(SWEPT);
    return r;
}

static void daemon_close(struct daemon *d)
{
    children_close(&d->children);
    cdi_done(d);
    windows_done(d);
    maintenance_done(d);
    layouts_done(d);
    if (d->sched)
        jobs_done(d);
    units_close(d);
    hooks_close(d);
    cards_done(d);
    if (d->api)
        api_close(d->api);
    looks_done(d);
    answers_forget(d);
    store_close(d->store);
    bin_close(&d->bin);
    launcher_close(&d->launcher);
    sd_event_source **sources[] = { &d->turn,         &d->api_io,     &d->api_timer,
                                    &d->wake_timer,   &d->look_timer, &d->moment_timer,
                                    &d->commit_timer, &d->sigterm,    &d->sigint };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        *sources[i] = sd_event_source_disable_unref(*sources[i]);
    d->event = sd_event_unref(d->event);
    if (d->cgroup_root)
        cgroup_root_release(&d->cgroup_host, d->cgroup_root);
    cgroup_host_done(&d->cgroup_host);
    free(d->cgroup_root);
    strv_free(d->child_options);
    char *word;
    for (size_t i = 0; (word = map_next(&d->words, &i));)
        free(word);
    map_done(&d->words);
    accounts_done(d);
    free(d->owed);
    free(d->todo);
    free(d->tells);
    free(d->strays);
    divvyd_config_done(&d->config);
    paths_close(&d->paths);
}

int main(int argc, char **argv)
{
    struct arguments a = { .root = NULL };
    struct err e = ERR_INIT;
    log_init("divvyd", LOG_NOTE);
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (a.child)
        return child_main(&a);
    auto_free char *config = a.check ? config_path(&a, root_of(&a)) : NULL;
    if (config)
        return check_main(config);
    struct daemon *d = mem_new(sizeof *d);
    d->launcher.fd = -1;
    int status = EXIT_FAILURE;
    if (daemon_open(d, &a, &e) < 0) {
        log_line(LOG_ERROR, "%s", e.text);
    } else {
        status = sd_event_loop(d->event) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    daemon_close(d);
    free(d);
    return status;
}
