/* SPDX-License-Identifier: Apache-2.0
 *
 * A slice that processes are bound to, and the processes in it.
 *
 * On a GPU a slice is one MIG instance: the children see it alone, by CUDA_VISIBLE_DEVICES.
 * Without a GPU it is a share of CPU time, "cpu-slice (emulated)": it imitates a fraction
 * of compute and a cap on memory, not MIG's own cache and memory bandwidth, copy engines
 * or placement. The share is kept by the kernel where a control group may be made (version
 * 2 or 1), and else by stopping and continuing the children against their CPU clocks
 * (exact up to about 5/7 of a core; a share of a whole core or more is not paced at all).
 *
 * Nothing outlives its owner: children die with the thread that made them (PR_SET_PDEATHSIG),
 * a slice kills what is left in it and removes its group, and slice_open() removes groups
 * that a crashed run left behind.
 */
#ifndef TRANCHE_SLICE_SLICE_H
#define TRANCHE_SLICE_SLICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

enum slice_method {
    SLICE_AUTO,    /* the first of the next ones that can be had */
    SLICE_CGROUP2, /* cpu.max, memory.max */
    SLICE_CGROUP1, /* cpu.cfs_quota_us, memory.limit_in_bytes */
    SLICE_PACED,   /* SIGSTOP and SIGCONT; memory by RLIMIT_AS */
    SLICE_METHOD_COUNT
};

#define SLICE_PERIOD_NS_DEFAULT ((int64_t)100 * 1000000)

struct slice_options {
    const char *mig_uuid;  /* "MIG-…" or a GPU's UUID; NULL: a CPU slice */
    double cpu_cores;      /* share of CPU time in cores; 0 or less: all there are */
    int64_t period_ns;     /* of the quota; 0: SLICE_PERIOD_NS_DEFAULT. Longer is nearer to
                            * proportional throughput, shorter gives smoother latency */
    uint64_t memory_bytes; /* cap on host memory; 0: none */
    enum slice_method method;
    const char *cgroup_root; /* NULL: /sys/fs/cgroup; for tests */
};

struct slice;

/* E_UNSUPPORTED when the method asked for cannot be had here, or the quota is below what
 * the kernel takes (1 ms a period); both say what to do. The quota is not in force before
 * slice_limit(). */
int slice_open(const struct slice_options *options, struct slice **ret_slice,
               struct error *err);
/* Kills what is left, removes the group. NULL is fine. Its processes must be freed. */
void slice_free(struct slice *slice);
CLEANUP_DEFINE_FREE(slice)

/* Puts the CPU quota in force, or lifts it: loading a model is not part of a measurement,
 * and would take seven times as long in a seventh. Memory is capped all the time. */
int slice_limit(struct slice *slice, bool limited, struct error *err);

/* How the share is kept, never SLICE_AUTO. */
enum slice_method slice_method_used(const struct slice *slice);
/* "cpu-slice (emulated): 0.429 cores by cgroup v1 quota, period 100 ms" or "cuda: MIG-…". */
void slice_describe(const struct slice *slice, struct str *text);
/* "auto", "cgroup2", "cgroup1", "paced"; static. */
const char *slice_method_name(enum slice_method method);

struct slice_usage {
    int64_t cpu_ns;            /* of everything that ran in the slice */
    int64_t throttled_ns;      /* time held back by the quota; -1: unknown */
    int64_t periods;           /* enforcement periods that passed; -1: unknown */
    int64_t throttled_periods; /* -1: unknown */
    bool oom_killed;           /* the kernel killed a member for its memory */
};
/* What the processes of the slice have used so far. */
void slice_read_usage(struct slice *slice, struct slice_usage *ret_usage);

struct slice_process {
    pid_t pid;
    int stdin_fd, stdout_fd, stderr_fd; /* our ends of pipes; -1 when closed */
    bool reaped;
    int wait_status;         /* as waitpid(), when reaped */
    int64_t memory_peak_kib; /* largest resident set, when reaped */
    struct slice *slice;
};

struct slice_command {
    const char *const *words;       /* program (searched in PATH) and arguments, NULL ends */
    const char *const *environment; /* "NAME=value" to add or replace, NULL ends; or NULL */
};

/* Starts a child that joins the slice before it runs. E_MISSING when the program cannot be
 * started, E_IO when the slice cannot be joined. */
int slice_spawn(struct slice *slice, const struct slice_command *command,
                struct slice_process **ret_process, struct error *err);
/* Whether it has ended by deadline_ns (CLOCK_MONOTONIC; 0: do not wait); reaps it then. */
bool slice_process_wait(struct slice_process *process, int64_t deadline_ns);
/* Sends a signal to the child and its descendants that share its process group. */
void slice_process_signal(struct slice_process *process, int signal_number);
/* Closes the pipes, kills and reaps. NULL is fine. */
void slice_process_free(struct slice_process *process);
CLEANUP_DEFINE_FREE(slice_process)

#endif
