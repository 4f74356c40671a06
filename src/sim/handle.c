/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/handle.h"

#include <assert.h>

enum { GENERATIONS = 256, GI_SPACE = 16 };
enum {
    HANDLE_SPACE = SIM_GPUS_MAX * SIM_HANDLE_KIND_COUNT * GI_SPACE * SIM_CI_IDS * GENERATIONS
};

static_assert((int)SIM_GI_IDS <= (int)GI_SPACE, "ids fit");

static char space[HANDLE_SPACE]; /* addresses only; no page of it is ever touched */

void *sim_handle_make(const struct sim_handle *handle)
{
    assert(handle->gpu < SIM_GPUS_MAX && handle->gi < GI_SPACE && handle->ci < SIM_CI_IDS);
    size_t place = handle->gpu;
    place = place * SIM_HANDLE_KIND_COUNT + handle->kind;
    place = place * GI_SPACE + handle->gi;
    place = place * SIM_CI_IDS + handle->ci;
    place = place * GENERATIONS + handle->generation % GENERATIONS;
    return &space[place];
}

bool sim_handle_read(const void *pointer, struct sim_handle *ret_handle)
{
    uintptr_t place = (uintptr_t)pointer - (uintptr_t)space;
    if (place >= HANDLE_SPACE)
        return false;
    ret_handle->generation = (uint32_t)(place % GENERATIONS);
    place /= GENERATIONS;
    ret_handle->ci = (unsigned)(place % SIM_CI_IDS);
    place /= SIM_CI_IDS;
    ret_handle->gi = (unsigned)(place % GI_SPACE);
    place /= GI_SPACE;
    ret_handle->kind = (enum sim_handle_kind)(place % SIM_HANDLE_KIND_COUNT);
    ret_handle->gpu = (unsigned)(place / SIM_HANDLE_KIND_COUNT);
    return true;
}

/* The generation of what the handle names, or 0 when it is not there. */
static uint32_t generation_of(const struct sim_machine *machine,
                              const struct sim_handle *handle)
{
    if (handle->gpu >= machine->gpu_count || handle->gi >= SIM_GI_IDS)
        return 0;
    const struct sim_gi *gi = &machine->gpus[handle->gpu].gis[handle->gi];
    const struct sim_ci *ci = &gi->cis[handle->ci];
    switch (handle->kind) {
    case SIM_GI:
        return gi->used ? gi->generation : 0;
    case SIM_CI:
    case SIM_MIG_DEVICE:
        return gi->used && ci->used ? ci->generation : 0;
    case SIM_GPU:
    case SIM_HANDLE_KIND_COUNT:
        break;
    }
    return 0;
}

bool sim_handle_alive(const struct sim_machine *machine, const struct sim_handle *handle)
{
    if (handle->kind == SIM_GPU)
        return handle->gpu < machine->gpu_count;
    uint32_t generation = generation_of(machine, handle);
    return generation != 0 && generation % GENERATIONS == handle->generation;
}

struct sim_handle sim_handle_of(const struct sim_machine *machine, enum sim_handle_kind kind,
                                unsigned gpu, unsigned gi, unsigned ci)
{
    struct sim_handle handle = {.kind = kind, .gpu = gpu, .gi = gi, .ci = ci};
    handle.generation = generation_of(machine, &handle) % GENERATIONS;
    assert(sim_handle_alive(machine, &handle));
    return handle;
}
