/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU driver over NVML: inventory, MIG mode, profiles, and the table of operations. One
 * implementation serves the machine's library and the simulated one. Instances are in
 * nvml_instances.c, measurements in nvml_readings.c.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "gpu/nvml_library.h"
#include "mig/fleet.h"

enum { ENUM_LIMIT = 64 }; /* stops a library that never says INVALID_ARGUMENT */

static void copy_text(char *ret, size_t size, const char *text)
{
    snprintf(ret, size, "%s", text);
}

int nvml_device(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
                struct error *err)
{
    assert(nvml->initialised && uuid);
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

int nvml_device_for_mig(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
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

    assert(ret && index <= INT32_MAX);
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

int nvml_mig_mode(void *self, const char *uuid, struct gpu_mig_mode *ret_mode,
                  struct error *err)
{
    const struct nvml *nvml = self;
    nvmlDevice_t device;
    unsigned current, pending;

    int r = nvml_device_for_mig(nvml, uuid, &device, err);
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

    int r = nvml_device_for_mig(nvml, uuid, &device, err);
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
    /* Twice: the first call only counts. */
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

int nvml_list_profiles(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
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
    int count = 0;

    int r = nvml_device_for_mig(nvml, uuid, &device, err);
    if (!r)
        r = nvml_list_profiles(nvml, device, uuid, ret_profiles, &count, err);
    for (int i = 0; !r && i < count; i++)
        r = profile_placements(nvml, device, uuid, &ret_profiles[i], err);
    if (!r)
        *ret_count = count;
    return r;
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
        .kind = (name), .list = op_list, .mig_mode = nvml_mig_mode,                            \
        .set_mig_mode = op_set_mig_mode, .profiles = op_profiles, .instances = nvml_instances, \
        .ci_profiles = nvml_ci_profiles, .create_gi = nvml_create_gi,                          \
        .destroy_gi = nvml_destroy_gi, .create_ci = nvml_create_ci,                            \
        .destroy_ci = nvml_destroy_ci, .processes = nvml_processes, .read = nvml_read,         \
        .take_xids = nvml_take_xids, .gpm_sample = nvml_gpm_sample,                            \
        .gpm_metrics = nvml_gpm_metrics, .gpm_free = nvml_gpm_free, .version = op_version,     \
        .close = op_close                                                                      \
    }

static const struct gpu_driver_ops ops[GPU_DRIVER_KIND_COUNT] = {
    [GPU_DRIVER_NVML] = NVML_OPS("nvml"),
    [GPU_DRIVER_SIM] = NVML_OPS("sim"),
};

/* What the simulated library would find wrong with the fleet, with the exit status and the
 * words of every other input. */
static int check_simulated_fleet(struct error *err)
{
    const char *text = getenv("TRANCHE_SIM_FLEET");
    struct mig_fleet fleet;

    if (!text || !*text)
        return 0;
    if (mig_fleet_parse(text, &fleet, err))
        return error_wrap(err, "TRANCHE_SIM_FLEET");
    for (int i = 0; i < fleet.count; i++)
        if (fleet.entries[i].count == MIG_FLEET_UNLIMITED)
            return error_set(err, E_INPUT,
                             "TRANCHE_SIM_FLEET: fleet entry \"%s:*\": expected a number of "
                             "GPUs for a simulated machine",
                             fleet.entries[i].board->slug);
    return 0;
}

/* nvmlInit failed. The simulated library says why on standard error, unless the failure was
 * ordered (TRANCHE_SIM_FAULTS). */
static int init_fail(const struct nvml *nvml, enum gpu_driver_kind kind, nvmlReturn_t result,
                     struct error *err)
{
    if (kind != GPU_DRIVER_SIM)
        return nvml_fail(nvml, result, "nvmlInit_v2", NULL, err);
    return error_set(
        err, nvml_error_code(result),
        "the simulated driver did not start (%s; its own message stands above): "
        "set TRANCHE_SIM_STATE to a file that can be written, or remove a stale one",
        nvml_return_name(result));
}

int gpu_driver_open(const struct gpu_driver_options *options, struct gpu_driver *ret_driver,
                    struct error *err)
{
    struct nvml nvml;

    int r = options->kind == GPU_DRIVER_SIM ? check_simulated_fleet(err) : 0;
    if (!r)
        r = nvml_library_open(options, &nvml, err);
    if (r)
        return r;
    nvmlReturn_t result = nvml.call.nvmlInit_v2();
    if (result) {
        r = init_fail(&nvml, options->kind, result, err);
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

void gpu_xid_list_done(struct gpu_xid_list *list)
{
    vec_done(&list->items);
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
