/* Trees on this very machine, as v2 or hybrid and as v1: needs root and a cgroup mount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cgroup/cgroup.h"
#include "cgroup/gate.h"
#include "cgroup/stray.h"

static char root[64];

/* This host, or what it would be without its unified mount. */
static struct cgroup_host host_as(bool v1)
{
    struct cgroup_host h;
    cgroup_host_detect(NULL, NULL, &h);
    if (v1 && h.kind == CGROUP_HYBRID) {
        free(h.mounts[CGROUP_UNIFIED]);
        h.mounts[CGROUP_UNIFIED] = NULL;
        h.kind = CGROUP_V1;
    }
    snprintf(root, sizeof root, "/divvy-test-%d", (int)getpid());
    struct err e = ERR_INIT;
    if (geteuid() != 0 || (v1 && h.kind != CGROUP_V1) || cgroup_root_check(&h, root, &e) < 0) {
        print_message("not here: %s\n", e.code ? e.text : "needs root, and v1 controllers for v1");
        cgroup_host_done(&h);
        skip();
    }
    return h;
}

static void remove_root(const struct cgroup_host *h)
{
    for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
        auto_free char *path = h->mounts[i] ? text_fmt("%s%s", h->mounts[i], root) : NULL;
        if (path)
            (void)rmdir(path); /* not every hierarchy was used */
    }
}

/* A child inside task N; `body` runs there, and its result is the exit code. */
static pid_t start_inside(const struct cgroup *c, unsigned task, int (*body)(void))
{
    int procs[CGROUP_HIERARCHIES];
    int inside[2];
    char byte;
    int count = cgroup_procs_fds(c, task, true, procs, NULL);
    assert_true(count > 0);
    assert_int_equal(pipe(inside), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < count; i++)
            if (write(procs[i], "0", 1) != 1)
                _exit(99);
        if (write(inside[1], "i", 1) != 1)
            _exit(98);
        _exit(body());
    }
    for (int i = 0; i < count; i++)
        close(procs[i]);
    close(inside[1]);
    assert_int_equal(read(inside[0], &byte, 1), 1);
    close(inside[0]);
    return pid;
}

static int sleep_long(void)
{
    while (pause() < 0 && errno == EINTR)
        continue;
    return 0;
}

static int status_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void tree_is_seen_and_killed(bool v1)
{
    AUTO(cgroup_host) struct cgroup_host h = host_as(v1);
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    assert_int_equal(cgroup_create(&h, root, "1.1", 2, &c, NULL), 0);
    assert_int_equal(cgroup_populated(&c, NULL), 0);
    pid_t first = start_inside(&c, 0, sleep_long);
    pid_t second = start_inside(&c, 1, sleep_long);
    assert_int_equal(cgroup_populated(&c, NULL), 1);
    assert_int_equal(cgroup_remove(&c, NULL), -EBUSY);
    assert_int_equal(cgroup_signal(&c, 1, SIGTERM, NULL), 0);
    assert_int_equal(WTERMSIG(status_of(second)), SIGTERM);
    assert_int_equal(cgroup_kill(&c, NULL), 0);
    assert_int_equal(WTERMSIG(status_of(first)), SIGKILL);
    assert_int_equal(cgroup_populated(&c, NULL), 0);
    assert_int_equal(cgroup_remove(&c, NULL), 0);
    remove_root(&h);
}

static void tree_is_seen_and_killed_here(void **state)
{
    (void)state;
    tree_is_seen_and_killed(false);
}

static void tree_is_seen_and_killed_with_v1_alone(void **state)
{
    (void)state;
    tree_is_seen_and_killed(true);
}

static void emptiness_is_told(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = host_as(false);
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    auto_close int events = -1;
    char bytes[256];
    if (!h.mounts[CGROUP_UNIFIED])
        skip();
    assert_int_equal(cgroup_create(&h, root, "1.1", 1, &c, NULL), 0);
    pid_t pid = start_inside(&c, 0, sleep_long);
    assert_int_equal(cgroup_events_fd(&c, &events, NULL), 0);
    assert_true(read(events, bytes, sizeof bytes) > 0);
    assert_int_equal(cgroup_kill(&c, NULL), 0);
    struct pollfd p = { .fd = events, .events = POLLPRI };
    assert_int_equal(poll(&p, 1, 30000), 1);
    (void)status_of(pid);
    assert_int_equal(cgroup_populated(&c, NULL), 0);
    assert_int_equal(cgroup_remove(&c, NULL), 0);
    remove_root(&h);
}

/* ---- the gate, on nodes of a major that is NVIDIA's and has no driver here ---- */

static char node_dir[64];

static int try_open(int minor)
{
    auto_free char *path = text_fmt("%s/%d", node_dir, minor);
    auto_close int fd = open(path, O_RDWR | O_NONBLOCK);
    return fd >= 0 ? 0 : errno;
}

