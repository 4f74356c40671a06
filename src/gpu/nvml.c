/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU driver over NVML: inventory, MIG mode, profiles, instances. One implementation
 * serves the machine's library and the simulated one. Reading needs no root where NVML
 * allows it: without permission for the instance list, MIG devices are found by walking
 * their handles, and starts stay unknown.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "gpu/nvml_library.h"

enum { ENUM_LIMIT = 64 }; /* stops a library that never says INVALID_ARGUMENT */

static void copy_text(char *ret, size_t size, const char *text)
{
    snprintf(ret, size, "%s", text);
}

int nvml_device(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
                struct error *err)
{
    nvmlReturn_t result = nvml->call.nvmlDeviceGetHandleByUUID(uuid, ret_device);
    return result ? nvml_fail(nvml, result, "nvmlDeviceGetHandleByUUID", uuid, err) : 0;
}

static int need_mig(const struct nvml *nvml, struct error *err)
{
    return nvml->has_mig ? 0
                         : error_set(err, E_UNSUPPORTED,
                                     "this NVML library has no MIG functions; driver 450 or "
                                     "newer has them");
}

static int device_for_mig(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
                          struct error *err)
{
    int r = need_mig(nvml, err);
    return r ? r : nvml_device(nvml, uuid, ret_device, err);
}

/* --- inventory --- */

static int identify_capability(const struct nvml *nvml, nvmlDevice_t device,
                               struct gpu_identity *ret, struct error *err)
{
    unsigned current, pending;

    if (!nvml->has_mig)
        return 0;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetMigMode(device, &current, &pending);
    ret->mig_capable = result == NVML_SUCCESS;
    if (result && result != NVML_ERROR_NOT_SUPPORTED)
        return nvml_fail(nvml, result, "nvmlDeviceGetMigMode", ret->uuid, err);
    return 0;
}

/* What may be missing without harm. */
static void identify_optional(const struct nvml *nvml, nvmlDevice_t device,
                              struct gpu_identity *ret)
{
    unsigned minor;
    nvmlMemory_t memory;

    ret->minor = -1;
    if (nvml->call.nvmlDeviceGetMinorNumber &&
        !nvml->call.nvmlDeviceGetMinorNumber(device, &minor))
        ret->minor = (int)minor;
    if (!nvml->call.nvmlDeviceGetMemoryInfo(device, &memory))
        ret->memory_bytes = memory.total;
    if (!nvml->call.nvmlDeviceGetCudaComputeCapability ||
        nvml->call.nvmlDeviceGetCudaComputeCapability(device, &ret->cc_major, &ret->cc_minor))
        ret->cc_major = ret->cc_minor = 0;
}

static int identify(const struct nvml *nvml, unsigned index, struct gpu_identity *ret,
                    struct error *err)
{
    nvmlDevice_t device;
    nvmlPciInfo_t pci;
    char object[32];
    nvmlReturn_t result;

    snprintf(object, sizeof object, "GPU %u", index);
    ret->index = (int)index;
    if ((result = nvml->call.nvmlDeviceGetHandleByIndex_v2(index, &device)))
        return nvml_fail(nvml, result, "nvmlDeviceGetHandleByIndex_v2", object, err);
    if ((result = nvml->call.nvmlDeviceGetUUID(device, ret->uuid, sizeof ret->uuid)))
        return nvml_fail(nvml, result, "nvmlDeviceGetUUID", object, err);
    if ((result = nvml->call.nvmlDeviceGetName(device, ret->name, sizeof ret->name)))
        return nvml_fail(nvml, result, "nvmlDeviceGetName", ret->uuid, err);
    if ((result = nvml->call.nvmlDeviceGetPciInfo_v3(device, &pci)))
        return nvml_fail(nvml, result, "nvmlDeviceGetPciInfo_v3", ret->uuid, err);
    copy_text(ret->pci_bus_id, sizeof ret->pci_bus_id, pci.busId);
    ret->pci_device_id = pci.pciDeviceId;
    identify_optional(nvml, device, ret);
    return identify_capability(nvml, device, ret, err);
}

