/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer: each format from a small text of its own, what is set right, what is
 * refused, and the published files where they are at hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "load/import.h"

static const char MIGPERF[] =
    ",Unnamed: 0,model_name,batch_size,seq_length,latency,latency_std,throughput,"
    "start_timestamp,end_timestamp,mig_profile,gract_mean,fb_used_mean\n"
    "0,0,bert-base,8,64,38.01,0.52,78.93,1661756634,1661756755,7g.80gb,0.95,4817.77\n"
    "1,0,bert-base,16,64,0,0,0,0,0,1g.10gb,0.0,0.0\n"
    "2,0,bert-base,8,64,10,0.5,800,0,0,3g,0.9,100\n";

static const char MLPERF[] = "================================================\n"
                             "MLPerf Results Summary\n"
                             "================================================\n"
                             "SUT name : Triton_Server\n"
                             "Scenario : SingleStream\n"
                             "Mode     : PerformanceOnly\n"
                             "90th percentile latency (ns) : 1357160\n"
                             "Result is : VALID\n"
                             "  Min duration satisfied : Yes\n"
                             "================================================\n"
                             "Additional Stats\n"
                             "================================================\n"
                             "QPS w/ loadgen overhead         : 790.12\n"
                             "QPS w/o loadgen overhead        : 800.25\n"
                             "\n"
                             "Mean latency (ns)               : 1250000\n"
                             "50.00 percentile latency (ns)   : 1200000\n"
                             "90.00 percentile latency (ns)   : 1357160\n"
                             "99.90 percentile latency (ns)   : 2000000\n";

static const char PERF_ANALYZER[] =
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,"
    "Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,p50 latency,"
    "p90 latency,p95 latency,p99 latency,Avg GPU Power Usage,Max GPU Memory Usage\n"
    "4,400,10,100,5000,50,4800,40,0,9900,10100,10500,12000,GPU-1:88.5;,GPU-1:1048576000;\n"
    "1,190.5,10,100,50,50,5000,40,0,5200,5400,5500,6000,GPU-1:80.5;,GPU-1:1048576000;\n";

static const char MODEL_ANALYZER[] =
    "Model,Batch,Concurrency,Model Config Path,Instance Group,Max Batch Size,"
    "Satisfies Constraints,Throughput (infer/sec),p99 Latency (ms)\n"
    "resnet,8,2,resnet_config_1,2:GPU,8,Yes,1500.5,21.4\n"
    "resnet,8,16,resnet_config_1,2:GPU,8,Yes,1700,90.1\n";

static const char MODEL_ANALYZER_RAW[] =
    "model_name,batch_size,concurrency,model_config_path,instance_group,max_batch_size,"
    "satisfies_constraints,perf_throughput,perf_latency_p99\n"
    "resnet,4,1,resnet_config_default,1/GPU,8,Yes,500,9.5\n";

static const char AIPERF[] =
    "{\"input_config\": {\"endpoint\": {\"model_names\": [\"qwen\"]}},\n"
    " \"request_throughput\": {\"unit\": \"requests/sec\", \"avg\": 12.5},\n"
    " \"request_latency\": {\"unit\": \"s\", \"avg\": 0.08, \"p50\": 0.075, \"p99\": 0.2},\n"
    " \"time_to_first_token\": {\"unit\": \"ms\", \"avg\": 20}}\n";

static const char PARVAGPU[] = "Mig instance,Batch size,Workload Number,Throughput,Latency\r\n"
                               "1,2,3,40.25,0.057\r\n"
                               "7,256,5,0,0";

/* Imports one text; exits the test on failure. */
static struct import_counts import_text(const struct import_defaults *defaults,
                                        const char *text, struct measurement_set *ret_set)
{
    struct error err = {0};
    struct import_counts counts;
    CLEANUP(import_free_ptr) struct import *import = NULL;
    if (import_new(defaults, &import, &err) < 0 ||
        import_bytes(import, "a/bert.csv", text, strlen(text), &err) < 0)
        fail_msg("%s", err.text);
    import_finish(import, ret_set, &counts);
    assert_int_equal(counts.rows, ret_set->rows.count);
    return counts;
}

