#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "apply/apply.h"
#include "apply/journal.h"
#include "apply/reboot.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "boards.h"
#include "model/expect.h"
#include "model/fields.h"

/* Two cards; 2g@0 and 1g@2 of gpu0 go, 3g@0 comes, and gpu1 is turned on and cut. */
struct world {
    struct inventory inv;
    struct snapshot before;
    struct plan plan;
};

static void add_ci(struct plan *p, enum step_kind kind, const struct card *c, const char *profile,
                   uint32_t start)
{
    const struct profile *prof = board_profile_by_name(&c->board, profile);
    enum step_kind gi = kind == STEP_CI_CREATE ? STEP_GI_CREATE : STEP_GI_DESTROY;
    for (int i = 0; i < 2; i++) {
        bool ci_now = (kind == STEP_CI_DESTROY) == (i == 0);
        struct step *s = plan_add(p, ci_now ? kind : gi, c);
        s->profile_id = prof->id;
        memcpy(s->profile, prof->name, sizeof s->profile);
        s->start = start;
        s->units = prof->units;
        s->ci_profile_id = prof->cis[0].id;
        s->ci_slices = prof->slices;
        for (size_t k = 0; gi == STEP_GI_DESTROY && k < c->slice_count; k++)
            if (c->slices[k].start == start) {
                s->gi = c->slices[k].gi;
                s->ci = c->slices[k].ci;
            }
    }
}

static struct world *world_new(void)
{
    struct world *w = mem_new(sizeof *w);
    (void)inventory_add(&w->inv, board_a100_80());
    (void)inventory_add(&w->inv, board_a100_80());
    struct inventory_card *c = &w->inv.cards[0];
    (void)card_cut(c, "2g.20gb", 0, 0);
    (void)card_cut(c, "1g.10gb", 2, 0);
    (void)card_cut(c, "3g.40gb", 4, 9);
    for (size_t i = 0; i < 2; i++)
        card_copy(&w->inv.cards[i].card, snapshot_add_card(&w->before));
    add_ci(&w->plan, STEP_CI_DESTROY, &c->card, "2g.20gb", 0);
    add_ci(&w->plan, STEP_CI_DESTROY, &c->card, "1g.10gb", 2);
    add_ci(&w->plan, STEP_CI_CREATE, &c->card, "3g.40gb", 0);
    (void)plan_add(&w->plan, STEP_MIG_ON, &w->inv.cards[1].card);
    add_ci(&w->plan, STEP_CI_CREATE, &w->inv.cards[1].card, "7g.80gb", 0);
    return w;
}

static void world_free(struct world *w)
{
    snapshot_done(&w->before);
    inventory_done(&w->inv);
    plan_done(&w->plan);
    free(w);
}
DEFINE_AUTO_PTR(struct world, world_free);

static struct card *card_of(struct world *w, const struct step *s)
{
    return &inventory_uuid(&w->inv, s->card_uuid)->card;
}

/* What the driver does: ids as a function of the placement. */
static void carry_out(struct world *w, const struct step *s, struct step *done)
{
    *done = *s;
    if (s->kind == STEP_GI_CREATE || s->kind == STEP_CI_CREATE)
        done->gi = 20 * s->units + s->start;
    if (s->kind == STEP_CI_CREATE) {
        done->ci = 0;
        snprintf(done->uuid, sizeof done->uuid, "MIG-%u-%u-0", s->ordinal, done->gi);
    }
    card_expect(card_of(w, s), done);
}

static void assert_as_before(const struct world *w)
{
    for (size_t i = 0; i < 2; i++) {
        const struct card *was = &w->before.cards[i];
        const struct card *is = &w->inv.cards[i].card;
        assert_int_equal(was->mig_now, is->mig_now);
        assert_int_equal(was->slice_count, is->slice_count);
        for (size_t k = 0; k < was->slice_count; k++) {
            assert_int_equal(was->slices[k].start, is->slices[k].start);
            assert_int_equal(was->slices[k].profile_id, is->slices[k].profile_id);
            assert_int_equal(was->slices[k].gi, is->slices[k].gi);
            assert_string_equal(was->slices[k].uuid, is->slices[k].uuid);
        }
    }
}

