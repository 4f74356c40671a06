/* SPDX-License-Identifier: Apache-2.0
 *
 * What a machine's GPUs shall be: a request (a config, a layout, a mode, or a record of
 * layouts) turned into one target for each GPU that it names, with the live profile names,
 * and back: what they are, as a config. GPUs that no target names are not touched.
 *
 * Lint happens here, before anything is done: unknown profile for this board (nearest
 * names, and a board that has it), index out of range, MIG asked of a board without it, two
 * entries for one GPU, a layout that cannot be placed (the clash named).
 */
#ifndef TRANCHE_GPU_TARGET_H
#define TRANCHE_GPU_TARGET_H

#include "gpu/inventory.h"
#include "gpu/mig_config.h"

struct gpu_target {
    size_t gpu; /* position in the inventory */
    bool mig_enabled;
    bool keep_instances;      /* the mode alone: whatever instances there are may stay */
    struct gpu_layout layout; /* starts may be open (MIG_START_ANY) */
};

struct gpu_target_list {
    VEC(struct gpu_target) items; /* ascending gpu */
    struct str notes; /* lines for the user: names that a driver or table calls otherwise, … */
};

/* An empty list; gpu_target_list_done() frees it. */
void gpu_target_list_init(struct gpu_target_list *list);
/* Frees the list. */
void gpu_target_list_done(struct gpu_target_list *list);

/* Adds a target; a GPU that has one already is E_INPUT unless both are the same. */
int gpu_target_add(const struct gpu_inventory *inventory, struct gpu_target_list *list,
                   const struct gpu_target *target, struct error *err);

/* Targets of a config. E_INPUT or E_NO (impossible layout) with the config's FILE:LINE:COL. */
int gpu_targets_from_config(const struct gpu_inventory *inventory,
                            const struct mig_config_file *file, const struct mig_config *config,
                            struct gpu_target_list *ret_list, struct error *err);
/* One layout text for each of these GPUs, MIG on. */
int gpu_targets_from_layout(const struct gpu_inventory *inventory, const size_t *gpus,
                            size_t count, const char *layout, struct gpu_target_list *ret_list,
                            struct error *err);
/* A layout file: lines `GPU: LAYOUT` (GPU by UUID, PCI id or index), `GPU: off` for MIG
 * disabled; # starts a comment. E_INPUT, E_NO with NAME:LINE. */
int gpu_targets_from_layout_file(const struct gpu_inventory *inventory, const char *name,
                                 const char *text, struct gpu_target_list *ret_list,
                                 struct error *err);

/* E_NO naming the clash when a target's layout cannot be placed on the empty GPU. */
int gpu_target_check(const struct gpu_inventory *inventory, const struct gpu_target *target,
                     struct error *err);

/* Appends one line for each difference between the machine and the targets; their number. */
size_t gpu_targets_compare(const struct gpu_inventory *inventory,
                           const struct gpu_target_list *list, struct str *differences);

/* The machine as a config of this name, equal GPUs merged as mig-parted export does. The
 * instances' starts are lost in this format. */
void gpu_export_config(const struct gpu_inventory *inventory, const char *name,
                       struct mig_config_file *ret_file);
/* The machine as a layout file, starts kept. */
void gpu_export_layouts(const struct gpu_inventory *inventory, struct str *text);

#endif
