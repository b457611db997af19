"""divvy and nvidia-smi look at the same driver: they must say the same."""
import csv
import re

import harness


def told_by_nvidia_smi(nvidia_smi):
    """uuid -> (name, MiB, MIG mode) of each card, and the UUIDs of its MIG devices."""
    shown = nvidia_smi("--query-gpu=uuid,name,memory.total,mig.mode.current",
                       "--format=csv,noheader,nounits").stdout
    cards = {uuid: (name, int(mib), mode)
             for uuid, name, mib, mode in csv.reader(shown.splitlines(), skipinitialspace=True)}
    slices, card = {}, None
    for line in nvidia_smi("-L").stdout.splitlines():
        uuid = re.search(r"\(UUID: ((?:GPU|MIG)-[0-9a-f-]+)\)", line)[1]
        if uuid.startswith("GPU-"):
            card = uuid
        else:
            slices.setdefault(card, set()).add((uuid, re.search(r"MIG (\S+)", line)[1]))
    return cards, slices


def compare(box, nvidia_smi):
    cards, slices = told_by_nvidia_smi(nvidia_smi)
    told = box.divvy.json("gpus")["cards"]
    assert {card["uuid"] for card in told} == set(cards)
    for card in told:
        name, mib, mode = cards[card["uuid"]]
        assert card["board"]["name"].removeprefix("NVIDIA ") == name.removeprefix("NVIDIA ")
        assert card["mem_total_bytes"] >> 20 == mib
        ours = {(piece["uuid"], piece["profile"]) for piece in card["slices"] or ()}
        assert ours == slices.get(card["uuid"], set())
        assert card["mig_now"] == (mode == "Enabled")


def test_without_a_daemon(box, sliced, nvidia_smi):
    compare(box, nvidia_smi)


def test_with_a_daemon(box, sliced, nvidia_smi):
    box.divvy.start()
    compare(box, nvidia_smi)


def test_while_a_job_holds_a_slice(box, divvy, nvidia_smi):
    job = divvy.submit("--slice", "2g.20gb", "--", harness.PROGRAMS / "divvy-probe",
                       "--mem", "1G", "--seconds", "60")
    divvy.wait_state(job, "running")
    compare(box, nvidia_smi)
    harness.until(lambda: "divvy-probe" in nvidia_smi().stdout, "nvidia-smi shows the job's process")
    divvy.run("cancel", str(job))
    divvy.wait(job)


def test_a_job_sees_through_nvidia_smi_what_it_was_given(box, divvy, nvidia_smi):
    out = box.folder / "seen"
    out.touch(mode=0o666)
    job = divvy.submit("--slice", "1g.10gb", "--output", out, "--",
                       "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert divvy.wait(job)["state"] == "completed"
    uuid = out.read_text().strip()
    _, slices = told_by_nvidia_smi(nvidia_smi)
    assert (uuid, "1g.10gb") in set().union(*slices.values())
