/* SPDX-License-Identifier: Apache-2.0
 *
 * Several slices at work at the same time, a process of this program for each: a slice's
 * memory, crash and CUDA device are its own. All load, wait for each other, and start
 * together; background slices go on until the measured ones have ended, and a run counts
 * only when they all did.
 */
#ifndef TRANCHE_LOAD_INSTANCE_GROUP_H
#define TRANCHE_LOAD_INSTANCE_GROUP_H

#include "base/json.h"
#include "load/measure.h"

enum { GROUP_INSTANCES_MAX = 64 };

struct group_instance {
    struct measure_cell cell;
    struct measure_settings settings; /* barrier and stop are the group's */
    const char *load;                 /* "closed" or an arrivals_parse() text */
    int64_t timeout_ns;               /* of requests of an open loop */
    int mps_percentage;               /* CUDA: of the threads; 0: not set */
    size_t samples_max;               /* experiment_samples.h; 0: none */
    bool background;
};

/* Runs them once. *ret_run is a run of result_document.h: of one measured instance its
 * own, of several their sum (throughput added, histograms merged, every reason of any, and
 * the runs themselves under "instances"). Errors as measure_closed(); E_INTERRUPTED when
 * *stop was set. */
int group_run(const struct group_instance *instances, size_t count,
              const volatile sig_atomic_t *stop, json_t **ret_run, struct error *err);

#endif
