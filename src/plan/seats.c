/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/seats.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

/* A node and how many of its GPUs are taken; which part of the fleet it belongs to. */
struct node {
    int part;
    int taken;
};

struct seating {
    const struct problem *problem;
    const struct solution *solution;
    struct arena *arena;
    struct seat *seats;
    struct map ids;   /* all ids that are spoken for, listed or in use */
    struct map used;  /* ids that a GPU of this solution has */
    struct map nodes; /* name → struct node */
    int next_name;
    int *next_node; /* per part: the first node that may have room */
    int *ordinal;   /* per part: anonymous GPUs so far */
    int *listed;    /* per part: next listed GPU to look at */
    bool spread_nodes;
};

static void seating_done(struct seating *seating)
{
    map_done(&seating->ids);
    map_done(&seating->used);
    map_done(&seating->nodes);
    free(seating->next_node);
    free(seating->ordinal);
    free(seating->listed);
}

static struct node *get_node(struct seating *seating, const char *name, int part)
{
    assert(name && part >= 0);
    struct node *node = map_get(&seating->nodes, name);
    if (!node) {
        node = arena_alloc(seating->arena, 1, sizeof *node);
        node->part = part;
        map_put(&seating->nodes, name, node);
    }
    return node;
}

/* Ids and nodes of the listed GPUs and of the earlier plan are nobody else's. */
static void reserve_names(struct seating *seating)
{
    const struct problem *problem = seating->problem;
    for (size_t p = 0; p < problem->parts.count; p++) {
        const struct fleet_part *part = &problem->parts.data[p];
        for (size_t g = 0; g < part->gpus.count; g++) {
            const struct fleet_gpu *gpu = &part->gpus.data[g];
            map_put(&seating->ids, gpu->id, NULL);
            if (*gpu->node)
                get_node(seating, gpu->node, (int)p)->taken++;
        }
    }
    for (size_t g = 0; problem->from && g < problem->from->gpus.count; g++)
        map_put(&seating->ids, problem->from->gpus.data[g].id, NULL);
}

static void seat_known(struct seating *seating, size_t g)
{
    const struct solution_gpu *gpu = &seating->solution->gpus.data[g];
    const struct problem_kind *kind = &seating->problem->kinds.data[gpu->kind];
    struct seat *seat = &seating->seats[g];
    if (kind->gpu) {
        *seat = (struct seat){kind->gpu->id, kind->gpu->node};
    } else if (gpu->reuse) {
        const struct plan_gpu *old = &seating->problem->from->gpus.data[gpu->reuse - 1];
        *seat = (struct seat){old->id, old->node ? old->node : ""};
        const struct fleet_part *part = &seating->problem->parts.data[kind->part];
        bool is_listed = false;
        for (size_t i = 0; i < part->gpus.count; i++)
            is_listed |= strcmp(part->gpus.data[i].id, old->id) == 0;
        if (!is_listed && *seat->node)
            get_node(seating, seat->node, kind->part)->taken++;
    } else {
        return;
    }
    map_put(&seating->used, seat->id, NULL);
}

/* The next listed GPU of the part without instances that nobody has; NULL: none left. */
static const struct fleet_gpu *next_listed(struct seating *seating, int part_index)
{
    assert(part_index >= 0 && (size_t)part_index < seating->problem->parts.count);
    const struct fleet_part *part = &seating->problem->parts.data[part_index];
    while ((size_t)seating->listed[part_index] < part->gpus.count) {
        const struct fleet_gpu *gpu = &part->gpus.data[seating->listed[part_index]++];
        if (gpu->instances.count == 0 && map_find(&seating->used, gpu->id) < 0)
            return gpu;
    }
    return NULL;
}

/* Nodes are filled one after the other, or taken in turn when a service asks to be spread
 * over nodes: then all that the stock fills, or as many as there are GPUs. */
static const char *choose_node(struct seating *seating, int part_index)
{
    assert(part_index >= 0 && (size_t)part_index < seating->problem->parts.count);
    const struct fleet_part *part = &seating->problem->parts.data[part_index];
    int size = part->gpus_per_node;
    if (size == 0)
        return "";
    int turn =
        part->count < 0 ? (int)seating->solution->gpus.count : (part->count + size - 1) / size;
    int ordinal = seating->ordinal[part_index]++;
    int first =
        seating->spread_nodes && turn > 0 ? ordinal % turn : seating->next_node[part_index];
    for (int k = first;; k++) {
        char *name = arena_printf(seating->arena, "n%d", k);
        struct node *node = get_node(seating, name, part_index);
        if (node->part != part_index || node->taken >= size)
            continue;
        node->taken++;
        if (!seating->spread_nodes)
            seating->next_node[part_index] = k;
        return name;
    }
}

static void seat_free(struct seating *seating, size_t g)
{
    assert(!seating->seats[g].id);
    struct seat *seat = &seating->seats[g];
    int part = seating->problem->kinds.data[seating->solution->gpus.data[g].kind].part;
    const struct fleet_gpu *gpu = next_listed(seating, part);
    if (gpu) {
        *seat = (struct seat){gpu->id, gpu->node};
        return;
    }
    char *name;
    do
        name = arena_printf(seating->arena, "g%d", seating->next_name++);
    while (map_find(&seating->ids, name) >= 0);
    *seat = (struct seat){name, choose_node(seating, part)};
}

const struct seat *seats_assign(const struct problem *problem, const struct solution *solution,
                                struct arena *arena)
{
    assert(arena);
    size_t parts = problem->parts.count + 1;
    CLEANUP(seating_done)
    struct seating seating = {
        .problem = problem,
        .solution = solution,
        .arena = arena,
        .seats = arena_alloc(arena, solution->gpus.count + 1, sizeof(struct seat)),
        .next_node = xcalloc(parts, sizeof(int)),
        .ordinal = xcalloc(parts, sizeof(int)),
        .listed = xcalloc(parts, sizeof(int)),
    };
    for (int i = 0; i < problem->service_count; i++)
        seating.spread_nodes |= problem->services->services.data[i].spread == SPREAD_NODE;
    reserve_names(&seating);
    for (size_t g = 0; g < solution->gpus.count; g++)
        seat_known(&seating, g);
    for (size_t g = 0; g < solution->gpus.count; g++)
        if (!seating.seats[g].id)
            seat_free(&seating, g);
    return seating.seats;
}
