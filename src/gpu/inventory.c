/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the machine into a value; see inventory.h.
 */
#include "gpu/inventory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void gpu_done(struct gpu *gpu)
{
    live_board_free(gpu->live);
    gpu_process_list_done(&gpu->processes);
    str_done(&gpu->processes_unknown);
}

void gpu_inventory_done(struct gpu_inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpus.count; i++)
        gpu_done(&inventory->gpus.data[i]);
    vec_done(&inventory->gpus);
}

static int read_board(const struct gpu_driver *driver, struct gpu *gpu, struct error *err)
{
    struct gpu_live_profile profiles[GPU_LIVE_PROFILES_MAX];
    int count;

    int r = driver->ops->profiles(driver->self, gpu->identity.uuid, profiles, &count, err);
    if (r)
        return r;
    live_board_free(gpu->live);
    gpu->live = live_board_new(&gpu->identity, profiles, count);
    return 0;
}

static void read_processes(const struct gpu_driver *driver, struct gpu *gpu)
{
    struct error why;

    assert(gpu->processes_unknown.bytes);
    gpu_process_list_done(&gpu->processes);
    str_clear(&gpu->processes_unknown);
    if (driver->ops->processes(driver->self, gpu->identity.uuid, &gpu->processes, &why))
        str_add(&gpu->processes_unknown, why.text);
}

int gpu_inventory_refresh(const struct gpu_driver *driver, struct gpu *gpu, struct error *err)
{
    const char *uuid = gpu->identity.uuid;

    read_processes(driver, gpu);
    if (!gpu->identity.mig_capable)
        return 0;
    if (driver->ops->mig_mode(driver->self, uuid, &gpu->mode, err) ||
        read_board(driver, gpu, err) ||
        driver->ops->instances(driver->self, uuid, &gpu->instances, err))
        return error_wrap(err, "GPU %d", gpu->identity.index);
    assert(gpu->instances.count >= 0 && gpu->instances.count <= GPU_INSTANCES_MAX);
    int r = gpu_layout_from_list(gpu->live, &gpu->instances, &gpu->layout, err);
    return r ? error_wrap(err, "GPU %d (%s)", gpu->identity.index, uuid) : 0;
}

int gpu_inventory_read(const struct gpu_driver *driver, struct gpu_inventory *ret_inventory,
                       struct error *err)
{
    CLEANUP(free_ptr) struct gpu_identity *identities = NULL;
    struct gpu_inventory inventory = {.driver_kind = driver->ops->kind};
    size_t count;

    int r = driver->ops->list(driver->self, &identities, &count, err);
    if (r)
        return r;
    driver->ops->version(driver->self, inventory.driver_version);
    for (size_t i = 0; !r && i < count; i++) {
        struct gpu *gpu = vec_push(&inventory.gpus);
        gpu->identity = identities[i];
        gpu->processes_unknown = STR_EMPTY;
        r = gpu_inventory_refresh(driver, gpu, err);
    }
    if (r) {
        gpu_inventory_done(&inventory);
        return r;
    }
    *ret_inventory = inventory;
    return 0;
}

int gpu_inventory_read_one(const struct gpu_driver *driver, const struct gpu_identity *identity,
                           struct gpu_inventory *ret_inventory, struct error *err)
{
    struct gpu_inventory inventory = {.driver_kind = driver->ops->kind};
    struct gpu *gpu = vec_push(&inventory.gpus);

    driver->ops->version(driver->self, inventory.driver_version);
    gpu->identity = *identity;
    gpu->processes_unknown = STR_EMPTY;
    int r = gpu_inventory_refresh(driver, gpu, err);
    if (r) {
        gpu_inventory_done(&inventory);
        return r;
    }
    *ret_inventory = inventory;
    return 0;
}

/* --- finding --- */

