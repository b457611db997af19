"""A Divvy of an ordinary user's own: no root, a root folder of his, nothing that pretends.

Everything runs as uid 1000, divvyd and simulated cards included.
"""
import json
import os
import shutil
import signal
import socket

import pytest

import harness
from harness import PROGRAMS, run, until

UID = 1000
AS = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]

pytestmark = pytest.mark.root  # to become somebody else


class Machine(harness.Machine):
    def sim(self, *words, check=True):
        return run(*AS, PROGRAMS / "divvy-sim", *words, env=self.env, check=check)


class Divvy(harness.Divvy):
    def __init__(self, folder, machine):
        super().__init__(folder, machine)
        self.under = AS

    def run(self, *words, user=UID, **more):
        return super().run(*words, user=user, **more)

    def configure(self, text):
        super().configure(text)
        for path in [self.root, *self.root.rglob("*")]:
            shutil.chown(path, UID, UID)


@pytest.fixture
def box():
    with harness.Box() as box:
        box.machine = Machine(box.folder / "sim")
        box.divvy = Divvy(box.folder / "root", box.machine)
        for path in (box.folder, box.folder / "root"):
            shutil.chown(path, UID, UID)
        yield box


@pytest.fixture
def private(box):
    box.machine.up("a100-80gb:2")
    box.divvy.configure("mode_hold: 0s\nkill_wait: 1s\n")
    box.divvy.start()
    for card in range(2):
        box.divvy.run("pool", f"gpu{card}", "queue")
        box.divvy.run("mode", f"gpu{card}", "auto")
    return box.divvy


WHY = "divvyd is not run by root"


def tree(private, job):
    """What of the job lives, whoever is its parent by now."""
    return list(harness.processes_with("DIVVY_ATTEMPT", f"{job}.1"))


def get(private, path):
    """The API itself; root may ask a private Divvy, too."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(private.root / "run/divvy/divvyd.sock"))
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: divvy\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def of_this_root(private, job):
    mine = set(private.processes())
    return [pid for pid in tree(private, job) if pid in mine]


def test_status_show_and_api_say_that_nothing_is_kept_apart(private):
    assert f"isolation  none: {WHY}" in private.run("status").stdout
    assert "private: for its own user only" in private.run("status").stdout
    status = private.json("status")
    assert status["isolation"] == "none" and status["isolation_why"].startswith(WHY)
    job = private.submit("--slice", "2g.20gb", "--mem", "64M", "--", "sleep", "100")
    seen = private.wait_state(job, "running")
    assert seen["isolation"] == "none" and seen["isolation_why"].startswith(WHY)
    assert seen["enforced"] == []
    shown = private.run("show", str(job)).stdout
    assert f"isolation  none: {WHY}" in shown and "64 MiB of memory (not held here)" in shown
    assert get(private, "/v1/status")["isolation_why"].startswith(WHY)
    assert get(private, f"/v1/jobs/{job}")["isolation"] == "none"


@pytest.mark.parametrize("bind", ["index", "none"])
def test_what_counts_on_a_closed_door_is_refused(private, bind):
    done = private.run("submit", "--bind", bind, "--slice", "1g.10gb", "--", "true", check=False)
    assert done.returncode == 1 and f"--bind {bind} needs a gate" in done.stderr
    assert WHY in done.stderr and "use --bind uuid" in done.stderr


def test_jobs_run_wait_their_turn_and_are_cancelled(private):
    first = private.submit("--gpus", "2", "--", "sh", "-c", "id -u; echo $CUDA_VISIBLE_DEVICES; exec sleep 1000")
    private.wait_state(first, "running")
    second = private.submit("--slice", "1g.10gb", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 7")
    assert private.show(second)["state"] == "pending"
    private.run("cancel", str(first))
    assert private.wait(first)["state"] == "cancelled"
    ended = private.wait(second)
    assert (ended["state"], ended["exit_status"]) == ("failed", 7)
    said = (private.root.parent / f"divvy-{first}.out").read_text().split()
    assert said[0] == str(UID) and said[1].count("GPU-") == 2
    assert "MIG-" in (private.root.parent / f"divvy-{second}.out").read_text()


RUNS_AWAY = "setsid sh -c '(trap \"\" TERM HUP; echo away; sleep 1000; :) &'; echo up; sleep 1000"


def test_what_ran_away_ends_with_its_job(private):
    job = private.submit("--", "sh", "-c", RUNS_AWAY)
    output = private.root.parent / f"divvy-{job}.out"
    until(lambda: output.exists() and {"up", "away"} <= set(output.read_text().split()), "it runs")
    assert len(of_this_root(private, job)) >= 3
    private.run("cancel", str(job))
    assert private.wait(job)["state"] == "cancelled"
    assert not of_this_root(private, job)


def test_killed_daemon_and_supervisor_leave_nothing(private):
    job = private.submit("--slice", "2g.20gb", "--", "sh", "-c", RUNS_AWAY)
    output = private.root.parent / f"divvy-{job}.out"
    until(lambda: output.exists() and {"up", "away"} <= set(output.read_text().split()), "it runs")
    started = json.loads((private.root / f"var/lib/divvy/jobs/{job}.1/started").read_text())
    assert started["tracking"] == "none" and started["tracking_reason"]
    private.kill()
    os.kill(started["supervisor"]["pid"], signal.SIGKILL)
    private.start()
    assert private.wait(job)["state"] == "lost"
    assert not of_this_root(private, job)
    assert private.wait(private.submit("--slice", "2g.20gb", "--", "true"))["state"] == "completed"


def test_jobs_outlive_the_daemon(private):
    job = private.submit("--slice", "2g.20gb", "--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done")
    private.wait_state(job, "running")
    private.kill()
    (private.root.parent / "go").touch()
    private.start()
    assert private.wait(job)["state"] == "completed"


def test_nobody_else_gets_in(private):
    done = private.run("status", user=UID + 1, check=False)
    assert done.returncode != 0 and "running" not in done.stdout


def test_isolation_that_is_required_keeps_it_from_starting(box):
    box.machine.up("a100-80gb:1")
    box.divvy.configure("isolation: require\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) != 0
    assert "isolation: require" in box.divvy.said() and WHY in box.divvy.said()
    box.divvy.daemon = None


def test_roots_docker_is_not_for_it(box):
    box.machine.up("a100-80gb:1")
    box.divvy.configure("docker: on\n")
    box.divvy.start()
    done = box.divvy.run("submit", "--container", "x", "--container-runtime", "docker", "--", "true",
                         check=False)
    assert done.returncode == 1 and "divvyd has to be root" in done.stderr
