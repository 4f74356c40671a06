/* SPDX-License-Identifier: Apache-2.0
 *
 * What `--from` saves: a synthetic day of 48 half-hours on the MIG-serving paper's figures,
 * planned anew every half-hour. Three ways, each continuing its own plan: from the plan
 * before (`--from`); from scratch, GPUs by their names; and from scratch with every GPU
 * given the name of the earlier one it has most in common with, which needs no planner.
 *
 *     bench_plan_day [SERVICES [SEED [PEAK [STEPS]]]]
 *
 * The day: each service has a peak of 1 to PEAK (5) GPUs at its own hour between 8 and 22, a
 * trough of a quarter of that, a cosine in between, and 5 % of noise. Exit 1 when `--from`
 * ever costs more than planning from scratch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "plan/run.h"
#include "plan_case.h"

enum { STEPS = 48, PEAK = 5, SERVICES = 20, SERVICES_MOST = 64 };

struct day {
    struct case_inputs inputs;
    int services, steps;
    double peak_gpus;
    struct rng rng;
    double peak_rps[SERVICES_MOST], peak_hour[SERVICES_MOST];
};

enum way { WAY_FROM, WAY_SCRATCH, WAY_RENAMED, WAY_COUNT };
static const char *const WAY_NAMES[] = {"--from", "from scratch", "from scratch, renamed"};

struct tally {
    long moved, instances; /* old instances that left their place, of all there were */
    long gpu_steps;        /* GPUs in use, summed over the steps */
    double seconds;
    int proved; /* steps at which no plan of the cost keeps more */
};

static void draw_day(struct day *day, uint64_t seed)
{
    day->rng = rng_seed(seed);
    for (int i = 0; i < day->services; i++) {
        double gpus = rng_uniform(&day->rng, 1, day->peak_gpus);
        day->peak_rps[i] = gpus * day->inputs.best_rps[i % day->inputs.model_count];
        day->peak_hour[i] = rng_uniform(&day->rng, 8, 22);
    }
}

static void write_step(struct day *day, int step, struct str *yaml)
{
    str_add(yaml, "latency_rule: batch\nservices:\n");
    for (int i = 0; i < day->services; i++) {
        double angle = 2 * M_PI * (step / 2.0 - day->peak_hour[i]) / 24;
        double share = 0.25 + 0.75 * (0.5 + 0.5 * cos(angle));
        double noise = fmax(0.5, rng_normal(&day->rng, 1, 0.05));
        str_addf(yaml,
                 "- {name: s%d, model: %s, rate_rps: %.3f, latency_ms: 100, percentile: 90}\n",
                 i, day->inputs.models[i % day->inputs.model_count],
                 day->peak_rps[i] * share * noise);
    }
}

static double plan_step(const struct day *day, const struct str *yaml, const struct plan *from,
                        struct plan *plan)
{
    struct service_set services;
    struct error err = {0};
    int rc = service_set_parse("day", yaml->bytes, yaml->length, &services, &err);
    if (rc < 0) {
        fprintf(stderr, "bench_plan_day: %s\n", err.text);
        exit(1);
    }
    struct plan_request request = plan_request_default(&services, &day->inputs.rows);
    request.from = from;
    int64_t start_ns = clock_now_ns(clock_real());
    rc = plan_run(&request, plan, &err);
    double seconds = (double)(clock_now_ns(clock_real()) - start_ns) / 1e9;
    service_set_done(&services);
    if (rc < 0 || plan->status == PLAN_INFEASIBLE) {
        fprintf(stderr, "bench_plan_day: %s\n", rc < 0 ? err.text : "infeasible");
        exit(1);
    }
    return seconds;
}

/* Instances of one service in one place that two GPUs have in common. Services keep their
 * order in the documents of a day. */
static int common(const struct plan_gpu *a, const struct plan_gpu *b)
{
    int count = 0;
    for (size_t i = 0; i < a->instances.count; i++)
        for (size_t j = 0; j < b->instances.count; j++) {
            const struct plan_instance *x = &a->instances.data[i], *y = &b->instances.data[j];
            count += x->start == y->start && x->profile == y->profile &&
                     x->service == y->service && x->service >= 0;
        }
    return count;
}

static long count_instances(const struct plan *plan)
{
    long count = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
            count += plan->gpus.data[g].instances.data[i].service >= 0;
    return count;
}

static long kept_by_name(const struct plan *old, const struct plan *new)
{
    long kept = 0;
    for (size_t g = 0; g < old->gpus.count; g++) {
        int same = plan_find_gpu(new, old->gpus.data[g].id);
        kept += same < 0 ? 0 : common(&old->gpus.data[g], &new->gpus.data[same]);
    }
    return kept;
}

