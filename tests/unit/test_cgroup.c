#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cgroup/cgroup.h"

/* A host is a folder; what stands in it as "mounted" is told by the name. */
static char host_dir[64];
static const char *v2_mount; /* relative to host_dir, "" for itself; NULL: none */

static int make_host(void **state)
{
    (void)state;
    strcpy(host_dir, "/tmp/test-cgroup-XXXXXX");
    v2_mount = NULL;
    return mkdtemp(host_dir) ? 0 : -1;
}

static int remove_host(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, host_dir, NULL);
}

static int fake_magic(const char *path, uint64_t *ret_magic)
{
    if (access(path, F_OK) < 0)
        return -errno;
    const char *below = path + strlen(host_dir);
    if (v2_mount && text_same(below, v2_mount))
        *ret_magic = CGROUP2_SUPER_MAGIC;
    else
        *ret_magic = below[0] ? CGROUP_SUPER_MAGIC : TMPFS_MAGIC;
    return 0;
}

static void mount_dir(const char *name)
{
    auto_free char *path = text_fmt("%s/%s", host_dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void put(const char *path, const char *text)
{
    auto_free char *whole = text_fmt("%s/%s", host_dir, path);
    auto_close int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, strlen(text), NULL), 0);
}

static char *get(const char *path)
{
    auto_free char *whole = text_fmt("%s/%s", host_dir, path);
    char *text = NULL;
    return file_read(AT_FDCWD, whole, 4096, &text, NULL, NULL) < 0 ? NULL : text;
}

static bool exists(const char *path)
{
    auto_free char *whole = text_fmt("%s/%s", host_dir, path);
    return access(whole, F_OK) == 0;
}

static void unified_host_is_v2(void **state)
{
    (void)state;
    v2_mount = "";
    AUTO(cgroup_host) struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    assert_int_equal(h.kind, CGROUP_V2);
    assert_string_equal(h.mounts[CGROUP_UNIFIED], host_dir);
    assert_null(h.mounts[CGROUP_MEMORY]);
}

static void unified_beside_controllers_is_hybrid(void **state)
{
    (void)state;
    mount_dir("unified");
    mount_dir("memory");
    mount_dir("cpu,cpuacct");
    v2_mount = "/unified";
    AUTO(cgroup_host) struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    assert_int_equal(h.kind, CGROUP_HYBRID);
    assert_non_null(h.mounts[CGROUP_UNIFIED]);
    assert_non_null(h.mounts[CGROUP_MEMORY]);
    assert_non_null(strstr(h.mounts[CGROUP_CPU], "cpu,cpuacct"));
    assert_null(h.mounts[CGROUP_PIDS]);
}

static void controllers_alone_are_v1(void **state)
{
    (void)state;
    mount_dir("pids");
    AUTO(cgroup_host) struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    assert_int_equal(h.kind, CGROUP_V1);
    assert_null(h.mounts[CGROUP_UNIFIED]);
}

static void nothing_mounted_says_so(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    assert_int_equal(h.kind, CGROUP_NONE);
    assert_non_null(strstr(h.reason, host_dir));
    struct cgroup c = CGROUP_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(cgroup_create(&h, "/divvy", "1.1", 1, &c, &e), -ENOTSUP);
    assert_string_equal(e.text, h.reason);
}

static void each_divvy_has_a_root_of_its_own(void **state)
{
    (void)state;
    auto_free char *system = cgroup_root_for("/");
    auto_free char *mine = cgroup_root_for("/home/a/divvy");
    auto_free char *yours = cgroup_root_for("/home/b/divvy");
    assert_string_equal(system, "/divvy");
    assert_string_not_equal(mine, yours);
    assert_true(text_starts(mine, "/divvy-"));
}

static struct cgroup_host fake_hybrid(void)
{
    mount_dir("unified");
    mount_dir("memory");
    mount_dir("pids");
    v2_mount = "/unified";
    struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    return h;
}

