#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

static char folder[] = "/tmp/divvy-test-file.XXXXXX";
static int dir = -1;

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    (void)close(dir); /* nothing was written through it */
    return file_remove_tree(AT_FDCWD, folder, &e);
}

static void a_file_is_replaced_as_a_whole(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(file_replace(dir, "exit", "one", 3, 0640, &e), 0);
    assert_int_equal(file_replace(dir, "exit", "four", 4, 0600, &e), 0);
    auto_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_read(dir, "exit", 100, &data, &len, &e), 0);
    assert_int_equal(len, 4);
    assert_string_equal(data, "four");
    struct stat st;
    assert_int_equal(fstatat(dir, "exit", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_link_is_replaced_not_followed(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(file_replace(dir, "victim", "safe", 4, 0600, &e), 0);
    assert_int_equal(symlinkat("victim", dir, "link"), 0);
    assert_int_equal(file_replace(dir, "link", "new", 3, 0600, &e), 0);
    auto_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_read(dir, "victim", 100, &data, &len, &e), 0);
    assert_string_equal(data, "safe");
}

static void reading_has_a_limit(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char *data = NULL;
    size_t len = 0;
    assert_int_equal(file_replace(dir, "big", "0123456789", 10, 0600, &e), 0);
    assert_int_equal(file_read(dir, "big", 9, &data, &len, &e), -EFBIG);
    assert_null(data);
    assert_int_equal(file_read(dir, "big", 10, &data, &len, &e), 0);
    free(data);
    data = NULL;
    assert_int_equal(file_read(dir, "none", 9, &data, &len, &e), -ENOENT);
    assert_null(data);
}

static void a_tree_goes_away_but_not_what_its_links_name(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free char *deep = text_fmt("%s/a/b/c", folder);
    assert_int_equal(file_mkdirs(deep, 0700, &e), 0);
    assert_int_equal(file_mkdirs(deep, 0700, &e), 0); /* it may be there */
    assert_int_equal(file_replace(dir, "kept", "k", 1, 0600, &e), 0);
    auto_free char *link = text_fmt("%s/a/b/outside", folder);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(file_remove_tree(dir, "a", &e), 0);
    assert_int_equal(faccessat(dir, "a", F_OK, 0), -1);
    assert_int_equal(faccessat(dir, "kept", F_OK, 0), 0);
    assert_int_equal(file_remove_tree(dir, "a", &e), 0); /* what is not there is no error */
}

static void a_root_goes_in_front(void **state)
{
    (void)state;
    auto_free char *plain = file_under("/", "/etc/divvy");
    auto_free char *none = file_under("", "/etc/divvy");
    auto_free char *own = file_under("/home/a", "/etc/divvy");
    assert_string_equal(plain, "/etc/divvy");
    assert_string_equal(none, "/etc/divvy");
    assert_string_equal(own, "/home/a/etc/divvy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_as_a_whole),
        cmocka_unit_test(a_link_is_replaced_not_followed),
        cmocka_unit_test(reading_has_a_limit),
        cmocka_unit_test(a_tree_goes_away_but_not_what_its_links_name),
        cmocka_unit_test(a_root_goes_in_front),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
