/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: what a device is doing. The load model is that of sim/processes.h.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/processes.h"
#include "sim/product.h"

enum {
    GPU_RESERVED_MIB = 600, /* what the driver keeps of a board, and of an instance */
    INSTANCE_RESERVED_MIB = 13,
    BAR1_INSTANCE_MIB = 8191,
    SAMPLING_PERIOD_US = 167000,
    THRESHOLD_COUNT = 8,
    PSTATE_BUSY = 0,
    ECC_COUNTER_VOLATILE = 0,
    CLOCK_COUNT = 4,
    LOCATION_DRAM = 2
};

static struct sim_product product_of(const struct sim_call *call)
{
    return sim_product_of(sim_gpu_board(call->gpu));
}

/* ---- memory ---- */

static void memory_of(const struct sim_call *call, nvmlMemory_v2_t *memory)
{
    const struct mig_board *board = sim_gpu_board(call->gpu);
    uint64_t total_mib = product_of(call).memory_mib, reserved_mib = GPU_RESERVED_MIB;
    unsigned gi = NVML_NO_INSTANCE_ID;
    if (call->is_mig) {
        total_mib = sim_profile_memory_mib(board, sim_gi_profile(call->gpu, call->gi));
        reserved_mib = INSTANCE_RESERVED_MIB;
        gi = call->gi_index;
    }
    memory->total = total_mib << 20;
    memory->reserved = reserved_mib << 20;
    uint64_t room = memory->total - memory->reserved;
    uint64_t used = sim_used_memory(call->machine, call->gpu_index, gi);
    memory->used = used < room ? used : room;
    memory->free = room - memory->used;
}

/* The whole board's memory is a secret of the tenants while MIG is on. */
static nvmlReturn_t memory_info_v2(const struct sim_call *call, nvmlMemory_v2_t *memory)
{
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory_of(call, memory);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    return NVML_CALL_FLAGS(CALL_DEVICE | CALL_MEMORY, device, memory_info_v2(&call, memory));
}

static nvmlReturn_t memory_info(const struct sim_call *call, nvmlMemory_t *memory)
{
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlMemory_v2_t v2;
    memory_of(call, &v2);
    *memory = (nvmlMemory_t){.total = v2.total, .free = v2.free, .used = v2.used + v2.reserved};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return NVML_CALL_FLAGS(CALL_DEVICE | CALL_MEMORY, device, memory_info(&call, memory));
}

static nvmlReturn_t bar1_info(const struct sim_call *call, nvmlBAR1Memory_t *memory)
{
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t total_mib = call->is_mig ? BAR1_INSTANCE_MIB : 65536;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total_mib << 20, .bar1Used = 1ULL << 20};
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    return NVML_CALL(DEVICE, device, bar1_info(&call, memory));
}

/* ---- power and energy ---- */

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power_mw)
{
    return NVML_CALL(READING, device,
                     NVML_SET(power_mw, sim_power_mw(call.machine, call.gpu_index)));
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long *energy_mj)
{
    return NVML_CALL(READING, device,
                     NVML_SET(energy_mj, (unsigned long long)sim_energy_mj(
                                             call.machine, call.gpu_index, call.now_ns)));
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return NVML_CALL(READING, device, NVML_SET(mode, 1));
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit_mw)
{
    return NVML_CALL(READING, device, NVML_SET(limit_mw, call.gpu->power_limit_mw));
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit_mw)
{
    return NVML_CALL(READING, device, NVML_SET(limit_mw, call.gpu->power_limit_mw));
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device,
                                                      unsigned int *limit_mw)
{
    return NVML_CALL(READING, device, NVML_SET(limit_mw, product_of(&call).power_limit_mw));
}

static nvmlReturn_t power_constraints(const struct sim_call *call, unsigned *minimum_mw,
                                      unsigned *maximum_mw)
{
    if (!minimum_mw || !maximum_mw)
        return NVML_ERROR_INVALID_ARGUMENT;
    *minimum_mw = product_of(call).power_minimum_mw;
    *maximum_mw = product_of(call).power_limit_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
                                                          unsigned int *minimum_mw,
                                                          unsigned int *maximum_mw)
{
    return NVML_CALL(READING, device, power_constraints(&call, minimum_mw, maximum_mw));
}

