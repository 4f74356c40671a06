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
/* The same for all services whatever fails; *ret_largest_rps (one a service, may be NULL)
 * gets the most that one GPU or node has of each service whose rate would not survive, 0 for
 * the others. False when there is one. */
bool spread_try(const struct problem *problem, const struct seat *seats,
                struct solution *solution, double *ret_largest_rps);
/* Whether any service that is not dropped asks to be spread. */
bool spread_is_asked(const struct problem *problem);

#endif
