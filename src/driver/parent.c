#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "driver/child.h"
#include "driver/wire.h"
#include "model/card_json.h"

#define OPEN_MAX_REQUESTS 64

struct open_request {
    uint64_t seq;
    int64_t sent_boot_us;
};

struct driver_child {
    int sock;
    pid_t pid;
    uint64_t seq; /* of the last request */
    struct open_request open[OPEN_MAX_REQUESTS];
    size_t open_count;
    bool at_card;
    struct driver_skip at;
    int64_t at_since_boot_us;
    struct snapshot coming; /* cards of the snapshot that is being sent */
    struct card *last;      /* cards as last seen, for their boards and names */
    size_t last_count, last_alloc;
};

static int standard_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -1;
    return 0;
}

/* In the new process: only calls that are safe after a fork. */
static void become_child(int sock, pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || standard_streams() < 0)
        _exit(1);
    /* dup2 to itself would leave close-on-exec set */
    if (sock == DRIVER_CHILD_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, DRIVER_CHILD_FD) < 0)
        _exit(1);
    (void)close_range(DRIVER_CHILD_FD + 1, ~0U, 0);
}

int driver_child_start(char *const argv[], enum driver_child_kind kind,
                       const struct driver_options *options, struct driver_child **ret,
                       struct err *e)
{
    int pair[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "cannot make a socket for the driver's process");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, "cannot start the driver's process");
    if (pid == 0) {
        become_child(theirs, parent);
        if (!argv)
            _exit(driver_child_main(kind, DRIVER_CHILD_FD, options, -1));
        (void)execv(argv[0], argv);
        _exit(127);
    }
    struct driver_child *c = mem_new(sizeof *c);
    c->sock = take_fd(ours);
    c->pid = pid;
    *ret = c;
    return 0;
}

int driver_child_fd(const struct driver_child *c)
{
    return c->sock;
}

pid_t driver_child_pid(const struct driver_child *c)
{
    return c->pid;
}

static json_t *request(const char *word)
{
    json_t *j = json_object();
    json_put_text(j, "ask", word);
    return j;
}

/* `answered` tells whether an answer with this seq will come. */
static int ask(struct driver_child *c, json_t *take_request, bool answered, uint64_t *ret_seq,
               struct err *e)
{
    if (answered && c->open_count == OPEN_MAX_REQUESTS) {
        json_decref(take_request);
        return err_set(e, -EAGAIN, "the driver's process has too many requests already");
    }
    json_put_u64(take_request, "seq", ++c->seq);
    int code = message_send(c->sock, take_request, MSG_DONTWAIT, e);
    if (code < 0)
        return code;
    if (answered)
        c->open[c->open_count++] =
            (struct open_request){ .seq = c->seq, .sent_boot_us = clock_now().boot_us };
    if (ret_seq)
        *ret_seq = c->seq;
    return 0;
}

int driver_child_ask_snapshot(struct driver_child *c, const struct driver_skip *skip,
                              size_t skip_count, uint64_t *ret_seq, struct err *e)
{
    json_t *j = request("snapshot");
    json_put(j, "skip", skips_to_json(skip, skip_count));
    return ask(c, j, true, ret_seq, e);
}

int driver_child_ask_step(struct driver_child *c, const struct step *s, uint64_t *ret_seq,
                          struct err *e)
{
    json_t *j = request("step");
    json_put(j, "step", step_to_json(s));
    return ask(c, j, true, ret_seq, e);
}

int driver_child_ask_restore(struct driver_child *c, const struct driver_restore *what,
                             uint64_t *ret_seq, struct err *e)
{
    json_t *j = request("restore");
    json_put(j, "restore", restore_to_json(what));
    return ask(c, j, true, ret_seq, e);
}

int driver_child_ask_release(struct driver_child *c, uint64_t *ret_seq, struct err *e)
{
    return ask(c, request("release"), true, ret_seq, e);
}

int driver_child_ask_watch(struct driver_child *c, int every_ms, const struct driver_skip *skip,
                           size_t skip_count, uint64_t *ret_seq, struct err *e)
{
    json_t *j = request("watch");
    json_put_i64(j, "every_ms", every_ms);
    json_put(j, "skip", skips_to_json(skip, skip_count));
    return ask(c, j, false, ret_seq, e);
}

