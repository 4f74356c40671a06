/* SPDX-License-Identifier: Apache-2.0
 *
 * Every board, seen through NVML's own calls, is the board of the table.
 */
#include "client.h"

#include <math.h>

#include "mig/board.h"

static struct nvml nvml;

static void check_placements(nvmlDevice_t device, const struct mig_profile *profile,
                             unsigned id)
{
    nvmlGpuInstancePlacement_t placements[MIG_UNITS_MAX];
    unsigned count = 0, listed = 0;
    OK(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, NULL, &count));
    assert_int_equal(count, __builtin_popcount(profile->starts));
    OK(nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, &listed));
    assert_int_equal(listed, count);
    uint32_t starts = 0;
    for (unsigned i = 0; i < count; i++) {
        starts |= 1U << placements[i].start;
        assert_int_equal(placements[i].size, profile->placement_size);
    }
    assert_int_equal(starts, profile->starts);
    FAILS(INVALID_ARGUMENT,
          nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, NULL, NULL));
}

/* A known number of the table is NVML's; an unknown one is at least something. */
static void check_number(unsigned long long seen, int table)
{
    if (table >= 0)
        assert_int_equal(seen, table);
}

static void check_v1(const nvmlGpuInstanceProfileInfo_t *info,
                     const struct mig_profile *profile)
{
    check_number(info->id, profile->profile_id);
    check_number(info->sliceCount, profile->compute_slices);
    check_number(info->instanceCount, profile->max_instances);
    check_number(info->multiprocessorCount, profile->sm);
    check_number(info->copyEngineCount, profile->copy_engines);
    check_number(info->decoderCount, profile->engines[MIG_DECODER]);
    check_number(info->encoderCount, profile->engines[MIG_ENCODER]);
    check_number(info->jpegCount, profile->engines[MIG_JPEG]);
    check_number(info->ofaCount, profile->engines[MIG_OFA]);
    check_number(info->memorySizeMB, profile->memory_mib);
    assert_true(info->memorySizeMB > 0 && info->multiprocessorCount > 0);
}

static void check_versions(nvmlDevice_t device, const nvmlGpuInstanceProfileInfo_t *v1,
                           const struct mig_profile *profile)
{
    char name[64];
    snprintf(name, sizeof name, "MIG %s", profile->name);
    unsigned nvml_enum = (unsigned)profile->nvml_enum;
    nvmlGpuInstanceProfileInfo_v2_t v2 = {.version = NVML_GPU_INSTANCE_PROFILE_INFO_V2};
    OK(nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, nvml_enum, &v2));
    assert_string_equal(v2.name, name);
    assert_int_equal(v2.id, v1->id);
    assert_int_equal(v2.memorySizeMB, v1->memorySizeMB);
    nvmlGpuInstanceProfileInfo_v3_t v3 = {.version = NVML_GPU_INSTANCE_PROFILE_INFO_V3};
    OK(nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, nvml_enum, (void *)&v3));
    assert_string_equal(v3.name, name);
    assert_int_equal(v3.sliceCount, v1->sliceCount);
    assert_int_equal(v3.ofaCount, v1->ofaCount);
    assert_int_equal((v3.capabilities & NVML_GPU_INSTANCE_PROFILE_CAPS_GFX) != 0,
                     profile->group == MIG_GROUP_GFX);
    v2 = (nvmlGpuInstanceProfileInfo_v2_t){.version = NVML_GPU_INSTANCE_PROFILE_INFO_V2};
    OK(nvml.nvmlDeviceGetGpuInstanceProfileInfoByIdV(device, v1->id, &v2));
    assert_string_equal(v2.name, name);
    v2.version = NVML_VERSION_WORD(nvmlGpuInstanceProfileInfo_v2_t, 9);
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, nvml_enum, &v2));
}

/* How NVIDIA/mig-parted v0.10 computes the gigabytes of a profile's name. */
static long name_gb(unsigned long long total_bytes, unsigned long long instance_mib)
{
    double share = ceil((double)instance_mib * 1048576 / (double)total_bytes * 8) / 8;
    return lround(share * (double)((total_bytes + (1ULL << 30) - 1) >> 30));
}