static int op_list(void *self, struct gpu_identity **ret_items, size_t *ret_count,
                   struct error *err)
{
    const struct nvml *nvml = self;
    unsigned count;
    CLEANUP(free_ptr) struct gpu_identity *items = NULL;

    nvmlReturn_t result = nvml->call.nvmlDeviceGetCount_v2(&count);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetCount_v2", NULL, err);
    items = xcalloc(count, sizeof *items);
    for (unsigned i = 0; i < count; i++) {
        int r = identify(nvml, i, &items[i], err);
        if (r)
            return r;
    }
    *ret_items = STEAL(items);
    *ret_count = count;
    return 0;
}

/* --- MIG mode --- */

static int op_mig_mode(void *self, const char *uuid, struct gpu_mig_mode *ret_mode,
                       struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    unsigned current, pending;

    int r = device_for_mig(nvml, uuid, &device, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetMigMode(device, &current, &pending);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceGetMigMode", uuid, err);
    *ret_mode = (struct gpu_mig_mode){.current = current == NVML_DEVICE_MIG_ENABLE,
                                      .pending = pending == NVML_DEVICE_MIG_ENABLE};
    return 0;
}

static int op_set_mig_mode(void *self, const char *uuid, bool enabled,
                           struct gpu_mode_result *ret_result, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    nvmlReturn_t status = NVML_SUCCESS;

    int r = device_for_mig(nvml, uuid, &device, err);
    if (r)
        return r;
    unsigned mode = enabled ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    nvmlReturn_t result = nvml->call.nvmlDeviceSetMigMode(device, mode, &status);
    if (result)
        return nvml_fail(nvml, result, "nvmlDeviceSetMigMode", uuid, err);
    *ret_result = (struct gpu_mode_result){.pending = status != NVML_SUCCESS};
    if (status)
        snprintf(ret_result->reason, sizeof ret_result->reason, "%s (%s)",
                 nvml->call.nvmlErrorString(status), nvml_return_name(status));
    return 0;
}

/* --- profiles --- */

/* The name without the "MIG " that some drivers put before it. */
static void profile_name(const char *given, char ret[GPU_TEXT_SIZE])
{
    copy_text(ret, GPU_TEXT_SIZE, strncmp(given, "MIG ", 4) ? given : given + 4);
}

/* Reads one profile through the newest form that the library has. v2 and v3 have one size
 * and different layouts, so each is read into its own type. */
static nvmlReturn_t profile_info(const struct nvml *nvml, nvmlDevice_t device, unsigned number,
                                 struct gpu_live_profile *ret)
{
    nvmlGpuInstanceProfileInfo_t info;
    union {
        nvmlGpuInstanceProfileInfo_v2_t v2;
        nvmlGpuInstanceProfileInfo_v3_t v3;
    } named = {.v3.version = NVML_GPU_INSTANCE_PROFILE_INFO_V3};

    nvmlReturn_t result = nvml->call.nvmlDeviceGetGpuInstanceProfileInfo(device, number, &info);
    if (result)
        return result;
    *ret = (struct gpu_live_profile){
        .nvml_enum = (int)number,
        .profile_id = (int)info.id,
        .compute_slices = (int)info.sliceCount,
        .max_instances = (int)info.instanceCount,
        .sm = (int)info.multiprocessorCount,
        .copy_engines = (int)info.copyEngineCount,
        .decoders = (int)info.decoderCount,
        .encoders = (int)info.encoderCount,
        .jpeg = (int)info.jpegCount,
        .ofa = (int)info.ofaCount,
        .memory_mib = (int)info.memorySizeMB,
    };
    if (!nvml->call.nvmlDeviceGetGpuInstanceProfileInfoV)
        return NVML_SUCCESS;
    if (!nvml->call.nvmlDeviceGetGpuInstanceProfileInfoV(device, number, &named.v2)) {
        profile_name(named.v3.name, ret->name);
        return NVML_SUCCESS;
    }
    named.v2.version = NVML_GPU_INSTANCE_PROFILE_INFO_V2;
    if (!nvml->call.nvmlDeviceGetGpuInstanceProfileInfoV(device, number, &named.v2))
        profile_name(named.v2.name, ret->name);
    return NVML_SUCCESS;
}

static int profile_placements(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                              struct gpu_live_profile *profile, struct error *err)
{
    nvmlGpuInstancePlacement_t placements[GPU_PLACEMENTS_MAX];
    unsigned count = 0;
    static const char call[] = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";

    nvmlReturn_t result = nvml->call.nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device, (unsigned)profile->profile_id, NULL, &count);
    if (!result && count > GPU_PLACEMENTS_MAX)
        return error_set(err, E_UNSUPPORTED, "%s on %s: %u placements of one profile", call,
                         uuid, count);
    if (!result && count)
        result = nvml->call.nvmlDeviceGetGpuInstancePossiblePlacements_v2(
            device, (unsigned)profile->profile_id, placements, &count);
    if (result == NVML_ERROR_NO_PERMISSION) {
        profile->placement_count = -1;
        return 0;
    }
    if (result)
        return nvml_fail(nvml, result, call, uuid, err);
    profile->placement_count = (int)count;
    for (unsigned i = 0; i < count; i++)
        profile->placements[i] = (struct gpu_placement){.start = (int)placements[i].start,
                                                        .size = (int)placements[i].size};
    return 0;
}

