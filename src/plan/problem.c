/* SPDX-License-Identifier: Apache-2.0
 *
 * Building the planning problem: the fleet's parts, the slot kinds, what every service may
 * promise on each, the kinds of GPU with their patterns, and why a service has no slot.
 */
#include "plan/problem.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "plan/patterns.h"
#include "plan/rule.h"

/* Rows by model, and the pairs of board and profile that were measured on the fleet. */
struct builder {
    struct problem *problem;
    struct rule rule;
    struct map models; /* model → position */
    int *first;        /* models.count + 1 positions into order */
    int *order;        /* row indices, grouped by model, the highest throughput first */
    VEC(struct problem_slot) pairs;
    int *row_pair;                  /* pair of each row; -1: a board that the fleet lacks */
    struct problem_option *options; /* service_count rows of pairs.count */
};

static void builder_done(struct builder *builder)
{
    map_done(&builder->models);
    free(builder->first);
    free(builder->order);
    vec_done(&builder->pairs);
    free(builder->row_pair);
    free(builder->options);
    queue_model_free(builder->rule.queue);
}

static void add_part(struct problem *problem, const struct fleet_part *part)
{
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

static bool in_fleet(const struct problem *problem, const struct mig_board *board)
{
    for (size_t i = 0; i < problem->parts.count; i++)
        if (problem->parts.data[i].board == board)
            return true;
    return false;
}

static int compare_throughput(const void *a, const void *b, void *context)
{
    const struct measurement_set *rows = context;
    double x = rows->rows.data[*(const int *)a].throughput_rps;
    double y = rows->rows.data[*(const int *)b].throughput_rps;
    if (x != y)
        return x > y ? -1 : 1;
    return *(const int *)a - *(const int *)b;
}

/* The fastest rows come first: a promise never exceeds the throughput, so slower rows need
 * not be worked out once a promise is above it. */
static void group_rows(struct builder *builder)
{
    const struct measurement_set *rows = builder->problem->rows;
    size_t count = rows->rows.count;
    int *model = xcalloc(count + 1, sizeof *model);
    for (size_t r = 0; r < count; r++) {
        ptrdiff_t at = map_find(&builder->models, rows->rows.data[r].model);
        model[r] =
            at >= 0 ? (int)at : (int)map_put(&builder->models, rows->rows.data[r].model, NULL);
    }
    builder->first = xcalloc(builder->models.count + 2, sizeof *builder->first);
    builder->order = xcalloc(count + 1, sizeof *builder->order);
    for (size_t r = 0; r < count; r++)
        builder->first[model[r] + 2]++;
    for (size_t m = 1; m < builder->models.count + 2; m++)
        builder->first[m] += builder->first[m - 1];
    for (size_t r = 0; r < count; r++)
        builder->order[builder->first[model[r] + 1]++] = (int)r;
    for (size_t m = 0; m < builder->models.count; m++)
        qsort_r(&builder->order[builder->first[m]],
                (size_t)(builder->first[m + 1] - builder->first[m]), sizeof *builder->order,
                compare_throughput, (void *)rows);
    free(model);
}

static int pair_compare(const void *a, const void *b)
{
    const struct problem_slot *x = a, *y = b;
    if (x->board != y->board)
        return x->board < y->board ? -1 : 1;
    return x->profile - y->profile;
}

/* Pairs in the order of the board table, then of the board's profiles. */
static void collect_pairs(struct builder *builder)
{
    const struct problem *problem = builder->problem;
    size_t count = problem->rows->rows.count;
    builder->row_pair = xcalloc(count + 1, sizeof *builder->row_pair);
    struct problem_slot *seen = xcalloc(count + 1, sizeof *seen);
    size_t seen_count = 0;
    for (size_t r = 0; r < count; r++) {
        const struct measurement *row = &problem->rows->rows.data[r];
        if (in_fleet(problem, row->board))
            seen[seen_count++] = (struct problem_slot){row->board, row->profile};
    }
    /* Pointers into one constant table: their order is the table's on every machine. */
    qsort(seen, seen_count, sizeof *seen, pair_compare);
    for (size_t i = 0; i < seen_count; i++)
        if (i == 0 || pair_compare(&seen[i - 1], &seen[i]) != 0)
            vec_add(&builder->pairs, seen[i]);
    free(seen);
    for (size_t r = 0; r < count; r++) {
        const struct measurement *row = &problem->rows->rows.data[r];
        struct problem_slot key = {row->board, row->profile};
        struct problem_slot *at = builder->pairs.count == 0
                                      ? NULL
                                      : bsearch(&key, builder->pairs.data, builder->pairs.count,
                                                sizeof key, pair_compare);
        builder->row_pair[r] = at ? (int)(at - builder->pairs.data) : -1;
    }
}

/* Which is the better of two ways to run on one slot kind: the higher promise, then the
 * lower latency, then the smaller batch and fewer processes. */
static bool is_better(const struct problem_option *a, const struct problem_option *b)
{
    if (b->row < 0 || a->rate_rps != b->rate_rps)
        return b->row < 0 || a->rate_rps > b->rate_rps;
    if (!isnan(a->latency_ms) && a->latency_ms != b->latency_ms)
        return a->latency_ms < b->latency_ms;
    return a->batch != b->batch ? a->batch < b->batch : a->procs < b->procs;
}

/* Why no row serves a service, gathered over its rows. */
struct reasons {
    bool measured; /* an ok row with a latency column, on a board of the fleet */
    bool out_of_memory;
    bool fits;
    double nearest_latency_ms;
};

static void note_reason(struct reasons *reasons, const struct rule_promise *promise)
{
    reasons->out_of_memory |= promise->verdict == RULE_OUT_OF_MEMORY;
    if (promise->verdict != RULE_TOO_SLOW)
        return;
    reasons->fits = true;
    if (!isnan(promise->latency_ms) && !(reasons->nearest_latency_ms <= promise->latency_ms))
        reasons->nearest_latency_ms = promise->latency_ms;
}

/* Applies the rule to every row of the service's model; false when none may serve. */
static bool build_service_options(struct builder *builder, int service_index,
                                  struct reasons *reasons)
{
    const struct service *service = &builder->problem->services->services.data[service_index];
    struct problem_option *options =
        &builder->options[(size_t)service_index * builder->pairs.count];
    ptrdiff_t model = map_find(&builder->models, service->model);
    bool usable = false;
    for (size_t p = 0; p < builder->pairs.count; p++)
        options[p].row = -1;
    if (model < 0)
        return false;
    const int *siblings = &builder->order[builder->first[model]];
    int count = builder->first[model + 1] - builder->first[model];
    for (int i = 0; i < count; i++) {
        int pair = builder->row_pair[siblings[i]];
        if (pair < 0)
            continue;
        const struct measurement *row = &builder->problem->rows->rows.data[siblings[i]];
        struct rule_promise promise = rule_apply(
            &builder->rule, &(struct rule_query){.service = service,
                                                 .row = siblings[i],
                                                 .siblings = siblings,
                                                 .sibling_count = count,
                                                 .enough_rps = options[pair].rate_rps});
        note_reason(reasons, &promise);
        if (promise.verdict != RULE_USABLE)
            continue;
        struct problem_option option = {.row = siblings[i],
                                        .batch = row->batch,
                                        .procs = row->procs,
                                        .rate_rps = promise.rate_rps,
                                        .latency_ms = promise.latency_ms,
                                        .max_wait_ms = service->max_wait_ms};
        usable = true;
        if (is_better(&option, &options[pair]))
            options[pair] = option;
    }
    return usable;
}

static void build_options(struct builder *builder)
{
    struct problem *problem = builder->problem;
    size_t cells = (size_t)problem->service_count * builder->pairs.count;
    builder->options = xcalloc(cells + 1, sizeof *builder->options);
    for (int i = 0; i < problem->service_count; i++) {
        struct reasons reasons = {.nearest_latency_ms = NAN};
        if (build_service_options(builder, i, &reasons))
            continue;
        vec_add(&problem->infeasible,
                ((struct plan_infeasible){
                    .service = problem->services->services.data[i].name,
                    .reason = reasons.fits            ? "latency"
                              : reasons.out_of_memory ? "memory"
                                                      : "no_measurement",
                    .nearest_latency_ms = reasons.fits ? reasons.nearest_latency_ms : NAN}));
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
static void build_slots(struct builder *builder)
{
    struct problem *problem = builder->problem;
    size_t pairs = builder->pairs.count, services = (size_t)problem->service_count;
    int *kept = xcalloc(pairs + 1, sizeof *kept);
    for (size_t p = 0; p < pairs; p++) {
        bool used = is_fixed_pair(problem, &builder->pairs.data[p]);
        for (size_t i = 0; i < services; i++)
            used |= builder->options[i * pairs + p].row >= 0;
        if (used)
            kept[problem->slot_count++] = (int)p;
    }
    size_t slots = (size_t)problem->slot_count;
    problem->slots = arena_alloc(&problem->arena, slots + 1, sizeof *problem->slots);
    problem->options =
        arena_alloc(&problem->arena, services * slots + 1, sizeof *problem->options);
    for (size_t s = 0; s < slots; s++) {
        problem->slots[s] = builder->pairs.data[kept[s]];
        for (size_t i = 0; i < services; i++)
            problem->options[i * slots + s] = builder->options[i * pairs + (size_t)kept[s]];
    }
    free(kept);
}

/* An instance that serves is capacity had already, and its GPU is paid for. */
static void note_fixed(struct problem *problem, struct problem_kind *kind, int service,
                       double rate_rps, double *here_rps)
{
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
    *problem = (struct problem){.services = services,
                                .rows = rows,
                                .rules = options->rules,
                                .service_count = (int)services->services.count,
                                .from = options->from,
                                .max_moves = options->max_moves,
                                .move_price = options->move_price};
    CLEANUP(builder_done)
    struct builder builder = {
        .problem = problem,
        .rule = {.services = services,
                 .rows = rows,
                 .queue = services->latency_rule == RULE_QUEUE ? queue_model_new() : NULL}};
    build_parts(problem);
    build_demands(problem);
    group_rows(&builder);
    collect_pairs(&builder);
    build_options(&builder);
    build_slots(&builder);
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
