#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "supervise/session.h"

static void what_a_session_brought_travels_whole(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct session out = SESSION_INIT;
    struct session in = SESSION_INIT;
    out.limits[RLIMIT_NOFILE] = (struct rlimit){ .rlim_cur = 123, .rlim_max = RLIM_INFINITY };
    out.limited[RLIMIT_NOFILE] = true;
    out.umask = 027;
    out.nice = -5;
    strv_add(&out.env, "LANG=C.UTF-8");
    auto_json json_t *j = session_to_json(&out);
    assert_int_equal(session_from_json(j, &in, &e), 0);
    assert_true(in.limited[RLIMIT_NOFILE]);
    assert_false(in.limited[RLIMIT_CORE]);
    assert_int_equal(in.limits[RLIMIT_NOFILE].rlim_cur, 123);
    assert_true(in.limits[RLIMIT_NOFILE].rlim_max == RLIM_INFINITY);
    assert_int_equal(in.umask, 027);
    assert_int_equal(in.nice, -5);
    assert_string_equal(in.env[0], "LANG=C.UTF-8");
    strv_free(out.env);
    strv_free(in.env);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct session in = SESSION_INIT;
    auto_json json_t *j = json_object();
    assert_true(session_from_json(j, &in, &e) < 0);
    json_put(j, "limits", json_array());
    json_put_u64(j, "umask", 022);
    json_put_i64(j, "nice", 40);
    assert_true(session_from_json(j, &in, &e) < 0);
    assert_non_null(strstr(e.text, "nice"));
}

static void the_jobs_own_variables_go_before(void **state)
{
    (void)state;
    char *pam[] = { "LANG=de", "KRB=1", NULL };
    struct session s = SESSION_INIT;
    char **env = NULL;
    strv_add(&env, "LANG=C");
    s.env = pam;
    session_add_env(&s, &env);
    assert_int_equal(strv_count(env), 2);
    assert_string_equal(env[0], "LANG=C");
    assert_string_equal(env[1], "KRB=1");
    strv_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_session_brought_travels_whole),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_jobs_own_variables_go_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
