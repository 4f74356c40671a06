/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning a change; see change.h. Pure: no driver, no clock.
 */
#include "gpu/change.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { SUBSETS_MAX = 1 << MIG_INSTANCES_MAX, UNMATCHED = -1 };

/* One way to keep: which existing instances stay, and as what. */
struct subset {
    uint64_t score;
    unsigned mask; /* bit i: layout.slices[i] stays */
};

/* The planning of one GPU. */
struct planning {
    const struct gpu *gpu;
    const struct mig_board *board;
    const struct gpu_layout *wanted;
    int partner[MIG_INSTANCES_MAX]; /* existing slice i stays as wanted slice partner[i] */
};

void gpu_change_done(struct gpu_change *change)
{
    vec_done(&change->steps);
    vec_done(&change->effects);
}

bool gpu_effect_disturbs(const struct gpu_effect *effect)
{
    return effect->mode_change || effect->remove.count || effect->create.count ||
           effect->compute_changes;
}

/* --- choosing what stays --- */

/* How much keeping one existing instance is worth. The parts add up over a subset, so that
 * the order of two subsets stays the same whatever else both keep. */
static uint64_t worth(const struct planning *planning, int index)
{
    const struct gpu_slice *slice = &planning->gpu->layout.slices[index];
    const struct mig_profile *profile = &planning->board->profiles[slice->gi.profile];
    const struct gpu_gi *gi = &planning->gpu->instances.gi[index];
    uint64_t position = UINT64_C(1) << (MIG_UNITS_MAX - slice->gi.start);
    uint64_t units = (uint64_t)profile->placement_size << 16;
    uint64_t busy = gpu_instance_is_busy(planning->gpu, gi->id, GPU_NO_INSTANCE);

    assert(slice->gi.start >= 0 && slice->gi.start <= MIG_UNITS_MAX);
    return (busy << 48) + (UINT64_C(1) << 32) + units + position;
}

static int compare_subsets(const void *a, const void *b)
{
    const struct subset *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->mask < y->mask) - (x->mask > y->mask);
}

static size_t list_subsets(const struct planning *planning, struct subset ret[SUBSETS_MAX])
{
    size_t count = (size_t)1 << planning->gpu->layout.count;

    assert(count <= SUBSETS_MAX &&
           planning->gpu->layout.count == planning->gpu->instances.count);
    for (unsigned mask = 0; mask < count; mask++) {
        ret[mask] = (struct subset){.mask = mask};
        for (int i = 0; i < planning->gpu->layout.count; i++)
            if (mask >> i & 1)
                ret[mask].score += worth(planning, i);
    }
    qsort(ret, count, sizeof *ret, compare_subsets);
    return count;
}

/* How well wanted slice j suits existing slice i: 0 not at all; a fixed start counts most,
 * then the same compute instances. */
static int suits(const struct planning *planning, int i, int j)
{
    const struct gpu_slice *have = &planning->gpu->layout.slices[i];
    const struct gpu_slice *want = &planning->wanted->slices[j];

    if (have->gi.profile != want->gi.profile)
        return 0;
    if (want->gi.start != MIG_START_ANY && want->gi.start != have->gi.start)
        return 0;
    return 1 + gpu_slice_same_cis(have, want) + 2 * (want->gi.start != MIG_START_ANY);
}

/* Gives each instance of the subset a partner of its own. Instances of one profile are
 * interchangeable but for fixed starts, which are given first. */
static bool match_subset(struct planning *planning, unsigned mask)
{
    unsigned taken = 0;

    for (int i = 0; i < MIG_INSTANCES_MAX; i++)
        planning->partner[i] = UNMATCHED;
    for (int level = 4; level >= 1; level--)
        for (int i = 0; i < planning->gpu->layout.count; i++) {
            if (!(mask >> i & 1) || planning->partner[i] != UNMATCHED)
                continue;
            for (int j = 0; j < planning->wanted->count; j++)
                if (!(taken >> j & 1) && suits(planning, i, j) == level) {
                    planning->partner[i] = j;
                    taken |= 1U << j;
                    break;
                }
        }
    for (int i = 0; i < planning->gpu->layout.count; i++)
        if (mask >> i & 1 && planning->partner[i] == UNMATCHED)
            return false;
    return true;
}