/* Every profile of the board, without placements. Enums that the board lacks are skipped;
 * INVALID_ARGUMENT is the end of the enums that the library knows. */
static int list_profiles(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                         struct gpu_live_profile ret[GPU_LIVE_PROFILES_MAX], int *ret_count,
                         struct error *err)
{
    int count = 0;

    for (unsigned number = 0; number < ENUM_LIMIT && count < GPU_LIVE_PROFILES_MAX; number++) {
        nvmlReturn_t result = profile_info(nvml, device, number, &ret[count]);
        if (result == NVML_ERROR_NOT_SUPPORTED)
            continue;
        if (result == NVML_ERROR_INVALID_ARGUMENT &&
            number >= NVML_GPU_INSTANCE_PROFILE_8_SLICE)
            break;
        if (result)
            return nvml_fail(nvml, result, "nvmlDeviceGetGpuInstanceProfileInfo", uuid, err);
        count++;
    }
    *ret_count = count;
    return 0;
}

static int op_profiles(void *self, const char *uuid, struct gpu_live_profile *ret_profiles,
                       int *ret_count, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    int count;

    int r = device_for_mig(nvml, uuid, &device, err);
    if (!r)
        r = list_profiles(nvml, device, uuid, ret_profiles, &count, err);
    for (int i = 0; !r && i < count; i++)
        r = profile_placements(nvml, device, uuid, &ret_profiles[i], err);
    if (!r)
        *ret_count = count;
    return r;
}

/* --- instances --- */

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
    int r = device_for_mig(nvml, entity->uuid, &device, err);
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

