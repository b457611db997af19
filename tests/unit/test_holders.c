/* Real processes with files open that stand in for device nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "driver/holders.h"

static char root[] = "/tmp/divvy-holders-XXXXXX";

static void put(const char *path, const char *text)
{
    auto_free char *all = text_fmt("%s%s", root, path);
    auto_free char *dir = text_dup(all);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    auto_close int fd = open(all, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, strlen(text), NULL), 0);
}

static int make_root(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    put("/dev/nvidia3", "");
    put("/dev/nvidia4", "");
    put("/dev/nvidia-caps/nvidia-cap66", "");
    put("/dev/nvidia-caps/nvidia-cap67", "");
    put("/dev/nvidia-caps/nvidia-cap90", "");
    put("/proc/driver/nvidia-caps/mig-minors", "config 1\ngpu3/gi7/access 66\n"
                                               "gpu3/gi7/ci0/access 67\ngpu3/gi70/access 90\n");
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, root, NULL);
}

/* A process called `name` that has `path` open until it is ended. */
static pid_t start(const char *name, const char *path)
{
    int ready[2];
    char byte;
    auto_free char *all = text_fmt("%s%s", root, path);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(all, O_RDONLY); /* inherited by nobody: it never execs */
        (void)prctl(PR_SET_NAME, name);
        (void)close(ready[0]);
        if (fd < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        (void)close(ready[1]);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static const struct card card = { .uuid = "GPU-1", .minor = 3 };

static const struct holder *holder_of(const struct holders *h, pid_t pid)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->list[i].pid == pid)
            return &h->list[i];
    return NULL;
}

static void who_has_the_node_open_is_found_and_known_services_are_named(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    pid_t dcgm = start("nv-hostengine", "/dev/nvidia3");
    pid_t other = start("python3", "/dev/nvidia4");
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    const struct holder *found = holder_of(&h, dcgm);
    assert_non_null(found);
    assert_string_equal(found->node, "nvidia3");
    assert_false(found->listed);
    assert_null(holder_of(&h, other));
    assert_true(holders_block(&h));
    holder_add_text(&t, found, NULL, NULL);
    auto_free char *expected =
        text_fmt("pid %d nv-hostengine (uid %u) has /dev/nvidia3 open: DCGM; 'systemctl stop "
                 "nvidia-dcgm' ends it",
                 (int)dcgm, (unsigned)geteuid());
    assert_string_equal(t.buf, expected);
    end(dcgm);
    end(other);
}

static void an_instance_is_asked_alone(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    pid_t there = start("python3", "/dev/nvidia-caps/nvidia-cap67");
    pid_t elsewhere = start("python3", "/dev/nvidia-caps/nvidia-cap90");
    pid_t card_only = start("python3", "/dev/nvidia3");
    holders_find(root, &card, 7, &h);
    assert_non_null(holder_of(&h, there));
    assert_null(holder_of(&h, elsewhere));
    assert_null(holder_of(&h, card_only));
    holders_done(&h);
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_non_null(holder_of(&h, there));
    assert_non_null(holder_of(&h, elsewhere));
    assert_non_null(holder_of(&h, card_only));
    end(there);
    end(elsewhere);
    end(card_only);
}

static void what_the_driver_lists_is_there_too_and_once(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    pid_t pid = start("train", "/dev/nvidia3");
    struct gpu_process listed[] = { { .pid = pid, .gi = 7 }, { .pid = INT32_MAX, .gi = 9 } };
    struct card c = card;
    c.processes = listed;
    c.process_count = 2;
    holders_find(root, &c, NOT_AN_INSTANCE, &h);
    assert_int_equal(h.count, 2);
    assert_true(holder_of(&h, pid)->listed);
    assert_string_equal(holder_of(&h, pid)->node, "nvidia3");
    AUTO(text) struct text t = TEXT_INIT;
    holder_add_text(&t, holder_of(&h, INT32_MAX), NULL, NULL);
    assert_string_equal(t.buf, "pid 2147483647 (gone, or hidden)");
    holders_done(&h);
    holders_find(root, &c, 9, &h);
    assert_int_equal(h.count, 1);
    end(pid);
}

