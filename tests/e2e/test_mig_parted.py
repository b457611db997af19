"""divvy mig-parted, as nvidia-mig-parted is called."""
import json
import os
import shutil
import subprocess

import pytest

import harness

CONFIG = """
version: v1
mig-configs:
  sevenths:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.10gb": 7}
  balanced:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
  second:
    - devices: [1]
      mig-enabled: true
      mig-devices: {"7g.80gb": 1}
  first-off:
    - devices: [0]
      mig-enabled: false
  foreign:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.5gb": 7}
  off:
    - devices: all
      mig-enabled: false
"""

APPLIED = "MIG configuration applied successfully\n"
ASSERTED = "Selected MIG configuration currently applied\n"


class Parted:
    """Its files, and the command on them."""

    def __init__(self, box):
        self.box = box
        self.config = box.folder / "config.yaml"
        self.config.write_text(CONFIG)
        self.hooks = box.folder / "hooks.yaml"
        self.told = box.folder / "told"

    def run(self, *words, status=0, **more):
        done = self.box.divvy.run("mig-parted", *words, check=False, **more)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def apply(self, label, *options, **more):
        return self.run("apply", "-f", self.config, "-c", label, *options, **more)

    def asserts(self, label, *options, **more):
        return self.run("assert", "-f", self.config, "-c", label, *options, **more)

    def write_hooks(self, **commands):
        """Each point notes its name and then runs the shell text that is given for it."""
        hooks = {}
        for point in ("apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"):
            text = commands.get(point.replace("-", "_"), "true")
            hooks[point] = [{"command": "/bin/sh",
                             "args": ["-c", f"echo {point} >> {self.told}; {text}"]}]
        self.hooks.write_text(json.dumps({"version": "v1", "hooks": hooks}))
        return ("-k", self.hooks)

    def took(self):
        """The hooks that ran since the last look."""
        lines = self.told.read_text().split("\n")[:-1] if self.told.exists() else []
        self.told.write_text("")
        return lines


@pytest.fixture
def parted(box):
    return Parted(box)


def slices(box):
    return {piece["address"]: piece["uuid"]
            for card in box.divvy.json("gpus")["cards"] for piece in card["slices"] or ()}


def modes(box):
    return [card["mig_now"] for card in box.divvy.json("gpus")["cards"]]


@pytest.mark.smoke
def test_a_node_with_a_card_that_has_no_mig(parted, box):
    """It applies and asserts, and the second time writes nothing and runs no hook."""
    box.machine.up("a100-80gb", "rtx4090", "a100-80gb")
    hooks = parted.write_hooks()
    assert parted.apply("sevenths", *hooks).stdout == APPLIED
    assert parted.took() == ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"]
    before = slices(box)
    assert len(before) == 14
    assert parted.asserts("sevenths").stdout == ASSERTED
    for card in ("gpu0", "gpu2"):  # the first creation would use it up
        box.machine.sim("fault", card, "create-fails:1")
    state = box.machine.status()
    assert parted.apply("sevenths", *hooks).stdout == APPLIED
    assert parted.took() == [] and slices(box) == before and box.machine.status() == state


def test_only_what_differs_is_changed_and_only_its_hook_runs(parted, box, machine):
    hooks = parted.write_hooks()
    parted.apply("sevenths", *hooks)
    first = slices(box)
    parted.took()
    parted.apply("second", *hooks)
    assert parted.took() == ["apply-start", "pre-apply-config", "apply-exit"]
    after = slices(box)
    assert {a: u for a, u in first.items() if a.startswith("gpu0")}.items() <= after.items()
    assert "gpu1/7g.80gb@0" in after and len(after) == 8
    assert parted.asserts("second").stdout == ASSERTED  # of the cards that it names
    parted.asserts("sevenths", status=1)


@pytest.mark.smoke
def test_an_unknown_profile_is_refused_before_anything(parted, box, machine):
    """The original clears the card and reports success."""
    hooks = parted.write_hooks()
    parted.apply("sevenths")
    before = slices(box)
    done = parted.apply("foreign", *hooks, status=1)
    assert "this card has no 1g.5gb" in done.stderr and "Nearest: 1g.10gb" in done.stderr
    assert "nothing was changed" in done.stderr and not done.stdout
    assert slices(box) == before and parted.took() == []
    done = parted.asserts("foreign", status=1)
    assert "not currently applied" in done.stderr and not done.stdout


