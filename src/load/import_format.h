/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the importer: what every format's reader makes of a file, and the table of
 * formats. A reader fills rows with what the file says and leaves the rest unknown; flags,
 * checks and keys are import.c's.
 */
#ifndef TRANCHE_LOAD_IMPORT_FORMAT_H
#define TRANCHE_LOAD_IMPORT_FORMAT_H

#include "base/arena.h"
#include "base/csv.h"
#include "base/vec.h"
#include "format/measurement.h"

/* Numbers of a row, NAN when unknown. */
enum import_number {
    NUMBER_BATCH,
    NUMBER_PROCS,
    NUMBER_THROUGHPUT, /* samples a second of the whole instance */
    NUMBER_MEAN_MS,    /* the latencies, in the order of enum latency_column */
    NUMBER_P50_MS,
    NUMBER_P90_MS,
    NUMBER_P95_MS,
    NUMBER_P99_MS,
    NUMBER_P999_MS,
    NUMBER_MEMORY_MIB,
    NUMBER_POWER_W,
    NUMBER_COMPUTE_SLICES, /* names the slice: "3g" */
    NUMBER_SLICE_GB,       /* names the slice by its memory */
    NUMBER_SEQUENCE,       /* tokens */
    NUMBER_IN_FLIGHT,      /* requests in flight in a closed loop */
    NUMBER_PART_MS,        /* added up: parts of the mean latency */
    IMPORT_NUMBER_COUNT
};

struct import_extra {
    const char *name, *text;
};

struct import_row {
    const char *model, *slice; /* NULL: the file does not say */
    double numbers[IMPORT_NUMBER_COUNT];
    enum measurement_status status;
    const char *reason; /* "" */
    const char *device; /* "" unknown */
    const char *name;   /* of the file */
    unsigned line;
    bool recomputed;
    VEC(struct import_extra) extras;
};

/* Where readers put rows. */
struct import_rows {
    struct arena *arena; /* for all text of rows */
    VEC(struct import_row) list;
};
/* A new row, all its numbers unknown; valid until the next is added. */
struct import_row *import_rows_add(struct import_rows *rows, const char *name, unsigned line);
/* "FILE:LINE:1: …" as E_INPUT. */
int import_error(const struct import_row *row, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct import_input {
    const char *name, *bytes;
    size_t length;
};

struct import_format {
    const char *name;
    const char *what; /* for messages: "a CSV with model_name, batch_size, latency" */
    double batch;     /* what the tool uses unless told: perf_analyzer sends single samples */
    bool (*matches)(const struct import_input *input);
    int (*read)(const struct import_input *input, struct import_rows *rows, struct error *err);
};

extern const struct import_format import_migperf, import_model_analyzer, import_perf_analyzer,
    import_parvagpu, import_mlperf, import_aiperf;

#endif
