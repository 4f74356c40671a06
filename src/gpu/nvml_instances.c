/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU instances and compute instances over NVML: listing, making, destroying. Without
 * permission for the instance list, MIG devices are found by walking their handles, and
 * starts stay unknown.
 */
#include <assert.h>
#include <stdlib.h>

#include "gpu/nvml_library.h"

static int list_ci_profiles(const struct nvml *nvml, nvmlGpuInstance_t gi, const char *uuid,
                            struct gpu_live_ci_profile ret[GPU_CI_PROFILES_MAX], int *ret_count,
                            struct error *err)
{
    int count = 0;

    for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; number++) {
        nvmlComputeInstanceProfileInfo_t info;
        nvmlReturn_t result = nvml->call.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi, number, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &info);
        if (result == NVML_ERROR_NOT_SUPPORTED)
            continue;
        /* Older libraries know fewer enums. */
        if (result == NVML_ERROR_INVALID_ARGUMENT &&
            number >= NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE)
            continue;
        if (result)
            return nvml_fail(nvml, result, "nvmlGpuInstanceGetComputeInstanceProfileInfo", uuid,
                             err);
        ret[count++] = (struct gpu_live_ci_profile){.nvml_enum = (int)number,
                                                    .profile_id = (int)info.id,
                                                    .compute_slices = (int)info.sliceCount,
                                                    .max_instances = (int)info.instanceCount,
                                                    .sm = (int)info.multiprocessorCount};
    }
    *ret_count = count;
    return 0;
}

/* UUID and SM count of a compute instance by its MIG device handle; both optional. */
static void describe_ci(const struct nvml *nvml, nvmlDevice_t mig_device, struct gpu_ci *ci)
{
    nvmlDeviceAttributes_t attributes;

    if (nvml->call.nvmlDeviceGetUUID(mig_device, ci->uuid, sizeof ci->uuid))
        ci->uuid[0] = '\0';
    if (nvml->call.nvmlDeviceGetAttributes_v2 &&
        !nvml->call.nvmlDeviceGetAttributes_v2(mig_device, &attributes))
        ci->sm = (int)attributes.multiprocessorCount;
}

static bool has_ci(const struct gpu_gi *gi, uint32_t id)
{
    for (int i = 0; i < gi->ci_count; i++)
        if (gi->ci[i].id == id)
            return true;
    return false;
}

/* Adds the compute instances of one profile; two enums may share an id (7_SLICE_NVL). */
static int add_cis(const struct nvml *nvml, nvmlGpuInstance_t handle,
                   const struct gpu_live_ci_profile *profile, struct gpu_gi *gi,
                   struct error *err)
{
    nvmlComputeInstance_t instances[GPU_CI_MAX];
    unsigned count = GPU_CI_MAX;

    assert(gi->ci_count <= GPU_CI_MAX);
    nvmlReturn_t result = nvml->call.nvmlGpuInstanceGetComputeInstances(
        handle, (unsigned)profile->profile_id, instances, &count);
    if (result == NVML_ERROR_NOT_SUPPORTED)
        return 0;
    if (result)
        return nvml_fail(nvml, result, "nvmlGpuInstanceGetComputeInstances", NULL, err);
    for (unsigned i = 0; i < count && gi->ci_count < GPU_CI_MAX; i++) {
        nvmlComputeInstanceInfo_t info;
        result = nvml->call.nvmlComputeInstanceGetInfo_v2(instances[i], &info);
        if (result)
            return nvml_fail(nvml, result, "nvmlComputeInstanceGetInfo_v2", NULL, err);
        if (has_ci(gi, info.id))
            continue;
        struct gpu_ci *ci = &gi->ci[gi->ci_count++];
        *ci = (struct gpu_ci){.id = info.id,
                              .profile_id = (int)info.profileId,
                              .compute_slices = profile->compute_slices};
        describe_ci(nvml, info.device, ci);
    }
    return 0;
}

