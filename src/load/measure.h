/* SPDX-License-Identifier: Apache-2.0
 *
 * One measurement: a model on one slice at one batch and process count, closed loop (each
 * process runs one batch after the other). docs/spec/measuring.md has the rules.
 *
 * The processes load, all wait at a barrier, the quota comes into force, they start
 * together; steps before the end of the warm-up are dropped; the window lasts at least a
 * duration and holds at least a number of steps, up to a longest duration.
 */
#ifndef TRANCHE_LOAD_MEASURE_H
#define TRANCHE_LOAD_MEASURE_H

#include <signal.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"
#include "base/vec.h"
#include "format/measurement.h"
#include "load/child.h"
#include "load/gpu_watch.h"
#include "load/steady.h"
#include "load/verdict.h"
#include "load/workload_protocol.h"
#include "mig/board.h"
#include "slice/slice.h"

enum measure_device { DEVICE_CPU_SLICE, DEVICE_CUDA, DEVICE_TENSORRT, MEASURE_DEVICE_COUNT };

/* What to measure. */
struct measure_cell {
    const char *name;  /* of the model in results */
    const char *model; /* a file, or the text of a built-in model */
    enum task task;
    const struct mig_board *board;
    int profile; /* index into board->profiles */
    int batch, procs;
    const char *shapes; /* made_inputs_new(); NULL: guessed */
};

/* How to measure. */
struct measure_settings {
    enum measure_device device;
    const char *uuid;           /* of the MIG instance or GPU; NULL for a CPU slice */
    const char *ort_library;    /* NULL: searched for */
    const char *const *command; /* an own workload in place of the built-in; NULL ends */
    bool served;                /* by requests to a server in the slice: measure_served.h */
    int threads;                /* 0: the slice's cores, rounded up */
    double cpu_full_slice;      /* cores that stand for a whole GPU */
    int64_t period_ns;
    enum slice_method method;
    uint64_t memory_bytes; /* 0: the profile's memory */
    int64_t warmup_ns, duration_ns, longest_ns;
    int warmup_steps, min_steps; /* of each process; of all together */
    int64_t ready_timeout_ns, silence_timeout_ns;
    uint64_t seed;
    /* Outputs of the same model, batch and inputs outside any slice (measure_reference());
     * NULL: outputs are not checked. */
    const struct ready_event *reference;
    /* Called once when all processes are ready, before they are told to go; instances that are
     * to start together wait for each other in it. NULL: none. */
    void (*barrier)(void *context);
    void *barrier_context;
    /* Another workload in the same slice, running as long as the measured one: not counted.
     * NULL: none. */
    const struct measure_cell *companion;
    const volatile sig_atomic_t *stop; /* Ctrl-C; NULL: none */
};

struct measured_step {
    int64_t start_ns, duration_ns;
    int child;
};

struct measure_result {
    enum measurement_status status;
    char reason[PROTOCOL_TEXT_MAX];  /* when status is not ok */
    struct hist *latency;            /* of one step, in the window */
    struct phase_times phases;       /* of steps, as the workload times them */
    VEC(struct measured_step) steps; /* in the window, in order of arrival */
    int64_t window_start_ns, window_ns;
    double throughput_rps;     /* samples a second, all processes */
    double cpu_cores;          /* CPU time obtained a second */
    double cpu_quota_cores;    /* asked for; 0: none */
    double cpu_ns_per_step;    /* by the first process's own count; NAN: it does not say */
    double throttled_share;    /* of the window; NAN: unknown */
    int64_t memory_peak_bytes; /* sum of the processes; -1: unknown */
    struct ready_event ready;  /* of the first process */
    struct str how;            /* slice_describe() */
    enum slice_method method;
    struct gpu_figures gpu; /* of a GPU, of the last repetition; else all unknown */
    double first_losses[4]; /* training; NAN: none */
    struct steady_state steady;
    struct verdict verdict;      /* of an ok result */
    VEC(double) repetitions_rps; /* throughput of each repetition */
};

/* Fills *ret_result (measure_result_done() it in any case). 0 whenever there is something
 * to say in a row: ok, oom, unsupported, timeout or error with a reason. E_MISSING when
 * the workload cannot start at all (no such model, no runtime): measuring anything else of
 * that model is pointless. E_INTERRUPTED on Ctrl-C. */
int measure_closed(const struct measure_cell *cell, const struct measure_settings *settings,
                   struct measure_result *ret_result, struct error *err);
/* Frees histograms, steps and texts; a zeroed one is fine. */
void measure_result_done(struct measure_result *result);

/* The same several times, each with processes of its own. Throughput is the mean,
 * histograms are merged, the verdict has every reason of any; steps are those of the
 * last. The first that is not ok ends it. */
int measure_repeated(const struct measure_cell *cell, const struct measure_settings *settings,
                     int repetitions, struct measure_result *ret_result, struct error *err);

/* What the cell's model puts out for its batch and made-up inputs on the CPU, outside any
 * slice. Only of inference by the built-in workload: else, and when it fails there (no
 * memory, no such batch), *ret_found is false. */
int measure_reference(const struct measure_cell *cell, const struct measure_settings *settings,
                      struct ready_event *ret_ready, bool *ret_found, struct error *err);

/* The verdict of an ok result (judge.c has the rules); measure_closed() sets it. */
struct verdict measure_judge(const struct measure_cell *cell,
                             const struct measure_settings *settings,
                             const struct measure_result *result);

/* CPU quota in cores of a profile: its share of the board's compute slices (a board
 * without MIG: all) of cpu_full_slice. */
double measure_cpu_quota(const struct mig_board *board, int profile, double cpu_full_slice);
const char *measure_device_name(enum measure_device device); /* "cpu-slice", "cuda", … */

#endif