static nvmlReturn_t set_power_limit(struct sim_call *call, unsigned limit_mw)
{
    struct sim_product product = product_of(call);
    if (limit_mw < product.power_minimum_mw || limit_mw > product.power_limit_mw)
        return NVML_ERROR_INVALID_ARGUMENT;
    call->gpu->power_limit_mw = limit_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit_mw)
{
    return NVML_CALL_FLAGS(CALL_READING | CALL_ADMIN, device, set_power_limit(&call, limit_mw));
}

/* ---- clocks ---- */

static unsigned clock_mhz(const struct sim_call *call, unsigned type, bool maximum)
{
    struct sim_product product = product_of(call);
    if (type == NVML_CLOCK_MEM)
        return product.memory_clock_mhz;
    unsigned sm_mhz =
        maximum ? product.sm_clock_mhz : sim_sm_clock_mhz(call->machine, call->gpu_index);
    return type == NVML_CLOCK_VIDEO ? sm_mhz * 9 / 10 : sm_mhz;
}

static nvmlReturn_t clock_info(const struct sim_call *call, unsigned type, bool maximum,
                               unsigned *mhz)
{
    if (type >= CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SET(mhz, clock_mhz(call, type, maximum));
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                    unsigned int *clock_mhz)
{
    return NVML_CALL(DEVICE, device, clock_info(&call, type, false, clock_mhz));
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                       unsigned int *clock_mhz)
{
    return NVML_CALL(DEVICE, device, clock_info(&call, type, true, clock_mhz));
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                unsigned int *clock_mhz)
{
    /* id 0: current; the others ask for application clocks, which MIG boards refuse */
    return NVML_CALL(READING, device,
                     id == 0 ? clock_info(&call, type, false, clock_mhz)
                             : NVML_ERROR_NOT_SUPPORTED);
}

static unsigned long long event_reasons(const struct sim_call *call)
{
    return sim_gpu_busy_percent(call->machine, call->gpu_index) > 0 ? 0 : 1; /* GPU_IDLE */
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons)
{
    return NVML_CALL(READING, device, NVML_SET(reasons, event_reasons(&call)));
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *reasons)
{
    return NVML_CALL(READING, device, NVML_SET(reasons, event_reasons(&call)));
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long *reasons)
{
    return NVML_CALL(READING, device, NVML_SET(reasons, 0x1ff));
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long *reasons)
{
    return NVML_CALL(READING, device, NVML_SET(reasons, 0x1ff));
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    return NVML_CALL(READING, device, NVML_SET(state, PSTATE_BUSY));
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *state)
{
    return NVML_CALL(READING, device, NVML_SET(state, PSTATE_BUSY));
}

/* ---- temperature ---- */

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
    (void)percent; /* server boards are cooled by the chassis */
    return NVML_CALL(READING, device, NVML_ERROR_NOT_SUPPORTED);
}

static nvmlReturn_t temperature(const struct sim_call *call, unsigned sensor, unsigned *celsius)
{
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SET(celsius, sim_temperature_celsius(call->machine, call->gpu_index));
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *celsius)
{
    return NVML_CALL(READING, device, temperature(&call, sensor, celsius));
}

