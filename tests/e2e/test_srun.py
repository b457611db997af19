"""srun in scripts that were written for Slurm: a process for each slice."""

import sys

import pytest

from harness import until


def submit(divvy, box, text, *options):
    path = box.folder / "job.sh"
    path.write_text("#!/bin/bash\n" + text)
    job = divvy.submit("-o", box.folder / "log", *options, path)
    return job, box.folder / "log"


FOUR = "#SBATCH --gres=gpu:1g.10gb:4\n"


def test_a_script_runs_once_and_srun_on_every_slice(divvy, box):
    text = FOUR + ("echo once $SLURM_NTASKS; export MINE='a b'; cd /\n"
                   "srun --cpu-bind=none --mpi=pmix bash -c 'sleep 0.3; echo \"$SLURM_PROCID/$SLURM_NTASKS "
                   "$SLURM_LOCALID $MINE $PWD $DIVVY_SLICES $CUDA_VISIBLE_DEVICES\"'\n")
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "completed"
    lines = log.read_text().splitlines()
    assert lines.count("once 4") == 1
    assert sum("--cpu-bind, --mpi" in line for line in lines) == 1
    said = sorted(line.split() for line in lines if line[1:3] == "/4")
    assert [(s[0], s[1]) for s in said] == [(f"{i}/4", str(i)) for i in range(4)]
    assert all(s[2:5] == ["a", "b", "/"] for s in said)
    assert len({s[5] for s in said}) == 4 and len({s[6] for s in said}) == 4


def test_each_process_is_in_the_cgroup_of_its_slice(divvy, box):
    text = FOUR + "srun bash -c 'sleep 0.3; cat /proc/self/cgroup | tr \"\\n\" \" \"; echo'\n"
    job, log = submit(divvy, box, text)
    shown = divvy.wait(job)
    assert shown["state"] == "completed"
    if "task-" not in log.read_text():
        pytest.skip("this host holds no job in cgroups")
    for i in range(4):
        assert f"task-{i}" in log.read_text()


def test_steps_take_a_free_slice_or_wait_for_one(divvy, box):
    text = "#SBATCH --gres=gpu:1g.10gb:2\n" + (
        "for i in 1 2 3 4; do srun -n1 bash -c 'mkdir $DIVVY_TASK_ID || echo taken; sleep 0.2; "
        "echo step; rmdir $DIVVY_TASK_ID' & done; wait\n")
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "completed"
    assert log.read_text().split() == ["step"] * 4


def test_the_worst_status_is_srun_s(divvy, box):
    text = "#SBATCH --ntasks=3\n" + "srun bash -c 'exit $((SLURM_PROCID * 3))'\necho got $?\n" \
        "srun -n 2 bash -c 'kill -9 $$'\necho got $?\nsrun ./nothing-there\necho got $?\n"
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "completed"
    said = log.read_text()
    assert [line for line in said.splitlines() if line.startswith("got")] == ["got 6", "got 137", "got 127"]
    assert "process 2 ended with status 6" in said and "nothing-there" in said


def test_output_files_and_names(divvy, box):
    text = ("#SBATCH --ntasks=2 -J fit\n#SBATCH -o %x-%j.out\n#SBATCH -e %x-%j.err\n"
            "#SBATCH --chdir=/tmp\n"
            "echo out; echo err >&2; echo $SLURM_SUBMIT_DIR $PWD\n"
            f"srun -o {box.folder}/p%t bash -c 'echo $SLURM_PROCID'\n")
    path = box.folder / "job.sh"
    path.write_text("#!/bin/bash\n" + text)
    job = divvy.submit(path, cwd=box.folder)
    assert divvy.wait(job)["state"] == "completed"
    assert (box.folder / f"fit-{job}.out").read_text() == f"out\n{box.folder} /tmp\n"
    assert (box.folder / f"fit-{job}.err").read_text() == "err\n"
    assert [(box.folder / f"p{i}").read_text() for i in (0, 1)] == ["0\n", "1\n"]