static int open_granted(void)
{
    return try_open(0);
}

static int open_other(void)
{
    return try_open(1);
}

static int make_granted(void)
{
    auto_free char *path = text_fmt("%s/made", node_dir);
    return mknod(path, S_IFCHR | 0666, makedev(195, 0)) == 0 ? 0 : errno;
}

static int open_null(void)
{
    auto_close int fd = open("/dev/null", O_RDWR);
    return fd >= 0 ? 0 : errno;
}

static int result_of(const struct cgroup *c, int (*body)(void))
{
    return WEXITSTATUS(status_of(start_inside(c, 0, body)));
}

static void make_nodes(void)
{
    strcpy(node_dir, "/tmp/test-nodes-XXXXXX");
    assert_non_null(mkdtemp(node_dir));
    for (unsigned minor = 0; minor < 2; minor++) {
        auto_free char *path = text_fmt("%s/%u", node_dir, minor);
        assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(195, minor)), 0);
    }
}

static void remove_nodes(void)
{
    auto_free char *zero = text_fmt("%s/0", node_dir);
    auto_free char *one = text_fmt("%s/1", node_dir);
    assert_int_equal(unlink(zero) + unlink(one) + rmdir(node_dir), 0);
}

static void gate_holds(bool v1, enum isolation wanted)
{
    AUTO(cgroup_host) struct cgroup_host h = host_as(v1);
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    struct gate g = GATE_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(gate_close_major(&g, 195, NULL), 0);
    assert_int_equal(gate_grant(&g, 195, 0, NULL), 0);
    assert_int_equal(cgroup_create(&h, root, "1.1", 1, &c, NULL), 0);
    enum isolation got = gate_attach(&g, &c, 0, &e);
    if (got != wanted) {
        assert_int_equal(cgroup_remove(&c, NULL), 0);
        remove_root(&h);
        print_message("not here: %s, %s\n", isolation_word(got), e.text);
        skip();
    }
    make_nodes();
    int granted = result_of(&c, open_granted);
    int other = result_of(&c, open_other);
    int made = result_of(&c, make_granted);
    int null = result_of(&c, open_null);
    remove_nodes();
    assert_int_equal(cgroup_remove(&c, NULL), 0);
    remove_root(&h);
    assert_true(granted == ENXIO || granted == ENODEV); /* asked of the driver that is not there */
    assert_int_equal(other, EPERM);
    assert_int_equal(made, EPERM);
    assert_int_equal(null, 0);
}

static void gate_holds_by_bpf(void **state)
{
    (void)state;
    gate_holds(false, ISOLATION_BPF);
}

static void gate_holds_by_the_v1_controller(void **state)
{
    (void)state;
    gate_holds(true, ISOLATION_V1);
}

static void probe_says_what_attaching_gives(void **state)
{
    (void)state;
    AUTO(cgroup_host) struct cgroup_host h = host_as(false);
    struct err e = ERR_INIT;
    enum isolation got = gate_probe(&h, root, &e);
    remove_root(&h);
    assert_true(got != ISOLATION_NONE || e.text[0]);
    struct cgroup_host none = { .kind = CGROUP_NONE, .reason = "nothing is mounted" };
    assert_int_equal(gate_probe(&none, root, &e), ISOLATION_NONE);
    assert_string_equal(e.text, "nothing is mounted");
}

/* ---- strays ---- */

static void strays_are_found_by_their_mark(void **state)
{
    (void)state;
    auto_free char *mine = text_fmt("77.%d", (int)getpid());
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        auto_free char *mark = text_fmt("DIVVY_ATTEMPT=%s", mine);
        char *env[] = { mark, (char *)"DIVVY_ROOT=/tmp/no-such-root", NULL };
        execle("/bin/sleep", "sleep", "1000", NULL, env);
        _exit(97);
    }
    int found = 0;
    for (int tries = 0; found == 0 && tries < 100000; tries++) /* until it has exec'd */
        found = stray_signal("/tmp/no-such-root", mine, 0, NULL);
    assert_int_equal(found, 1);
    assert_int_equal(stray_signal("/tmp/other-root", mine, SIGKILL, NULL), 0);
    assert_int_equal(stray_signal("/tmp/no-such-root", "77.0", SIGKILL, NULL), 0);
    assert_int_equal(stray_signal("/tmp/no-such-root", mine, SIGKILL, NULL), 1);
    assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_is_seen_and_killed_here),
        cmocka_unit_test(tree_is_seen_and_killed_with_v1_alone),
        cmocka_unit_test(emptiness_is_told),
        cmocka_unit_test(gate_holds_by_bpf),
        cmocka_unit_test(gate_holds_by_the_v1_controller),
        cmocka_unit_test(probe_says_what_attaching_gives),
        cmocka_unit_test(strays_are_found_by_their_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
