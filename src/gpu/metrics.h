/* SPDX-License-Identifier: Apache-2.0
 *
 * What GPUs and MIG instances do while they work: one sampler interface over NVML with GPM,
 * and over a dcgm-exporter page. A value says at which level it was measured; one that is
 * not there is null with a reason and never 0. docs/spec/metrics.md tells which source has
 * what, and which numbers are not to be believed.
 */
#ifndef TRANCHE_GPU_METRICS_H
#define TRANCHE_GPU_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "gpu/driver.h"
#include "gpu/inventory.h"

enum metric_level {
    METRIC_LEVEL_GPU,
    METRIC_LEVEL_INSTANCE, /* GPU instance */
    METRIC_LEVEL_COMPUTE,  /* compute instance */
    METRIC_LEVEL_COUNT
};

/* X(id, name with unit, lowest level at which it can exist, NVML reading or NONE, scale of that
 * reading, GPM metric id or 0, scale of that metric). Ratios are 0 … 1. */
#define METRICS(X)                                                                             \
    X(MEMORY_USED, "memory_used_mib", INSTANCE, MEMORY_USED, 1.0 / (1 << 20), 0, 0)            \
    X(MEMORY_TOTAL, "memory_total_mib", INSTANCE, MEMORY_TOTAL, 1.0 / (1 << 20), 0, 0)         \
    X(POWER, "power_w", GPU, POWER, 1, 0, 0)                                                   \
    X(ENERGY, "energy_j", GPU, ENERGY, 1, 0, 0)                                                \
    X(SM_CLOCK, "sm_clock_mhz", GPU, SM_CLOCK, 1, 0, 0)                                        \
    X(MEMORY_CLOCK, "memory_clock_mhz", GPU, MEMORY_CLOCK, 1, 0, 0)                            \
    X(CLOCK_REASONS, "clock_event_reasons", GPU, CLOCK_REASONS, 1, 0, 0)                       \
    X(TEMPERATURE, "temperature_c", GPU, TEMPERATURE, 1, 0, 0)                                 \
    X(GPU_UTIL, "gpu_util_ratio", GPU, COUNT, 0, 0, 0)                                         \
    X(GRAPHICS_ACTIVE, "graphics_active_ratio", INSTANCE, COUNT, 0, 1, 0.01)                   \
    X(SM_ACTIVE, "sm_active_ratio", INSTANCE, COUNT, 0, 2, 0.01)                               \
    X(SM_OCCUPANCY, "sm_occupancy_ratio", INSTANCE, COUNT, 0, 3, 0.01)                         \
    X(TENSOR_ACTIVE, "tensor_active_ratio", INSTANCE, COUNT, 0, 5, 0.01)                       \
    X(DRAM_ACTIVE, "dram_active_ratio", INSTANCE, COUNT, 0, 10, 0.01)                          \
    X(FP64_ACTIVE, "fp64_active_ratio", INSTANCE, COUNT, 0, 11, 0.01)                          \
    X(FP32_ACTIVE, "fp32_active_ratio", INSTANCE, COUNT, 0, 12, 0.01)                          \
    X(FP16_ACTIVE, "fp16_active_ratio", INSTANCE, COUNT, 0, 13, 0.01)                          \
    X(PCIE_TX, "pcie_tx_mib_s", GPU, COUNT, 0, 20, 1)                                          \
    X(PCIE_RX, "pcie_rx_mib_s", GPU, COUNT, 0, 21, 1)

enum metric {
#define X(id, name, level, reading, scale, gpm, gpm_scale) METRIC_##id,
    METRICS(X)
#undef X
        METRIC_COUNT
};

enum { METRIC_REASON_SIZE = 128 };

struct metric_value {
    double value;            /* NAN: null, see reason */
    enum metric_level level; /* of what it was measured */
    /* An activity ratio that cannot reach 1 because of a smaller instance beside it: value is
     * null, raw is what was read and ceiling the most it can show. */
    bool capped;
    double raw, ceiling;
    char reason[METRIC_REASON_SIZE]; /* "" when there is a value */
};

