"""The verbs of divvy as people and scripts use them."""
import concurrent.futures
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import harness

DIVVY = harness.PROGRAMS / "divvy"
PROBE = harness.PROGRAMS / "divvy-probe"


@pytest.fixture
def here(box):
    """A folder to submit from, with the default output files in it."""
    folder = box.folder / "here"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def status(divvy, *words, **more):
    return divvy.run(*words, check=False, **more).returncode


def has_socket(pid):
    """Has the process connected to anything?"""
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd).startswith("socket:"):
                return True
        except OSError:  # closed meanwhile
            pass
    return False


class Terminal:
    """divvy on a terminal of its own."""

    def __init__(self, divvy, *words, **more):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({**divvy.env, "TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "80"})
            os.environ.update(more)
            os.execv(DIVVY, ["divvy", *map(str, words)])
        self.seen = ""

    def read(self, patience=0.1):
        ready, _, _ = select.select([self.fd], [], [], patience)
        try:
            piece = os.read(self.fd, 65536).decode() if ready else None
        except OSError:  # the other side is closed
            piece = ""
        self.seen += piece or ""
        return piece

    def until(self, pattern):
        def there():
            self.read()
            return re.search(pattern, self.seen)
        return harness.until(there, f"the terminal shows {pattern}; it showed {self.seen!r}")

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Exit status."""
        end = time.monotonic() + harness.PATIENCE
        while self.read() != "":
            assert time.monotonic() < end, self.seen
        _, ended = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(ended)


# ---- help, and words that are wrong ----

@pytest.mark.parametrize("verb", ["submit", "run", "queue", "show", "logs", "why", "wait", "cancel",
                                  "gpus", "profiles", "pool", "mode", "status", "version"])
def test_every_verb_has_help(box, machine, verb):
    shown = box.divvy.run(verb, "--help").stdout
    assert shown.startswith(f"Usage: divvy {verb}")
    assert "--json" in shown
    assert re.findall(r"^ \S[^\n]*:\n(?=\n| ?\S|\Z)", shown, re.M) == []  # a heading of nothing
    assert box.divvy.run("help", verb).stdout == shown


def test_no_line_that_is_drawn_is_too_long_for_its_help(box, machine):
    """Paragraphs are filled, and so is what stands beside an option; argp breaks other lines in their middle."""
    wide = {**box.divvy.env, "ARGP_HELP_FMT": "rmargin=250"}
    listed = box.divvy.run("help").stdout
    for verb in (verb for verb in re.findall(r"^  ([a-z-]+) ", listed, re.M) if verb != "divvy"):
        whole = box.divvy.run(verb, "--help", env=wide).stdout.splitlines()
        assert [line for line in whole if re.match(r"  (?! {4}--|-\w,)", line) and len(line) > 78] == [], verb
    assert [line for line in listed.splitlines() if len(line) > 79] == []


@pytest.mark.parametrize("words", [["divvyd"], ["divvy-sim"], ["divvy-sim", "status"], ["divvy", "submit"]])
def test_h_is_help_in_every_program(words):
    program, *more = words
    shown = [harness.run(harness.PROGRAMS / program, *more, option).stdout for option in ("-h", "--help")]
    assert shown[0] == shown[1] and "sage" in shown[0]


def test_the_list_of_verbs(box, machine):
    shown = box.divvy.run("help").stdout
    for verb in ("submit", "run", "queue", "gpus", "cancel"):
        assert re.search(rf"^  {verb} ", shown, re.M)
    assert status(box.divvy) == 2


@pytest.mark.parametrize("words, meant", [
    (["subnit"], "divvy submit"), (["squeue"], "divvy queue"), (["sbatch"], "divvy submit"),
    (["submit", "--slcie", "1g.10gb", "--", "true"], "--slice"), (["queue", "--mien"], "--mine"),
    (["queue", "--state", "runing"], "running"), (["--root"], "--root needs a value"),
    (["submit", "--cpus-per-task=4", "--", "true"], "--cpus"), (["submit", "-c", "4", "--", "true"], "--cpus"),
    (["submit", "--export=ALL", "--", "true"], "--env"), (["submit", "--gres=gpu:1", "--", "true"], "--gpus"),
    (["submit", "--mem=4000", "--", "true"], "4000M"), (["cancel", "--state", "running"], "--mine"),
    (["pool", "queue"], "divvy pool gpu0 queue"), (["mode", "auto"], "divvy mode gpu0 auto"),
])
def test_the_nearest_word_is_named(box, machine, words, meant):
    done = box.divvy.run(*words, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("divvy: ") and meant in done.stderr
    assert done.stderr.count("\n") == 1


def test_exit_statuses(divvy):
    assert status(divvy, "status") == 0
    assert status(divvy, "submit", "--slice", "1g.5gb", "--", "true") == 1
    assert status(divvy, "show", "not-a-job") == 2
    assert status(divvy, "status", "--root", "/nowhere") == 3
    for verb in ("show", "why", "cancel", "logs"):
        assert status(divvy, verb, "4711") == 4, verb
    assert status(divvy, "pool", "gpu9", "queue") == 4
    assert status(divvy, "profiles", "gpu9") == 4
    assert status(divvy, "wait", "4711") == 125
    assert status(divvy, "run", "--slice", "1g.5gb", "--", "true") == 125


def test_status_waits_for_a_divvyd_that_starts(box, machine):
    assert status(box.divvy, "status", "--wait", "1s") == 3
    assert "--wait" in box.divvy.run("status", "--wait", "soon", check=False).stderr
    with concurrent.futures.ThreadPoolExecutor() as meanwhile:
        asked = meanwhile.submit(box.divvy.run, "status", "--json", "--wait", "30s")
        box.divvy.launch()
        assert json.loads(asked.result().stdout)["cards"] == 2


@pytest.mark.root
def test_who_may_not_is_told_so(divvy):
    job = divvy.submit("--output", "/dev/null", "--", "sleep", "60")
    assert status(divvy, "cancel", job, user=12345) == 5
    assert status(divvy, "mode", "gpu0", "whole", user=12345) == 5
    assert "command" not in divvy.run("show", job, user=12345).stdout
    assert "argv" not in divvy.json("show", job, user=12345)
    assert divvy.json("show", job)["argv"] == ["sleep", "60"]
    divvy.run("cancel", job)


# ---- submit ----

def test_submit_prints_the_number_for_scripts(divvy, here):
    shown = divvy.run("submit", "--", "true", cwd=here).stdout
    assert re.fullmatch(r"\d+\n", shown)
    divvy.wait(int(shown))
    assert (here / f"divvy-{shown.strip()}.out").exists()


def test_submit_tells_people_more(divvy, here):
    screen = Terminal(divvy, "submit", "--slice", "1g.10gb", "--output", here / "log", "--", "true")
    assert screen.end() == 0
    assert re.search(rf"#\d+ true asks for 1g.10gb; output in {here}/log", screen.seen)


def test_submit_says_when_a_size_takes_a_smaller_profile(divvy, here):
    done = divvy.run("submit", "--gpu-mem", "10G", "--", "true", cwd=here)
    assert "1g.10gb" in done.stderr and "--exact" in done.stderr


def test_submit_wait_exits_as_the_job(divvy, here):
    assert status(divvy, "submit", "--wait", "--", "sh", "-c", "exit 9", cwd=here) == 9
    assert status(divvy, "submit", "-W", "--", "true", cwd=here) == 0


def test_the_letters_of_sbatch(divvy, here):
    job = divvy.submit("-J", "letters", "-t", "10", "-o", "%j.log", "-D", "/tmp", "--", "pwd", cwd=here)
    ended = divvy.wait(job)
    assert (ended["name"], ended["limit_us"], ended["cwd"]) == ("letters", 600_000_000, "/tmp")
    assert (here / f"{job}.log").read_text() == "/tmp\n"


def test_a_script_is_kept_as_it_was(divvy, here):
    script = here / "job.sh"
    script.write_text("#!/bin/sh\n#DIVVY --name first\necho first $1\n")
    divvy.run("mode", "all", "slices")
    blocker = divvy.submit("--slice", "7g.80gb:2", "-o", "/dev/null", "--", "sleep", "60")
    job = divvy.submit("--slice", "7g.80gb", "-o", "log", script, "argument", cwd=here)
    script.write_text("#!/bin/sh\necho second\n")
    divvy.run("cancel", blocker)
    assert divvy.wait(job)["state"] == "completed"
    assert (here / "log").read_text() == "first argument\n"


@pytest.mark.parametrize("content, says", [
    (b"echo no interpreter\n", "#!"),
    (b"#!/bin/sh\n#DIVVY --slcie 1g.10gb\n", "job.sh:2"),
    (b"#!/bin/sh\n#DIVVY --gpus many\n", "job.sh:2"),
    (b"#!/bin/sh\n#DIVVY --name 'open\n", "job.sh:2"),
    (b"\x7fELF\0\0", "submit it as a command"),
    (b"#!/bin/sh\n\xff\xfe\n", "UTF-8"),
    (b"#!/bin/sh\n" + b"#" * (300 << 10), "256 KiB"),
], ids=["no interpreter", "unknown option", "no number", "open quote", "program", "no UTF-8", "long"])
def test_scripts_that_cannot_be(divvy, here, content, says):
    (here / "job.sh").write_bytes(content)
    done = divvy.run("submit", "job.sh", check=False, cwd=here)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not divvy.json("queue", "--all")["jobs"]


def test_a_command_without_dashes_is_told_about_them(divvy, here):
    done = divvy.run("submit", "python3", "train.py", check=False, cwd=here)
    assert "divvy submit -- python3" in done.stderr


def test_arguments_that_are_no_utf8(divvy, here):
    done = subprocess.run([DIVVY, "submit", "--", "echo", b"\xff"], env=divvy.env, cwd=here,
                          stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"argument 1" in done.stderr


# ---- run ----

def test_run_has_the_streams_of_its_caller(divvy):
    done = subprocess.run([DIVVY, "run", "--", "sh", "-c", "cat; echo to error >&2; exit 3"],
                          env=divvy.env, input=b"through\0all\n", capture_output=True,
                          timeout=harness.PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"through\0all\n", b"to error\n")


def test_run_dies_of_the_signal_that_killed_the_job(divvy):
    assert status(divvy, "run", "--", "sh", "-c", "kill -9 $$") == 137


def test_run_of_what_is_not_there(divvy):
    done = divvy.run("run", "--", "/no/such/program", check=False)
    assert done.returncode in (126, 127), done
    assert "/no/such/program" in done.stderr


def test_run_gives_a_terminal_to_a_terminal(divvy):
    screen = Terminal(divvy, "run", "--", "sh", "-c", "tty && stty size && read line && echo got $line")
    screen.until(r"/dev/pts/\d+")
    screen.type("hello\n")
    assert screen.end() == 0
    assert "got hello" in screen.seen


def test_control_c_reaches_the_job(divvy):
    screen = Terminal(divvy, "run", "--", "sh", "-c", "trap 'echo caught; exit 4' INT; echo ready; "
                      "while :; do sleep 0.1; done")
    screen.until("ready")
    screen.type("\x03")
    screen.until("caught")
    assert screen.end() == 4


def test_who_waits_without_a_terminal_is_told_once(divvy, box):
    blocker = divvy.submit("--gpus", "2", "-o", "/dev/null", "--", "sh", "-c",
                           f"until [ -e {box.folder}/go ]; do sleep 0.05; done")
    divvy.wait_state(blocker, "running")
    waiting = subprocess.Popen([harness.PROGRAMS / "divvy", "run", "--gpus", "1", "--", "echo", "ran"],
                               env=divvy.env, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = waiting.stderr.readline()
    (box.folder / "go").touch()
    said, rest = waiting.communicate(timeout=harness.PATIENCE)
    assert re.match(r"divvy(?: run)?: #\d+ waits.*\n$", line) and said == "ran\n" and rest == ""
    assert waiting.returncode == 0


def test_control_c_while_waiting_leaves_the_queue(divvy):
    blocker = divvy.submit("--gpus", "2", "-o", "/dev/null", "--", "sleep", "60")
    divvy.wait_state(blocker, "running")
    screen = Terminal(divvy, "run", "--gpus", "1", "--", "true")
    screen.until(r"#\d+ waits")
    screen.type("\x03")
    assert screen.end() == 130
    assert "taken out of the queue" in screen.seen
    waiting = [job for job in divvy.json("queue")["jobs"] if job["id"] != blocker]
    assert waiting == []
    divvy.run("cancel", blocker)


def test_a_lost_client_hangs_its_job_up(divvy):
    client = subprocess.Popen([DIVVY, "run", "--", "sleep", "60"], env=divvy.env,
                              stdin=subprocess.DEVNULL)
    job = harness.until(lambda: [j for j in divvy.json("queue")["jobs"] if j["state"] == "running"],
                        "it runs")[0]["id"]
    client.send_signal(signal.SIGKILL)
    client.wait()
    assert divvy.wait(job)["state"] in ("failed", "cancelled")


# ---- queue, show, why ----

def test_the_queue_fits_80_columns(divvy, here):
    divvy.submit("--slice", "3g.40gb", "--name", "a-name-that-nobody-would-ever-want-to-type-again",
                 "-o", "/dev/null", "--", "sleep", "60")
    divvy.submit("--gpus", "2", "--time", "1h", "-o", "/dev/null", "--", "sleep", "60")
    screen = Terminal(divvy, "queue", NO_COLOR="1")
    assert screen.end() == 0
    lines = screen.seen.splitlines()
    assert lines[0].split() == ["ID", "USER", "ACCOUNT", "NAME", "ASKS", "STATE", "SINCE", "WHERE", "/",
                                "WHY"]
    assert all(len(line) <= 80 for line in lines), screen.seen
    assert "\x1b" not in screen.seen
    divvy.run("cancel", "--mine")


def test_the_queue_can_be_narrowed(divvy, here):
    done = divvy.submit("-o", "/dev/null", "--", "true")
    failed = divvy.submit("-o", "/dev/null", "--", "false")
    running = divvy.submit("-o", "/dev/null", "--", "sleep", "60")
    divvy.wait(done), divvy.wait(failed), divvy.wait_state(running, "running")

    def ids(*words):
        return [job["id"] for job in divvy.json("queue", *words)["jobs"]]
    assert ids() == [running]
    assert ids("--all") == [done, failed, running]
    assert ids("--ended") == [done, failed]
    assert ids("--state", "failed,running") == [failed, running]
    assert ids("--ended", "--state", "failed,running") == [failed]
    assert ids("--state", "failed", "--all") == [failed]
    assert status(divvy, "queue", "--ended", "--state", "running") == 2
    assert ids("--mine", "--all") == [done, failed, running]
    assert ids("--user", "nobody") == [], "a user without jobs"
    assert status(divvy, "queue", "--user", "nobody-has-this-name") == 4
    divvy.run("cancel", running)


def test_why_names_who_is_in_the_way(divvy):
    blocker = divvy.submit("--gpus", "2", "-o", "/dev/null", "--time", "1h", "--", "sleep", "60")
    divvy.wait_state(blocker, "running")
    job = divvy.submit("--gpus", "1", "-o", "/dev/null", "--", "true")
    shown = divvy.run("why", job).stdout
    assert shown.startswith(f"#{job} ") and f"#{blocker}" in shown
    assert divvy.json("why", job)["id"] == job
    divvy.run("cancel", job, blocker)


def test_show_tells_where_and_what(divvy, here):
    job = divvy.submit("--slice", "1g.10gb", "-o", "log", "--", "sh", "-c", "exit 2", cwd=here)
    divvy.wait(job)
    shown = divvy.run("show", f"#{job}").stdout
    for words in (f"#{job} sh", "failed", "gpu", "1g.10gb@", "MIG-", "exit 2", "sh -c exit 2",
                  str(here / "log")):
        assert words in shown, shown


# ---- logs, wait, cancel ----

def test_logs_follow_to_the_end(divvy, here):
    go = here / "go"
    job = divvy.submit("-o", "log", "--", "sh", "-c",
                       f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two", cwd=here)
    follower = subprocess.Popen([DIVVY, "logs", "-f", str(job)], env=divvy.env,
                                stdout=subprocess.PIPE, text=True)
    assert follower.stdout.readline() == "one\n"
    go.touch()
    assert follower.stdout.read() == "two\n"
    assert follower.wait(harness.PATIENCE) == 0


def test_logs_show_the_last_lines(divvy, here):
    job = divvy.submit("-o", "log", "--", "seq", "100000", cwd=here)
    divvy.wait(job)
    assert divvy.run("logs", "-n", "2", job).stdout == "99999\n100000\n"
    assert divvy.run("logs", "-n", "0", job).stdout == ""
    assert divvy.run("logs", job).stdout == (here / "log").read_text()


def test_logs_of_tasks_apart(divvy, here):
    job = divvy.submit("--slice", "1g.10gb:2", "-o", "log-%t", "--", "sh", "-c", "echo $DIVVY_TASK_ID",
                       cwd=here)
    divvy.wait(job)
    assert [divvy.run("logs", "--task", n, job).stdout for n in (0, 1)] == ["0\n", "1\n"]
    assert status(divvy, "logs", "--task", "2", job) == 1


@pytest.mark.root
def test_logs_are_read_as_the_caller(divvy, here):
    job = divvy.submit("-o", "log", "--", "echo", "secret", cwd=here)
    divvy.wait(job)
    done = divvy.run("logs", job, user=12345, check=False)
    assert done.returncode == 5 and "secret" not in done.stdout


def test_wait_gives_the_first_failure(divvy):
    jobs = [divvy.submit("-o", "/dev/null", "--", "sh", "-c", f"exit {code}") for code in (0, 5, 6)]
    assert status(divvy, "wait", *jobs) == 5
    assert status(divvy, "wait", jobs[0]) == 0


def test_wait_has_an_end(divvy):
    job = divvy.submit("-o", "/dev/null", "--", "sleep", "60")
    done = divvy.run("wait", "--timeout", "1s", job, check=False)
    assert done.returncode == 124 and f"#{job} is still" in done.stderr
    divvy.run("cancel", job)
    assert status(divvy, "wait", job) == 130


def test_wait_outlives_the_daemon(divvy):
    job = divvy.submit("-o", "/dev/null", "--", "sleep", "2")
    divvy.wait_state(job, "running")
    waiter = subprocess.Popen([DIVVY, "wait", str(job)], env=divvy.env)
    harness.until(lambda: has_socket(waiter.pid), "it has found the daemon")
    divvy.kill()
    divvy.start()
    assert waiter.wait(harness.PATIENCE) == 0


def test_cancel_by_filter(divvy):
    blocker = divvy.submit("--gpus", "2", "-o", "/dev/null", "--", "sleep", "60")
    divvy.wait_state(blocker, "running")
    waiting = [divvy.submit("--gpus", "1", "-o", "/dev/null", "--", "true") for _ in range(3)]
    assert divvy.json("cancel", "--mine", "--waiting")["cancelled"] == waiting
    assert [job["id"] for job in divvy.json("queue")["jobs"]] == [blocker]
    assert status(divvy, "cancel", waiting[0]) == 1
    assert divvy.json("cancel", "--mine", "--state", "waiting,preparing")["cancelled"] == []
    assert divvy.json("cancel", "--mine", "--state", "running")["cancelled"] == [blocker]
    assert divvy.wait(blocker)["state"] == "cancelled"


@pytest.mark.parametrize("words, code, sentence", [
    (["--user", "nobody-has-this-name"], 4, "nobody-has-this-name"),
    (["--user", ""], 2, "an empty name is nobody's"), (["--account", ""], 2, "an empty name is nobody's"),
    (["--mine", "--state", ""], 2, "'' is no state"),
    (["--mine", "--user", "root"], 2, "--mine and --user each say whose"),
    (["--mine", "--state", "waiting,failed"], 2, "has ended already"),
    (["--mine", "--state", "wating"], 2, "did you mean waiting?"),
    (["1", "--waiting"], 2, "either numbers of jobs, or")])
def test_cancel_by_a_filter_that_cannot_be(divvy, words, code, sentence):
    job = divvy.submit("--hold", "-o", "/dev/null", "--", "true")
    refused = divvy.run("cancel", *words, check=False)
    assert refused.returncode == code and sentence in refused.stderr
    assert divvy.show(job)["state"] == "pending", "nothing is half done"


@pytest.mark.parametrize("cards", ["", ",", "gpu0,gpu", "gpu0,"])
def test_what_names_no_card_changes_none(divvy, cards):
    done = divvy.run("pool", cards, "off", check=False)
    pools = [card["pool"] for card in divvy.json("gpus")["cards"]]
    if cards == "gpu0,":
        assert done.returncode == 0 and pools == ["off", "queue"]
    else:
        assert done.returncode == 2 and "is no card; cards are called gpu0" in done.stderr
        assert pools == ["queue", "queue"], "nothing is half done"


# ---- output that goes nowhere ----

def test_a_closed_pipe_is_no_crash(divvy):
    shown = harness.run("sh", "-c", f"'{DIVVY}' gpus --json | head -c 1", env=divvy.env)
    assert shown.stdout == "{"


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(divvy):
    with open("/dev/full", "w") as full:
        done = subprocess.run([DIVVY, "gpus"], env=divvy.env, stdout=full, stderr=subprocess.PIPE,
                              text=True)
    assert done.returncode == 1 and "standard output" in done.stderr
