"""Shares, limits and classes: who goes first, who waits, and who is refused."""
import harness
import pytest

ALICE, BOB = 41001, 41002

pytestmark = pytest.mark.root

CONFIG = f"""
mode_hold: 0s
cards:
  default: {{pool: queue, mode: auto}}
accounts:
  lab: {{share: 1}}
  nlp: {{parent: lab, users: ["{ALICE}"], share: 1}}
  vision: {{parent: lab, users: ["{BOB}"], share: 1}}
"""


@pytest.fixture
def start(box, machine):
    """Starts divvyd with CONFIG and more of it."""
    def with_more(more=""):
        box.divvy.configure(CONFIG + more)
        box.divvy.start()
        harness.until(lambda: box.divvy.json("status")["cards_queue"] == 2, "both cards are seen")
        return box.divvy
    return with_more


def submit(divvy, user, *words, command=("sleep", "1000"), **more):
    return divvy.submit(*words, "--output", "/dev/null", "--", *command, user=user, **more)


def block(divvy):
    """A job that has both cards, so that others can be lined up behind it."""
    job = submit(divvy, None, "--gpus", "2", "--account", "lab")
    divvy.wait_state(job, "running")
    return job


def terms(divvy, job):
    return {term["what"]: term["text"] for term in divvy.json("why", job)["terms"]}


def test_two_accounts_of_equal_shares_take_turns_job_by_job(start):
    divvy = start()
    first = block(divvy)
    jobs = {submit(divvy, user, "--gpus", "1", command=("true",)): user
            for user in (ALICE, BOB) for _ in range(6)}
    divvy.run("cancel", first)
    ended = [divvy.wait(job) for job in jobs]
    assert {job["state"] for job in ended} == {"completed"}
    lead = 0
    for job in sorted(ended, key=lambda job: job["start_wall_us"]):
        lead += 1 if jobs[job["id"]] == ALICE else -1
        assert abs(lead) <= 3, "one of them ran ahead"


def test_shares_shows_the_tree(start):
    divvy = start()
    job = submit(divvy, ALICE, "--gpus", "1")
    divvy.wait_state(job, "running")
    rows = {(row["account"], row["user"]): row for row in divvy.json("shares")["shares"]}
    assert rows["nlp", None]["parent"] == "lab" and rows["nlp", None]["depth"] == 1
    assert rows["nlp", str(ALICE)]["running"] == rows["lab", None]["running"] == 1
    assert rows["nlp", None]["share"] == 0.5
    assert rows["nlp", str(ALICE)]["used_card_us"] > 0
    drawn = divvy.run("shares", user=BOB).stdout.splitlines()
    assert drawn[0].split()[:3] == ["ACCOUNT", "/", "USER"]
    assert [line.split()[0] for line in drawn[1:]] == ["lab", "nlp", str(ALICE), "vision"]


def test_a_limit_is_waited_for_and_names_itself(start):
    divvy = start("user_limits: {cards: 1}\n")
    first = submit(divvy, ALICE, "--gpus", "1", "--time", "1h")
    divvy.wait_state(first, "running")
    second = submit(divvy, ALICE, "--gpus", "1")
    other = submit(divvy, BOB, "--gpus", "1")
    divvy.wait_state(other, "running")
    why = divvy.json("why", second)["summary"]
    assert f"waits for a limit: {ALICE} on this server may have 1 whole card at a time" in why
    assert f"when #{first} ends at the latest" in why
    divvy.run("cancel", first)
    divvy.wait_state(second, "running")


def test_what_a_limit_forbids_for_ever_is_refused(start):
    divvy = start("user_limits: {cards: 1, submits: 2/1h, max_time: 2h}\ndefault_time: 1h\n")
    refused = divvy.run("submit", "--gpus", "2", "--", "true", user=ALICE, check=False)
    assert refused.returncode != 0
    assert "may have 1 whole card at a time" in refused.stderr
    refused = divvy.run("submit", "--gpus", "1", "--time", "3h", "--", "true", user=ALICE,
                        check=False)
    assert "may run a job for 2h at most" in refused.stderr
    for _ in range(2):
        submit(divvy, ALICE, "--gpus", "1", command=("true",))
    refused = divvy.run("submit", "--gpus", "1", "--", "true", user=ALICE, check=False)
    assert "may hand in 2 jobs in 1h and has handed in 2; the next one in" in refused.stderr
    submit(divvy, BOB, "--gpus", "1", command=("true",))


