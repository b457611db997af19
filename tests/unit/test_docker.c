#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "supervise/docker.h"

struct world {
    struct jobdir_spec spec;
    struct docker_host host;
};

static int set_up(void **state)
{
    struct world *w = mem_new(sizeof *w);
    struct jobdir_spec *s = &w->spec;
    s->job_id = 41;
    s->attempt = 2;
    s->uid = 1000;
    s->gid = 1001;
    s->groups = mem_new(sizeof *s->groups);
    s->groups[0] = 27;
    s->group_count = 1;
    s->root = text_dup("/");
    s->driver_root = text_dup("/run/driver");
    s->docker.socket = text_dup("/run/docker.sock");
    s->job.cwd = text_dup("/home/a/train");
    s->job.container.image = text_dup("debian:12");
    s->job.container.runtime = text_dup("docker");
    strv_add(&s->job.argv, "python3");
    strv_add(&s->job.argv, "train.py");
    struct jobdir_task *t = jobdir_spec_add_task(s);
    t->limits.mem_bytes = 1 << 30;
    strv_add(&t->env, "CUDA_VISIBLE_DEVICES=MIG-1");
    struct jobdir_device *d = jobdir_task_add_device(t);
    d->path = text_dup("/run/driver/dev/nvidia0");
    d->major = 195;
    w->host.parent = text_dup("/divvy/41.2/payload/task-0");
    strv_add(&w->host.mounts, "--mount=type=bind,src=/home/a,dst=/home/a");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    jobdir_spec_done(&w->spec);
    docker_host_done(&w->host);
    free(w);
    return 0;
}

