"""kill_stories.py - what is going on when something is killed.

A story is a generator on a World: what comes before its `yield` happens in
peace, what comes after is killed into, at every point that it passes. It says
what each job should come to (World.job) and leaves the waiting and the
checking to others. To have a feature killed into, add a story.
"""
import harness
import kill_world

PROBE = harness.PROGRAMS / "divvy-probe"
STORIES = {}


def story(passes=8, **world):
    """
    How many passes of one point are killed at (and the last one, too), and the
    arguments of its World.
    """
    def add(function):
        STORIES[function.__name__] = (function, passes, world)
        return function
    return add


@story()
def cut(w):
    """A slice of a card that has never been cut; the job uses it and fails in its own way."""
    yield
    w.job("cut", "--slice", "2g.20gb", body=f"{PROBE} --seconds 0 >/dev/null; exit 7",
          states=["failed"], exits=7)


@story()
def idle_slice(w):
    """The slice is there already."""
    w.job("before", "--slice", "2g.20gb")
    w.settle()
    yield
    w.job("again", "--slice", "2g.20gb", body=f"exec {PROBE} --seconds 0")


@story()
def whole_card(w):
    """A whole card out of one with idle slices: they go, and MIG with them."""
    w.job("first", "--slice", "3g.40gb")
    w.job("second", "--slice", "1g.10gb")
    w.settle()
    yield
    w.job("whole", "--gpus", "1", body=f"exec {PROBE} --seconds 0")


@story()
def cancel_pending(w):
    """Cancelled while another job has the card."""
    other = w.job("other", "--gpus", "1", body=f"until [ -e {w.out}/go ]; do sleep 0.02; done")
    w.reach(other, "running")
    yield
    w.cancel(w.job("waits", "--gpus", "1", states=["cancelled"]))
    (w.out / "go").touch()


@story()
def cancel_preparing(w):
    """Cancelled while its slices are cut: each step takes a while."""
    w.box.machine.sim("fault", "gpu0", "slow:5")
    yield
    job = w.job("cut", "--slice", "1g.10gb", states=["cancelled", "completed"])
    w.reach(job, "preparing")
    w.cancel(job)
    w.box.machine.sim("fault", "gpu0", "none")


@story()
def cancel_running(w):
    """Cancelled while it runs, with a child of its own that would stay."""
    w.job("before", "--slice", "1g.10gb")
    w.settle()
    yield
    job = w.job("runs", "--slice", "1g.10gb", states=["cancelled"],
                body="sleep 600 & sleep 600; wait")
    w.reach(job, "running")
    w.cancel(job)


@story()
def time_limit(w):
    """Longer than it may."""
    w.job("before", "--slice", "1g.10gb")
    w.settle()
    yield
    w.job("long", "--slice", "1g.10gb", "--time", "1s", body="sleep 600", states=["timeout"])


@story()
def failing_cut(w):
    """The second step fails, what was done is undone, and the job waits its turn again."""
    w.job("before", "--slice", "1g.10gb")
    w.settle()
    w.box.machine.sim("fault", "gpu0", "create-fails:2")
    w.cuts_may_fail = True
    yield
    job = w.job("fails", "--slice", "2g.20gb", states=["cancelled", "completed"])
    w.until(lambda: w.rows("SELECT 1 FROM attempts WHERE ended_wall_us > 0 AND job_id = ?",
                           job.id)
            or w.state(job) in harness.ENDED, "the cut failed or went through")
    w.cancel(job)


@story(passes=3)
def owner_is_told(w):
    """The end of a job enters another one; each runs once."""
    yield
    w.job("told", "--on-start", "true", "--on-end", "true", body="exit 3", states=["failed"], exits=3)


@story(passes=1)
def hook_is_told(w):
    """event_hook is told of each start and end at most once, and keeps no job waiting."""
    hook = w.divvy.root / "etc/event"
    hook.write_text(f'#!/bin/sh\necho "$DIVVY_EVENT $DIVVY_JOB_ID.$DIVVY_ATTEMPT" >> {w.out}/events\n'
                    "sleep 0.3\n")
    hook.chmod(0o755)
    w.divvy.stop()
    w.divvy.configure(f"{kill_world.CONFIG}event_hook: {hook}\nevent_time: 2s\n")
    w.start()
    yield
    w.job("first", "--slice", "1g.10gb", body="true")
    w.job("second", "--slice", "1g.10gb", body="exit 3", states=["failed"], exits=3)


