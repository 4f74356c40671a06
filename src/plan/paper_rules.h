/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitions that MIG-serving (arXiv 2109.11067) plans with, and how many GPU
 * configurations they make: its A100 under the driver of 2021, where a 4g and a 3g never
 * share a GPU. They are the multisets of the maximal physical layouts; 13 of them. (Two,
 * 3-2-1 and 3-1-1-1, lie inside others as multisets; `--rules paper` drops such, which
 * changes no plan.)
 */
#ifndef TRANCHE_PLAN_PAPER_RULES_H
#define TRANCHE_PLAN_PAPER_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/problem.h"

enum { PAPER_SIZES = 8, PAPER_MULTISETS_MAX = 64 };

/* Instances of each size in compute slices: counts[3] is how many 3g. */
struct paper_multiset {
    int counts[PAPER_SIZES];
};

/* The multisets of the maximal layouts of a board's base profiles under the rules, in the
 * order of first appearance; returns how many (at most PAPER_MULTISETS_MAX). */
size_t paper_multisets(const struct mig_board *board, enum plan_rules rules,
                       struct paper_multiset ret_multisets[PAPER_MULTISETS_MAX]);

/* How many configurations these multisets make of `services` services: the sum over
 * multisets of the product over sizes of C(services + k - 1, k). */
double paper_configuration_count(const struct paper_multiset *multisets, size_t count,
                                 int services);

#endif
