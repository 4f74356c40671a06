/* SPDX-License-Identifier: Apache-2.0
 *
 * Services to be spread choose first: each of their instances, the largest first, takes the
 * free slot of its kind on the GPU (or node) that has least of the service yet. The others
 * fill what is left in order.
 */
#include "plan/spread.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"

static const double TOLERANCE = 1e-9;

struct unit { /* one slot of a GPU whose label is free to choose */
    int gpu, item;
    bool labelled;
};

struct spreader {
    const struct problem *problem;
    struct solution *solution;
    int *node_of_gpu; /* number of the node of each GPU of the solution */
    int node_count;
    int *counts;        /* labels still to give: service_count rows of slot_count */
    struct unit *units; /* grouped by slot kind */
    int *first_unit;    /* slot_count + 1 positions into units */
    int *cursor;        /* per slot kind: where to look next */
    double *load_rps;   /* per GPU or node, of the service at hand */
};

static void spreader_done(struct spreader *spreader)
{
    free(spreader->node_of_gpu);
    free(spreader->counts);
    free(spreader->units);
    free(spreader->first_unit);
    free(spreader->cursor);
    free(spreader->load_rps);
}

static void number_nodes(struct spreader *spreader, const struct seat *seats)
{
    struct map names = {0};
    for (size_t g = 0; g < spreader->solution->gpus.count; g++) {
        ptrdiff_t at = map_find(&names, seats[g].node);
        if (at < 0)
            at = (ptrdiff_t)map_put(&names, seats[g].node, NULL);
        spreader->node_of_gpu[g] = (int)at;
    }
    spreader->node_count = (int)names.count;
    map_done(&names);
}

static void collect_units(struct spreader *spreader)
{
    int slots = spreader->problem->slot_count;
    const struct solution *solution = spreader->solution;
    for (size_t g = 0; g < solution->gpus.count; g++)
        for (int i = 0; i < solution->gpus.data[g].count; i++)
            if (!solution->gpus.data[g].items[i].stay)
                spreader->first_unit[solution->gpus.data[g].items[i].slot + 1]++;
    for (int s = 0; s < slots; s++)
        spreader->first_unit[s + 1] += spreader->first_unit[s];
    memcpy(spreader->cursor, spreader->first_unit, (size_t)slots * sizeof *spreader->cursor);
    for (size_t g = 0; g < solution->gpus.count; g++) {
        for (int i = 0; i < solution->gpus.data[g].count; i++) {
            const struct solution_item *item = &solution->gpus.data[g].items[i];
            if (item->stay)
                continue;
            spreader->counts[item->service * slots + item->slot]++;
            spreader->units[spreader->cursor[item->slot]++] =
                (struct unit){.gpu = (int)g, .item = i};
        }
    }
    memcpy(spreader->cursor, spreader->first_unit, (size_t)slots * sizeof *spreader->cursor);
}

static int domain_of(const struct spreader *spreader, int service, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < spreader->solution->gpus.count);
    enum spread spread = spreader->problem->services->services.data[service].spread;
    return spread == SPREAD_NODE ? spreader->node_of_gpu[gpu] : gpu;
}

static void label(struct spreader *spreader, struct unit *unit, int service)
{
    assert(!unit->labelled);
    unit->labelled = true;
    spreader->solution->gpus.data[unit->gpu].items[unit->item].service = service;
}

/* Loads of the service from instances that stay and from fixed ones. */
static void load_standing(struct spreader *spreader, int service)
{
    assert(service >= 0 && service < spreader->problem->service_count);
    const struct problem *problem = spreader->problem;
    const struct solution *solution = spreader->solution;
    memset(spreader->load_rps, 0, (solution->gpus.count + 1) * sizeof *spreader->load_rps);
    for (size_t g = 0; g < solution->gpus.count; g++) {
        const struct solution_gpu *gpu = &solution->gpus.data[g];
        const struct problem_kind *kind = &problem->kinds.data[gpu->kind];
        int domain = domain_of(spreader, service, (int)g);
        for (int i = 0; i < gpu->count; i++)
            if (gpu->items[i].stay && gpu->items[i].service == service)
                spreader->load_rps[domain] +=
                    problem_option(problem, service, gpu->items[i].slot)->rate_rps;
        for (size_t i = 0; kind->gpu && i < kind->gpu->instances.count; i++) {
            const struct fixed_instance *fixed = &kind->gpu->instances.data[i];
            int slot = problem_find_slot(problem, kind->board, fixed->profile);
            if (!fixed->reserved && fixed->service == service)
                spreader->load_rps[domain] += problem_option(problem, service, slot)->rate_rps;
        }
    }
}

static struct unit *choose_unit(struct spreader *spreader, int service, int slot)
{
    int first = spreader->first_unit[slot], last = spreader->first_unit[slot + 1];
    assert(last > first);
    struct unit *best = NULL;
    double best_load_rps = 0;
    for (int k = 0; k < last - first; k++) {
        int at = first + (spreader->cursor[slot] - first + k) % (last - first);
        struct unit *unit = &spreader->units[at];
        if (unit->labelled)
            continue;
        double load_rps = spreader->load_rps[domain_of(spreader, service, unit->gpu)];
        if (best && load_rps >= best_load_rps)
            continue;
        best = unit;
        best_load_rps = load_rps;
        if (load_rps == 0)
            break;
    }
    assert(best);
    spreader->cursor[slot] = (int)(best - spreader->units);
    return best;
}

