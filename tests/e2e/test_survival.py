"""What a machine does to a Divvy that runs on it: its clock, its driver, its boots, its disk."""
import ctypes
import os
import shutil
import signal
import sqlite3
import struct
import uuid

import pytest

import harness
import invariants
from kill_world import CONFIG, World, comm

PROBE = harness.PROGRAMS / "divvy-probe"
DAY = 86400


def until_go(w, then="exit 0"):
    return f"until [ -e {w.out}/go ]; do sleep 0.02; done; {then}"


def go(w):
    (w.out / "go").touch()


def slices(w):
    return sorted(invariants.driver_slices(w))


# ---- a clock that jumps ----

class Clock:
    """The wall clock of a World's daemon and supervisors."""

    def __init__(self, w):
        library = harness.BUILD / "tests/e2e/libwall_clock.so"
        self.file = w.box.folder / "clock"
        self.set(0)
        self.file.chmod(0o644)
        w.divvy.daemon_env = {"LD_PRELOAD": str(library), "WALL_CLOCK": str(self.file)}
        w.clock_jumps = True

    def set(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("q", seconds))


def used(w):
    return sum(row["used_card_us"] for row in w.rows("SELECT used_card_us FROM usage"))


@pytest.mark.parametrize("jumps", [(40 * DAY, -40 * DAY), (-40 * DAY, 40 * DAY)])
def test_limits_and_charges_follow_no_wall_clock(jumps):
    with World("a100-80gb:1", CONFIG + "max_time: 1d\ndefault_time: 1h\n") as w:
        clock = Clock(w)
        w.start()
        before = w.job("before", "--slice", "1g.10gb", body="sleep 0.3")
        w.reach(before)
        long = w.job("long", "--slice", "3g.40gb", body=until_go(w, "exit 4"), states=["failed"], exits=4)
        short = w.job("short", "--slice", "2g.20gb", "--time", "2s", body="sleep 600", states=["timeout"])
        waits = w.job("waits", "--gpus", "1")
        w.reach(long, "running")
        w.reach(short, "running")
        was = used(w)
        for jump in jumps:
            clock.set(jump)
            other = w.job(f"at{jump}", "--slice", "1g.10gb", "--time", "1m")
            w.reach(other)
            assert used(w) >= was, "usage ran backwards"
            was = used(w)
            assert w.state(long) == "running" and w.state(waits) == "pending"
            shown = w.divvy.run("queue").stdout
            assert "-" not in [line.split()[6][0] for line in shown.splitlines()[1:]], shown
        w.reach(short)
        w.kill_daemon()  # the next one starts under another clock
        clock.set(jumps[1] - DAY)
        w.until(lambda: w.answering()[1]["cards"], "the cards are known")
        assert used(w) >= was
        assert w.state(long) == "running"
        go(w)
        w.settle()
        for row in w.rows("SELECT job_id, charge_ppm_us FROM attempts"):
            assert 0 <= row["charge_ppm_us"] <= 300e6 * 1e6, dict(row)  # less than five minutes
        assert len(w.rows("SELECT id FROM jobs")) == 6, "a job of this boot was forgotten"
        assert w.stop() == []


# ---- the driver is loaded anew ----

def test_a_driver_that_is_loaded_anew_costs_the_slices_and_no_job():
    """Hopper forgets MIG then; the idle slices go from the books, and are cut again."""
    with World("h100-80gb-sxm:1") as w:
        w.start()
        for profile in ("2g.20gb", "3g.40gb"):
            w.job(f"first-{profile}", "--slice", profile)
        w.settle()
        assert len(slices(w)) == 2
        busy = w.box.machine.sim("reload")
        assert "Loaded the driver anew" in busy.stdout
        assert slices(w) == []
        w.until(lambda: not w.rows("SELECT 1 FROM slices WHERE gone_wall_us IS NULL"),
                "the store knows that they are gone")
        w.job("again", "--slice", "2g.20gb", body=f"exec {PROBE} --seconds 0")
        w.job("whole", "--gpus", "1", body=f"exec {PROBE} --seconds 0")
        w.settle()
        assert w.stop() == []


def test_a_driver_that_is_loaded_anew_while_no_divvyd_runs():
    with World("h100-80gb-sxm:1") as w:
        w.start()
        w.job("before", "--slice", "2g.20gb")
        w.settle()
        other = w.job("keeps-on", "--slice", "1g.10gb", body=until_go(w))
        w.reach(other, "running")
        w.job("waits", "--gpus", "1", body=f"exec {PROBE} --seconds 0")
        w.kill_daemon()
        w.box.machine.sim("reload")
        w.answering()
        go(w)
        w.settle()
        assert w.stop() == []


