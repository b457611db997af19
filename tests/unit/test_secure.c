#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/secure.h"
#include "base/text.h"

static char box[64];

static int make_box(void **state)
{
    (void)state;
    (void)strcpy(box, "/tmp/divvy-secure.XXXXXX");
    return mkdtemp(box) ? 0 : -1;
}

static int remove_box(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, box, NULL);
}

static char *in_box(const char *name)
{
    return text_fmt("%s/%s", box, name);
}

static void folder(const char *name, mode_t mode)
{
    auto_free char *path = in_box(name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int check(const char *name, struct err *e)
{
    struct secure s = { .owner = geteuid(), .refused = 022, .top = box };
    auto_free char *path = in_box(name);
    return secure_check(&s, path, e);
}

static void own_folders_are_safe(void **state)
{
    (void)state;
    folder("a", 0755);
    folder("a/b", 0700);
    assert_int_equal(check("a/b", NULL), 0);
    assert_int_equal(check("a//b/", NULL), 0);
}

static void what_others_may_write_is_not(void **state)
{
    struct err e = ERR_INIT;
    (void)state;
    folder("a", 0775);
    folder("a/b", 0755);
    assert_int_equal(check("a/b", &e), -EPERM);
    assert_non_null(strstr(e.text, "/a may be written by its group (mode 0775)"));
    assert_non_null(strstr(e.text, "/a/b lies in it"));
    assert_non_null(strstr(e.text, "chmod g-w "));
    folder("c", 0757);
    assert_int_equal(check("c", &e), -EPERM);
    assert_non_null(
        strstr(e.text, "/c may be written by others (mode 0757); this mends it: chmod o-w "));
}

static void a_sticky_folder_above_is_safe_but_not_at_the_end(void **state)
{
    struct err e = ERR_INIT;
    (void)state;
    folder("a", 01777);
    folder("a/b", 0755);
    assert_int_equal(check("a/b", NULL), 0);
    assert_int_equal(check("a", &e), -EPERM);
    assert_non_null(strstr(e.text, "chmod go-w "));
}

static void links_are_followed(void **state)
{
    struct err e = ERR_INIT;
    auto_free char *absolute = in_box("bad/inner");
    auto_free char *far = in_box("far");
    auto_free char *near = in_box("near");
    auto_free char *round = in_box("round");
    (void)state;
    folder("bad", 0777);
    folder("bad/inner", 0755);
    folder("good", 0755);
    assert_int_equal(symlink(absolute, far), 0);
    assert_int_equal(symlink("good", near), 0);
    assert_int_equal(symlink("round", round), 0);
    assert_int_equal(check("near", NULL), 0);
    assert_int_equal(check("near/", NULL), 0);
    assert_int_equal(check("far", &e), -EPERM);
    assert_non_null(strstr(e.text, "/bad may be written by"));
    assert_int_equal(check("round", &e), -ELOOP);
}

static void a_file_is_held_to_the_same(void **state)
{
    struct err e = ERR_INIT;
    auto_free char *path = in_box("divvy.yaml");
    (void)state;
    auto_close int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(check("divvy.yaml", NULL), 0);
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_int_equal(check("divvy.yaml", &e), -EPERM);
    assert_int_equal(check("nothing", &e), -ENOENT);
}

static void another_owner_is_named(void **state)
{
    struct err e = ERR_INIT;
    auto_free char *path = in_box("a");
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root gives things away */
    folder("a", 0755);
    folder("a/b", 0755);
    assert_int_equal(chown(path, 4321, 0), 0);
    assert_int_equal(check("a/b", &e), -EPERM);
    assert_non_null(strstr(e.text, "/a belongs to uid 4321, who could replace "));
    assert_non_null(strstr(e.text, "chown 0 "));
    struct secure theirs = { .owner = 4321, .refused = 022, .top = box };
    assert_int_equal(secure_check(&theirs, path, NULL), 0);
}

static void above_the_top_is_not_looked_at(void **state)
{
    (void)state;
    folder("a", 0777);
    folder("a/b", 0755);
    auto_free char *path = in_box("a/b");
    struct secure s = { .owner = geteuid(), .refused = 022, .top = path };
    assert_int_equal(secure_check(&s, path, NULL), 0);
    assert_int_equal(secure_check(&s, "relative", NULL), -EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_box, remove_box)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(own_folders_are_safe),
        TEST(what_others_may_write_is_not),
        TEST(a_sticky_folder_above_is_safe_but_not_at_the_end),
        TEST(links_are_followed),
        TEST(a_file_is_held_to_the_same),
        TEST(another_owner_is_named),
        TEST(above_the_top_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
