/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU and compute instances: random sequences against the rules of mig/, the driver's own
 * choice of starts, order of destruction, ids and UUIDs.
 */
#include "client.h"

#include "base/rng.h"
#include "mig/layout.h"

enum { STEPS_A_BOARD = 150 };

static struct nvml nvml;

struct live {
    nvmlGpuInstance_t handle;
    struct mig_instance instance;
    unsigned id;
};

/* One GPU as the oracle sees it. */
struct model {
    const struct mig_board *board;
    nvmlDevice_t device;
    unsigned ids[MIG_PROFILES_MAX]; /* NVML's id of each profile */
    int count;
    struct live live[MIG_INSTANCES_MAX];
};

static struct mig_layout layout_of(const struct model *model)
{
    struct mig_layout layout = {.count = model->count};
    for (int i = 0; i < model->count; i++)
        layout.instances[i] = model->live[i].instance;
    mig_layout_sort(&layout);
    return layout;
}

/* The most instances of a profile that can join, by trying everything. */
static unsigned most_more(const struct mig_board *board, struct mig_layout layout, int profile,
                          int from)
{
    unsigned best = 0;
    for (int start = from; start < board->memory_units; start++) {
        struct mig_instance instance = {(int8_t)profile, (int8_t)start};
        if (!(board->profiles[profile].starts >> start & 1) ||
            !mig_layout_can_add(board, &layout, instance))
            continue;
        struct mig_layout with = layout;
        mig_layout_add(board, &with, instance);
        unsigned more = 1 + most_more(board, with, profile, start + 1);
        best = more > best ? more : best;
    }
    return best;
}

static void check_listing(const struct model *model)
{
    int listed = 0;
    for (int p = 0; p < model->board->profile_count; p++) {
        nvmlGpuInstance_t handles[16];
        unsigned count, left;
        OK(nvml.nvmlDeviceGetGpuInstances(model->device, model->ids[p], handles, &count));
        for (unsigned i = 0; i < count; i++) {
            nvmlGpuInstanceInfo_t info;
            OK(nvml.nvmlGpuInstanceGetInfo(handles[i], &info));
            assert_int_equal(info.profileId, model->ids[p]);
            assert_ptr_equal(info.device, model->device);
            bool known = false;
            for (int l = 0; l < model->count; l++)
                known |= model->live[l].id == info.id && model->live[l].handle == handles[i] &&
                         model->live[l].instance.start == (int)info.placement.start &&
                         model->live[l].instance.profile == p;
            assert_true(known);
        }
        listed += (int)count;
        OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(model->device, model->ids[p], &left));
        assert_int_equal(left, most_more(model->board, layout_of(model), p, 0));
    }
    assert_int_equal(listed, model->count);
}

static bool any_start_free(const struct model *model, int profile)
{
    struct mig_layout layout = layout_of(model);
    return most_more(model->board, layout, profile, 0) > 0;
}

static void record(struct model *model, nvmlGpuInstance_t handle, int profile)
{
    nvmlGpuInstanceInfo_t info;
    OK(nvml.nvmlGpuInstanceGetInfo(handle, &info));
    for (int i = 0; i < model->count; i++)
        assert_int_not_equal(model->live[i].id, info.id);
    assert_true(info.id < NVML_GPU_INSTANCE_ID_LIMIT);
    assert_int_equal(info.placement.size, model->board->profiles[profile].placement_size);
    model->live[model->count++] =
        (struct live){handle, {(int8_t)profile, (int8_t)info.placement.start}, info.id};
    struct mig_layout layout = layout_of(model);
    assert_int_equal(mig_layout_check(model->board, &layout, NULL), 0);
}

