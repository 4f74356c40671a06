/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler over a driver; see metrics.h. GPM counts between two samples, so the sampler
 * keeps the sample before of each entity, with what tells an instance from a later one under
 * the same id.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "gpu/metrics.h"
#include "gpu/nvml_abi.h"

enum { WINDOW_MAX_S = 60, NS_PER_MS = 1000000 };

static const struct {
    enum metric_level lowest;
    enum gpu_reading reading; /* GPU_READING_COUNT: none */
    double scale;
    int gpm; /* 0: none */
    double gpm_scale;
} table[METRIC_COUNT] = {
#define X(id, name, level, reading, scale, gpm, gpm_scale)                                     \
    [METRIC_##id] = {METRIC_LEVEL_##level, GPU_READING_##reading, scale, gpm, gpm_scale},
    METRICS(X)
#undef X
};

/* The GPM sample before of one entity. */
struct window {
    char uuid[GPU_TEXT_SIZE];
    uint32_t gi, ci;
    char identity[GPU_TEXT_SIZE]; /* UUID of its (first) compute instance */
    void *sample;
    int64_t time_ns;
    bool seen; /* in this round */
};

struct sampler {
    const struct gpu_driver *driver;
    const struct clock_source *clock;
    VEC(struct window) windows;
};

static __attribute__((format(printf, 2, 3))) void set_null(struct metric_value *value,
                                                           const char *format, ...)
{
    va_list arguments;

    value->value = NAN;
    va_start(arguments, format);
    vsnprintf(value->reason, sizeof value->reason, format, arguments);
    va_end(arguments);
}

static void read_values(const struct sampler *sampler, struct metric_row *row)
{
    struct gpu_entity entity = {.uuid = row->uuid, .gi = row->gi, .ci = row->ci};
    bool instance = row->gi != GPU_NO_INSTANCE;

    for (int i = 0; i < METRIC_COUNT; i++) {
        struct metric_value *value = &row->values[i];
        struct error why;
        double number;

        /* Compute instances share their GPU instance's memory: its level, whatever is asked. */
        value->level = instance ? METRIC_LEVEL_INSTANCE : METRIC_LEVEL_GPU;
        if (instance && table[i].lowest == METRIC_LEVEL_GPU) {
            set_null(value, "exists for the whole GPU only");
            continue;
        }
        if (table[i].reading == GPU_READING_COUNT) {
            set_null(value, "NVML has no such value");
            continue;
        }
        if (sampler->driver->ops->read(sampler->driver->self, &entity, table[i].reading,
                                       &number, &why))
            set_null(value, "%s", why.text);
        else
            value->value = number * table[i].scale;
    }
}

/* --- GPM --- */

static struct window *find_window(struct sampler *sampler, const struct metric_row *row)
{
    for (size_t i = 0; i < sampler->windows.count; i++) {
        struct window *window = &sampler->windows.data[i];
        if (window->gi == row->gi && window->ci == row->ci && !strcmp(window->uuid, row->uuid))
            return window;
    }
    struct window *window = vec_push(&sampler->windows);
    window->gi = row->gi;
    window->ci = row->ci;
    snprintf(window->uuid, sizeof window->uuid, "%s", row->uuid);
    return window;
}

/* Whether GPM can have this metric at the level of the row. */
static bool has_gpm(const struct metric_row *row, int metric)
{
    if (row->ci != GPU_NO_INSTANCE && metric == METRIC_DRAM_ACTIVE)
        return false; /* memory is shared: of the GPU instance alone */
    return table[metric].gpm &&
           (row->gi == GPU_NO_INSTANCE || table[metric].lowest != METRIC_LEVEL_GPU);
}

static void gpm_null(struct metric_row *row, const char *reason)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (has_gpm(row, i))
            set_null(&row->values[i], "%s", reason);
}