static int partner_of(const struct planning *planning, int wanted)
{
    for (int i = 0; i < planning->gpu->layout.count; i++)
        if (planning->partner[i] == wanted)
            return i;
    return UNMATCHED;
}

/* Takes the lowest start at which `placed` has this profile and which is not yet used. */
static int take_start(const struct mig_layout *placed, int profile, unsigned *used)
{
    for (int i = 0; i < placed->count; i++)
        if (placed->instances[i].profile == profile && !(*used >> i & 1)) {
            *used |= 1U << i;
            return placed->instances[i].start;
        }
    assert(placed->count <= MIG_INSTANCES_MAX);
    assert(!"a placed layout lacks an instance that was asked for");
    return 0;
}

static void use_start(const struct mig_layout *placed, struct mig_instance instance,
                      unsigned *used)
{
    for (int i = 0; i < placed->count; i++)
        if (placed->instances[i].profile == instance.profile &&
            placed->instances[i].start == instance.start)
            *used |= 1U << i;
}

/* The wanted layout with every start filled in: those of kept instances, those asked for,
 * and those that `placed` chose. */
static void fill_result(const struct planning *planning, const struct mig_layout *placed,
                        struct gpu_layout *ret)
{
    unsigned used = 0;

    *ret = *planning->wanted;
    for (int j = 0; j < ret->count; j++) {
        int partner = partner_of(planning, j);
        if (partner != UNMATCHED)
            ret->slices[j].gi = planning->gpu->layout.slices[partner].gi;
        if (ret->slices[j].gi.start != MIG_START_ANY)
            use_start(placed, ret->slices[j].gi, &used);
    }
    for (int j = 0; j < ret->count; j++)
        if (ret->slices[j].gi.start == MIG_START_ANY)
            ret->slices[j].gi.start =
                (int8_t)take_start(placed, ret->slices[j].gi.profile, &used);
}

static bool try_subset(struct planning *planning, unsigned mask, struct gpu_layout *ret_result)
{
    struct mig_layout kept = {0}, rest = {0}, placed;

    if (!match_subset(planning, mask))
        return false;
    for (int i = 0; i < planning->gpu->layout.count; i++)
        if (mask >> i & 1)
            kept.instances[kept.count++] = planning->gpu->layout.slices[i].gi;
    for (int j = 0; j < planning->wanted->count; j++)
        if (partner_of(planning, j) == UNMATCHED)
            rest.instances[rest.count++] = planning->wanted->slices[j].gi;
    mig_layout_sort(&kept);
    mig_layout_sort(&rest);
    if (mig_layout_place(planning->board, &rest, &kept, &placed, NULL))
        return false;
    fill_result(planning, &placed, ret_result);
    return true;
}

/* The best subset that the wanted layout can be placed around. */
static int choose_kept(struct planning *planning, struct gpu_layout *ret_result,
                       struct error *err)
{
    struct subset subsets[SUBSETS_MAX];
    struct mig_layout wanted, placed;
    size_t count = list_subsets(planning, subsets);

    for (size_t i = 0; i < count; i++)
        if (try_subset(planning, subsets[i].mask, ret_result))
            return 0;
    /* Not even around nothing: say why. */
    gpu_layout_instances(planning->wanted, &wanted);
    return mig_layout_place(planning->board, &wanted, NULL, &placed, err);
}

/* --- steps --- */

static struct gpu_step *add_step(struct gpu_change *change, enum gpu_step_kind kind, size_t gpu)
{
    assert(kind < GPU_STEP_KIND_COUNT);
    struct gpu_step *step = vec_push(&change->steps);
    *step = (struct gpu_step){
        .kind = kind, .gpu = gpu, .gi = GPU_NO_INSTANCE, .ci = GPU_NO_INSTANCE};
    return step;
}

