"""The machine's CPUs and memory: what running jobs were promised is never more than there is."""
import os

import pytest

import harness
from harness import until

GIB = 1 << 30


def counting(box, node="{memory: 1G, cpus: 8}", more="task_limits: {memory: none, cpu: none}\n"):
    box.divvy.configure(f"mode_hold: 0s\nnode: {node}\n{more}cards: {{default: {{pool: queue}}}}\n")
    box.divvy.start()
    return box.divvy


def sleeper(divvy, *words):
    return divvy.submit(*words, "--", "sleep", "1000")


@pytest.mark.smoke
def test_two_jobs_that_exceed_the_memory_run_one_after_the_other(box, machine):
    divvy = counting(box)
    first = sleeper(divvy, "--mem", "700M", "--time", "1h")
    divvy.wait_state(first, "running")
    second = sleeper(divvy, "--slice", "1g.10gb", "--mem", "700M", "--time", "1h")
    small = sleeper(divvy, "--mem", "200M", "--cpus", "1", "--time", "10m")
    divvy.wait_state(small, "running")
    divvy.kill()
    divvy.start()
    seen = divvy.show(second)
    assert seen["state"] == "pending" and seen["needs_mem_bytes"] == 700 << 20, seen
    until(lambda: divvy.show(second)["expected_start_wall_us"], "its start is told")
    for said in (divvy.show(second)["reason"], divvy.run("why", second).stdout,
                 divvy.run("queue").stdout.replace("\n", " ")):
        assert "memory" in said, said
    reason = divvy.show(second)["reason"]
    assert "waits for 700 MiB of the machine's memory: 124 MiB of 1.0 GiB is free" in reason, reason
    assert f"#{first} (" in reason and "has 700 MiB until " in reason, reason
    assert divvy.json("status")["node"] == {
        "mem_bytes": GIB, "mem_used_bytes": 900 << 20, "cpu_milli": 8000, "cpu_used_milli": 1000}
    assert "900 MiB of 1.0 GiB of memory, 1 of 8 CPUs given to jobs" in divvy.run("status").stdout
    assert "700 MiB of memory of the machine" in divvy.run("show", second).stdout
    divvy.run("cancel", first)
    divvy.wait_state(second, "running")


def test_cpus_are_counted_too_and_tasks_each(box, machine):
    divvy = counting(box)
    first = sleeper(divvy, "--slice", "1g.10gb:3", "--cpus", "2", "--time", "1h")
    divvy.wait_state(first, "running")
    assert divvy.show(first)["needs_cpu_milli"] == 6000
    second = sleeper(divvy, "--cpus", "3", "--time", "1h")
    until(lambda: "waits for 3 of the machine's CPUs: 2 of 8 are free" in
          (divvy.show(second)["reason"] or ""), "it says what it waits for")
    divvy.run("cancel", first)
    divvy.wait_state(second, "running")


@pytest.mark.parametrize("words, said", [
    (("--mem", "2G"), "this machine has 1.0 GiB of memory for jobs, and this asks for 2.0 GiB with --mem"),
    (("--slice", "1g.10gb:3", "--mem", "400M"), "asks for 1.2 GiB: 3 tasks with --mem 400 MiB"),
    (("--cpus", "9"), "this machine has 8 CPUs for jobs, and this asks for 9 with --cpus"),
])
def test_more_than_the_machine_has_is_refused(box, machine, words, said):
    divvy = counting(box)
    done = divvy.run("submit", *words, "--", "true", check=False)
    assert done.returncode != 0 and said in " ".join(done.stderr.split()), done.stderr
    assert divvy.json("queue", "--all")["jobs"] == []


def test_what_is_off_is_not_counted(box, machine):
    divvy = counting(box, "{memory: off, cpus: off}")
    jobs = [sleeper(divvy, "--mem", "100T", "--cpus", "60000") for _ in range(2)]
    for job in jobs:
        divvy.wait_state(job, "running")
    assert set(divvy.json("status")["node"].values()) == {None}
    assert "given to jobs" not in divvy.run("status").stdout


def test_the_machine_itself_is_the_default(box, machine):
    box.divvy.configure("cards: {default: {pool: queue}}\n")
    box.divvy.start()
    node = box.divvy.json("status")["node"]
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert node["cpu_milli"] == 1000 * len(os.sched_getaffinity(0))
    assert 0.94 < node["mem_bytes"] / whole <= 0.95
    done = box.divvy.run("submit", "--mem", str(whole), "--", "true", check=False)
    assert done.returncode != 0 and "of memory for jobs" in done.stderr


@pytest.mark.root
def test_who_says_nothing_counts_for_his_part_of_the_cards(box, machine):
    divvy = counting(box, "{memory: 8G, cpus: 14}", "")
    job = sleeper(divvy, "--slice", "1g.10gb")
    divvy.wait_state(job, "running")
    seen = divvy.show(job)
    if "memory" not in (seen["enforced"] or ()):
        pytest.skip("no memory controller here")
    assert seen["needs_mem_bytes"] == 8 * GIB // 16
    assert seen["needs_cpu_milli"] in (999, 1000)  # a seventh of half, in whole parts of a million
    assert seen["mem_bytes"] == GIB  # the least that a task gets is not counted


@pytest.mark.parametrize("node, said", [
    ("{memory: much}", "memory must be auto, off or a size"),
    ("{cpus: 0}", "cpus must be auto, off or a number"), ("{memory: 10}", "memory must be"),
    ("{mem: 4G}", "memory"),
])
def test_a_machine_that_makes_no_sense_is_refused(box, machine, node, said):
    box.divvy.configure(f"node: {node}\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert said in box.divvy.said()
