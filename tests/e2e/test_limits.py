"""Limits that a job asks for: what holds is held, what does not is not claimed."""
import os
import pathlib

import pytest

import harness


@pytest.fixture
def out(box):
    folder = box.folder / "out"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def running(divvy, out, *words):
    job = divvy.submit(*words, "--output", out / "log", "--", "sh", "-c",
                       "cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; echo up;"
                       " exec sleep 1000")
    seen = divvy.wait_state(job, "running")
    harness.until(lambda: (out / "log").exists() and "up" in (out / "log").read_text(), "it is up")
    return job, seen


def test_nothing_is_limited_that_was_not_asked_for(divvy, out):
    _, seen = running(divvy, out)
    assert (seen["mem_bytes"], seen["cpu_milli"], seen["enforced"]) == (None, None, [])


def test_what_was_asked_for_is_shown_with_what_holds(divvy, out):
    job, seen = running(divvy, out, "--mem", "512M", "--cpus", "1.5")
    assert (seen["mem_bytes"], seen["cpu_milli"]) == (512 << 20, 1500)
    shown = divvy.run("show", job).stdout
    assert "512 MiB of memory" in shown and "1.5 CPUs" in shown
    assert ("memory" in seen["enforced"]) == ("memory (not held here)" not in shown)


@pytest.mark.root
def test_a_task_that_uses_too_much_memory_is_oom(divvy, out):
    _, seen = running(divvy, out, "--mem", "512M")
    if "memory" not in seen["enforced"]:
        pytest.skip("no memory controller here")
    job = divvy.submit("--mem", "64M", "--output", out / "eat", "--", "python3", "-c",
                       "x = bytearray(512 << 20); print(len(x))")
    ended = divvy.wait(job)
    assert ended["state"] == "oom" and ended["enforced"] is None, ended


@pytest.mark.root
def test_cpus_are_those_near_the_card_where_they_are_enough(divvy, out):
    """The simulated machine tells of CPUs that this one may lack: then there is no set."""
    _, seen = running(divvy, out, "--slice", "1g.10gb", "--cpus", "1")
    if "cpu" not in seen["enforced"]:
        pytest.skip("no cpu controller here")
    root = pathlib.Path(divvy.machine.env["DIVVY_DRIVER_ROOT"])
    lists = [path.read_text().strip()
             for path in (root / "sys/bus/pci/devices").glob("*/local_cpulist")]
    near = set()
    for part in lists[0].split(","):
        first, _, last = part.partition("-")
        near |= set(range(int(first), int(last or first) + 1))
    ours = os.sched_getaffinity(0)
    assert ("cpus" in seen["enforced"]) == (bool(near & ours) and near & ours != ours)


@pytest.mark.parametrize("words, said", [
    (("--mem", "10K"), "--mem"), (("--mem", "much"), "--mem"), (("--cpus", "0"), "--cpus"),
    (("--cpus", "nan"), "--cpus"), (("--cpus", "1e3"), "--cpus"), (("--cpus", "-1"), "--cpus"),
    (("--signal", "KILL", "--time", "1h"), "--signal"), (("--signal", "USR1@1h", "--time", "1h"), "signal"),
    (("--signal", "USR1"), "--time"),
])
def test_limits_that_make_no_sense_are_refused(divvy, words, said):
    done = divvy.run("submit", *words, "--", "true", check=False)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_a_job_is_warned_before_its_limit(divvy, out):
    job = divvy.submit("--time", "3s", "--signal", "USR1@2s", "--output", out / "log", "--",
                       "sh", "-c", "trap 'echo saved; exit 0' USR1; while :; do sleep 0.05; done")
    assert divvy.wait(job)["state"] == "completed"
    assert "saved" in (out / "log").read_text().splitlines()
