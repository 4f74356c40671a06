/* SPDX-License-Identifier: Apache-2.0
 *
 * Other tools' results as measurements: MIGPerf, Triton Model Analyzer, perf_analyzer,
 * MLPerf LoadGen, AIPerf, ParvaGPU. docs/spec/import.md says for each how its columns are
 * read and what is corrected.
 */
#ifndef TRANCHE_LOAD_IMPORT_H
#define TRANCHE_LOAD_IMPORT_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "format/measurement.h"

/* What a file does not say. NULL or 0: not given. */
struct import_defaults {
    const char *format; /* the name of one of import.c; NULL: found out for each file */
    const char *model; /* "{file}" in it stands for the file's name without folder and ending */
    const char *board;
    const char *slice;
    const char *device;
    int batch, procs;
    enum task task;
};

struct import; /* what has been read so far */

/* defaults must outlive the import. E_INPUT when its board or slice is not known. */
int import_new(const struct import_defaults *defaults, struct import **ret_import,
               struct error *err);
/* NULL is fine. */
void import_free(struct import *import);
CLEANUP_DEFINE_FREE(import)

/* Adds the rows of one file. E_INPUT "FILE:LINE:COL: …" for a file of no known format, a
 * field that is wrong, or a column that neither the file nor the defaults fill. */
int import_file(struct import *import, const char *path, struct error *err);
/* The same from bytes; name is for messages. */
int import_bytes(struct import *import, const char *name, const char *bytes, size_t length,
                 struct error *err);

/* What happened to rows on the way. */
struct import_counts {
    size_t rows;        /* in the result */
    size_t recomputed;  /* whose throughput was computed anew from latency and batch */
    size_t superseded;  /* a later row of the same key took their place */
    size_t other_loads; /* left out: same key, but more requests in flight than processes */
};
/* The measurements, to be ended with measurement_set_done(). */
void import_finish(struct import *import, struct measurement_set *ret_set,
                   struct import_counts *ret_counts);

#endif
