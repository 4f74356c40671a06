/* SPDX-License-Identifier: Apache-2.0
 *
 * What a machine's GPUs are and hold at one moment: identity, the live board, MIG mode,
 * instances, processes. Read through the driver seam; everything that plans a change works
 * on this value and touches no driver.
 */
#ifndef TRANCHE_GPU_INVENTORY_H
#define TRANCHE_GPU_INVENTORY_H

#include <jansson.h>

#include "base/str.h"
#include "base/vec.h"
#include "gpu/driver.h"
#include "gpu/gpu_layout.h"
#include "gpu/live_board.h"

struct gpu {
    struct gpu_identity identity;
    struct live_board *live; /* NULL: no MIG on this board or driver */
    struct gpu_mig_mode mode;
    struct gpu_gi_list instances; /* as the driver lists them */
    struct gpu_layout layout;     /* the same as a layout over live->board */
    struct gpu_process_list processes;
    struct str processes_unknown; /* why the list could not be read; empty: it was */
};

struct gpu_inventory {
    VEC(struct gpu) gpus; /* in NVML's order */
    char driver_version[GPU_TEXT_SIZE];
    const char *driver_kind;
};

/* Reads all GPUs. A GPU that cannot be read fails the whole: an inventory that leaves one out
 * would let a plan forget it. Only the process list may be unknown (no permission). */
int gpu_inventory_read(const struct gpu_driver *driver, struct gpu_inventory *ret_inventory,
                       struct error *err);
/* An inventory of this one GPU, whatever became of the others. */
int gpu_inventory_read_one(const struct gpu_driver *driver, const struct gpu_identity *identity,
                           struct gpu_inventory *ret_inventory, struct error *err);
/* Reads one GPU of the inventory again, after its mode changed. */
int gpu_inventory_refresh(const struct gpu_driver *driver, struct gpu *gpu, struct error *err);
/* Frees GPUs and live boards. */
void gpu_inventory_done(struct gpu_inventory *inventory);

/* The position of a GPU by UUID, by PCI bus id (any length of domain, any case) or by
 * NVML's index; E_INPUT listing the GPUs otherwise. */
int gpu_inventory_find(const struct gpu_inventory *inventory, const char *selector,
                       size_t *ret_index, struct error *err);

/* "GPU 1 (GPU-…, 00000000:07:00.0, NVIDIA A100-SXM4-40GB)": for messages. */
void gpu_describe(const struct gpu *gpu, struct str *text);
/* "pid 4242 (python) on GPU instance 3": for messages. */
void gpu_process_describe(const struct gpu_process *process, struct str *text);
/* Whether a process uses this GPU instance (ci GPU_NO_INSTANCE: any compute instance). */
bool gpu_instance_is_busy(const struct gpu *gpu, uint32_t gi, uint32_t ci);

/* The inventory as JSON, schema "tranche.gpus/1"; a new reference. */
json_t *gpu_inventory_to_json(const struct gpu_inventory *inventory);

#endif
