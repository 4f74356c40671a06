/* SPDX-License-Identifier: Apache-2.0
 *
 * What slice.c and process.c share.
 */
#ifndef TRANCHE_SLICE_SLICE_INTERNAL_H
#define TRANCHE_SLICE_SLICE_INTERNAL_H

#include "slice/cgroup.h"
#include "slice/pacer.h"
#include "slice/slice.h"

enum { SLICE_PROCESSES_MAX = 64 };

struct slice {
    char *mig_uuid, *cgroup_root;
    double cpu_cores;
    int64_t period_ns;
    uint64_t memory_bytes;
    enum slice_method method;
    struct cgroup group; /* version 0: none */
    struct pacer *pacer; /* NULL: none */
    struct slice_process *processes[SLICE_PROCESSES_MAX];
    int process_count;
    int64_t reaped_cpu_ns; /* of processes that have ended */
};

/* CPU time of all processes of the slice, ended or not. */
int64_t processes_cpu_ns(const struct slice *slice);

#endif
