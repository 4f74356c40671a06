/* SPDX-License-Identifier: Apache-2.0
 *
 * An experiment: the product of models, slices, batches, sequence lengths, process counts,
 * loads, tasks and ways of sharing a GPU, read from one YAML file (docs/spec/experiments.md),
 * as a list of cells.
 */
#ifndef TRANCHE_LOAD_EXPERIMENT_H
#define TRANCHE_LOAD_EXPERIMENT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"
#include "load/measure.h"

/* X(name, word, what it means) */
#define SHARING_MODES(X)                                                                       \
    X(WHOLE, "whole", "the GPU without MIG: the largest slice")                                \
    X(ALONE, "alone", "the slice alone, all other slices idle")                                \
    X(BUSY, "busy", "as many slices of this kind as fit, all running the same")                \
    X(NEIGHBOURS, "neighbours", "beside the slices of `neighbours:`, which run other work")    \
    X(MPS, "mps", "`procs` processes in one slice (CUDA: with MPS running)")                   \
    X(MPS_PERCENTAGE, "mps-percentage", "`procs` processes with an equal part of it each")     \
    X(TIME_SLICING, "time-slicing", "`procs` processes in one slice (CUDA: without MPS)")      \
    X(COMPUTE_INSTANCES, "compute-instances",                                                  \
      "several compute instances of one GPU instance (CUDA only)")                             \
    X(TRAINING_BESIDE, "training-beside", "while another slice of this kind trains")           \
    X(TRAINING_WITHIN, "training-within", "while another process in the slice trains")

enum sharing_mode {
#define X(name, word, meaning) SHARING_##name,
    SHARING_MODES(X)
#undef X
        SHARING_MODE_COUNT
};
/* The word of the file: "whole", "alone" … */
const char *sharing_mode_name(enum sharing_mode mode);

struct experiment_model {
    const char *name, *model, *shapes; /* shapes: NULL: guessed */
    const char **command;              /* an own workload, ended by NULL; or NULL */
};

/* Work in another slice. */
struct experiment_neighbour {
    struct experiment_model model;
    enum task task;
    int profile, batch;
};

struct experiment_cell {
    size_t model; /* index */
    int profile, batch, procs;
    int sequence;     /* 0: none */
    const char *load; /* "closed" or an arrivals_parse() text */
    enum task task;
    enum sharing_mode mode;
};

/* GPU or MIG UUIDs of one slice profile, for CUDA. */
struct experiment_devices {
    int profile;
    VEC(const char *) uuids;
};

struct experiment {
    struct arena arena; /* owns all text */
    const char *name, *question;
    const struct mig_board *board;
    VEC(struct experiment_model) models;
    VEC(struct experiment_neighbour) neighbours;
    VEC(struct experiment_devices) devices;
    VEC(struct experiment_cell) cells; /* in the order of the file */
    struct measure_settings settings;  /* without stop, reference, barrier */
    int repetitions;
    char sha256[72]; /* of the file's bytes */
};

/* E_INPUT FILE:LINE:COL for what is wrong; E_IO. */
int experiment_read(const char *path, struct experiment *ret_experiment, struct error *err);
/* The same from bytes; name is for messages. */
int experiment_parse(const char *name, const char *bytes, size_t length,
                     struct experiment *ret_experiment, struct error *err);
/* Frees the lists and all text. */
void experiment_done(struct experiment *experiment);

/* What identifies a cell in results. A new reference. */
json_t *experiment_cell_key(const struct experiment *experiment,
                            const struct experiment_cell *cell);
/* The model of a cell with its sequence length in it, in the arena. */
const char *experiment_cell_model(struct experiment *experiment,
                                  const struct experiment_cell *cell);
/* Seconds that all runs take, about: start, warm-up, window. */
double experiment_estimate_s(const struct experiment *experiment);

#endif
