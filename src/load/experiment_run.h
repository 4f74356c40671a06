/* SPDX-License-Identifier: Apache-2.0
 *
 * Running an experiment: repetition after repetition, the cells of each in random order, so
 * that what drifts with time does not look like a difference between cells. Each finished
 * run is a line of the journal before the next begins; runs that are in the journal are not
 * done again.
 */
#ifndef TRANCHE_LOAD_EXPERIMENT_RUN_H
#define TRANCHE_LOAD_EXPERIMENT_RUN_H

#include "load/experiment.h"

struct experiment_options {
    const char *journal; /* a file, made when it is not there */
    const char *ort_library;
    const char *samples; /* a file for samples; NULL: none */
    size_t samples_max;  /* of each instance of a run, evenly chosen */
    bool check_outputs;
    const volatile sig_atomic_t *stop;
    /* Before each run; seconds left about. NULL: not told. */
    void (*progress)(void *context, const char *cell, size_t done, size_t total, double left_s);
    void *context;
};

/* Runs what the journal lacks and adds every run to the document, in the order of the file.
 * E_INTERRUPTED when told to stop (finished runs are in journal and document); E_INPUT when
 * the journal is of another experiment; E_BUSY when another process is writing it. */
int experiment_run(struct experiment *experiment, const struct experiment_options *options,
                   json_t *document, struct error *err);

/* How many of all runs the journal already has; E_INPUT as above. */
int experiment_finished(const struct experiment *experiment, const char *journal,
                        size_t *ret_finished, struct error *err);

#endif
