/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/machine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/hash.h"
#include "sim/product.h"

size_t sim_machine_size(const struct sim_machine *machine)
{
    assert(machine->gpu_count <= SIM_GPUS_MAX);
    return offsetof(struct sim_machine, gpus) + machine->gpu_count * sizeof machine->gpus[0];
}

static void init_gpu(struct sim_gpu *gpu, const struct mig_board *board, unsigned index)
{
    snprintf(gpu->board, sizeof gpu->board, "%s", board->slug);
    gpu->ids_swapped = index % 2 == 1;
    gpu->power_limit_mw = sim_product_of(board).power_limit_mw;
}

int sim_machine_init(struct sim_machine *machine, const char *fleet_text, const char *seed,
                     struct error *err)
{
    struct mig_fleet fleet;
    int status = mig_fleet_parse(fleet_text, &fleet, err);
    if (status < 0)
        return status;
    if (strlen(fleet_text) >= sizeof machine->fleet || strlen(seed) >= sizeof machine->seed)
        return error_set(err, E_INPUT, "the fleet or the seed is too long");
    memset(machine, 0, sizeof *machine);
    snprintf(machine->fleet, sizeof machine->fleet, "%s", fleet_text);
    snprintf(machine->seed, sizeof machine->seed, "%s", seed);
    for (int e = 0; e < fleet.count; e++) {
        const struct mig_fleet_entry *entry = &fleet.entries[e];
        int room = SIM_GPUS_MAX - (int)machine->gpu_count;
        if (entry->count == MIG_FLEET_UNLIMITED || entry->count > room)
            return error_set(
                err, E_INPUT,
                "fleet '%s': one simulated machine has 1 to %d GPUs, a known number",
                fleet_text, SIM_GPUS_MAX);
        for (int i = 0; i < entry->count; i++) {
            init_gpu(&machine->gpus[machine->gpu_count], entry->board, machine->gpu_count);
            machine->gpu_count++;
        }
    }
    assert(sim_machine_valid(machine));
    return 0;
}

const struct mig_board *sim_gpu_board(const struct sim_gpu *gpu)
{
    return mig_board_find(gpu->board);
}

const struct mig_profile *sim_gi_profile(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    assert(gi->used);
    return &sim_gpu_board(gpu)->profiles[gi->profile];
}

const struct mig_ci_profile *sim_ci_profile(const struct sim_gpu *gpu, const struct sim_gi *gi,
                                            const struct sim_ci *ci)
{
    assert(ci->used);
    return sim_ci_profile_at(sim_gi_profile(gpu, gi), ci->profile);
}

int sim_ci_profile_count(const struct mig_profile *profile)
{
    return profile->ci_profile_count + (profile->group == MIG_GROUP_REV2);
}

const struct mig_ci_profile *sim_ci_profile_at(const struct mig_profile *profile, int index)
{
    static const struct mig_ci_profile narrow = {
        .compute_slices = 1, .profile_id = 0, .max_in_gi = 1, .is_default = false};
    assert(index >= 0 && index < sim_ci_profile_count(profile));
    return index < profile->ci_profile_count ? &profile->ci_profiles[index] : &narrow;
}

unsigned sim_profile_id(const struct mig_profile *profile)
{
    if (profile->profile_id >= 0)
        return (unsigned)profile->profile_id;
    return 128U + (unsigned)profile->nvml_enum;
}

int sim_profile_by_id(const struct mig_board *board, unsigned profile_id)
{
    for (int i = 0; i < board->profile_count; i++)
        if (board->has_mig && sim_profile_id(&board->profiles[i]) == profile_id)
            return i;
    return -1;
}

int sim_profile_by_enum(const struct mig_board *board, unsigned nvml_enum)
{
    for (int i = 0; i < board->profile_count; i++)
        if (board->has_mig && board->profiles[i].nvml_enum == (int)nvml_enum)
            return i;
    return -1;
}

