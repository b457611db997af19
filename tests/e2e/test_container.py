"""Containers: what a job in one gets and cannot get, how it ends, and the CDI specification.

Needs root (to run jobs as somebody else), podman and a static busybox. The
image is made of that busybox alone; nothing is fetched. The runtimes that are
not there are stood in for by a script that writes down how it was called.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import tempfile

import pytest

import harness
from harness import run, until

USER = "games"  # a user that every Debian has, without subordinate ids and without a home
IMAGE = "localhost/divvy-test"
OCI = ["--runtime", shutil.which("runc")] if shutil.which("runc") else []
NAME_OF_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")

needs_root = pytest.mark.root


def static_busybox():
    program = shutil.which("busybox")
    linked = run("ldd", program, check=False) if program else None
    return program if linked and "not a dynamic executable" in linked.stdout + linked.stderr else None


class Podman:
    """The user's own podman, for making the image and for looking at what is left."""

    def __init__(self, home):
        self.who = pwd.getpwnam(USER)
        self.home = home
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
                    "TMPDIR": str(home)}

    def run(self, *words, check=True):
        """As harness.Divvy.run does: the group has the number of the user."""
        return run("setpriv", f"--reuid={self.who.pw_uid}", f"--regid={self.who.pw_uid}",
                   "--clear-groups", "podman", "--cgroup-manager=cgroupfs", *words, env=self.env,
                   check=check, cwd=self.home, timeout=120)

    def rest(self):
        """Ends the process that holds the namespaces of this user's podman."""
        self.run(*OCI, "system", "migrate")

    def containers(self):
        return self.run("ps", "--all", "--format", "{{.Names}}").stdout.split()


def make_image(home):
    """A tar of one busybox."""
    program = static_busybox()
    if not program:
        pytest.skip("needs a static busybox (apt-get install busybox-static)")
    root = home / "image"
    (root / "bin").mkdir(parents=True)
    for folder in ("proc", "tmp", "dev", "sys"):
        (root / folder).mkdir()
    shutil.copy(program, root / "bin/busybox")
    for name in ("sh", "ls", "cat", "id", "sleep", "env", "pwd", "touch", "true", "grep"):
        (root / "bin" / name).symlink_to("busybox")
    run("tar", "-C", root, "-cf", home / "image.tar", ".")
    return home / "image.tar"


@pytest.fixture(scope="module")
def podman():
    """An ordinary user with a podman that works, and the image in its storage."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    if not shutil.which("podman"):
        pytest.skip("needs podman (apt-get install podman)")
    home = pathlib.Path(tempfile.mkdtemp(prefix="dvc-", dir="/tmp"))
    podman = Podman(home)
    image = make_image(home)
    run("chown", "-R", f"{podman.who.pw_uid}:{podman.who.pw_uid}", home)
    for words in [("import", image, IMAGE),
                  (*OCI, "run", "--rm", "--network=host", IMAGE, "true")]:
        done = podman.run(*words, check=False)
        if done.returncode:
            shutil.rmtree(home)
            pytest.skip(f"podman does not work here: {done.stderr.strip().splitlines()[-1]}")
    yield podman
    podman.rest()
    shutil.rmtree(home)


class User:
    """divvy as that user, in a folder of his own."""

    def __init__(self, divvy, podman):
        self.divvy, self.podman = divvy, podman
        self.folder = podman.home / divvy.root.parent.name
        self.folder.mkdir()
        shutil.chown(self.folder, podman.who.pw_uid, podman.who.pw_uid)
        self.how = {"user": podman.who.pw_uid, "cwd": self.folder, "env": podman.env}

    def run(self, *words, **more):
        return self.divvy.run("run", "--container", IMAGE, *words, **{**self.how, **more})

    def submit(self, *words):
        return self.divvy.submit("--container", IMAGE, *words, **self.how)


@pytest.fixture
def user(divvy, podman):
    return User(divvy, podman)


@needs_root
def test_it_runs_in_the_image_and_in_the_working_directory(user):
    said = user.run("--", "sh", "-c", "ls /; pwd; id -u; touch made-inside; exit 7", check=False)
    assert said.returncode == 7
    words = said.stdout.split()
    assert "bin" in words and "home" not in words  # the image's root
    assert str(user.folder) in words and "0" in words
    made = user.folder / "made-inside"
    assert made.stat().st_uid == user.podman.who.pw_uid  # root inside is the user outside
    until(lambda: not user.podman.containers(), "the container is gone")


@needs_root
def test_it_gets_its_slice_and_no_other(user, box):
    """Two jobs on one card: each container has the parent's node and its own two capabilities."""
    script = "ls /dev /dev/nvidia-caps; echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"
    if not (box.machine.folder / "root/dev/nvidia0").is_char_device():
        pytest.skip("needs device nodes that can be opened (root, and no nodev on /tmp)")
    other = user.submit("--slice", "1g.10gb", "--", "sleep", "100")
    user.divvy.wait_state(other, "running")
    said = user.run("--slice", "2g.20gb", "--", "sh", "-c", script).stdout
    caps = re.findall(r"nvidia-cap\d+", said)
    assert len(set(caps)) == 2 and "nvidiactl" in said and "nvidia-uvm" in said
    assert len(re.findall(r"^nvidia\d+$", said, re.M)) == 1
    assert re.search(r"^MIG-\S+ void$", said, re.M)
    user.divvy.run("cancel", str(other))
    user.divvy.wait(other)