def test_a_slice_that_vanishes_under_a_job_is_not_given_away_twice():
    """The job runs on without its slice; what it held stays its own until it has ended."""
    with World("h100-80gb-sxm:1") as w:
        w.start()
        holds = w.job("holds", "--slice", "3g.40gb", body=until_go(w, "exit 3"), states=["failed"], exits=3)
        w.reach(holds, "running")
        whole = w.job("whole", "--gpus", "1")
        w.box.machine.sim("reload")
        w.until(lambda: not w.rows("SELECT 1 FROM slices WHERE gone_wall_us IS NULL"), "it is seen")
        beside = w.job("beside", "--slice", "7g.80gb")
        assert w.state(whole) == w.state(beside) == "pending"
        go(w)
        w.settle()
        assert w.stop() == []


# ---- a reboot ----

def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return pid


class Boots:
    """A kernel that says another boot id at each boot(): the processes die, the disk stays."""

    def __init__(self, w):
        self.w = w
        self.file = w.box.folder / "boot_id"
        self.new_id()
        w.divvy.under = ["unshare", "--mount", "sh", "-c",
                         'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', self.file]
        tried = harness.run(*w.divvy.under, "true", check=False)
        if tried.returncode != 0:
            pytest.skip(f"cannot give a process a boot id of its own: {tried.stderr.strip()}")

    def new_id(self):
        self.file.write_text(f"{uuid.uuid4()}\n")

    def boot(self):
        w = self.w
        harness.until(lambda: not [kill(pid) for pid in w.divvy.processes()], "everything is dead")
        w.divvy.daemon.wait()
        for folder in invariants.cgroups(w):
            folder.rmdir()
        w.box.machine.sim("reboot", "--kill")
        shutil.rmtree(w.divvy.root / "run")
        self.new_id()


@pytest.mark.root
def test_a_reboot_keeps_the_queue_and_ends_what_ran():
    with World("h100-80gb-sxm:2") as w:
        boots = Boots(w)
        w.start()
        w.kills_supervisors = True
        ran = w.job("ran", "--slice", "2g.20gb", body="sleep 600", states=["lost"])
        again = w.job("again", "--slice", "3g.40gb", "--requeue-on-fault",
                      body=until_go(w, "exit 6"), states=["failed"], exits=6)
        again.may_run_again = True
        for job in ran, again:
            w.reach(job, "running")
        waits = [w.job(f"waits{i}", "--gpus", "2") for i in range(3)]
        boots.boot()
        go(w)
        w.answering()
        w.settle()
        assert w.state(ran) == "lost"
        reason = w.divvy.show(ran.id)["exit"]["text"]
        assert "machine" in reason, reason
        assert w.state(again) == "failed", "it asked to be tried again"
        assert [w.state(job) for job in waits] == ["completed"] * 3
        charge = w.rows("SELECT charge_ppm_us FROM attempts WHERE job_id = ?", ran.id)[0][0]
        assert charge >= 0
        assert w.stop() == []


@pytest.mark.root
@pytest.mark.parametrize("point", ["COMMITTED", "STEP_SENT", "FOLDER_MADE", "SUPERVISE_HELD", "SUPERVISE_STARTED"])
def test_a_reboot_in_the_middle_of_a_start(point):
    """The machine goes down where a process was killed at that point."""
    with World("h100-80gb-sxm:1") as w:
        boots = Boots(w)
        w.start()
        w.kills_supervisors = True
        w.cuts_may_fail = True  # the card is not as it was planned for
        w.arm(point)
        job = w.job("job", "--slice", "2g.20gb", states=["completed", "lost"])
        harness.until(lambda: point in w.killed() or w.state(job) in harness.ENDED, "it died there")
        boots.boot()
        w.answering()
        w.settle()
        if not point.startswith("SUPERVISE"):  # from there on it may have begun meanwhile
            assert w.state(job) == "completed"
        assert w.stop() == []


