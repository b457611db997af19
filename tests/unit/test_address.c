#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "geometry.h"
#include "dice.h"
#include "model/address.h"

static struct address parse(const char *s)
{
    struct err e = ERR_INIT;
    struct address a = { .ordinal = 4711 };
    if (address_parse(s, &a, &e) < 0)
        fail_msg("%s", e.text);
    return a;
}

static void a_card_has_a_number(void **state)
{
    (void)state;
    struct address a = parse("gpu0");
    assert_int_equal(a.ordinal, 0);
    assert_false(a.has_slice);
    assert_false(a.has_ci_start);
    assert_int_equal(parse("gpu127").ordinal, 127);
}

static void a_slice_has_a_profile_and_a_start(void **state)
{
    (void)state;
    struct address a = parse("gpu3/2g.20gb@4");
    assert_int_equal(a.ordinal, 3);
    assert_true(a.has_slice);
    assert_string_equal(a.profile, "2g.20gb");
    assert_int_equal(a.start, 4);
    assert_false(a.has_ci_start);
    assert_string_equal(parse("gpu0/1g.24gb+me.all@9").profile, "1g.24gb+me.all");
}

static void a_compute_instance_has_a_start_of_its_own(void **state)
{
    (void)state;
    struct address a = parse("gpu0/1c.3g.40gb@4.1");
    assert_string_equal(a.profile, "1c.3g.40gb");
    assert_int_equal(a.start, 4);
    assert_true(a.has_ci_start);
    assert_int_equal(a.ci_start, 1);
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0",
        "gpu",
        "GPU0",
        "gpu-1",
        "gpux",
        "gpu0 ",
        " gpu0",
        "gpu0/",
        "gpu0/2g.20gb",
        "gpu0/2g.20gb@",
        "gpu0/@4",
        "gpu0/2g.20gb@x",
        "gpu0/2g.20gb@4.",
        "gpu0/2g.20gb@4.x",
        "gpu0/2g.20gb@4.1.2",
        "gpu0/2g.20gb@-1",
        "gpu0/2g.20gb@4 ",
        "gpu0@4",
        "gpu9999999",
        "gpu0/2g.20gb@99999999999999999999",
        "gpu0/2g 20gb@4",
        "gpu0/a/b@4",
        "gpu0/\x1b[2J@4",
        "gpu0/2g.20gbx2g.20gbx2g.20gbx2g.20gbx@4",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        struct address a = { .ordinal = 4711 };
        if (address_parse(bad[i], &a, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.code, -EINVAL);
        assert_int_equal(a.ordinal, 4711);
    }
    struct err e = ERR_INIT;
    struct address a;
    assert_int_equal(address_parse("gpu0/2g.20gb", &a, &e), -EINVAL);
    assert_string_equal(e.text, "'gpu0/2g.20gb' is no address of a card or slice; write gpu0, "
                                "gpu0/2g.20gb@4 or gpu0/1c.3g.40gb@0.1");
}

/* A card with every slice that could be, one at a time; overlaps do not matter here. */
static void fill(struct card *c)
{
    for (uint32_t i = 0; i < c->board.profile_count; i++) {
        const struct profile *p = &c->board.profiles[i];
        for (uint32_t k = 0; k < p->start_count; k++) {
            for (uint32_t ci = 0; ci < p->ci_count; ci++) {
                struct slice *s = card_add_slice(c);
                s->profile_id = p->id;
                s->start = p->starts[k];
                s->units = p->units;
                s->ci = ci;
                s->ci_profile_id = p->cis[ci].id;
                s->ci_slices = p->cis[ci].slices;
                s->full = s->ci_slices == p->slices;
                s->ci_start = s->full ? 0 : ci % 3;
            }
        }
    }
}

/* Printed, read and looked up, each slice is itself. */
static void every_slice_of_every_board_is_found_by_its_address(void **state)
{
    (void)state;
    struct board *(*const boards[])(void) = { board_a100_80gb, board_a30, board_rtx_pro_6000 };
    for (size_t k = 0; k < 3; k++) {
        auto_free struct board *b = boards[k]();
        struct card *c = mem_new(sizeof *c);
        c->board = *b;
        c->ordinal = 5;
        fill(c);
        for (size_t i = 0; i < c->slice_count; i++) {
            AUTO(text) struct text t = TEXT_INIT;
            address_add(&t, c, &c->slices[i]);
            struct address a = parse(t.buf);
            assert_int_equal(a.ordinal, 5);
            assert_ptr_equal(address_find(&a, c), &c->slices[i]);
        }
        card_done(c);
        free(c);
    }
}

