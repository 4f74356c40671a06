/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the exact planner is and how tight its bound, on the MIG-serving paper's figures
 * with random rates. One line a case: services, GPUs, bound, gap, status, time, peak memory.
 *
 *     bench_plan                                     the cases below
 *     bench_plan SHAPE SERVICES SEEDS GPUS_EACH      one row of one's own
 *     bench_plan yaml SHAPE SERVICES SEED GPUS_EACH  the services of one case
 *     bench_plan cbc SHAPE SERVICES SEED GPUS_EACH   CBC on the compact model, 60 s
 *
 * SHAPE is normal, lognormal, or mixed (four boards with prices and stock).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
#include "plan/compact.h"
#include "plan/run.h"

enum { SEEDS_MAX = 1000 };

struct bench {
    struct measurement_set rows;
    const char *models[64];
    int model_count;
    double best_rps[64]; /* of each model on the largest slice, for the scale of rates */
};

static void list_models(struct bench *bench)
{
    for (size_t r = 0; r < bench->rows.rows.count; r++) {
        const struct measurement *row = &bench->rows.rows.data[r];
        int m = 0;
        while (m < bench->model_count && strcmp(bench->models[m], row->model) != 0)
            m++;
        if (m == bench->model_count)
            bench->models[bench->model_count++] = row->model;
        if (row->latency_ms[LATENCY_P90] <= 100 && row->throughput_rps > bench->best_rps[m])
            bench->best_rps[m] = row->throughput_rps;
    }
}

/* Rows for three more boards, derived from the A100's by made-up factors: what matters here
 * is a mixed fleet, not its truth. */
static void add_boards(struct bench *bench)
{
    static const struct {
        const char *board, *from, *to;
        double factor;
    } derived[] = {
        {"h100-80gb-sxm5", "1g", "1g", 1.9}, {"h100-80gb-sxm5", "2g", "2g", 1.9},
        {"h100-80gb-sxm5", "3g", "3g", 2.0}, {"h100-80gb-sxm5", "4g", "4g", 2.0},
        {"h100-80gb-sxm5", "7g", "7g", 2.2}, {"a30-24gb", "1g", "1g", 0.9},
        {"a30-24gb", "2g", "2g", 0.95},      {"a30-24gb", "4g", "4g", 0.9},
        {"t4-16gb", "1g", "whole", 0.8},
    };
    const struct mig_board *a100 = mig_board_find("a100-40gb");
    size_t count = bench->rows.rows.count;
    for (size_t r = 0; r < count; r++) {
        for (size_t d = 0; d < sizeof derived / sizeof *derived; d++) {
            struct measurement row = bench->rows.rows.data[r];
            if (row.profile != mig_profile_find(a100, derived[d].from))
                continue;
            row.board = mig_board_find(derived[d].board);
            row.profile = mig_profile_find(row.board, derived[d].to);
            row.throughput_rps *= derived[d].factor;
            row.latency_ms[LATENCY_P90] /= derived[d].factor;
            vec_add(&bench->rows.rows, row);
        }
    }
}

