/* SPDX-License-Identifier: Apache-2.0
 *
 * One serving instance against its measurement: `batch` and `half` by comparison, `queue`
 * by replaying the stated rate.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/check.h"

/* A replay is a sample: what it says is taken as wrong only beyond this many errors. */
static const double ERRORS_ALLOWED = 4.5;
/* The contract states promises to 0.1%, rounded down. */
static const double PROMISE_STEP = 1e-3;

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

void check_row_key(const char *model, const struct mig_board *board, int profile, int batch,
                   int procs, enum task task, struct str *text)
{
    str_addf(text, "%s\n%s/%s/%d/%d/%s", model, board->slug, board->profiles[profile].name,
             batch, procs, task_name(task));
}

static double column_latency(const struct measurement *row, double percentile)
{
    int column = measurement_latency_column(row, percentile);
    return column < 0 ? NAN : row->latency_ms[column];
}

/* Batches measured on the same slice with the same processes, up to the row's, rising. */
static int gather_sizes(const struct check *check, const struct service *service,
                        const struct measurement *row, int *sizes, double *latency_ms)
{
    const struct model_rows *model = map_get(&check->models, row->model);
    int count = 0;
    for (int batch = 1; batch <= row->batch; batch++) {
        for (size_t i = 0; i < model->rows.count; i++) {
            const struct measurement *other = &check->rows->rows.data[model->rows.data[i]];
            if (other->batch != batch || other->board != row->board ||
                other->profile != row->profile || other->procs != row->procs ||
                other->status != STATUS_OK || other->task != TASK_INFERENCE)
                continue;
            double value = column_latency(other, service->percentile);
            if (isnan(value))
                continue;
            sizes[count] = batch;
            latency_ms[count++] = value;
        }
    }
    return count;
}

/* Whether the objective holds at this rate, as far as the replay can tell; with `sign` −1
 * whether it fails, as far as it can tell. */
static bool queue_holds(const struct check *check, const struct service *service,
                        const struct measurement *row, double rate_rps, int sign)
{
    int *sizes = xcalloc((size_t)row->batch + 1, sizeof *sizes);
    double *latency_ms = xcalloc((size_t)row->batch + 1, sizeof *latency_ms);
    struct queue_case queue = {
        .group_requests = check->group_requests,
        .procs = row->procs,
        .batch_max = row->batch,
        .size_count = gather_sizes(check, service, row, sizes, latency_ms),
        .sizes = sizes,
        .latency_ms = latency_ms,
        .max_wait_ms = service->max_wait_ms,
        .rate_rps = rate_rps,
        .limit_ms = service->latency_ms,
    };
    struct queue_outcome outcome = queue_replay_outcome(&queue);
    free(sizes);
    free(latency_ms);
    if (service->percentile == MEASUREMENT_PERCENTILE_MEAN)
        return outcome.mean_ms <=
               service->latency_ms + sign * ERRORS_ALLOWED * outcome.mean_error_ms;
    return outcome.share >=
           service->percentile / 100 - sign * ERRORS_ALLOWED * outcome.share_error;
}

enum verdict { VERDICT_RIGHT, VERDICT_TOO_HIGH, VERDICT_TOO_LOW };

static enum verdict judge_queue(const struct check *check, const struct service *service,
                                const struct measurement *row, double rate_rps)
{
    double limit_rps = row->throughput_rps * check->services->derate;
    if (rate_rps > limit_rps * (1 + VERIFY_TOLERANCE))
        return VERDICT_TOO_HIGH;
    /* Several processes with batches have no closed form: the promise is a sample as well. */
    double step = row->procs > 1 && row->batch > 1 ? 5 * PROMISE_STEP : PROMISE_STEP;
    if (!queue_holds(check, service, row, rate_rps * (1 - step), 1))
        return VERDICT_TOO_HIGH;
    if (rate_rps >= limit_rps * (1 - 2 * PROMISE_STEP))
        return VERDICT_RIGHT;
    /* Promising less than could be is wrong too: a rate is the instance's full capacity. */
    double more_rps = fmin(limit_rps, rate_rps * 1.05);
    return queue_holds(check, service, row, more_rps, -1) ? VERDICT_TOO_LOW : VERDICT_RIGHT;
}

/* The verdict for each different question is worked out once. */
static enum verdict judge_queue_once(struct check *check, const struct service *service,
                                     const struct measurement *row, double rate_rps)
{
    static const enum verdict verdicts[] = {VERDICT_RIGHT, VERDICT_TOO_HIGH, VERDICT_TOO_LOW};
    struct str key = STR_EMPTY;
    check_row_key(row->model, row->board, row->profile, row->batch, row->procs, row->task,
                  &key);
    str_addf(&key, "/%.17g/%.17g/%.17g/%.17g", service->latency_ms, service->percentile,
             service->max_wait_ms, rate_rps);
    const enum verdict *known = map_get(&check->judged, key.bytes);
    if (!known) {
        known = &verdicts[judge_queue(check, service, row, rate_rps)];
        map_put(&check->judged, key.bytes, (void *)known);
    }
    str_done(&key);
    return *known;
}

