/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML's handles. A handle is an address inside one never-touched array, so it is told from
 * any other pointer without being followed (and Go's garbage collector, which looks at it,
 * sees memory that is not its own). Its place says what it names: kind, GPU, instance ids
 * and the low bits of the instance's generation, so that the handle of a destroyed instance
 * is not taken for the next one of the same id.
 */
#ifndef TRANCHE_SIM_HANDLE_H
#define TRANCHE_SIM_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine.h"

enum sim_handle_kind { SIM_GPU, SIM_GI, SIM_CI, SIM_MIG_DEVICE, SIM_HANDLE_KIND_COUNT };

struct sim_handle {
    enum sim_handle_kind kind;
    unsigned gpu, gi, ci;
    uint32_t generation; /* of the instance, low bits */
};

/* The handle that stands for these numbers; never NULL. */
void *sim_handle_make(const struct sim_handle *handle);
/* False for a pointer that is no handle. */
bool sim_handle_read(const void *pointer, struct sim_handle *ret_handle);
/* Whether the handle's instance is still there (a GPU: always). */
bool sim_handle_alive(const struct sim_machine *machine, const struct sim_handle *handle);
/* The handle of an instance that is there. */
struct sim_handle sim_handle_of(const struct sim_machine *machine, enum sim_handle_kind kind,
                                unsigned gpu, unsigned gi, unsigned ci);

#endif
