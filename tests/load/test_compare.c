/* SPDX-License-Identifier: Apache-2.0
 *
 * Result documents: written, checked, summed up, exported, compared.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/compare.h"
#include "load/result_document.h"
#include "load/result_export.h"

/* A document of one cell with runs of these throughputs (ended by 0). */
static json_t *document_of(const char *model, const double *throughputs)
{
    json_t *document = result_document_new("experiment", "test", 1);
    for (; *throughputs > 0; throughputs++) {
        json_t *run = result_run_new((struct verdict){0}, "ok", "");
        struct hist *hist = hist_new();
        hist_record(hist, (int64_t)(1e9 / *throughputs));
        result_run_add_number(run, "throughput_rps", *throughputs);
        result_run_add_number(run, "unknown", NAN);
        result_run_add_times(run, "latency", hist);
        hist_free(hist);
        result_document_add(document,
                            json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s}", "model",
                                      model, "board", "a100-40gb", "slice", "1g.5gb", "batch",
                                      1, "procs", 1, "task", "inference", "device", "cpu-slice",
                                      "mode", "alone", "load", "closed"),
                            run);
    }
    result_document_finish(document);
    return document;
}

static struct compare_result compare(const double *a, const double *b, enum compare_test test)
{
    static const char *const figures[] = {"throughput_rps", NULL};
    CLEANUP(json_decref_ptr) json_t *before = document_of("m", a);
    CLEANUP(json_decref_ptr) json_t *after = document_of("m", b);
    struct compare_result result;
    compare_documents(before, after, &(struct compare_options){figures, test, 0.05, 0.05},
                      &result);
    return result;
}

static const double A[] = {100, 101, 99, 100, 100.5, 0};
static const double NOISY[] = {60, 140, 80, 120, 70, 0};

static void test_outcomes(void **state)
{
    (void)state;
    static const struct {
        double b[6];
        enum compare_outcome outcome;
    } cases[] = {
        {{80, 81, 79, 80, 80.5}, COMPARE_WORSE},
        {{120, 121, 119, 120, 120}, COMPARE_BETTER},
        {{97, 98, 96, 97, 97.5}, COMPARE_SAME}, /* significant, below the threshold */
        {{60, 140, 80, 120, 65}, COMPARE_SAME}, /* above it, not significant */
        {{80}, COMPARE_WORSE},                  /* no test: the threshold decides */
        {{0}, COMPARE_MISSING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int test = COMPARE_WELCH; test <= COMPARE_MANN_WHITNEY; test++) {
            struct compare_result result = compare(A, cases[i].b, (enum compare_test)test);
            assert_int_equal(result.list.count, 1);
            if (result.list.data[0].outcome != cases[i].outcome)
                fail_msg("case %zu: %s, p %g", i,
                         compare_outcome_name(result.list.data[0].outcome),
                         result.list.data[0].p);
            compare_result_done(&result);
        }
    struct compare_result same = compare(NOISY, NOISY, COMPARE_WELCH);
    assert_int_equal(same.counts[COMPARE_SAME], 1);
    compare_result_done(&same);
}

/* Latency is worse when it rises; Holm's correction never lowers a p value. */
static void test_latency_and_correction(void **state)
{
    (void)state;
    static const double B[] = {80, 81, 79, 80, 80.5, 0};
    static const char *const figures[] = {"throughput_rps", "latency_ms_mean", "latency_ms_p99",
                                          NULL};
    CLEANUP(json_decref_ptr) json_t *before = document_of("m", A);
    CLEANUP(json_decref_ptr) json_t *after = document_of("m", B);
    struct compare_result three, one = compare(A, B, COMPARE_WELCH);
    compare_documents(before, after,
                      &(struct compare_options){figures, COMPARE_WELCH, 0.05, 0.05}, &three);
    assert_int_equal(three.counts[COMPARE_WORSE], 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(three.list.data[i].p >= one.list.data[0].p);
    compare_result_done(&one);
    compare_result_done(&three);
}

static void test_summary(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *document = document_of("m", A);
    struct error err;
    if (result_document_check("d", document, &err) < 0)
        fail_msg("%s", err.text);
    const json_t *cell = json_array_get(json_object_get(document, "cells"), 0);
    const json_t *summary = json_object_get(json_object_get(cell, "summary"), "throughput_rps");
    assert_true(fabs(json_number_value(json_object_get(summary, "mean")) - 100.1) < 1e-9);
    assert_true(json_number_value(json_object_get(summary, "low")) < 100.1);
    assert_int_equal(json_integer_value(json_object_get(summary, "count")), 5);
    assert_null(json_object_get(json_object_get(cell, "summary"), "unknown"));
}

/* Runs that are INVALID count only where there is no other. */
static void test_invalid_runs(void **state)
{
    (void)state;
    json_t *document = document_of("m", A);
    json_t *bad = result_run_new((struct verdict){1u << REASON_UNSTEADY}, "ok", "");
    const json_t *cell = json_array_get(json_object_get(document, "cells"), 0);
    result_run_add_number(bad, "throughput_rps", 1);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(bad, "verdict_reasons"), 0)),
        "unsteady");
    result_document_add(document, json_incref(json_object_get(cell, "key")), bad);
    result_document_finish(document);
    const json_t *summary = json_object_get(json_object_get(cell, "summary"), "throughput_rps");
    assert_int_equal(json_integer_value(json_object_get(summary, "count")), 5);
    json_decref(document);
}