@needs_root
def test_limits_and_gate_are_around_it(user):
    """It stays in the task's cgroup, whatever hierarchy that is in."""
    job = user.submit("--", "sh", "-c", "cat /proc/self/cgroup; sleep 100")
    user.divvy.wait_state(job, "running")
    inside = until(lambda: [pid for pid in harness.processes_with("container", "podman")
                            if b"sleep" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                            and f"DIVVY_ATTEMPT={job}.1".encode()
                            in pathlib.Path(f"/proc/{pid}/environ").read_bytes()],
                   "the container's process is seen")
    started = json.loads((user.divvy.root / f"var/lib/divvy/jobs/{job}.1/started").read_text())
    if started["tracking"] == "none":
        pytest.skip(f"no cgroups for jobs here: {started['tracking_reason']}")
    for pid in inside:
        assert f"/{job}.1/payload/task-0" in pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
    user.divvy.run("cancel", str(job), user=user.podman.who.pw_uid)
    user.divvy.wait(job)


@needs_root
def test_cancel_kills_it_and_leaves_nothing(user):
    user.divvy.stop()
    user.divvy.configure("mode_hold: 0s\nkill_wait: 1s\n")
    user.divvy.start()
    job = user.submit("--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    output = user.folder / f"divvy-{job}.out"
    until(lambda: output.exists() and "up" in output.read_text(), "it runs")
    assert user.podman.containers() == [f"divvy-{job}.1-0"]
    user.divvy.run("cancel", str(job))
    assert user.divvy.wait(job)["state"] == "cancelled"
    assert user.podman.containers() == []


@needs_root
def test_nothing_of_podmans_own_stays_behind(user):
    """The first podman of a user starts a process that holds its namespaces: here, in the job."""
    user.podman.rest()
    job = user.submit("--", "sh", "-c", "until ls go; do sleep 0.1; done")
    user.divvy.wait_state(job, "running")
    started = json.loads((user.divvy.root / f"var/lib/divvy/jobs/{job}.1/started").read_text())
    (user.folder / "go").touch()
    assert user.divvy.wait(job)["state"] == "completed"
    # os.walk goes on where a directory vanishes under it: other jobs come and go meanwhile.
    left = [path for path, _, _ in os.walk("/sys/fs/cgroup")
            if path.endswith(f"/{job}.1") and str(started["cgroup"]).strip("/") in path]
    assert not left
    assert not list(harness.processes_with("DIVVY_ATTEMPT", f"{job}.1"))


@needs_root
def test_a_script_and_named_variables_go_in(user):
    script = user.folder / "job.sh"
    script.write_text(f"#!/bin/sh\n#DIVVY --container {IMAGE} --env EPOCHS=3\n"
                      'echo "epochs $EPOCHS secret $SECRET args $*"\n')
    job = user.divvy.submit(script, "a", "b",
                            **{**user.how, "env": {**user.podman.env, "SECRET": "hidden"}})
    assert user.divvy.wait(job)["state"] == "completed"
    said = (user.folder / f"divvy-{job}.out").read_text()
    assert "epochs 3 secret  args a b" in said


@needs_root
def test_two_tasks_are_two_containers(user):
    job = user.submit("--slice", "1g.10gb:2", "--output", "out-%t", "--", "sh", "-c",
                      "echo $DIVVY_TASK_ID $CUDA_VISIBLE_DEVICES")
    assert user.divvy.wait(job, patience=60)["state"] == "completed"
    said = [(user.folder / f"out-{task}").read_text().splitlines()[-1].split()
            for task in range(2)]
    assert [words[0] for words in said] == ["0", "1"]
    assert said[0][1] != said[1][1]
    until(lambda: not user.podman.containers(), "the containers are gone")


@needs_root
def test_an_image_that_is_not_there_ends_the_job_with_podmans_words(user):
    done = user.divvy.run("run", "--container", "localhost/no-such-image", "--container-arg",
                          "--pull=never", "--", "true", check=False, **user.how)
    assert done.returncode == 125 and "no-such-image" in done.stderr


@needs_root
def test_attach_goes_into_the_container(user):
    if "attach" not in user.divvy.run("help").stdout:
        pytest.skip("this divvy has no attach")
    job = user.submit("--", "sleep", "100")
    user.divvy.wait_state(job, "running")
    until(lambda: user.podman.containers(), "podman has made the container")
    said = until(lambda: user.divvy.run("attach", str(job), "--", "sh", "-c", "ls /; pwd",
                                        check=False, **user.how).stdout, "the container is entered")
    assert "busybox" not in said and "bin" in said.split() and "root" not in said.split()
    assert str(user.folder) in said.split()
    user.divvy.run("cancel", str(job))
    user.divvy.wait(job)
    assert user.podman.containers() == []


# ---- without podman ----------------------------------------------------------


@pytest.fixture
def stand_in(box):
    """A folder to put first into divvyd's PATH; programs there write down how they were called."""
    folder = box.folder / "bin"
    folder.mkdir()

    def make(name):
        program = folder / name
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\necho "env ${APPTAINERENV_A-unset} '
                           '${APPTAINERENV_DIVVY_TASK_ID-unset}"\n')
        program.chmod(0o755)
        return program
    make.path = folder
    return make