static int compare_ci(const void *a, const void *b)
{
    const struct gpu_ci *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_gi(const void *a, const void *b)
{
    const struct gpu_gi *x = a, *y = b;
    if (x->start != y->start)
        return x->start - y->start;
    return (x->id > y->id) - (x->id < y->id);
}

static int read_gi(const struct nvml *nvml, nvmlGpuInstance_t handle,
                   const struct gpu_live_profile *profile, struct gpu_gi *ret,
                   struct error *err)
{
    nvmlGpuInstanceInfo_t info;
    struct gpu_live_ci_profile profiles[GPU_CI_PROFILES_MAX];
    int count;

    nvmlReturn_t result = nvml->call.nvmlGpuInstanceGetInfo(handle, &info);
    if (result)
        return nvml_fail(nvml, result, "nvmlGpuInstanceGetInfo", NULL, err);
    *ret = (struct gpu_gi){.id = info.id,
                           .profile_id = (int)info.profileId,
                           .compute_slices = profile->compute_slices,
                           .memory_mib = profile->memory_mib,
                           .start = (int)info.placement.start,
                           .size = (int)info.placement.size};
    int r = list_ci_profiles(nvml, handle, "a GPU instance", profiles, &count, err);
    for (int i = 0; !r && i < count; i++)
        r = add_cis(nvml, handle, &profiles[i], ret, err);
    qsort(ret->ci, (size_t)ret->ci_count, sizeof ret->ci[0], compare_ci);
    return r;
}

/* Adds the GPU instances of one profile. */
static int add_gis(const struct nvml *nvml, nvmlDevice_t device,
                   const struct gpu_live_profile *profile, struct gpu_gi_list *list,
                   struct error *err)
{
    nvmlGpuInstance_t handles[GPU_INSTANCES_MAX + 1];
    unsigned count = GPU_INSTANCES_MAX;

    nvmlReturn_t result = nvml->call.nvmlDeviceGetGpuInstances(
        device, (unsigned)profile->profile_id, handles, &count);
    if (result == NVML_ERROR_NOT_SUPPORTED)
        return 0;
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetGpuInstances", NULL, err);
    for (unsigned i = 0; i < count && list->count < GPU_INSTANCES_MAX; i++) {
        int r = read_gi(nvml, handles[i], profile, &list->gi[list->count], err);
        if (r)
            return r;
        list->count++;
    }
    return 0;
}

static struct gpu_gi *find_gi(struct gpu_gi_list *list, uint32_t id)
{
    for (int i = 0; i < list->count; i++)
        if (list->gi[i].id == id)
            return &list->gi[i];
    return NULL;
}

/* Adds what a MIG device handle tells to an unprivileged user. */
static int add_mig_device(const struct nvml *nvml, nvmlDevice_t handle,
                          struct gpu_gi_list *list, struct error *err)
{
    unsigned gi_id, ci_id;
    nvmlDeviceAttributes_t attributes = {0};
    nvmlReturn_t result;

    if ((result = nvml->call.nvmlDeviceGetGpuInstanceId(handle, &gi_id)))
        return nvml_fail(nvml, result, "nvmlDeviceGetGpuInstanceId", NULL, err);
    if ((result = nvml->call.nvmlDeviceGetComputeInstanceId(handle, &ci_id)))
        return nvml_fail(nvml, result, "nvmlDeviceGetComputeInstanceId", NULL, err);
    if (nvml->call.nvmlDeviceGetAttributes_v2)
        nvml->call.nvmlDeviceGetAttributes_v2(handle, &attributes);
    struct gpu_gi *gi = find_gi(list, gi_id);
    if (!gi && list->count < GPU_INSTANCES_MAX) {
        gi = &list->gi[list->count++];
        *gi = (struct gpu_gi){.id = gi_id,
                              .profile_id = -1,
                              .compute_slices = (int)attributes.gpuInstanceSliceCount,
                              .memory_mib = (int)attributes.memorySizeMB,
                              .start = GPU_START_UNKNOWN};
    }
    if (!gi || gi->ci_count == GPU_CI_MAX)
        return 0;
    struct gpu_ci *ci = &gi->ci[gi->ci_count++];
    *ci = (struct gpu_ci){.id = ci_id,
                          .profile_id = -1,
                          .compute_slices = (int)attributes.computeInstanceSliceCount};
    describe_ci(nvml, handle, ci);
    return 0;
}

/* The instances as far as MIG device handles show them: no start, and no GPU instance
 * without a compute instance. Holes in the numbering are passed over. */
static int walk_mig_devices(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                            struct gpu_gi_list *list, struct error *err)
{
    unsigned count;

    list->count = 0;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetMaxMigDeviceCount(device, &count);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetMaxMigDeviceCount", uuid, err);
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t handle;
        result = nvml->call.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &handle);
        if (result == NVML_ERROR_NOT_FOUND)
            continue;
        if (result)
            return nvml_fail(nvml, result, "nvmlDeviceGetMigDeviceHandleByIndex", uuid, err);
        int r = add_mig_device(nvml, handle, list, err);
        if (r)
            return r;
    }
    return 0;
}

int nvml_mig_device(const struct nvml *nvml, const struct gpu_entity *entity,
                    nvmlDevice_t *ret_device, struct error *err)
{
    nvmlDevice_t device;
    unsigned count, gi, ci;

    assert(entity->gi != GPU_NO_INSTANCE);
    int r = nvml_device_for_mig(nvml, entity->uuid, &device, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetMaxMigDeviceCount(device, &count);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetMaxMigDeviceCount", entity->uuid, err);
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t handle;
        if (!nvml->call.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &handle) &&
            !nvml->call.nvmlDeviceGetGpuInstanceId(handle, &gi) &&
            !nvml->call.nvmlDeviceGetComputeInstanceId(handle, &ci) && gi == entity->gi &&
            (entity->ci == GPU_NO_INSTANCE || ci == entity->ci)) {
            *ret_device = handle;
            return 0;
        }
    }
    return error_set(err, E_NOT_FOUND, "%s has no MIG device in GPU instance %u", entity->uuid,
                     entity->gi);
}

