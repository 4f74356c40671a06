/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference algorithms: the paper's counts, the lazy greedy against the plain one, and
 * plans of random problems, all verified, none cheaper than the proved bound.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "plan/candidates.h"
#include "plan/greedy.h"
#include "plan/paper_bounds.h"
#include "plan/paper_rules.h"
#include "plan/run.h"

/* --- inputs ------------------------------------------------------------------------ */

struct fixture {
    struct service_set services;
    struct measurement_set rows;
};

static void fixture_done(struct fixture *fixture)
{
    service_set_done(&fixture->services);
    measurement_set_done(&fixture->rows);
}

static void fixture_read(struct fixture *fixture, const struct str *services,
                         const struct str *rows)
{
    struct error err = {0};
    *fixture = (struct fixture){0};
    if (service_set_parse("services", services->bytes, services->length, &fixture->services,
                          &err) < 0 ||
        measurement_set_parse("rows", rows->bytes, rows->length, &fixture->rows, &err) < 0)
        fail_msg("%s", err.text);
}

struct shape { /* of a random problem */
    int services;
    double rate_most;
    const char *boards[3];
    const char *fleet; /* lines of YAML, or NULL */
    bool extras;       /* min_instances, spread */
};

/* Models whose throughput grows sub- to super-linearly with the slice; the large ones do not
 * run on the smallest. */
