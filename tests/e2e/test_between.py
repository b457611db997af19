"""Between two owners: what one leaves on a card is not what the next one finds."""
import json
import pathlib
import sys

import pytest

import harness

CALLS = pathlib.Path(__file__).with_name("nvml_calls.py")


def nvml(box, *words):
    """What a process of the machine's owner does, or sees."""
    told = json.loads(harness.run(sys.executable, CALLS, *map(str, words), env=box.machine.env).stdout)
    assert told["rc"] == 0, told
    return told


def card(divvy, gpu=0):
    return divvy.json("gpus")["cards"][gpu]


def leave(divvy, box, *calls, job=("--gpus", "1")):
    """A job that changes the first card by these calls, and waits to be let go."""
    go = box.folder / "go"
    done = box.folder / "done"
    words = " && ".join(f"{sys.executable} {CALLS} {call}" for call in calls)
    job = divvy.submit(*job, "--output", box.folder / "log", "--", "sh", "-c",
                       f"{words} && touch {done}; until [ -e {go} ]; do sleep 0.02; done")
    harness.until(done.exists, "the job has changed its card")
    return job, go


@pytest.fixture
def box():
    with harness.Box() as box:
        box.folder.chmod(0o777)
        yield box


@pytest.mark.root
def test_compute_mode_and_clocks_become_as_they_were(divvy, box):
    before = nvml(box, "settings", 0)
    job, go = leave(divvy, box, "compute 0 3", f"clocks 0 {before['mem']} 900", "lock 0 600")
    assert nvml(box, "settings", 0) == {"rc": 0, "compute": 3, "mem": before["mem"], "sm": 900,
                                        "now": before["now"]}
    go.touch()
    assert divvy.wait(job)["state"] == "completed"
    assert nvml(box, "settings", 0) == before  # at once: the end is told after it
    assert card(divvy)["quarantine"] is None
    assert "left gpu0 with another compute mode and other clocks" in divvy.said()


@pytest.mark.root
def test_what_an_administrator_set_before_stays(divvy, box):
    nvml(box, "compute", 0, 3)
    harness.until(lambda: card(divvy)["compute_mode"] == 3, "it is seen")
    job, go = leave(divvy, box, "compute 0 0")
    go.touch()
    assert divvy.wait(job)["state"] == "completed"
    assert nvml(box, "settings", 0)["compute"] == 3


@pytest.mark.root
def test_a_daemon_that_was_killed_meanwhile_knows_how_it_was(divvy, box):
    job, go = leave(divvy, box, "compute 0 3")
    harness.until(lambda: card(divvy)["compute_mode"] == 3, "it is seen")
    divvy.kill()
    go.touch()
    divvy.start()
    assert divvy.wait(job)["state"] == "completed"
    assert nvml(box, "settings", 0)["compute"] == 0


@pytest.mark.root
def test_settings_are_kept_where_the_administrator_says_so(box, machine):
    box.divvy.configure("between_owners: {settings: keep}\ncards: {default: {pool: queue}}\n")
    box.divvy.start()
    job, go = leave(box.divvy, box, "compute 0 3")
    go.touch()
    assert box.divvy.wait(job)["state"] == "completed"
    assert nvml(box, "settings", 0)["compute"] == 3


@pytest.mark.root
def test_memory_that_stays_in_use_drains_the_card(divvy, box):
    job = divvy.submit("--slice", "2g.20gb", "--", "sleep", "1000")
    divvy.wait_state(job, "running")
    gpu = divvy.show(job)["place"][0]["gpu"]
    box.machine.sim("fault", f"gpu{gpu}", "leak:4096")
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    why = card(divvy, gpu)["quarantine"]
    assert f"gpu{gpu}/2g.20gb@" in why and "4.0 GiB in use by no process" in why, why
    box.machine.sim("fault", f"gpu{gpu}", "none")
    other = divvy.submit("--slice", "2g.20gb", "--", "true")
    assert divvy.wait(other)["state"] == "completed"
    assert divvy.show(other)["place"][0]["gpu"] != gpu


def test_a_word_that_is_none_is_refused(box, machine):
    box.divvy.configure("between_owners: {settings: reset}\n")
    box.divvy.launch()
    assert box.divvy.daemon.wait(harness.PATIENCE) > 0
    box.divvy.daemon = None
    assert "'reset' is not one of restore or keep" in box.divvy.said()


# ---- shared memory ----

USER = 21077  # of nobody else on the machine
LEAVE = """
import ctypes, pathlib
libc = ctypes.CDLL(None, use_errno=True)
pathlib.Path('/dev/shm/{name}').write_text('x')
pathlib.Path('/dev/shm/{name}.dir').mkdir()
pathlib.Path('/dev/shm/{name}.dir/part').write_text('x')
print(libc.shmget(0, 4096, 0o1600), flush=True)
"""


def leaver(divvy, box, name, then=""):
    """A job of USER that leaves files, a folder and a segment; and where it tells the segment."""
    out = box.folder / f"{name}.out"
    words = divvy.run("submit", "--name", name, "--output", out, "--", sys.executable, "-c",
                      LEAVE.format(name=name) + then, user=USER).stdout
    return int(words.split()[-1].strip("#")), out


def segments():
    lines = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[1]) for line in lines if int(line.split()[7]) == USER}


def shm(name):
    return sorted(path.name for path in pathlib.Path("/dev/shm").glob(f"{name}*"))


@pytest.fixture
def name(box):
    """Of files in /dev/shm, unlike any other test's."""
    name = f"divvy-test-{box.folder.name}"
    yield name
    for path in pathlib.Path("/dev/shm").glob(f"{name}*"):
        harness.run("rm", "-r", path)
    for segment in segments():
        harness.run("ipcrm", "-m", segment, check=False)


@pytest.mark.root
def test_shared_memory_goes_with_the_last_job_of_its_user(divvy, box, name):
    go = box.folder / "go"
    wait = f"\nimport time\nwhile not pathlib.Path('{go}').exists(): time.sleep(0.02)"
    first, out = leaver(divvy, box, f"{name}.a", wait)
    harness.until(lambda: out.exists() and out.read_text().strip(), "it has made its own")
    second, _ = leaver(divvy, box, f"{name}.b")
    assert divvy.wait(second)["state"] == "completed"
    assert len(shm(name)) == 4 and len(segments()) == 2, "the first one's processes live"
    go.touch()
    assert divvy.wait(first)["state"] == "completed"
    assert shm(name) == [] and segments() == set()


@pytest.mark.root
def test_what_was_there_before_the_job_stays(divvy, box, name):
    mine = pathlib.Path(f"/dev/shm/{name}.mine")
    mine.write_text("staged")
    harness.run("chown", USER, mine)
    job, _ = leaver(divvy, box, f"{name}.job", f"\npathlib.Path('{mine}').write_text('used')")
    assert divvy.wait(job)["state"] == "completed"
    assert shm(name) == [mine.name] and mine.read_text() == "used"
