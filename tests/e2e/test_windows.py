"""Maintenance that is planned: cards are free when it begins, and come back by themselves."""
import pytest

import harness
from harness import until


@pytest.fixture
def divvy(box, machine):
    box.divvy.configure("mode_hold: 0s\n")
    box.divvy.start()
    for card in range(2):
        box.divvy.run("pool", f"gpu{card}", "queue")
    return box.divvy


def submit(divvy, *words):
    return divvy.submit("--gpus", "1", *words, "--", "sleep", "3600")


def plan(divvy, *words):
    return divvy.json("maintenance", "plan", *words)["planned"]


def refused(divvy, *words, user=None):
    done = divvy.run("maintenance", *words, check=False, user=user)
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.smoke
def test_who_would_reach_into_it_does_not_start_there(divvy):
    before = submit(divvy, "--time", "2h")
    divvy.wait_state(before, "running")
    card = divvy.show(before)["addresses"][0]
    window, = plan(divvy, "now+1h", "now+3h", "--reason", "new riser")
    assert window["gpus"] == [0, 1] and window["reason"] == "new riser" and not window["begun"]
    assert [f"#{before} " in who for who in window["holders"]] == [True]
    endless = submit(divvy)
    reason = divvy.show(endless)["reason"]
    assert "maintenance begins there at" in reason and "no time limit" in reason
    long = submit(divvy, "--time", "90m")
    until(lambda: divvy.show(long)["expected_place"], "it knows when")
    shown = divvy.show(long)
    assert 2.9 * 3600e6 < shown["expected_start_wall_us"] - shown["submit_wall_us"] <= 3 * 3600e6
    short = submit(divvy, "--time", "50m")
    divvy.wait_state(short, "running")
    assert divvy.show(short)["addresses"][0] != card
    listed = divvy.run("maintenance").stdout
    assert "new riser" in listed and "No maintenance" not in listed
    assert divvy.show(before)["state"] == "running", "had its place before"


def test_it_is_kept_and_ends_by_itself(divvy):
    plan(divvy, "now", "now+6s", "gpu1")
    job = divvy.submit("--gpus", "2", "--time", "1m", "--", "true")
    assert "maintenance" in divvy.show(job)["reason"] or divvy.show(job)["expected_place"]
    divvy.kill()
    divvy.start()
    window, = divvy.json("maintenance")["planned"]
    assert window["begun"] and window["gpus"] == [1]
    assert divvy.wait(job)["state"] == "completed"
    until(lambda: not divvy.json("maintenance")["planned"], "it is forgotten")
    assert divvy.show(job)["start_wall_us"] >= window["until_wall_us"]


def planned_of(divvy, card):
    return divvy.json("gpus")["cards"][card]["planned"]


def test_cards_tell_what_is_planned_of_them(divvy):
    later, = plan(divvy, "now+2h", "now+3h")
    first = next(w for w in plan(divvy, "now", "now+1h", "gpu1") if w["gpus"] == [1])
    times = [{k: w[k] for k in ("from_wall_us", "until_wall_us")} for w in (first, later)]
    assert planned_of(divvy, 0) == times[1:] and planned_of(divvy, 1) == times
    rows = divvy.run("gpus").stdout.splitlines()
    assert "maintenance until" in rows[2] and "maintenance" not in rows[1]
    divvy.run("maintenance", "cancel", str(first["id"]))
    assert planned_of(divvy, 1) == times[1:]
    assert "maintenance" not in divvy.run("gpus").stdout


def test_a_plan_is_taken_back(divvy):
    window, = plan(divvy, "now", "now+1h")
    job = submit(divvy, "--time", "1m")
    assert divvy.show(job)["state"] == "pending"
    divvy.run("maintenance", "cancel", str(window["id"]))
    divvy.wait_state(job, "running")
    assert "no maintenance window" in refused(divvy, "cancel", str(window["id"]))


def test_what_cannot_be_planned_is_refused(divvy):
    assert "end after it begins" in refused(divvy, "plan", "now+2h", "now+1h")
    assert "no such card" in refused(divvy, "plan", "now", "now+1h", "gpu7")
    assert "over by now" in refused(divvy, "plan", "2020-01-01T00:00", "2020-01-02T00:00")
    assert "FROM" in refused(divvy, "plan", "soon", "now+1h")
    assert "cancel ID" in refused(divvy, "cancel", "first")
    assert divvy.json("maintenance")["planned"] == []


@pytest.mark.root
def test_only_operators_plan(divvy):
    assert "operator" in refused(divvy, "plan", "now", "now+1h", user=65534)