static void add_destroy_ci(struct gpu_change *change, const struct gpu_effect *effect,
                           const struct gpu_gi *gi, const struct gpu_ci *ci,
                           struct mig_instance instance)
{
    struct gpu_step *step = add_step(change, GPU_STEP_DESTROY_CI, effect->gpu);
    step->instance = instance;
    step->gi = gi->id;
    step->ci = ci->id;
    step->ci_slices = ci->compute_slices;
}

static void destroy_instance(struct gpu_change *change, struct gpu_effect *effect,
                             const struct gpu_gi *gi, struct mig_instance instance)
{
    assert(gi->start == instance.start && effect->remove.count < MIG_INSTANCES_MAX);
    for (int i = 0; i < gi->ci_count; i++)
        add_destroy_ci(change, effect, gi, &gi->ci[i], instance);
    struct gpu_step *step = add_step(change, GPU_STEP_DESTROY_GI, effect->gpu);
    step->instance = instance;
    step->gi = gi->id;
    effect->remove.instances[effect->remove.count++] = instance;
}

static void add_create_cis(struct gpu_change *change, size_t gpu, const struct gpu_slice *slice,
                           unsigned skip, uint32_t gi)
{
    assert(slice->ci_count >= 0 && slice->ci_count <= GPU_CI_MAX);
    for (int i = 0; i < slice->ci_count; i++) {
        if (skip >> i & 1)
            continue;
        struct gpu_step *step = add_step(change, GPU_STEP_CREATE_CI, gpu);
        step->instance = slice->gi;
        step->gi = gi;
        step->ci_slices = slice->ci_slices[i];
    }
}

/* Finds a wanted width, not yet used, for a compute instance that is there. */
static int use_width(const struct gpu_slice *wanted, int ci_slices, unsigned *used)
{
    assert(ci_slices > 0);
    for (int i = 0; i < wanted->ci_count; i++)
        if (!(*used >> i & 1) && wanted->ci_slices[i] == ci_slices) {
            *used |= 1U << i;
            return i;
        }
    return UNMATCHED;
}

/* Compute instances of a kept GPU instance: those of a wanted width stay, busy ones first. */
static unsigned change_kept(struct gpu_change *change, struct gpu_effect *effect,
                            const struct planning *planning, int index,
                            const struct gpu_slice *wanted)
{
    const struct gpu_gi *gi = &planning->gpu->instances.gi[index];
    unsigned used = 0, stays = 0;

    for (int busy = 1; busy >= 0; busy--)
        for (int i = 0; i < gi->ci_count; i++)
            if (gpu_instance_is_busy(planning->gpu, gi->id, gi->ci[i].id) == busy &&
                use_width(wanted, gi->ci[i].compute_slices, &used) != UNMATCHED)
                stays |= 1U << i;
    for (int i = 0; i < gi->ci_count; i++)
        if (!(stays >> i & 1)) {
            add_destroy_ci(change, effect, gi, &gi->ci[i], wanted->gi);
            effect->compute_changes++;
        }
    effect->compute_changes += wanted->ci_count - __builtin_popcount(used);
    return used;
}

/* Largest span first, then lowest start: safe on every board, and explicit anyway. */
static int creation_order(const struct mig_board *board, const struct gpu_layout *layout,
                          int ret[MIG_INSTANCES_MAX])
{
    for (int i = 0; i < layout->count; i++) {
        int size = board->profiles[layout->slices[i].gi.profile].placement_size;
        int j = i;
        for (; j > 0; j--) {
            const struct mig_instance other = layout->slices[ret[j - 1]].gi;
            int other_size = board->profiles[other.profile].placement_size;
            if (other_size > size ||
                (other_size == size && other.start < layout->slices[i].gi.start))
                break;
            ret[j] = ret[j - 1];
        }
        ret[j] = i;
    }
    return layout->count;
}

