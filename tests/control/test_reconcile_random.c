/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of the controller's rounds, over random clusters, services and changes, with
 * crashes, refused and repeated calls, old views, two leaders, lost nodes, pods that end or
 * will not go. After every effect: floors, layouts, one pod an instance (scenario.h). In the
 * end: the plan is reached and nothing is written any more.
 *
 * TRANCHE_CASES=N runs N seeds a test in place of the default, TRANCHE_SEED=N that seed alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "control/kinds.h"
#include "scenario.h"

enum {
    CASES_DEFAULT = 6,
    CHANGES = 5,
    ROUNDS_MOST = 25,
    SETTLE_ROUNDS = 900,
    EFFECTS_A_CASE = 100
};

enum fault {
    FAULT_STOP = 1,     /* the controller dies, before or after any effect */
    FAULT_TWICE = 2,    /* effects are carried out twice */
    FAULT_OLD = 4,      /* views of some rounds ago, whole */
    FAULT_MIXED = 8,    /* … of some kinds alone: each cache has its own delay */
    FAULT_LEADERS = 16, /* leaders change, the old one goes on for a while */
    FAULT_NODES = 32,   /* nodes are lost and come back */
    FAULT_PODS = 64,    /* pods end, or stay when deleted */
    FAULT_SLOW = 128,   /* nothing comes at once */
    HAS_GATEWAY = 256,  /* no fault: requests are shared by an HTTPRoute */
};

struct run {
    struct scenario scenario;
    struct rng rng;
    unsigned faults;
    long long epoch;
};

static const char *const models[] = {"bert", "resnet"};
static const char *const names[] = {"ranker", "tagger", "finder", "writer"};

static unsigned long cases, rounds, effects, unreached;

static bool has(const struct run *run, enum fault fault)
{
    return run->faults & fault;
}

static bool chance(struct run *run, double probability)
{
    return rng_unit(&run->rng) < probability;
}

static void set_up(struct run *run, uint64_t seed)
{
    struct scenario *scenario = &run->scenario;
    int nodes;

    scenario_init(scenario, seed);
    run->rng = rng_seed_stream(seed, 1);
    run->epoch = 1;
    scenario->verbose = getenv("TRANCHE_VERBOSE") != NULL;
    scenario->gateway = has(run, HAS_GATEWAY);
    scenario->items_max = 1 + (int)rng_below(&run->rng, 8);
    scenario->actions_max = chance(run, 0.5) ? 2 + (int)rng_below(&run->rng, 10) : 0;
    scenario->piece_gpus = seed % 3 == 0 ? 1 + (int)(seed % 2) : 0;
    scenario_add_pool(scenario, 1 + (int)rng_below(&run->rng, 2),
                      chance(run, 0.2) ? "{\"maxUnavailableGpus\": 1}" : NULL);
    scenario_add_profile(scenario, "bert", "a100-40gb", 10);
    scenario_add_profile(scenario, "bert", "a30-24gb", 8);
    scenario_add_profile(scenario, "resnet", "a100-40gb", 25);
    scenario_add_profile(scenario, "resnet", "a30-24gb", 17);
    nodes = 2 + (int)rng_below(&run->rng, 3);
    for (int n = 0; n < nodes; n++)
        fake_cluster_add_node(&scenario->cluster,
                              mig_board_find(chance(run, 0.7) ? "a100-40gb" : "a30-24gb"),
                              1 + (int)rng_below(&run->rng, 3));
    if (has(run, FAULT_SLOW))
        scenario->cluster.slow = rng_uniform(&run->rng, 0, 0.6);
}

static void set_service(struct run *run, size_t index)
{
    double rate = rng_uniform(&run->rng, 5, 70);

    scenario_set_service(&run->scenario, names[index], models[index % 2],
                         chance(run, 0.12) ? 0 : rate);
}

static void change(struct run *run)
{
    struct scenario *scenario = &run->scenario;
    size_t service = (size_t)rng_below(&run->rng, 4);

    if (has(run, FAULT_NODES) && chance(run, 0.4)) {
        size_t node = (size_t)rng_below(&run->rng, scenario->cluster.nodes.count);
        scenario_set_node(scenario, node, !scenario->cluster.nodes.data[node].up);
    } else if (chance(run, 0.15)) {
        scenario_set_template(scenario, names[service], (int)rng_below(&run->rng, 100));
    } else {
        set_service(run, service);
    }
}

/* A round that something befalls, perhaps. */
static void run_round(struct run *run)
{
    struct scenario_round round = {.stop_at = -1, .epoch = run->epoch};

    if (has(run, FAULT_STOP) && chance(run, 0.5)) {
        round.stop_at = (int)rng_below(&run->rng, 12);
        round.stop_after = chance(run, 0.5);
    }
    round.twice = has(run, FAULT_TWICE) && chance(run, 0.5);
    if ((has(run, FAULT_OLD) || has(run, FAULT_MIXED)) && chance(run, 0.4)) {
        round.age = 1 + (int)rng_below(&run->rng, SCENARIO_PAST);
        round.says_stale = chance(run, 0.3);
        if (has(run, FAULT_MIXED))
            round.stale_kinds = 1 + (unsigned)rng_below(&run->rng, (1u << FAKE_KIND_COUNT) - 1);
    }
    if (has(run, FAULT_LEADERS)) {
        if (chance(run, 0.1))
            run->epoch++;
        else if (run->epoch > 1 && chance(run, 0.3))
            round.epoch = run->epoch - 1;
        else
            round.epoch = run->epoch;
    }
    scenario_run(&run->scenario, &round);
}

