/* api.h: a real socket, real peers' credentials, and a daemon of twenty lines behind it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/file.h"
#include "model/card_json.h"

struct desk {
    struct api *api;
    char *dir, *path;
    struct now now;
    struct api_request *pending; /* an answer that is owed */
    char *submitted;             /* name of the last job submitted */
    uint64_t acted;
    enum job_action action;
    char *indices;
    int pool, mode;
    struct job_view job;
    struct inventory inv;
};

static struct desk *desk; /* the clock has no context of its own */

static struct now desk_clock(void)
{
    return desk->now;
}

static void on_submit(void *ctx, struct api_request *req, const struct api_caller *who,
                      struct job_spec *take_spec)
{
    struct desk *d = ctx;
    assert_int_equal(who->uid, getuid());
    free(d->submitted);
    d->submitted = text_dup(take_spec->name);
    job_spec_done(take_spec);
    d->pending = req;
}

static void on_act(void *ctx, struct api_request *req, const struct api_caller *who, uint64_t id,
                   enum job_action what, const char *indices)
{
    struct desk *d = ctx;
    (void)who; /* judged by the room */
    d->acted = id;
    d->action = what;
    free(d->indices);
    d->indices = text_dup(indices);
    api_answer_ok(req, NULL);
}

static void on_set_card(void *ctx, struct api_request *req, const struct api_caller *who,
                        uint32_t ordinal, int pool, int mode)
{
    struct desk *d = ctx;
    assert_true(who->is_operator);
    struct err e = ERR_INIT;
    d->pool = pool;
    d->mode = mode;
    if (ordinal == 0) {
        api_answer_ok(req, "noted");
        return;
    }
    (void)err_set(&e, -ENOENT, "there is no gpu%u here", ordinal); /* the answer carries it */
    api_answer_error(req, &e);
}

static void on_change_layout(void *ctx, struct api_request *req, const struct api_caller *who,
                             struct layout_order *take_order)
{
    (void)ctx;
    assert_true(who->is_operator);
    json_t *j = json_object();
    json_put_text(j, "outcome", take_order->wait ? "open" : "done");
    layout_order_done(take_order);
    api_answer_json(req, j);
}

static void on_stop_layout(void *ctx, struct api_request *req, const struct api_caller *who)
{
    struct err e = ERR_INIT;
    (void)ctx, (void)who;
    (void)err_set(&e, -EALREADY, "nothing is under way"); /* the answer carries it */
    api_answer_error(req, &e);
}

static json_t *on_layout(void *ctx)
{
    (void)ctx; /* says the same always */
    json_t *j = json_object();
    json_put_u64(j, "id", 3);
    return j;
}

static void on_change_maintenance(void *ctx, struct api_request *req, const struct api_caller *who,
                                  const struct maintenance_order *o)
{
    (void)ctx, (void)who;
    json_t *j = json_object();
    json_put_u64(j, "begins", o->action == MAINTENANCE_BEGIN ? o->count : 99);
    api_answer_json(req, j);
}

static int on_job(void *ctx, uint64_t id, struct job_view *ret, struct err *e)
{
    struct desk *d = ctx;
    if (id != d->job.id)
        return err_set(e, -ENOENT, "there is no job %u", (unsigned)id);
    *ret = d->job;
    return 0;
}

static int on_jobs(void *ctx, const struct job_filter *filter, struct api_jobs *out, struct err *e)
{
    (void)e; /* cannot fail */
    struct desk *d = ctx;
    for (uint64_t id = filter->after + 1; id <= 5; id++) {
        struct job_view v = d->job;
        v.id = id;
        if (!api_jobs_add(out, &v, v.id))
            break;
    }
    return 0;
}

static int on_inventory(void *ctx, const struct inventory **ret, struct err *e)
{
    (void)e; /* cannot fail */
    *ret = &((struct desk *)ctx)->inv;
    return 0;
}

/* Later: the test answers. */
static void on_look(void *ctx, struct api_request *req)
{
    ((struct desk *)ctx)->pending = req;
}

static void on_daemon(void *ctx, struct daemon_view *ret)
{
    (void)ctx; /* says the same always */
    *ret = (struct daemon_view){ .version = "0.1", .root = "/", .isolation = "none" };
}

