/* SPDX-License-Identifier: Apache-2.0
 *
 * A result document in the forms that other tools read.
 */
#ifndef TRANCHE_LOAD_RESULT_EXPORT_H
#define TRANCHE_LOAD_RESULT_EXPORT_H

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "format/measurement.h"

/* The contract's measurements: a row for each closed-loop cell of a slice by itself (mode
 * alone, mps or time-slicing), means over its valid runs; cells that failed have
 * their status. E_INPUT when the document is not an experiment's. */
int result_export_measurements(const json_t *document, struct measurement_set *ret_set,
                               struct error *err);
/* MIGPerf's columns, one row a cell: model_name, batch_size, seq_length, latency … */
void result_export_migperf(const json_t *document, struct str *text);
/* A summary for each cell in MLPerf LoadGen's form (not an MLPerf result). */
void result_export_mlperf(const json_t *document, struct str *text);
/* Prometheus text format, gauges labelled with the key of their cell. */
void result_export_prometheus(const json_t *document, struct str *text);
/* One line of JSON for each run: its key, number, status, verdict and figures. */
void result_export_lines(const json_t *document, struct str *text);

#endif
