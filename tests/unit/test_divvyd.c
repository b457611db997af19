#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/divvyd.h"

static int parse(const char *text, struct divvyd_config *c, struct err *e)
{
    return divvyd_config_parse("divvy.yaml", text, strlen(text), c, e);
}

static void refused(const char *text, const char *expected)
{
    struct divvyd_config c;
    struct err e = ERR_INIT;
    assert_int_equal(parse(text, &c, &e), -EINVAL);
    assert_string_equal(e.text, expected);
}

static void nothing_written_means_the_defaults(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(parse("", &c, NULL), 0);
    assert_int_equal(c.default_pool, POOL_OFF);
    assert_int_equal(c.default_mode, MODE_AUTO);
    assert_int_equal(c.mode_hold_us, 10 * CLOCK_MINUTE);
    assert_true(c.slice_activity);
    assert_int_equal(c.default_time_us, 0);
    assert_int_equal(c.retention_us, 30 * CLOCK_DAY);
    assert_int_equal(c.isolation, GATE_AUTO);
    assert_int_equal(c.log_level, LOG_NOTE);
    assert_string_equal(c.operators, "divvy");
    assert_string_equal(c.cdi, "off");
    assert_int_equal(c.docker, DOCKER_OFF);
    assert_string_equal(c.docker_socket, "/run/docker.sock");
    assert_null(c.driver_root);
    assert_int_equal(c.account_count, 0);
    divvyd_config_done(&c);
}

static void what_is_written_is_taken(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(parse("driver_root: /run/divvy-sim/root\n"
                           "cdi: /etc/cdi/divvy.json\n"
                           "docker: pull\n"
                           "docker_socket: /srv/docker.sock\n"
                           "nvml: /usr/lib/libnvidia-ml.so.1\n"
                           "isolation: require\n"
                           "between_owners: {settings: keep, shared_memory: remove}\n"
                           "task_limits: {memory: share, cpuset: near, pids: 500}\n"
                           "node: {memory: 480G, cpus: 62.5}\n"
                           "log_level: info\n"
                           "cards:\n"
                           "  GPU-1: {mode: slices}\n"
                           "  0000:07:00.0: {pool: slurm}\n"
                           "  default: {pool: queue, mode: whole}\n"
                           "mode_hold: 90s\n"
                           "prolog: /etc/divvy/prolog\n"
                           "prolog_time: 20s\n"
                           "event_hook: /etc/divvy/event\n"
                           "event_time: 5s\n"
                           "keep: {part: 0.125, for: 1h}\n"
                           "idle: {after: 30m, then: requeue, cpu: 3, exempt: normal}\n"
                           "default_time: 1h\n"
                           "max_time: 2d\n"
                           "accounts:\n"
                           "  lab: {share: 2.5}\n"
                           "  nlp: {users: [alice, bob], groups: nlp-lab}\n"
                           "  rest:\n",
                           &c, NULL),
                     0);
    assert_string_equal(c.driver_root, "/run/divvy-sim/root");
    assert_string_equal(c.cdi, "/etc/cdi/divvy.json");
    assert_int_equal(c.docker, DOCKER_PULL);
    assert_string_equal(c.docker_socket, "/srv/docker.sock");
    assert_int_equal(c.isolation, GATE_REQUIRE);
    assert_int_equal(c.task_limits.memory, TASK_LIMIT_SHARE);
    assert_int_equal(c.task_limits.cpu, TASK_LIMIT_AUTO);
    assert_int_equal(c.task_limits.cpuset, TASK_LIMIT_SHARE);
    assert_int_equal(c.task_limits.pids, TASK_LIMIT_SHARE);
    assert_int_equal(c.task_limits.pids_max, 500);
    assert_true(c.node.memory == COUNT_SAID && c.node.mem_bytes == UINT64_C(480) << 30);
    assert_true(c.node.cpus == COUNT_SAID && c.node.cpu_milli == 62500);
    assert_true(c.between.keep_settings);
    assert_false(c.between.keep_shm);
    assert_int_equal(c.log_level, LOG_INFO);
    assert_int_equal(c.default_pool, POOL_QUEUE);
    assert_int_equal(c.card_count, 2);
    assert_string_equal(c.cards[0].which, "GPU-1");
    assert_int_equal(c.cards[0].pool, POOL_QUEUE);
    assert_int_equal(c.cards[0].mode, MODE_SLICES);
    assert_int_equal(c.cards[1].pool, POOL_SLURM);
    assert_int_equal(c.cards[1].mode, MODE_WHOLE);
    assert_int_equal(c.mode_hold_us, 90 * CLOCK_SECOND);
    assert_string_equal(c.prolog, "/etc/divvy/prolog");
    assert_null(c.epilog);
    assert_int_equal(c.prolog_time_us, 20 * CLOCK_SECOND);
    assert_string_equal(c.event_hook, "/etc/divvy/event");
    assert_int_equal(c.event_time_us, 5 * CLOCK_SECOND);
    assert_int_equal(c.idle.after_us, 30 * CLOCK_MINUTE);
    assert_int_equal(c.idle.grace_us, 10 * CLOCK_MINUTE);
    assert_int_equal(c.idle.then, IDLE_REQUEUE);
    assert_int_equal(c.idle.cpu_percent, 3);
    assert_string_equal(c.idle.exempt.words[0], "normal");
    assert_int_equal(c.keep.part_ppm, 125000);
    assert_int_equal(c.keep.for_us, CLOCK_HOUR);
    assert_int_equal(c.max_time_us, 2 * CLOCK_DAY);
    assert_int_equal(c.account_count, 3);
    const struct config_account *nlp = divvyd_config_account(&c, "nlp");
    assert_int_equal(nlp->users.count, 2);
    assert_string_equal(nlp->users.words[1], "bob");
    assert_string_equal(nlp->groups.words[0], "nlp-lab");
    assert_true(nlp->share > 0.99 && nlp->share < 1.01);
    assert_true(divvyd_config_account(&c, "lab")->share > 2.49);
    assert_null(divvyd_config_account(&c, "vision"));
    divvyd_config_done(&c);
}