static int on_why(void *ctx, uint64_t id, struct why_view *ret, struct err *e)
{
    (void)ctx, (void)e; /* says the same always */
    ret->id = id;
    ret->summary = "#7 waits.";
    why_view_add(ret, "order", "first of %d", 3);
    return 0;
}

static const struct api_ops ops = { .submit = on_submit,
                                    .act = on_act,
                                    .set_card = on_set_card,
                                    .change_layout = on_change_layout,
                                    .stop_layout = on_stop_layout,
                                    .layout = on_layout,
                                    .change_maintenance = on_change_maintenance,
                                    .maintenance = on_layout,
                                    .job = on_job,
                                    .jobs = on_jobs,
                                    .inventory = on_inventory,
                                    .look = on_look,
                                    .daemon = on_daemon,
                                    .why = on_why };

static char *job_words[] = { (char *)"true", NULL };

static int set_up(void **state)
{
    char dir[] = "/tmp/divvy-api-XXXXXX";
    struct err e = ERR_INIT;
    struct desk *d = mem_new(sizeof *d);
    assert_non_null(mkdtemp(dir));
    *d = (struct desk){ .dir = text_dup(dir), .path = text_fmt("%s/sock", dir) };
    d->job = (struct job_view){ .id = 7,
                                .uid = getuid(),
                                .user = "alice",
                                .name = "train",
                                .argv = job_words,
                                .cwd = "/home/alice" };
    desk = d;
    struct api_config cfg = {
        .listen_fd = api_listen(d->path, 0600, &e), .ops = &ops, .ctx = d, .clock = desk_clock
    };
    assert_true(cfg.listen_fd >= 0);
    assert_int_equal(api_open(&cfg, &d->api, &e), 0);
    *state = d;
    return 0;
}

static int tear_down(void **state)
{
    struct desk *d = *state;
    api_close(d->api);
    if (d->pending) {
        struct err e = { .code = -EIO, .text = "too late" };
        api_answer_error(d->pending, &e);
    }
    assert_int_equal(file_remove_tree(AT_FDCWD, d->dir, NULL), 0);
    free(d->dir);
    free(d->path);
    free(d->submitted);
    free(d->indices);
    free(d);
    return 0;
}