static void write_rows(struct rng *rng, const struct shape *shape, struct str *text)
{
    static const char *const slices[] = {"1g", "2g", "3g", "4g", "7g"};
    static const double sizes[] = {1, 2, 3, 4, 7};
    str_add(text, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n");
    for (int m = 0; m < shape->services; m++) {
        double unit = rng_uniform(rng, 20, 200), power = rng_uniform(rng, 0.7, 1.2);
        int first = rng_below(rng, 4) == 0 ? 1 : 0;
        for (int b = 0; b < 3 && shape->boards[b]; b++)
            for (int s = first; s < 5; s++) {
                bool a30 = strcmp(shape->boards[b], "a30-24gb") == 0;
                if (a30 && (s == 2 || s == 4))
                    continue;
                double rate = unit * pow(sizes[s], power) * rng_uniform(rng, 0.9, 1.1);
                str_addf(text, "m%d,%s,%s,8,1,%.1f,%.1f\n", m, shape->boards[b], slices[s],
                         rate, 8000 / rate);
            }
    }
}

static void write_services(struct rng *rng, const struct shape *shape, struct str *text)
{
    str_add(text, "latency_rule: batch\nservices:\n");
    for (int i = 0; i < shape->services; i++) {
        str_addf(text, "  - {name: s%d, model: m%d, rate_rps: %.2f, latency_ms: 1e6", i, i,
                 rng_uniform(rng, 0.01, 1) * shape->rate_most);
        if (shape->extras && rng_below(rng, 3) == 0)
            str_addf(text, ", min_instances: %d", 1 + (int)rng_below(rng, 5));
        if (shape->extras && rng_below(rng, 4) == 0)
            str_add(text, ", spread: gpu");
        str_add(text, "}\n");
    }
    if (shape->fleet)
        str_add(text, shape->fleet);
}

static void fixture_random(struct fixture *fixture, const struct shape *shape, uint64_t seed)
{
    struct rng rng = rng_seed(seed);
    CLEANUP(str_done) struct str services = STR_EMPTY, rows = STR_EMPTY;
    write_rows(&rng, shape, &rows);
    write_services(&rng, shape, &services);
    fixture_read(fixture, &services, &rows);
}

/* --- the paper's counts --------------------------------------------------------------- */

static void test_configuration_counts(void **state)
{
    (void)state;
    struct paper_multiset multisets[PAPER_MULTISETS_MAX];
    const struct mig_board *a100 = mig_board_find("a100-40gb");
    size_t count = paper_multisets(a100, RULES_PAPER, multisets);
    assert_int_equal(count, 13);
    assert_true(paper_configuration_count(multisets, count, 12) == 157830);
    assert_true(paper_configuration_count(multisets, count, 13) == 234702);
    assert_true(paper_configuration_count(multisets, count, 5) == 3080);
    assert_true(paper_configuration_count(multisets, count, 16) == 676104);
    assert_true(paper_configuration_count(multisets, count, 24) == 5990892);
    count = paper_multisets(a100, RULES_CURRENT, multisets);
    assert_int_equal(count, 14);
    assert_true(paper_configuration_count(multisets, count, 12) == 157974);
    assert_true(paper_configuration_count(multisets, count, 13) == 234871);
}

/* Counts labellings one by one: slots of a size taken in rising order of service. */
static long count_labellings(const int *slots, int count, int size_before, int service_before,
                             int services)
{
    long sum = 0;
    if (count == 0)
        return 1;
    int first = slots[0] == size_before ? service_before : 0;
    for (int service = first; service < services; service++)
        sum += count_labellings(slots + 1, count - 1, slots[0], service, services);
    return sum;
}

static void test_configurations_one_by_one(void **state)
{
    (void)state;
    struct paper_multiset multisets[PAPER_MULTISETS_MAX];
    size_t count = paper_multisets(mig_board_find("a100-40gb"), RULES_PAPER, multisets);
    long sum = 0;
    for (size_t m = 0; m < count; m++) {
        int slots[8], used = 0;
        for (int size = 1; size < PAPER_SIZES; size++)
            for (int i = 0; i < multisets[m].counts[size]; i++)
                slots[used++] = size;
        sum += count_labellings(slots, used, 0, 0, 12);
    }
    assert_int_equal(sum, 157830);
}

/* --- greedy ------------------------------------------------------------------------------ */

/* The plain loop: every pair scored at every step. */
static double plain_best(const struct arm *arm, const struct arm_state *state)
{
    double best = 0;
    for (int i = 0; i < arm->service_count; i++)
        for (int j = i; j < arm->service_count; j++) {
            int pair[2] = {i, j};
            struct candidate found;
            if (candidates_top(arm, state, pair, i == j ? 1 : 2, &found, 1) > 0 &&
                found.score > best)
                best = found.score;
        }
    double mix = candidates_mix(arm, state, MIG_INSTANCES_MAX).score;
    for (int i = 0; i < arm->service_count; i++)
        if (arm_is_almost(arm, i, arm_missing(state, i)) && mix > best)
            best = mix;
    return best;
}

static void test_greedy_is_greedy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct shape shape = {
            .services = 2 + (int)(seed % 7), .rate_most = 3000, .boards = {"a100-40gb"}};
        struct solver_settings settings = {.seed = 1, .budget_s = INFINITY};
        CLEANUP(fixture_done) struct fixture fixture;
        struct problem problem;
        struct arm arm;
        struct arm_state state_now, filled;
        struct arm_plan plan = {0};
        fixture_random(&fixture, &shape, seed);
        assert_int_equal(problem_init(&problem, &fixture.services, &fixture.rows,
                                      &(struct problem_options){.max_moves = -1}, NULL),
                         0);
        arm_init(&arm, &problem, &settings);
        arm_state_init(&state_now, &arm);
        arm_state_init(&filled, &arm);
        assert_true(greedy_fill(&arm, &filled, &plan));
        for (size_t g = 0; g < plan.gpus.count; g++) {
            double best = plain_best(&arm, &state_now);
            double taken = candidates_score(&arm, &state_now, &plan.gpus.data[g]);
            if (fabs(taken - best) > 1e-9 * best)
                fail_msg("seed %ju GPU %zu: scored %.12g, the best is %.12g", (uintmax_t)seed,
                         g, taken, best);
            arm_apply(&arm, &state_now, &plan.gpus.data[g]);
        }
        assert_true(arm_is_complete(&arm, &state_now));
        vec_done(&plan.gpus);
        arm_state_done(&state_now);
        arm_state_done(&filled);
        arm_done(&arm);
        problem_done(&problem);
    }
}

/* --- all algorithms ------------------------------------------------------------------------
 */

static double run_cost(const struct fixture *fixture, const char *algorithm, uint64_t seed)
{
    struct plan_request request = plan_request_default(&fixture->services, &fixture->rows);
    struct error err = {0};
    struct plan plan;
    request.algorithm = algorithm;
    request.settings.seed = seed;
    request.settings.rounds = 4;
    if (plan_run(&request, &plan, &err) < 0) /* a plan that breaks a rule ends here */
        fail_msg("%s, seed %ju: %s", algorithm, (uintmax_t)seed, err.text);
    double cost = plan.status == PLAN_INFEASIBLE ? NAN : plan.cost;
    plan_done(&plan);
    return cost;
}