def test_a_card_costs_what_the_file_says(start):
    divvy = start("charge: {A100-SXM4-80GB: 0.25}\n")
    job = submit(divvy, ALICE, "--gpus", "1")
    divvy.wait_state(job, "running")
    rows = {row["user"]: row for row in divvy.json("shares")["shares"]}
    assert rows[str(ALICE)]["running_ppm"] == 250000


QOS = f"""
qos:
  urgent: {{priority: 10, users: ["{BOB}"]}}
  spare: {{charge: 0.5, limits: {{running: 1}}}}
"""


def test_a_class_goes_first_for_those_who_may_use_it(start):
    divvy = start(QOS)
    first = block(divvy)
    plain = submit(divvy, ALICE, "--gpus", "2", command=("true",))
    urgent = submit(divvy, BOB, "--gpus", "2", "--qos", "urgent", command=("true",))
    assert terms(divvy, urgent)["class"] == "urgent, tier 10"
    assert terms(divvy, plain)["class"] == "normal, tier 0"
    assert "level fairness" in terms(divvy, plain)["share"]
    divvy.run("cancel", first)
    plain, urgent = divvy.wait(plain), divvy.wait(urgent)
    assert urgent["qos"] == "urgent" and urgent["start_wall_us"] < plain["start_wall_us"]
    refused = divvy.run("submit", "--qos", "urgent", "--", "true", user=ALICE, check=False)
    assert f"{ALICE} may not use the class urgent in nlp; these work: normal, spare" \
        in refused.stderr
    unknown = divvy.run("submit", "--qos", "rush", "--", "true", user=ALICE, check=False)
    assert f"there is no class 'rush'; {ALICE} may use: normal, spare" in unknown.stderr


