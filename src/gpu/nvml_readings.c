/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVML measures: memory, power, energy, clocks, temperature, processes, and GPM
 * windows. Power, energy, clocks and temperature exist for the whole board alone: asked of
 * an instance they are E_UNSUPPORTED, never the board's number (user reports M10, M13).
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/nvml_library.h"

enum { PROCESSES_FIRST = 32, PROCESSES_MAX = 1 << 16 };

static bool entity_is_gpu(const struct gpu_entity *entity)
{
    return entity->gi == GPU_NO_INSTANCE;
}

static int not_there(const struct gpu_entity *entity, const char *what, struct error *err)
{
    return error_set(err, E_UNSUPPORTED, "%s: this NVML library has no %s", entity->uuid, what);
}

static int read_memory(const struct nvml *nvml, const struct gpu_entity *entity, bool total,
                       double *ret_value, struct error *err)
{
    nvmlDevice_t device;
    nvmlMemory_t memory;
    nvmlMemory_v2_t memory2 = {.version = NVML_MEMORY_V2};

    int r = entity_is_gpu(entity) ? nvml_device(nvml, entity->uuid, &device, err)
                                  : nvml_mig_device(nvml, entity, &device, err);
    if (r)
        return r;
    /* v2's `used` leaves out what the driver reserves. */
    if (nvml->call.nvmlDeviceGetMemoryInfo_v2 &&
        !nvml->call.nvmlDeviceGetMemoryInfo_v2(device, &memory2)) {
        *ret_value = (double)(total ? memory2.total : memory2.used);
        return 0;
    }
    nvmlReturn_t result = nvml->call.nvmlDeviceGetMemoryInfo(device, &memory);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetMemoryInfo", entity->uuid, err);
    *ret_value = (double)(total ? memory.total : memory.used);
    return 0;
}

static int read_power(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                      double *ret_value, struct error *err)
{
    unsigned milliwatts;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetPowerUsage(device, &milliwatts);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetPowerUsage", uuid, err);
    *ret_value = milliwatts / 1e3;
    return 0;
}

static int read_energy(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                       double *ret_value, struct error *err)
{
    unsigned long long millijoules;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetTotalEnergyConsumption(device, &millijoules);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetTotalEnergyConsumption", uuid, err);
    *ret_value = (double)millijoules / 1e3;
    return 0;
}

static int read_clock(const struct nvml *nvml, nvmlDevice_t device, enum gpu_reading reading,
                      double *ret_value, struct error *err)
{
    unsigned clock_mhz;
    unsigned type = reading == GPU_READING_SM_CLOCK ? NVML_CLOCK_SM : NVML_CLOCK_MEM;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetClockInfo(device, type, &clock_mhz);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetClockInfo", NULL, err);
    *ret_value = clock_mhz;
    return 0;
}

static int read_reasons(const struct nvml *nvml, nvmlDevice_t device, double *ret_value,
                        struct error *err)
{
    unsigned long long reasons;
    /* Called throttle reasons before driver 535; the bits are the same. */
    nvmlReturn_t result =
        nvml->call.nvmlDeviceGetCurrentClocksEventReasons
            ? nvml->call.nvmlDeviceGetCurrentClocksEventReasons(device, &reasons)
            : nvml->call.nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetCurrentClocksEventReasons", NULL, err);
    *ret_value = (double)reasons;
    return 0;
}

static int read_temperature(const struct nvml *nvml, nvmlDevice_t device, double *ret_value,
                            struct error *err)
{
    unsigned celsius;
    nvmlTemperature_t temperature = {.version = NVML_TEMPERATURE_V1,
                                     .sensorType = NVML_TEMPERATURE_GPU};
    if (nvml->call.nvmlDeviceGetTemperatureV &&
        !nvml->call.nvmlDeviceGetTemperatureV(device, &temperature)) {
        *ret_value = temperature.temperature;
        return 0;
    }
    if (!nvml->call.nvmlDeviceGetTemperature)
        return error_set(err, E_UNSUPPORTED, "this NVML library has no temperature");
    nvmlReturn_t result =
        nvml->call.nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetTemperature", NULL, err);
    *ret_value = celsius;
    return 0;
}

