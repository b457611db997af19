"""Jobs whose containers docker's daemon makes: what holds them, and who they are inside.

Needs root. The first part runs a docker daemon of its own where there is one
(and a static busybox for an image); the second has a stand-in for the docker
program, which writes down how it was called, and runs what it is asked to run.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
from harness import run, until
from test_container import make_image

USER = pwd.getpwnam("games")  # a user that every Debian has
IMAGE = "divvy-test:1"

pytestmark = pytest.mark.root


# ---- docker itself -------------------------------------------------------------


class Docker:
    """A docker daemon of our own: no networks, no store but its folder's."""

    def __init__(self, folder):
        self.folder = folder
        self.socket = folder / "docker.sock"
        self.log = folder / "dockerd.log"
        self.daemon = None

    def start(self):
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none",
                 "--storage-driver=vfs", f"--data-root={self.folder}/data",
                 f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid",
                 "--exec-opt=native.cgroupdriver=cgroupfs", f"--host=unix://{self.socket}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        until(lambda: self.daemon.poll() is not None or not self.run("version", check=False).returncode,
              "dockerd answers or has ended", 60, 0.1)
        return self.daemon.poll() is None

    def stop(self):
        self.daemon.send_signal(signal.SIGTERM)
        try:
            self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            self.daemon.kill()

    def run(self, *words, **more):
        return run("docker", f"--host=unix://{self.socket}", *words, **more)

    def containers(self):
        return self.run("ps", "--all", "--format", "{{.Names}}").stdout.split()


@pytest.fixture(scope="module")
def docker():
    for program, package in [("dockerd", "docker.io"), ("docker", "docker.io")]:
        if not shutil.which(program):
            pytest.skip(f"needs {program} (apt-get install {package})")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dvk-", dir="/tmp"))
    folder.chmod(0o711)
    docker = Docker(folder)
    image = make_image(folder)
    if not docker.start():
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"dockerd does not work here: {docker.log.read_text().splitlines()[-1]}")
    docker.run("import", image, IMAGE)
    tried = docker.run("run", "--rm", "--network=none", IMAGE, "true", check=False)
    if tried.returncode:
        docker.stop()
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"docker runs no container here: {tried.stderr.strip()}")
    yield docker
    docker.stop()
    shutil.rmtree(folder, ignore_errors=True)


class User:
    """divvy as an ordinary user, in a home of his own that is closed to others."""

    def __init__(self, divvy, home):
        self.divvy, self.home = divvy, home
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        for path in (home, self.folder):
            shutil.chown(path, USER.pw_uid, USER.pw_uid)
        home.chmod(0o700)
        self.how = {"user": USER.pw_uid, "cwd": self.folder}

    def words(self, *words):
        return ["--container", IMAGE, "--container-runtime", "docker", *words]

    def run(self, *words, **more):
        return self.divvy.run("run", *self.words(*words), **{**self.how, **more})

    def submit(self, *words, **more):
        return self.divvy.submit(*self.words(*words), **{**self.how, **more})

    def tracked(self, job):
        """Of a job that has started; skips where nothing would hold it."""
        folder = self.divvy.root / f"var/lib/divvy/jobs/{job}.1/started"
        return json.loads(folder.read_text())

    def output(self, job):
        path = self.folder / f"divvy-{job}.out"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def home():
    """Below a folder that only root can write, as /home is."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dvh-", dir="/srv"))
    folder.chmod(0o755)
    yield folder / "games"
    shutil.rmtree(folder)


def allow(divvy, more=""):
    divvy.stop()
    divvy.configure(f"mode_hold: 0s\nkill_wait: 1s\n{more}")
    divvy.start()


@pytest.fixture
def user(docker, divvy, home):
    allow(divvy, f"docker: on\ndocker_socket: {docker.socket}\n")
    return User(divvy, home)


def cgroups_of(job, started):
    tree = f"{started['cgroup']}/{job}.1"
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(tree)]


def inside(user, job, word):
    """Pids of the job's container, by its cgroup."""
    name = f"{user.tracked(job)['cgroup']}/{job}.1/payload/task-0/"
    found = []
    for pid in harness.processes_with("DIVVY_ATTEMPT", f"{job}.1"):
        try:
            if name in pathlib.Path(f"/proc/{pid}/cgroup").read_text() and word.encode() in \
                    pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            pass  # ended meanwhile
    return found


def test_the_user_is_himself_inside_and_nothing_more(user):
    said = user.run("--env", "A=one two", "--", "sh", "-c",
                    'id -u; id -g; pwd; ls /; echo "[$A] $NVIDIA_VISIBLE_DEVICES"; '
                    "grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; touch made; exit 7",
                    check=False)
    words = said.stdout.split()
    assert said.returncode == 7, said.stderr
    assert words[:3] == [str(USER.pw_uid), str(USER.pw_uid), str(user.folder)]
    assert "home" not in words and "[one two] void" in said.stdout
    assert re.search(r"CapEff:\s+0+$", said.stdout, re.M)
    assert re.search(r"CapBnd:\s+0+$", said.stdout, re.M)
    assert re.search(r"NoNewPrivs:\s+1$", said.stdout, re.M)
    assert (user.folder / "made").stat().st_uid == USER.pw_uid


def test_it_lives_in_the_jobs_cgroup_and_leaves_none(user, docker):
    job = user.submit("--mem", "64M", "--", "sh", "-c", "cat /proc/self/cgroup; sleep 100")
    user.divvy.wait_state(job, "running")
    until(lambda: "task-0" in user.output(job), "it runs")
    assert inside(user, job, "sleep")
    started = user.tracked(job)
    lines = [line.split(":", 2)[2] for line in user.output(job).splitlines()]
    assert all(f"/{job}.1/payload/task-0/" in line for line in lines)
    assert docker.containers()[0].endswith(f"-{job}.1-0")
    user.divvy.run("cancel", str(job), user=USER.pw_uid)
    assert user.divvy.wait(job)["state"] == "cancelled"
    assert docker.containers() == [] and cgroups_of(job, started) == []
    assert not list(harness.processes_with("DIVVY_ATTEMPT", f"{job}.1"))
