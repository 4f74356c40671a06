/* SPDX-License-Identifier: Apache-2.0
 *
 * The stationary law of the batch queue, exact for one process, and for batches of one on
 * several: docs/spec/latency-rules.md derives what is computed here. queue_measure.h reads
 * percentiles and means off it.
 */
#ifndef TRANCHE_PLAN_QUEUE_CHAIN_H
#define TRANCHE_PLAN_QUEUE_CHAIN_H

#include <stddef.h>

#include "base/cleanup.h"
#include "plan/queue_case.h"
#include "plan/queue_poisson.h"

/* Batches of one service time, as the place where first requests of later batches arrive. */
struct queue_source {
    double service_ms;
    double mass;       /* share of the starts that left nobody waiting */
    const double *law; /* of starts with n > unit, see queue_chain_at(); NULL: none */
};

struct queue_chain {
    struct queue_case system;
    int unit;      /* what one start takes: b, or the number of processes when b is 1 */
    int top;       /* laws are stored for n <= top and geometric beyond */
    double ratio;  /* of the geometric tail */
    double *law;   /* share of starts that find n > unit waiting, index n */
    double *above; /* the same per start in each group, rows of top + 1 */
    double mass[QUEUE_GROUPS_MAX]; /* share of starts with n <= unit, by group */
    double *low;                   /* share of starts with n <= unit, index n */
    double requests_per_start;
    double *band;
    size_t law_capacity, above_capacity, low_capacity, band_capacity;
    struct poisson full; /* arrivals during a full batch */
    struct poisson scratch, ahead, behind;
};

/* Working memory without a system; never NULL; queue_chain_free() it. */
struct queue_chain *queue_chain_new(void);
void queue_chain_free(struct queue_chain *chain); /* NULL is fine */
CLEANUP_DEFINE_FREE(queue_chain)

/* Solves a system below saturation; procs == 1 or batch == 1. The groups are borrowed
 * until the next solve. */
void queue_chain_solve(struct queue_chain *chain, const struct queue_case *system);

/* A law at n > unit, its geometric tail included. */
double queue_chain_at(const struct queue_chain *chain, const double *law, int n);
/* Its sum over all n > unit. */
double queue_chain_sum(const struct queue_chain *chain, const double *law);

/* How often, per ms at t ms into the source's batch and per start, a request arrives that
 * finds `count` others waiting. One process. */
double queue_chain_arrivals(struct queue_chain *chain, const struct queue_source *source,
                            double t, int count);

/* Gauss-Legendre on one interval, for the integrals over arrival times. */
enum { QUEUE_NODES = 8 };
extern const double queue_node_at[QUEUE_NODES], queue_node_weight[QUEUE_NODES];

#endif
