/* jobdir/mount.h: what a file system brings to the disk with a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/cleanup.h"
#include "jobdir/mount.h"

static const char mounts[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n"
    "44 27 8:1 / /var/lib/divvy rw,relatime - ext2 /dev/sda1 rw\n"
    "45 27 8:2 / /old rw - ext3 /dev/sda2 rw\n"
    "46 27 8:3 / /mnt/a\\040-\\040ext4 rw - ext2 /dev/ext4 rw\n"
    "47 27 8:17 /home /home rw,relatime - ext4 /dev/sdb1 rw";

static void ext4_is_known_by_its_device(void **state)
{
    (void)state;
    assert_true(mount_is_ext4(mounts, makedev(254, 0)));
    assert_true(mount_is_ext4(mounts, makedev(8, 17))); /* no newline after it */
}

static void ext2_is_not_taken_for_it(void **state)
{
    (void)state;
    assert_false(mount_is_ext4(mounts, makedev(8, 1)));
    assert_false(mount_is_ext4(mounts, makedev(8, 2)));
    assert_false(mount_is_ext4(mounts, makedev(8, 3)));
    assert_false(mount_is_ext4(mounts, makedev(0, 21)));
}

static void what_is_not_there_promises_nothing(void **state)
{
    (void)state;
    assert_false(mount_is_ext4(mounts, makedev(8, 4)));
    assert_false(mount_is_ext4("", makedev(254, 0)));
    assert_false(mount_is_ext4("27 1 254:0 / / rw", makedev(254, 0)));
    assert_false(
        mount_is_ext4("27 1 254:0 / / rw\n28 1 8:1 / /a rw - ext4 /dev/sda1 rw", makedev(254, 0)));
    assert_false(mount_is_ext4("\n\nnothing of the kind\n", makedev(254, 0)));
}

/* Whatever this machine has: a memory file system promises nothing, and a closed file neither. */
static void a_file_is_asked_for_its_own(void **state)
{
    (void)state;
    char path[] = "/tmp/test-mount-XXXXXX";
    auto_close int fd = mkstemp(path);
    struct statfs fs;
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fstatfs(fd, &fs), 0);
    bool comes = mount_brings_names(fd);
    if (fs.f_type != EXT4_SUPER_MAGIC)
        assert_int_equal(comes, fs.f_type == XFS_SUPER_MAGIC);
    assert_false(mount_brings_names(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ext4_is_known_by_its_device),
        cmocka_unit_test(ext2_is_not_taken_for_it),
        cmocka_unit_test(what_is_not_there_promises_nothing),
        cmocka_unit_test(a_file_is_asked_for_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