/* Pairs GPUs greedily, those with most in common first. */
static long kept_renamed(const struct plan *old, const struct plan *new)
{
    bool *old_taken = xcalloc(old->gpus.count + 1, sizeof *old_taken);
    bool *new_taken = xcalloc(new->gpus.count + 1, sizeof *new_taken);
    long kept = 0;
    for (int wanted = MIG_INSTANCES_MAX; wanted > 0; wanted--)
        for (size_t g = 0; g < old->gpus.count; g++)
            for (size_t h = 0; h < new->gpus.count && !old_taken[g]; h++) {
                if (new_taken[h] || common(&old->gpus.data[g], &new->gpus.data[h]) != wanted)
                    continue;
                old_taken[g] = new_taken[h] = true;
                kept += wanted;
            }
    free(old_taken);
    free(new_taken);
    return kept;
}

static void note(struct tally *tally, const struct plan *old, const struct plan *plan,
                 long kept)
{
    tally->instances += count_instances(old);
    tally->moved += count_instances(old) - kept;
    tally->gpu_steps += plan->gpus_used;
}

/* Whether the plan states that none of its cost keeps more. */
static bool is_proved(const struct plan *plan)
{
    json_t *changes = json_object_get(plan->extra, "changes");
    json_t *bound = json_object_get(changes, "kept_bound");
    return bound &&
           json_integer_value(bound) == json_integer_value(json_object_get(changes, "kept"));
}

/* Plans the day; returns at how many steps `--from` cost more. */
static int run_day(struct day *day, struct tally tallies[WAY_COUNT])
{
    struct plan kept, fresh;
    int dearer = 0;
    for (int step = 0; step < day->steps; step++) {
        CLEANUP(str_done) struct str yaml = STR_EMPTY;
        struct plan next_kept, next_fresh;
        write_step(day, step, &yaml);
        double fresh_s = plan_step(day, &yaml, NULL, &next_fresh);
        double kept_s = plan_step(day, &yaml, step ? &kept : NULL, &next_kept);
        dearer += next_kept.cost > next_fresh.cost;
        if (step > 0) {
            note(&tallies[WAY_FROM], &kept, &next_kept, kept_by_name(&kept, &next_kept));
            note(&tallies[WAY_SCRATCH], &fresh, &next_fresh, kept_by_name(&fresh, &next_fresh));
            note(&tallies[WAY_RENAMED], &fresh, &next_fresh, kept_renamed(&fresh, &next_fresh));
            tallies[WAY_FROM].seconds += kept_s;
            tallies[WAY_FROM].proved += is_proved(&next_kept);
            tallies[WAY_SCRATCH].seconds += fresh_s;
            tallies[WAY_RENAMED].seconds += fresh_s;
            plan_done(&kept);
            plan_done(&fresh);
        }
        kept = next_kept;
        fresh = next_fresh;
    }
    plan_done(&kept);
    plan_done(&fresh);
    return dearer;
}

int main(int argc, char **argv)
{
    static struct day day;
    struct tally tallies[WAY_COUNT] = {0};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    day.services = argc > 1 ? atoi(argv[1]) : SERVICES;
    day.peak_gpus = argc > 3 ? atof(argv[3]) : PEAK;
    day.steps = argc > 4 ? atoi(argv[4]) : STEPS;
    if (day.services < 1 || day.services > SERVICES_MOST || !(day.peak_gpus >= 1) ||
        day.steps < 2) {
        fprintf(stderr,
                "bench_plan_day: expected 1 to %d services, a peak of at least 1 GPU and "
                "2 steps\n",
                SERVICES_MOST);
        return 2;
    }
    case_inputs_read(&day.inputs);
    draw_day(&day, seed);
    int dearer = run_day(&day, tallies);
    printf("%d services, %d half-hours, seed %llu\n", day.services, day.steps,
           (unsigned long long)seed);
    printf("%-22s  %6s  %9s  %7s  %9s  %7s\n", "planned", "moved", "instances", "share",
           "GPU-hours", "mean_s");
    for (int w = 0; w < WAY_COUNT; w++)
        printf("%-22s  %6ld  %9ld  %5.1f %%  %9.1f  %7.3f\n", WAY_NAMES[w], tallies[w].moved,
               tallies[w].instances,
               100.0 * (double)tallies[w].moved / (double)tallies[w].instances,
               (double)tallies[w].gpu_steps / 2, tallies[w].seconds / (day.steps - 1));
    printf("steps at which --from keeps the most, proved: %d of %d\n", tallies[WAY_FROM].proved,
           day.steps - 1);
    printf("steps at which --from cost more: %d of %d\n", dearer, day.steps);
    case_inputs_done(&day.inputs);
    return dearer > 0;
}
