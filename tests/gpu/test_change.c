/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning a change, as a pure function: every legal layout of a board to every other (a
 * sample of pairs, seeded), judged by an executor on plain arrays. What both layouts share is
 * never touched; as many instances stay as brute force finds; a plan cut after any step and
 * made again ends at the same layout and keeps the same instances.
 */
#include "support.h"

#include "base/rng.h"

enum { PAIRS = 300, LAYOUTS_MAX = 4096 };

struct layouts {
    struct mig_layout items[LAYOUTS_MAX];
    size_t count;
};

static struct layouts layouts;

static bool keep_layout(const struct mig_layout *layout, void *context)
{
    struct layouts *list = context;
    if (list->count < LAYOUTS_MAX)
        list->items[list->count++] = *layout;
    return true;
}

/* --- a machine of one GPU, as the planner sees it --- */

static void set_layout(struct gpu *gpu, const struct mig_layout *layout)
{
    gpu->instances.count = gpu->layout.count = layout->count;
    for (int i = 0; i < layout->count; i++) {
        const struct mig_instance instance = layout->instances[i];
        const struct mig_profile *profile = &gpu->live->profiles[instance.profile];
        gpu->layout.slices[i] = gpu_slice_default(&gpu->live->board, instance);
        gpu->instances.gi[i] =
            (struct gpu_gi){.id = (uint32_t)instance.start + 1,
                            .profile_id = profile->profile_id,
                            .start = instance.start,
                            .size = profile->placement_size,
                            .ci_count = 1,
                            .ci = {{.compute_slices = profile->compute_slices}}};
    }
}

/* Does one GI step on a layout; whether it was legal there. */
static bool do_step(const struct mig_board *board, struct mig_layout *layout,
                    const struct gpu_step *step)
{
    if (step->kind == GPU_STEP_CREATE_GI) {
        if (!mig_layout_can_add(board, layout, step->instance))
            return false;
        mig_layout_add(board, layout, step->instance);
    }
    for (int i = 0; step->kind == GPU_STEP_DESTROY_GI && i < layout->count; i++)
        if (layout->instances[i].start == step->instance.start) {
            if (layout->instances[i].profile != step->instance.profile)
                return false;
            mig_layout_remove(layout, i);
            return true;
        }
    return step->kind != GPU_STEP_DESTROY_GI;
}

static struct gpu_change plan(struct gpu_inventory *inventory, const struct mig_layout *from,
                              const struct gpu_layout *wanted)
{
    struct gpu_target_list targets;
    struct gpu_target target = {.mig_enabled = true, .layout = *wanted};
    struct gpu_change change;
    struct error err;

    set_layout(&inventory->gpus.data[0], from);
    gpu_target_list_init(&targets);
    vec_add(&targets.items, target);
    if (gpu_change_plan(inventory, &targets, &change, &err))
        fail_msg("%s", err.text);
    gpu_target_list_done(&targets);
    return change;
}

/* The most instances of `from` that can stay when `to`'s profiles are placed anew. */
static int most_kept(const struct mig_board *board, const struct mig_layout *from,
                     const struct mig_layout *to)
{
    int best = 0;

    for (unsigned mask = 0; mask < 1U << from->count; mask++) {
        struct mig_layout kept = {0}, rest = *to, placed;
        bool possible = true;
        for (int i = 0; i < from->count && possible; i++) {
            int j = 0;
            if (!(mask >> i & 1))
                continue;
            while (j < rest.count && rest.instances[j].profile != from->instances[i].profile)
                j++;
            possible = j < rest.count;
            if (possible)
                mig_layout_remove(&rest, j);
            kept.instances[kept.count++] = from->instances[i];
        }
        for (int i = 0; i < rest.count; i++)
            rest.instances[i].start = MIG_START_ANY;
        if (possible && kept.count > best &&
            !mig_layout_place(board, &rest, &kept, &placed, NULL))
            best = kept.count;
    }
    return best;
}

static void check_cut(struct gpu_inventory *inventory, const struct mig_layout *from,
                      const struct gpu_layout *wanted, const struct gpu_change *change)
{
    const struct mig_board *board = &inventory->gpus.data[0].live->board;
    const struct gpu_effect *effect = &change->effects.data[0];

    for (size_t cut = 0; cut <= change->steps.count; cut++) {
        struct mig_layout state = *from, end, expected;
        for (size_t i = 0; i < cut; i++)
            assert_true(do_step(board, &state, &change->steps.data[i]));
        struct gpu_change again = plan(inventory, &state, wanted);
        for (int i = 0; i < effect->keep.count; i++)
            for (int j = 0; j < again.effects.data[0].remove.count; j++)
                if (again.effects.data[0].remove.instances[j].start ==
                    effect->keep.instances[i].start)
                    fail_msg("a kept instance goes when the plan is made again");
        end = state;
        for (size_t i = 0; i < again.steps.count; i++)
            assert_true(do_step(board, &end, &again.steps.data[i]));
        gpu_layout_instances(wanted, &expected);
        assert_int_equal(end.count, expected.count);
        gpu_change_done(&again);
    }
}

