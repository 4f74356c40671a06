/* SPDX-License-Identifier: Apache-2.0
 *
 * Repetitions of a measurement, and the reference that outputs are checked against.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats.h"
#include "load/child.h"
#include "load/measure.h"
#include "load/measure_served.h"
#include "load/workload_command.h"

enum { LISTEN_NS = 10000000 };

/* Puts the earlier repetitions' figures into the latest. */
static void merge(struct measure_result *latest, const struct measure_result *earlier)
{
    size_t count = earlier->repetitions_rps.count;
    double latest_rps = latest->throughput_rps;
    assert(earlier->repetitions_rps.count >= 1);
    hist_merge(latest->latency, earlier->latency);
    for (int i = 0; i < WORKLOAD_PHASE_COUNT; i++)
        if (latest->phases.times[i] && earlier->phases.times[i])
            hist_merge(latest->phases.times[i], earlier->phases.times[i]);
    latest->verdict.reasons |= earlier->verdict.reasons;
    vec_clear(&latest->repetitions_rps);
    for (size_t i = 0; i < count; i++)
        vec_add(&latest->repetitions_rps, earlier->repetitions_rps.data[i]);
    vec_add(&latest->repetitions_rps, latest_rps);
    latest->throughput_rps = stats_mean(latest->repetitions_rps.data, count + 1);
    double weight = 1.0 / (double)(count + 1); /* running means */
    latest->cpu_cores += (earlier->cpu_cores - latest->cpu_cores) * (1 - weight);
    latest->throttled_share +=
        (earlier->throttled_share - latest->throttled_share) * (1 - weight);
    if (earlier->memory_peak_bytes > latest->memory_peak_bytes)
        latest->memory_peak_bytes = earlier->memory_peak_bytes;
}

static int measure_once(const struct measure_cell *cell,
                        const struct measure_settings *settings,
                        struct measure_result *ret_result, struct error *err)
{
    return (settings->served ? measure_served : measure_closed)(cell, settings, ret_result,
                                                                err);
}

int measure_repeated(const struct measure_cell *cell, const struct measure_settings *settings,
                     int repetitions, struct measure_result *ret_result, struct error *err)
{
    assert(repetitions >= 1);
    int failure = measure_once(cell, settings, ret_result, err);
    for (int i = 1; i < repetitions && !failure && ret_result->status == STATUS_OK; i++) {
        struct measure_result latest;
        failure = measure_once(cell, settings, &latest, err);
        if (!failure && latest.status == STATUS_OK)
            merge(&latest, ret_result);
        measure_result_done(ret_result);
        *ret_result = latest;
    }
    return failure;
}

int measure_reference(const struct measure_cell *cell, const struct measure_settings *settings,
                      struct ready_event *ret_ready, bool *ret_found, struct error *err)
{
    CLEANUP(slice_free_ptr) struct slice *slice = NULL;
    CLEANUP(free_ptr) struct children *children = xcalloc(1, sizeof *children);
    CLEANUP(free_ptr) struct workload_command *command = xcalloc(1, sizeof *command);
    struct measure_settings on_cpu = *settings;
    *ret_found = false;
    if (settings->command || cell->task != TASK_INFERENCE)
        return 0;
    on_cpu.device = DEVICE_CPU_SLICE;
    int failure = slice_open(&(struct slice_options){0}, &slice, err);
    if (failure)
        return failure;
    workload_command_fill(command, cell, &on_cpu, 1);
    children->slice = slice;
    children->stop = settings->stop;
    children->ready_timeout_ns = children->silence_timeout_ns = settings->ready_timeout_ns;
    failure = children_start(children, &command->command, err);
    while (!failure && !children_are_ready(children))
        failure = children_listen(children, LISTEN_NS, err);
    const struct child *child = &children->list[0];
    if (!failure && child->state == CHILD_READY) {
        *ret_ready = child->ready;
        *ret_found = true;
    } else if (!failure && child->failure == FAILURE_INIT) {
        failure = error_set(err, E_MISSING, "%s", child->reason);
    }
    children_done(children);
    return failure;
}
