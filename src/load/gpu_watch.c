/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling a GPU beside a measurement. See gpu_watch.h.
 */
#include "load/gpu_watch.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

/* Reasons that mean slower than asked for (NVML_CLOCKS_EVENT_REASONS): software power cap,
 * hardware slowdown, software and hardware thermal slowdown, power brake. */
static const uint64_t SLOWED = 0x004 | 0x008 | 0x020 | 0x040 | 0x080;
static const double THROTTLED_SHARE = 0.1;

/* One sample: of the GPU, but memory and activity of the instance where there is one. */
struct reading {
    int64_t time_ns;
    double memory_mib, activity, power_w, energy_j, sm_clock_mhz, memory_clock_mhz;
    double temperature_c, slice_w;
    uint64_t clock_reasons;
};

struct gpu_watch {
    struct metric_sampler sampler;
    char gpu_uuid[GPU_TEXT_SIZE];
    uint32_t gi; /* GPU_NO_INSTANCE: the whole GPU */
    double idle_w;
    double active_share; /* of what is above idle, by activity; NAN: not seen yet */
    VEC(struct reading) readings;
    const char *slice_rule;
    char reason[METRIC_REASON_SIZE]; /* of the last sample that failed */
    pthread_t thread;
    pthread_mutex_t lock; /* of `stopping` */
    pthread_cond_t wake;
    bool running, stopping;
};

void gpu_figures_clear(struct gpu_figures *figures)
{
    *figures = (struct gpu_figures){.window_s = NAN,
                                    .memory_mib = NAN,
                                    .activity = NAN,
                                    .power_w = NAN,
                                    .power_idle_w = NAN,
                                    .energy_j = NAN,
                                    .energy_above_idle_j = NAN,
                                    .energy_slice_estimate_j = NAN,
                                    .sm_clock_mhz = NAN,
                                    .sm_clock_mhz_min = NAN,
                                    .memory_clock_mhz = NAN,
                                    .temperature_c_max = NAN};
}

/* --- which GPU --- */

static bool find_instance(const struct gpu *gpu, const char *uuid, uint32_t *ret_gi)
{
    *ret_gi = GPU_NO_INSTANCE;
    if (strcmp(gpu->identity.uuid, uuid) == 0)
        return true;
    for (int i = 0; i < gpu->instances.count; i++)
        for (int k = 0; k < gpu->instances.gi[i].ci_count; k++)
            if (strcmp(gpu->instances.gi[i].ci[k].uuid, uuid) == 0) {
                *ret_gi = gpu->instances.gi[i].id;
                return true;
            }
    return false;
}

static const struct gpu *find_gpu(const struct gpu_inventory *inventory, const char *uuid,
                                  uint32_t *ret_gi)
{
    *ret_gi = GPU_NO_INSTANCE;
    if (!uuid)
        return inventory->gpus.count == 1 ? &inventory->gpus.data[0] : NULL;
    for (size_t i = 0; i < inventory->gpus.count; i++)
        if (find_instance(&inventory->gpus.data[i], uuid, ret_gi))
            return &inventory->gpus.data[i];
    return NULL;
}

static void read_idle_power(struct gpu_watch *watch, const struct gpu_driver *driver,
                            const struct gpu *gpu)
{
    struct gpu_entity entity = {
        .uuid = watch->gpu_uuid, .gi = GPU_NO_INSTANCE, .ci = GPU_NO_INSTANCE};
    struct error err;
    bool idle = gpu->processes_unknown.length == 0 && gpu->processes.items.count == 0;
    assert(isnan(watch->idle_w));
    if (!idle ||
        driver->ops->read(driver->self, &entity, GPU_READING_POWER, &watch->idle_w, &err) < 0)
        watch->idle_w = NAN;
}

int gpu_watch_new(const struct gpu_driver *driver, const char *uuid,
                  struct gpu_watch **ret_watch, struct error *err)
{
    CLEANUP(gpu_inventory_done) struct gpu_inventory inventory = {0};
    uint32_t gi;
    int failure = gpu_inventory_read(driver, &inventory, err);
    if (failure)
        return failure;
    const struct gpu *gpu = find_gpu(&inventory, uuid, &gi);
    if (!gpu)
        return error_set(err, E_MISSING, "no GPU or instance %s here (%zu GPUs)",
                         uuid ? uuid : "without a UUID", inventory.gpus.count);
    struct gpu_watch *watch = xcalloc(1, sizeof *watch);
    snprintf(watch->gpu_uuid, sizeof watch->gpu_uuid, "%s", gpu->identity.uuid);
    watch->gi = gi;
    watch->idle_w = watch->active_share = NAN;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    read_idle_power(watch, driver, gpu);
    metric_sampler_nvml(driver, clock_real(), &watch->sampler);
    *ret_watch = watch;
    return 0;
}

