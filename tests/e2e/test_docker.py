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
from invariants import fnv
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
            self.daemon.wait()

    def remove(self):
        """dockerd leaves a mount behind."""
        run("umount", "--quiet", self.folder / "exec/netns/default", check=False)
        shutil.rmtree(self.folder)

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
        said = docker.log.read_text().splitlines()
        docker.remove()
        pytest.skip(f"dockerd does not work here: {said[-1]}")
    docker.run("import", image, IMAGE)
    tried = docker.run("run", "--rm", "--network=none", IMAGE, "true", check=False)
    if tried.returncode:
        docker.stop()
        docker.remove()
        pytest.skip(f"docker runs no container here: {tried.stderr.strip()}")
    yield docker
    docker.stop()
    docker.remove()


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


def no_cgroup_of(divvy, job):
    """In whatever hierarchy; they go moments after the end is told."""
    tree = f"/divvy-{fnv(str(divvy.root)):012x}/{job}.1"
    until(lambda: not [path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(tree)],
          "its cgroups are gone")


def left(user, job):
    """What lives of the job anywhere: other Divvys on the machine have jobs of that number, too."""
    return set(harness.processes_with("DIVVY_ATTEMPT", f"{job}.1")) & set(user.divvy.processes())


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
    lines = [line.split(":", 2)[2] for line in user.output(job).splitlines()]
    assert all(f"/{job}.1/payload/task-0/" in line for line in lines)
    assert docker.containers()[0].endswith(f"-{job}.1-0")
    user.divvy.run("cancel", str(job), user=USER.pw_uid)
    assert user.divvy.wait(job)["state"] == "cancelled"
    assert docker.containers() == []
    no_cgroup_of(user.divvy, job)
    assert not left(user, job)


def test_it_gets_its_slice_and_no_other(user, box):
    if not (box.machine.folder / "root/dev/nvidia0").is_char_device():
        pytest.skip("needs device nodes that can be opened (root, and no nodev on /tmp)")
    for card in range(2):
        user.divvy.run("pool", f"gpu{card}", "queue")
        user.divvy.run("mode", f"gpu{card}", "auto")
    said = user.run("--slice", "2g.20gb", "--", "sh", "-c",
                    "ls /dev /dev/nvidia-caps; echo $CUDA_VISIBLE_DEVICES; cat /dev/nvidiactl",
                    check=False)
    assert len(set(re.findall(r"nvidia-cap\d+", said.stdout))) == 2, said.stderr
    assert len(re.findall(r"^nvidia\d+$", said.stdout, re.M)) == 1
    assert re.search(r"^MIG-\S+$", said.stdout, re.M)
    assert "Operation not permitted" not in said.stderr  # docker and the gate let it through


def test_its_memory_limit_ends_it(user):
    job = user.submit("--mem", "32M", "--", "busybox", "tail", "/dev/zero")
    ended = user.divvy.wait(job)
    assert ended["state"] == "oom", ended