static void is_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static void test_migperf(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a100-80gb", .task = TASK_TRAINING};
    struct import_counts counts = import_text(&defaults, MIGPERF, &set);
    const struct measurement *rows = set.rows.data;
    assert_int_equal(counts.rows, 3);
    assert_int_equal(counts.recomputed, 1);
    is_near(rows[0].throughput_rps, strtod("210.470928703", NULL)); /* 8000 / 38.01 */
    is_near(rows[0].latency_ms[LATENCY_MEAN], 38.01);
    is_near(rows[0].memory_mib, 4817.77);
    assert_int_equal(rows[0].task, TASK_TRAINING);
    assert_string_equal(rows[0].device, "cuda");
    assert_string_equal(rows[0].model, "bert-base"); /* one length: no suffix */
    assert_int_equal(rows[1].status, STATUS_OOM);
    assert_true(isnan(rows[1].latency_ms[LATENCY_MEAN]) && isnan(rows[1].memory_mib));
    is_near(rows[2].throughput_rps, 800);
    assert_string_equal(rows[2].board->profiles[rows[2].profile].name, "3g.40gb");
    measurement_set_done(&set);
}

/* Lengths become models; the later of two rows of one key counts. */
static void test_sequence_lengths(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a100-40gb"};
    struct import_counts counts =
        import_text(&defaults,
                    "model_name,seq_length,batch_size,latency,throughput,instance_memory\n"
                    "m,32,32,10,3200,20\nm,64,32,20,1600,20\nm,64,32,25,1280,20\n"
                    "n,64,32,20,1600,40\n",
                    &set);
    assert_int_equal(counts.rows, 3);
    assert_int_equal(counts.superseded, 1);
    assert_string_equal(set.rows.data[0].model, "m-seq32");
    assert_string_equal(set.rows.data[1].model, "m-seq64");
    is_near(set.rows.data[1].throughput_rps, 1280);
    assert_string_equal(set.rows.data[2].model, "n");
    const struct mig_board *board = set.rows.data[0].board;
    assert_string_equal(board->profiles[set.rows.data[0].profile].name, "3g.20gb");
    assert_string_equal(board->profiles[set.rows.data[2].profile].name, "7g.40gb");
    measurement_set_done(&set);
}

static void test_mlperf(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a30-24gb", .model = "resnet", .slice = "1g"};
    import_text(&defaults, MLPERF, &set);
    const struct measurement *row = &set.rows.data[0];
    is_near(row->throughput_rps, 800);
    is_near(row->latency_ms[LATENCY_MEAN], 1.25);
    is_near(row->latency_ms[LATENCY_P90], 1.35716);
    is_near(row->latency_ms[LATENCY_P999], 2);
    assert_true(isnan(row->latency_ms[LATENCY_P95]));
    assert_int_equal(row->batch, 1);
    measurement_set_done(&set);
}

static void test_mlperf_offline_and_invalid(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {
        .board = "a30-24gb", .model = "resnet", .slice = "1g", .batch = 64};
    import_text(&defaults,
                "MLPerf Results Summary\nScenario : Offline\nSamples per second: 4000.5\n"
                "Result is : VALID\n50.00 percentile latency (ns) : 1000000000\n",
                &set);
    is_near(set.rows.data[0].throughput_rps, 4000.5);
    assert_true(isnan(set.rows.data[0].latency_ms[LATENCY_P50]));
    assert_int_equal(set.rows.data[0].batch, 64);
    measurement_set_done(&set);
    import_text(&defaults,
                "MLPerf Results Summary\nScenario : Server\n"
                "Scheduled samples per second : 10\nResult is : INVALID\n"
                "  Min queries satisfied : NO\n",
                &set);
    assert_int_equal(set.rows.data[0].status, STATUS_ERROR);
    assert_non_null(strstr(set.rows.data[0].reason, "Min queries satisfied"));
    measurement_set_done(&set);
}

/* Of several concurrencies the one without queueing is the batch's own latency. */
static void test_perf_analyzer(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "t4-16gb", .model = "resnet"};
    struct import_counts counts = import_text(&defaults, PERF_ANALYZER, &set);
    const struct measurement *row = &set.rows.data[0];
    assert_int_equal(counts.rows, 1);
    assert_int_equal(counts.other_loads, 1);
    is_near(row->throughput_rps, 190.5);
    is_near(row->latency_ms[LATENCY_MEAN], 5.25);
    is_near(row->latency_ms[LATENCY_P99], 6);
    is_near(row->memory_mib, 1000);
    is_near(row->power_w, 80.5);
    assert_string_equal(row->board->profiles[row->profile].name, "whole");
    measurement_set_done(&set);
}

