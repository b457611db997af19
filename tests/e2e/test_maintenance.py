"""Maintenance: cards are given to the administrator, and come back as they were."""
import subprocess

import pytest

import harness
from test_layout import apply, places
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
    box.divvy.configure("mode_hold: 0s\ncards:\n  default: {pool: queue, mode: auto}\n"
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
