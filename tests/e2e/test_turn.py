"""A guest's card in mode auto: its MIG mode is turned for jobs with a reboot alone."""
import pytest

import harness
from test_layout import apply, modes

CONFIG = "mode_hold: 0s\ncards:\n  default: {pool: queue, mode: auto}\n"
QUIET = ("-o", "/dev/null", "--", "true")


@pytest.fixture
def guest(box):
    """Gives how often a reset was tried; MIG is as the test says."""
    reset, resets = box.counting_reset()
    box.machine.up("a100-80gb:1")
    box.divvy.configure(CONFIG)
    box.divvy.daemon_env = reset
    return lambda: len(resets())


@pytest.mark.smoke
def test_a_reboot_is_asked_for_once_and_the_card_serves_till_then(box, guest):
    divvy = box.divvy
    box.machine.sim("fault", "gpu0", "passthrough")
    divvy.start()
    first = divvy.submit("--slice", "2g.20gb", *QUIET)
    harness.until(lambda: modes(box) == [(False, True)], "MIG is stored")
    harness.until(lambda: divvy.json("layout", "status")["reboots"], "it is told")
    for words in (["layout", "status"], ["status"], ["gpus"]):
        assert "reboot of this machine" in divvy.run(*words).stdout, words
    assert divvy.wait(divvy.submit("--gpus", "1", *QUIET))["state"] == "completed"
    second = divvy.submit("--slice", "1g.10gb", *QUIET)
    harness.until(lambda: "until this machine is rebooted" in divvy.run("why", second).stdout,
                  "it says what it waits for")
    divvy.kill()
    divvy.start()
    third = divvy.submit("--slice", "3g.40gb", *QUIET)
    harness.until(lambda: "until this machine is rebooted" in divvy.run("why", third).stdout,
                  "it is remembered")
    assert guest() == 1 and modes(box) == [(False, True)]
    assert divvy.wait(divvy.submit("--gpus", "1", *QUIET))["state"] == "completed"
    divvy.kill()
    box.machine.sim("reboot")
    divvy.start()
    for job in (first, second, third):
        assert divvy.wait(job)["state"] == "completed"
    assert guest() == 1 and not divvy.json("layout", "status")["reboots"]


def test_mig_is_never_turned_off_there_for_a_job(box, guest):
    apply(box, "cards:\n- {card: gpu0, slices: []}\n")
    box.machine.sim("fault", "gpu0", "passthrough")
    divvy = box.divvy
    divvy.start()
    whole = divvy.submit("--gpus", "1", *QUIET)
    harness.until(lambda: "until this machine is rebooted" in divvy.run("why", whole).stdout,
                  "it was tried, and is not tried again")
    assert guest() == 1 and modes(box) == [(True, True)]
    assert divvy.wait(divvy.submit("--slice", "3g.40gb", *QUIET))["state"] == "completed"
    other = divvy.submit("--gpus", "1", *QUIET)
    harness.until(lambda: "until this machine is rebooted" in divvy.run("why", other).stdout,
                  "the next one is told the same")
    divvy.kill()
    divvy.start()
    third = divvy.submit("--gpus", "1", *QUIET)
    harness.until(lambda: "until this machine is rebooted" in divvy.run("why", third).stdout,
                  "it is remembered")
    assert divvy.wait(divvy.submit("--slice", "3g.40gb", *QUIET))["state"] == "completed"
    assert guest() == 1 and modes(box) == [(True, True)]
    divvy.run("cancel", str(whole), str(other), str(third))