/* The slot kind with labels left on which the service is fastest, or -1. */
static int largest_left(const struct spreader *spreader, int service)
{
    const struct problem *problem = spreader->problem;
    int best = -1;
    for (int s = 0; s < problem->slot_count; s++)
        if (spreader->counts[service * problem->slot_count + s] > 0 &&
            (best < 0 || problem_option(problem, service, s)->rate_rps >
                             problem_option(problem, service, best)->rate_rps))
            best = s;
    return best;
}

/* Spreads one service; returns the most that one domain has of it when its rate would not
 * survive the loss of that, else 0. */
static double spread_service(struct spreader *spreader, int service)
{
    assert(spreader->problem->services->services.data[service].spread != SPREAD_NONE);
    const struct problem *problem = spreader->problem;
    double total_rps = 0, largest_rps = 0;
    load_standing(spreader, service);
    for (int s = largest_left(spreader, service); s >= 0; s = largest_left(spreader, service)) {
        struct unit *unit = choose_unit(spreader, service, s);
        spreader->counts[service * problem->slot_count + s]--;
        spreader->load_rps[domain_of(spreader, service, unit->gpu)] +=
            problem_option(problem, service, s)->rate_rps;
        label(spreader, unit, service);
    }
    for (size_t d = 0; d < spreader->solution->gpus.count; d++) {
        total_rps += spreader->load_rps[d];
        if (spreader->load_rps[d] > largest_rps)
            largest_rps = spreader->load_rps[d];
    }
    double required_rps = problem->services->services.data[service].rate_rps;
    return total_rps - largest_rps >= required_rps * (1 - TOLERANCE) ? 0 : largest_rps;
}

static void fill_others(struct spreader *spreader)
{
    const struct problem *problem = spreader->problem;
    int slots = problem->slot_count;
    memcpy(spreader->cursor, spreader->first_unit, (size_t)slots * sizeof *spreader->cursor);
    for (int i = 0; i < problem->service_count; i++) {
        for (int s = 0; s < slots; s++) {
            for (int k = spreader->counts[i * slots + s]; k > 0; k--) {
                while (spreader->units[spreader->cursor[s]].labelled)
                    spreader->cursor[s]++;
                assert(spreader->cursor[s] < spreader->first_unit[s + 1]);
                label(spreader, &spreader->units[spreader->cursor[s]], i);
            }
        }
    }
}

static bool spread_all(struct spreader *spreader, const struct seat *seats,
                       double *ret_largest_rps)
{
    const struct problem *problem = spreader->problem;
    bool all = true;
    number_nodes(spreader, seats);
    collect_units(spreader);
    for (int i = 0; i < problem->service_count; i++) {
        double largest_rps = 0;
        if (problem->services->services.data[i].spread != SPREAD_NONE && !problem->dropped[i])
            largest_rps = spread_service(spreader, i);
        if (ret_largest_rps)
            ret_largest_rps[i] = largest_rps;
        all &= largest_rps == 0;
    }
    fill_others(spreader);
    return all;
}

bool spread_is_asked(const struct problem *problem)
{
    bool asked = false;
    for (int i = 0; i < problem->service_count; i++)
        asked |=
            problem->services->services.data[i].spread != SPREAD_NONE && !problem->dropped[i];
    return asked;
}

bool spread_try(const struct problem *problem, const struct seat *seats,
                struct solution *solution, double *ret_largest_rps)
{
    size_t slots = (size_t)problem->slot_count, gpus = solution->gpus.count;
    CLEANUP(spreader_done)
    struct spreader spreader = {
        .problem = problem,
        .solution = solution,
        .node_of_gpu = xcalloc(gpus + 1, sizeof(int)),
        .counts = xcalloc((size_t)problem->service_count * slots + 1, sizeof(int)),
        .units = xcalloc(gpus * MIG_INSTANCES_MAX + 1, sizeof(struct unit)),
        .first_unit = xcalloc(slots + 1, sizeof(int)),
        .cursor = xcalloc(slots + 1, sizeof(int)),
        .load_rps = xcalloc(gpus + 1, sizeof(double)),
    };
    return spread_all(&spreader, seats, ret_largest_rps);
}

int spread_labels(const struct problem *problem, const struct seat *seats,
                  struct solution *solution, struct error *err)
{
    if (!spread_is_asked(problem))
        return 0;
    double *largest_rps = xcalloc((size_t)problem->service_count + 1, sizeof *largest_rps);
    int rc = 0;
    if (!spread_try(problem, seats, solution, largest_rps)) {
        int i = 0;
        while (largest_rps[i] == 0)
            i++;
        const struct service *service = &problem->services->services.data[i];
        rc = error_set(err, E_NO, "service \"%s\": its rate would not survive the loss of a %s",
                       service->name, spread_name(service->spread));
    }
    free(largest_rps);
    return rc;
}
