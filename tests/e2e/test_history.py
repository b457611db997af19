"""What a job used of its cards is kept with it, as far as it could be seen."""
import pytest

import harness

PROBE = harness.PROGRAMS / "divvy-probe"
GIB = 1 << 30


def ran(divvy, *ask, patience=harness.PATIENCE):
    """A job that holds 3 GiB at 50 % until it is seen, and how it ended."""
    job = divvy.submit(*ask, "--output", "/dev/null", "--", PROBE, "--mem", "3G", "--load", "50",
                       "--seconds", "600")
    divvy.wait_state(job, "running")
    return job


def seen(divvy):
    """A snapshot shows a process with its memory."""
    harness.until(lambda: any(p["mem_bytes"] and p["mem_bytes"] >= 3 * GIB
                              for card in divvy.json("gpus")["cards"] for p in card["processes"]),
                  "its memory is seen")


@pytest.mark.smoke
def test_a_whole_card_tells_memory_and_activity(divvy):
    job = ran(divvy, "--gpus", "1")
    seen(divvy)
    harness.until(lambda: any(card["load_percent"] for card in divvy.json("gpus")["cards"]), "it is busy")
    divvy.run("cancel", job)
    end = divvy.wait(job)["exit"]
    assert 3 * GIB <= end["gpu_mem_peak_bytes"] < 5 * GIB
    assert 0 < end["gpu_load_percent"] <= 100
    assert "GPU memory at most 3" in divvy.run("show", job).stdout


def test_a_slice_tells_memory_alone_also_after_a_restart(divvy):
    job = ran(divvy, "--slice", "2g.20gb")
    seen(divvy)
    divvy.kill()
    divvy.start()
    divvy.run("cancel", job)
    end = divvy.wait(job)["exit"]
    assert 3 * GIB <= end["gpu_mem_peak_bytes"] < 5 * GIB
    assert end["gpu_load_percent"] is None
    assert "not told of its slices" in divvy.run("show", job).stdout


def test_a_slice_tells_activity_where_its_card_can(box):
    box.machine.up("h100-80gb-sxm:1")
    box.divvy.configure("mode_hold: 0s\ncards: {default: {pool: queue, mode: auto}}\n")
    box.divvy.start()
    job = ran(box.divvy, "--slice", "2g.20gb")
    harness.until(lambda: any((s["load_percent"] or 0) >= 40 for card in box.divvy.json("gpus")["cards"]
                              for s in card["slices"]), "its slice was busy for a whole window")
    box.divvy.run("cancel", job)
    end = box.divvy.wait(job)["exit"]
    assert 40 <= end["gpu_load_percent"] <= 100
    assert "busy for" in box.divvy.run("show", job).stdout


def test_a_slice_tells_no_activity_where_that_is_off(box):
    box.machine.up("h100-80gb-sxm:1")
    box.divvy.configure("slice_activity: off\ncards: {default: {pool: queue, mode: slices}}\n")
    box.divvy.start()
    job = ran(box.divvy, "--slice", "2g.20gb")
    first = box.divvy.json("gpus")["taken_boot_us"]
    harness.until(lambda: box.divvy.json("gpus")["taken_boot_us"] > first + 5_000_000,
                  "it was looked at for more than a whole window")
    loads = [s["load_percent"] for card in box.divvy.json("gpus")["cards"] for s in card["slices"]]
    assert loads and set(loads) == {None}
    box.divvy.run("cancel", job)
    assert box.divvy.wait(job)["exit"]["gpu_load_percent"] is None


def test_a_switch_that_is_neither_on_nor_off_is_refused(box, machine):
    box.divvy.configure("slice_activity: sometimes\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert "divvy.yaml:1" in box.divvy.said() and "slice_activity" in box.divvy.said()


def test_what_was_never_seen_is_not_told(divvy):
    job = divvy.submit("--slice", "1g.10gb", "--output", "/dev/null", "--", "true")
    end = divvy.wait(job)["exit"]
    assert end["gpu_mem_peak_bytes"] is None and end["gpu_load_percent"] is None
    assert "n/a" in divvy.run("show", job).stdout
