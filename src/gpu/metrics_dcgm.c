/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler over a dcgm-exporter page (Prometheus text). Names come in two generations:
 * since 4.9 the unit stands at the end of the name (…_HERTZ, …_JOULES, …_RATIO, …_BYTES);
 * before, each name has a unit of its own. The unit is taken from the name and never guessed
 * from the size of the value. Series are joined to instances by (UUID, GPU_I_ID); the profile
 * label can be stale (user reports 2.2, M2).
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "gpu/metrics.h"

enum { LINE_MAX_BYTES = 4096 };

static const enum metric_level lowest_level[METRIC_COUNT] = {
#define X(id, name, level, reading, scale, gpm, gpm_scale) [METRIC_##id] = METRIC_LEVEL_##level,
    METRICS(X)
#undef X
};

/* A name without "DCGM_FI_" and without a unit at its end, and the unit that the name alone
 * implies (old generation). */
static const struct {
    const char *stem;
    enum metric metric;
    double scale; /* to our unit, for the bare name; 0: the bare name does not exist */
} stems[] = {
    {"DEV_FB_USED", METRIC_MEMORY_USED, 1}, /* MiB */
    {"DEV_FB_TOTAL", METRIC_MEMORY_TOTAL, 1},
    {"DEV_FB_CAPACITY", METRIC_MEMORY_TOTAL, 0},
    {"DEV_POWER_USAGE", METRIC_POWER, 1}, /* W */
    {"DEV_BOARD_POWER", METRIC_POWER, 0},
    {"DEV_TOTAL_ENERGY_CONSUMPTION", METRIC_ENERGY, 1e-3}, /* mJ */
    {"DEV_TOTAL_ENERGY", METRIC_ENERGY, 0},
    {"DEV_BOARD_ENERGY", METRIC_ENERGY, 0},
    {"DEV_SM_CLOCK", METRIC_SM_CLOCK, 1}, /* MHz */
    {"DEV_MEM_CLOCK", METRIC_MEMORY_CLOCK, 1},
    {"DEV_MEMORY_CLOCK", METRIC_MEMORY_CLOCK, 0},
    {"DEV_CLOCK_THROTTLE_REASONS", METRIC_CLOCK_REASONS, 1},
    {"DEV_CLOCKS_EVENT_REASONS", METRIC_CLOCK_REASONS, 1},
    {"DEV_GPU_TEMP", METRIC_TEMPERATURE, 1}, /* °C */
    {"DEV_GPU_UTIL", METRIC_GPU_UTIL, 1e-2}, /* percent */
    {"PROF_GR_ENGINE_ACTIVE", METRIC_GRAPHICS_ACTIVE, 1},
    {"PROF_GR_ENGINE_UTIL", METRIC_GRAPHICS_ACTIVE, 0},
    {"PROF_SM_ACTIVE", METRIC_SM_ACTIVE, 1},
    {"PROF_SM_UTIL", METRIC_SM_ACTIVE, 0},
    {"PROF_SM_OCCUPANCY", METRIC_SM_OCCUPANCY, 1},
    {"PROF_PIPE_TENSOR_ACTIVE", METRIC_TENSOR_ACTIVE, 1},
    {"PROF_TENSOR_UTIL", METRIC_TENSOR_ACTIVE, 0},
    {"PROF_DRAM_ACTIVE", METRIC_DRAM_ACTIVE, 1},
    {"PROF_DRAM_UTIL", METRIC_DRAM_ACTIVE, 0},
    {"PROF_PIPE_FP64_ACTIVE", METRIC_FP64_ACTIVE, 1},
    {"PROF_FP64_UTIL", METRIC_FP64_ACTIVE, 0},
    {"PROF_PIPE_FP32_ACTIVE", METRIC_FP32_ACTIVE, 1},
    {"PROF_FP32_UTIL", METRIC_FP32_ACTIVE, 0},
    {"PROF_PIPE_FP16_ACTIVE", METRIC_FP16_ACTIVE, 1},
    {"PROF_FP16_UTIL", METRIC_FP16_ACTIVE, 0},
    {"PROF_PCIE_TX", METRIC_PCIE_TX, 0}, /* …_BYTES: a second */
    {"PROF_PCIE_RX", METRIC_PCIE_RX, 0},
};

