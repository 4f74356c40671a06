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

/* A row as the queue rule sees it, with the memory of its sizes. */
struct queue_row {
    int *sizes;
    double *latencies_ms;
    struct queue_server server;
    struct queue_objective objective;
};

static void queue_row_done(struct queue_row *queue)
{
    free(queue->sizes);
    free(queue->latencies_ms);
}

static void queue_row_init(struct queue_row *queue, const struct rule *rule,
                           const struct rule_query *query)
{
    const struct measurement *row = &rule->rows->rows.data[query->row];
    const struct service *service = query->service;
    *queue = (struct queue_row){
        .sizes = xcalloc((size_t)query->sibling_count, sizeof *queue->sizes),
        .latencies_ms = xcalloc((size_t)query->sibling_count, sizeof *queue->latencies_ms)};
    queue->server = (struct queue_server){
        .procs = row->procs,
        .batch_max = row->batch,
        .size_count = collect_sizes(rule, query, queue->sizes, queue->latencies_ms),
        .batch = queue->sizes,
        .latency_ms = queue->latencies_ms,
    };
    queue->objective = (struct queue_objective){.percentile = service->percentile,
                                                .latency_ms = service->latency_ms,
                                                .max_wait_ms = service->max_wait_ms};
}

static bool is_beyond_queue(const struct measurement *row)
{
    return row->batch > QUEUE_BATCH_LIMIT || row->procs > QUEUE_PROCS_LIMIT;
}

static struct rule_promise apply_queue(const struct rule *rule, const struct rule_query *query,
                                       double limit_rps)
{
    struct rule_promise promise = {.verdict = RULE_TOO_SLOW, .latency_ms = NAN};
    if (is_beyond_queue(&rule->rows->rows.data[query->row]))
        return promise;
    struct queue_row queue;
    struct queue_wanted wanted = {.limit_rps = limit_rps, .least_rps = query->enough_rps};
    queue_row_init(&queue, rule, query);
    promise.rate_rps = queue_promise_rps(rule->queue, &queue.server, &queue.objective, &wanted);
    if (promise.rate_rps > 0)
        promise.verdict = RULE_USABLE;
    queue_row_done(&queue);
    return promise;
}

double rule_predict_ms(const struct rule *rule, const struct rule_query *query, double rate_rps)
{
    const struct measurement *row = &rule->rows->rows.data[query->row];
    assert(rule->services->latency_rule == RULE_QUEUE && row->task == TASK_INFERENCE);
    if (is_beyond_queue(row))
        return NAN;
    struct queue_row queue;
    queue_row_init(&queue, rule, query);
    double at_rps =
        rate_rps > 0 ? rate_rps : row->throughput_rps * rule->services->derate * 1e-3;
    double latency_ms = queue_latency_ms(rule->queue, &queue.server, &queue.objective, at_rps);
    queue_row_done(&queue);
    return latency_ms;
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
