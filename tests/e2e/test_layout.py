"""Layouts: from a file to the cards and back, without a daemon."""
import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess

import pytest

import harness

DIFFERS, INVALID, IMPOSSIBLE, BUSY, RESET, PARTIAL = range(10, 16)

LAB = """
cards:
  - card: gpu0
    slices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}
  - card: gpu1
    slices: [2g.20gb@0, 1c.3g.40gb@4.0, 1c.3g.40gb@4.1]
"""


def layout(box, word, text, *options, name="lab.yaml", check=True, **more):
    path = box.folder / name
    path.write_text(text)
    return box.divvy.run("layout", word, path, *options, check=check, **more)


def apply(box, text, *options, status=0, **more):
    done = layout(box, "apply", text, "--yes", *options, check=False, **more)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def slices(box):
    """Addresses as divvy sees them, with their UUIDs."""
    return {piece["address"]: piece["uuid"]
            for card in box.divvy.json("gpus")["cards"] for piece in card["slices"] or ()}


def places(box):
    return sorted(slices(box))


def hold(box, uuid):
    """A process on a slice or card; ended by the caller."""
    probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "1G", "--seconds", "120"],
                             env={**box.machine.env, "CUDA_VISIBLE_DEVICES": uuid},
                             stdout=subprocess.DEVNULL)
    harness.until(lambda: any(card["processes"] for card in box.divvy.json("gpus")["cards"]),
                  "the process is on the card")
    return probe


def end(probe):
    probe.kill()
    probe.wait()


def opener(box, name, node):
    """A program of that name that has a device node open and computes nothing."""
    program = box.folder / name
    shutil.copy("/bin/sleep", program)
    fd = os.open(box.machine.folder / "root/dev" / node, os.O_PATH)
    try:
        return subprocess.Popen([program, "120"], pass_fds=[fd])
    finally:
        os.close(fd)


def faults(box):
    return json.dumps(box.machine.status())


@pytest.mark.smoke
def test_a_file_becomes_a_layout_and_twice_is_once(box, machine):
    assert layout(box, "plan", LAB, check=False).returncode == DIFFERS
    done = apply(box, LAB)
    first = slices(box)
    assert sorted(first) == ["gpu0/1g.10gb@2", "gpu0/1g.10gb@3", "gpu0/2g.20gb@0", "gpu0/3g.40gb@4",
                             "gpu1/1c.3g.40gb@4.0", "gpu1/1c.3g.40gb@4.1", "gpu1/2g.20gb@0"]
    assert all(uuid in done.stdout for uuid in first.values())
    assert layout(box, "plan", LAB).returncode == 0
    for card in ("gpu0", "gpu1"):  # the first creation would use it up
        machine.sim("fault", card, "create-fails:1")
    before = faults(box)
    assert "nothing was changed" in apply(box, LAB).stdout
    assert slices(box) == first and faults(box) == before


def test_check_needs_no_hardware(box):
    none = {"DIVVY_NVML": "/none"}
    done = layout(box, "check", LAB, "--board", "a100-80gb:2", env=none)
    assert "3g.40gb@4" in done.stdout
    done = layout(box, "check", "cards:\n- {card: gpu0, slices: {1g.10gb: 4, 1g.5gb: 3}}\n",
                  "--board", "a100-40gb", check=False, env=none)
    assert done.returncode == IMPOSSIBLE and "needs 11 of 8 memory units" in done.stdout
    done = layout(box, "check", "cards:\n- {card: gpu0, slices: {1g.10gb: 3, 1g.5gb: 2}}\n",
                  "--board", "a100-40gb", env=none)
    assert done.returncode == 0
    done = layout(box, "check", LAB, env=none)
    assert "a100-80gb" in done.stdout and "h100-80gb-sxm" in done.stdout