static void test_model_analyzer(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a100-40gb", .slice = "2g"};
    import_text(&defaults, MODEL_ANALYZER, &set);
    const struct measurement *row = &set.rows.data[0];
    assert_int_equal(set.rows.count, 1);
    assert_int_equal(row->procs, 2);
    assert_int_equal(row->batch, 8);
    is_near(row->throughput_rps, 1500.5);
    is_near(row->latency_ms[LATENCY_P99], 21.4);
    measurement_set_done(&set);
    import_text(&defaults, MODEL_ANALYZER_RAW, &set);
    is_near(set.rows.data[0].throughput_rps, 500);
    assert_int_equal(set.rows.data[0].procs, 1);
    measurement_set_done(&set);
}

static void test_aiperf(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a100-40gb", .slice = "7g"};
    import_text(&defaults, AIPERF, &set);
    const struct measurement *row = &set.rows.data[0];
    assert_string_equal(row->model, "qwen");
    is_near(row->throughput_rps, 12.5);
    is_near(row->latency_ms[LATENCY_MEAN], 80);
    is_near(row->latency_ms[LATENCY_P99], 200);
    assert_string_equal(set.extra_columns.data[0], "time_to_first_token_ms");
    measurement_set_done(&set);
}

static void test_parvagpu(void **state)
{
    (void)state;
    struct measurement_set set;
    struct import_defaults defaults = {.board = "a100-80gb", .model = "{file}"};
    import_text(&defaults, PARVAGPU, &set);
    const struct measurement *rows = set.rows.data;
    assert_string_equal(rows[0].model, "bert");
    is_near(rows[0].throughput_rps, 120.75);
    is_near(rows[0].latency_ms[LATENCY_MEAN], 57);
    assert_int_equal(rows[0].procs, 3);
    assert_int_equal(rows[1].status, STATUS_OOM);
    assert_string_equal(rows[1].board->profiles[rows[1].profile].name, "7g.80gb");
    measurement_set_done(&set);
}

