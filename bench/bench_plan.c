/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the exact planner is and how tight its bound, on the MIG-serving paper's figures
 * with random rates. One line a case: services, GPUs, bound, gap, status, time, peak memory.
 *
 *     bench_plan MEASUREMENTS.csv [normal|lognormal|mixed] SERVICES [SEEDS] [GPUS_A_SERVICE]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
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

int main(int argc, char **argv)
{
    static struct bench bench;
    static const char *const statuses[] = {"optimal", "feasible", "infeasible"};
    double seconds[SEEDS_MAX];
    struct error err = {0};
    if (argc < 4 || measurement_set_read(argv[1], &bench.rows, &err) < 0) {
        fprintf(stderr, "usage: bench_plan MEASUREMENTS.csv SHAPE SERVICES [SEEDS] [GPUS] %s\n",
                err.text);
        return 2;
    }
    int services = atoi(argv[3]), seeds = argc > 4 ? atoi(argv[4]) : 5, optimal = 0;
    double gpus_each = argc > 5 ? atof(argv[5]) : 12;
    list_models(&bench);
    if (strcmp(argv[2], "mixed") == 0)
        add_boards(&bench);
    for (int seed = 1; seed <= seeds && seed <= SEEDS_MAX; seed++) {
        struct str yaml = STR_EMPTY;
        struct plan plan;
        write_services(&bench, argv[2], services, gpus_each, (uint64_t)seed, &yaml);
        if (getenv("DUMP")) {
            FILE *f = fopen(getenv("DUMP"), "w");
            fputs(yaml.bytes, f);
            fclose(f);
        }
        seconds[seed - 1] = run_case(&bench, &yaml, &plan);
        optimal += plan.status == PLAN_OPTIMAL;
        printf("%s n=%d seed=%d gpus=%d cost=%.2f bound=%.3f gap=%.4f%% %s %.1f ms %.0f MiB\n",
               argv[2], services, seed, plan.gpus_used, plan.cost, plan.bound_cost,
               100 * (plan.cost - plan.bound_cost) / plan.bound_cost, statuses[plan.status],
               seconds[seed - 1] * 1e3, peak_mib());
        fflush(stdout);
        plan_done(&plan);
        str_done(&yaml);
    }
    printf("%s n=%d: %d of %d proved optimal, median %.1f ms\n", argv[2], services, optimal,
           seeds, stats_median(seconds, (size_t)seeds) * 1e3);
    measurement_set_done(&bench.rows);
    return 0;
}
