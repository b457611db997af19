"""The simulated machine as its user meets it: divvy-sim, libcuda.so.1 and divvy-probe."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest

import harness

# Tests marked smoke run on sanitized builds too, whose libraries python3 cannot
# load: they make no NVML calls.
CALLS = pathlib.Path(__file__).with_name("nvml_calls.py")
GIB = 1 << 30
IN_USE, INSUFFICIENT_RESOURCES = 19, 23


def nvml(machine, *words):
    """One of nvml_calls.py on that machine."""
    return json.loads(harness.run(sys.executable, CALLS, *words, env=machine.env).stdout)


def probe(machine, *options, visible=None, check=True, **more):
    env = dict(machine.env)
    if visible is not None:
        env["CUDA_VISIBLE_DEVICES"] = visible
    return harness.run(harness.PROGRAMS / "divvy-probe", *options, env={**env, **more},
                       check=check)


def devices(machine, visible=None, **more):
    """What a CUDA program sees: [] where CUDA says that there is none."""
    more.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    done = probe(machine, "--json", visible=visible, check=False, **more)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)["devices"] if done.returncode == 0 else []


def uuids(machine, visible=None, **more):
    return [device["uuid"] for device in devices(machine, visible, **more)]


def cards(machine):
    return machine.status()["cards"]


def slices(machine, card=0):
    return [ci["uuid"] for gi in cards(machine)[card]["gpu_instances"]
            for ci in gi["compute_instances"]]


@pytest.fixture
def cut(machine):
    """Two A100: gpu0 is cut into 3g.40gb@4, 2g.20gb@0 and 1g.10gb@2, gpu1 is whole."""
    assert nvml(machine, "mode", 0, 1) == {"rc": 0, "activation": 0}
    for profile, start, ci in ((9, 4, 2), (14, 0, 1), (19, 2, 0)):
        assert nvml(machine, "create", 0, profile, start, ci)["rc"] == 0
    return machine


def uuid_of(machine, profile):
    return next(ci["uuid"] for gi in cards(machine)[0]["gpu_instances"]
                for ci in gi["compute_instances"] if ci["profile"] == profile)


@pytest.fixture
def holder():
    """Starts programs that use a card, and ends them."""
    running = []

    def start(machine, *options, visible=None):
        env = dict(machine.env)
        if visible is not None:
            env["CUDA_VISIBLE_DEVICES"] = visible
        running.append(subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--seconds", "60",
                                         "-q", *options], env=env))
        pid = running[-1].pid
        harness.until(lambda: any(p["pid"] == pid and p["memory_bytes"] > GIB
                                  for card in cards(machine) for p in card["processes"]),
                      "the probe holds its memory")
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


# ---- divvy-sim ----

@pytest.mark.smoke
def test_every_board_can_be_simulated(box):
    boards = json.loads(box.machine.sim("boards", "--json").stdout)
    keys = [board["board"] for board in boards]
    assert {"a100-80gb", "a30", "h100-80gb-sxm", "rtx-pro-6000", "rtx4090", "t4"} <= set(keys)
    assert {b["board"] for b in boards if not b["mig"]} == {
        "v100-32gb", "t4", "l4", "l40s", "rtx3090", "rtx4090"}
    for some in (keys[:10], keys[10:]):
        box.machine.sim("up", *some)
        assert [card["board"] for card in cards(box.machine)] == some
        box.machine.sim("down")


@pytest.mark.smoke
def test_up_status_down(box):
    box.machine.sim("up", "a100-80gb:2", "rtx4090", "--driver", "535.309.01")
    seen = box.machine.status()
    assert seen["driver_version"] == "535.309.01" and seen["cuda_version"] == 12020
    assert [card["board"] for card in seen["cards"]] == ["a100-80gb", "a100-80gb", "rtx4090"]
    assert len({card["uuid"] for card in seen["cards"]}) == 3
    again = box.machine.sim("up", "a30", check=False)
    assert again.returncode == 1 and "already up" in again.stderr
    box.machine.sim("down")
    assert not box.machine.folder.exists()
    gone = box.machine.sim("down", check=False)
    assert gone.returncode == 1 and "no simulated machine is up" in gone.stderr


@pytest.mark.parametrize("words, told", [
    (["up", "a100-8gb"], "did you mean a100-80gb?"),
    (["up", "a100-80gb:0"], "1 to 32"),
    (["up", "a100-80gb:33"], "1 to 32"),
    (["up", "a100-80gb:20", "t4:20"], "at most 32 cards"),
    (["up"], "say which cards"),
    (["up", "b200-180gb", "--driver", "535.309.01"], "needs 570.133.20 or newer"),
    (["up", "a30", "--driver", "latest"], "is no driver version"),
    (["up", "../boards/a30"], "there is no board"),
])
def test_what_cannot_be_made_is_refused(box, words, told):
    done = box.machine.sim(*words, check=False)
    assert done.returncode == 1 and told in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (box.machine.folder / "state").exists()


def test_wrong_usage_is_told_apart(box):
    done = box.machine.sim("stauts", check=False)
    assert done.returncode == 2 and "did you mean status?" in done.stderr
    assert box.machine.sim("status", "--jsn", check=False).returncode == 2


def test_the_same_seed_gives_the_same_cards(box):
    def made(seed):
        box.machine.sim("up", "a30", "--seed", seed)
        uuid = cards(box.machine)[0]["uuid"]
        box.machine.sim("down")
        return uuid
    assert made("7") == made("7") != made("8")


def test_a_machine_in_use_is_not_taken_down(cut, holder):
    used = holder(cut, "--mem", "2G", visible=uuid_of(cut, "2g.20gb"))
    refused = cut.sim("down", check=False)
    assert refused.returncode == 1 and str(used.pid) in refused.stderr
    cut.sim("down", "--force")
    assert used.wait(harness.PATIENCE) != 0


# ---- driver root ----

def test_capability_files_follow_the_instances(machine):
    capabilities = machine.folder / "root/proc/driver/nvidia/capabilities"
    nodes = machine.folder / "root/dev/nvidia-caps"
    assert (capabilities / "mig/config").read_text() == (
        "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n")
    assert not (capabilities / "gpu0/mig").exists()
    nvml(machine, "mode", 0, 1)
    made = nvml(machine, "create", 0, 14, 4, 1)
    gi = capabilities / f"gpu0/mig/gi{made['gi']}"
    minor = 3 + 9 * made["gi"]
    assert (gi / "access").read_text() == (
        f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    assert f"DeviceFileMinor: {minor + 1}\n" in (gi / "ci0/access").read_text()
    minors = (machine.folder / "root/proc/driver/nvidia-caps/mig-minors").read_text()
    assert f"gpu0/gi{made['gi']}/ci0/access {minor + 1}\n" in minors
    assert minors.count("\n") == 4322
    assert (nodes / f"nvidia-cap{minor}").exists() and (nodes / f"nvidia-cap{minor + 1}").exists()
    assert nvml(machine, "destroy", 0, made["gi"])["rc"] == 0
    assert not gi.exists() and not (nodes / f"nvidia-cap{minor}").exists()
    assert sorted(node.name for node in nodes.iterdir()) == ["nvidia-cap1", "nvidia-cap2"]


def test_what_a_killed_writer_left_is_mended(machine):
    nvml(machine, "mode", 0, 1)
    made = nvml(machine, "create", 0, 19, 3, 0)
    gi = machine.folder / f"root/proc/driver/nvidia/capabilities/gpu0/mig/gi{made['gi']}"
    shutil.rmtree(gi)
    (gi.parent / "gi3").mkdir()
    machine.status()
    assert (gi / "ci0/access").exists() and not (gi.parent / "gi3").exists()


def test_nodes_have_the_numbers_of_proc_devices(machine):
    root = machine.folder / "root"
    node = (root / "dev/nvidiactl").stat()
    if not stat.S_ISCHR(node.st_mode):
        pytest.skip("device nodes cannot be made and opened here: plain files stand in")
    majors = dict(reversed(line.split()) for line in (root / "proc/devices").read_text().split(
        "Block devices")[0].splitlines() if line[:1] == " " or line[:1].isdigit())
    assert os.major(node.st_rdev) == int(majors["nvidia"]) and os.minor(node.st_rdev) == 255
    assert os.minor((root / "dev/nvidia1").stat().st_rdev) == 1
    cap = (root / "dev/nvidia-caps/nvidia-cap1").stat()
    assert os.major(cap.st_rdev) == int(majors["nvidia-caps"])
    assert stat.S_IMODE(cap.st_mode) == 0o400


# ---- what CUDA sees ----

@pytest.mark.smoke
def test_whole_cards_are_all_seen(box):
    machine = box.machine.up("a100-80gb:2", "rtx4090:1")
    gpu = [card["uuid"] for card in cards(machine)]
    assert uuids(machine) == gpu
    assert uuids(machine, CUDA_DEVICE_ORDER="FASTEST_FIRST") == [gpu[2], gpu[0], gpu[1]]
    assert uuids(machine, "1") == [gpu[1]]
    assert uuids(machine, "2,0") == [gpu[2], gpu[0]]
    assert uuids(machine, gpu[1]) == [gpu[1]]
    assert uuids(machine, gpu[1][:10]) == [gpu[1]]
    assert uuids(machine, gpu[1].upper().replace("GPU-", "GPU-")) == [gpu[1]]


def test_the_list_is_cut_at_its_first_bad_entry(machine):
    gpu = [card["uuid"] for card in cards(machine)]
    assert uuids(machine, "0,7,1") == [gpu[0]]
    assert uuids(machine, "-1,0") == []
    assert uuids(machine, "GPU-,1") == []  # fits both cards
    assert uuids(machine, "0x1") == []
    assert uuids(machine, "0,0") == []
    assert uuids(machine, "") == []
    assert uuids(machine, " 1 , 0") == [gpu[1], gpu[0]]
    none = probe(machine, visible="", check=False)
    assert none.returncode == 3 and "CUDA error 100 (CUDA_ERROR_NO_DEVICE)" in none.stderr


def test_a_mig_uuid_shows_that_slice_alone(cut):
    for profile, gib in (("3g.40gb", 39.25), ("2g.20gb", 19.5), ("1g.10gb", 9.5)):
        uuid = uuid_of(cut, profile)
        (seen,) = devices(cut, uuid)
        assert seen["uuid"] == uuid
        assert seen["name"] == f"NVIDIA A100-SXM4-80GB MIG {profile}"
        assert seen["total_bytes"] == gib * GIB
        assert uuids(cut, uuid[:14]) == [uuid]


def test_one_mig_device_is_all_before_driver_570(cut):
    gpu = [card["uuid"] for card in cards(cut)]
    two, three = uuid_of(cut, "2g.20gb"), uuid_of(cut, "3g.40gb")
    first = slices(cut)[0]
    assert uuids(cut) == [first]
    assert uuids(cut, f"{two},{three}") == [two]
    assert uuids(cut, f"{gpu[1]},{two}") == [two]
    assert uuids(cut, gpu[1]) == [gpu[1]]
    assert uuids(cut, "0") == [first]
    gi = next(g["id"] for g in cards(cut)[0]["gpu_instances"] if g["profile"] == "2g.20gb")
    assert uuids(cut, f"MIG-{gpu[0]}/{gi}/0") == [two]
    assert uuids(cut, f"MIG-{gpu[0]}/{gi}/1") == []


def test_several_mig_devices_from_driver_570_on(box):
    machine = box.machine.up("a100-80gb:2", "--driver", "570.133.20")
    nvml(machine, "mode", 0, 1)
    for start in (0, 2):
        nvml(machine, "create", 0, 14, start, 0)
    gpu = [card["uuid"] for card in cards(machine)]
    both = slices(machine)
    assert uuids(machine) == [*both, gpu[1]]
    assert uuids(machine, f"{gpu[1]},{both[1]}") == [gpu[1], both[1]]


def test_a_card_in_mig_mode_without_slices_is_no_device(machine):
    nvml(machine, "mode", 0, 1)
    assert uuids(machine, "0") == []
    assert uuids(machine) == [cards(machine)[1]["uuid"]]


def test_a_closed_node_hides_what_is_behind_it(cut):
    if os.getuid() != 0:
        pytest.skip("needs root, to look as somebody who is not")
    gi = cards(cut)[0]["gpu_instances"][0]
    node = cut.folder / f"root/dev/nvidia-caps/nvidia-cap{3 + 9 * gi['id']}"
    node.chmod(0o400)
    (cut.folder / "root/dev/nvidia1").chmod(0o600)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def seen(visible):
        done = harness.run(*as_nobody, harness.PROGRAMS / "divvy-probe", "--json", check=False,
                           env={**cut.env, "CUDA_VISIBLE_DEVICES": visible})
        return json.loads(done.stdout)["devices"] if done.returncode == 0 else []
    assert seen(gi["compute_instances"][0]["uuid"]) == []
    assert seen(cards(cut)[1]["uuid"]) == []
    open_one = slices(cut)[1]
    assert [device["uuid"] for device in seen(open_one)] == [open_one]


# ---- memory, load, faults ----

def test_memory_ends_where_the_slice_ends(cut, holder):
    two = uuid_of(cut, "2g.20gb")
    probe(cut, "--mem", "19G", "-q", visible=two)
    over = probe(cut, "--mem", "20G", visible=two, check=False)
    assert over.returncode == 2 and "CUDA error 2 (CUDA_ERROR_OUT_OF_MEMORY)" in over.stderr
    holder(cut, "--mem", "12G", visible=two)
    assert probe(cut, "--mem", "12G", "-q", visible=two, check=False).returncode == 2
    probe(cut, "--mem", "9G", "-q", visible=uuid_of(cut, "1g.10gb"))  # its own memory is free
    (seen,) = devices(cut, two)
    assert seen["free_bytes"] < 8 * GIB


def test_a_slice_in_use_stays(cut, holder):
    two = uuid_of(cut, "2g.20gb")
    gi = next(g["id"] for g in cards(cut)[0]["gpu_instances"] if g["profile"] == "2g.20gb")
    used = holder(cut, "--mem", "2G", visible=two)
    assert nvml(cut, "destroy", 0, gi)["rc"] == IN_USE
    assert cut.sim("reset", "gpu0", check=False).returncode == 1
    used.kill()
    used.wait()
    assert nvml(cut, "destroy", 0, gi)["rc"] == 0
    assert uuids(cut, two) == []


def test_load_is_told_while_it_lasts(machine, holder):
    used = holder(machine, "--mem", "2G", "--load", "50", visible="0")

    def load():
        return max((p["load_percent"] for card in cards(machine) for p in card["processes"]),
                   default=0)
    harness.until(lambda: 30 <= load() <= 70, "about half of the time it is busy")
    used.kill()
    used.wait()
    assert cards(machine)[0]["processes"] == []


def test_faults_break_and_mend(cut):
    two = uuid_of(cut, "2g.20gb")
    cut.sim("fault", "gpu0", "xid:79")
    assert cards(cut)[0]["faults"] == "lost" and cards(cut)[0]["last_xid"] == 79
    assert uuids(cut, two) == []
    cut.sim("fault", "gpu0", "none")
    assert uuids(cut, two) == [two]
    cut.sim("fault", "gpu1", "in-use", "slow:5")
    assert cards(cut)[1]["faults"] == "in-use slow:5"
    refused = cut.sim("fault", "gpu1", "smoke", check=False)
    assert refused.returncode == 1 and "destroy-lies" in refused.stderr
    refused = cut.sim("fault", "gpu2", "lost", check=False)
    assert refused.returncode == 1 and "gpu0 to gpu1" in refused.stderr


def test_creation_fails_on_demand(machine):
    nvml(machine, "mode", 0, 1)
    machine.sim("fault", "gpu0", "create-fails:2")
    codes = [nvml(machine, "create", 0, 19, start, -1)["rc"] for start in (0, 1, 2)]
    assert codes[0] == 0 and codes[1] != 0 and codes[2] == 0


def test_the_driver_picks_places_in_its_own_order(machine):
    nvml(machine, "mode", 0, 1)
    starts = [nvml(machine, "create", 0, 19, -1, -1)["start"] for _ in range(7)]
    assert starts == [6, 4, 5, 0, 1, 2, 3]
    assert nvml(machine, "create", 0, 19, -1, -1)["rc"] == INSUFFICIENT_RESOURCES


# ---- reboot and reset ----

def test_a_reboot_keeps_mig_on_ampere_and_no_instance(box):
    machine = box.machine.up("a100-80gb:1", "h100-80gb-sxm:1")
    for card in (0, 1):
        assert nvml(machine, "mode", card, 1) == {"rc": 0, "activation": 0}
        assert nvml(machine, "create", card, 14, 0, 1)["rc"] == 0
    before = machine.status()
    machine.sim("reboot")
    after = machine.status()
    assert after["boot"] == before["boot"] + 1
    assert [card["mig_current"] for card in after["cards"]] == [True, False]
    assert [card["gpu_instances"] for card in after["cards"]] == [[], []]
    assert [c["uuid"] for c in after["cards"]] == [c["uuid"] for c in before["cards"]]
    assert not list((machine.folder / "root/proc/driver/nvidia/capabilities").glob("gpu*/mig/gi*"))


def test_processes_do_not_outlive_a_reboot(machine, holder):
    used = holder(machine, "--mem", "2G", visible="0")
    machine.sim("reboot", "--kill")
    assert used.wait(harness.PATIENCE) != 0
    assert cards(machine)[0]["processes"] == []


def test_a_cut_again_slice_has_its_old_uuid(cut):
    two = uuid_of(cut, "2g.20gb")
    gi = next(g["id"] for g in cards(cut)[0]["gpu_instances"] if g["profile"] == "2g.20gb")
    assert nvml(cut, "destroy", 0, gi)["rc"] == 0
    assert nvml(cut, "create", 0, 14, 0, 1)["rc"] == 0
    assert uuid_of(cut, "2g.20gb") == two


# ---- divvy-probe ----

def test_the_probe_says_what_is_missing(machine):
    env = {name: value for name, value in machine.env.items() if name != "LD_LIBRARY_PATH"}
    done = harness.run(harness.PROGRAMS / "divvy-probe", env=env, check=False)
    if done.returncode == 0:
        pytest.skip("a real libcuda.so.1 is installed here")
    assert done.returncode == 4 and "libcuda.so.1" in done.stderr
    assert "Exit: 0 done" in harness.run(harness.PROGRAMS / "divvy-probe", "--help").stdout
    assert probe(machine, "--load", "101", check=False).returncode == 64
