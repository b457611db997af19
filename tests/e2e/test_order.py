"""When a job may start: holds, begin times, deadlines, other jobs, arrays, requeue."""
import datetime
import os
import sqlite3
import time

import pytest

import harness
from harness import until

OTHER = 65534


@pytest.fixture
def out(box):
    folder = box.folder / "out"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def gated(out, name="go", then="exit 0"):
    """A command that ends once the file `name` is there."""
    return ["sh", "-c", f"until [ -e {out}/{name} ]; do sleep 0.02; done; {then}"]


def reason(divvy, job):
    return divvy.show(job)["reason"]


def refused(divvy, *words, user=None):
    done = divvy.run(*words, check=False, user=user)
    assert done.returncode != 0, done.stdout
    return done.stderr


# ---- holds ----

@pytest.mark.smoke
def test_a_held_job_waits_until_it_is_released(divvy):
    job = divvy.submit("--hold", "--", "true")
    assert "released" in reason(divvy, job) and divvy.show(job)["hold"] == "user"
    assert "held" in divvy.run("why", job).stdout
    divvy.kill()
    divvy.start()
    assert divvy.show(job)["state"] == "pending" and divvy.show(job)["hold"] == "user"
    divvy.run("release", job)
    assert divvy.wait(job)["state"] == "completed"
    assert "ended already" in refused(divvy, "release", job)


def test_a_waiting_job_can_be_held_and_a_running_one_not(divvy, out):
    first = divvy.submit("--gpus", "2", "--", *gated(out))
    divvy.wait_state(first, "running")
    second = divvy.submit("--gpus", "2", "--", "true")
    divvy.run("hold", second)
    assert "only jobs that wait can be held" in refused(divvy, "hold", first)
    (out / "go").touch()
    assert divvy.wait(first)["state"] == "completed"
    assert divvy.show(second)["state"] == "pending"
    divvy.run("release", second)
    assert divvy.wait(second)["state"] == "completed"
    assert "not held" in refused(divvy, "release", divvy.submit("--begin", "now+1h", "--", "true"))


@pytest.mark.root
def test_an_owner_cannot_release_what_an_operator_holds(divvy):
    job = divvy.submit("--hold", "--output", "/dev/null", "--", "true", user=OTHER)
    divvy.run("hold", job)
    assert divvy.show(job)["hold"] == "operator"
    divvy.run("hold", job, user=OTHER)
    assert "only operators" in refused(divvy, "release", job, user=OTHER)
    divvy.run("release", job)
    assert divvy.wait(job)["state"] == "completed"


# ---- begin and deadline ----

def test_a_job_begins_at_its_time(divvy):
    soon = divvy.submit("--begin", "now+1s", "--", "true")
    later = divvy.submit("--begin", "now+2h", "--", "true")
    assert "begins at" in reason(divvy, later)
    ended = divvy.wait(soon)
    assert ended["state"] == "completed"
    assert ended["start_wall_us"] >= ended["begin_wall_us"]
    divvy.kill()
    divvy.start()
    assert "begins at" in reason(divvy, later)


def test_a_deadline_that_cannot_be_kept_ends_the_job(divvy, out):
    blocker = divvy.submit("--gpus", "2", "--", *gated(out))
    divvy.wait_state(blocker, "running")
    job = divvy.submit("--gpus", "1", "--time", "1h", "--deadline", "now+3601s", "--", "true")
    ended = divvy.wait(job)
    assert ended["state"] == "cancelled" and "deadline" in ended["reason"], ended
    (out / "go").touch()


def test_a_job_without_a_limit_ends_at_its_deadline(divvy):
    job = divvy.submit("--deadline", "now+2s", "--", "sleep", "600")
    assert divvy.wait(job)["state"] == "timeout"


@pytest.mark.parametrize("words, said", [
    (("--begin", "25:00"), "no time"), (("--begin", "now+5"), "unit"),
    (("--begin", "2026-02-31"), "no time"), (("--deadline", "2001-01-01"), "passed"),
    (("--time", "2h", "--deadline", "now+1h"), "time limit"),
    (("--time", "2h", "--begin", "now+1h", "--deadline", "now+2h"), "--deadline"),
])
def test_times_that_cannot_be_are_refused(divvy, words, said):
    assert said in refused(divvy, "submit", *words, "--", "true")


# ---- dependencies ----