/* Through its stored form and back, as a restart does. */
static void restart(struct apply *a)
{
    auto_json json_t *j = apply_to_json(a);
    struct apply again;
    struct err e = ERR_INIT;
    assert_int_equal(apply_from_json(j, &again, &e), 0);
    apply_done(a);
    *a = again;
}

/* Runs to the end; step number `fail_at` fails with `code`, counted from 0. */
static void run(struct world *w, struct apply *a, int fail_at, int code)
{
    const struct step *s;
    for (int n = 0; (s = apply_next(a)); n++) {
        struct step done;
        apply_begin(a);
        if (n == fail_at) {
            apply_result(a, code, NULL, NULL);
        } else {
            carry_out(w, s, &done);
            apply_result(a, 0, &done, NULL);
        }
        restart(a);
    }
}

static void test_all_steps_make_the_wanted_layout(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    apply_init(&a, &w->plan);
    run(w, &a, -1, 0);
    assert_int_equal(a.state, APPLY_DONE);
    assert_int_equal(w->inv.cards[0].card.slice_count, 2);
    assert_int_equal(w->inv.cards[1].card.slice_count, 1);
    assert_string_equal(a.plan.steps[5].uuid, "MIG-0-80-0");
}

static void test_a_failure_at_any_step_restores_what_was(void **state)
{
    (void)state;
    for (int at = 0; at < 9; at++) {
        AUTO_PTR(world_free) struct world *w = world_new();
        AUTO(apply) struct apply a;
        assert_int_equal(w->plan.count, 9);
        apply_init(&a, &w->plan);
        run(w, &a, at, -ENOSPC);
        assert_int_equal(a.state, APPLY_ROLLED_BACK);
        assert_int_equal(a.code, -ENOSPC);
        assert_int_equal(strncmp(a.failure, "cannot ", 7), 0);
        assert_as_before(w);
    }
}

/* Hopper after a reboot: MIG is off, and nothing of what was there can come back. */
static void test_a_card_that_lost_mig_meanwhile_counts_as_undone(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    apply_init(&a, &w->plan);
    for (int n = 0; (s = apply_next(&a)); n++) {
        bool destroys = s->kind == STEP_GI_DESTROY || s->kind == STEP_CI_DESTROY;
        bool creates = s->kind == STEP_GI_CREATE || s->kind == STEP_CI_CREATE;
        struct step done;
        apply_begin(&a);
        if (n >= 6 && (destroys || creates)) {
            apply_result(&a, destroys ? -ENOENT : -ENXIO, NULL, NULL);
            continue;
        }
        carry_out(w, s, &done);
        apply_result(&a, 0, &done, NULL);
    }
    assert_int_equal(a.state, APPLY_ROLLED_BACK);
    assert_string_equal(a.stuck, "");
}

/* Ampere after a reboot: MIG is on, and no instance is there. */
static void empty_cards(struct world *w)
{
    for (size_t i = 0; i < w->inv.card_count; i++)
        w->inv.cards[i].card.slice_count = 0;
}

static bool has_instance(const struct card *c, const struct step *s)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].start == s->start && c->slices[i].profile_id == s->profile_id)
            return true;
    return false;
}

/* carry_out as the driver answers when instances may be gone. */
static int try_out(struct world *w, const struct step *s, struct step *done)
{
    bool there = has_instance(card_of(w, s), s);
    *done = *s;
    if (s->kind == STEP_GI_CREATE && there)
        return -EEXIST;
    if (s->kind != STEP_GI_CREATE && s->kind != STEP_MIG_ON && s->kind != STEP_MIG_OFF && !there)
        return -ENOENT;
    carry_out(w, s, done);
    return 0;
}

