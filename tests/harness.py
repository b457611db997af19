"""harness.py - a simulated machine and a private Divvy for one test.

Both live in a short folder of their own below /tmp (socket paths have 107
bytes, and other users must be able to enter), and nothing of them is left when
the test ends: not a process, not a file.

    with Box() as box:
        box.machine.up("a100-80gb:2")
        box.divvy.start()
        job = box.divvy.submit("--slice", "2g.20gb", "--", "divvy-probe")
        assert box.divvy.wait(job)["state"] == "completed"

Programs come from the build folder that DIVVY_BUILD names.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("DIVVY_BUILD") or SOURCE / "build/check-gcc").resolve()
PROGRAMS = BUILD / "src"
ENDED = ("completed", "failed", "cancelled", "timeout", "oom", "preempted", "lost")
PATIENCE = 30.0  # seconds until a condition that never comes true fails a test


class Failed(AssertionError):
    """A command ended with a status that the test did not expect."""


def run(*command, env=None, check=True, timeout=PATIENCE, **more):
    """Runs to the end and gives the CompletedProcess (text, both streams)."""
    done = subprocess.run([str(word) for word in command], env=env, timeout=timeout, text=True,
                          stdin=more.pop("stdin", subprocess.DEVNULL),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n"
                     f"{done.stdout}{done.stderr}")
    return done


def until(true, what, patience=PATIENCE, every=0.02):
    """Waits for true() to give something true, and gives it."""
    end = time.monotonic() + patience
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {patience:g} s: {what}")
        time.sleep(every)


def on_terminal(command, env, columns=80, lines=50, enough=None, patience=PATIENCE):
    """
    Runs a program on a terminal of its own until it ends, or until enough(what
    was drawn) is true, and gives that, without the escape sequences.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(str(command[0]), [str(word) for word in command], {**env, "TERM": "linux"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    drawn, end = "", time.monotonic() + patience
    try:
        while time.monotonic() < end and not (enough and enough(drawn)):
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    drawn += re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", "" if not enough else " ",
                                    os.read(terminal, 65536).decode(errors="replace"))
                except OSError:
                    break  # it ended, and its terminal with it
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(pid, 0)
        os.close(terminal)
    return drawn.replace("\r\n", "\n")


def processes_with(name, value):
    """Pids whose environment holds NAME=VALUE."""
    entry = f"{name}={value}".encode()
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if entry in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
            except OSError:
                pass  # ended meanwhile, or not ours to look at


class Machine:
    """Simulated cards: divvy-sim in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "DIVVY_SIM": str(folder),
                    "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        for name in ("DIVVY_ROOT", "DIVVY_NVML", "DIVVY_DRIVER_ROOT", "LD_LIBRARY_PATH"):
            self.env.pop(name, None)

    def sim(self, *words, check=True):
        return run(PROGRAMS / "divvy-sim", *words, env=self.env, check=check)

    def up(self, *cards):
        """Starts it with cards ("a100-80gb:2"); afterwards env points clients at it."""
        self.sim("up", *cards)
        shown = run("sh", "-c", 'eval "$("$0" env)" && exec env -0', PROGRAMS / "divvy-sim",
                    env=self.env).stdout
        self.env = dict(entry.split("=", 1) for entry in shown.split("\0") if entry)
        return self

    def status(self):
        return json.loads(self.sim("status", "--json").stdout)

    def down(self):
        if self.folder.exists():
            self.sim("down", check=False)


class Divvy:
    """divvyd with a root of its own, and the divvy command that talks to it."""

    def __init__(self, folder, machine):
        self.root = folder
        self.machine = machine
        self.daemon = None
        self.log = folder / "divvyd.log"
        self.under = []     # words before divvyd's own: a program that execs it
        self.daemon_env = {}

    @property
    def env(self):
        return {**self.machine.env, "DIVVY_ROOT": str(self.root)}

    def configure(self, text):
        path = self.root / "etc/divvy/divvy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def launch(self, *options, env=None):
        """Starts divvyd and comes back at once."""
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                [*self.under, PROGRAMS / "divvyd", *options],
                env={**self.env, **self.daemon_env, **(env or {})},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        return self

    def start(self, *options, env=None):
        """Starts divvyd and comes back when it answers and has looked at the driver."""
        self.launch(*options, env=env)
        until(self.answers, "divvyd answers and knows its cards")
        return self

    def answers(self):
        if self.daemon.poll() is not None:
            raise Failed(f"divvyd ended with {self.daemon.returncode}; it said:\n{self.said()}")
        done = self.run("status", "--json", check=False)
        told = json.loads(done.stdout) if done.returncode == 0 else {"cards": 0}
        return told["cards"] or told.get("driver_trouble")

    def said(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def stop(self, how=signal.SIGTERM):
        """Ends divvyd; jobs live on. Gives its exit status."""
        if not self.daemon:
            return None
        self.daemon.send_signal(how)
        try:
            return self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
            raise Failed(f"divvyd did not end on signal {how}; it said:\n{self.said()}") from None
        finally:
            self.daemon = None

    def kill(self):
        return self.stop(signal.SIGKILL)

    def run(self, *words, check=True, env=None, user=None, **more):
        """divvy WORDS...; `user` is a uid to run it as (root only). Runs in the test's folder."""
        command = [PROGRAMS / "divvy", *words]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        more.setdefault("cwd", self.root.parent)  # outputs without a name land where it runs
        return run(*command, env={**self.env, **(env or {})}, check=check, **more)

    def json(self, *words, **more):
        return json.loads(self.run(*words, "--json", **more).stdout)

    def submit(self, *words, **more):
        """divvy submit WORDS... (options, then "--" and the command); gives the job's id."""
        return json.loads(self.run("submit", "--json", *words, **more).stdout)["id"]

    def show(self, job):
        return self.json("show", str(job))

    def wait_state(self, job, *states, patience=PATIENCE):
        """Waits until the job is in one of the states, and gives what show says."""
        def there():
            seen = self.show(job)
            return seen if seen["state"] in states else None
        return until(there, f"job {job} is {' or '.join(states)}", patience, 0.05)

    def wait(self, job, patience=PATIENCE):
        """Waits until the job has ended, and gives what show says."""
        return self.wait_state(job, *ENDED, patience=patience)

    def processes(self):
        """Pids of everything that belongs to this root: daemon, children, supervisors, tasks."""
        return list(processes_with("DIVVY_ROOT", self.root))

    def end(self):
        try:
            self.stop()
        finally:
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            until(lambda: not self.processes(), "what was killed is gone")


class Box:
    """One folder with a machine and a Divvy in it."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dv-", dir=os.environ.get("DIVVY_TEST_DIR", "/tmp")))
        self.folder.chmod(0o755)
        (self.folder / "root").mkdir(mode=0o755)
        self.machine = Machine(self.folder / "sim")
        self.divvy = Divvy(self.folder / "root", self.machine)

    def counting_reset(self):
        """An environment whose reset command notes what it was called with; and the notes so far."""
        told = self.folder / "resets"
        script = self.folder / "reset"
        script.write_text(f"#!/bin/sh\necho $1 >> {told}\nexec {PROGRAMS / 'divvy-sim'} reset $1\n")
        script.chmod(0o755)
        told.touch()
        return {"DIVVY_RESET_COMMAND": f"{script} {{uuid}}"}, lambda: told.read_text().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.divvy.end()
        finally:
            self.machine.down()
            shutil.rmtree(self.folder, ignore_errors=True)
