/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's fast algorithm (arXiv 2109.11067, section 5.1). Of all configurations that
 * mix at most two services take the one with the highest score sum (1 - c) u, add it,
 * update c, until every need is met; when a service is almost satisfied, configurations
 * that mix more services compete too (the last mile).
 *
 * The best pair is found lazily: scores only fall as c rises, so a pair scored earlier is
 * an upper bound, and only the row on top has to be scored again. The choice is the one
 * that scoring all pairs at every step would make.
 */
#include "plan/greedy.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plan/candidates.h"
#include "plan/quick_fill.h"

enum { LATE_STRIDE = 64 }; /* pairs between two looks at the clock */

/* The best configuration of one service with any service of a higher index, or alone. */
struct row {
    struct candidate best;
    int partner;
    long scored_at; /* step */
};

struct greedy {
    const struct arm *arm;
    struct arm_state *state;
    struct row *rows;
    double *value;    /* (1 - c) u of one instance, by service and slot */
    long *changed_at; /* step in which a service's completion last changed */
    long all_changed_at;
    long step;
};

/* No configuration of these two scores more than this. */
static double pair_limit(const struct greedy *greedy, int a, int b)
{
    assert(a >= 0 && a <= b && b < greedy->arm->service_count);
    size_t slots = (size_t)greedy->arm->slot_count;
    const double *of_a = greedy->value + (size_t)a * slots;
    const double *of_b = greedy->value + (size_t)b * slots;
    double limit = 0;
    for (size_t p = 0; p < greedy->arm->patterns.count; p++) {
        const struct arm_pattern *pattern = &greedy->arm->patterns.data[p];
        double sum = 0;
        for (int k = 0; k < pattern->slot_count; k++) {
            int slot = pattern->slots[k];
            sum += pattern->counts[k] * (of_a[slot] > of_b[slot] ? of_a[slot] : of_b[slot]);
        }
        if (sum > limit * pattern->price)
            limit = sum / pattern->price;
    }
    return limit;
}

static void set_values(struct greedy *greedy, int service)
{
    assert(service >= 0 && service < greedy->arm->service_count);
    const struct arm *arm = greedy->arm;
    double missing = arm_missing(greedy->state, service);
    for (int s = 0; s < arm->slot_count; s++)
        greedy->value[service * arm->slot_count + s] = missing * arm_share(arm, service, s);
}

static void score_row(struct greedy *greedy, int service)
{
    struct row *row = &greedy->rows[service];
    assert(service < greedy->arm->service_count);
    *row = (struct row){.partner = service, .scored_at = greedy->step};
    if (arm_missing(greedy->state, service) <= 0)
        return;
    for (int other = service; other < greedy->arm->service_count; other++) {
        int pair[2] = {service, other};
        struct candidate found;
        if (other != service && arm_missing(greedy->state, other) <= 0)
            continue;
        if (other % LATE_STRIDE == 0 && arm_is_late(greedy->arm))
            return;
        int count = other == service ? 1 : 2;
        if (pair_limit(greedy, service, other) > row->best.score * (1 - 1e-12) &&
            candidates_top(greedy->arm, greedy->state, pair, count, &found, 1) > 0 &&
            found.score > row->best.score) {
            row->best = found;
            row->partner = other;
        }
    }
}

static bool is_fresh(const struct greedy *greedy, int service)
{
    assert(greedy->rows[service].partner >= service);
    const struct row *row = &greedy->rows[service];
    return row->scored_at >= greedy->changed_at[service] &&
           row->scored_at >= greedy->changed_at[row->partner] &&
           row->scored_at >= greedy->all_changed_at;
}

/* The best configuration of at most two services now. */
static struct candidate best_pair(struct greedy *greedy)
{
    for (;;) {
        int top = -1;
        for (int i = 0; i < greedy->arm->service_count; i++)
            if (top < 0 || greedy->rows[i].best.score > greedy->rows[top].best.score)
                top = i;
        if (top < 0)
            return (struct candidate){.score = 0};
        if (greedy->rows[top].best.score <= 0 || is_fresh(greedy, top))
            return greedy->rows[top].best;
        score_row(greedy, top);
        if (arm_is_late(greedy->arm))
            return (struct candidate){.score = 0};
    }
}

static bool any_almost(const struct greedy *greedy)
{
    for (int i = 0; i < greedy->arm->service_count; i++)
        if (arm_is_almost(greedy->arm, i, arm_missing(greedy->state, i)))
            return true;
    return false;
}

static struct candidate choose(struct greedy *greedy)
{
    struct candidate pair = best_pair(greedy);
    if (!any_almost(greedy))
        return pair;
    struct candidate mix = candidates_mix(greedy->arm, greedy->state, MIG_INSTANCES_MAX);
    return mix.score > pair.score ? mix : pair;
}

static void take(struct greedy *greedy, const struct solution_gpu *gpu)
{
    assert(gpu->count > 0);
    greedy->step++;
    arm_apply(greedy->arm, greedy->state, gpu);
    for (int k = 0; k < gpu->count; k++) {
        greedy->changed_at[gpu->items[k].service] = greedy->step;
        set_values(greedy, gpu->items[k].service);
    }
    /* A kind that is out changes every row's best, not only those of the services served. */
    if (!arm_has_stock(greedy->arm, greedy->state, gpu->kind))
        greedy->all_changed_at = greedy->step;
}

bool greedy_fill(const struct arm *arm, struct arm_state *state, struct arm_plan *plan)
{
    size_t services = (size_t)arm->service_count + 1;
    struct greedy greedy = {
        .arm = arm,
        .state = state,
        .rows = xcalloc(services, sizeof(struct row)),
        .value = xcalloc(services * ((size_t)arm->slot_count + 1), sizeof(double)),
        .changed_at = xcalloc(services, sizeof(long))};
    bool stuck = false;
    for (int i = 0; i < arm->service_count; i++)
        set_values(&greedy, i);
    for (int i = 0; i < arm->service_count && !arm_is_late(arm); i++)
        score_row(&greedy, i);
    while (!stuck && !arm_is_late(arm) && !arm_is_complete(arm, state)) {
        stuck = plan->gpus.count > PLAN_GPUS_MAX;
        if (stuck)
            break;
        struct candidate chosen = choose(&greedy);
        if (arm_is_late(arm)) /* the choice may be half made */
            break;
        stuck = chosen.score <= 0;
        if (stuck)
            break;
        take(&greedy, &chosen.gpu);
        vec_add(&plan->gpus, chosen.gpu);
    }
    free(greedy.rows);
    free(greedy.value);
    free(greedy.changed_at);
    return stuck ? false : quick_fill(arm, state, plan);
}

static int greedy_solve(const struct problem *problem, const struct solver_settings *settings,
                        struct solution *ret_solution, struct error *err)
{
    struct arm arm;
    struct arm_state state;
    struct arm_plan plan = {0};
    (void)err;
    arm_init(&arm, problem, settings);
    arm_state_init(&state, &arm);
    greedy_fill(&arm, &state, &plan);
    ret_solution->stopped_by_budget = arm_is_late(&arm);
    arm_finish(&arm, &plan, ret_solution);
    vec_done(&plan.gpus);
    arm_state_done(&state);
    arm_done(&arm);
    return 0;
}

const struct solver solver_greedy = {
    .name = "greedy",
    .summary =
        "MIG-serving's fast algorithm: the configuration of two services that scores best",
    .solve = greedy_solve,
};