def test_faults_of_the_file_are_told_with_their_place(box, machine):
    done = layout(box, "plan", "cards:\n- card: gpu0\n  slices: [1g.10gb@x]\n", check=False)
    assert done.returncode == INVALID and "lab.yaml:3:12:" in done.stderr
    done = layout(box, "plan", "cards:\n- {card: gpu5, mode: whole}\n", check=False)
    assert done.returncode == INVALID and "there is gpu0, gpu1" in done.stderr


def test_a_board_that_nobody_knows_is_told(box, machine):
    """A board that is not here is no error, but a slip in its name shall not pass in silence."""
    text = "cards:\n- {card: [a100-80g, b200-180gb, NVIDIA B200], mode: whole}\n"
    for word, options in (("plan", ()), ("check", ("--board", "a100-80gb"))):
        done = layout(box, word, text, *options)
        assert "lab.yaml:2:11: no card here is 'a100-80g'" in done.stderr, done.stderr
        assert "b200" not in done.stderr.lower()


def test_an_unknown_profile_touches_nothing(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: {1g.10gb: 7}}\n")
    before = slices(box)
    done = apply(box, "cards:\n- {card: gpu0, slices: {1g.5gb: 7}}\n", status=INVALID)
    assert "1g.10gb+me" in done.stdout and "Nearest: 1g.10gb" in done.stdout
    assert slices(box) == before


def test_what_is_busy_keeps_its_identity(box):
    box.machine.up("a100-40gb")
    apply(box, "cards:\n- {card: gpu0, slices: [2g.10gb@0, 1g.5gb@2, 3g.20gb@4]}\n")
    before = slices(box)
    probe = hold(box, before["gpu0/1g.5gb@2"])
    try:
        apply(box, "cards:\n- {card: gpu0, slices: {1g.5gb: 7}}\n")
        after = slices(box)
        assert len(after) == 7 and after["gpu0/1g.5gb@2"] == before["gpu0/1g.5gb@2"]
        done = apply(box, "cards:\n- {card: gpu0, slices: [7g.40gb]}\n", status=BUSY)
        assert f"gpu0/1g.5gb@2 (pid {probe.pid} divvy-probe)" in done.stdout
        assert slices(box) == after
    finally:
        end(probe)


def test_wait_waits_for_who_is_in_the_way(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@6]}\n")
    probe = hold(box, slices(box)["gpu0/1g.10gb@6"])
    path = box.folder / "wait.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--wait", "-y"],
                               env=box.divvy.env, stdout=subprocess.PIPE, text=True)
    try:
        said = waiting.stdout.readline()
        assert "wait" in said and waiting.poll() is None
        end(probe)
        assert waiting.wait(harness.PATIENCE) == 0
        assert places(box) == ["gpu0/7g.80gb@0"]
    finally:
        waiting.kill()
        waiting.wait()
        waiting.stdout.close()


@pytest.mark.smoke
def test_who_has_a_card_open_is_named_with_what_ends_it(box, machine):
    """A monitor that the driver does not list, and another card that is free."""
    monitor = opener(box, "nv-hostengine", "nvidia0")
    try:
        done = layout(box, "plan", LAB, check=False)
        assert done.returncode == BUSY
        said = " ".join(done.stdout.split())
        assert f"pid {monitor.pid} nv-hostengine" in said and "/dev/nvidia0 open: DCGM" in said
        assert "systemctl stop nvidia-dcgm" in said
        done = layout(box, "plan", LAB, "--json", check=False)
        card = json.loads(done.stdout)["cards"][0]
        assert card["verdict"] == "busy"
        assert [(p["pid"], p["stop"]) for p in card["holders"]["processes"]] == [
            (monitor.pid, "systemctl stop nvidia-dcgm")]
        apply(box, LAB, status=PARTIAL)
        assert places(box) == ["gpu1/1c.3g.40gb@4.0", "gpu1/1c.3g.40gb@4.1", "gpu1/2g.20gb@0"]
        assert monitor.poll() is None  # named, and left alone
    finally:
        end(monitor)
    apply(box, LAB)


