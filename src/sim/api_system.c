/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: the library, the driver, and finding devices.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "sim/api.h"
#include "sim/call.h"
#include "sim/identity.h"

static const char driver_version[] = "570.133.20";
static const char nvml_version[] = "12.570.133.20";
enum { CUDA_VERSION = 12080 };

nvmlReturn_t nvmlInit(void)
{
    return sim_library_init(__func__);
}

nvmlReturn_t nvmlInit_v2(void)
{
    return sim_library_init(__func__);
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags; /* both flags are about GPUs that are not there or not attached */
    return sim_library_init(__func__);
}

nvmlReturn_t nvmlShutdown(void)
{
    return sim_library_shutdown(__func__);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const struct {
        nvmlReturn_t code;
        const char *text;
    } texts[] = {
        {NVML_SUCCESS, "Success"},
        {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
        {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
        {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized"},
        {NVML_ERROR_NOT_FOUND, "Not Found"},
        {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
        {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_ERROR_TIMEOUT, "Timeout"},
        {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
        {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
        {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
        {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
        {NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
        {NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
        {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "RM has detected an NVML/RM version mismatch."},
        {NVML_ERROR_IN_USE, "In use by another client"},
        {NVML_ERROR_MEMORY, "Insufficient Memory"},
        {NVML_ERROR_NO_DATA, "No data"},
        {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
        {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
        {NVML_ERROR_NOT_READY, "Not Ready"},
        {NVML_ERROR_GPU_NOT_FOUND, "GPU Not Found"},
        {NVML_ERROR_INVALID_STATE, "Invalid State"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return NVML_CALL(STATELESS, NULL, sim_copy_text(version, length, driver_version));
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return NVML_CALL(STATELESS, NULL, sim_copy_text(version, length, nvml_version));
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return NVML_CALL(STATELESS, NULL, NVML_SET(version, CUDA_VERSION));
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return NVML_CALL(STATELESS, NULL, NVML_SET(version, CUDA_VERSION));
}

/* The simulated process's name, or the command line's first word. */
static nvmlReturn_t process_name(const struct sim_machine *machine, unsigned pid, char *name,
                                 unsigned length)
{
    for (uint32_t i = 0; i < machine->process_count; i++)
        if (machine->processes[i].pid == pid && machine->processes[i].name[0])
            return sim_copy_text(name, length, machine->processes[i].name);
    char path[64], text[256] = {0};
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    if (!file || fread(text, 1, sizeof text - 1, file) == 0)
        return NVML_ERROR_NOT_FOUND;
    return sim_copy_text(name, length, text);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    return NVML_CALL(NONE, NULL, process_name(call.machine, pid, name, length));
}

/* ---- finding devices ---- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return NVML_CALL(NONE, NULL, NVML_SET(count, call.machine->gpu_count));
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return NVML_CALL(NONE, NULL, NVML_SET(count, call.machine->gpu_count));
}

static nvmlReturn_t by_index(const struct sim_machine *machine, unsigned index,
                             nvmlDevice_t *device)
{
    if (!device || index >= machine->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (machine->gpus[index].lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = sim_device_handle(machine, index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, sim_index_handle(index), by_index(call.machine, index, device));
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, sim_index_handle(index), by_index(call.machine, index, device));
}

static nvmlReturn_t by_pci(const struct sim_machine *machine, const char *bus_id,
                           nvmlDevice_t *device)
{
    if (!bus_id || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned gpu;
    return sim_gpu_by_bus_id(machine, bus_id, &gpu) ? by_index(machine, gpu, device)
                                                    : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, NULL, by_pci(call.machine, pciBusId, device));
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, NULL, by_pci(call.machine, pciBusId, device));
}

static nvmlReturn_t by_serial(const struct sim_machine *machine, const char *serial,
                              nvmlDevice_t *device)
{
    char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];
    for (unsigned i = 0; serial && device && i < machine->gpu_count; i++) {
        sim_serial(machine, i, text);
        if (strcmp(text, serial) == 0)
            return by_index(machine, i, device);
    }
    return serial && device ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, NULL, by_serial(call.machine, serial, device));
}

/* A MIG device by its UUID, or by "MIG-GPU-<uuid>/<gi>/<ci>" of drivers before R470. */
static bool mig_of_gpu(const struct sim_machine *machine, unsigned gpu, const char *wanted,
                       nvmlDevice_t *device)
{
    char parent[SIM_UUID_SIZE], uuid[SIM_UUID_SIZE], legacy[2 * SIM_UUID_SIZE];
    sim_gpu_uuid(machine, gpu, parent);
    unsigned gi, ci;
    for (unsigned i = 0; sim_mig_device_at(&machine->gpus[gpu], i, &gi, &ci); i++) {
        sim_mig_uuid(machine, gpu, gi, ci, uuid);
        snprintf(legacy, sizeof legacy, "MIG-%s/%u/%u", parent, gi, ci);
        if (strcasecmp(wanted, uuid) != 0 && strcasecmp(wanted, legacy) != 0)
            continue;
        *device = sim_mig_handle(machine, gpu, gi, ci);
        return true;
    }
    return false;
}

static nvmlReturn_t by_uuid(const struct sim_machine *machine, const char *wanted,
                            nvmlDevice_t *device)
{
    if (!wanted || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    char uuid[SIM_UUID_SIZE];
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        sim_gpu_uuid(machine, i, uuid);
        if (strcasecmp(wanted, uuid) == 0)
            return by_index(machine, i, device);
        if (mig_of_gpu(machine, i, wanted, device))
            return machine->gpus[i].lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return NVML_CALL(NONE, NULL, by_uuid(call.machine, uuid, device));
}
