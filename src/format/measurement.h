/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements: what one model did on one slice profile at one batch and process count.
 * The CSV of the contract, read and written; unknown columns are kept.
 */
#ifndef TRANCHE_FORMAT_MEASUREMENT_H
#define TRANCHE_FORMAT_MEASUREMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "mig/board.h"

enum latency_column { /* in rising order, as a rule picks the smallest not below */
                      LATENCY_MEAN,
                      LATENCY_P50,
                      LATENCY_P90,
                      LATENCY_P95,
                      LATENCY_P99,
                      LATENCY_P999,
                      LATENCY_COLUMN_COUNT
};

enum measurement_status {
    STATUS_OK,
    STATUS_OOM,
    STATUS_UNSUPPORTED,
    STATUS_TIMEOUT,
    STATUS_ERROR,
    MEASUREMENT_STATUS_COUNT
};

enum task { TASK_INFERENCE, TASK_TRAINING, TASK_COUNT };

struct measurement {
    const char *model;
    const struct mig_board *board;
    int profile; /* index into board->profiles */
    enum task task;
    enum measurement_status status;
    int batch;
    int procs;
    double throughput_rps;                   /* whole instance, all processes; 0 unless ok */
    double latency_ms[LATENCY_COLUMN_COUNT]; /* NAN: unknown */
    double memory_mib;                       /* NAN: unknown */
    double power_w;                          /* NAN: unknown */
    const char *device;                      /* "cuda", "cpu-slice", …; "" unknown */
    const char *reason;                      /* of a status that is not ok; "" */
    const char *const *extra;                /* values of the set's extra columns */
    unsigned line;                           /* in its file, 0 when made here */
};

struct measurement_set {
    struct arena arena; /* owns all text */
    VEC(struct measurement) rows;
    VEC(const char *) extra_columns; /* names of the columns we do not know, in file order */
    char sha256[72];                 /* of the file's bytes, "" when made here */
};

/* Whether two rows are of the same thing: model, board, slice, batch, procs, task. */
bool measurement_same_key(const struct measurement *a, const struct measurement *b);

/* Frees rows and texts. */
void measurement_set_done(struct measurement_set *set);

/* Reads and checks the contract's CSV: columns by name in any order; the keys (model,
 * board, slice, batch, procs, task) unique; devices of one model not mixed; an ok
 * inference row has throughput > 0 and at least one latency. E_INPUT with FILE:LINE:COL. */
int measurement_set_read(const char *path, struct measurement_set *ret_set, struct error *err);
/* The same from bytes; name is for messages. */
int measurement_set_parse(const char *name, const char *bytes, size_t length,
                          struct measurement_set *ret_set, struct error *err);
/* Appends header and rows: contract columns first and in its order, optional and extra columns
 * where any row fills them. What measurement_set_parse() read comes back equal, but for
 * comments and blank lines. */
void measurement_set_format(const struct measurement_set *set, struct str *text);

/* The words of the CSV, static: "latency_ms_p99"; "ok", "oom" …; "inference", "training". */
const char *latency_column_name(enum latency_column column);
const char *measurement_status_name(enum measurement_status status);
const char *task_name(enum task task);
/* The `percentile` of a service that judges by mean latency. */
#define MEASUREMENT_PERCENTILE_MEAN 0.0
/* The filled column of the smallest percentile not below `percentile` (50 … 99.9), or the mean
 * column for MEASUREMENT_PERCENTILE_MEAN and nothing else; -1 when the row has none. */
int measurement_latency_column(const struct measurement *row, double percentile);

#endif
