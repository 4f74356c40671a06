/* SPDX-License-Identifier: Apache-2.0
 *
 * One cell under open-loop load: requests of one batch each, sent by a schedule.
 */
#ifndef TRANCHE_LOAD_MEASURE_OPEN_H
#define TRANCHE_LOAD_MEASURE_OPEN_H

#include "load/measure.h"
#include "load/open_loop.h"

/* Like measure_closed(): the result's latency is that of one batch without queueing, its
 * throughput what was completed in the window; *ret_open has latencies from the intended
 * send times and the counts (open_loop_result_done() it in any case). The verdict's rules
 * are in docs/spec/measuring.md. options->stop is that of the settings. */
int measure_open(const struct measure_cell *cell, const struct measure_settings *settings,
                 const struct open_loop_options *options, struct measure_result *ret_result,
                 struct open_loop_result *ret_open, struct error *err);

/* The verdict of an open loop's counts and lags alone. */
struct verdict open_loop_judge(const struct open_loop_result *open);

#endif