def test_usage_classes_and_limits_outlive_a_killed_daemon(start):
    divvy = start(QOS)
    spent = submit(divvy, ALICE, "--gpus", "1", command=("sleep", "0.2"))
    divvy.wait(spent)
    first = submit(divvy, BOB, "--gpus", "1", "--qos", "spare")
    divvy.wait_state(first, "running")
    second = submit(divvy, BOB, "--gpus", "1", "--qos", "spare")
    used = {row["user"]: row["used_card_us"] for row in divvy.json("shares")["shares"]}
    divvy.kill()
    divvy.start()
    harness.until(lambda: divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    again = {row["user"]: row["used_card_us"] for row in divvy.json("shares")["shares"]}
    assert 0 < again[str(ALICE)] <= used[str(ALICE)]
    assert divvy.show(second)["qos"] == "spare"
    assert "class spare may run 1 job at a time and runs 1" in divvy.json("why", second)["summary"]
    divvy.run("cancel", first)
    divvy.wait_state(second, "running")


def test_the_order_of_the_file_is_what_counts(start):
    divvy = start("order: {share: 0, size: 1}\n")
    first = block(divvy)
    small = submit(divvy, ALICE, "--gpus", "1")
    large = submit(divvy, BOB, "--gpus", "2")
    assert terms(divvy, small)["points"] == "0.5000 = size 1 x 0.5000"
    assert terms(divvy, large)["points"] == "1.0000 = size 1 x 1.0000"
    divvy.run("cancel", first)


def test_the_history_tells_the_class(start):
    divvy = start(QOS)
    job = submit(divvy, BOB, "--gpus", "1", "--qos", "urgent", command=("true",))
    divvy.wait(job)
    assert [past["qos"] for past in divvy.json("history")["jobs"]] == ["urgent"]


def test_a_part_is_kept_for_short_and_interactive_jobs(start):
    divvy = start("keep: {part: 0.5, for: 10m}\n")
    long = submit(divvy, ALICE, "--gpus", "1", "--time", "1h")
    divvy.wait_state(long, "running")
    second = submit(divvy, BOB, "--gpus", "1", "--time", "1h", command=("true",))
    why = divvy.json("why", second)
    assert "everything over 10m (the rest is kept for shorter and attached jobs) may have the " \
        "compute of 1 cards at a time, has 1, and this asks for 1" in why["summary"]
    assert any("--time of at most 10m" in way for way in why["sooner"])
    short = submit(divvy, BOB, "--gpus", "1", "--time", "10m", command=("true",))
    assert divvy.wait(short)["state"] == "completed"
    seen = divvy.run("run", "--gpus", "1", "--", "sh", "-c", "echo $DIVVY_JOB_ID")
    assert seen.stdout.strip().isdigit(), "who sits before it does not wait"
    refused = divvy.run("submit", "--gpus", "2", "--time", "1h", "--", "true", check=False)
    assert "it could never start but as one of those, with --time of at most 10m" in refused.stderr
    divvy.kill()
    divvy.start()
    harness.until(lambda: divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    assert "everything over 10m" in divvy.json("why", second)["summary"]
    divvy.run("cancel", long)
    assert divvy.wait(second)["state"] == "completed"


def test_how_far_expected_starts_were_off_is_kept(start):
    divvy = start()
    assert divvy.json("status")["expected_starts"]["count"] == 0
    first = submit(divvy, ALICE, "--gpus", "2", "--time", "30m")
    divvy.wait_state(first, "running")
    second = submit(divvy, BOB, "--gpus", "2", command=("true",))
    dropped = submit(divvy, BOB, "--gpus", "2")
    harness.until(lambda: divvy.show(second)["expected_start_wall_us"], "its start is expected")
    divvy.kill()
    divvy.start()
    harness.until(lambda: divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    divvy.run("cancel", dropped)
    divvy.run("cancel", first)
    divvy.wait(second)
    kept = divvy.json("status")["expected_starts"]
    assert kept["count"] == 1 and kept["late"] == 0, "one came, some half an hour too early"
    assert 1700e6 < kept["mean_off_us"] <= 1800e6 and kept["p90_off_us"] == 3600e6
    assert "1 expected and come" in divvy.run("status").stdout


def test_why_names_who_is_ahead_and_who_has_the_cards(start):
    divvy = start()
    first = submit(divvy, BOB, "--gpus", "2", "--name", "wide", "--time", "1h")
    divvy.wait_state(first, "running")
    ahead = [submit(divvy, ALICE, "--gpus", "1", "--name", f"j{i}") for i in range(5)]
    last = submit(divvy, ALICE, "--slice", "1g.10gb")
    told = terms(divvy, last)
    assert told["order"] == f"number 6 in line, behind 5 of {ALICE}"
    assert told["ahead"].startswith(f"#{ahead[0]} ({ALICE}, j0, 1 whole card")
    assert f", #{ahead[2]} ({ALICE}, j2, 1 whole card" in told["ahead"]
    assert told["ahead"].endswith(" and 2 more")
    assert terms(divvy, ahead[0])["order"] == "first in line"
    assert told["gpu0"].startswith("until ") and f": #{first} of {BOB} (wide), " in told["gpu0"]
    assert "ahead" not in terms(divvy, ahead[0])


def test_the_queue_is_added_up_by_account_and_user(start):
    divvy = start()
    first = submit(divvy, BOB, "--gpus", "2", "--time", "1h")
    divvy.wait_state(first, "running")
    submit(divvy, ALICE, "--gpus", "1", "--array", "0-4")
    lines = {line["key"]: line for line in divvy.json("queue", "--by", "account")["lines"]}
    assert lines["vision"]["running"] == 1 and lines["vision"]["compute_ppm"] == 2000000
    assert lines["nlp"]["waiting"] == 5 and lines["nlp"]["next_start_wall_us"] is not None
    (mine,) = divvy.json("queue", "--by", "user", "--user", ALICE)["lines"]
    assert mine["key"] == str(ALICE) and mine["waiting"] == 5
    drawn = divvy.run("queue", "--by", "account").stdout.splitlines()
    assert drawn[0].split()[:3] == ["ACCOUNT", "RUNNING", "WAITING"] and drawn[1].split()[0] == "nlp"


def test_a_name_that_nobody_has_is_no_empty_list(start):
    divvy = start()
    for verb in ("queue", "history"):
        refused = divvy.run(verb, "--account", "visoin", check=False)
        assert refused.returncode != 0
        assert "there is no account 'visoin' here; did you mean vision?" in refused.stderr
        assert divvy.run(verb, "--account", "vision", "--user", "root").returncode == 0
        refused = divvy.run(verb, "--user", "no-such-user", "--json", check=False)
        assert refused.returncode != 0 and "there is no user 'no-such-user' here" in refused.stderr
    assert "--by is account or user" in divvy.run("queue", "--by", "card", check=False).stderr
