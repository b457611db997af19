"""Maintenance: cards are given to the administrator, and come back as they were."""
import subprocess

import pytest

import harness
from test_layout import BUSY, PARTIAL, apply, end, opener, places, slices
from test_layout_daemon import blocker, let_go

KEPT = "cards:\n- {card: all, mode: slices, slices: [2g.20gb@0, 3g.40gb@4]}\n"


@pytest.fixture
def told(box):
    """divvyd with two services; what is done to them is written down."""
    path = box.folder / "told"
    script = box.folder / "services"
    script.write_text(f"#!/bin/sh\n[ -e {box.folder}/refuse ] && echo no such unit && exit 5\n"
                      f"echo $1 $2 >> {path}\n")
    script.chmod(0o755)
    box.machine.up("a100-80gb:2")
    box.divvy.configure("mode_hold: 0s\nrestore_time: 2s\ncards:\n  default: {pool: queue, mode: auto}\n"
                        f"maintenance: {{services: [dcgm, persist], command: {script}}}\n")
    box.divvy.start()
    return path


def phase(box):
    return box.divvy.json("maintenance", "status")["phase"]


@pytest.mark.smoke
def test_a_driver_is_loaded_anew_under_it(box, told):
    apply(box, KEPT)
    before = places(box)
    box.divvy.run("maintenance", "begin")
    assert told.read_text().split("\n")[:2] == ["stop dcgm", "stop persist"]
    assert phase(box) == "away"
    box.machine.sim("reload")  # refused while anybody holds the driver
    late = box.divvy.submit("--slice", "2g.20gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.show(late)["state"] == "pending"
    box.divvy.run("maintenance", "end")
    assert phase(box) == "none" and places(box) == before
    assert told.read_text().split("\n")[2:4] == ["start persist", "start dcgm"]
    assert box.divvy.wait(late)["state"] == "completed"


def test_a_job_is_waited_for_and_named(box, told):
    job = blocker(box.divvy, box, "--slice", "2g.20gb")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "maintenance", "begin"],
                               env=box.divvy.env, stdout=subprocess.PIPE, text=True)
    try:
        said = waiting.stdout.readline() + waiting.stdout.readline()
        assert f"#{job} " in said and waiting.poll() is None
        let_go(box)
        assert waiting.wait(harness.PATIENCE) == 0
    finally:
        waiting.kill()
        waiting.wait()
        waiting.stdout.close()
    assert phase(box) == "away"
    box.divvy.run("maintenance", "end")


