/* SPDX-License-Identifier: Apache-2.0
 *
 * The latency rules of the contract applied to measurements: what one instance of a row
 * may promise to a service.
 */
#ifndef TRANCHE_PLAN_RULE_H
#define TRANCHE_PLAN_RULE_H

#include "format/measurement.h"
#include "format/service.h"
#include "plan/queue.h"

enum rule_verdict {
    RULE_USABLE,
    RULE_UNMEASURED,    /* not ok, another task, or no latency column for the percentile */
    RULE_OUT_OF_MEMORY, /* memory_mib over the slice's, or status oom */
    RULE_TOO_SLOW
};

struct rule_promise {
    enum rule_verdict verdict;
    double rate_rps;   /* when usable */
    double latency_ms; /* usable or too slow: the measured one; NAN for training and under
                          `queue`, where rule_predict_ms() tells */
};

struct rule {
    const struct service_set *services;
    const struct measurement_set *rows;
    struct queue_model *queue; /* memory of the queue rule; one a thread */
};

/* What `row` promises to `service`. Rows of the same model, board, slice and process count
 * that serve smaller batches are read for the queue rule: `siblings` lists row indices
 * among which they are. `enough_rps`: a promise that cannot exceed this is not computed
 * (the queue rule is dear), one that does not reach it need not be, and both come back as
 * RULE_TOO_SLOW. */
struct rule_query {
    const struct service *service;
    int row;
    const int *siblings;
    int sibling_count;
    double enough_rps;
};
/* Applies the rule of rule->services to the query's row. The verdict says why a row is of no
 * use; nothing fails. */
struct rule_promise rule_apply(const struct rule *rule, const struct rule_query *query);

/* Under `queue`: the latency that a row, usable or too slow, is predicted to have at a
 * promised rate; rate 0: at a thousandth of its throughput. NAN when it cannot be told. */
double rule_predict_ms(const struct rule *rule, const struct rule_query *query,
                       double rate_rps);

#endif
