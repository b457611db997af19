/*
 * api.h - the HTTP interface of divvyd, on a unix socket.
 *
 * This room speaks HTTP and JSON, knows who is calling (from the kernel, never
 * from the message), decides who may do what, reads bodies strictly, and words
 * the answers. What the answers say comes from the daemon through `struct
 * api_ops`. docs/openapi.yaml describes the interface; routes.c holds the
 * table.
 *
 * The daemon owns the loop. It watches one descriptor and one deadline:
 *
 *     int fd = api_listen("/run/divvy/divvyd.sock", 0666, e);
 *     struct api_config cfg = { .listen_fd = fd, .ops = &ops, .ctx = d, … };
 *     struct api *api;
 *     api_open(&cfg, &api, e);
 *     watch(api_fd(api), EPOLLIN);
 *     on every turn:  api_run(api); …commit…; api_answer_…(); api_run(api) if anything was answered
 *     sleep at most:  api_timeout_us(api, now)
 *
 * Reading ops (job, jobs, inventory, daemon, why) fill views at once. Writing
 * ops (submit, act, set_card) get a `struct api_request` and answer when the
 * transaction of that turn is on disk, with exactly one api_answer_…() each:
 * in the op itself or any time later. A client that has left meanwhile makes
 * no difference: the call is still owed, and is then silent.
 *
 * Long polls (`GET /v1/jobs/ID/wait`) are kept here: the daemon calls
 * api_job_changed whenever a job's state changed, and nothing more.
 *
 * Whoever connects costs little: so many connections in all and by user, a
 * request is whole within seconds or dropped, an answer taken within a minute,
 * and the requests and answers that are under way hold 64 MiB at most, 16 MiB
 * of one user.
 *
 * All calls come from one thread. Nothing here blocks.
 */
#ifndef DIVVY_API_API_H
#define DIVVY_API_API_H

#include "base/text.h"
#include "model/job_json.h"
#include "model/layout_order.h"
#include "model/maintenance_order.h"
#include "model/ledger.h"
#include "model/share_view.h"
#include "model/view.h"

#define API_BODY_MAX (1024u * 1024u) /* of a request; arguments and environment fit four times */
#define API_WAIT_MAX_US (60 * CLOCK_SECOND) /* one long poll; clients ask again */
#define API_CALLER_GROUPS_MAX 1024

/* The process at the other end, as the kernel says (SO_PEERCRED, SO_PEERGROUPS). */
struct api_caller {
    uid_t uid;
    gid_t gid;
    pid_t pid;
    gid_t *groups; /* supplementary */
    size_t group_count;
    bool is_operator; /* root, the daemon's own user, or in the operators' group */
};                    /* what ops are handed is valid during that call alone */

struct api;
struct api_request; /* one that waits for its answer */
struct api_jobs;    /* a list that is being written */

struct api_ops {
    /*
     * Queue a job. The spec is the daemon's from here on (job_spec_done). It has
     * passed job_spec_check, but for `account`, which is NULL when none was
     * named: the daemon fills in the user's own, or refuses. Answer:
     * api_answer_submitted, or api_answer_error.
     */
    void (*submit)(void *ctx, struct api_request *req, const struct api_caller *who,
                   struct job_spec *take_spec);
    /*
     * Queue 1 to JOB_MANY_MAX jobs in one transaction. The list and its specs are
     * the daemon's from here on; each has passed what `submit`'s has. Answer:
     * api_answer_json with {"ids", "notes", "refused"} (docs/openapi.yaml).
     */
    void (*submit_many)(void *ctx, struct api_request *req, const struct api_caller *who,
                        struct job_spec *take_specs, size_t count);

    /*
     * Cancel, hold, release or requeue a job that exists and is `who`'s, or
     * anybody's for an operator; ended jobs come here, too (say -EALREADY).
     * `indices` (as in model/array.h; borrowed): tasks of the array that begins
     * with this job; NULL: the job, or all of that array. Answer: api_answer_ok
     * (it is told to end, say, it need not be over), or api_answer_error.
     */
    void (*act)(void *ctx, struct api_request *req, const struct api_caller *who, uint64_t id,
                enum job_action what, const char *indices);

    /*
     * Pool or mode of a card, or both: -1 leaves it, else enum card_pool, enum
     * card_mode. `who` is an operator. Answer: api_answer_ok or api_answer_error.
     */
    void (*set_card)(void *ctx, struct api_request *req, const struct api_caller *who,
                     uint32_t ordinal, int pool, int mode);

    /*
     * Change layouts. The order is the daemon's from here on (layout_order_done).
     * `who` is an operator. Answer: api_answer_json with the change as it is then
     * (it may go on for long), or api_answer_error.
     */
    void (*change_layout)(void *ctx, struct api_request *req, const struct api_caller *who,
                          struct layout_order *take_order);
    /* Calls the open change off. Answer: api_answer_ok or api_answer_error. */
    void (*stop_layout)(void *ctx, struct api_request *req, const struct api_caller *who);
    /*
     * Begin or end maintenance. `who` is an operator. Answer: api_answer_json with
     * how it stands then, or api_answer_error.
     */
    void (*change_maintenance)(void *ctx, struct api_request *req, const struct api_caller *who,
                               const struct maintenance_order *o);
    /* New reference; never NULL. */
    json_t *(*maintenance)(void *ctx);

