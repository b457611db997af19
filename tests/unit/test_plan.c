#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "boards.h"
#include "model/fields.h"
#include "plan/plan.h"

static void test_a_plan_keeps_its_order_through_json(void **state)
{
    (void)state;
    struct card c = { .uuid = "GPU-5d5b" };
    AUTO(plan) struct plan p = PLAN_INIT;
    AUTO(plan) struct plan r = PLAN_INIT;
    for (int k = 0; k < STEP_KINDS; k++)
        assert_int_equal(plan_add(&p, (enum step_kind)k, &c)->gi, NOT_AN_INSTANCE);
    auto_json json_t *j = plan_to_json(&p);
    assert_int_equal(plan_from_json(j, &r, NULL), 0);
    assert_int_equal(r.count, STEP_KINDS);
    for (int k = 0; k < STEP_KINDS; k++)
        assert_int_equal(r.steps[k].kind, k);
}

static void test_a_copy_is_its_own(void **state)
{
    (void)state;
    struct card c = { .uuid = "GPU-5d5b" };
    AUTO(plan) struct plan p = PLAN_INIT;
    AUTO(plan) struct plan copy = PLAN_INIT;
    (void)plan_add(&p, STEP_RESET, &c);
    plan_copy(&p, &copy);
    copy.steps[0].kind = STEP_MIG_ON;
    (void)plan_add(&copy, STEP_MIG_OFF, &c);
    assert_int_equal(p.count, 1);
    assert_int_equal(p.steps[0].kind, STEP_RESET);
}

static void test_a_bad_step_is_counted(void **state)
{
    (void)state;
    struct plan p = PLAN_INIT;
    struct err e = ERR_INIT;
    auto_json json_t *j =
        json_pack("[{s:s, s:s}, {s:s}]", "do", "reset", "card", "GPU-5d5b", "do", "reset");
    assert_int_equal(plan_from_json(j, &p, &e), -EINVAL);
    assert_int_equal(strncmp(e.text, "step 2: ", 8), 0);
    assert_null(p.steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_keeps_its_order_through_json),
        cmocka_unit_test(test_a_copy_is_its_own),
        cmocka_unit_test(test_a_bad_step_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
