"""walk_nvml.py FUNCTIONS.tsv - calls every NVML function listed through nvidia-ml-py.

Runs in a process of its own, on a machine whose first card has MIG on and one
instance, and whose second has MIG off. Prints a line of JSON before each call
(so that a crash names its function) and one after it.
"""
import ctypes
import inspect
import json
import re
import sys

import pynvml as n

# what calls without a handle, or with words of their own, are given
OWN = {
    "nvmlInit_v2": [], "nvmlInitWithFlags": [0],
    "nvmlErrorString": [n.NVML_ERROR_IN_USE],
    "nvmlDeviceGetHandleByUUIDV": [lambda w: w["uuid"].encode(), n.NVML_UUID_TYPE_ASCII],
    "nvmlDeviceGetTemperatureV": [lambda w: w["device"], 0],
    "nvmlDeviceGetModuleId": [lambda w: w["device"]],
    "nvmlDeviceGetRunningProcessDetailList":
        [lambda w: w["device"], n.nvmlProcessDetailList_v1, n.NVML_PROCESS_MODE_COMPUTE],
    "nvmlDeviceGetAccountingStats": [lambda w: w["device"], 1],
    "nvmlSystemGetProcessName": [lambda w: w["pid"]],
    "nvmlGpmMetricsGet": [lambda w: metrics_request(w)],
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": [lambda w: w["gi"], 0, 0],
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV": [lambda w: w["gi"], 0, 0],
}
# arguments by their names in nvidia-ml-py
WORDS = {
    "device": "device", "handle": "device", "device1": "device", "device2": "other",
    "gpuInstance": "gi", "computeInstance": "ci", "migDevice": "mig",
    "uuid": "uuid", "pciBusId": "bus", "serial": "serial", "eventSet": "events",
    "gpmSample": "sample", "gpuInstanceId": "gi_id", "computeInstanceId": "ci_id",
}
NUMBERS = {
    "index": 0, "pid": 1, "cpuNumber": 0, "p2pIndex": 0, "cpuSetSize": 4, "nodeSetSize": 4,
    "scope": 0, "link": 0, "capability": 0, "counter": 0, "sampling_type": 0, "timeStamp": 0,
    "mode": 0, "sensor": 0, "threshold": 0, "type": 0, "perfPolicyType": 0, "fan": 0,
    "errorType": 0, "counterType": 0, "locationType": 0, "sourceFilter": 0, "level": 30,
    "eventTypes": n.nvmlEventTypeXidCriticalError, "timeoutms": 1, "profile": 0, "engProfile": 0,
    "state": 0, "powerScope": 0, "limit": 300000, "powerLimit": 300000, "minGpuClockMHz": 900,
    "maxGpuClockMHz": 1200, "vgpuTypeId": 1, "vgpuInstance": 1, "result": 0, "flags": 0,
    "computeProfile": 0,
}
STRUCTS = {
    "nvmlDeviceGetPlatformInfo": n.c_nvmlPlatformInfo_v2_t,
    "nvmlDeviceGetCapabilities": n.c_nvmlDeviceCapabilities_v1_t,
    "nvmlDeviceGetNvLinkInfo": n.c_nvmlNvLinkInfo_v2_t,
    "nvmlDeviceGetGpuFabricInfo": n.c_nvmlGpuFabricInfo_t,
    "nvmlDeviceGetGpuFabricInfoV": n.c_nvmlGpuFabricInfo_v2_t,
    "nvmlDeviceGetSramEccErrorStatus": n.c_nvmlEccSramErrorStatus_v1_t,
    "nvmlDeviceGetPciInfoExt": getattr(n, "nvmlPciInfoExt_v1_t", None),
}
# calls whose one argument is a structure that begins with its tag; the event set is at 8
TAGGED = {
    "nvmlSystemEventSetCreate": 0x01000010, "nvmlSystemRegisterEvents": 0x01000018,
    "nvmlSystemEventSetWait": 0x01000020, "nvmlSystemEventSetFree": 0x01000010,
}
# they end the walk's own footing, or have a story of their own in test_nvidia_ml_py.py
STORIES = {
    "nvmlShutdown", "nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstance",
    "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceDestroy",
    "nvmlComputeInstanceDestroy", "nvmlGpuInstanceCreateComputeInstance",
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement", "nvmlEventSetFree", "nvmlGpmSampleFree",
}


def say(**words):
    print(json.dumps(words), flush=True)


def wrapper(symbol):
    """nvidia-ml-py's function for an exact symbol: its own name may lack the suffix."""
    for name in (symbol, re.sub(r"_v\d$", "", symbol)):
        if hasattr(n, name):
            return getattr(n, name)
    return None


