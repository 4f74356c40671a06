/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: GPM, the counters of Hopper and later. A sample is a moment and the busy time up to
 * it of a GPU or of one GPU instance; a metric is the difference of two samples over their
 * distance, which must be 100 ms at least.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/api.h"
#include "sim/call.h"
#include "sim/processes.h"

enum { SAMPLES_MAX = 4096, HOPPER = 9 };
static const int64_t window_minimum_ns = 100000000;

struct sample {
    bool used, taken;
    unsigned gpu, gi; /* gi: NVML_NO_INSTANCE_ID for a whole GPU */
    uint32_t generation;
    int64_t time_ns;
    double busy_percent_ns;
};

static struct sample samples[SAMPLES_MAX]; /* guarded by sim_tables_lock() */

static struct sample *find_sample(nvmlGpmSample_t handle)
{
    uintptr_t place = (uintptr_t)handle - (uintptr_t)samples;
    if (place >= sizeof samples || place % sizeof samples[0] != 0)
        return NULL;
    struct sample *sample = &samples[place / sizeof samples[0]];
    return sample->used ? sample : NULL;
}

static nvmlReturn_t allocate(nvmlGpmSample_t *ret_sample)
{
    if (!ret_sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t status = NVML_ERROR_MEMORY;
    sim_tables_lock();
    for (int i = 0; i < SAMPLES_MAX && status != NVML_SUCCESS; i++) {
        if (samples[i].used)
            continue;
        samples[i] = (struct sample){.used = true};
        *ret_sample = (nvmlGpmSample_t)(void *)&samples[i];
        status = NVML_SUCCESS;
    }
    sim_tables_unlock();
    return status;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *gpmSample)
{
    return NVML_CALL(STATELESS, NULL, allocate(gpmSample));
}

static nvmlReturn_t release(nvmlGpmSample_t handle)
{
    sim_tables_lock();
    struct sample *sample = find_sample(handle);
    if (sample)
        sample->used = false;
    sim_tables_unlock();
    return sample ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t gpmSample)
{
    return NVML_CALL(STATELESS, NULL, release(gpmSample));
}

static bool has_gpm(const struct sim_gpu *gpu)
{
    return sim_gpu_board(gpu)->cc_major >= HOPPER;
}

static nvmlReturn_t query_support(const struct sim_call *call, nvmlGpmSupport_t *support)
{
    if (!support)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = has_gpm(call->gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport)
{
    return NVML_CALL(DEVICE, device, query_support(&call, gpmSupport));
}

static nvmlReturn_t take(const struct sim_call *call, unsigned gi, nvmlGpmSample_t handle)
{
    if (!has_gpm(call->gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    bool whole = gi == NVML_NO_INSTANCE_ID;
    if (!whole && (gi >= SIM_GI_IDS || !call->gpu->gis[gi].used))
        return NVML_ERROR_NOT_FOUND;
    sim_tables_lock();
    struct sample *sample = find_sample(handle);
    if (sample)
        *sample = (struct sample){
            .used = true,
            .taken = true,
            .gpu = call->gpu_index,
            .gi = gi,
            .generation = whole ? 0 : call->gpu->gis[gi].generation,
            .time_ns = call->now_ns,
            .busy_percent_ns =
                whole ? sim_gpu_activity(call->machine, call->gpu_index, call->now_ns)
                      : sim_gi_activity(call->machine, call->gpu_index, gi, call->now_ns)};
    sim_tables_unlock();
    return sample ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t gpmSample)
{
    return NVML_CALL(READING, device, take(&call, NVML_NO_INSTANCE_ID, gpmSample));
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpuInstanceId,
                                 nvmlGpmSample_t gpmSample)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_MIG_ON, device,
                           take(&call, gpuInstanceId, gpmSample));
}

/* What share of its busy time a load of the model spends in each unit. */
static const struct metric {
    unsigned id;
    double factor;
    const char *short_name, *long_name, *unit;
} metrics[] = {
    {NVML_GPM_METRIC_GRAPHICS_UTIL, 1.0, "GRACT", "Graphics utilization", "%"},
    {NVML_GPM_METRIC_SM_UTIL, 0.9, "SMACT", "SM utilization", "%"},
    {NVML_GPM_METRIC_SM_OCCUPANCY, 0.5, "SMOCC", "SM occupancy", "%"},
    {NVML_GPM_METRIC_INTEGER_UTIL, 0.1, "INTACT", "Integer utilization", "%"},
    {NVML_GPM_METRIC_ANY_TENSOR_UTIL, 0.4, "TENSO", "Tensor utilization", "%"},
    {NVML_GPM_METRIC_DFMA_TENSOR_UTIL, 0.0, "DFMA", "DFMA tensor utilization", "%"},
    {NVML_GPM_METRIC_HMMA_TENSOR_UTIL, 0.4, "HMMA", "HMMA tensor utilization", "%"},
    {NVML_GPM_METRIC_IMMA_TENSOR_UTIL, 0.0, "IMMA", "IMMA tensor utilization", "%"},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, 0.5, "DRAMA", "DRAM bandwidth utilization", "%"},
    {NVML_GPM_METRIC_FP64_UTIL, 0.0, "FP64A", "FP64 utilization", "%"},
    {NVML_GPM_METRIC_FP32_UTIL, 0.3, "FP32A", "FP32 utilization", "%"},
    {NVML_GPM_METRIC_FP16_UTIL, 0.2, "FP16A", "FP16 utilization", "%"},
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, 10.0, "PCITX", "PCIe transmitted", "MiB/s"},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, 10.0, "PCIRX", "PCIe received", "MiB/s"},
};

static void compute_metric(nvmlGpmMetric_t *metric, double busy_percent)
{
    metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    metric->value = 0;
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        if (metrics[i].id != metric->metricId)
            continue;
        metric->nvmlReturn = NVML_SUCCESS;
        metric->value = busy_percent * metrics[i].factor;
        metric->metricInfo.shortName = (char *)(uintptr_t)metrics[i].short_name;
        metric->metricInfo.longName = (char *)(uintptr_t)metrics[i].long_name;
        metric->metricInfo.unit = (char *)(uintptr_t)metrics[i].unit;
    }
}

/* Copies two samples that belong together; false when they do not. */
static bool read_pair(const nvmlGpmMetricsGet_t *get, struct sample ret_pair[2])
{
    sim_tables_lock();
    const struct sample *first = find_sample(get->sample1), *second = find_sample(get->sample2);
    bool good = first && second && first->taken && second->taken && first->gpu == second->gpu &&
                first->gi == second->gi && first->generation == second->generation;
    if (good) {
        ret_pair[0] = *first;
        ret_pair[1] = *second;
    }
    sim_tables_unlock();
    return good;
}

static nvmlReturn_t metrics_get(nvmlGpmMetricsGet_t *get)
{
    struct sample pair[2];
    if (!get || get->numMetrics > NVML_GPM_METRIC_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!read_pair(get, pair))
        return NVML_ERROR_INVALID_ARGUMENT;
    int64_t window_ns = pair[1].time_ns - pair[0].time_ns;
    if (window_ns < window_minimum_ns)
        return NVML_ERROR_NOT_READY;
    double busy = (pair[1].busy_percent_ns - pair[0].busy_percent_ns) / (double)window_ns;
    busy = busy < 0 ? 0 : busy > 100 ? 100 : busy;
    for (unsigned i = 0; i < get->numMetrics; i++)
        compute_metric(&get->metrics[i], busy);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metricsGet)
{
    return NVML_CALL(STATELESS, NULL, metrics_get(metricsGet));
}
