/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in workload: this program run again as `tranche worker`, one process a slice,
 * running a model in ONNX Runtime and speaking the protocol of workload_protocol.h.
 *
 * It loads the model, runs it once, says ready, waits for "go" on standard input, then
 * runs step after step until SIGTERM, the end of standard input, or a number of steps.
 * Each line of standard input after that is a request of an open-loop run (worker.c).
 */
#ifndef TRANCHE_LOAD_WORKER_H
#define TRANCHE_LOAD_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct worker_options {
    const char *model;               /* a file or a built-in model's text */
    const char *task;                /* "inference" or "training" */
    const char *provider;            /* "cpu", "cuda", "tensorrt" */
    const char *ort_library;         /* NULL: searched for */
    const char *shapes;              /* made_inputs_new() */
    long long batch, threads, steps; /* steps 0: until told to stop */
    long long seed;
    const char *checkpoint; /* training: written at the end and now and then; NULL: none */
    const char *resume;     /* training: go on from this checkpoint, if it fits; NULL: none */
    double checkpoint_every_s;
    bool requests; /* open loop: run one step for each line of standard input */
};

/* Runs to the end; events go to standard output. The exit status: 0, 2 when it cannot
 * start, 3 when it failed while running (errors have then been said as events). */
int worker_main(const struct worker_options *options);

#endif