static void add_creations(struct gpu_change *change, struct gpu_effect *effect,
                          const struct planning *planning,
                          const unsigned used_widths[MIG_INSTANCES_MAX])
{
    int order[MIG_INSTANCES_MAX];
    int count = creation_order(planning->board, &effect->result, order);

    for (int i = 0; i < count; i++) {
        const struct gpu_slice *slice = &effect->result.slices[order[i]];
        int partner = partner_of(planning, order[i]);
        if (partner != UNMATCHED) {
            add_create_cis(change, effect->gpu, slice, used_widths[order[i]],
                           planning->gpu->instances.gi[partner].id);
            continue;
        }
        struct gpu_step *step = add_step(change, GPU_STEP_CREATE_GI, effect->gpu);
        step->instance = slice->gi;
        effect->create.instances[effect->create.count++] = slice->gi;
        add_create_cis(change, effect->gpu, slice, 0, GPU_NO_INSTANCE);
    }
}

static int check_starts(const struct gpu *gpu, struct error *err)
{
    for (int i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.gi[i].start == GPU_START_UNKNOWN)
            return error_set(
                err, E_IO,
                "GPU %d: the driver does not tell the starts of its instances; run "
                "as root, or with the MIG config capability",
                gpu->identity.index);
    return 0;
}

static int plan_instances(const struct gpu *gpu, const struct gpu_layout *wanted,
                          struct gpu_change *change, struct gpu_effect *effect,
                          struct error *err)
{
    struct planning planning = {.gpu = gpu, .board = &gpu->live->board, .wanted = wanted};
    unsigned used_widths[MIG_INSTANCES_MAX] = {0};

    int r = check_starts(gpu, err);
    if (!r)
        r = choose_kept(&planning, &effect->result, err);
    if (r)
        return r;
    for (int i = 0; i < gpu->layout.count; i++) {
        const struct mig_instance instance = gpu->layout.slices[i].gi;
        int partner = planning.partner[i];
        if (partner == UNMATCHED) {
            destroy_instance(change, effect, &gpu->instances.gi[i], instance);
            continue;
        }
        effect->keep.instances[effect->keep.count++] = instance;
        used_widths[partner] =
            change_kept(change, effect, &planning, i, &effect->result.slices[partner]);
    }
    add_creations(change, effect, &planning, used_widths);
    gpu_layout_sort(&effect->result);
    mig_layout_sort(&effect->create);
    return 0;
}

static int plan_gpu(const struct gpu *gpu, const struct gpu_target *target,
                    struct gpu_change *change, struct gpu_effect *effect, struct error *err)
{
    static const struct gpu_layout empty = {0};
    bool on = gpu->mode.current;
    int r;

    *effect = (struct gpu_effect){.gpu = target->gpu, .mig_enabled = target->mig_enabled};
    if (!gpu->live)
        return 0;
    effect->mode_change = on != target->mig_enabled || gpu->mode.pending != target->mig_enabled;
    effect->needs_reset = effect->mode_change && gpu->live->board.mode_change_needs_reset;
    if (target->keep_instances && target->mig_enabled) {
        if (effect->mode_change)
            add_step(change, GPU_STEP_ENABLE_MIG, target->gpu);
        /* Instances do not outlive a change of the mode. */
        effect->result = effect->mode_change && !on ? empty : gpu->layout;
        gpu_layout_instances(&effect->result, &effect->keep);
        return 0;
    }
    if (effect->mode_change && target->mig_enabled)
        add_step(change, GPU_STEP_ENABLE_MIG, target->gpu);
    r = plan_instances(gpu, target->mig_enabled ? &target->layout : &empty, change, effect,
                       err);
    if (r)
        return error_wrap(err, "GPU %d (%s)", gpu->identity.index, gpu->live->board.slug);
    if (effect->mode_change && !target->mig_enabled)
        add_step(change, GPU_STEP_DISABLE_MIG, target->gpu);
    effect->enabled_and_empty = target->mig_enabled && !effect->keep.count &&
                                (effect->mode_change || gpu_effect_disturbs(effect));
    return 0;
}

/* --- processes in the way --- */