def test_one_that_hears_nothing_is_killed_and_gone(user, docker):
    job = user.submit("--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    until(lambda: "up" in user.output(job), "it runs")
    user.divvy.run("cancel", str(job))
    assert user.divvy.wait(job)["state"] == "cancelled"
    assert docker.containers() == []
    no_cgroup_of(user.divvy, job)


def test_a_killed_supervisor_leaves_no_container(user, docker):
    job = user.submit("--", "sh", "-c", "echo up; sleep 1000")
    until(lambda: "up" in user.output(job), "it runs")
    started = user.tracked(job)
    os.kill(started["supervisor"]["pid"], signal.SIGKILL)
    assert user.divvy.wait(job)["state"] == "lost"
    assert docker.containers() == []
    no_cgroup_of(user.divvy, job)
    assert not left(user, job)


def test_everything_killed_at_once_leaves_no_container(user, docker):
    job = user.submit("--", "sh", "-c", "echo up; sleep 1000")
    until(lambda: "up" in user.output(job), "it runs")
    started = user.tracked(job)
    user.divvy.kill()
    os.kill(started["supervisor"]["pid"], signal.SIGKILL)
    user.divvy.start()
    assert user.divvy.wait(job)["state"] == "lost"
    assert docker.containers() == []
    no_cgroup_of(user.divvy, job)


def test_a_script_goes_in_and_attach_goes_in_too(user):
    script = user.folder / "job.sh"
    script.write_text('#!/bin/sh\necho "args $*"\nsleep 1000\n')
    job = user.divvy.submit(*user.words(script, "a", "b"), **user.how)
    until(lambda: "args a b" in user.output(job), "the script runs")
    said = until(lambda: user.divvy.run("attach", str(job), "--", "sh", "-c", "ls /; id -u; pwd",
                                        check=False, **user.how).stdout, "the container is entered")
    words = said.split()
    assert "bin" in words and "home" not in words and str(USER.pw_uid) in words
    assert str(user.folder) in words
    user.divvy.run("cancel", str(job))
    user.divvy.wait(job)


def test_only_what_the_user_reaches_himself_is_mounted(user, home):
    closed = home.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "secret").mkdir()
    (home.parent / "open").mkdir(mode=0o755)
    (home.parent / "open/data").write_text("fine\n")
    said = user.run(f"--container-arg=--volume={home.parent}/open:/set:ro", "--", "sh", "-c",
                    "cat /set/data; touch /set/x", check=False)
    assert said.stdout == "fine\n" and "Read-only" in said.stderr
    said = user.run(f"--container-arg=--volume={closed}/secret:/s", "--", "true", check=False)
    assert said.returncode == 126 and "cannot mount" in said.stderr
    inner = user.folder / "deep"
    inner.mkdir()
    shutil.chown(inner, USER.pw_uid, USER.pw_uid)
    said = user.run(f"--container-arg=--volume={inner}:/s", "--", "true", check=False)
    assert said.returncode == 126 and f"others than root can exchange what lies below {home}" \
        in said.stderr


def test_an_image_that_is_not_there_is_not_fetched(user):
    done = user.divvy.run("run", "--container", "divvy-no-such-image", "--container-runtime",
                          "docker", "--", "true", check=False, **user.how)
    assert done.returncode == 125 and "divvy-no-such-image" in done.stderr


# ---- a stand-in ------------------------------------------------------------------

STAND_IN = r"""#!/usr/bin/python3
# Called as docker is: notes how, and puts what it is to run where it was told to (as root: it
# has no capabilities, as the true client has none, and there is no daemon behind it).
import json, os, subprocess, sys, time
place = os.path.dirname(os.path.abspath(__file__))
with open(f"{place}/calls", "a") as calls:
    status = open("/proc/self/status").read()
    held = status.split("CapEff:")[1].split()[0], status.split("NoNewPrivs:")[1].split()[0]
    variables = {name: os.environ.get(name) for name in ("DOCKER_HOST", "DOCKER_CONFIG", "LD_PRELOAD", "A")}
    calls.write(json.dumps([os.getuid(), sys.argv[1:], variables, held]) + "\n")
if sys.argv[1] == "info":
    print(open(f"{place}/info").read())
elif sys.argv[1] == "rm":
    while os.path.exists(f"{place}/hangs"):
        time.sleep(0.02)
elif sys.argv[1] == "run":
    while os.path.exists(f"{place}/fetches"):
        time.sleep(0.02)
    words = sys.argv[2:]
    value = {w.split("=", 1)[0]: w.split("=", 1)[1] for w in words if w.startswith("--") and "=" in w}
    with open(f"{place}/env", "w") as file:
        file.write(open(value["--env-file"]).read())
    command = words[words.index("image:1") + 1:]
    mounts = [l.split() for l in open("/proc/mounts")]
    mount = next(m[1] for m in mounts if m[2] == "cgroup2")
    here = f"{mount}{value['--cgroup-parent']}/made"
    def become():
        with open(f"{here}/cgroup.procs", "w") as procs:
            procs.write("0")
        os.setsid()
    os.mkdir(here)
    status = subprocess.run(command, preexec_fn=become).returncode
    os.rmdir(here)
    sys.exit(status if status >= 0 else 128 - status)
"""
INFO = {"ServerVersion": "28.2.2", "CgroupDriver": "cgroupfs", "CDISpecDirs": ["/etc/cdi"],
        "InitCommit": {"ID": "de40ad0"}}


