"""nvtop and gpustat, unmodified, on the simulated driver."""
import json
import subprocess

import harness


def test_nvtop_draws_the_cards(machine, nvtop_path, library_path):
    env = {**machine.env, "LD_LIBRARY_PATH": f"{machine.env['LD_LIBRARY_PATH']}:{library_path}"}
    drawn = harness.on_terminal([nvtop_path], env, columns=120, patience=15,
                                enough=lambda text: text.count("A100-SXM4-80GB") >= 2)
    assert drawn.count("A100-SXM4-80GB") >= 2, drawn[-2000:]


def test_gpustat_reads_the_cards(machine, gpustat):
    cards = json.loads(harness.run("/usr/bin/python3", "-m", "gpustat", "--json",
                                   env=gpustat).stdout)["gpus"]
    assert [card["name"] for card in cards] == ["NVIDIA A100-SXM4-80GB"] * 2
    assert all(card["memory.total"] == 81920 for card in cards)
    assert all(card["processes"] == [] for card in cards)


def test_gpustat_names_the_process(machine, gpustat):
    probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "3G", "--seconds", "20"],
                             env=machine.env, stdout=subprocess.DEVNULL)
    try:
        def found():
            cards = json.loads(harness.run("/usr/bin/python3", "-m", "gpustat", "--json",
                                           env=gpustat).stdout)["gpus"]
            processes = [p for card in cards for p in card["processes"]]
            return processes if processes and processes[0]["gpu_memory_usage"] >= 3072 else None
        processes = harness.until(found, "gpustat shows the probe with its memory")
        assert [p["pid"] for p in processes] == [probe.pid]
    finally:
        probe.kill()
        probe.wait()
