/* SPDX-License-Identifier: Apache-2.0
 *
 * First fit of the largest instances first, without a search.
 */
#include "plan/quick_fill.h"

#include <assert.h>
#include <math.h>

struct wish_list {
    VEC(struct solution_item) items;
};

/* The slot with the most utility per compute slice; -1: none. */
static int densest_slot(const struct arm *arm, int service)
{
    int best = -1;
    double best_value = 0;
    assert(service >= 0 && service < arm->service_count);
    for (int s = 0; s < arm->slot_count; s++) {
        double value = arm_share(arm, service, s) / arm_slices(arm, s);
        if (value > best_value) {
            best_value = value;
            best = s;
        }
    }
    return best;
}

/* The smallest slot that gives at least `missing`; `otherwise` when none does. */
static int covering_slot(const struct arm *arm, int service, double missing, int otherwise)
{
    int best = -1;
    assert(missing > 0);
    for (int s = 0; s < arm->slot_count; s++)
        if (arm_share(arm, service, s) >= missing &&
            (best < 0 || arm_slices(arm, s) < arm_slices(arm, best)))
            best = s;
    return best < 0 ? otherwise : best;
}

static void wish(const struct arm *arm, const struct arm_state *state, int service,
                 struct wish_list *wishes)
{
    int slot = densest_slot(arm, service);
    double share = slot < 0 ? 0 : arm_share(arm, service, slot);
    for (double missing = arm_missing(state, service); missing > 0 && share > 0;) {
        int chosen = missing >= share ? slot : covering_slot(arm, service, missing, slot);
        vec_add(&wishes->items, ((struct solution_item){.slot = chosen, .service = service}));
        missing -= arm_share(arm, service, chosen);
    }
}

/* Places the wishes of one size in their order; what finds no stock is left to others. */
static void place_size(const struct arm *arm, struct arm_state *state, struct arm_plan *plan,
                       const struct wish_list *wishes, int slices)
{
    assert(slices > 0);
    for (size_t i = 0; i < wishes->items.count; i++) {
        struct solution_item item = wishes->items.data[i];
        if (arm_slices(arm, item.slot) == slices && arm_missing(state, item.service) > 0)
            arm_plan_add(arm, plan, state, item);
    }
}

/* Gives a service whatever slots are still to be had. */
static bool place_anywhere(const struct arm *arm, struct arm_state *state,
                           struct arm_plan *plan, int service)
{
    for (int s = 0; s < arm->slot_count; s++)
        while (arm_share(arm, service, s) > 0 && arm_missing(state, service) > 0 &&
               arm_plan_add(arm, plan, state,
                            (struct solution_item){.slot = s, .service = service}))
            continue;
    return arm_missing(state, service) <= 0;
}

bool quick_fill(const struct arm *arm, struct arm_state *state, struct arm_plan *plan)
{
    struct wish_list wishes = {0};
    int largest = 0;
    bool met = true;
    for (int s = 0; s < arm->slot_count; s++)
        largest = arm_slices(arm, s) > largest ? arm_slices(arm, s) : largest;
    for (int i = 0; i < arm->service_count; i++)
        wish(arm, state, i, &wishes);
    for (int slices = largest; slices > 0; slices--)
        place_size(arm, state, plan, &wishes, slices);
    for (int i = 0; i < arm->service_count && met; i++)
        met = arm_missing(state, i) <= 0 || place_anywhere(arm, state, plan, i);
    vec_done(&wishes.items);
    return met;
}
