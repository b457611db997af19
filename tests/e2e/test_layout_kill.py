"""Changes without a daemon, killed at every point of every step, and run again: the same end."""
import json
import signal

import pytest

import harness
from kill_world import points

POINTS = [name for name in points() if name.startswith("APPLY_")]
RESET = 14
BEFORE = ("cards:\n- {card: gpu0, slices: [2g.20gb@0, 1g.10gb@3, 3g.40gb@4]}\n"
          "- {card: gpu1, mode: whole}\n")
WISH = ("cards:\n- {card: gpu0, slices: [1g.20gb@0, 1g.20gb@2, 3g.40gb@4]}\n"
        "- {card: gpu1, slices: [7g.80gb]}\n")
PLACES = ["gpu0/1g.20gb@0", "gpu0/1g.20gb@2", "gpu0/3g.40gb@4", "gpu1/7g.80gb@0"]
PARTED = """
version: v1
mig-configs:
  wish:
    - {devices: [0], mig-enabled: true, mig-devices: {1g.20gb: 2, 3g.40gb: 1}}
    - {devices: [1], mig-enabled: true, mig-devices: {7g.80gb: 1}}
"""


class Killing:
    """A command that is killed at a point, and what must hold whatever came of it."""

    def __init__(self, box):
        self.box = box
        self.kill = box.folder / "kill"
        self.kill.mkdir()
        self.died = set()
        self.wish = box.folder / "wish.yaml"
        self.wish.write_text(WISH)
        (box.folder / "before.yaml").write_text(BEFORE)
        (box.folder / "parted.yaml").write_text(PARTED)
        self.words = ["layout", "apply", self.wish, "--yes"]

    def run(self, *words, armed=None):
        env = None
        if armed:
            (self.kill / armed[0]).write_bytes(b"x" * armed[1])
            env = {"DIVVY_KILL": str(self.kill)}
        done = self.box.divvy.run(*words, check=False, env=env)
        for left in POINTS:  # what was not reached
            (self.kill / left).unlink(missing_ok=True)
        return done

    def start_over(self, *faults):
        """The cards as they were, with these faults."""
        for card in ("gpu0", "gpu1"):
            self.box.machine.sim("fault", card, "none")
        done = self.run("layout", "apply", self.box.folder / "before.yaml", "--yes")
        assert done.returncode == 0, done.stderr
        for card, fault in faults:
            self.box.machine.sim("fault", card, fault)
        self.kept = self.slices()["gpu0/3g.40gb@4"]

    def slices(self):
        return {piece["address"]: piece["uuid"]
                for card in self.box.divvy.json("gpus")["cards"] for piece in card["slices"] or ()}

    def everywhere(self, faults, check, every=1):
        """Kills at each (or at some) pass of each point until one is not reached any more."""
        for point in POINTS:
            for n in range(1, 200, every):
                self.start_over(*faults)
                if self.run(*self.words, armed=(point, n)).returncode != -signal.SIGKILL:
                    break
                self.died.add(point)
                check(f"{point}:{n}")

    def journal(self):
        return (self.box.divvy.root / "var/lib/divvy/apply.journal").exists()

    def assert_done(self, where):
        after = self.slices()
        assert sorted(after) == PLACES, where
        assert after["gpu0/3g.40gb@4"] == self.kept, where
        assert not self.journal(), where


@pytest.fixture
def killing(box, machine):
    killing = Killing(box)
    if killing.run("layout", "apply", box.folder / "before.yaml", "--yes",
                   armed=("APPLY_PLANNED", 1)).returncode != -signal.SIGKILL:
        pytest.skip("this build has no kill points (meson: -Dkillpoints=true)")
    return killing


def test_killed_between_any_two_steps(killing):
    """Slices that go and come on one card, the mode of another; what stays keeps its identity."""
    def check(where):
        done = killing.run(*killing.words)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        killing.assert_done(where)

    killing.everywhere([], check)
    assert killing.died == set(POINTS) - {"APPLY_ASIDE"}


