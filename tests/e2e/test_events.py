"""event_hook: what the administrator's program is told, and that nobody waits for it."""
import pytest

from harness import until


@pytest.fixture
def told(box, machine):
    """told("script", limit): a running Divvy with that hook, and what it has written so far."""
    seen = box.folder / "seen"
    seen.touch()

    def start(script="", limit="1m"):
        hook = box.divvy.root / "etc/event"
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text(f'#!/bin/sh\necho "$DIVVY_EVENT $DIVVY_JOB_ID.$DIVVY_ATTEMPT $DIVVY_STATE '
                        f'$DIVVY_EXIT_STATUS [$DIVVY_SLICES] $SECRET" >> {seen}\n{script}\n')
        hook.chmod(0o755)
        box.divvy.configure(f"mode_hold: 0s\nevent_hook: {hook}\nevent_time: {limit}\n"
                            "cards: {default: {pool: queue, mode: auto}}\n")
        box.divvy.start()
        return box.divvy
    start.lines = lambda: sorted(seen.read_text().splitlines())
    start.hook = box.divvy.root / "etc/event"
    return start


def test_start_and_end_are_told(told, box):
    divvy = told()
    job = divvy.submit("--slice", "1g.10gb", "--output", box.folder / "log", "--", "sh", "-c", "exit 7",
                       env={"SECRET": "x"})
    address = divvy.wait(job)["addresses"][0]
    until(lambda: len(told.lines()) == 2, "both were told")
    assert told.lines() == [f"end {job}.1 failed 7 [{address}] ", f"start {job}.1 running  [{address}] "]


def test_a_job_that_never_ran_ends_too(told, box):
    divvy = told()
    divvy.submit("--gpus", "2", "--output", "/dev/null", "--", "sleep", "60")
    waits = divvy.submit("--gpus", "2", "--output", "/dev/null", "--", "true")
    divvy.run("cancel", waits)
    until(lambda: f"end {waits}.0 cancelled  [] " in told.lines(), "its end was told")


def test_fault_and_requeue_are_told(told, box):
    divvy = told()
    job = divvy.submit("--slice", "1g.10gb", "--requeue-on-fault", "--output", box.folder / "log", "--",
                       "sh", "-c", 'case "$DIVVY_SLICES" in gpu0*) until [ -e '
                       f'{box.folder}/lost ]; do sleep 0.05; done; exit 9;; esac')
    divvy.wait_state(job, "running")
    box.machine.sim("fault", "gpu0", "xid:79")
    until(lambda: divvy.json("gpus")["cards"][0]["health"] == "lost", "the card is lost")
    (box.folder / "lost").touch()
    assert divvy.wait(job, patience=60)["state"] == "completed"
    until(lambda: len(told.lines()) == 5, "all were told")
    assert [line.split()[0] for line in told.lines()] == ["end", "fault", "requeue", "start", "start"]


def test_nobody_waits_for_one_that_hangs(told, box):
    divvy = told("exec sleep 1000", limit="1s")
    jobs = [divvy.submit("--output", "/dev/null", "--", "true") for _ in range(12)]
    for job in jobs:
        assert divvy.wait(job)["state"] == "completed"
    until(lambda: "took too long and was killed" in divvy.said(), "the log tells")
    until(lambda: len(told.lines()) == 24, "each of them had its turn")


def test_one_that_fails_is_logged(told, box):
    divvy = told("exit 3")
    job = divvy.submit("--output", "/dev/null", "--", "true")
    until(lambda: f"(end of job {job}) ended with 3" in divvy.said(), "the log tells")


@pytest.mark.root
def test_a_program_that_others_could_change_is_not_run(told, box):
    divvy = told()
    told.hook.chmod(0o777)
    divvy.wait(divvy.submit("--output", "/dev/null", "--", "true"))
    until(lambda: "the event hook is not run" in divvy.said(), "the log tells")
    assert told.lines() == []
