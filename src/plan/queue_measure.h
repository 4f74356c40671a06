/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of a solved queue_chain: integrals over the first requests of batches.
 */
#ifndef TRANCHE_PLAN_QUEUE_MEASURE_H
#define TRANCHE_PLAN_QUEUE_MEASURE_H

#include "plan/queue_chain.h"
#include "plan/queue_value.h"

/* The share of requests that take longer than limit_ms, or their mean time in ms (limit_ms
 * not read). `value` is working memory. */
double queue_measure(struct queue_chain *chain, struct queue_value *value,
                     enum queue_measure measure, double limit_ms);

#endif