    /* The last change, and what each card is to keep. New reference; never NULL. */
    json_t *(*layout)(void *ctx);

    /* -ENOENT where there is no such job. Strings must live until the next turn. */
    int (*job)(void *ctx, uint64_t id, struct job_view *ret, struct err *e);

    /* Calls api_jobs_add for each that matches, by ascending id, until it returns false. */
    int (*jobs)(void *ctx, const struct job_filter *filter, struct api_jobs *out, struct err *e);

    /* The cards as they are now; borrowed until the next turn. Never NULL on 0. */
    int (*inventory)(void *ctx, const struct inventory **ret, struct err *e);
    /*
     * The same after a look at the driver that began later than this. Answer:
     * api_answer_json with it; where no look succeeds within seconds, with the last one.
     */
    void (*look)(void *ctx, struct api_request *req);

    void (*daemon)(void *ctx, struct daemon_view *ret);

    /*
     * Attempts that ended: calls api_history_add for each, in the order in which
     * they ended, until it returns false.
     */
    int (*history)(void *ctx, const struct history_filter *filter, struct api_jobs *out,
                   struct err *e);

    /* Fills in the lines of a ledger whose `by` and days are set; ended by the caller. */
    int (*usage)(void *ctx, struct ledger *ret, struct err *e);
    /* The share tree; ended by the caller (share_view_done). */
    void (*shares)(void *ctx, struct share_view *ret);

    /* Ended by the caller (why_view_done). -ENOENT. */
    int (*why)(void *ctx, uint64_t id, struct why_view *ret, struct err *e);
};

struct api_config {
    int listen_fd; /* a listening unix stream socket; the api closes it */
    const struct api_ops *ops;
    void *ctx;
    bool has_operators; /* operators_gid is a group */
    gid_t operators_gid;
    bool private_root;         /* own uid (and root) only; everybody who gets in is operator */
    unsigned connections_max;  /* 0: 1024 */
    unsigned per_uid_max;      /* 0: 128; operators have no such cap */
    unsigned half_request_s;   /* a request that is not whole after so long is dropped; 0: 10 */
    struct now (*clock)(void); /* NULL: clock_now */
};

/*
 * Makes the socket, ready to accept, non-blocking and close-on-exec. A socket
 * file that is left over from before is replaced; the caller holds the lock of
 * its root, so nobody answers there. -ENAMETOOLONG above 107 bytes of path.
 */
int api_listen(const char *path, mode_t mode, struct err *e);

/* On failure listen_fd is left open and nothing was made. */
int api_open(const struct api_config *cfg, struct api **ret, struct err *e);
/* Drops all connections. Requests still owed an answer stay valid; answering them is silent. */
void api_close(struct api *api);

/* One descriptor that becomes readable whenever api_run has something to do. */
int api_fd(const struct api *api);
/* Accepts, reads, calls ops, writes, answers long polls whose time is over. */
void api_run(struct api *api);
/* Microseconds until api_run must be called even without the descriptor; -1: never. */
int64_t api_timeout_us(const struct api *api, struct now now);
/* Requests that are owed an answer: true while a turn has something to commit for. */
bool api_owes(const struct api *api);

/* A job's state changed: long polls on it are looked at in the next api_run. */
void api_job_changed(struct api *api, uint64_t id);

/* ---- answers: exactly one for each request that an op was given ---- */

/* `note`: something the submitter should know ("10G takes 1g.10gb with 9.5 GiB"); NULL: nothing. */
void api_answer_submitted(struct api_request *req, uint64_t id, const char *note);
void api_answer_ok(struct api_request *req, const char *note);
void api_answer_json(struct api_request *req, json_t *take_json);
/*
 * The code of `e` chooses the status: -EINVAL and -ERANGE 400, -EPERM and
 * -EACCES 403, -ENOENT 404, -EBUSY, -EEXIST and -EALREADY 409, -E2BIG and -EFBIG
 * 413, -EDQUOT and -EAGAIN 429, -ENOSPC, -EROFS, -EIO and -ENODEV 503, else 500.
 */
void api_answer_error(struct api_request *req, const struct err *e);

/* ---- lists ---- */

/* False: the page is full, stop. `last` is the largest id that `v` tells of. */
bool api_jobs_add(struct api_jobs *out, const struct job_view *v, uint64_t last);
/* The same for an attempt of the past; `seq` is its place in the history, for the next page. */
bool api_history_add(struct api_jobs *out, const struct job_view *v, const char *qos,
                     const struct held *h, uint64_t seq);

#endif