def test_killed_and_started_anew(killing):
    """The machine reboots before it is run again: what was begun is no fault of a card's then."""
    def check(where):
        killing.box.machine.sim("reboot")
        done = killing.run(*killing.words)
        assert done.returncode == 0 and "not as it was" not in done.stderr, f"{where}: {done.stderr}"
        assert sorted(killing.slices()) == PLACES and not killing.journal(), where

    killing.everywhere([], check, every=2)


def test_killed_around_a_reset(killing):
    def check(where):
        done = killing.run(*killing.words)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        killing.assert_done(where)

    killing.everywhere([("gpu1", "reset-required")], check, every=2)


@pytest.mark.parametrize("nth", [1, 4])
def test_killed_on_the_way_back(killing, nth):
    """A creation fails; killed in what is undone for it, too. Then it is mended and run again."""
    def check(where):
        killing.box.machine.sim("fault", "gpu0", "none")
        done = killing.run(*killing.words)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        killing.assert_done(where)

    killing.everywhere([("gpu0", f"create-fails:{nth}")], check, every=4)


def test_killed_around_a_mode_that_somebody_else_had_stored(killing):
    """
    A guest's card for which others stored MIG on, in a change that fails on the card after it:
    wherever it is killed, in the end that mode is stored again and nothing was reset.
    """
    box = killing.box
    (box.folder / "before.yaml").write_text("cards:\n- {card: gpu0, mode: whole}\n"
                                            "- {card: gpu1, slices: [2g.20gb@0]}\n")
    killing.wish.write_text("cards:\n- {card: gpu0, mode: whole}\n"
                            "- {card: gpu1, slices: [4g.40gb]}\n")
    store = box.folder / "store.yaml"
    store.write_text("cards:\n- {card: gpu0, slices: [7g.80gb]}\n")
    died = 0
    for point in POINTS:
        for n in range(1, 100, 2):
            killing.run("layout", "apply", box.folder / "before.yaml", "--yes")
            box.machine.sim("fault", "gpu0", "passthrough")
            killing.run("layout", "apply", store, "--yes")
            (box.divvy.root / "var/lib/divvy/reboot.json").unlink()
            box.machine.sim("fault", "gpu1", "destroy-lies")
            done = killing.run(*killing.words, armed=(point, n))
            killed = done.returncode == -signal.SIGKILL
            died += killed
            if killed:
                done = killing.run(*killing.words)
            assert done.returncode == 1 and "still there" in done.stderr, f"{point}:{n}"
            card = box.divvy.json("gpus")["cards"][0]
            assert (card["mig_now"], card["mig_pending"]) == (False, True), f"{point}:{n}"
            assert killing.slices().keys() == {"gpu1/2g.20gb@0"} and not killing.journal()
            for gpu in ("gpu0", "gpu1"):
                box.machine.sim("fault", gpu, "none")
            if not killed:
                break
    assert died > 8


def test_killed_while_a_reboot_is_asked_for(killing):
    """Whatever was written: it is asked for, not again and again, and goes on after the reboot."""
    def check(where):
        done = killing.run(*killing.words)
        assert done.returncode == RESET, f"{where}: {done.stderr}"
        assert sorted(killing.slices()) == PLACES[:3] and not killing.journal(), where
        cards = killing.box.divvy.json("gpus")["cards"]
        assert (cards[1]["mig_now"], cards[1]["mig_pending"]) == (False, True), where
        killing.box.machine.sim("reboot")
        done = killing.run(*killing.words)
        assert done.returncode == 0 and sorted(killing.slices()) == PLACES, f"{where}: {done.stderr}"

    killing.everywhere([("gpu1", "passthrough")], check, every=2)
    assert "APPLY_ASIDE" in killing.died


def test_mig_parted_killed_and_run_again(killing):
    """With hooks around it: they run again with what is left, and the end is the same."""
    hooks = killing.box.folder / "hooks.yaml"
    hooks.write_text(json.dumps({"hooks": {point: [{"command": "true"}] for point in (
        "apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit")}}))
    killing.words = ["mig-parted", "apply", "-f", killing.box.folder / "parted.yaml", "-k", hooks]

    def check(where):
        done = killing.run(*killing.words)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        killing.assert_done(where)

    killing.everywhere([], check, every=3)
    assert killing.died == set(POINTS) - {"APPLY_ASIDE"}