/* One GPU (gi GPU_NO_INSTANCE), GPU instance (ci GPU_NO_INSTANCE) or compute instance at one
 * moment. Compute instances have rows where a GPU instance has several. */
struct metric_row {
    char uuid[GPU_TEXT_SIZE]; /* of the GPU */
    uint32_t gi, ci;
    char profile[GPU_TEXT_SIZE]; /* live name; of a page without inventory its label */
    int slices;                  /* compute slices; 0: unknown */
    struct metric_value values[METRIC_COUNT];
};

struct metric_sample {
    int64_t time_ns; /* of the sampler's clock */
    VEC(struct metric_row) rows;
};
/* Frees the values. */
void metric_sample_done(struct metric_sample *sample);
/* The row of a GPU or GPU instance; NULL when there is none. */
const struct metric_row *metric_sample_find(const struct metric_sample *sample,
                                            const char *uuid, uint32_t gi);
/* The row of a compute instance. */
const struct metric_row *metric_sample_find_ci(const struct metric_sample *sample,
                                               const char *uuid, uint32_t gi, uint32_t ci);

struct metric_sampler_ops {
    const char *kind; /* "nvml", "dcgm" */
    int (*sample)(void *self, struct metric_sample *ret_sample, struct error *err);
    void (*close)(void *self);
};
struct metric_sampler {
    const struct metric_sampler_ops *ops;
    void *self;
};
/* Frees the sampler; a closed one is fine. */
void metric_sampler_close(struct metric_sampler *sampler);

/* Over the driver: memory, power, energy, clocks, temperature; activity by GPM where the
 * board has it (Hopper and later), over the window since the sample before. The first sample
 * of an instance has no window; one shorter than GPU_GPM_INTERVAL_MS is refused and goes on;
 * one longer than a minute starts anew, and so does an instance made again under the same id.
 * The driver is borrowed. */
void metric_sampler_nvml(const struct gpu_driver *driver, const struct clock_source *clock,
                         struct metric_sampler *ret_sampler);

/* Over pages of a dcgm-exporter. fetch appends the page's text. The inventory (borrowed, may
 * be NULL) tells which instance a GPU_I_ID is: the page's own profile label can be stale, and
 * without an inventory activity ratios of instances stay null. */
struct metric_page {
    int (*fetch)(void *context, struct str *ret_text, struct error *err);
    void *context;
    const struct gpu_inventory *inventory;
};
/* Opens a sampler over a dcgm-exporter page. What *page points at and the clock are borrowed
 * and must outlive it. */
void metric_sampler_dcgm(const struct metric_page *page, const struct clock_source *clock,
                         struct metric_sampler *ret_sampler);
/* One page's text as a sample; never fails: what cannot be read is left out. */
void metric_page_parse(const char *text, const struct gpu_inventory *inventory,
                       struct metric_sample *ret_sample);

/* The metric's name with its unit: "power_w"; static. */
const char *metric_name(enum metric metric);
/* "gpu", "instance", "compute". */
const char *metric_level_name(enum metric_level level);
/* Appends "sw_power_cap hw_slowdown" for the bits of clock_event_reasons, "none" for 0. */
void metric_clock_reasons(uint64_t reasons, struct str *text);
/* Each metric as {"value", "level"} or {"value": null, "reason", …}; a new reference. */
json_t *metric_sample_to_json(const struct metric_sample *sample);

/* Power of instances: there is no counter. What the board draws above idle is shared out;
 * idle stays apart, so that parts and idle add up to the board. */
struct power_part {
    int slices;
    double activity; /* 0 … 1; NAN: unknown */
    double watts;    /* out */
};
enum power_rule { POWER_BY_NOTHING, POWER_BY_SLICES, POWER_BY_ACTIVITY, POWER_RULE_COUNT };
/* Fills parts[].watts and returns the rule used: activity x slices when every activity is
 * known and one is above 0, else slices over all, nothing when nothing is above idle. */
enum power_rule power_share(double board_w, double idle_w, struct power_part *parts,
                            size_t count);
/* "none", "slices", "activity x slices": as results name it; static. */
const char *power_rule_name(enum power_rule rule);

#endif