def test_one_card_drains_and_the_other_works(box, told):
    job = blocker(box.divvy, box, "--gpus", "1")
    gpu = box.divvy.show(job)["place"][0]["gpu"]
    box.divvy.run("maintenance", "begin", f"gpu{gpu}", "--no-wait")
    assert phase(box) == "draining"
    other = box.divvy.submit("--gpus", "1", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(other)["place"][0]["gpu"] != gpu
    done = box.divvy.run("maintenance", "begin", check=False)
    assert done.returncode == 1 and "under way" in done.stderr
    box.divvy.run("maintenance", "end")
    assert phase(box) == "none" and not told.exists()
    let_go(box)
    box.divvy.wait(job)


def test_a_service_that_does_not_stop_is_told(box, told):
    (box.folder / "refuse").touch()
    done = box.divvy.run("maintenance", "begin", check=False)
    assert done.returncode == 1 and "stop dcgm' failed: no such unit" in done.stderr
    assert phase(box) == "stopping"
    (box.folder / "refuse").unlink()
    harness.until(lambda: phase(box) == "away", "it is tried again")
    box.divvy.run("maintenance", "end")


@pytest.mark.smoke
def test_killed_while_it_is_away(box, told):
    apply(box, KEPT)
    before = places(box)
    box.divvy.run("maintenance", "begin")
    box.divvy.kill()
    box.divvy.launch()
    harness.until(lambda: box.divvy.run("maintenance", "status", check=False).returncode == 0,
                  "divvyd answers")
    assert phase(box) == "away"
    box.machine.sim("reload")
    box.divvy.run("maintenance", "end")
    harness.until(lambda: places(box) == before, "the layouts are back")


# ---- who is no job ----

@pytest.mark.smoke
def test_who_is_no_job_is_named_and_waited_for(box, told):
    """A program that has the card open and computes nothing; the other card works meanwhile."""
    monitor = opener(box, "my-monitor", "nvidia0")
    try:
        done = box.divvy.run("maintenance", "begin", "gpu0", "--wait", "1s", check=False)
        assert done.returncode == BUSY and phase(box) == "waiting"
        assert f"gpu0: pid {monitor.pid} my-monitor" in done.stdout and "nvidia0" in done.stdout
        assert "my-monitor" in box.divvy.run("status").stdout
        assert told.read_text().split("\n")[:2] == ["stop dcgm", "stop persist"]
        other = box.divvy.submit("--gpus", "1", "-o", "/dev/null", "--", "true")
        assert box.divvy.wait(other)["place"][0]["gpu"] == 1
        assert monitor.poll() is None, "nobody is ended"
    finally:
        end(monitor)
    harness.until(lambda: phase(box) == "away", "it goes on")
    box.divvy.run("maintenance", "end")
    assert phase(box) == "none"


def test_who_is_on_another_card_is_in_nobodys_way(box, told):
    monitor = opener(box, "my-monitor", "nvidia1")
    try:
        box.divvy.run("maintenance", "begin", "gpu0")
        assert phase(box) == "away"
        box.divvy.run("maintenance", "end")
    finally:
        end(monitor)


def test_a_wait_is_called_off(box, told):
    monitor = opener(box, "my-monitor", "nvidia0")
    try:
        box.divvy.run("maintenance", "begin", "--no-wait")
        harness.until(lambda: phase(box) == "waiting", "it waits")
        box.divvy.kill()
        box.divvy.start()
        assert phase(box) == "waiting"
        box.divvy.run("maintenance", "end")
        assert phase(box) == "none"
    finally:
        end(monitor)
    assert told.read_text().split("\n")[2:4] == ["start persist", "start dcgm"]


@pytest.mark.parametrize("limit", ["0s", "soon"])
def test_a_limit_that_is_none(box, told, limit):
    done = box.divvy.run("maintenance", "begin", "--wait", limit, check=False)
    assert done.returncode == 2 and "--wait" in done.stderr and phase(box) == "none"


# ---- one by one ----

@pytest.mark.smoke
def test_cards_come_back_one_by_one(box, told):
    """The layout of one cannot be made again: it stays out and says why, the other one serves."""
    apply(box, KEPT)
    before = places(box)
    box.divvy.run("maintenance", "begin")
    box.machine.sim("reload")
    box.machine.sim("fault", "gpu1", "create-fails:1")
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == PARTIAL, done.stdout + done.stderr
    assert "gpu1 stays out: its layout was not restored: cannot create gpu1/" in done.stdout
    assert "'divvy maintenance end' tries again" in done.stdout
    assert phase(box) == "none" and told.read_text().split("\n")[2:4] == ["start persist", "start dcgm"]
    job = box.divvy.submit("--slice", "3g.40gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(job)["place"][0]["gpu"] == 0
    for words in (["maintenance", "status"], ["status"], ["gpus"]):
        shown = box.divvy.run(*words).stdout
        assert "out after maintenance" in shown or "gpu1 stays out" in shown, words
    box.divvy.kill()
    box.divvy.start()
    out = box.divvy.json("maintenance", "status")["out"]
    assert [card["gpu"] for card in out] == [1]
    box.divvy.run("maintenance", "end")  # the fault has passed
    assert places(box) == before and not box.divvy.json("maintenance", "status")["out"]
    assert not any(card["quarantine"] for card in box.divvy.json("gpus")["cards"])


def test_a_card_that_did_not_come_back_is_put_back_by_hand(box, told):
    apply(box, KEPT)
    box.divvy.run("maintenance", "begin", "gpu1")
    box.machine.sim("reload")
    box.machine.sim("fault", "gpu1", "create-fails:1")
    assert box.divvy.run("maintenance", "end", check=False).returncode == PARTIAL
    box.divvy.run("pool", "gpu1", "queue")
    harness.until(lambda: not box.divvy.json("maintenance", "status")["out"], "it is out no more")
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == 1 and "no maintenance is under way" in done.stderr


def test_a_card_that_is_gone_stays_out_and_the_other_comes_back(box, told):
    apply(box, KEPT)
    box.divvy.run("maintenance", "begin")
    box.machine.sim("fault", "gpu0", "lost")
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == PARTIAL and "gpu0 stays out: the driver does not list it" in done.stdout
    job = box.divvy.submit("--slice", "3g.40gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(job)["place"][0]["gpu"] == 1


# ---- another driver ----

UPGRADE = ["570.86.15", "3g.40gb=3g.39gb", "uuids"]


@pytest.mark.smoke
def test_an_upgrade_is_told_in_all_its_parts(box, told):
    """The module is not loaded yet; then names and UUIDs are others, and the slices the same."""
    apply(box, KEPT)
    before = slices(box)
    box.divvy.run("maintenance", "begin")
    box.machine.sim("install", *UPGRADE)
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == 1 and "are of different versions" in done.stderr
    assert "550.163.01" in done.stderr and phase(box) == "away"
    box.machine.sim("reload")
    box.divvy.run("maintenance", "end")
    after = slices(box)
    assert sorted(after) == sorted(place.replace("3g.40gb", "3g.39gb") for place in before)
    assert not set(after.values()) & set(before.values())
    kept = box.divvy.json("layout", "status")["kept"]
    told_of = {one["address"]: (one["old"], one["new"]) for k in kept for one in k["identities"]}
    assert told_of == {place: (before[place.replace("3g.39gb", "3g.40gb")], uuid)
                       for place, uuid in after.items()}
    for place, uuid in after.items():
        line = f"{place} is {uuid} now; it was {before[place.replace('3g.39gb', '3g.40gb')]}"
        assert line in box.divvy.said()
        assert line in box.divvy.run("layout", "status").stdout
        assert line in " ".join(box.divvy.run("status").stdout.split())


def test_a_fabric_manager_of_another_version_keeps_the_cards_out(box, told):
    manager = box.machine.folder / "root/usr/bin/nv-fabricmanager"
    manager.parent.mkdir(parents=True)
    manager.write_text("#!/bin/sh\necho 'Fabric Manager version is : 535.104.05'\n")
    manager.chmod(0o755)
    apply(box, KEPT)
    before = places(box)
    box.divvy.run("maintenance", "begin")
    box.machine.sim("reload")
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == 1 and "535.104.05" in done.stderr and phase(box) == "away"
    assert "fabric manager is not of the driver's version 550.163.01" in done.stderr
    manager.write_text("#!/bin/sh\necho 'Fabric Manager version is : 550.163.01'\n")
    box.divvy.run("maintenance", "end")
    assert places(box) == before
    job = box.divvy.submit("--slice", "3g.40gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(job)["state"] == "completed"


def test_a_kernel_module_of_another_version_is_named(box, told):
    box.divvy.run("maintenance", "begin")
    module = box.machine.folder / "root/proc/driver/nvidia/version"
    text = module.read_text()
    module.chmod(0o644)
    module.write_text(text.replace("550.163.01", "535.104.05"))
    done = box.divvy.run("maintenance", "end", check=False)
    assert done.returncode == 1 and "535.104.05" in done.stderr and phase(box) == "away"
    module.write_text(text)
    box.divvy.run("maintenance", "end")
    assert phase(box) == "none"
