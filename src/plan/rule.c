/* SPDX-License-Identifier: Apache-2.0
 *
 * `batch`: latency <= objective (MIG-serving, section 4). `half`: latency < 0.9 x
 * objective / 2 (ParvaGPU). `queue`: see queue.h. Training has no objective: any ok row
 * gives its throughput.
 */
#include "plan/rule.h"

#include <assert.h>
#include <math.h>

static const double TOLERANCE = 1e-9; /* the contract's, relative */

/* The measured latency that the service's percentile reads, or NAN. */
static double read_latency(const struct measurement *row, double percentile)
{
    int column = measurement_latency_column(row, percentile);
    return column < 0 ? NAN : row->latency_ms[column];
}

static bool fits_memory(const struct measurement *row)
{
    int usable_mib = row->board->profiles[row->profile].memory_mib;
    return usable_mib == MIG_UNKNOWN || !(row->memory_mib > usable_mib);
}

static bool is_sibling(const struct measurement *row, const struct measurement *other)
{
    return other->status == STATUS_OK && other->task == TASK_INFERENCE &&
           other->board == row->board && other->profile == row->profile &&
           other->procs == row->procs && other->batch <= row->batch;
}

/* Batch sizes up to the row's own with their latencies, sorted; returns how many. */
static int collect_sizes(const struct rule *rule, const struct rule_query *query, int *sizes,
                         double *latencies_ms)
{
    const struct measurement *row = &rule->rows->rows.data[query->row];
    int count = 0;
    for (int i = 0; i < query->sibling_count; i++) {
        const struct measurement *other = &rule->rows->rows.data[query->siblings[i]];
        double latency_ms = read_latency(other, query->service->percentile);
        if (!is_sibling(row, other) || isnan(latency_ms))
            continue;
        int at = count++;
        for (; at > 0 && sizes[at - 1] > other->batch; at--) {
            sizes[at] = sizes[at - 1];
            latencies_ms[at] = latencies_ms[at - 1];
        }
        sizes[at] = other->batch;
        latencies_ms[at] = latency_ms;
    }
    assert(count > 0 && sizes[count - 1] == row->batch);
    return count;
}

static struct rule_promise apply_queue(const struct rule *rule, const struct rule_query *query,
                                       double limit_rps)
{
    const struct measurement *row = &rule->rows->rows.data[query->row];
    const struct service *service = query->service;
    struct rule_promise promise = {.verdict = RULE_TOO_SLOW, .latency_ms = NAN};
    if (row->batch > QUEUE_BATCH_LIMIT || row->procs > QUEUE_PROCS_LIMIT)
        return promise;
    int *sizes = xcalloc((size_t)query->sibling_count, sizeof *sizes);
    double *latencies_ms = xcalloc((size_t)query->sibling_count, sizeof *latencies_ms);
    struct queue_server server = {
        .procs = row->procs,
        .batch_max = row->batch,
        .size_count = collect_sizes(rule, query, sizes, latencies_ms),
        .batch = sizes,
        .latency_ms = latencies_ms,
    };
    struct queue_objective objective = {.percentile = service->percentile,
                                        .latency_ms = service->latency_ms,
                                        .max_wait_ms = service->max_wait_ms};
    promise.rate_rps = queue_promise_rps(rule->queue, &server, &objective, limit_rps);
    if (promise.rate_rps > 0)
        promise.verdict = RULE_USABLE;
    double at_rps = promise.rate_rps > 0 ? promise.rate_rps : limit_rps * 1e-3;
    if (promise.rate_rps == 0 || promise.rate_rps >= query->enough_rps)
        promise.latency_ms = queue_latency_ms(rule->queue, &server, &objective, at_rps);
    free(sizes);
    free(latencies_ms);
    return promise;
}

static struct rule_promise apply_measured(const struct rule *rule,
                                          const struct rule_query *query, double latency_ms,
                                          double limit_rps)
{
    struct rule_promise promise = {.rate_rps = limit_rps, .latency_ms = latency_ms};
    double objective_ms = query->service->latency_ms;
    bool fast = rule->services->latency_rule == RULE_BATCH
                    ? latency_ms <= objective_ms * (1 + TOLERANCE)
                    : latency_ms < 0.9 * objective_ms / 2 * (1 - TOLERANCE);
    promise.verdict = fast ? RULE_USABLE : RULE_TOO_SLOW;
    return promise;
}

struct rule_promise rule_apply(const struct rule *rule, const struct rule_query *query)
{
    const struct measurement *row = &rule->rows->rows.data[query->row];
    struct rule_promise unmeasured = {.verdict = RULE_UNMEASURED, .latency_ms = NAN};
    struct rule_promise no_memory = {.verdict = RULE_OUT_OF_MEMORY, .latency_ms = NAN};
    if (row->task != query->service->task)
        return unmeasured;
    if (row->status != STATUS_OK)
        return row->status == STATUS_OOM ? no_memory : unmeasured;
    double latency_ms = read_latency(row, query->service->percentile);
    if (row->task == TASK_INFERENCE && isnan(latency_ms))
        return unmeasured;
    if (!fits_memory(row))
        return no_memory;
    double limit_rps = row->throughput_rps * rule->services->derate;
    if (row->task == TASK_TRAINING)
        return (struct rule_promise){
            .verdict = RULE_USABLE, .rate_rps = limit_rps, .latency_ms = NAN};
    if (rule->services->latency_rule != RULE_QUEUE)
        return apply_measured(rule, query, latency_ms, limit_rps);
    if (limit_rps <= query->enough_rps)
        return (struct rule_promise){.verdict = RULE_TOO_SLOW, .latency_ms = NAN};
    return apply_queue(rule, query, limit_rps);
}
