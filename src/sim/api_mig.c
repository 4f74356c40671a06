/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: the MIG mode, GPU instances and MIG devices.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/identity.h"
#include "sim/product.h"

/* ---- the mode ---- */

static nvmlReturn_t set_mode(struct sim_call *call, unsigned mode, nvmlReturn_t *activation)
{
    if (!activation || mode > NVML_DEVICE_MIG_ENABLE)
        return NVML_ERROR_INVALID_ARGUMENT;
    return sim_set_mig_mode(call->machine, call->gpu_index, mode == NVML_DEVICE_MIG_ENABLE,
                            sim_call_held_by_others(), activation);
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                  nvmlReturn_t *activationStatus)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_ADMIN | CALL_MIG_BOARD, device,
                           set_mode(&call, mode, activationStatus));
}

static nvmlReturn_t get_mode(const struct sim_gpu *gpu, unsigned *current, unsigned *pending)
{
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = gpu->mig_current;
    *pending = gpu->mig_pending;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode,
                                  unsigned int *pendingMode)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD, device,
                           get_mode(call.gpu, currentMode, pendingMode));
}

/* ---- profiles ---- */

static nvmlGpuInstanceProfileInfo_t info_v1(const struct mig_board *board, int index)
{
    const struct mig_profile *profile = &board->profiles[index];
    return (nvmlGpuInstanceProfileInfo_t){
        .id = sim_profile_id(profile),
        .isP2pSupported = 0,
        .sliceCount = (unsigned)profile->compute_slices,
        .instanceCount = (unsigned)profile->max_instances,
        .multiprocessorCount = sim_profile_sm(board, profile),
        .copyEngineCount = sim_profile_copy_engines(profile),
        .decoderCount = sim_profile_engines(profile, MIG_DECODER),
        .encoderCount = sim_profile_engines(profile, MIG_ENCODER),
        .jpegCount = sim_profile_engines(profile, MIG_JPEG),
        .ofaCount = sim_profile_engines(profile, MIG_OFA),
        .memorySizeMB = sim_profile_memory_mib(board, profile),
    };
}

static void fill_v2(const nvmlGpuInstanceProfileInfo_t *from, const char *name,
                    nvmlGpuInstanceProfileInfo_v2_t *to)
{
    *to = (nvmlGpuInstanceProfileInfo_v2_t){
        .version = NVML_GPU_INSTANCE_PROFILE_INFO_V2,
        .id = from->id,
        .isP2pSupported = from->isP2pSupported,
        .sliceCount = from->sliceCount,
        .instanceCount = from->instanceCount,
        .multiprocessorCount = from->multiprocessorCount,
        .copyEngineCount = from->copyEngineCount,
        .decoderCount = from->decoderCount,
        .encoderCount = from->encoderCount,
        .jpegCount = from->jpegCount,
        .ofaCount = from->ofaCount,
        .memorySizeMB = from->memorySizeMB,
    };
    snprintf(to->name, sizeof to->name, "MIG %s", name);
}

static void fill_v3(const nvmlGpuInstanceProfileInfo_t *from, const struct mig_profile *profile,
                    nvmlGpuInstanceProfileInfo_v3_t *to)
{
    *to = (nvmlGpuInstanceProfileInfo_v3_t){
        .version = NVML_GPU_INSTANCE_PROFILE_INFO_V3,
        .id = from->id,
        .sliceCount = from->sliceCount,
        .instanceCount = from->instanceCount,
        .multiprocessorCount = from->multiprocessorCount,
        .copyEngineCount = from->copyEngineCount,
        .decoderCount = from->decoderCount,
        .encoderCount = from->encoderCount,
        .jpegCount = from->jpegCount,
        .ofaCount = from->ofaCount,
        .memorySizeMB = from->memorySizeMB,
        .capabilities =
            profile->group == MIG_GROUP_GFX ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0U,
    };
    snprintf(to->name, sizeof to->name, "MIG %s", profile->name);
}

