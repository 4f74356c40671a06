/* SPDX-License-Identifier: Apache-2.0
 *
 * The single steps or requests of runs, as lines of JSON (docs/spec/results.md). A run holds
 * them, at most a number that was asked for, until it is written to the journal; then they
 * go to a file of their own.
 */
#ifndef TRANCHE_LOAD_EXPERIMENT_SAMPLES_H
#define TRANCHE_LOAD_EXPERIMENT_SAMPLES_H

#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"
#include "load/measure.h"
#include "load/open_loop.h"

/* Puts at most `most` of the samples into the run, evenly chosen from all; 0: none. `open` is
 * NULL for a closed loop. */
void run_samples_put(json_t *run, size_t most, const struct measure_result *result,
                     const struct open_loop_result *open);

struct sample_file {
    const char *path;
    int fd;       /* -1: not open */
    off_t length; /* of what belongs to runs of the journal */
};
/* Opens the file and cuts off what is behind `length`: samples of a run that did not come to
 * its end. */
int sample_file_open(struct sample_file *file, const char *path, off_t length,
                     struct error *err);
/* Takes the samples out of the run and appends them; file->length grows. Without an open file
 * they are dropped. */
int sample_file_move(struct sample_file *file, json_t *run, size_t cell, int repetition,
                     struct error *err);
/* Closes it; one that is not open is fine. */
void sample_file_close(struct sample_file *file);

#endif