def test_hooks_run_where_and_with_what_they_are_given(parted, box, machine):
    parted.hooks.write_text(json.dumps({"version": "v1", "hooks": {"apply-start": [
        {"workdir": str(box.folder), "command": "env", "args": []},
        {"workdir": str(box.folder), "command": "sh",
         "args": ["-c", "/usr/bin/env > seen; pwd > where"],
         "envs": {"OWN": "1", "MIG_PARTED_SKIP_RESET": "theirs"}}]}}))
    done = parted.run("--debug", "apply", f"--config-file={parted.config}", "--selected-config",
                      "balanced", "--hooks-file", parted.hooks)
    assert "MIG_PARTED_SELECTED_CONFIG=balanced\n" in done.stdout  # shown, for it is --debug
    seen = dict(line.split("=", 1) for line in (box.folder / "seen").read_text().splitlines())
    seen.pop("PWD", None), seen.pop("_", None), seen.pop("SHLVL", None)  # the shell's own
    assert seen == {"OWN": "1", "MIG_PARTED_CONFIG_FILE": str(parted.config),
                    "MIG_PARTED_SELECTED_CONFIG": "balanced",
                    "MIG_PARTED_HOOKS_FILE": str(parted.hooks),
                    "MIG_PARTED_SKIP_RESET": "false", "MIG_PARTED_MODE_CHANGE_ONLY": "false"}
    assert (box.folder / "where").read_text().strip() == str(box.folder)


@pytest.mark.parametrize("point, ran, left", [
    ("apply_start", ["apply-start"], [False, False]),
    ("pre_apply_mode", ["apply-start", "pre-apply-mode", "apply-exit"], [False, False]),
    ("pre_apply_config", ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"],
     [False, False]),
    ("apply_exit", ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"],
     [True, True]),
])
def test_a_hook_that_fails_ends_it(parted, box, machine, point, ran, left):
    """What was done before is undone; apply-exit comes once apply-start has succeeded."""
    done = parted.apply("sevenths", *parted.write_hooks(**{point: "exit 3"}), status=1)
    assert f"hook {point.replace('_', '-')}: /bin/sh ended with status 3" in done.stderr
    assert parted.took() == ran and modes(box) == left and not done.stdout
    assert len(slices(box)) == (14 if left[0] else 0)


def test_a_failure_rolls_back_and_still_runs_apply_exit(parted, box, machine):
    parted.apply("balanced")
    before = sorted(slices(box))
    machine.sim("fault", "gpu1", "create-fails:5")
    done = parted.apply("sevenths", *parted.write_hooks(), status=1)
    assert "everything is as it was before" in done.stderr
    assert parted.took() == ["apply-start", "pre-apply-config", "apply-exit"]
    assert sorted(slices(box)) == before


def test_a_hook_may_end_who_is_in_the_way(parted, box, machine):
    program = box.folder / "nv-hostengine"
    shutil.copy("/bin/sleep", program)
    fd = os.open(box.machine.folder / "root/dev/nvidia0", os.O_PATH)
    monitor = subprocess.Popen([program, "120"], pass_fds=[fd])
    os.close(fd)
    try:
        done = parted.apply("sevenths", *parted.write_hooks(), status=1)
        assert f"pid {monitor.pid} nv-hostengine" in done.stderr
        assert "systemctl stop nvidia-dcgm" in done.stderr
        assert parted.took() == ["apply-start", "pre-apply-mode", "apply-exit"]
        assert not slices(box) and monitor.poll() is None
        stop = (f"kill -9 {monitor.pid}; "
                f"while [ -e /proc/{monitor.pid}/fd/0 ]; do :; done")
        parted.apply("sevenths", *parted.write_hooks(pre_apply_mode=stop))
        assert len(slices(box)) == 14
    finally:
        monitor.kill()
        monitor.wait()


def test_its_variables_stand_for_its_options(parted, box, machine):
    env = {"MIG_PARTED_CONFIG_FILE": str(parted.config), "MIG_PARTED_SELECTED_CONFIG": "balanced"}
    assert parted.run("apply", env=env).stdout == APPLIED
    assert parted.run("assert", env={**env, "MIG_PARTED_MODE_CHANGE_ONLY": "true"}).stdout == (
        "Selected MIG mode settings from configuration currently applied\n")
    assert parted.run("assert", "-c", "sevenths", env={**env, "MIG_PARTED_VALID_CONFIG": "1"}
                      ).stdout == "Selected MIG configuration is valid\n"
    done = parted.run("assert", env={**env, "MIG_PARTED_VALID_CONFIG": "maybe"}, status=1)
    assert "MIG_PARTED_VALID_CONFIG is true or false, not 'maybe'" in done.stderr