@pytest.mark.smoke
def test_a_chain_runs_in_order(divvy, out):
    jobs = [divvy.submit("--hold", "--output", "/dev/null", "--", "sh", "-c", f"echo 0 >> {out}/seen")]
    for i in range(1, 4):
        jobs.append(divvy.submit("--dependency", f"afterok:{jobs[-1]}", "--output", "/dev/null", "--",
                                 "sh", "-c", f"echo {i} >> {out}/seen"))
    assert f"waits for #{jobs[0]} to complete" in reason(divvy, jobs[1])
    divvy.kill()
    divvy.start()
    divvy.run("release", jobs[0])
    assert divvy.wait(jobs[-1])["state"] == "completed"
    assert (out / "seen").read_text().split() == ["0", "1", "2", "3"]


def test_what_can_never_be_met_is_cancelled_with_the_reason(divvy, out):
    fails = divvy.submit("--", *gated(out, then="exit 3"))
    ok = divvy.submit("--dependency", f"afterok:{fails}", "--", "true")
    chained = divvy.submit("--dependency", f"afterok:{ok}", "--", "true")
    stays = divvy.submit("--dependency", f"afterok:{fails}", "--keep-invalid", "--", "true")
    notok = divvy.submit("--dependency", f"afternotok:{fails}", "--", "true")
    either = divvy.submit("--dependency", f"afterok:{fails}?afterany:{fails}", "--", "true")
    (out / "go").touch()
    assert divvy.wait(fails)["state"] == "failed"
    assert divvy.wait(notok)["state"] == "completed"
    assert divvy.wait(either)["state"] == "completed"
    ended = divvy.wait(ok)
    assert ended["state"] == "cancelled" and f"afterok:{fails} can never be met" in ended["reason"]
    assert divvy.wait(chained)["state"] == "cancelled"
    assert divvy.show(stays)["state"] == "pending" and "never" in reason(divvy, stays)
    assert "can never be met" in refused(divvy, "submit", "--dependency", f"afterok:{fails}", "--", "true")


def test_after_waits_for_a_start_alone(divvy, out):
    first = divvy.submit("--hold", "--", *gated(out))
    second = divvy.submit("--dependency", f"after:{first}", "--", "true")
    divvy.run("release", first)
    assert divvy.wait(second)["state"] == "completed"
    assert divvy.show(first)["state"] == "running"
    (out / "go").touch()


def minutes_later(wall_us, minutes):
    return time.strftime("%H:%M", time.localtime(wall_us / 1e6 + 60 * minutes))


