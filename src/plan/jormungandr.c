/* SPDX-License-Identifier: Apache-2.0
 *
 * Jormungandr (SYSTOR'24, doi 10.1145/3688351.3689156): the same authors' successor, one
 * greedy without GA and MCTS. The utility of a configuration is the sum over its services
 * of throughput / demand x weight, the weight being the unmet fraction; at most three
 * services share a GPU, and one more in the last mile. Process count and batch are chosen
 * per instance: the problem's option of a slot is the best of its measured rows already.
 *
 * With weights fixed, the utility is a sum over slots, so the best labelling of a pattern
 * gives each slot kind to the service with the greatest weight x utility; a pattern has at
 * most three kinds of slots, so the limit of three holds by itself wherever that is so.
 */
#include <assert.h>

#include "plan/candidates.h"
#include "plan/quick_fill.h"

enum { SERVICES_PER_GPU = 3 };

/* The service that each slot kind serves best; -1: none. */
static void best_services(const struct arm *arm, const struct arm_state *state, int *best)
{
    assert(arm->slot_count <= PROBLEM_SLOTS_MAX);
    double best_worth[PROBLEM_SLOTS_MAX] = {0};
    for (int s = 0; s < arm->slot_count; s++)
        best[s] = -1;
    for (int i = 0; i < arm->service_count; i++) {
        double missing = arm_missing(state, i);
        for (int s = 0; missing > 0 && s < arm->slot_count; s++) {
            double worth = missing * arm_share(arm, i, s);
            if (worth > best_worth[s]) {
                best_worth[s] = worth;
                best[s] = i;
            }
        }
    }
}

/* The best of the services that a full GPU has. */
static int best_of(const struct arm *arm, const struct arm_state *state, int slot,
                   const int *services, int count)
{
    assert(count >= 0 && count <= MIG_INSTANCES_MAX);
    int best = -1;
    double best_worth = 0;
    for (int n = 0; n < count; n++) {
        int service = services[n];
        double worth = arm_missing(state, service) * arm_share(arm, service, slot);
        if (worth > best_worth) {
            best_worth = worth;
            best = service;
        }
    }
    return best;
}

static struct candidate label(const struct arm *arm, const struct arm_state *state,
                              const struct arm_pattern *pattern, const int *best)
{
    struct candidate made = {.gpu = {.kind = pattern->kind}};
    int services[MIG_INSTANCES_MAX], count = 0;
    for (int k = 0; k < pattern->slot_count; k++) {
        int slot = pattern->slots[k], m = 0;
        int service =
            count < SERVICES_PER_GPU ? best[slot] : best_of(arm, state, slot, services, count);
        if (service < 0)
            continue;
        while (m < count && services[m] != service)
            m++;
        if (m == count)
            services[count++] = service;
        assert(made.gpu.count + pattern->counts[k] <= MIG_INSTANCES_MAX);
        for (int i = 0; i < pattern->counts[k]; i++)
            made.gpu.items[made.gpu.count++] =
                (struct solution_item){.slot = pattern->slots[k], .service = service};
    }
    made.score = candidates_score(arm, state, &made.gpu);
    return made;
}

static struct candidate choose(const struct arm *arm, const struct arm_state *state)
{
    struct candidate best = {.score = 0};
    bool last_mile = false;
    int services[PROBLEM_SLOTS_MAX];
    best_services(arm, state, services);
    for (size_t p = 0; p < arm->patterns.count; p++) {
        if (!arm_has_stock(arm, state, arm->patterns.data[p].kind))
            continue;
        struct candidate made = label(arm, state, &arm->patterns.data[p], services);
        if (made.score > best.score)
            best = made;
    }
    for (int i = 0; i < arm->service_count && !last_mile; i++)
        last_mile = arm_is_almost(arm, i, arm_missing(state, i));
    if (last_mile) {
        struct candidate mix = candidates_mix(arm, state, SERVICES_PER_GPU + 1);
        if (mix.score > best.score)
            best = mix;
    }
    return best;
}

static int jormungandr_solve(const struct problem *problem,
                             const struct solver_settings *settings,
                             struct solution *ret_solution, struct error *err)
{
    struct arm arm;
    struct arm_state state;
    struct arm_plan plan = {0};
    (void)err;
    arm_init(&arm, problem, settings);
    arm_state_init(&state, &arm);
    while (!arm_is_complete(&arm, &state)) {
        if (arm_is_late(&arm)) {
            ret_solution->stopped_by_budget = true;
            quick_fill(&arm, &state, &plan);
            break;
        }
        struct candidate chosen = choose(&arm, &state);
        if (chosen.score <= 0)
            break;
        arm_apply(&arm, &state, &chosen.gpu);
        vec_add(&plan.gpus, chosen.gpu);
    }
    arm_finish(&arm, &plan, ret_solution);
    vec_done(&plan.gpus);
    arm_state_done(&state);
    arm_done(&arm);
    return 0;
}

const struct solver solver_jormungandr = {
    .name = "jormungandr",
    .summary = "Jormungandr's greedy: up to three services a GPU, best batch and processes",
    .solve = jormungandr_solve,
};
