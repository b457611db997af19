"""nvtop and gpustat, unmodified, on the simulated driver."""
import json
import os
import pty
import re
import select
import subprocess
import time

import harness


def screen(command, env, wanted, patience=15.0):
    """Runs a full-screen program on a terminal of its own until `wanted` was drawn."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(str(command[0]), [str(word) for word in command],
                  {**env, "TERM": "linux", "LINES": "40", "COLUMNS": "120"})
    drawn, end = "", time.monotonic() + patience
    try:
        while time.monotonic() < end and not re.search(wanted, drawn):
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    drawn += re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", " ",
                                    os.read(terminal, 65536).decode(errors="replace"))
                except OSError:
                    break  # it ended, and its terminal with it
    finally:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(pid, 0)
        os.close(terminal)
    return drawn


def test_nvtop_draws_the_cards(machine, nvtop_path, library_path):
    env = {**machine.env, "LD_LIBRARY_PATH": f"{machine.env['LD_LIBRARY_PATH']}:{library_path}"}
    drawn = screen([nvtop_path], env, r"A100-SXM4-80GB(.|\n)*A100-SXM4-80GB")
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
