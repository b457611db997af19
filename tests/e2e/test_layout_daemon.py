"""Layouts through divvyd: carried out, waited for, kept, and gone on with after a crash."""
import os
import signal
import subprocess

import pytest

import harness
from test_layout import (BUSY, IMPOSSIBLE, INVALID, LAB, PARTIAL, RESET, apply, end, faults, journal,
                         layout, modes, opener, places, slices)

SEVENTHS = "cards:\n- {card: gpu0, mode: slices, slices: {1g.10gb: 7}}\n"


def change(divvy):
    return divvy.json("layout", "status")


def blocker(divvy, box, *what):
    """A job that runs until the file `go` is there."""
    job = divvy.submit(*what, "-o", "/dev/null", "--", "sh", "-c",
                       f"until [ -e {box.folder}/go ]; do sleep 0.05; done")
    divvy.wait_state(job, "running")
    return job


def let_go(box):
    (box.folder / "go").touch()


@pytest.mark.smoke
def test_a_file_becomes_a_layout_and_twice_is_once(box, divvy):
    done = apply(box, LAB)
    first = slices(box)
    assert sorted(first) == ["gpu0/1g.10gb@2", "gpu0/1g.10gb@3", "gpu0/2g.20gb@0", "gpu0/3g.40gb@4",
                             "gpu1/1c.3g.40gb@4.0", "gpu1/1c.3g.40gb@4.1", "gpu1/2g.20gb@0"]
    assert all(uuid in done.stdout for uuid in first.values())
    for card in ("gpu0", "gpu1"):  # the first creation would use it up
        box.machine.sim("fault", card, "create-fails:1")
    before = faults(box)
    assert "nothing was changed" in apply(box, LAB).stdout
    assert slices(box) == first and faults(box) == before
    assert change(divvy)["outcome"] == "done"


def test_refusals_touch_nothing(box, divvy):
    apply(box, SEVENTHS)
    before = slices(box)
    apply(box, "cards:\n- {card: gpu0, slices: {1g.5gb: 7}}\n", status=INVALID)
    apply(box, "cards:\n- {card: gpu0, slices: {1g.10gb: 8}}\n", status=IMPOSSIBLE)
    done = layout(box, "apply", "cards:\n- {card: gpu0, mode: whole}\n", check=False)
    assert done.returncode == 1 and "--yes" in done.stderr
    assert slices(box) == before


def test_cards_that_kept_a_layout_become_whole(box, divvy):
    """What an order empties is not taken for lost and made again."""
    apply(box, "cards:\n- {card: all, mode: slices, slices: {1g.10gb: 7}}\n")
    assert len(places(box)) == 14
    apply(box, "cards:\n- {card: all, mode: whole}\n")
    assert not places(box) and not change(divvy)["kept"]


def test_who_has_a_card_open_is_waited_for(box, divvy):
    """As without a daemon: named with what ends it, and the others are done."""
    monitor = opener(box, "nv-hostengine", "nvidia0")
    try:
        done = apply(box, LAB, status=PARTIAL)
        assert f"pid {monitor.pid} nv-hostengine" in " ".join(done.stdout.split())
        assert "systemctl stop nvidia-dcgm" in " ".join(done.stdout.split())
        assert places(box) == ["gpu1/1c.3g.40gb@4.0", "gpu1/1c.3g.40gb@4.1", "gpu1/2g.20gb@0"]
        told = [card["why"] for card in change(divvy)["cards"] if card["gpu"] == 0]
        assert f"pid {monitor.pid} nv-hostengine" in told[0] and monitor.poll() is None
    finally:
        end(monitor)
    apply(box, LAB)
    assert len(places(box)) == 7


def test_who_came_or_went_just_now_is_known(box, divvy):
    """An order looks at the cards anew: what a picture of before would say is not acted on."""
    def on_it():
        return box.machine.status()["cards"][0]["processes"]
    apply(box, "cards:\n- {card: gpu0, slices: [4g.40gb@0, 3g.40gb@4]}\n")
    there = slices(box)
    probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "1G", "--seconds", "120"],
                             env={**box.machine.env,
                                  "CUDA_VISIBLE_DEVICES": there["gpu0/3g.40gb@4"]},
                             stdout=subprocess.DEVNULL)
    try:
        harness.until(on_it, "the process is on the card")
        done = apply(box, "cards:\n- {card: gpu0, slices: []}\n", status=BUSY)
        assert "in use: gpu0/3g.40gb@4" in done.stderr and "destroy" not in done.stderr
    finally:
        end(probe)
    assert not on_it()
    apply(box, "cards:\n- {card: gpu0, slices: []}\n")
    assert not places(box)