static void create_at(struct model *model, int profile, int start)
{
    struct mig_layout layout = layout_of(model);
    bool listed = model->board->profiles[profile].starts >> start & 1;
    bool legal =
        listed && mig_layout_can_add(model->board, &layout,
                                     (struct mig_instance){(int8_t)profile, (int8_t)start});
    nvmlGpuInstancePlacement_t placement = {
        (unsigned)start, (unsigned)model->board->profiles[profile].placement_size};
    nvmlGpuInstance_t handle;
    nvmlReturn_t status = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(
        model->device, model->ids[profile], &placement, &handle);
    assert_int_equal(status, legal    ? NVML_SUCCESS
                             : listed ? NVML_ERROR_INSUFFICIENT_RESOURCES
                                      : NVML_ERROR_INVALID_ARGUMENT);
    if (legal)
        record(model, handle, profile);
}

static void create_any(struct model *model, int profile)
{
    bool possible = any_start_free(model, profile);
    nvmlGpuInstance_t handle;
    nvmlReturn_t status =
        nvml.nvmlDeviceCreateGpuInstance(model->device, model->ids[profile], &handle);
    assert_int_equal(status, possible ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_RESOURCES);
    if (possible)
        record(model, handle, profile);
}

static void destroy_one(struct model *model, int index)
{
    nvmlGpuInstance_t handle = model->live[index].handle;
    OK(nvml.nvmlGpuInstanceDestroy(handle));
    model->live[index] = model->live[--model->count];
    nvmlGpuInstanceInfo_t info;
    FAILS(INVALID_ARGUMENT, nvml.nvmlGpuInstanceGetInfo(handle, &info));
    FAILS(INVALID_ARGUMENT, nvml.nvmlGpuInstanceDestroy(handle));
}

static void random_walk(const struct mig_board *board, struct rng *rng)
{
    struct model model = {.board = board, .device = device_at(&nvml, 0)};
    for (int p = 0; p < board->profile_count; p++) {
        nvmlGpuInstanceProfileInfo_t info;
        OK(nvml.nvmlDeviceGetGpuInstanceProfileInfo(
            model.device, (unsigned)board->profiles[p].nvml_enum, &info));
        model.ids[p] = info.id;
    }
    for (int step = 0; step < STEPS_A_BOARD; step++) {
        int profile = (int)rng_below(rng, (uint64_t)board->profile_count);
        switch (rng_below(rng, 3)) {
        case 0:
            create_at(&model, profile, (int)rng_below(rng, (uint64_t)board->memory_units));
            break;
        case 1:
            create_any(&model, profile);
            break;
        default:
            if (model.count > 0)
                destroy_one(&model, (int)rng_below(rng, (uint64_t)model.count));
        }
        check_listing(&model);
    }
}

static void test_random_sequences(void **state)
{
    (void)state;
    const char *text = getenv("TRANCHE_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20230101;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (size_t b = 0; b < mig_board_count(); b++) {
        const struct mig_board *board = mig_board_at(b);
        if (!board->has_mig)
            continue;
        struct rng rng = rng_seed_stream(seed, b);
        char fleet[64];
        snprintf(fleet, sizeof fleet, "%s:1", board->slug);
        start_with_mig(&nvml, fleet);
        random_walk(board, &rng);
        stop(&nvml);
    }
}

static nvmlGpuInstance_t create(nvmlDevice_t device, unsigned id, unsigned *ret_start)
{
    nvmlGpuInstance_t gi;
    nvmlGpuInstanceInfo_t info;
    OK(nvml.nvmlDeviceCreateGpuInstance(device, id, &gi));
    OK(nvml.nvmlGpuInstanceGetInfo(gi, &info));
    *ret_start = info.placement.start;
    return gi;
}

