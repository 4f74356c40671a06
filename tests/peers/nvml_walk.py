#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Walks simulated boards with NVIDIA's own nvidia-ml-py; speaks TAP, one line a board.

    nvml_walk.py TRANCHE FOLDER

The boards and their tables come from `tranche board show --json`; the library is the
libnvidia-ml.so.1 that the dynamic linker finds. For each board: inventory, MIG mode,
profiles, placements, create with and without placement, list, attributes, destroy."""
import json
import os
import subprocess
import sys
from ctypes import byref, c_uint

import pynvml as nvml

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Checks  # noqa: E402


class Difference(Exception):
    """The library and the table disagree."""


def same(what, seen, expected):
    if seen != expected:
        raise Difference(f"{what}: {seen!r} where {expected!r} is expected")


def fails(error, function, *arguments):
    try:
        function(*arguments)
    except nvml.NVMLError as failure:
        same(f"{function.__name__}{arguments[1:]}", failure.value, error)
        return
    raise Difference(f"{function.__name__}{arguments[1:]} did not fail")


def known(what, seen, table):
    if table is not None:
        same(what, seen, table)


def array_of(kind, function, parent, profile_id, room):
    """NVML fills an array that the caller made; its number comes back in a second pointer."""
    count = c_uint(0)
    array = (kind * room)()
    function(parent, profile_id, array, byref(count))
    return [array[i] for i in range(count.value)]


def placements_of(gpu, profile_id):
    count = c_uint(0)
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile_id, None, byref(count))
    return array_of(nvml.c_nvmlGpuInstancePlacement_t, nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu,
                    profile_id, count.value)


def walk_inventory(gpu, board):
    same("count", nvml.nvmlDeviceGetCount(), 1)
    uuid = nvml.nvmlDeviceGetUUID(gpu)
    same("by UUID", nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(uuid)), 0)
    pci = nvml.nvmlDeviceGetPciInfo(gpu)
    same("by PCI", nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByPciBusId(pci.busId)), uuid)
    serial = nvml.nvmlDeviceGetSerial(gpu)
    same("by serial", nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleBySerial(serial)), uuid)
    if board["pci_device_ids"]:
        same("PCI device", f"0x{pci.pciDeviceId:08X}" in board["pci_device_ids"], True)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(gpu)
    same("compute capability", f"{major}.{minor}", board["compute_capability"])
    memory = nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2)
    same("memory", memory.total, memory.free + memory.used + memory.reserved)
    for reading in (nvml.nvmlDeviceGetName, nvml.nvmlDeviceGetBrand, nvml.nvmlDeviceGetPowerUsage,
                    nvml.nvmlDeviceGetTotalEnergyConsumption, nvml.nvmlDeviceGetEnforcedPowerLimit,
                    nvml.nvmlDeviceGetPersistenceMode, nvml.nvmlDeviceGetBAR1MemoryInfo,
                    nvml.nvmlDeviceGetVbiosVersion, nvml.nvmlDeviceGetComputeRunningProcesses,
                    nvml.nvmlDeviceGetCurrentClocksEventReasons, nvml.nvmlDeviceGetEccMode):
        reading(gpu)
    nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
    nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)


def walk_mode(gpu):
    same("mode", nvml.nvmlDeviceGetMigMode(gpu), [0, 0])
    same("MIG devices", nvml.nvmlDeviceGetMaxMigDeviceCount(gpu), 0)
    nvml.nvmlDeviceGetUtilizationRates(gpu)
    same("activation", nvml.nvmlDeviceSetMigMode(gpu, nvml.NVML_DEVICE_MIG_ENABLE), nvml.NVML_SUCCESS)
    same("mode", nvml.nvmlDeviceGetMigMode(gpu), [1, 1])
    fails(nvml.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetUtilizationRates, gpu)


def walk_profile(gpu, profile):
    info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile["nvml_enum"], version=2)
    name = profile["name"]
    same("name", info.name, f"MIG {name}")
    known(f"{name} id", info.id, profile["profile_id"])
    known(f"{name} memory", info.memorySizeMB, profile["memory_mib"])
    known(f"{name} multiprocessors", info.multiprocessorCount, profile["sm"])
    same(f"{name} slices", info.sliceCount, profile["compute_slices"])
    same(f"{name} count", info.instanceCount, profile["max_instances"])
    same(f"{name} by id", nvml.nvmlDeviceGetGpuInstanceProfileInfoById(gpu, info.id).sliceCount, info.sliceCount)
    seen = [(p.start, p.size) for p in placements_of(gpu, info.id)]
    same(f"{name} placements", seen, [(start, profile["placement_size"]) for start in profile["placement_starts"]])
    walk_placements(gpu, info, profile)


def walk_placements(gpu, info, profile):
    """One instance at each start, with the compute instance that fills it, and away again."""
    capacity = nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, info.id)
    same(f"{profile['name']} capacity", capacity, profile["max_instances"])
    full = next(ci for ci in profile["compute_instance_profiles"] if ci["default"])
    for placement in placements_of(gpu, info.id):
        instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, info.id, byref(placement))
        got = nvml.nvmlGpuInstanceGetInfo(instance)
        same("placement", (got.profileId, got.placement.start), (info.id, placement.start))
        fails(nvml.NVML_ERROR_INSUFFICIENT_RESOURCES, nvml.nvmlDeviceCreateGpuInstanceWithPlacement, gpu, info.id,
              byref(placement))
        compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, full["profile_id"])
        walk_mig_device(gpu, nvml.nvmlComputeInstanceGetInfo(compute).device, got.id, profile)
        fails(nvml.NVML_ERROR_IN_USE, nvml.nvmlGpuInstanceDestroy, instance)
        nvml.nvmlComputeInstanceDestroy(compute)
        nvml.nvmlGpuInstanceDestroy(instance)
        fails(nvml.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetGpuInstanceById, gpu, got.id)


def walk_mig_device(gpu, device, gi, profile):
    uuid = nvml.nvmlDeviceGetUUID(device)
    same("MIG UUID", uuid[:4], "MIG-")
    same("MIG by UUID", nvml.nvmlDeviceGetGpuInstanceId(nvml.nvmlDeviceGetHandleByUUID(uuid)), gi)
    same("is MIG", nvml.nvmlDeviceIsMigDeviceHandle(device).value, 1)
    parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    same("parent", nvml.nvmlDeviceGetUUID(parent), nvml.nvmlDeviceGetUUID(gpu))
    same("name", nvml.nvmlDeviceGetName(device).endswith(f" MIG {profile['name']}"), True)
    attributes = nvml.nvmlDeviceGetAttributes(device)
    same("slices", attributes.gpuInstanceSliceCount, profile["compute_slices"])
    same("memory", attributes.memorySizeMB, nvml.nvmlDeviceGetMemoryInfo(device).total >> 20)


def walk_fill(gpu, profile):
    """The driver's choice until it is full; the list and the MIG devices agree."""
    info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile["nvml_enum"], version=2)
    full = next(ci for ci in profile["compute_instance_profiles"] if ci["default"])
    for _ in range(profile["max_instances"]):
        instance = nvml.nvmlDeviceCreateGpuInstance(gpu, info.id)
        nvml.nvmlGpuInstanceCreateComputeInstance(instance, full["profile_id"])
    fails(nvml.NVML_ERROR_INSUFFICIENT_RESOURCES, nvml.nvmlDeviceCreateGpuInstance, gpu, info.id)
    instances = array_of(nvml.c_nvmlGpuInstance_t, nvml.nvmlDeviceGetGpuInstances, gpu, info.id, info.instanceCount)
    same(f"{profile['name']} listed", len(instances), profile["max_instances"])
    devices = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            devices.append(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)))
        except nvml.NVMLError_NotFound:
            continue
    same("distinct MIG devices", len(set(devices)), profile["max_instances"])
    for instance in instances:
        for compute in array_of(nvml.c_nvmlComputeInstance_t, nvml.nvmlGpuInstanceGetComputeInstances, instance,
                                full["profile_id"], full["max_in_gi"]):
            nvml.nvmlComputeInstanceDestroy(compute)
        nvml.nvmlGpuInstanceDestroy(instance)