def test_one_label_need_not_be_chosen_and_a_file_may_come_from_a_pipe(parted, box, machine):
    one = ("version: v1\nmig-configs:\n  only:\n  - {devices: [1], mig-enabled: true, "
           "mig-devices: {2g.20gb: 3}}\n")
    done = subprocess.run([harness.PROGRAMS / "divvy", "mig-parted", "apply", "-f", "-"], input=one,
                          env=box.divvy.env, text=True, stdout=subprocess.PIPE, check=False)
    assert done.stdout == APPLIED
    assert sorted(slices(box)) == ["gpu1/2g.20gb@0", "gpu1/2g.20gb@2", "gpu1/2g.20gb@4"]
    done = parted.run("apply", "-f", parted.config, status=1)
    assert "choose one with --selected-config" in done.stderr


def test_it_is_called_by_the_others_name(parted, box, machine):
    link = box.folder / "nvidia-mig-parted"
    link.symlink_to(harness.PROGRAMS / "divvy")
    done = subprocess.run([link, "-d", "apply", "-f", parted.config, "-c", "sevenths"],
                          env=box.divvy.env, text=True, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (0, APPLIED)
    done = subprocess.run([link, "assert", "-f", parted.config, "-c", "balanced"],
                          env=box.divvy.env, text=True, capture_output=True, check=False)
    assert done.returncode == 1 and not done.stdout


def test_mode_only_leaves_slices_alone(parted, box, machine):
    parted.apply("balanced")
    before = slices(box)
    assert parted.apply("sevenths", "--mode-only").stdout == APPLIED
    assert slices(box) == before
    parted.apply("off", "-m")
    assert modes(box) == [False, False]


def test_a_skipped_reset_is_left_to_others(parted, box, machine):
    machine.sim("fault", "gpu0", "reset-required")
    never = {"DIVVY_RESET_COMMAND": f"touch {box.folder / 'was-reset'}"}
    assert parted.apply("sevenths", "-s", "-m", env=never).stdout == APPLIED
    parted.asserts("sevenths", "-m", status=1)
    done = parted.apply("sevenths", "-s", env=never, status=1)
    assert "--skip-reset left to others" in done.stderr
    assert not (box.folder / "was-reset").exists()
    machine.sim("reset", "gpu0")
    assert parted.apply("sevenths", "-s", env=never).stdout == APPLIED
    assert len(slices(box)) == 14 and not (box.folder / "was-reset").exists()


@pytest.mark.smoke
def test_what_is_exported_is_what_is_there(parted, box, machine):
    parted.apply("balanced")
    parted.apply("second")
    first = parted.run("export", "-l", "mine").stdout
    assert json.loads(parted.run("export", "-o", "json").stdout)["mig-configs"]["current"] == [
        {"devices": [0], "mig-enabled": True,
         "mig-devices": {"2g.20gb": 1, "1g.10gb": 2, "3g.40gb": 1}},
        {"devices": [1], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}}]
    parted.apply("off")
    parted.config.write_text(first)
    parted.apply("mine")
    assert parted.run("export", "-l", "mine").stdout == first
    done = parted.run("export", "-o", "xml", status=1)
    assert "yaml and json there are" in done.stderr


def test_all_that_is_generated_can_be_applied(parted, box):
    box.machine.up("a100-80gb", "a30", "h100-80gb-sxm")
    made = box.folder / "made.yaml"
    parted.run("generate-config", "-f", made)
    labels = json.loads(parted.run("generate-config", "-o", "json").stdout)["mig-configs"]
    assert "all-balanced" in labels and "all-1g.10gb.me" in labels and "all-2g.12gb" in labels
    for label in labels:
        parted.run("apply", "-f", made, "-c", label)
        assert parted.run("assert", "-f", made, "-c", label).stdout == ASSERTED


