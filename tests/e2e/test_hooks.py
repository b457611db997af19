"""Prolog and epilog: what the administrator runs around every attempt."""
import os
import signal
import subprocess

import pytest

from harness import PATIENCE, PROGRAMS, until


@pytest.fixture
def hooks(box, machine):
    """A running Divvy with the hooks that a test writes: hooks(prolog="exit 3")."""
    box.hooks = box.divvy.root / "etc/hooks"

    def start(limit="1m", **scripts):
        box.hooks.mkdir(parents=True, exist_ok=True)
        text = f"mode_hold: 0s\nprolog_time: {limit}\ncards: {{default: {{pool: queue, mode: auto}}}}\n"
        for name, script in scripts.items():
            path = box.hooks / name
            path.write_text("#!/bin/sh\n" + script + "\n")
            path.chmod(0o755)
            text += f"{name}: {path}\n"
        box.divvy.configure(text)
        box.divvy.start()
        return box.divvy
    return start


def quarantined(divvy):
    return [card["quarantine"] for card in divvy.json("gpus")["cards"] if card["quarantine"]]


def submit(divvy, box, *command, ask=("--slice", "1g.10gb"), env=None):
    return divvy.submit(*ask, "--output", box.folder / "log", "--", *command, env=env)


def test_they_run_around_the_job_with_an_environment_of_their_own(hooks, box):
    seen = box.folder / "seen"
    say = (f'echo "$DIVVY_HOOK $DIVVY_JOB_ID $DIVVY_SLICES $CUDA_VISIBLE_DEVICES [$SECRET] $(id -u)"'
           f' >> {seen}')
    divvy = hooks(prolog=say, epilog=say)
    job = submit(divvy, box, "sh", "-c", f"echo job >> {seen}", env={"SECRET": "x"})
    ended = divvy.wait(job)
    assert ended["state"] == "completed", ended
    place = ended["place"][0]
    told = f"{job} {ended['addresses'][0]} {place['uuid']} [] {os.getuid()}"
    assert seen.read_text().splitlines() == [f"prolog {told}", "job", f"epilog {told}"]
    assert quarantined(divvy) == []


def test_a_failed_prolog_takes_its_card_away_and_the_job_goes_elsewhere(hooks, box):
    divvy = hooks(prolog='case "$DIVVY_SLICES" in gpu0*) echo no fan >&2; exit 3;; esac')
    job = submit(divvy, box, "true")
    ended = divvy.wait(job)
    assert ended["state"] == "completed" and ended["attempt"] == 2
    assert ended["addresses"][0].startswith("gpu1/")
    words = quarantined(divvy)
    assert len(words) == 1 and "ended with 3: no fan" in words[0]
    until(lambda: not list((divvy.root / "var/lib/divvy/jobs").iterdir()), "no folder is left")


def test_a_prolog_that_always_fails_ends_the_tries(hooks, box):
    divvy = hooks(prolog="exit 1")
    without = submit(divvy, box, "true", ask=())
    ended = divvy.wait(without)
    assert ended["state"] == "failed" and "ended with 1" in ended["exit"]["text"]
    assert quarantined(divvy) == []
    with_card = submit(divvy, box, "true")
    until(lambda: len(quarantined(divvy)) == 2, "both cards are out")
    assert divvy.wait_state(with_card, "pending")["attempt"] == 2


def test_a_failed_epilog_takes_the_card_away_and_leaves_the_job_its_end(hooks, box):
    divvy = hooks(epilog="exit 4")
    job = submit(divvy, box, "sh", "-c", "exit 7")
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit_status"]) == ("failed", 7)
    assert "ended with 4" in quarantined(divvy)[0]


def test_one_that_hangs_is_killed(hooks, box):
    divvy = hooks(limit="1s", epilog="sleep 1000")
    job = submit(divvy, box, "true")
    assert divvy.wait(job)["state"] == "completed"
    assert "took too long" in quarantined(divvy)[0]


def test_a_cancel_during_the_prolog_is_no_failure(hooks, box):
    begun = box.folder / "begun"
    divvy = hooks(prolog=f"touch {begun}; sleep 1000")
    job = submit(divvy, box, "true")
    until(begun.exists, "the prolog runs")
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    assert quarantined(divvy) == []


def test_divvy_run_finds_the_supervisor_that_follows_one_killed_in_the_prolog(hooks, box):
    """The second one has begun before the client looks again: to divvyd the job runs by then."""
    begun = box.folder / "begun"
    divvy = hooks(prolog=f"[ -e {begun} ] || {{ echo $PPID $$ > {begun}; exec sleep 1000; }}")
    client = subprocess.Popen([PROGRAMS / "divvy", "run", "--slice", "1g.10gb", "--", "sh", "-c",
                               "echo hello; exit 5"], env=divvy.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
    until(lambda: begun.exists() and begun.read_text().endswith("\n"), "the prolog runs")
    for pid in begun.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    said, _ = client.communicate(timeout=PATIENCE)
    assert (said, client.returncode) == ("hello\n", 5)


@pytest.mark.root
def test_a_program_that_others_could_change_is_not_run(hooks, box):
    divvy = hooks(prolog=f"touch {box.folder}/ran")
    (box.hooks / "prolog").chmod(0o777)
    job = submit(divvy, box, "true", ask=())
    assert divvy.wait(job)["state"] == "failed"
    assert not (box.folder / "ran").exists()
