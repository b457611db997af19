"""What was handed out, and whether it was used."""
import csv
import io
import time

import harness

PROBE = harness.PROGRAMS / "divvy-probe"


def lines(divvy, by):
    return {line["key"]: line for line in divvy.json("usage", "--by", by)["lines"]}


def test_a_days_sum_is_the_sum_of_the_attempts(divvy):
    jobs = [divvy.submit("--slice", profile, "--name", name, "--time", "1h", "--", "sleep", "0.3")
            for name, profile in (("a", "1g.10gb"), ("b", "3g.40gb"))]
    for job in jobs:
        assert divvy.wait(job)["state"] == "completed"
    past = {job["name"]: job for job in divvy.json("history")["jobs"]}
    assert set(past) == {"a", "b"}
    profiles = lines(divvy, "profile")
    for name, profile, share in (("a", "1g.10gb", 1 / 7), ("b", "3g.40gb", 4 / 8)):
        usage = past[name]["usage"]
        ran = (past[name]["end_wall_us"] - past[name]["start_wall_us"]) / 3.6e9
        assert abs(usage["held_card_hours"] - share * ran) < 0.2 * share * ran + 2e-6
        assert abs(usage["asked_card_hours"] - share) < 1e-5, "an hour was asked"
        assert profiles[profile]["held_card_hours"] == usage["held_card_hours"]
        assert profiles[profile]["parts"] == 1
    (user,) = lines(divvy, "user").values()
    assert user["parts"] == 2
    assert abs(user["held_card_hours"] - sum(p["usage"]["held_card_hours"] for p in past.values())) < 2e-6


def test_a_slice_without_a_process_is_idle(divvy):
    """sleep holds a slice and uses none of it; the probe is on it all the time."""
    idle = divvy.submit("--slice", "1g.10gb", "--name", "idle", "--", "sleep", "60")
    busy = divvy.submit("--slice", "1g.10gb", "--name", "busy", "--", PROBE, "--seconds", "60")
    for job in (idle, busy):
        divvy.wait_state(job, "running")

    def seen():
        card = {line["key"]: line for line in divvy.json("usage", "--by", "card")["lines"]}
        return sum(line["seen_card_hours"] for line in card.values()) > 2 * 4.5 / 7 / 3600
    harness.until(seen, "two snapshots were taken")
    for job in (idle, busy):
        divvy.run("cancel", job)
        divvy.wait(job)
    past = {job["name"]: job["usage"] for job in divvy.json("history")["jobs"]}
    assert past["idle"]["idle_card_hours"] == past["idle"]["seen_card_hours"] > 0
    assert past["busy"]["idle_card_hours"] < past["busy"]["seen_card_hours"]


def test_what_runs_counts_up_to_now(divvy):
    job = divvy.submit("--slice", "7g.80gb", "--", "sleep", "60")
    divvy.wait_state(job, "running")
    first = lines(divvy, "profile")["7g.80gb"]
    harness.until(lambda: lines(divvy, "profile")["7g.80gb"]["held_card_hours"] > first["held_card_hours"],
                  "more was held")
    assert first["parts"] == 0, "it has not come back yet"
    assert divvy.json("history")["jobs"] == []


def test_history_is_a_trace_for_a_replay(divvy):
    job = divvy.submit("--slice", "2g.20gb", "--name", 'a "b", c', "--", "true")
    divvy.wait(job)
    card = divvy.submit("--gpus", "1", "--time", "90s", "--", "false")
    divvy.wait(card)
    rows = list(csv.DictReader(io.StringIO(divvy.run("history", "--csv").stdout)))
    assert [row["id"] for row in rows] == [str(job), str(card)]
    assert rows[0]["name"] == 'a "b", c' and rows[0]["slice"] == "2g.20gb:1"
    assert rows[1]["gpus"] == "1" and rows[1]["limit"] == "90" and rows[1]["state"] == "failed"


def test_a_restart_loses_none_of_it(divvy):
    job = divvy.submit("--slice", "1g.10gb", "--", "true")
    divvy.wait(job)
    before = divvy.json("usage"), divvy.json("history")
    divvy.kill()
    divvy.start()
    assert (divvy.json("usage"), divvy.json("history")) == before


def test_other_months_are_other_months(divvy):
    job = divvy.submit("--slice", "1g.10gb", "--", "true")
    divvy.wait(job)
    month = time.strftime("%Y-%m")
    assert divvy.json("usage", "--month", month)["lines"]
    assert divvy.json("usage", "--month", "2001-01")["lines"] == []
    assert divvy.json("history", "--month", "2001-01")["jobs"] == []


def test_refusals(divvy):
    for words, text in ((("--month", "2026-13"), "is no month"),
                        (("--by", "colour"), "user, account, profile, card"),
                        (("--from", "2026-11-30", "--to", "2026-11-01"), "--to is before --from"),
                        (("--month", "2026-10", "--from", "2026-10-01"), "--month says all")):
        refused = divvy.run("usage", *words, check=False)
        assert refused.returncode == 2 and text in refused.stderr