def test_a_checkpoint_outlives_a_reboot(parted, box):
    box.machine.up("a100-80gb", "rtx4090", "h100-80gb-sxm")
    saved = box.folder / "saved.json"
    (box.folder / "lab.yaml").write_text("cards:\n- {card: gpu0, slices: [1g.10gb@6, 3g.40gb@0]}\n"
                                         "- {card: gpu2, slices: [1c.3g.40gb@4.0, 2g.20gb@2]}\n")
    box.divvy.run("layout", "apply", box.folder / "lab.yaml", "--yes")
    before = sorted(slices(box))
    assert parted.run("checkpoint", "-f", saved).stdout == (
        "MIG configuration checkpointed successfully\n")
    box.machine.sim("reboot")
    assert not slices(box)
    hooks = parted.write_hooks()
    assert parted.run("restore", "-f", saved, *hooks).stdout == (
        "MIG configuration restored successfully\n")
    assert sorted(slices(box)) == before
    assert parted.took() == ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"]
    parted.run("restore", "-f", saved, *hooks)
    assert parted.took() == []
    state = json.loads(saved.read_text())
    state["MigState"]["Devices"][0]["UUID"] = "GPU-of-another"
    saved.write_text(json.dumps(state))
    done = parted.run("restore", "-f", saved, status=1)
    assert "GPU-of-another is not among the cards that are here" in done.stderr


@pytest.mark.smoke
def test_through_a_daemon_it_is_the_same(parted, box, divvy):
    """divvyd makes the change; what a job holds is in the way, and the next apply runs no hook."""
    hooks = parted.write_hooks()
    assert parted.apply("balanced", *hooks).stdout == APPLIED
    assert parted.took() == ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"]
    before = slices(box)
    assert len(before) == 8 and parted.asserts("balanced").stdout == ASSERTED
    assert parted.apply("balanced", *hooks).stdout == APPLIED and parted.took() == []
    done = parted.apply("foreign", *hooks, status=1)
    assert "this card has no 1g.5gb" in done.stderr and parted.took() == []

    job = divvy.submit("--slice", "3g.40gb", "-o", box.folder / "out", "--", "sleep", "120")
    divvy.wait_state(job, "running")
    done = parted.apply("off", *hooks, status=1)
    assert f"#{job}" in done.stderr and slices(box) == before
    assert parted.took() == ["apply-start", "pre-apply-mode", "pre-apply-config", "apply-exit"]
    divvy.run("cancel", job)
    divvy.wait(job)
    assert parted.apply("off", "-m").stdout == APPLIED
    assert modes(box) == [False, False]
    done = parted.apply("off", "-s", status=1)
    assert "--skip-reset" in done.stderr and "divvy layout apply" in done.stderr


def test_a_checkpoint_is_restored_through_a_daemon(parted, box, divvy):
    saved = box.folder / "saved.json"
    lab = box.folder / "lab.yaml"
    lab.write_text("cards:\n- {card: gpu0, slices: [1g.10gb@6, 3g.40gb@0]}\n")
    divvy.run("layout", "apply", lab, "--yes")
    before = sorted(slices(box))
    parted.run("checkpoint", "-f", saved)
    parted.apply("second")
    parted.apply("first-off")
    assert parted.run("restore", "-f", saved).stdout == (
        "MIG configuration restored successfully\n")
    assert sorted(slices(box)) == before


def test_where_no_reset_works_the_next_apply_after_the_reboot_goes_on(parted, box, machine):
    machine.sim("fault", "gpu0", "passthrough")
    done = parted.apply("sevenths", status=1)
    assert "needs a reboot of this machine" in done.stderr
    hooks = parted.write_hooks()
    done = parted.apply("sevenths", *hooks, status=1)
    assert "gpu0" in done.stderr and "needs reboot" in done.stderr and parted.took() == []
    machine.sim("reboot")
    parted.apply("sevenths", *hooks)
    assert len(slices(box)) == 14


@pytest.mark.parametrize("words, said", [
    (["aply"], "there is no 'aply'"),
    (["apply"], "--config-file is missing"),
    (["apply", "--wait"], "there is no option --wait for apply"),
    (["--mode-only", "apply"], "there is no option --mode-only before the word"),
    (["apply", "-c"], "--selected-config needs a value"),
    (["apply", "x"], "apply takes no argument 'x'"),
    (["apply", "-f", "/nowhere/x"], "/nowhere/x"),
    (["checkpoint"], "--checkpoint-file is missing"),
    (["restore"], "--checkpoint-file is missing"),
    (["restore", "-f", "/nowhere/x"], "/nowhere/x"),
])
def test_what_it_does_not_understand(parted, machine, words, said):
    done = parted.run(*words, status=1)
    assert said in done.stderr and not done.stdout


def test_help(parted, machine):
    assert "generate-config" in parted.run("--help").stdout
    assert "MIG_PARTED_HOOKS_FILE" in parted.run("apply", "--help").stdout
