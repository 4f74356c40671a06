/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch queue event by event, written from the contract's words and nothing else: the
 * oracle of the queue tests and bench. Slow and plain on purpose.
 */
#ifndef TRANCHE_TESTS_PLAN_QUEUE_ORACLE_H
#define TRANCHE_TESTS_PLAN_QUEUE_ORACLE_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "plan/queue.h"

struct oracle_result {
    double late; /* share of requests over the limit */
    double mean_ms;
};

static inline double oracle_service_ms(const struct queue_server *server, int size)
{
    for (int i = 0; i < server->size_count; i++)
        if (server->batch[i] >= size)
            return server->latency_ms[i];
    abort();
}

enum { ORACLE_WAITING = 1 << 20 };

struct oracle {
    const struct queue_server *server;
    double max_wait_ms, limit_ms;
    double *waiting; /* ring of arrival times */
    long head, tail;
    double busy_until[QUEUE_PROCS_LIMIT];
    double late, total_ms;
    long served;
};

/* When the next batch could start, given what waits now; INFINITY when nothing does. */
static inline double oracle_next_start(const struct oracle *oracle, int *ret_process)
{
    int process = 0;
    for (int i = 1; i < oracle->server->procs; i++)
        if (oracle->busy_until[i] < oracle->busy_until[process])
            process = i;
    *ret_process = process;
    if (oracle->head == oracle->tail)
        return INFINITY;
    double ready = oracle->waiting[oracle->head % ORACLE_WAITING] + oracle->max_wait_ms;
    if (oracle->tail - oracle->head >= oracle->server->batch_max) {
        long last = oracle->head + oracle->server->batch_max - 1;
        double filled = oracle->waiting[last % ORACLE_WAITING];
        ready = filled < ready ? filled : ready;
    }
    return ready > oracle->busy_until[process] ? ready : oracle->busy_until[process];
}

static inline void oracle_start(struct oracle *oracle, double now, int process)
{
    long size = oracle->tail - oracle->head;
    if (size > oracle->server->batch_max)
        size = oracle->server->batch_max;
    double end = now + oracle_service_ms(oracle->server, (int)size);
    oracle->busy_until[process] = end;
    for (long i = 0; i < size; i++) {
        double took = end - oracle->waiting[oracle->head++ % ORACLE_WAITING];
        oracle->late += took > oracle->limit_ms;
        oracle->total_ms += took;
        oracle->served++;
    }
}

/* `requests` of a Poisson stream of rate_rps through the server. */
static inline struct oracle_result oracle_run(const struct queue_server *server,
                                              const struct queue_objective *objective,
                                              double rate_rps, long requests, uint64_t seed)
{
    struct rng rng = rng_seed(seed);
    struct oracle oracle = {.server = server,
                            .max_wait_ms = objective->max_wait_ms,
                            .limit_ms = objective->latency_ms,
                            .waiting = xcalloc(ORACLE_WAITING, sizeof(double))};
    double next = rng_exponential(&rng, 1000 / rate_rps);
    while (oracle.served < requests) {
        int process;
        double start = oracle_next_start(&oracle, &process);
        if (start < next) {
            oracle_start(&oracle, start, process);
            continue;
        }
        if (oracle.tail - oracle.head == ORACLE_WAITING)
            break; /* it grows without bound */
        oracle.waiting[oracle.tail++ % ORACLE_WAITING] = next;
        next += rng_exponential(&rng, 1000 / rate_rps);
    }
    free(oracle.waiting);
    double served = (double)(oracle.served ? oracle.served : 1);
    return (struct oracle_result){oracle.late / served, oracle.total_ms / served};
}

/* A random but plausible server and objective, for property tests. */
struct oracle_case {
    int batch[9];
    double latency_ms[9];
    struct queue_server server;
    struct queue_objective objective;
};

static inline void oracle_case_make(struct oracle_case *made, struct rng *rng, int procs_max)
{
    int sizes = 1 + (int)rng_below(rng, 6);
    double fixed = rng_uniform(rng, 1, 12), each = rng_uniform(rng, 0.1, 4);
    for (int i = 0; i < sizes; i++) {
        made->batch[i] = 1 << i;
        made->latency_ms[i] = fixed + each * made->batch[i] * rng_uniform(rng, 0.95, 1.05);
    }
    if (sizes > 2 && rng_below(rng, 3) == 0) { /* a gap between the measured batches */
        made->batch[1] = made->batch[sizes - 1];
        made->latency_ms[1] = made->latency_ms[sizes - 1];
        sizes = 2;
    }
    double longest = made->latency_ms[sizes - 1];
    double limit = longest * rng_uniform(rng, 1.5, 6);
    made->server = (struct queue_server){.procs = 1 + (int)rng_below(rng, (uint64_t)procs_max),
                                         .batch_max = made->batch[sizes - 1],
                                         .size_count = sizes,
                                         .batch = made->batch,
                                         .latency_ms = made->latency_ms};
    made->objective = (struct queue_objective){
        .percentile = 99,
        .latency_ms = limit,
        .max_wait_ms = rng_below(rng, 3) ? limit / 4 : limit * rng_uniform(rng, 0, 0.6)};
}

#endif
