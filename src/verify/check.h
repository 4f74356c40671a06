/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the verifier share.
 */
#ifndef TRANCHE_VERIFY_CHECK_H
#define TRANCHE_VERIFY_CHECK_H

#include "base/map.h"
#include "verify/verify.h"

/* The contract's relative tolerance of comparisons. */
#define VERIFY_TOLERANCE 1e-9

struct check {
    const struct plan *plan;
    const struct service_set *services;
    const struct measurement_set *rows;
    struct violations *violations;
    struct map names;   /* services by name; position = index */
    struct map keys;    /* measurement rows by key text; position = index */
    struct map models;  /* model → struct model_rows * */
    struct map judged;  /* queue verdicts already worked out, by all they depend on */
    int group_requests; /* of each replay: many cases, shorter samples */
    bool emulated;      /* some instance rests on a cpu-slice row */
};

/* The rows of one model. */
struct model_rows {
    VEC(int) rows;
};

/* Adds one violation. rule is static text; place and the formatted text (up to 1023 bytes) are
 * copied. */
void check_violation(struct check *check, const char *rule, const char *place,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Checks one serving instance: measurement, memory, latency rule, promised rate. */
void check_instance(struct check *check, const struct plan_gpu *gpu,
                    const struct plan_instance *instance, const char *place);

/* Appends the text under which a row is found in check->keys: what makes a row unique. */
void check_row_key(const char *model, const struct mig_board *board, int profile, int batch,
                   int procs, enum task task, struct str *text);

/* The latency of the row that a percentile reads, or NAN. */
double check_row_latency(const struct measurement *row, double percentile);

/* The queue rule: the rate, the latency and the wait that an instance states. */
void check_queue(struct check *check, const struct service *service,
                 const struct measurement *row, const struct plan_instance *instance,
                 const char *place);

/* The queue rule by replay: requests arrive at rate_rps as a Poisson stream; returns the
 * share of them that end within limit_ms and the mean time, with standard errors. */
enum { QUEUE_GROUPS = 64 };
struct queue_case {
    int group_requests; /* a sample is QUEUE_GROUPS groups of so many requests */
    int procs;
    double occupied; /* the part of a batch's time that it holds its process: 1, but for
                      * systems that are only compared with */
    int batch_max;
    int size_count; /* measured batches, rising; the last is >= batch_max */
    const int *sizes;
    const double *latency_ms; /* of each size */
    double max_wait_ms;
    double rate_rps;
    double limit_ms;
};
struct queue_outcome {
    double share, share_error;
    double mean_ms, mean_error_ms;
};
struct queue_outcome queue_replay_outcome(const struct queue_case *queue);

#endif
