"""invariants.py - what must be true whatever was killed, once nothing is left to do.

Three truths are held against each other: the store, the (simulated) driver,
and /proc with the files. Each check gives sentences that say what is wrong;
broken(world) gives those of all checks. World is kill_world.World.
"""
import json
import pathlib
import sqlite3

import harness

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def broken(world):
    """Sentences; none when all is well. A check that cannot look is a sentence, too."""
    said = []
    for function in CHECKS:
        try:
            said += [f"{function.__name__}: {what}" for what in function(world)]
        except (OSError, sqlite3.Error, harness.Failed) as failure:
            said.append(f"{function.__name__}: {failure}")
    return said


# ---- the store ----

@check
def store_is_sound(w):
    for row in w.rows("PRAGMA quick_check"):
        if row[0] != "ok":
            yield row[0]
    for row in w.rows("PRAGMA foreign_key_check"):
        yield f"a row of {row[0]} points to nothing in {row[2]}"


@check
def every_job_is_kept_once(w):
    rows = [(row["name"], row["array_index"]) for row in w.rows("SELECT name, array_index FROM jobs")]
    names = [name for name, _ in rows]
    for job in w.jobs.values():
        if job.acknowledged and job.name not in names:
            yield f"{job.name} was acknowledged and is not in the store"
        own = [row for row in rows if row[0] == job.name]
        if len(own) != len(set(own)):
            yield f"{job.name} is in the store {len(own)} times"


@check
def every_job_ended_as_it_should(w):
    may_be_lost = LOSES_A_JOB & set(w.killed()) or w.kills_supervisors
    for job in w.jobs.values():
        for row in w.rows("SELECT * FROM jobs WHERE name = ?", job.name):
            state = row["state"]
            if state not in harness.ENDED:
                yield f"{job.name} is {state} ({row['reason']})"
            elif state == "lost" and may_be_lost:
                continue
            elif job.cancelled and state != "cancelled":
                yield f"{job.name} is {state} although its cancel was acknowledged"
            elif state not in job.states and not job.cancelled:
                yield f"{job.name} is {state}, not {' or '.join(job.states)} ({row['reason']})"
            if state in harness.ENDED and row["ended_wall_us"] is None:
                yield f"{job.name} is {state} and has no end"


# From here on the attempt has started, is never started again, and has nobody to tell its end.
LOSES_A_JOB = {"SUPERVISE_STARTED", "SUPERVISE_LETGO", "SUPERVISE_OVER"}


@check
def nothing_ran_twice(w):
    for job in w.jobs.values():
        lines = w.lines(job)
        found = w.rows("SELECT * FROM jobs WHERE name = ?", job.name)
        state = found[0]["state"] if found else "not in the store"
        for task, times in lines.items():
            if times > 1 and not job.may_run_again:
                yield f"task {task} of {job.name} ran {times} times"
        ran_through = state == "completed" or (state == "failed" and "failed" in job.states)
        if ran_through and len(lines) != job.tasks and not (lines and job.may_skip_tasks):
            yield f"{job.name} is {state} and {len(lines)} of its {job.tasks} tasks ran"
        if lines and not found:
            yield f"{job.name} ran and is not in the store"


@check
def exits_are_the_jobs_own(w):
    for job in w.jobs.values():
        for row in w.rows("SELECT state, exit FROM jobs JOIN attempts ON job_id = id AND"
                          " attempts.attempt = jobs.attempt WHERE name = ?", job.name):
            if row["state"] not in ("completed", "failed"):
                continue
            told = json.loads(row["exit"] or "{}")
            if (told.get("kind"), told.get("value")) != ("exited", job.exits):
                yield f"{job.name} ended with {job.exits} and the store says {row['exit']}"


@check
def attempts_are_over(w):
    for row in w.rows("SELECT job_id, count(*) AS n, max(attempt) AS last,"
                      " sum(started_boot_us > 0) AS started, sum(ended_wall_us = 0) AS live"
                      " FROM attempts GROUP BY job_id"):
        if row["n"] != row["last"]:
            yield f"job {row['job_id']} has {row['n']} attempts and the last is {row['last']}"
        again = any(job.id == row["job_id"] and job.may_run_again for job in w.jobs.values())
        if row["started"] > 1 and not again:
            yield f"job {row['job_id']} was started {row['started']} times"
        if row["live"]:
            yield f"{row['live']} attempts of job {row['job_id']} are not over"


@check
def no_two_attempts_share_a_place(w):
    """Whoever was placed later was placed after the earlier one was cleared."""
    held = {}
    if w.clock_jumps or w.store_went_back:
        return
    for row in w.rows("SELECT job_id, attempt, place, placed_wall_us, ended_wall_us FROM attempts"
                      " WHERE started_boot_us > 0 ORDER BY placed_wall_us"):
        end = row["ended_wall_us"] or 1 << 62
        name = f"{row['job_id']}.{row['attempt']}"
        for item in json.loads(row["place"]):
            units = range(-1, 64) if item["whole"] else range(
                item["start"], item["start"] + item["units"])
            for unit in units:
                before = held.get((item["card_uuid"], unit))
                if before and before[1] > row["placed_wall_us"] and before[0] != name:
                    yield (f"{before[0]} until {before[1]} and {name} from {row['placed_wall_us']}"
                           f" held the same part: {item}")
                    break
            held.update(((item["card_uuid"], unit), (name, end)) for unit in units)


