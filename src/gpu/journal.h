/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of a change under way: for each GPU what it held before and what it shall
 * hold, by UUID, with every start. Written before the first step, removed after the last, so
 * that a change cut short can be carried on or taken back from any point; which steps were
 * done is read from the driver, not from here. JSON, schema "tranche.gpu-journal/1".
 */
#ifndef TRANCHE_GPU_JOURNAL_H
#define TRANCHE_GPU_JOURNAL_H

#include "gpu/target.h"

struct gpu_journal_gpu {
    char uuid[GPU_TEXT_SIZE];
    bool mig_before, mig_target;
    bool keep_instances;
    char *before, *target; /* layout texts, owned */
};

struct gpu_journal {
    char *request; /* what was asked for, in one line, owned */
    VEC(struct gpu_journal_gpu) gpus;
};

enum gpu_journal_side { GPU_JOURNAL_BEFORE, GPU_JOURNAL_TARGET };

/* Records these targets; their starts must be known, except on a GPU whose mode changes. */
void gpu_journal_make(const struct gpu_inventory *inventory,
                      const struct gpu_target_list *targets, const char *request,
                      struct gpu_journal *ret_journal);
/* Frees the texts. */
void gpu_journal_done(struct gpu_journal *journal);

/* Appends the path of the journal in a state folder. */
void gpu_journal_path(const char *state_dir, struct str *path);
/* Writes the journal, whole or not at all, and syncs it to the disk. E_IO. */
int gpu_journal_write(const struct gpu_journal *journal, const char *path, struct error *err);
/* E_NOT_FOUND when there is none. */
int gpu_journal_read(const char *path, struct gpu_journal *ret_journal, struct error *err);

/* One side as targets on the machine as it is now. */
int gpu_journal_targets(const struct gpu_journal *journal, enum gpu_journal_side side,
                        const struct gpu_inventory *inventory,
                        struct gpu_target_list *ret_targets, struct error *err);

#endif
