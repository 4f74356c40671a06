/* SPDX-License-Identifier: Apache-2.0
 *
 * Building the planning problem: the fleet's parts, the slot kinds that promises.h found
 * usable, the kinds of GPU with their patterns, and what fixed instances give already.
 */
#include "plan/problem.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "plan/patterns.h"
#include "plan/promises.h"

static void add_part(struct problem *problem, const struct fleet_part *part)
{
    assert(part->board && part->price >= 0);
    /* The list of GPUs stays the services' own. */
    vec_add(&problem->parts, *part);
}

static void build_parts(struct problem *problem)
{
    const struct service_set *services = problem->services;
    for (size_t i = 0; i < services->fleet.count; i++)
        add_part(problem, &services->fleet.data[i]);
    if (services->fleet.count > 0)
        return;
    for (size_t b = 0; b < mig_board_count(); b++) {
        const struct mig_board *board = mig_board_at(b);
        bool measured = false;
        for (size_t r = 0; r < problem->rows->rows.count; r++)
            measured |= problem->rows->rows.data[r].board == board;
        if (measured)
            add_part(problem, &(struct fleet_part){
                                  .board = board, .count = MIG_FLEET_UNLIMITED, .price = 1});
    }
}

static bool is_fixed_pair(const struct problem *problem, const struct problem_slot *pair)
{
    for (size_t p = 0; p < problem->parts.count; p++) {
        const struct fleet_part *part = &problem->parts.data[p];
        for (size_t g = 0; part->board == pair->board && g < part->gpus.count; g++)
            for (size_t i = 0; i < part->gpus.data[g].instances.count; i++)
                if (part->gpus.data[g].instances.data[i].profile == pair->profile)
                    return true;
    }
    return false;
}

/* Slot kinds are the pairs that some service can use; the others are dropped. */
static void build_slots(struct problem *problem, const struct promise_table *table)
{
    assert(problem->slot_count == 0);
    size_t pairs = table->pairs.count, services = (size_t)problem->service_count;
    int *kept = xcalloc(pairs + 1, sizeof *kept);
    for (size_t p = 0; p < pairs; p++) {
        bool used = is_fixed_pair(problem, &table->pairs.data[p]);
        for (size_t i = 0; i < services; i++)
            used |= table->options[i * pairs + p].row >= 0;
        if (used)
            kept[problem->slot_count++] = (int)p;
    }
    size_t slots = (size_t)problem->slot_count;
    problem->slots = arena_alloc(&problem->arena, slots + 1, sizeof *problem->slots);
    problem->options =
        arena_alloc(&problem->arena, services * slots + 1, sizeof *problem->options);
    for (size_t s = 0; s < slots; s++) {
        problem->slots[s] = table->pairs.data[kept[s]];
        for (size_t i = 0; i < services; i++)
            problem->options[i * slots + s] = table->options[i * pairs + (size_t)kept[s]];
    }
    free(kept);
}

/* An instance that serves is capacity had already, and its GPU is paid for. */
static void note_fixed(struct problem *problem, struct problem_kind *kind, int service,
                       double rate_rps, double *here_rps)
{
    assert(rate_rps > 0 && kind->stock == 1);
    problem->fixed_rps[service] += rate_rps;
    problem->demand_rps[service] -= rate_rps;
    problem->instances_min[service]--;
    problem->base_cost += kind->price;
    kind->price = 0;
    here_rps[service] += rate_rps;
    if (here_rps[service] > problem->fixed_largest_rps[service])
        problem->fixed_largest_rps[service] = here_rps[service];
}

static int take_fixed(struct problem *problem, const struct fleet_gpu *gpu,
                      struct problem_kind *kind, struct error *err)
{
    assert(gpu->instances.count <= MIG_INSTANCES_MAX && kind->taken.count == 0);
    double *here_rps = xcalloc((size_t)problem->service_count + 1, sizeof *here_rps);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < gpu->instances.count; i++) {
        const struct fixed_instance *fixed = &gpu->instances.data[i];
        kind->taken.instances[kind->taken.count++] = (struct mig_instance){
            .profile = (int8_t)fixed->profile, .start = (int8_t)fixed->start};
        if (fixed->reserved)
            continue;
        int slot = problem_find_slot(problem, kind->board, fixed->profile);
        const struct service *service = &problem->services->services.data[fixed->service];
        const struct problem_option *option =
            slot < 0 ? NULL : problem_option(problem, fixed->service, slot);
        if (!option || option->row < 0)
            rc = error_set(err, E_INPUT,
                           "fleet: GPU \"%s\": service \"%s\" is fixed on %s of %s, but no "
                           "measurement lets it run there; measure it or remove the instance",
                           gpu->id, service->name, kind->board->profiles[fixed->profile].name,
                           kind->board->slug);
        else
            note_fixed(problem, kind, fixed->service, option->rate_rps, here_rps);
    }
    free(here_rps);
    mig_layout_sort(&kind->taken);
    return rc;
}