/* --- sampling --- */

/* The slice's watts of what the board draws above idle. */
static double share_power(struct gpu_watch *watch, const struct metric_sample *sample,
                          double board_w)
{
    struct power_part parts[GPU_INSTANCES_MAX];
    size_t count = 0, mine = GPU_INSTANCES_MAX;
    if (watch->gi == GPU_NO_INSTANCE || isnan(watch->idle_w) || isnan(board_w))
        return NAN;
    for (size_t i = 0; i < sample->rows.count && count < GPU_INSTANCES_MAX; i++) {
        const struct metric_row *row = &sample->rows.data[i];
        if (row->gi == GPU_NO_INSTANCE || row->ci != GPU_NO_INSTANCE ||
            strcmp(row->uuid, watch->gpu_uuid) != 0)
            continue;
        if (row->gi == watch->gi)
            mine = count;
        parts[count++] = (struct power_part){
            .slices = row->slices, .activity = row->values[METRIC_GRAPHICS_ACTIVE].value};
    }
    if (mine == GPU_INSTANCES_MAX)
        return NAN;
    double above_w = fmax(board_w - watch->idle_w, 0);
    enum power_rule rule = power_share(board_w, watch->idle_w, parts, count);
    /* Activity needs a window: a sample too soon after another has none, and the share by
     * activity that was seen last holds on. */
    if (rule == POWER_BY_ACTIVITY)
        watch->active_share = parts[mine].watts / above_w;
    else if (rule != POWER_BY_NOTHING && !isnan(watch->active_share))
        return watch->active_share * above_w;
    /* One rule for the whole: that of the last sample with anything above idle. */
    if (!watch->slice_rule || rule != POWER_BY_NOTHING)
        watch->slice_rule = power_rule_name(rule);
    return parts[mine].watts;
}

static void take_sample(struct gpu_watch *watch)
{
    CLEANUP(metric_sample_done) struct metric_sample sample = {0};
    struct error err;
    if (watch->sampler.ops->sample(watch->sampler.self, &sample, &err) < 0) {
        snprintf(watch->reason, sizeof watch->reason, "%s", err.text);
        return;
    }
    const struct metric_row *gpu =
        metric_sample_find(&sample, watch->gpu_uuid, GPU_NO_INSTANCE);
    const struct metric_row *slice = metric_sample_find(&sample, watch->gpu_uuid, watch->gi);
    if (!gpu || !slice) {
        snprintf(watch->reason, sizeof watch->reason, "the instance is gone");
        return;
    }
    double reasons = gpu->values[METRIC_CLOCK_REASONS].value;
    *vec_push(&watch->readings) = (struct reading){
        .time_ns = sample.time_ns,
        .memory_mib = slice->values[METRIC_MEMORY_USED].value,
        .activity = slice->values[METRIC_GRAPHICS_ACTIVE].value,
        .power_w = gpu->values[METRIC_POWER].value,
        .energy_j = gpu->values[METRIC_ENERGY].value,
        .sm_clock_mhz = gpu->values[METRIC_SM_CLOCK].value,
        .memory_clock_mhz = gpu->values[METRIC_MEMORY_CLOCK].value,
        .temperature_c = gpu->values[METRIC_TEMPERATURE].value,
        .slice_w = share_power(watch, &sample, gpu->values[METRIC_POWER].value),
        .clock_reasons = isnan(reasons) ? 0 : (uint64_t)reasons};
}

