"""divvy-supervise by itself: a folder goes in, an exit comes out, nothing stays behind."""
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time

import pytest

import harness
from harness import until

SUPERVISE = harness.PROGRAMS / "divvy-supervise"
UNIFIED = next((p for p in (pathlib.Path("/sys/fs/cgroup/unified"), pathlib.Path("/sys/fs/cgroup"))
                if (p / "cgroup.procs").exists()), None)
V1_MEMORY = pathlib.Path("/sys/fs/cgroup/memory")
USER = 65534 if os.getuid() == 0 else os.getuid()
SECOND = 1_000_000

needs_tree = pytest.mark.skipif(
    os.getuid() != 0 or UNIFIED is None or not os.access(UNIFIED, os.W_OK),
    reason="needs root and a writable unified cgroup mount")


class Attempt:
    """One job folder and the supervisor on it."""

    def __init__(self, folder):
        self.folder = folder
        self.jobs = folder / "jobs"
        self.work = folder / "work"
        self.dir = self.jobs / "7.1"
        self.tree = f"/divvy-test-{folder.name}"
        self.process = None
        self.jobs.mkdir(mode=0o700)
        self.work.mkdir(mode=0o755)
        if os.getuid() == 0:
            os.chown(self.work, USER, USER)

    def write(self, *argv, tasks=1, task=None, cgroup=False, job=None, **more):
        """Writes spec.json. `job` and `more` replace fields; `task` is laid over every task."""
        spec = {
            "v": 1, "job_id": 7, "attempt": 1, "uid": USER, "gid": os.getgid() if USER else 0,
            "groups": None, "kill_grace_us": SECOND, "attach_wait_us": 20 * SECOND,
            "root": str(self.folder), "driver_root": str(self.folder / "driver"),
            "cgroup_root": self.tree if cgroup else "", "gate": False,
            "job": {"name": "t", "account": "a", "argv": list(argv), "cwd": str(self.work),
                    "env": [f"PATH={os.environ['PATH']}", "LC_ALL=C"],
                    "output": str(self.work / "out"),
                    "request": {"kind": "nothing", "count": 1}, **(job or {})},
            "tasks": [{"env": [f"DIVVY_TASK_ID={i}"], "devices": [], "limits": {}, **(task or {})}
                      for i in range(tasks)],
        }
        if os.getuid() == 0:
            spec["gid"] = USER
        spec.update(more)
        self.dir.mkdir(mode=0o700)
        (self.dir / "spec.json").write_text(json.dumps(spec))
        return self

    def start(self):
        self.process = subprocess.Popen([SUPERVISE, self.dir], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return self

    def started(self):
        return until(lambda: self.read("started"), "the attempt has started")

    def read(self, name):
        path = self.dir / name
        return json.loads(path.read_text()) if path.exists() else None

    def finish(self):
        """Waits for the supervisor, and gives how the job ended."""
        self.process.wait(harness.PATIENCE)
        end = self.read("exit")
        assert end is not None, f"no exit; it said: {self.process.stdout.read()}{self.log()}"
        return end["job"]

    def run(self, *argv, **more):
        return self.write(*argv, **more).start().finish()

    def stop(self, reason="cancel"):
        (self.dir / ".stop").write_text(json.dumps({"v": 1, "reason": reason}))
        (self.dir / ".stop").rename(self.dir / "stop")

    def log(self):
        path = self.dir / "supervise.log"
        return path.read_text() if path.exists() else ""

    def output(self, name="out"):
        path = self.work / name
        return path.read_text() if path.exists() else ""

    def says(self, text):
        until(lambda: text in self.output(), f"the job says {text!r}")

    def alive(self):
        """Processes of the job; a supervisor does not carry the mark itself."""
        return [pid for pid in harness.processes_with("DIVVY_ROOT", self.folder)]

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until(lambda: not self.alive(), "what was killed is gone")
        for mount in [UNIFIED, *pathlib.Path("/sys/fs/cgroup").glob("*")]:
            top = mount / self.tree[1:] if mount else None
            if top and top.is_dir():
                for path in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
                    path.rmdir()
                top.rmdir()


@pytest.fixture
def attempt():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ds-", dir="/tmp"))
    folder.chmod(0o755)
    one = Attempt(folder)
    try:
        yield one
    finally:
        one.end()
        shutil.rmtree(folder, ignore_errors=True)


# ---- how it ends ------------------------------------------------------------


@pytest.mark.parametrize("number, expected", [(1, "new\n"), (2, "old\nnew\n")])
def test_only_the_first_attempt_begins_the_output_anew(attempt, number, expected):
    out = attempt.work / "out"
    out.write_text("old\n")
    if os.getuid() == 0:
        os.chown(out, USER, USER)
    attempt.run("echo", "new", attempt=number)
    assert attempt.output() == expected


@pytest.mark.smoke
def test_exit_code_and_output_come_through(attempt):
    end = attempt.run("sh", "-c", "echo here; echo there >&2; exit 7")
    assert (end["kind"], end["value"], end["task"]) == ("exited", 7, 0)
    assert attempt.output() == "here\nthere\n"
    assert end["ended_boot_us"] > 0
    started = attempt.read("started")
    assert started["boot_id"] == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert started["tracking"] == "none" and started["tracking_reason"]
    assert started["isolation"] == "none" and started["isolation_reason"]


def test_signal_is_told_from_a_code(attempt):
    end = attempt.run("sh", "-c", "kill -SEGV $$")
    assert (end["kind"], end["value"]) == ("signaled", signal.SIGSEGV)


def test_program_that_is_not_there(attempt):
    end = attempt.run("there-is-no-such-program")
    assert (end["kind"], end["value"]) == ("not started", 127)
    assert "there-is-no-such-program" in end["text"] and "No such file" in end["text"]


def test_folder_that_is_not_there(attempt):
    end = attempt.run("true", job={"cwd": "/there/is/no/such/folder"})
    assert end["kind"] == "not started" and "/there/is/no/such/folder" in end["text"]


def test_environment_is_the_jobs_and_the_tasks_and_nothing_else(attempt):
    attempt.run("/usr/bin/env", job={"env": ["A=1", "B=2"]}, task={"env": ["B=3", "CUDA=MIG-1"]})
    assert sorted(attempt.output().split()) == sorted(
        ["A=1", "B=3", "CUDA=MIG-1", "DIVVY_ATTEMPT=7.1", f"DIVVY_ROOT={attempt.folder}"])


def test_script_is_run_by_its_interpreter(attempt):
    attempt.run("job.sh", "one", "two", job={"script": "#!/bin/sh\necho got $1 $2\nexit 3\n"})
    assert attempt.output() == "got one two\n"
    assert attempt.read("exit")["job"]["value"] == 3


def test_nothing_is_inherited(attempt):
    attempt.run("sh", "-c", "ls /proc/self/fd | wc -l; grep -E 'NoNewPrivs|SigBlk|SigIgn' /proc/self/status")
    words = attempt.output().split()
    assert words[0] == "4"  # the three, and ls's own
    assert words[words.index("NoNewPrivs:") + 1] == "1"
    assert int(words[words.index("SigBlk:") + 1], 16) == 0
    assert int(words[words.index("SigIgn:") + 1], 16) == 0


# ---- when it is ended -------------------------------------------------------


def test_time_limit_is_term_then_kill(attempt):
    end = attempt.run("sh", "-c", "trap 'echo warned' TERM; echo up; while :; do sleep 0.1; done",
                      job={"limit_us": SECOND // 2}, kill_grace_us=SECOND // 2)
    assert end["kind"] == "timeout"
    assert "warned" in attempt.output()


def test_signal_before_the_limit_then_term_then_kill(attempt):
    end = attempt.run("sh", "-c", "trap 'echo save' USR1; trap 'echo warned' TERM; echo up;"
                      " while :; do sleep 0.05; done", kill_grace_us=SECOND // 2,
                      job={"limit_us": SECOND, "signal": "USR1", "signal_before_us": SECOND // 2})
    assert end["kind"] == "timeout"
    said = attempt.output().split()
    assert said.index("save") < said.index("warned") and said.count("save") == 1


def test_signal_that_the_job_does_not_catch_ends_it(attempt):
    end = attempt.run("sleep", "1000", job={"limit_us": 1000 * SECOND, "signal": "USR1",
                                             "signal_before_us": 1000 * SECOND - SECOND // 2})
    assert (end["kind"], end["value"]) == ("signaled", signal.SIGUSR1)


@pytest.mark.parametrize("how", ["cancel", "preempt", "timeout", "signal"])
def test_stop_says_why(attempt, how):
    attempt.write("sh", "-c", "echo up; exec sleep 1000").start()
    attempt.says("up")
    if how == "signal":
        attempt.process.terminate()
    else:
        attempt.stop(how)
    end = attempt.finish()
    kinds = {"timeout": "timeout", "signal": "interrupted"}
    said = {"preempt": "preempted", "timeout": "its time limit ended it", "cancel": "",
            "signal": "ended from outside of Divvy: the machine shut down, or its unit was stopped"}
    assert (end["kind"], end["text"]) == (kinds.get(how, "cancelled"), said[how])


def test_stop_before_the_start_runs_nothing(attempt):
    attempt.write("sh", "-c", "echo ran")
    attempt.stop()
    assert attempt.start().finish()["kind"] == "cancelled"
    assert attempt.output() == "" and attempt.read("started") is None


@pytest.mark.parametrize("cgroup", [False, pytest.param(True, marks=needs_tree)])
def test_what_left_the_session_is_killed_too(attempt, cgroup):
    end = attempt.run("sh", "-c", "setsid sh -c 'setsid sleep 1000 & sleep 1000' & sleep 0.2; exit 4",
                      cgroup=cgroup)
    assert (end["kind"], end["value"]) == ("exited", 4)
    assert attempt.alive() == []
    if cgroup:
        assert attempt.read("started")["tracking"] in ("v2", "hybrid")
        assert not (UNIFIED / attempt.tree[1:] / "7.1").exists()


# ---- several tasks ----------------------------------------------------------


def test_one_failed_task_ends_the_others(attempt):
    end = attempt.run("sh", "-c", "[ $DIVVY_TASK_ID = 1 ] && exit 9; exec sleep 1000", tasks=3)
    assert (end["kind"], end["value"], end["task"]) == ("exited", 9, 1)
    kinds = [task["kind"] for task in attempt.read("exit")["tasks"]]
    assert kinds == ["signaled", "exited", "signaled"]


def test_keep_going_lets_them_finish(attempt):
    end = attempt.run("sh", "-c", "[ $DIVVY_TASK_ID = 0 ] && exit 9; sleep 0.3; echo done", tasks=2,
                      job={"keep_going": True})
    assert (end["kind"], end["value"], end["task"]) == ("exited", 9, 0)
    assert attempt.read("exit")["tasks"][1]["value"] == 0
    assert attempt.output() == "done\n"


# ---- never twice ------------------------------------------------------------


def test_started_is_never_started_again(attempt):
    attempt.run("sh", "-c", "echo ran")
    (attempt.dir / "exit").unlink()
    assert attempt.start().process.wait(harness.PATIENCE) == 3
    assert attempt.output() == "ran\n"


def test_second_supervisor_gives_way(attempt):
    attempt.write("sh", "-c", "echo up; exec sleep 1000").start()
    attempt.says("up")
    second = subprocess.run([SUPERVISE, attempt.dir], capture_output=True, text=True, check=False)
    assert second.returncode == 3 and "another supervisor" in second.stderr
    attempt.stop()
    assert attempt.finish()["kind"] == "cancelled"
    assert attempt.output() == "up\n"


def lock_is_held(path):
    """As jobdir_state asks: without taking it."""
    with open(path, "r+b") as f:
        answer = fcntl.fcntl(f, fcntl.F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    return struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK


@needs_tree
def test_killed_supervisor_leaves_a_tree_that_can_be_cleared(attempt):
    attempt.write("sh", "-c", "setsid sleep 1000 & echo up; sleep 1000", cgroup=True).start()
    attempt.says("up")
    assert lock_is_held(attempt.dir / "spec.json")
    attempt.process.kill()
    attempt.process.wait()
    assert not lock_is_held(attempt.dir / "spec.json")
    assert attempt.read("started") and not attempt.read("exit")
    assert attempt.read("started")["cgroup"] == attempt.tree
    payload = UNIFIED / attempt.tree[1:] / "7.1/payload"
    assert "populated 1" in (payload / "cgroup.events").read_text()
    (payload / "cgroup.kill").write_text("1")
    until(lambda: "populated 0" in (payload / "cgroup.events").read_text(), "the tree is empty")


def test_killed_before_the_release_runs_nothing(attempt):
    """An attached job is held until its client comes: killed there, nothing of it ran."""
    path = attempt.folder / "sock"
    attempt.write("sh", "-c", f"echo ran > {attempt.work}/ran", job={"attached": True, "output": None},
                  attach_socket=str(path)).start()
    held = [task["process"]["pid"] for task in attempt.started()["tasks"]]
    attempt.process.kill()
    attempt.process.wait()
    until(lambda: not any(running(pid) for pid in held), "the held task ends by itself")
    assert not (attempt.work / "ran").exists()


@needs_tree
def test_supervisor_whose_cgroup_was_killed_once(attempt):
    """Linux since 6.16 then kills at birth what is cloned into another cgroup."""
    own = UNIFIED / attempt.tree[1:] / "own"
    own.mkdir(parents=True)
    (own / "cgroup.kill").write_text("1")
    attempt.write("sh", "-c", "echo ran", cgroup=True)
    subprocess.run(["sh", "-c", f"echo 0 > {own}/cgroup.procs && exec {SUPERVISE} {attempt.dir}"],
                   check=True)
    assert attempt.read("exit")["job"]["kind"] == "exited"
    assert attempt.output() == "ran\n"


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("cgroup", [False, pytest.param(True, marks=needs_tree)])
def test_killed_anywhere_it_never_runs_twice(attempt, cgroup):
    """Kills the supervisor after a random while, over its whole life; the seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ends = set()
    for _ in range(40):
        attempt.write("sh", "-c", f"echo ran >> {attempt.work}/ran", cgroup=cgroup).start()
        time.sleep(chance.uniform(0, 0.03))
        attempt.process.kill()
        attempt.process.wait()
        attempt.process.stdout.close()
        until(lambda: not lock_is_held(attempt.dir / "spec.json"), "a child just forked lets go, too")
        if not attempt.read("started"):
            assert attempt.output("ran") == "" and attempt.read("exit") is None
            ends.add("new")
            end = attempt.start().finish()
            assert end["kind"] == "exited", end
        elif not attempt.read("exit"):
            ends.add("dead")
            assert attempt.start().process.wait(harness.PATIENCE) == 3
            clear(attempt)
        else:
            ends.add("ended")
        assert attempt.output("ran").count("ran") <= 1
        if attempt.read("exit"):
            assert attempt.output("ran") == "ran\n", attempt.read("exit")
        (attempt.work / "ran").unlink(missing_ok=True)
        shutil.rmtree(attempt.dir)
    print(f"killed while it was {', '.join(sorted(ends))}")


def clear(attempt):
    """What divvyd does with an attempt whose supervisor died."""
    payload = UNIFIED / attempt.tree[1:] / "7.1/payload" if UNIFIED else None
    if payload and payload.exists():
        (payload / "cgroup.kill").write_text("1")
        until(lambda: "populated 0" in (payload / "cgroup.events").read_text(), "the tree is empty")
    for pid in attempt.alive():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not attempt.alive(), "what was killed is gone")


# ---- the user ---------------------------------------------------------------


@pytest.mark.root
def test_it_is_the_user_in_every_way(attempt):
    attempt.run("sh", "-c", "id -u; id -g; id -G; grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status; "
                            "cat /proc/self/oom_score_adj", groups=[USER, 4242])
    words = attempt.output().split()
    assert words[0] == str(USER) and words[1] == str(USER)
    assert "4242" in words
    assert int(words[words.index("CapEff:") + 1], 16) == 0
    assert int(words[words.index("CapBnd:") + 1], 16) & (1 << 21 | 1 << 27) == 0  # SYS_ADMIN, MKNOD
    assert words[-1] == "0"


@pytest.mark.root
def test_roots_own_job_has_no_sys_admin(attempt):
    attempt.run("grep", "CapEff", "/proc/self/status", uid=0, gid=0)
    assert int(attempt.output().split()[1], 16) & (1 << 21) == 0


@pytest.mark.root
def test_output_belongs_to_the_user_and_follows_no_link(attempt):
    attempt.run("echo", "hello")
    assert (attempt.work / "out").stat().st_uid == USER
    (attempt.dir / "spec.json").unlink()
    shutil.rmtree(attempt.dir)
    secret = attempt.folder / "secret"
    secret.write_text("root's\n")
    (attempt.work / "out").unlink()
    (attempt.work / "out").symlink_to(secret)
    end = attempt.run("echo", "overwritten")
    assert end["kind"] == "not started" and "symbolic link" in end["text"]
    assert secret.read_text() == "root's\n"


@pytest.mark.root
def test_output_where_the_user_may_not_write(attempt):
    attempt.work.chmod(0o755)
    os.chown(attempt.work, 0, 0)
    end = attempt.run("echo", "hello")
    assert end["kind"] == "not started" and "Permission denied" in end["text"]
    assert not (attempt.work / "out").exists()


def test_ordinary_user_starts_only_his_own(attempt):
    if os.getuid() != 0:
        end = attempt.run("true", uid=os.getuid() + 1)
    else:
        attempt.write("true", uid=USER + 1)
        for path in [attempt.jobs, attempt.dir, *attempt.dir.iterdir()]:
            os.chown(path, USER, USER)
        subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                        SUPERVISE, attempt.dir], check=True)
        end = attempt.read("exit")["job"]
    assert end["kind"] == "not started" and "cannot start a job of uid" in end["text"]


# ---- limits and the gate ----------------------------------------------------


EAT = "import sys\nx = []\nwhile True: x.append(bytearray(1 << 20))"


@needs_tree
@pytest.mark.skipif(not V1_MEMORY.is_dir() and
                    "memory" not in (UNIFIED / "cgroup.controllers").read_text() if UNIFIED else True,
                    reason="no memory controller here")
def test_memory_limit_is_an_oom(attempt):
    end = attempt.run("/usr/bin/python3", "-c", EAT, cgroup=True,
                      task={"limits": {"mem_bytes": 64 << 20}})
    assert attempt.read("started")["tasks"][0]["memory_enforced"] is True
    assert end["kind"] == "oom"
    assert 32 << 20 < end["mem_peak_bytes"] <= 64 << 20
    assert end["cpu_us"] > 0


@needs_tree
@pytest.mark.skipif(not V1_MEMORY.is_dir() and
                    "memory" not in (UNIFIED / "cgroup.controllers").read_text() if UNIFIED else True,
                    reason="no memory controller here")
def test_memory_limit_ends_the_task_as_one(attempt):
    """The process that eats is not the task's first; the first would wait for ever."""
    end = attempt.run("sh", "-c", f"/usr/bin/python3 -c '{EAT}' & sleep 1000", cgroup=True, tasks=2,
                      task={"limits": {"mem_bytes": 64 << 20}})
    assert end["kind"] == "oom"


@needs_tree
def test_a_limit_without_its_controller_is_not_claimed(attempt):
    attempt.run("true", cgroup=False, task={"limits": {"mem_bytes": 64 << 20, "pids": 10}})
    task = attempt.read("started")["tasks"][0]
    assert task["memory_enforced"] is False and task["pids_enforced"] is False


@needs_tree
def test_a_limit_that_cannot_be_is_refused_before_anything_runs(attempt):
    if not pathlib.Path("/sys/fs/cgroup/cpuset").is_dir() and \
            "cpuset" not in (UNIFIED / "cgroup.controllers").read_text():
        pytest.skip("no cpuset controller here")
    end = attempt.run("echo", "ran", cgroup=True, task={"limits": {"cpus": "9999"}})
    assert end["kind"] == "not started" and "cpuset.cpus=9999" in end["text"]
    assert attempt.output() == ""


TRY = """
import errno, os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        print("open")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


def must_be_bpf(started):
    """A kernel that has device programs must take ours; one that has not, says so."""
    if started["isolation"] != "bpf":
        probe = "import ctypes, os, sys; " \
            "insns = (ctypes.c_uint64 * 2)(0x1000000b7, 0x95); " \
            "attr = (ctypes.c_uint64 * 16)(2 << 32 | 15, ctypes.addressof(insns)); " \
            "name = ctypes.create_string_buffer(b'GPL'); attr[2] = ctypes.addressof(name); " \
            "sys.exit(ctypes.CDLL(None).syscall(321, 5, attr, 128) < 0)"
        if subprocess.run(["/usr/bin/python3", "-c", probe], check=False).returncode == 0:
            raise harness.Failed(f"no bpf gate here: {started['isolation_reason']}")
        pytest.skip(f"this kernel takes no device program; isolation is {started['isolation']}")


@needs_tree
@pytest.mark.parametrize("granted", [("ctl", "card0", "cap1"), ()])
def test_gate_opens_what_was_granted_and_nothing_else(attempt, granted):
    """Stand-in nodes: no driver answers on them, so what may be opened says ENXIO or ENODEV."""
    nodes = attempt.folder / "dev"
    nodes.mkdir()
    numbers = {"ctl": (195, 255), "card0": (195, 0), "card1": (195, 1), "cap1": (400, 1),
               "cap2": (400, 2)}
    for name, (major, minor) in numbers.items():
        os.mknod(nodes / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        (nodes / name).chmod(0o666)
    (attempt.folder / "driver/proc").mkdir(parents=True)
    (attempt.folder / "driver/proc/devices").write_text(
        "Character devices:\n195 nvidia\n400 nvidia-caps\n\nBlock devices:\n")
    devices = [{"path": str(nodes / n), "major": numbers[n][0], "minor": numbers[n][1]}
               for n in granted]
    end = attempt.run("/usr/bin/python3", "-c", TRY, *(str(nodes / n) for n in numbers), "/dev/null",
                      cgroup=True, gate=True, task={"devices": devices})
    assert end["kind"] == "exited" and end["value"] == 0
    must_be_bpf(attempt.read("started"))
    *seen, null = attempt.output().split()
    assert null == "open"
    for name, said in zip(numbers, seen):
        assert said in (("ENXIO", "ENODEV") if name in granted else ("EPERM",)), name


@needs_tree
def test_gate_without_a_driver_says_so(attempt):
    attempt.run("true", cgroup=True, gate=True)
    started = attempt.read("started")
    assert started["isolation"] == "none" and "/proc/devices" in started["isolation_reason"]


# ---- attached ---------------------------------------------------------------

HELLO, WELCOME, DATA, END_OF_INPUT, WINDOW, SIGNAL, EXIT, ERROR = range(1, 9)


class Client:
    """The client's end of the attach socket, spoken by hand."""

    def __init__(self, path, pty=False, fds=(), version=1):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(harness.PATIENCE)
        until(lambda: self.connect(path), "the attach socket is there")
        try:
            self.send(HELLO, struct.pack("IIII", version, 1 if pty else 0, 24, 80), fds)
        except BrokenPipeError:
            pass  # refused before it spoke; the reason can still be read

    def connect(self, path):
        try:
            self.sock.connect(str(path))
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def send(self, kind, body=b"", fds=()):
        socket.send_fds(self.sock, [struct.pack("I", kind), body] if body else
                        [struct.pack("I", kind)], list(fds))

    def receive(self):
        packet = self.sock.recv(65536)
        return (struct.unpack("I", packet[:4])[0], packet[4:]) if packet else (0, b"")

    def until_exit(self):
        """What the terminal showed, and how the job ended."""
        shown = b""
        while True:
            kind, body = self.receive()
            if kind == DATA:
                shown += body
            elif kind == EXIT:
                return shown.decode(), json.loads(body)
            elif kind != WELCOME:
                raise harness.Failed(f"packet {kind}: {body!r}")


def attached(attempt, *argv, pty=False, **more):
    path = attempt.folder / "sock"
    job = {"attached": True, "pty": pty, "output": None, **more.pop("job", {})}
    attempt.write(*argv, job=job, attach_socket=str(path), **more).start()
    return path


@pytest.mark.smoke
def test_streams_of_the_client_become_the_jobs(attempt):
    path = attached(attempt, "sh", "-c", "read line; echo got $line; echo bad >&2; exit 5")
    given, taken, error = os.pipe(), os.pipe(), os.pipe()
    client = Client(path, fds=(given[0], taken[1], error[1]))
    for fd in (given[0], taken[1], error[1]):
        os.close(fd)
    os.write(given[1], b"this\n")
    _, end = client.until_exit()
    assert (end["kind"], end["value"]) == ("exited", 5)
    assert os.read(taken[0], 100) == b"got this\n" and os.read(taken[0], 1) == b""
    assert os.read(error[0], 100) == b"bad\n"
    assert attempt.finish()["value"] == 5
    assert not path.exists()


def test_terminal_is_one(attempt):
    path = attached(attempt, "sh", "-c", "tty -s && stty size; read x; echo [$x]; kill -INT $$", pty=True)
    client = Client(path, pty=True)
    client.send(DATA, b"word\n")
    shown, end = client.until_exit()
    assert "24 80" in shown and "[word]" in shown
    assert (end["kind"], end["value"]) == ("signaled", signal.SIGINT)


def test_interrupt_key_and_window(attempt):
    path = attached(attempt, "sh", "-c", "trap 'stty size; exit 6' INT; echo up; while :; do sleep 0.05; done",
                    pty=True)
    client = Client(path, pty=True)
    shown = b""
    while b"up" not in shown:
        shown += client.receive()[1]
    client.send(WINDOW, struct.pack("II", 50, 132))
    client.send(DATA, b"\x03")
    shown, end = client.until_exit()
    assert "50 132" in shown and end["value"] == 6


def test_long_output_arrives_whole(attempt):
    path = attached(attempt, "sh", "-c", "seq 1 20000", pty=True)
    shown, end = Client(path, pty=True).until_exit()
    assert shown.split() == [str(n) for n in range(1, 20001)]
    assert end["kind"] == "exited"


def test_signals_of_the_client_reach_the_job(attempt):
    path = attached(attempt, "sh", "-c", "trap 'exit 8' USR1; echo up; while :; do sleep 0.05; done")
    out = os.pipe()
    with open(os.devnull, "r+b") as null:
        client = Client(path, fds=(null.fileno(), out[1], null.fileno()))
    assert os.read(out[0], 10) == b"up\n"
    client.send(SIGNAL, struct.pack("I", signal.SIGUSR1))
    assert client.until_exit()[1]["value"] == 8


@pytest.mark.parametrize("keep", [False, True])
def test_lost_client_hangs_the_job_up_unless_kept(attempt, keep):
    path = attached(attempt, "sh", "-c",
                    f"trap 'echo hup >> {attempt.work}/seen; exit' HUP; echo up; sleep 0.1; "
                    "n=0; while [ $n -lt 20 ]; do sleep 0.05; n=$((n+1)); done; "
                    f"echo end >> {attempt.work}/seen", pty=True, job={"keep_on_hangup": keep})
    client = Client(path, pty=True)
    while b"up" not in client.receive()[1]:
        pass
    client.sock.close()
    end = attempt.finish()
    assert end["kind"] == ("exited" if keep else "cancelled")
    assert attempt.output("seen") == ("end\n" if keep else "hup\n")


def test_client_that_never_comes(attempt):
    attached(attempt, "sh", "-c", "echo ran", attach_wait_us=SECOND // 5)
    end = attempt.finish()
    assert end["kind"] == "not started" and "no client" in end["text"]


def test_other_versions_and_second_clients_are_refused(attempt):
    path = attached(attempt, "sh", "-c", "echo up; read x", pty=True)
    stranger = Client(path, pty=True, version=99)
    kind, text = stranger.receive()
    assert kind == ERROR and b"version" in text
    first = Client(path, pty=True)
    while b"up" not in first.receive()[1]:
        pass
    second = Client(path, pty=True)
    assert second.receive()[0] == ERROR
    first.send(DATA, b"\n")
    assert first.until_exit()[1]["kind"] == "exited"


@pytest.mark.root
def test_socket_is_the_users_alone(attempt):
    path = attached(attempt, "cat")
    until(path.exists, "the socket is there")
    seen = path.stat()
    assert (seen.st_uid, stat.S_IMODE(seen.st_mode)) == (USER, 0o600)
    attempt.stop()
    assert attempt.finish()["kind"] == "cancelled"


# ---- folders that are not as they should be ---------------------------------


@pytest.mark.parametrize("content, said", [
    ("", "spec.json"), ("{", "spec.json"), ("{}", "'v'"), ('{"v": 1}', "job_id"),
    ('{"v": 2}', "newer")])
def test_spec_that_cannot_be_read(attempt, content, said):
    attempt.dir.mkdir(mode=0o700)
    (attempt.dir / "spec.json").write_text(content)
    end = attempt.start().finish()
    assert end["kind"] == "not started" and said in end["text"]


def test_words_on_the_command_line():
    assert subprocess.run([SUPERVISE], capture_output=True, check=False).returncode == 2
    assert "Usage" in subprocess.run([SUPERVISE, "--help"], capture_output=True, text=True,
                                     check=True).stdout
    gone = subprocess.run([SUPERVISE, "/there/is/none"], capture_output=True, text=True, check=False)
    assert gone.returncode == 1 and "/there/is/none" in gone.stderr


def test_many_short_jobs_leave_nothing(attempt):
    for _ in range(10):
        assert attempt.run("true")["kind"] == "exited"
        shutil.rmtree(attempt.dir)
    assert attempt.alive() == []
