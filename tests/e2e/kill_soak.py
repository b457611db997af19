#!/usr/bin/python3
"""kill_soak.py [SECONDS] [SEED] - jobs of all kinds, while processes of Divvy die at random.

Goes on for SECONDS (60), a round after the other, each on a machine of its
own. A round draws what it does from its seed; when something is wrong the
seed is printed, and `kill_soak.py 0 SEED` does that round again. What the
kernel makes of it differs from time to time: run it some more.
"""
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[1])]
import harness  # noqa: E402
from kill_world import World, comm  # noqa: E402

KILLED = ("divvyd", "divvyd-watch", "divvyd-act", "divvy-launcher", "divvy-supervise")
REQUESTS = (["--slice", "1g.10gb"], ["--slice", "2g.20gb"], ["--slice", "3g.40gb"],
            ["--slice", "7g.80gb"], ["--gpus", "1"], ["--gpus", "2"], ["--gpu-mem", "18G"],
            ["--slice", "1g.10gb:2"], [])
PROBE = harness.PROGRAMS / "divvy-probe"


def parent(pid):
    """Of a process; a task that is still held has its supervisor's name, and is none."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


class Killer(threading.Thread):
    """
    Kills one process of a World every now and then, or several at once, until told to rest.
    Each time it waits a little longer, until something got through: on a slow machine too,
    divvyd comes to live long enough to take a request.
    """

    def __init__(self, world, dice, every):
        super().__init__(daemon=True)
        self.world, self.dice, self.every = world, dice, every
        self.rest = threading.Event()
        self.count = self.count_then = 0

    def got_through(self):
        self.count_then = self.count

    def pause(self):
        return self.dice.expovariate(1 / self.every) * 1.05 ** (self.count - self.count_then)

    def run(self):
        while not self.rest.wait(self.pause()):
            targets = self.dice.choices(KILLED, k=self.dice.choice((1, 1, 1, 2, 4)))
            pids = [pid for pid in self.world.divvy.processes()
                    if comm(pid) in targets and comm(parent(pid)) != "divvy-supervise"]
            self.dice.shuffle(pids)
            for pid in pids[:len(targets)]:
                self.kill(pid)

    def kill(self, pid):
        if comm(pid) == "divvy-supervise":
            self.world.kills_supervisors = True
        try:
            os.kill(pid, signal.SIGKILL)
            self.count += 1
        except ProcessLookupError:
            pass


def one_job(w, dice, name):
    """Submits something, and sometimes takes it back."""
    words = dice.choice(REQUESTS)
    tasks = 2 if words[-1:] == ["1g.10gb:2"] else 1
    kind = dice.choice(("quick", "quick", "probe", "fails", "long", "cancelled"))
    if kind == "long":
        job = w.job(name, *words, "--time", "1s", tasks=tasks, body="sleep 600", states=["timeout"])
    elif kind == "cancelled":
        job = w.job(name, *words, tasks=tasks, body="sleep 600 & sleep 600", states=["cancelled"])
        time.sleep(dice.random() * 0.2)
        w.cancel(job)
    elif kind == "fails":
        job = w.job(name, *words, tasks=tasks, body="sleep 0.02; exit 5", states=["failed"], exits=5)
        job.may_skip_tasks = True  # the first failure ends the others, started or not
    elif kind == "probe" and words:
        job = w.job(name, *words, tasks=tasks, body=f"exec {PROBE} --seconds 0")
    else:
        job = w.job(name, *words, tasks=tasks)
    return job


def one_round(seed):
    """Gives how many were killed; fails with what is wrong."""
    dice = random.Random(seed)
    with World("a100-80gb:2") as w:
        w.start()
        killer = Killer(w, random.Random(seed + 1), dice.choice((0.03, 0.1, 0.3)))
        killer.start()
        try:
            for i in range(dice.randint(4, 12)):
                one_job(w, dice, f"job{i}")
                killer.got_through()
                time.sleep(dice.random() ** 3 * 0.5)
        except Exception as failure:
            raise harness.Failed(f"seed {seed}: {failure}") from failure
        finally:
            killer.rest.set()
            killer.join()
        try:
            w.settle()
            said = w.stop()
        except harness.Failed as failure:
            raise harness.Failed(f"seed {seed}: {failure}") from None
        if said:
            raise harness.Failed(f"seed {seed}: {said}")
        return killer.count


def main(seconds=60.0, seed=None):
    seed = int(seed) if seed is not None else time.time_ns() % 1_000_000_007
    end = time.monotonic() + float(seconds)
    rounds = killed = 0
    while True:
        print(f"round {rounds + 1}, seed {seed}", flush=True)
        killed += one_round(seed)
        rounds += 1
        seed += 1
        if time.monotonic() > end:
            break
    print(f"{rounds} rounds, {killed} processes killed, nothing lost")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except harness.Failed as failure:
        sys.exit(f"kill_soak: {failure}")