static void an_unknown_key_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refused("mode_hodl: 10m\n",
            "divvy.yaml:1:1: there is no key 'mode_hodl' here; did you mean 'mode_hold'?");
    refused("accounts:\n  nlp: {user: [alice]}\n",
            "divvy.yaml:2:9: there is no key 'user' here; did you mean 'users'?");
    refused("accounts:\n  nlp: {zzz: 1}\n",
            "divvy.yaml:2:9: there is no key 'zzz' here; known are users, groups, share, "
            "parent, user_shares, inside, limits, user_limits");
}

static void bad_values_are_refused_at_their_place(void **state)
{
    (void)state;
    refused("isolation: strict\n",
            "divvy.yaml:1:12: isolation: 'strict' is not one of auto, require or none");
    refused(
        "cdi: run/divvy.json\n",
        "divvy.yaml:1:6: cdi: 'run/divvy.json' is neither on, off nor an absolute path that ends "
        "with .json");
    refused("driver_root: sim/root\n",
            "divvy.yaml:1:14: driver_root: 'sim/root' must be an absolute path, beginning with /");
    refused("reservations: 0\n",
            "divvy.yaml:1:15: reservations must be 1 or more: with none, whoever asks for much "
            "would wait for ever");
    refused("reservations: 65\n",
            "divvy.yaml:1:15: reservations: 65 is out of range, 0 to 64 works");
    refused("mode_hold: soon\n", "divvy.yaml:1:12: mode_hold: 'soon' is not a time; write it like "
                                 "90s, 45m, 2h30m or 1:30:00");
    refused("default_time: 3h\nmax_time: 2h\n",
            "divvy.yaml:1:15: default_time is longer than max_time");
    refused("keep: {part: 0.1}\n", "divvy.yaml:1:7: for is missing");
    refused("keep: {part: 2, for: 1h}\n",
            "divvy.yaml:1:14: part must be between 0 and 1, like 0.1 for a tenth");
    refused("accounts: [nlp]\n", "divvy.yaml:1:11: accounts must be a map of names, not a list");
    refused(
        "cards:\n  gpu0: {pool: queue}\n",
        "divvy.yaml:2:3: cards: 'gpu0' is neither 'default', a UUID (GPU-...) nor a PCI address "
        "(0000:07:00.0); divvy gpus --json tells them");
}

static void an_account_has_a_name_that_fits_everywhere(void **state)
{
    (void)state;
    refused("accounts:\n  'a b': {}\n",
            "divvy.yaml:2:3: accounts: 'a b' cannot be a name; up to 32 letters, digits, '.', '_' "
            "and '-' can");
}

static const struct config_account *account(const struct divvyd_config *c, const char *name)
{
    const struct config_account *a = divvyd_config_account(c, name);
    assert_non_null(a);
    return a;
}

static void accounts_form_a_tree_with_limits(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(
        parse("accounts:\n"
              "  nlp: {parent: lab, user_shares: {alice: 2.5, bob: 0}}\n"
              "  lab: {share: 0, limits: {cards: 6, compute: 2.5, memory: 0, submits: 100/30m}}\n"
              "  sims: {parent: lab, inside: las, user_limits: {running: 4, pending: 0,\n"
              "         slices: {1g.10gb: 7, 2g.20gb: 0}, max_time: 2h, submits: 5/s}}\n"
              "limits: {running: 100}\n"
              "las: [30m, 2h, 1d]\n",
              &c, NULL),
        0);
    const struct config_account *lab = account(&c, "lab"), *sims = account(&c, "sims");
    assert_string_equal(account(&c, "nlp")->parent, "lab");
    assert_int_equal(account(&c, "nlp")->user_share_count, 2);
    assert_string_equal(account(&c, "nlp")->user_shares[1].user, "bob");
    assert_int_equal(lab->limits.cards, 6);
    assert_int_equal(lab->limits.compute_ppm, 2500000);
    assert_int_equal(lab->limits.mem_ppm, 0);
    assert_int_equal(lab->limits.submits, 100);
    assert_int_equal(lab->limits.submits_per_us, 30 * CLOCK_MINUTE);
    assert_true(lab->limits.running == LIMIT_NONE);
    assert_int_equal(sims->inside, INSIDE_LAS);
    assert_int_equal(sims->user_limits.slice_count, 2);
    assert_string_equal(sims->user_limits.slices[0].profile, "1g.10gb");
    assert_int_equal(sims->user_limits.slices[1].max, 0);
    assert_int_equal(sims->user_limits.time_us, 2 * CLOCK_HOUR);
    assert_int_equal(sims->user_limits.submits_per_us, CLOCK_SECOND);
    assert_int_equal(c.limits.running, 100);
    assert_int_equal(c.las_count, 3);
    assert_int_equal(c.las_us[2], CLOCK_DAY);
    divvyd_config_done(&c);
}

