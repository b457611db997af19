"""Kill every process at every point of every story, and see that nothing is lost.

Points are named in src/base/killpoint.h, stories in kill_stories.py, and what
must be true afterwards in invariants.py. Each story is first told in peace:
that says which points it passes, and how often. Then it is told once for each
of these passes (the first few, and the last), with the process that passes
there killed.

By hand, one of them:  tests/e2e/kill_one.py STORY POINT[:PASS]
"""
import concurrent.futures
import functools
import os
import time

import pytest

import harness
import kill_soak
from kill_stories import STORIES
from kill_world import World, points

FEW = ("WATCH_LOOK", "WATCH_TOLD")  # passed often, and one is like another: first and last
WORKERS = 3 * (os.cpu_count() or 1)  # most of a telling is waiting
# A point that is passed often is killed at its first passes and its last; more with this.
PASSES = int(os.environ.get("DIVVY_KILL_PASSES") or 3)


def tell(story, *arms):
    """Tells it with these (point, pass) armed; gives {point: passes}, [points that killed]."""
    function, _, world = STORIES[story]
    with World(**world) as w:
        w.start()
        told = function(w)
        next(told)
        w.record()
        for point, passes in arms:
            w.arm(point, passes)
        for _ in told:
            raise AssertionError(f"{story} yields twice")
        w.settle()
        for point, _ in arms:
            w.disarm(point)
        passed, killed = w.passed(), w.killed()
        said = w.stop()
        if said:
            raise harness.Failed("\n".join(said))
        return passed, killed


@functools.lru_cache(maxsize=None)
def in_peace(story):
    passed, _ = tell(story)
    return passed


def passes_to_kill(story, point, count):
    most = 1 if point in FEW else min(STORIES[story][1], PASSES)
    return sorted({*range(1, min(count, most) + 1), count})


@pytest.fixture(scope="module")
def tellings(request):
    """{story: {(point, pass): future}} of the stories of this run: one pool, so that nobody waits for a slow one."""
    chosen = [item.callspec.params["story"] for item in request.session.items
              if getattr(item, "originalname", "") == "test_killed_anywhere"]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        peace = {story: pool.submit(in_peace, story) for story in chosen}
        yield {story: {(point, n): pool.submit(tell, story, (point, n))
                       for point, count in peace[story].result().items()
                       for n in passes_to_kill(story, point, count)} for story in chosen}


def killed_everywhere(story, futures):
    """Failures, as sentences, and the points at which something did die."""
    failures, died = [], set()
    for (point, n), telling in futures.items():
        try:
            died.update(telling.result()[1])
        except Exception as failure:  # whatever it was, the others go on
            failures.append(f"{story} killed at {point}:{n}: {failure}")
    return failures, died


@pytest.fixture(scope="module")
def died():
    """Points at which something died in some story of this run."""
    return set()


@pytest.fixture(scope="module", autouse=True)
def kill_points_are_built():
    if not in_peace("cut"):
        pytest.skip("this build has no kill points (meson: -Dkillpoints=true)")


@pytest.mark.parametrize("story", STORIES)
def test_killed_anywhere(story, tellings, died):
    failures, points_of_it = killed_everywhere(story, tellings[story])
    died |= points_of_it
    assert not failures, "\n\n".join(failures)


def test_every_point_was_killed_at(died):
    if len(died) == 0:
        pytest.skip("the stories were not told in this run")
    elsewhere = {name for name in points() if name.startswith("APPLY_")}  # test_layout_kill.py
    assert sorted(set(points()) - died - elsewhere) == []


@pytest.mark.parametrize("round_", range(4))
def test_killed_at_random(round_):
    """scripts/soak does this for longer, and again from a seed."""
    kill_soak.one_round(int(os.environ.get("DIVVY_SEED") or time.time_ns() % 1_000_000_007))


def test_a_slice_made_by_who_died_over_it_is_no_stranger_s():
    """A snapshot that shows it may have been begun before its maker was missed."""
    with World("a100-80gb:2") as w:
        w.start()
        w.divvy.run("pool", "gpu0", "off")
        w.box.machine.sim("fault", "gpu1", "slow:20")
        w.arm("ACT_DONE", 3)  # the compute instance, after the mode and the GPU instance
        job = w.job("cut", "--slice", "1g.10gb")

        def looked_at():
            try:
                w.ask("GET", "/v1/inventory?fresh=true")
            except OSError:
                pass  # divvyd is asked again
            return w.state(job) in harness.ENDED
        w.until(looked_at, "the job has run")
        assert w.killed() == ["ACT_DONE"]
        w.box.machine.sim("fault", "gpu1", "none")
        assert [row["adopted"] for row in w.rows("SELECT adopted FROM slices WHERE gone_wall_us IS NULL")] == [0]
        w.job("whole", "--gpus", "1")  # where it would stay until an operator destroyed it
        w.settle()
        assert not w.stop()


@pytest.mark.smoke
@pytest.mark.parametrize("point", ["COMMITTED:2", "STEP_SENT:1", "ACT_DONE:1", "SUPERVISE_HELD:1",
                                   "FOLDER_REMOVE:1"])
def test_killed_at_a_few(point):
    name, _, n = point.partition(":")
    assert name in tell("cut", (name, int(n)))[1]
