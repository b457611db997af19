#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boards.h"
#include "config/layout.h"

static void refused(const char *text, const char *expected)
{
    struct layout l = LAYOUT_INIT;
    struct err e = ERR_INIT;
    assert_true(layout_parse("l.yaml", text, strlen(text), &l, &e) < 0);
    assert_string_equal(e.text, expected);
    assert_null(l.wishes);
}

static void read_layout(const char *text, struct layout *ret)
{
    struct err e = ERR_INIT;
    if (layout_parse("l.yaml", text, strlen(text), ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void cards_and_slices_are_read_in_every_form(void **state)
{
    (void)state;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    read_layout("cards:\n"
                "  - card: gpu0\n"
                "    slices: {1g.10gb: 3, 3g.40gb@4: 1}\n"
                "  - card: [1, GPU-0a-1b, \"0000:07:00.0\", a100-80gb]\n"
                "    mode: auto\n"
                "    slices: [2g.20gb@0, 1c.3g.40gb@4.2, 1g.10gb+me, {1g.10gb: 2}]\n"
                "  - card: all\n"
                "    mode: whole\n",
                &l);
    assert_int_equal(l.wish_count, 3);
    const struct layout_wish *w = &l.wishes[0];
    assert_int_equal(w->claims[0].kind, CLAIM_ORDINAL);
    assert_int_equal(w->piece_count, 2);
    assert_string_equal(w->pieces[0].profile, "1g.10gb");
    assert_int_equal(w->pieces[0].count, 3);
    assert_int_equal(w->pieces[0].start, LAYOUT_ANYWHERE);
    assert_int_equal(w->pieces[0].line, 3);
    assert_int_equal(w->pieces[0].column, 14);
    assert_int_equal(w->pieces[1].start, 4);
    assert_int_equal(layout_wish_mig(w), 1);
    w = &l.wishes[1];
    assert_int_equal(w->claim_count, 4);
    assert_int_equal(w->claims[0].ordinal, 1);
    assert_int_equal(w->claims[1].kind, CLAIM_UUID);
    assert_int_equal(w->claims[2].kind, CLAIM_BUS);
    assert_int_equal(w->claims[3].kind, CLAIM_BOARD);
    assert_int_equal(w->piece_count, 4);
    assert_string_equal(w->pieces[1].profile, "1c.3g.40gb");
    assert_int_equal(w->pieces[1].start, 4);
    assert_int_equal(w->pieces[1].ci_start, 2);
    assert_int_equal(w->pieces[3].count, 2);
    assert_int_equal(w->mode, MODE_AUTO);
    assert_int_equal(layout_wish_mig(&l.wishes[2]), 0);
}

static void empty_slices_are_not_no_slices(void **state)
{
    (void)state;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    read_layout("cards:\n- {card: gpu0, slices: []}\n- {card: gpu1, slices: {}}\n"
                "- {card: gpu2, mode: slices}\n- {card: gpu3, mode: auto}\n",
                &l);
    assert_true(l.wishes[0].has_slices);
    assert_true(l.wishes[1].has_slices);
    assert_false(l.wishes[2].has_slices);
    assert_int_equal(layout_wish_mig(&l.wishes[2]), 1);
    assert_int_equal(layout_wish_mig(&l.wishes[3]), -1);
}

static void faults_name_line_and_column(void **state)
{
    (void)state;
    refused("", "l.yaml:1:1: cards is missing");
    refused("card: gpu0\n", "l.yaml:1:1: there is no key 'card' here; did you mean 'cards'?");
    refused("cards: gpu0\n", "l.yaml:1:8: cards must be a list: '- card: gpu0' and so on");
    refused("cards:\n- slices: [1g.5gb]\n", "l.yaml:2:3: card is missing");
    refused("cards:\n- card: gpu0\n",
            "l.yaml:2:3: this asks for nothing; say slices:, or mode: whole");
    refused("cards:\n- card: gpu0\n  slices: 1g.10gb\n",
            "l.yaml:3:11: slices must be a map (1g.10gb: 3) or a list ([2g.20gb@0, 2g.20gb@2])");
    refused("cards:\n- card: gpu0\n  slices: [1g.10gb@x]\n",
            "l.yaml:3:12: '1g.10gb@x' is no slice; write 2g.20gb, 2g.20gb@4 or 1c.3g.40gb@4.0");
    refused("cards:\n- card: gpu0\n  slices: {1g.10gb@2: 2}\n",
            "l.yaml:3:23: 1g.10gb@2 can be there once, not 2 times");
    refused("cards:\n- card: gpu0\n  mode: slice\n",
            "l.yaml:3:9: 'slice' is no mode; it is whole, slices or auto");
    refused("cards:\n- card: gpu0\n  mode: whole\n  slices: [1g.10gb]\n",
            "l.yaml:4:11: a whole card has no slices; leave them out, or say mode: slices");
    refused("cards:\n- card: gpu0/1g.10gb@0\n  mode: whole\n",
            "l.yaml:2:9: 'gpu0/1g.10gb@0' is a slice; a wish is for a card: gpu0");
    refused("cards:\n- card: []\n  mode: whole\n", "l.yaml:2:9: card must name at least one card");
    refused("cards:\n- card: gpu0\n  mode: whole\n- card: [gpu1, 0]\n  mode: auto\n",
            "l.yaml:4:16: 0 has a wish already, in line 2; one card, one wish");
}

struct two {
    struct inventory inv;
    const struct layout_wish *wishes[3];
};

static void two_cards(struct two *t)
{
    *t = (struct two){ .wishes = { NULL } };
    (void)inventory_add(&t->inv, board_a100_80());
    (void)inventory_add(&t->inv, board_a30());
    (void)inventory_add(&t->inv, board_rtx4090());
    snprintf(t->inv.cards[0].card.bus_id, CARD_BUS_ID_SIZE, "00000000:07:00.0");
    snprintf(t->inv.cards[1].card.bus_id, CARD_BUS_ID_SIZE, "00000000:4B:00.0");
}

static void a_card_is_known_by_each_of_its_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpu1", "1",         "GPU-00000001-0000-0000-0000-000000000000", "0000:4b:00.0", "4B:00",
        "A30",  "NVIDIA A30"
    };
    struct two t;
    two_cards(&t);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO(layout) struct layout l = LAYOUT_INIT;
        auto_free char *text = text_fmt("cards:\n- {card: \"%s\", slices: [1g.6gb]}\n", names[i]);
        read_layout(text, &l);
        assert_int_equal(layout_assign(&l, &t.inv, t.wishes, NULL), 0);
        assert_null(t.wishes[0]);
        assert_ptr_equal(t.wishes[1], &l.wishes[0]);
    }
    inventory_done(&t.inv);
}

