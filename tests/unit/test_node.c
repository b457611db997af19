#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "driver/child.h"
#include "driver/node.h"

/* ---- a driver's root with nothing in /dev ---- */

static char root[] = "/tmp/divvy-test-node-XXXXXX";

static void put(const char *name, const char *text)
{
    auto_free char *path = file_under(root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state; /* the root is known by name */
    assert_non_null(mkdtemp(root));
    auto_free char *dev = file_under(root, "/dev");
    auto_free char *driver = file_under(root, "/proc/driver/nvidia");
    assert_int_equal(file_mkdirs(dev, 0755, NULL), 0);
    assert_int_equal(file_mkdirs(driver, 0755, NULL), 0);
    put("/proc/devices", "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n\n"
                         "Block devices:\n237 nvidia-uvm\n");
    put("/proc/driver/nvidia/params",
        "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state; /* the same */
    return file_remove_tree(AT_FDCWD, root, NULL);
}

static void must_be(const char *node, unsigned major, unsigned minor, mode_t mode, gid_t gid)
{
    struct stat st;
    auto_free char *path = file_under(root, node);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(major(st.st_rdev), major);
    assert_int_equal(minor(st.st_rdev), minor);
    assert_int_equal(st.st_mode & 07777, mode);
    assert_int_equal(st.st_gid, gid);
}

/* Some containers have a root that may make no node. */
static void need_mknod(void)
{
    auto_free char *path = file_under(root, "/dev/trial");
    if (mknod(path, S_IFCHR, makedev(1, 3)) < 0) {
        print_message("device nodes cannot be made here: %s\n", strerror(errno));
        skip();
    }
    assert_int_equal(unlink(path), 0);
}

static void a_missing_capability_is_made(void **state)
{
    (void)state; /* unused */
    need_mknod();
    struct err e = ERR_INIT;
    assert_int_equal(driver_node_make(root, "/dev/nvidia-caps/nvidia-cap21", &e), 1);
    must_be("/dev/nvidia-caps/nvidia-cap21", 235, 21, 0444, 0);
    assert_int_equal(driver_node_make(root, "/dev/nvidia-caps/nvidia-cap21", &e), 0);
}

static void a_card_has_the_owner_and_mode_of_the_module(void **state)
{
    (void)state; /* unused */
    need_mknod();
    struct err e = ERR_INIT;
    assert_int_equal(driver_node_make(root, "/dev/nvidia3", &e), 1);
    must_be("/dev/nvidia3", 195, 3, 0660, 44);
    assert_int_equal(driver_node_make(root, "/dev/nvidiactl", &e), 1);
    must_be("/dev/nvidiactl", 195, 255, 0660, 44);
}

static void what_is_there_stays(void **state)
{
    (void)state; /* unused */
    struct stat st;
    put("/dev/nvidia7", "not a node");
    assert_int_equal(driver_node_make(root, "/dev/nvidia7", NULL), 0);
    auto_free char *path = file_under(root, "/dev/nvidia7");
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
}

static void a_module_that_is_not_loaded_is_named(void **state)
{
    (void)state; /* a block device of that name is none */
    struct err e = ERR_INIT;
    assert_int_equal(driver_node_make(root, "/dev/nvidia-uvm", &e), -ENODEV);
    assert_non_null(strstr(e.text, "nvidia-uvm is not loaded"));
}

static void other_names_are_refused(void **state)
{
    (void)state; /* unused */
    static const char *const names[] = { "/dev/null",      "/dev/nvidia",
                                         "/dev/nvidia255", "/dev/nvidia1x",
                                         "/dev/sda",       "/dev/nvidia-caps/nvidia-cap",
                                         "/dev/nvidia-1",  "/dev/nvidia-caps/../nvidia0" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(driver_node_make(root, names[i], NULL), -EINVAL);
}

/* ---- a process that may still change a card ---- */

static void who_holds_is_waited_for(void **state)
{
    (void)state; /* unused */
    struct err e = ERR_INIT;
    auto_free char *path = file_under(root, "/act.alive");
    assert_int_equal(driver_child_wait_alone(path, 0, &e), 0);
    int one = driver_child_hold(path, &e);
    int other = driver_child_hold(path, &e);
    assert_true(one >= 0 && other >= 0);
    assert_int_equal(driver_child_wait_alone(path, 0, &e), -EBUSY);
    (void)close(one);
    assert_int_equal(driver_child_wait_alone(path, 0, &e), -EBUSY);
    (void)close(other);
    assert_int_equal(driver_child_wait_alone(path, 0, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_capability_is_made),
        cmocka_unit_test(a_card_has_the_owner_and_mode_of_the_module),
        cmocka_unit_test(what_is_there_stays),
        cmocka_unit_test(a_module_that_is_not_loaded_is_named),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(who_holds_is_waited_for),
    };
    return cmocka_run_group_tests_name("node", tests, set_up, tear_down);
}
