/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices that worked at the same time, as one run.
 */
#ifndef TRANCHE_LOAD_RESULT_SUM_H
#define TRANCHE_LOAD_RESULT_SUM_H

#include "base/json.h"

/* One run of result_document.h out of several of the same time: what adds up is added, what
 * each saw of the whole GPU is averaged (temperatures: the highest; lowest clocks: the lowest),
 * histograms are merged, every verdict reason of any counts, and the runs themselves stand
 * under "instances". A figure that one of them lacks is left out. The first run that is not ok
 * gives status and reason. Takes a list that is not empty; a new reference. */
json_t *result_runs_sum(json_t *runs);

#endif
