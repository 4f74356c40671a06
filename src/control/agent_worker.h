/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread in which the node agent calls the driver, so that the loop (watches, probes) goes
 * on while a call takes its time or hangs. One order at a time.
 */
#ifndef TRANCHE_CONTROL_AGENT_WORKER_H
#define TRANCHE_CONTROL_AGENT_WORKER_H

#include "control/agent_gpus.h"

struct agent_worker;

/* E_IO when no thread or descriptor can be had. */
int agent_worker_new(const struct agent_gpus_options *options, struct agent_worker **ret_worker,
                     struct error *err);
/* Waits for the order under way; set the options' stop before to make that short. */
void agent_worker_free(struct agent_worker *worker);
CLEANUP_DEFINE_FREE(agent_worker)

/* Readable when an order is done. */
int agent_worker_descriptor(const struct agent_worker *worker);
/* Whether an order is under way; one that is done and whose findings were not taken is none. */
bool agent_worker_is_busy(struct agent_worker *worker);
/* Hands an order over, with its memory; not while busy. */
void agent_worker_give(struct agent_worker *worker, const struct agent_order *order);
/* What came of the last order, once; the findings become the caller's. */
bool agent_worker_take(struct agent_worker *worker, struct agent_findings *ret_findings);

#endif
