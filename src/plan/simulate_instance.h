/* SPDX-License-Identifier: Apache-2.0
 *
 * One instance of a simulated service: its waiting requests, processes and batches.
 */
#ifndef TRANCHE_PLAN_SIMULATE_INSTANCE_H
#define TRANCHE_PLAN_SIMULATE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

struct batch_size {
    int batch;
    double latency_ms;
};

struct simulated_instance {
    int batch, procs;
    double max_wait_ms;
    double weight;                /* promised rate */
    VEC(struct batch_size) sizes; /* rising; the last is >= batch */
    int busy;                     /* processes */
    double *waiting;              /* ring of arrival times, ms */
    size_t head, count, capacity;
    long outstanding; /* waiting and in service */
    long chosen_at;   /* number of the request that was routed here last */
    double busy_ms;   /* processes x time, for the share */
    long batches;
};

/* Frees the ring and the sizes. */
void simulated_instance_done(struct simulated_instance *instance);

/* A request arrives; it waits at the end of the ring. */
void simulated_instance_push(struct simulated_instance *instance, double arrival_ms);
/* Whether a batch starts now: a process is free, and the batch is full or its oldest request
 * has waited its time. */
bool simulated_instance_is_ready(const struct simulated_instance *instance, double now_ms);
/* When the oldest request's wait ends; INFINITY when none waits or no process is free. */
double simulated_instance_timer(const struct simulated_instance *instance);
/* Starts a batch: its size, and the arrival times of its requests in ret_arrivals (room for
 * `batch`). Returns how long it takes, ms. */
double simulated_instance_start(struct simulated_instance *instance, double *ret_arrivals,
                                int *ret_size);

#endif