static void classes_say_who_goes_before_whom(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(parse("qos:\n"
                           "  urgent: {priority: 10, charge: 2, preempts: [spare, normal]}\n"
                           "  spare: {charge: 0.1, preempt: \"signal:USR1\", grace: 90s}\n"
                           "default_qos: spare\n"
                           "order: {share: 2, age: 0.5, size: -1, age_max: 3d}\n"
                           "charge: {a30: 0.25}\n",
                           &c, NULL),
                     0);
    const struct qos *urgent = divvyd_config_qos(&c, "urgent");
    const struct qos *spare = divvyd_config_qos(&c, "spare");
    assert_int_equal(urgent->priority, 10);
    assert_string_equal(urgent->preempts[1], "normal");
    assert_true(qos_may_preempt(urgent, spare));
    assert_int_equal(spare->grace_us, 90 * CLOCK_SECOND);
    assert_string_equal(c.default_qos, "spare");
    assert_true(c.order.size < 0 && c.order.age > 0.4);
    struct board a30 = { .name = "NVIDIA A30" }, a100 = { .name = "NVIDIA A100-SXM4-80GB" };
    assert_true(divvyd_config_charge(&c, &a30) < 0.3);
    assert_true(divvyd_config_charge(&c, &a100) > 0.9);
    divvyd_config_done(&c);
}

static void shares_that_cannot_be_are_refused(void **state)
{
    (void)state;
    refused("accounts:\n  a: {parent: b}\n", "divvy.yaml:2:15: parent: there is no account 'b'");
    refused("accounts:\n  a: {parent: b}\n  b: {parent: a}\n",
            "divvy.yaml:3:15: parent: a would be above itself");
    refused("accounts:\n  a: {inside: fifo}\n  b: {parent: a}\n",
            "divvy.yaml:2:15: inside: a has accounts below it (b), which share as users do; leave "
            "this out");
    refused("limits: {card: 2}\n",
            "divvy.yaml:1:10: there is no key 'card' here; did you mean 'cards'?");
    refused("limits: {submits: 60}\n", "divvy.yaml:1:19: submits: '60' is no rate; write it like "
                                       "60/h, 5/s or 100/30m");
    refused("limits: {slices: {big: 1}}\n",
            "divvy.yaml:1:19: slices: 'big' is no profile, like 1g.10gb");
    refused("qos:\n  a: {preempts: [b]}\n",
            "divvy.yaml:2:17: preempts: there is no class 'b' in qos");
    refused(
        "qos:\n  a: {preempts: [b], preempt: requeue}\n  b: {preempts: [a], preempt: cancel}\n",
        "divvy.yaml:2:17: preempts: a pushes out b, which in turn pushes out a, so neither would "
        "ever end; take one of them out of the other's list");
    refused(
        "qos:\n  a: {preempts: [b], preempt: requeue}\n  b: {preempts: [c], preempt: requeue}\n"
        "  c: {preempts: [a], preempt: requeue}\n",
        "divvy.yaml:2:17: preempts: a pushes out b, which in turn pushes out a, so neither would "
        "ever end; take one of them out of the other's list");
    refused("qos:\n  a: {preempt: kill}\n",
            "divvy.yaml:2:16: preempt: 'kill' is no way to push a job out; never, requeue, cancel "
            "and signal:NAME are");
    refused("qos:\n  a: {accounts: [b]}\n", "divvy.yaml:2:17: accounts: there is no account 'b'");
    refused("default_qos: fast\n", "divvy.yaml:1:14: default_qos: there is no class 'fast' in qos");
    refused("las: [2h, 1h]\n",
            "divvy.yaml:1:11: las: the times must rise, each above the one before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_written_means_the_defaults),
        cmocka_unit_test(what_is_written_is_taken),
        cmocka_unit_test(an_unknown_key_is_refused_with_the_nearest),
        cmocka_unit_test(bad_values_are_refused_at_their_place),
        cmocka_unit_test(an_account_has_a_name_that_fits_everywhere),
        cmocka_unit_test(accounts_form_a_tree_with_limits),
        cmocka_unit_test(classes_say_who_goes_before_whom),
        cmocka_unit_test(shares_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
