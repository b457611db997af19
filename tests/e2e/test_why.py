"""What divvy why says of a job that waits: a line of plain words for each thing in its way."""
import json
import os
import pwd
import subprocess
import sys
import time

import harness

PROBE = harness.PROGRAMS / "divvy-probe"
ME = pwd.getpwuid(os.getuid()).pw_name


def terms(divvy, job):
    return {term["what"]: term["text"] for term in divvy.json("why", job)["terms"]}


def set_mode(machine, gpu, on):
    """As nvidia-smi -mig does, past Divvy."""
    return json.loads(harness.run(sys.executable, harness.SOURCE / "tests/e2e/nvml_calls.py", "mode", gpu, on,
                                  env=machine.env).stdout)


def clock(wall_us):
    return time.strftime("%H:%M", time.localtime(wall_us / 1e6))


def test_a_card_says_who_has_it_until_when_and_as_which_process(divvy):
    runs = divvy.submit("--gpus", "1", "--name", "train", "--time", "1h", "--", "sh", "-c",
                        f"{PROBE} --seconds 60 & wait")
    open_end = divvy.submit("--slice", "2g.20gb", "--name", "serve", "--", "sleep", "60")
    for job in (runs, open_end):
        divvy.wait_state(job, "running")
    waits = divvy.submit("--gpus", "2", "--", "true")
    gpu = int(divvy.show(runs)["addresses"][0][3])

    def holder():
        held = [one for one in divvy.json("why", waits)["holders"] if one["job"] == runs]
        return held[0] if held and len(held[0]["pids"]) == 2 else None
    held = harness.until(holder, "the driver lists the probe beside the shell that began it")
    assert held["where"] == f"gpu{gpu}" and held["user"] == ME and held["name"] == "train"
    with open(f"/proc/{held['pids'][0]}/comm") as comm:
        assert comm.read() == "sh\n", "the process that the job began as, as ps shows it"
    told = terms(divvy, waits)
    assert told[f"gpu{gpu}"].startswith(f"until {clock(held['until_wall_us'])}: #{runs} of {ME} (train), ")
    assert told[f"gpu{gpu}"].endswith(f", pid {held['pids'][0]}")
    assert told[f"gpu{1 - gpu}"].startswith(f"without a time limit: #{open_end} of {ME} (serve), ")
    (slice_,) = [one for one in divvy.json("why", waits)["holders"] if one["job"] == open_end]
    assert slice_["where"].startswith(f"gpu{1 - gpu}/2g.20gb@") and slice_["until_wall_us"] is None
    pid = slice_["pids"][0]
    divvy.kill()
    divvy.start()
    harness.until(lambda: terms(divvy, waits)[f"gpu{1 - gpu}"].endswith(f", pid {pid}"),
                  "known after a restart, too")


def test_a_stranger_is_told_by_process_user_and_age(divvy, machine):
    began = time.time()
    with subprocess.Popen([PROBE, "--seconds", "60"], env=machine.env) as stranger:
        try:
            harness.until(lambda: any(card["hold"] for card in divvy.json("gpus")["cards"]),
                          "it is seen")
            waits = divvy.submit("--gpus", "2", "--", "true")
            (held,) = divvy.json("why", waits)["holders"]
            assert held["job"] is None and held["user"] == ME and held["pids"] == [stranger.pid]
            assert abs(held["since_wall_us"] / 1e6 - began) < 5
            words = terms(divvy, waits)[held["where"]]
            assert words.startswith(f"no Divvy job: {held['name']} of {ME}, ")
            assert words.endswith(f", pid {stranger.pid}")
        finally:
            stranger.kill()


def test_a_card_that_waits_for_a_reset_is_not_free(divvy, machine):
    machine.sim("fault", "gpu1", "reset-required")
    assert set_mode(machine, 1, 1)["rc"] == 0
    harness.until(lambda: divvy.json("gpus")["cards"][1]["mig_pending"], "divvyd has seen it")
    job = divvy.submit("--gpus", "2", "-o", "/dev/null", "--", "true")
    harness.until(lambda: divvy.show(job)["reason"] ==
                  "waits for 2 whole cards: gpu1 waits for a reset that turns MIG on", "it says what it waits for")
    assert terms(divvy, job)["gpu1"] == "takes no jobs before a reset that turns MIG on"
    assert terms(divvy, job)["gpu0"] == "free"
    assert set_mode(machine, 1, 0)["rc"] == 0
    harness.until(lambda: not divvy.json("gpus")["cards"][1]["mig_pending"], "divvyd has seen that, too")
    assert divvy.wait(job)["state"] == "completed"