/* Units at the end of a name, to ours. */
static const struct {
    const char *suffix;
    double scale;
} units[] = {
    {"_BYTES_PER_SECOND", 1.0 / (1 << 20)},
    {"_BYTES", 1.0 / (1 << 20)},
    {"_HERTZ", 1e-6},
    {"_HZ", 1e-6},
    {"_JOULES_TOTAL", 1},
    {"_JOULES", 1},
    {"_WATTS", 1},
    {"_CELSIUS", 1},
    {"_RATIO", 1},
};

/* One series of the page. */
struct series {
    char name[96], uuid[GPU_TEXT_SIZE], profile[GPU_TEXT_SIZE];
    uint32_t gi;
    double value;
};

/* Sums of what a page repeats for each instance although it is of the board. */
struct page {
    struct metric_sample *sample;
    const struct gpu_inventory *inventory;
    VEC(struct {
        double free_mib;
        size_t row;
    })
    free_memory;
    VEC(struct {
        double sum[METRIC_COUNT];
        int count[METRIC_COUNT];
    })
    board; /* by row */
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

static bool find_stem(const char *stem, size_t length, double unit_scale, enum metric *ret,
                      double *ret_scale)
{
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        if (strlen(stems[i].stem) != length || strncmp(stems[i].stem, stem, length))
            continue;
        *ret = stems[i].metric;
        *ret_scale = unit_scale > 0 ? unit_scale : stems[i].scale;
        return *ret_scale > 0;
    }
    return false;
}

/* The metric and the factor to our unit that a name stands for. */
static bool read_name(const char *name, enum metric *ret, double *ret_scale)
{
    if (!text_starts_with(name, "DCGM_FI_"))
        return false;
    name += strlen("DCGM_FI_");
    if (find_stem(name, strlen(name), 0, ret, ret_scale))
        return true;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (text_ends_with(name, units[i].suffix) &&
            find_stem(name, strlen(name) - strlen(units[i].suffix), units[i].scale, ret,
                      ret_scale))
            return true;
    return false;
}

/* --- Prometheus text --- */

/* Reads name="value" at *text into value when it is the label asked for. */
static const char *read_label(const char *text, char name[64], char value[GPU_TEXT_SIZE])
{
    size_t length = strcspn(text, "=,}"), used = 0;

    snprintf(name, 64, "%.*s", (int)(length < 63 ? length : 63), text);
    text += length;
    value[0] = '\0';
    if (text[0] != '=' || text[1] != '"')
        return NULL;
    for (text += 2; *text && *text != '"'; text++) {
        if (*text == '\\' && text[1])
            text++;
        if (used + 1 < GPU_TEXT_SIZE)
            value[used++] = *text;
    }
    value[used] = '\0';
    return *text == '"' ? text + 1 : NULL;
}

static void take_label(struct series *series, const char *name, const char *value)
{
    long long id;

    if (!strcmp(name, "UUID"))
        snprintf(series->uuid, sizeof series->uuid, "%s", value);
    else if (!strcmp(name, "GPU_I_PROFILE"))
        snprintf(series->profile, sizeof series->profile, "%s", value);
    else if (!strcmp(name, "GPU_I_ID") && text_to_int(value, 0, INT32_MAX, &id))
        series->gi = (uint32_t)id;
}

/* One line; false for comments, titles and whatever else is no series with a UUID. */
static bool read_series(const char *line, struct series *ret)
{
    size_t length = strcspn(line, "{ \t");
    char name[64], value[GPU_TEXT_SIZE], number[64];

    *ret = (struct series){.gi = GPU_NO_INSTANCE};
    if (!length || length >= sizeof ret->name || line[length] != '{')
        return false;
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)length, line);
    for (line += length + 1; *line && *line != '}';) {
        line = read_label(line, name, value);
        if (!line)
            return false;
        take_label(ret, name, value);
        line += *line == ',';
    }
    if (*line++ != '}')
        return false;
    line += strspn(line, " \t");
    snprintf(number, sizeof number, "%.*s", (int)strcspn(line, " \t\r"), line);
    if (!text_to_double(number, &ret->value))
        ret->value = NAN; /* NaN, +Inf */
    return ret->uuid[0] != '\0';
}

/* DCGM's "no value" constants: 2^63 − 1 less a few (int64), 140737488355328 and above
 * (double) and 2^31 − 1 less a few (int32) leak into pages. */