/* Goes on to the end; the machine is started anew before step `reboot_at`, begun or not. */
static void run_over_a_reboot(struct world *w, struct apply *a, int fail_at, int reboot_at,
                              bool begun)
{
    const struct step *s;
    for (int n = 0; (s = apply_next(a)); n++) {
        struct step done;
        int code;
        if (n == reboot_at) {
            empty_cards(w);
            if (begun)
                apply_begin(a);
            restart(a);
            AUTO(snapshot) struct snapshot now = SNAPSHOT_INIT;
            for (size_t i = 0; i < w->inv.card_count; i++)
                card_copy(&w->inv.cards[i].card, snapshot_add_card(&now));
            (void)apply_recover(a, &now, NULL); /* what it found comes out at the end */
            if (!(s = apply_next(a)))
                return;
        }
        apply_begin(a);
        code = n == fail_at ? -EBUSY : try_out(w, s, &done);
        apply_result(a, code, &done, NULL);
    }
}

static void test_a_reboot_at_any_step_leaves_nothing_stuck(void **state)
{
    (void)state;
    for (int at = 0; at < 9; at++)
        for (int begun = 0; begun < 2; begun++) {
            AUTO_PTR(world_free) struct world *w = world_new();
            AUTO(apply) struct apply a;
            apply_init(&a, &w->plan);
            run_over_a_reboot(w, &a, -1, at, begun);
            assert_string_equal(a.stuck, "");
            /* Before anything was made, all can be done; afterwards what was made is missing. */
            if (at <= 4)
                assert_int_equal(a.state, APPLY_DONE);
            else
                assert_true(a.state == APPLY_DONE || a.state == APPLY_ROLLED_BACK);
        }
}

static void test_a_reboot_on_the_way_back_leaves_nothing_stuck(void **state)
{
    (void)state;
    for (int fail_at = 1; fail_at < 9; fail_at++)
        for (int at = fail_at + 1; at < 2 * fail_at + 1; at++)
            for (int begun = 0; begun < 2; begun++) {
                AUTO_PTR(world_free) struct world *w = world_new();
                AUTO(apply) struct apply a;
                apply_init(&a, &w->plan);
                run_over_a_reboot(w, &a, fail_at, at, begun);
                assert_string_equal(a.stuck, "");
                assert_int_equal(a.state, APPLY_ROLLED_BACK);
            }
}

static void test_a_destroy_that_lied_is_undone_too(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    apply_init(&a, &w->plan);
    for (int n = 0; (s = apply_next(&a)); n++) {
        struct step done;
        apply_begin(&a);
        if (n == 1) /* GI destroy: claims success, is there still */
            apply_result(&a, -EIO, NULL, NULL);
        else if (n == 2) { /* so making it again finds it there */
            assert_int_equal(s->kind, STEP_GI_CREATE);
            apply_result(&a, -EEXIST, NULL, NULL);
        } else {
            carry_out(w, s, &done);
            apply_result(&a, 0, &done, NULL);
        }
    }
    assert_int_equal(a.state, APPLY_ROLLED_BACK);
    assert_as_before(w);
}

static void test_what_cannot_be_undone_is_said_and_others_are_undone(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    apply_init(&a, &w->plan);
    for (int n = 0; (s = apply_next(&a)); n++) {
        struct step done;
        apply_begin(&a);
        bool stuck = a.state == APPLY_BACK && s->kind == STEP_GI_DESTROY;
        if (n == 8 || stuck) {
            apply_result(&a, -EBUSY, NULL, NULL);
            continue;
        }
        carry_out(w, s, &done);
        apply_result(&a, 0, &done, NULL);
    }
    assert_int_equal(a.state, APPLY_STUCK);
    assert_non_null(strstr(a.stuck, "gpu1 is not as it was: cannot destroy gpu1/7g.80gb@0"));
    assert_non_null(strstr(a.stuck, "gpu0 is not as it was: cannot destroy gpu0/3g.40gb@0"));
}

