/* SPDX-License-Identifier: Apache-2.0
 *
 * What all samplers share: names, lookup, JSON, and the sharing out of power.
 */
#include "gpu/metrics.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "gpu/nvml_abi.h"

static const char *const names[METRIC_COUNT] = {
#define X(id, name, level, reading, scale, gpm, gpm_scale) [METRIC_##id] = name,
    METRICS(X)
#undef X
};

const char *metric_name(enum metric metric)
{
    assert(metric < METRIC_COUNT);
    return names[metric];
}

const char *metric_level_name(enum metric_level level)
{
    static const char *const words[METRIC_LEVEL_COUNT] = {
        [METRIC_LEVEL_GPU] = "gpu",
        [METRIC_LEVEL_INSTANCE] = "gpu_instance",
        [METRIC_LEVEL_COMPUTE] = "compute_instance",
    };
    assert(level < METRIC_LEVEL_COUNT);
    return words[level];
}

void metric_sample_done(struct metric_sample *sample)
{
    vec_done(&sample->rows);
}

void metric_sampler_close(struct metric_sampler *sampler)
{
    if (sampler->ops)
        sampler->ops->close(sampler->self);
    *sampler = (struct metric_sampler){0};
}

const struct metric_row *metric_sample_find_ci(const struct metric_sample *sample,
                                               const char *uuid, uint32_t gi, uint32_t ci)
{
    assert(uuid);
    for (size_t i = 0; i < sample->rows.count; i++) {
        const struct metric_row *row = &sample->rows.data[i];
        if (row->gi == gi && row->ci == ci && !strcmp(row->uuid, uuid))
            return row;
    }
    return NULL;
}

const struct metric_row *metric_sample_find(const struct metric_sample *sample,
                                            const char *uuid, uint32_t gi)
{
    return metric_sample_find_ci(sample, uuid, gi, GPU_NO_INSTANCE);
}

void metric_clock_reasons(uint64_t reasons, struct str *text)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } bits[] = {
#define X(id, bit, name) {bit, name},
        NVML_CLOCKS_EVENT_REASONS(X)
#undef X
    };
    const char *separator = "";

    assert(text);
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (reasons & bits[i].bit) {
            str_addf(text, "%s%s", separator, bits[i].name);
            separator = " ";
        }
    if (!reasons)
        str_add(text, "none");
}

static json_t *value_to_json(const struct metric_value *value)
{
    json_t *json = json_object();

    json_object_set_new(json, "value",
                        isnan(value->value) ? json_null() : json_real(value->value));
    json_object_set_new(json, "level", json_string(metric_level_name(value->level)));
    if (value->capped) {
        json_object_set_new(json, "capped", json_true());
        json_object_set_new(json, "raw", json_real(value->raw));
        json_object_set_new(json, "ceiling", json_real(value->ceiling));
    }
    if (value->reason[0])
        json_object_set_new(json, "reason", json_string(value->reason));
    return json;
}

static json_t *row_to_json(const struct metric_row *row)
{
    json_t *json = json_object(), *metrics = json_object();

    json_object_set_new(json, "gpu", json_string(row->uuid));
    json_object_set_new(json, "gpu_instance",
                        row->gi == GPU_NO_INSTANCE ? json_null() : json_integer(row->gi));
    json_object_set_new(json, "compute_instance",
                        row->ci == GPU_NO_INSTANCE ? json_null() : json_integer(row->ci));
    if (row->profile[0])
        json_object_set_new(json, "profile", json_string(row->profile));
    for (int i = 0; i < METRIC_COUNT; i++)
        json_object_set_new(metrics, names[i], value_to_json(&row->values[i]));
    if (!isnan(row->values[METRIC_CLOCK_REASONS].value)) {
        CLEANUP(str_done) struct str words = STR_EMPTY;
        metric_clock_reasons((uint64_t)row->values[METRIC_CLOCK_REASONS].value, &words);
        json_object_set_new(json_object_get(metrics, names[METRIC_CLOCK_REASONS]), "words",
                            json_string(words.bytes));
    }
    json_object_set_new(json, "metrics", metrics);
    return json;
}

json_t *metric_sample_to_json(const struct metric_sample *sample)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < sample->rows.count; i++)
        json_array_append_new(rows, row_to_json(&sample->rows.data[i]));
    return json_pack("{s:I, s:o}", "time_ns", (json_int_t)sample->time_ns, "rows", rows);
}

enum power_rule power_share(double board_w, double idle_w, struct power_part *parts,
                            size_t count)
{
    double above = board_w - fmin(idle_w, board_w), by_activity = 0, by_slices = 0;

    assert(board_w >= 0 && idle_w >= 0);
    for (size_t i = 0; i < count; i++) {
        by_activity += parts[i].slices * parts[i].activity; /* NAN when one is unknown */
        by_slices += parts[i].slices;
        parts[i].watts = 0;
    }
    if (!(above > 0) || !(by_slices > 0))
        return POWER_BY_NOTHING;
    bool known = by_activity > 0;
    for (size_t i = 0; i < count; i++)
        parts[i].watts = known ? above * parts[i].slices * parts[i].activity / by_activity
                               : above * parts[i].slices / by_slices;
    return known ? POWER_BY_ACTIVITY : POWER_BY_SLICES;
}

const char *power_rule_name(enum power_rule rule)
{
    static const char *const rules[POWER_RULE_COUNT] = {
        [POWER_BY_NOTHING] = "none",
        [POWER_BY_SLICES] = "slices",
        [POWER_BY_ACTIVITY] = "activity x slices",
    };

    assert(rule < POWER_RULE_COUNT);
    return rules[rule];
}