@pytest.mark.root
@pytest.mark.parametrize("lost", ["started", "spec.json", "all"])
@pytest.mark.parametrize("known", [True, False])
def test_a_power_cut_that_takes_what_an_attached_job_has_started(lost, known):
    """`started` of a divvy run is not brought to the disk; what it ran is not run again all the same."""
    with World() as w:
        boots = Boots(w)
        w.start()
        w.kills_supervisors = True
        if not known:
            w.arm("STARTED_READ")
        job = w.attach("attached", "--slice", "1g.10gb", body="sleep 600", states=["lost"])
        harness.until((w.out / "attached.lines").exists, "it runs")
        harness.until(lambda: "STARTED_READ" in w.killed() if not known else
                      w.rows("SELECT 1 FROM jobs WHERE state = 'running'"), "divvyd has seen that, or died of it")
        job.id = w.rows("SELECT id FROM jobs")[0]["id"]
        boots.boot()
        folder = w.divvy.root / f"var/lib/divvy/jobs/{job.id}.1"
        (folder / "started").unlink()
        if lost == "spec.json":
            (folder / "spec.json").write_bytes(b"")
        elif lost == "all":
            shutil.rmtree(folder)
        w.answering()
        w.settle()
        exit_ = w.divvy.show(job.id)["exit"]
        assert (exit_["kind"], exit_["text"]) == ("interrupted", "the machine went down under it")
        assert w.stop() == []


@pytest.mark.root
@pytest.mark.parametrize("step", range(1, 7))
def test_a_reboot_in_the_middle_of_a_cut(step):
    """MIG stays on, and what was to be cut away is gone by itself: no card is put aside for that."""
    with World() as w:
        boots = Boots(w)
        w.start()
        w.kills_supervisors = True
        w.cuts_may_fail = True  # what was made before the reboot is missing after it
        w.job("first", "--slice", "1g.10gb")
        w.job("second", "--slice", "2g.20gb")
        w.settle()
        w.arm("STEP_RESULT", step)
        job = w.job("all", "--slice", "7g.80gb", body=f"exec {PROBE} --seconds 0")
        harness.until(lambda: "STEP_RESULT" in w.killed(), "divvyd died between two steps")
        boots.boot()
        w.answering()
        w.settle()
        assert w.state(job) == "completed"
        assert "is not as it was" not in w.divvy.run("gpus").stdout + w.divvy.said()
        assert w.stop() == []


@pytest.mark.root
def test_a_folder_that_a_power_cut_tore_is_made_again():
    """spec.json is not synced: after a power cut it may be empty."""
    with World() as w:
        boots = Boots(w)
        w.start()
        w.kills_supervisors = True
        w.arm("FOLDER_MADE")
        job = w.job("job", "--slice", "2g.20gb")
        harness.until(lambda: "FOLDER_MADE" in w.killed(), "divvyd died with the folder made")
        boots.boot()
        (spec,) = (w.divvy.root / "var/lib/divvy/jobs").glob("*/spec.json")
        spec.write_bytes(b"")
        w.answering()
        w.settle()
        assert w.state(job) == "completed"
        assert w.stop() == []


# ---- a store that went back in time ----

def keep_store(w, to):
    state = w.divvy.root / "var/lib/divvy"
    to.mkdir(exist_ok=True)
    for path in state.glob("divvy.db*"):
        shutil.copy(path, to)


def put_back(w, kept):
    state = w.divvy.root / "var/lib/divvy"
    for path in state.glob("divvy.db*"):
        path.unlink()
    for path in kept.iterdir():
        shutil.copy(path, state)


def test_a_backup_that_is_put_back_starts_nothing_twice():
    """
    Jobs that began after the backup was made run on as what they are; those that it does not
    know at all are ended, and their numbers are not given to others.
    """
    with World("a100-80gb:1") as w:
        w.start()
        w.job("first", "--slice", "2g.20gb")
        w.settle()
        full = w.job("full", "--gpus", "1", body=until_go(w), states=["completed", "lost"])
        w.reach(full, "running")
        w.store_went_back = True
        known = w.job("known", "--slice", "2g.20gb", body=f"until [ -e {w.out}/end ]; do sleep 0.02; done; exit 8",
                      states=["failed"], exits=8)
        keep_store(w, w.box.folder / "kept")
        go(w)
        w.reach(known, "running")
        unknown = w.job("unknown", "--slice", "3g.40gb", body="sleep 600")
        w.reach(unknown, "running")
        w.kill_daemon()
        put_back(w, w.box.folder / "kept")
        del w.jobs["unknown"]
        w.until(lambda: w.answering()[1]["cards"], "the cards are known")
        later = w.job("later", "--slice", "1g.10gb")
        assert later.id > unknown.id, "its number was given away again"
        w.reach(known, "running")
        (w.out / "end").touch()
        w.settle()
        assert w.state(known) == "failed" and w.lines(known) == {"0": 1}
        assert f"{unknown.id}.1" in w.divvy.said()
        assert w.stop() == []