static int op_instances(void *self, const char *uuid, struct gpu_gi_list *ret_list,
                        struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    struct gpu_live_profile profiles[GPU_LIVE_PROFILES_MAX];
    struct gpu_mig_mode mode;
    struct gpu_gi_list list = {0};
    int count;

    int r = op_mig_mode(self, uuid, &mode, err);
    if (!r && !mode.current) {
        *ret_list = list;
        return 0;
    }
    if (!r)
        r = nvml_device(nvml, uuid, &device, err);
    if (!r)
        r = list_profiles(nvml, device, uuid, profiles, &count, err);
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
    int r = device_for_mig(nvml, uuid, &device, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlDeviceGetGpuInstanceById(device, id, ret_handle);
    return result ? nvml_fail(nvml, result, "nvmlDeviceGetGpuInstanceById", uuid, err) : 0;
}

static int op_ci_profiles(void *self, const char *uuid, uint32_t gi,
                          struct gpu_live_ci_profile *ret_profiles, int *ret_count,
                          struct error *err)
{
    nvmlGpuInstance_t handle;
    int r = gi_handle(self, uuid, gi, &handle, err);
    return r ? r : list_ci_profiles(self, handle, uuid, ret_profiles, ret_count, err);
}

static int op_create_gi(void *self, const char *uuid, int profile_id,
                        struct gpu_placement placement, uint32_t *ret_gi, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    nvmlGpuInstancePlacement_t where = {.start = (unsigned)placement.start,
                                        .size = (unsigned)placement.size};

    int r = device_for_mig(nvml, uuid, &device, err);
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

static int op_destroy_gi(void *self, const char *uuid, uint32_t gi, struct error *err)
{
    const struct nvml *nvml = self;
    nvmlGpuInstance_t handle;
    int r = gi_handle(nvml, uuid, gi, &handle, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml->call.nvmlGpuInstanceDestroy(handle);
    return result ? nvml_fail(nvml, result, "nvmlGpuInstanceDestroy", uuid, err) : 0;
}

static int op_create_ci(void *self, const char *uuid, uint32_t gi, int profile_id,
                        uint32_t *ret_ci, struct error *err)
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

static int op_destroy_ci(void *self, const char *uuid, uint32_t gi, uint32_t ci,
                         struct error *err)
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

/* --- the object --- */

static void op_version(void *self, char ret_text[GPU_TEXT_SIZE])
{
    const struct nvml *nvml = self;
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];

    ret_text[0] = '\0';
    if (!nvml->call.nvmlSystemGetDriverVersion(driver, sizeof driver))
        copy_text(ret_text, GPU_TEXT_SIZE, driver);
}

static void op_close(void *self)
{
    nvml_library_close(self);
    free(self);
}

#define NVML_OPS(name)                                                                         \
    {                                                                                          \
        .kind = (name), .list = op_list, .mig_mode = op_mig_mode,                              \
        .set_mig_mode = op_set_mig_mode, .profiles = op_profiles, .instances = op_instances,   \
        .ci_profiles = op_ci_profiles, .create_gi = op_create_gi, .destroy_gi = op_destroy_gi, \
        .create_ci = op_create_ci, .destroy_ci = op_destroy_ci, .processes = nvml_processes,   \
        .read = nvml_read, .gpm_sample = nvml_gpm_sample, .gpm_metrics = nvml_gpm_metrics,     \
        .gpm_free = nvml_gpm_free, .version = op_version, .close = op_close                    \
    }

static const struct gpu_driver_ops ops[GPU_DRIVER_KIND_COUNT] = {
    [GPU_DRIVER_NVML] = NVML_OPS("nvml"),
    [GPU_DRIVER_SIM] = NVML_OPS("sim"),
};

int gpu_driver_open(const struct gpu_driver_options *options, struct gpu_driver *ret_driver,
                    struct error *err)
{
    struct nvml nvml;

    int r = nvml_library_open(options, &nvml, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml.call.nvmlInit_v2();
    if (result) {
        r = nvml_fail(&nvml, result, "nvmlInit_v2", NULL, err);
        nvml_library_close(&nvml);
        return r;
    }
    nvml.initialised = true;
    *ret_driver =
        (struct gpu_driver){.ops = &ops[options->kind], .self = xmemdup(&nvml, sizeof nvml)};
    return 0;
}

void gpu_driver_close(struct gpu_driver *driver)
{
    if (driver->ops)
        driver->ops->close(driver->self);
    *driver = (struct gpu_driver){0};
}

void gpu_process_list_done(struct gpu_process_list *list)
{
    vec_done(&list->items);
}

int gpu_driver_kind_get(const char *name, enum gpu_driver_kind *ret_kind, struct error *err)
{
    if (!name || !*name) {
        const char *sim = getenv("TRANCHE_SIM"), *fleet = getenv("TRANCHE_SIM_FLEET");
        bool simulated = (sim && *sim && strcmp(sim, "0")) || (fleet && *fleet);
        *ret_kind = simulated ? GPU_DRIVER_SIM : GPU_DRIVER_NVML;
        return 0;
    }
    for (int i = 0; i < GPU_DRIVER_KIND_COUNT; i++)
        if (!strcmp(name, ops[i].kind)) {
            *ret_kind = (enum gpu_driver_kind)i;
            return 0;
        }
    return error_set(err, E_USAGE, "driver '%s' is unknown; there are nvml and sim", name);
}
