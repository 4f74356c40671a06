/* SPDX-License-Identifier: Apache-2.0
 *
 * One control group of ours, version 2 or 1. Private to this folder.
 *
 * Groups are named tranche-PID-START-N after the process that made them (START: its start
 * time in clock ticks), so that those of a crashed run can be told and removed.
 */
#ifndef TRANCHE_SLICE_CGROUP_H
#define TRANCHE_SLICE_CGROUP_H

#include "base/error.h"
#include "slice/slice.h"

enum { CGROUP_FOLDERS_MAX = 3 };

struct cgroup {
    int version;                       /* 2 or 1; 0: none */
    char *folders[CGROUP_FOLDERS_MAX]; /* version 2: one; version 1: cpu, cpuacct, memory */
    bool has_memory;                   /* whether memory can be capped and read here */
};

enum cgroup_folder { CGROUP_CPU, CGROUP_CPUACCT, CGROUP_MEMORY };

/* Makes a group below root. E_UNSUPPORTED when this version is not there or may not be
 * written. */
int cgroup_create(const char *root, int version, struct cgroup *ret_group, struct error *err);
/* Kills every member and removes the folders. */
void cgroup_remove(struct cgroup *group);
/* cores <= 0 lifts the limit. The quota (cores × period) must be at least 1 ms. */
int cgroup_limit_cpu(const struct cgroup *group, double cores, int64_t period_ns,
                     struct error *err);
/* Processes beyond this many bytes are ended by the kernel. E_IO, E_UNSUPPORTED. */
int cgroup_limit_memory(const struct cgroup *group, uint64_t bytes, struct error *err);
/* What the processes of the group have used so far. */
void cgroup_read_usage(const struct cgroup *group, struct slice_usage *ret_usage);
/* The folder of a controller (version 2 has one for all). */
const char *cgroup_folder(const struct cgroup *group, enum cgroup_folder which);
/* Removes groups whose maker is gone. */
void cgroup_sweep(const char *root, int version);

#endif
