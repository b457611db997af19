"""NVIDIA's own command, unmodified, on the simulated driver."""
import re
import subprocess

import pytest

import harness

MIG_LINE = re.compile(r"^  MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[0-9a-f-]{36})\)$", re.M)


def test_lists_the_cards(nvidia_smi):
    lines = nvidia_smi("-L").stdout.splitlines()
    assert len(lines) == 2
    for index, line in enumerate(lines):
        assert re.fullmatch(rf"GPU {index}: NVIDIA A100-SXM4-80GB \(UUID: GPU-[0-9a-f-]{{36}}\)", line)


def test_lists_the_slices(sliced, nvidia_smi):
    found = MIG_LINE.findall(nvidia_smi("-L").stdout)
    assert sorted(name for name, _, _ in found) == ["2g.20gb", "2g.20gb", "3g.40gb"]
    assert len({uuid for _, _, uuid in found}) == 3


def test_draws_its_plain_table(nvidia_smi):
    shown = nvidia_smi().stdout
    assert shown.count("NVIDIA A100-SXM4-80GB") == 2
    assert re.search(r"\d+MiB / 81920MiB", shown)
    assert "No running processes found" in shown
    assert "MIG devices" not in shown


def test_draws_its_mig_table(sliced, nvidia_smi):
    shown = nvidia_smi().stdout
    assert "Enabled" in shown
    table = shown.split("MIG devices", 1)[1]
    # one line an instance: GPU, GI, CI, MIG device, memory
    rows = re.findall(r"^\|\s+0\s+(\d+)\s+(\d+)\s+(\d+)\s+\|", table, re.M)
    assert len(rows) == 3
    assert sorted(int(device) for _, _, device in rows) == [0, 1, 2]


def test_the_table_shows_who_uses_a_slice(sliced, nvidia_smi):
    probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "1G", "--seconds", "20"],
                             env=sliced.env, stdout=subprocess.DEVNULL)
    try:
        shown = harness.until(
            lambda: (lambda s: s if str(probe.pid) in s else None)(nvidia_smi().stdout),
            "the probe stands in the process table")
        row = next(line for line in shown.splitlines() if f" {probe.pid} " in line)
        assert " C " in row and "divvy-probe" in row
    finally:
        probe.kill()
        probe.wait()


def test_reports_everything(nvidia_smi):
    shown = nvidia_smi("-q").stdout
    assert re.search(r"Attached GPUs\s+: 2", shown)
    assert len(re.findall(r"Product Name\s+: NVIDIA A100-SXM4-80GB", shown)) == 2
    assert re.search(r"FB Memory Usage\n\s+Total\s+: 81920 MiB", shown)


def test_reports_everything_of_a_sliced_card(sliced, nvidia_smi):
    shown = nvidia_smi("-q", "-i", "0").stdout
    assert re.search(r"MIG Mode\n\s+Current\s+: Enabled\n\s+Pending\s+: Enabled", shown)
    assert len(re.findall(r"^\s+MIG Device$", shown, re.M)) == 3


def test_answers_queries(sliced, nvidia_smi):
    shown = nvidia_smi("--query-gpu=name,memory.total,mig.mode.current", "--format=csv").stdout
    assert shown.splitlines() == [
        "name, memory.total [MiB], mig.mode.current",
        "NVIDIA A100-SXM4-80GB, 81920 MiB, Enabled",
        "NVIDIA A100-SXM4-80GB, 81920 MiB, Disabled",
    ]


def test_answers_for_processes(machine, nvidia_smi):
    probe = subprocess.Popen([harness.PROGRAMS / "divvy-probe", "--mem", "2G", "--seconds", "20"],
                             env=machine.env, stdout=subprocess.DEVNULL)
    try:
        def listed():
            rows = nvidia_smi("--query-compute-apps=pid,used_memory,name",
                              "--format=csv,noheader").stdout.splitlines()
            return rows if rows and int(rows[0].split(", ")[1].split()[0]) >= 2048 else None
        rows = harness.until(listed, "the probe is listed with its memory")
        assert len(rows) == 1
        pid, memory, name = rows[0].split(", ")
        assert int(pid) == probe.pid and name.endswith("divvy-probe")
        assert int(memory.split()[0]) < 3072
    finally:
        probe.kill()
        probe.wait()


def test_turns_mig_on_and_off(nvidia_smi):
    query = ("-i", "0", "--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader")
    nvidia_smi("-i", "0", "-mig", "1")
    assert nvidia_smi(*query).stdout.strip() == "Enabled, Enabled"
    nvidia_smi("-i", "0", "-mig", "0")
    assert nvidia_smi(*query).stdout.strip() == "Disabled, Disabled"


@pytest.mark.parametrize("option, words", [
    ("-lgip", ["MIG 1g.10gb", "MIG 2g.20gb", "MIG 3g.40gb", "MIG 4g.40gb", "MIG 7g.80gb"]),
    ("-lgipp", ["{0,1,2,3,4,5,6}:1", "{0,2,4}:2", "{0,4}:4", "{0}:8"]),
    ("-lgi", ["MIG 3g.40gb", "MIG 2g.20gb"]),
    ("-lcip", ["MIG 3g.40gb", "MIG 1c.3g.40gb"]),
    ("-lci", ["MIG 3g.40gb", "MIG 2g.20gb"]),
])
def test_lists_geometry(sliced, nvidia_smi, option, words):
    shown = nvidia_smi("mig", "-i", "0", option).stdout
    assert not [word for word in words if word not in shown], shown


def test_cuts_and_clears(nvidia_smi):
    nvidia_smi("-i", "0", "-mig", "1")
    made = nvidia_smi("mig", "-i", "0", "-cgi", "9,14,14", "-C").stdout
    assert len(re.findall(r"Successfully created GPU instance ID", made)) == 3
    assert len(re.findall(r"Successfully created compute instance ID", made)) == 3
    assert nvidia_smi("mig", "-i", "0", "-dgi", check=False).returncode != 0  # slices inside
    nvidia_smi("mig", "-i", "0", "-dci")
    nvidia_smi("mig", "-i", "0", "-dgi")
    assert "No GPU instances found" in nvidia_smi("mig", "-i", "0", "-lgi", check=False).stdout


def test_refuses_what_does_not_fit(sliced, nvidia_smi):
    refused = nvidia_smi("mig", "-i", "0", "-cgi", "0", check=False)
    assert refused.returncode != 0
    assert "Insufficient Resources" in refused.stdout