def test_after_may_want_minutes_more(divvy, out):
    """As told before and after a start, over a restart, and carried out by the clock."""
    first = divvy.submit("--hold", "--", *gated(out))
    script = out / "script"
    script.write_text(f"#!/bin/sh\n#SBATCH --dependency=after:{first}+10\n")
    second = divvy.submit(script)
    assert reason(divvy, second) == f"waits for #{first} to start and 10 minutes more"
    divvy.run("release", first)
    began = divvy.wait_state(first, "running")["start_wall_us"]
    says = f"begins 10 minutes after #{first} began: at {minutes_later(began, 10)}"
    assert reason(divvy, second) == says and says in divvy.run("queue").stdout.replace("\n", " ")
    divvy.kill()
    divvy.start()
    assert reason(divvy, second) == says and says in divvy.json("why", second)["summary"]
    divvy.kill()
    with sqlite3.connect(divvy.root / "var/lib/divvy/divvy.db") as store:  # as if ten minutes had passed but for two seconds
        store.execute("UPDATE attempts SET started_wall_us = ? WHERE job_id = ?",
                      (time.time_ns() // 1000 - 598_000_000, first))
    store.close()
    divvy.start()
    assert divvy.show(second)["state"] == "pending"
    assert divvy.wait(second)["state"] == "completed"
    assert divvy.show(first)["state"] == "running"
    (out / "go").touch()


def test_a_start_is_not_taken_back_by_a_requeue(divvy, out):
    """The first start is what counts, whatever becomes of it and of divvyd."""
    first = divvy.submit("--gpus", "1", "--", *gated(out))
    later = divvy.submit("--dependency", f"after:{first}+10", "--", "true")
    began = divvy.wait_state(first, "running")["start_wall_us"]
    says = f"begins 10 minutes after #{first} began: at {minutes_later(began, 10)}"
    divvy.run("requeue", first)
    harness.until(lambda: divvy.show(first)["attempt"] == 2, "it runs again")
    divvy.wait_state(first, "running")
    divvy.run("pool", "all", "off")
    divvy.run("requeue", first)
    divvy.wait_state(first, "pending")
    at_once = divvy.submit("--dependency", f"after:{first}", "--", "true")
    assert divvy.wait(at_once)["state"] == "completed"
    for _ in range(2):
        assert reason(divvy, later) == says
        divvy.kill()
        divvy.start()
    assert divvy.show(first)["state"] == "pending"
    divvy.run("cancel", first, later)


def test_minutes_count_from_the_end_of_what_never_started(divvy):
    first = divvy.submit("--hold", "--", "true")
    second = divvy.submit("--dependency", f"after:{first}+2", "--", "true")
    either = divvy.submit("--dependency", f"after:{first}+2?afternotok:{first}", "--", "true")
    divvy.run("cancel", first)
    assert f"2 minutes after #{first} was cancelled: at " in reason(divvy, second)
    assert divvy.wait(either)["state"] == "completed"
    divvy.run("cancel", second)


def test_of_a_singleton_one_runs_at_a_time(divvy, out):
    first = divvy.submit("--name", "one", "--", *gated(out))
    other = divvy.submit("--name", "two", "--dependency", "singleton", "--", "true")
    second = divvy.submit("--name", "one", "--dependency", "singleton", "--", *gated(out, "go2"))
    third = divvy.submit("--name", "one", "--dependency", "singleton", "--", "true")
    assert divvy.wait(other)["state"] == "completed"
    assert f"#{first}" in reason(divvy, second)
    (out / "go").touch()
    divvy.wait_state(second, "running")
    assert f"#{second}" in reason(divvy, third)
    (out / "go2").touch()
    assert divvy.wait(third)["state"] == "completed"


def test_dependencies_that_cannot_be_are_refused(divvy):
    job = divvy.submit("--hold", "--", "true")
    for words, said in (("afterok:99", "no job 99"), (f"afterok:{job}_3", "no task 3"),
                        ("before:1", "before"), (f"afterany:{job}+5", "afterany has none"),
                        (f"after:{job}+soon", "the minutes behind +"), ("afterok", "which job"), ("singleton:1", "alone"),
                        ("afterok:1,after:1?after:1", "one or the other"),
                        (",".join(["after:1"] * 65), "at most 64")):
        assert said in refused(divvy, "submit", "--dependency", words, "--", "true"), words


# ---- arrays ----

@pytest.mark.smoke
def test_an_array_runs_each_index_once(divvy, out):
    job = divvy.submit("--array", "1,3,5-9:2", "--output", out / "log-%A-%a", "--", "sh", "-c",
                       'echo $DIVVY_ARRAY_JOB_ID $DIVVY_ARRAY_INDEX $DIVVY_ARRAY_COUNT $DIVVY_JOB_ID')
    assert divvy.run("wait", job).returncode == 0
    for at, index in enumerate((1, 3, 5, 7, 9)):
        assert (out / f"log-{job}-{index}").read_text() == f"{job} {index} 5 {job + at}\n"
    assert divvy.run("logs", f"{job}_9").stdout == f"{job} 9 5 {job + 4}\n"
    assert divvy.show(f"{job}_7")["id"] == job + 3


def test_an_array_keeps_its_limit(divvy, out):
    job = divvy.submit("--array", "0-9%2", "--output", "/dev/null", "--", "sh", "-c",
                       f"touch {out}/r$DIVVY_ARRAY_INDEX; sleep 0.05; ls {out} | grep -c r >> {out}/seen;"
                       f" rm {out}/r$DIVVY_ARRAY_INDEX")
    assert divvy.run("wait", job).returncode == 0
    counts = [int(n) for n in (out / "seen").read_text().split()]
    assert len(counts) == 10 and max(counts) <= 2


def test_a_waiting_array_is_shown_in_one_line_and_cancelled_in_parts(divvy, out):
    job = divvy.submit("--array", "0-99%4", "--output", "/dev/null", "--", *gated(out))
    for i in range(4):
        divvy.wait_state(f"{job}_{i}", "running")
    shown = divvy.run("queue").stdout
    assert f"{job}_[4-99%4]" in shown and f"{job}_3" in shown and len(shown.splitlines()) == 6, shown
    assert len(divvy.json("queue")["jobs"]) == 100
    divvy.run("cancel", f"{job}_7", f"{job}_[90-99]")
    assert f"{job}_[4-6,8-89%4]" in divvy.run("queue").stdout
    divvy.run("hold", f"{job}_4")
    divvy.kill()
    divvy.start()
    divvy.run("cancel", f"{job}_0")
    divvy.wait_state(f"{job}_5", "running")
    assert divvy.show(f"{job}_4")["hold"] == "user"
    assert "no task 200" in refused(divvy, "cancel", f"{job}_200")
    assert "no array" in refused(divvy, "show", f"{job + 1}_1")
    divvy.run("cancel", job)
    until(lambda: not divvy.json("queue")["jobs"], "all of it has ended", patience=60)


def test_others_wait_for_all_of_an_array_or_one_task(divvy, out):
    array = divvy.submit("--array", "0-3", "--output", "/dev/null", "--", "sh", "-c",
                         f"until [ -e {out}/go$DIVVY_ARRAY_INDEX ]; do sleep 0.02; done")
    one = divvy.submit("--dependency", f"afterok:{array}_2", "--", "true")
    whole = divvy.submit("--dependency", f"afterok:{array}", "--", "true")
    (out / "go2").touch()
    assert divvy.wait(one)["state"] == "completed"
    assert divvy.show(whole)["state"] == "pending"
    for i in (0, 1, 3):
        (out / f"go{i}").touch()
    assert divvy.wait(whole)["state"] == "completed"


def test_ten_thousand_tasks_are_one_spec(divvy, box):
    job = divvy.submit("--array", "0-9999", "--hold", "--output", "/dev/null", "--", "true",
                       env={"BIG": "x" * 50000})
    assert f"{job}_[0-9999]" in divvy.run("queue").stdout
    store = box.divvy.root / "var/lib/divvy/divvy.db"
    wal = box.divvy.root / "var/lib/divvy/divvy.db-wal"
    assert store.stat().st_size + wal.stat().st_size < 12 << 20
    divvy.run("cancel", job)
    assert divvy.run("queue").stdout.count("\n") <= 1


@pytest.mark.parametrize("words, said", [
    ("5-3", "backwards"), ("a", "array"), ("0-99999", "at most"), ("1:2", "range"), ("", "array"),
    ("0-3%0", "limit"),
])
def test_arrays_that_cannot_be_are_refused(divvy, words, said):
    assert said in refused(divvy, "submit", "--array", words, "--", "true")
    assert "submit" in refused(divvy, "run", "--array", "0-1", "--", "true")


# ---- requeue ----

@pytest.mark.smoke
def test_a_requeued_job_begins_anew_at_its_old_place(divvy, out):
    job = divvy.submit("--gpus", "2", "--output", out / "log", "--", "sh", "-c",
                       f"echo $DIVVY_ATTEMPT; [ $DIVVY_ATTEMPT = $DIVVY_JOB_ID.2 ] || sleep 600")
    divvy.wait_state(job, "running")
    waits = divvy.submit("--gpus", "2", "--", "true")
    divvy.run("requeue", job)
    ended = divvy.wait(job)
    assert (ended["state"], ended["attempt"]) == ("completed", 2)
    after = divvy.wait(waits)
    assert after["start_wall_us"] >= ended["end_wall_us"], "it was at its old place"
    assert "ended already" in refused(divvy, "requeue", job)


def test_what_does_not_run_or_must_not_is_not_requeued(divvy, out):
    waits = divvy.submit("--hold", "--", "true")
    assert "only jobs that run" in refused(divvy, "requeue", waits)
    once = divvy.submit("--no-requeue", "--", *gated(out))
    divvy.wait_state(once, "running")
    assert "--no-requeue" in refused(divvy, "requeue", once)
    (out / "go").touch()
    assert divvy.wait(once)["attempt"] == 1
    assert "opposite" in refused(divvy, "submit", "--no-requeue", "--requeue-on-fault", "--", "true")


@pytest.mark.root
def test_only_the_owner_and_operators_may(divvy):
    job = divvy.submit("--hold", "--", "true")
    for verb in ("hold", "release", "requeue"):
        assert "only they and operators" in refused(divvy, verb, job, user=OTHER)