def test_a_plan_sees_the_cards_as_they_are_now(box, divvy):
    """The driver is asked for each: what began or ended a moment ago counts."""
    env = {**box.machine.env, "CUDA_VISIBLE_DEVICES": divvy.json("gpus")["cards"][0]["uuid"]}
    for _ in range(3):
        probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--seconds", "120"], env=env,
                                 stdout=subprocess.PIPE, text=True)
        assert probe.stdout.readline(), "it is on the card"
        busy = layout(box, "plan", SEVENTHS, check=False)
        end(probe)
        free = layout(box, "plan", SEVENTHS, check=False)
        assert busy.returncode == BUSY and str(probe.pid) in busy.stdout
        assert free.returncode != BUSY and str(probe.pid) not in free.stdout


def test_a_plan_does_not_wait_for_a_card_that_hangs(box, divvy):
    before = layout(box, "plan", SEVENTHS, check=False).stdout
    box.machine.sim("fault", "gpu1", "hang")
    assert layout(box, "plan", SEVENTHS, check=False).stdout == before
    box.machine.sim("fault", "gpu1", "none")


def test_a_hang_in_a_change_is_waited_for_once(box, machine):
    """Many steps are left, and those that take back what was done: none is tried on that card."""
    box.divvy.configure("driver_timeout: 3s\ncards: {default: {pool: queue, mode: slices}}\n")
    box.divvy.start()
    apply(box, "cards:\n- {card: gpu0, slices: []}\n")
    machine.sim("fault", "gpu0", "slow:30")
    path = box.folder / "sevenths.yaml"
    path.write_text(SEVENTHS)
    change = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes"],
                              env=box.divvy.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    harness.until(lambda: len(machine.status()["cards"][0]["gpu_instances"]) >= 2,
                  "two of seven are there")
    machine.sim("fault", "gpu0", "hang")
    said = change.communicate(timeout=harness.PATIENCE)[1]
    assert change.returncode == 1
    assert said.startswith("divvy: cannot tell whether") and "looked at again when it answers" in said
    assert box.divvy.said().count("; the act process is abandoned") == 1
    machine.sim("fault", "gpu0", "none")


def test_users_do_not_change_layouts(box, divvy):
    if os.getuid() != 0:
        pytest.skip("needs root, to become somebody else")
    path = box.folder / "theirs.yaml"
    path.write_text(SEVENTHS)
    path.chmod(0o644)
    done = divvy.run("layout", "apply", path, "--yes", user=1234, check=False)
    assert done.returncode == 5 and "only operators" in done.stderr and not places(box)


def test_a_job_keeps_its_slice_and_is_named(box, divvy):
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 1g.10gb@2, 3g.40gb@4]}\n")
    job = blocker(divvy, box, "--slice", "1g.10gb")
    before = slices(box)
    apply(box, SEVENTHS)
    after = slices(box)
    assert len(after) == 7 and after["gpu0/1g.10gb@2"] == before["gpu0/1g.10gb@2"]
    done = apply(box, "cards:\n- {card: gpu0, slices: [7g.80gb]}\n", status=BUSY)
    assert f"gpu0/1g.10gb@2 (#{job} " in done.stdout and slices(box) == after
    both = "cards:\n- {card: gpu0, slices: [7g.80gb]}\n- {card: gpu1, slices: [7g.80gb]}\n"
    apply(box, both, status=PARTIAL)
    assert "gpu1/7g.80gb@0" in places(box)
    let_go(box)
    divvy.wait(job)


@pytest.mark.smoke
def test_wait_lets_nobody_new_on_to_what_must_go(box, divvy):
    divvy.run("pool", "gpu1", "off")
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 2g.20gb@2, 3g.40gb@4]}\n")
    kept = slices(box)["gpu0/3g.40gb@4"]
    job = blocker(divvy, box, "--slice", "2g.20gb")
    path = box.folder / "wait.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [4g.40gb@0, 3g.40gb@4]}\n")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--wait",
                                "-y"], env=divvy.env, stdout=subprocess.PIPE, text=True)
    try:
        harness.until(lambda: change(divvy)["outcome"] == "open", "the change waits")
        late = divvy.submit("--slice", "2g.20gb", "-o", "/dev/null", "--", "true", check=False)
        used = divvy.submit("--slice", "3g.40gb", "-o", "/dev/null", "--", "true")
        assert divvy.wait(used)["state"] == "completed", "what stays is used meanwhile"
        assert divvy.show(late)["state"] == "pending" and waiting.poll() is None
        again = layout(box, "apply", SEVENTHS, "--yes", check=False)
        assert again.returncode == 1 and "not done yet" in again.stderr
        let_go(box)
        assert waiting.wait(harness.PATIENCE) == 0
        after = slices(box)
        assert sorted(after) == ["gpu0/3g.40gb@4", "gpu0/4g.40gb@0"]
        assert after["gpu0/3g.40gb@4"] == kept
    finally:
        waiting.kill()
        waiting.wait()
        waiting.stdout.close()
    divvy.run("cancel", late)
    divvy.wait(job)


