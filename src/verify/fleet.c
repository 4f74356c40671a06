/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan's GPUs against the fleet: stock, nodes, instances fixed by hand or reserved, and
 * the cost.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "mig/fleet.h"
#include "verify/check.h"
#include "verify/fleet.h"

static bool serves(const struct plan_gpu *gpu)
{
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].service >= 0)
            return true;
    return false;
}

/* The part and listed GPU of an id; NULL when it is not listed. */
static const struct fleet_gpu *find_listed(const struct service_set *services, const char *id,
                                           const struct fleet_part **ret_part)
{
    assert(id && ret_part);
    for (size_t p = 0; p < services->fleet.count; p++) {
        for (size_t g = 0; g < services->fleet.data[p].gpus.count; g++) {
            if (strcmp(services->fleet.data[p].gpus.data[g].id, id) != 0)
                continue;
            *ret_part = &services->fleet.data[p];
            return &services->fleet.data[p].gpus.data[g];
        }
    }
    return NULL;
}

/* Prices and numbers of one board's GPUs over all parts of the fleet. */
struct supply {
    long count; /* -1: unlimited */
    double price_min, price_max;
    bool known;
};

static struct supply find_supply(const struct service_set *services,
                                 const struct mig_board *board)
{
    assert(board);
    struct supply supply = {.price_min = INFINITY, .price_max = -INFINITY};
    if (services->fleet.count == 0)
        return (struct supply){.count = -1, .price_min = 1, .price_max = 1, .known = true};
    for (size_t p = 0; p < services->fleet.count; p++) {
        const struct fleet_part *part = &services->fleet.data[p];
        if (part->board != board)
            continue;
        supply.known = true;
        supply.count = part->count < 0 || supply.count < 0 ? -1 : supply.count + part->count;
        supply.price_min = fmin(supply.price_min, part->price);
        supply.price_max = fmax(supply.price_max, part->price);
    }
    return supply;
}

static void check_stock(struct check *check)
{
    for (size_t b = 0; b < mig_board_count(); b++) {
        const struct mig_board *board = mig_board_at(b);
        long used = 0;
        for (size_t g = 0; g < check->plan->gpus.count; g++)
            used += check->plan->gpus.data[g].board == board;
        struct supply supply = find_supply(check->services, board);
        if (used > 0 && !supply.known)
            check_violation(check, "stock", "", "%ld GPUs of %s, which the fleet does not have",
                            used, board->slug);
        else if (supply.count >= 0 && used > supply.count)
            check_violation(check, "stock", "", "%ld GPUs of %s, but the fleet has %ld", used,
                            board->slug, supply.count);
    }
}

/* Whether the GPU of the plan has this fixed instance. */
static bool has_fixed(const struct check *check, const struct plan_gpu *gpu,
                      const struct fixed_instance *fixed)
{
    assert(fixed->reserved || fixed->service >= 0);
    const char *name =
        fixed->reserved ? NULL : check->services->services.data[fixed->service].name;
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        if (instance->start != fixed->start || instance->profile != fixed->profile)
            continue;
        if (instance->service < 0)
            return fixed->reserved;
        return name && strcmp(check->plan->services.data[instance->service].name, name) == 0;
    }
    return false;
}

static void check_fixed(struct check *check, const struct fleet_part *part,
                        const struct fleet_gpu *listed)
{
    int index = plan_find_gpu(check->plan, listed->id);
    const struct plan_gpu *gpu = index < 0 ? NULL : &check->plan->gpus.data[index];
    if (gpu && gpu->board != part->board)
        check_violation(check, "fixed", listed->id,
                        "is a %s in the plan, but the fleet lists a %s", gpu->board->slug,
                        part->board->slug);
    if (gpu && *listed->node && strcmp(gpu->node, listed->node) != 0)
        check_violation(check, "fixed", listed->id,
                        "is on node \"%s\" in the plan, but on \"%s\"", gpu->node,
                        listed->node);
    for (size_t i = 0; i < listed->instances.count; i++) {
        const struct fixed_instance *fixed = &listed->instances.data[i];
        if ((gpu && has_fixed(check, gpu, fixed)) || (!gpu && fixed->reserved))
            continue;
        check_violation(
            check, "fixed", listed->id, "%s@%d is %s%s, but the plan does not keep it",
            part->board->profiles[fixed->profile].name, fixed->start,
            fixed->reserved ? "reserved" : "fixed for ",
            fixed->reserved ? "" : check->services->services.data[fixed->service].name);
    }
}

