/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan document out of labelled slots. GPUs come in the order of the solution, then
 * partly taken GPUs that got nothing new; with an earlier plan by their ids.
 */
#include "plan/assemble.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/seats.h"
#include "plan/spread.h"

static const double TOLERANCE = 1e-9; /* the contract's, relative */

struct assembly {
    const struct problem *problem;
    struct plan *plan;
    int *service_index; /* of the plan, by service of the problem; -1: dropped */
};

static void add_services(struct assembly *assembly)
{
    assert(assembly->plan->services.count == 0);
    const struct problem *problem = assembly->problem;
    for (int i = 0; i < problem->service_count; i++) {
        const struct service *service = &problem->services->services.data[i];
        assembly->service_index[i] = -1;
        if (problem->dropped[i])
            continue;
        assembly->service_index[i] = (int)assembly->plan->services.count;
        vec_add(
            &assembly->plan->services,
            ((struct plan_service){.name = arena_strdup(&assembly->plan->arena, service->name),
                                   .required_rps = service->rate_rps}));
    }
}

/* An instance that serves, with the figures of its option; the start is set by others. */
static struct plan_instance serving(struct assembly *assembly, int slot, int service)
{
    assert(service >= 0 && service < assembly->problem->service_count);
    const struct problem_option *option = problem_option(assembly->problem, service, slot);
    const struct measurement *row = &assembly->problem->rows->rows.data[option->row];
    int index = assembly->service_index[service];
    assert(index >= 0 && option->row >= 0);
    assembly->plan->services.data[index].provided_rps += option->rate_rps;
    if (row->device && strcmp(row->device, "cpu-slice") == 0)
        assembly->plan->emulated = true;
    return (struct plan_instance){.profile = assembly->problem->slots[slot].profile,
                                  .service = index,
                                  .batch = option->batch,
                                  .procs = option->procs,
                                  .max_wait_ms = option->max_wait_ms,
                                  .rate_rps = option->rate_rps,
                                  .latency_ms = option->latency_ms};
}

static struct plan_instance unused(int profile, int start)
{
    assert(profile >= 0 && start >= 0);
    return (struct plan_instance){.profile = profile,
                                  .start = start,
                                  .service = -1,
                                  .batch = 1,
                                  .procs = 1,
                                  .max_wait_ms = NAN,
                                  .latency_ms = NAN};
}

/* Instances fixed by hand or reserved for others. */
static void add_taken(struct assembly *assembly, const struct problem_kind *kind,
                      struct plan_gpu *gpu)
{
    for (size_t i = 0; kind->gpu && i < kind->gpu->instances.count; i++) {
        const struct fixed_instance *fixed = &kind->gpu->instances.data[i];
        struct plan_instance instance = unused(fixed->profile, fixed->start);
        if (!fixed->reserved && assembly->service_index[fixed->service] >= 0) {
            int slot = problem_find_slot(assembly->problem, kind->board, fixed->profile);
            assert(slot >= 0);
            instance = serving(assembly, slot, fixed->service);
            instance.start = fixed->start;
        }
        vec_add(&gpu->instances, instance);
    }
}