static void check_name_arithmetic(const nvmlGpuInstanceProfileInfo_t *info,
                                  const struct mig_profile *profile, unsigned long long total)
{
    long gb = strtol(strchr(profile->name, '.') + 1, NULL, 10);
    if (name_gb(total, info->memorySizeMB) != gb)
        fail_msg("%s: %llu MiB of %llu bytes is called %ld GB", profile->name,
                 info->memorySizeMB, total, name_gb(total, info->memorySizeMB));
}

static void check_board(const struct mig_board *board)
{
    nvmlDevice_t device = device_at(&nvml, 0);
    nvmlMemory_t memory;
    OK(nvml.nvmlDeviceGetMemoryInfo(device, &memory));
    assert_true(memory.total == memory.free + memory.used);
    int seen = 0;
    for (unsigned e = 0; e < NVML_GPU_INSTANCE_PROFILE_COUNT; e++) {
        nvmlGpuInstanceProfileInfo_t info;
        nvmlReturn_t status = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, e, &info);
        if (status == NVML_ERROR_NOT_SUPPORTED)
            continue;
        OK(status);
        const struct mig_profile *profile = NULL;
        for (int i = 0; i < board->profile_count; i++)
            if (board->profiles[i].nvml_enum == (int)e)
                profile = &board->profiles[i];
        assert_non_null(profile);
        check_v1(&info, profile);
        check_versions(device, &info, profile);
        check_placements(device, profile, info.id);
        check_name_arithmetic(&info, profile, memory.total);
        seen++;
    }
    assert_int_equal(seen, board->profile_count);
    nvmlGpuInstanceProfileInfo_t info;
    FAILS(INVALID_ARGUMENT, nvml.nvmlDeviceGetGpuInstanceProfileInfo(
                                device, NVML_GPU_INSTANCE_PROFILE_COUNT, &info));
}

static void check_without_mig(void)
{
    nvmlDevice_t device = device_at(&nvml, 0);
    unsigned current, pending, count = 9;
    nvmlGpuInstanceProfileInfo_t info;
    nvmlReturn_t activation;
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetMigMode(device, &current, &pending));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceSetMigMode(device, 1, &activation));
    FAILS(NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, 0, &info));
    OK(nvml.nvmlDeviceGetMaxMigDeviceCount(device, &count));
    assert_int_equal(count, 0);
}

static void check_identity(const struct mig_board *board)
{
    nvmlDevice_t device = device_at(&nvml, 0), again;
    char name[96], uuid[96];
    nvmlPciInfo_t pci;
    int major, minor;
    OK(nvml.nvmlDeviceGetName(device, name, sizeof name));
    assert_true(strlen(name) > 3);
    OK(nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid));
    OK(nvml.nvmlDeviceGetHandleByUUID(uuid, &again));
    assert_ptr_equal(device, again);
    OK(nvml.nvmlDeviceGetPciInfo_v3(device, &pci));
    if (board->pci_device_id_count > 0)
        assert_ptr_equal(mig_board_by_pci(pci.pciDeviceId), board);
    OK(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &again));
    assert_ptr_equal(device, again);
    OK(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.busIdLegacy, &again));
    assert_ptr_equal(device, again);
    OK(nvml.nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
    assert_int_equal(major, board->cc_major);
    assert_int_equal(minor, board->cc_minor);
}

static void test_every_board(void **state)
{
    (void)state;
    for (size_t i = 0; i < mig_board_count(); i++) {
        const struct mig_board *board = mig_board_at(i);
        new_machine(board->slug);
        char fleet[64];
        snprintf(fleet, sizeof fleet, "%s:1", board->slug);
        setenv("TRANCHE_SIM_FLEET", fleet, 1);
        OK(nvml.nvmlInit_v2());
        check_identity(board);
        if (board->has_mig)
            check_board(board);
        else
            check_without_mig();
        stop(&nvml);
    }
}