int nvml_instances(void *self, const char *uuid, struct gpu_gi_list *ret_list,
                   struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    struct gpu_live_profile profiles[GPU_LIVE_PROFILES_MAX];
    struct gpu_mig_mode mode;
    struct gpu_gi_list list = {0};
    int count;

    int r = nvml_mig_mode(self, uuid, &mode, err);
    if (!r && !mode.current) {
        *ret_list = list;
        return 0;
    }
    if (!r)
        r = nvml_device(nvml, uuid, &device, err);
    if (!r)
        r = nvml_list_profiles(nvml, device, uuid, profiles, &count, err);
    if (r)
        return r;
    nvmlGpuInstance_t probe[GPU_INSTANCES_MAX + 1];
    unsigned probed = GPU_INSTANCES_MAX;
    bool denied = count && nvml->call.nvmlDeviceGetGpuInstances(
                               device, (unsigned)profiles[0].profile_id, probe, &probed) ==
                               NVML_ERROR_NO_PERMISSION;
    for (int i = 0; !denied && !r && i < count; i++)
        r = add_gis(nvml, device, &profiles[i], &list, err);
    if (denied)
        r = walk_mig_devices(nvml, device, uuid, &list, err);
    if (r)
        return r;
    qsort(list.gi, (size_t)list.count, sizeof list.gi[0], compare_gi);
    *ret_list = list;
    return 0;
}

/* --- changes --- */

static int gi_handle(const struct nvml *nvml, const char *uuid, uint32_t id,
                     nvmlGpuInstance_t *ret_handle, struct error *err)
{
    nvmlDevice_t device;
    int r = nvml_device_for_mig(nvml, uuid, &device, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetGpuInstanceById(device, id, ret_handle);
    return result ? nvml_fail(nvml, result, "nvmlDeviceGetGpuInstanceById", uuid, err) : 0;
}

int nvml_ci_profiles(void *self, const char *uuid, uint32_t gi,
                     struct gpu_live_ci_profile *ret_profiles, int *ret_count,
                     struct error *err)
{
    nvmlGpuInstance_t handle;
    int r = gi_handle(self, uuid, gi, &handle, err);
    return r ? r : list_ci_profiles(self, handle, uuid, ret_profiles, ret_count, err);
}

int nvml_create_gi(void *self, const char *uuid, int profile_id, struct gpu_placement placement,
                   uint32_t *ret_gi, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    assert(placement.start >= 0 && placement.size > 0);
    nvmlGpuInstancePlacement_t where = {.start = (unsigned)placement.start,
                                        .size = (unsigned)placement.size};

    int r = nvml_device_for_mig(nvml, uuid, &device, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlDeviceCreateGpuInstanceWithPlacement(
        device, (unsigned)profile_id, &where, &handle);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceCreateGpuInstanceWithPlacement", uuid, err);
    if ((result = nvml->call.nvmlGpuInstanceGetInfo(handle, &info)))
        return nvml_fail(nvml, result, "nvmlGpuInstanceGetInfo", uuid, err);
    *ret_gi = info.id;
    return 0;
}

int nvml_destroy_gi(void *self, const char *uuid, uint32_t gi, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlGpuInstance_t handle;
    int r = gi_handle(nvml, uuid, gi, &handle, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlGpuInstanceDestroy(handle);
    return result ? nvml_fail(nvml, result, "nvmlGpuInstanceDestroy", uuid, err) : 0;
}

int nvml_create_ci(void *self, const char *uuid, uint32_t gi, int profile_id, uint32_t *ret_ci,
                   struct error *err)
{
    const struct nvml *nvml = self;
    nvmlGpuInstance_t handle;
    nvmlComputeInstance_t instance;
    nvmlComputeInstanceInfo_t info;

    int r = gi_handle(nvml, uuid, gi, &handle, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlGpuInstanceCreateComputeInstance(
        handle, (unsigned)profile_id, &instance);
    if (result)
        return nvml_fail(nvml, result, "nvmlGpuInstanceCreateComputeInstance", uuid, err);
    if ((result = nvml->call.nvmlComputeInstanceGetInfo_v2(instance, &info)))
        return nvml_fail(nvml, result, "nvmlComputeInstanceGetInfo_v2", uuid, err);
    *ret_ci = info.id;
    return 0;
}

int nvml_destroy_ci(void *self, const char *uuid, uint32_t gi, uint32_t ci, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlGpuInstance_t handle;
    nvmlComputeInstance_t instance;

    int r = gi_handle(nvml, uuid, gi, &handle, err);
    if (r)
        return r;
    nvmlReturn_t result =
        nvml->call.nvmlGpuInstanceGetComputeInstanceById(handle, ci, &instance);
    if (result)
        return nvml_fail(nvml, result, "nvmlGpuInstanceGetComputeInstanceById", uuid, err);
    if ((result = nvml->call.nvmlComputeInstanceDestroy(instance)))
        return nvml_fail(nvml, result, "nvmlComputeInstanceDestroy", uuid, err);
    return 0;
}
