"""Fixtures for end-to-end and peer tests; what they are made of is harness.py."""
import os

import pytest

import harness


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("root") and os.getuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The fixtures that end after a test know by item.failed whether it did."""
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed


@pytest.fixture
def box(request):
    """A folder with a machine and a Divvy, neither of them started."""
    with harness.Box() as box:
        yield box
        if getattr(request.node, "failed", False):
            print(f"divvyd said:\n{box.divvy.said()[-20000:]}")  # its folder goes


@pytest.fixture
def machine(box):
    """Two simulated A100-80GB."""
    return box.machine.up("a100-80gb:2")


@pytest.fixture
def divvy(box, machine):
    """divvyd on that machine, every card in pool queue and mode auto, without a hold."""
    box.divvy.configure("mode_hold: 0s\n")
    box.divvy.start()
    for card in range(2):
        box.divvy.run("pool", f"gpu{card}", "queue")
        box.divvy.run("mode", f"gpu{card}", "auto")
    return box.divvy