/* Gives every item without a start one of the starts that placing chose for its profile. */
static void choose_starts(const struct problem *problem, const struct problem_kind *kind,
                          const struct solution_gpu *gpu, int *starts)
{
    struct mig_layout existing = kind->taken, request = {0}, placed = {0};
    for (int i = 0; i < gpu->count; i++) {
        struct mig_instance instance = {
            .profile = (int8_t)problem->slots[gpu->items[i].slot].profile,
            .start = (int8_t)(gpu->items[i].stay ? gpu->items[i].stay - 1 : MIG_START_ANY)};
        struct mig_layout *layout = gpu->items[i].stay ? &existing : &request;
        layout->instances[layout->count++] = instance;
    }
    assert(existing.count + request.count <= MIG_INSTANCES_MAX);
    mig_layout_sort(&existing);
    int rc = mig_layout_place(kind->board, &request, &existing, &placed, NULL);
    assert(rc == 0); /* the pattern says that it fits */
    (void)rc;
    /* What stays has its start; of the rest, items of one profile are alike and take any of its
     * starts. */
    uint32_t given = 0; /* positions in placed that are spoken for */
    for (int j = 0; j < placed.count; j++)
        for (int k = 0; k < existing.count; k++)
            if (placed.instances[j].start == existing.instances[k].start)
                given |= 1U << j;
    for (int i = 0; i < gpu->count; i++) {
        starts[i] = gpu->items[i].stay - 1;
        for (int j = 0; starts[i] < 0 && j < placed.count; j++) {
            if (given >> j & 1 ||
                placed.instances[j].profile != problem->slots[gpu->items[i].slot].profile)
                continue;
            given |= 1U << j;
            starts[i] = placed.instances[j].start;
        }
        assert(starts[i] >= 0);
    }
}

static int compare_starts(const void *a, const void *b)
{
    return ((const struct plan_instance *)a)->start - ((const struct plan_instance *)b)->start;
}

static void add_gpu(struct assembly *assembly, const struct solution_gpu *gpu,
                    const struct seat *seat)
{
    assert(gpu->count <= MIG_INSTANCES_MAX && seat->id && seat->node);
    const struct problem_kind *kind = &assembly->problem->kinds.data[gpu->kind];
    struct plan *plan = assembly->plan;
    int starts[MIG_INSTANCES_MAX];
    struct plan_gpu *added = vec_push(&plan->gpus);
    added->id = arena_strdup(&plan->arena, seat->id);
    added->node = arena_strdup(&plan->arena, seat->node);
    added->board = kind->board;
    choose_starts(assembly->problem, kind, gpu, starts);
    add_taken(assembly, kind, added);
    for (int i = 0; i < gpu->count; i++) {
        struct plan_instance instance =
            serving(assembly, gpu->items[i].slot, gpu->items[i].service);
        instance.start = starts[i];
        vec_add(&added->instances, instance);
    }
    qsort(added->instances.data, added->instances.count, sizeof *added->instances.data,
          compare_starts);
}

/* g2 before g10. */
static int compare_ids(const void *a, const void *b)
{
    return strverscmp(((const struct plan_gpu *)a)->id, ((const struct plan_gpu *)b)->id);
}

static void count_used(const struct problem *problem, const struct solution *solution,
                       struct plan *plan)
{
    assert(plan->gpus_used == 0);
    for (size_t g = 0; g < plan->gpus.count; g++) {
        bool serves = false;
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
            serves |= plan->gpus.data[g].instances.data[i].service >= 0;
        plan->gpus_used += serves;
    }
    plan->cost = solution_cost(problem, solution);
}

static void set_bound(const struct problem *problem, const struct solution *solution,
                      struct plan *plan)
{
    plan->bound_how = solution->bound_how ? solution->bound_how : "";
    plan->bound_cost = solution->bound_cost;
    plan->status = PLAN_FEASIBLE;
    if (isnan(plan->bound_cost))
        return;
    double slack = TOLERANCE * fmax(1, fabs(plan->bound_cost));
    assert(plan->cost >= plan->bound_cost - 1e-6 * fmax(1, fabs(plan->bound_cost)));
    double price = problem->parts.count > 0 ? problem->parts.data[0].price : 1;
    if (problem_prices_equal(problem))
        plan->bound_gpus = (int)ceil((plan->bound_cost - slack) / price - TOLERANCE);
    double reached =
        problem_prices_whole(problem) ? ceil(plan->bound_cost - slack) : plan->bound_cost;
    if (plan->cost <= reached + slack)
        plan->status = PLAN_OPTIMAL;
}

