/* SPDX-License-Identifier: Apache-2.0
 *
 * Random pairs of plans: each is planned, the floor held in every order by verification, and
 * written and read back alike. The seed is printed; TRANCHE_PAIRS sets how many.
 */
#include "support.h"

enum { PAIRS = 150, SPARES = 64 };
static const uint64_t SEED = 20260;

struct tally {
    int pairs, without_extra, refused;
    double seconds;
};

static void check_round_trip(const struct transition *transition)
{
    CLEANUP(str_done) struct str first = STR_EMPTY, second = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(transition_done) struct transition again;
    transition_init(&again);
    transition_format(transition, &first);
    assert_int_equal(json_parse("t", first.bytes, first.length, &root, NULL), 0);
    struct error err;
    if (transition_from_json("t", root, &again, &err) < 0)
        fail_msg("%s", err.text);
    transition_format(&again, &second);
    assert_string_equal(first.bytes, second.bytes);
}

static void check_pair(uint64_t seed, struct tally *tally)
{
    struct rng rng = rng_seed_stream(SEED, seed);
    struct random_case given = {.gpus_min = 4,
                                .gpus_max = 4 + (int)rng_below(&rng, 61),
                                .services = 2 + (int)rng_below(&rng, 11),
                                .tight = rng_uniform(&rng, 0.7, 0.99),
                                .idle = rng_below(&rng, 2) ? 0.05 : 0,
                                .partial = rng_below(&rng, 3) == 0};
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    int boards = rng_below(&rng, 4) == 0 ? 2 : 1;
    const char *const *first = &random_boards[rng_below(&rng, (uint64_t)(5 - boards))];
    struct error err;
    transition_init(&transition);
    support_random_plan(&rng, &given, first, boards, &from);
    support_random_plan(&rng, &given, first, boards, &to);
    struct transition_options options = {.spare = SPARES, .seed = seed};
    if (transition_plan(&from, &to, &options, &transition, &err) < 0)
        fail_msg("pair %llu: %s", (unsigned long long)seed, err.text);
    transition_verify(&transition, &report);
    print_violations(&report);
    assert_int_equal(report.violations.count, 0);
    for (size_t s = 0; s < report.minima.count; s++)
        assert_true(report.minima.data[s].minimum_rps >=
                    report.minima.data[s].floor_rps * (1 - 1e-9));
    tally->pairs++;
    tally->without_extra += transition.extra_gpus == 0;
    if (seed % 8 == 0)
        check_round_trip(&transition);
}

static void test_pairs(void **state)
{
    (void)state;
    const char *wanted = getenv("TRANCHE_PAIRS");
    int pairs = wanted ? atoi(wanted) : PAIRS;
    struct tally tally = {0};
    print_message("# seed %llu, %d pairs\n", (unsigned long long)SEED, pairs);
    for (int i = 0; i < pairs; i++)
        check_pair((uint64_t)i, &tally);
    print_message("# %d of %d without an extra GPU\n", tally.without_extra, tally.pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
