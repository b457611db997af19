"""kill_world.py - a Divvy whose processes die at named points, and a client that carries on.

    with World(kills) as w:
        w.start()
        w.arm("COMMITTED", 3)            # the third pass kills (src/base/killpoint.h)
        w.job("train", "--slice", "2g.20gb", body="exit 7", exits=7)
        w.settle()                       # starts divvyd again whenever it died
        assert not w.broken()            # invariants.py

A World remembers what was acknowledged and what each job should come to; the
jobs themselves write a line each time one of their tasks begins.
"""
import http.client
import json
import pathlib
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import time

import harness
import invariants

HEADER = harness.SOURCE / "src/base/killpoint.h"
CONFIG = """\
cards:
  default: {pool: queue, mode: auto}
mode_hold: 0s
kill_wait: 1s
driver_timeout: 5s
"""


def points():
    """Every name in killpoint.h, in its order."""
    return re.findall(r"^    X\((\w+)\)", HEADER.read_text(), re.M)


def comm(pid):
    """The short name of a process; None when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


class Job:
    """What was asked for, what is known of it, and what it may come to."""

    def __init__(self, name, tasks, states, exits):
        self.name = name
        self.tasks = tasks
        self.states = set(states)
        self.exits = exits
        self.id = None           # once known, by an answer or by its name in the store
        self.acknowledged = False
        self.may_run_again = False   # asked to be tried again, and may have begun before
        self.may_skip_tasks = False  # ends at the first failure, when others may not have begun
        self.cancelled = False   # a cancel was acknowledged before it had ended


class World:
    """One machine, one root, one daemon that may be killed at any time."""

    def __init__(self, cards="a100-80gb:1", config=CONFIG):
        self.box = harness.Box()
        self.divvy = self.box.divvy
        self.out = self.box.folder / "out"
        self.kill = self.box.folder / "kill"
        for folder in (self.out, self.kill):
            folder.mkdir()
            folder.chmod(0o1777)
        self.cards = cards
        self.divvy.configure(config)
        self.jobs = {}
        self.deaths = 0          # of divvyd
        self.refusal = ""        # of the last submission
        self.kills_supervisors = False  # from outside, too: then any job may be lost
        self.may_quarantine = self.cuts_may_fail = False
        self.store_went_back = False  # then it knows nothing of slices that were made since
        self.clock_jumps = False  # then wall times say nothing of what came first
        self.clients = []

    def __enter__(self):
        self.box.__enter__()
        self.box.machine.up(*self.cards.split())
        return self

    def __exit__(self, *what):
        for client in self.clients:
            client.kill()
            client.communicate()
        self.box.__exit__(*what)

    # ---- killing ----

    def arm(self, point, passes=1):
        (self.kill / point).write_bytes(b"x" * passes)

    def disarm(self, point):
        """It is not reached any more; what is passed after the story kills nobody."""
        (self.kill / point).unlink(missing_ok=True)

    def record(self):
        """From here on every pass of a point is noted; passed() tells."""
        (self.kill / "passed").touch(mode=0o666)

    def passed(self):
        """{point: how often}"""
        count = {}
        path = self.kill / "passed"
        for line in path.read_text().splitlines() if path.exists() else ():
            name = line.split()[0]
            count[name] = count.get(name, 0) + 1
        return count

    def killed(self):
        """Points at which a process died, first to last."""
        path = self.kill / "killed"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    # ---- divvyd ----

    def launch(self):
        self.divvy.launch(env={"DIVVY_KILL": str(self.kill)})

    def start(self):
        self.launch()
        self.until(lambda: self.answering()[1]["cards"], "the cards are known")

    def revive(self):
        """Starts divvyd again if it was killed. True if so."""
        code = self.divvy.daemon.poll()
        if code is None:
            return False
        if code != -signal.SIGKILL:
            raise harness.Failed(f"divvyd ended with {code}; it said:\n{self.divvy.said()[-4000:]}")
        self.deaths += 1
        self.launch()
        return True

    def kill_daemon(self):
        """From outside; revive() starts it again."""
        self.divvy.daemon.kill()
        self.divvy.daemon.wait()

    def supervisors(self):
        """Pids of those of this root."""
        return [pid for pid in self.divvy.processes() if comm(pid) == "divvy-supervise"]

    def answering(self):
        """Until divvyd answers, started again as often as it takes."""
        def there():
            self.revive()
            try:
                return self.ask("GET", "/v1/status")
            except OSError:
                return None
        return harness.until(there, f"divvyd answers; it said:\n{self.divvy.said()[-4000:]}", every=0.01)

    def ask(self, method, path):
        """One request over the socket; OSError when divvyd is not there or dies over it."""
        connection = http.client.HTTPConnection("divvyd")
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(harness.PATIENCE)
        try:
            connection.sock.connect(str(self.divvy.root / "run/divvy/divvyd.sock"))
            connection.request(method, path, body=None if method == "GET" else "{}",
                               headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except http.client.HTTPException as broken:
            raise ConnectionError(str(broken)) from None
        finally:
            connection.close()

    def insist(self, attempt):
        """
        Calls attempt() until it gives something; it gives None when divvyd took no
        answer back. That divvyd is alive and does not answer is a failure.
        """
        end = time.monotonic() + harness.PATIENCE
        while time.monotonic() < end:
            self.answering()
            value = attempt()
            if value is not None:
                return value
            time.sleep(0.01)
        raise harness.Failed(f"divvyd lives and takes no request ({self.refusal}); it said:\n"
                             f"{self.divvy.said()[-4000:]}")

    # ---- jobs ----

    def rows(self, query, *values):
        """What the store says, read beside the daemon."""
        path = self.divvy.root / "var/lib/divvy/divvy.db"
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=harness.PATIENCE)
        try:
            db.row_factory = sqlite3.Row
            return db.execute(query, values).fetchall()
        finally:
            db.close()

    def state(self, job):
        found = self.rows("SELECT state FROM jobs WHERE id = ?", job.id)
        return found[0]["state"] if found else "not in the store"

    def command(self, name, body, line="${DIVVY_TASK_ID:-0}"):
        return ["sh", "-c", f'echo "{line}" >> {self.out}/{name}.lines; {body}']

    def job(self, name, *options, body=":", tasks=1, states=("completed",), exits=0,
            line="${DIVVY_TASK_ID:-0}"):
        """
        Submits until it is acknowledged, or found to be in the store without that. Each task
        leaves its `line`; there are `tasks` different ones, each once.
        """
        job = self.jobs[name] = Job(name, tasks, states, exits)

        def attempt():
            done = self.divvy.run("submit", "--json", "--name", name, "--output", "/dev/null",
                                  *options, "--", *self.command(name, body, line), check=False)
            if done.returncode == 0:
                job.acknowledged = True
                return json.loads(done.stdout)["id"]
            self.refusal = done.stderr.strip()
            if "not known yet" in done.stderr or "at the moment" in done.stderr:
                return None  # a second ago the disk was full, or the cards were not looked at yet
            if not self.gone():
                raise harness.Failed(f"submit: {done.stderr}")
            self.answering()
            found = self.rows("SELECT id FROM jobs WHERE name = ?", name)
            return found[0]["id"] if found else None
        job.id = self.insist(attempt)
        return job

    def batch(self, *names):
        """Jobs of one file, which is one request: all of them are there, or none."""
        file = self.box.folder / "batch"
        file.write_text("".join(shlex.join(["--name", name, "--output", "/dev/null", "--", *self.command(name, ":")])
                                + "\n" for name in names))
        jobs = [self.expect(name) for name in names]

        def attempt():
            done = self.divvy.run("submit", "--json", "--batch", file, check=False)
            if done.returncode == 0:
                for job in jobs:
                    job.acknowledged = True
                return json.loads(done.stdout)["ids"]
            if not self.gone():
                raise harness.Failed(f"submit --batch: {done.stderr}")
            self.answering()
            found = self.rows("SELECT id, name FROM jobs ORDER BY id")
            ids = [row["id"] for row in found if row["name"] in names]
            if ids and len(ids) != len(names):
                raise harness.Failed(f"{len(ids)} of {len(names)} jobs of a batch are there")
            return ids or None
        for job, id in zip(jobs, self.insist(attempt), strict=True):
            job.id = id

    def expect(self, name, id=None, states=("completed",), exits=0):
        """A job that was submitted by other means than job()."""
        job = self.jobs[name] = Job(name, 1, states, exits)
        job.id = id
        return job

    def gone(self):
        """Did divvyd die just now? Its client may know before its parent does."""
        end = time.monotonic() + 1
        deaths = self.deaths
        while time.monotonic() < end and self.deaths == deaths:
            if self.revive():
                return True
            time.sleep(0.005)
        return self.deaths > deaths

    def cancel(self, job):
        """Cancels until that is acknowledged, or the job is found to have ended."""
        def attempt():
            try:
                status, answer = self.ask("POST", f"/v1/jobs/{job.id}/cancel")
            except OSError:
                self.gone()
                return None
            if status < 300:
                job.cancelled = True
            elif "end" not in answer["error"]["message"]:  # has ended, is ending
                raise harness.Failed(f"cancel: {answer}")
            return True
        self.insist(attempt)

    def act(self, job, verb):
        """Holds, releases or requeues until that is acknowledged, or was done already."""
        def attempt():
            try:
                status, _ = self.ask("POST", f"/v1/jobs/{job.id}/{verb}")
            except OSError:
                self.gone()
                return None
            return True if status < 500 else None
        self.insist(attempt)

    def attach(self, name, *options, body=":", states=("completed",), exits=0):
        """divvy run, in the background; its output is in out/NAME.said."""
        job = self.jobs[name] = Job(name, 1, states, exits)
        with open(self.out / f"{name}.said", "wb") as said:
            job.client = subprocess.Popen(
                [harness.PROGRAMS / "divvy", "run", "--name", name, *options, "--",
                 *self.command(name, body)],
                env=self.divvy.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.clients.append(job.client)
        return job

    def see_off(self, name):
        """
        Until the client of attach() ends; it exits as the job did. One that lost divvyd
        before its submit was answered gives up, and its job, if there is one, is cancelled.
        """
        job = self.jobs[name]
        until = time.monotonic() + (3 if self.deaths or self.killed() else harness.PATIENCE)
        while job.client.poll() is None and time.monotonic() < until:
            self.revive()
            time.sleep(0.01)
        self.answering()
        found = self.rows("SELECT id, state FROM jobs WHERE name = ?", name)
        job.id = found[0]["id"] if found else None
        said = (self.out / f"{name}.said").read_text()
        if job.client.returncode == job.exits:
            job.acknowledged = True
            return
        if not self.deaths and not self.killed():
            raise harness.Failed(f"divvy run ended with {job.client.returncode}: {said}")
        job.states |= {"cancelled"}
        if found:
            self.cancel(job)

    def until(self, true, what, every=0.01):
        """As harness.until, with divvyd started again whenever it died."""
        def there():
            self.revive()
            return true()
        try:
            return harness.until(there, what, patience=20, every=every)
        except harness.Failed as failure:
            raise harness.Failed(f"{failure}; divvyd said:\n{self.divvy.said()[-4000:]}") from None

    def reach(self, job, *states):
        """Until the job is in one of the states or has ended."""
        return self.until(lambda: self.state(job) in (*states, *harness.ENDED),
                          f"{job.name} is {states}, not {self.state(job)}")

    def lines(self, job):
        """How often each task began."""
        path = self.out / f"{job.name}.lines"
        count = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            count[line] = count.get(line, 0) + 1
        return count

    # ---- layouts ----

    def wish(self, text):
        path = self.box.folder / "wish.yaml"
        path.write_text(text)
        return path

    def lay_out(self, text):
        """divvy layout apply until it says that it is done; it waits for a divvyd that comes back."""
        path = self.wish(text)

        def attempt():
            with open(self.out / "layout.said", "w", encoding="utf-8") as said:
                command = subprocess.Popen(
                    [harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes",
                     "--allow-move-idle"], env=self.divvy.env, stdout=said, stderr=said)
            self.clients.append(command)
            self.until(lambda: command.poll() is not None, "the layout command ends")
            if command.returncode == 0:
                return True
            if not self.deaths and not self.killed():
                raise harness.Failed((self.out / "layout.said").read_text())
            return None
        self.insist(attempt)

    def maintain(self, word, phase):
        """divvy maintenance WORD, as often as it takes until it stands at the phase."""
        def there():
            try:
                status, now = self.ask("GET", "/v1/maintenance")
            except OSError:
                return False
            if status == 200 and now["phase"] == phase:
                return True
            self.divvy.run("maintenance", word, "--no-wait", check=False)
            return False
        self.until(there, f"maintenance is {phase}", every=0.1)

    def plan_maintenance(self, wanted):
        """Has a window planned from in an hour on, or none, as often as it takes."""
        def there():
            try:
                status, now = self.ask("GET", "/v1/maintenance")
            except OSError:
                return False
            if status != 200 or bool(now["planned"]) == wanted:
                return status == 200
            words = ["plan", "now+1h", "now+4h"] if wanted else ["cancel", str(now["planned"][0]["id"])]
            self.divvy.run("maintenance", *words, check=False)
            return False
        self.until(there, "maintenance is planned" if wanted else "no maintenance is planned", every=0.1)

    def places(self):
        """What the driver has: (start, units) of GPU instances, by card."""
        return [(card["ordinal"], gi["start"], gi["profile"])
                for card in self.box.machine.status()["cards"]
                for gi in sorted(card["gpu_instances"], key=lambda gi: gi["start"])]

    # ---- the end ----

    def settle(self):
        """Until nothing is left to do."""
        try:
            self.until(lambda: not self.rows("SELECT 1 FROM jobs WHERE ended_wall_us IS NULL"),
                       "every job has ended")
            self.until(lambda: not invariants.broken(self), "all is as it must be", every=0.05)
        except harness.Failed as failure:
            raise harness.Failed("\n".join([*invariants.broken(self), str(failure)])) from None

    def stop(self):
        """Ends divvyd in good order and gives what is wrong then."""
        code = self.divvy.stop()
        said = [] if code == 0 else [f"divvyd ended with {code} on SIGTERM"]
        try:
            harness.until(lambda: not self.divvy.processes(), "gone", patience=5)
        except harness.Failed:
            said += [f"a process outlives it: pid {pid} "
                     f"({pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()})"
                     for pid in self.divvy.processes()]
        return said
