"""PAM sessions: opened before the tasks, felt by them, closed at the end; refused, no job."""
import json
import os
import pathlib

import pytest

import harness

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not (harness.PROGRAMS / "divvy-session").exists(), reason="built without libpam"),
    pytest.mark.skipif(not pathlib.Path("/sys/fs/cgroup").exists(), reason="no cgroups"),
]


@pytest.fixture
def pam(box, machine):
    """Writes the service file, and starts divvyd with pam: on."""
    def start(service, limits=""):
        folder = box.divvy.root / "etc/pam.d"
        folder.mkdir(parents=True)
        conf = box.folder / "limits.conf"
        conf.write_text(limits)
        (folder / "divvy").write_text(service.format(limits=conf, folder=box.folder))
        box.divvy.configure("pam: on\ncards: {default: {pool: queue}}\n")
        box.divvy.start()
        return box.divvy
    box.folder.chmod(0o777)
    return start


def output(box):
    return (box.folder / "log").read_text().split()


LIMITS = """account required pam_permit.so
session required pam_limits.so conf={limits}
session required pam_umask.so umask=0027
"""


@pytest.mark.smoke
def test_limits_of_the_session_hold_for_the_tasks(pam, box):
    divvy = pam(LIMITS, "* - nofile 345\n* hard core 0\nnobody - nofile 123\n")
    show = ["--", "sh", "-c", "ulimit -n; ulimit -c; umask; id -u"]
    divvy.wait(int(divvy.run("submit", "--output", box.folder / "log", *show, user=65534).stdout))
    assert output(box) == ["123", "0", "0027", "65534"]
    (box.folder / "log").unlink()
    divvy.wait(int(divvy.run("submit", "--output", box.folder / "log", *show, user=1).stdout))
    assert output(box) == ["345", "0", "0027", "1"]


def test_a_session_is_open_as_long_as_the_job(pam, box):
    said = box.folder / "said"
    divvy = pam("account required pam_permit.so\n"
                "session required pam_exec.so {folder}/hook\n")
    hook = box.folder / "hook"
    hook.write_text(f"#!/bin/sh\necho $PAM_TYPE $PAM_USER >>{said}\n")
    hook.chmod(0o755)
    job = int(divvy.run("submit", "--output", box.folder / "log", "--", "sh", "-c",
                        f"cat {said}; echo ran >>{said}", user=65534).stdout)
    said.touch()
    said.chmod(0o666)
    assert divvy.wait(job)["state"] == "completed"
    assert output(box) == ["open_session", "nobody"]
    assert said.read_text().splitlines() == ["open_session nobody", "ran", "close_session nobody"]


def test_without_a_session_there_is_no_job(pam, box):
    divvy = pam("account required pam_deny.so\nsession required pam_permit.so\n")
    job = int(divvy.run("submit", "--output", box.folder / "log", "--", "true", user=65534).stdout)
    ended = divvy.wait(job)
    assert (ended["state"], ended["exit"]["kind"]) == ("failed", "not started")
    assert "no PAM session for nobody: the account may not be used: " in ended["exit"]["text"]
    assert not (box.folder / "log").exists()


def test_a_supervisor_that_is_killed_leaves_no_session(pam, box):
    divvy = pam(LIMITS)
    job = int(divvy.run("submit", "--output", "/dev/null", "--", "sleep", "1000", user=65534).stdout)
    divvy.wait_state(job, "running")
    started = divvy.root / f"var/lib/divvy/jobs/{job}.1/started"
    pid = json.loads(started.read_text())["supervisor"]["pid"]
    sessions = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")
                if (path / "stat").exists() and f" {pid} " in (path / "stat").read_text().split(")")[1][:20]
                and "divvy-session" in (path / "comm").read_text()]
    assert len(sessions) == 1
    os.kill(pid, 9)
    assert divvy.wait(job)["state"] == "lost"
    harness.until(lambda: not pathlib.Path(f"/proc/{sessions[0]}").exists(), "the session is closed")


def test_no_service_file_no_daemon(box, machine):
    box.divvy.configure("pam: on\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert "there is no service file" in box.divvy.said()
