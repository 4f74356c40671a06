/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict of a closed-loop result. docs/spec/measuring.md states the rules.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "load/measure.h"

/* CPU time obtained below this part of what a busy slice should get is short. */
static const double CPU_SHARE_MIN = 0.9;
/* Relative to the sum of absolute values: float32 on CPUs, and on GPUs with TF32. */
static const double TOLERANCE_CPU = 1e-4, TOLERANCE_GPU = 2e-2;

/* A closed loop keeps each process busy: it uses the quota, or one core at least. */
static bool is_cpu_short(const struct measure_cell *cell, const struct measure_result *result)
{
    double busy = fmin(result->cpu_quota_cores, cell->procs);
    return busy > 0 && result->cpu_cores < CPU_SHARE_MIN * busy;
}

static bool differs(const struct output_summary *got, const struct output_summary *want,
                    double tolerance)
{
    double limit = tolerance * want->absolute_sum + 1e-12;
    assert(tolerance > 0);
    /* Written so that NaN differs. */
    return got->count != want->count || !(fabs(got->sum - want->sum) <= limit) ||
           !(fabs(got->absolute_sum - want->absolute_sum) <= limit);
}

static bool has_wrong_output(const struct measure_settings *settings,
                             const struct ready_event *got)
{
    const struct ready_event *want = settings->reference;
    double tolerance = settings->device == DEVICE_CPU_SLICE ? TOLERANCE_CPU : TOLERANCE_GPU;
    if (!want)
        return false;
    if (got->output_count != want->output_count)
        return true;
    for (int i = 0; i < want->output_count; i++)
        if (differs(&got->outputs[i], &want->outputs[i], tolerance))
            return true;
    return false;
}

struct verdict measure_judge(const struct measure_cell *cell,
                             const struct measure_settings *settings,
                             const struct measure_result *result)
{
    struct verdict verdict = {0};
    assert(result->latency);
    verdict_add(&verdict, REASON_TOO_FEW,
                hist_count(result->latency) < (uint64_t)settings->min_steps);
    verdict_add(&verdict, REASON_UNSTEADY, !result->steady.steady);
    verdict_add(&verdict, REASON_CPU_SHORT, is_cpu_short(cell, result));
    verdict_add(&verdict, REASON_WRONG_OUTPUT, has_wrong_output(settings, &result->ready));
    verdict_add(&verdict, REASON_CLOCKS, result->gpu.throttled);
    verdict_add(&verdict, REASON_WRONG_DEVICE,
                settings->uuid && strcmp(settings->uuid, result->ready.visible) != 0);
    return verdict;
}