def start(box, path):
    box.machine.up("a100-80gb:1")
    box.divvy.start(env={"PATH": str(path)})
    return box.divvy


@needs_root
def test_apptainer_is_asked_for_what_divvy_promises(box, stand_in):
    """Only how it is called: a stand-in takes the words."""
    stand_in("apptainer")
    divvy = start(box, f"{stand_in.path}:/usr/bin:/bin")
    said = divvy.run("run", "--container", "/images/x.sif", "--container-runtime", "apptainer",
                     "--env", "A=1", "--container-arg=--writable-tmpfs", "--", "python3", "-c", "1",
                     user=pwd.getpwnam(USER).pw_uid, cwd="/tmp").stdout.split("\n")
    assert said[:5] == ["exec", "--cleanenv", "--bind=/tmp", "--pwd=/tmp", "--writable-tmpfs"]
    assert said[5:10] == ["/images/x.sif", "python3", "-c", "1", "env 1 0"]


@needs_root
def test_without_a_runtime_it_is_refused_at_once(box, stand_in):
    divvy = start(box, stand_in.path)
    uid = pwd.getpwnam(USER).pw_uid
    done = divvy.run("submit", "--container", "debian", "--", "true", check=False, user=uid,
                     cwd="/tmp")
    assert done.returncode == 1 and "there is no podman or apptainer on this machine" in done.stderr
    stand_in("podman")
    done = divvy.run("submit", "--container", "debian", "--container-runtime", "apptainer", "--",
                     "true", check=False, user=uid, cwd="/tmp")
    assert done.returncode == 1 and "there is no apptainer on this machine" in done.stderr
    done = divvy.run("submit", "--container", "debian", "--", "true", check=False, cwd="/tmp")
    assert done.returncode != 0 and "root's jobs run in no container" in done.stderr


@pytest.mark.parametrize("words, sentence", [
    (["--container", "-v"], "'-v' is no image"),
    (["--container", "debian", "--container-runtime", "lxc"], "podman, apptainer and docker are"),
    (["--container", "debian", "--container-runtime", "docker", "--container-arg=--privileged"],
     "not for a job to say where docker's own daemon"),
    (["--container", "debian", "--container-arg", "data"], "is no option of the container's"),
    (["--container", "debian", "--container-arg=--cgroup-parent=/"], "is not for a job to say"),
    (["--container", "debian", "--container-arg=-itd"], "is not for a job to say"),
    (["--container-arg", "--init"], "--container IMAGE says what runs"),
])
def test_what_cannot_be_is_refused_with_the_reason(box, words, sentence):
    done = box.divvy.run("submit", *words, "--", "true", check=False)
    assert done.returncode == 2 and sentence in " ".join(done.stderr.split())


# ---- CDI -----------------------------------------------------------------------


def devices(spec):
    """name -> the paths of its nodes, after holding the whole against CDI 0.5.0's rules."""
    assert set(spec) == {"cdiVersion", "kind", "devices", "containerEdits"}
    assert spec["cdiVersion"] == "0.5.0" and spec["devices"]
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_-]*", spec["kind"])
    found = {}
    for edits in [spec["containerEdits"], *(d["containerEdits"] for d in spec["devices"])]:
        assert set(edits) <= {"env", "deviceNodes", "mounts", "hooks"}
        for node in edits["deviceNodes"]:
            assert set(node) <= {"path", "hostPath", "type", "major", "minor", "fileMode",
                                 "permissions"}
            assert node["type"] == "c" and node["major"] > 0 and node["path"].startswith("/dev/")
    for device in spec["devices"]:
        assert set(device) == {"name", "containerEdits"}
        assert NAME_OF_DEVICE.fullmatch(device["name"]) and device["name"] not in found
        found[device["name"]] = [node["path"] for node in device["containerEdits"]["deviceNodes"]]
    return found