static void test_a_mode_that_stays_pending_gets_its_reset(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    int resets = 0;
    apply_init(&a, &w->plan);
    while ((s = apply_next(&a))) {
        struct step done = *s;
        apply_begin(&a);
        if (s->kind == STEP_MIG_ON) {
            assert_true(apply_needs_release(s));
            apply_result(&a, -EAGAIN, &done, NULL);
        } else if (s->kind == STEP_RESET) {
            resets++;
            assert_string_equal(s->card_uuid, w->inv.cards[1].card.uuid);
            apply_result(&a, 0, &done, NULL);
        } else {
            carry_out(w, s, &done);
            apply_result(&a, 0, &done, NULL);
        }
        restart(&a);
    }
    assert_int_equal(a.state, APPLY_DONE);
    assert_int_equal(resets, 1);
}

static void test_a_reset_that_fails_takes_the_pending_mode_back(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    bool taken_back = false;
    apply_init(&a, &w->plan);
    while ((s = apply_next(&a))) {
        struct step done = *s;
        apply_begin(&a);
        taken_back = taken_back || s->kind == STEP_MIG_OFF;
        if (s->kind == STEP_MIG_ON)
            apply_result(&a, -EAGAIN, &done, NULL);
        else if (s->kind == STEP_RESET)
            apply_result(&a, -EBUSY, NULL, "in use by pid 7 (train)");
        else {
            carry_out(w, s, &done);
            apply_result(&a, 0, &done, NULL);
        }
    }
    assert_int_equal(a.state, APPLY_ROLLED_BACK);
    assert_true(taken_back);
    assert_string_equal(a.failure, "in use by pid 7 (train)");
    assert_as_before(w);
}

/* gpu1's mode stays pending and no reset works there. */
static void run_aside(struct world *w, struct apply *a, int reset_code)
{
    const struct step *s;
    while ((s = apply_next(a))) {
        struct step done = *s;
        apply_begin(a);
        if (s->kind == STEP_MIG_ON)
            apply_result(a, -EAGAIN, &done, "it waits");
        else if (s->kind == STEP_RESET)
            apply_result(a, reset_code, NULL, "no reset works here");
        else {
            carry_out(w, s, &done);
            apply_result(a, 0, &done, NULL);
        }
        restart(a);
    }
}

static void test_a_card_whose_reset_cannot_be_had_is_set_aside(void **state)
{
    (void)state;
    static const struct {
        enum apply_resets resets;
        int reset_code;
        const char *why;
    } rows[] = { { APPLY_RESET_OR_ASIDE, -ENOTSUP, "no reset works here" },
                 { APPLY_RESET_NEVER, -EIO, "it waits" } };
    for (size_t i = 0; i < 2; i++) {
        AUTO_PTR(world_free) struct world *w = world_new();
        AUTO(apply) struct apply a;
        AUTO(reboot) struct reboot r = REBOOT_INIT;
        AUTO(plan) struct plan rest = PLAN_INIT;
        struct card *late = &w->inv.cards[1].card;
        apply_init(&a, &w->plan);
        a.resets = rows[i].resets;
        run_aside(w, &a, rows[i].reset_code);
        assert_int_equal(a.state, APPLY_DONE);
        assert_string_equal(a.reboot, rows[i].why);
        assert_int_equal(w->inv.cards[0].card.slice_count, 2); /* the other card is done */
        assert_int_equal(a.aside.count, 3);
        reboot_add(&r, &a.aside);
        late->mig_now = false;
        late->mig_pending = true;
        assert_int_equal(reboot_look(&r, late), REBOOT_WAITS);
        struct layout_change ch = { .verdict = LAYOUT_BUSY, .turn = 0 };
        assert_false(reboot_mark(&r, late, &ch)); /* to take it back is another wish */
        ch.turn = 1;
        assert_true(reboot_mark(&r, late, &ch));
        assert_int_equal(ch.verdict, LAYOUT_NEEDS_REBOOT);
        late->mig_now = true;
        assert_int_equal(reboot_look(&r, late), REBOOT_DONE);
        assert_int_equal(reboot_look(&r, &w->inv.cards[0].card), REBOOT_NONE);
        late->mig_now = late->mig_pending = false;
        assert_int_equal(reboot_look(&r, late), REBOOT_LOST);
        reboot_rest(&r, late->uuid, &rest);
        assert_int_equal(rest.count, 2);
        assert_int_equal(rest.steps[0].kind, STEP_GI_CREATE);
    }
}