def frames(wal):
    """Where the WAL may be torn: its header, and the end of each frame."""
    size = wal.stat().st_size
    page = struct.unpack(">I", wal.read_bytes()[8:12])[0]
    return list(range(32, size + 1, 24 + page))


def test_a_torn_wal_leaves_whole_transactions():
    """Cut at every page and once within each; garbled there, too. Never a job in part."""
    with World() as w:
        w.start()
        for i in range(6):
            w.job(f"job{i}")
        w.settle()
        w.kill_daemon()
        kept = w.box.folder / "kept"
        keep_store(w, kept)
        whole = (kept / "divvy.db-wal").read_bytes()
        ends = frames(kept / "divvy.db-wal")
        assert len(ends) > 12
        seen = []
        for end in ends:
            for torn in (whole[:end], whole[:end] + whole[end:][:1000],
                         whole[:end] + b"\xa5" * 100 + whole[end + 100:]):
                put_back(w, kept)
                path = w.divvy.root / "var/lib/divvy/divvy.db"
                path.with_name("divvy.db-wal").write_bytes(torn)
                path.with_name("divvy.db-shm").unlink(missing_ok=True)
                db = sqlite3.connect(path)
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                try:
                    count = db.execute("SELECT count(*), count(spec) FROM jobs LEFT JOIN specs"
                                       " ON job_id = id").fetchone()
                except sqlite3.OperationalError:
                    count = (0, 0)  # before the first transaction: no table
                db.close()
                assert count[0] == count[1], "a job without its spec"
                seen.append(count[0])
        assert seen == sorted(seen) and seen[-1] == 6
        put_back(w, kept)
        path = w.divvy.root / "var/lib/divvy/divvy.db-wal"
        path.write_bytes(whole[:ends[len(ends) // 2] + 100])
        w.jobs.clear()
        w.until(lambda: w.answering()[1]["cards"], "the cards are known")
        w.job("goes-on", states=["completed"])
        w.settle()
        assert w.stop() == []


@pytest.mark.parametrize("size", [0, 1, 100, 4095, 4096, 8192, 20000])
def test_a_store_that_was_cut_short(box, machine, size):
    """Refused with its name and left alone; only an empty file is a new store."""
    box.divvy.start()
    box.divvy.run("submit", "--", "true")
    box.divvy.stop()
    store = box.divvy.root / "var/lib/divvy/divvy.db"
    with open(store, "r+b") as file:
        assert store.stat().st_size > 20000
        file.truncate(size)
    was = store.read_bytes()
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0, "it started over, and all jobs were lost"
    box.divvy.daemon = None
    said = box.divvy.said().splitlines()[-1]
    assert str(store) in said and "backup" in said, said
    assert store.read_bytes() == was


# ---- what other programs use up ----

def test_jobs_start_and_end_where_no_inotify_instance_is_left():
    """A user has 128 of them, and every supervisor is root."""
    libc = ctypes.CDLL(None, use_errno=True)
    with World() as w:
        w.start()
        taken = []
        try:
            while (fd := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
                taken.append(fd)
                assert len(taken) < 100_000, "there is no limit here"
            w.reach(w.job("quick", "--slice", "1g.10gb"))
            long = w.job("long", "--slice", "1g.10gb", body="sleep 600", states=["cancelled"])
            w.reach(long, "running")
            w.cancel(long)
            w.settle()
        finally:
            for fd in taken:
                os.close(fd)
        assert w.stop() == []


# ---- several at once ----

@pytest.mark.parametrize("wait", ["preparing", "running"])
def test_all_processes_of_divvy_die_at_once(wait):
    with World("a100-80gb:2") as w:
        w.kills_supervisors = True
        w.start()
        w.box.machine.sim("fault", "gpu0", "slow:3")
        jobs = [w.job(f"job{i}", "--slice", ask, body="sleep 600", states=["lost", "cancelled"])
                for i, ask in enumerate(("1g.10gb", "2g.20gb", "3g.40gb"))]
        w.reach(jobs[1], wait)
        w.box.machine.sim("fault", "gpu0", "none")
        for pid in w.divvy.processes():
            if (comm(pid) or "").startswith("divvy"):
                kill(pid)
        w.divvy.daemon.wait()
        w.answering()
        w.job("after", "--gpus", "1")
        for job in jobs:
            if w.state(job) not in harness.ENDED:
                w.cancel(job)
        w.settle()
        assert w.stop() == []