@story(passes=3)
def dependencies(w):
    """One fails; who needs it to complete is cancelled, who needs it to fail runs."""
    first = w.job("first", "--hold", body="exit 3", states=["failed"], exits=3)
    yield
    w.job("never", "--dependency", f"afterok:{first.id}", states=["cancelled"])
    w.job("then", "--dependency", f"afternotok:{first.id}")
    w.act(first, "release")


@story(passes=3)
def array(w):
    """Three tasks, one at a time, and one that waits for all of them."""
    yield
    sweep = w.job("sweep", "--array", "0-2%1", tasks=3, line="$DIVVY_ARRAY_INDEX")
    sweep.may_skip_tasks = True  # one of them is lost with its supervisor
    w.job("after", "--dependency", f"afterany:{sweep.id}")


@story(passes=3)
def requeue(w):
    """A job that runs is put back into the queue, and is through the second time."""
    job = w.job("again", "--slice", "1g.10gb", tasks=2, line="$DIVVY_ATTEMPT",
                body="[ $DIVVY_ATTEMPT != $DIVVY_JOB_ID.1 ] || sleep 600")
    job.may_skip_tasks = True  # asked for twice, when the first answer was lost
    job.may_run_again = True
    w.reach(job, "running")
    yield
    w.act(job, "requeue")


@story()
def two_tasks(w):
    """Two slices, a task on each."""
    yield
    w.job("pair", "--slice", "1g.10gb:2", tasks=2, body=f"exec {PROBE} --seconds 0")


@story(passes=2)
def queue_of_four(w):
    """More than the card can take at once."""
    yield
    for i in range(4):
        w.job(f"job{i}", "--slice", "3g.40gb")


@story(passes=2)
def batch(w):
    """Many of one file: all are there or none, and each runs once."""
    yield
    w.batch(*(f"line{i}" for i in range(5)))


@story(passes=2)
def steps(w):
    """A script of two slices that starts a process on each with srun."""
    yield
    job = w.job("steps", "--slice", "1g.10gb:2", "--srun", "each", tasks=3,
                body=f"srun sh -c 'echo step$DIVVY_TASK_ID >> {w.out}/steps.lines' && "
                     f"[ $(wc -l < {w.out}/steps.lines) = 3 ]")
    job.may_skip_tasks = True  # lost with its supervisor, before or after they began


@story()
def run_client(w):
    """divvy run: the client talks to divvyd and then to the supervisor."""
    w.job("before", "--slice", "1g.10gb")
    w.settle()
    yield
    w.attach("attached", "--slice", "1g.10gb", body="echo hello; exit 5", states=["failed"], exits=5)
    w.see_off("attached")


@story(passes=4)
def restart(w):
    """divvyd is killed with a job running and one waiting, and comes back."""
    runs = w.job("runs", "--slice", "7g.80gb", body=f"until [ -e {w.out}/go ]; do sleep 0.02; done")
    w.reach(runs, "running")
    w.job("waits", "--slice", "1g.10gb")
    yield
    w.kill_daemon()
    w.answering()
    (w.out / "go").touch()


@story()
def restart_in_a_cut(w):
    """divvyd dies between two steps, and what became of them is looked up."""
    yield
    w.arm("STEP_SENT", 2)
    w.job("cut", "--slice", "4g.40gb", states=["failed"], body="exit 3", exits=3)


@story()
def ended_meanwhile(w):
    """The job ends while no divvyd is there."""
    job = w.job("runs", "--slice", "1g.10gb", states=["failed"], exits=9,
                body=f"until [ -e {w.out}/go ]; do sleep 0.02; done; exit 9")
    w.reach(job, "running")
    yield
    w.kill_daemon()
    (w.out / "go").touch()
    harness.until(lambda: w.supervisors() == [], "its supervisor ended")


def laid_out(w, *slices):
    """Until the driver has these GPU instances on gpu0, (start, profile) each."""
    w.until(lambda: w.places() == [(0, *one) for one in slices], f"{slices}, not {w.places()}")


@story()
def layout(w):
    """A card with an idle slice is laid out; what stays keeps its place, and a job uses it."""
    w.job("before", "--slice", "3g.40gb")
    w.settle()
    yield
    w.lay_out("cards: [{card: gpu0, mode: slices, slices: [1g.20gb@0, 2g.20gb@2, 3g.40gb@4]}]")
    laid_out(w, (0, "1g.20gb"), (2, "2g.20gb"), (4, "3g.40gb"))
    w.job("after", "--slice", "2g.20gb", body=f"exec {PROBE} --seconds 0")


