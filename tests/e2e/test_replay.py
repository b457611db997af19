"""divvy replay: what another policy, or other cards, would have done."""
import json
import subprocess

import pytest

import harness

DIVVY = harness.PROGRAMS / "divvy"

TRACE = """user,account,submitted,started,ended,slice,limit
alice,nlp,0,0,3600,3g.40gb,2h
bob,cv,1,1,3600,3g.40gb,2h
alice,nlp,2,2,3600,1g.10gb,1h
bob,cv,3,3,3600,7g.80gb,2h
"""


def replay(*words, stdin=None):
    return subprocess.run([DIVVY, "replay", *map(str, words)], input=stdin, text=True,
                          capture_output=True, timeout=60)


def figures(*words, stdin=None):
    done = replay(*words, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["policies"]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def test_two_policies_stand_side_by_side(trace, tmp_path):
    policy = tmp_path / "new.yaml"
    policy.write_text("accounts:\n  nlp: {share: 3, inside: las}\n")
    week, new, strict = figures(trace, "--node", "a100-80gb:2", "--half-life", "7d",
                                "--policy", policy, "--policy", policy, "--strict")
    assert week["policy"] == "defaults --half-life 7d"
    assert new["policy"] == str(policy) and strict["policy"] == f"{policy} --strict"
    assert week["jobs"] == new["jobs"] == 4
    assert week["wait_max_s"] == 3597  # the 7g waits for the first card that empties
    assert 0 < week["compute"] < 1 and week["recuts"] > 0
    table = replay(trace, "--node", "a100-80gb:2")
    assert table.stdout.splitlines()[1].split()[:3] == ["POLICY", "WAIT", "P95"]


def test_what_if_these_cards_were_cut(trace, tmp_path):
    layout = tmp_path / "cut.yaml"
    layout.write_text("cards:\n  - card: gpu0\n    slices: {3g.40gb: 2}\n")
    before, after, again = figures(trace, "--node", "a100-80gb", "--policy", "/dev/null",
                                   "--policy", "/dev/null", "--layout", layout, "--policy", "/dev/null")
    assert after["policy"] == f"/dev/null --layout {layout}"
    assert {**again, "policy": None} == {**before, "policy": None}
    assert before["never"] == 0 and before["recuts"] > 0
    assert after["never"] == 2 and after["recuts"] == 0  # kept as it is: no 1g, no 7g
    assert after["jobs"] == 2


def test_preemption_shows_in_the_figures():
    jobs = "0 36000 4 1\n" + "".join(f"{i} 60 1 1\n" for i in range(7200, 7210))
    calm, las = figures("-", "--gpus", "4", "--inside", "las", "--policy", "/dev/null",
                        "--inside", "las", "--preempt", "service", stdin=jobs)
    assert calm["preemptions"] == 0 and las["preemptions"] > 0
    assert las["wait_s"] < calm["wait_s"] / 10


def test_sacct_comes_through_standard_input():
    sacct = ("JobID|User|Account|Submit|Start|End|Timelimit|AllocTRES\n"
             "7|alice|nlp|2026-11-01T10:00:00|2026-11-01T10:00:10|2026-11-01T11:00:10|2:00:00"
             "|cpu=8,gres/gpu=2\n")
    one, = figures("-", "--gpus", "2", stdin=sacct)
    assert one["jobs"] == 1 and one["completion_s"] == 3600


@pytest.mark.parametrize("words, says", [
    ((), "which trace?"),
    (("TRACE",), "on which cards?"),
    (("TRACE", "--gpus", "3"), "none of the 4 jobs of"),
    (("TRACE", "--node", "a100-80"), "did you mean a100-80gb?"),
    (("TRACE", "--gpus", "3", "--node", "a30"), "either --node or --gpus"),
    (("TRACE", "--node", "a30", "--preempt", "age"), "'age' is neither service nor shares"),
    (("TRACE", "--node", "a30", "--policy", "/nowhere.yaml"), "/nowhere.yaml"),
    (("TRACE", "--node", "a30", "--half-life", "1d", "--half-life", "7d"),
     "--half-life twice for one policy: --policy FILE between them makes two to compare"),
    (("TRACE", "--node", "a30", "--layout", "a.yaml", "--layout", "b.yaml"), "--layout twice for one policy"),
    (("TRACE", "--gpus", "3", "--layout", "a.yaml"), "cards that are only counted have no layout"),
])
def test_what_cannot_be_is_refused(trace, words, says):
    done = replay(*(trace if word == "TRACE" else word for word in words))
    assert done.returncode in (1, 2) and says in done.stderr, done.stderr
    assert not done.stdout


def test_our_own_history_is_a_trace(divvy, tmp_path):
    for seconds in "0.2", "0.3":
        divvy.run("run", "--slice", "1g.10gb", "--time", "10m", "--", "sleep", seconds)
    csv = divvy.run("history", "--csv").stdout
    one, = figures("-", "--node", "a100-80gb", stdin=csv)
    assert one["jobs"] == 2 and one["completion_s"] > 0.2


def test_what_is_kept_for_attached_jobs_is_theirs_in_a_replay_too(divvy, tmp_path):
    """Who was attached goes into the history, and from there, in both forms, into the replay."""
    flag = tmp_path / "both"
    tmp_path.chmod(0o777)
    batch = divvy.submit("--gpus", "1", "--time", "2h", "--output", "/dev/null", "--",
                         "sh", "-c", f"until test -e {flag}; do sleep 0.05; done; sleep 1")
    divvy.run("run", "--gpus", "1", "--time", "2h", "--", "touch", flag)
    divvy.wait(batch)
    table, told = divvy.run("history", "--csv").stdout, divvy.json("history")
    assert {job["attached"] for job in told["jobs"]} == {True, False}
    kept = tmp_path / "kept.yaml"
    kept.write_text("keep: {part: 0.5, for: 1h}\n")

    def wait(text):
        figure, = figures("-", "--gpus", "2", "--policy", kept, stdin=text)
        return figure["wait_max_s"]
    twice = table + "".join(line + "\n" for line in table.splitlines() if f"{batch}," in line[:9])
    assert wait(table) == wait(json.dumps(told)) == 0, "one of each fits"
    assert wait(twice) > 0.5, "the second that nobody sits before waits for the first"
    assert wait(table.replace(",yes,", ",no,")) > 0.5


def test_what_jobs_asked_of_the_machine_counts_in_a_replay_too(divvy, tmp_path):
    """Two that fit on the cards and not into the memory: in the history, and from there, in both forms."""
    divvy.wait(divvy.submit("--gpus", "1", "--time", "2h", "--mem", "300M", "--cpus", "1.5", "--", "sleep", "1"))
    table, told = divvy.run("history", "--csv").stdout, divvy.json("history")
    assert table.splitlines()[1].endswith(",no,314572800,1.5")
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text("node: {memory: 500M}\n")
    large.write_text("node: {memory: 700M, cpus: 3}\n")

    def wait(text, policy):
        figure, = figures("-", "--gpus", "2", "--policy", policy, stdin=text)
        return figure["wait_max_s"]
    twice = table + table.splitlines()[1] + "\n"
    both = json.dumps({"jobs": told["jobs"] * 2})
    assert wait(twice, large) == wait(both, large) == 0
    assert wait(twice, small) > 0.5 and wait(both, small) > 0.5
