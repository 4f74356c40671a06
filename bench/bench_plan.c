/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the exact planner is and how tight its bound, on the MIG-serving paper's figures
 * with random rates. One line a case: services, GPUs, bound, gap, status, time, peak memory.
 *
 *     bench_plan                                     the cases below
 *     bench_plan SHAPE SERVICES SEEDS GPUS_EACH      one row of one's own
 *     bench_plan yaml SHAPE SERVICES SEED GPUS_EACH  the services of one case
 *     bench_plan cbc SHAPE SERVICES SEED GPUS_EACH [SECONDS]   CBC on the compact model, 60 s
 *
 * SHAPE is normal, lognormal, mixed (four boards with prices and stock), or queue (normal
 * under the queue rule; the others use batch).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "plan/compact.h"
#include "plan/run.h"
#include "plan_case.h"

enum { SEEDS_MAX = 1000 };

struct bench_case {
    const char *shape;
    int services, seeds;
    double gpus_each;
};

static void run_row(const struct case_inputs *inputs, const struct bench_case *row)
{
    static const char *const statuses[] = {"optimal", "feasible", "infeasible"};
    double seconds[SEEDS_MAX], worst_gap = 0;
    int optimal = 0, within_one = 0, gpus = 0;
    for (int seed = 1; seed <= row->seeds; seed++) {
        struct str yaml = STR_EMPTY;
        struct plan plan;
        plan_case_write(
            inputs,
            &(struct plan_case){row->shape, row->services, row->gpus_each, (uint64_t)seed},
            &yaml);
        seconds[seed - 1] = plan_case_time(inputs, &yaml, &plan);
        double gap = 100 * (plan.cost - plan.bound_cost) / plan.bound_cost;
        worst_gap = fmax(worst_gap, gap);
        optimal += plan.status == PLAN_OPTIMAL;
        within_one += plan.status != PLAN_INFEASIBLE && plan.cost <= ceil(plan.bound_cost) + 1;
        gpus = plan.gpus_used;
        if (getenv("VERBOSE"))
            printf("  seed %d: %d GPUs, cost %.2f, bound %.3f, gap %.4f%%, %s, %.1f ms\n", seed,
                   plan.gpus_used, plan.cost, plan.bound_cost, gap, statuses[plan.status],
                   seconds[seed - 1] * 1e3);
        plan_done(&plan);
        str_done(&yaml);
    }
    printf("%-9s %6d services %6d GPUs  %2d of %2d optimal, %2d within one GPU, worst gap "
           "%.4f%%, median %8.1f ms, peak %4.0f MiB\n",
           row->shape, row->services, gpus, optimal, row->seeds, within_one, worst_gap,
           stats_median(seconds, (size_t)row->seeds) * 1e3, peak_memory_mib());
    fflush(stdout);
}

/* CBC on the compact model of one case. */
static void run_cbc(const struct case_inputs *inputs, const struct str *yaml, double seconds)
{
    struct service_set services;
    struct problem problem;
    struct pattern_list patterns;
    struct milp milp;
    struct milp_result result;
    struct error err = {0};
    struct problem_options options = {.max_moves = -1};
    if (service_set_parse("bench", yaml->bytes, yaml->length, &services, &err) < 0 ||
        problem_init(&problem, &services, &inputs->rows, &options, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    int64_t start_ns = clock_now_ns(clock_real());
    pattern_list_init(&patterns, &problem);
    compact_build(&problem, &patterns, &(struct compact_options){0}, &milp);
    milp_solve(&milp,
               &(struct milp_limits){.cutoff = INFINITY, .seconds = seconds, .nodes = -1},
               &result);
    printf("%.10g %.10g %.3f\n", result.objective, result.bound,
           (double)(clock_now_ns(clock_real()) - start_ns) / 1e9);
    free(result.values);
    milp_done(&milp);
    pattern_list_done(&patterns);
    problem_done(&problem);
    service_set_done(&services);
}

static const struct bench_case cases[] = {
    {"normal", 16, 10, 12},   {"normal", 24, 20, 12},    {"lognormal", 24, 20, 12},
    {"normal", 24, 20, 2.5},  {"lognormal", 100, 5, 7},  {"lognormal", 400, 3, 4.5},
    {"normal", 1000, 3, 4.3}, {"lognormal", 1000, 3, 4}, {"lognormal", 3000, 1, 4},
    {"normal", 10000, 1, 4},  {"mixed", 20, 5, 3},       {"mixed", 200, 5, 3},
};

/* The rule by default, whose promises are most of the work and spread over threads. */
static void run_threads(struct case_inputs *inputs)
{
    for (inputs->threads = 1; inputs->threads <= 4; inputs->threads *= 2) {
        printf("threads %d: ", inputs->threads);
        run_row(inputs, &(struct bench_case){"queue", 24, 5, 12});
    }
    inputs->threads = 1;
}

static int run_words(struct case_inputs *inputs, int argc, char **argv)
{
    bool yaml = strcmp(argv[1], "yaml") == 0, cbc = strcmp(argv[1], "cbc") == 0;
    char **words = argv + (yaml || cbc ? 2 : 1);
    double seconds = cbc && argc == 7 ? atof(argv[6]) : 60;
    if (argc != 5 + (yaml || cbc) && !(cbc && argc == 7))
        return 2;
    struct bench_case row = {words[0], atoi(words[1]), atoi(words[2]), atof(words[3])};
    if (strcmp(row.shape, "mixed") == 0)
        case_inputs_add_boards(inputs);
    if (!yaml && !cbc) {
        run_row(inputs, &row);
        return 0;
    }
    CLEANUP(str_done) struct str text = STR_EMPTY;
    plan_case_write(
        inputs,
        &(struct plan_case){row.shape, row.services, row.gpus_each, (uint64_t)row.seeds},
        &text);
    if (yaml)
        fputs(text.bytes, stdout);
    else
        run_cbc(inputs, &text, seconds);
    return 0;
}

int main(int argc, char **argv)
{
    static struct case_inputs inputs;
    case_inputs_read(&inputs);
    int status = argc > 1 ? run_words(&inputs, argc, argv) : 0;
    if (argc == 1)
        run_threads(&inputs);
    for (size_t i = 0; argc == 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].shape, "mixed") == 0 && strcmp(cases[i - 1].shape, "mixed") != 0)
            case_inputs_add_boards(&inputs);
        run_row(&inputs, &cases[i]);
    }
    case_inputs_done(&inputs);
    return status;
}