def tagged(symbol, world):
    """Calls it on a structure of its own; the first of them makes the set of the others."""
    room = ctypes.create_string_buffer(64)
    ctypes.c_uint.from_buffer(room, 0).value = TAGGED[symbol]
    at = {"nvmlSystemRegisterEvents": 16}.get(symbol, 8)
    where = ctypes.c_void_p.from_buffer(room, at)
    where.value = world.get("system_set")
    code = n._nvmlGetFunctionPointer(symbol)(room)
    if symbol == "nvmlSystemEventSetCreate":
        world["system_set"] = where.value
    return code


def raw(symbol, handle):
    """Calls the symbol itself with room for any structure behind its pointers."""
    room = ctypes.create_string_buffer(65536)
    more = ctypes.create_string_buffer(65536)
    count = ctypes.c_uint(0)
    function = n._nvmlGetFunctionPointer(symbol)
    if symbol.endswith(("PossiblePlacements", "PossiblePlacements_v2", "GpuInstances",
                        "ComputeInstances")):
        count.value = 64
        return function(handle, 0, room, ctypes.byref(count))
    return function(handle, room, more, ctypes.byref(count))


def arguments(symbol, function, world):
    given = []
    names = list(inspect.signature(function).parameters.values())
    for parameter in names:
        if parameter.default is not inspect.Parameter.empty:
            break
        if parameter.name in WORDS:
            given.append(world[WORDS[parameter.name]])
        elif parameter.name == "profileId":
            given.append(0 if symbol.startswith("nvmlGpuInstance") else world["profile_id"])
        elif parameter.name == "fieldIds":
            given.append([n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])
        elif parameter.name in NUMBERS:
            given.append(NUMBERS[parameter.name])
        else:
            return None
    return given


def metrics_request(world):
    request = n.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, 1
    request.sample1 = request.sample2 = world["sample"]
    request.metrics[0].metricId = n.NVML_GPM_METRIC_SM_UTIL
    return request


def call(symbol, world):
    if symbol in OWN:
        return wrapper(symbol)(*[a(world) if callable(a) else a for a in OWN[symbol]])
    if STRUCTS.get(symbol):
        structure = STRUCTS[symbol]()
        if symbol == "nvmlDeviceGetPciInfoExt":
            structure.version = n.nvmlPciInfoExt_v1  # the binding leaves it 0
        pointer = ctypes.byref(structure)
        code = wrapper(symbol)(world["device"], pointer)
        if code:
            raise n.NVMLError(code)
        return structure
    if symbol in TAGGED:
        code = tagged(symbol, world)
        if code:
            raise n.NVMLError(code)
        return "tagged"
    function = wrapper(symbol)
    given = arguments(symbol, function, world) if function else None
    if given is None:
        handle = world["gi"] if symbol.startswith("nvmlGpuInstance") else world["device"]
        code = raw(symbol, handle)
        if code:
            raise n.NVMLError(code)
        return "raw"
    return function(*given)


def worlds():
    """The three kinds of handle, each with what else a call may need."""
    parent, plain = (n.nvmlDeviceGetHandleByIndex(i) for i in (0, 1))
    mig = n.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    gi_id, ci_id = n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig)
    gi = n.nvmlDeviceGetGpuInstanceById(parent, gi_id)
    common = {
        "mig": mig, "gi": gi, "ci": n.nvmlGpuInstanceGetComputeInstanceById(gi, ci_id),
        "gi_id": gi_id, "ci_id": ci_id, "profile_id": n.nvmlGpuInstanceGetInfo(gi).profileId,
        "bus": n.nvmlDeviceGetPciInfo(plain).busId, "serial": n.nvmlDeviceGetSerial(plain),
        "events": n.nvmlEventSetCreate(), "pid": 1,
    }
    try:
        common["sample"] = n.nvmlGpmSampleAlloc()
    except n.NVMLError:
        common["sample"] = None
    for kind, handle, other in (("whole", plain, parent), ("parent", parent, plain),
                                ("mig", mig, plain)):
        yield kind, {**common, "device": handle, "other": other,
                     "uuid": n.nvmlDeviceGetUUID(handle)}


def main():
    n.nvmlInit()
    symbols = [line.split("\t")[0] for line in open(sys.argv[1]) if line.startswith("nvml")]
    for kind, world in worlds():
        for symbol in symbols:
            if symbol in STORIES:
                continue
            say(calling=symbol, on=kind)
            try:
                value = call(symbol, world)
                say(symbol=symbol, on=kind, code=0, value=str(value)[:200])
            except n.NVMLError as error:
                say(symbol=symbol, on=kind, code=error.value, value=str(error))
    say(driver=n.nvmlSystemGetDriverVersion(), done=True)


main()
