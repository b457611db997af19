/*
 * divvyd.h - /etc/divvy/divvy.yaml: what the administrator decides.
 *
 *     driver_root: /            # where /dev, /proc and /sys of the driver stand
 *     cards:
 *       default: {pool: off, mode: auto}
 *       GPU-5d5b…: {pool: queue, mode: slices}
 *     mode_hold: 10m
 *     default_time: 1h
 *     accounts:                 # and limits, qos, order: shares.h
 *       nlp: {users: [alice, bob], groups: [nlp-lab], share: 2}
 *
 * Every key may be left out; a file that is missing or empty means the
 * defaults below. Unknown keys are refused, with line and column.
 */
#ifndef DIVVY_CONFIG_DIVVYD_H
#define DIVVY_CONFIG_DIVVYD_H

#include "base/log.h"
#include "config/shares.h"
#include "model/inventory.h"

/* What happens where a job cannot be kept away from other cards. */
enum config_gate {
    GATE_AUTO = 0, /* as much as the machine allows; shown as it is */
    GATE_REQUIRE,  /* no gate: no job */
    GATE_NEVER,    /* never try */
};

/* Who starts the supervisors of jobs. */
enum config_launch {
    LAUNCH_AUTO = 0, /* systemd where it runs and the units are installed */
    LAUNCH_SYSTEMD,
    LAUNCH_DIRECT, /* divvyd itself */
};

/* A limit of a task that asked for none of its own. */
enum config_limit {
    TASK_LIMIT_AUTO = 0, /* as TASK_LIMIT_SHARE */
    TASK_LIMIT_SHARE,    /* in proportion to its part of a card; CPUs: those near its card */
    TASK_LIMIT_NONE,
};

#define CONFIG_NODE_CPUS_MAX 65536
#define CONFIG_PIDS_DEFAULT 16384u

/* divvy.yaml's task_limits. */
struct config_task_limits {
    int memory, cpu, cpuset; /* enum config_limit */
    int pids;                /* the same; TASK_LIMIT_SHARE: pids_max, whatever its part */
    uint32_t pids_max;
};

enum config_count {
    COUNT_AUTO = 0, /* what the machine has */
    COUNT_OFF,      /* not at all */
    COUNT_SAID,
};

/* What jobs may be promised of the machine beside its cards; divvy.yaml's node. */
struct config_node {
    int cpus, memory; /* enum config_count */
    uint32_t cpu_milli;
    uint64_t mem_bytes;
};

enum config_idle_then { IDLE_WARN = 0, IDLE_END, IDLE_REQUEUE };

/* What follows when a job does nothing with what it holds; divvy.yaml's idle. */
struct config_idle {
    int64_t after_us;          /* idle so long: its owner is warned; 0: nothing follows */
    int64_t grace_us;          /* from the warning to what follows; 10 min */
    int then;                  /* enum config_idle_then */
    uint32_t load_percent;     /* a card that is no busier does nothing; 1 */
    uint32_t cpu_percent;      /* nor do processes that take less of one CPU; 5 */
    struct field_words exempt; /* classes that are left alone */
};

#define CONFIG_RESERVATIONS_MAX 64

/* A part of all cards, kept for jobs that are attached or short; divvy.yaml's keep. */
struct config_keep {
    uint32_t part_ppm; /* 0: none */
    int64_t for_us;    /* short: of at most this time limit */
};

/* What is done between two owners of a card; divvy.yaml's between_owners. */
struct config_between {
    bool keep_settings; /* compute mode and clocks stay as the last one left them */
    bool keep_shm;      /* and so does his shared memory */
};

/* What the first inventory of a card is; `divvy pool` and `divvy mode` change it later. */
struct config_card {
    char *which; /* UUID, or PCI address "0000:07:00.0" */
    int pool;    /* enum card_pool */
    int mode;    /* enum card_mode */
};

/* May a job's container be made by docker's daemon, which is root? */
enum config_docker {
    DOCKER_OFF,
    DOCKER_ON,   /* of images that the daemon has */
    DOCKER_PULL, /* and it may fetch others */
};

/* What `divvy maintenance` stops and starts again. */
struct config_maintenance {
    struct field_words services; /* in the order in which they are stopped */
    char *command;               /* called as COMMAND stop|start SERVICE; "systemctl" */
};