/* Enums past the last one are invalid, ones that the board lacks are not supported. */
static nvmlReturn_t find_enum(const struct sim_gpu *gpu, unsigned nvml_enum, int *ret_profile)
{
    if (nvml_enum >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_profile = sim_profile_by_enum(sim_gpu_board(gpu), nvml_enum);
    return *ret_profile >= 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t find_id(const struct sim_gpu *gpu, unsigned id, int *ret_profile)
{
    *ret_profile = sim_profile_by_id(sim_gpu_board(gpu), id);
    return *ret_profile >= 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t profile_info(const struct sim_gpu *gpu, unsigned nvml_enum,
                                 nvmlGpuInstanceProfileInfo_t *info)
{
    int profile;
    nvmlReturn_t status =
        info ? find_enum(gpu, nvml_enum, &profile) : NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *info = info_v1(sim_gpu_board(gpu), profile);
    return status;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD, device,
                           profile_info(call.gpu, profile, info));
}

/* The version word says whether the caller's struct is a v2 or a v3. */
static nvmlReturn_t fill_versioned(const struct sim_gpu *gpu, int index,
                                   nvmlGpuInstanceProfileInfo_v2_t *info)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    const struct mig_profile *profile = &board->profiles[index];
    nvmlGpuInstanceProfileInfo_t v1 = info_v1(board, index);
    if (info->version == NVML_GPU_INSTANCE_PROFILE_INFO_V2)
        fill_v2(&v1, profile->name, info);
    else if (info->version == NVML_GPU_INSTANCE_PROFILE_INFO_V3)
        fill_v3(&v1, profile, (nvmlGpuInstanceProfileInfo_v3_t *)info);
    else
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

typedef nvmlReturn_t find_profile(const struct sim_gpu *gpu, unsigned key, int *ret_profile);

static nvmlReturn_t profile_info_versioned(const struct sim_gpu *gpu, find_profile *find,
                                           unsigned key, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    int profile;
    nvmlReturn_t status = info ? find(gpu, key, &profile) : NVML_ERROR_INVALID_ARGUMENT;
    return status == NVML_SUCCESS ? fill_versioned(gpu, profile, info) : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD, device,
                           profile_info_versioned(call.gpu, find_enum, profile, info));
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device,
                                                      unsigned int profileId,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD, device,
                           profile_info_versioned(call.gpu, find_id, profileId, info));
}

/* With placements NULL the count alone; else the array must be large enough: *count is not
 * read. Occupied placements are listed too. */
static nvmlReturn_t possible_placements(const struct sim_gpu *gpu, unsigned id,
                                        nvmlGpuInstancePlacement_t *placements, unsigned *count)
{
    int index;
    nvmlReturn_t status = count ? find_id(gpu, id, &index) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    const struct mig_profile *profile = &sim_gpu_board(gpu)->profiles[index];
    unsigned found = 0;
    for (unsigned start = 0; start < MIG_UNITS_MAX; start++) {
        if (!(profile->starts >> start & 1))
            continue;
        if (placements)
            placements[found] =
                (nvmlGpuInstancePlacement_t){start, (unsigned)profile->placement_size};
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int profileId,
                                              nvmlGpuInstancePlacement_t *placements,
                                              unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_PRIVILEGED, device,
                           possible_placements(call.gpu, profileId, placements, count));
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device,
                                                        unsigned int profileId,
                                                        nvmlGpuInstancePlacement_t *placements,
                                                        unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_PRIVILEGED, device,
                           possible_placements(call.gpu, profileId, placements, count));
}

static nvmlReturn_t gi_remaining(const struct sim_gpu *gpu, unsigned id, unsigned *count)
{
    int profile;
    nvmlReturn_t status = find_id(gpu, id, &profile);
    return status == NVML_SUCCESS ? NVML_SET(count, sim_gi_capacity(gpu, profile)) : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device,
                                                       unsigned int profileId,
                                                       unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_MIG_ON | CALL_PRIVILEGED, device,
                           gi_remaining(call.gpu, profileId, count));
}

/* ---- GPU instances ---- */

static nvmlGpuInstance_t gi_handle(const struct sim_call *call, unsigned id)
{
    struct sim_handle handle = sim_handle_of(call->machine, SIM_GI, call->gpu_index, id, 0);
    return sim_handle_make(&handle);
}

static nvmlReturn_t create_gi(struct sim_call *call, unsigned profile_id,
                              const nvmlGpuInstancePlacement_t *placement,
                              nvmlGpuInstance_t *ret_handle)
{
    assert(call->gpu && call->gpu->mig_current);
    int profile, start = MIG_START_ANY;
    nvmlReturn_t status =
        ret_handle ? find_id(call->gpu, profile_id, &profile) : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    if (placement) {
        int size = sim_gpu_board(call->gpu)->profiles[profile].placement_size;
        if (placement->start >= MIG_UNITS_MAX || placement->size != (unsigned)size)
            return NVML_ERROR_INVALID_ARGUMENT;
        start = (int)placement->start;
    }
    unsigned id;
    status = sim_gi_create(call->machine, call->gpu_index, profile, start, &id);
    if (status == NVML_SUCCESS)
        *ret_handle = gi_handle(call, id);
    return status;
}

enum { CREATE_GI = CALL_PARENT | CALL_ADMIN | CALL_MIG_BOARD | CALL_MIG_ON };

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profileId,
                                         nvmlGpuInstance_t *gpuInstance)
{
    return NVML_CALL_FLAGS(CREATE_GI, device, create_gi(&call, profileId, NULL, gpuInstance));
}

