"""Layouts where the disk is full or cannot be written: all of a change, or nothing."""
import json

import pytest

import harness

FIRST = "cards:\n- {card: all, slices: {1g.10gb: 3, 3g.40gb: 1}}\n"
SECOND = "cards:\n- {card: all, slices: {2g.20gb: 3}}\n"


def instances(box):
    return [card["gpu_instances"] for card in box.machine.status()["cards"]]


def write(box, text):
    path = box.folder / "lab.yaml"
    path.write_text(text)
    return path


def apply_on(box, mount, text):
    """divvy layout apply where /var/lib/divvy is what that mount(8) mounts, for it alone."""
    state = box.divvy.root / "var/lib/divvy"
    state.mkdir(parents=True, exist_ok=True)
    return harness.run("unshare", "--mount", "sh", "-c",
                       f'mount -t tmpfs {mount} none "$1" && exec "$2" layout apply --yes '
                       '--allow-move-idle "$3"', "sh", state, harness.PROGRAMS / "divvy",
                       write(box, text), env=box.divvy.env, check=False)


@pytest.mark.root
def test_a_disk_that_fills_up_changes_all_or_nothing(box, machine):
    box.divvy.run("layout", "apply", write(box, FIRST), "--yes")
    before = instances(box)
    told = set()
    for kib in (4, 8, 16, 32, 64, 128, 256, 512):
        done = apply_on(box, f"-o size={kib}k", SECOND)
        told.add(done.returncode)
        if done.returncode:
            assert instances(box) == before
            assert "nothing was changed" in done.stderr and "No space" in done.stderr, done.stderr
            assert "apply.journal" in done.stderr
        else:
            assert [len(card) for card in instances(box)] == [3, 3]
            break
    assert told == {0, 1}


@pytest.mark.root
def test_where_nothing_can_be_written_nothing_is_changed(box, machine):
    box.divvy.run("layout", "apply", write(box, FIRST), "--yes")
    before = instances(box)
    done = apply_on(box, "-o ro", SECOND)
    assert done.returncode == 1 and "Read-only" in done.stderr
    assert instances(box) == before
    plan = json.loads(box.divvy.run("layout", "plan", write(box, SECOND), "--json",
                                    check=False).stdout)
    assert plan["cards"][0]["destroyed"] == 4