/* Whether the library has the function behind a reading of the whole board. */
static bool has_reading(const struct nvml *nvml, enum gpu_reading reading)
{
    switch (reading) {
    case GPU_READING_POWER:
        return nvml->call.nvmlDeviceGetPowerUsage;
    case GPU_READING_ENERGY:
        return nvml->call.nvmlDeviceGetTotalEnergyConsumption;
    case GPU_READING_SM_CLOCK:
    case GPU_READING_MEMORY_CLOCK:
        return nvml->call.nvmlDeviceGetClockInfo;
    case GPU_READING_CLOCK_REASONS:
        return nvml->call.nvmlDeviceGetCurrentClocksEventReasons ||
               nvml->call.nvmlDeviceGetCurrentClocksThrottleReasons;
    case GPU_READING_MEMORY_TOTAL:
    case GPU_READING_MEMORY_USED:
    case GPU_READING_TEMPERATURE:
    case GPU_READING_COUNT:
        break;
    }
    return true;
}

static int read_board(const struct nvml *nvml, const struct gpu_entity *entity,
                      enum gpu_reading reading, double *ret_value, struct error *err)
{
    nvmlDevice_t device;

    int r = nvml_device(nvml, entity->uuid, &device, err);
    if (r)
        return r;
    if (reading == GPU_READING_POWER)
        return read_power(nvml, device, entity->uuid, ret_value, err);
    if (reading == GPU_READING_ENERGY)
        return read_energy(nvml, device, entity->uuid, ret_value, err);
    if (reading == GPU_READING_CLOCK_REASONS)
        return read_reasons(nvml, device, ret_value, err);
    if (reading == GPU_READING_TEMPERATURE)
        return read_temperature(nvml, device, ret_value, err);
    return read_clock(nvml, device, reading, ret_value, err);
}

int nvml_read(void *self, const struct gpu_entity *entity, enum gpu_reading reading,
              double *ret_value, struct error *err)
{
    const struct nvml *nvml = self;

    assert(reading < GPU_READING_COUNT);
    if (reading == GPU_READING_MEMORY_TOTAL || reading == GPU_READING_MEMORY_USED)
        return read_memory(nvml, entity, reading == GPU_READING_MEMORY_TOTAL, ret_value, err);
    if (!entity_is_gpu(entity))
        return error_set(err, E_UNSUPPORTED, "exists for the whole GPU only");
    if (!has_reading(nvml, reading))
        return not_there(entity, "such reading", err);
    return read_board(nvml, entity, reading, ret_value, err);
}

/* --- processes --- */

typedef nvmlReturn_t process_call(nvmlDevice_t device, unsigned int *count,
                                  nvmlProcessInfo_t *infos);

static bool known_process(const struct gpu_process_list *list, const nvmlProcessInfo_t *info)
{
    for (size_t i = 0; i < list->items.count; i++) {
        const struct gpu_process *process = &list->items.data[i];
        if (process->pid == info->pid && process->gi == info->gpuInstanceId &&
            process->ci == info->computeInstanceId)
            return true;
    }
    return false;
}

static void add_process(const struct nvml *nvml, const nvmlProcessInfo_t *info,
                        struct gpu_process_list *list)
{
    if (known_process(list, info))
        return;
    struct gpu_process *process = vec_push(&list->items);
    process->pid = info->pid;
    process->gi = info->gpuInstanceId;
    process->ci = info->computeInstanceId;
    if (info->usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
        process->memory_bytes = info->usedGpuMemory;
    if (!nvml->call.nvmlSystemGetProcessName ||
        nvml->call.nvmlSystemGetProcessName(info->pid, process->name, sizeof process->name))
        process->name[0] = '\0';
}

static int add_processes(const struct nvml *nvml, process_call *call, nvmlDevice_t device,
                         struct gpu_process_list *list, struct error *err)
{
    unsigned capacity = PROCESSES_FIRST;

    while (capacity <= PROCESSES_MAX) {
        nvmlProcessInfo_t *infos = xcalloc(capacity, sizeof *infos);
        unsigned count = capacity;
        nvmlReturn_t result = call(device, &count, infos);
        for (unsigned i = 0; !result && i < count; i++)
            add_process(nvml, &infos[i], list);
        free(infos);
        if (!result || result == NVML_ERROR_NOT_SUPPORTED)
            return 0;
        if (result != NVML_ERROR_INSUFFICIENT_SIZE)
            return nvml_fail(nvml, result, "listing its processes", NULL, err);
        capacity = (count > capacity ? count : capacity) * 2; /* more may start meanwhile */
    }
    return error_set(err, E_IO, "more than %d processes on one GPU", PROCESSES_MAX);
}

int nvml_processes(void *self, const char *uuid, struct gpu_process_list *processes,
                   struct error *err)
{
    const struct nvml *nvml = self;
    process_call *calls[] = {nvml->call.nvmlDeviceGetComputeRunningProcesses_v3,
                             nvml->call.nvmlDeviceGetGraphicsRunningProcesses_v3,
                             nvml->call.nvmlDeviceGetMPSComputeRunningProcesses_v3};
    nvmlDevice_t device;