static void gpm_values(const struct sampler *sampler, struct metric_row *row, void *first,
                       void *second)
{
    struct gpu_gpm_metric metrics[METRIC_COUNT];
    int which[METRIC_COUNT];
    size_t count = 0;
    struct error why;

    for (int i = 0; i < METRIC_COUNT; i++)
        if (has_gpm(row, i)) {
            which[count] = i;
            metrics[count++] = (struct gpu_gpm_metric){.id = table[i].gpm};
        }
    if (sampler->driver->ops->gpm_metrics(sampler->driver->self, first, second, metrics, count,
                                          &why)) {
        gpm_null(row, why.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct metric_value *value = &row->values[which[i]];
        double number = metrics[i].value * table[which[i]].gpm_scale;
        bool ratio = table[which[i]].gpm_scale < 1;
        value->reason[0] = '\0';
        value->value = number;
        if (row->ci != GPU_NO_INSTANCE)
            value->level = METRIC_LEVEL_COMPUTE;
        if (!metrics[i].valid)
            set_null(value, "GPM: %s", metrics[i].reason);
        else if (ratio && !(number >= 0 && number <= 1))
            set_null(value, "GPM gave %g for a ratio of 0 to 1", number);
    }
}

/* Whether the sample before may be the beginning of this window; else why not. */
static bool window_is_good(const struct window *window, const char *identity, int64_t now_ns,
                           char reason[METRIC_REASON_SIZE])
{
    int64_t length_ns = now_ns - window->time_ns;

    assert(!window->sample || length_ns >= 0);
    if (!window->sample)
        snprintf(reason, METRIC_REASON_SIZE, "first sample: activity needs a window");
    else if (strcmp(window->identity, identity))
        snprintf(reason, METRIC_REASON_SIZE,
                 "another instance has this id now: a new window begins");
    else if (length_ns > (int64_t)WINDOW_MAX_S * 1000 * NS_PER_MS)
        snprintf(reason, METRIC_REASON_SIZE,
                 "the window was longer than %d s: a new one begins", WINDOW_MAX_S);
    else
        return true;
    return false;
}

static void sample_activity(struct sampler *sampler, struct metric_row *row,
                            const char *identity, int64_t now_ns)
{
    const struct gpu_driver *driver = sampler->driver;
    struct gpu_entity entity = {.uuid = row->uuid, .gi = row->gi, .ci = row->ci};
    struct window *window = find_window(sampler, row);
    char reason[METRIC_REASON_SIZE];
    struct error why;
    void *sample;

    window->seen = true;
    bool good = window_is_good(window, identity, now_ns, reason);
    if (good && now_ns - window->time_ns < (int64_t)GPU_GPM_INTERVAL_MS * NS_PER_MS) {
        gpm_null(row, "the window is shorter than 100 ms");
        return; /* the sample before stays: the window grows */
    }
    if (driver->ops->gpm_sample(driver->self, &entity, &sample, &why)) {
        gpm_null(row, why.text);
        return;
    }
    if (good)
        gpm_values(sampler, row, window->sample, sample);
    else
        gpm_null(row, reason);
    driver->ops->gpm_free(driver->self, window->sample);
    window->sample = sample;
    window->time_ns = now_ns;
    snprintf(window->identity, sizeof window->identity, "%s", identity);
}

/* Frees the samples of instances that are gone. */
static void drop_unseen(struct sampler *sampler)
{
    size_t kept = 0;

    for (size_t i = 0; i < sampler->windows.count; i++) {
        struct window *window = &sampler->windows.data[i];
        if (!window->seen) {
            sampler->driver->ops->gpm_free(sampler->driver->self, window->sample);
            continue;
        }
        window->seen = false;
        sampler->windows.data[kept++] = *window;
    }
    sampler->windows.count = kept;
}

static void add_row(struct sampler *sampler, struct metric_sample *sample,
                    const struct gpu *gpu, const struct gpu_gi *gi, const struct gpu_ci *ci)
{
    struct metric_row *row = vec_push(&sample->rows);
    int profile = gi && gpu->live ? live_board_profile_of_gi(gpu->live, gi) : -1;

    snprintf(row->uuid, sizeof row->uuid, "%s", gpu->identity.uuid);
    row->gi = gi ? gi->id : GPU_NO_INSTANCE;
    row->ci = ci ? ci->id : GPU_NO_INSTANCE;
    if (profile >= 0) {
        snprintf(row->profile, sizeof row->profile, "%s", gpu->live->profiles[profile].name);
        row->slices = ci ? ci->compute_slices : gpu->live->profiles[profile].compute_slices;
    }
    read_values(sampler, row);
    sample_activity(sampler, row,
                    ci                   ? ci->uuid
                    : gi && gi->ci_count ? gi->ci[0].uuid
                                         : "",
                    sample->time_ns);
}

static void add_instance_rows(struct sampler *sampler, struct metric_sample *sample,
                              const struct gpu *gpu, const struct gpu_gi *gi)
{
    add_row(sampler, sample, gpu, gi, NULL);
    for (int i = 0; i < gi->ci_count && gi->ci_count > 1; i++)
        add_row(sampler, sample, gpu, gi, &gi->ci[i]);
}

static int op_sample(void *self, struct metric_sample *ret_sample, struct error *err)
{
    struct sampler *sampler = self;
    CLEANUP(gpu_inventory_done) struct gpu_inventory inventory = {0};
    struct metric_sample sample = {.time_ns = clock_now_ns(sampler->clock)};

    int r = gpu_inventory_read(sampler->driver, &inventory, err);
    if (r)
        return r;
    for (size_t i = 0; i < inventory.gpus.count; i++) {
        const struct gpu *gpu = &inventory.gpus.data[i];
        add_row(sampler, &sample, gpu, NULL, NULL);
        for (int j = 0; j < gpu->instances.count; j++)
            add_instance_rows(sampler, &sample, gpu, &gpu->instances.gi[j]);
    }
    drop_unseen(sampler);
    *ret_sample = sample;
    return 0;
}

static void op_close(void *self)
{
    struct sampler *sampler = self;

    for (size_t i = 0; i < sampler->windows.count; i++)
        sampler->driver->ops->gpm_free(sampler->driver->self, sampler->windows.data[i].sample);
    vec_done(&sampler->windows);
    free(sampler);
}

static const struct metric_sampler_ops ops = {
    .kind = "nvml", .sample = op_sample, .close = op_close};

void metric_sampler_nvml(const struct gpu_driver *driver, const struct clock_source *clock,
                         struct metric_sampler *ret_sampler)
{
    struct sampler *sampler = xcalloc(1, sizeof *sampler);

    assert(driver->ops->read && driver->ops->gpm_sample);
    sampler->driver = driver;
    sampler->clock = clock;
    *ret_sampler = (struct metric_sampler){.ops = &ops, .self = sampler};
}