struct divvyd_config {
    char *driver_root; /* NULL: DIVVY_DRIVER_ROOT, else "/" */
    char *nvml;        /* library to open; NULL: DIVVY_NVML, else libnvidia-ml.so.1 */
    char *cgroup_root; /* cgroup directory for jobs; NULL: below divvyd's own */
    char *cdi;         /* "off", "on", or the path of the CDI specification to keep; default off */
    int docker;        /* enum config_docker; default DOCKER_OFF */
    char *docker_socket;    /* of the daemon that makes jobs' containers; "/run/docker.sock" */
    char *prolog, *epilog;  /* programs to run before and after each attempt; NULL: none */
    char *event_hook;       /* program that is told of starts, ends, requeues, faults; NULL: none */
    int64_t event_time_us;  /* how long it may take; 1 min */
    int64_t prolog_time_us; /* how long each of them may take; 1 min */
    char *operators;        /* Unix group that may do everything; default "divvy" */
    int isolation;          /* enum config_gate */
    struct config_between between;
    struct config_idle idle;
    struct config_keep keep;
    bool pam; /* a PAM session for each attempt; default off */
    struct config_task_limits task_limits;
    struct config_node node;
    int launch;              /* enum config_launch */
    int log_level;           /* enum log_level; default LOG_NOTE */
    int default_pool;        /* enum card_pool; default POOL_OFF */
    int default_mode;        /* enum card_mode; default MODE_AUTO */
    int64_t mode_hold_us;    /* an auto card stays empty so long before its mode changes; 10 min */
    int64_t default_time_us; /* limit of a job that names none; 0: none */
    int64_t max_time_us;     /* the longest limit that may be asked; 0: any */
    int64_t kill_wait_us;    /* between SIGTERM and SIGKILL; 30 s */
    int64_t driver_timeout_us; /* a driver call past this marks its card unresponsive; 30 s */
    bool slice_activity;       /* what slices do is asked of cards that can tell; true */
    int64_t retention_us;      /* ended jobs are kept so long; 30 days */
    int64_t half_life_us;      /* of used shares; 7 days */
    uint32_t reservations;     /* so many that wait have a start that nobody may delay; 8 */
    struct config_maintenance maintenance;
    int64_t restore_time_us;    /* a card waits so long for its layout to be restored; 2 min */
    int64_t usage_retention_us; /* history and usage are kept so long; 400 days */
    struct config_card *cards;
    size_t card_count, card_alloc;
    struct config_account *accounts; /* in the order of the file */
    size_t account_count, account_alloc;
    struct limits limits;      /* of all jobs on this server */
    struct limits user_limits; /* of each user's */
    struct qos *qos;           /* in the order of the file */
    size_t qos_count, qos_alloc;
    char *default_qos; /* of a job that names no class; "normal", which needs no entry */
    struct config_order order;
    int64_t las_us[CONFIG_LAS_MAX]; /* rising: card time after which a job goes further back */
    size_t las_count;
    bool preempt_las;    /* inside an account with las: who had more goes for who had less */
    bool preempt_shares; /* jobs of a larger share go for a smaller one */
    struct config_charge *charges; /* what a card's time costs; 1 for those not named */
    size_t charge_count, charge_alloc;
};

/* The defaults; what divvyd_config_done undoes. */
void divvyd_config_init(struct divvyd_config *c);
void divvyd_config_done(struct divvyd_config *c);

/*
 * Reads the file over the defaults. -ENOENT when it is not there (the caller
 * decides whether that matters), -EINVAL with file:line:column. On failure
 * `ret` is not touched; on success it is divvyd_config_done's.
 */
int divvyd_config_read(const char *path, struct divvyd_config *ret, struct err *e);
int divvyd_config_parse(const char *file, const char *text, size_t len, struct divvyd_config *ret,
                        struct err *e);

/* The account of this name, or NULL. Borrowed from `c`. */
const struct config_account *divvyd_config_account(const struct divvyd_config *c, const char *name);
/* The class of this name, or NULL. Borrowed from `c`. */
const struct qos *divvyd_config_qos(const struct divvyd_config *c, const char *name);
/* What the time of a card of this board costs; found by its name, with or without NVIDIA. */
double divvyd_config_charge(const struct divvyd_config *c, const struct board *b);

#endif