static void addresses_of_other_things_find_nothing(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    auto_free struct card *c = mem_new(sizeof *c);
    c->board = *b;
    c->ordinal = 1;
    struct slice *s = card_add_slice(c);
    s->profile_id = 14;
    s->start = 4;
    s->units = 2;
    static const char *const others[] = { "gpu1", "gpu1/2g.20gb@2", "gpu1/1g.20gb@4",
                                          "gpu1/2g.20gb@4.0", "gpu0/2g.20gb@4" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct address a = parse(others[i]);
        if (address_find(&a, c))
            fail_msg("%s found a slice", others[i]);
    }
    struct address a = parse("gpu1/2G.20GB@4");
    assert_ptr_equal(address_find(&a, c), s);
    card_done(c);
}

static void slices_are_written_as_people_know_them(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    auto_free struct card *c = mem_new(sizeof *c);
    AUTO(text) struct text t = TEXT_INIT;
    c->board = *b;
    struct slice s = { .ci = NOT_AN_INSTANCE, .profile_id = 9, .start = 4, .units = 4 };
    address_add(&t, c, &s);
    s.ci = 1;
    s.ci_profile_id = 0;
    s.ci_start = 1;
    text_add(&t, " ");
    address_add(&t, c, &s);
    s.profile_id = 99;
    s.full = true;
    text_add(&t, " ");
    address_add(&t, c, &s);
    assert_string_equal(t.buf, "gpu0/3g.40gb@4 gpu0/1c.3g.40gb@4.1 gpu0/profile-99@4");
    assert_string_equal(parse("gpu0/profile-99@4").profile, "profile-99");
}

/* As after a step of ours, before the next snapshot has asked for the compute instances' names. */
static void a_part_is_a_part_before_the_driver_named_it(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    auto_free struct board *b = board_a100_80gb();
    auto_free struct card *c = mem_new(sizeof *c);
    c->board = *b;
    struct slice s = {
        .profile_id = 9, .start = 4, .ci_profile_id = 77, .ci_slices = 1, .ci_start = 1
    };
    address_add(&t, c, &s);
    assert_string_equal(t.buf, "gpu0/1c.3g.40gb@4.1");
}

static void whatever_is_taken_reads_the_same_again(void **state)
{
    (void)state;
    static const char letters[] = "gpu0123456789/@..+-cb ";
    struct dice d = dice_new(11);
    size_t taken = 0;
    for (size_t n = 0; n < 300000; n++) {
        char s[40] = "gpu1/1g@";
        size_t len = 3 + dice_below(&d, 6);
        for (size_t more = dice_below(&d, 12); more > 0; more--)
            s[len++] = letters[dice_below(&d, sizeof letters - 1)];
        s[len] = '\0';
        struct address a;
        if (address_parse(s, &a, NULL) < 0 || !a.has_slice)
            continue;
        AUTO(text) struct text t = TEXT_INIT;
        address_add_place(&t, a.ordinal, a.profile, a.start);
        if (a.has_ci_start)
            text_addf(&t, ".%u", a.ci_start);
        struct address again = parse(t.buf);
        assert_int_equal(again.ordinal, a.ordinal);
        assert_string_equal(again.profile, a.profile);
        assert_int_equal(again.start, a.start);
        assert_int_equal(again.has_ci_start, a.has_ci_start);
        assert_int_equal(again.ci_start, a.ci_start);
        taken++;
    }
    assert_true(taken > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_has_a_number),
        cmocka_unit_test(a_slice_has_a_profile_and_a_start),
        cmocka_unit_test(a_compute_instance_has_a_start_of_its_own),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(every_slice_of_every_board_is_found_by_its_address),
        cmocka_unit_test(addresses_of_other_things_find_nothing),
        cmocka_unit_test(slices_are_written_as_people_know_them),
        cmocka_unit_test(a_part_is_a_part_before_the_driver_named_it),
        cmocka_unit_test(whatever_is_taken_reads_the_same_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