static int build_part_kinds(struct problem *problem, int index, struct error *err)
{
    assert(problem->parts.data[index].board &&
           problem->parts.data[index].count >= MIG_FLEET_UNLIMITED);
    const struct fleet_part *part = &problem->parts.data[index];
    int free_gpus = part->count;
    for (size_t g = 0; g < part->gpus.count; g++) {
        const struct fleet_gpu *gpu = &part->gpus.data[g];
        if (gpu->instances.count == 0)
            continue;
        struct problem_kind kind = {
            .board = part->board, .part = index, .price = part->price, .stock = 1, .gpu = gpu};
        int rc = take_fixed(problem, gpu, &kind, err);
        if (rc < 0)
            return rc;
        patterns_build(problem, &kind);
        vec_add(&problem->kinds, kind);
        if (free_gpus > 0)
            free_gpus--;
    }
    struct problem_kind kind = {.board = part->board,
                                .part = index,
                                .price = part->price,
                                .stock = part->count < 0 ? PROBLEM_UNLIMITED : free_gpus};
    patterns_build(problem, &kind);
    vec_add(&problem->kinds, kind);
    return 0;
}

static int build_kinds(struct problem *problem, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < problem->parts.count; i++)
        rc = build_part_kinds(problem, (int)i, err);
    for (int i = 0; i < problem->service_count; i++) {
        /* What is left of a rate after fixed instances may be a rounding error. */
        double required_rps = problem->services->services.data[i].rate_rps;
        bool spread = problem->services->services.data[i].spread != SPREAD_NONE;
        if (problem->demand_rps[i] < required_rps * 1e-12 && !spread)
            problem->demand_rps[i] = 0;
        if (problem->instances_min[i] < 0)
            problem->instances_min[i] = 0;
    }
    return rc;
}

static int check_nodes(const struct problem *problem, struct error *err)
{
    for (int i = 0; i < problem->service_count; i++) {
        const struct service *service = &problem->services->services.data[i];
        if (service->spread != SPREAD_NODE)
            continue;
        for (size_t p = 0; p < problem->parts.count; p++) {
            const struct fleet_part *part = &problem->parts.data[p];
            size_t named = 0;
            for (size_t g = 0; g < part->gpus.count; g++)
                named += *part->gpus.data[g].node != '\0';
            if (part->gpus_per_node == 0 && (part->count < 0 || named < (size_t)part->count))
                return error_set(err, E_INPUT,
                                 "service \"%s\": spread: node needs to know the nodes of %s; "
                                 "give gpus_per_node, or the node of each GPU, in the fleet",
                                 service->name, part->board->slug);
        }
    }
    return 0;
}

static void build_demands(struct problem *problem)
{
    size_t count = (size_t)problem->service_count + 1;
    problem->demand_rps = arena_alloc(&problem->arena, count, sizeof *problem->demand_rps);
    problem->instances_min =
        arena_alloc(&problem->arena, count, sizeof *problem->instances_min);
    problem->fixed_rps = arena_alloc(&problem->arena, count, sizeof *problem->fixed_rps);
    problem->fixed_largest_rps =
        arena_alloc(&problem->arena, count, sizeof *problem->fixed_largest_rps);
    problem->dropped = arena_alloc(&problem->arena, count, sizeof *problem->dropped);
    for (int i = 0; i < problem->service_count; i++) {
        problem->demand_rps[i] = problem->services->services.data[i].rate_rps;
        problem->instances_min[i] = problem->services->services.data[i].min_instances;
    }
}

int problem_init(struct problem *problem, const struct service_set *services,
                 const struct measurement_set *rows, const struct problem_options *options,
                 struct error *err)
{
    assert(services && rows && options && options->max_moves >= -1);
    *problem = (struct problem){.services = services,
                                .rows = rows,
                                .rules = options->rules,
                                .service_count = (int)services->services.count,
                                .from = options->from,
                                .max_moves = options->max_moves,
                                .move_price = options->move_price};
    CLEANUP(promise_table_done) struct promise_table table;
    build_parts(problem);
    build_demands(problem);
    promise_table_init(&table, problem, options->executor);
    build_slots(problem, &table);
    int rc =
        problem->slot_count > PROBLEM_SLOTS_MAX
            ? error_set(err, E_INPUT, "%d kinds of slices are measured, expected at most %d",
                        problem->slot_count, (int)PROBLEM_SLOTS_MAX)
            : check_nodes(problem, err);
    if (rc == 0)
        rc = build_kinds(problem, err);
    if (rc < 0)
        problem_done(problem);
    return rc;
}

void problem_done(struct problem *problem)
{
    vec_done(&problem->parts);
    vec_done(&problem->kinds);
    vec_done(&problem->infeasible);
    arena_done(&problem->arena);
    *problem = (struct problem){0};
}

int problem_find_slot(const struct problem *problem, const struct mig_board *board, int profile)
{
    assert(profile >= 0 && profile < board->profile_count);
    for (int s = 0; s < problem->slot_count; s++)
        if (problem->slots[s].board == board && problem->slots[s].profile == profile)
            return s;
    return -1;
}

bool problem_prices_equal(const struct problem *problem)
{
    for (size_t i = 1; i < problem->parts.count; i++)
        if (problem->parts.data[i].price != problem->parts.data[0].price)
            return false;
    return true;
}

bool problem_prices_whole(const struct problem *problem)
{
    for (size_t i = 0; i < problem->parts.count; i++)
        if (problem->parts.data[i].price != floor(problem->parts.data[i].price))
            return false;
    return true;
}
