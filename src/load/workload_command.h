/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line and environment of a cell's processes. Private to this folder.
 */
#ifndef TRANCHE_LOAD_WORKLOAD_COMMAND_H
#define TRANCHE_LOAD_WORKLOAD_COMMAND_H

#include "load/measure.h"

enum { WORKLOAD_WORDS_MAX = 32, WORKLOAD_ENTRY_MAX = 64 };
#define WORKLOAD_SERVED_NAME "measured"

/* Owns its text; `command` points into it and into cell and settings. */
struct workload_command {
    struct slice_command command;
    const char *words[WORKLOAD_WORDS_MAX];
    size_t word_count;
    const char *environment[4];
    char batch[WORKLOAD_ENTRY_MAX], procs[WORKLOAD_ENTRY_MAX], threads[WORKLOAD_ENTRY_MAX],
        seed[WORKLOAD_ENTRY_MAX];
    char openmp[WORKLOAD_ENTRY_MAX], openblas[WORKLOAD_ENTRY_MAX];
};

/* This program again as a worker, or the user's own command. Threads: those asked for, else
 * the quota's cores, rounded up (more would only be throttled sooner). */
void workload_command_fill(struct workload_command *command, const struct measure_cell *cell,
                           const struct measure_settings *settings, double cpu_quota_cores);
/* This program as the model server for all the cell's processes, on a free port, waiting
 * for full batches of the model WORKLOAD_SERVED_NAME. */
void workload_command_fill_server(struct workload_command *command,
                                  const struct measure_cell *cell,
                                  const struct measure_settings *settings,
                                  double cpu_quota_cores);
/* One more word for the worker; nothing for a user's own command. */
void workload_command_add(struct workload_command *command, const char *word);

#endif