static void tree_has_a_place_for_each_task(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    AUTO(cgroup) struct cgroup again = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 2, &c, NULL), 0);
    assert_true(exists("unified/divvy/41.1/payload/task-0"));
    assert_true(exists("unified/divvy/41.1/payload/task-1"));
    assert_false(exists("memory/divvy")); /* nothing to limit, nothing made */
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 2, &again, NULL), 0);
    AUTO(cgroup) struct cgroup found = CGROUP_INIT;
    assert_int_equal(cgroup_open(&h, "/divvy", "41.1", &found, NULL), 0);
    assert_int_equal(found.tasks, 2);
    assert_int_equal(cgroup_remove(&found, NULL), 0);
    assert_false(exists("unified/divvy")); /* it was the last one there */
    assert_int_equal(cgroup_open(&h, "/divvy", "41.1", &again, NULL), -ENOENT);
    assert_int_equal(cgroup_remove(&found, NULL), 0);
}

static void roots_and_names_are_checked(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "divvy", "41.1", 1, &c, NULL), -EINVAL);
    assert_int_equal(cgroup_create(&h, "/divvy/../x", "41.1", 1, &c, NULL), -EINVAL);
    assert_int_equal(cgroup_create(&h, "/divvy", "../41.1", 1, &c, NULL), -EINVAL);
    assert_int_equal(cgroup_create(&h, "/divvy", "", 1, &c, NULL), -EINVAL);
}

static void only_what_the_kernel_took_counts_as_enforced(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    struct cgroup_limits all = { .mem_bytes = 1 << 20, .cpu_milli = 500, .pids = 10, .cpus = "0" };
    /* The directories appear, their files do not: a kernel without these controllers. */
    assert_int_equal(cgroup_limit(&c, 0, &all, NULL), 0);
    assert_true(exists("memory/divvy/41.1.task-0"));
    put("memory/divvy/41.1.task-0/memory.limit_in_bytes", "");
    assert_int_equal(cgroup_limit(&c, 0, &all, NULL), CGROUP_ENFORCES_MEMORY);
    auto_free char *limit = get("memory/divvy/41.1.task-0/memory.limit_in_bytes");
    assert_string_equal(limit, "1048576");
    struct cgroup_limits none = { .mem_bytes = 0 };
    assert_int_equal(cgroup_limit(&c, 0, &none, NULL), 0);
}

static void limits_of_v1_go_with_the_tree(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    AUTO(cgroup) struct cgroup found = CGROUP_INIT;
    struct cgroup_limits l = { .mem_bytes = 1 << 20 };
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 2, &c, NULL), 0);
    assert_int_equal(cgroup_limit(&c, 1, &l, NULL), 0); /* makes the memory directory */
    assert_true(exists("memory/divvy/41.1.task-1"));
    assert_int_equal(cgroup_open(&h, "/divvy", "41.1", &found, NULL), 0);
    assert_int_equal(cgroup_remove(&found, NULL), 0);
    assert_false(exists("memory/divvy"));
    assert_false(exists("unified/divvy"));
}

static void a_quota_is_of_the_period_that_we_count_in(void **state)
{
    (void)state;
    mount_dir("cpu");
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    struct cgroup_limits l = { .cpu_milli = 1500 };
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL), 0); /* makes the directory */
    put("cpu/divvy/41.1.task-0/cpu.cfs_quota_us", "");
    put("cpu/divvy/41.1.task-0/cpu.cfs_period_us", "50000");
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL), CGROUP_ENFORCES_CPU);
    auto_free char *quota = get("cpu/divvy/41.1.task-0/cpu.cfs_quota_us");
    auto_free char *period = get("cpu/divvy/41.1.task-0/cpu.cfs_period_us");
    assert_string_equal(quota, "150000");
    assert_string_equal(period, "100000");
}

static void v2_limits_go_to_the_unified_files(void **state)
{
    (void)state;
    v2_mount = "";
    AUTO(cgroup_host) struct cgroup_host h;
    cgroup_host_detect(host_dir, fake_magic, &h);
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "/a/divvy", "7.3", 1, &c, NULL), 0);
    static const char *const files[] = { "memory.max", "memory.oom.group", "cpu.max", "pids.max" };
    for (size_t i = 0; i < 4; i++) {
        auto_free char *path = text_fmt("a/divvy/7.3/payload/task-0/%s", files[i]);
        put(path, "");
    }
    struct cgroup_limits l = { .mem_bytes = 4096, .cpu_milli = 2500, .pids = 9, .cpus = "0" };
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL),
                     CGROUP_ENFORCES_MEMORY | CGROUP_ENFORCES_CPU | CGROUP_ENFORCES_PIDS);
    auto_free char *cpu = get("a/divvy/7.3/payload/task-0/cpu.max");
    auto_free char *group = get("a/divvy/7.3/payload/task-0/memory.oom.group");
    assert_string_equal(cpu, "250000 100000");
    assert_string_equal(group, "1");
}