/*
 * gpu1 waits for MIG on already. Its reset works or is not to be had, then something fails on
 * gpu0: both modes of gpu1 are as they were, and nothing is reset that only waited.
 */
static void test_what_was_stored_before_is_stored_again(void **state)
{
    (void)state;
    static const int reset_codes[] = { 0, -ENOTSUP, -EBUSY };
    for (size_t i = 0; i < 3; i++) {
        AUTO_PTR(world_free) struct world *w = world_new();
        AUTO(apply) struct apply a;
        AUTO(plan) struct plan p = PLAN_INIT;
        struct card *waits = &w->inv.cards[1].card;
        const struct step *s;
        size_t resets = 0;
        waits->mig_pending = true;
        (void)plan_add(&p, STEP_MIG_ON, waits);
        add_ci(&p, STEP_CI_DESTROY, &w->inv.cards[0].card, "2g.20gb", 0);
        apply_init(&a, &p);
        a.resets = APPLY_RESET_OR_ASIDE;
        while ((s = apply_next(&a))) {
            struct step done = *s;
            apply_begin(&a);
            bool mode = step_is_mode(s);
            bool fails = a.state == APPLY_GOING && s->kind == STEP_GI_DESTROY;
            resets += s->kind == STEP_RESET;
            if (mode) {
                waits->mig_pending = s->kind == STEP_MIG_ON;
                bool same = waits->mig_now == waits->mig_pending;
                apply_result(&a, same ? 0 : -EAGAIN, &done, NULL);
            } else if (s->kind == STEP_RESET && reset_codes[i] == 0) {
                waits->mig_now = waits->mig_pending;
                apply_result(&a, 0, &done, NULL);
            } else if (s->kind == STEP_RESET) {
                apply_result(&a, reset_codes[i], NULL, "no");
            } else if (fails) {
                apply_result(&a, -ENOSPC, NULL, NULL);
            } else {
                carry_out(w, s, &done);
                apply_result(&a, 0, &done, NULL);
            }
            restart(&a);
        }
        assert_int_equal(a.state, APPLY_ROLLED_BACK);
        assert_false(waits->mig_now);
        assert_true(waits->mig_pending);
        assert_int_equal(resets, reset_codes[i] == 0 ? 2 : 1);
        assert_int_equal(a.reset_failed, reset_codes[i] == -EBUSY);
        assert_as_before(w);
    }
}

static void test_other_failures_of_a_reset_set_nothing_aside(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    apply_init(&a, &w->plan);
    a.resets = APPLY_RESET_OR_ASIDE;
    run_aside(w, &a, -EBUSY);
    assert_int_equal(a.state, APPLY_ROLLED_BACK);
    assert_int_equal(a.aside.count, 0);
    assert_as_before(w);
}

static void test_what_was_set_aside_is_kept_in_a_file(void **state)
{
    (void)state;
    char dir[] = "/tmp/divvy-reboot-XXXXXX";
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    AUTO(reboot) struct reboot r = REBOOT_INIT;
    AUTO(reboot) struct reboot again = REBOOT_INIT;
    struct err e = ERR_INIT;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(reboot_load(dir, &r, &e), 0); /* none is empty */
    apply_init(&a, &w->plan);
    a.resets = APPLY_RESET_NEVER;
    run_aside(w, &a, 0);
    reboot_add(&r, &a.aside);
    reboot_add(&r, &a.aside); /* of the same card the newer counts */
    assert_int_equal(r.steps.count, 3);
    assert_int_equal(reboot_save(dir, &r, &e), 0);
    assert_int_equal(reboot_load(dir, &again, &e), 0);
    assert_int_equal(again.steps.count, 3);
    assert_int_equal(again.steps.steps[0].kind, STEP_MIG_ON);
    reboot_drop(&again, again.steps.steps[0].card_uuid);
    assert_int_equal(reboot_save(dir, &again, &e), 0);
    auto_free char *path = text_fmt("%s/reboot.json", dir);
    assert_int_equal(access(path, F_OK), -1);
    auto_close int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(file_write_all(fd, "{\"v\": 2, \"steps\": []}", 22, NULL), 0);
    reboot_done(&again);
    assert_int_equal(reboot_load(dir, &again, &e), -EINVAL);
    assert_non_null(strstr(e.text, path));
    assert_int_equal(file_remove_tree(AT_FDCWD, dir, NULL), 0);
}