static void a_job_is_told_by_its_mark(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    int ready[2];
    char byte;
    auto_free char *node = text_fmt("%s/dev/nvidia3", root);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* the mark stands where exec put it */
        char *const environment[] = { (char *)"A=1", (char *)"DIVVY_ATTEMPT=41.2", NULL };
        char *const words[] = { (char *)"/bin/sh", (char *)"-c",
                                (char *)"exec 3<\"$0\"; echo x; read never <&4", node, NULL };
        int never[2];
        if (dup2(ready[1], STDOUT_FILENO) < 0 || pipe(never) < 0 || dup2(never[0], 4) < 0)
            _exit(1);
        (void)execve(words[0], words, environment);
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_non_null(holder_of(&h, pid));
    assert_string_equal(holder_of(&h, pid)->job, "41.2");
    holder_add_text(&t, holder_of(&h, pid), NULL, NULL);
    assert_non_null(strstr(t.buf, ", job #41 has /dev/nvidia3 open"));
    end(pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void persistence_alone_blocks_nothing_before_the_driver_says_so(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    pid_t pid = start("nvidia-persistenced", "/dev/nvidia3");
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.list[0].service->stop, "systemctl stop nvidia-persistenced");
    assert_false(holders_block(&h));
    end(pid);
}

static void divvy_and_the_caller_are_not_in_their_own_way(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    auto_free char *node = text_fmt("%s/dev/nvidia3", root);
    auto_close int mine = open(node, O_RDONLY | O_CLOEXEC);
    pid_t pid = start("divvyd", "/dev/nvidia3");
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_int_equal(h.count, 0);
    end(pid);
}

static void the_display_module_is_named(void **state)
{
    (void)state;
    AUTO(holders) struct holders h = HOLDERS_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    put("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia_drm 69632 4 - Live 0x0\n");
    put("/sys/module/nvidia_drm/parameters/modeset", "N\n");
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_false(h.drm);
    put("/sys/module/nvidia_drm/parameters/modeset", "Y\n");
    holders_done(&h);
    holders_find(root, &card, NOT_AN_INSTANCE, &h);
    assert_true(h.drm);
    holders_add_notes(&t, &h);
    assert_non_null(strstr(t.buf, "rmmod nvidia_drm"));
}

static void what_may_not_be_looked_into_is_counted(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* needs another user's process to be sure of one */
    int told[2];
    size_t hidden = 0;
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        AUTO(holders) struct holders h = HOLDERS_INIT;
        if (chmod(root, 0755) < 0 || setuid(65534) < 0)
            _exit(1);
        holders_find(root, &card, NOT_AN_INSTANCE, &h);
        _exit(write(told[1], &h.hidden, sizeof h.hidden) == sizeof h.hidden ? 0 : 1);
    }
    (void)close(told[1]);
    assert_int_equal(read(told[0], &hidden, sizeof hidden), sizeof hidden);
    (void)close(told[0]);
    (void)waitpid(pid, NULL, 0);
    assert_true(hidden > 0);
    AUTO(text) struct text t = TEXT_INIT;
    struct holders h = { .hidden = hidden };
    holders_add_notes(&t, &h);
    assert_non_null(strstr(t.buf, "cannot be looked into; root sees"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_the_node_open_is_found_and_known_services_are_named),
        cmocka_unit_test(an_instance_is_asked_alone),
        cmocka_unit_test(what_the_driver_lists_is_there_too_and_once),
        cmocka_unit_test(a_job_is_told_by_its_mark),
        cmocka_unit_test(persistence_alone_blocks_nothing_before_the_driver_says_so),
        cmocka_unit_test(divvy_and_the_caller_are_not_in_their_own_way),
        cmocka_unit_test(the_display_module_is_named),
        cmocka_unit_test(what_may_not_be_looked_into_is_counted),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
