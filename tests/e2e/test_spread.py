"""Jobs of several slices on a machine of four cards."""
import pytest

from harness import Box


@pytest.fixture
def four():
    with Box() as box:
        box.machine.up("a100-80gb:4")
        box.divvy.configure("mode_hold: 0s\n")
        box.divvy.start()
        for card in range(4):
            box.divvy.run("pool", f"gpu{card}", "queue")
            box.divvy.run("mode", f"gpu{card}", "auto")
        yield box.divvy


def places(divvy, *options):
    job = divvy.submit("-o", "/dev/null", *options, "--", "sleep", "60")
    shown = divvy.wait_state(job, "running", "failed")
    assert shown["state"] == "running", shown
    return job, [(p["gpu"], p["task"]) for p in shown["place"]]


def test_spread_puts_each_task_on_a_card_of_its_own(four):
    _, found = places(four, "--slice", "1g.10gb:4", "--spread")
    assert sorted(task for _, task in found) == [0, 1, 2, 3]
    assert len({gpu for gpu, _ in found}) == 4


def test_more_slices_than_a_card_has_come_from_several(four):
    _, found = places(four, "--slice", "3g.40gb:5")
    assert len(found) == 5 and len({gpu for gpu, _ in found}) >= 3
    assert all([gpu for gpu, _ in found].count(gpu) <= 2 for gpu in range(4))


def test_more_tasks_than_cards_cannot_be_spread(four):
    done = four.run("submit", "--slice", "1g.10gb:5", "--spread", "--", "true", check=False)
    assert done.returncode != 0 and "spread" in done.stderr, done.stderr