def test_wait_waits_for_who_has_the_card_open(box, machine):
    monitor = opener(box, "dcgm-exporter", "nvidia0")
    path = box.folder / "wait.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--wait", "-y"],
                               env=box.divvy.env, stdout=subprocess.PIPE, text=True)
    try:
        assert "wait" in waiting.stdout.readline() and waiting.poll() is None
        end(monitor)
        assert waiting.wait(harness.PATIENCE) == 0
        assert places(box) == ["gpu0/7g.80gb@0"]
    finally:
        for process in (waiting, monitor):
            process.kill()
            process.wait()
        waiting.stdout.close()


def test_a_card_that_turns_at_once_need_not_be_alone(box):
    """Where no reset is needed, whoever only looks on is not in the way."""
    box.machine.up("h100-80gb-sxm")
    monitor = opener(box, "nv-hostengine", "nvidia0")
    try:
        apply(box, "cards:\n- {card: gpu0, slices: {1g.10gb: 7}}\n")
        assert len(places(box)) == 7
    finally:
        end(monitor)


def test_what_the_driver_alone_knows_of_is_named_by_its_refusal(box, machine):
    """The persistence daemon may let go when it is asked; once it did not, it is named."""
    machine.sim("fault", "gpu0", "in-use")
    daemon = opener(box, "nvidia-persistenced", "nvidia0")
    try:
        assert layout(box, "plan", LAB, check=False).returncode == DIFFERS
        done = apply(box, LAB, status=BUSY)
        assert f"pid {daemon.pid} nvidia-persiste" in done.stderr
        assert "systemctl stop nvidia-persistenced" in done.stderr and not places(box)
    finally:
        end(daemon)


def test_the_other_card_is_not_touched(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [3g.40gb@0, 3g.40gb@4]}\n")
    before = slices(box)
    probe = hold(box, before["gpu0/3g.40gb@0"])
    try:
        apply(box, "cards:\n- {card: gpu1, slices: {1g.10gb: 7}}\n")
        after = slices(box)
        assert before.items() <= after.items() and len(after) == len(before) + 7
        both = ("cards:\n- {card: gpu0, slices: [7g.80gb]}\n"
                "- {card: gpu1, slices: [7g.80gb]}\n")
        apply(box, both, status=PARTIAL)
        assert places(box) == ["gpu0/3g.40gb@0", "gpu0/3g.40gb@4", "gpu1/7g.80gb@0"]
    finally:
        end(probe)


def test_a_card_without_mig_among_others(box):
    box.machine.up("a100-80gb", "rtx4090")
    everywhere = "cards:\n- {card: all, slices: {1g.10gb: 7}}\n"
    apply(box, everywhere)
    assert len(places(box)) == 7
    before = slices(box)
    box.machine.sim("fault", "gpu0", "create-fails:1")
    apply(box, everywhere)
    assert slices(box) == before


@pytest.mark.smoke
@pytest.mark.parametrize("nth", range(1, 9))
def test_a_failure_restores_what_was(box, machine, nth):
    """Each creation fails once: instances and what is in them in turn."""
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 2g.20gb@2, 1g.10gb@5]}\n")
    before = places(box)
    machine.sim("fault", "gpu0", f"create-fails:{nth}")
    done = apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@5, 1g.10gb@6, 1g.20gb@0, 1g.20gb@2, "
                      "1g.10gb@4]}\n", status=1)
    assert "everything is as it was before" in done.stderr
    assert places(box) == before
    assert not list((box.divvy.root / "var/lib/divvy").glob("*.journal"))


def test_a_destroy_that_lies_is_found_out(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0]}\n")
    machine.sim("fault", "gpu0", "destroy-lies")
    before = slices(box)
    done = apply(box, "cards:\n- {card: gpu0, slices: [4g.40gb]}\n", status=1)
    assert "still there; everything is as it was before" in done.stderr
    assert slices(box) == before


