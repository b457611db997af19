/*
 * request.h - one request on its way through the room. Not for the daemon.
 *
 * A request belongs to its connection until that ends, and to the daemon while
 * an op owes it an answer; it is freed when neither holds it any more. While
 * it waits, its connection is suspended in libmicrohttpd; request_reply fills
 * the answer in and resumes it.
 */
#ifndef DIVVY_API_REQUEST_H
#define DIVVY_API_REQUEST_H

#include <microhttpd.h>
#include <sys/epoll.h>

#include "api/body.h"
#include "base/map.h"

enum api_phase {
    PHASE_ASKS,  /* its next request is not whole yet */
    PHASE_WAITS, /* for us */
    PHASE_TAKES, /* its answer */
};

struct api_connection {
    struct api *api;
    int fd;
    struct api_caller caller;
    enum api_phase phase;
    int64_t since_boot_us;              /* in this phase */
    size_t held;                        /* bytes of its request and its answer */
    struct api_connection *prev, *next; /* all open ones of the api */
};

struct api_request {
    struct api *api;
    struct MHD_Connection *mhd;  /* NULL: the client has left */
    struct api_connection *from; /* valid while mhd is */
    struct text body;
    bool too_large;
    bool no_room; /* too much is under way already */
    bool routed;
    bool suspended;
    bool owed;         /* an op has it and will answer */
    unsigned status;   /* 0: no answer yet */
    const char *allow; /* with 405: what would work */
    char *answer;
    size_t answer_len;
    uint64_t id; /* {id} or {gpu} of the path */
    /* Long poll, while `waits`. */
    bool waits;
    bool look; /* the job changed, or its time is over */
    enum api_until until;
    int64_t deadline_boot_us;
    struct api_request *prev, *next; /* all suspended requests of the api */
};

struct api {
    struct api_config cfg;
    struct MHD_Daemon *mhd;
    int epoll_fd;   /* listen_fd, MHD's epoll, and who is suspended (for hang-ups) */
    int reserve_fd; /* let go to refuse properly when descriptors are out */
    uid_t own_uid;
    struct map per_uid; /* uid -> number of connections, as a pointer value */
    unsigned connections;
    struct api_connection *open;
    struct map held_by;   /* uid -> bytes of requests and answers, as a pointer value */
    size_t held;          /* of all */
    int64_t look_boot_us; /* slow ones are looked for again then */
    struct api_request *suspended;
    size_t owed;
    bool closing;
};

/* Fills in the answer (JSON, taken) and resumes the connection if it was suspended. */
void request_reply(struct api_request *req, unsigned status, json_t *take_json);
/* The same with text that is JSON already. */
void request_reply_text(struct api_request *req, unsigned status, char *take_text, size_t len);
void request_reply_error(struct api_request *req, const struct err *e);
/* With a status of HTTP's own (404 for a path, 405, 413). */
void request_reply_problem(struct api_request *req, unsigned status, const char *code,
                           const char *message);

/* {"error":{"code":…,"message":…}} */
json_t *problem_json(const char *code, const char *message);
unsigned problem_status(int err_code);
const char *problem_code(int err_code);

/* Finds the route and calls its handler. Afterwards it has an answer, is owed one, or waits. */
void request_route(struct api_request *req, const char *method, const char *url);

/* May this caller see what only owner and operators get to see? */
bool caller_owns(const struct api_caller *c, const struct job_view *v);

/* Off the list of the suspended, and no longer watched for a hang-up. */
void request_unlink(struct api_request *req);

/* Answers a long poll if there is something to say or its time is over. */
void wait_look(struct api_request *req, struct now now);
struct now api_now(const struct api *api);

/* ---- patience.c ---- */
#define API_HELD_MAX (64u * 1024u * 1024u)
#define API_HELD_BY_UID_MAX (16u * 1024u * 1024u) /* operators have no such cap */

void patience_add(struct api *api, struct api_connection *c);
void patience_remove(struct api_connection *c);
/* Its time starts anew. */
void patience_phase(struct api_connection *c, enum api_phase phase);
/* May this connection hold so many bytes more? */
bool patience_room(const struct api_connection *c, size_t more);
void patience_hold(struct api_connection *c, size_t more);
/* All that it holds. */
void patience_let_go(struct api_connection *c);
/* Closes connections that are too slow with their request, or with taking the answer. */
void patience_look(struct api *api, struct now now);
/* When that is due again; -1: nobody is connected. */
int64_t patience_timeout_us(const struct api *api, struct now now);

#endif
