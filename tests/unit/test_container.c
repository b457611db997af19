#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/job_json.h"
#include "supervise/container.h"

/* ---- words that are checked ---- */

static void check(const struct job_container *c, int code, const char *part)
{
    struct err e = ERR_INIT;
    assert_int_equal(job_container_check(c, &e), code);
    if (part && !strstr(e.text, part))
        fail_msg("'%s' is not in: %s", part, e.text);
}

static void check_arg(const char *arg, int code, const char *part)
{
    char *args[] = { (char *)arg, NULL };
    struct job_container c = { .image = (char *)"debian:12", .args = args };
    check(&c, code, part);
}

static void images_are_checked(void **state)
{
    (void)state; /* none is needed */
    static const char *const bad[] = { "", "-v", "two words", "a\nb", "\xff" };
    struct job_container c = { .image = (char *)"docker.io/library/debian:12" };
    check(&c, 0, NULL);
    c.image = (char *)"oci-archive:/data/x.tar";
    check(&c, 0, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c.image = (char *)bad[i];
        check(&c, -EINVAL, "image");
    }
    char *args[] = { (char *)"--init", NULL };
    c = (struct job_container){ .args = args };
    check(&c, -EINVAL, "need an image");
}

static void runtimes_are_those_that_divvy_knows(void **state)
{
    (void)state; /* none is needed */
    struct job_container c = { .image = (char *)"debian", .runtime = (char *)"lxc" };
    check(&c, -EINVAL, "podman, apptainer and docker");
    c.runtime = (char *)"apptainer";
    check(&c, 0, NULL);
    assert_false(job_container_is_docker(&c));
    c.runtime = (char *)"docker";
    check(&c, 0, NULL);
    assert_true(job_container_is_docker(&c));
}

static void roots_daemon_takes_few_words(void **state)
{
    (void)state; /* none is needed */
    static const char *const out[] = { "--privileged",    "--cap-add=ALL",  "--device=/dev/kvm",
                                       "--pid=host",      "--user=0",       "--network=x",
                                       "--mount=type=x",  "-v=/:/h",        "--read-only=false",
                                       "--networks=none", "--security-opt=" };
    static const char *const fine[] = { "--volume=/data:/data:ro", "--entrypoint=/bin/sh",
                                        "--read-only", "--network=none", "--env=A=b" };
    static const char *const volumes[] = { "--volume=data:/data", "--volume=/a", "--volume=/a:b",
                                           "--volume=/a,readonly=0:/b", "--volume=/a:/b:shared" };
    char *args[] = { NULL, NULL };
    struct job_container c = { .image = (char *)"debian",
                               .runtime = (char *)"docker",
                               .args = args };
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        args[0] = (char *)out[i];
        check(&c, -EINVAL, "not for a job to say");
    }
    for (size_t i = 0; i < sizeof volumes / sizeof *volumes; i++) {
        args[0] = (char *)volumes[i];
        check(&c, -EINVAL, "docker takes /FROM:/TO");
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        args[0] = (char *)fine[i];
        check(&c, 0, NULL);
    }
}

static void no_argument_leads_out_of_the_job(void **state)
{
    (void)state; /* none is needed */
    static const char *const out[] = {
        "--cgroups=enabled", "--cgroup-parent", "--name=x", "--detach", "-d", "-itd",
        "--rm=false",        "--restart=always"
    };
    static const char *const fine[] = {
        "--volume=/data:/data", "-v/d:/d", "--init", "--env=A=b", "--network", "-ti"
    };
    static const char *const none[] = { "data", "-", "--", "" };
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        check_arg(out[i], -EINVAL, "is not for a job to say");
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        check_arg(fine[i], 0, NULL);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        check_arg(none[i], -EINVAL, "no option");
}

static void names_of_variables_are_checked(void **state)
{
    (void)state; /* none is needed */
    static const char *const bad[] = { "", "A=b", "1A", "A B", "A-B" };
    char *env[] = { NULL, NULL };
    struct job_container c = { .image = (char *)"debian", .env = env };
    env[0] = (char *)"_Epochs3";
    check(&c, 0, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        env[0] = (char *)bad[i];
        check(&c, -EINVAL, "variable");
    }
}

