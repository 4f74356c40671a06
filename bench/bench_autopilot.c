/* SPDX-License-Identifier: Apache-2.0
 *
 * The autopilot on a day of 48 half-hours, beside planning anew at every step and never
 * after the first: changes of the plan, instances started for them, service-steps whose
 * demand was above what the plan promised, and GPU-hours.
 *
 *     bench_autopilot MEASUREMENTS.csv [SEED]
 *
 * Five services of one model each; demand is a day curve with its own peak hour for each, a
 * noise of 5 %, and one burst. Every policy plans for the same forecast, except that "never"
 * plans once for the demand of step 0.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "runtime/autopilot.h"

enum { STEPS = 48, SERVICES = 5 };

enum policy { POLICY_AUTOPILOT, POLICY_ALWAYS, POLICY_NEVER, POLICY_COUNT };
static const char *const POLICY_NAMES[POLICY_COUNT] = {"autopilot", "always", "never"};

struct outcome {
    int changes, starts, violations;
    double gpu_hours;
};

static const char SERVICES_YAML[] =
    "services:\n"
    "  - {name: search, model: pytorch/bert-base-uncased, rate_rps: 2000,\n"
    "     latency_ms: 100, percentile: 90}\n"
    "  - {name: photos, model: pytorch/resnet50, rate_rps: 7500,\n"
    "     latency_ms: 100, percentile: 90}\n"
    "  - {name: tags, model: pytorch/densenet121, rate_rps: 2500,\n"
    "     latency_ms: 150, percentile: 90}\n"
    "  - {name: chat, model: pytorch/gpt2, rate_rps: 600, latency_ms: 200, percentile: 90}\n"
    "  - {name: rank, model: pytorch/roberta-large, rate_rps: 500,\n"
    "     latency_ms: 200, percentile: 90}\n"
    "latency_rule: batch\n";

static double demand(int service, int step, double stated, struct rng *rng)
{
    double hour = step / 2.0, peak = 11 + 2.5 * service;
    double curve = 0.55 + 0.45 * cos((hour - peak) / 24 * 2 * M_PI);
    double burst = service == 1 && step >= 30 && step < 33 ? 1.5 : 1;
    return stated * curve * burst * (1 + 0.05 * rng_normal(rng, 0, 1));
}

static bool has_instance(const struct plan *plan, const struct plan_gpu *gpu,
                         const struct plan *other, const struct plan_instance *instance)
{
    int index = plan_find_gpu(other, gpu->id);
    for (size_t i = 0; index >= 0 && i < other->gpus.data[index].instances.count; i++) {
        const struct plan_instance *old = &other->gpus.data[index].instances.data[i];
        if (old->profile == instance->profile && old->start == instance->start &&
            old->service >= 0 && old->batch == instance->batch &&
            strcmp(other->services.data[old->service].name,
                   plan->services.data[instance->service].name) == 0)
            return true;
    }
    return false;
}

static int count_starts(const struct plan *from, const struct plan *to)
{
    int starts = 0;
    for (size_t g = 0; g < to->gpus.count; g++)
        for (size_t i = 0; i < to->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &to->gpus.data[g].instances.data[i];
            starts +=
                instance->service >= 0 && !has_instance(to, &to->gpus.data[g], from, instance);
        }
    return starts;
}

static void run_policy(enum policy policy, struct service_set *services,
                       const struct measurement_set *rows, uint64_t seed,
                       struct outcome *outcome)
{
    struct autopilot_settings settings = {.headroom = 0.15,
                                          .least_share = 0.05,
                                          .hold = policy == POLICY_ALWAYS ? 1 : 3,
                                          .max_moves = -1};
    struct autopilot autopilot;
    struct plan plan;
    struct error err = {0};
    struct rng rng = rng_seed(seed);
    double stated[SERVICES], rates[SERVICES];
    for (int s = 0; s < SERVICES; s++)
        stated[s] = services->services.data[s].rate_rps;
    autopilot_init(&autopilot, &settings, services, rows);
    plan_init(&plan);
    for (int step = 0; step < STEPS; step++) {
        for (int s = 0; s < SERVICES; s++)
            rates[s] = demand(s, step, stated[s], &rng);
        for (int s = 0; s < SERVICES && step > 0; s++) {
            int index = plan_find_service(&plan, services->services.data[s].name);
            outcome->violations +=
                index < 0 || plan.services.data[index].provided_rps < rates[s];
        }
        outcome->gpu_hours += plan.gpus_used / 2.0;
        autopilot_observe(&autopilot, rates);
        struct autopilot_decision decision;
        if (autopilot_decide(&autopilot, &plan, 0, &decision, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        bool change = decision.verdict == AUTOPILOT_CHANGE;
        if (policy == POLICY_ALWAYS && decision.verdict != AUTOPILOT_WAIT)
            change = true;
        if (policy == POLICY_NEVER && step > 0)
            change = false;
        int starts = change ? count_starts(&plan, &decision.plan) : 0;
        if (change && (starts > 0 || decision.plan.gpus_used != plan.gpus_used)) {
            outcome->changes += step > 0;
            outcome->starts += step > 0 ? starts : 0;
            plan_done(&plan);
            plan = decision.plan;
            plan_init(&decision.plan);
        }
        autopilot_decision_done(&decision);
    }
    plan_done(&plan);
    for (int s = 0; s < SERVICES; s++)
        services->services.data[s].rate_rps = stated[s];
    autopilot_done(&autopilot);
}

int main(int argc, char **argv)
{
    struct service_set services = {0};
    struct measurement_set rows = {0};
    struct error err = {0};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc < 2)
        return 2;
    if (service_set_parse("services", SERVICES_YAML, strlen(SERVICES_YAML), &services, &err) !=
            0 ||
        measurement_set_read(argv[1], &rows, &err) != 0 ||
        service_set_match(&services, &rows, "services", &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    printf("%-10s %8s %8s %22s %10s\n", "policy", "changes", "starts", "steps below demand",
           "GPU-hours");
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        struct outcome outcome = {0};
        run_policy((enum policy)policy, &services, &rows, seed, &outcome);
        printf("%-10s %8d %8d %15d of %3d %10.1f\n", POLICY_NAMES[policy], outcome.changes,
               outcome.starts, outcome.violations, SERVICES * (STEPS - 1), outcome.gpu_hours);
    }
    service_set_done(&services);
    measurement_set_done(&rows);
    return 0;
}
