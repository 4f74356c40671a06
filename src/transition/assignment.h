/* SPDX-License-Identifier: Apache-2.0
 *
 * The assignment problem: each row gets a column of its own so that the weights sum to the
 * most (Kuhn's Hungarian method in the O(rows² × columns) form with potentials).
 */
#ifndef TRANCHE_TRANSITION_ASSIGNMENT_H
#define TRANCHE_TRANSITION_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

/* weights[row × columns + column], |weight| < 2^50; rows <= columns. */
void assignment_maximise(size_t rows, size_t columns, const int64_t *weights,
                         int *ret_column_of_row);

#endif