/* Orders and starts of public transcripts (mig-hardware notes, section 5). */
static void test_driver_choice(void **state)
{
    (void)state;
    static const struct {
        const char *fleet;
        unsigned count, ids[8], starts[8];
    } cases[] = {
        {"a100-40gb:1", 7, {19, 19, 19, 19, 19, 19, 19}, {6, 4, 5, 0, 1, 2, 3}},
        {"h100-80gb-sxm5:1", 7, {19, 19, 19, 19, 19, 19, 19}, {6, 4, 5, 0, 1, 2, 3}},
        {"a100-40gb:1", 2, {9, 9}, {4, 0}},
        {"a100-80gb:1", 2, {14, 19}, {4, 6}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        start_with_mig(&nvml, cases[c].fleet);
        for (unsigned i = 0; i < cases[c].count; i++) {
            unsigned start;
            create(device_at(&nvml, 0), cases[c].ids[i], &start);
            assert_int_equal(start, cases[c].starts[i]);
        }
        stop(&nvml);
    }
}

/* Ids of the same placements differ between the two kinds of board (NVIDIA/DCGM#138). */
static void test_ids_of_both_kinds_of_board(void **state)
{
    (void)state;
    static const struct {
        unsigned profile, start, size;
    } placed[] = {{19, 2, 1}, {19, 3, 1}, {14, 0, 2}, {9, 4, 4}};
    static const unsigned ids[2][4] = {{9, 10, 3, 2}, {13, 14, 5, 1}};
    start_with_mig(&nvml, "a100-40gb:2");
    for (unsigned gpu = 0; gpu < 2; gpu++)
        for (int i = 0; i < 4; i++) {
            nvmlGpuInstancePlacement_t placement = {placed[i].start, placed[i].size};
            nvmlGpuInstance_t gi;
            nvmlGpuInstanceInfo_t info;
            OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                device_at(&nvml, gpu), placed[i].profile, &placement, &gi));
            OK(nvml.nvmlGpuInstanceGetInfo(gi, &info));
            assert_int_equal(info.id, ids[gpu][i]);
        }
    stop(&nvml);
}

static nvmlComputeInstance_t add_ci(nvmlGpuInstance_t gi, unsigned profile)
{
    nvmlComputeInstance_t ci;
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, profile, &ci));
    return ci;
}

static void uuid_of(nvmlComputeInstance_t ci, char uuid[96])
{
    nvmlComputeInstanceInfo_t info;
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    OK(nvml.nvmlDeviceGetUUID(info.device, uuid, 96));
    assert_memory_equal(uuid, "MIG-", 4);
}

static void test_destroy_order_and_stale_handles(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0), mig, again;
    unsigned start, count;
    nvmlGpuInstance_t gi = create(device, 9, &start);
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mig));
    nvmlComputeInstance_t narrow = add_ci(gi, 0), wide = add_ci(gi, 1), none;
    FAILS(INSUFFICIENT_RESOURCES, nvml.nvmlGpuInstanceCreateComputeInstance(gi, 0, &none));
    FAILS(IN_USE, nvml.nvmlGpuInstanceDestroy(gi));
    OK(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 1, &mig));
    char name[96], uuid[96];
    OK(nvml.nvmlDeviceGetName(mig, name, sizeof name));
    assert_string_equal(name, "NVIDIA A100-SXM4-40GB MIG 2c.3g.20gb");
    OK(nvml.nvmlDeviceGetUUID(mig, uuid, sizeof uuid));
    OK(nvml.nvmlDeviceGetHandleByUUID(uuid, &again));
    assert_ptr_equal(mig, again);
    OK(nvml.nvmlComputeInstanceDestroy(wide));
    FAILS(INVALID_ARGUMENT, nvml.nvmlComputeInstanceDestroy(wide));
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetName(mig, name, sizeof name));
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetHandleByUUID(uuid, &again));
    OK(nvml.nvmlComputeInstanceDestroy(narrow));
    OK(nvml.nvmlGpuInstanceDestroy(gi));
    OK(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(device, 9, &count));
    assert_int_equal(count, 2);
    stop(&nvml);
}

/* The handle of a dead instance never speaks for a new one of the same id. */
static void test_id_reuse(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpuInstance_t last = NULL;
    unsigned first_id = 99;
    for (int i = 0; i < 300; i++) {
        unsigned start;
        nvmlGpuInstanceInfo_t info;
        nvmlGpuInstance_t gi = create(device, 0, &start);
        OK(nvml.nvmlGpuInstanceGetInfo(gi, &info));
        first_id = first_id == 99 ? info.id : first_id;
        assert_int_equal(info.id, first_id);
        assert_true(last != gi);
        if (last)
            FAILS(INVALID_ARGUMENT, nvml.nvmlGpuInstanceGetInfo(last, &info));
        OK(nvml.nvmlGpuInstanceDestroy(gi));
        last = gi;
    }
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetGpuInstanceById(device, first_id, &last));
    FAILS(NOT_FOUND, nvml.nvmlDeviceGetGpuInstanceById(device, 15, &last));
    stop(&nvml);
}

