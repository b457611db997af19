"""A card that fails under a job: what becomes of the job, and who pays."""
import json
import os
import signal
import sqlite3

import pytest

from harness import until


def failing(divvy, box, *words):
    """A job that fails once its card is lost; on another card it is done at once."""
    job = divvy.submit("--slice", "1g.10gb", *words, "--output", box.folder / "log", "--", "sh", "-c",
                       'case "$DIVVY_SLICES" in gpu0*) while [ ! -e ' + str(box.folder / "lost") +
                       ' ]; do sleep 0.05; done; exit 9;; esac')
    divvy.wait_state(job, "running")
    box.machine.sim("fault", "gpu0", "xid:79")
    until(lambda: divvy.json("gpus")["cards"][0]["health"] == "lost", "the card is lost")
    (box.folder / "lost").touch()
    return job


def test_a_job_that_asked_for_it_is_tried_on_another_card(divvy, box):
    job = failing(divvy, box, "--requeue-on-fault")
    ended = divvy.wait(job, patience=60)
    assert (ended["state"], ended["attempt"]) == ("completed", 2)
    assert ended["addresses"][0].startswith("gpu1/")


def test_a_job_that_did_not_fails_with_its_own_status(divvy, box):
    job = failing(divvy, box)
    ended = divvy.wait(job, patience=60)
    assert (ended["state"], ended["exit_status"], ended["attempt"]) == ("failed", 9, 1)


# ---- the machine, not a card ----

def charge(box, job, attempt):
    with sqlite3.connect(box.divvy.root / "var/lib/divvy/divvy.db") as store:
        return store.execute("SELECT charge_ppm_us FROM attempts WHERE job_id = ? AND attempt = ?",
                             (job, attempt)).fetchone()[0]


def supervisor(divvy, job, attempt):
    started = divvy.root / f"var/lib/divvy/jobs/{job}.{attempt}/started"
    return json.loads(started.read_text())["supervisor"]["pid"]


def test_a_job_that_is_ended_with_its_machine_is_lost_and_costs_nothing(divvy, box):
    job = divvy.submit("--slice", "1g.10gb", "--", "sleep", "1000")
    divvy.wait_state(job, "running")
    os.kill(supervisor(divvy, job, 1), signal.SIGTERM)  # as the service manager does
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit"]["kind"]) == ("lost", "interrupted")
    assert "the machine shut down" in divvy.run("show", job).stdout
    assert charge(box, job, 1) == 0
    assert not any(card["quarantine"] for card in divvy.json("gpus")["cards"])


def test_one_that_asked_for_it_is_tried_again(divvy, box):
    job = divvy.submit("--slice", "1g.10gb", "--requeue-on-fault", "--", "sh", "-c",
                       '[ "$DIVVY_ATTEMPT" = "$DIVVY_JOB_ID.2" ] && exit 5; exec sleep 1000')
    divvy.wait_state(job, "running")
    os.kill(supervisor(divvy, job, 1), signal.SIGTERM)
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit_status"], ended["attempt"]) == ("failed", 5, 2)
    assert charge(box, job, 1) == 0 < charge(box, job, 2)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_power_cut_under_a_job(divvy, box, cancelled):
    """Supervisor, daemon and job are gone at once, and `started` is of another boot."""
    job = divvy.submit("--slice", "1g.10gb", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    divvy.wait_state(job, "running")
    pid = supervisor(divvy, job, 1)
    if cancelled:
        divvy.run("cancel", job)
        divvy.wait_state(job, "ending")
    divvy.kill()
    os.kill(pid, signal.SIGKILL)
    for process in divvy.processes():
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    started = divvy.root / f"var/lib/divvy/jobs/{job}.1/started"
    told = json.loads(started.read_text())
    told["boot_id"] = "00000000-0000-4000-8000-000000000000"
    started.write_text(json.dumps(told))
    divvy.start()
    ended = divvy.wait(job)
    assert ended["state"] == ("cancelled" if cancelled else "lost")
    assert cancelled or "the machine went down under it" in divvy.run("show", job).stdout
    assert charge(box, job, 1) == 0
