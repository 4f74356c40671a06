/* SPDX-License-Identifier: Apache-2.0
 *
 * Multisets that fit are closed downwards, so a walk that adds one slot at a time in
 * rising order meets each once; one to which no slot can be added is maximal. The walk is
 * over the slot kinds that some service can use, which keeps it small on boards with many
 * profiles, and beside the instances that are already on the GPU.
 */
#include "plan/patterns.h"

#include <assert.h>
#include <string.h>

struct walk {
    const struct problem *problem;
    const struct problem_kind *kind;
    int slots[MIG_PROFILES_MAX]; /* problem slots on this board */
    int slot_count;
    int counts[MIG_PROFILES_MAX]; /* parallel to slots */
    VEC(int) rows;                /* problem->slot_count counts each */
    int found;
};

/* MIG-serving's rule: a 4g and a 3g never share a GPU (notes of its driver, 2021). */
static bool breaks_paper_rule(const struct walk *walk)
{
    bool has[8] = {false};
    if (walk->problem->rules != RULES_PAPER)
        return false;
    for (int i = 0; i < walk->slot_count; i++) {
        int profile = walk->problem->slots[walk->slots[i]].profile;
        int slices = walk->kind->board->profiles[profile].compute_slices;
        if (walk->counts[i] > 0 && slices > 0 && slices < 8)
            has[slices] = true;
    }
    return has[4] && has[3];
}

static bool fits(const struct walk *walk)
{
    assert(walk->kind->taken.count <= MIG_INSTANCES_MAX);
    struct mig_layout request = {0}, placed;
    int counts[MIG_PROFILES_MAX] = {0};
    for (int i = 0; i < walk->slot_count; i++) {
        int profile = walk->problem->slots[walk->slots[i]].profile;
        counts[profile] = walk->counts[i];
        for (int k = 0; k < walk->counts[i]; k++) {
            if (request.count == MIG_INSTANCES_MAX)
                return false;
            request.instances[request.count++] =
                (struct mig_instance){.profile = (int8_t)profile, .start = MIG_START_ANY};
        }
    }
    if (request.count + walk->kind->taken.count > MIG_INSTANCES_MAX || breaks_paper_rule(walk))
        return false;
    if (walk->kind->taken.count == 0)
        return mig_multiset_place(walk->kind->board, counts, NULL);
    return mig_layout_place(walk->kind->board, &request, &walk->kind->taken, &placed, NULL) ==
           0;
}

static void keep(struct walk *walk)
{
    assert(walk->slot_count > 0);
    size_t width = (size_t)walk->problem->slot_count, first = walk->rows.count;
    for (size_t i = 0; i < width; i++)
        vec_add(&walk->rows, 0);
    for (int i = 0; i < walk->slot_count; i++)
        walk->rows.data[first + (size_t)walk->slots[i]] = walk->counts[i];
    walk->found++;
}

static void walk_from(struct walk *walk, int first)
{
    bool dominated = false;
    assert(first <= walk->slot_count);
    for (int i = 0; i < walk->slot_count; i++) {
        walk->counts[i]++;
        if (fits(walk)) {
            dominated = true;
            if (i >= first)
                walk_from(walk, i);
        }
        walk->counts[i]--;
    }
    bool empty = true;
    for (int i = 0; i < walk->slot_count; i++)
        empty &= walk->counts[i] == 0;
    if (!dominated && !empty)
        keep(walk);
}

void patterns_build(struct problem *problem, struct problem_kind *kind)
{
    struct walk walk = {.problem = problem, .kind = kind};
    for (int s = 0; s < problem->slot_count; s++)
        if (problem->slots[s].board == kind->board)
            walk.slots[walk.slot_count++] = s;
    assert(walk.slot_count <= MIG_PROFILES_MAX);
    walk_from(&walk, 0);
    kind->pattern_count = walk.found;
    int *rows = arena_alloc(&problem->arena, walk.rows.count + 1, sizeof *rows);
    if (walk.rows.count > 0)
        memcpy(rows, walk.rows.data, walk.rows.count * sizeof *rows);
    kind->patterns = rows;
    vec_done(&walk.rows);
}
