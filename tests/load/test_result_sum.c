/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of slices that worked together as one run: what adds up, what is of the whole GPU, how
 * histograms merge, and what a slice that knows less does to the sum.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/hist.h"
#include "load/result_document.h"
#include "load/result_sum.h"

static double figure(const json_t *run, const char *name)
{
    const json_t *value = json_object_get(json_object_get(run, "figures"), name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *words(const json_t *run, const char *name)
{
    const char *text = json_string_value(json_object_get(run, name));
    return text ? text : "(none)";
}

/* What a slice says on a GPU: the board's figures as each sees them at its own moments. */
static struct gpu_figures gpu_of(int slice)
{
    struct gpu_figures gpu;
    gpu_figures_clear(&gpu);
    gpu.samples = 10;
    gpu.window_s = 2;
    gpu.memory_mib = 1000 + 100 * slice;
    gpu.activity = 0.25 * (slice + 1);
    gpu.power_w = 200 + 2 * slice;
    gpu.power_idle_w = 50;
    gpu.energy_j = 400 + 4 * slice;
    gpu.energy_above_idle_j = 300 + 4 * slice;
    gpu.energy_slice_estimate_j = 60 + 10 * slice;
    gpu.slice_rule = "activity × slices";
    gpu.sm_clock_mhz = 1400 + 2 * slice;
    gpu.sm_clock_mhz_min = 1350 - 10 * slice;
    gpu.memory_clock_mhz = 1215;
    gpu.temperature_c_max = 60 + slice;
    return gpu;
}

static json_t *run_of(int slice, const struct gpu_figures *gpu)
{
    CLEANUP(hist_free_ptr) struct hist *latency = hist_new();
    json_t *run = result_run_new((struct verdict){0}, "ok", NULL);
    result_run_add_number(run, "throughput_rps", 100 + slice);
    if (gpu)
        result_run_add_gpu(run, gpu);
    hist_record_many(latency, (int64_t)(slice + 1) * 1000000, 10);
    result_run_add_times(run, "latency", latency);
    result_run_add_times(run, "backward", latency);
    result_run_add_count(run, "steps", 10);
    return run;
}

static void gpu_figures_of_several_slices(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *runs = json_array();
    for (int i = 0; i < 3; i++) {
        struct gpu_figures gpu = gpu_of(i);
        json_array_append_new(runs, run_of(i, &gpu));
    }
    CLEANUP(json_decref_ptr) json_t *sum = result_runs_sum(runs);
    static const struct {
        const char *name;
        double value;
    } wanted[] = {
        {"throughput_rps", 303}, /* slices add up … */
        {"gpu_memory_mib", 3300},
        {"energy_slice_estimate_j", 210},
        {"gpu_activity", 0.5}, /* … their activity is a mean … */
        {"power_w", 202},      /* … and the board is one: it is not counted three times */
        {"power_idle_w", 50},
        {"energy_j", 404},
        {"energy_above_idle_j", 304},
        {"energy_window_s", 2},
        {"sm_clock_mhz", 1402},
        {"sm_clock_mhz_min", 1330},
        {"memory_clock_mhz", 1215},
        {"temperature_c_max", 62},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (fabs(figure(sum, wanted[i].name) - wanted[i].value) > 1e-9)
            fail_msg("%s is %g, expected %g", wanted[i].name, figure(sum, wanted[i].name),
                     wanted[i].value);
    assert_true(figure(sum, "energy_slice_estimate_j") <= figure(sum, "energy_above_idle_j"));
    assert_string_equal(words(sum, "energy_slice_rule"), "activity × slices");
    assert_int_equal(json_array_size(json_object_get(sum, "instances")), 3);
    assert_string_equal(words(sum, "verdict"), "VALID");
}

static void times_merge_exactly(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *runs = json_array();
    CLEANUP(hist_free_ptr) struct hist *all = hist_new();
    for (int i = 0; i < 3; i++) {
        json_array_append_new(runs, run_of(i, NULL));
        hist_record_many(all, (int64_t)(i + 1) * 1000000, 10);
    }
    CLEANUP(json_decref_ptr) json_t *sum = result_runs_sum(runs);
    static const char *const names[] = {"latency", "backward"};
    CLEANUP(str_done) struct str wanted = STR_EMPTY;
    hist_encode(all, &wanted);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(words(json_object_get(sum, "histograms"), names[i]), wanted.bytes);
    assert_true(figure(sum, "latency_ms_p50") == (double)hist_percentile_ns(all, 50) / 1e6);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(sum, "counts"), "steps")), 30);
}

/* A slice whose GPU could not be read: the sum has no figure that would be too small, and why.
 */
static void what_one_lacks_is_unknown(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *runs = json_array();
    struct gpu_figures known = gpu_of(0), unknown;
    gpu_figures_clear(&unknown);
    snprintf(unknown.reason, sizeof unknown.reason, "no permission");
    json_array_append_new(runs, run_of(0, &known));
    json_array_append_new(runs, run_of(1, &unknown));
    CLEANUP(json_decref_ptr) json_t *sum = result_runs_sum(runs);
    static const char *const names[] = {"gpu_memory_mib", "energy_slice_estimate_j", "power_w",
                                        "temperature_c_max"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(isnan(figure(sum, names[i])));
    assert_true(figure(sum, "throughput_rps") == 201);
    assert_string_equal(words(sum, "gpu_unknown"), "no permission");
}

static void the_worst_tells(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *runs = json_array();
    struct verdict late = {0};
    verdict_add(&late, REASON_CLIENT, true);
    json_array_append_new(runs, run_of(0, NULL));
    json_array_append_new(runs, result_run_new(late, "ok", NULL));
    CLEANUP(json_decref_ptr) json_t *sum = result_runs_sum(runs);
    assert_string_equal(words(sum, "status"), "ok");
    assert_string_equal(words(sum, "verdict"), "INVALID");
    json_array_append_new(runs, result_run_new((struct verdict){0}, "oom", "too big"));
    CLEANUP(json_decref_ptr) json_t *worse = result_runs_sum(runs);
    assert_string_equal(words(worse, "status"), "oom");
    assert_string_equal(words(worse, "reason"), "too big");
    assert_string_equal(words(worse, "verdict"), "INVALID");
    assert_int_equal(json_array_size(json_object_get(worse, "verdict_reasons")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_figures_of_several_slices),
        cmocka_unit_test(times_merge_exactly),
        cmocka_unit_test(what_one_lacks_is_unknown),
        cmocka_unit_test(the_worst_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
