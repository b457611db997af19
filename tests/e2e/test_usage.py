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


def test_how_busy_it_was_where_the_card_tells(box):
    """A whole card tells, a Hopper's slice tells, an Ampere's does not."""
    box.machine.up("a100-80gb:2", "h200-141gb:1")
    box.divvy.configure("mode_hold: 0s\n")
    divvy = box.divvy.start()
    for card in range(3):
        divvy.run("pool", f"gpu{card}", "queue")
        divvy.run("mode", f"gpu{card}", "whole" if card == 1 else "slices")
    for name, words in (("whole", ["--gpus", "1"]), ("ampere", ["--slice", "1g.10gb"]),
                        ("hopper", ["--slice", "2g.35gb"])):
        divvy.submit(*words, "--name", name, "--", PROBE, "--seconds", "60", "--load", "40")

    def held():
        return {key: line for key, line in lines(divvy, "card").items()
                if line["measured_card_hours"] > 4 / 3600 / 7 or key == "gpu0"}
    cards = harness.until(lambda: held() if len(held()) == 3 else None, "both were measured for a while")
    assert cards["gpu0"]["busy_card_hours"] is None and cards["gpu0"]["measured_card_hours"] == 0
    for card in ("gpu1", "gpu2"):
        busy = cards[card]["busy_card_hours"] / cards[card]["measured_card_hours"]
        assert 0.2 < busy <= 0.45, "40 %, but for the moment before the probe began"
        assert cards[card]["measured_card_hours"] <= cards[card]["seen_card_hours"]
    rows = {row["card"]: row for row in
            csv.DictReader(io.StringIO(divvy.run("usage", "--by", "card", "--csv").stdout))}
    assert rows["gpu0"]["busy_card_hours"] == "" and float(rows["gpu1"]["busy_card_hours"]) > 0
    drawn = [line.split() for line in divvy.run("usage", "--by", "card").stdout.splitlines()]
    told = {line[0]: line[-1] for line in drawn}
    assert told["CARD"] == "BUSY" and told["gpu0"] == "n/a" and told["gpu1"].endswith("%")
    for job in divvy.json("queue")["jobs"]:
        divvy.run("cancel", job["id"])
        divvy.wait(job["id"])
    past = {job["name"]: job["usage"] for job in divvy.json("history")["jobs"]}
    assert past["ampere"]["busy_card_hours"] is None and past["hopper"]["busy_card_hours"] > 0
    kept = lines(divvy, "account"), lines(divvy, "user"), lines(divvy, "profile")
    divvy.kill()
    divvy.start()
    assert (lines(divvy, "account"), lines(divvy, "user"), lines(divvy, "profile")) == kept


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
