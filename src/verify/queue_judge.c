/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instance states under the `queue` rule. Where the law of its queue can be worked
 * out (queue_law.h), promises are judged by that, to 0.03%. Several processes with larger
 * batches have no such law: there the rate is replayed, a sample.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "verify/check.h"
#include "verify/queue_law.h"

/* A replay is a sample: what it says is taken as wrong only beyond this many errors. */
static const double ERRORS_ALLOWED = 4.5;

/* Below this a request hardly ever comes: no slice that serves at all holds so little. */
static const double RATE_LEAST_RPS = 1e-6;

/* How far from the highest rate a promise may be, and the latency from the predicted one:
 * above by what a numeric method may err, below by the contract's 0.1%, rounded down. */
struct margins {
    double rate_above, rate_below;
    double latency_above, latency_below;
};
static const struct margins exact_margins = {3e-4, 3e-3, 2e-3, 2e-4};
static const struct margins sample_margins = {5e-3, 1e-2, 2e-2, 2e-2};

/* What is wrong with an instance; cached, so that equal instances are judged once. */
enum { RATE_TOO_HIGH = 1, RATE_TOO_LOW = 2, LATENCY_TOO_HIGH = 4, LATENCY_TOO_LOW = 8 };
static const int verdicts[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct judge {
    const struct service *service;
    struct queue_case queue;
    double limit_rps; /* throughput x derate */
    double rate_rps;  /* stated */
    double latency_ms;
};

/* Batches measured on the same slice with the same processes, up to the row's, rising. */
static int gather_sizes(const struct check *check, const struct service *service,
                        const struct measurement *row, int *sizes, double *latency_ms)
{
    assert(row->batch >= 1);
    const struct model_rows *model = map_get(&check->models, row->model);
    int count = 0;
    for (int batch = 1; batch <= row->batch; batch++) {
        for (size_t i = 0; i < model->rows.count; i++) {
            const struct measurement *other = &check->rows->rows.data[model->rows.data[i]];
            if (other->batch != batch || other->board != row->board ||
                other->profile != row->profile || other->procs != row->procs ||
                other->status != STATUS_OK || other->task != TASK_INFERENCE)
                continue;
            double value = check_row_latency(other, service->percentile);
            if (isnan(value))
                continue;
            sizes[count] = batch;
            latency_ms[count++] = value;
        }
    }
    return count;
}

/* ---- by the law -------------------------------------------------------------------- */

static bool is_kept(const struct judge *judge, struct queue_law *law, double limit_ms)
{
    double percentile = judge->service->percentile;
    /* No law at this rate: the queue would grow for ever. */
    if (!law)
        return false;
    if (percentile == MEASUREMENT_PERCENTILE_MEAN)
        return queue_law_mean_ms(law) <= limit_ms * (1 + VERIFY_TOLERANCE);
    return queue_law_late(law, limit_ms * (1 + VERIFY_TOLERANCE)) <= 1 - percentile / 100;
}

/* Whether the rate keeps the objective. */
static bool is_rate_kept(const struct judge *judge, double rate_rps)
{
    struct queue_case queue = judge->queue;
    queue.rate_rps = rate_rps;
    CLEANUP(queue_law_free_ptr) struct queue_law *law = queue_law_new(&queue);
    return is_kept(judge, law, judge->service->latency_ms);
}

static int judge_by_law(const struct judge *judge)
{
    const struct margins *margins = &exact_margins;
    double rate_rps = judge->rate_rps;
    int wrong = 0;
    if (!is_rate_kept(judge, rate_rps * (1 - margins->rate_above)))
        wrong |= RATE_TOO_HIGH;
    else if (rate_rps < judge->limit_rps * (1 - margins->rate_below) &&
             is_rate_kept(judge, fmin(judge->limit_rps, rate_rps * (1 + margins->rate_below))))
        wrong |= RATE_TOO_LOW;
    struct queue_case queue = judge->queue;
    queue.rate_rps = rate_rps;
    CLEANUP(queue_law_free_ptr) struct queue_law *law = queue_law_new(&queue);
    if (!is_kept(judge, law, judge->latency_ms * (1 + margins->latency_below)))
        wrong |= LATENCY_TOO_LOW;
    if (is_kept(judge, law, judge->latency_ms * (1 - margins->latency_above)))
        wrong |= LATENCY_TOO_HIGH;
    return wrong;
}

/* ---- by replay --------------------------------------------------------------------- */

/* Whether limit_ms holds at this rate, as far as the replay can tell; with `sign` -1
 * whether it fails, as far as it can tell. */
static bool is_replay_kept(const struct judge *judge, double rate_rps, double limit_ms,
                           int sign)
{
    assert(sign == 1 || sign == -1);
    double percentile = judge->service->percentile;
    struct queue_case queue = judge->queue;
    queue.rate_rps = rate_rps;
    queue.limit_ms = limit_ms;
    struct queue_outcome outcome = queue_replay_outcome(&queue);
    if (percentile == MEASUREMENT_PERCENTILE_MEAN)
        return outcome.mean_ms <= limit_ms + sign * ERRORS_ALLOWED * outcome.mean_error_ms;
    return outcome.share >= percentile / 100 - sign * ERRORS_ALLOWED * outcome.share_error;
}

static int judge_by_replay(const struct judge *judge)
{
    const struct margins *margins = &sample_margins;
    double rate_rps = judge->rate_rps, limit_ms = judge->service->latency_ms;
    double more_rps = fmin(judge->limit_rps, rate_rps * (1 + margins->rate_below));
    int wrong = 0;
    if (!is_replay_kept(judge, rate_rps * (1 - margins->rate_above), limit_ms, 1))
        wrong |= RATE_TOO_HIGH;
    else if (rate_rps < judge->limit_rps * (1 - margins->rate_below) &&
             is_replay_kept(judge, more_rps, limit_ms, -1))
        wrong |= RATE_TOO_LOW;
    if (!is_replay_kept(judge, rate_rps, judge->latency_ms * (1 + margins->latency_below), 1))
        wrong |= LATENCY_TOO_LOW;
    if (is_replay_kept(judge, rate_rps, judge->latency_ms * (1 - margins->latency_above), -1))
        wrong |= LATENCY_TOO_HIGH;
    return wrong;
}

/* ---- the checks -------------------------------------------------------------------- */

static int judge_queue(const struct check *check, const struct service *service,
                       const struct measurement *row, const struct plan_instance *instance)
{
    CLEANUP(free_ptr) int *sizes = xcalloc((size_t)row->batch + 1, sizeof *sizes);
    CLEANUP(free_ptr)
    double *latencies_ms = xcalloc((size_t)row->batch + 1, sizeof *latencies_ms);
    struct judge judge = {.service = service,
                          .queue = {.group_requests = check->group_requests,
                                    .procs = row->procs,
                                    .occupied = 1,
                                    .batch_max = row->batch,
                                    .sizes = sizes,
                                    .latency_ms = latencies_ms,
                                    .max_wait_ms = service->max_wait_ms},
                          .limit_rps = row->throughput_rps * check->services->derate,
                          .rate_rps = instance->rate_rps,
                          .latency_ms = instance->latency_ms};
    judge.queue.size_count = gather_sizes(check, service, row, sizes, latencies_ms);
    assert(judge.queue.size_count > 0);
    int wrong = queue_law_covers(&judge.queue) ? judge_by_law(&judge) : judge_by_replay(&judge);
    bool over = judge.rate_rps > judge.limit_rps * (1 + VERIFY_TOLERANCE);
    return over ? (wrong | RATE_TOO_HIGH) & ~RATE_TOO_LOW : wrong;
}

/* The verdict for each different question is worked out once. */
static int judge_queue_once(struct check *check, const struct service *service,
                            const struct measurement *row, const struct plan_instance *instance)
{
    CLEANUP(str_done) struct str key = STR_EMPTY;
    check_row_key(row->model, row->board, row->profile, row->batch, row->procs, row->task,
                  &key);
    str_addf(&key, "/%.17g/%.17g/%.17g/%.17g/%.17g", service->latency_ms, service->percentile,
             service->max_wait_ms, instance->rate_rps, instance->latency_ms);
    const int *known = map_get(&check->judged, key.bytes);
    if (!known) {
        known = &verdicts[judge_queue(check, service, row, instance)];
        assert(known < verdicts + sizeof verdicts / sizeof *verdicts);
        map_put(&check->judged, key.bytes, (void *)known);
    }
    return *known;
}

static void check_stated_latency(struct check *check, const struct plan_instance *instance,
                                 int wrong, const char *place)
{
    if (wrong & (LATENCY_TOO_HIGH | LATENCY_TOO_LOW))
        check_violation(check, "latency", place,
                        "latency_ms is %g, %s the predicted time at %g a second",
                        instance->latency_ms, wrong & LATENCY_TOO_HIGH ? "above" : "below",
                        instance->rate_rps);
}

void check_queue(struct check *check, const struct service *service,
                 const struct measurement *row, const struct plan_instance *instance,
                 const char *place)
{
    if (isnan(instance->max_wait_ms) || fabs(instance->max_wait_ms - service->max_wait_ms) >
                                            VERIFY_TOLERANCE * service->max_wait_ms)
        check_violation(check, "latency", place, "max_wait_ms is %g, expected the service's %g",
                        instance->max_wait_ms, service->max_wait_ms);
    if (isnan(instance->latency_ms) ||
        instance->latency_ms > service->latency_ms * (1 + VERIFY_TOLERANCE))
        check_violation(check, "latency", place,
                        "latency_ms is %g, expected at most the objective, %g",
                        instance->latency_ms, service->latency_ms);
    /* Between arrivals so far apart neither the law nor the replay can reckon. */
    if (instance->rate_rps < RATE_LEAST_RPS) {
        check_violation(check, "rate", place, "rate_rps is %g, expected at least %g",
                        instance->rate_rps, RATE_LEAST_RPS);
        return;
    }
    int wrong = judge_queue_once(check, service, row, instance);
    if (wrong & RATE_TOO_HIGH)
        check_violation(check, "rate", place,
                        "rate_rps is %.10g, but the objective of %g ms does not hold at that "
                        "rate",
                        instance->rate_rps, service->latency_ms);
    if (wrong & RATE_TOO_LOW)
        check_violation(check, "rate", place,
                        "rate_rps is %.10g, but the objective holds at a higher rate; expected "
                        "the full promised capacity",
                        instance->rate_rps);
    if (!isnan(instance->latency_ms))
        check_stated_latency(check, instance, wrong, place);
}
