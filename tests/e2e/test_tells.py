"""--on-start and --on-end: the owner is told once, by a job of its own that nobody waits for."""
import os

import pytest

from harness import until

TELL = 'echo "$DIVVY_EVENT $DIVVY_JOB_ID $DIVVY_STATE ${DIVVY_EXIT_STATUS:-} $(id -u) $SECRET"'


def told(divvy, name):
    return [job for job in divvy.json("queue", "--all")["jobs"] if job["name"] == name]


def test_start_and_end_are_told_behind_the_jobs_output(divvy, box):
    log = box.folder / "log-100%"
    job = divvy.submit("--slice", "1g.10gb", "--output", str(log).replace("%", "%%"), "--on-start", TELL,
                       "--on-end", TELL, "--", "sh", "-c", "echo works; exit 7", env={"SECRET": "x"})
    assert divvy.wait(job)["state"] == "failed"
    until(lambda: len(log.read_text().splitlines()) == 3, "both are told")
    uid = os.getuid()
    assert sorted(log.read_text().splitlines()) == sorted(
        ["works", f"start {job} running  {uid} x", f"end {job} failed 7 {uid} x"])


def test_the_slice_does_not_wait_for_it(divvy, box):
    first = divvy.submit("--slice", "7g.80gb:2", "--spread", "--output", box.folder / "log", "--on-end",
                         "sleep 50", "--", "true")
    divvy.wait(first)
    then = divvy.submit("--slice", "7g.80gb:2", "--spread", "--output", "/dev/null", "--", "true")
    assert divvy.wait(then)["state"] == "completed"
    hook = told(divvy, f"end-of-{first}")
    assert [job["state"] for job in hook] == ["running"]
    divvy.run("cancel", hook[0]["id"])


def test_one_that_never_ran_tells_its_end(divvy, box):
    job = divvy.submit("--hold", "--output", box.folder / "log", "--on-end", TELL, "--", "true")
    divvy.run("cancel", job)
    until(lambda: (box.folder / "log").exists() and (box.folder / "log").read_text(), "it is told")
    assert (box.folder / "log").read_text().startswith(f"end {job} cancelled")


def test_a_daemon_that_is_killed_tells_once(divvy, box):
    log = box.folder / "log"
    job = divvy.submit("--output", log, "--on-end", TELL, "--", "sh", "-c",
                       f"until [ -e {box.folder}/go ]; do sleep 0.05; done")
    divvy.wait_state(job, "running")
    divvy.kill()
    (box.folder / "go").touch()
    divvy.start()
    assert divvy.wait(job)["state"] == "completed"
    until(lambda: log.read_text(), "it is told")
    divvy.kill()
    divvy.start()
    assert len(told(divvy, f"end-of-{job}")) == 1 and len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize("words, said", [(("--on-end", ""), "--on-end"), (("--on-start", "x" * 5000), "4096")])
def test_a_command_that_cannot_be_is_refused(divvy, words, said):
    done = divvy.run("submit", *words, "--", "true", check=False)
    assert done.returncode != 0 and said in done.stderr


def test_append_keeps_what_is_there(divvy, box):
    log = box.folder / "log"
    log.write_text("before\n")
    log.chmod(0o666)
    assert divvy.wait(divvy.submit("--append", "--output", log, "--", "echo", "after"))["state"] == "completed"
    assert log.read_text() == "before\nafter\n"
