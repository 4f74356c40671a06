/* SPDX-License-Identifier: Apache-2.0
 *
 * See result_sum.h.
 */
#include "load/result_sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hist.h"
#include "load/result_document.h"

/* How the figures of several slices become one. Percentiles and means of times are in no row:
 * they come with the merged histograms. */
enum rule { RULE_SUM, RULE_MEAN, RULE_LEAST, RULE_MOST };
static const struct {
    const char *figure;
    enum rule rule;
} rules[] = {
    {"throughput_rps", RULE_SUM},
    {"offered_rps", RULE_SUM},
    {"cpu_cores", RULE_SUM},
    {"cpu_quota_cores", RULE_SUM},
    {"memory_mib", RULE_SUM},
    {"gpu_memory_mib", RULE_SUM},
    {"energy_slice_estimate_j", RULE_SUM},
    /* Of slices of one kind. */
    {"gpu_activity", RULE_MEAN},
    {"throttled_share", RULE_MEAN},
    {"duration_s", RULE_MEAN},
    /* Of the whole GPU, seen by each. */
    {"power_w", RULE_MEAN},
    {"power_idle_w", RULE_MEAN},
    {"energy_j", RULE_MEAN},
    {"energy_above_idle_j", RULE_MEAN},
    {"energy_window_s", RULE_MEAN},
    {"sm_clock_mhz", RULE_MEAN},
    {"memory_clock_mhz", RULE_MEAN},
    {"sm_clock_mhz_min", RULE_LEAST},
    {"temperature_c_max", RULE_MOST},
};

static double figure(const json_t *run, const char *name)
{
    const json_t *value = json_object_get(json_object_get(run, "figures"), name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double combine(const json_t *runs, const char *name, enum rule rule)
{
    double combined = figure(json_array_get(runs, 0), name);
    size_t count = json_array_size(runs);
    for (size_t i = 1; i < count; i++) {
        double value = figure(json_array_get(runs, i), name);
        if (isnan(value) || isnan(combined))
            return NAN;
        if (rule == RULE_LEAST)
            combined = fmin(combined, value);
        else if (rule == RULE_MOST)
            combined = fmax(combined, value);
        else
            combined += value;
    }
    return rule == RULE_MEAN ? combined / (double)count : combined;
}

static void merge_times(json_t *sum, const json_t *runs, const char *name)
{
    CLEANUP(hist_free_ptr) struct hist *merged = hist_new();
    size_t index;
    const json_t *run;
    json_array_foreach(runs, index, run)
    {
        CLEANUP(hist_free_ptr) struct hist *one = NULL;
        const char *text =
            json_string_value(json_object_get(json_object_get(run, "histograms"), name));
        if (text && hist_decode(text, &one, NULL) == 0)
            hist_merge(merged, one);
    }
    result_run_add_times(sum, name, merged);
}

/* Every histogram that the first has: slices of one cell have the same. */
static void merge_all_times(json_t *sum, const json_t *runs)
{
    const char *name;
    const json_t *text;
    json_object_foreach(json_object_get(json_array_get(runs, 0), "histograms"), name, text)
        merge_times(sum, runs, name);
}

static void add_counts(json_t *sum, const json_t *runs)
{
    const char *name;
    const json_t *first, *run;
    json_object_foreach(json_object_get(json_array_get(runs, 0), "counts"), name, first)
    {
        json_int_t total = 0;
        size_t index;
        json_array_foreach(runs, index, run) total +=
            json_integer_value(json_object_get(json_object_get(run, "counts"), name));
        result_run_add_count(sum, name, (uint64_t)total);
    }
}

static void add_reasons(json_t *all, const json_t *run)
{
    size_t index, k;
    const json_t *reason, *known;
    json_array_foreach(json_object_get(run, "verdict_reasons"), index, reason)
    {
        bool found = false;
        json_array_foreach(all, k, known) found |= json_equal(known, reason) != 0;
        if (!found)
            json_array_append(all, (json_t *)reason);
    }
}

/* The first run that is not ok, else the first. */
static const json_t *telling_run(const json_t *runs)
{
    size_t index;
    const json_t *run;
    json_array_foreach(runs, index, run)
    {
        if (strcmp(json_string_value(json_object_get(run, "status")), "ok") != 0)
            return run;
    }
    return json_array_get(runs, 0);
}

/* Words that go with figures: those of the first run that has them. */
static void copy_words(json_t *sum, const json_t *runs)
{
    static const char *const words[] = {"how",
                                        "runtime",
                                        "runtime_version",
                                        "device_name",
                                        "clock_event_reasons",
                                        "energy_slice_rule",
                                        "gpu_unknown"};
    size_t index;
    const json_t *run;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        json_array_foreach(runs, index, run)
        {
            json_t *text = json_object_get(run, words[i]);
            if (text && !json_object_get(sum, words[i]))
                json_object_set(sum, words[i], text);
        }
}

json_t *result_runs_sum(json_t *runs)
{
    const json_t *telling = telling_run(runs), *run;
    size_t index;
    assert(json_array_size(runs) > 0);
    json_t *sum = result_run_new((struct verdict){0},
                                 json_string_value(json_object_get(telling, "status")),
                                 json_string_value(json_object_get(telling, "reason")));
    json_t *reasons = json_object_get(sum, "verdict_reasons");
    json_array_foreach(runs, index, run) add_reasons(reasons, run);
    if (json_array_size(reasons) > 0)
        json_object_set_new(sum, "verdict", json_string("INVALID"));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        result_run_add_number(sum, rules[i].figure,
                              combine(runs, rules[i].figure, rules[i].rule));
    merge_all_times(sum, runs);
    add_counts(sum, runs);
    copy_words(sum, runs);
    json_object_set(sum, "instances", runs);
    return sum;
}