static void a_root_that_is_held_stays_in_each_hierarchy(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    cgroup_root_hold(&h, "/divvy");
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    struct cgroup_limits l = { .mem_bytes = 1 << 20 };
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL), 0); /* makes the memory directory */
    assert_int_equal(cgroup_remove(&c, NULL), 0);
    assert_false(exists("memory/divvy/41.1.task-0"));
    assert_true(exists("memory/divvy/held"));
    assert_true(exists("unified/divvy/held"));
    cgroup_root_release(&h, "/divvy");
    assert_false(exists("memory/divvy"));
    assert_false(exists("unified/divvy"));
}

static void usage_is_read_where_there_is_something(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    struct cgroup_usage u;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    cgroup_usage(&c, 0, &u);
    assert_int_equal(u.cpu_us, 0);
    assert_int_equal(u.mem_peak_bytes, 0);
    put("unified/divvy/41.1/payload/task-0/cpu.stat", "usage_usec 1234\nuser_usec 1000\n");
    struct cgroup_limits l = { .mem_bytes = 1 << 20 };
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL), 0); /* makes the memory directory */
    put("memory/divvy/41.1.task-0/memory.max_usage_in_bytes", "777\n");
    put("memory/divvy/41.1.task-0/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    cgroup_usage(&c, 0, &u);
    assert_int_equal(u.cpu_us, 1234);
    assert_int_equal(u.mem_peak_bytes, 777);
    assert_int_equal(u.oom_kills, 2);
}

static void a_tree_can_have_the_same_name_everywhere(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    struct cgroup_usage u;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    c.alike = true;
    auto_free char *name = cgroup_task_name(&h, &c, 0);
    assert_string_equal(name, "/divvy/41.1/payload/task-0");
    struct cgroup_limits l = { .mem_bytes = 1 << 20 };
    assert_int_equal(cgroup_limit(&c, 0, &l, NULL), 0);
    mount_dir("memory/divvy/41.1/payload/task-0/c1");
    put("memory/divvy/41.1/payload/task-0/c1/memory.oom_control", "under_oom 0\noom_kill 3\n");
    cgroup_usage(&c, 0, &u);
    assert_int_equal(u.oom_kills, 3);
}

static void what_others_made_of_it_goes_too(void **state)
{
    (void)state;
    mount_dir("freezer");
    mount_dir("freezer/divvy");
    mount_dir("freezer/divvy/41.1");
    mount_dir("freezer/divvy/41.1/payload");
    mount_dir("freezer/divvy/41.1/payload/task-0");
    AUTO(cgroup_host) struct cgroup_host h = fake_hybrid();
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, "/divvy", "41.1", 1, &c, NULL), 0);
    cgroup_remove_others(&h, &c);
    assert_false(exists("freezer/divvy"));
    assert_true(exists("unified/divvy/41.1/payload/task-0"));
}

#define WITH_HOST(f) cmocka_unit_test_setup_teardown(f, make_host, remove_host)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HOST(unified_host_is_v2),
        WITH_HOST(unified_beside_controllers_is_hybrid),
        WITH_HOST(controllers_alone_are_v1),
        WITH_HOST(nothing_mounted_says_so),
        WITH_HOST(each_divvy_has_a_root_of_its_own),
        WITH_HOST(tree_has_a_place_for_each_task),
        WITH_HOST(roots_and_names_are_checked),
        WITH_HOST(only_what_the_kernel_took_counts_as_enforced),
        WITH_HOST(limits_of_v1_go_with_the_tree),
        WITH_HOST(a_quota_is_of_the_period_that_we_count_in),
        WITH_HOST(v2_limits_go_to_the_unified_files),
        WITH_HOST(a_root_that_is_held_stays_in_each_hierarchy),
        WITH_HOST(usage_is_read_where_there_is_something),
        WITH_HOST(a_tree_can_have_the_same_name_everywhere),
        WITH_HOST(what_others_made_of_it_goes_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
