/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: which processes run where.
 */
#include <string.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/processes.h"

enum { MODE_ALL = 3 };

/* Whether a process belongs in the answer of this call. */
static bool is_listed(const struct sim_call *call, const struct sim_process *process,
                      unsigned type)
{
    return process->gpu == call->gpu_index && (type == MODE_ALL || process->type == type) &&
           (!call->is_mig || (process->gi == call->gi_index && process->ci == call->ci_index));
}

static unsigned count_listed(const struct sim_call *call, unsigned type)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < call->machine->process_count; i++)
        count += is_listed(call, &call->machine->processes[i], type);
    return count;
}

/* NVML's convention: *count is the room, then the number; too little room (or none, to ask
 * for the number) is INSUFFICIENT_SIZE. *ret_go_on: whether to fill. */
static nvmlReturn_t check_room(unsigned found, const void *infos, unsigned *count,
                               bool *ret_go_on)
{
    *ret_go_on = false;
    if (!count || (*count > 0 && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = found;
    *ret_go_on = found > 0 && found <= room;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t list_processes(const struct sim_call *call, unsigned type, unsigned *count,
                                   nvmlProcessInfo_t *infos)
{
    bool go_on;
    nvmlReturn_t status = check_room(count_listed(call, type), infos, count, &go_on);
    for (uint32_t i = 0, n = 0; go_on && i < call->machine->process_count; i++) {
        const struct sim_process *process = &call->machine->processes[i];
        if (is_listed(call, process, type))
            infos[n++] =
                (nvmlProcessInfo_t){.pid = process->pid,
                                    .usedGpuMemory = (uint64_t)process->memory_mib << 20,
                                    .gpuInstanceId = process->gi,
                                    .computeInstanceId = process->ci};
    }
    return status;
}

static nvmlReturn_t list_processes_v1(const struct sim_call *call, unsigned type,
                                      unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    bool go_on;
    nvmlReturn_t status = check_room(count_listed(call, type), infos, count, &go_on);
    for (uint32_t i = 0, n = 0; go_on && i < call->machine->process_count; i++) {
        const struct sim_process *process = &call->machine->processes[i];
        if (is_listed(call, process, type))
            infos[n++] = (nvmlProcessInfo_v1_t){
                .pid = process->pid, .usedGpuMemory = (uint64_t)process->memory_mib << 20};
    }
    return status;
}

#define LIST_FUNCTIONS(name, type)                                                             \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)   \
    {                                                                                          \
        return NVML_CALL(DEVICE, device, list_processes_v1(&call, type, count, infos));        \
    }                                                                                          \
    nvmlReturn_t name##_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) \
    {                                                                                          \
        return NVML_CALL(DEVICE, device, list_processes(&call, type, count, infos));           \
    }                                                                                          \
    nvmlReturn_t name##_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) \
    {                                                                                          \
        return NVML_CALL(DEVICE, device, list_processes(&call, type, count, infos));           \
    }
LIST_FUNCTIONS(nvmlDeviceGetComputeRunningProcesses, SIM_COMPUTE)
LIST_FUNCTIONS(nvmlDeviceGetGraphicsRunningProcesses, SIM_GRAPHICS)
LIST_FUNCTIONS(nvmlDeviceGetMPSComputeRunningProcesses, SIM_MPS)

static nvmlReturn_t detail_list(const struct sim_call *call, nvmlProcessDetailList_t *list)
{
    if (!list || list->mode > MODE_ALL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (list->version != NVML_PROCESS_DETAIL_LIST_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    bool go_on;
    nvmlReturn_t status = check_room(count_listed(call, list->mode), list->procArray,
                                     &list->numProcArrayEntries, &go_on);
    for (uint32_t i = 0, n = 0; go_on && i < call->machine->process_count; i++) {
        const struct sim_process *process = &call->machine->processes[i];
        if (is_listed(call, process, list->mode))
            list->procArray[n++] =
                (nvmlProcessDetail_t){.pid = process->pid,
                                      .usedGpuMemory = (uint64_t)process->memory_mib << 20,
                                      .gpuInstanceId = process->gi,
                                      .computeInstanceId = process->ci};
    }
    return status;
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_t *list)
{
    return NVML_CALL(DEVICE, device, detail_list(&call, list));
}

/* Not in MIG mode, as on real boards. */
static nvmlReturn_t process_utilization(const struct sim_call *call,
                                        nvmlProcessUtilizationSample_t *samples,
                                        unsigned *count)
{
    if (call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned found = count_listed(call, MODE_ALL);
    bool go_on;
    nvmlReturn_t status = check_room(found, samples, count, &go_on);
    if (status == NVML_SUCCESS && found == 0)
        return NVML_ERROR_NOT_FOUND;
    for (uint32_t i = 0, n = 0; go_on && i < call->machine->process_count; i++) {
        const struct sim_process *process = &call->machine->processes[i];
        if (is_listed(call, process, MODE_ALL))
            samples[n++] = (nvmlProcessUtilizationSample_t){
                .pid = process->pid,
                .timeStamp = (unsigned long long)(call->now_ns / 1000),
                .smUtil = process->sm_percent,
                .memUtil = process->sm_percent / 2};
    }
    return status;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since_us)
{
    (void)since_us; /* there is one sample a process, always the present one */
    return NVML_CALL(READING, device, process_utilization(&call, samples, count));
}
