/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch queue with several processes, by replaying one fixed sequence of arrivals. The
 * same arrivals, scaled, serve every rate and every system, so that answers are smooth in
 * the rate, repeatable, and need no seed.
 */
#ifndef TRANCHE_PLAN_QUEUE_REPLAY_H
#define TRANCHE_PLAN_QUEUE_REPLAY_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "plan/queue_case.h"

struct queue_replay;
/* Working memory; arrivals are made when first asked for. Never NULL; queue_replay_free()
 * it. */
struct queue_replay *queue_replay_new(void);
void queue_replay_free(struct queue_replay *replay); /* NULL is fine */
CLEANUP_DEFINE_FREE(queue_replay)

/* The share of requests that take longer than limit_ms, or their mean time in ms. With
 * `coarse`, from an eighth of the arrivals. */
double queue_replay_measure(struct queue_replay *replay, const struct queue_case *system,
                            enum queue_measure measure, double limit_ms, bool coarse);

#endif
