"""What follows when a job holds cards and does nothing with them."""
import stat

import pytest

import harness

PROBE = harness.PROGRAMS / "divvy-probe"
CONFIG = "mode_hold: 0s\ncards: {default: {pool: queue, mode: auto}}\n"


@pytest.fixture
def start(box, machine):
    """Starts divvyd with these rules: start("after: 1s, then: end")."""
    def with_rules(rules, more=""):
        box.divvy.configure(f"{CONFIG}idle: {{{rules}}}\n{more}")
        box.divvy.start()
        harness.until(lambda: box.divvy.json("status")["cards_queue"] == 2, "both cards are seen")
        return box.divvy
    return with_rules


def submit(divvy, *command, ask=("--slice", "1g.10gb"), more=()):
    return divvy.submit(*ask, *more, "--output", "/dev/null", "--", *command)


def warned(divvy, job):
    def there():
        seen = divvy.show(job)
        return seen if (seen["reason"] or "").startswith("idle for ") else None
    return harness.until(there, f"job {job} is warned", every=0.2)


def test_a_job_without_a_process_is_warned_and_ended_and_one_with_work_is_not(start):
    divvy = start("after: 3s, grace: 2s, then: end")
    busy = submit(divvy, "sh", "-c", f"{PROBE} --seconds 600 & while :; do :; done")
    idle = submit(divvy, "sleep", "600")
    words = warned(divvy, idle)["reason"]
    assert "no process on what it holds; it is ended in" in words
    assert "idle for" in divvy.run("queue").stdout and "idle for" in divvy.run("why", idle).stdout
    ended = divvy.wait(idle)
    assert ended["state"] == "cancelled"
    assert ended["reason"].startswith("cancelled: it was idle for ")
    assert divvy.show(busy)["state"] == "running" and divvy.show(busy)["reason"] is None
    divvy.run("cancel", busy)


def test_a_warning_alone_ends_nobody_and_is_an_event(start, box):
    seen = box.folder / "events"
    hook = box.folder / "hook"
    hook.write_text(f'#!/bin/sh\necho "$DIVVY_EVENT $DIVVY_JOB_ID $DIVVY_REASON" >> {seen}\n')
    hook.chmod(stat.S_IRWXU)
    divvy = start("after: 1s, grace: 0s", f"event_hook: {hook}\n")
    job = submit(divvy, "sleep", "600")
    assert "unless" not in warned(divvy, job)["reason"]
    harness.until(lambda: seen.exists() and f"idle {job} idle for" in seen.read_text(), "it is told")
    quiet = submit(divvy, "sleep", "600")
    warned(divvy, quiet)
    assert divvy.show(job)["state"] == "running"
    assert seen.read_text().count(f"idle {job} ") == 1, "once"


def test_a_whole_card_tells_itself_whether_anything_is_done(start):
    divvy = start("after: 2s, grace: 1s, then: end")
    busy = submit(divvy, PROBE, "--load", "40", "--seconds", "600", ask=("--gpus", "1"))
    idle = submit(divvy, PROBE, "--seconds", "600", ask=("--gpus", "1"))
    ended = divvy.wait(idle)
    assert ended["state"] == "cancelled" and "what it holds has nothing to do" in ended["reason"]
    assert divvy.show(busy)["state"] == "running" and divvy.show(busy)["reason"] is None
    divvy.run("cancel", busy)


def test_a_slice_tells_itself_where_its_card_can(box):
    box.machine.up("h100-80gb-sxm:1")
    box.divvy.configure(f"{CONFIG}idle: {{after: 3s, grace: 1s, then: end, cpu: 99}}\n")
    box.divvy.start()
    busy = submit(box.divvy, PROBE, "--load", "40", "--seconds", "600")
    idle = submit(box.divvy, "sh", "-c", f"{PROBE} --seconds 600 & while :; do :; done")
    ended = box.divvy.wait(idle)
    assert ended["state"] == "cancelled" and "what it holds has nothing to do" in ended["reason"]
    assert box.divvy.show(busy)["state"] == "running" and box.divvy.show(busy)["reason"] is None
    box.divvy.run("cancel", busy)


def test_a_slice_whose_processes_sleep_is_idle_by_their_cpu_time(start):
    divvy = start("after: 2s, grace: 1s, then: end, cpu: 5")
    job = submit(divvy, PROBE, "--seconds", "600")
    ended = divvy.wait(job)
    assert ended["state"] == "cancelled"
    assert "its processes do next to nothing" in ended["reason"]


def test_back_to_the_queue_where_that_was_not_forbidden(start):
    divvy = start("after: 1s, grace: 1s, then: requeue")
    job = submit(divvy, "sh", "-c", '[ "$DIVVY_JOB_ID" ] && [ -e again ] && exit 0; touch again; sleep 600')
    once = submit(divvy, "sleep", "600", more=("--no-requeue",))
    assert "goes back to the queue in" in warned(divvy, job)["reason"]
    ended = divvy.wait(job)
    assert ended["state"] == "completed" and ended["attempt"] == 2
    assert divvy.wait(once)["state"] == "cancelled"


def test_an_exempt_class_is_left_alone(start):
    divvy = start("after: 1s, grace: 0s, then: end, exempt: [long]", "qos: {long: {}}\n")
    spared = submit(divvy, "sleep", "600", more=("--qos", "long"))
    divvy.wait_state(spared, "running")
    ended = submit(divvy, "sleep", "600")
    assert divvy.wait(ended)["state"] == "cancelled"
    assert divvy.show(spared)["state"] == "running" and divvy.show(spared)["reason"] is None


def test_a_restart_begins_the_clock_anew(start, box):
    """What divvyd did not see is held against nobody."""
    divvy = start("after: 4s, grace: 600s, then: end")
    job = submit(divvy, "sleep", "600")
    warned(divvy, job)
    divvy.kill()
    divvy.start()
    harness.until(lambda: divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    assert divvy.show(job)["reason"] is None, "nothing is known of the time before"
    assert warned(divvy, job)["state"] == "running"


def test_what_cannot_be_meant_is_refused(box, machine):
    for rules, text in (("grace: 1m", "after is missing"),
                        ("after: 0s", "after must be 1s or more"),
                        ("after: 1m, then: kill", "then: 'kill'"),
                        ("after: 1m, exempt: [rush]", "exempt: there is no class 'rush'"),
                        ("after: 1m, cpu: 101", "cpu")):
        box.divvy.configure(f"{CONFIG}idle: {{{rules}}}\n")
        done = harness.run(harness.PROGRAMS / "divvyd", env={**box.divvy.env}, check=False)
        assert done.returncode != 0 and text in done.stderr, (rules, done.stderr)
