"""A class that pushes others out: who goes, where to, and what is kept."""
import pytest

import harness

ALICE = 41001

pytestmark = pytest.mark.root

CONFIG = """
mode_hold: 0s
kill_wait: 1s
cards:
  default: {pool: queue, mode: auto}
qos:
  urgent: {priority: 10, preempts: [spare, scrap, patient, hasty]}
  spare: {preempt: requeue}
  scrap: {preempt: cancel}
  patient: {preempt: "signal:USR1", grace: 1h}
  hasty: {preempt: "signal:USR1", grace: 1s}
"""


@pytest.fixture
def divvy(box, machine):
    box.divvy.configure(CONFIG)
    box.divvy.start()
    harness.until(lambda: box.divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    return box.divvy


@pytest.fixture
def out(box):
    folder = box.folder / "out"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def submit(divvy, qos, *asks, command=("sleep", "1000")):
    return divvy.submit(*(asks or ("--gpus", "1")), "--qos", qos, "--output", "/dev/null", "--",
                        *command)


def running(divvy, qos, *asks):
    job = submit(divvy, qos, *asks)
    divvy.wait_state(job, "running")
    return job


def test_the_youngest_goes_back_to_its_place_and_comes_again(divvy):
    old, young = running(divvy, "spare"), running(divvy, "spare")
    later = submit(divvy, "spare")
    urgent = running(divvy, "urgent")
    assert divvy.json("show", old)["state"] == "running"
    waits = divvy.json("show", young)
    assert waits["state"] == "pending" and waits["attempt"] == 1
    assert waits["preempted"]["times"] == 1 and waits["preempted"]["by"] == urgent
    divvy.run("cancel", urgent)
    again = divvy.wait_state(young, "running")  # before the one that came later
    assert again["attempt"] == 2
    assert divvy.json("show", later)["state"] == "pending"


def test_what_is_to_be_cancelled_ends_as_preempted(divvy):
    scrap = running(divvy, "scrap", "--gpus", "2")
    running(divvy, "urgent")
    ended = divvy.wait(scrap)
    assert ended["state"] == "preempted" and ended["reason"].startswith("preempted for #")


def test_nobody_is_stopped_for_a_class_that_may_not(divvy):
    first, second = running(divvy, "spare"), running(divvy, "spare")
    normal = submit(divvy, "normal")
    urgent = submit(divvy, "urgent", "--gpus", "2", command=("true",))
    assert divvy.wait(urgent)["state"] == "completed"  # both went for it
    for job in first, second:
        assert divvy.wait_state(job, "running")["attempt"] == 2
    assert divvy.json("show", normal)["state"] == "pending"  # and pushes nobody out


def test_a_daemon_killed_meanwhile_stops_no_second_one(divvy):
    old, young = running(divvy, "spare"), running(divvy, "spare")
    urgent = submit(divvy, "urgent")
    divvy.kill()
    divvy.start()
    divvy.wait_state(urgent, "running")
    assert divvy.json("show", old)["attempt"] == 1
    assert divvy.json("show", old)["state"] == "running"
    divvy.wait_state(young, "pending")


def test_one_without_cards_goes_for_memory_and_not_for_a_card(box, machine):
    box.divvy.configure(CONFIG + "node: {memory: 1G}\ntask_limits: {memory: none, cpu: none}\n")
    box.divvy.start()
    divvy = box.divvy
    card = running(divvy, "spare", "--gpus", "2", "--mem", "100M")
    bare = running(divvy, "spare", "--mem", "600M")
    running(divvy, "urgent", "--mem", "700M")
    assert divvy.wait_state(bare, "pending")["attempt"] == 1
    assert divvy.json("show", card)["state"] == "running"
    submit(divvy, "urgent", "--gpus", "1", "--mem", "10M")
    divvy.wait_state(card, "pending")


# ---- with time for a checkpoint ----

TRAINING = """
trap 'echo saved >>{out}/log; echo 7 >{out}/step; exit 0' USR1
trap 'echo warned >>{out}/log; exit 1' TERM
echo "from $(cat {out}/step 2>/dev/null || echo 0)" >>{out}/log
while :; do sleep 0.05; done
"""

DEAF = """
trap 'echo asked >>{out}/log' USR1
trap 'echo warned >>{out}/log; exit 1' TERM
echo up >>{out}/log
while :; do sleep 0.05; done
"""


def says(log, *lines):
    def there():
        return log.exists() and log.read_text().split("\n")[:-1] == list(lines)
    harness.until(there, f"{lines}, not {log.read_text() if log.exists() else None}")


def test_a_checkpoint_is_written_and_gone_on_from(divvy, out):
    job = submit(divvy, "patient", "--gpus", "2", command=("sh", "-c", TRAINING.format(out=out)))
    says(out / "log", "from 0")
    urgent = running(divvy, "urgent")  # it came as soon as that was written, not after an hour
    later = submit(divvy, "patient", "--gpus", "2", command=("true",))
    waits = divvy.json("show", job)
    assert waits["state"] == "pending" and "preempted" not in waits["reason"]
    divvy.run("cancel", urgent)
    says(out / "log", "from 0", "saved", "from 7")  # nobody was sent TERM
    assert divvy.json("show", job)["attempt"] == 2
    assert divvy.json("show", later)["state"] == "pending"  # the place in line was kept


def test_grace_is_followed_by_term(divvy, out):
    job = submit(divvy, "hasty", "--gpus", "2", command=("sh", "-c", DEAF.format(out=out)))
    says(out / "log", "up")
    running(divvy, "urgent")
    says(out / "log", "up", "asked", "warned")
    assert divvy.json("show", job)["state"] == "pending"


def test_cancel_in_the_grace_takes_what_is_left_of_it(divvy, out):
    job = submit(divvy, "patient", "--gpus", "2", command=("sh", "-c", DEAF.format(out=out)))
    says(out / "log", "up")
    submit(divvy, "urgent")
    says(out / "log", "up", "asked")
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    says(out / "log", "up", "asked", "warned")


def test_the_time_limit_ends_the_grace(divvy, out):
    submit(divvy, "patient", "--gpus", "2", "--time", "3s",
           command=("sh", "-c", DEAF.format(out=out)))
    says(out / "log", "up")
    running(divvy, "urgent")
    says(out / "log", "up", "asked", "warned")


def test_a_daemon_killed_in_the_grace_goes_on_with_it(divvy, out):
    job = submit(divvy, "patient", "--gpus", "2", command=("sh", "-c", DEAF.format(out=out)))
    says(out / "log", "up")
    submit(divvy, "urgent")
    says(out / "log", "up", "asked")
    divvy.kill()
    divvy.start()
    assert divvy.json("show", job)["state"] == "ending"
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    says(out / "log", "up", "asked", "warned")


def refusal(divvy):
    """What divvyd says of a divvy.yaml that it does not take."""
    divvy.launch()
    code, divvy.daemon = divvy.daemon.wait(harness.PATIENCE), None
    assert code > 0, divvy.said()
    return divvy.said()


# ---- shares ----

SHARES = """
mode_hold: 0s
kill_wait: 1s
preempt_shares: on
cards:
  default: {pool: queue, mode: auto}
qos:
  firm: {}
"""


@pytest.fixture
def lent(box, machine):
    """Both cards are lent to root; alice and he have equal shares."""
    box.divvy.configure(SHARES)
    box.divvy.start()
    harness.until(lambda: box.divvy.json("status")["cards_queue"] == 2, "both cards are seen")
    return box.divvy


def test_what_was_lent_comes_back(lent):
    old, young = running(lent, "normal"), running(lent, "normal")
    hers = lent.submit("--gpus", "1", "--output", "/dev/null", "--", "sleep", "1000", user=ALICE)
    lent.wait_state(hers, "running")
    assert lent.json("show", old)["state"] == "running"
    assert lent.json("show", young)["state"] == "pending"
    more = lent.submit("--gpus", "1", "--output", "/dev/null", "--", "true", user=ALICE)
    lent.run("requeue", hers)  # whatever is looked at meanwhile, one each stays one each
    lent.wait_state(hers, "running")
    assert lent.json("show", more)["state"] == "pending"
    assert lent.json("show", old)["attempt"] == 1


def test_a_class_that_is_never_pushed_out_keeps_what_was_lent(lent):
    firm = [running(lent, "firm"), running(lent, "firm")]
    hers = lent.submit("--gpus", "1", "--output", "/dev/null", "--", "true", user=ALICE)
    lent.run("cancel", firm[0])
    assert lent.wait(hers)["state"] == "completed"
    assert lent.json("show", firm[1])["attempt"] == 1


@pytest.mark.parametrize("qos, words", [
    ('{preempt: "signal:NOSUCH"}', [":3:", "NOSUCH"]),
    ('{preempt: "signal:USR1", grace: 2d}', [":3:", "1d at most"]),
    ("{preempt: gently}", [":3:", "gently", "signal:NAME"]),
])
def test_what_no_class_can_be_is_refused(box, qos, words):
    box.divvy.configure(f"cards:\n  default: {{pool: queue}}\nqos: {{spare: {qos}}}\n")
    said = refusal(box.divvy)
    for word in words:
        assert word in said
