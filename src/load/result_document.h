/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a run as one JSON document, "tranche.result/1" (docs/spec/results.md):
 * where it comes from, and for each cell its repetitions with verdict, figures and
 * histograms, and their means with confidence intervals.
 */
#ifndef TRANCHE_LOAD_RESULT_DOCUMENT_H
#define TRANCHE_LOAD_RESULT_DOCUMENT_H

#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/map.h"
#include "load/gpu_watch.h"
#include "load/verdict.h"

#define RESULT_SCHEMA "tranche.result/1"

/* A document without cells; kind is "http", "experiment" …; seed as given. Version, command
 * line, host and time are found out here. A new reference. */
json_t *result_document_new(const char *kind, const char *version, uint64_t seed);

/* One repetition, to be filled by the functions below and added. A new reference. */
json_t *result_run_new(struct verdict verdict, const char *status, const char *reason);
/* Figures are numbers by name, units last; NAN and infinite ones are left out. */
void result_run_add_number(json_t *run, const char *name, double value);
/* The same of a whole number. */
void result_run_add_count(json_t *run, const char *name, uint64_t value);
/* NAME_ms_mean, _p50 … _p999, _max as figures, and the histogram itself. Nothing when it is
 * empty. */
void result_run_add_times(json_t *run, const char *name, const struct hist *times);

/* What the GPU did: figures power_w, energy_j … and the words that go with them
 * (docs/spec/results.md). Nothing on a CPU. */
void result_run_add_gpu(json_t *run, const struct gpu_figures *gpu);

/* Adds the run to the cell with this key (an object of text and numbers; made when it is
 * not there). Takes over both references. */
void result_document_add(json_t *document, json_t *key, json_t *run);
/* Fills each cell's summary, mean and 95 % interval of every figure over its valid runs (where
 * there is none, over those that ended well), and its verdict: VALID when any run is. */
void result_document_finish(json_t *document);

/* E_INPUT with the path of the first member that breaks the schema. */
int result_document_check(const char *name, const json_t *document, struct error *err);

/* Cells of a document by their keys, for finding many: json_equal() keys are one. */
struct result_index {
    struct map places; /* key → cell */
};
/* Indexes the document's cells; the document must outlive the index. */
void result_index_init(struct result_index *index, const json_t *document);
/* Frees the index, not the cells. */
void result_index_done(struct result_index *index);
/* The cell with this key, borrowed; NULL: none. */
json_t *result_index_find(const struct result_index *index, const json_t *key);
/* result_document_add() to the document that the index is of. */
void result_index_add(struct result_index *index, json_t *document, json_t *key, json_t *run);

/* A cell's key as text: "model=bert slice=1g batch=4". */
void result_key_text(const json_t *key, struct str *text);

#endif
