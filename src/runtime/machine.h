/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of this machine as the runtime uses them: which of them carries out which GPU of
 * the plan, what each held when it was taken, instances made and removed through gpu_apply().
 */
#ifndef TRANCHE_RUNTIME_MACHINE_H
#define TRANCHE_RUNTIME_MACHINE_H

#include "base/error.h"
#include "base/vec.h"
#include "format/plan_document.h"
#include "gpu/driver.h"

struct machine_gpu {
    char *id; /* in the plan; NULL: taken, used by no plan now */
    char uuid[GPU_TEXT_SIZE];
    const struct mig_board *board; /* of our table */
    int number;                    /* names units; never changes */
    char *found;                   /* its line of a layout file, as it was; NULL: no MIG */
};

struct machine {
    enum gpu_driver_kind kind;
    struct gpu_driver driver;
    char *gpu_state_folder;
    VEC(struct machine_gpu) gpus;
};

/* Opens the driver: driver "nvml", "sim" or NULL (gpu_driver_kind_get()), library NULL:
 * searched for. No GPU is taken. E_MISSING, E_USAGE. */
int machine_open(struct machine *machine, const char *driver, const char *library,
                 struct error *err);
/* Closes the driver; what was taken stays as it is. */
void machine_done(struct machine *machine);

/* Index of the GPU that carries out `id`, or -1. */
int machine_find(const struct machine *machine, const char *id);
/* Takes a free GPU of this board for `id`: one that was taken before, else one of the machine
 * (that whose UUID is id, if any), preferring one without instances. Fills *ret_gpu. E_MISSING
 * when there is none. */
int machine_take(struct machine *machine, const char *id, const struct mig_board *board,
                 int *ret_gpu, struct error *err);
/* As the journal says it was. */
int machine_retake(struct machine *machine, const json_t *record, struct error *err);
/* The journal's record of a GPU that was taken, a new reference. */
json_t *machine_gpu_to_json(const struct machine_gpu *gpu);

/* Brings every GPU of the plan to its layout in one go; instances that are there stay. */
int machine_apply_plan(struct machine *machine, const struct plan *plan, struct error *err);
/* One instance more, or less; nothing where it is so already. */
int machine_change(struct machine *machine, int gpu, const char *slice, int start, bool create,
                   struct error *err);
/* Removes every instance of a GPU and turns MIG on. */
int machine_clear(struct machine *machine, int gpu, struct error *err);
/* Takes the ids away that this plan does not have. */
void machine_forget_ids(struct machine *machine, const struct plan *plan);
/* The MIG device of an instance (the GPU's UUID on a board without MIG). */
int machine_device(struct machine *machine, int gpu, const char *slice, int start,
                   char ret_uuid[GPU_TEXT_SIZE], struct error *err);
/* Carries on with a change of layouts that was cut short, if there is one. */
int machine_resume(struct machine *machine, struct error *err);
/* All taken GPUs to what they held. */
int machine_restore(struct machine *machine, struct error *err);

#endif
