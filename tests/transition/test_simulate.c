/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulation: the play keeps to the document, the floor holds in every run, seeds repeat, and
 * a lost GPU ends in `to` all the same.
 */
#include "support.h"
#include "transition/simulate.h"

enum { RUNS = 60 };
static const uint64_t SEED = 17;

static void plan_random(uint64_t seed, struct transition *ret_transition)
{
    struct rng rng = rng_seed_stream(SEED, seed);
    struct random_case given = {.gpus_min = 2, .gpus_max = 8, .services = 4, .tight = 0.9};
    CLEANUP(plan_done) struct plan from, to;
    support_random_plan(&rng, &given, random_boards, 1, &from);
    support_random_plan(&rng, &given, random_boards, 1, &to);
    struct transition_options options = {.spare = 8, .seed = seed};
    assert_int_equal(transition_plan(&from, &to, &options, ret_transition, NULL), 0);
}

static void test_plain(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        CLEANUP(transition_done) struct transition transition;
        CLEANUP(simulation_done) struct simulation simulation = {0};
        CLEANUP(transition_report_done) struct transition_report report = {0};
        struct simulate_options options = {.seed = seed, .load = 0.9};
        int actions = 0;
        plan_random(seed, &transition);
        transition_verify(&transition, &report);
        assert_int_equal(transition_simulate(&transition, &options, &simulation, NULL), 0);
        for (int k = 0; k < ACTION_KIND_COUNT; k++)
            actions += simulation.actions[k];
        assert_int_equal(actions, transition.actions.count);
        assert_true(fabs(simulation.makespan_seconds - transition.makespan_seconds) < 1e-6);
        for (size_t s = 0; s < simulation.services.count; s++) {
            /* One run never has less than the proved least of all orders. */
            assert_true(simulation.services.data[s].minimum_rps >=
                        report.minima.data[s].minimum_rps - 1e-6);
            assert_true(simulation.services.data[s].below_seconds == 0);
            assert_true(simulation.services.data[s].late <=
                        simulation.services.data[s].requests);
        }
    }
}

static void test_jitter_and_failures(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        CLEANUP(transition_done) struct transition transition;
        struct simulate_options options = {
            .seed = seed, .load = 0, .jitter = true, .fail = 0.3, .lost_share = 0};
        double makespan[2];
        plan_random(seed, &transition);
        for (int i = 0; i < 2; i++) {
            CLEANUP(simulation_done) struct simulation simulation = {0};
            assert_int_equal(transition_simulate(&transition, &options, &simulation, NULL), 0);
            makespan[i] = simulation.makespan_seconds;
            for (size_t s = 0; simulation.losses.count == 0 && s < simulation.services.count;
                 s++)
                assert_true(simulation.services.data[s].below_seconds == 0);
        }
        assert_true(makespan[0] == makespan[1]);
    }
}

static void test_lost_gpu(void **state)
{
    (void)state;
    int losses = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        CLEANUP(transition_done) struct transition transition;
        CLEANUP(simulation_done) struct simulation simulation = {0};
        CLEANUP(transition_report_done) struct transition_report report = {0};
        struct error err;
        struct rng rng = rng_seed(seed);
        plan_random(seed, &transition);
        struct simulate_options options = {
            .seed = seed,
            .lose_gpu =
                transition.from.gpus.data[rng_below(&rng, transition.from.gpus.count)].id,
            .lose_at_seconds = rng_uniform(&rng, 0, transition.makespan_seconds)};
        if (transition_simulate(&transition, &options, &simulation, &err) < 0)
            fail_msg("%s", err.text);
        if (!simulation.replanned)
            continue;
        losses++;
        transition_verify(&simulation.last, &report);
        print_violations(&report);
        assert_int_equal(report.violations.count, 0);
        assert_int_equal(plan_find_gpu(&simulation.last.from, options.lose_gpu), -1);
        assert_int_equal(simulation.last.to.gpus.count, transition.to.gpus.count);
        const struct recovery *recovery = &simulation.losses.data[0].recovery;
        for (size_t u = 0; u < recovery->unavoidable.count; u++) {
            const struct unavoidable *unavoidable = &recovery->unavoidable.data[u];
            assert_true(unavoidable->left_rps < unavoidable->floor_rps);
            assert_true(unavoidable->left_rps + unavoidable->lost_rps >=
                        unavoidable->floor_rps * (1 - 1e-9));
            int service = transition_find_service(&transition, unavoidable->service);
            assert_true(
                simulation.services.data[service].minimum_rps >=
                fmin(unavoidable->left_rps, unavoidable->floor_rps - unavoidable->lost_rps) -
                    1e-6);
        }
    }
    assert_true(losses > RUNS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                       cmocka_unit_test(test_jitter_and_failures),
                                       cmocka_unit_test(test_lost_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