static void check_queue(struct check *check, const struct service *service,
                        const struct measurement *row, const struct plan_instance *instance,
                        const char *place)
{
    if (isnan(instance->max_wait_ms) ||
        !near(instance->max_wait_ms, service->max_wait_ms, VERIFY_TOLERANCE))
        check_violation(check, "latency", place, "max_wait_ms is %g, expected the service's %g",
                        instance->max_wait_ms, service->max_wait_ms);
    if (isnan(instance->latency_ms) ||
        instance->latency_ms > service->latency_ms * (1 + VERIFY_TOLERANCE))
        check_violation(check, "latency", place,
                        "latency_ms is %g, expected at most the objective, %g",
                        instance->latency_ms, service->latency_ms);
    enum verdict verdict = judge_queue_once(check, service, row, instance->rate_rps);
    if (verdict == VERDICT_TOO_HIGH)
        check_violation(check, "rate", place,
                        "rate_rps is %g, but the objective of %g ms does not hold at that rate",
                        instance->rate_rps, service->latency_ms);
    else if (verdict == VERDICT_TOO_LOW)
        check_violation(
            check, "rate", place,
            "rate_rps is %g, but the objective holds at a rate 5%% higher; expected "
            "the full promised capacity",
            instance->rate_rps);
}

static void check_measured(struct check *check, const struct service *service,
                           const struct measurement *row, const struct plan_instance *instance,
                           const char *place)
{
    double latency_ms = column_latency(row, service->percentile);
    double limit_ms = service->latency_ms;
    bool half = check->services->latency_rule == RULE_HALF;
    bool fast = half ? latency_ms < 0.45 * limit_ms * (1 - VERIFY_TOLERANCE)
                     : latency_ms <= limit_ms * (1 + VERIFY_TOLERANCE);
    if (isnan(latency_ms))
        check_violation(check, "latency", place,
                        "the measurement in line %u has no latency for the percentile of "
                        "service \"%s\"",
                        row->line, service->name);
    else if (!fast)
        check_violation(check, "latency", place,
                        "the measured latency is %g ms, expected %s %g ms (objective %g ms of "
                        "\"%s\")",
                        latency_ms, half ? "less than" : "at most",
                        half ? 0.45 * limit_ms : limit_ms, limit_ms, service->name);
    else if (isnan(instance->latency_ms) ||
             !near(instance->latency_ms, latency_ms, VERIFY_TOLERANCE))
        check_violation(check, "latency", place, "latency_ms is %g, expected the measured %g",
                        instance->latency_ms, latency_ms);
}

static void check_rate(struct check *check, const struct measurement *row,
                       const struct plan_instance *instance, const char *place)
{
    double rate_rps = row->throughput_rps * check->services->derate;
    if (!near(instance->rate_rps, rate_rps, VERIFY_TOLERANCE))
        check_violation(check, "rate", place,
                        "rate_rps is %.10g, expected %.10g (measured throughput x derate, line "
                        "%u)",
                        instance->rate_rps, rate_rps, row->line);
}

static void check_memory(struct check *check, const struct measurement *row, const char *place)
{
    int usable_mib = row->board->profiles[row->profile].memory_mib;
    if (usable_mib != MIG_UNKNOWN && row->memory_mib > usable_mib)
        check_violation(check, "memory", place, "needs %g MiB, but %s of %s has %d MiB",
                        row->memory_mib, row->board->profiles[row->profile].name,
                        row->board->slug, usable_mib);
}

void check_instance(struct check *check, const struct plan_gpu *gpu,
                    const struct plan_instance *instance, const char *place)
{
    const char *name = check->plan->services.data[instance->service].name;
    ptrdiff_t index = map_find(&check->names, name);
    if (index < 0)
        return; /* reported once, with the plan's list of services */
    const struct service *service = &check->services->services.data[index];
    struct str key = STR_EMPTY;
    check_row_key(service->model, gpu->board, instance->profile, instance->batch,
                  instance->procs, service->task, &key);
    ptrdiff_t at = map_find(&check->keys, key.bytes);
    str_done(&key);
    const struct measurement *row = at < 0 ? NULL : &check->rows->rows.data[at];
    if (!row || row->status != STATUS_OK) {
        check_violation(check, "measurement", place,
                        "%s for %s on %s of %s with batch %d and %d processes (service \"%s\")",
                        row ? "the measurement is not ok" : "there is no measurement",
                        service->model, gpu->board->profiles[instance->profile].name,
                        gpu->board->slug, instance->batch, instance->procs, service->name);
        return;
    }
    check->emulated |= row->device && strcmp(row->device, "cpu-slice") == 0;
    check_memory(check, row, place);
    if (service->task == TASK_INFERENCE && check->services->latency_rule == RULE_QUEUE &&
        !isnan(column_latency(row, service->percentile))) {
        check_queue(check, service, row, instance, place);
        return;
    }
    check_rate(check, row, instance, place);
    if (service->task == TASK_INFERENCE)
        check_measured(check, service, row, instance, place);
}