static void a_container_comes_back_from_json(void **state)
{
    (void)state; /* none is needed */
    const char *text = "{\"name\":\"x\",\"cwd\":\"/\",\"argv\":[\"true\"],\"container\":"
                       "{\"image\":\"debian\",\"runtime\":null,\"args\":[\"--init\"],"
                       "\"env\":[\"A\"]}}";
    struct err e = ERR_INIT;
    AUTO(job_spec) struct job_spec s = { .name = NULL };
    AUTO(job_spec) struct job_spec again = { .name = NULL };
    auto_json json_t *j = json_loads(text, 0, NULL);
    assert_int_equal(job_spec_from_json(j, &s, &e), 0);
    auto_json json_t *back = job_spec_to_json(&s, true);
    assert_int_equal(job_spec_from_json(back, &again, &e), 0);
    assert_string_equal(again.container.image, "debian");
    assert_null(again.container.runtime);
    assert_string_equal(again.container.args[0], "--init");
    assert_string_equal(again.container.env[0], "A");
    assert_int_equal(json_object_set_new(json_object_get(j, "container"), "imgae", json_true()), 0);
    job_spec_done(&s);
    assert_int_equal(job_spec_from_json(j, &s, &e), -EINVAL);
}

/* ---- command lines ---- */

struct world {
    struct jobdir_spec spec;
    struct container_host host;
};

static int set_up(void **state)
{
    struct world *w = mem_new(sizeof *w);
    struct jobdir_spec *s = &w->spec;
    s->job_id = 41;
    s->attempt = 2;
    s->root = text_dup("/");
    s->driver_root = text_dup("/run/driver");
    s->job.cwd = text_dup("/home/a");
    s->job.container.image = text_dup("debian:12");
    strv_add(&s->job.argv, "python3");
    strv_add(&s->job.argv, "train.py");
    struct jobdir_task *t = jobdir_spec_add_task(s);
    strv_add(&t->env, "CUDA_VISIBLE_DEVICES=MIG-1");
    strv_add(&t->env, "NVIDIA_VISIBLE_DEVICES=MIG-1");
    struct jobdir_device *d = jobdir_task_add_device(t);
    d->path = text_dup("/run/driver/dev/nvidia0");
    strv_add(&s->binds, "/run/driver/usr/lib64/libcuda.so.570:/usr/lib64/libcuda.so.1");
    w->host = (struct container_host){ .runtime = "podman",
                                       .program = text_dup("/usr/bin/podman"),
                                       .unified = true };
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    jobdir_spec_done(&w->spec);
    container_host_done(&w->host);
    free(w);
    return 0;
}

/* The words joined by spaces; "" and the reason's text apart. */
static char *line_of(char **take_words)
{
    struct text t = TEXT_INIT;
    for (char **p = take_words; p && *p; p++)
        text_addf(&t, "%s%s", t.len ? " " : "", *p);
    strv_free(take_words);
    return text_take(&t);
}

static char *run_line(struct world *w)
{
    char **words = NULL;
    struct err e = ERR_INIT;
    assert_int_equal(container_run_words(&w->spec, 0, &w->host, &words, &e), 0);
    return line_of(words);
}

static void has(const char *line, const char *part)
{
    if (!strstr(line, part))
        fail_msg("'%s' is not in: %s", part, line);
}

static void has_not(const char *line, const char *part)
{
    if (strstr(line, part))
        fail_msg("'%s' is in: %s", part, line);
}

static void podman_stays_in_the_job_and_gets_what_was_granted(void **state)
{
    auto_free char *line = run_line(*state);
    has(line, "/usr/bin/podman --remote=false --cgroup-manager=cgroupfs run --rm "
              "--name=divvy-41.2-0 ");
    has(line, " --cgroups=disabled ");
    has(line, " --security-opt=no-new-privileges ");
    has(line, " --volume=/home/a:/home/a --workdir=/home/a ");
    has(line, " --device=/run/driver/dev/nvidia0:/dev/nvidia0:rw ");
    has(line, " --volume=/run/driver/usr/lib64/libcuda.so.570:/usr/lib64/libcuda.so.1:ro ");
    has(line, " --env=CUDA_VISIBLE_DEVICES --env=DIVVY_ATTEMPT --env=DIVVY_ROOT ");
    has(line, " --env=NVIDIA_VISIBLE_DEVICES=void debian:12 python3 train.py");
    has_not(line, "MIG-1"); /* values are not for everybody to read */
    has_not(line, "--interactive");
}

static void other_hosts_take_other_words(void **state)
{
    struct world *w = *state;
    w->host.unified = false;
    w->host.init = true;
    w->host.oci = text_dup("/usr/sbin/runc");
    w->spec.job.attached = w->spec.job.pty = true;
    w->spec.new_privileges = true;
    auto_free char *line = run_line(w);
    has(line, "--cgroup-manager=cgroupfs --runtime=/usr/sbin/runc run");
    has(line, " --init ");
    has(line, " --interactive --tty ");
    has_not(line, "--cgroups=");
    has_not(line, "no-new-privileges");
}

static void what_the_user_says_stands(void **state)
{
    struct world *w = *state;
    strv_add(&w->spec.job.container.args, "--network=none");
    strv_add(&w->spec.job.container.args, "--shm-size=1g");
    strv_add(&w->spec.job.container.env, "EPOCHS");
    auto_free char *line = run_line(w);
    has_not(line, "--network=host");
    has_not(line, "--shm-size=0");
    has(line, " --env=EPOCHS ");
    has(line, " --network=none --shm-size=1g debian:12 ");
}