void driver_reply_done(struct driver_reply *r)
{
    snapshot_done(&r->snapshot);
}

static void answered(struct driver_child *c, uint64_t seq)
{
    for (size_t i = 0; i < c->open_count; i++) {
        if (c->open[i].seq != seq)
            continue;
        c->open_count--;
        memmove(&c->open[i], &c->open[i + 1], (c->open_count - i) * sizeof *c->open);
        return;
    }
}

static struct card *last_by_uuid(struct driver_child *c, const char *uuid)
{
    for (size_t i = 0; i < c->last_count; i++)
        if (strcmp(c->last[i].uuid, uuid) == 0)
            return &c->last[i];
    return NULL;
}

static struct card *last_by_bus(struct driver_child *c, const char *bus_id)
{
    for (size_t i = 0; i < c->last_count; i++)
        if (strcmp(c->last[i].bus_id, bus_id) == 0)
            return &c->last[i];
    return NULL;
}

/* Keeps board and names; the lists are not needed again. */
static void remember(struct driver_child *c, const struct card *card)
{
    struct card *l = last_by_uuid(c, card->uuid);
    if (!card->uuid[0])
        return;
    if (!l) {
        ARRAY_ROOM(c->last, c->last_alloc, c->last_count + 1);
        l = &c->last[c->last_count++];
    }
    *l = (struct card){ .index = card->index, .board = card->board };
    memcpy(l->uuid, card->uuid, sizeof l->uuid);
    memcpy(l->bus_id, card->bus_id, sizeof l->bus_id);
}

static int on_card(struct driver_child *c, json_t *j, struct err *e)
{
    struct fields f;
    struct card card;
    fields_open(&f, j, "card message", e);
    json_t *body = fields_object(&f, "card", FIELD_REQUIRED);
    bool same = fields_bool(&f, "same_board", false);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = card_from_json(body, &card, e);
    if (code < 0)
        return code;
    const struct card *l = same ? last_by_uuid(c, card.uuid) : NULL;
    if (l)
        card.board = l->board;
    remember(c, &card);
    *snapshot_add_card(&c->coming) = card;
    return 0;
}

static int on_at(struct driver_child *c, json_t *j, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "at message", e);
    const char *card = fields_text(&f, "card", FIELD_OPTIONAL, CARD_UUID_SIZE - 1);
    int64_t since = fields_i64(&f, "since", FIELD_REQUIRED, 0, INT64_MAX, 0);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    c->at_card = card != NULL;
    c->at = (struct driver_skip){ .index = -1 };
    c->at_since_boot_us = since;
    if (!card)
        return 0;
    if (text_starts(card, "index:")) {
        c->at.index = strtol(card + strlen("index:"), NULL, 10);
        return 0;
    }
    bool by_uuid = text_starts(card, "GPU-");
    const struct card *l = by_uuid ? last_by_uuid(c, card) : last_by_bus(c, card);
    (void)snprintf(c->at.uuid, sizeof c->at.uuid, "%s", by_uuid ? card : l ? l->uuid : "");
    (void)snprintf(c->at.bus_id, sizeof c->at.bus_id, "%.31s",
                   !by_uuid ? card
                   : l      ? l->bus_id
                            : "");
    return 0;
}

static void read_result(struct fields *f, struct driver_reply *ret)
{
    ret->code = (int)fields_i64(f, "code", FIELD_OPTIONAL, INT32_MIN, 0, 0);
    fields_copy(f, "text", FIELD_OPTIONAL, ret->err.text, sizeof ret->err.text);
    ret->err.code = ret->code;
}