void sim_gpu_layout(const struct sim_gpu *gpu, struct mig_layout *ret_layout)
{
    *ret_layout = (struct mig_layout){0};
    for (int id = 0; id < SIM_GI_IDS; id++) {
        const struct sim_gi *gi = &gpu->gis[id];
        if (!gi->used)
            continue;
        assert(ret_layout->count < MIG_INSTANCES_MAX);
        ret_layout->instances[ret_layout->count++] =
            (struct mig_instance){.profile = (int8_t)gi->profile, .start = (int8_t)gi->start};
    }
    mig_layout_sort(ret_layout);
}

int sim_gi_count(const struct sim_gpu *gpu)
{
    int count = 0;
    for (int id = 0; id < SIM_GI_IDS; id++)
        count += gpu->gis[id].used;
    return count;
}

int sim_ci_count(const struct sim_gi *gi)
{
    int count = 0;
    for (int id = 0; id < SIM_CI_IDS; id++)
        count += gi->cis[id].used;
    return count;
}

/* ---- GPU instances ---- */

/* The id follows the size class and the start: full 0, half 1-2, quarter 3-6, eighth 7-14;
 * on some boards the ids of the two halves are exchanged. */
static unsigned gi_id(const struct sim_gpu *gpu, const struct mig_profile *profile, int start)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    int parts = board->memory_units / profile->placement_size;
    assert(parts == 1 || parts == 2 || parts == 4 || parts == 8);
    int place = start * parts / board->memory_units;
    if (gpu->ids_swapped)
        place = (place + parts / 2) % parts;
    return (unsigned)(parts - 1 + place);
}

static int options_left(const struct mig_board *board, const struct mig_layout *layout)
{
    int options = 0;
    for (int p = 0; p < board->profile_count; p++)
        for (int start = 0; start < board->memory_units; start++)
            options += (board->profiles[p].starts >> start & 1) != 0 &&
                       mig_layout_can_add(board, layout,
                                          (struct mig_instance){(int8_t)p, (int8_t)start});
    return options;
}

int sim_driver_start(const struct sim_gpu *gpu, int profile)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    struct mig_layout layout;
    sim_gpu_layout(gpu, &layout);
    assert(profile >= 0 && profile < board->profile_count);
    int best = -1, best_options = -1;
    for (int start = 0; start < board->memory_units; start++) {
        struct mig_instance instance = {(int8_t)profile, (int8_t)start};
        if (!(board->profiles[profile].starts >> start & 1) ||
            !mig_layout_can_add(board, &layout, instance))
            continue;
        struct mig_layout with = layout;
        mig_layout_add(board, &with, instance);
        int options = options_left(board, &with);
        if (options > best_options) {
            best = start;
            best_options = options;
        }
    }
    return best;
}

unsigned sim_gi_capacity(const struct sim_gpu *gpu, int profile)
{
    /* Equal spans: taking the lowest free start each time packs the most. */
    const struct mig_board *board = sim_gpu_board(gpu);
    struct mig_layout layout;
    sim_gpu_layout(gpu, &layout);
    unsigned count = 0;
    assert(profile >= 0 && profile < board->profile_count);
    for (int start = 0; start < board->memory_units; start++) {
        struct mig_instance instance = {(int8_t)profile, (int8_t)start};
        if (!(board->profiles[profile].starts >> start & 1) ||
            !mig_layout_can_add(board, &layout, instance))
            continue;
        mig_layout_add(board, &layout, instance);
        count++;
    }
    return count;
}

/* Graphics engines: one a compute slice, handed out lowest free first inside the half. */
static uint8_t take_engines(const struct sim_gpu *gpu, const struct mig_profile *profile,
                            int start)
{
    const struct mig_board *board = sim_gpu_board(gpu);
    uint8_t taken = 0;
    for (int id = 0; id < SIM_GI_IDS; id++)
        taken |= gpu->gis[id].used ? gpu->gis[id].engines : 0;
    int first = start * 2 >= board->memory_units ? (board->compute_slices + 1) / 2 : 0;
    uint8_t engines = 0;
    int wanted = profile->compute_slices;
    for (int engine = first; engine < 8 && wanted > 0; engine++) {
        if (taken >> engine & 1)
            continue;
        engines |= (uint8_t)(1U << engine);
        wanted--;
    }
    return engines;
}