def test_a_change_that_waits_is_called_off(box, divvy):
    apply(box, SEVENTHS)
    job = blocker(divvy, box, "--slice", "1g.10gb")
    path = box.folder / "wait.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--wait",
                                "-y"], env=divvy.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    harness.until(lambda: change(divvy)["outcome"] == "open", "the change waits")
    divvy.run("layout", "stop")
    assert waiting.wait(harness.PATIENCE) == 1 and len(places(box)) == 7
    assert divvy.run("layout", "stop", check=False).returncode == 1
    let_go(box)
    divvy.wait(job)


def test_jobs_never_cut_a_layout(box, divvy):
    divvy.run("pool", "gpu1", "off")
    apply(box, "cards:\n- {card: gpu0, mode: slices, slices: [3g.40gb@0, 3g.40gb@4]}\n")
    before = slices(box)
    done = divvy.run("submit", "--slice", "1g.10gb", "--", "true", check=False)
    assert done.returncode == 1 and "keeps the slices of its layout" in done.stderr
    jobs = [divvy.submit("--slice", "3g.40gb", "-o", "/dev/null", "--", "true") for _ in range(3)]
    assert [divvy.wait(job)["state"] for job in jobs] == ["completed"] * 3
    assert slices(box) == before
    divvy.run("mode", "gpu0", "auto")
    job = divvy.submit("--slice", "1g.10gb", "-o", "/dev/null", "--", "true")
    assert divvy.wait(job)["state"] == "completed"


def test_modes_are_taken_from_the_file(box, divvy):
    apply(box, "cards:\n- {card: gpu0, mode: slices, slices: [7g.80gb]}\n- {card: gpu1, mode: whole}\n")
    assert [card["mode"] for card in divvy.json("gpus")["cards"]] == ["slices", "whole"]
    apply(box, "cards:\n- {card: all, mode: auto}\n")
    assert [card["mode"] for card in divvy.json("gpus")["cards"]] == ["auto", "auto"]
    assert change(divvy)["kept"] == []


@pytest.mark.smoke
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_failure_restores_what_was(box, divvy, nth):
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 2g.20gb@2, 1g.10gb@5]}\n")
    before = places(box)
    box.machine.sim("fault", "gpu0", f"create-fails:{nth}")
    done = apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@5, 1g.20gb@0, 1g.20gb@2]}\n",
                 status=1)
    assert "everything is as it was before" in done.stderr
    assert places(box) == before and change(divvy)["outcome"] == "failed"


def test_a_card_of_no_pool_is_laid_out_when_named(box, divvy):
    divvy.run("pool", "all", "off")
    apply(box, SEVENTHS)
    assert len(places(box)) == 7
    divvy.stop()
    apply(box, SEVENTHS)  # nobody has its lock


# ---- one slice ----

def test_one_slice_and_nothing_else(box, divvy):
    apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@0, 1g.10gb@6]}\n")
    before = slices(box)
    divvy.run("slice", "create", "gpu0", "2g.20gb@2")
    after = slices(box)
    assert before.items() <= after.items()
    assert after.keys() - before.keys() == {"gpu0/2g.20gb@2"}
    divvy.run("slice", "destroy", "gpu0/2g.20gb@2")
    assert slices(box) == before
    done = divvy.run("slice", "create", "gpu0", "7g.80gb", check=False)
    assert done.returncode == IMPOSSIBLE and slices(box) == before
    done = divvy.run("slice", "destroy", "gpu0/2g.20gb@2", check=False)
    assert done.returncode == 4 and "no slice" in done.stderr


