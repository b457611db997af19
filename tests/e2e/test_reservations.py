"""Starts that are kept for jobs that wait: each a time and a place, which nobody delays."""
import harness

HOUR = 3600e6


def submit(divvy, *words, command=("sleep", "3600")):
    return divvy.submit(*words, "--", *command)


def booked(divvy, job):
    """Where it is expected to start, once that is known."""
    harness.until(lambda: divvy.show(job)["expected_place"], f"#{job} has a place")
    return divvy.show(job)["expected_place"]


def full(box):
    """A 4g for an hour and a 3g for two on gpu0; gpu1 stays out."""
    box.divvy.configure("mode_hold: 0s\nreservations: 3\n")
    box.divvy.start()
    box.divvy.run("pool", "gpu0", "queue")
    box.divvy.run("mode", "gpu0", "slices")
    four = submit(box.divvy, "--slice", "4g.40gb", "--time", "1h")
    three = submit(box.divvy, "--slice", "3g.40gb", "--time", "2h")
    for job in (four, three):
        box.divvy.wait_state(job, "running")
    return four, three


def test_the_first_that_wait_know_when_and_where(box, machine):
    divvy = box.divvy
    four, three = full(box)
    whole = submit(divvy, "--slice", "7g.80gb", "--time", "1h", command=("true",))
    after = submit(divvy, "--slice", "4g.40gb", "--time", "2h")
    third = submit(divvy, "--slice", "2g.20gb", "--time", "2h")
    fills = submit(divvy, "--slice", "4g.40gb", "--time", "50m")
    assert booked(divvy, whole) == "gpu0/7g.80gb@0"
    assert booked(divvy, after) == "gpu0/4g.40gb@0"
    shown = divvy.show(whole)
    assert 1.9 * HOUR < shown["expected_start_wall_us"] - shown["submit_wall_us"] <= 2 * HOUR
    late = divvy.show(after)
    assert 2.9 * HOUR < late["expected_start_wall_us"] - late["submit_wall_us"] <= 3 * HOUR
    assert "on gpu0/7g.80gb@0" in divvy.run("queue").stdout
    assert "on gpu0/7g.80gb@0" in divvy.run("why", whole).stdout
    assert booked(divvy, third) and not divvy.show(fills)["expected_place"], "three, as configured"
    divvy.run("cancel", four)
    divvy.wait_state(fills, "running")  # ends before the 7g is to start
    assert divvy.show(after)["state"] == "pending", "would be there still then"
    assert booked(divvy, whole) == "gpu0/7g.80gb@0"
    divvy.run("cancel", fills)
    divvy.run("cancel", three)
    assert divvy.wait(whole)["state"] == "completed"


def test_a_restart_books_anew(box, machine):
    divvy = box.divvy
    full(box)
    whole = submit(divvy, "--slice", "7g.80gb", "--time", "1h")
    again = submit(divvy, "--slice", "7g.80gb", "--time", "1h")
    assert booked(divvy, whole) == booked(divvy, again) == "gpu0/7g.80gb@0"
    before = divvy.show(whole)["expected_start_wall_us"]
    divvy.kill()
    divvy.start()
    assert booked(divvy, whole) == "gpu0/7g.80gb@0"
    assert abs(divvy.show(whole)["expected_start_wall_us"] - before) < 60e6


def test_none_at_all_is_refused(box, machine):
    box.divvy.configure("reservations: 0\n")
    done = harness.run(harness.PROGRAMS / "divvyd", env={**box.divvy.env}, check=False)
    assert done.returncode != 0 and "reservations must be 1 or more" in done.stderr
