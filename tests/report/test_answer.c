/* SPDX-License-Identifier: Apache-2.0
 *
 * What results say in words: the findings of made-up documents whose figures are known, and
 * that an answer follows its data.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/answer.h"
#include "report/cell_ratio.h"

/* A cell: its key, and what its repetitions measured. */
struct made {
    const char *model, *slice, *mode, *load, *task;
    int batch, procs, sequence, instances;
    double throughput[3], p99[3]; /* 0 ends; none: the cell failed */
    const char *verdict;          /* NULL: VALID */
};

static json_t *make_run(const struct made *made, int repetition)
{
    bool open = strncmp(made->load, "closed", 6) != 0;
    json_t *run = json_pack("{s:s, s:s, s:[], s:{s:f}}", "status", "ok", "verdict",
                            made->verdict ? made->verdict : "VALID", "verdict_reasons",
                            "figures", "throughput_rps", made->throughput[repetition]);
    json_t *figures = json_object_get(run, "figures");
    double p99 = made->p99[repetition];
    if (p99 > 0) {
        json_object_set_new(figures, open ? "e2e_ms_p99" : "latency_ms_p99", json_real(p99));
        json_object_set_new(figures, "latency_ms_mean", json_real(p99));
    }
    if (made->instances > 1) {
        json_t *instances = json_array();
        for (int i = 0; i < made->instances; i++)
            json_array_append_new(instances, json_object());
        json_object_set_new(run, "instances", instances);
    }
    return run;
}

static json_t *make_cell(const struct made *made)
{
    json_t *key = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "model", made->model,
                            "board", "a100-40gb", "slice", made->slice, "mode", made->mode,
                            "load", made->load, "task", made->task ? made->task : "inference",
                            "batch", made->batch, "procs", made->procs ? made->procs : 1);
    json_t *runs = json_array();
    if (made->sequence > 0)
        json_object_set_new(key, "sequence", json_integer(made->sequence));
    for (int r = 0; r < 3 && made->throughput[r] > 0; r++)
        json_array_append_new(runs, make_run(made, r));
    if (json_array_size(runs) == 0)
        json_array_append_new(runs, json_pack("{s:s, s:s, s:s, s:[], s:{}}", "status", "oom",
                                              "reason", "too big", "verdict", "INVALID",
                                              "verdict_reasons", "figures"));
    return json_pack("{s:o, s:o}", "key", key, "runs", runs);
}

static json_t *make_document(const struct made *made, size_t count)
{
    json_t *cells = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(cells, make_cell(&made[i]));
    return json_pack("{s:o}", "cells", cells);
}

static void must_say(const struct made *made, size_t count, const char *const *wanted)
{
    CLEANUP(json_decref_ptr) json_t *document = make_document(made, count);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    answer_text(document, &text);
    for (; *wanted; wanted++)
        if (!strstr(text.bytes, *wanted))
            fail_msg("no \"%s\" in:\n%s", *wanted, text.bytes);
}
#define MUST_SAY(made, ...)                                                                    \
    must_say(made, sizeof(made) / sizeof *(made), (const char *const[]){__VA_ARGS__, NULL})

static void batches_and_slices(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "1g.5gb", "alone", "closed", NULL, 1, 1, 0, 1, {10, 10, 10}, {100, 100, 100}, 0},
        {"m", "1g.5gb", "alone", "closed", NULL, 4, 1, 0, 1, {20, 20, 20}, {200, 200, 200}, 0},
        {"m", "1g.5gb", "alone", "closed", NULL, 8, 1, 0, 1, {20, 20, 20}, {400, 400, 400}, 0},
        {"m", "7g.40gb", "alone", "closed", NULL, 1, 1, 0, 1, {40, 40, 40}, {25, 25, 25}, 0},
        {"m", "7g.40gb", "alone", "closed", NULL, 8, 1, 0, 1, {120, 120, 120}, {66, 66, 66}, 0},
        {"m", "7g.40gb", "whole", "closed", NULL, 8, 1, 0, 1, {132, 132, 132}, {60, 60, 60}, 0},
        {"m", "7g.40gb", "alone", "closed", NULL, 64, 1, 0, 1, {0}, {0}, 0},
    };
    MUST_SAY(
        made,
        "m, batch 1 to 8: throughput \u00d72 (2 to 2) on 1g.5gb, \u00d73 (3 to 3) on 7g.40gb; "
        "the time of a batch \u00d74 (4 to 4) on 1g.5gb",
        "95 % of the highest throughput is reached at batch 4 on 1g.5gb, 8 on 7g.40gb.",
        "7g.40gb has 7 times the compute of 1g.5gb and gives \u00d74 (4 to 4) the throughput "
        "at batch 1, \u00d76 (6 to 6) the throughput at batch 8.",
        "without MIG, against its largest slice, over 1 pair of cells",
        "throughput \u00d71.1 (1.1 to 1.1), better",
        "Did not run: m 7g.40gb batch 64 alone (oom). The first says: too big.",
        "6 of 7 cells are VALID.");
}