static int dial(const struct desk *d)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && strlen(d->path) < sizeof addr.sun_path);
    memcpy(addr.sun_path, d->path, strlen(d->path) + 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

/* Runs the room until nothing is left to do. */
static void turn(struct desk *d)
{
    struct pollfd p = { .fd = api_fd(d->api), .events = POLLIN };
    do
        api_run(d->api);
    while (poll(&p, 1, 0) > 0 || api_timeout_us(d->api, d->now) == 0);
}

static void say(struct desk *d, int fd, const char *method, const char *path, const char *body)
{
    auto_free char *request =
        text_fmt("%s %s HTTP/1.1\r\nHost: divvy\r\nContent-Length: %zu\r\n\r\n%s", method, path,
                 strlen(body), body);
    assert_int_equal(file_write_all(fd, request, strlen(request), NULL), 0);
    turn(d);
}

/* The status, and the body in `ret`; 0: nothing was answered. */
static int hear(int fd, char ret[8192])
{
    char buf[16384];
    ssize_t n = recv(fd, buf, sizeof buf - 1, MSG_DONTWAIT);
    if (n <= 0)
        return 0;
    buf[n] = '\0';
    const char *body = strstr(buf, "\r\n\r\n");
    int status = 0;
    assert_int_equal(sscanf(buf, "HTTP/1.%*d %d", &status), 1);
    assert_non_null(body);
    (void)snprintf(ret, 8192, "%s", body + 4);
    return status;
}

static int ask(struct desk *d, const char *method, const char *path, const char *body,
               char ret[8192])
{
    auto_close int fd = dial(d);
    say(d, fd, method, path, body);
    return hear(fd, ret);
}

static void test_reading(void **state)
{
    struct desk *d = *state;
    char body[8192];
    assert_int_equal(ask(d, "GET", "/v1/status", "", body), 200);
    assert_non_null(strstr(body, "\"isolation\":\"none\""));
    assert_int_equal(ask(d, "GET", "/v1/inventory", "", body), 200);
    assert_non_null(strstr(body, "\"cards\":[]"));
    assert_int_equal(ask(d, "GET", "/v1/jobs/7", "", body), 200);
    assert_non_null(strstr(body, "\"user\":\"alice\""));
    assert_non_null(strstr(body, "\"argv\":[\"true\"]"));
    assert_int_equal(ask(d, "GET", "/v1/jobs/7/why", "", body), 200);
    assert_non_null(strstr(body, "first of 3"));
}

static void test_the_cards_after_a_look(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int fd = dial(d);
    say(d, fd, "GET", "/v1/inventory?fresh=true", "");
    assert_int_equal(hear(fd, body), 0);
    api_answer_json(d->pending, inventory_to_json(&d->inv));
    d->pending = NULL;
    turn(d);
    assert_int_equal(hear(fd, body), 200);
    assert_non_null(strstr(body, "\"cards\":[]"));
    assert_int_equal(ask(d, "GET", "/v1/inventory?fresh=false", "", body), 200);
    assert_int_equal(ask(d, "GET", "/v1/inventory?fresh=soon", "", body), 400);
    assert_non_null(strstr(body, "fresh: true asks the driver first"));
}

static void test_pages_of_a_list(void **state)
{
    struct desk *d = *state;
    char body[8192];
    assert_int_equal(ask(d, "GET", "/v1/jobs?limit=3", "", body), 200);
    assert_non_null(strstr(body, "\"next\":3}"));
    assert_int_equal(ask(d, "GET", "/v1/jobs?limit=3&after=3", "", body), 200);
    assert_non_null(strstr(body, "\"next\":null}"));
    assert_null(strstr(body, "\"id\":3,"));
}

static void test_refusals_have_words(void **state)
{
    struct desk *d = *state;
    char body[8192];
    assert_int_equal(ask(d, "GET", "/v1/jobs/8", "", body), 404);
    assert_non_null(strstr(body, "\"code\":\"not_found\",\"message\":\"there is no job 8\""));
    assert_int_equal(ask(d, "GET", "/v2/jobs", "", body), 404);
    assert_int_equal(ask(d, "DELETE", "/v1/jobs/7", "", body), 405);
    assert_int_equal(ask(d, "GET", "/v1/jobs?stat=all", "", body), 400);
    assert_non_null(strstr(body, "there is no parameter 'stat' here"));
    assert_int_equal(ask(d, "GET", "/v1/status?a=b", "", body), 400);
    assert_int_equal(ask(d, "POST", "/v1/jobs", "{\"name\":", body), 400);
    assert_int_equal(ask(d, "POST", "/v1/jobs",
                         "{\"name\":\"a\",\"cwd\":\"/\",\"argv\":[\"a\"],\"gpu\":1}", body),
                     400);
    assert_non_null(strstr(body, "there is no field 'gpu'"));
    assert_null(d->submitted);
}

static void test_a_submit_is_answered_later(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int fd = dial(d);
    say(d, fd, "POST", "/v1/jobs", "{\"name\":\"train\",\"cwd\":\"/\",\"argv\":[\"true\"]}");
    assert_string_equal(d->submitted, "train");
    assert_true(api_owes(d->api));
    assert_int_equal(hear(fd, body), 0);
    api_answer_submitted(d->pending, 41, NULL);
    d->pending = NULL;
    assert_false(api_owes(d->api));
    turn(d);
    assert_int_equal(hear(fd, body), 201);
    assert_string_equal(body, "{\"id\":41,\"note\":null}");
}

static void test_an_answer_to_one_who_left_is_silent(void **state)
{
    struct desk *d = *state;
    int fd = dial(d);
    say(d, fd, "POST", "/v1/jobs", "{\"name\":\"train\",\"cwd\":\"/\",\"argv\":[\"true\"]}");
    assert_int_equal(close(fd), 0);
    turn(d);
    api_answer_submitted(d->pending, 41, NULL);
    d->pending = NULL;
    turn(d);
    assert_false(api_owes(d->api));
}

static void test_closing_with_an_answer_owed(void **state)
{
    struct desk *d = *state;
    auto_close int fd = dial(d);
    say(d, fd, "POST", "/v1/jobs", "{\"name\":\"train\",\"cwd\":\"/\",\"argv\":[\"true\"]}");
    assert_non_null(d->pending); /* tear_down closes the room first and answers then */
}

static void test_waiting_for_a_job(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int fd = dial(d);
    say(d, fd, "GET", "/v1/jobs/7/wait?until=started&timeout_ms=5000", "");
    assert_int_equal(hear(fd, body), 0);
    d->job.state = JOB_PREPARING;
    api_job_changed(d->api, 7);
    turn(d);
    assert_int_equal(hear(fd, body), 0);
    d->job.state = JOB_RUNNING;
    api_job_changed(d->api, 7);
    turn(d);
    assert_int_equal(hear(fd, body), 200);
    assert_non_null(strstr(body, "\"state\":\"running\""));
}

static void test_a_wait_ends_with_its_time(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int fd = dial(d);
    say(d, fd, "GET", "/v1/jobs/7/wait?timeout_ms=5000", "");
    int64_t left = api_timeout_us(d->api, d->now);
    assert_true(left > 0 && left <= 5000000);
    d->now.boot_us += 5000000;
    turn(d);
    assert_int_equal(hear(fd, body), 200);
    assert_non_null(strstr(body, "\"state\":\"pending\""));
}

static void test_who_hangs_up_waits_no_more(void **state)
{
    struct desk *d = *state;
    char body[8192];
    int fd = dial(d);
    say(d, fd, "GET", "/v1/jobs/7/wait?timeout_ms=5000", "");
    assert_true(api_timeout_us(d->api, d->now) > 0);
    assert_int_equal(close(fd), 0);
    turn(d);
    d->job.state = JOB_COMPLETED;
    api_job_changed(d->api, 7);
    assert_int_equal(ask(d, "GET", "/v1/jobs/7", "", body), 200);
}

static void test_acting(void **state)
{
    struct desk *d = *state;
    char body[8192];
    assert_int_equal(ask(d, "POST", "/v1/jobs/7/cancel", "", body), 200);
    assert_int_equal(d->acted, 7);
    assert_int_equal(d->action, JOB_ACTION_CANCEL);
    assert_null(d->indices);
    assert_int_equal(ask(d, "POST", "/v1/jobs/8/cancel", "", body), 404);
    assert_int_equal(d->acted, 7);
    assert_int_equal(ask(d, "POST", "/v1/jobs/7/hold", "{\"indices\":\"3-9\"}", body), 200);
    assert_int_equal(d->action, JOB_ACTION_HOLD);
    assert_string_equal(d->indices, "3-9");
    assert_int_equal(ask(d, "POST", "/v1/jobs/7/release", "{}", body), 200);
    assert_int_equal(d->action, JOB_ACTION_RELEASE);
    assert_int_equal(ask(d, "POST", "/v1/jobs/7/requeue", "{\"index\":3}", body), 400);
    assert_int_equal(d->action, JOB_ACTION_RELEASE);
    assert_int_equal(ask(d, "PATCH", "/v1/cards/0", "{\"mode\":\"slices\"}", body), 200);
    assert_int_equal(d->mode, MODE_SLICES);
    assert_int_equal(d->pool, -1);
    assert_int_equal(ask(d, "PATCH", "/v1/cards/9", "{\"pool\":\"queue\"}", body), 404);
    assert_int_equal(ask(d, "PATCH", "/v1/cards/0", "{}", body), 400);
    assert_int_equal(
        ask(d, "POST", "/v1/layout", "{\"make\":\"gpu0/1g.10gb\",\"wait\":true}", body), 200);
    assert_non_null(strstr(body, "open"));
    assert_int_equal(ask(d, "POST", "/v1/layout", "{\"make\":7}", body), 400);
    assert_int_equal(ask(d, "GET", "/v1/layout", "", body), 200);
    assert_non_null(strstr(body, "\"id\":3"));
    assert_int_equal(ask(d, "POST", "/v1/layout/stop", "", body), 409);
    assert_int_equal(
        ask(d, "POST", "/v1/maintenance", "{\"action\":\"begin\",\"gpus\":[0,1]}", body), 200);
    assert_non_null(strstr(body, "\"begins\":2"));
    assert_int_equal(ask(d, "POST", "/v1/maintenance", "{\"action\":\"rest\"}", body), 400);
    assert_int_equal(ask(d, "POST", "/v1/maintenance", "{\"action\":\"end\",\"gpus\":[0]}", body),
                     400);
    assert_int_equal(
        ask(d, "POST", "/v1/maintenance", "{\"action\":\"begin\",\"gpus\":[1,1]}", body), 400);
}

static void test_too_large_a_body(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int fd = dial(d);
    const char *head = "POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\nContent-Length: 20000000\r\n\r\n";
    assert_int_equal(file_write_all(fd, head, strlen(head), NULL), 0);
    turn(d);
    assert_int_equal(hear(fd, body), 413);
    auto_free char *much = mem_new(API_BODY_MAX + 2);
    memset(much, ' ', API_BODY_MAX + 1);
    auto_close int other = dial(d);
    auto_free char *request =
        text_fmt("POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(much), much);
    for (size_t at = 0; at < strlen(request);) {
        ssize_t n = send(other, request + at, strlen(request) - at, MSG_DONTWAIT);
        at += n > 0 ? (size_t)n : 0;
        turn(d);
    }
    assert_int_equal(hear(other, body), 413);
}

static bool closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void test_a_request_has_its_time_however_it_drips(void **state)
{
    struct desk *d = *state;
    char body[8192];
    auto_close int drips = dial(d);
    auto_close int waits = dial(d);
    say(d, waits, "GET", "/v1/jobs/7/wait", "");
    static const char half[] = "GET /v1/status HTTP/1.1\r\nHost: divvy";
    for (size_t i = 0; i < 11; i++) {
        assert_int_equal(send(drips, &half[i], 1, MSG_NOSIGNAL), 1);
        turn(d);
        assert_false(closed(drips));
        d->now.boot_us += CLOCK_SECOND;
    }
    turn(d);
    assert_true(closed(drips));
    assert_int_equal(hear(waits, body), 0);
    assert_false(closed(waits));
    assert_int_equal(ask(d, "GET", "/v1/status", "", body), 200);
}

#define PIECE (1024 * 1024 - 16)

/* All of a body but its last byte. */
static int send_most(struct desk *d, const char *body)
{
    int fd = dial(d);
    auto_free char *head = text_fmt("POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\nContent-Length: "
                                    "%d\r\n\r\n",
                                    PIECE);
    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
    for (size_t sent = 0; sent < PIECE - 1;) {
        ssize_t n = send(fd, body + sent, PIECE - 1 - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn(d);
    }
    return fd;
}

static void test_what_is_under_way_has_a_bound(void **state)
{
    struct desk *d = *state;
    auto_free char *body = mem_new(PIECE + 1);
    int held[80];
    char said[8192];
    memset(body, ' ', PIECE);
    for (size_t i = 0; i < 80; i++)
        held[i] = send_most(d, body);
    assert_int_equal(send(held[79], " ", 1, MSG_NOSIGNAL), 1);
    turn(d);
    assert_int_equal(hear(held[79], said), 429);
    assert_non_null(strstr(said, "read the answers first"));
    for (size_t i = 0; i < 80; i++)
        (void)close(held[i]);
    turn(d);
    assert_int_equal(ask(d, "GET", "/v1/status", "", said), 200);
}

static void test_noise_breaks_nothing(void **state)
{
    struct desk *d = *state;
    char body[8192];
    for (unsigned i = 0; i < 64; i++) {
        auto_close int fd = dial(d);
        char noise[512];
        for (unsigned k = 0; k < sizeof noise; k++)
            noise[k] = (char)(i * 7919 + k * (2 * i + 31));
        assert_int_equal(file_write_all(fd, noise, sizeof noise, NULL), 0);
        turn(d);
    }
    assert_int_equal(ask(d, "GET", "/v1/status", "", body), 200);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_reading),
        TEST(test_the_cards_after_a_look),
        TEST(test_pages_of_a_list),
        TEST(test_refusals_have_words),
        TEST(test_a_submit_is_answered_later),
        TEST(test_an_answer_to_one_who_left_is_silent),
        TEST(test_closing_with_an_answer_owed),
        TEST(test_waiting_for_a_job),
        TEST(test_a_wait_ends_with_its_time),
        TEST(test_who_hangs_up_waits_no_more),
        TEST(test_acting),
        TEST(test_too_large_a_body),
        TEST(test_a_request_has_its_time_however_it_drips),
        TEST(test_what_is_under_way_has_a_bound),
        TEST(test_noise_breaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
