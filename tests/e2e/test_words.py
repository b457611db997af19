"""What queue, why and show say of the same job: the same, and nothing that is not so."""
import csv
import io
import time

import harness
import pytest

ALICE, BOB, CAROL = 41001, 41002, 41003

pytestmark = pytest.mark.root

CONFIG = f"""
mode_hold: 0s
cards:
  default: {{pool: queue, mode: auto}}
accounts:
  nlp: {{users: ["{ALICE}", "{CAROL}"]}}
  vision: {{users: ["{BOB}"]}}
qos:
  normal: {{preempt: requeue}}
  urgent: {{priority: 10, preempts: [normal]}}
"""


@pytest.fixture
def divvy(box):
    """One card, three users in two accounts."""
    box.machine.up("a100-80gb")
    box.divvy.configure(CONFIG)
    box.divvy.start()
    harness.until(lambda: box.divvy.json("status")["cards_queue"] == 1, "the card is seen")
    return box.divvy


def submit(divvy, user, *words, command=("sleep", "1000")):
    return divvy.submit("--gpus", "1", *words, "--output", "/dev/null", "--", *command, user=user)


def terms(divvy, job):
    return {term["what"]: term["text"] for term in divvy.json("why", job)["terms"]}


def clock(wall_us):
    return time.strftime("%H:%M", time.localtime(wall_us / 1e6))


def test_why_counts_and_names_jobs_of_other_accounts_that_go_first(divvy):
    runs = submit(divvy, ALICE, "--time", "1h")
    divvy.wait_state(runs, "running")
    mine = submit(divvy, ALICE, "--name", "mine", "--time", "1h")
    beside = submit(divvy, CAROL, "--name", "beside", "--time", "1h")
    other = submit(divvy, BOB, "--name", "other", "--time", "1h")
    last = submit(divvy, ALICE, "--name", "last", "--time", "1h")
    told = terms(divvy, last)
    assert told["order"] == (f"number 4 in line, behind 1 of {ALICE}, 1 of others in nlp "
                             "and 1 of other accounts")
    places = [told["ahead"].index(words) for words in
              (f"#{other} ({BOB} of vision, other, 1 whole card, about ",
               f"#{beside} ({CAROL}, beside, ", f"#{mine} ({ALICE}, mine, ")]
    assert places == sorted(places), "in the order in which they go"
    ahead = divvy.json("why", last)["ahead"]
    assert (ahead["own"], ahead["account"], ahead["others"]) == (1, 1, 1)
    assert [one["job"] for one in ahead["first"]] == [other, beside, mine]
    assert ahead["first"][0]["expected_start_wall_us"] == pytest.approx(
        divvy.show(other)["expected_start_wall_us"], abs=60e6)
    first = terms(divvy, other)
    assert first["order"] == "first in line" and "ahead" not in first
    assert "vision has level fairness (nothing used)" in first["share"]
    assert f"#{mine}" in divvy.show(last)["reason"], "it has an earlier start on the same card"


def test_the_start_is_the_same_clock_in_queue_why_and_show(divvy):
    runs = submit(divvy, ALICE, "--time", "1h")
    divvy.wait_state(runs, "running")
    waits = submit(divvy, BOB, "--time", "1h")
    at = clock(harness.until(lambda: divvy.show(waits)["expected_start_wall_us"], "a start"))
    assert f"starts about {at} on gpu0" in divvy.run("queue").stdout
    assert terms(divvy, waits)["start"].startswith(f"about {at}, in ")


def test_a_start_after_the_deadline_is_none(divvy):
    runs = submit(divvy, ALICE, "--time", "3h")
    divvy.wait_state(runs, "running")
    late = submit(divvy, BOB, "--time", "1h", "--deadline", "now+90m")
    told = divvy.show(late)
    by = clock(told["deadline_wall_us"] - 3600e6)
    assert told["expected_start_wall_us"] is None
    assert f"it must start by {by}, or is cancelled then" in told["reason"]
    assert "starts about" not in divvy.run("queue").stdout
    assert f"must start by {by}" in divvy.json("why", late)["summary"]
    assert "start" not in terms(divvy, late)


def test_who_is_held_is_not_in_line(divvy):
    runs = submit(divvy, ALICE, "--time", "1h")
    divvy.wait_state(runs, "running")
    submit(divvy, BOB, "--time", "1h")
    held = submit(divvy, ALICE, "--hold")
    assert divvy.json("why", held)["summary"].startswith(f"#{held} waits: held until it is released")
    told = terms(divvy, held)
    assert told["order"] == "not in line as long as that is so"
    assert "ahead" not in told and "kept for" not in told
    assert divvy.json("why", held)["ahead"] is None


