/* SPDX-License-Identifier: Apache-2.0
 *
 * How the exact planner's time grows with the number of services: a table, and the curve as
 * a picture.
 *
 *     bench_plan_growth [CURVE.svg]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/stats.h"
#include "draw/chart.h"
#include "plan/run.h"
#include "plan_case.h"

enum { SEEDS_MOST = 5, POINTS = 11 };

static const int SIZES[POINTS] = {8, 16, 32, 64, 125, 250, 500, 1000, 2000, 5000, 10000};

/* The median over the seeds; services of a shape need `gpus_each` GPUs on average. */
static double time_size(const struct case_inputs *inputs, const char *shape, int services)
{
    double seconds[SEEDS_MOST], worst_gap = 0;
    int seeds = services >= 5000 ? 1 : SEEDS_MOST, gpus = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        CLEANUP(str_done) struct str yaml = STR_EMPTY;
        CLEANUP(plan_done) struct plan plan;
        plan_init(&plan);
        plan_case_write(inputs, &(struct plan_case){shape, services, 4, (uint64_t)seed}, &yaml);
        seconds[seed - 1] = plan_case_time(inputs, &yaml, &plan);
        worst_gap = fmax(worst_gap, 100 * (plan.cost - plan.bound_cost) / plan.bound_cost);
        gpus = plan.gpus_used;
    }
    double median = stats_median(seconds, (size_t)seeds);
    printf("%-9s  %8d  %6d  %5d  %9.4f  %10.4f\n", shape, services, gpus, seeds, median,
           worst_gap);
    fflush(stdout);
    return median;
}

static int write_curve(const char *path, const double *sizes, double seconds[2][POINTS])
{
    CLEANUP(str_done) struct str svg = STR_EMPTY;
    struct error err = {0};
    const struct chart_series series[] = {
        {.label = "normal rates",
         .colour = CANVAS_SERIES,
         .x = sizes,
         .y = seconds[0],
         .count = POINTS},
        {.label = "lognormal rates",
         .colour = CANVAS_SERIES + 1,
         .x = sizes,
         .y = seconds[1],
         .count = POINTS},
    };
    chart_svg(&(struct chart){.kind = CHART_LINES,
                              .title = "Time of a plan from scratch",
                              .x_label = "services (logarithm to base 10)",
                              .y_label = "seconds",
                              .series = series,
                              .series_count = 2,
                              .logarithmic = true},
              &svg);
    if (file_write(path, svg.bytes, svg.length, &err) < 0) {
        fprintf(stderr, "bench_plan_growth: %s\n", err.text);
        return 4;
    }
    printf("curve: %s\n", path);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const shapes[2] = {"normal", "lognormal"};
    static struct case_inputs inputs;
    double sizes[POINTS], seconds[2][POINTS];
    case_inputs_read(&inputs);
    printf("shape      services    GPUs  seeds   median_s  worst_gap_%%\n");
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < POINTS; i++) {
            sizes[i] = log10(SIZES[i]);
            seconds[s][i] = time_size(&inputs, shapes[s], SIZES[i]);
        }
    case_inputs_done(&inputs);
    return argc > 1 ? write_curve(argv[1], sizes, seconds) : 0;
}