static struct snapshot look(struct world *w)
{
    struct snapshot s = SNAPSHOT_INIT;
    for (size_t i = 0; i < 2; i++)
        card_copy(&w->inv.cards[i].card, snapshot_add_card(&s));
    return s;
}

/* Killed while step `at` is under way, before or after the hardware did it; then it goes on. */
static void crash_at(int at, bool did_it, int fail_at)
{
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    const struct step *s;
    apply_init(&a, &w->plan);
    for (int n = 0; (s = apply_next(&a)); n++) {
        struct step done;
        apply_begin(&a);
        if (n == fail_at) {
            apply_result(&a, -ENOSPC, NULL, NULL);
            continue;
        }
        if (n == at) {
            if (did_it)
                carry_out(w, s, &done);
            restart(&a);
            AUTO(snapshot) struct snapshot now = look(w);
            assert_int_equal(apply_recover(&a, &now, NULL), 0);
            assert_false(a.under_way);
            continue;
        }
        carry_out(w, s, &done);
        apply_result(&a, 0, &done, NULL);
    }
    assert_int_equal(a.state, fail_at < 0 ? APPLY_DONE : APPLY_ROLLED_BACK);
    if (fail_at >= 0)
        assert_as_before(w);
    else
        assert_int_equal(w->inv.cards[1].card.slice_count, 1);
}

static void test_a_crash_at_any_step_is_recovered(void **state)
{
    (void)state;
    for (int at = 0; at < 9; at++) {
        crash_at(at, false, -1);
        crash_at(at, true, -1);
    }
    for (int at = 9; at < 16; at++) { /* on the way back */
        crash_at(at, false, 8);
        crash_at(at, true, 8);
    }
}

static void test_somebody_else_is_found_out(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    struct err e = ERR_INIT;
    apply_init(&a, &w->plan);
    for (int n = 0; n < 4; n++) {
        struct step done;
        carry_out(w, apply_next(&a), &done);
        apply_result(&a, 0, &done, NULL);
    }
    apply_begin(&a); /* create 3g@0 */
    (void)card_cut(&w->inv.cards[0], "1g.10gb", 1, 0);
    AUTO(snapshot) struct snapshot now = look(w);
    assert_int_equal(apply_recover(&a, &now, &e), -ESTALE);
    assert_int_equal(a.state, APPLY_BACK);
    now.cards[0].health = CARD_LOST;
    apply_begin(&a);
    assert_int_equal(apply_recover(&a, &now, &e), -ENODEV);
    assert_true(a.under_way);
}

static void test_a_cancelled_change_walks_back(void **state)
{
    (void)state;
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    apply_init(&a, &w->plan);
    for (int n = 0; n < 6; n++) {
        struct step done;
        carry_out(w, apply_next(&a), &done);
        apply_result(&a, 0, &done, NULL);
    }
    assert_true(apply_touches(&a, w->inv.cards[1].card.uuid));
    assert_false(apply_touches(&a, w->inv.cards[0].card.uuid));
    apply_cancel(&a, "#7 was cancelled");
    run(w, &a, -1, 0);
    assert_int_equal(a.state, APPLY_ROLLED_BACK);
    assert_int_equal(a.code, -ECANCELED);
    assert_as_before(w);
}