static void end_faults(struct run *run)
{
    struct fake_cluster *cluster = &run->scenario.cluster;

    cluster->slow = cluster->crash = cluster->stuck = 0;
    for (size_t n = 0; n < cluster->nodes.count; n++)
        if (!cluster->nodes.data[n].up)
            scenario_set_node(&run->scenario, n, true);
}

static void check_end(struct run *run)
{
    struct scenario *scenario = &run->scenario;
    unsigned long writes;

    end_faults(run);
    scenario->epoch = run->epoch;
    if (!scenario_settle(scenario, SETTLE_ROUNDS))
        fail_msg("seed %llu: does not settle", (unsigned long long)scenario->seed);
    unreached += !scenario_check_end(scenario);
    writes = scenario->cluster.writes;
    scenario_tick(scenario, 100);
    if (scenario_run(scenario, &(struct scenario_round){.stop_at = -1, .epoch = run->epoch}) ||
        scenario->cluster.writes != writes)
        fail_msg("seed %llu: writes after it has settled", (unsigned long long)scenario->seed);
}

static void run_case(uint64_t seed, unsigned faults)
{
    struct run run = {.faults = faults};

    set_up(&run, seed);
    for (size_t s = 0; s < 1 + rng_below(&run.rng, 4); s++)
        set_service(&run, s);
    for (int c = 0; c < CHANGES; c++) {
        int count = (int)rng_below(&run.rng, ROUNDS_MOST);
        run.scenario.cluster.crash = has(&run, FAULT_PODS) && chance(&run, 0.5) ? 0.02 : 0;
        run.scenario.cluster.stuck = has(&run, FAULT_PODS) && chance(&run, 0.5) ? 0.9 : 0;
        for (int i = 0; i < count; i++) {
            run_round(&run);
            scenario_tick(&run.scenario, 1 + (int)rng_below(&run.rng, 10));
        }
        run.scenario.epoch = run.epoch;
        if (chance(&run, 0.5))
            (void)scenario_settle(&run.scenario, 60);
        change(&run);
    }
    check_end(&run);
    cases++;
    rounds += run.scenario.rounds;
    effects += run.scenario.effects;
    scenario_done(&run.scenario);
}

static void run_cases(unsigned faults, const char *name)
{
    const char *many = getenv("TRANCHE_CASES"), *one = getenv("TRANCHE_SEED");
    unsigned long count = many ? strtoul(many, NULL, 10) : CASES_DEFAULT;

    cases = rounds = effects = unreached = 0;
    if (one)
        run_case(strtoull(one, NULL, 10), faults);
    for (unsigned long i = 0; !one && i < count; i++)
        run_case(faults * UINT64_C(1000000) + i, faults);
    printf("# %s: %lu cases, %lu rounds, %lu effects checked, %lu without a safe transition\n",
           name, cases, rounds, effects, unreached);
    if (one)
        return;
    /* A controller that does nothing, and one that finds no way, break no floor either. */
    if (effects < EFFECTS_A_CASE * cases)
        fail_msg("%lu effects in %lu cases: too few to tell", effects, cases);
    if (unreached > 1 + cases / 6)
        fail_msg("%lu of %lu cases end without a safe transition", unreached, cases);
}

#define CASES(name, faults)                                                                    \
    static void test_##name(void **state)                                                      \
    {                                                                                          \
        (void)state;                                                                           \
        run_cases(faults, #name);                                                              \
    }

CASES(plain, 0)
CASES(slow, FAULT_SLOW)
CASES(stop, FAULT_STOP | FAULT_SLOW)
CASES(twice, FAULT_TWICE | FAULT_SLOW)
CASES(old_views, FAULT_OLD | FAULT_SLOW)
CASES(mixed_views, FAULT_MIXED | FAULT_SLOW)
CASES(leaders, FAULT_LEADERS | FAULT_OLD | FAULT_SLOW)
CASES(nodes, FAULT_NODES | FAULT_SLOW)
CASES(pods, FAULT_PODS | FAULT_SLOW)
CASES(all, FAULT_STOP | FAULT_TWICE | FAULT_LEADERS | FAULT_NODES | FAULT_SLOW)
CASES(gateway, HAS_GATEWAY | FAULT_STOP | FAULT_TWICE | FAULT_SLOW)
CASES(gateway_all,
      HAS_GATEWAY | FAULT_STOP | FAULT_OLD | FAULT_LEADERS | FAULT_NODES | FAULT_SLOW)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),     cmocka_unit_test(test_slow),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_twice),
        cmocka_unit_test(test_old_views), cmocka_unit_test(test_mixed_views),
        cmocka_unit_test(test_leaders),   cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_pods),      cmocka_unit_test(test_all),
        cmocka_unit_test(test_gateway),   cmocka_unit_test(test_gateway_all),
    };
    if (getenv("TRANCHE_TEST"))
        cmocka_set_test_filter(getenv("TRANCHE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