def test_only_the_card_that_needs_it_is_reset(box, machine):
    machine.sim("fault", "gpu1", "reset-required")
    reset, resets = box.counting_reset()
    apply(box, LAB, env=reset)
    uuids = [card["uuid"] for card in box.divvy.json("gpus")["cards"]]
    assert resets() == [uuids[1]]


def test_a_reset_that_fails_leaves_all_as_it_was(box, machine):
    machine.sim("fault", "gpu1", "reset-required")
    done = apply(box, LAB, status=RESET, env={"DIVVY_RESET_COMMAND": "false"})
    assert "reset" in done.stderr and not places(box)
    assert [card["mig_now"] for card in box.divvy.json("gpus")["cards"]] == [False, False]


def modes(box):
    return [(card["mig_now"], card["mig_pending"]) for card in box.divvy.json("gpus")["cards"]]


@pytest.mark.smoke
def test_one_card_is_reset_and_a_job_on_the_other_sees_nothing(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [3g.40gb@4]}\n")
    machine.sim("fault", "gpu1", "reset-required")
    reset, resets = box.counting_reset()
    before = slices(box)
    probe = hold(box, before["gpu0/3g.40gb@4"])
    try:
        apply(box, "cards:\n- {card: gpu1, slices: {1g.10gb: 7}}\n", env=reset)
        assert before.items() <= slices(box).items() and len(slices(box)) == 8
        assert resets() == [box.divvy.json("gpus")["cards"][1]["uuid"]]
        assert probe.poll() is None
    finally:
        end(probe)


@pytest.mark.smoke
@pytest.mark.parametrize("wish, expected", [
    (["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"],
     ["gpu0/1g.10gb@2", "gpu0/1g.10gb@3", "gpu0/2g.20gb@0", "gpu0/3g.40gb@4"]),
    (["3g.40gb", "4g.40gb"], ["gpu0/3g.40gb@4", "gpu0/4g.40gb@0"]),
])
def test_the_order_of_a_wish_means_nothing(box, machine, wish, expected):
    """Each creation that the driver refuses would end the change; so none is refused."""
    for order in sorted(set(itertools.permutations(wish))):
        apply(box, "cards:\n- {card: gpu0, slices: []}\n")
        apply(box, "cards:\n- {card: gpu0, slices: [%s]}\n" % ", ".join(order))
        assert places(box) == expected, order


def test_more_than_there_is_is_refused_by_arithmetic(box):
    box.machine.up("a100-40gb")
    apply(box, "cards:\n- {card: gpu0, slices: [1g.5gb@0, 3g.20gb@4]}\n")
    before = slices(box)
    done = apply(box, "cards:\n- {card: gpu0, slices: {1g.10gb: 4, 1g.5gb: 3}}\n",
                 status=IMPOSSIBLE)
    assert "needs 11 of 8 memory units" in done.stdout and "nothing was changed" in done.stderr
    assert slices(box) == before
    apply(box, "cards:\n- {card: gpu0, slices: {1g.10gb: 3, 1g.5gb: 2}}\n", "--allow-move-idle")
    assert sorted(place.split("@")[0] for place in places(box)) == (
        ["gpu0/1g.10gb"] * 3 + ["gpu0/1g.5gb"] * 2)


def cuttable_boards():
    shown = subprocess.run([harness.PROGRAMS / "divvy-sim", "boards", "--json"], text=True,
                           stdout=subprocess.PIPE, check=True).stdout
    return [board["board"] for board in json.loads(shown) if board["mig"]]


