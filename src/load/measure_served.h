/* SPDX-License-Identifier: Apache-2.0
 *
 * A cell measured as its users see it: `tranche serve` runs in the slice, and requests of
 * one sample each come from outside it over HTTP, `batch` × `procs` of them in flight. What
 * the server does for a request (HTTP, tensors, batching) then takes from the slice as it
 * does when it serves.
 */
#ifndef TRANCHE_LOAD_MEASURE_SERVED_H
#define TRANCHE_LOAD_MEASURE_SERVED_H

#include "load/measure.h"

/* As measure_closed(): latency is the time from sending a request of a full batch to the
 * end of its answer, nothing waiting before it. E_USAGE unless the cell is inference of an
 * ONNX file by the built-in workload. */
int measure_served(const struct measure_cell *cell, const struct measure_settings *settings,
                   struct measure_result *ret_result, struct error *err);

#endif
