/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: compute instances.
 */
#include <assert.h>
#include <stdio.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/identity.h"
#include "sim/product.h"

static nvmlComputeInstance_t ci_handle(const struct sim_call *call, unsigned id)
{
    struct sim_handle handle =
        sim_handle_of(call->machine, SIM_CI, call->gpu_index, call->gi_index, id);
    return sim_handle_make(&handle);
}

static int ci_by_id(const struct mig_profile *profile, unsigned id)
{
    for (int i = 0; i < sim_ci_profile_count(profile); i++)
        if (sim_ci_profile_at(profile, i)->profile_id == (int)id)
            return i;
    return -1;
}

/* Profile ids of compute instances equal the enums on every board seen. */
static nvmlReturn_t find_ci_enum(const struct sim_call *call, unsigned profile, unsigned engine,
                                 int *ret_index)
{
    if (profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT ||
        engine >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_index = ci_by_id(sim_gi_profile(call->gpu, call->gi), profile);
    return *ret_index >= 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t find_ci_id(const struct sim_call *call, unsigned id, int *ret_index)
{
    *ret_index = ci_by_id(sim_gi_profile(call->gpu, call->gi), id);
    return *ret_index >= 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlComputeInstanceProfileInfo_t ci_info_v1(const struct sim_call *call, int index)
{
    const struct mig_board *board = sim_gpu_board(call->gpu);
    const struct mig_profile *profile = sim_gi_profile(call->gpu, call->gi);
    const struct mig_ci_profile *ci = sim_ci_profile_at(profile, index);
    return (nvmlComputeInstanceProfileInfo_t){
        .id = (unsigned)ci->profile_id,
        .sliceCount = (unsigned)ci->compute_slices,
        .instanceCount = (unsigned)ci->max_in_gi,
        .multiprocessorCount = sim_ci_sm(board, profile, ci),
        .sharedCopyEngineCount = sim_profile_copy_engines(profile),
        .sharedDecoderCount = sim_profile_engines(profile, MIG_DECODER),
        .sharedEncoderCount = sim_profile_engines(profile, MIG_ENCODER),
        .sharedJpegCount = sim_profile_engines(profile, MIG_JPEG),
        .sharedOfaCount = sim_profile_engines(profile, MIG_OFA),
    };
}

static nvmlReturn_t ci_profile_info(const struct sim_call *call, unsigned profile,
                                    unsigned engine, nvmlComputeInstanceProfileInfo_t *info)
{
    int index;
    nvmlReturn_t status =
        info ? find_ci_enum(call, profile, engine, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *info = ci_info_v1(call, index);
    return status;
}

nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t gpuInstance,
                                             unsigned int profile, unsigned int engProfile,
                                             nvmlComputeInstanceProfileInfo_t *info)
{
    return NVML_CALL(GI, gpuInstance, ci_profile_info(&call, profile, engProfile, info));
}

static void fill_versioned(const nvmlComputeInstanceProfileInfo_t *from, unsigned version,
                           nvmlComputeInstanceProfileInfo_v2_t *to)
{
    *to = (nvmlComputeInstanceProfileInfo_v2_t){
        .version = version,
        .id = from->id,
        .sliceCount = from->sliceCount,
        .instanceCount = from->instanceCount,
        .multiprocessorCount = from->multiprocessorCount,
        .sharedCopyEngineCount = from->sharedCopyEngineCount,
        .sharedDecoderCount = from->sharedDecoderCount,
        .sharedEncoderCount = from->sharedEncoderCount,
        .sharedJpegCount = from->sharedJpegCount,
        .sharedOfaCount = from->sharedOfaCount,
    };
}

/* v3 is v2 and one word more. */
static nvmlReturn_t ci_profile_info_versioned(const struct sim_call *call, unsigned profile,
                                              unsigned engine,
                                              nvmlComputeInstanceProfileInfo_v2_t *info)
{
    int index;
    nvmlReturn_t status =
        info ? find_ci_enum(call, profile, engine, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    unsigned version = info->version;
    if (version != NVML_COMPUTE_INSTANCE_PROFILE_INFO_V2 &&
        version != NVML_COMPUTE_INSTANCE_PROFILE_INFO_V3)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlComputeInstanceProfileInfo_t v1 = ci_info_v1(call, index);
    char name[SIM_NAME_SIZE];
    sim_mig_profile_name(call->gpu, call->gi, index, name);
    fill_versioned(&v1, version, info);
    snprintf(info->name, sizeof info->name, "MIG %s", name);
    if (version == NVML_COMPUTE_INSTANCE_PROFILE_INFO_V3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)info)->capabilities = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t gpuInstance,
                                              unsigned int profile, unsigned int engProfile,
                                              nvmlComputeInstanceProfileInfo_v2_t *info)
{
    return NVML_CALL(GI, gpuInstance,
                     ci_profile_info_versioned(&call, profile, engProfile, info));
}

static nvmlReturn_t ci_remaining(const struct sim_call *call, unsigned id, unsigned *count)
{
    int index;
    nvmlReturn_t status = find_ci_id(call, id, &index);
    return status == NVML_SUCCESS ? NVML_SET(count, sim_ci_capacity(call->gpu, call->gi, index))
                                  : status;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t gpuInstance,
                                                                unsigned int profileId,
                                                                unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_PRIVILEGED, gpuInstance,
                           ci_remaining(&call, profileId, count));
}

/* Every span of the profile's width: no listing of a real driver is public. */
static nvmlReturn_t ci_placements(const struct sim_call *call, unsigned id,
                                  nvmlComputeInstancePlacement_t *placements, unsigned *count)
{
    int index;
    nvmlReturn_t status = count ? find_ci_id(call, id, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    const struct mig_profile *profile = sim_gi_profile(call->gpu, call->gi);
    unsigned width = (unsigned)sim_ci_profile_at(profile, index)->compute_slices;
    unsigned found = (unsigned)profile->compute_slices - width + 1;
    for (unsigned start = 0; placements && start < found; start++)
        placements[start] = (nvmlComputeInstancePlacement_t){start, width};
    *count = found;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t gpuInstance, unsigned int profileId,
    nvmlComputeInstancePlacement_t *placements, unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_PRIVILEGED, gpuInstance,
                           ci_placements(&call, profileId, placements, count));
}

static nvmlReturn_t create_ci(struct sim_call *call, unsigned profile_id,
                              const nvmlComputeInstancePlacement_t *placement,
                              nvmlComputeInstance_t *ret_handle)
{
    assert(call->gi && call->gi->used);
    int index, start = MIG_START_ANY;
    nvmlReturn_t status =
        ret_handle ? find_ci_id(call, profile_id, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    if (placement) {
        const struct mig_profile *profile = sim_gi_profile(call->gpu, call->gi);
        int width = sim_ci_profile_at(profile, index)->compute_slices;
        if (placement->start >= SIM_CI_IDS || placement->size != (unsigned)width)
            return NVML_ERROR_INVALID_ARGUMENT;
        start = (int)placement->start;
    }
    unsigned id;
    status = sim_ci_create(call->machine, call->gpu_index, call->gi_index, index, start, &id);
    if (status == NVML_SUCCESS)
        *ret_handle = ci_handle(call, id);
    return status;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gpuInstance,
                                                  unsigned int profileId,
                                                  nvmlComputeInstance_t *computeInstance)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_ADMIN, gpuInstance,
                           create_ci(&call, profileId, NULL, computeInstance));
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t gpuInstance, unsigned int profileId,
    const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *computeInstance)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_ADMIN, gpuInstance,
                           placement ? create_ci(&call, profileId, placement, computeInstance)
                                     : NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t computeInstance)
{
    return NVML_CALL_FLAGS(
        CALL_CI | CALL_ADMIN, computeInstance,
        sim_ci_destroy(call.machine, call.gpu_index, call.gi_index, call.ci_index));
}