def test_one_slice_without_a_daemon(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@0, 1g.10gb@6]}\n")
    before = slices(box)
    box.divvy.run("slice", "create", "0", "1g.10gb")
    after = slices(box)
    assert before.items() <= after.items() and len(after) == 3
    new = (after.keys() - before.keys()).pop()
    box.divvy.run("slice", "destroy", new)
    assert slices(box) == before
    done = box.divvy.run("slice", "create", "gpu1", "3g.40gb", check=False)
    assert done.returncode == 1 and "--yes" in done.stderr
    box.divvy.run("slice", "create", "gpu1", "3g.40gb", "--yes")
    assert "gpu1/3g.40gb@4" in places(box) or "gpu1/3g.40gb@0" in places(box)


# ---- kept layouts ----

KEPT = ("cards:\n- {card: gpu0, mode: slices, slices: [2g.20gb@0, 1g.10gb@3, 1c.3g.40gb@4.0]}\n"
        "- {card: gpu1, mode: slices, slices: [7g.80gb]}\n")


@pytest.mark.smoke
def test_kept_over_a_reboot(box, divvy):
    apply(box, KEPT)
    before = places(box)
    divvy.kill()
    box.machine.sim("reboot")
    divvy.start()
    harness.until(lambda: places(box) == before, "the layout is back")
    harness.until(lambda: not any(k["restoring"] for k in change(divvy)["kept"]), "all is said")
    assert not any(k["trouble"] for k in change(divvy)["kept"])


def test_a_part_of_an_instance_is_kept_as_a_part(box, divvy):
    """Written down before the driver had told how it calls it, and so over each reboot again."""
    apply(box, "cards:\n- {card: gpu0, mode: slices, slices: [1c.3g.40gb@4.0]}\n")
    for _ in range(2):
        kept = harness.until(lambda: [k for k in change(divvy)["kept"] if not k["restoring"]],
                             "it is kept")
        assert [s["slice"] for s in kept[0]["slices"]] == ["1c.3g.40gb@4.0"]
        assert places(box) == ["gpu0/1c.3g.40gb@4.0"]
        divvy.kill()
        box.machine.sim("reboot")
        divvy.start()
        harness.until(lambda: places(box), "it is back")


def test_kept_over_a_driver_that_is_loaded_anew(box, divvy):
    apply(box, KEPT)
    before = places(box)
    box.machine.sim("reboot")
    harness.until(lambda: places(box) == before, "the layout is back")


def test_slices_with_other_uuids_are_told_as_events(box, machine):
    seen = box.folder / "seen"
    seen.touch()
    hook = box.divvy.root / "etc/event"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(f'#!/bin/sh\necho "$DIVVY_EVENT $DIVVY_SLICES $DIVVY_UUID_BEFORE $DIVVY_UUID"'
                    f' >> {seen}\n')
    hook.chmod(0o755)
    box.divvy.configure(f"event_hook: {hook}\ncards:\n  default: {{pool: queue, mode: slices}}\n")
    box.divvy.start()
    apply(box, KEPT)
    before = slices(box)
    box.divvy.kill()
    machine.sim("install", "550.163.01", "uuids")
    machine.sim("reboot")
    box.divvy.start()
    lines = harness.until(lambda: len(seen.read_text().splitlines()) == len(before)
                          and sorted(seen.read_text().splitlines()), "all are told")
    after = slices(box)
    assert after.keys() == before.keys()
    assert lines == sorted(f"identity {place} {uuid} {after[place]}" for place, uuid in before.items())


