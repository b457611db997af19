"""A few NVML calls by hand, for tests that cut cards: python3 nvml_calls.py VERB NUMBER...

Prints one JSON value: {"rc": nvmlReturn_t, ...}.

    mode CARD 0|1                 nvmlDeviceSetMigMode; "activation" beside rc
    create CARD PROFILE START CI  a GPU instance at START and a compute instance of profile CI;
                                  START -1 leaves the place to the driver, CI -1 makes none
    destroy CARD GI               the instance with all that is in it
    compute CARD MODE             nvmlDeviceSetComputeMode
    clocks CARD MEM SM            nvmlDeviceSetApplicationsClocks
    lock CARD SM                  nvmlDeviceSetGpuLockedClocks
    settings CARD                 tells "compute", "mem" and "sm" (application clocks), "now" (SM)
"""
import ctypes
import json
import os
import sys

NVML = ctypes.CDLL(os.environ["DIVVY_NVML"])


class Placement(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint), ("size", ctypes.c_uint)]


class GpuInstanceInfo(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("id", ctypes.c_uint), ("profile", ctypes.c_uint),
                ("placement", Placement)]


def card(ordinal):
    handle = ctypes.c_void_p()
    rc = NVML.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(ordinal), ctypes.byref(handle))
    assert rc == 0, rc
    return handle


def mode(ordinal, on):
    activation = ctypes.c_int(-1)
    rc = NVML.nvmlDeviceSetMigMode(card(ordinal), ctypes.c_uint(on), ctypes.byref(activation))
    return {"rc": rc, "activation": activation.value}


def size_at(device, profile, start):
    count = ctypes.c_uint(32)
    places = (Placement * 32)()
    NVML.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, ctypes.c_uint(profile), places,
                                                       ctypes.byref(count))
    return next((p.size for p in places[:count.value] if p.start == start), 1)


def create(ordinal, profile, start, ci_profile):
    device = card(ordinal)
    instance, part = ctypes.c_void_p(), ctypes.c_void_p()
    if start < 0:
        rc = NVML.nvmlDeviceCreateGpuInstance(device, ctypes.c_uint(profile),
                                              ctypes.byref(instance))
    else:
        place = Placement(start, size_at(device, profile, start))
        rc = NVML.nvmlDeviceCreateGpuInstanceWithPlacement(
            device, ctypes.c_uint(profile), ctypes.byref(place), ctypes.byref(instance))
    if rc:
        return {"rc": rc}
    info = GpuInstanceInfo()
    NVML.nvmlGpuInstanceGetInfo(instance, ctypes.byref(info))
    if ci_profile >= 0:
        rc = NVML.nvmlGpuInstanceCreateComputeInstance(instance, ctypes.c_uint(ci_profile),
                                                       ctypes.byref(part))
    return {"rc": rc, "gi": info.id, "start": info.placement.start}


def destroy(ordinal, gi):
    instance = ctypes.c_void_p()
    rc = NVML.nvmlDeviceGetGpuInstanceById(card(ordinal), ctypes.c_uint(gi),
                                           ctypes.byref(instance))
    if rc:
        return {"rc": rc}
    for ci in range(8):
        part = ctypes.c_void_p()
        found = NVML.nvmlGpuInstanceGetComputeInstanceById(instance, ctypes.c_uint(ci),
                                                           ctypes.byref(part))
        if found == 0:
            rc = NVML.nvmlComputeInstanceDestroy(part)
            if rc:
                return {"rc": rc}
    return {"rc": NVML.nvmlGpuInstanceDestroy(instance)}


def compute(ordinal, mode):
    return {"rc": NVML.nvmlDeviceSetComputeMode(card(ordinal), ctypes.c_uint(mode))}


def clocks(ordinal, mem, sm):
    return {"rc": NVML.nvmlDeviceSetApplicationsClocks(card(ordinal), ctypes.c_uint(mem),
                                                       ctypes.c_uint(sm))}


def lock(ordinal, sm):
    return {"rc": NVML.nvmlDeviceSetGpuLockedClocks(card(ordinal), ctypes.c_uint(sm),
                                                    ctypes.c_uint(sm))}


def settings(ordinal):
    def ask(function, *words):
        value = ctypes.c_uint()
        rc = function(card(ordinal), *map(ctypes.c_uint, words), ctypes.byref(value))
        return value.value if rc == 0 else None
    return {"rc": 0, "compute": ask(NVML.nvmlDeviceGetComputeMode),
            "sm": ask(NVML.nvmlDeviceGetApplicationsClock, 1),
            "mem": ask(NVML.nvmlDeviceGetApplicationsClock, 2),
            "now": ask(NVML.nvmlDeviceGetClockInfo, 1)}


if __name__ == "__main__":
    for name in ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceSetMigMode"):
        getattr(NVML, name).restype = ctypes.c_int
    started = NVML.nvmlInit_v2()
    verb = {"mode": mode, "create": create, "destroy": destroy, "compute": compute,
            "clocks": clocks, "lock": lock, "settings": settings}[sys.argv[1]]
    print(json.dumps(verb(*map(int, sys.argv[2:])) if started == 0 else {"rc": started}))
