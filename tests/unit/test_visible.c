#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/lib/cuda/visible.h"

/* gpu0 slow and whole, gpu1 fast and cut into (1,0), (1,1) and (5,0), gpu2 cut into nothing. */
static struct visible_card cards[3];
static struct visible_world world;

static void build(uint32_t branch)
{
    memset(cards, 0, sizeof cards);
    for (uint32_t i = 0; i < 3; i++) {
        cards[i].ordinal = i;
        cards[i].speed = i == 1 ? 9 : 5;
        (void)snprintf(cards[i].uuid, sizeof cards[i].uuid, "GPU-%u234abcd", i);
    }
    static const struct {
        uint32_t gi, ci;
    } parts[] = { { 1, 0 }, { 1, 1 }, { 5, 0 } };
    cards[1].mig = cards[2].mig = true;
    cards[1].part_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        struct visible_part *p = &cards[1].parts[i];
        p->gi = parts[i].gi;
        p->ci = parts[i].ci;
        (void)snprintf(p->uuid, sizeof p->uuid, "MIG-%u%u99", p->gi, p->ci);
    }
    world = (struct visible_world){ .branch = branch, .card_count = 3, .cards = cards };
}

/* What a process sees, as "0 1/5/0": whole cards by number, slices as card/gi/ci. */
static const char *see(uint32_t branch, const char *list, const char *order)
{
    static char text[256];
    struct visible_device found[VISIBLE_MAX];
    build(branch);
    size_t count = visible_devices(&world, list, order, found);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char one[40];
        if (found[i].gi == VISIBLE_CARD)
            (void)snprintf(one, sizeof one, "%s%u", i ? " " : "", found[i].ordinal);
        else
            (void)snprintf(one, sizeof one, "%s%u/%u/%u", i ? " " : "", found[i].ordinal,
                           found[i].gi, found[i].ci);
        (void)strncat(text, one, sizeof text - strlen(text) - 1);
    }
    return text;
}

static void one_slice_and_nothing_beside_it_before_570(void **state)
{
    (void)state;
    assert_string_equal(see(550, NULL, "PCI_BUS_ID"), "1/1/0");
    assert_string_equal(see(550, "MIG-1199", NULL), "1/1/1");
    assert_string_equal(see(550, "MIG-5099,MIG-1099", NULL), "1/5/0");
    assert_string_equal(see(550, "GPU-0,MIG-5099", NULL), "1/5/0");
    assert_string_equal(see(550, "GPU-0", NULL), "0");
}

static void one_of_each_instance_from_570_on(void **state)
{
    (void)state;
    assert_string_equal(see(570, NULL, "PCI_BUS_ID"), "0 1/1/0 1/5/0");
    assert_string_equal(see(570, NULL, NULL), "1/1/0 1/5/0 0");
    assert_string_equal(see(570, "MIG-1199,MIG-1099,GPU-0", NULL), "1/1/1 0");
}

static void ordinals_count_cards_in_the_order_asked(void **state)
{
    (void)state;
    assert_string_equal(see(550, "0", "PCI_BUS_ID"), "0");
    assert_string_equal(see(550, "0", "FASTEST_FIRST"), "1/1/0");
    assert_string_equal(see(550, "1", NULL), "0");
    assert_string_equal(see(550, "2", "PCI_BUS_ID"), ""); /* MIG is on, and it has no slice */
    assert_string_equal(see(550, "3", NULL), "");
    assert_string_equal(see(550, "99999999999999999999", NULL), "");
}

static void prefixes_must_fit_one_alone(void **state)
{
    (void)state;
    assert_string_equal(see(550, "gpu-0234", NULL), "0");
    assert_string_equal(see(550, "GPU-", NULL), "");
    assert_string_equal(see(550, "MIG-1", NULL), "");
    assert_string_equal(see(550, "MIG-5", NULL), "1/5/0");
    assert_string_equal(see(550, "MIG-", NULL), "");
}

static void the_old_form_names_instance_ids(void **state)
{
    (void)state;
    assert_string_equal(see(550, "MIG-GPU-1234abcd/5/0", NULL), "1/5/0");
    assert_string_equal(see(550, "MIG-GPU-1234abcd/5/1", NULL), "");
    assert_string_equal(see(550, "MIG-GPU-1234/5/0", NULL), ""); /* no prefixes here */
    assert_string_equal(see(550, "MIG-GPU-1234abcd/5", NULL), "");
    assert_string_equal(see(550, "MIG-GPU-1234abcd//0", NULL), "");
}

static void the_list_ends_at_its_first_fault(void **state)
{
    (void)state;
    assert_string_equal(see(570, "GPU-0,nonsense,MIG-5099", NULL), "0");
    assert_string_equal(see(570, "GPU-0,,MIG-5099", NULL), "0");
    assert_string_equal(see(570, " GPU-0 ,\tMIG-5099 ", NULL), "0 1/5/0");
    assert_string_equal(see(570, "", NULL), "");
    assert_string_equal(see(570, "-1", NULL), "");
    assert_string_equal(see(570, "GPU-0,0,1", "PCI_BUS_ID"), ""); /* the same one twice */
    char endless[200];
    memset(endless, '1', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_string_equal(see(570, endless, NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slice_and_nothing_beside_it_before_570),
        cmocka_unit_test(one_of_each_instance_from_570_on),
        cmocka_unit_test(ordinals_count_cards_in_the_order_asked),
        cmocka_unit_test(prefixes_must_fit_one_alone),
        cmocka_unit_test(the_old_form_names_instance_ids),
        cmocka_unit_test(the_list_ends_at_its_first_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
