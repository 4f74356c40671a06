/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises worked out by several threads: the same as by one, and services that ask
 * the same get the same. Run under TSan as well.
 */
#include "support.h"

enum { MODELS = 2, SERVICES = 6 };

/* Rows of three slices, a few batches, by chance. */
static void write_rows(struct rng *rng, struct str *csv)
{
    static const struct {
        const char *slice;
        double speed;
    } slices[] = {{"1g", 1}, {"3g", 2.7}, {"7g", 6}};
    str_add(csv, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n");
    for (int m = 0; m < MODELS; m++) {
        double base_ms = rng_uniform(rng, 5, 20);
        for (size_t s = 0; s < sizeof slices / sizeof *slices; s++)
            for (int batch = 1; batch <= 4; batch *= 4) {
                double latency_ms = base_ms * (0.6 + 0.4 * batch) / slices[s].speed;
                str_addf(csv, "m%d,a100-40gb,%s,%d,1,%.4f,%.4f\n", m, slices[s].slice, batch,
                         1000 * batch / latency_ms, latency_ms);
            }
    }
}

/* Every third service repeats the question of an earlier one. */
static void write_services(struct rng *rng, struct str *yaml)
{
    double latency_ms[SERVICES];
    str_add(yaml, "services:\n");
    for (int i = 0; i < SERVICES; i++) {
        latency_ms[i] =
            i % 3 == 2 && i > MODELS ? latency_ms[i - MODELS] : rng_uniform(rng, 20, 90);
        str_addf(
            yaml,
            "- {name: s%d, model: m%d, rate_rps: %.2f, latency_ms: %.3f, max_wait_ms: 0}\n", i,
            i % MODELS, rng_uniform(rng, 20, 900), latency_ms[i]);
    }
    str_add(yaml,
            "- {name: never, model: m0, rate_rps: 1, latency_ms: 0.001, percentile: 99}\n");
}

/* Bit by bit but for the padding. */
static void assert_same_option(const struct problem_option *a, const struct problem_option *b)
{
    assert_int_equal(a->row, b->row);
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->procs, b->procs);
    assert_memory_equal(&a->rate_rps, &b->rate_rps, sizeof a->rate_rps);
    assert_memory_equal(&a->latency_ms, &b->latency_ms, sizeof a->latency_ms);
    assert_memory_equal(&a->max_wait_ms, &b->max_wait_ms, sizeof a->max_wait_ms);
}

static void threads_change_nothing(void **state)
{
    struct rng rng = rng_seed(test_seed());
    CLEANUP(str_done) struct str yaml = STR_EMPTY;
    CLEANUP(str_done) struct str csv = STR_EMPTY;
    const struct executor four = {.workers = 4};
    struct problem one, many;
    struct inputs inputs;
    (void)state;
    write_rows(&rng, &csv);
    write_services(&rng, &yaml);
    inputs_read(&inputs, yaml.bytes, csv.bytes);
    struct problem_options options = {.max_moves = -1};
    assert_int_equal(problem_init(&one, &inputs.services, &inputs.rows, &options, NULL), 0);
    options.executor = &four;
    assert_int_equal(problem_init(&many, &inputs.services, &inputs.rows, &options, NULL), 0);
    assert_int_equal(one.slot_count, many.slot_count);
    assert_int_equal(one.infeasible.count, many.infeasible.count);
    for (int i = 0; i < one.service_count * one.slot_count; i++)
        assert_same_option(&one.options[i], &many.options[i]);
    problem_done(&one);
    problem_done(&many);
    inputs_done(&inputs);
}

/* Each service of a table equals the same service alone. */
static void repeated_questions_get_the_same(void **state)
{
    struct rng rng = rng_seed(test_seed() + 1);
    CLEANUP(str_done) struct str yaml = STR_EMPTY;
    CLEANUP(str_done) struct str csv = STR_EMPTY;
    const struct executor executor = {.workers = 4};
    struct problem_options options = {.max_moves = -1, .executor = &executor};
    struct problem all, alone;
    struct inputs inputs;
    (void)state;
    write_rows(&rng, &csv);
    write_services(&rng, &yaml);
    inputs_read(&inputs, yaml.bytes, csv.bytes);
    assert_int_equal(problem_init(&all, &inputs.services, &inputs.rows, &options, NULL), 0);
    for (int i = 0; i < SERVICES; i++) {
        struct service_set one = inputs.services;
        one.services.data = &inputs.services.services.data[i];
        one.services.count = 1;
        assert_int_equal(problem_init(&alone, &one, &inputs.rows,
                                      &(struct problem_options){.max_moves = -1}, NULL),
                         0);
        for (int s = 0; s < alone.slot_count; s++) {
            int slot = problem_find_slot(&all, alone.slots[s].board, alone.slots[s].profile);
            const struct problem_option *expected = problem_option(&alone, 0, s);
            const struct problem_option *given = problem_option(&all, i, slot);
            assert_int_equal(given->row, expected->row);
            assert_true(given->rate_rps == expected->rate_rps);
        }
        problem_done(&alone);
    }
    problem_done(&all);
    inputs_done(&inputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(repeated_questions_get_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
