"""`divvy setup` in a root for a trial, and the unit files that it installs."""
import grp
import json
import os
import re
import shutil

import pytest

import harness

DIVVY = harness.PROGRAMS / "divvy"
UNITS = harness.BUILD / "dist/systemd"


def set_up(root, *words, check=True):
    return harness.run(DIVVY, "setup", "--root", root, *words, check=check)


def states(root, *words):
    lines = json.loads(set_up(root, "--json", *words).stdout)["lines"]
    return {line["thing"].removeprefix(str(root)): line["state"] for line in lines}


def test_setup_makes_everything_once(tmp_path):
    first = states(tmp_path)
    assert first["/etc/divvy/divvy.yaml"] == "made"
    assert first["/etc/systemd/system/divvy-job@.service"] == "made"
    for unit in ("divvyd.service", "divvy-layout.service", "divvy.slice"):
        assert (tmp_path / "etc/systemd/system" / unit).is_file()
    assert (tmp_path / "var/lib/divvy/jobs").stat().st_mode & 0o777 == 0o700
    text = (tmp_path / "etc/divvy/divvy.yaml").read_text()
    (tmp_path / "etc/divvy/divvy.yaml").write_text(text + "# mine\n")
    again = states(tmp_path)
    assert {state for thing, state in again.items() if thing.startswith("/")} == {"there"}
    assert (tmp_path / "etc/divvy/divvy.yaml").read_text() == text + "# mine\n"


def test_what_to_do_next_can_be_pasted(tmp_path):
    root = tmp_path / "it's here"
    root.mkdir()
    said = set_up(root, "--dry-run").stdout.split("Next:\n")[1]
    first = said.splitlines()[0].strip()
    shell = harness.run("sh", "-c", f"{first}; echo $DIVVY_ROOT")
    assert shell.stdout == f"{root}\n"
    assert "DIR" not in said and [line.strip() for line in said.splitlines()[1:3]] == [
        "divvyd &", "divvy status --wait 10s"]


def test_dry_run_makes_nothing(tmp_path):
    assert states(tmp_path, "--dry-run")["/etc/divvy/divvy.yaml"] == "would make"
    assert list(tmp_path.iterdir()) == []


def test_groups_become_accounts(tmp_path):
    group = grp.getgrgid(os.getgid()).gr_name
    set_up(tmp_path, "--group", group)
    assert f'"{group}": {{groups: ["{group}"], share: 1}}' in \
        (tmp_path / "etc/divvy/divvy.yaml").read_text()


def test_a_group_that_is_not_there_is_refused_before_anything_is_made(tmp_path):
    said = set_up(tmp_path, "--group", "nobody-has-this", check=False)
    assert said.returncode == 4
    assert "no Unix group 'nobody-has-this'" in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_administrator_is_left_alone_and_what_it_lacks_is_told(tmp_path):
    (tmp_path / "etc/divvy").mkdir(parents=True)
    (tmp_path / "etc/divvy/divvy.yaml").write_text("accounts:\n  a: {users: [x]}\n")
    group = grp.getgrgid(os.getgid()).gr_name
    assert f"no account for {group}" in set_up(tmp_path, "--group", group).stdout


@pytest.mark.root
def test_setup_of_the_machine_needs_root():
    said = harness.run("setpriv", "--reuid", 65534, "--clear-groups", DIVVY, "setup",
                       check=False, env={"PATH": os.environ["PATH"]})
    assert said.returncode == 5
    assert "needs root" in said.stderr and "--dry-run" in said.stderr


@pytest.mark.root
def test_divvyd_refuses_a_folder_that_others_may_write(box, machine):
    state = box.folder / "root/var/lib/divvy"
    state.mkdir(parents=True)
    state.chmod(0o777)
    said = harness.run(harness.PROGRAMS / "divvyd", "--root", box.folder / "root", check=False)
    assert said.returncode == 1
    assert f"{state} may be written by its group and others (mode 0777)" in said.stderr
    assert f"chmod go-w {state}" in said.stderr


# ---- units ------------------------------------------------------------------


@pytest.fixture
def units(tmp_path):
    """The unit files with the programs of the build in them, for systemd-analyze."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here")
    for unit in UNITS.iterdir():
        if unit.suffix in (".service", ".slice"):
            text = re.sub(r"^(ExecStart=)\S*/(divvyd|divvy-supervise|divvy)\b", rf"\1{harness.PROGRAMS}/\2",
                          unit.read_text(), flags=re.M)
            (tmp_path / unit.name).write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.M))
    return tmp_path


def test_units_are_right(units):
    said = harness.run("systemd-analyze", "verify", "--man=no", *units.iterdir(), check=False)
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""


def test_divvyd_is_hardened(units):
    said = harness.run("systemd-analyze", "security", "--offline=true", "--no-pager",
                       units / "divvyd.service", check=False)
    exposure = re.search(r"exposure level for \S+: ([0-9.]+)", said.stdout)
    assert exposure, said.stdout + said.stderr
    assert float(exposure[1]) <= 6.5


def test_no_limit_of_the_daemon_reaches_a_job(units):
    """What narrows divvyd must stand in no unit that jobs come from."""
    words = re.compile(r"^(Protect|Private|Restrict|SystemCall|Capability|NoNew|MemoryDeny|Lock)",
                       re.M)
    assert words.search((units / "divvyd.service").read_text())
    assert not words.search((units / "divvy-job@.service").read_text())


def test_a_private_divvy_cannot_insist_on_systemd(box, machine):
    box.divvy.configure("launch: systemd\n")
    said = harness.run(harness.PROGRAMS / "divvyd", "--root", box.folder / "root", check=False)
    assert said.returncode == 1
    assert "launch: systemd, and that cannot be: this Divvy has a root of its own" in said.stderr


def test_a_configuration_named_from_here_is_read(box, machine, tmp_path):
    (tmp_path / "mine.yaml").write_text("no_such_key: 1\n")
    said = harness.run(harness.PROGRAMS / "divvyd", "--root", box.folder / "root", "--config",
                       "mine.yaml", check=False, cwd=tmp_path)
    assert said.returncode == 1
    assert "mine.yaml:1:1" in said.stderr and "no_such_key" in said.stderr
