"""Supervisors that the service manager starts: divvyd beside a manager that is not systemd."""
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

import harness
from harness import until

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
<allow user="*"/></policy></busconfig>"""
# A machine where systemd seems to run, and / is a Divvy's own: nothing of it reaches the real one.
ROOM = """set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/etc
touch "/run/systemd/system/divvy-job@.service"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /run/etc/
mkdir -p /run/etc/divvy
cp "$1" /run/etc/divvy/divvy.yaml
mount --bind /run/etc /etc
mount -t tmpfs -o mode=755 tmpfs /var/lib
touch "$2"
exec sleep 3600"""


class Room:
    """Private mounts, a bus, a manager and divvyd with the root / in them."""

    def __init__(self, box):
        self.box, self.folder = box, box.folder / "manager"
        self.folder.mkdir()
        self.kept = []
        box.machine.up("a100-80gb:1")
        config = self.folder / "divvy.yaml"
        config.write_text("launch: systemd\nmode_hold: 0s\ncards: {default: {pool: queue, mode: auto}}\n"
                          f"cgroup_root: /{box.folder.name}\n")
        (self.folder / "supervisor").write_text(str(harness.PROGRAMS / "divvy-supervise"))
        (self.folder / "bus.conf").write_text(BUS.format(socket=self.folder / "bus"))
        self.env = {**box.machine.env, "DIVVY_ROOT": "/", "DBUS_SYSTEM_BUS_ADDRESS":
                    f"unix:path={self.folder}/bus"}
        made = self.folder / "made"
        self.holder = self.start(["unshare", "--mount", "sh", "-c", ROOM, "sh", config, made])
        until(lambda: made.exists() or self.holder.poll() is not None, "the mounts are there")
        if not made.exists():
            pytest.skip("cannot make mounts of its own")
        self.within = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt"]
        self.bus = self.manager = None

    def start(self, command, **more):
        child = subprocess.Popen([str(word) for word in command], env=self.env, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **more)
        self.kept.append(child)
        return child

    def bus_up(self):
        (self.folder / "bus").unlink(missing_ok=True)
        self.bus = self.start(["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork"])
        until(lambda: (self.folder / "bus").exists(), "the bus listens")

    def manager_up(self, mode):
        self.mode(mode)
        (self.folder / "ready").unlink(missing_ok=True)
        self.manager = self.start([*self.within, sys.executable,
                                   harness.SOURCE / "tests/e2e/fake_manager.py", self.folder])
        until(lambda: (self.folder / "ready").exists(), "the manager listens")

    def mode(self, words):
        (self.folder / "mode").write_text(words)

    def asked(self):
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def daemon_up(self):
        self.log = open(self.folder / "log", "ab")
        self.daemon = self.start([*self.within, harness.PROGRAMS / "divvyd"], stdout=self.log, stderr=self.log)
        until(lambda: self.divvy("status", "--json", check=False).returncode == 0, "divvyd answers")

    def said(self):
        return (self.folder / "log").read_text()

    def divvy(self, *words, check=True):
        return harness.run(*self.within, harness.PROGRAMS / "divvy", *words, env=self.env, check=check, cwd="/tmp")

    def submit(self, *words):
        return json.loads(self.divvy("submit", "--json", "--output", "/dev/null", *words).stdout)["id"]

    def ended(self, job):
        def there():
            seen = json.loads(self.divvy("show", "--json", str(job)).stdout)
            return seen if seen["state"] in harness.ENDED else None
        return until(there, f"job {job} ends")

    def end(self):
        for child in reversed(self.kept):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        for pid in harness.processes_with("DBUS_SYSTEM_BUS_ADDRESS", self.env["DBUS_SYSTEM_BUS_ADDRESS"]):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def room(box):
    missing = shutil.which("dbus-daemon") is None and "dbus-daemon"
    try:
        import dbus  # noqa: F401
        import gi  # noqa: F401
    except ImportError as error:
        missing = str(error)
    if missing or os.getuid() != 0 or os.path.exists("/run/systemd/system"):
        pytest.skip(f"needs root, python3-dbus and a machine without systemd: {missing or 'not so'}")
    room = Room(box)
    try:
        room.bus_up()
        yield room
    finally:
        room.end()


def test_a_job_is_a_unit_that_is_asked_for_once(room):
    room.manager_up("start")
    room.daemon_up()
    job = room.submit("--slice", "1g.10gb", "--", "sh", "-c", "exit 7")
    seen = room.ended(job)
    assert (seen["state"], seen["exit_status"]) == ("failed", 7)
    assert room.asked() == ["Subscribe", f"StartUnit divvy-job@{job}.1.service fail"]


def test_a_unit_that_is_refused_fails_the_job_with_the_managers_words(room):
    room.manager_up("refuse org.freedesktop.systemd1.NoSuchUnit")
    room.daemon_up()
    seen = room.ended(room.submit("--", "true"))
    assert seen["state"] == "failed" and "it says no" in seen["exit"]["text"], seen
    room.mode("start")
    assert room.ended(room.submit("--", "true"))["state"] == "completed"


def test_a_unit_that_came_to_nothing_fails_the_job(room):
    room.manager_up("fail")
    room.daemon_up()
    seen = room.ended(room.submit("--", "true"))
    assert seen["state"] == "failed" and "journalctl -u divvy-job@" in seen["exit"]["text"], seen


def test_not_now_is_asked_again(room):
    room.manager_up("refuse org.freedesktop.systemd1.ShuttingDown")
    room.daemon_up()
    job = room.submit("--", "true")
    until(lambda: "tried again" in room.said(), "the log tells")
    room.mode("start")
    assert room.ended(job)["state"] == "completed"
    assert len(room.asked()) >= 3


def test_a_bus_that_goes_away_with_its_manager_loses_no_job(room):
    room.manager_up("silent")
    room.daemon_up()
    job = room.submit("--", "true")
    until(lambda: len(room.asked()) == 2, "it was asked for")
    room.bus.kill()
    room.bus.wait()
    room.manager.kill()
    until(lambda: "the system bus went away" in room.said(), "divvyd noticed")
    room.bus_up()
    room.manager_up("start")
    seen = room.ended(job)
    assert seen["state"] == "completed", (seen, room.said())
    assert room.asked()[-1] == f"StartUnit divvy-job@{job}.1.service fail"