def test_full_cards_of_every_board_are_read_back_as_they_were_asked_for(box):
    """Through the driver's door: the most slices, and two halves; and back again exactly."""
    boards = cuttable_boards()
    assert len(boards) > 10
    for board in boards:
        box.machine.down()
        box.machine.up(board)
        labels = json.loads(box.divvy.run("mig-parted", "generate-config", "-o", "json").stdout)[
            "mig-configs"]
        wishes = [label[0]["mig-devices"] for name, label in labels.items()
                  if name.startswith("all-") and label[0].get("mig-devices")]
        most = max(wishes, key=lambda wish: sum(wish.values()))
        for wish in (most, labels["all-balanced"][0]["mig-devices"]):
            apply(box, "cards:\n- {card: gpu0, slices: %s}\n" % json.dumps(wish),
                  "--allow-move-idle")
            got = [place.split("/")[1].split("@")[0] for place in places(box)]
            assert {name: got.count(name) for name in got} == wish, board
            exported = box.divvy.run("layout", "export").stdout
            before = slices(box)
            apply(box, "cards:\n- {card: gpu0, mode: whole}\n")
            apply(box, exported)
            assert slices(box) == before, board


def test_where_no_reset_works_a_reboot_is_asked_for_once(box, machine):
    """A guest's card: the mode is stored, the other card is done, and the rest follows."""
    machine.sim("fault", "gpu0", "passthrough")
    reset, resets = box.counting_reset()
    done = apply(box, LAB, status=RESET, env=reset)
    assert "no reset works here in a virtual machine" in done.stderr
    assert "needs a reboot of this machine" in done.stderr and "not supported" in done.stderr
    assert len(places(box)) == 3 and modes(box) == [(False, True), (True, True)]
    assert len(resets()) == 1

    done = apply(box, LAB, status=RESET, env=reset)  # asked for already: not touched
    assert "needs reboot" in done.stdout and "needs a reboot" not in done.stderr
    assert len(resets()) == 1 and modes(box)[0] == (False, True)
    assert layout(box, "plan", LAB, check=False).returncode == RESET

    machine.sim("reboot")
    done = apply(box, "cards:\n- {card: gpu1, slices: {1g.10gb: 7}}\n", env=reset)  # not gpu0
    assert "the reboot that an earlier change waited for has come" in done.stderr
    assert [p for p in places(box) if p.startswith("gpu0")] == [
        "gpu0/1g.10gb@2", "gpu0/1g.10gb@3", "gpu0/2g.20gb@0", "gpu0/3g.40gb@4"]
    assert not (box.divvy.root / "var/lib/divvy/reboot.json").exists()
    assert len(resets()) == 1


def test_a_stored_mode_is_not_turned_back_behind_anybodys_back(box, machine):
    """After the ask another wish for the other card leaves it; to take it back must be said."""
    machine.sim("fault", "gpu0", "passthrough")
    apply(box, LAB, status=RESET)
    done = apply(box, "cards:\n- {card: gpu1, mode: whole}\n")
    assert "gpu0 still waits for a reboot" in done.stderr
    assert modes(box) == [(False, True), (False, False)]
    apply(box, "cards:\n- {card: gpu0, mode: whole}\n")
    assert modes(box)[0] == (False, False)
    done = apply(box, "cards:\n- {card: gpu1, mode: whole}\n")
    assert "waits for a reboot" not in done.stderr


@pytest.mark.smoke
@pytest.mark.parametrize("wish", ["mode: whole", "slices: [7g.80gb]"])
def test_a_failure_stores_again_what_somebody_else_had_stored(box, machine, wish):
    """A guest's card for which MIG on was stored by others, and a failure on the card after it."""
    machine.sim("fault", "gpu0", "passthrough")
    apply(box, LAB, status=RESET)
    (box.divvy.root / "var/lib/divvy/reboot.json").unlink()
    before = places(box)
    machine.sim("fault", "gpu1", "create-fails:1")
    done = apply(box, f"cards:\n- {{card: gpu0, {wish}}}\n- {{card: gpu1, slices: [4g.40gb]}}\n",
                 status=1)
    assert "everything is as it was before" in done.stderr
    assert modes(box) == [(False, True), (True, True)] and places(box) == before
    machine.sim("reboot")
    assert modes(box)[0] == (True, True), "what was stored has become so"