def test_cdi_tells_of_cards_and_slices_without_a_daemon(box):
    box.machine.up("a100-80gb:2")
    box.machine.sim("mig", "0", "on", check=False)
    spec = json.loads(box.divvy.run("cdi").stdout)
    whole = [name for name in devices(spec) if re.fullmatch(r"gpu\d", name)]
    assert whole and devices(spec)[whole[-1]] == [f"/dev/nvidia{whole[-1][3:]}"]
    out = box.folder / "out.json"
    box.divvy.run("cdi", "--output", out, "--kind", "nvidia.com/gpu")
    assert json.loads(out.read_text())["kind"] == "nvidia.com/gpu"
    assert out.stat().st_mode & 0o777 == 0o644
    done = box.divvy.run("cdi", "--kind", "gpu", check=False)
    assert done.returncode == 2 and "VENDOR/CLASS" in done.stderr


def follow(divvy):
    path = divvy.root / "run/cdi/divvy.json"
    return devices(json.loads(path.read_text())) if path.exists() else {}


def test_divvyd_keeps_it_up_to_date_and_takes_it_along(box, machine):
    box.divvy.configure("mode_hold: 0s\ncdi: on\n")
    stale = box.divvy.root / "run/cdi/divvy.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("of an earlier divvyd")
    box.divvy.start()
    until(lambda: stale.exists() and "gpu0" in follow(box.divvy), "it is written anew")
    box.divvy.run("pool", "gpu0", "queue")
    box.divvy.run("mode", "gpu0", "auto")
    job = box.divvy.submit("--slice", "3g.40gb", "--", "true")
    assert box.divvy.wait(job)["state"] == "completed"
    names = until(lambda: [n for n in follow(box.divvy) if n.startswith("gpu0:3g.40gb:")],
                  "the slice is in it")
    assert len(follow(box.divvy)[names[0]]) == 3
    assert "gpu0" not in follow(box.divvy) and "gpu1" in follow(box.divvy)
    box.divvy.stop()
    assert not stale.exists()


def test_no_slice_is_named_while_it_is_being_destroyed(box, machine):
    """A card in mode auto goes back to being whole: first nothing names its slices."""
    box.divvy.configure("mode_hold: 0s\ncdi: on\n")
    box.divvy.start()
    box.divvy.run("pool", "gpu0", "queue")
    box.divvy.run("mode", "gpu0", "auto")
    cut = box.divvy.submit("--slice", "7g.80gb", "--", "true")
    box.divvy.wait(cut)
    until(lambda: "gpu0:7g.80gb:0" in follow(box.divvy), "the slice is in it")
    whole = box.divvy.submit("--gpus", "1", "--", "true")
    assert box.divvy.wait(whole)["state"] == "completed"
    until(lambda: "gpu0" in follow(box.divvy), "it is whole again")
    assert not [name for name in follow(box.divvy) if name.startswith("gpu0:")]


@needs_root
def test_podman_takes_a_slice_by_its_name(box, machine, podman):
    """
    The specification itself, in a real runtime. As root: an ordinary user's
    podman 4.3 mounts nodes by their path and passes over hostPath, which only a
    driver whose root is not / needs.
    """
    store = box.folder / "podman"
    box.divvy.configure("mode_hold: 0s\n")
    box.divvy.start()
    if not (box.machine.folder / "root/dev/nvidia0").is_char_device():
        pytest.skip("needs device nodes that can be opened (root, and no nodev on /tmp)")
    spec = pathlib.Path("/var/run/cdi/divvy-test.json")
    spec.parent.mkdir(exist_ok=True)
    try:
        box.divvy.run("cdi", "--kind", "divvy-test/gpu", "--output", spec)
        for words in [["import", podman.home / "image.tar", IMAGE],
                      ["run", "--rm", "--network=host", "--ulimit=nofile=1024:1024",
                       "--ulimit=nproc=1024:1024", "--device=divvy-test/gpu=gpu1", IMAGE,
                       "sh", "-c", "ls /dev; echo $NVIDIA_VISIBLE_DEVICES"]]:
            said = run("podman", f"--root={store}/store", f"--runroot={store}/run",
                       "--storage-driver=vfs", "--cgroup-manager=cgroupfs", *OCI, *words,
                       timeout=120).stdout.split()
    finally:
        spec.unlink(missing_ok=True)
    assert "nvidia1" in said and "nvidiactl" in said and "nvidia0" not in said and "void" in said
