/* SPDX-License-Identifier: Apache-2.0
 *
 * A measurement under way: what closed and open loops share. Private to this folder.
 */
#ifndef TRANCHE_LOAD_MEASURE_INTERNAL_H
#define TRANCHE_LOAD_MEASURE_INTERNAL_H

#include "load/child.h"
#include "load/measure.h"

struct run {
    const struct measure_cell *cell;
    const struct measure_settings *settings;
    struct measure_result *result;
    struct children children;
    int64_t warm_steps[CHILDREN_MAX]; /* of each process so far */
    int64_t go_ns;
    bool measuring;
    struct slice_usage usage_at_start;
    int64_t cpu_first_ns, cpu_last_ns, cpu_steps; /* of the first process, in the window */
    struct gpu_driver gpu_driver;                 /* GPUs: closed when there is none */
    struct gpu_watch *gpu_watch;                  /* NULL: none */
    void *context;                                /* of the body */
};

/* Initialises the result, opens the slice, runs the body, ends the processes. */
int run_in_slice(struct run *run, int (*body)(struct run *run, struct error *err),
                 struct error *err);
/* Starts the processes of the cell; mode is one more word for the built-in worker. */
int run_start(struct run *run, const char *mode, struct error *err);
/* All ready, the quota in force, all told to go. 0 also when a child failed. */
int run_pass_barrier(struct run *run, struct error *err);
/* The window over which CPU time is read. */
void run_start_window(struct run *run);
/* Ends the window: throttling, CPU time and its length go to the result. */
void run_end_window(struct run *run);
/* After children_finish(). */
void run_add_up_memory(struct run *run);
/* The failure of a child as a status of the result, or as the end of the run. */
int run_judge_failure(struct run *run, const struct child *child, struct error *err);

#endif
