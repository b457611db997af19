"""From a request to a finished job."""
import os
import pathlib
import time

import pytest

import harness

PROBE = harness.PROGRAMS / "divvy-probe"


@pytest.fixture
def out(box):
    """A folder that any user may write outputs to."""
    folder = box.folder / "out"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.smoke
def test_a_job_runs_on_the_slice_it_asked_for(divvy, out):
    job = divvy.submit("--slice", "2g.20gb", "--name", "train", "--output", out / "log", "--",
                       PROBE, "--mem", "6G", "--seconds", "0")
    ended = divvy.wait(job)
    assert ended["state"] == "completed", ended
    assert ended["name"] == "train" and ended["exit_status"] == 0
    assert [piece["profile"] for piece in ended["place"]] == ["2g.20gb"]
    uuid = ended["place"][0]["uuid"]
    assert uuid.startswith("MIG-")
    seen = (out / "log").read_text()
    assert uuid in seen, "the probe saw another device than the job was given"
    assert seen.count("MIG-") == seen.count(uuid), "the probe saw a device that is not the job's"


@pytest.mark.smoke
def test_a_failed_job_keeps_its_exit(divvy):
    job = divvy.submit("--", "sh", "-c", "exit 3")
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit_status"]) == ("failed", 3)
    assert divvy.run("wait", job, check=False).returncode == 3


def test_a_job_without_gpus_gets_none(divvy, out):
    job = divvy.submit("--output", out / "log", "--", "sh", "-c",
                       'echo "[$CUDA_VISIBLE_DEVICES] $DIVVY_JOB_ID"')
    assert divvy.wait(job)["state"] == "completed"
    assert (out / "log").read_text() == f"[] {job}\n"


def test_a_job_gets_the_environment_of_its_submitter(divvy, out):
    job = divvy.submit("--output", out / "log", "--env", "COLOUR=blue", "--chdir", out, "--",
                       "sh", "-c", 'echo "$SHAPE $COLOUR $PWD"', env={"SHAPE": "round"})
    assert divvy.wait(job)["state"] == "completed"
    assert (out / "log").read_text() == f"round blue {out}\n"


def test_a_script_carries_its_own_options(divvy, out):
    script = out / "job.sh"
    script.write_text(f"#!/bin/sh\n#DIVVY --slice 1g.10gb --name scripted\n#DIVVY --output {out}/log\n"
                      "echo from the script: $CUDA_VISIBLE_DEVICES\n")
    job = divvy.submit(script)
    ended = divvy.wait(job)
    assert (ended["state"], ended["name"]) == ("completed", "scripted")
    assert (out / "log").read_text() == f"from the script: {ended['place'][0]['uuid']}\n"


def test_a_need_takes_the_smallest_slice_that_is_enough(divvy):
    job = divvy.submit("--gpu-mem", "18G", "--", "true")
    ended = divvy.wait(job)
    assert ended["state"] == "completed"
    assert ended["place"][0]["profile"] in ("2g.20gb", "1g.20gb")


def test_slices_of_one_job_are_tasks_with_one_device_each(divvy, out):
    job = divvy.submit("--slice", "1g.10gb:3", "--output", out / "log", "--",
                       "sh", "-c", 'echo "$DIVVY_TASK_ID $CUDA_VISIBLE_DEVICES"')
    ended = divvy.wait(job)
    assert ended["state"] == "completed", ended
    told = dict(line.split() for line in (out / "log").read_text().splitlines())
    assert sorted(told) == ["0", "1", "2"]
    assert set(told.values()) == {piece["uuid"] for piece in ended["place"]}


def test_whole_cards_are_whole(divvy, out):
    job = divvy.submit("--gpus", "2", "--output", out / "log", "--", "sh", "-c",
                       "echo $CUDA_VISIBLE_DEVICES")
    ended = divvy.wait(job)
    assert ended["state"] == "completed", ended
    assert all(piece["whole"] for piece in ended["place"])
    assert set((out / "log").read_text().strip().split(",")) == {
        piece["uuid"] for piece in ended["place"]}


@pytest.mark.smoke
def test_cancel_ends_a_running_job_and_all_it_started(divvy, out):
    job = divvy.submit("--output", out / "log", "--", "sh", "-c",
                       "sleep 987 & echo $! $$; wait")
    divvy.wait_state(job, "running")
    told = harness.until(lambda: (out / "log").exists() and (out / "log").read_text().split(),
                         "the job wrote its pids")
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    for pid in told:
        harness.until(lambda p=pid: not pathlib.Path(f"/proc/{p}/cmdline").exists()
                      or not pathlib.Path(f"/proc/{p}/cmdline").read_bytes(), f"{pid} is gone")


