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


def limited(box, words):
    box.divvy.configure(f"mode_hold: 0s\ntask_limits: {words}\ncards: {{default: {{pool: queue}}}}\n")
    box.divvy.start()
    return box.divvy


def test_a_job_without_a_card_has_no_share(box, machine, out):
    _, seen = running(limited(box, "{memory: share, cpu: share, pids: none}"), out)
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


# ---- by its share of the card ----

@pytest.mark.root
@pytest.mark.smoke
def test_a_task_is_limited_by_its_share(box, machine, out):
    divvy = limited(box, "{memory: share, cpu: share, cpuset: near, pids: 300}")
    job, seen = running(divvy, out, "--slice", "3g.40gb")
    if not {"memory", "cpu", "pids"} <= set(seen["enforced"]):
        pytest.skip(f"only {seen['enforced']} can be limited here")
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert 0.2 < seen["mem_bytes"] / whole < 0.25  # half of one of two cards, of 95%
    assert seen["cpu_milli"] == max(1000, int(1000 * len(os.sched_getaffinity(0)) * 3 / 7 / 2))
    assert seen["pids"] == 300
    shown = divvy.run("show", job).stdout
    assert "300 processes" in shown and "GiB of memory" in shown and "not held" not in shown
    for line in (out / "log").read_text().splitlines():  # and the kernel says so
        number, names, path = (line.split(":", 2) + ["", ""])[:3] if line[0].isdigit() else ("", "", "")
        if "pids" in names.split(","):
            limit = pathlib.Path("/sys/fs/cgroup/pids" + path) / "pids.max"
            assert limit.read_text().strip() == "300"


@pytest.mark.root
def test_its_share_is_the_default_and_none_takes_it_away(box, machine, out):
    divvy = limited(box, "{}")
    _, seen = running(divvy, out, "--slice", "1g.10gb")
    if not {"memory", "cpu", "pids"} <= set(seen["enforced"]):
        pytest.skip(f"only {seen['enforced']} can be limited here")
    assert seen["cpu_milli"] == max(1000, int(1000 * len(os.sched_getaffinity(0)) / 7 / 2))
    assert seen["pids"] == 16384
    assert seen["mem_bytes"] >= 1 << 30
    divvy.stop()
    divvy = limited(box, "{memory: none, cpu: none, cpuset: none, pids: none}")
    _, seen = running(divvy, out, "--slice", "1g.10gb")
    assert (seen["mem_bytes"], seen["cpu_milli"], seen["enforced"]) == (None, None, [])


@pytest.mark.root
def test_what_is_asked_for_goes_before_the_share(box, machine, out):
    divvy = limited(box, "{memory: share, cpu: share}")
    _, seen = running(divvy, out, "--slice", "1g.10gb", "--mem", "300M", "--cpus", "0.5")
    assert (seen["mem_bytes"], seen["cpu_milli"]) == (300 << 20, 500)


@pytest.mark.root
def test_a_daemon_that_was_killed_tells_the_same_limits(box, machine, out):
    divvy = limited(box, "{memory: share, cpu: share, pids: 300}")
    job, seen = running(divvy, out, "--slice", "1g.10gb")
    divvy.kill()
    divvy.start()
    harness.until(lambda: divvy.show(job)["enforced"] == seen["enforced"], "it is taken up again")
    again = divvy.show(job)
    assert all(again[key] == seen[key] for key in ("mem_bytes", "cpu_milli", "pids", "cpus"))


@pytest.mark.parametrize("words, said", [
    ("{memory: half}", "'half' is not one of auto, share or none"),
    ("{pids: 3}", "pids"), ("{cpus: near}", "did you mean 'cpu'"),
])
def test_limits_of_tasks_that_make_no_sense_are_refused(box, machine, words, said):
    box.divvy.configure(f"task_limits: {words}\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert said in box.divvy.said()


# ---- where nothing keeps jobs apart ----

def test_no_isolation_is_said_everywhere_with_its_reason(box, machine, out):
    box.divvy.configure("isolation: none\ncards: {default: {pool: queue}}\n")
    box.divvy.start()
    divvy = box.divvy
    why = "divvy.yaml says isolation: none"
    job, seen = running(divvy, out, "--slice", "1g.10gb")
    assert (seen["isolation"], seen["isolation_why"]) == ("none", why)
    assert divvy.json("status")["isolation_why"] == why
    assert f"none: {why}" in divvy.run("status").stdout
    assert f"isolation  none: {why}" in divvy.run("show", job).stdout