static void test_schema(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "not an object"},
        {"{}", "schema"},
        {"{\"schema\":\"tranche.result/2\"}", "tranche.result/1"},
        {"{\"schema\":\"tranche.result/1\",\"kind\":\"x\",\"provenance\":{}}", "cells"},
        {"{\"schema\":\"tranche.result/1\",\"kind\":\"x\",\"provenance\":{},\"cells\":[{}]}",
         "cells[0].key"},
        {"{\"schema\":\"tranche.result/"
         "1\",\"kind\":\"x\",\"provenance\":{},\"cells\":[{\"key\":"
         "{},\"runs\":[{\"status\":\"ok\",\"verdict\":\"MAYBE\",\"verdict_reasons\":[],"
         "\"figures\":{}}]}]}",
         "MAYBE"},
        {"{\"schema\":\"tranche.result/"
         "1\",\"kind\":\"x\",\"provenance\":{},\"cells\":[{\"key\":"
         "{},\"runs\":[{\"status\":\"ok\",\"verdict\":\"VALID\",\"verdict_reasons\":[],"
         "\"figures\":{\"f\":\"1\"}}]}]}",
         "figures.f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(json_decref_ptr) json_t *document = NULL;
        struct error err = {0};
        assert_int_equal(json_parse("f", cases[i].text, strlen(cases[i].text), &document, &err),
                         0);
        assert_int_equal(result_document_check("f", document, &err), -E_INPUT);
        if (!strstr(err.text, cases[i].says))
            fail_msg("case %zu: %s", i, err.text);
    }
}

static void test_exports(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *document = document_of("m\"x", A);
    CLEANUP(str_done) struct str csv = STR_EMPTY;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct measurement_set set, again;
    struct error err;
    assert_int_equal(result_export_measurements(document, &set, &err), 0);
    measurement_set_format(&set, &csv);
    if (measurement_set_parse("m.csv", csv.bytes, csv.length, &again, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(fabs(again.rows.data[0].throughput_rps - 100.1) < 1e-9);
    assert_true(fabs(again.rows.data[0].latency_ms[LATENCY_P99] - 9.99) < 0.1);
    measurement_set_done(&set);
    measurement_set_done(&again);
    result_export_prometheus(document, &text);
    assert_non_null(strstr(text.bytes, "tranche_bench_throughput_rps{model=\"m\\\"x\","));
    assert_non_null(strstr(text.bytes, "GPU_I_PROFILE=\"1g.5gb\""));
    str_clear(&text);
    result_export_mlperf(document, &text);
    assert_non_null(strstr(text.bytes, "Result is : VALID"));
    str_clear(&text);
    result_export_migperf(document, &text);
    assert_non_null(strstr(text.bytes, "\"m\"\"x\",1,,"));
    str_clear(&text);
    result_export_lines(document, &text);
    assert_non_null(strstr(text.bytes, "\"repetition\":4"));
}

/* Cells are the same when their keys are equal, in whatever order the members stand. */
static void keys_are_found_by_value(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *document = result_document_new("t", "0", 1);
    struct result_index index = {0};
    for (int i = 0; i < 3; i++)
        result_index_add(&index, document, json_pack("{s:s, s:i}", "model", "m", "batch", i),
                         json_object());
    result_index_add(&index, document, json_pack("{s:i, s:s}", "batch", 1, "model", "m"),
                     json_object());
    result_index_done(&index);
    assert_int_equal(json_array_size(json_object_get(document, "cells")), 3);
    result_index_init(&index, document);
    CLEANUP(json_decref_ptr) json_t *key = json_pack("{s:i, s:s}", "batch", 1, "model", "m");
    CLEANUP(json_decref_ptr) json_t *other = json_pack("{s:i, s:s}", "batch", 9, "model", "m");
    const json_t *cell = result_index_find(&index, key);
    assert_ptr_equal(cell, json_array_get(json_object_get(document, "cells"), 1));
    assert_int_equal(json_array_size(json_object_get(cell, "runs")), 2);
    assert_null(result_index_find(&index, other));
    result_index_done(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_by_value),
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_latency_and_correction),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_invalid_runs),
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