/* All compute instances that a profile has, through NVML. */
static void check_compute_profiles(const struct mig_board *board, nvmlGpuInstance_t gi,
                                   const struct mig_profile *profile)
{
    int seen = 0;
    for (unsigned e = 0; e < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; e++) {
        nvmlComputeInstanceProfileInfo_t info;
        nvmlReturn_t status =
            nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, e, 0, &info);
        if (status == NVML_ERROR_NOT_SUPPORTED)
            continue;
        OK(status);
        const struct mig_ci_profile *ci = NULL;
        for (int i = 0; i < profile->ci_profile_count; i++)
            if (profile->ci_profiles[i].profile_id == (int)info.id)
                ci = &profile->ci_profiles[i];
        if (profile->group == MIG_GROUP_REV2 && e == NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE)
            ci = &profile->ci_profiles[0]; /* two of one width: see below */
        assert_non_null(ci);
        assert_int_equal(info.sliceCount, ci->compute_slices);
        assert_int_equal(info.instanceCount, ci->max_in_gi);
        unsigned left = 0, made = 0;
        OK(nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, info.id, &left));
        assert_int_equal(left, ci->max_in_gi);
        nvmlComputeInstance_t cis[8];
        while (nvml.nvmlGpuInstanceCreateComputeInstance(gi, info.id, &cis[made]) == 0)
            made++;
        assert_int_equal(made, ci->max_in_gi);
        while (made > 0)
            OK(nvml.nvmlComputeInstanceDestroy(cis[--made]));
        seen++;
    }
    assert_int_equal(seen, profile->ci_profile_count + (profile->group == MIG_GROUP_REV2));
    assert_true(board->has_mig);
}

static void test_every_compute_profile(void **state)
{
    (void)state;
    for (size_t b = 0; b < mig_board_count(); b++) {
        const struct mig_board *board = mig_board_at(b);
        if (!board->has_mig)
            continue;
        char fleet[64];
        snprintf(fleet, sizeof fleet, "%s:1", board->slug);
        start_with_mig(&nvml, fleet);
        nvmlDevice_t device = device_at(&nvml, 0);
        for (int p = 0; p < board->profile_count; p++) {
            nvmlGpuInstanceProfileInfo_t info;
            nvmlGpuInstance_t gi;
            OK(nvml.nvmlDeviceGetGpuInstanceProfileInfo(
                device, (unsigned)board->profiles[p].nvml_enum, &info));
            OK(nvml.nvmlDeviceCreateGpuInstance(device, info.id, &gi));
            check_compute_profiles(board, gi, &board->profiles[p]);
            OK(nvml.nvmlGpuInstanceDestroy(gi));
        }
        stop(&nvml);
    }
}

/* G6: of two compute profiles of one width the first has fewer multiprocessors. */
static void test_G6_two_compute_profiles_of_one_width(void **state)
{
    (void)state;
    start_with_mig(&nvml, "h100-80gb-sxm5:1");
    nvmlGpuInstance_t gi;
    nvmlComputeInstanceProfileInfo_t plain, rev1;
    OK(nvml.nvmlDeviceCreateGpuInstance(device_at(&nvml, 0), 15, &gi));
    OK(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 0, 0, &plain));
    OK(nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 7, 0, &rev1));
    assert_int_equal(plain.sliceCount, rev1.sliceCount);
    assert_int_equal(plain.multiprocessorCount, 16);
    assert_int_equal(rev1.multiprocessorCount, 26);
    nvmlComputeInstance_t ci, second;
    OK(nvml.nvmlGpuInstanceCreateComputeInstance(gi, plain.id, &ci));
    FAILS(INSUFFICIENT_RESOURCES,
          nvml.nvmlGpuInstanceCreateComputeInstance(gi, rev1.id, &second));
    stop(&nvml);
}

int main(void)
{
    nvml_load(&nvml);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_board),
        cmocka_unit_test(test_every_compute_profile),
        cmocka_unit_test(test_G6_two_compute_profiles_of_one_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
