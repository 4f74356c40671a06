/* SPDX-License-Identifier: Apache-2.0
 *
 * Spreading: relabels the slots of a solution so that the rate of a service that asks for
 * it survives the loss of any one GPU or node. Slots of one kind are alike, so relabelling
 * never changes cost or rates.
 */
#ifndef TRANCHE_PLAN_SPREAD_H
#define TRANCHE_PLAN_SPREAD_H

#include "plan/seats.h"

/* Relabels solution->gpus in place (items that must stay keep theirs); partly taken GPUs
 * must be among them. Nothing happens when no service asks for it. E_NO naming a service whose
 * rate would not survive. */
int spread_labels(const struct problem *problem, const struct seat *seats,
                  struct solution *solution, struct error *err);

#endif
