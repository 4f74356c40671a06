/* SPDX-License-Identifier: Apache-2.0
 *
 * From what is to what shall be, as ordered steps: a pure function of inventory and targets.
 *
 * An instance that is there with the right profile (and start, where one is asked for) is
 * kept and never touched; of all ways to keep, the one that keeps busy instances, then most
 * instances, then most memory is taken, in an order that does not change when part of the
 * steps has been done, so that a change cut short and planned again ends the same. Destroying
 * comes before creating; creation is with explicit placement, largest span first. GPUs are
 * changed one after another.
 */
#ifndef TRANCHE_GPU_CHANGE_H
#define TRANCHE_GPU_CHANGE_H

#include "gpu/inventory.h"
#include "gpu/target.h"

enum gpu_step_kind {
    GPU_STEP_DESTROY_CI,
    GPU_STEP_DESTROY_GI,
    GPU_STEP_ENABLE_MIG,
    GPU_STEP_DISABLE_MIG,
    GPU_STEP_CREATE_GI,
    GPU_STEP_CREATE_CI,
    GPU_STEP_KIND_COUNT
};

struct gpu_step {
    enum gpu_step_kind kind;
    size_t gpu;                   /* position in the inventory */
    struct mig_instance instance; /* the GPU instance; all but the mode steps */
    uint32_t gi;                  /* its id; GPU_NO_INSTANCE when a step before creates it */
    uint32_t ci;                  /* GPU_STEP_DESTROY_CI */
    int ci_slices;                /* width; the CI steps */
};

/* What a change does to one GPU that it names. */
struct gpu_effect {
    size_t gpu;
    bool mode_change;
    bool needs_reset;       /* by the board: the mode becomes active only with a GPU reset */
    bool enabled_and_empty; /* at some moment MIG is on without an instance (R10) */
    struct mig_layout keep, remove, create;
    int compute_changes;      /* compute instances made or destroyed inside kept instances */
    bool mig_enabled;         /* in the end */
    struct gpu_layout result; /* in the end, every start known */
};

struct gpu_change {
    VEC(struct gpu_step) steps;
    VEC(struct gpu_effect) effects; /* of every GPU with a target, changed or not */
};

/* E_NO when a target cannot be placed; E_BUSY naming every process that holds an instance
 * (or a GPU whose mode changes) which must go; E_IO when starts could not be read. */
int gpu_change_plan(const struct gpu_inventory *inventory,
                    const struct gpu_target_list *targets, struct gpu_change *ret_change,
                    struct error *err);
/* Frees steps and effects. */
void gpu_change_done(struct gpu_change *change);

/* Whether anything of this GPU changes: its mode, an instance, a compute instance. */
bool gpu_effect_disturbs(const struct gpu_effect *effect);

/* For people: which GPUs are disturbed and how, which stay; then the steps. */
void gpu_change_describe(const struct gpu_inventory *inventory, const struct gpu_change *change,
                         struct str *text);
/* "create 3g.20gb@4 on GPU 0 (GPU-…)": for messages and progress. */
void gpu_step_describe(const struct gpu_inventory *inventory, const struct gpu_step *step,
                       struct str *text);
/* {"gpus": […], "steps": […]}; a new reference. */
json_t *gpu_change_to_json(const struct gpu_inventory *inventory,
                           const struct gpu_change *change);

#endif