static void all_leaves_out_what_cannot_be_cut(void **state)
{
    (void)state;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    struct two t;
    two_cards(&t);
    read_layout("cards:\n- {card: all, mode: slices}\n", &l);
    assert_int_equal(layout_assign(&l, &t.inv, t.wishes, NULL), 0);
    assert_non_null(t.wishes[0]);
    assert_non_null(t.wishes[1]);
    assert_null(t.wishes[2]);
    inventory_done(&t.inv);
}

static void refuse_assign(const char *text, const char *expected)
{
    AUTO(layout) struct layout l = LAYOUT_INIT;
    struct err e = ERR_INIT;
    struct two t;
    two_cards(&t);
    read_layout(text, &l);
    assert_int_equal(layout_assign(&l, &t.inv, t.wishes, &e), -EINVAL);
    assert_string_equal(e.text, expected);
    inventory_done(&t.inv);
}

static void one_card_has_one_wish(void **state)
{
    (void)state;
    refuse_assign("cards:\n- {card: gpu0, mode: whole}\n- {card: A100-SXM4-80GB, mode: slices}\n",
                  "l.yaml:3:10: gpu0 has a wish already, in line 2; one card, one wish");
    refuse_assign("cards:\n- {card: gpu7, mode: whole}\n",
                  "l.yaml:2:10: there is no card gpu7 here; there is gpu0, gpu1, gpu2");
}

