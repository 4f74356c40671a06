/* SPDX-License-Identifier: Apache-2.0
 *
 * The measurement CSV: what is read, what is refused and where, and the way back.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/measurement.h"

#define HEADER "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"

static int parse(const char *text, struct measurement_set *set, struct error *err)
{
    return measurement_set_parse("m.csv", text, strlen(text), set, err);
}

static void reads_columns_in_any_order(void **state)
{
    struct measurement_set set;
    struct error err = {0};
    (void)state;
    assert_int_equal(
        parse("\xEF\xBB\xBFnote,latency_ms_p90,throughput_rps,procs,batch,slice,board,model\r\n"
              "hello,12.5,100,2,8,3g,a100-40gb,m\r\n"
              "\"a, b\",,7,1,1,1g.5gb+me,a100-40gb,m",
              &set, &err),
        0);
    assert_int_equal(set.rows.count, 2);
    assert_string_equal(set.rows.data[0].board->profiles[set.rows.data[0].profile].name,
                        "3g.20gb");
    assert_int_equal(set.rows.data[0].batch, 8);
    assert_int_equal(set.rows.data[0].procs, 2);
    assert_true(set.rows.data[0].latency_ms[LATENCY_P90] == 12.5);
    assert_true(isnan(set.rows.data[0].latency_ms[LATENCY_P99]));
    assert_true(isnan(set.rows.data[1].latency_ms[LATENCY_P90]));
    assert_int_equal(set.extra_columns.count, 1);
    assert_string_equal(set.rows.data[1].extra[0], "a, b");
    assert_true(strncmp(set.sha256, "sha256:", 7) == 0);
    measurement_set_done(&set);
}

static void chooses_the_smallest_percentile_not_below(void **state)
{
    struct measurement row = {0};
    (void)state;
    for (int i = 0; i < LATENCY_COLUMN_COUNT; i++)
        row.latency_ms[i] = NAN;
    assert_int_equal(measurement_latency_column(&row, 90), -1);
    row.latency_ms[LATENCY_MEAN] = 1;
    row.latency_ms[LATENCY_P95] = 2;
    row.latency_ms[LATENCY_P999] = 3;
    assert_int_equal(measurement_latency_column(&row, MEASUREMENT_PERCENTILE_MEAN),
                     LATENCY_MEAN);
    assert_int_equal(measurement_latency_column(&row, 50), LATENCY_P95);
    assert_int_equal(measurement_latency_column(&row, 95), LATENCY_P95);
    assert_int_equal(measurement_latency_column(&row, 99), LATENCY_P999);
    row.latency_ms[LATENCY_MEAN] = NAN;
    assert_int_equal(measurement_latency_column(&row, MEASUREMENT_PERCENTILE_MEAN), -1);
}

static void refuses_with_place(void **state)
{
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {"", "m.csv", ""},
        {"model,board,slice,batch,throughput_rps\n", "m.csv:1", "procs"},
        {HEADER "m,a100-40gb,1g,1,1\n", "m.csv:2", ""},
        {HEADER "m,no-board,1g,1,1,5,5\n", "m.csv:2:3", "no-board"},
        {HEADER "m,a100-40gb,5g,1,1,5,5\n", "m.csv:2:13", "5g"},
        {HEADER ",a100-40gb,1g,1,1,5,5\n", "m.csv:2:1", "model"},
        {HEADER "m,a100-40gb,1g,0,1,5,5\n", "m.csv:2:16", "batch"},
        {HEADER "m,a100-40gb,1g,1.5,1,5,5\n", "m.csv:2:16", "batch"},
        {HEADER "m,a100-40gb,1g,1,-1,5,5\n", "m.csv:2:18", "procs"},
        {HEADER "m,a100-40gb,1g,1,1,nan,5\n", "m.csv:2:20", "nan"},
        {HEADER "m,a100-40gb,1g,1,1,0,5\n", "m.csv:2:20", "throughput_rps"},
        {HEADER "m,a100-40gb,1g,1,1,,5\n", "m.csv:2:20", "throughput_rps"},
        {HEADER "m,a100-40gb,1g,1,1,-3,5\n", "m.csv:2:20", ""},
        {HEADER "m,a100-40gb,1g,1,1,1e400,5\n", "m.csv:2:20", ""},
        {HEADER "m,a100-40gb,1g,1,1,5,0\n", "m.csv:2:22", "latency_ms_p99"},
        {HEADER "m,a100-40gb,1g,1,1,5,5\nm,a100-40gb,1g.5gb,1,1,6,5\n", "m.csv:3", "line 2"},
        {"model,board,slice,batch,procs,throughput_rps\nm,a100-40gb,1g,1,1,5\n", "m.csv:2",
         "latency"},
        {"model,board,slice,batch,procs,throughput_rps,latency_ms_p99,status\n"
         "m,a100-40gb,1g,1,1,5,5,good\n",
         "m.csv:2:24", "good"},
        {"model,board,slice,batch,procs,throughput_rps,latency_ms_p99,device\n"
         "m,a100-40gb,1g,1,1,5,5,cuda\nm,a100-40gb,2g,1,1,5,5,cpu-slice\n",
         "m.csv:3:24", "cuda"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measurement_set set;
        struct error err = {0};
        if (parse(cases[i].text, &set, &err) != -E_INPUT)
            fail_msg("case %zu was accepted", i);
        if (!strstr(err.text, cases[i].place) || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: %s", i, err.text);
    }
}

static void rows_that_are_not_ok_need_no_figures(void **state)
{
    struct measurement_set set;
    struct error err = {0};
    (void)state;
    assert_int_equal(
        parse("model,board,slice,batch,procs,throughput_rps,latency_ms_p99,status,task\n"
              "m,a100-40gb,1g,64,1,,,oom,\n"
              "m,a100-40gb,1g,32,1,0,,timeout,inference\n"
              "m,a100-40gb,1g,32,1,80,,ok,training\n",
              &set, &err),
        0);
    assert_int_equal(set.rows.data[0].status, STATUS_OOM);
    assert_true(set.rows.data[1].throughput_rps == 0);
    assert_int_equal(set.rows.data[2].task, TASK_TRAINING);
    measurement_set_done(&set);
}

static void formats_what_it_reads(void **state)
{
    static const char text[] =
        "model,board,slice,batch,procs,throughput_rps,latency_ms_p90,latency_ms_p999,memory_"
        "mib,"
        "status,device,power_w,reason,host\n"
        "m,a100-40gb,3g.20gb,8,2,971.25,12.5,30,1800,ok,cuda,110.5,,one\n"
        "m,a100-40gb,7g.40gb,8,2,,,,,error,,,\"bad, very\",two\n"
        "m,t4-16gb,whole,1,1,0.1,9,,,ok,,,,\n";
    struct measurement_set set;
    struct error err = {0};
    struct str again = STR_EMPTY;
    (void)state;
    assert_int_equal(parse(text, &set, &err), 0);
    measurement_set_format(&set, &again);
    assert_string_equal(again.bytes, text);
    str_done(&again);
    measurement_set_done(&set);
}

static void refuses_directories_and_missing_files(void **state)
{
    struct measurement_set set;
    struct error err = {0};
    (void)state;
    assert_int_equal(measurement_set_read("/", &set, &err), -E_IO);
    assert_int_equal(measurement_set_read("/no/such/file", &set, &err), -E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_columns_in_any_order),
        cmocka_unit_test(chooses_the_smallest_percentile_not_below),
        cmocka_unit_test(refuses_with_place),
        cmocka_unit_test(rows_that_are_not_ok_need_no_figures),
        cmocka_unit_test(formats_what_it_reads),
        cmocka_unit_test(refuses_directories_and_missing_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
