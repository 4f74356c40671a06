/* SPDX-License-Identifier: Apache-2.0
 *
 * The highest rate at which a percentile of latency stays within a limit.
 *
 *   1. bracket: from a first rate on, doubled while it meets the objective, halved while it
 *      does not;
 *   2. bisect (geometrically) until the bracket is within the tolerance;
 *   3. confirm: the rate found is measured again with other seeds. When one of these runs
 *      fails, the rate is taken for too high and the search goes on below it.
 *
 * A request that failed, timed out or was dropped counts as one over the limit.
 */
#ifndef TRANCHE_LOAD_SLO_SEARCH_H
#define TRANCHE_LOAD_SLO_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "load/open_loop.h"

struct slo_objective {
    double percentile; /* 0 … 100 */
    int64_t limit_ns;
};

struct slo_options {
    struct slo_objective objective;
    double first_rps, least_rps, highest_rps; /* where to begin and to give up */
    double tolerance;                         /* 0.01: upper ÷ lower end − 1 */
    int confirmations;
    int runs_max; /* of all together */
};

struct slo_probe {
    double rate_rps;
    double share_within; /* of the scheduled requests */
    bool meets, confirms;
};

struct slo_result {
    double rate_rps;              /* 0: not even the least rate meets it */
    bool at_highest;              /* highest_rps meets it: the answer may be higher */
    bool confirmed;               /* false: runs_max was reached first */
    VEC(struct slo_probe) probes; /* in order */
};

/* Measures at a rate with run number `run` (for its seed). */
typedef int slo_measure(void *context, double rate_rps, int run, double *ret_share_within,
                        struct error *err);

/* Fills *ret_result (slo_result_done() it in any case); what was probed until an error of
 * `measure` is kept. */
int slo_search(const struct slo_options *options, slo_measure *measure, void *context,
               struct slo_result *ret_result, struct error *err);
/* Frees the list of probes. */
void slo_result_done(struct slo_result *result);

/* Requests answered within the limit ÷ requests scheduled. */
double slo_share_within(const struct open_loop_result *load, struct slo_objective objective);

#endif