/* Four slices against four processes that share: as many workers, one comparison a batch. */
static void slices_against_sharing(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "1g.5gb", "busy", "closed", NULL, 1, 1, 0, 4, {40, 40, 40}, {10, 10, 10}, 0},
        {"m", "7g.40gb", "mps", "closed", NULL, 1, 4, 0, 1, {50, 50, 50}, {40, 40, 40}, 0},
        {"m", "1g.5gb", "busy", "closed", NULL, 8, 1, 0, 4, {40, 40, 40}, {20, 20, 20}, 0},
        {"m", "7g.40gb", "mps", "closed", NULL, 8, 4, 0, 1, {50, 50, 50}, {20, 20, 20}, 0},
        {"m", "7g.40gb", "mps", "closed", NULL, 8, 2, 0, 1, {99, 99, 99}, {1, 1, 1}, 0},
    };
    MUST_SAY(made,
             "(slices \u00f7 MPS), over 2 pairs of cells: p99 latency \u00d70.5 (0.5 to 0.5), "
             "better; throughput \u00d70.8 (0.8 to 0.8), worse.",
             "p99 by batch: 1 \u00d70.25 (0.25 to 0.25), 8 \u00d71 (1 to 1).");
}

/* With thread percentages the processes are instances: four of them are four workers. */
static void percentages_are_workers(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "1g.5gb", "busy", "closed", NULL, 1, 1, 0, 4, {40, 40, 40}, {10, 10, 10}, 0},
        {"m",
         "7g.40gb",
         "mps-percentage",
         "closed",
         NULL,
         1,
         4,
         0,
         4,
         {40, 40, 40},
         {20, 20, 20},
         0},
        {"m",
         "7g.40gb",
         "mps-percentage",
         "closed",
         NULL,
         1,
         2,
         0,
         2,
         {40, 40, 40},
         {5, 5, 5},
         0},
    };
    MUST_SAY(made, "over 1 pair of cells: p99 latency \u00d70.5 (0.5 to 0.5), better");
}

/* Noise wider than the difference is no difference; what neighbours do is counted by slice. */
static void neighbours_and_noise(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "2g.10gb", "alone", "closed", NULL, 1, 1, 0, 1, {10, 20, 15}, {5, 9, 7}, 0},
        {"m", "2g.10gb", "busy", "closed", NULL, 1, 1, 0, 3, {40, 50, 30}, {6, 5, 10}, 0},
        {"m",
         "2g.10gb",
         "training-within",
         "closed",
         NULL,
         1,
         1,
         0,
         1,
         {5, 5.1, 5.2},
         {30, 30, 30},
         "INVALID"},
    };
    MUST_SAY(made,
             "do the same, against itself alone, over 1 pair of cells: p99 latency \u00d70.",
             "not shown to differ; throughput \u00d70.9", "not shown to differ.",
             "A slice that also trains itself, against itself alone", "\u2020, worse",
             "2 of 3 cells are VALID; ratios with \u2020 have INVALID runs");
}

