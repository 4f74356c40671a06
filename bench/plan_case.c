/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/executor.h"
#include "base/rng.h"
#include "plan/run.h"

static void list_models(struct case_inputs *inputs)
{
    for (size_t r = 0; r < inputs->rows.rows.count; r++) {
        const struct measurement *row = &inputs->rows.rows.data[r];
        int m = 0;
        while (m < inputs->model_count && strcmp(inputs->models[m], row->model) != 0)
            m++;
        if (m == inputs->model_count)
            inputs->models[inputs->model_count++] = row->model;
        if (row->latency_ms[LATENCY_P90] <= 100 && row->throughput_rps > inputs->best_rps[m])
            inputs->best_rps[m] = row->throughput_rps;
    }
}

void case_inputs_read(struct case_inputs *inputs)
{
    struct error err = {0};
    const char *root = getenv("TRANCHE_SOURCE_ROOT");
    CLEANUP(free_ptr)
    char *path = xasprintf("%s/examples/paper/measurements.csv", root ? root : ".");
    *inputs = (struct case_inputs){0};
    if (measurement_set_read(path, &inputs->rows, &err) < 0) {
        fprintf(stderr, "%s (set TRANCHE_SOURCE_ROOT)\n", err.text);
        exit(4);
    }
    list_models(inputs);
}

void case_inputs_done(struct case_inputs *inputs)
{
    measurement_set_done(&inputs->rows);
}

void case_inputs_add_boards(struct case_inputs *inputs)
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
    size_t count = inputs->rows.rows.count;
    for (size_t r = 0; r < count; r++) {
        for (size_t d = 0; d < sizeof derived / sizeof *derived; d++) {
            struct measurement row = inputs->rows.rows.data[r];
            if (row.profile != mig_profile_find(a100, derived[d].from))
                continue;
            row.board = mig_board_find(derived[d].board);
            row.profile = mig_profile_find(row.board, derived[d].to);
            row.throughput_rps *= derived[d].factor;
            row.latency_ms[LATENCY_P90] /= derived[d].factor;
            vec_add(&inputs->rows.rows, row);
        }
    }
}

void plan_case_write(const struct case_inputs *inputs, const struct plan_case *drawn,
                     struct str *text)
{
    struct rng rng = rng_seed(drawn->seed);
    str_add(text, "services:\n");
    for (int i = 0; i < drawn->services; i++) {
        int m = i % inputs->model_count;
        double share = strcmp(drawn->shape, "lognormal") == 0
                           ? rng_lognormal(&rng, log(drawn->gpus_each) - 0.32, 0.8)
                           : rng_normal(&rng, drawn->gpus_each, drawn->gpus_each / 3);
        double rate_rps = fmax(share, drawn->gpus_each / 20) * inputs->best_rps[m];
        str_addf(text,
                 "- {name: s%d, model: %s, rate_rps: %.3f, latency_ms: 100, percentile: 90}\n",
                 i, inputs->models[m], rate_rps);
    }
    str_addf(text, "latency_rule: %s\n",
             strcmp(drawn->shape, "queue") == 0 ? "queue" : "batch");
    if (strcmp(drawn->shape, "mixed") == 0)
        str_addf(text,
                 "fleet:\n- {board: a100-40gb, count: %d, price: 1.0}\n"
                 "- {board: a30-24gb, count: %d, price: 0.45}\n"
                 "- {board: h100-80gb-sxm5, count: %d, price: 2.1}\n"
                 "- {board: t4-16gb, count: %d, price: 0.19}\n",
                 (int)(drawn->services * drawn->gpus_each / 3),
                 (int)(drawn->services * drawn->gpus_each / 4),
                 (int)(drawn->services * drawn->gpus_each / 4), drawn->services);
}

double plan_case_time(const struct case_inputs *inputs, const struct str *yaml,
                      struct plan *ret_plan)
{
    struct service_set services;
    struct error err = {0};
    if (service_set_parse("bench", yaml->bytes, yaml->length, &services, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    struct plan_request request = plan_request_default(&services, &inputs->rows);
    const struct executor executor = {.workers = inputs->threads > 0 ? inputs->threads : 1};
    request.settings.clock = clock_real();
    request.settings.executor = &executor;
    int64_t start_ns = clock_now_ns(clock_real());
    if (plan_run(&request, ret_plan, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    double seconds = (double)(clock_now_ns(clock_real()) - start_ns) / 1e9;
    service_set_done(&services);
    return seconds;
}

double peak_memory_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}
