/* SPDX-License-Identifier: Apache-2.0
 *
 * One serving instance against its measurement: `batch` and `half` by comparison, `queue` in
 * queue_judge.c.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "verify/check.h"

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

void check_row_key(const char *model, const struct mig_board *board, int profile, int batch,
                   int procs, enum task task, struct str *text)
{
    assert(profile >= 0 && profile < board->profile_count && task < TASK_COUNT);
    str_addf(text, "%s\n%s/%s/%d/%d/%s", model, board->slug, board->profiles[profile].name,
             batch, procs, task_name(task));
}

double check_row_latency(const struct measurement *row, double percentile)
{
    int column = measurement_latency_column(row, percentile);
    return column < 0 ? NAN : row->latency_ms[column];
}

static void check_measured(struct check *check, const struct service *service,
                           const struct measurement *row, const struct plan_instance *instance,
                           const char *place)
{
    assert(row->status == STATUS_OK);
    double latency_ms = check_row_latency(row, service->percentile);
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
    assert(instance->service >= 0);
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
        !isnan(check_row_latency(row, service->percentile))) {
        check_queue(check, service, row, instance, place);
        return;
    }
    check_rate(check, row, instance, place);
    if (service->task == TASK_INFERENCE)
        check_measured(check, service, row, instance, place);
}
