/* SPDX-License-Identifier: Apache-2.0
 *
 * What one batch is worth to a figure, given the fate of its first request: the expected
 * number of its requests that are late, or the expected sum of their times.
 */
#ifndef TRANCHE_PLAN_QUEUE_VALUE_H
#define TRANCHE_PLAN_QUEUE_VALUE_H

#include "plan/queue_case.h"
#include "plan/queue_poisson.h"

struct queue_value {
    const struct queue_case *system;
    enum queue_measure measure;
    double limit_ms;       /* of QUEUE_LATE */
    double timer;          /* expected worth when the batch starts by its timer, unfilled */
    struct poisson behind; /* requests that came after the first */
    struct poisson late;   /* those of them that are late */
};

/* system is borrowed; memory in *value is reused. */
void queue_value_set(struct queue_value *value, const struct queue_case *system,
                     enum queue_measure measure, double limit_ms);
/* Frees the windows. */
void queue_value_done(struct queue_value *value);

/* The worth of a batch whose first request finds no process for another busy_ms (>= 0) and
 * nobody of its batch before it. */
double queue_value_of_batch(struct queue_value *value, double busy_ms);
/* What the worth grows by per ms of busy_ms where it is large. */
double queue_value_slope(const struct queue_value *value);
/* From this busy_ms on the worth is linear: the batch is full and, for QUEUE_LATE, wholly
 * late. */
double queue_value_linear(const struct queue_value *value);
/* Up to this busy_ms the worth is 0: none of the batch can be late yet; 0 for QUEUE_MEAN. */
double queue_value_zero(const struct queue_value *value);

#endif