static void rates(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "1g.5gb", "busy", "poisson:5", NULL, 1, 1, 0, 4, {20, 20, 20}, {10, 10, 10}, 0},
        {"m", "1g.5gb", "busy", "poisson:10", NULL, 1, 1, 0, 4, {40, 40, 40}, {30, 30, 30}, 0},
        {"m", "1g.5gb", "busy", "poisson:20", NULL, 1, 1, 0, 4, {80, 80, 80}, {90, 90, 90}, 0},
        {"m", "7g.40gb", "mps", "poisson:20", NULL, 1, 4, 0, 1, {20, 20, 20}, {5, 5, 5}, 0},
        {"m", "7g.40gb", "mps", "poisson:80", NULL, 1, 4, 0, 1, {80, 80, 80}, {9, 9, 9}, 0},
    };
    MUST_SAY(made,
             "m, busy, 4 \u00d7 1g.5gb: p99 from the intended time is 10 ms at 20/s in all and "
             "90 ms "
             "at 80/s, \u00d79 (9 to 9); it has doubled at 40/s.",
             "m, mps, 1 \u00d7 7g.40gb with 4 processes: p99 from the intended time is 5 ms at "
             "20/s in "
             "all and 9 ms at 80/s, \u00d71.8 (1.8 to 1.8); it is not shown to have doubled.",
             "p99 by rate: 20/s \u00d72 (2 to 2), 80/s \u00d710 (10 to 10).");
}

static void sequences_of_training(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"t", "1g.5gb", "alone", "closed", "training", 4, 1, 32, 1, {80}, {50}, 0},
        {"t", "1g.5gb", "alone", "closed", "training", 4, 1, 128, 1, {20}, {200}, 0},
    };
    MUST_SAY(made,
             "t, training, length 32 to 128: throughput \u00d70.25 on 1g.5gb; the time of a "
             "batch \u00d74 on 1g.5gb; it grows as length to the power 1.00 on 1g.5gb.",
             "Everything fitted: all 2 cells ran.");
}

/* Nothing to compare, or not of this kind at all. */
static void nothing_to_say(void **state)
{
    (void)state;
    static const char *const documents[] = {"{}", "{\"cells\":[]}", "{\"cells\":3}"};
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        CLEANUP(json_decref_ptr) json_t *document = json_loads(documents[i], 0, NULL);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        answer_text(document, &text);
        answer_add(document, &text);
        assert_int_equal(text.length, 0);
    }
    CLEANUP(json_decref_ptr)
    json_t *bare = json_loads("{\"cells\":[{\"key\":{},\"runs\":[{}]},{}]}", 0, NULL);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    answer_text(bare, &text);
    assert_non_null(strstr(text.bytes, "0 of 2 cells are VALID"));
}

/* The interval is Welch's, of logarithms: for two cells of three runs by hand. */
static void the_interval_by_hand(void **state)
{
    (void)state;
    static const struct made made[] = {
        {"m", "1g.5gb", "alone", "closed", NULL, 1, 1, 0, 1, {10, 11, 12}, {1, 1, 1}, 0},
        {"m", "1g.5gb", "alone", "closed", NULL, 2, 1, 0, 1, {20, 22, 24}, {1, 1, 1}, 0},
    };
    CLEANUP(json_decref_ptr) json_t *document = make_document(made, 2);
    struct bench_cells cells = bench_cells_read(document);
    struct ratio_sum sum = {0};
    ratio_sum_add(&sum, &(struct ratio_pair){&cells.list.data[1], &cells.list.data[0], 0, 0},
                  "throughput_rps");
    struct ratio ratio = ratio_sum_mean(&sum);
    /* sd of ln 10, ln 11, ln 12 is 0.091192; its two variances over 3 add up to 0.0055440; t at
     * 4 degrees is 2.776445. */
    double half = 2.776445 * sqrt(0.0055440);
    assert_float_equal(ratio.value, 2, 1e-12);
    assert_float_equal(ratio.low, 2 * exp(-half), 2e-4);
    assert_float_equal(ratio.high, 2 * exp(half), 2e-4);
    bench_cells_done(&cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_and_slices),
        cmocka_unit_test(slices_against_sharing),
        cmocka_unit_test(percentages_are_workers),
        cmocka_unit_test(neighbours_and_noise),
        cmocka_unit_test(rates),
        cmocka_unit_test(sequences_of_training),
        cmocka_unit_test(nothing_to_say),
        cmocka_unit_test(the_interval_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
