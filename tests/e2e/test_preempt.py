"""A class that pushes others out: who goes, where to, and what is kept."""
import pytest

import harness

pytestmark = pytest.mark.root

CONFIG = """
mode_hold: 0s
kill_wait: 1s
cards:
  default: {pool: queue, mode: auto}
qos:
  urgent: {priority: 10, preempts: [spare, scrap]}
  spare: {preempt: requeue}
  scrap: {preempt: cancel}
"""


@pytest.fixture
def divvy(box, machine):
    box.divvy.configure(CONFIG)
    box.divvy.start()
    harness.until(lambda: box.divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    return box.divvy


def submit(divvy, qos, *asks, command=("sleep", "1000")):
    return divvy.submit(*(asks or ("--gpus", "1")), "--qos", qos, "--output", "/dev/null", "--",
                        *command)


def running(divvy, qos, *asks):
    job = submit(divvy, qos, *asks)
    divvy.wait_state(job, "running")
    return job


def test_the_youngest_goes_back_to_its_place_and_comes_again(divvy):
    old, young = running(divvy, "spare"), running(divvy, "spare")
    later = submit(divvy, "spare")
    urgent = running(divvy, "urgent")
    assert divvy.json("show", old)["state"] == "running"
    waits = divvy.json("show", young)
    assert waits["state"] == "pending" and waits["attempt"] == 1
    divvy.run("cancel", urgent)
    again = divvy.wait_state(young, "running")  # before the one that came later
    assert again["attempt"] == 2
    assert divvy.json("show", later)["state"] == "pending"


def test_what_is_to_be_cancelled_ends_as_preempted(divvy):
    scrap = running(divvy, "scrap", "--gpus", "2")
    running(divvy, "urgent")
    ended = divvy.wait(scrap)
    assert ended["state"] == "preempted" and "preempted for job" in ended["reason"]


def test_nobody_is_stopped_for_a_class_that_may_not(divvy):
    first, second = running(divvy, "spare"), running(divvy, "spare")
    normal = submit(divvy, "normal")
    urgent = submit(divvy, "urgent", "--gpus", "2", command=("true",))
    assert divvy.wait(urgent)["state"] == "completed"  # both went for it
    for job in first, second:
        assert divvy.wait_state(job, "running")["attempt"] == 2
    assert divvy.json("show", normal)["state"] == "pending"  # and pushes nobody out


def test_a_daemon_killed_meanwhile_stops_no_second_one(divvy):
    old, young = running(divvy, "spare"), running(divvy, "spare")
    urgent = submit(divvy, "urgent")
    divvy.kill()
    divvy.start()
    divvy.wait_state(urgent, "running")
    assert divvy.json("show", old)["attempt"] == 1
    assert divvy.json("show", old)["state"] == "running"
    divvy.wait_state(young, "pending")
