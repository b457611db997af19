"""What breaks beside processes: the disk, the store, a card."""
import json
import signal

import pytest

import harness
from kill_world import CONFIG, World

PROBE = harness.PROGRAMS / "divvy-probe"
QUICK = CONFIG.replace("driver_timeout: 5s", "driver_timeout: 1s")


def cards(w):
    """Of the inventory, by number."""
    status, told = w.ask("GET", "/v1/inventory")
    assert status == 200, told
    return {card["gpu"]: card for card in told["cards"]}



def place_of(w, job):
    return json.loads(w.rows("SELECT place FROM attempts WHERE job_id = ?", job.id)[0]["place"])


# ---- the disk ----

@pytest.fixture
def small_disk():
    """A World whose store lies on a file system of 2 MiB."""
    with World() as w:
        state = w.divvy.root / "var/lib/divvy"
        state.mkdir(parents=True)
        mounted = harness.run("mount", "-t", "tmpfs", "-o", "size=2M,mode=755", "tmpfs", state, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
        w.disk = state
        try:
            yield w
        finally:
            w.divvy.end()
            harness.run("umount", "--lazy", state)


def fill(path):
    """Takes all the room there is."""
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                pass


@pytest.mark.root
def test_a_full_disk_refuses_and_loses_nothing(small_disk):
    w = small_disk
    w.start()
    running = w.job("running", "--slice", "1g.10gb", states=["failed"], exits=3,
                    body=f"until [ -e {w.out}/go ]; do sleep 0.02; done; exit 3")
    w.reach(running, "running")
    fill(w.disk / "filler")
    refused = None
    for i in range(300):  # the WAL may have some room of its own left
        name = f"more{i}"
        done = w.divvy.run("submit", "--json", "--name", name, "--output", "/dev/null", "--slice",
                           "1g.10gb", "--", *w.command(name, ":"), check=False)
        if done.returncode != 0:
            refused = done.stderr
            break
        w.expect(name).acknowledged = True
    assert refused, "three hundred jobs fit on a full disk"
    assert refused.startswith("divvy: ") and refused.count("\n") == 1, refused
    assert "no room left" in refused, refused
    assert w.divvy.run("queue").returncode == 0, "looking needs no room"
    (w.out / "go").touch()  # its supervisor cannot write the exit now
    harness.until(lambda: not w.rows("SELECT 1 FROM jobs WHERE name = ?", name), "it was not kept")
    (w.disk / "filler").unlink()
    w.job("later", "--slice", "1g.10gb")
    w.settle()
    assert w.deaths == 0
    assert w.stop() == []


# ---- the store ----

def test_a_damaged_store_is_refused_and_left_alone(box, machine):
    box.divvy.start()
    box.divvy.run("submit", "--", "true")
    box.divvy.stop()
    store = box.divvy.root / "var/lib/divvy/divvy.db"
    damaged = bytearray(store.read_bytes())
    damaged[4096:len(damaged):512] = b"\xa5" * len(damaged[4096:len(damaged):512])
    store.write_bytes(damaged)
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    said = box.divvy.said().splitlines()[-1]
    assert str(store) in said and "backup" in said, said
    assert store.read_bytes() == damaged


def test_a_store_that_is_no_database_is_refused(box, machine):
    store = box.divvy.root / "var/lib/divvy/divvy.db"
    store.parent.mkdir(parents=True)
    store.write_text("a letter to my aunt\n" * 500)
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert str(store) in box.divvy.said()
    assert store.read_text().startswith("a letter to my aunt")


# ---- cards ----

def test_a_card_that_is_lost_takes_only_its_own_job_along():
    with World("a100-80gb:2", QUICK) as w:
        w.start()
        job = w.job("on it", "--gpus", "1", states=["cancelled", "failed"],
                    body=f"exec {PROBE} --seconds 600")
        w.reach(job, "running")
        gpu = place_of(w, job)[0]["gpu"]
        w.until(lambda: cards(w)[gpu]["processes"], "it is on the card")
        w.box.machine.sim("fault", f"gpu{gpu}", "lost")
        w.until(lambda: cards(w)[gpu]["health"] == "lost", "it is shown as lost")
        other = w.job("other", "--slice", "1g.10gb", body=f"exec {PROBE} --seconds 0")
        w.reach(other)
        assert place_of(w, other)[0]["gpu"] != gpu
        refused = w.divvy.run("submit", "--gpus", "2", "--", "true", check=False)
        if refused.returncode == 0:  # it may wait for a card that comes back
            assert "waiting" in w.divvy.run("queue").stdout
            w.cancel(w.expect("true", int(refused.stdout), states=["cancelled"]))
        w.cancel(job)
        w.until(lambda: w.state(job) in harness.ENDED, "the job on the lost card ends")
        w.box.machine.sim("fault", f"gpu{gpu}", "none")
        w.until(lambda: cards(w)[gpu]["health"] == "ok", "it is back")
        again = w.job("again", "--gpus", "2")
        w.reach(again)
        w.settle()
        assert w.stop() == []


def test_a_card_that_hangs_does_not_hide_the_others():
    with World("a100-80gb:2", QUICK) as w:
        w.start()
        w.box.machine.sim("fault", "gpu0", "hang")
        w.until(lambda: cards(w)[0]["health"] == "unresponsive", "it is shown as unresponsive")
        assert cards(w)[1]["health"] == "ok"
        job = w.job("beside", "--slice", "2g.20gb", body=f"exec {PROBE} --seconds 0")
        w.reach(job)
        assert place_of(w, job)[0]["gpu"] == 1
        w.box.machine.sim("fault", "gpu0", "none")
        w.until(lambda: cards(w)[0]["health"] == "ok", "it answers again")
        w.job("both", "--gpus", "2")
        w.settle()
        assert w.stop() == []


def test_a_card_that_hangs_in_a_cut():
    """The step never comes back; the card is left out, the job finds another one."""
    with World("a100-80gb:2", QUICK) as w:
        w.may_quarantine = w.cuts_may_fail = True
        w.start()
        w.box.machine.sim("fault", "gpu0", "slow:150")
        job = w.job("cut", "--slice", "2g.20gb", states=["completed", "cancelled"])
        w.until(lambda: w.state(job) in ("preparing", *harness.ENDED), "it is cut for")
        gpu = place_of(w, job)[0]["gpu"]
        w.box.machine.sim("fault", "gpu0", "none")
        w.box.machine.sim("fault", f"gpu{gpu}", "hang")
        w.until(lambda: cards(w)[gpu]["health"] == "unresponsive", "it is shown as unresponsive")
        other = w.job("other", "--slice", "3g.40gb")
        w.until(lambda: w.state(other) in harness.ENDED, "the other card goes on")
        assert place_of(w, other)[0]["gpu"] != gpu
        w.box.machine.sim("fault", f"gpu{gpu}", "none")
        w.until(lambda: cards(w)[gpu]["health"] == "ok", "it answers again")
        w.until(lambda: w.state(job) in harness.ENDED or w.state(job) == "pending", "it is decided")
        w.until(lambda: not cards(w)[gpu]["quarantine"], "it takes jobs again")
        w.settle()
        assert w.stop() == []


# ---- stopped, not killed ----

def test_a_daemon_that_was_stopped_and_goes_on():
    """SIGSTOP, as a suspended machine would look; jobs end meanwhile."""
    with World() as w:
        w.start()
        job = w.job("runs", "--slice", "1g.10gb",
                    body=f"until [ -e {w.out}/go ]; do sleep 0.02; done")
        w.reach(job, "running")
        w.divvy.daemon.send_signal(signal.SIGSTOP)
        (w.out / "go").touch()
        harness.until(lambda: not w.supervisors(), "its supervisor ended")
        w.divvy.daemon.send_signal(signal.SIGCONT)
        w.settle()
        assert w.stop() == []