def test_cancel_before_the_start_leaves_nothing(divvy):
    first = divvy.submit("--gpus", "2", "--", "sleep", "60")
    divvy.wait_state(first, "running")
    second = divvy.submit("--gpus", "1", "--", "true")
    divvy.run("cancel", second)
    assert divvy.wait(second)["state"] == "cancelled"
    assert divvy.show(second)["attempt"] == 0
    divvy.run("cancel", first)
    divvy.wait(first)


def test_a_time_limit_is_kept(divvy):
    job = divvy.submit("--time", "1s", "--", "sleep", "600")
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit_status"]) == ("timeout", 124)


def test_what_waits_says_why(divvy):
    first = divvy.submit("--gpus", "2", "--time", "5m", "--", "sleep", "60")
    divvy.wait_state(first, "running")
    second = divvy.submit("--slice", "3g.40gb", "--", "true")
    waiting = harness.until(lambda: (lambda j: j if j["reason"] else None)(divvy.show(second)),
                            "a reason is given")
    assert waiting["state"] == "pending"
    divvy.run("cancel", first)
    assert divvy.wait(second)["state"] == "completed"


def test_an_idle_slice_is_used_again(divvy):
    jobs = []
    for _ in range(2):
        jobs.append(divvy.submit("--slice", "3g.40gb", "--", "true"))
        divvy.wait(jobs[-1])
    first, second = (divvy.show(job)["place"][0] for job in jobs)
    assert first["uuid"] == second["uuid"]
    assert first["generation"] == second["generation"], "it was cut anew"


def test_the_queue_lists_what_has_not_ended(divvy):
    job = divvy.submit("--name", "sleeper", "--", "sleep", "60")
    divvy.wait_state(job, "running")
    told = divvy.json("queue")
    jobs = told["jobs"] if isinstance(told, dict) else told
    assert [j["id"] for j in jobs] == [job]
    assert "sleeper" in divvy.run("queue").stdout
    divvy.run("cancel", job)
    divvy.wait(job)


def test_logs_show_what_a_job_wrote(divvy, out):
    job = divvy.submit("--output", out / "log", "--", "echo", "hello from a job")
    divvy.wait(job)
    assert divvy.run("logs", job).stdout == "hello from a job\n"


@pytest.mark.smoke
def test_run_passes_streams_and_exit(divvy):
    done = divvy.run("run", "--slice", "1g.10gb", "--", "sh", "-c",
                     "read line; echo out $line; echo err >&2; exit 5", check=False,
                     stdin=None, input="word\n")
    assert (done.returncode, done.stdout) == (5, "out word\n")
    assert "err" in done.stderr


def test_a_job_outlives_the_daemon(divvy, out):
    job = divvy.submit("--output", out / "log", "--", "sh", "-c",
                       f"while [ ! -e {out}/go ]; do sleep 0.05; done; echo still here; exit 4")
    divvy.wait_state(job, "running")
    divvy.kill()
    (out / "go").touch()
    harness.until(lambda: (out / "log").exists() and (out / "log").read_text(), "the job went on")
    divvy.start()
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit_status"], ended["attempt"]) == ("failed", 4, 1)


@pytest.mark.root
def test_a_job_runs_as_its_submitter(divvy, out):
    job = divvy.submit("--output", out / "log", "--", "id", "-u", user=12345, cwd="/")
    assert divvy.wait(job)["state"] == "completed"
    assert (out / "log").read_text().strip() == "12345"
    assert os.stat(out / "log").st_uid == 12345


@pytest.mark.root
def test_others_may_look_but_not_touch(divvy):
    job = divvy.submit("--", "sleep", "60")
    divvy.wait_state(job, "running")
    refused = divvy.run("cancel", job, user=12345, check=False)
    assert refused.returncode != 0 and refused.stderr.startswith("divvy: ")
    assert divvy.show(job)["state"] == "running"
    divvy.run("cancel", job)
    divvy.wait(job)


def test_old_jobs_are_forgotten_and_their_numbers_never_used_again(box, machine):
    divvy = box.divvy
    divvy.configure("retention: 1s\n")
    divvy.start()
    old = divvy.submit("--", "true")
    divvy.wait(old)
    divvy.stop()
    time.sleep(1.1)
    divvy.start()
    harness.until(lambda: divvy.run("show", old, check=False).returncode == 4, "the old job is gone")
    assert int(divvy.submit("--", "true")) > int(old)


def test_who_submits_before_the_cards_are_known_waits_for_them(box, machine):
    divvy = box.divvy
    divvy.configure("mode_hold: 0s\ncards: {default: {pool: queue}}\n")
    machine.sim("fault", "gpu0", "slow:40")
    divvy.launch()
    harness.until((divvy.root / "run/divvy/divvyd.sock").exists, "there is a socket")
    job = divvy.submit("--gpus", "2", "--", "true")
    refused = divvy.run("submit", "--gpus", "3", "--", "true", check=False)
    assert refused.stderr.startswith("divvy: this server gives 2 whole cards to jobs, not 3")
    machine.sim("fault", "gpu0", "none")
    assert divvy.wait(job)["state"] == "completed"
