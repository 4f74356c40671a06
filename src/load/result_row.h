/* SPDX-License-Identifier: Apache-2.0
 *
 * A measured cell as a row of the contract's measurements, with columns of our own after
 * the contract's: how it was measured and what came of the slice.
 */
#ifndef TRANCHE_LOAD_RESULT_ROW_H
#define TRANCHE_LOAD_RESULT_ROW_H

#include "format/measurement.h"
#include "load/measure.h"
#include "load/open_loop.h"

/* Appends the row to the set, whose extra columns become ours if it is empty. A row with
 * the same key (model, board, slice, batch, procs, task) is replaced. Extra columns of rows
 * read from a file are kept. */
void result_row_add(struct measurement_set *set, const struct measure_cell *cell,
                    const struct measure_settings *settings,
                    const struct measure_result *result);

/* The same with the columns of an open loop: rates, latencies from the intended send time
 * (`e2e_ms_…`), waiting, send lag, counts. `schedule` is its text form. */
void result_row_add_open(struct measurement_set *set, const struct measure_cell *cell,
                         const struct measure_settings *settings,
                         const struct measure_result *result, const char *schedule,
                         const struct open_loop_result *open);

#endif