/* Rates are drawn in whole GPUs, so that every model needs about as many. */
static void write_services(const struct bench *bench, const char *shape, int services,
                           double gpus_each, uint64_t seed, struct str *text)
{
    struct rng rng = rng_seed(seed);
    str_add(text, "services:\n");
    for (int i = 0; i < services; i++) {
        int m = i % bench->model_count;
        double share = strcmp(shape, "lognormal") == 0
                           ? rng_lognormal(&rng, log(gpus_each) - 0.32, 0.8)
                           : rng_normal(&rng, gpus_each, gpus_each / 3);
        double rate_rps = fmax(share, gpus_each / 20) * bench->best_rps[m];
        str_addf(text,
                 "- {name: s%d, model: %s, rate_rps: %.3f, latency_ms: 100, percentile: 90}\n",
                 i, bench->models[m], rate_rps);
    }
    str_add(text, "latency_rule: batch\n");
    if (strcmp(shape, "mixed") == 0)
        str_addf(text,
                 "fleet:\n- {board: a100-40gb, count: %d, price: 1.0}\n"
                 "- {board: a30-24gb, count: %d, price: 0.45}\n"
                 "- {board: h100-80gb-sxm5, count: %d, price: 2.1}\n"
                 "- {board: t4-16gb, count: %d, price: 0.19}\n",
                 (int)(services * gpus_each / 3), (int)(services * gpus_each / 4),
                 (int)(services * gpus_each / 4), services);
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static double run_case(const struct bench *bench, const struct str *yaml, struct plan *plan)
{
    struct service_set services;
    struct error err = {0};
    if (service_set_parse("bench", yaml->bytes, yaml->length, &services, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    struct plan_request request = plan_request_default(&services, &bench->rows);
    request.settings.clock = clock_real();
    int64_t start_ns = clock_now_ns(clock_real());
    if (plan_run(&request, plan, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    double seconds = (double)(clock_now_ns(clock_real()) - start_ns) / 1e9;
    service_set_done(&services);
    return seconds;
}

struct bench_case {
    const char *shape;
    int services, seeds;
    double gpus_each;
};

static void run_row(const struct bench *bench, const struct bench_case *row)
{
    static const char *const statuses[] = {"optimal", "feasible", "infeasible"};
    double seconds[SEEDS_MAX], worst_gap = 0;
    int optimal = 0, within_one = 0, gpus = 0;
    for (int seed = 1; seed <= row->seeds; seed++) {
        struct str yaml = STR_EMPTY;
        struct plan plan;
        write_services(bench, row->shape, row->services, row->gpus_each, (uint64_t)seed, &yaml);
        seconds[seed - 1] = run_case(bench, &yaml, &plan);
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
           stats_median(seconds, (size_t)row->seeds) * 1e3, peak_mib());
    fflush(stdout);
}

/* CBC on the compact model of one case. */
static void run_cbc(const struct bench *bench, const struct str *yaml)
{
    struct service_set services;
    struct problem problem;
    struct pattern_list patterns;
    struct milp milp;
    struct milp_result result;
    struct error err = {0};
    struct problem_options options = {.max_moves = -1};
    if (service_set_parse("bench", yaml->bytes, yaml->length, &services, &err) < 0 ||
        problem_init(&problem, &services, &bench->rows, &options, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    int64_t start_ns = clock_now_ns(clock_real());
    pattern_list_init(&patterns, &problem);
    compact_build(&problem, &patterns, &(struct compact_options){0}, &milp);
    milp_solve(&milp, &(struct milp_limits){.cutoff = INFINITY, .seconds = 60, .nodes = -1},
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

static int run_words(struct bench *bench, int argc, char **argv)
{
    bool yaml = strcmp(argv[1], "yaml") == 0, cbc = strcmp(argv[1], "cbc") == 0;
    char **words = argv + (yaml || cbc ? 2 : 1);
    if (argc != 5 + (yaml || cbc))
        return 2;
    struct bench_case row = {words[0], atoi(words[1]), atoi(words[2]), atof(words[3])};
    if (strcmp(row.shape, "mixed") == 0)
        add_boards(bench);
    if (!yaml && !cbc) {
        run_row(bench, &row);
        return 0;
    }
    CLEANUP(str_done) struct str text = STR_EMPTY;
    write_services(bench, row.shape, row.services, row.gpus_each, (uint64_t)row.seeds, &text);
    if (yaml)
        fputs(text.bytes, stdout);
    else
        run_cbc(bench, &text);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct error err = {0};
    const char *root = getenv("TRANCHE_SOURCE_ROOT");
    CLEANUP(free_ptr)
    char *path = xasprintf("%s/examples/paper/measurements.csv", root ? root : ".");
    if (measurement_set_read(path, &bench.rows, &err) < 0) {
        fprintf(stderr, "%s (set TRANCHE_SOURCE_ROOT)\n", err.text);
        return 4;
    }
    list_models(&bench);
    int status = argc > 1 ? run_words(&bench, argc, argv) : 0;
    for (size_t i = 0; argc == 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].shape, "mixed") == 0 && strcmp(cases[i - 1].shape, "mixed") != 0)
            add_boards(&bench);
        run_row(&bench, &cases[i]);
    }
    measurement_set_done(&bench.rows);
    return status;
}
