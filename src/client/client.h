/*
 * client.h - libdivvy: ask the daemon.
 *
 * One connection to ROOT/run/divvy/divvyd.sock, one call at a time, typed in
 * and out. Errors come as sentences for a person, with a code that callers can
 * tell apart:
 *
 *     -EHOSTDOWN   no daemon answers there; the text says how to start it
 *     -EACCES      the socket, or this action, is not for this user
 *     -ENOENT      no such job or card
 *     -EINVAL      the request cannot be (and the daemon says what would work)
 *     -EBUSY       not now: state or use forbids it
 *     -EDQUOT      a limit of the account or of the connection
 *     -E2BIG       too large
 *     -EINTR       a signal that the caller handles came while waiting
 *     -EREMOTEIO   the daemon failed, or answered what this version cannot read
 *
 *     struct client *c = NULL;
 *     if (client_open(root, &c, &e) < 0) …
 *     client_submit(c, &spec, &id, &note, &e);
 *     client_close(c);
 *
 * The HTTP in it is our own (http.h): it only has to talk to divvyd, and
 * starting libcurl takes longer than all of `divvy gpus` may.
 *
 * Calls block; a call that gets no answer for CLIENT_TIMEOUT_S fails with
 * -EREMOTEIO, waits excepted. After a failed call the next one connects anew.
 */
#ifndef DIVVY_CLIENT_CLIENT_H
#define DIVVY_CLIENT_CLIENT_H

#include "base/cleanup.h"
#include "model/card_json.h"
#include "model/job_json.h"
#include "model/ledger.h"
#include "model/share_view.h"
#include "model/view.h"

#define CLIENT_TIMEOUT_S 30
#define CLIENT_ANSWER_MAX (256u * 1024u * 1024u) /* bytes of an answer */

struct client;

struct job_list {
    struct job_view *jobs; /* ascending ids */
    size_t count, alloc;
};

/* `root` NULL or "": DIVVY_ROOT, else "/". Connects. -EHOSTDOWN, -EACCES. */
int client_open(const char *root, struct client **ret, struct err *e);
/* The same, tried again until then (boot time) while no daemon is there: one that just starts. */
int client_open_by(const char *root, int64_t until_boot_us, struct client **ret, struct err *e);
void client_close(struct client *c); /* NULL is fine */

/* The root that client_open would take. Caller frees. */
char *client_root(const char *root);

/* On success the job is on disk. *ret_note: NULL, or a remark; the caller frees it. */
int client_submit(struct client *c, const struct job_spec *spec, uint64_t *ret_id, char **ret_note,
                  struct err *e);
/*
 * 1 to JOB_MANY_MAX jobs in one transaction. All of them, and 0; or the first
 * *ret_taken of them (often none), and why specs[*ret_refused] was not; `count`
 * there: the request as a whole failed. Those that were taken are on disk, with
 * their numbers in ret_ids. Both are always set.
 */
int client_submit_many(struct client *c, const struct job_spec *specs, size_t count,
                       uint64_t *ret_ids, size_t *ret_taken, size_t *ret_refused, struct err *e);
/* All pages. Ended by job_list_done. */
int client_jobs(struct client *c, const struct job_filter *f, struct job_list *ret, struct err *e);
void job_list_done(struct job_list *l);
/* Ended by job_view_done. -ENOENT. */
int client_job(struct client *c, uint64_t id, struct job_view *ret, struct err *e);
/*
 * Cancels (it has been told to end), holds, releases or requeues a job or all
 * of an array; with `indices` ("3-9") tasks of the array that begins with `id`.
 * -EALREADY when it had ended before, or is not held. *ret_note as in client_submit.
 */
int client_act(struct client *c, uint64_t id, enum job_action what, const char *indices,
               char **ret_note, struct err *e);

/* STARTING: its supervisor was asked to start it; attach_open finds it soon. */
enum client_until { CLIENT_UNTIL_STARTING, CLIENT_UNTIL_STARTED, CLIENT_UNTIL_ENDED };

/*
 * Waits until the job has come that far (one that has ended has), and gives it
 * as it is then; at most timeout_us (negative: for ever), after which it returns 0 with
 * the job as it is: look at its state. Ended by job_view_done.
 */
int client_wait(struct client *c, uint64_t id, enum client_until until, int64_t timeout_us,
                struct job_view *ret, struct err *e);

/* Ended by inventory_done. */
int client_inventory(struct client *c, struct inventory *ret, struct err *e);
/* The same once the driver was asked anew: for those who compare it with what they want. */
int client_look(struct client *c, struct inventory *ret, struct err *e);
/* NULL leaves pool or mode as it is. *ret_note as in client_submit. */
int client_set_card(struct client *c, uint32_t ordinal, const char *pool, const char *mode,
                    char **ret_note, struct err *e);
/* Ended by daemon_view_done. */
int client_daemon(struct client *c, struct daemon_view *ret, struct err *e);
/* Ended by share_view_done. */
int client_shares(struct client *c, struct share_view *ret, struct err *e);
/* Ended by why_view_done. */
int client_why(struct client *c, uint64_t id, struct why_view *ret, struct err *e);

/* What was handed out: ret->by, from_day and to_day are set. Lines added; ended by the caller. */
int client_usage(struct client *c, struct ledger *ret, struct err *e);

/*
 * Attempts that ended, in the order in which they did, as /v1/history has
 * them: all pages in one list. Caller decrefs.
 */
int client_history(struct client *c, const struct history_filter *f, json_t **ret, struct err *e);

/*
 * The answer to POST `path` with `body` (NULL: none; borrowed), as JSON. Caller
 * decrefs.
 */
int client_post(struct client *c, const char *path, json_t *body, json_t **ret, struct err *e);

/*
 * The answer to GET `path` ("/v1/jobs?account=nlp") as JSON, for `--json`.
 * Caller decrefs.
 */
int client_get(struct client *c, const char *path, json_t **ret, struct err *e);

DEFINE_AUTO_PTR(struct client, client_close);

#endif
