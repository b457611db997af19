#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "supervise/leftover.h"

static char *top;

static char *in(const char *name)
{
    return text_fmt("%s/%s", top, name);
}

static void put(const char *name, const char *text)
{
    auto_free char *path = in(name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void folder(const char *name)
{
    auto_free char *path = in(name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static bool there(const char *name)
{
    auto_free char *path = in(name);
    struct stat s;
    return lstat(path, &s) == 0;
}

static int set_up(void **state)
{
    (void)state;
    top = text_dup("/tmp/divvy-leftover-XXXXXX");
    assert_non_null(mkdtemp(top));
    folder("shm");
    folder("proc");
    return 0;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void)s, (void)type, (void)where;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    int r = nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(top);
    return r;
}

static unsigned remove_since(int64_t since_wall_us)
{
    auto_free char *shm = in("shm");
    auto_free char *proc = in("proc");
    struct leftover l = {
        .shm = shm, .proc = proc, .uid = geteuid(), .since_wall_us = since_wall_us
    };
    return leftover_remove(&l);
}

static void a_process(const char *pid, unsigned uid)
{
    auto_free char *dir = text_fmt("proc/%s", pid);
    auto_free char *file = text_fmt("proc/%s/status", pid);
    auto_free char *text = text_fmt("Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
    folder(dir);
    put(file, text);
}

static void what_was_made_since_is_removed(void **state)
{
    (void)state;
    a_process("1", geteuid() + 1);
    put("shm/left", "x");
    folder("shm/dir");
    folder("shm/dir/sub");
    put("shm/dir/sub/deep", "x");
    auto_free char *outside = in("outside");
    auto_free char *link_in = in("shm/dir/link");
    put("outside", "kept");
    assert_int_equal(symlink(outside, link_in), 0);
    assert_int_equal(remove_since(0), 2);
    assert_false(there("shm/left"));
    assert_false(there("shm/dir"));
    assert_true(there("outside"));
    assert_int_equal(remove_since(0), 0);
}

static void what_was_there_before_stays(void **state)
{
    (void)state;
    put("shm/old", "x");
    assert_int_equal(remove_since(INT64_MAX), 0);
    assert_true(there("shm/old"));
}

static void nothing_goes_while_the_user_has_a_process(void **state)
{
    (void)state;
    put("shm/used", "x");
    a_process("4711", geteuid());
    assert_int_equal(remove_since(0), 0);
    assert_true(there("shm/used"));
}

static void one_that_cannot_be_told_is_his(void **state)
{
    (void)state;
    put("shm/used", "x");
    folder("proc/12");
    put("proc/12/status", "Name:\tx\n");
    assert_int_equal(remove_since(0), 0);
    assert_true(there("shm/used"));
}

static void the_locks_of_containers_stay(void **state)
{
    (void)state;
    put("shm/libpod_rootless_lock_1000", "x");
    assert_int_equal(remove_since(0), 0);
    assert_true(there("shm/libpod_rootless_lock_1000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_made_since_is_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_there_before_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_goes_while_the_user_has_a_process, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_told_is_his, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_locks_of_containers_stay, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