/* The caller's array has room for the profile's instanceCount. */
static nvmlReturn_t list_cis(const struct sim_call *call, unsigned profile_id,
                             nvmlComputeInstance_t *handles, unsigned *count)
{
    int index;
    nvmlReturn_t status =
        handles && count ? find_ci_id(call, profile_id, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    *count = 0;
    for (unsigned id = 0; id < SIM_CI_IDS; id++)
        if (call->gi->cis[id].used && call->gi->cis[id].profile == index)
            handles[(*count)++] = ci_handle(call, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t gpuInstance,
                                                unsigned int profileId,
                                                nvmlComputeInstance_t *computeInstances,
                                                unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_PRIVILEGED, gpuInstance,
                           list_cis(&call, profileId, computeInstances, count));
}

static nvmlReturn_t ci_of_id(const struct sim_call *call, unsigned id,
                             nvmlComputeInstance_t *handle)
{
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (id >= SIM_CI_IDS || !call->gi->cis[id].used)
        return NVML_ERROR_NOT_FOUND;
    *handle = ci_handle(call, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gpuInstance,
                                                   unsigned int id,
                                                   nvmlComputeInstance_t *computeInstance)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_PRIVILEGED, gpuInstance,
                           ci_of_id(&call, id, computeInstance));
}

static nvmlReturn_t ci_info(const struct sim_call *call, nvmlComputeInstanceInfo_t *info)
{
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    assert(call->ci && call->ci->used);
    const struct mig_ci_profile *profile = sim_ci_profile(call->gpu, call->gi, call->ci);
    struct sim_handle parent =
        sim_handle_of(call->machine, SIM_GI, call->gpu_index, call->gi_index, 0);
    *info = (nvmlComputeInstanceInfo_t){
        .device =
            sim_mig_handle(call->machine, call->gpu_index, call->gi_index, call->ci_index),
        .gpuInstance = sim_handle_make(&parent),
        .id = call->ci_index,
        .profileId = (unsigned)profile->profile_id,
        .placement = {.start = call->ci->start, .size = (unsigned)profile->compute_slices}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t computeInstance,
                                           nvmlComputeInstanceInfo_t *info)
{
    return NVML_CALL(CI, computeInstance, ci_info(&call, info));
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t computeInstance,
                                        nvmlComputeInstanceInfo_t *info)
{
    return NVML_CALL(CI, computeInstance, ci_info(&call, info));
}