def walk_board(board):
    gpu = nvml.nvmlDeviceGetHandleByIndex(0)
    walk_inventory(gpu, board)
    if not board["mig"]:
        fails(nvml.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetMigMode, gpu)
        return
    walk_mode(gpu)
    by_enum = {profile["nvml_enum"]: profile for profile in board["profiles"]}
    for enum in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        if enum in by_enum:
            walk_profile(gpu, by_enum[enum])
            walk_fill(gpu, by_enum[enum])
        else:
            fails(nvml.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, enum)
    same("activation", nvml.nvmlDeviceSetMigMode(gpu, nvml.NVML_DEVICE_MIG_DISABLE), nvml.NVML_SUCCESS)


def main(tranche, folder):
    def read(*words):
        return json.loads(subprocess.run([tranche, "board", *words, "--json"], check=True, stdout=subprocess.PIPE).stdout)

    boards = [read("show", entry["board"]) for entry in read("list")]
    checks = Checks()
    for board in boards:
        os.environ["TRANCHE_SIM_FLEET"] = f"{board['board']}:1"
        os.environ["TRANCHE_SIM_STATE"] = os.path.join(folder, f"{board['board']}.state")
        problem = None
        nvml.nvmlInit()
        try:
            walk_board(board)
        except (Difference, nvml.NVMLError) as error:
            problem = error
        nvml.nvmlShutdown()
        checks.ok(problem is None, board["board"], f"{type(problem).__name__}: {problem}")
    checks.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
