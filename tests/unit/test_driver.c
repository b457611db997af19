/* The driver's door against the simulated library: DIVVY_TEST_BIN is the build's src/ folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "driver/child.h"
#include "driver/state.h"

static char *bin;     /* folder of divvy-sim */
static char *machine; /* DIVVY_SIM */
static char *reset_argv[] = { NULL, NULL, NULL, NULL };

static void sim(const char *words)
{
    auto_free char *line = text_fmt("%s/divvy-sim %s >/dev/null", bin, words);
    int status = system(line);
    if (status != 0)
        fail_msg("divvy-sim %s: status %d", words, status);
}

static int up(void **state)
{
    (void)state;
    sim("up a100-80gb:2 h100-80gb-sxm:1 rtx4090:1");
    return 0;
}

static int down(void **state)
{
    (void)state;
    sim("fault gpu0 none"); /* whoever hangs there comes back */
    sim("down");
    return 0;
}

static struct driver *open_driver(void)
{
    struct driver_options o = { .reset_argv = reset_argv };
    struct driver *d = NULL;
    struct err e = ERR_INIT;
    if (driver_open(&o, &d, &e) < 0)
        fail_msg("%s", e.text);
    return d;
}

static struct snapshot look(struct driver *d)
{
    struct snapshot s = SNAPSHOT_INIT;
    struct err e = ERR_INIT;
    if (driver_snapshot(d, NULL, 0, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static int step(struct driver *d, struct step *s, struct err *e)
{
    *e = (struct err)ERR_INIT;
    return driver_step(d, s, s, e);
}

static int turn(struct driver *d, const struct card *c, bool on, struct err *e)
{
    struct step s;
    step_init(&s, on ? STEP_MIG_ON : STEP_MIG_OFF, c);
    return step(d, &s, e);
}

static struct step about(const struct card *c, enum step_kind kind, const char *profile,
                         uint32_t start)
{
    struct step s;
    const struct profile *p = board_profile_by_name(&c->board, profile);
    assert_non_null(p);
    step_init(&s, kind, c);
    s.profile_id = p->id;
    s.start = start;
    s.units = p->units;
    memcpy(s.profile, p->name, sizeof s.profile);
    return s;
}

/* Both instances of a slice. */
static struct step cut(struct driver *d, const struct card *c, const char *profile, uint32_t start)
{
    struct err e;
    struct step gi = about(c, STEP_GI_CREATE, profile, start);
    if (step(d, &gi, &e) < 0)
        fail_msg("%s", e.text);
    struct step ci = about(c, STEP_CI_CREATE, profile, start);
    if (step(d, &ci, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(ci.gi, gi.gi);
    return ci;
}

static void test_no_library_is_said(void **state)
{
    (void)state;
    struct driver *d = NULL;
    struct err e = ERR_INIT;
    struct driver_options o = { .nvml = "/nowhere/libnvidia-ml.so.1" };
    assert_int_equal(driver_open(&o, &d, &e), -ENOENT);
    assert_string_equal(e.text, "no NVIDIA driver here: /nowhere/libnvidia-ml.so.1 was not found");
    o.nvml = "libjansson.so.4";
    assert_int_equal(driver_open(&o, &d, &e), -ELIBBAD);
    assert_non_null(strstr(e.text, "it has no nvmlInit_v2"));
    assert_null(d);
}

static void test_boards_are_asked_of_the_driver(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    assert_int_equal(s.card_count, 4);
    const struct card *a100 = &s.cards[0];
    assert_string_equal(a100->board.name, "NVIDIA A100-SXM4-80GB");
    assert_int_equal(a100->health, CARD_OK);
    assert_true(a100->mig_capable);
    assert_false(a100->mig_now);
    assert_int_equal(a100->board.units, 8);
    assert_int_equal(a100->board.slices, 7);
    assert_int_equal(a100->board.profile_count, 7);
    assert_int_equal(a100->board.activation, MIG_BY_RESET);
    const struct profile *p = board_profile_by_name(&a100->board, "3g.40gb");
    assert_int_equal(p->id, 9);
    assert_int_equal(p->units, 4);
    assert_int_equal(p->start_count, 2);
    assert_int_equal(p->starts[1], 4);
    assert_int_equal(s.cards[2].board.activation, MIG_IMMEDIATE);
    assert_int_equal(s.cards[3].board.activation, MIG_NONE);
    assert_int_equal(s.cards[3].board.profile_count, 0);
    assert_true(a100->known & KNOW_TEMPERATURE && a100->known & KNOW_POWER);
    assert_true(a100->known & KNOW_LOAD && a100->known & KNOW_PROCESSES);
    assert_int_equal(a100->peer_count, 3);
    assert_int_equal(card_peer(a100, s.cards[3].bus_id)->path, 10);
    assert_int_equal(card_peer(a100, s.cards[3].bus_id)->nvlinks, 0);
}

static void test_a_slice_is_cut_and_read_back(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot before = look(d);
    struct err e;
    struct card *c = &before.cards[0];
    assert_int_equal(turn(d, c, true, &e), 0);
    struct step made = cut(d, c, "2g.20gb", 4);
    struct step bare = about(c, STEP_GI_CREATE, "1g.10gb", 2);
    assert_int_equal(step(d, &bare, &e), 0);

    AUTO(snapshot) struct snapshot s = look(d);
    c = &s.cards[0];
    assert_true(c->mig_now && c->known & KNOW_SLICES);
    assert_false(c->known & KNOW_LOAD);
    assert_int_equal(c->slice_count, 2);
    assert_int_equal(c->slices[0].start, 2);
    assert_int_equal(c->slices[0].ci, NOT_AN_INSTANCE);
    const struct slice *slice = &c->slices[1];
    assert_int_equal(slice->start, 4);
    assert_int_equal(slice->units, 2);
    assert_int_equal(slice->profile_id, 14);
    assert_int_equal(slice->gi, made.gi);
    assert_int_equal(slice->ci, made.ci);
    assert_true(slice->full);
    assert_string_equal(slice->uuid, made.uuid);
    assert_int_equal(strncmp(made.uuid, "MIG-", 4), 0);
    assert_true(slice->mem_known && slice->mem_total_bytes > UINT64_C(19) << 30);

    assert_int_equal(step(d, &bare, &e), -EEXIST);
    struct step over = about(c, STEP_GI_CREATE, "3g.40gb", 4);
    assert_int_equal(step(d, &over, &e), -ENOSPC);
    struct step nowhere = about(c, STEP_GI_CREATE, "3g.40gb", 3);
    assert_int_equal(step(d, &nowhere, &e), -ENOTSUP);
    struct step early = about(c, STEP_GI_DESTROY, "2g.20gb", 4);
    assert_int_equal(step(d, &early, &e), -EBUSY);

    struct step twice = made;
    twice.gi = twice.ci = NOT_AN_INSTANCE;
    assert_int_equal(step(d, &twice, &e), -EEXIST);
    struct step ci[STEP_REVERSE_MAX];
    assert_int_equal(step_reverse(&made, false, ci), 1);
    assert_int_equal(step(d, &ci[0], &e), 0);
    assert_int_equal(step(d, &ci[0], &e), -ENOENT);
    assert_int_equal(step(d, &early, &e), 0);
    assert_int_equal(step(d, &early, &e), -ENOENT);
    struct step rest[STEP_REVERSE_MAX];
    assert_int_equal(step_reverse(&bare, false, rest), 1);
    assert_int_equal(step(d, &rest[0], &e), 0);
    assert_int_equal(turn(d, c, false, &e), 0);
}

static void test_smaller_compute_instances_are_seen(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot before = look(d);
    struct err e;
    struct card *c = &before.cards[2];
    assert_int_equal(turn(d, c, true, &e), 0);
    struct step gi = about(c, STEP_GI_CREATE, "3g.40gb", 4);
    assert_int_equal(step(d, &gi, &e), 0);
    struct step ci = about(c, STEP_CI_CREATE, "3g.40gb", 4);
    ci.ci_profile_id = 0;
    ci.ci_slices = 1;
    ci.ci_start = 1;
    assert_int_equal(step(d, &ci, &e), 0);
    AUTO(snapshot) struct snapshot s = look(d);
    c = &s.cards[2];
    assert_int_equal(c->slice_count, 1);
    assert_false(c->slices[0].full);
    assert_int_equal(c->slices[0].ci_start, 1);
    assert_int_equal(c->slices[0].ci_slices, 1);
    const struct profile *p = board_profile_by_name(&c->board, "3g.40gb");
    assert_true(p->ci_count >= 3);
    assert_int_equal(profile_full_ci(p)->slices, 3);
}

static void test_a_lost_card_hides_no_other(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot before = look(d);
    sim("fault gpu0 lost");
    AUTO(snapshot) struct snapshot s = look(d);
    assert_int_equal(s.card_count, 4);
    assert_int_equal(s.cards[0].health, CARD_LOST);
    assert_string_equal(s.cards[0].uuid, before.cards[0].uuid);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(s.cards[i].health, CARD_OK);
    struct err e;
    assert_int_equal(turn(d, &before.cards[0], true, &e), -ENODEV);
}

static void test_a_lie_is_found_out(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    struct err e;
    struct card *c = &s.cards[0];
    assert_int_equal(turn(d, c, true, &e), 0);
    struct step gi = about(c, STEP_GI_CREATE, "3g.40gb", 0);
    assert_int_equal(step(d, &gi, &e), 0);
    sim("fault gpu0 destroy-lies");
    struct step back[STEP_REVERSE_MAX];
    assert_int_equal(step_reverse(&gi, false, back), 1);
    assert_int_equal(step(d, &back[0], &e), -EIO);
    assert_string_equal(e.text, "cannot destroy gpu0/3g.40gb@0: the driver says that it did, and "
                                "it is still there");
    sim("fault gpu0 none");
    sim("fault gpu0 create-fails:1");
    struct step second = about(c, STEP_GI_CREATE, "3g.40gb", 4);
    assert_int_equal(step(d, &second, &e), -ENOSPC);
    assert_int_equal(step(d, &second, &e), 0);
}

static void test_a_pending_mode_becomes_current_by_a_reset(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    struct err e;
    struct step reset;
    sim("fault gpu0 reset-required");
    assert_int_equal(turn(d, &s.cards[0], true, &e), -EAGAIN);
    step_init(&reset, STEP_RESET, &s.cards[0]);
    assert_int_equal(step(d, &reset, &e), 0);
    AUTO(snapshot) struct snapshot after = look(d);
    assert_true(after.cards[0].mig_now && after.cards[0].mig_pending);
    assert_int_equal(turn(d, &s.cards[3], true, &e), -ENOTSUP);
}

static void test_a_card_in_use_keeps_its_mode(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    struct err e;
    sim("fault gpu0 in-use");
    assert_int_equal(turn(d, &s.cards[0], true, &e), -EBUSY);
    AUTO(snapshot) struct snapshot after = look(d);
    assert_false(after.cards[0].mig_now || after.cards[0].mig_pending);
}

static nvmlReturn_t (*set_mig_mode)(nvmlDevice_t, unsigned int, nvmlReturn_t *);
static int mode_calls, mode_lost_at;

/* The card falls off the bus before that call. */
static nvmlReturn_t lost_meanwhile(nvmlDevice_t dev, unsigned int mode, nvmlReturn_t *activation)
{
    return ++mode_calls >= mode_lost_at ? NVML_ERROR_GPU_IS_LOST
                                        : set_mig_mode(dev, mode, activation);
}

static void test_a_mode_that_was_stored_is_not_taken_for_none(void **state)
{
    (void)state;
    static const struct {
        int lost_at, code;
    } cases[] = { { 1, -ENODEV }, { 2, -EIO }, { 11, -EIO } }; /* the last is to put it back */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_PTR(driver_close) struct driver *d = open_driver();
        AUTO(snapshot) struct snapshot s = look(d);
        struct err e = ERR_INIT;
        sim("fault gpu0 in-use");
        set_mig_mode = d->lib.nvmlDeviceSetMigMode;
        d->lib.nvmlDeviceSetMigMode = lost_meanwhile;
        mode_calls = 0;
        mode_lost_at = cases[i].lost_at;
        assert_int_equal(turn(d, &s.cards[0], true, &e), cases[i].code);
        d->lib.nvmlDeviceSetMigMode = set_mig_mode;
        AUTO(snapshot) struct snapshot after = look(d);
        assert_int_equal(after.cards[0].mig_pending, cases[i].code == -EIO);
        sim("fault gpu0 none");
        assert_int_equal(turn(d, &after.cards[0], false, &e), 0);
    }
}

static void test_an_event_tells_card_and_xid(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    struct driver_event ev;
    struct err e = ERR_INIT;
    assert_int_equal(driver_wait_event(d, NULL, 0, 0, &ev, &e), 0);
    sim("fault gpu1 xid:31");
    assert_int_equal(driver_wait_event(d, NULL, 0, 5000, &ev, &e), 1);
    assert_int_equal(ev.xid, 31);
    assert_string_equal(ev.uuid, s.cards[1].uuid);
}

#define EXCLUSIVE_PROCESS 3u /* as NVML counts */

static void test_settings_are_set_back_and_read_back(void **state)
{
    (void)state;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot s = look(d);
    struct err e = ERR_INIT;
    unsigned int both = KNOW_COMPUTE_MODE | KNOW_APP_CLOCKS;
    assert_int_equal(s.cards[0].known & both, both);
    assert_int_equal(s.cards[3].known & both, KNOW_COMPUTE_MODE); /* a board without */
    struct driver_restore r = { .known = both, .settings = s.cards[0].settings, .unlock = true };
    memcpy(r.uuid, s.cards[0].uuid, sizeof r.uuid);
    r.settings.compute_mode = EXCLUSIVE_PROCESS;
    r.settings.app_sm_mhz = 900;
    if (driver_restore(d, &r, &e) < 0)
        fail_msg("%s", e.text);
    AUTO(snapshot) struct snapshot after = look(d);
    assert_int_equal(after.cards[0].settings.compute_mode, EXCLUSIVE_PROCESS);
    assert_int_equal(after.cards[0].settings.app_sm_mhz, 900);
    r.settings.app_sm_mhz = 99999;
    assert_true(driver_restore(d, &r, &e) < 0);
    assert_non_null(strstr(e.text, "application clocks"));
    memcpy(r.uuid, s.cards[3].uuid, sizeof r.uuid);
    assert_int_equal(driver_restore(d, &r, &e), -ENOTSUP);
    (void)snprintf(r.uuid, sizeof r.uuid, "GPU-none");
    assert_true(driver_restore(d, &r, &e) < 0);
    assert_non_null(strstr(e.text, "cannot be reached"));
}

static bool a_board(const char *name, uint32_t pci_device_id, struct board *ret, void *arg)
{
    int *asked = arg;
    assert_string_equal(name, "NVIDIA A100-SXM4-40GB");
    assert_int_equal(pci_device_id, 0x20B010DE);
    ++*asked;
    ret->units = 8;
    ret->slices = 7;
    ret->profile_count = 1;
    ret->profiles[0] = (struct profile){ .id = 9, .slices = 3, .units = 4, .name = "3g.20gb" };
    return true;
}

/* Names, codes and structures differ from branch to branch; what comes out does not. */
static void cut_on(const char *version)
{
    auto_free char *words = text_fmt("up --driver=%s a100-40gb", version);
    sim(words);
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot before = look(d);
    struct err e;
    assert_string_equal(before.driver_version, version);
    assert_int_equal(turn(d, &before.cards[0], true, &e), 0);
    AUTO(snapshot) struct snapshot on = look(d);
    const struct profile *p = board_profile_by_name(&on.cards[0].board, "2g.10gb");
    assert_non_null(p);
    assert_int_equal(p->id, 14);
    assert_int_equal(p->start_count, 3);
    assert_non_null(board_profile_by_name(&on.cards[0].board, "1g.5gb+me"));
    assert_int_equal(on.cards[0].board.units, 8);
    struct step made = cut(d, &on.cards[0], "2g.10gb", 4);
    AUTO(snapshot) struct snapshot s = look(d);
    assert_int_equal(s.cards[0].slice_count, 1);
    assert_true(s.cards[0].slices[0].full);
    assert_string_equal(s.cards[0].slices[0].uuid, made.uuid);
    assert_true(s.cards[0].known & KNOW_MEMORY && s.cards[0].known & KNOW_TEMPERATURE);
    struct step back[STEP_REVERSE_MAX];
    assert_int_equal(step_reverse(&made, false, back), 1);
    assert_int_equal(step(d, &back[0], &e), 0);
    sim("down");
}

static void test_drivers_of_all_branches_are_understood(void **state)
{
    (void)state;
    static const char *const versions[] = { "470.256.02", "525.147.05", "535.309.01",
                                            "550.163.01", "580.65.06",  "610.57.04" };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        cut_on(versions[i]);
}

static void test_geometry_that_is_not_told_is_asked_of_the_caller(void **state)
{
    (void)state;
    int asked = 0;
    struct driver *d = NULL;
    struct err e = ERR_INIT;
    struct driver_options o = { .board = a_board, .board_arg = &asked };
    sim("up --driver=535.309.01 a100-40gb");
    AUTO(snapshot) struct snapshot s = SNAPSHOT_INIT;
    assert_int_equal(driver_open(&o, &d, &e), 0);
    s = look(d);
    assert_int_equal(asked, 1);
    assert_int_equal(s.cards[0].board.profile_count, 1);
    assert_int_equal(s.cards[0].board.activation, MIG_BY_RESET);
    /* With MIG on the driver tells, and that is believed rather. */
    assert_int_equal(turn(d, &s.cards[0], true, &e), 0);
    snapshot_done(&s);
    s = look(d);
    assert_true(s.cards[0].board.profile_count >= 5);
    assert_int_equal(asked, 1);
    driver_close(d);
    sim("down");
}

/* ---- children ---- */

static struct driver_child *start_child(enum driver_child_kind kind)
{
    struct driver_options o = { .reset_argv = reset_argv };
    struct driver_child *c = NULL;
    struct err e = ERR_INIT;
    if (driver_child_start(NULL, kind, &o, &c, &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

/* The next answer; waits for it. */
static int answer(struct driver_child *c, struct driver_reply *ret, struct err *e)
{
    int n;
    while ((n = driver_child_read(c, ret, e)) == 0) {
        struct pollfd p = { .fd = driver_child_fd(c), .events = POLLIN };
        assert_int_equal(poll(&p, 1, 30000), 1);
    }
    return n;
}

static void test_a_child_answers_in_the_order_asked(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_ACT);
    struct driver_reply r;
    struct err e = ERR_INIT;
    uint64_t first, second;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot direct = look(d);
    assert_int_equal(driver_child_ask_snapshot(c, NULL, 0, &first, &e), 0);
    struct step s;
    step_init(&s, STEP_MIG_ON, &direct.cards[2]);
    assert_int_equal(driver_child_ask_step(c, &s, &second, &e), 0);
    assert_true(driver_child_busy_since(c) > 0);

    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.kind, DRIVER_REPLY_SNAPSHOT);
    assert_int_equal(r.seq, first);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.snapshot.card_count, 4);
    assert_int_equal(r.snapshot.cards[0].board.profile_count, 7);
    assert_string_equal(r.snapshot.driver_version, direct.driver_version);
    driver_reply_done(&r);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.kind, DRIVER_REPLY_STEP);
    assert_int_equal(r.seq, second);
    assert_int_equal(r.code, 0);
    driver_reply_done(&r);
    assert_int_equal(driver_child_busy_since(c), 0);

    /* The board does not travel again, and is there nevertheless. */
    assert_int_equal(driver_child_ask_snapshot(c, NULL, 0, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.snapshot.cards[0].board.profile_count, 7);
    assert_true(r.snapshot.cards[2].mig_now);
    driver_reply_done(&r);
    assert_int_equal(driver_child_stop(c, 30000), 0);
}

static void test_failures_travel_with_their_words(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_ACT);
    struct driver_reply r;
    struct err e = ERR_INIT;
    AUTO_PTR(driver_close) struct driver *d = open_driver();
    AUTO(snapshot) struct snapshot direct = look(d);
    struct step s;
    step_init(&s, STEP_MIG_ON, &direct.cards[3]);
    assert_int_equal(driver_child_ask_step(c, &s, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.code, -ENOTSUP);
    assert_string_equal(r.err.text, "cannot turn MIG on for gpu3: the card has no MIG");
    driver_reply_done(&r);
    assert_int_equal(driver_child_ask_release(c, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.kind, DRIVER_REPLY_RELEASED);
    assert_int_equal(driver_child_stop(c, 30000), 0);
}

static void test_a_card_that_hangs_is_known_and_left_out(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_WATCH);
    struct driver_reply r;
    struct err e = ERR_INIT;
    assert_int_equal(driver_child_ask_snapshot(c, NULL, 0, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    struct driver_skip hung = { .index = -1 };
    memcpy(hung.uuid, r.snapshot.cards[0].uuid, sizeof hung.uuid);
    driver_reply_done(&r);

    sim("fault gpu0 hang");
    assert_int_equal(driver_child_ask_snapshot(c, NULL, 0, NULL, &e), 0);
    const struct driver_skip *at = NULL;
    while (!(at && (strcmp(at->uuid, hung.uuid) == 0 || at->index == 0))) {
        struct pollfd p = { .fd = driver_child_fd(c), .events = POLLIN };
        assert_int_equal(poll(&p, 1, 30000), 1);
        assert_int_equal(driver_child_read(c, &r, &e), 0);
        at = driver_child_at(c, NULL);
    }
    struct driver_skip skip = *at;
    pid_t pid = driver_child_abandon(c);
    if (pid)
        assert_int_equal(waitpid(pid, NULL, 0), pid);

    c = start_child(DRIVER_CHILD_WATCH);
    assert_int_equal(driver_child_ask_snapshot(c, &skip, 1, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.snapshot.card_count, 4);
    int unresponsive = 0;
    for (size_t i = 0; i < 4; i++)
        unresponsive += r.snapshot.cards[i].health == CARD_UNRESPONSIVE;
    assert_int_equal(unresponsive, 1);
    driver_reply_done(&r);
    assert_int_equal(driver_child_stop(c, 30000), 0);
}

static void test_a_watching_child_sends_events(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_WATCH);
    struct driver_reply r;
    struct err e = ERR_INIT;
    assert_int_equal(driver_child_ask_watch(c, 100, NULL, 0, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.kind, DRIVER_REPLY_SNAPSHOT);
    driver_reply_done(&r);
    assert_int_equal(answer(c, &r, &e), 1); /* by now it has subscribed */
    driver_reply_done(&r);
    sim("fault gpu1 xid:31");
    do {
        driver_reply_done(&r);
        assert_int_equal(answer(c, &r, &e), 1);
    } while (r.kind != DRIVER_REPLY_EVENT);
    assert_int_equal(r.event.xid, 31);
    assert_int_equal(driver_child_stop(c, 30000), 0);
}

static void test_a_child_that_let_go_is_silent_until_asked(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_WATCH);
    struct driver_reply r;
    struct err e = ERR_INIT;
    uint64_t released;
    assert_int_equal(driver_child_ask_watch(c, 1, NULL, 0, NULL, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    driver_reply_done(&r);
    assert_int_equal(driver_child_ask_release(c, &released, &e), 0);
    do {
        assert_int_equal(answer(c, &r, &e), 1);
        driver_reply_done(&r);
    } while (r.kind != DRIVER_REPLY_RELEASED);
    assert_int_equal(r.seq, released);
    uint64_t asked;
    assert_int_equal(driver_child_ask_snapshot(c, NULL, 0, &asked, &e), 0);
    assert_int_equal(answer(c, &r, &e), 1);
    assert_int_equal(r.seq, asked); /* and none of its own before */
    driver_reply_done(&r);
    assert_int_equal(driver_child_stop(c, 30000), 0);
}

static void test_a_child_that_died_is_noticed(void **state)
{
    (void)state;
    struct driver_child *c = start_child(DRIVER_CHILD_ACT);
    struct driver_reply r;
    struct err e = ERR_INIT;
    assert_int_equal(kill(driver_child_pid(c), SIGKILL), 0);
    assert_int_equal(answer(c, &r, &e), -EPIPE);
    pid_t pid = driver_child_abandon(c);
    if (pid)
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int set_up(void)
{
    const char *folder = getenv("DIVVY_TEST_BIN");
    auto_free char *lib = text_fmt("%s/sim/lib/libnvidia-ml.so.1", folder ? folder : "");
    if (!folder || access(lib, R_OK) < 0)
        return -1;
    bin = text_dup(folder);
    machine = text_dup("/tmp/divvy-test-XXXXXX");
    if (!mkdtemp(machine))
        return -1;
    auto_free char *root = text_fmt("%s/root", machine);
    setenv("DIVVY_SIM", machine, 1);
    setenv("DIVVY_NVML", lib, 1);
    setenv("DIVVY_DRIVER_ROOT", root, 1);
    reset_argv[0] = text_fmt("%s/divvy-sim", bin);
    reset_argv[1] = text_dup("reset");
    reset_argv[2] = text_dup("{uuid}");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library_is_said),
        cmocka_unit_test_setup_teardown(test_boards_are_asked_of_the_driver, up, down),
        cmocka_unit_test_setup_teardown(test_a_slice_is_cut_and_read_back, up, down),
        cmocka_unit_test_setup_teardown(test_smaller_compute_instances_are_seen, up, down),
        cmocka_unit_test_setup_teardown(test_a_lost_card_hides_no_other, up, down),
        cmocka_unit_test_setup_teardown(test_a_lie_is_found_out, up, down),
        cmocka_unit_test_setup_teardown(test_a_pending_mode_becomes_current_by_a_reset, up, down),
        cmocka_unit_test_setup_teardown(test_a_card_in_use_keeps_its_mode, up, down),
        cmocka_unit_test_setup_teardown(test_a_mode_that_was_stored_is_not_taken_for_none, up,
                                        down),
        cmocka_unit_test_setup_teardown(test_an_event_tells_card_and_xid, up, down),
        cmocka_unit_test_setup_teardown(test_settings_are_set_back_and_read_back, up, down),
        cmocka_unit_test(test_drivers_of_all_branches_are_understood),
        cmocka_unit_test(test_geometry_that_is_not_told_is_asked_of_the_caller),
        cmocka_unit_test_setup_teardown(test_a_child_answers_in_the_order_asked, up, down),
        cmocka_unit_test_setup_teardown(test_failures_travel_with_their_words, up, down),
        cmocka_unit_test_setup_teardown(test_a_card_that_hangs_is_known_and_left_out, up, down),
        cmocka_unit_test_setup_teardown(test_a_watching_child_sends_events, up, down),
        cmocka_unit_test_setup_teardown(test_a_child_that_let_go_is_silent_until_asked, up, down),
        cmocka_unit_test_setup_teardown(test_a_child_that_died_is_noticed, up, down),
    };
    if (set_up() < 0) {
        printf("1..0 # SKIP the simulated driver is not built (DIVVY_TEST_BIN)\n");
        return 0;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)file_remove_tree(AT_FDCWD, machine, NULL);
    return failed;
}