/* "0000:07:00.0" and "00000000:07:00.0" are one: domains compare as numbers. */
static bool same_pci(const char *a, const char *b)
{
    unsigned x[4], y[4];
    int used_a = 0, used_b = 0;
    static const char form[] = "%8x:%2x:%2x.%1x%n";

    return sscanf(a, form, &x[0], &x[1], &x[2], &x[3], &used_a) == 4 && !a[used_a] &&
           sscanf(b, form, &y[0], &y[1], &y[2], &y[3], &used_b) == 4 && !b[used_b] &&
           !memcmp(x, y, sizeof x);
}

static bool gpu_is(const struct gpu *gpu, const char *selector)
{
    long long index;

    if (!strcasecmp(gpu->identity.uuid, selector) ||
        same_pci(gpu->identity.pci_bus_id, selector))
        return true;
    return text_to_int(selector, 0, INT32_MAX, &index) && gpu->identity.index == index;
}

int gpu_inventory_find(const struct gpu_inventory *inventory, const char *selector,
                       size_t *ret_index, struct error *err)
{
    CLEANUP(str_done) struct str known = STR_EMPTY;

    assert(selector && ret_index);
    for (size_t i = 0; i < inventory->gpus.count; i++)
        if (gpu_is(&inventory->gpus.data[i], selector)) {
            *ret_index = i;
            return 0;
        }
    for (size_t i = 0; i < inventory->gpus.count; i++) {
        const struct gpu_identity *id = &inventory->gpus.data[i].identity;
        str_addf(&known, "%s%d (%s, %s)", i ? ", " : "", id->index, id->uuid, id->pci_bus_id);
    }
    return error_set(err, E_INPUT, "there is no GPU \"%.90s\"; this machine has %s", selector,
                     known.length ? known.bytes : "none");
}

/* --- words --- */

void gpu_describe(const struct gpu *gpu, struct str *text)
{
    str_addf(text, "GPU %d (%s, %s, %s)", gpu->identity.index, gpu->identity.uuid,
             gpu->identity.pci_bus_id, gpu->identity.name);
}

void gpu_process_describe(const struct gpu_process *process, struct str *text)
{
    str_addf(text, "pid %u", process->pid);
    if (process->name[0])
        str_addf(text, " (%s)", process->name);
    if (process->gi != GPU_NO_INSTANCE)
        str_addf(text, " on GPU instance %u", process->gi);
}

bool gpu_instance_is_busy(const struct gpu *gpu, uint32_t gi, uint32_t ci)
{
    assert(gi != GPU_NO_INSTANCE);
    for (size_t i = 0; i < gpu->processes.items.count; i++) {
        const struct gpu_process *process = &gpu->processes.items.data[i];
        if (process->gi == gi &&
            (ci == GPU_NO_INSTANCE || process->ci == GPU_NO_INSTANCE || process->ci == ci))
            return true;
    }
    return false;
}

/* --- JSON --- */

static json_t *ci_to_json(const struct gpu_ci *ci)
{
    json_t *json = json_pack("{s:i, s:i, s:s}", "id", (int)ci->id, "slices", ci->compute_slices,
                             "uuid", ci->uuid);
    if (ci->sm)
        json_object_set_new(json, "sm", json_integer(ci->sm));
    return json;
}

static json_t *gi_to_json(const struct gpu *gpu, const struct gpu_gi *gi)
{
    int profile = live_board_profile_of_gi(gpu->live, gi);
    json_t *cis = json_array();
    json_t *json = json_object();

    json_object_set_new(json, "profile",
                        profile < 0 ? json_null()
                                    : json_string(gpu->live->profiles[profile].name));
    json_object_set_new(json, "start",
                        gi->start == GPU_START_UNKNOWN ? json_null() : json_integer(gi->start));
    json_object_set_new(json, "size", json_integer(gi->size));
    json_object_set_new(json, "id", json_integer(gi->id));
    json_object_set_new(json, "memory_mib", json_integer(gi->memory_mib));
    for (int i = 0; i < gi->ci_count; i++)
        json_array_append_new(cis, ci_to_json(&gi->ci[i]));
    json_object_set_new(json, "compute_instances", cis);
    return json;
}

