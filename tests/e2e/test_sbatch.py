"""Scripts that were written for Slurm's sbatch."""
import pytest

SWEEP = """#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --partition=gpu          # there is none here
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1g.10gb:1
#SBATCH --mem=512
#SBATCH -t 0-01:00:00
#SBATCH -o out-%A_%a.log
#SBATCH --array=1-3%2
#SBATCH --signal=B:USR1@30
#SBATCH --mail-type=END,FAIL
echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_NTASKS $SLURM_GPUS_ON_NODE" \\
     "$SLURM_CPUS_PER_TASK $SLURM_JOB_NAME $SLURM_SUBMIT_DIR"
"""


def script(box, text):
    path = box.folder / "job.sh"
    path.write_text(text)
    return path


def test_an_array_script_runs_as_it_is(divvy, box):
    done = divvy.run("submit", "--json", script(box, SWEEP), cwd=box.folder)
    assert "--partition" in done.stderr and "--mail-type" in done.stderr
    job = int(done.stdout.split('"id":')[1].split(",")[0])
    shown = divvy.show(job)
    assert (shown["name"], shown["asks"], shown["limit_us"]) == ("sweep", "1g.10gb", 3600 * 10**6)
    assert (shown["cpu_milli"], shown["mem_bytes"]) == (2000, 512 << 20)
    assert divvy.run("wait", job).returncode == 0
    for i in (1, 2, 3):
        said = (box.folder / f"out-{job}_{i}.log").read_text()
        assert said == f"{job} {i} 1 1 2 sweep {box.folder}\n"


def test_whole_cards_for_torchrun(divvy, box):
    text = ("#!/bin/bash\n#SBATCH --gpus=a100:2 --time=10\n#SBATCH --exclusive\n"
            'echo "$SLURM_JOB_ID $SLURM_GPUS_ON_NODE $CUDA_VISIBLE_DEVICES"\n')
    job = divvy.submit("-o", box.folder / "log", script(box, text))
    assert divvy.wait(job)["state"] == "completed"
    said = (box.folder / "log").read_text().split()
    assert said[:2] == [str(job), "2"] and said[2].count("GPU-") == 2


def test_our_own_lines_and_the_command_line_win(divvy, box):
    text = "#!/bin/sh\n#SBATCH --job-name=theirs --time=1:00:00\n#DIVVY --name ours\ntrue\n"
    shown = divvy.show(divvy.submit("--time", "5m", script(box, text)))
    assert (shown["name"], shown["limit_us"]) == ("ours", 300 * 10**6)


@pytest.mark.parametrize("line, said", [
    ("--nodes=2", "one machine"), ("--ntasks=999", "128"),
    ("--gres=gpu:1 --gpus=2", "already"), ("--time", "value"), ("train.py", "no option"),
    ("--array=5-1", "backwards"), ("--gres=gpu:many:x", "number"),
])
def test_what_contradicts_is_refused_with_its_line(divvy, box, line, said):
    path = script(box, f"#!/bin/sh\n\n#SBATCH {line}\ntrue\n")
    done = divvy.run("submit", path, check=False)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert f"{path}:3" in done.stderr or line.startswith("--array"), done.stderr