def test_a_job_that_was_pushed_out_says_by_whom_when_and_how_often(divvy):
    pushed = submit(divvy, ALICE, "--name", "pushed", "--time", "2h")
    divvy.wait_state(pushed, "running")
    for times in (1, 2):
        urgent = submit(divvy, BOB, "--qos", "urgent", "--name", "rush", "--time", "1h")
        divvy.wait_state(urgent, "running")
        told = divvy.wait_state(pushed, "pending")
        at = clock(told["preempted"]["wall_us"])
        words = f"{'2 times, the last ' if times == 2 else ''}at {at} for #{urgent} of {BOB}"
        assert told["preempted"] == {"times": times, "by": urgent, "user": str(BOB),
                                     "wall_us": told["preempted"]["wall_us"]}
        assert terms(divvy, pushed)["preempted"] == words
        assert f"; preempted {words}" in divvy.run("queue").stdout
        assert f"preempted    {words}" in divvy.run("show", pushed).stdout
        divvy.kill()
        divvy.start()
        assert divvy.show(pushed)["preempted"]["times"] == times, "it outlives a daemon"
        divvy.run("cancel", urgent)
        divvy.wait_state(pushed, "running")
    assert divvy.show(pushed)["preempted"]["times"] == 2
    assert divvy.show(urgent)["preempted"] is None
    gone = [job for job in divvy.json("history")["jobs"] if job["id"] == pushed]
    assert [job["preempted"]["times"] for job in gone] == [1, 1]
    assert gone[-1]["reason"] == f"preempted for #{urgent}"
    assert [line.split(",")[13] for line in divvy.run("history", "--csv").stdout.splitlines()
            if line.startswith(f"{pushed},")] == ["preempted", "preempted"]


def test_all_of_it_fits_in_eighty_columns(divvy):
    pushed = submit(divvy, ALICE, "--name", "a-name-of-some-length", "--time", "2h")
    divvy.wait_state(pushed, "running")
    urgent = submit(divvy, BOB, "--qos", "urgent", "--name", "rush", "--time", "1h")
    divvy.wait_state(urgent, "running")
    many = submit(divvy, ALICE, "--array", "0-99%4", "--name", "another-long-name")
    submit(divvy, CAROL, "--hold", "--name", "held", "--time", "1h")
    for words in (["queue"], ["queue", "--all"], ["queue", "--by", "account"], ["why", pushed],
                  ["why", many], ["show", pushed], ["shares"], ["usage"], ["history"]):
        drawn = harness.on_terminal([harness.PROGRAMS / "divvy", *words], divvy.env)
        assert not [line for line in drawn.splitlines() if len(line) > 80], drawn


def test_names_that_a_table_might_choke_on_come_back_from_the_csv(divvy):
    names = ["a,b", 'say "hi"', "na\u00efve \u2603", "=1+1", " leading", "a;b"]
    jobs = [submit(divvy, ALICE, "--name", name, command=("true",)) for name in names]
    for job in jobs:
        divvy.wait(job)
    rows = list(csv.DictReader(io.StringIO(divvy.run("history", "--csv").stdout)))
    assert {int(row["id"]): row["name"] for row in rows} == dict(zip(jobs, names))
    assert not [row for row in rows if None in row or None in row.values()]
    refused = divvy.run("submit", "--name", "two\nlines", "--", "true", check=False)
    assert refused.returncode == 2 and "no printable UTF-8" in refused.stderr


def test_with_nothing_to_tell_json_and_csv_are_whole_all_the_same(divvy):
    assert divvy.json("queue") == {"jobs": []}
    assert divvy.json("queue", "--by", "account") == {"by": "account", "lines": []}
    assert divvy.json("history") == {"jobs": []}
    for by in "user", "account", "profile", "card":
        told = divvy.json("usage", "--by", by, "--month", "2025-01")
        assert told == {"by": by, "from": "2025-01-01", "to": "2025-02-01", "lines": []}
        table = divvy.run("usage", "--by", by, "--month", "2025-01", "--csv").stdout.splitlines()
        assert len(table) == 1 and table[0].startswith(f"{by},parts,asked_card_hours,")
    assert [row["level_fairness"] for row in divvy.json("shares")["shares"]] == [None, None]
    assert len(divvy.run("history", "--csv").stdout.splitlines()) == 1