static nvmlReturn_t temperature_versioned(const struct sim_call *call, nvmlTemperature_t *ret)
{
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (ret->version != NVML_TEMPERATURE_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned celsius;
    nvmlReturn_t status = temperature(call, ret->sensorType, &celsius);
    if (status == NVML_SUCCESS)
        ret->temperature = (int)celsius;
    return status;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    return NVML_CALL(READING, device, temperature_versioned(&call, temperature));
}

static nvmlReturn_t threshold(unsigned type, unsigned *celsius)
{
    static const unsigned thresholds[THRESHOLD_COUNT] = {92, 89, 95, 85}; /* 0: not supported */
    if (type >= THRESHOLD_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    return thresholds[type] ? NVML_SET(celsius, thresholds[type]) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                               nvmlTemperatureThresholds_t type,
                                               unsigned int *celsius)
{
    return NVML_CALL(READING, device, threshold(type, celsius));
}

/* ---- utilisation: not in MIG mode ---- */

static nvmlReturn_t utilization_of(const struct sim_call *call, nvmlUtilization_t *utilization)
{
    if (!utilization)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned busy = (unsigned)sim_gpu_busy_percent(call->machine, call->gpu_index);
    *utilization = (nvmlUtilization_t){.gpu = busy, .memory = busy / 2};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    return NVML_CALL(READING, device, utilization_of(&call, utilization));
}

static nvmlReturn_t media_utilization(const struct sim_call *call, unsigned *percent,
                                      unsigned *period_us)
{
    if (!percent || !period_us)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    *percent = 0;
    *period_us = SAMPLING_PERIOD_US;
    return NVML_SUCCESS;
}

#define MEDIA_UTILIZATION(engine)                                                              \
    nvmlReturn_t nvmlDeviceGet##engine##Utilization(                                           \
        nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)                   \
    {                                                                                          \
        return NVML_CALL(READING, device, media_utilization(&call, percent, period_us));       \
    }
MEDIA_UTILIZATION(Encoder)
MEDIA_UTILIZATION(Decoder)
MEDIA_UTILIZATION(Jpg)
MEDIA_UTILIZATION(Ofa)

static unsigned pcie_kb_per_s(const struct sim_call *call)
{
    return (unsigned)(sim_gpu_busy_percent(call->machine, call->gpu_index) * 1000);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int *kb_per_s)
{
    return NVML_CALL(READING, device,
                     counter > 1 ? NVML_ERROR_INVALID_ARGUMENT
                                 : NVML_SET(kb_per_s, pcie_kb_per_s(&call)));
}

/* ---- ECC ---- */

static nvmlReturn_t ecc_mode(unsigned *current, unsigned *pending)
{
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
                                  nvmlEnableState_t *pending)
{
    return NVML_CALL(READING, device, ecc_mode(current, pending));
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return NVML_CALL(READING, device, NVML_SET(mode, 1));
}

static nvmlReturn_t ecc_errors(const struct sim_call *call, unsigned error, unsigned counter,
                               unsigned long long *count)
{
    if (error > 1 || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t errors = counter == ECC_COUNTER_VOLATILE ? call->gpu->ecc_errors[error] : 0;
    return NVML_SET(count, errors);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                         nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    return NVML_CALL(READING, device, ecc_errors(&call, error, counter, count));
}

static nvmlReturn_t memory_errors(const struct sim_call *call, unsigned error, unsigned counter,
                                  unsigned location, unsigned long long *count)
{
    if (location > LOCATION_DRAM) /* L1, L2 and memory; others come and go with the chip */
        return NVML_ERROR_NOT_SUPPORTED;
    if (location != LOCATION_DRAM)
        return error > 1 || counter > 1 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SET(count, 0);
    return ecc_errors(call, error, counter, count);
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                             nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    return NVML_CALL(READING, device, memory_errors(&call, error, counter, location, count));
}

static nvmlReturn_t detailed_errors(const struct sim_call *call, unsigned error,
                                    unsigned counter, nvmlEccErrorCounts_t *counts)
{
    unsigned long long memory;
    nvmlReturn_t status =
        counts ? ecc_errors(call, error, counter, &memory) : NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *counts = (nvmlEccErrorCounts_t){.deviceMemory = memory};
    return status;
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                            nvmlEccCounterType_t counter,
                                            nvmlEccErrorCounts_t *counts)
{
    return NVML_CALL(READING, device, detailed_errors(&call, error, counter, counts));
}

static nvmlReturn_t clear_errors(struct sim_call *call, unsigned counter)
{
    if (counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (counter == ECC_COUNTER_VOLATILE)
        memset(call->gpu->ecc_errors, 0, sizeof call->gpu->ecc_errors);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t counter)
{
    return NVML_CALL_FLAGS(CALL_READING | CALL_ADMIN, device, clear_errors(&call, counter));
}

static nvmlReturn_t remapped_rows(unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                  unsigned *failed)
{
    if (!corrected || !uncorrected || !pending || !failed)
        return NVML_ERROR_INVALID_ARGUMENT;
    *corrected = *uncorrected = *pending = *failed = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                       unsigned int *uncorrected, unsigned int *pending,
                                       unsigned int *failed)
{
    return NVML_CALL(READING, device, remapped_rows(corrected, uncorrected, pending, failed));
}
