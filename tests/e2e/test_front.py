"""divvy where it is two programs: a quick one, and all verbs in another."""
import os
import pwd
import shutil
import subprocess

import pytest

import harness

ALL = harness.PROGRAMS / "divvy-all"
pytestmark = pytest.mark.skipif(not ALL.exists(), reason="divvy is one program in this build")


def test_the_quick_part_loads_no_library():
    told = subprocess.run(["ldd", harness.PROGRAMS / "divvy"], capture_output=True, text=True, check=False)
    assert "not a dynamic executable" in told.stdout + told.stderr


def test_a_user_in_a_files_name_is_asked_of_the_name_service(box):
    box.machine.up("a100-80gb:1")
    box.divvy.start()
    user = pwd.getpwuid(os.getuid()).pw_name
    job = box.divvy.submit("--output", "by-%u", "--", "true")
    assert box.divvy.json("show", job)["output"].endswith(f"/by-{user}")
    script = box.folder / "by.sh"
    script.write_text("#!/bin/sh\n#DIVVY --output in-%u\ntrue\n#DIVVY --name late\n")
    done = box.divvy.run("submit", script)
    assert box.divvy.json("show", done.stdout.strip())["output"].endswith(f"/in-{user}")
    assert done.stderr.count("does not count") == 1  # and nothing was said twice


def test_without_its_other_half_it_says_what_is_missing(box):
    alone = box.folder / "divvy"
    shutil.copy(harness.PROGRAMS / "divvy", alone)
    done = subprocess.run([alone, "no-such-verb"], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        pytest.skip("another Divvy is installed here, and was called")
    assert done.returncode == 1 and "divvy-all" in done.stderr and not done.stdout