/* What cannot be read, with what the message names. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        struct import_defaults defaults;
    } cases[] = {
        {PARVAGPU, "column \"model\" is missing", {.board = "a100-80gb"}},
        {PARVAGPU, "column \"board\" is missing", {.model = "m"}},
        {MLPERF, "column \"slice\" is missing", {.model = "m", .board = "a100-80gb"}},
        {MLPERF, "column \"model\" is missing", {.slice = "1g", .board = "a100-80gb"}},
        {MIGPERF, "\"7g.80gb\"", {.board = "a100-40gb"}},
        {"a,b\n1,2\n", "no known format", {.board = "a100-40gb"}},
        {"a,b\n1,2\n",
         "column \"model_name\" is missing",
         {.board = "a100-40gb", .format = "migperf"}},
        {"a,b\n1,2\n", "perf_throughput", {.board = "a100-40gb", .format = "model-analyzer"}},
        {"{}", "request_latency", {.board = "a100-40gb", .format = "aiperf"}},
        {"x", "MLPerf Results Summary", {.board = "a100-40gb", .format = "mlperf"}},
        {"MLPerf Results Summary\nScenario : Fast\n", "SingleStream", {.board = "a100-40gb"}},
        {"model_name,batch_size,latency,throughput\nm,x,1,1\n", ":2:3: ", {.board = "t4-16gb"}},
        {"model_name,batch_size,latency,throughput\nm,1.5,1,1\n",
         "whole number",
         {.board = "t4-16gb"}},
        {"model_name,batch_size,latency,throughput\n", "no result", {.board = "t4-16gb"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        CLEANUP(import_free_ptr) struct import *import = NULL;
        assert_int_equal(import_new(&cases[i].defaults, &import, &err), 0);
        int failure = import_bytes(import, "f", cases[i].text, strlen(cases[i].text), &err);
        if (failure != -E_INPUT || !strstr(err.text, cases[i].says) ||
            strncmp(err.text, "f:", 2) != 0)
            fail_msg("case %zu: %d \"%s\", expected \"%s\"", i, failure, err.text,
                     cases[i].says);
    }
}

/* What is written can be read by the reader of measurements. */
static void test_written_rows_read_back(void **state)
{
    (void)state;
    static const char *const texts[] = {MIGPERF,        MLPERF, PERF_ANALYZER,
                                        MODEL_ANALYZER, AIPERF, PARVAGPU};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct measurement_set set, again;
        struct import_defaults defaults = {.board = "a100-80gb", .slice = "2g", .model = "m"};
        CLEANUP(str_done) struct str csv = STR_EMPTY;
        struct error err = {0};
        import_text(&defaults, texts[i], &set);
        measurement_set_format(&set, &csv);
        if (measurement_set_parse("again", csv.bytes, csv.length, &again, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(again.rows.count, set.rows.count);
        measurement_set_done(&set);
        measurement_set_done(&again);
    }
}

/* The file below shared/data/profiles, or NULL with the test skipped. */
static char *published(const char *file)
{
    const char *root = getenv("TRANCHE_SOURCE_ROOT");
    char *path = xasprintf("%s/../shared/data/profiles/%s", root ? root : ".", file);
    if (access(path, R_OK) != 0) {
        free(path);
        print_message("%s is not there\n", file);
        skip();
    }
    return path;
}

static void import_published(const char *file, const struct import_defaults *defaults,
                             struct measurement_set *ret_set)
{
    struct error err = {0};
    struct import_counts counts;
    CLEANUP(import_free_ptr) struct import *import = NULL;
    CLEANUP(free_ptr) char *path = published(file);
    assert_int_equal(import_new(defaults, &import, &err), 0);
    if (import_file(import, path, &err) < 0)
        fail_msg("%s", err.text);
    import_finish(import, ret_set, &counts);
}

/* Throughput × latency is the batch in every row, also where the file lost it. */
static void test_published_migperf(void **state)
{
    (void)state;
    static const struct {
        const char *file, *board;
        size_t rows, oom;
    } files[] = {
        {"migperf-a100/A100-80g/infer/cv/integrated_result.csv", "a100-80gb", 72, 0},
        {"migperf-a100/A100-80g/infer/nlp/integrated_result_bsz.csv", "a100-80gb", 36, 0},
        {"migperf-a100/A100-80g/infer/nlp/integrated_result_seq.csv", "a100-80gb", 20, 0},
        {"migperf-a100/A100-80g/train/nlp/integrated_result_bsz.csv", "a100-80gb", 24, 1},
        {"migperf-a100/A100-80g/train/nlp/integrated_result_seq.csv", "a100-80gb", 20, 2},
        {"migperf-a100/A100-40g/finetune_vit/vit_finetune.csv", "a100-40gb", 20, 7},
        {"migperf-a100/A100-40g/infer_bsz/mpnet/mpnet_bsz.csv", "a100-40gb", 36, 0},
    };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct measurement_set set;
        struct import_defaults defaults = {.board = files[f].board};
        size_t oom = 0;
        import_published(files[f].file, &defaults, &set);
        assert_int_equal(set.rows.count, files[f].rows);
        for (size_t i = 0; i < set.rows.count; i++) {
            const struct measurement *row = &set.rows.data[i];
            oom += row->status == STATUS_OOM;
            double batch = row->throughput_rps * row->latency_ms[LATENCY_MEAN] / 1e3;
            if (row->status == STATUS_OK && fabs(batch / row->batch - 1) > 0.02)
                fail_msg("%s: row %zu: batch %g", files[f].file, i, batch);
        }
        assert_int_equal(oom, files[f].oom);
        measurement_set_done(&set);
    }
}

static void test_published_parvagpu(void **state)
{
    (void)state;
    static const char *const models[] = {
        "bert",      "densenet121", "densenet169", "densenet201", "inceptionv3", "mobilenetv2",
        "resnet101", "resnet152",   "resnet50",    "vgg16",       "vgg19"};
    size_t rows = 0, oom = 0;
    for (size_t f = 0; f < sizeof models / sizeof *models; f++) {
        struct measurement_set set;
        struct import_defaults defaults = {.board = "a100-80gb", .model = models[f]};
        char file[80]; /* no allocation: where it is not there, skip() does not come back */
        snprintf(file, sizeof file, "parvagpu-a100-80gb/prof_data/%s.csv", models[f]);
        import_published(file, &defaults, &set);
        rows += set.rows.count;
        for (size_t i = 0; i < set.rows.count; i++)
            oom += set.rows.data[i].status == STATUS_OOM;
        measurement_set_done(&set);
    }
    assert_int_equal(rows, 2475);
    assert_int_equal(oom, 728);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_migperf),
        cmocka_unit_test(test_sequence_lengths),
        cmocka_unit_test(test_mlperf),
        cmocka_unit_test(test_mlperf_offline_and_invalid),
        cmocka_unit_test(test_perf_analyzer),
        cmocka_unit_test(test_model_analyzer),
        cmocka_unit_test(test_aiperf),
        cmocka_unit_test(test_parvagpu),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_written_rows_read_back),
        cmocka_unit_test(test_published_migperf),
        cmocka_unit_test(test_published_parvagpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