@story(passes=4)
def kept_layout(w):
    """The machine reboots under a layout that is kept."""
    w.lay_out("cards: [{card: gpu0, mode: slices, slices: [2g.20gb@0, 3g.40gb@4]}]")
    yield
    w.kill_daemon()
    w.box.machine.sim("reboot")
    w.answering()
    laid_out(w, (0, "2g.20gb"), (4, "3g.40gb"))


@story(passes=4)
def command_cut_short(w):
    """A command without a daemon dies in the middle, and divvyd finishes what it began."""
    w.lay_out("cards: [{card: gpu0, mode: auto, slices: [2g.20gb@0, 1g.10gb@3]}]")
    yield
    w.kill_daemon()
    w.arm("APPLY_DONE", 3)
    wish = w.wish("cards: [{card: gpu0, mode: auto, slices: [1g.20gb@0, 3g.40gb@4]}]")
    w.divvy.run("layout", "apply", wish, "--yes", env={"DIVVY_KILL": str(w.kill)}, check=False)
    w.answering()
    laid_out(w, (0, "1g.20gb"), (4, "3g.40gb"))
    w.lay_out(wish.read_text())
    laid_out(w, (0, "1g.20gb"), (4, "3g.40gb"))


@story(passes=4)
def asked_for_a_reboot(w):
    """A guest's card: a command stores its mode, divvyd takes that over and goes on after the reboot."""
    yield
    w.box.machine.sim("fault", "gpu0", "passthrough")
    w.kill_daemon()
    wish = w.wish("cards: [{card: gpu0, mode: slices, slices: [2g.20gb@0, 3g.40gb@4]}]")
    done = w.divvy.run("layout", "apply", wish, "--yes", check=False)
    assert done.returncode == 14, done.stderr
    w.answering()
    w.until(lambda: not (w.divvy.root / "var/lib/divvy/reboot.json").exists(), "it is taken over")
    w.kill_daemon()
    w.box.machine.sim("reboot")
    w.answering()
    laid_out(w, (0, "2g.20gb"), (4, "3g.40gb"))


@story(passes=4)
def maintenance(w):
    """The driver is loaded anew while Divvy has let go of it, and the layout comes back."""
    w.lay_out("cards: [{card: gpu0, mode: slices, slices: [2g.20gb@0, 3g.40gb@4]}]")
    yield
    w.maintain("begin", "away")
    w.box.machine.sim("reload")
    w.maintain("end", "none")
    laid_out(w, (0, "2g.20gb"), (4, "3g.40gb"))
    w.job("after", "--slice", "3g.40gb", body=f"exec {PROBE} --seconds 0")


@story(passes=2)
def planned_maintenance(w):
    """Planned, kept through it, and taken back: a long job waits for that, a short one does not."""
    yield
    w.plan_maintenance(True)
    w.job("short", "--gpus", "1", "--time", "1m")
    w.job("late", "--gpus", "1", "--time", "3h")
    w.plan_maintenance(False)


CLASSES = kill_world.CONFIG + """\
qos:
  urgent: {priority: 10, preempts: [spare, patient]}
  spare: {preempt: requeue}
  patient: {preempt: "signal:USR1", grace: 1h}
"""


def goes_and_comes_again(w, qos, body):
    """A job of this class makes room for an urgent one, and runs again."""
    job = w.job("spare", "--gpus", "1", "--qos", qos, tasks=2, line="$DIVVY_ATTEMPT",
                body=f"[ $DIVVY_ATTEMPT != $DIVVY_JOB_ID.1 ] || {body}")
    job.may_skip_tasks = True  # lost with its supervisor, before or after it went
    job.may_run_again = True
    w.reach(job, "running")
    return job


@story(passes=3, config=CLASSES)
def preemption(w):
    """A job is put back for one of a class that may push it out."""
    goes_and_comes_again(w, "spare", "sleep 600")
    yield
    w.job("urgent", "--gpus", "1", "--qos", "urgent")


@story(passes=3, config=CLASSES)
def preemption_with_a_checkpoint(w):
    """The same, with a signal first; it ends by that, and not after the grace of an hour."""
    goes_and_comes_again(w, "patient",
                         "{ trap 'exit 0' USR1; while :; do sleep 0.02; done; }")
    yield
    w.job("urgent", "--gpus", "1", "--qos", "urgent")