def test_a_layout_that_does_not_come_back_blocks_nothing(box, machine):
    box.divvy.configure("restore_time: 2s\ncards:\n  default: {pool: queue, mode: slices}\n")
    box.divvy.start()
    apply(box, "cards:\n- {card: gpu0, mode: slices, slices: [7g.80gb]}\n")
    box.divvy.kill()
    machine.sim("reboot")
    machine.sim("fault", "gpu0", "create-fails:1")
    box.divvy.start()
    kept = harness.until(lambda: [k for k in change(box.divvy)["kept"] if not k["restoring"]],
                         "it is given up")
    assert kept[0]["trouble"]
    job = box.divvy.submit("--slice", "1g.10gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(job)["state"] == "completed", "the other card serves"


# ---- saved layouts ----

@pytest.mark.smoke
@pytest.mark.parametrize("daemon", [False, True])
def test_saved_and_restored(box, machine, daemon):
    if daemon:
        box.divvy.configure("cards:\n  default: {pool: queue, mode: auto}\n")
        box.divvy.start()
    apply(box, KEPT)
    first, modes = places(box), [card["mode"] for card in box.divvy.json("gpus")["cards"]]
    box.divvy.run("layout", "save", "lab")
    assert (box.divvy.root / "var/lib/divvy/layouts/lab.yaml").exists()
    apply(box, "cards:\n- {card: all, mode: auto, slices: [1g.10gb@6]}\n", "--allow-move-idle")
    done = box.divvy.run("layout", "restore", "lab", "--yes")
    assert places(box) == first
    assert [card["mode"] for card in box.divvy.json("gpus")["cards"]] == modes
    assert "nothing was changed" in box.divvy.run("layout", "restore", "lab", "--yes").stdout
    now = slices(box)
    path = box.folder / "old.yaml"
    path.write_text((box.divvy.root / "var/lib/divvy/layouts/lab.yaml").read_text().replace(
        now["gpu1/7g.80gb@0"], "MIG-old"))
    done = box.divvy.run("layout", "restore", path, "--yes")
    assert f"gpu1/7g.80gb@0 is {now['gpu1/7g.80gb@0']} now; it was MIG-old" in done.stdout


def test_restored_over_a_reboot_without_a_daemon(box, machine):
    apply(box, KEPT)
    before = places(box)
    box.divvy.run("layout", "save")
    machine.sim("reboot")
    assert not places(box)
    box.divvy.run("layout", "restore", "boot", "--yes")
    assert places(box) == before
    done = box.divvy.run("layout", "restore", "other", "--yes", check=False)
    assert done.returncode == 4 and "other.yaml" in done.stderr
    done = box.divvy.run("layout", "save", "a b", check=False)
    assert done.returncode == 2 and "neither a file nor a name" in done.stderr


# ---- crashes ----

def test_killed_while_it_waits(box, divvy):
    apply(box, SEVENTHS)
    job = blocker(divvy, box, "--slice", "1g.10gb")
    path = box.folder / "wait.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--wait",
                                "-y"], env=divvy.env, stdout=subprocess.DEVNULL)
    harness.until(lambda: change(divvy)["outcome"] == "open", "the change waits")
    divvy.kill()
    divvy.start()
    assert change(divvy)["outcome"] == "open" and waiting.poll() is None
    let_go(box)
    assert waiting.wait(harness.PATIENCE) == 0
    assert places(box) == ["gpu0/7g.80gb@0"]
    divvy.wait(job)


@pytest.mark.parametrize("lines", [1, 5, 11])
def test_what_a_command_began_divvyd_finishes(box, machine, lines):
    """Killed when its journal has so many lines."""
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 1g.10gb@3, 3g.40gb@4]}\n")
    kept = slices(box)["gpu0/3g.40gb@4"]
    machine.sim("fault", "gpu0", "slow:15")
    path = box.folder / "next.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [1g.20gb@0, 1g.20gb@2, 3g.40gb@4]}\n")
    cut = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes"],
                           env=box.divvy.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    harness.until(lambda: journal(box) >= lines or cut.poll() is not None,
                  "the change is under way", every=0.001)
    assert cut.poll() is None, "it was over before it could be killed"
    os.kill(cut.pid, signal.SIGKILL)
    cut.wait()
    machine.sim("fault", "gpu0", "none")
    box.divvy.start()
    harness.until(lambda: places(box) == ["gpu0/1g.20gb@0", "gpu0/1g.20gb@2", "gpu0/3g.40gb@4"],
                  "the change is finished")
    assert slices(box)["gpu0/3g.40gb@4"] == kept and journal(box) == 0


def test_a_command_that_runs_keeps_its_journal(box, machine):
    machine.sim("fault", "gpu0", "slow:25")
    path = box.folder / "next.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: {1g.10gb: 4}}\n")
    running = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes"],
                               env=box.divvy.env, stdout=subprocess.DEVNULL)
    harness.until(lambda: journal(box) >= 1, "the change is under way", every=0.001)
    box.divvy.configure("cards:\n  default: {pool: queue, mode: auto}\n")
    box.divvy.start()
    assert running.wait(harness.PATIENCE) == 0
    machine.sim("fault", "gpu0", "none")
    assert len(places(box)) == 4
    job = box.divvy.submit("--slice", "1g.10gb", "-o", "/dev/null", "--", "true")
    assert box.divvy.wait(job)["state"] == "completed"


# ---- where no reset works ----

AFTER = ["gpu0/1g.10gb@2", "gpu0/1g.10gb@3", "gpu0/2g.20gb@0", "gpu0/3g.40gb@4"]
KEPT_LAB = LAB.replace("card: gpu0\n", "card: gpu0\n    mode: slices\n")