class StandIn:
    def __init__(self, box):
        self.folder = box.folder / "bin"
        self.folder.mkdir()
        (self.folder / "docker").write_text(STAND_IN)
        (self.folder / "docker").chmod(0o755)
        (self.folder / "info").write_text(json.dumps(INFO))
        self.env = {"PATH": f"{self.folder}:/usr/bin:/bin"}

    def calls(self, verb):
        lines = (self.folder / "calls").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call[1][0] == verb]


@pytest.fixture
def stand_in(box):
    return StandIn(box)


def begin(box, stand_in, text="docker: on\n", grace="1s"):
    box.machine.up("a100-80gb:1")
    box.divvy.configure(f"kill_wait: {grace}\n" + text)
    box.divvy.start(env=stand_in.env)
    if box.divvy.json("status")["isolation"] == "none":
        pytest.skip("no unified cgroup hierarchy for jobs here")
    return box.divvy


def words(*more):
    return ["--container", "image:1", "--container-runtime", "docker", *more]


def sleep_in_container(box, stand_in, home):
    """A job that sleeps, once docker was asked for its container; and its supervisor's pid."""
    divvy = begin(box, stand_in)
    user = User(divvy, home)
    job = divvy.submit(*words("--", "/bin/sleep", "1000"), **user.how)
    divvy.wait_state(job, "running")
    until(lambda: stand_in.calls("run"), "docker was asked")
    return divvy, job, user.tracked(job)["supervisor"]["pid"]


def test_docker_is_asked_for_what_divvy_promises(box, stand_in, home):
    divvy = begin(box, stand_in)
    user = User(divvy, home)
    user.home.chmod(0o755)
    job = divvy.submit(*words("--mem", "64M", "--env", "A=1", "--container-arg=--read-only",
                              "--container-arg=--network=none", "--", "/bin/echo", "ran"),
                       **{**user.how, "env": {"LD_PRELOAD": ""}})
    assert divvy.wait(job)["state"] == "completed"
    assert user.output(job) == "ran\n"
    (uid, said, env, held), = stand_in.calls("run")
    started_in = next(word for word in said if word.startswith("--cgroup-parent="))
    name = next(word for word in said if word.startswith("--name="))
    assert re.fullmatch(rf"--name=divvy-\w+-{job}\.1-0", name)
    assert re.fullmatch(rf"--cgroup-parent=/divvy-\w+/{job}\.1/payload/task-0", started_in)
    assert uid == 0 and said == [
        "run", "--rm", name, f"--user={USER.pw_uid}:{USER.pw_uid}", "--userns=host",
        "--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=label=disable",
        started_in, "--log-driver=none", "--no-healthcheck", "--pull=never", "--init",
        f"--shm-size={64 << 20}", f"--workdir={user.folder}",
        "--env=NVIDIA_VISIBLE_DEVICES=void", f"--mount=type=bind,src={home},dst={home}",
        "--env-file=/proc/self/fd/3", "--read-only", "--network=none", "image:1",
        "/bin/echo", "ran"]
    assert held == ["0000000000000000", "1"]
    assert env == {"DOCKER_HOST": "unix:///run/docker.sock", "DOCKER_CONFIG": "/var/empty/divvy",
                   "LD_PRELOAD": None, "A": None}
    assert "A=1\n" in (stand_in.folder / "env").read_text()
    assert [call[1] for call in stand_in.calls("rm")] == [["rm", "--force", name.split("=")[1]]]


def test_a_dead_supervisors_container_is_removed_before_the_job_is_over(box, stand_in, home):
    divvy, job, supervisor = sleep_in_container(box, stand_in, home)
    os.kill(supervisor, signal.SIGKILL)
    assert divvy.wait(job)["state"] == "lost"
    assert stand_in.calls("rm")
    no_cgroup_of(divvy, job)


def test_a_daemon_that_hangs_keeps_the_job_from_being_over(box, stand_in, home):
    """What it was asked for may come true yet: the slice is not handed on before it is sure."""
    divvy, job, supervisor = sleep_in_container(box, stand_in, home)
    (stand_in.folder / "hangs").touch()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: stand_in.calls("rm"), "it was asked to remove the container")
    assert divvy.show(job)["state"] == "ending"
    (stand_in.folder / "hangs").unlink()
    assert divvy.wait(job)["state"] == "lost"
    no_cgroup_of(divvy, job)