static void a_script_takes_the_place_of_the_command(void **state)
{
    struct world *w = *state;
    w->spec.job.script = text_dup("#!/bin/sh\n");
    auto_free char *line = run_line(w);
    has(line, " --preserve-fds=1 ");
    has(line, " debian:12 /proc/self/fd/3 train.py");
}

static void a_task_without_a_card_gets_nothing_of_the_drivers(void **state)
{
    struct world *w = *state;
    free(w->spec.tasks[0].devices[0].path);
    w->spec.tasks[0].device_count = 0;
    auto_free char *line = run_line(w);
    has_not(line, "--device");
    has_not(line, "libcuda");
    w->host.runtime = "apptainer";
    auto_free char *other = run_line(w);
    has_not(other, "--nv");
}

static void apptainer_gets_the_same(void **state)
{
    struct world *w = *state;
    free(w->host.program);
    w->host.program = text_dup("/usr/bin/apptainer");
    w->host.runtime = "apptainer";
    auto_free char *line = run_line(w);
    assert_string_equal(line, "/usr/bin/apptainer exec --cleanenv --nv --bind=/home/a "
                              "--pwd=/home/a debian:12 python3 train.py");
    assert_null(container_clear_words(&w->spec, 0, &w->host));
    assert_null(container_inside_words(&w->spec, 0, &w->host));
}

static void a_colon_in_the_folder_is_refused(void **state)
{
    struct world *w = *state;
    char **words = NULL;
    struct err e = ERR_INIT;
    free(w->spec.job.cwd);
    w->spec.job.cwd = text_dup("/home/a:b");
    assert_int_equal(container_run_words(&w->spec, 0, &w->host, &words, &e), -EINVAL);
    assert_null(words);
    has(e.text, "/home/a:b has a colon");
}

static void it_is_entered_and_cleared_by_its_name(void **state)
{
    struct world *w = *state;
    auto_free char *clear = line_of(container_clear_words(&w->spec, 0, &w->host));
    auto_free char *inside = line_of(container_inside_words(&w->spec, 0, &w->host));
    assert_string_equal(clear, "/usr/bin/podman --remote=false --cgroup-manager=cgroupfs rm "
                               "--force --ignore --time=0 divvy-41.2-0");
    assert_string_equal(inside, "/usr/bin/podman --remote=false --cgroup-manager=cgroupfs exec "
                                "--interactive --workdir=/home/a divvy-41.2-0 python3 train.py");
}

static void nothing_in_the_environment_leads_elsewhere(void **state)
{
    struct world *w = *state;
    char **env = NULL;
    strv_add(&env, "CONTAINER_HOST=unix:///run/podman.sock");
    strv_add(&env, "HOME=/home/a");
    strv_add(&env, "LISTEN_FDS=2");
    auto_free char *line = line_of(container_environment(env, &w->spec, 0, &w->host));
    has_not(line, "CONTAINER_HOST");
    has_not(line, "LISTEN_FDS");
    has(line, "HOME=/home/a PATH=/usr/local/sbin:");
    w->host.runtime = "apptainer";
    env = NULL;
    strv_add(&env, "PATH=/bin");
    strv_add(&env, "CUDA_VISIBLE_DEVICES=MIG-1");
    strv_add(&env, "SECRET=x");
    auto_free char *other = line_of(container_environment(env, &w->spec, 0, &w->host));
    assert_string_equal(other, "PATH=/bin CUDA_VISIBLE_DEVICES=MIG-1 SECRET=x "
                               "APPTAINERENV_CUDA_VISIBLE_DEVICES=MIG-1");
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_checked),
        cmocka_unit_test(runtimes_are_those_that_divvy_knows),
        cmocka_unit_test(roots_daemon_takes_few_words),
        cmocka_unit_test(no_argument_leads_out_of_the_job),
        cmocka_unit_test(names_of_variables_are_checked),
        cmocka_unit_test(a_container_comes_back_from_json),
        WITH_WORLD(podman_stays_in_the_job_and_gets_what_was_granted),
        WITH_WORLD(other_hosts_take_other_words),
        WITH_WORLD(what_the_user_says_stands),
        WITH_WORLD(a_script_takes_the_place_of_the_command),
        WITH_WORLD(a_task_without_a_card_gets_nothing_of_the_drivers),
        WITH_WORLD(apptainer_gets_the_same),
        WITH_WORLD(a_colon_in_the_folder_is_refused),
        WITH_WORLD(it_is_entered_and_cleared_by_its_name),
        WITH_WORLD(nothing_in_the_environment_leads_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