def test_a_reset_that_claims_to_have_worked_is_found_out(box, machine):
    machine.sim("fault", "gpu0", "reset-required")
    done = apply(box, "cards:\n- {card: gpu0, slices: [7g.80gb]}\n", status=RESET,
                 env={"DIVVY_RESET_COMMAND": "true"})
    assert "the MIG mode still waits" in done.stderr and modes(box)[0] == (False, True)


def test_nvlink_peers_are_named_and_left_alone(box, machine):
    for card in ("gpu0", "gpu1"):
        machine.sim("fault", card, "nvlink")
    machine.sim("fault", "gpu0", "reset-required")
    reset, resets = box.counting_reset()
    apply(box, "cards:\n- {card: gpu1, slices: [7g.80gb]}\n")
    before = slices(box)
    peer = box.divvy.json("gpus")["cards"][1]["uuid"]
    done = apply(box, "cards:\n- {card: gpu0, slices: [7g.80gb]}\n", status=RESET, env=reset)
    assert "NVLink" in done.stderr and f"gpu1 {peer}" in done.stderr
    assert slices(box) == before and modes(box)[0] == (False, False)
    assert len(resets()) == 1


def test_who_keeps_a_reset_from_working_is_named(box, machine):
    machine.sim("fault", "gpu0", "reset-required")
    daemon = opener(box, "nvidia-persistenced", "nvidia0")
    try:
        done = apply(box, "cards:\n- {card: gpu0, slices: [7g.80gb]}\n", status=RESET,
                     env={"DIVVY_RESET_COMMAND": "false"})
        assert f"pid {daemon.pid} nvidia-persiste" in done.stderr
    finally:
        end(daemon)


def test_moving_what_is_idle_must_be_allowed(box, machine):
    apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb@0]}\n")
    wish = "cards:\n- {card: gpu0, slices: [1g.10gb, 4g.40gb]}\n"
    before = slices(box)
    done = apply(box, wish, status=1)
    assert "--allow-move-idle" in done.stderr and slices(box) == before
    apply(box, wish, "--allow-move-idle")
    assert "gpu0/4g.40gb@0" in places(box)


def test_nobody_is_asked_where_nobody_is(box, machine):
    done = layout(box, "apply", LAB, check=False)
    assert done.returncode == 1 and "--yes" in done.stderr and not places(box)


def test_a_terminal_is_asked(box, machine):
    path = box.folder / "lab.yaml"
    path.write_text(LAB)
    drawn = harness.on_terminal([harness.PROGRAMS / "divvy", "layout", "apply", path],
                                box.divvy.env, enough=lambda seen: "[y/N]" in seen)
    assert "Apply? [y/N]" in drawn and not places(box)


def test_what_is_exported_comes_back(box, machine):
    apply(box, LAB)
    first = places(box)
    exported = box.divvy.run("layout", "export").stdout
    as_json = box.divvy.run("layout", "export", "--json").stdout
    machine.sim("reboot")
    assert not places(box)
    apply(box, exported)
    assert places(box) == first
    assert layout(box, "plan", as_json).returncode == 0


def test_whole_again(box, machine):
    apply(box, LAB)
    apply(box, "cards:\n- {card: all, mode: whole}\n")
    assert not any(card["mig_now"] for card in box.divvy.json("gpus")["cards"])


def test_what_a_job_holds_without_a_daemon_is_busy(box, divvy):
    job = divvy.submit("--slice", "2g.20gb", "-o", box.folder / "out", "--", "sleep",
                       "120")
    place = divvy.wait_state(job, "running")["place"][0]
    divvy.kill()
    wish = "cards:\n- {card: gpu%d, slices: [7g.80gb]}\n" % place["gpu"]
    done = apply(box, wish, status=BUSY)
    assert f"(#{job} " in done.stdout
    divvy.start()
    divvy.run("cancel", job)
    divvy.wait(job)