/* Whether a step cannot be done while this process runs. */
static bool step_meets_process(const struct gpu_step *step, const struct gpu_process *process)
{
    switch (step->kind) {
    case GPU_STEP_DESTROY_CI:
        return process->gi == step->gi &&
               (process->ci == step->ci || process->ci == GPU_NO_INSTANCE);
    case GPU_STEP_DESTROY_GI:
        return process->gi == step->gi;
    case GPU_STEP_ENABLE_MIG:
    case GPU_STEP_DISABLE_MIG:
        return true;
    case GPU_STEP_CREATE_GI:
    case GPU_STEP_CREATE_CI:
    case GPU_STEP_KIND_COUNT:
        break;
    }
    return false;
}

/* Names a process once, with the first step that it is in the way of. */
static void add_blocked(const struct gpu_inventory *inventory, const struct gpu_change *change,
                        size_t gpu, const struct gpu_process *process, struct str *text)
{
    assert(gpu < inventory->gpus.count);
    for (size_t i = 0; i < change->steps.count; i++) {
        const struct gpu_step *step = &change->steps.data[i];
        if (step->gpu != gpu || !step_meets_process(step, process))
            continue;
        str_add(text, text->length ? "\n" : "");
        gpu_process_describe(process, text);
        str_add(text, " is in the way: ");
        gpu_step_describe(inventory, step, text);
        return;
    }
}

static int check_processes(const struct gpu_inventory *inventory,
                           const struct gpu_change *change, struct error *err)
{
    CLEANUP(str_done) struct str blocked = STR_EMPTY;

    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu_process_list *list = &inventory->gpus.data[i].processes;
        for (size_t j = 0; j < list->items.count; j++)
            add_blocked(inventory, change, i, &list->items.data[j], &blocked);
    }
    return blocked.length
               ? error_set(err, E_BUSY, "%s\nnothing was changed; stop what runs there first",
                           blocked.bytes)
               : 0;
}

/* What must hold of a planned GPU, whatever was asked: a legal end, every start known, what
 * stays and what is made being the end, what stays and what goes being what there is. */
static void assert_effect(const struct gpu *gpu, const struct gpu_target *target,
                          const struct gpu_effect *effect)
{
    struct mig_layout result;

    if (!gpu->live || target->keep_instances)
        return;
    gpu_layout_assert(&gpu->live->board, &effect->result);
    gpu_layout_instances(&effect->result, &result);
    assert(!result.count || result.instances[0].start != MIG_START_ANY);
    assert(mig_layout_check(&gpu->live->board, &result, NULL) == 0);
    assert(effect->keep.count + effect->create.count == result.count);
    assert(effect->keep.count + effect->remove.count == gpu->layout.count);
    assert(target->mig_enabled || !result.count);
}

/* Destroying comes before creating on each GPU, and a new compute instance after its GPU
 * instance. */
static void assert_order(const struct gpu_change *change)
{
    for (size_t i = 1; i < change->steps.count; i++) {
        const struct gpu_step *before = &change->steps.data[i - 1], *step = before + 1;
        bool destroys = step->kind <= GPU_STEP_DESTROY_GI;
        assert(before->gpu <= step->gpu);
        assert(before->gpu != step->gpu || !destroys || before->kind <= GPU_STEP_ENABLE_MIG);
        assert(step->kind != GPU_STEP_CREATE_CI || step->gi != GPU_NO_INSTANCE ||
               (before->gpu == step->gpu && before->instance.start == step->instance.start));
        (void)destroys;
    }
}

int gpu_change_plan(const struct gpu_inventory *inventory,
                    const struct gpu_target_list *targets, struct gpu_change *ret_change,
                    struct error *err)
{
    struct gpu_change change = {0};
    int r = 0;

    for (size_t i = 0; !r && i < targets->items.count; i++) {
        const struct gpu_target *target = &targets->items.data[i];
        struct gpu_effect effect;
        r = plan_gpu(&inventory->gpus.data[target->gpu], target, &change, &effect, err);
        if (r)
            break;
        assert_effect(&inventory->gpus.data[target->gpu], target, &effect);
        vec_add(&change.effects, effect);
    }
    if (!r) {
        assert_order(&change);
        r = check_processes(inventory, &change, err);
    }
    if (r) {
        gpu_change_done(&change);
        return r;
    }
    *ret_change = change;
    return 0;
}