static bool is_blank(double value)
{
    return isnan(value) || value >= 140737488355328.0 ||
           (value >= 2147483632.0 && value <= 2147483647.0);
}

/* --- rows --- */

static const struct gpu *find_gpu(const struct gpu_inventory *inventory, const char *uuid)
{
    for (size_t i = 0; inventory && i < inventory->gpus.count; i++)
        if (!strcmp(inventory->gpus.data[i].identity.uuid, uuid))
            return &inventory->gpus.data[i];
    return NULL;
}

/* Profile and slices of an instance from the inventory, which knows better than the label. */
static void identify_row(const struct page *page, struct metric_row *row, const char *label)
{
    const struct gpu *gpu = find_gpu(page->inventory, row->uuid);

    snprintf(row->profile, sizeof row->profile, "%s", label);
    for (int i = 0; gpu && gpu->live && i < gpu->instances.count; i++) {
        int profile = live_board_profile_of_gi(gpu->live, &gpu->instances.gi[i]);
        if (gpu->instances.gi[i].id != row->gi || profile < 0)
            continue;
        snprintf(row->profile, sizeof row->profile, "%s", gpu->live->profiles[profile].name);
        row->slices = gpu->live->profiles[profile].compute_slices;
    }
}

static size_t row_of(struct page *page, const char *uuid, uint32_t gi, const char *label)
{
    for (size_t i = 0; i < page->sample->rows.count; i++)
        if (page->sample->rows.data[i].gi == gi &&
            !strcmp(page->sample->rows.data[i].uuid, uuid))
            return i;
    assert(page->board.count == page->sample->rows.count);
    struct metric_row *row = vec_push(&page->sample->rows);
    snprintf(row->uuid, sizeof row->uuid, "%s", uuid);
    row->gi = gi;
    row->ci = GPU_NO_INSTANCE;
    vec_push(&page->board);
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct metric_value *value = &row->values[i];
        value->level = gi == GPU_NO_INSTANCE ? METRIC_LEVEL_GPU : METRIC_LEVEL_INSTANCE;
        set_null(value, "%s",
                 gi != GPU_NO_INSTANCE && lowest_level[i] == METRIC_LEVEL_GPU
                     ? "exists for the whole GPU only"
                     : "not in the page");
    }
    if (gi != GPU_NO_INSTANCE)
        identify_row(page, row, label);
    return page->sample->rows.count - 1;
}

/* A reading of the board that the page repeats for every instance, each taken at another
 * moment: the board's row gets their mean. */
static void take_board_value(struct page *page, const char *uuid, enum metric metric,
                             double value)
{
    size_t row = row_of(page, uuid, GPU_NO_INSTANCE, "");
    struct metric_value *ret = &page->sample->rows.data[row].values[metric];

    assert(lowest_level[metric] == METRIC_LEVEL_GPU);
    page->board.data[row].sum[metric] += value;
    page->board.data[row].count[metric]++;
    ret->value = page->board.data[row].sum[metric] / page->board.data[row].count[metric];
    ret->reason[0] = '\0';
}

static void take_value(struct page *page, const struct series *series, enum metric metric,
                       double value)
{
    size_t row = row_of(page, series->uuid, series->gi, series->profile);
    struct metric_value *ret = &page->sample->rows.data[row].values[metric];

    if (is_blank(series->value)) {
        set_null(ret, "the page has DCGM's \"no value\"");
        return;
    }
    if (series->gi != GPU_NO_INSTANCE && lowest_level[metric] == METRIC_LEVEL_GPU) {
        take_board_value(page, series->uuid, metric, value);
        return;
    }
    ret->value = ret->raw = value;
    ret->reason[0] = '\0';
    if (text_ends_with(metric_name(metric), "_ratio") && !(value >= 0 && value <= 1))
        set_null(ret, "%g for a ratio of 0 to 1", value);
}

/* Free memory is kept apart: total = used + free where the page has no total. */
static void take_free_memory(struct page *page, const struct series *series)
{
    if (is_blank(series->value))
        return;
    size_t row = row_of(page, series->uuid, series->gi, series->profile);
    bool bytes = text_ends_with(series->name, "_BYTES");
    vec_push(&page->free_memory)->row = row;
    page->free_memory.data[page->free_memory.count - 1].free_mib =
        bytes ? series->value / (1 << 20) : series->value;
}

