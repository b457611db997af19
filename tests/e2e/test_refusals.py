"""Bad input: one clear sentence, a non-zero exit, and nothing half-done."""
import os
import sqlite3
import stat

import pytest

import harness


def refused(divvy, *words, says=(), **more):
    """Runs and expects one sentence on standard error; gives it."""
    done = divvy.run(*words, check=False, **more)
    assert done.returncode != 0, done.stdout
    assert done.stderr.startswith(("divvy: ", f"divvy {words[0]}: ")), done.stderr
    for word in says:
        assert word in done.stderr, done.stderr
    return done.stderr


def nothing_was_queued(divvy):
    told = divvy.json("queue")
    return not (told["jobs"] if isinstance(told, dict) else told)


@pytest.mark.smoke
def test_an_unknown_profile_names_those_that_are(divvy):
    refused(divvy, "submit", "--slice", "1g.5gb", "--", "true", says=["1g.5gb", "1g.10gb", "7g.80gb"])
    assert nothing_was_queued(divvy)


@pytest.mark.parametrize("words, says", [
    (["--gpus", "3"], ["3", "2"]),
    (["--slice", "7g.80gb:3"], ["7g.80gb"]),
    (["--gpu-mem", "200G"], ["200"]),
    (["--gpus", "0"], ["--gpus"]),
    (["--gpus", "many"], ["--gpus"]),
    (["--gpu-mem", "ten"], ["--gpu-mem"]),
    (["--time", "soon"], ["--time"]),
    (["--slice", "2g.20gb", "--gpus", "1"], ["--slice", "--gpus"]),
    (["--account", "nobody-has-this"], ["nobody-has-this"]),
    (["--name", "n" * 10240], ["name"]),
    (["--no-such-option"], ["--no-such-option"]),
], ids=lambda v: " ".join(v)[:40])
def test_what_cannot_be_is_refused_before_it_is_queued(divvy, words, says):
    refused(divvy, "submit", *words, "--", "true", says=says)
    assert nothing_was_queued(divvy)


def test_nothing_to_run_is_refused(divvy):
    refused(divvy, "submit", "--slice", "1g.10gb")
    refused(divvy, "submit", "/no/such/script", says=["/no/such/script"])


@pytest.mark.root
def test_a_script_that_its_user_cannot_read_is_refused(divvy, box):
    script = box.folder / "secret.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    script.chmod(0o600)
    refused(divvy, "submit", script, user=12345, says=[str(script)])


def test_a_script_with_a_broken_option_names_the_line(divvy, box):
    script = box.folder / "job.sh"
    script.write_text("#!/bin/sh\n#DIVVY --name 'open\ntrue\n")
    refused(divvy, "submit", script, says=["job.sh:2:"])


def test_what_is_not_there_is_said(divvy):
    refused(divvy, "show", "4711", says=["4711"])
    refused(divvy, "cancel", "4711", says=["4711"])
    refused(divvy, "show", "not-a-job", says=["not-a-job"])
    refused(divvy, "pool", "gpu9", "queue", says=["gpu9"])
    refused(divvy, "pool", "gpu0", "lake", says=["lake"])


def test_without_a_daemon_a_command_says_how_to_start_it(box):
    (box.folder / "root").mkdir(exist_ok=True)
    refused(box.divvy, "queue", says=["divvyd"])


def fails_to_start(box, *says, env=None):
    box.divvy.launch(env=env)
    code = box.divvy.daemon.wait(harness.PATIENCE)
    box.divvy.daemon = None
    told = box.divvy.said()
    assert code > 0, told
    for word in says:
        assert word in told, told


def test_broken_yaml_names_line_and_column(box, machine):
    box.divvy.configure("mode_hold: 10m\naccounts: [nlp\n")
    fails_to_start(box, "divvy.yaml:")


def checked(box):
    return harness.run(harness.PROGRAMS / "divvyd", "--check", env=box.divvy.env, check=False)