static void check_nodes(struct check *check)
{
    for (size_t p = 0; p < check->services->fleet.count; p++) {
        const struct fleet_part *part = &check->services->fleet.data[p];
        struct map nodes = {0};
        for (size_t g = 0; part->gpus_per_node > 0 && g < check->plan->gpus.count; g++) {
            const struct plan_gpu *gpu = &check->plan->gpus.data[g];
            if (gpu->board != part->board || *gpu->node == '\0')
                continue;
            size_t seen = (size_t)(uintptr_t)map_get(&nodes, gpu->node) + 1;
            map_put(&nodes, gpu->node, (void *)(uintptr_t)seen);
            if (seen == (size_t)part->gpus_per_node + 1)
                check_violation(check, "node", gpu->node, "more than %d GPUs on it",
                                part->gpus_per_node);
        }
        map_done(&nodes);
    }
}

static void check_cost(struct check *check)
{
    double low = 0, high = 0;
    int used = 0;
    for (size_t g = 0; g < check->plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &check->plan->gpus.data[g];
        const struct fleet_part *part = NULL;
        if (!serves(gpu))
            continue;
        used++;
        struct supply supply = find_supply(check->services, gpu->board);
        if (find_listed(check->services, gpu->id, &part) && part->board == gpu->board)
            supply.price_min = supply.price_max = part->price;
        if (!supply.known)
            continue;
        low += supply.price_min;
        high += supply.price_max;
    }
    assert(low <= high && used >= 0);
    double slack = VERIFY_TOLERANCE * fmax(1, high);
    if (used != check->plan->gpus_used)
        check_violation(check, "cost", "gpus_used", "is %d, but %d GPUs serve",
                        check->plan->gpus_used, used);
    if (check->plan->cost < low - slack || check->plan->cost > high + slack)
        check_violation(check, "cost", "cost", "is %.10g, but the GPUs that serve cost %.10g",
                        check->plan->cost, low);
}

/* The bound as a number of GPUs: only where all prices are equal, and then no more GPUs than
 * bound.cost, rounded up, pays for. */
static void check_bound_gpus(struct check *check, double bound_cost)
{
    const struct plan *plan = check->plan;
    const struct fleet_part *parts = check->services->fleet.data;
    size_t count = check->services->fleet.count;
    double price = count > 0 ? parts[0].price : 1;
    for (size_t p = 1; p < count; p++)
        if (parts[p].price != price) {
            check_violation(check, "bound", "bound.gpus",
                            "is stated, but the fleet has GPUs of different prices");
            return;
        }
    double most = ceil(bound_cost / price - VERIFY_TOLERANCE * fmax(1, bound_cost / price));
    if (plan->bound_gpus > most)
        check_violation(check, "bound", "bound.gpus",
                        "is %d, but bound.cost %.10g proves no more than %.10g",
                        plan->bound_gpus, bound_cost, most);
}

static void check_bound(struct check *check)
{
    const struct plan *plan = check->plan;
    bool whole = true;
    for (size_t p = 0; p < check->services->fleet.count; p++)
        whole &=
            check->services->fleet.data[p].price == floor(check->services->fleet.data[p].price);
    double slack = VERIFY_TOLERANCE * fmax(1, plan->cost);
    if (isnan(plan->bound_cost)) {
        if (plan->status == PLAN_OPTIMAL)
            check_violation(check, "bound", "status", "is optimal, but no bound is stated");
        return;
    }
    if (plan->bound_cost > plan->cost + slack)
        check_violation(check, "bound", "bound.cost", "is %.10g, above the cost %.10g",
                        plan->bound_cost, plan->cost);
    if (plan->bound_gpus >= 0)
        check_bound_gpus(check, plan->bound_cost);
    double reached = whole ? ceil(plan->bound_cost - slack) : plan->bound_cost;
    if (plan->status == PLAN_OPTIMAL && plan->cost > reached + slack)
        check_violation(check, "bound", "status",
                        "is optimal, but the bound is %.10g below %.10g", plan->bound_cost,
                        plan->cost);
}

void check_fleet(struct check *check)
{
    check_stock(check);
    for (size_t p = 0; p < check->services->fleet.count; p++)
        for (size_t g = 0; g < check->services->fleet.data[p].gpus.count; g++)
            check_fixed(check, &check->services->fleet.data[p],
                        &check->services->fleet.data[p].gpus.data[g]);
    check_nodes(check);
    check_cost(check);
    check_bound(check);
}
