"""The cards as people see them, with and without a daemon."""
import pytest

import harness


def cards(divvy):
    return divvy.json("gpus")["cards"]


@pytest.mark.smoke
def test_gpus_without_a_daemon(box, machine):
    seen = cards(box.divvy)
    assert [card["gpu"] for card in seen] == [0, 1]
    assert not any(card["owners_known"] for card in seen)
    shown = box.divvy.run("gpus").stdout
    assert shown.count("A100-SXM4-80GB") == 2
    assert "\x1b" not in shown, "colours belong on terminals"


def test_what_the_driver_does_not_tell_is_null_and_never_0(box, divvy):
    for seen in (cards(divvy), (divvy.stop(), cards(divvy))[1]):
        board = seen[0]["board"]
        assert board["units"] == 8 and board["mem_bytes"]
        for field in ("sms", "cc_major", "ecc", "fan", "power_idle_mw", "pcie_gen", "min_driver"):
            assert board[field] is None, field


def test_a_terminal_gets_a_picture_in_80_columns(box, divvy):
    job = divvy.submit("--slice", "2g.20gb", "--", "true")
    divvy.wait(job)
    drawn = harness.on_terminal([harness.PROGRAMS / "divvy", "gpus"], divvy.env, columns=80)
    assert "2g.20gb" in drawn and "A100-SXM4-80GB" in drawn
    assert all(len(line) <= 80 for line in drawn.splitlines()), drawn


def test_a_new_card_is_watched_not_touched(box, machine):
    box.divvy.start()
    assert [card["pool"] for card in cards(box.divvy)] == ["off", "off"]
    done = box.divvy.run("submit", "--slice", "1g.10gb", "--", "true", check=False)
    if done.returncode == 0:  # it may wait, but must not run
        told = box.divvy.json("queue")
        jobs = told["jobs"] if isinstance(told, dict) else told
        assert jobs[0]["state"] == "pending"
    assert not any(card["mig_now"] for card in cards(box.divvy))


@pytest.mark.smoke
def test_pool_and_mode_are_kept_over_a_restart(box, divvy):
    divvy.run("mode", "gpu1", "whole")
    divvy.stop()
    divvy.start()
    assert [(card["pool"], card["mode"]) for card in cards(divvy)] == [
        ("queue", "auto"), ("queue", "whole")]


def test_a_card_without_mig_is_handed_out_whole(box):
    box.machine.up("rtx4090:1")
    box.divvy.start()
    box.divvy.run("pool", "gpu0", "queue")
    refused = box.divvy.run("submit", "--slice", "1g.10gb", "--", "true", check=False)
    assert refused.returncode != 0 and "MIG" in refused.stderr
    job = box.divvy.submit("--gpus", "1", "--", "true")
    assert box.divvy.wait(job)["state"] == "completed"


def test_profiles_are_asked_of_a_board_without_hardware(box):
    shown = box.divvy.run("profiles", "--board", "a100-80gb",
                          env={"DIVVY_NVML": "/none"}).stdout
    for profile in ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"):
        assert profile in shown


def test_what_is_free_is_what_jobs_could_be_given(divvy):
    free = lambda: [card["free"]["1g.10gb"] for card in divvy.json("profiles")["cards"]]
    assert free() == [7, 7]
    divvy.run("pool", "gpu1", "off")
    assert free() == [7, 0]


def test_the_owner_of_a_slice_is_shown(divvy):
    job = divvy.submit("--slice", "2g.20gb", "--", "sleep", "60")
    divvy.wait_state(job, "running")
    held = [piece for card in cards(divvy) for piece in card["slices"] or ()
            if (piece["hold"] or {}).get("job") == job]
    assert len(held) == 1 and held[0]["profile"] == "2g.20gb"
    assert f"#{job}" in divvy.run("gpus").stdout
    divvy.run("cancel", job)
    divvy.wait(job)


def test_a_stranger_on_a_card_keeps_jobs_away(box, divvy):
    import subprocess
    stranger = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "1G", "--seconds", "60"],
                                env={**box.machine.env, "CUDA_VISIBLE_DEVICES": "0"},
                                stdout=subprocess.DEVNULL)
    try:
        harness.until(lambda: cards(divvy)[0]["processes"], "divvy sees the stranger")
        assert str(stranger.pid) in divvy.run("gpus").stdout
        job = divvy.submit("--gpus", "1", "--", "true")
        assert divvy.wait(job)["place"][0]["gpu"] == 1
    finally:
        stranger.kill()
        stranger.wait()


def test_slices_that_exist_are_adopted(box, machine, divvy):
    first = divvy.submit("--slice", "3g.40gb", "--", "true")
    uuid = divvy.wait(first)["place"][0]["uuid"]
    divvy.kill()
    divvy.start()
    again = divvy.submit("--slice", "3g.40gb", "--", "true")
    assert divvy.wait(again)["place"][0]["uuid"] == uuid


def test_a_lost_card_does_not_hide_the_healthy_one(box, divvy):
    box.machine.sim("fault", "gpu0", "lost")
    harness.until(lambda: cards(divvy)[0]["health"] == "lost", "gpu0 is lost")
    assert cards(divvy)[1]["health"] == "ok"
    job = divvy.submit("--gpus", "1", "--", "true")
    assert divvy.wait(job)["place"][0]["gpu"] == 1
    box.machine.sim("fault", "gpu0", "none")
    harness.until(lambda: "gpu0 is well again" in divvy.said(), "the log tells that gpu0 is back")
    assert divvy.said().count("gpu0 is lost: ") == 1