static void what_is_exported_is_read_again(void **state)
{
    (void)state;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    struct inventory inv = { .cards = NULL };
    struct inventory_card *c = inventory_add(&inv, board_a100_80());
    (void)card_cut(c, "2g.20gb", 0, 0);
    (void)card_cut(c, "3g.40gb", 4, 7);
    (void)inventory_add(&inv, board_rtx4090());
    for (size_t i = 0; i < inv.card_count; i++)
        inv.cards[i].owners_known = false; /* as without a daemon */
    layout_add_export(&t, &inv, false);
    assert_string_equal(t.buf, "cards:\n"
                               "  - card: GPU-00000000-0000-0000-0000-000000000000 # gpu0, "
                               "A100-SXM4-80GB\n"
                               "    mode: slices\n"
                               "    slices:\n"
                               "      - 2g.20gb@0\n"
                               "      - 3g.40gb@4\n"
                               "  - card: GPU-00000001-0000-0000-0000-000000000000 # gpu1, "
                               "GeForce RTX 4090\n"
                               "    mode: whole\n");
    read_layout(t.buf, &l);
    assert_int_equal(l.wishes[0].piece_count, 2);
    assert_int_equal(layout_wish_mig(&l.wishes[1]), 0);
    inventory_done(&inv);
}

static void one_slice_more_or_less(void **state)
{
    (void)state;
    struct inventory inv = { .cards = NULL };
    struct inventory_card *c = inventory_add(&inv, board_a100_80());
    (void)card_cut(c, "2g.20gb", 0, 0);
    struct layout_writing how = { .without = 0, .with = "1g.10gb" };
    AUTO(text) struct text more = TEXT_INIT;
    layout_add_card(&more, c, &how);
    assert_non_null(strstr(more.buf, "    slices:\n      - 1g.10gb\n"));
    AUTO(text) struct text none = TEXT_INIT;
    how.with = NULL;
    layout_add_card(&none, c, &how);
    assert_non_null(strstr(none.buf, "    slices: []\n"));
    c->owners_known = true;
    c->mode = MODE_AUTO;
    AUTO(text) struct text automatic = TEXT_INIT;
    layout_add_card(&automatic, c, &how);
    assert_non_null(strstr(automatic.buf, "    mode: auto\n"));
    inventory_done(&inv);
}

static void what_is_saved_knows_its_uuids(void **state)
{
    (void)state;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    struct inventory inv = { .cards = NULL };
    struct inventory_card *c = inventory_add(&inv, board_a100_80());
    (void)card_cut(c, "2g.20gb", 0, 0);
    (void)card_cut(c, "3g.40gb", 4, 0);
    layout_add_export(&t, &inv, true);
    read_layout(t.buf, &l);
    assert_string_equal(l.wishes[0].pieces[0].uuid, c->card.slices[0].uuid);
    assert_string_equal(l.wishes[0].pieces[1].uuid, c->card.slices[1].uuid);
    struct layout wrong = LAYOUT_INIT;
    const char text[] = "cards:\n- {card: gpu0, uuids: [MIG-1], slices: [2g.20gb@0, 2g.20gb@2]}\n";
    assert_int_equal(layout_parse("l.yaml", text, strlen(text), &wrong, &e), -EINVAL);
    assert_string_equal(e.text, "l.yaml:2:23: 1 uuids for 2 slices; one for each");
    inventory_done(&inv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_and_slices_are_read_in_every_form),
        cmocka_unit_test(empty_slices_are_not_no_slices),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(a_card_is_known_by_each_of_its_names),
        cmocka_unit_test(all_leaves_out_what_cannot_be_cut),
        cmocka_unit_test(one_card_has_one_wish),
        cmocka_unit_test(what_is_exported_is_read_again),
        cmocka_unit_test(one_slice_more_or_less),
        cmocka_unit_test(what_is_saved_knows_its_uuids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