static void *run_thread(void *raw)
{
    struct gpu_watch *watch = raw;
    int64_t next_ns = clock_now_ns(clock_real());
    pthread_mutex_lock(&watch->lock);
    while (!watch->stopping) {
        next_ns += (int64_t)GPU_WATCH_PERIOD_MS * 1000000;
        struct timespec until = {next_ns / 1000000000, next_ns % 1000000000};
        int woken = 0;
        while (!watch->stopping && woken != ETIMEDOUT)
            woken = pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
        if (watch->stopping)
            break;
        pthread_mutex_unlock(&watch->lock);
        take_sample(watch);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

int gpu_watch_start(struct gpu_watch *watch, struct error *err)
{
    assert(!watch->running);
    take_sample(watch);
    watch->stopping = false;
    int problem = pthread_create(&watch->thread, NULL, run_thread, watch);
    if (problem != 0) {
        errno = problem;
        return error_set_errno(err, E_IO, "cannot start a thread");
    }
    watch->running = true;
    return 0;
}

/* --- summing up --- */

static double value_at(const struct reading *reading, size_t offset)
{
    double value;
    memcpy(&value, (const char *)reading + offset, sizeof value);
    return value;
}

/* Mean, least and most of what is known; NAN when nothing is. */
struct spread {
    double mean, least, most;
};
static struct spread spread_of(const struct gpu_watch *watch, size_t offset)
{
    struct spread spread = {NAN, NAN, NAN};
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < watch->readings.count; i++) {
        double value = value_at(&watch->readings.data[i], offset);
        if (isnan(value))
            continue;
        sum += value;
        count++;
        spread.least = fmin(spread.least, value); /* of a number and NAN: the number */
        spread.most = fmax(spread.most, value);
    }
    if (count > 0)
        spread.mean = sum / (double)count;
    return spread;
}
#define SPREAD(watch, member) spread_of(watch, offsetof(struct reading, member))

/* Watts over time by trapezoids; NAN when a value is missing or there are fewer than two. */
static double integral_j(const struct gpu_watch *watch, size_t offset)
{
    double joules = watch->readings.count > 1 ? 0 : NAN;
    for (size_t i = 1; i < watch->readings.count; i++) {
        const struct reading *a = &watch->readings.data[i - 1], *b = a + 1;
        double seconds = (double)(b->time_ns - a->time_ns) / 1e9;
        joules += (value_at(a, offset) + value_at(b, offset)) / 2 * seconds;
    }
    return joules;
}

/* By the GPU's own counter; where there is none, power over time. */
static double energy_j(const struct gpu_watch *watch)
{
    assert(watch->readings.count > 0);
    const struct reading *last = &watch->readings.data[watch->readings.count - 1];
    double counted = last->energy_j - watch->readings.data[0].energy_j;
    if (watch->readings.count > 1 && counted >= 0)
        return counted;
    return integral_j(watch, offsetof(struct reading, power_w));
}

static void sum_up(const struct gpu_watch *watch, struct gpu_figures *figures)
{
    size_t count = watch->readings.count, slowed = 0;
    gpu_figures_clear(figures);
    figures->samples = (int)count;
    snprintf(figures->reason, sizeof figures->reason, "%s", count > 0 ? "" : watch->reason);
    if (count == 0)
        return;
    const struct reading *first = &watch->readings.data[0], *last = first + count - 1;
    figures->window_s = (double)(last->time_ns - first->time_ns) / 1e9;
    figures->memory_mib = SPREAD(watch, memory_mib).most;
    figures->activity = SPREAD(watch, activity).mean;
    figures->power_w = SPREAD(watch, power_w).mean;
    figures->power_idle_w = watch->idle_w;
    figures->energy_j = energy_j(watch);
    figures->energy_above_idle_j =
        fmax(figures->energy_j - watch->idle_w * figures->window_s, 0);
    if (isnan(figures->energy_j) || isnan(watch->idle_w))
        figures->energy_above_idle_j = NAN;
    figures->energy_slice_estimate_j = integral_j(watch, offsetof(struct reading, slice_w));
    figures->slice_rule = isnan(figures->energy_slice_estimate_j) ? NULL : watch->slice_rule;
    figures->sm_clock_mhz = SPREAD(watch, sm_clock_mhz).mean;
    figures->sm_clock_mhz_min = SPREAD(watch, sm_clock_mhz).least;
    figures->memory_clock_mhz = SPREAD(watch, memory_clock_mhz).mean;
    figures->temperature_c_max = SPREAD(watch, temperature_c).most;
    for (size_t i = 0; i < count; i++) {
        figures->clock_reasons |= watch->readings.data[i].clock_reasons;
        slowed += (watch->readings.data[i].clock_reasons & SLOWED) != 0;
    }
    figures->throttled = (double)slowed > THROTTLED_SHARE * (double)count;
}

static void end_thread(struct gpu_watch *watch)
{
    if (!watch->running)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->running = false;
}

void gpu_watch_stop(struct gpu_watch *watch, struct gpu_figures *ret_figures)
{
    if (watch->running) {
        end_thread(watch);
        take_sample(watch);
    }
    sum_up(watch, ret_figures);
}

void gpu_watch_free(struct gpu_watch *watch)
{
    if (!watch)
        return;
    end_thread(watch);
    metric_sampler_close(&watch->sampler);
    vec_done(&watch->readings);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
