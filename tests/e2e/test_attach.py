"""A shell or a command inside a job that runs: divvy attach."""
import os
import signal
import subprocess
import sys

import pytest

import harness
from harness import until

USER = 65534

@pytest.fixture
def out(box):
    folder = box.folder / "out"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def job(divvy, out):
    """One that says its cgroup, and runs until it is told to end."""
    number = divvy.submit("--slice", "1g.10gb", "--env", "SHAPE=round", "--chdir", out,
                          "--output", out / "log", "--", "sh", "-c",
                          "cat /proc/self/cgroup; echo up; exec sleep 1000")
    until(lambda: (out / "log").exists() and "up" in (out / "log").read_text(), "it runs")
    return number


def attach(divvy, job, *command, **more):
    return divvy.run("attach", job, "--", *command, **more)


def test_a_command_has_what_the_job_has(divvy, out, job):
    seen = attach(divvy, job, "sh", "-c",
                  'echo $CUDA_VISIBLE_DEVICES $SHAPE $DIVVY_JOB_ID $PWD; cat /proc/self/cgroup').stdout
    slice_uuid = divvy.show(job)["place"][0]["uuid"]
    first, _, cgroup = seen.partition("\n")
    assert first.split() == [slice_uuid, "round", str(job), str(out)]
    assert cgroup == (out / "log").read_text().replace("up\n", "")


def test_streams_and_status_are_the_commands_own(divvy, job):
    done = divvy.run("attach", job, "--", "sh", "-c", "cat; echo bad >&2; exit 7",
                     check=False)
    assert (done.returncode, done.stderr) == (7, "bad\n")
    piped = subprocess.run([harness.PROGRAMS / "divvy", "attach", str(job), "--", "cat"], text=True,
                           env=divvy.env, input="through\n", capture_output=True, timeout=30)
    assert (piped.returncode, piped.stdout) == (0, "through\n")


def test_the_end_of_a_command_is_not_the_end_of_the_job(divvy, job):
    assert attach(divvy, job, "sh", "-c", "kill -KILL $$", check=False).returncode == 128 + 9
    assert attach(divvy, job, "true").returncode == 0
    assert divvy.show(job)["state"] == "running"


def test_the_end_of_the_job_ends_the_command(divvy, out, job):
    inside = subprocess.Popen([harness.PROGRAMS / "divvy", "attach", str(job), "--", "sh", "-c",
                               f"trap '' TERM HUP; echo $$ > {out}/pid; while :; do sleep 1; done"],
                              env=divvy.env, stdin=subprocess.DEVNULL)
    until(lambda: (out / "pid").exists() and (out / "pid").read_text(), "the command runs")
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    assert inside.wait(30) != 0
    assert not os.path.exists(f"/proc/{(out / 'pid').read_text().strip()}")


def test_a_client_that_is_lost_hangs_its_command_up(divvy, out, job):
    inside = subprocess.Popen([harness.PROGRAMS / "divvy", "attach", str(job), "--", "sh", "-c",
                               f"trap 'echo gone > {out}/hup; exit' HUP; echo > {out}/up;"
                               " while :; do sleep 0.05; done"], env=divvy.env)
    until(lambda: (out / "up").exists(), "the command runs")
    inside.send_signal(signal.SIGKILL)
    inside.wait()
    until(lambda: (out / "hup").exists(), "it was hung up")
    assert divvy.show(job)["state"] == "running"


def test_on_a_terminal_it_is_a_shell_with_one(divvy, job):
    env = {**divvy.env, "SHELL": "/bin/sh", "PS1": "inside> "}
    drawn = harness.on_terminal([harness.PROGRAMS / "divvy", "attach", job, "--", "sh", "-c",
                                 "tty -s && stty size; echo $TERM"], env, columns=77, lines=33)
    assert "33 77" in drawn and "linux" in drawn, drawn


def test_who_attaches_to_what_does_not_run_is_told(divvy, job):
    divvy.run("cancel", job)
    divvy.wait(job)
    ended = divvy.run("attach", job, check=False)
    assert ended.returncode == 125 and "has ended (cancelled)" in ended.stderr
    none = divvy.run("attach", "4711", check=False)
    assert none.returncode != 0 and "4711" in none.stderr
    assert "one too many" in divvy.run("attach", job, "ls", check=False).stderr


def test_a_command_that_is_not_there_and_a_task_that_is_not_there(divvy, job):
    missing = attach(divvy, job, "/no/such/program", check=False)
    assert missing.returncode == 127 and "/no/such/program" in missing.stderr
    other = divvy.run("attach", "--task", "3", job, "--", "true", check=False)
    assert other.returncode == 125 and "no task 3" in other.stderr


def test_each_task_can_be_entered(divvy, out):
    job = divvy.submit("--slice", "1g.10gb:2", "--output", out / "log", "--", "sleep", "1000")
    divvy.wait_state(job, "running")
    for task in "01":
        done = divvy.run("attach", "--task", task, job, "--", "sh", "-c", "echo $DIVVY_TASK_ID")
        assert done.stdout == f"{task}\n"


@pytest.mark.root
def test_only_the_owner_and_root_get_in(divvy, out):
    job = divvy.submit("--chdir", out, "--output", out / "log", "--", "sleep", "1000",
                       user=USER)
    divvy.wait_state(job, "running")
    inside = divvy.run("attach", job, "--", "id", "-u", user=USER)
    assert inside.stdout == f"{USER}\n"
    assert divvy.run("attach", job, "--", "id", "-u").stdout == f"{USER}\n", "root enters as the user"
    stranger = divvy.run("attach", job, "--", "id", "-u", user=USER - 1, check=False)
    assert stranger.returncode == 125 and stranger.stdout == ""


@pytest.mark.root
def test_the_gate_holds_inside(divvy, out, job):
    if divvy.show(job).get("isolation") != "bpf":
        pytest.skip("no device gate here")
    # The nodes of simulated cards have no driver behind them: what may be opened is ENXIO.
    tried = attach(divvy, job, sys.executable, "-c", """
import errno, glob, os, sys
for node in sorted(glob.glob(sys.argv[1] + "/dev/nvidia[0-9]")):
    try:
        os.open(node, os.O_RDONLY)
    except OSError as e:
        print(errno.errorcode[e.errno])
""", divvy.machine.env["DIVVY_DRIVER_ROOT"]).stdout.split()
    assert sorted(tried) == ["ENXIO", "EPERM"]