@pytest.mark.smoke
def test_a_reboot_is_asked_for_once_and_gone_on_with(box, divvy):
    """A guest's card: stored, told everywhere, kept over a crash, and done after the reboot."""
    box.machine.sim("fault", "gpu0", "passthrough")
    done = apply(box, KEPT_LAB, status=RESET)
    assert "since no reset works here" in done.stderr and "by itself after it" in done.stdout
    waiting = change(divvy)
    assert waiting["outcome"] == "needs reboot" and waiting["reboots"][0]["gpu"] == 0
    assert modes(box)[0] == (False, True) and len(places(box)) == 3, "the other card is done"
    for words in (["layout", "status"], ["status"], ["gpus"]):
        assert "waits for a reboot of this machine" in divvy.run(*words).stdout, words
    assert layout(box, "plan", KEPT_LAB, check=False).returncode == RESET
    job = divvy.submit("--gpus", "1", "-o", "/dev/null", "--", "true")
    done = apply(box, KEPT_LAB, status=RESET)
    assert "needs reboot" in done.stdout and modes(box)[0] == (False, True)
    divvy.kill()
    divvy.start()
    apply(box, "cards:\n- {card: gpu1, slices: [7g.80gb]}\n")
    assert change(divvy)["reboots"] and modes(box)[0] == (False, True)
    divvy.kill()
    box.machine.sim("reboot")
    divvy.start()
    harness.until(lambda: [p for p in places(box) if p.startswith("gpu0")] == AFTER, "it goes on")
    harness.until(lambda: not change(divvy)["reboots"], "nothing waits any more")
    assert 0 in [kept["gpu"] for kept in change(divvy)["kept"]], "its layout is kept from now on"
    assert divvy.show(job)["state"] == "pending", "no job turned anything"
    divvy.run("cancel", job)


@pytest.mark.smoke
@pytest.mark.parametrize("wish", ["mode: whole", "slices: [7g.80gb]"])
def test_a_failure_stores_again_what_somebody_else_had_stored(box, machine, wish):
    machine.sim("fault", "gpu0", "passthrough")
    apply(box, LAB, status=RESET)
    (box.divvy.root / "var/lib/divvy/reboot.json").unlink()  # as if somebody else had asked
    before = places(box)
    box.divvy.configure("cards:\n  default: {pool: queue, mode: auto}\n")
    box.divvy.start()
    machine.sim("fault", "gpu1", "create-fails:1")
    done = apply(box, f"cards:\n- {{card: gpu0, {wish}}}\n- {{card: gpu1, slices: [4g.40gb]}}\n",
                 status=1)
    assert "everything is as it was before" in done.stderr
    assert modes(box) == [(False, True), (True, True)] and places(box) == before
    assert not change(box.divvy)["reboots"], "it is not Divvy's to go on with"


def test_a_reboot_that_a_command_asked_for_divvyd_goes_on_with(box, machine):
    machine.sim("fault", "gpu0", "passthrough")
    apply(box, LAB, status=RESET)
    box.divvy.configure("cards:\n  default: {pool: queue, mode: auto}\n")
    box.divvy.start()
    harness.until(lambda: change(box.divvy)["reboots"], "it is taken over")
    harness.until(lambda: not (box.divvy.root / "var/lib/divvy/reboot.json").exists(),
                  "its file is gone")
    assert modes(box)[0] == (False, True)
    machine.sim("reboot")
    harness.until(lambda: [p for p in places(box) if p.startswith("gpu0")] == AFTER, "it goes on")


def test_a_mode_that_waits_is_turned_back_when_somebody_says_so(box, divvy):
    box.machine.sim("fault", "gpu0", "passthrough")
    apply(box, LAB, status=RESET)
    apply(box, "cards:\n- {card: gpu0, mode: whole}\n")
    assert modes(box)[0] == (False, False) and not change(divvy)["reboots"]


def test_nvlink_peers_are_named_and_left_alone(box, divvy):
    for card in ("gpu0", "gpu1"):
        box.machine.sim("fault", card, "nvlink")
    box.machine.sim("fault", "gpu0", "reset-required")
    apply(box, "cards:\n- {card: gpu1, slices: [7g.80gb]}\n")
    before = slices(box)
    peer = divvy.json("gpus")["cards"][1]["uuid"]
    done = apply(box, "cards:\n- {card: gpu0, slices: [7g.80gb]}\n", status=RESET)
    assert "NVLink" in done.stderr and f"gpu1 {peer}" in done.stderr
    assert slices(box) == before and modes(box)[0] == (False, False)