nvmlReturn_t
nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profileId,
                                         const nvmlGpuInstancePlacement_t *placement,
                                         nvmlGpuInstance_t *gpuInstance)
{
    return NVML_CALL_FLAGS(CREATE_GI, device,
                           placement ? create_gi(&call, profileId, placement, gpuInstance)
                                     : NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t gpuInstance)
{
    return NVML_CALL_FLAGS(CALL_GI | CALL_ADMIN, gpuInstance,
                           sim_gi_destroy(call.machine, call.gpu_index, call.gi_index));
}

/* The caller's array has room for the profile's instanceCount. */
static nvmlReturn_t list_gis(const struct sim_call *call, unsigned profile_id,
                             nvmlGpuInstance_t *handles, unsigned *count)
{
    int profile;
    nvmlReturn_t status = handles && count ? find_id(call->gpu, profile_id, &profile)
                                           : NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;
    *count = 0;
    for (unsigned id = 0; id < SIM_GI_IDS; id++)
        if (call->gpu->gis[id].used && call->gpu->gis[id].profile == profile)
            handles[(*count)++] = gi_handle(call, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profileId,
                                       nvmlGpuInstance_t *gpuInstances, unsigned int *count)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_MIG_ON | CALL_PRIVILEGED, device,
                           list_gis(&call, profileId, gpuInstances, count));
}

static nvmlReturn_t gi_by_id(const struct sim_call *call, unsigned id,
                             nvmlGpuInstance_t *handle)
{
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (id >= SIM_GI_IDS || !call->gpu->gis[id].used)
        return NVML_ERROR_NOT_FOUND;
    *handle = gi_handle(call, id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t *gpuInstance)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_MIG_ON | CALL_PRIVILEGED, device,
                           gi_by_id(&call, id, gpuInstance));
}

static nvmlReturn_t gi_info(const struct sim_call *call, nvmlGpuInstanceInfo_t *info)
{
    assert(call->gi && call->gi->used);
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_profile *profile = sim_gi_profile(call->gpu, call->gi);
    *info = (nvmlGpuInstanceInfo_t){
        .device = sim_device_handle(call->machine, call->gpu_index),
        .id = call->gi_index,
        .profileId = sim_profile_id(profile),
        .placement = {.start = call->gi->start, .size = (unsigned)profile->placement_size}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gpuInstance, nvmlGpuInstanceInfo_t *info)
{
    return NVML_CALL(GI, gpuInstance, gi_info(&call, info));
}

/* ---- MIG devices ---- */

static unsigned mig_device_limit(const struct sim_gpu *gpu)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    return board->has_mig && gpu->mig_current ? (unsigned)board->compute_slices : 0;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    return NVML_CALL(PARENT, device, NVML_SET(count, mig_device_limit(call.gpu)));
}

static nvmlReturn_t mig_by_index(const struct sim_call *call, unsigned index,
                                 nvmlDevice_t *mig_device)
{
    unsigned gi, ci;
    if (!mig_device || index >= mig_device_limit(call->gpu))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!sim_mig_device_at(call->gpu, index, &gi, &ci))
        return NVML_ERROR_NOT_FOUND;
    *mig_device = sim_mig_handle(call->machine, call->gpu_index, gi, ci);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *migDevice)
{
    return NVML_CALL_FLAGS(CALL_PARENT | CALL_MIG_BOARD | CALL_MIG_ON, device,
                           mig_by_index(&call, index, migDevice));
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice)
{
    return NVML_CALL(DEVICE, device, NVML_SET(isMigDevice, call.is_mig));
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return NVML_CALL(MIG, device, NVML_SET(id, call.gi_index));
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return NVML_CALL(MIG, device, NVML_SET(id, call.ci_index));
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice,
                                                          nvmlDevice_t *device)
{
    return NVML_CALL(MIG, migDevice,
                     NVML_SET(device, sim_device_handle(call.machine, call.gpu_index)));
}

static nvmlReturn_t attributes_of(const struct sim_call *call,
                                  nvmlDeviceAttributes_t *attributes)
{
    assert(call->is_mig && call->gi && call->ci);
    if (!attributes)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_board *board = sim_gpu_board(call->gpu);
    const struct mig_profile *profile = sim_gi_profile(call->gpu, call->gi);
    const struct mig_ci_profile *ci = sim_ci_profile(call->gpu, call->gi, call->ci);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = sim_ci_sm(board, profile, ci),
        .sharedCopyEngineCount = sim_profile_copy_engines(profile),
        .sharedDecoderCount = sim_profile_engines(profile, MIG_DECODER),
        .sharedEncoderCount = sim_profile_engines(profile, MIG_ENCODER),
        .sharedJpegCount = sim_profile_engines(profile, MIG_JPEG),
        .sharedOfaCount = sim_profile_engines(profile, MIG_OFA),
        .gpuInstanceSliceCount = (unsigned)profile->compute_slices,
        .computeInstanceSliceCount = (unsigned)ci->compute_slices,
        .memorySizeMB = sim_profile_memory_mib(board, profile),
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return NVML_CALL(MIG, device, attributes_of(&call, attributes));
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return NVML_CALL(MIG, device, attributes_of(&call, attributes));
}