/* All words, a blank behind each. */
static char *run_words(const struct world *w)
{
    struct text t = TEXT_INIT;
    char **words = NULL;
    assert_int_equal(docker_run_words(&w->spec, 0, &w->host, "/usr/bin/docker", &words, NULL), 0);
    for (char **word = words; *word; word++)
        text_addf(&t, "%s ", *word);
    strv_free(words);
    return text_take(&t);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

static void the_user_is_himself_inside_and_nothing_more(void **state)
{
    auto_free char *said = run_words(*state);
    assert_has(said, "/usr/bin/docker run --rm --name=divvy-41.2-0 --user=1000:1001 --group-add=27 "
                     "--userns=host --cap-drop=ALL --security-opt=no-new-privileges ");
    assert_has(said, " debian:12 python3 train.py ");
    assert_null(strstr(said, "--privileged"));
}

static void it_is_born_in_the_tasks_cgroup(void **state)
{
    auto_free char *said = run_words(*state);
    assert_has(said, " --cgroup-parent=/divvy/41.2/payload/task-0 ");
    assert_has(said, " --shm-size=1073741824 "); /* its memory limit */
}

static void no_value_is_on_the_command_line(void **state)
{
    struct world *w = *state;
    AUTO(text) struct text file = TEXT_INIT;
    char *env[] = { "CUDA_VISIBLE_DEVICES=MIG-1", "SECRET=x", "PASSED=y z", "DIVVY_ATTEMPT=41.2",
                    NULL };
    strv_add(&w->spec.job.container.env, "PASSED");
    auto_free char *said = run_words(w);
    assert_null(strstr(said, "MIG-1"));
    assert_has(said, " --env-file=/proc/self/fd/3 ");
    assert_int_equal(docker_env_file(&w->spec, 0, env, &file, NULL), 0);
    assert_string_equal(file.buf, "CUDA_VISIBLE_DEVICES=MIG-1\nDIVVY_ATTEMPT=41.2\nPASSED=y z\n");
    env[2] = (char *)"PASSED=y\nLD_PRELOAD=z";
    struct err e = ERR_INIT;
    assert_int_equal(docker_env_file(&w->spec, 0, env, &file, &e), -EINVAL);
    assert_has(e.text, "PASSED has a line break");
}

static void images_are_fetched_only_where_that_is_allowed(void **state)
{
    struct world *w = *state;
    auto_free char *said = run_words(w);
    assert_has(said, " --pull=never ");
    w->spec.docker.pull = true;
    auto_free char *again = run_words(w);
    assert_has(again, " --pull=missing ");
}

static void devices_are_named_or_mounted(void **state)
{
    struct world *w = *state;
    auto_free char *mounted = run_words(w);
    assert_has(mounted, " --mount=type=bind,src=/run/driver/dev/nvidia0,dst=/dev/nvidia0 "
                        "--device-cgroup-rule=c 195:0 rw ");
    strv_add(&w->spec.tasks[0].cdi, "divvy/gpu=MIG-1");
    auto_free char *unread = run_words(w); /* the daemon knows no CDI */
    assert_null(strstr(unread, "divvy/gpu"));
    w->host.cdi = true;
    auto_free char *named = run_words(w);
    assert_has(named, " --device=divvy/gpu=MIG-1 ");
    assert_null(strstr(named, "device-cgroup-rule"));
}

static void a_script_is_mounted(void **state)
{
    struct world *w = *state;
    w->host.script = text_dup("/var/lib/divvy/jobs/41.2/script");
    auto_free char *said = run_words(w);
    assert_has(said, "src=/var/lib/divvy/jobs/41.2/script,dst=/divvy-script,readonly ");
    assert_has(said, " debian:12 /divvy-script train.py ");
}

static void the_client_has_nothing_of_the_users(void **state)
{
    struct world *w = *state;
    strv_add(&w->spec.job.env, "LD_PRELOAD=/home/a/evil.so");
    char **env = docker_environment(&w->spec);
    bool socket = false;
    for (char **v = env; *v; v++) {
        assert_false(text_starts(*v, "LD_"));
        socket |= text_same(*v, "DOCKER_HOST=unix:///run/docker.sock");
    }
    assert_true(socket);
    strv_free(env);
}

static void what_cannot_hold_a_container_is_refused(void **state)
{
    struct world *w = *state;
    struct docker_host ret = DOCKER_HOST_INIT;
    struct err e = ERR_INIT;
    static const char systemd[] = "{\"ServerVersion\":\"28.2\",\"CgroupDriver\":\"systemd\"}";
    static const char rootless[] = "{\"ServerVersion\":\"28.2\",\"CgroupDriver\":\"cgroupfs\","
                                   "\"SecurityOptions\":[\"name=rootless\"]}";
    static const char silent[] = "{\"ServerErrors\":[\"Cannot connect\"]}";
    static const char fine[] = "WARNING: x\n{\"ServerVersion\":\"28.2\",\"CgroupDriver\":"
                               "\"cgroupfs\",\"InitCommit\":{\"ID\":\"de40\"},"
                               "\"CDISpecDirs\":[\"/etc/cdi\",\"/var/run/cdi\"]}\n";
    assert_int_equal(docker_judge(&w->spec, systemd, &ret, &e), -ENOTSUP);
    assert_has(e.text, "native.cgroupdriver=cgroupfs");
    assert_int_equal(docker_judge(&w->spec, rootless, &ret, &e), -ENOTSUP);
    assert_int_equal(docker_judge(&w->spec, silent, &ret, &e), -EIO);
    assert_has(e.text, "/run/docker.sock: Cannot connect");
    assert_int_equal(docker_judge(&w->spec, "no words", &ret, &e), -EIO);
    assert_int_equal(docker_judge(&w->spec, fine, &ret, &e), 0);
    assert_true(ret.init);
    assert_false(ret.cdi); /* divvyd keeps none */
    w->spec.docker.cdi = text_dup("/var/run/cdi");
    assert_int_equal(docker_judge(&w->spec, fine, &ret, &e), 0);
    assert_true(ret.cdi);
}

/* ---- what may be mounted ---- */

/* A path is stable as far as only root can write on the way to it. */
static void only_what_root_alone_can_exchange_is_mounted(void **state)
{
    (void)state; /* none is needed */
    char folder[] = "/tmp/divvy-docker-XXXXXX";
    assert_non_null(mkdtemp(folder));
    auto_free char *below = text_fmt("%s/a", folder);
    auto_free char *link = text_fmt("%s/l", folder);
    auto_free char *comma = text_fmt("%s/x,readonly=0", folder);
    char *source = NULL;
    assert_int_equal(mkdir(below, 0755), 0);
    assert_int_equal(mkdir(comma, 0755), 0);
    assert_int_equal(symlink("/usr/bin", link), 0);
    assert_int_equal(docker_source(below, &source, NULL), 0);
    assert_string_equal(source, "/tmp"); /* everybody writes there */
    free(take_ptr(source));
    assert_int_equal(docker_source(link, &source, NULL), 0);
    assert_string_equal(source, "/usr/bin");
    free(take_ptr(source));
    assert_int_equal(docker_source(comma, &source, NULL), -EINVAL);
    assert_int_equal(docker_source("/tmp/not/there", &source, NULL), -EACCES);
    assert_int_equal(file_remove_tree(AT_FDCWD, folder, NULL), 0);
}

static void where_the_user_may_not_go_nothing_is_mounted(void **state)
{
    (void)state; /* none is needed */
    char *fine[] = { "/usr/bin", NULL };
    char *missing[] = { "/usr/bin", "/usr/not/there", NULL };
    struct err e = ERR_INIT;
    assert_int_equal(docker_reachable(NULL, NULL), 0);
    assert_int_equal(docker_reachable(fine, NULL), 0);
    assert_int_equal(docker_reachable(missing, &e), -EACCES);
    assert_has(e.text, "/usr/not/there");
}

#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(the_user_is_himself_inside_and_nothing_more),
        WITH_WORLD(it_is_born_in_the_tasks_cgroup),
        WITH_WORLD(no_value_is_on_the_command_line),
        WITH_WORLD(images_are_fetched_only_where_that_is_allowed),
        WITH_WORLD(devices_are_named_or_mounted),
        WITH_WORLD(a_script_is_mounted),
        WITH_WORLD(the_client_has_nothing_of_the_users),
        WITH_WORLD(what_cannot_hold_a_container_is_refused),
        cmocka_unit_test(only_what_root_alone_can_exchange_is_mounted),
        cmocka_unit_test(where_the_user_may_not_go_nothing_is_mounted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