static void check_all(const struct shape *shape, uint64_t seed)
{
    CLEANUP(fixture_done) struct fixture fixture;
    fixture_random(&fixture, shape, seed);
    double exact = run_cost(&fixture, "exact", seed), greedy = NAN;
    const struct solver *const *solvers = solver_list();
    for (size_t i = 0; solvers[i]; i++) {
        double cost = run_cost(&fixture, solvers[i]->name, seed);
        if (isnan(exact) && !isnan(cost))
            fail_msg("seed %ju: %s found a plan, exact none", (uintmax_t)seed,
                     solvers[i]->name);
        if (cost < exact * (1 - 1e-9))
            fail_msg("seed %ju: %s costs %g, exact %g", (uintmax_t)seed, solvers[i]->name, cost,
                     exact);
        if (strcmp(solvers[i]->name, "greedy") == 0)
            greedy = cost;
        if (strcmp(solvers[i]->name, "ga") == 0 && cost > greedy)
            fail_msg("seed %ju: ga costs %g, greedy %g", (uintmax_t)seed, cost, greedy);
    }
}

static void test_random_problems(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        check_all(&(struct shape){.services = 1 + (int)(seed % 9),
                                  .rate_most = seed % 2 ? 400 : 4000,
                                  .boards = {"a100-40gb"}},
                  seed);
}

static void test_random_fleets(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 140; seed++)
        check_all(&(struct shape){.services = 2 + (int)(seed % 5),
                                  .rate_most = 1500,
                                  .boards = {"a100-40gb", "a30-24gb"},
                                  .fleet = "fleet:\n"
                                           "  - {board: a100-40gb, count: 6, price: 3}\n"
                                           "  - {board: a30-24gb, count: 60, price: 1.5}\n"},
                  seed);
}

static void test_random_extras(void **state)
{
    (void)state;
    for (uint64_t seed = 200; seed < 240; seed++)
        check_all(&(struct shape){.services = 2 + (int)(seed % 4),
                                  .rate_most = 1500,
                                  .boards = {"a100-40gb"},
                                  .extras = true},
                  seed);
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    const struct solver *const *solvers = solver_list();
    CLEANUP(str_done) struct str services = STR_EMPTY, rows = STR_EMPTY;
    CLEANUP(fixture_done) struct fixture fixture;
    str_add(&services, "services: []\n");
    str_add(&rows, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                   "m,a100-40gb,7g,1,1,100,10\n");
    fixture_read(&fixture, &services, &rows);
    for (size_t i = 0; solvers[i]; i++)
        assert_true(run_cost(&fixture, solvers[i]->name, 1) == 0);
}

/* Stock for one GPU and a need of two: no plan, said so, by every algorithm. */
static void test_too_small_a_fleet(void **state)
{
    (void)state;
    const struct solver *const *solvers = solver_list();
    CLEANUP(str_done) struct str services = STR_EMPTY, rows = STR_EMPTY;
    CLEANUP(fixture_done) struct fixture fixture;
    str_add(&services, "latency_rule: batch\n"
                       "services: [{name: s, model: m, rate_rps: 150, latency_ms: 20}]\n"
                       "fleet: [{board: a100-40gb, count: 1}]\n");
    str_add(&rows, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                   "m,a100-40gb,7g,1,1,100,10\n");
    fixture_read(&fixture, &services, &rows);
    for (size_t i = 0; solvers[i]; i++)
        assert_true(isnan(run_cost(&fixture, solvers[i]->name, 1)));
}

