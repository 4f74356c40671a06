/* SPDX-License-Identifier: Apache-2.0
 *
 * The patterns of a GPU: which multisets of slots it can hold at once, as counts over the
 * problem's slot kinds; only those that no other contains.
 */
#ifndef TRANCHE_PLAN_PATTERNS_H
#define TRANCHE_PLAN_PATTERNS_H

#include "plan/problem.h"

/* Fills kind->patterns and pattern_count from kind->board, kind->taken and the problem's
 * slots and rules; memory is of the problem's arena. A GPU without room for any slot gets
 * none. */
void patterns_build(struct problem *problem, struct problem_kind *kind);

#endif
