/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning cases that the planner's benches share: the MIG-serving paper's figures with
 * random rates, drawn in whole GPUs so that every model needs about as many.
 */
#ifndef TRANCHE_BENCH_PLAN_CASE_H
#define TRANCHE_BENCH_PLAN_CASE_H

#include <stdint.h>

#include "base/str.h"
#include "format/measurement.h"

struct case_inputs {
    struct measurement_set rows;
    const char *models[64];
    int model_count;
    double best_rps[64]; /* of each model on the largest slice, within 100 ms */
    int threads;         /* that plan_case_time() plans with; 0: one */
};

/* Reads examples/paper/measurements.csv below $TRANCHE_SOURCE_ROOT (or the current
 * directory); exits 4 when it cannot. */
void case_inputs_read(struct case_inputs *inputs);
void case_inputs_done(struct case_inputs *inputs);

/* Adds rows for three more boards, derived from the A100's by made-up factors: what matters
 * is a mixed fleet, not its truth. */
void case_inputs_add_boards(struct case_inputs *inputs);

struct plan_case {
    const char *shape; /* normal, lognormal, mixed: four boards with prices and stock, or queue:
                        * normal under that rule, promises included */
    int services;
    double gpus_each; /* the mean demand of a service, in GPUs */
    uint64_t seed;
};

/* Appends the case as a services file. */
void plan_case_write(const struct case_inputs *inputs, const struct plan_case *drawn,
                     struct str *text);

/* Seconds that planning a services file from scratch takes, reading it not counted; exits 1
 * on an error. `plan` is the caller's to free. */
struct plan;
double plan_case_time(const struct case_inputs *inputs, const struct str *yaml,
                      struct plan *ret_plan);

/* The largest the process has been, MiB. */
double peak_memory_mib(void);

#endif
