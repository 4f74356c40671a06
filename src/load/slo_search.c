/* SPDX-License-Identifier: Apache-2.0
 *
 * Search for the highest rate. See slo_search.h.
 */
#include "load/slo_search.h"

#include <assert.h>
#include <math.h>

struct search {
    const struct slo_options *options;
    slo_measure *measure;
    void *context;
    struct slo_result *result;
    double low, high; /* meets it (0: none known), does not (INFINITY: none known) */
};

void slo_result_done(struct slo_result *result)
{
    vec_done(&result->probes);
}

double slo_share_within(const struct open_loop_result *load, struct slo_objective objective)
{
    if (load->scheduled == 0)
        return 1;
    return hist_share_within(load->latency, objective.limit_ns) *
           (double)hist_count(load->latency) / (double)load->scheduled;
}

static int probe(struct search *search, double rate_rps, bool confirms, bool *ret_meets,
                 struct error *err)
{
    double share = 0;
    int run = (int)search->result->probes.count;
    int failure = search->measure(search->context, rate_rps, run, &share, err);
    if (failure)
        return failure;
    *ret_meets = share >= search->options->objective.percentile / 100;
    *vec_push(&search->result->probes) =
        (struct slo_probe){rate_rps, share, *ret_meets, confirms};
    if (*ret_meets && !confirms)
        search->low = rate_rps;
    else if (!*ret_meets)
        search->high = rate_rps;
    return 0;
}

static bool may_go_on(const struct search *search)
{
    return search->result->probes.count < (size_t)search->options->runs_max;
}

/* Until one rate is known on either side, or a bound has spoken. */
static int bracket(struct search *search, struct error *err)
{
    const struct slo_options *options = search->options;
    double rate_rps = options->first_rps;
    int failure = 0;
    while (!failure && may_go_on(search) && (search->low == 0 || isinf(search->high))) {
        bool meets;
        failure = probe(search, rate_rps, false, &meets, err);
        if (failure || (meets && rate_rps >= options->highest_rps) ||
            (!meets && rate_rps <= options->least_rps))
            break;
        rate_rps = meets ? fmin(rate_rps * 2, options->highest_rps)
                         : fmax(rate_rps / 2, options->least_rps);
    }
    return failure;
}

static int bisect(struct search *search, struct error *err)
{
    int failure = 0;
    bool meets;
    while (!failure && may_go_on(search) && search->low > 0 && !isinf(search->high) &&
           search->high > search->low * (1 + search->options->tolerance))
        failure = probe(search, sqrt(search->low * search->high), false, &meets, err);
    return failure;
}

/* Repeats the rate found; *ret_held is false when one run fails: it is then the upper end. */
static int confirm(struct search *search, bool *ret_held, struct error *err)
{
    double rate_rps = search->low;
    *ret_held = true;
    for (int i = 0; i < search->options->confirmations && *ret_held && may_go_on(search); i++) {
        int failure = probe(search, rate_rps, true, ret_held, err);
        if (failure)
            return failure;
    }
    if (!*ret_held)
        search->low =
            fmax(rate_rps / (1 + 2 * search->options->tolerance), search->options->least_rps);
    return 0;
}

int slo_search(const struct slo_options *options, slo_measure *measure, void *context,
               struct slo_result *ret_result, struct error *err)
{
    struct search search = {.options = options,
                            .measure = measure,
                            .context = context,
                            .result = ret_result,
                            .high = INFINITY};
    *ret_result = (struct slo_result){0};
    assert(options->first_rps > 0 && options->tolerance > 0);
    assert(options->least_rps > 0 && options->least_rps <= options->highest_rps);
    int failure = bracket(&search, err);
    bool held = false;
    while (!failure && search.low > 0 && !held && may_go_on(&search)) {
        /* A rate that does not hold again is the new upper end, and the search goes on below
         * it. */
        failure = bisect(&search, err);
        if (!failure && may_go_on(&search))
            failure = confirm(&search, &held, err);
        if (!failure && !held && search.low <= options->least_rps)
            search.low = 0;
    }
    ret_result->rate_rps = search.low;
    ret_result->confirmed = held && may_go_on(&search);
    ret_result->at_highest = search.low > 0 && isinf(search.high);
    return failure;
}