/* The only GPU has a reserved instance in the way of the slice that the service needs. */
static void test_no_room(void **state)
{
    (void)state;
    const struct solver *const *solvers = solver_list();
    CLEANUP(str_done) struct str services = STR_EMPTY, rows = STR_EMPTY;
    CLEANUP(fixture_done) struct fixture fixture;
    str_add(&services, "latency_rule: batch\n"
                       "services: [{name: s, model: m, rate_rps: 50, latency_ms: 20}]\n"
                       "fleet: [{board: a100-40gb, count: 1, gpus: [{id: g, instances: "
                       "[{slice: 1g, start: 0, reserved: true}]}]}]\n");
    str_add(&rows, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                   "m,a100-40gb,7g,1,1,100,10\n");
    fixture_read(&fixture, &services, &rows);
    for (size_t i = 0; solvers[i]; i++)
        assert_true(isnan(run_cost(&fixture, solvers[i]->name, 1)));
}

static char *run_text(const struct fixture *fixture, const char *algorithm, int threads)
{
    const struct executor executor = {.workers = threads};
    struct plan_request request = plan_request_default(&fixture->services, &fixture->rows);
    struct str text = STR_EMPTY;
    struct plan plan;
    request.algorithm = algorithm;
    request.settings.seed = 7;
    request.settings.executor = &executor;
    request.settings.rounds = 3;
    assert_int_equal(plan_run(&request, &plan, NULL), 0);
    plan_format(&plan, &text);
    plan_done(&plan);
    return str_take(&text);
}

static void test_same_bytes(void **state)
{
    (void)state;
    CLEANUP(fixture_done) struct fixture fixture;
    fixture_random(&fixture,
                   &(struct shape){.services = 8, .rate_most = 3000, .boards = {"a100-40gb"}},
                   3);
    static const char *const names[] = {"greedy", "mcts", "ga", "parvagpu", "jormungandr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(free_ptr) char *one = run_text(&fixture, names[i], 1);
        CLEANUP(free_ptr) char *four = run_text(&fixture, names[i], 4);
        assert_string_equal(one, four);
    }
}

/* --- the paper's bound and classes ---------------------------------------------------------
 */

static void test_paper_bound(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str services = STR_EMPTY, rows = STR_EMPTY;
    CLEANUP(fixture_done) struct fixture fixture;
    struct problem problem;
    str_add(&services, "latency_rule: batch\nservices:\n"
                       "  - {name: a, model: m, rate_rps: 700, latency_ms: 20}\n"
                       "  - {name: b, model: n, rate_rps: 100, latency_ms: 20}\n");
    str_add(&rows, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                   "m,a100-40gb,1g,1,1,10,10\nm,a100-40gb,3g,1,1,60,10\n"
                   "n,a100-40gb,7g,1,1,70,10\nn,a100-40gb,1g,1,1,20,30\n");
    fixture_read(&fixture, &services, &rows);
    assert_int_equal(problem_init(&problem, &fixture.services, &fixture.rows,
                                  &(struct problem_options){.max_moves = -1}, NULL),
                     0);
    /* m: 20 rps a slice on 3g; n: 10 on 7g, as its 1g is too slow */
    double expected = 700.0 / 20 / 7 + 100.0 / 10 / 7;
    assert_true(fabs(paper_lower_bound(&problem) - expected) < 1e-12);
    problem_done(&problem);
}

static void test_classes(void **state)
{
    (void)state;
    CLEANUP(measurement_set_done) struct measurement_set rows = {0};
    CLEANUP(str_done) struct str path = STR_EMPTY;
    static const int expected[4][SCALING_COUNT] = {
        {16, 0, 0}, {10, 6, 0}, {5, 9, 2}, {4, 6, 6}};
    static const int batches[4] = {1, 8, 16, 32};
    int counts[4][SCALING_COUNT] = {{0}};
    struct error err;
    size_t count;
    str_addf(&path, "%s/examples/paper/measurements.csv", getenv("TRANCHE_SOURCE_ROOT"));
    if (measurement_set_read(path.bytes, &rows, &err) < 0)
        fail_msg("%s", err.text);
    CLEANUP(free_ptr) struct scaling *found = paper_classify(&rows, &count);
    assert_int_equal(count, 64);
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < 4; b++)
            if (found[i].batch == batches[b])
                counts[b][found[i].scaling]++;
    assert_memory_equal(counts, expected, sizeof counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration_counts),
        cmocka_unit_test(test_configurations_one_by_one),
        cmocka_unit_test(test_greedy_is_greedy),
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_random_fleets),
        cmocka_unit_test(test_random_extras),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_too_small_a_fleet),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_paper_bound),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
