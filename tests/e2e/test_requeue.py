"""A card that fails under a job: what becomes of the job, and who pays."""
import harness
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