static void take_line(struct page *page, const char *line)
{
    struct series series;
    enum metric metric;
    double scale;

    if (*line == '#' || !read_series(line, &series))
        return;
    if (!strcmp(series.name, "DCGM_FI_DEV_FB_FREE") ||
        !strcmp(series.name, "DCGM_FI_DEV_FB_FREE_BYTES"))
        take_free_memory(page, &series);
    else if (read_name(series.name, &metric, &scale))
        take_value(page, &series, metric, series.value * scale);
}

static void add_totals(struct page *page)
{
    for (size_t i = 0; i < page->free_memory.count; i++) {
        struct metric_row *row = &page->sample->rows.data[page->free_memory.data[i].row];
        struct metric_value *total = &row->values[METRIC_MEMORY_TOTAL];
        if (!isnan(total->value) || isnan(row->values[METRIC_MEMORY_USED].value))
            continue;
        total->value =
            row->values[METRIC_MEMORY_USED].value + page->free_memory.data[i].free_mib;
        total->reason[0] = '\0';
    }
}

/* --- activity that cannot reach 1 --- */

/* The fewest slices of any instance on this GPU; 0 when one is unknown. From the inventory,
 * as a page may lack the series of an instance without load. */
static int smallest_slices(const struct page *page, const char *uuid)
{
    const struct gpu *gpu = find_gpu(page->inventory, uuid);
    int smallest = 0;

    for (int i = 0; gpu && gpu->live && i < gpu->instances.count; i++) {
        int profile = live_board_profile_of_gi(gpu->live, &gpu->instances.gi[i]);
        if (profile < 0)
            return 0;
        int slices = gpu->live->profiles[profile].compute_slices;
        if (!smallest || slices < smallest)
            smallest = slices;
    }
    return smallest;
}

/* Graphics activity of an instance is counted against the smallest instance of its GPU: a
 * saturated 3g beside a 1g shows 1/3 (user reports M1, 2.1). Such a value is no value. */
static void judge_activity(const struct page *page, struct metric_row *row)
{
    struct metric_value *value = &row->values[METRIC_GRAPHICS_ACTIVE];
    int smallest = smallest_slices(page, row->uuid);

    if (row->gi == GPU_NO_INSTANCE || isnan(value->value))
        return;
    value->raw = value->value;
    if (!row->slices || !smallest) {
        set_null(value,
                 "which instances the GPU has is not known, so the ratio's ceiling is not");
        return;
    }
    value->ceiling = (double)smallest / row->slices;
    if (row->slices == smallest)
        return;
    value->capped = true;
    set_null(value, "capped at %d/%d by the smallest instance of the GPU; use sm_active_ratio",
             smallest, row->slices);
}

void metric_page_parse(const char *text, const struct gpu_inventory *inventory,
                       struct metric_sample *ret_sample)
{
    struct page page = {.sample = ret_sample, .inventory = inventory};
    char line[LINE_MAX_BYTES];

    *ret_sample = (struct metric_sample){0};
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        if (length >= sizeof line)
            continue;
        memcpy(line, text, length);
        line[length] = '\0';
        take_line(&page, line);
    }
    add_totals(&page);
    for (size_t i = 0; i < ret_sample->rows.count; i++)
        judge_activity(&page, &ret_sample->rows.data[i]);
    vec_done(&page.free_memory);
    vec_done(&page.board);
}

/* --- the sampler --- */

struct sampler {
    struct metric_page page;
    const struct clock_source *clock;
};

static int op_sample(void *self, struct metric_sample *ret_sample, struct error *err)
{
    struct sampler *sampler = self;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int64_t now_ns = clock_now_ns(sampler->clock);

    int r = sampler->page.fetch(sampler->page.context, &text, err);
    if (r)
        return r;
    metric_page_parse(text.bytes, sampler->page.inventory, ret_sample);
    ret_sample->time_ns = now_ns;
    return 0;
}

static void op_close(void *self)
{
    free(self);
}

static const struct metric_sampler_ops ops = {
    .kind = "dcgm", .sample = op_sample, .close = op_close};

void metric_sampler_dcgm(const struct metric_page *page, const struct clock_source *clock,
                         struct metric_sampler *ret_sampler)
{
    struct sampler *sampler = xcalloc(1, sizeof *sampler);

    assert(page->fetch);
    sampler->page = *page;
    sampler->clock = clock;
    *ret_sampler = (struct metric_sampler){.ops = &ops, .self = sampler};
}