static void set_options(const struct problem *problem, const char *fleet_text,
                        struct plan *plan)
{
    struct str fleet = STR_EMPTY;
    struct mig_fleet total = {0};
    for (size_t p = 0; p < problem->parts.count; p++) {
        const struct fleet_part *part = &problem->parts.data[p];
        int at = 0;
        while (at < total.count && total.entries[at].board != part->board)
            at++;
        if (at == MIG_FLEET_BOARDS_MAX)
            break;
        if (at == total.count)
            total.entries[total.count++] = (struct mig_fleet_entry){.board = part->board};
        struct mig_fleet_entry *entry = &total.entries[at];
        entry->count = part->count < 0 || entry->count < 0 ? MIG_FLEET_UNLIMITED
                                                           : entry->count + part->count;
    }
    if (fleet_text)
        str_add(&fleet, fleet_text);
    else
        mig_fleet_format(&total, &fleet);
    plan->options = json_pack("{s:s, s:s, s:f, s:s}", "fleet", fleet.bytes, "latency_rule",
                              latency_rule_name(problem->services->latency_rule), "derate",
                              problem->services->derate, "rules",
                              problem->rules == RULES_PAPER ? "paper" : "current");
    str_done(&fleet);
    if (fleet_text) /* which a verifier cannot read from the services file */
        json_object_set_new(plan->options, "fleet_given", json_true());
    plan->inputs = json_object();
    if (*problem->services->sha256)
        json_object_set_new(plan->inputs, "services", json_string(problem->services->sha256));
    if (*problem->rows->sha256)
        json_object_set_new(plan->inputs, "measurements", json_string(problem->rows->sha256));
}

static void add_infeasible(const struct problem *problem, struct plan *plan)
{
    for (size_t i = 0; i < problem->infeasible.count; i++) {
        struct plan_infeasible entry = problem->infeasible.data[i];
        assert(entry.service && entry.reason);
        entry.service = arena_strdup(&plan->arena, entry.service);
        vec_add(&plan->infeasible, entry);
    }
}

static int add_gpus(struct assembly *assembly, const struct solution *solution,
                    struct error *err)
{
    const struct problem *problem = assembly->problem;
    CLEANUP(solution_done) struct solution full = {0};
    for (size_t g = 0; g < solution->gpus.count; g++)
        vec_add(&full.gpus, solution->gpus.data[g]);
    solution_add_untouched(problem, &full);
    const struct seat *seats = seats_assign(problem, &full, &assembly->plan->arena);
    int rc = spread_labels(problem, seats, &full, err);
    for (size_t g = 0; rc == 0 && g < full.gpus.count; g++)
        add_gpu(assembly, &full.gpus.data[g], &seats[g]);
    /* An earlier plan's ids come back in any order. */
    if (problem->from && assembly->plan->gpus.count > 0)
        qsort(assembly->plan->gpus.data, assembly->plan->gpus.count,
              sizeof *assembly->plan->gpus.data, compare_ids);
    return rc;
}

int assemble_plan(const struct problem *problem, const struct solution *solution,
                  const struct assemble_options *options, struct plan *ret_plan,
                  struct error *err)
{
    assert(options->algorithm && ret_plan);
    struct plan plan;
    plan_init(&plan);
    plan.algorithm = arena_strdup(&plan.arena, options->algorithm);
    plan.seed = options->seed;
    plan.stopped_by = solution->stopped_by_budget ? "budget" : NULL;
    set_options(problem, options->fleet_text, &plan);
    add_infeasible(problem, &plan);
    struct assembly assembly = {.problem = problem,
                                .plan = &plan,
                                .service_index =
                                    xcalloc((size_t)problem->service_count + 1, sizeof(int))};
    add_services(&assembly);
    int rc = 0;
    if (solution->feasible) {
        rc = add_gpus(&assembly, solution, err);
        count_used(problem, solution, &plan);
        set_bound(problem, solution, &plan);
    } else {
        plan.status = PLAN_INFEASIBLE;
    }
    free(assembly.service_index);
    if (rc < 0)
        plan_done(&plan);
    else
        *ret_plan = plan;
    return rc;
}