static void check_pair(struct gpu_inventory *inventory, const struct mig_layout *from,
                       const struct mig_layout *to, bool open)
{
    const struct mig_board *board = &inventory->gpus.data[0].live->board;
    struct gpu_layout wanted = {.count = to->count};
    struct mig_diff diff;
    struct mig_layout end = *from, result;

    for (int i = 0; i < to->count; i++) {
        wanted.slices[i] = gpu_slice_default(board, to->instances[i]);
        if (open)
            wanted.slices[i].gi.start = MIG_START_ANY;
    }
    struct gpu_change change = plan(inventory, from, &wanted);
    const struct gpu_effect *effect = &change.effects.data[0];
    mig_layout_diff(from, to, &diff);
    if (open)
        assert_int_equal(effect->keep.count, most_kept(board, from, to));
    else
        assert_true(mig_layout_equal(&effect->keep, &diff.keep));
    for (size_t i = 0; i < change.steps.count; i++)
        assert_true(do_step(board, &end, &change.steps.data[i]));
    gpu_layout_instances(&effect->result, &result);
    assert_true(mig_layout_equal(&end, &result));
    if (!open)
        assert_true(mig_layout_equal(&end, to));
    check_cut(inventory, from, &wanted, &change);
    gpu_change_done(&change);
}

static void check_board(const char *slug, const char *universe_name, uint64_t seed)
{
    const struct mig_board *board = mig_board_find(slug);
    struct gpu_inventory inventory = {0};
    struct gpu *gpu = vec_push(&inventory.gpus);
    struct rng rng = rng_seed(seed);
    uint32_t universe;

    print_message("# %s %s, seed %llu\n", slug, universe_name, (unsigned long long)seed);
    gpu->processes_unknown = STR_EMPTY;
    gpu->live = live_board_of_table(board);
    gpu->identity.mig_capable = true;
    gpu->mode = (struct gpu_mig_mode){true, true};
    layouts.count = 0;
    assert_int_equal(mig_universe_get(board, universe_name, &universe, NULL), 0);
    mig_layout_enumerate(board, universe, false, keep_layout, &layouts);
    for (int i = 0; i < PAIRS; i++) {
        const struct mig_layout *from = &layouts.items[rng_below(&rng, layouts.count)];
        const struct mig_layout *to = &layouts.items[rng_below(&rng, layouts.count)];
        check_pair(&inventory, from, to, i % 2 == 0);
    }
    gpu_inventory_done(&inventory);
}

static void test_pairs_of_layouts(void **state)
{
    (void)state;
    check_board("a100-40gb", "base+me", 1);
    check_board("a30-24gb", "full", 2);
    check_board("h100-80gb-sxm5", "full", 3);
    check_board("rtxpro6000-96gb", "full", 4);
}

/* Busy instances stay where a choice can be made. */
static void test_busy_instances_are_kept(void **state)
{
    struct gpu_inventory inventory = {0};
    struct gpu *gpu = vec_push(&inventory.gpus);
    const struct mig_board *board = mig_board_find("a100-40gb");
    struct mig_layout from;
    struct gpu_layout wanted;
    struct error err;

    (void)state;
    gpu->processes_unknown = STR_EMPTY;
    gpu->live = live_board_of_table(board);
    gpu->mode = (struct gpu_mig_mode){true, true};
    assert_int_equal(mig_layout_parse(board, "1g@0 1g@1 1g@2 1g@5", &from, &err), 0);
    assert_int_equal(gpu_layout_parse(gpu->live, "1g 2g", &wanted, &err), 0);
    struct gpu_process *process = vec_push(&gpu->processes.items);
    *process = (struct gpu_process){.pid = 1, .gi = 6, .ci = GPU_NO_INSTANCE}; /* start 5 */
    struct gpu_change change = plan(&inventory, &from, &wanted);
    assert_int_equal(change.effects.data[0].keep.count, 1);
    assert_int_equal(change.effects.data[0].keep.instances[0].start, 5);
    gpu_change_done(&change);
    gpu_inventory_done(&inventory);
}

/* Compute instances inside a kept GPU instance: what has a wanted width stays. */
static void test_compute_instances_of_a_kept_instance(void **state)
{
    struct gpu_inventory inventory = {0};
    struct gpu *gpu = vec_push(&inventory.gpus);
    struct mig_layout from;
    struct gpu_layout wanted;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err;

    (void)state;
    gpu->processes_unknown = STR_EMPTY;
    gpu->live = live_board_of_table(mig_board_find("a100-40gb"));
    gpu->mode = (struct gpu_mig_mode){true, true};
    assert_int_equal(mig_layout_parse(&gpu->live->board, "3g@4", &from, &err), 0);
    assert_int_equal(gpu_layout_parse(gpu->live, "3g:2c+1c", &wanted, &err), 0);
    struct gpu_change change = plan(&inventory, &from, &wanted);
    assert_int_equal(change.steps.count, 3);
    assert_int_equal(change.steps.data[0].kind, GPU_STEP_DESTROY_CI);
    assert_int_equal(change.steps.data[1].kind, GPU_STEP_CREATE_CI);
    assert_int_equal(change.steps.data[1].ci_slices, 2);
    assert_int_equal(change.steps.data[1].gi, 5);
    gpu_change_describe(&inventory, &change, &text);
    assert_has(text.bytes, "keeps 3g.20gb@4, changes 3 compute instances inside kept ones");
    gpu_change_done(&change);
    gpu_inventory_done(&inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_of_layouts),
        cmocka_unit_test(test_busy_instances_are_kept),
        cmocka_unit_test(test_compute_instances_of_a_kept_instance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