def test_each_line_says_which_process_it_is_of(divvy, box):
    text = FOUR + (f"srun -l -o {box.folder}/all bash -c 'echo a; echo b >&2; printf c'\n"
                   "srun -n1 --label bash -c 'echo only; exit 3'\necho got $?\n")
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "completed"
    lines = (box.folder / "all").read_text().splitlines()
    assert sorted(lines) == [f"{i}: {word}" for i in range(4) for word in "abc"]
    assert "0: only" in log.read_text().splitlines() and "got 3" in log.read_text()
    assert "left out" not in log.read_text()


def test_labelled_output_that_is_lost_is_no_success(divvy, box):
    text = FOUR + "srun --label seq 20000 >/dev/full\necho got $?\nsrun --label echo a >/dev/null\necho got $?\n"
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "completed"
    said = log.read_text()
    assert [line for line in said.splitlines() if line.startswith("got")] == ["got 1", "got 0"], said
    assert "what process 3 wrote could not be passed on: No space left on device" in said


def test_labels_wait_for_a_reader_whatever_the_pipe_says(divvy, box):
    (box.folder / "shy.py").write_text(
        "import fcntl, os, subprocess, sys, time\n"
        "ours, its = os.pipe()\n"
        "fcntl.fcntl(its, fcntl.F_SETFL, fcntl.fcntl(its, fcntl.F_GETFL) | os.O_NONBLOCK)\n"
        "srun = subprocess.Popen(['srun', '--label', 'seq', '30000'], stdout=its)\n"
        "os.close(its)\n"
        "time.sleep(0.5)\n"
        "lines = open(ours).read().splitlines()\n"
        "print('lines', len(lines), len(set(lines)), 'got', srun.wait())\n")
    job, log = submit(divvy, box, FOUR + f"{sys.executable} {box.folder}/shy.py\n")
    assert divvy.wait(job)["state"] == "completed"
    assert "lines 120000 120000 got 0" in log.read_text()


def test_signals_go_on_and_the_end_of_the_job_ends_all(divvy, box):
    text = FOUR + ("srun bash -c 'trap \"echo heard; exit 7\" USR1; echo up; while :; do sleep 0.05; done' &\n"
                   "until [ $(grep -c up log) = 4 ]; do sleep 0.05; done\n"
                   "kill -USR1 $!; wait $!; echo got $?\n"
                   "srun sleep 1000 & echo again; wait\n")
    job, log = submit(divvy, box, text)
    until(lambda: log.exists() and "again" in log.read_text(), "the second step begins")
    said = log.read_text()
    assert said.count("heard") == 4 and "got 7" in said
    divvy.run("cancel", job)
    assert divvy.wait(job)["state"] == "cancelled"
    assert not [p for p in divvy.processes() if b"sleep\x001000" in open(f"/proc/{p}/cmdline", "rb").read()]


def test_a_killed_daemon_leaves_steps_alone_and_more_can_begin(divvy, box):
    text = FOUR + ("srun bash -c 'echo up; until [ -e go ]; do sleep 0.05; done; echo done'\n"
                   "srun bash -c 'echo second'\n")
    job, log = submit(divvy, box, text)
    until(lambda: log.exists() and log.read_text().count("up") == 4, "the step runs")
    divvy.kill()
    (box.folder / "go").touch()
    until(lambda: log.read_text().count("second") == 4, "the next step ran without a daemon")
    divvy.start()
    assert divvy.wait(job)["state"] == "completed"
    assert log.read_text().count("done") == 4


def test_what_srun_cannot_do_it_says(divvy, box):
    text = "#SBATCH --ntasks=1\nsrun --multi-prog x\necho got $?\nsrun -N 2 true\nsrun\nsrun --nonsense true\n"
    job, log = submit(divvy, box, text)
    assert divvy.wait(job)["state"] == "failed"
    said = log.read_text()
    assert "got 125" in said and "SLURM_PROCID" in said and "one machine" in said
    assert "which command" in said and "--nonsense" in said


def test_several_slices_in_a_container_are_refused(divvy, box):
    path = box.folder / "job.sh"
    path.write_text("#!/bin/bash\n" + FOUR + "srun true\n")
    done = divvy.run("submit", "--container", "docker.io/library/busybox", path, check=False)
    assert done.returncode == 2 and "no srun" in done.stderr
