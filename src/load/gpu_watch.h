/* SPDX-License-Identifier: Apache-2.0
 *
 * What a GPU does while a slice of it is measured: a thread samples gpu/metrics.h between
 * start and stop. Power, energy and clocks exist for the whole GPU only; the part of one
 * slice is an estimate and is named so (docs/spec/measuring.md).
 */
#ifndef TRANCHE_LOAD_GPU_WATCH_H
#define TRANCHE_LOAD_GPU_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gpu/driver.h"
#include "gpu/metrics.h"

enum { GPU_WATCH_PERIOD_MS = 200 };

/* NAN: unknown. */
struct gpu_figures {
    int samples;
    double window_s;              /* from the first sample to the last */
    double memory_mib;            /* the most that the instance (else the GPU) used */
    double activity;              /* graphics engine of the instance (else the GPU), 0 … 1 */
    double power_w, power_idle_w; /* GPU: mean; before the workload, when nobody used it */
    double energy_j;              /* GPU, over the window */
    double energy_above_idle_j;   /* less idle power × window */
    double energy_slice_estimate_j; /* the slice's part of it, by slice_rule */
    double sm_clock_mhz, sm_clock_mhz_min, memory_clock_mhz; /* GPU: mean, least, mean */
    double temperature_c_max;
    uint64_t clock_reasons;          /* every bit seen */
    bool throttled;                  /* slowed down in more than a tenth of the samples */
    const char *slice_rule;          /* of power_rule_name(); static; NULL: no estimate */
    char reason[METRIC_REASON_SIZE]; /* why there is nothing; "" when there is */
};
/* All unknown, no samples, no reason. */
void gpu_figures_clear(struct gpu_figures *figures);

struct gpu_watch;
/* Watches the GPU or MIG instance with this UUID; NULL: the machine's only GPU. The driver is
 * borrowed. Idle power is read here, if no process is on the GPU. E_MISSING: no such UUID. */
int gpu_watch_new(const struct gpu_driver *driver, const char *uuid,
                  struct gpu_watch **ret_watch, struct error *err);
/* Takes the first sample and starts the thread. E_IO. */
int gpu_watch_start(struct gpu_watch *watch, struct error *err);
/* Takes the last sample, ends the thread and sums up. Also without start. */
void gpu_watch_stop(struct gpu_watch *watch, struct gpu_figures *ret_figures);
void gpu_watch_free(struct gpu_watch *watch); /* stops; NULL is fine */
CLEANUP_DEFINE_FREE(gpu_watch)

#endif