def test_a_configuration_can_be_checked_beforehand(box):
    path = box.divvy.root / "etc/divvy/divvy.yaml"
    box.divvy.configure("accounts: {nlp: {users: [root, nosuchuser, '4711', '*'], groups: [root, nosuchgroup]}}\n"
                        "qos: {big: {users: [nosuchone], limits: {slices: {9g.1gb: 1, 1g.10gb: 2}}}}\n"
                        "event_hook: /nowhere\nepilog: /bin/true\n")
    done = checked(box)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.splitlines() == [
        "accounts: nlp: there is no user nosuchuser here",
        "accounts: nlp: there is no group nosuchgroup here",
        "qos: big: there is no user nosuchone here",
        "qos: big: no known board has the profile 9g.1gb",
        "event_hook: /nowhere cannot be run: No such file or directory",
        f"otherwise {path} can be used"]
    box.divvy.configure("mode_hold: 10m\n")
    assert checked(box).stdout == f"{path} can be used\n"
    box.divvy.configure("mode_hodl: 10m\n")
    done = checked(box)
    assert done.returncode == 1 and "divvy.yaml:1:1: " in done.stderr and not done.stdout
    assert not (box.divvy.root / "var").exists()


def test_an_unknown_key_names_line_and_column(box, machine):
    box.divvy.configure("mode_hold: 10m\nmode_hodl: 3m\n")
    fails_to_start(box, "divvy.yaml:2:1", "mode_hodl")


def test_a_second_daemon_is_refused(box, divvy):
    other = harness.Divvy(box.folder / "root", box.machine)
    other.log = box.folder / "second.log"
    other.launch()
    assert other.daemon.wait(harness.PATIENCE) > 0
    assert len(other.said().strip().splitlines()) == 1, other.said()
    assert divvy.run("status").returncode == 0


def test_two_roots_never_manage_one_card(box, divvy):
    (box.folder / "other").mkdir()
    other = harness.Divvy(box.folder / "other", box.machine)
    other.launch()
    try:
        harness.until(lambda: other.daemon.poll() is not None
                      or other.run("status", check=False).returncode == 0, "it decided")
        if other.daemon.poll() is None:
            done = other.run("pool", "gpu0", "queue", check=False)
            assert done.returncode != 0, "two daemons manage gpu0"
    finally:
        other.end()


def test_a_store_from_the_future_is_left_alone(box, machine):
    box.divvy.start()
    box.divvy.stop()
    store = box.divvy.root / "var/lib/divvy/divvy.db"
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    fails_to_start(box, "9999")
    with sqlite3.connect(store) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (9999,)
    db.close()


def test_a_missing_library_is_said_not_feared(box, machine):
    done = box.divvy.run("gpus", check=False, env={"DIVVY_NVML": "/no/such/libnvidia-ml.so.1"})
    assert done.returncode != 0
    assert "/no/such/libnvidia-ml.so.1" in done.stderr


def test_a_foreign_library_is_said(box, machine):
    done = box.divvy.run("gpus", check=False, env={"DIVVY_NVML": "libc.so.6"})
    assert done.returncode != 0
    assert done.stderr.startswith("divvy: ")


def test_a_file_where_the_folder_belongs_is_said(box, machine):
    (box.divvy.root / "var").write_text("in the way")
    fails_to_start(box, str(box.divvy.root / "var"))
    assert stat.S_ISREG(os.stat(box.divvy.root / "var").st_mode)


def test_an_output_whose_folder_is_not_there_is_refused_at_once(divvy, box):
    refused(divvy, "submit", "-o", "/no/such/dir/x", "--", "true",
            says=["there is no folder /no/such/dir", "mkdir -p /no/such/dir"])
    refused(divvy, "submit", "-e", "/etc/passwd/x", "--", "true", says=["/etc/passwd"])
    assert nothing_was_queued(divvy)
    before = divvy.submit("-o", "/dev/null", "--", "mkdir", box.folder / "made")
    after = divvy.submit("--dependency", f"afterok:{before}", "-o", box.folder / "made/log", "--", "echo", "ran")
    assert divvy.wait(after)["state"] == "completed", "an earlier job may make it"
    assert (box.folder / "made/log").read_text() == "ran\n"