@pytest.mark.smoke
def test_one_writer(box, machine):
    """A second one is told who has the card."""
    apply(box, "cards:\n- {card: gpu0, slices: [1g.10gb]}\n")
    path = next(machine.folder.glob("root/run/divvy-cards/*"))
    with open(path, "r+", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("somebody else (pid 7)\n")
        held.flush()
        done = apply(box, "cards:\n- {card: gpu0, slices: []}\n", status=BUSY)
    assert "somebody else (pid 7)" in done.stderr


def journal(box):
    path = box.divvy.root / "var/lib/divvy/apply.journal"
    try:
        return path.read_text().count("\n")
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("lines", [1, 5, 11])
def test_killed_and_run_again(box, machine, lines):
    """Killed when the journal has so many lines: the same end, whatever was under way."""
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 1g.10gb@3, 3g.40gb@4]}\n")
    kept = slices(box)["gpu0/3g.40gb@4"]
    machine.sim("fault", "gpu0", "slow:15")
    path = box.folder / "next.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [1g.20gb@0, 1g.20gb@2, 3g.40gb@4]}\n")
    change = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes"],
                              env=box.divvy.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    harness.until(lambda: journal(box) >= lines or change.poll() is not None,
                  "the change is under way", every=0.001)
    assert change.poll() is None, "it was over before it could be killed"
    os.kill(change.pid, signal.SIGKILL)
    change.wait()
    machine.sim("fault", "gpu0", "none")
    done = box.divvy.run("layout", "apply", path, "--yes")
    assert "cut short" in done.stderr
    after = slices(box)
    assert sorted(after) == ["gpu0/1g.20gb@0", "gpu0/1g.20gb@2", "gpu0/3g.40gb@4"]
    assert after["gpu0/3g.40gb@4"] == kept
    assert journal(box) == 0


def test_what_was_cut_short_does_not_go_on_over_a_process(box, machine):
    """Killed, and then somebody uses what was left to be destroyed."""
    apply(box, "cards:\n- {card: gpu0, slices: [2g.20gb@0, 3g.40gb@4]}\n")
    machine.sim("fault", "gpu0", "slow:15")
    path = box.folder / "next.yaml"
    path.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    change = subprocess.Popen([harness.PROGRAMS / "divvy", "layout", "apply", path, "--yes"],
                              env=box.divvy.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    harness.until(lambda: journal(box) >= 1, "the change is under way", every=0.001)
    os.kill(change.pid, signal.SIGKILL)
    change.wait()
    machine.sim("fault", "gpu0", "none")
    probe = hold(box, slices(box)["gpu0/3g.40gb@4"])
    before = slices(box)
    done = apply(box, path.read_text(), status=BUSY)
    assert "which is in use by now" in done.stderr and slices(box) == before
    end(probe)
    apply(box, path.read_text())
    assert places(box) == ["gpu0/7g.80gb@0"]


MIG_PARTED = """
version: v1
mig-configs:
  balanced:
    - devices: [0]
      device-filter: ["0x20B210DE", "0x20B510DE"]
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    - devices: [1]
      mig-enabled: false
  sevenths:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.10gb": 7}
"""


def test_files_of_mig_parted_are_understood(box, machine):
    done = layout(box, "check", MIG_PARTED)
    assert "balanced" in done.stdout and "sevenths" in done.stdout
    done = layout(box, "plan", MIG_PARTED, check=False)
    assert done.returncode == 2 and "balanced, sevenths" in done.stderr
    apply(box, MIG_PARTED, "--label", "sevenths")
    assert len(places(box)) == 14
    apply(box, MIG_PARTED, "--label", "balanced", "--allow-move-idle")
    assert len(places(box)) == 4