static int on_snapshot(struct driver_child *c, json_t *j, struct driver_reply *ret, struct err *e)
{
    struct fields f;
    struct snapshot *s = &c->coming;
    fields_open(&f, j, "snapshot message", e);
    read_result(&f, ret);
    s->taken.boot_us = fields_i64(&f, "taken_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    s->taken.wall_us = fields_i64(&f, "taken_wall_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    fields_copy(&f, "driver_version", FIELD_OPTIONAL, s->driver_version, sizeof s->driver_version);
    fields_copy(&f, "nvml_version", FIELD_OPTIONAL, s->nvml_version, sizeof s->nvml_version);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    ret->kind = DRIVER_REPLY_SNAPSHOT;
    ret->snapshot = *s;
    *s = (struct snapshot)SNAPSHOT_INIT;
    return 1;
}

static int on_step(json_t *j, struct driver_reply *ret, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "step message", e);
    read_result(&f, ret);
    json_t *step = fields_object(&f, "step", FIELD_REQUIRED);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = step_from_json(step, &ret->step, e);
    ret->kind = DRIVER_REPLY_STEP;
    return code < 0 ? code : 1;
}

static int on_restored(json_t *j, struct driver_reply *ret, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "restored message", e);
    read_result(&f, ret);
    json_t *what = fields_object(&f, "restore", FIELD_REQUIRED);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = restore_from_json(what, &ret->restore, e);
    ret->kind = DRIVER_REPLY_RESTORED;
    return code < 0 ? code : 1;
}

/* 1: `ret` is an answer for the caller; 0: it was for us. */
static int on_message(struct driver_child *c, json_t *j, struct driver_reply *ret, struct err *e)
{
    const char *word = json_string_value(json_object_get(j, "say"));
    ret->seq = (uint64_t)json_integer_value(json_object_get(j, "seq"));
    if (text_same(word, "at"))
        return on_at(c, j, e);
    if (text_same(word, "card"))
        return on_card(c, j, e);
    if (text_same(word, "begin")) {
        snapshot_done(&c->coming);
        return 0;
    }
    answered(c, ret->seq);
    if (text_same(word, "snapshot"))
        return on_snapshot(c, j, ret, e);
    if (text_same(word, "step"))
        return on_step(j, ret, e);
    if (text_same(word, "restored"))
        return on_restored(j, ret, e);
    if (text_same(word, "released")) {
        ret->kind = DRIVER_REPLY_RELEASED;
        return 1;
    }
    if (text_same(word, "event")) {
        ret->kind = DRIVER_REPLY_EVENT;
        int code = event_from_json(j, &ret->event, e);
        return code < 0 ? code : 1;
    }
    return err_set(e, -EPROTO, "the driver's process says nonsense");
}

int driver_child_read(struct driver_child *c, struct driver_reply *ret, struct err *e)
{
    for (;;) {
        auto_json json_t *j = NULL;
        struct driver_reply r = { .kind = DRIVER_REPLY_RELEASED };
        int n = message_receive(c->sock, MSG_DONTWAIT, &j, e);
        if (n <= 0)
            return n;
        n = on_message(c, j, &r, e);
        if (n < 0)
            return e ? err_set(e, -EPROTO, "%s", e->text) : -EPROTO;
        if (n > 0) {
            *ret = r;
            return 1;
        }
    }
}

const struct driver_skip *driver_child_at(const struct driver_child *c, int64_t *ret_since_boot_us)
{
    if (!c->at_card)
        return NULL;
    if (ret_since_boot_us)
        *ret_since_boot_us = c->at_since_boot_us;
    return &c->at;
}

int64_t driver_child_busy_since(const struct driver_child *c)
{
    return c->open_count ? c->open[0].sent_boot_us : 0;
}

static void free_child(struct driver_child *c)
{
    if (c->sock >= 0)
        (void)close(c->sock); /* nothing is lost with it */
    snapshot_done(&c->coming);
    free(c->last);
    free(c);
}

pid_t driver_child_abandon(struct driver_child *c)
{
    if (!c)
        return 0;
    pid_t pid = c->pid;
    free_child(c);
    (void)kill(pid, SIGKILL); /* it is ours and not reaped, so the pid is still its own */
    return waitpid(pid, NULL, WNOHANG) == 0 ? pid : 0;
}

pid_t driver_child_stop(struct driver_child *c, int timeout_ms)
{
    if (!c)
        return 0;
    int pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    (void)close(c->sock);
    c->sock = -1;
    if (pidfd >= 0) {
        struct pollfd p = { .fd = pidfd, .events = POLLIN };
        (void)poll(&p, 1, timeout_ms); /* late or interrupted: it is killed */
        (void)close(pidfd);
    }
    return driver_child_abandon(c);
}