    int r = nvml_device(nvml, uuid, &device, err);
    for (size_t i = 0; !r && i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i])
            r = add_processes(nvml, calls[i], device, processes, err);
    return r ? error_wrap(err, "%s", uuid) : 0;
}

/* --- GPM --- */

static int gpm_supported(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                         struct error *err)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};

    if (!nvml->call.nvmlGpmQueryDeviceSupport || !nvml->call.nvmlGpmSampleAlloc ||
        !nvml->call.nvmlGpmSampleGet || !nvml->call.nvmlGpmMetricsGet)
        return error_set(err, E_UNSUPPORTED, "this NVML library has no GPM");
    nvmlReturn_t result = nvml->call.nvmlGpmQueryDeviceSupport(device, &support);
    if (result)
        return nvml_fail(nvml, result, "nvmlGpmQueryDeviceSupport", uuid, err);
    if (!support.isSupportedDevice)
        return error_set(err, E_UNSUPPORTED,
                         "this GPU has no GPM (Hopper and later have); use a DCGM page");
    return 0;
}

/* The GPU by its handle, a GPU instance by its id, a compute instance by its MIG device
 * handle (which libraries older than that answer with NOT_SUPPORTED). */
static int take_sample(const struct nvml *nvml, const struct gpu_entity *entity,
                       nvmlDevice_t device, nvmlGpmSample_t sample, struct error *err)
{
    bool compute = !entity_is_gpu(entity) && entity->ci != GPU_NO_INSTANCE;
    int r = compute ? nvml_mig_device(nvml, entity, &device, err) : 0;

    if (r)
        return r;
    nvmlReturn_t result = compute || entity_is_gpu(entity)
                              ? nvml->call.nvmlGpmSampleGet(device, sample)
                              : nvml->call.nvmlGpmMigSampleGet(device, entity->gi, sample);
    return result ? nvml_fail(nvml, result, "taking a GPM sample", entity->uuid, err) : 0;
}

int nvml_gpm_sample(void *self, const struct gpu_entity *entity, void **ret_sample,
                    struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    nvmlGpmSample_t sample;
    nvmlReturn_t result;

    int r = nvml_device(nvml, entity->uuid, &device, err);
    if (!r)
        r = gpm_supported(nvml, device, entity->uuid, err);
    if (r)
        return r;
    if (!entity_is_gpu(entity) && !nvml->call.nvmlGpmMigSampleGet)
        return error_set(err, E_UNSUPPORTED, "this NVML library has no GPM of instances");
    if ((result = nvml->call.nvmlGpmSampleAlloc(&sample)))
        return nvml_fail(nvml, result, "nvmlGpmSampleAlloc", entity->uuid, err);
    if ((r = take_sample(nvml, entity, device, sample, err))) {
        nvml_gpm_free(self, sample);
        return r;
    }
    *ret_sample = sample;
    return 0;
}

int nvml_gpm_metrics(void *self, void *first, void *second, struct gpu_gpm_metric *metrics,
                     size_t count, struct error *err)
{
    const struct nvml *nvml = self;

    assert(first && second && count <= NVML_GPM_METRIC_MAX);
    nvmlGpmMetricsGet_t *request = xcalloc(1, sizeof *request);
    request->version = NVML_GPM_METRICS_GET_VERSION;
    request->numMetrics = (unsigned)count;
    request->sample1 = first;
    request->sample2 = second;
    for (size_t i = 0; i < count; i++)
        request->metrics[i].metricId = (unsigned)metrics[i].id;
    nvmlReturn_t result = nvml->call.nvmlGpmMetricsGet(request);
    for (size_t i = 0; !result && i < count; i++) {
        nvmlReturn_t own = request->metrics[i].nvmlReturn;
        metrics[i].valid = !own;
        metrics[i].value = own ? 0 : request->metrics[i].value;
        metrics[i].reason[0] = '\0';
        if (own)
            snprintf(metrics[i].reason, sizeof metrics[i].reason, "%s", nvml_return_name(own));
    }
    free(request);
    return result ? nvml_fail(nvml, result, "nvmlGpmMetricsGet", NULL, err) : 0;
}

void nvml_gpm_free(void *self, void *sample)
{
    const struct nvml *nvml = self;
    if (sample && nvml->call.nvmlGpmSampleFree)
        nvml->call.nvmlGpmSampleFree(sample);
}