static char *temporary(void)
{
    char *dir = text_dup("/tmp/divvy-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static void test_a_journal_knows_how_far_it_got(void **state)
{
    (void)state;
    auto_free char *dir = temporary();
    AUTO_PTR(world_free) struct world *w = world_new();
    AUTO(apply) struct apply a;
    struct journal *j;
    struct err e = ERR_INIT;
    struct step done;
    apply_init(&a, &w->plan);
    assert_int_equal(journal_create(dir, &a, &j, &e), 0);
    for (int n = 0; n < 5; n++) {
        const struct step *s = apply_next(&a);
        assert_int_equal(journal_begin(j, s, &e), 0);
        carry_out(w, s, &done);
        assert_int_equal(journal_result(j, 0, &done, NULL, &e), 0);
        apply_result(&a, 0, &done, NULL);
    }
    assert_int_equal(journal_begin(j, apply_next(&a), &e), 0);
    journal_close(j);

    struct journal *second;
    assert_int_equal(journal_create(dir, &a, &second, &e), -EEXIST);

    auto_free char *path = text_fmt("%s/apply.journal", dir);
    auto_close int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(write(fd, "{\"result\": 0, \"do", 17) == 17); /* cut short */

    AUTO(apply) struct apply again;
    assert_int_equal(journal_resume(dir, &again, &j, &e), 0);
    assert_int_equal(again.at, 5);
    assert_true(again.under_way);
    assert_int_equal(again.plan.steps[4].gi, 80);
    AUTO(snapshot) struct snapshot now = look(w);
    assert_int_equal(apply_recover(&again, &now, &e), 0);
    run(w, &again, -1, 0);
    assert_int_equal(again.state, APPLY_DONE);
    assert_int_equal(journal_finish(j, &e), 0);
    assert_int_equal(journal_resume(dir, &again, &j, &e), -ENOENT);
    assert_int_equal(rmdir(dir), 0);
}

static void test_a_journal_that_cannot_be_read_is_left_alone(void **state)
{
    (void)state;
    auto_free char *dir = temporary();
    auto_free char *path = text_fmt("%s/apply.journal", dir);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct apply a;
    struct journal *j;
    struct err e = ERR_INIT;
    assert_int_equal(journal_resume(dir, &a, &j, &e), -ENOENT); /* empty: nothing was begun */
    auto_close int again = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(write(again, "nonsense\n", 9) == 9);
    assert_int_equal(journal_resume(dir, &a, &j, &e), -EINVAL);
    assert_non_null(strstr(e.text, "apply.journal, line 1"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_steps_make_the_wanted_layout),
        cmocka_unit_test(test_a_failure_at_any_step_restores_what_was),
        cmocka_unit_test(test_a_card_that_lost_mig_meanwhile_counts_as_undone),
        cmocka_unit_test(test_a_reboot_at_any_step_leaves_nothing_stuck),
        cmocka_unit_test(test_a_reboot_on_the_way_back_leaves_nothing_stuck),
        cmocka_unit_test(test_a_destroy_that_lied_is_undone_too),
        cmocka_unit_test(test_what_cannot_be_undone_is_said_and_others_are_undone),
        cmocka_unit_test(test_a_mode_that_stays_pending_gets_its_reset),
        cmocka_unit_test(test_a_card_whose_reset_cannot_be_had_is_set_aside),
        cmocka_unit_test(test_other_failures_of_a_reset_set_nothing_aside),
        cmocka_unit_test(test_what_was_stored_before_is_stored_again),
        cmocka_unit_test(test_what_was_set_aside_is_kept_in_a_file),
        cmocka_unit_test(test_a_reset_that_fails_takes_the_pending_mode_back),
        cmocka_unit_test(test_a_crash_at_any_step_is_recovered),
        cmocka_unit_test(test_somebody_else_is_found_out),
        cmocka_unit_test(test_a_cancelled_change_walks_back),
        cmocka_unit_test(test_a_journal_knows_how_far_it_got),
        cmocka_unit_test(test_a_journal_that_cannot_be_read_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