@check
def places_name_slices_that_were(w):
    if w.store_went_back:
        return
    known = {row["generation"]: row for row in w.rows("SELECT * FROM slices")}
    for row in w.rows("SELECT job_id, attempt, place FROM attempts WHERE started_boot_us > 0"):
        for item in json.loads(row["place"]):
            if item["whole"]:
                continue
            slice_ = known.get(item.get("generation"))
            who = f"{row['job_id']}.{row['attempt']}"
            if not slice_:
                yield f"{who} ran on {item['profile']} of generation {item.get('generation')}," \
                      f" which never was"
            elif any(slice_[key] != item[key] for key in ("card_uuid", "gi", "ci", "uuid", "start")):
                yield f"{who} names another slice than generation {item['generation']} was"


@check
def no_plan_is_open(w):
    for row in w.rows("SELECT p.id, p.job_id, j.state FROM plans p JOIN journal j ON plan_id = p.id"
                      " WHERE closed_wall_us IS NULL"):
        yield f"the plan {row['id']} of job {row['job_id']} is open, its step {row['state']}"


@check
def plans_were_carried_out(w):
    """A cut that failed without a fault was planned on a card that was not as it was thought."""
    for line in w.divvy.said().splitlines():
        if "could not be cut" in line and "was cancelled" not in line and not w.cuts_may_fail:
            yield line


# ---- the driver ----

def driver_slices(w):
    return {(card["uuid"], gi["id"], ci["id"]): (gi["start"], ci["uuid"])
            for card in w.box.machine.status()["cards"]
            for gi in card["gpu_instances"] for ci in gi["compute_instances"]}


@check
def store_and_driver_know_the_same_slices(w):
    store = {(row["card_uuid"], row["gi"], row["ci"]): (row["start"], row["uuid"])
             for row in w.rows("SELECT * FROM slices WHERE gone_wall_us IS NULL")}
    driver = driver_slices(w)
    for key in store.keys() - driver.keys():
        yield f"the store has a slice that the driver has not: {key} {store[key]}"
    for key in driver.keys() - store.keys():
        yield f"the driver has a slice that the store has not: {key} {driver[key]}"
    for key in store.keys() & driver.keys():
        if store[key] != driver[key]:
            yield f"{key} is {store[key]} to the store and {driver[key]} to the driver"


@check
def cards_are_at_rest(w):
    for card in w.box.machine.status()["cards"]:
        if card["processes"]:
            yield f"a process is left on gpu{card['ordinal']}: {card['processes']}"
        if card["mig_current"] != card["mig_pending"]:
            yield f"gpu{card['ordinal']} waits for a reset"
        for gi in card["gpu_instances"]:
            if not gi["compute_instances"]:
                yield f"gpu{card['ordinal']} has GPU instance {gi['id']} with nothing in it"


@check
def nobody_holds_a_card(w):
    status, told = w.ask("GET", "/v1/inventory")
    if status != 200:
        yield f"the inventory is refused: {told}"
        return
    for card in told["cards"]:
        for piece in [card, *(card["slices"] or [])]:
            if piece["hold"]:
                yield f"{piece.get('address', 'gpu%d' % card['gpu'])} is held by {piece['hold']}"
        if card["quarantine"] and not w.may_quarantine:
            yield f"gpu{card['gpu']} takes no jobs: {card['quarantine']}"


# ---- processes and files ----

@check
def only_the_daemon_runs(w):
    daemon = w.divvy.daemon.pid
    expected = {"divvyd", "divvyd-watch", "divvyd-act", "divvy-launcher"}
    seen = []
    for pid in w.divvy.processes():
        try:
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        seen.append(name)
        if name not in expected or (pid != daemon and parent != daemon):
            yield f"{name} (pid {pid}, parent {parent}) is left"
    for name in expected:
        if seen.count(name) > 1:
            yield f"{seen.count(name)} {name} run"


@check
def events_are_told_once(w):
    events = w.out / "events"
    lines = events.read_text().splitlines() if events.exists() else []
    for line in sorted(set(lines)):
        if lines.count(line) > 1:
            yield f"event_hook was told {lines.count(line)} times: {line}"


@check
def folders_are_gone(w):
    for folder in ("var/lib/divvy/jobs", "run/divvy/jobs"):
        for entry in (w.divvy.root / folder).iterdir():
            yield f"{folder}/{entry.name} is left"


@check
def cgroups_are_gone(w):
    for folder in cgroups(w):
        if folder.name[:1].isdigit():
            yield f"{folder} is left"


def cgroups(w):
    """Those below this root's own, the innermost first."""
    root = f"divvy-{fnv(str(w.divvy.root)):012x}"
    return [folder for mount in (pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").iterdir())
            for folder in sorted(mount.glob(f"{root}/**/*"), reverse=True) if folder.is_dir()]


def fnv(text):
    """The name that src/cgroup/host.c gives a private root."""
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % 2 ** 64
    return value & 0xffffffffffff