static void add_mig_event(struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci)
{
    assert(gpu < machine->gpu_count && (gi < SIM_GI_IDS || gi == NVML_NO_INSTANCE_ID));
    sim_add_event(
        machine,
        &(struct sim_event){.type = nvmlEventMigConfigChange, .gpu = gpu, .gi = gi, .ci = ci});
}

nvmlReturn_t sim_gi_create(struct sim_machine *machine, unsigned gpu_index, int profile_index,
                           int start, unsigned *ret_id)
{
    assert(gpu_index < machine->gpu_count);
    struct sim_gpu *gpu = &machine->gpus[gpu_index];
    const struct mig_board *board = sim_gpu_board(gpu);
    assert(profile_index >= 0 && profile_index < board->profile_count);
    const struct mig_profile *profile = &board->profiles[profile_index];
    if (!gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    if (start == MIG_START_ANY)
        start = sim_driver_start(gpu, profile_index);
    else if (start < 0 || start >= board->memory_units || !(profile->starts >> start & 1))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct mig_layout layout;
    sim_gpu_layout(gpu, &layout);
    if (start < 0 ||
        !mig_layout_can_add(board, &layout,
                            (struct mig_instance){(int8_t)profile_index, (int8_t)start}))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    unsigned id = gi_id(gpu, profile, start);
    assert(id < SIM_GI_IDS && !gpu->gis[id].used);
    gpu->gis[id] = (struct sim_gi){.used = true,
                                   .profile = (uint8_t)profile_index,
                                   .start = (uint8_t)start,
                                   .engines = take_engines(gpu, profile, start),
                                   .generation = ++gpu->generation};
    add_mig_event(machine, gpu_index, id, NVML_NO_INSTANCE_ID);
    *ret_id = id;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_gi_destroy(struct sim_machine *machine, unsigned gpu, unsigned id)
{
    struct sim_gi *gi = &machine->gpus[gpu].gis[id];
    assert(gi->used);
    if (sim_ci_count(gi) > 0 || sim_has_process(machine, gpu, id, NVML_NO_INSTANCE_ID))
        return NVML_ERROR_IN_USE;
    *gi = (struct sim_gi){0};
    add_mig_event(machine, gpu, id, NVML_NO_INSTANCE_ID);
    return NVML_SUCCESS;
}

/* ---- compute instances ---- */

static unsigned ci_slices_taken(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    assert(gi->used);
    unsigned taken = 0;
    for (int id = 0; id < SIM_CI_IDS; id++) {
        const struct sim_ci *ci = &gi->cis[id];
        if (ci->used)
            taken |= ((1U << sim_ci_profile(gpu, gi, ci)->compute_slices) - 1) << ci->start;
    }
    return taken;
}

static int ci_of_profile(const struct sim_gi *gi, int ci_profile)
{
    assert(gi->used && ci_profile >= 0);
    int count = 0;
    for (int id = 0; id < SIM_CI_IDS; id++)
        count += gi->cis[id].used && gi->cis[id].profile == ci_profile;
    return count;
}

static int lowest_free_span(unsigned taken, int slices, int width)
{
    assert(width > 0 && width <= slices);
    for (int start = 0; start + width <= slices; start++)
        if (!(taken & ((1U << width) - 1) << start))
            return start;
    return -1;
}

unsigned sim_ci_capacity(const struct sim_gpu *gpu, const struct sim_gi *gi, int ci_profile)
{
    const struct mig_profile *profile = sim_gi_profile(gpu, gi);
    const struct mig_ci_profile *wanted = sim_ci_profile_at(profile, ci_profile);
    unsigned taken = ci_slices_taken(gpu, gi);
    int room = wanted->max_in_gi - ci_of_profile(gi, ci_profile);
    unsigned count = 0;
    while ((int)count < room) {
        int start = lowest_free_span(taken, profile->compute_slices, wanted->compute_slices);
        if (start < 0)
            break;
        taken |= ((1U << wanted->compute_slices) - 1) << start;
        count++;
    }
    return count;
}

static int lowest_free_ci(const struct sim_gi *gi)
{
    for (int id = 0; id < SIM_CI_IDS; id++)
        if (!gi->cis[id].used)
            return id;
    return -1;
}

static uint8_t lowest_free_engine(const struct sim_gi *gi)
{
    uint8_t taken = 0;
    for (int id = 0; id < SIM_CI_IDS; id++)
        taken |= gi->cis[id].used ? (uint8_t)(1U << gi->cis[id].engine) : 0;
    for (uint8_t engine = 0; engine < 8; engine++)
        if (gi->engines & ~taken & 1U << engine)
            return engine;
    return 0;
}

nvmlReturn_t sim_ci_create(struct sim_machine *machine, unsigned gpu_index, unsigned gi_id_,
                           int ci_profile, int start, unsigned *ret_id)
{
    assert(gpu_index < machine->gpu_count && gi_id_ < SIM_GI_IDS);
    struct sim_gpu *gpu = &machine->gpus[gpu_index];
    struct sim_gi *gi = &gpu->gis[gi_id_];
    const struct mig_profile *profile = sim_gi_profile(gpu, gi);
    const struct mig_ci_profile *wanted = sim_ci_profile_at(profile, ci_profile);
    int width = wanted->compute_slices;
    unsigned taken = ci_slices_taken(gpu, gi);
    if (start == MIG_START_ANY)
        start = lowest_free_span(taken, profile->compute_slices, width);
    else if (start < 0 || start + width > profile->compute_slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    int id = lowest_free_ci(gi);
    if (start < 0 || id < 0 || taken & ((1U << width) - 1) << start ||
        ci_of_profile(gi, ci_profile) >= wanted->max_in_gi)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    uint8_t engine = lowest_free_engine(gi);
    gi->cis[id] = (struct sim_ci){.used = true,
                                  .profile = (uint8_t)ci_profile,
                                  .start = (uint8_t)start,
                                  .engine = engine,
                                  .generation = ++gpu->generation};
    add_mig_event(machine, gpu_index, gi_id_, (unsigned)id);
    *ret_id = (unsigned)id;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_ci_destroy(struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci)
{
    struct sim_ci *instance = &machine->gpus[gpu].gis[gi].cis[ci];
    assert(instance->used);
    if (sim_has_process(machine, gpu, gi, ci))
        return NVML_ERROR_IN_USE;
    *instance = (struct sim_ci){0};
    add_mig_event(machine, gpu, gi, ci);
    return NVML_SUCCESS;
}

bool sim_mig_device_at(const struct sim_gpu *gpu, unsigned index, unsigned *ret_gi,
                       unsigned *ret_ci)
{
    for (unsigned gi = 0; gi < SIM_GI_IDS; gi++)
        for (unsigned ci = 0; ci < SIM_CI_IDS; ci++) {
            if (!gpu->gis[gi].used || !gpu->gis[gi].cis[ci].used || index-- > 0)
                continue;
            *ret_gi = gi;
            *ret_ci = ci;
            return true;
        }
    return false;
}

/* ---- the mode ---- */

static void drop_instances(struct sim_gpu *gpu)
{
    memset(gpu->gis, 0, sizeof gpu->gis);
}

nvmlReturn_t sim_set_mig_mode(struct sim_machine *machine, unsigned index, bool enabled,
                              bool held, nvmlReturn_t *ret_activation)
{
    assert(index < machine->gpu_count);
    struct sim_gpu *gpu = &machine->gpus[index];
    const struct mig_board *board = sim_gpu_board(gpu);
    if (!board->has_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    bool busy = sim_has_process(machine, index, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID) ||
                sim_gi_count(gpu) > 0;
    *ret_activation = NVML_SUCCESS;
    if (gpu->mig_current == enabled) {
        gpu->mig_pending = enabled; /* takes back a pending change */
        return NVML_SUCCESS;
    }
    /* NVIDIA's DRA driver v0.4.1 takes the two results for one another, asks for this whenever
     * it destroys one of several instances, and gets by: so it is the call that fails. */
    if (!board->mode_change_needs_reset && sim_gi_count(gpu) > 0)
        return NVML_ERROR_IN_USE;
    if (board->mode_change_needs_reset) {
        gpu->mig_pending = enabled;
        if (gpu->reset_needed || busy || held)
            *ret_activation = gpu->reset_needed ? NVML_ERROR_RESET_REQUIRED : NVML_ERROR_IN_USE;
    } else if (busy) {
        *ret_activation = NVML_ERROR_IN_USE; /* the mode stays, nothing is pending */
    }
    if (*ret_activation == NVML_SUCCESS) {
        gpu->mig_current = gpu->mig_pending = enabled;
        add_mig_event(machine, index, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t sim_gpu_reset(struct sim_machine *machine, unsigned index, bool held)
{
    assert(index < machine->gpu_count);
    struct sim_gpu *gpu = &machine->gpus[index];
    if (held || sim_has_process(machine, index, NVML_NO_INSTANCE_ID, NVML_NO_INSTANCE_ID))
        return NVML_ERROR_IN_USE;
    if (gpu->reset_needed)
        return NVML_ERROR_NOT_SUPPORTED;
    drop_instances(gpu);
    gpu->mig_current = gpu->mig_pending;
    gpu->lost = false;
    memset(gpu->ecc_errors, 0, sizeof gpu->ecc_errors);
    return NVML_SUCCESS;
}

void sim_reboot(struct sim_machine *machine)
{
    machine->process_count = 0;
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        struct sim_gpu *gpu = &machine->gpus[i];
        drop_instances(gpu);
        if (!sim_gpu_board(gpu)->mode_persists_reboot)
            gpu->mig_pending = false;
        gpu->mig_current = gpu->mig_pending;
        gpu->lost = gpu->persistence = false;
        gpu->compute_mode = 0;
        gpu->energy_mj = 0; /* counted since the driver was loaded */
        memset(gpu->ecc_errors, 0, sizeof gpu->ecc_errors);
    }
}

/* ---- events and processes ---- */

void sim_add_event(struct sim_machine *machine, const struct sim_event *event)
{
    assert(event->gpu < machine->gpu_count);
    struct sim_event *slot = &machine->events[machine->event_count % SIM_EVENTS_MAX];
    *slot = *event;
    slot->sequence = ++machine->event_count;
}

bool sim_add_process(struct sim_machine *machine, const struct sim_process *process)
{
    assert(process->gpu < machine->gpu_count);
    if (machine->process_count == SIM_PROCESSES_MAX)
        return false;
    machine->processes[machine->process_count++] = *process;
    return true;
}

void sim_remove_process(struct sim_machine *machine, uint32_t pid)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < machine->process_count; i++)
        if (machine->processes[i].pid != pid)
            machine->processes[kept++] = machine->processes[i];
    machine->process_count = kept;
}

bool sim_has_process(const struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci)
{
    assert(gpu < machine->gpu_count && (gi < SIM_GI_IDS || gi == NVML_NO_INSTANCE_ID));
    for (uint32_t i = 0; i < machine->process_count; i++) {
        const struct sim_process *process = &machine->processes[i];
        if (process->gpu == gpu && (gi == NVML_NO_INSTANCE_ID || process->gi == gi) &&
            (ci == NVML_NO_INSTANCE_ID || process->ci == ci))
            return true;
    }
    return false;
}

/* ---- UUIDs ---- */

static void format_uuid(const char *prefix, uint64_t high, uint64_t low,
                        char ret[SIM_UUID_SIZE])
{
    high = (high & ~0xf000ULL) | 0x5000ULL;         /* version 5: from a hash */
    low = (low & ~(0xc0ULL << 56)) | 0x80ULL << 56; /* RFC 9562's variant */
    snprintf(ret, SIM_UUID_SIZE, "%s%08x-%04x-%04x-%04x-%012llx", prefix,
             (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
             (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffffULL));
}

static void hash_uuid(const char *prefix, const char *text, char ret[SIM_UUID_SIZE])
{
    format_uuid(prefix, sim_hash(text, strlen(text), 1), sim_hash(text, strlen(text), 2), ret);
}

void sim_gpu_uuid(const struct sim_machine *machine, unsigned gpu, char ret[SIM_UUID_SIZE])
{
    assert(gpu < machine->gpu_count);
    char text[256];
    snprintf(text, sizeof text, "%s/%s/%u", machine->seed, machine->gpus[gpu].board, gpu);
    hash_uuid("GPU-", text, ret);
}

void sim_mig_uuid(const struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci,
                  char ret[SIM_UUID_SIZE])
{
    const struct sim_ci *instance = &machine->gpus[gpu].gis[gi].cis[ci];
    assert(instance->used);
    char parent[SIM_UUID_SIZE], text[256];
    sim_gpu_uuid(machine, gpu, parent);
    snprintf(text, sizeof text, "%s/%u/%u", parent, gi, instance->engine);
    hash_uuid("MIG-", text, ret);
}

/* ---- what a file gave ---- */

static bool valid_gi(const struct mig_board *board, const struct sim_gi *gi)
{
    if (gi->profile >= board->profile_count || gi->start >= board->memory_units)
        return false;
    const struct mig_profile *profile = &board->profiles[gi->profile];
    unsigned taken = 0;
    for (int id = 0; id < SIM_CI_IDS; id++) {
        const struct sim_ci *ci = &gi->cis[id];
        if (!ci->used)
            continue;
        if (ci->profile >= sim_ci_profile_count(profile) || ci->engine >= 8)
            return false;
        int width = sim_ci_profile_at(profile, ci->profile)->compute_slices;
        if (ci->start + width > profile->compute_slices)
            return false;
        unsigned span = ((1U << width) - 1) << ci->start;
        if (taken & span)
            return false;
        taken |= span;
    }
    return true;
}

static bool valid_gpu(const struct sim_gpu *gpu)
{
    if (!memchr(gpu->board, 0, sizeof gpu->board))
        return false;
    const struct mig_board *board = sim_gpu_board(gpu);
    if (!board || (gpu->mig_current && !board->has_mig) ||
        sim_gi_count(gpu) > MIG_INSTANCES_MAX)
        return false;
    for (int id = 0; id < SIM_GI_IDS; id++)
        if (gpu->gis[id].used && (!gpu->mig_current || !valid_gi(board, &gpu->gis[id])))
            return false;
    struct mig_layout layout;
    sim_gpu_layout(gpu, &layout);
    return layout.count == 0 || mig_layout_check(board, &layout, NULL) == 0;
}

static bool valid_process(const struct sim_machine *machine, const struct sim_process *process)
{
    return process->gpu < machine->gpu_count && process->type < SIM_PROCESS_TYPE_COUNT &&
           (process->gi == NVML_NO_INSTANCE_ID || process->gi < SIM_GI_IDS) &&
           (process->ci == NVML_NO_INSTANCE_ID || process->ci < SIM_CI_IDS) &&
           memchr(process->name, 0, sizeof process->name) != NULL;
}

bool sim_machine_valid(const struct sim_machine *machine)
{
    if (machine->gpu_count > SIM_GPUS_MAX || machine->process_count > SIM_PROCESSES_MAX ||
        !memchr(machine->fleet, 0, sizeof machine->fleet) ||
        !memchr(machine->seed, 0, sizeof machine->seed))
        return false;
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        if (!valid_gpu(&machine->gpus[i]))
            return false;
    for (uint32_t i = 0; i < machine->process_count; i++)
        if (!valid_process(machine, &machine->processes[i]))
            return false;
    return true;
}