def test_cancelled_before_there_is_a_container_it_need_not_wait(box, stand_in, home):
    divvy = begin(box, stand_in, "docker: pull\n", grace="1h")
    user = User(divvy, home)
    (stand_in.folder / "fetches").touch()
    job = divvy.submit(*words("--", "/bin/echo", "ran"), **user.how)
    divvy.wait_state(job, "running")
    until(lambda: stand_in.calls("run"), "docker was asked")
    assert "--pull=missing" in stand_in.calls("run")[0][1]
    divvy.run("cancel", str(job))
    assert divvy.wait(job)["state"] == "cancelled"
    assert stand_in.calls("rm") and "ran" not in user.output(job)


@pytest.mark.parametrize("point", ["SUPERVISE_STARTED", "SUPERVISE_LETGO", "SUPERVISE_OVER",
                                   "SUPERVISE_EXIT", "STARTED_READ", "EXIT_READ"])
def test_killed_here_it_runs_once_at_most_and_leaves_nothing(box, stand_in, home, point):
    if b"DIVVY_KILL" not in (harness.PROGRAMS / "divvyd").read_bytes():
        pytest.skip("this build has no kill points (meson: -Dkillpoints=true)")
    kill = box.folder / "kill"
    kill.mkdir(mode=0o777)
    stand_in.env["DIVVY_KILL"] = str(kill)
    divvy = begin(box, stand_in)
    user = User(divvy, home)
    (kill / point).write_bytes(b"x")
    job = divvy.submit(*words("--", "/bin/echo", "ran"), **user.how)
    until(lambda: (kill / "killed").exists(), f"something dies at {point}")

    def over():
        if divvy.daemon.poll() is not None:
            divvy.start(env=stand_in.env)
        seen = divvy.run("show", str(job), "--json", check=False)
        return seen.returncode == 0 and json.loads(seen.stdout)["state"] in harness.ENDED and \
            json.loads(seen.stdout)["state"]
    assert until(over, "the job has ended") in ("completed", "lost")
    calls = (stand_in.folder / "calls").read_text().splitlines()
    assert sum(json.loads(call)[1][0] == "run" for call in calls) <= 1
    no_cgroup_of(divvy, job)
    assert not left(user, job)


@pytest.mark.parametrize("info, sentence", [
    ({**INFO, "CgroupDriver": "systemd"}, "native.cgroupdriver=cgroupfs"),
    ({**INFO, "SecurityOptions": ["name=rootless"]}, "is not root"),
    ({"ServerErrors": ["Cannot connect"]}, "/run/docker.sock: Cannot connect"),
])
def test_a_daemon_that_cannot_hold_a_container_is_not_asked(box, stand_in, home, info, sentence):
    divvy = begin(box, stand_in)
    (stand_in.folder / "info").write_text(json.dumps(info))
    user = User(divvy, home)
    done = divvy.run("run", *words("--", "/bin/true"), check=False, **user.how)
    assert done.returncode == 126 and sentence in " ".join(done.stderr.split())
    assert not stand_in.calls("run")


def test_docker_is_off_until_the_administrator_allows_it(box, stand_in, home):
    divvy = begin(box, stand_in, "")
    user = User(divvy, home)
    done = divvy.run("submit", *words("--", "/bin/true"), check=False, **user.how)
    assert done.returncode == 1
    assert "an administrator has to allow it (divvy.yaml: docker: on)" in " ".join(done.stderr.split())
    assert not (stand_in.folder / "calls").exists()


def test_docker_is_taken_where_there_is_nothing_else(box, stand_in, home):
    stand_in.env["PATH"] = str(stand_in.folder)
    divvy = begin(box, stand_in)
    user = User(divvy, home)
    job = divvy.submit("--container", "image:1", "--", "/bin/true", **user.how)
    assert divvy.wait(job)["state"] == "completed"
    assert len(stand_in.calls("run")) == 1
    done = divvy.run("submit", "--container", "image:1", "--container-arg=--privileged", "--",
                     "/bin/true", check=False, **user.how)
    assert done.returncode == 1 and "not for a job to say" in done.stderr