/* U5 and section 7 of the hardware notes: a UUID names a place and an order, not a profile. */
static void test_U5_uuid_comes_back_with_another_profile(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    char first[96], second[96];
    nvmlGpuInstancePlacement_t lower = {0, 4};
    nvmlGpuInstance_t gi;
    OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, 9, &lower, &gi));
    nvmlComputeInstance_t ci = add_ci(gi, 2);
    uuid_of(ci, first);
    OK(nvml.nvmlComputeInstanceDestroy(ci));
    OK(nvml.nvmlGpuInstanceDestroy(gi));
    OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, 5, &lower, &gi));
    uuid_of(add_ci(gi, 3), second);
    assert_string_equal(first, second);
    stop(&nvml);
}

static void two_and_one(bool two_first, char two[96], char one[96])
{
    start_with_mig(&nvml, "a100-40gb:1");
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlGpuInstancePlacement_t at_4 = {4, 2}, at_6 = {6, 1};
    nvmlGpuInstance_t gi_two, gi_one;
    if (two_first)
        OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, 14, &at_4, &gi_two));
    OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, 19, &at_6, &gi_one));
    if (!two_first)
        OK(nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, 14, &at_4, &gi_two));
    uuid_of(add_ci(gi_two, 1), two);
    uuid_of(add_ci(gi_one, 0), one);
    stop(&nvml);
}

static void test_uuids_depend_on_the_order(void **state)
{
    (void)state;
    char a[2][96], b[2][96], again[2][96];
    two_and_one(true, a[0], a[1]);
    two_and_one(false, b[0], b[1]);
    two_and_one(true, again[0], again[1]);
    assert_string_not_equal(a[0], b[0]);
    assert_string_not_equal(a[1], b[1]);
    assert_string_equal(a[0], again[0]);
    assert_string_equal(a[1], again[1]);
}

static void test_compute_instance_placements(void **state)
{
    (void)state;
    start_with_mig(&nvml, "a100-40gb:1");
    unsigned start, count = 0, left;
    nvmlGpuInstance_t gi = create(device_at(&nvml, 0), 0, &start);
    nvmlComputeInstancePlacement_t placements[8];
    OK(nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(gi, 1, NULL, &count));
    assert_int_equal(count, 6);
    OK(nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(gi, 1, placements, &count));
    nvmlComputeInstance_t ci;
    OK(nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, 1, &placements[3], &ci));
    nvmlComputeInstanceInfo_t info;
    OK(nvml.nvmlComputeInstanceGetInfo_v2(ci, &info));
    assert_int_equal(info.placement.start, 3);
    assert_int_equal(info.placement.size, 2);
    assert_ptr_equal(info.gpuInstance, gi);
    FAILS(INSUFFICIENT_RESOURCES,
          nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, 1, &placements[2], &ci));
    OK(nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, 2, &left));
    assert_int_equal(left, 1); /* slices 0-2 are free, 5 and 6 are too few */
    nvmlDeviceAttributes_t attributes;
    OK(nvml.nvmlDeviceGetAttributes_v2(info.device, &attributes));
    assert_int_equal(attributes.gpuInstanceSliceCount, 7);
    assert_int_equal(attributes.computeInstanceSliceCount, 2);
    assert_int_equal(attributes.multiprocessorCount, 28);
    stop(&nvml);
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sequences),
        cmocka_unit_test(test_driver_choice),
        cmocka_unit_test(test_ids_of_both_kinds_of_board),
        cmocka_unit_test(test_destroy_order_and_stale_handles),
        cmocka_unit_test(test_id_reuse),
        cmocka_unit_test(test_U5_uuid_comes_back_with_another_profile),
        cmocka_unit_test(test_uuids_depend_on_the_order),
        cmocka_unit_test(test_compute_instance_placements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