static json_t *profile_to_json(const struct mig_profile *profile)
{
    json_t *starts = json_array();
    json_t *json = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "name", profile->name, "profile_id",
        profile->profile_id, "slices", profile->compute_slices, "size", profile->placement_size,
        "max", profile->max_instances, "sm", profile->sm, "memory_mib", profile->memory_mib);

    for (int start = 0; start < 32; start++)
        if (profile->starts >> start & 1)
            json_array_append_new(starts, json_integer(start));
    json_object_set_new(json, "starts", starts);
    return json;
}

static json_t *processes_to_json(const struct gpu *gpu)
{
    json_t *list = json_array();

    if (gpu->processes_unknown.length) {
        json_decref(list);
        return json_null();
    }
    for (size_t i = 0; i < gpu->processes.items.count; i++) {
        const struct gpu_process *process = &gpu->processes.items.data[i];
        json_t *json =
            json_pack("{s:I, s:s}", "pid", (json_int_t)process->pid, "name", process->name);
        if (process->gi != GPU_NO_INSTANCE)
            json_object_set_new(json, "gpu_instance", json_integer(process->gi));
        if (process->ci != GPU_NO_INSTANCE)
            json_object_set_new(json, "compute_instance", json_integer(process->ci));
        json_array_append_new(list, json);
    }
    return list;
}

/* The members that only a GPU with MIG has. */
static void add_mig(const struct gpu *gpu, json_t *json)
{
    CLEANUP(str_done) struct str layout = STR_EMPTY;
    json_t *instances = json_array(), *profiles = json_array(), *differences = json_array();
    const char *line = gpu->live->differences.bytes;

    gpu_layout_format(&gpu->live->board, &gpu->layout, &layout);
    json_object_set_new(json, "mig_enabled", json_boolean(gpu->mode.current));
    json_object_set_new(json, "mig_pending", json_boolean(gpu->mode.pending));
    json_object_set_new(json, "layout", json_string(layout.bytes));
    for (int i = 0; i < gpu->instances.count; i++)
        json_array_append_new(instances, gi_to_json(gpu, &gpu->instances.gi[i]));
    json_object_set_new(json, "instances", instances);
    for (int i = 0; i < gpu->live->board.profile_count; i++)
        json_array_append_new(profiles, profile_to_json(&gpu->live->profiles[i]));
    json_object_set_new(json, "profiles", profiles);
    for (; *line; line += strcspn(line, "\n") + 1)
        json_array_append_new(differences, json_stringn(line, strcspn(line, "\n")));
    json_object_set_new(json, "differences", differences);
}

static json_t *gpu_to_json(const struct gpu *gpu)
{
    const struct gpu_identity *id = &gpu->identity;
    const struct mig_board *table = mig_board_by_pci(id->pci_device_id);
    char device_id[16];
    json_t *json = json_object();

    snprintf(device_id, sizeof device_id, "0x%08X", id->pci_device_id);
    json_object_set_new(json, "uuid", json_string(id->uuid));
    json_object_set_new(json, "pci", json_string(id->pci_bus_id));
    json_object_set_new(json, "index", json_integer(id->index));
    json_object_set_new(json, "name", json_string(id->name));
    json_object_set_new(json, "board", table ? json_string(table->slug) : json_null());
    json_object_set_new(json, "device_id", json_string(device_id));
    json_object_set_new(json, "memory_mib",
                        id->memory_bytes ? json_integer((json_int_t)(id->memory_bytes >> 20))
                                         : json_null());
    json_object_set_new(json, "mig_capable", json_boolean(id->mig_capable));
    if (gpu->live)
        add_mig(gpu, json);
    json_object_set_new(json, "processes", processes_to_json(gpu));
    return json;
}

json_t *gpu_inventory_to_json(const struct gpu_inventory *inventory)
{
    json_t *gpus = json_array();

    for (size_t i = 0; i < inventory->gpus.count; i++)
        json_array_append_new(gpus, gpu_to_json(&inventory->gpus.data[i]));
    return json_pack("{s:s, s:s, s:s, s:o}", "schema", "tranche.gpus/1", "driver",
                     inventory->driver_kind, "driver_version", inventory->driver_version,
                     "gpus", gpus);
}
