"""NVIDIA's Python binding: every function of the ABI, and the stories that change things."""
import json
import pathlib
import textwrap

import harness

HERE = pathlib.Path(__file__).parent
FUNCTIONS = HERE / "nvml_functions.tsv"
UNINITIALIZED, INVALID_ARGUMENT, FUNCTION_NOT_FOUND, UNKNOWN = 1, 2, 13, 999

# what any monitoring program asks first: these must be known on a whole card
KNOWN = """GetName GetUUID GetIndex GetMinorNumber GetPciInfo_v3 GetBrand GetArchitecture
    GetCudaComputeCapability GetMemoryInfo GetMemoryInfo_v2 GetUtilizationRates GetTemperature
    GetPowerUsage GetEnforcedPowerLimit GetClockInfo GetMaxClockInfo GetPerformanceState
    GetComputeRunningProcesses_v3 GetGraphicsRunningProcesses_v3 GetMigMode GetMaxMigDeviceCount
    GetSerial GetComputeMode GetPersistenceMode GetSupportedEventTypes""".split()

# there is no excluded card 0, and without GPM there is no sample to hand in
NOTHING_TO_ASK_FOR = {"nvmlGetExcludedDeviceInfoByIndex", "nvmlGpmSampleGet",
                      "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"}


def python(env, script, **more):
    return harness.run("/usr/bin/python3", "-c", textwrap.dedent(script), env=env, **more)


def walk(env):
    """Every answer, by (symbol, kind of handle)."""
    done = harness.run("/usr/bin/python3", HERE / "walk_nvml.py", FUNCTIONS, env=env, check=False)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said and said[-1].get("done"), f"died in {said[-1:]}, {done.returncode}: {done.stderr}"
    answers = {(a["symbol"], a["on"]): a for a in said if "symbol" in a}
    return answers, int(said[-1]["driver"].split(".")[0])


def test_every_function_answers(sliced, nvidia_ml_py):
    answers, branch = walk(nvidia_ml_py)
    since = dict(line.split() for line in FUNCTIONS.read_text().splitlines()
                 if line and not line.startswith("#"))
    absent = sorted({symbol for (symbol, _), a in answers.items()
                     if a["code"] == FUNCTION_NOT_FOUND and int(since[symbol]) <= branch})
    assert not absent, f"driver {branch} has these, the simulated library has not"
    odd = sorted(f"{symbol} on {kind}: {a['value']}" for (symbol, kind), a in answers.items()
                 if a["code"] in (UNINITIALIZED, UNKNOWN))
    assert not odd
    refused = {symbol for (symbol, _), a in answers.items() if a["code"] == INVALID_ARGUMENT}
    assert refused <= NOTHING_TO_ASK_FOR
    lacking = [name for name in KNOWN if answers[f"nvmlDevice{name}", "whole"]["code"] != 0]
    assert not lacking, "a whole card must know these"


def test_a_sliced_card_knows_no_utilisation(sliced, nvidia_ml_py):
    answers, _ = walk(nvidia_ml_py)
    for kind in ("parent", "mig"):
        assert answers["nvmlDeviceGetUtilizationRates", kind]["code"] == 3  # NOT_SUPPORTED
    assert "MIG" in answers["nvmlDeviceGetName", "mig"]["value"]
    assert answers["nvmlDeviceGetUUID", "mig"]["value"].startswith("MIG-")


def test_a_slice_is_cut_where_it_was_asked(sliced, nvidia_ml_py):
    python(nvidia_ml_py, """
        import ctypes, pynvml as n
        n.nvmlInit()
        card = n.nvmlDeviceGetHandleByIndex(1)
        n.nvmlDeviceSetMigMode(card, 1)
        assert n.nvmlDeviceGetMigMode(card) == [1, 1]
        two = n.nvmlDeviceGetGpuInstanceProfileInfo(card, n.NVML_GPU_INSTANCE_PROFILE_2_SLICE)
        assert n.nvmlDeviceGetGpuInstanceRemainingCapacity(card, two.id) == 3
        where = n.c_nvmlGpuInstancePlacement_t()
        where.start, where.size = 2, 2
        gi = n.nvmlDeviceCreateGpuInstanceWithPlacement(card, two.id, ctypes.byref(where))
        info = n.nvmlGpuInstanceGetInfo(gi)
        assert (info.placement.start, info.placement.size, info.profileId) == (2, 2, two.id)
        assert n.nvmlDeviceGetGpuInstanceRemainingCapacity(card, two.id) == 2
        try:
            n.nvmlDeviceCreateGpuInstanceWithPlacement(card, two.id, ctypes.byref(where))
            raise SystemExit("the same place was given twice")
        except n.NVMLError_InsufficientResources:
            pass
        one = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi, n.NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE, 0)
        ci = n.nvmlGpuInstanceCreateComputeInstance(gi, one.id)
        try:
            n.nvmlGpuInstanceDestroy(gi)
            raise SystemExit("a GPU instance went away under its compute instance")
        except n.NVMLError_InUse:
            pass
        mig = n.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
        uuid = n.nvmlDeviceGetUUID(mig)
        assert n.nvmlDeviceGetGpuInstanceId(mig) == info.id
        n.nvmlComputeInstanceDestroy(ci)
        n.nvmlGpuInstanceDestroy(gi)
        again = n.nvmlDeviceCreateGpuInstanceWithPlacement(card, two.id, ctypes.byref(where))
        n.nvmlGpuInstanceCreateComputeInstance(again, one.id)
        mig = n.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
        assert n.nvmlDeviceGetUUID(mig) == uuid, "the same place has the same UUID"
    """)


def test_all_processes_share_one_machine(machine, nvidia_ml_py):
    python(nvidia_ml_py, """
        import pynvml as n
        n.nvmlInit()
        n.nvmlDeviceSetMigMode(n.nvmlDeviceGetHandleByIndex(0), 1)
    """)
    seen = python(nvidia_ml_py, """
        import pynvml as n
        n.nvmlInit()
        print(n.nvmlDeviceGetMigMode(n.nvmlDeviceGetHandleByIndex(0))[0])
    """).stdout
    assert seen.strip() == "1"


def test_debians_old_binding_reads_the_cards(machine, debian_pynvml):
    shown = python(debian_pynvml, """
        import pynvml as n
        n.nvmlInit()
        for i in range(n.nvmlDeviceGetCount()):
            card = n.nvmlDeviceGetHandleByIndex(i)
            name = n.nvmlDeviceGetName(card)
            print(name.decode() if isinstance(name, bytes) else name,
                  n.nvmlDeviceGetMemoryInfo(card).total >> 20)
    """).stdout
    assert shown.splitlines() == ["NVIDIA A100-SXM4-80GB 81920"] * 2
