/* SPDX-License-Identifier: Apache-2.0
 *
 * Two result documents compared, cell by cell and figure by figure.
 *
 * A figure is worse when its mean has moved the wrong way by more than a threshold and the
 * runs of both sides differ by the test (Welch's t or Mann-Whitney, two-sided, p values of
 * all comparisons together corrected by Holm's method) at the level. With fewer than two
 * runs on a side there is no test: the threshold alone decides, and the result says so.
 */
#ifndef TRANCHE_LOAD_COMPARE_H
#define TRANCHE_LOAD_COMPARE_H

#include "base/json.h"
#include "base/vec.h"
#include "format/measurement.h"

enum compare_test { COMPARE_WELCH, COMPARE_MANN_WHITNEY };

struct compare_options {
    const char *const *figures; /* ended by NULL; "latency…" and "…_ms…" are better when low */
    enum compare_test test;
    double threshold; /* 0.05: changes of up to 5 % are never worse */
    double level;     /* 0.05 */
};

enum compare_outcome {
    COMPARE_SAME, /* no change that counts */
    COMPARE_BETTER,
    COMPARE_WORSE,
    COMPARE_MISSING, /* the cell is only in the first document, or has no such figure in B */
    COMPARE_OUTCOME_COUNT
};

struct comparison {
    char *cell; /* result_key_text() */
    const char *figure;
    double before, after; /* means */
    double change;        /* after ÷ before − 1 */
    size_t runs_before, runs_after;
    double p; /* corrected; NAN: no test */
    enum compare_outcome outcome;
};

struct compare_result {
    VEC(struct comparison) list;
    size_t counts[COMPARE_OUTCOME_COUNT];
    size_t added; /* cells only in the second document */
};

/* Both must have been checked (result_document_check()). */
void compare_documents(const json_t *before, const json_t *after,
                       const struct compare_options *options,
                       struct compare_result *ret_result);
/* Measurements as such a document: one run a row, so never enough for a test. A new
 * reference. */
json_t *compare_measurements_document(const struct measurement_set *set);
/* Frees the list with its texts. */
void compare_result_done(struct compare_result *result);
/* "same", "better", "worse", "missing". */
const char *compare_outcome_name(enum compare_outcome outcome);

#endif
