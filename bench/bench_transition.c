/* SPDX-License-Identifier: Apache-2.0
 *
 * What planning and verifying transitions of large machines takes, in seconds of one processor,
 * beside the limits that docs/spec/transition.md states for 1,000 GPUs and 500 services: 5 s
 * each. And growth and shrinking by much.
 */
#include "../tests/transition/support.h"

#include <time.h>

static const double LIMIT_SECONDS = 5;

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void measure(const char *name, const struct plan *from, const struct plan *to)
{
    struct transition transition;
    struct transition_report report;
    struct error err;
    struct transition_options options = {.spare = 1000, .seed = 1};
    double start = processor_seconds();
    if (transition_plan(from, to, &options, &transition, &err) < 0) {
        printf("%s: %s\n", name, err.text);
        return;
    }
    double planned = processor_seconds() - start;
    start = processor_seconds();
    transition_verify(&transition, &report);
    double verified = processor_seconds() - start;
    size_t edges = 0;
    for (size_t i = 0; i < transition.actions.count; i++)
        edges += transition.actions.data[i].after.count;
    printf(
        "%-12s %5zu to %5zu GPUs %4zu services %6zu actions %6zu edges, %d borrowed, makespan "
        "%6.1f s: planned and verified in %6.2f s, verified in %6.3f s (limits %.0f s) %s\n",
        name, from->gpus.count, to->gpus.count, from->services.count, transition.actions.count,
        edges, transition.extra_gpus, transition.makespan_seconds, planned, verified,
        LIMIT_SECONDS,
        planned <= LIMIT_SECONDS && verified <= LIMIT_SECONDS && report.violations.count == 0
            ? "met"
            : "MISSED");
    transition_report_done(&report);
    transition_done(&transition);
}

/* From a few GPUs to very many, and back. */
static void measure_growth(void)
{
    struct rng rng = rng_seed(1);
    struct random_case few = {.gpus_min = 5, .gpus_max = 5, .services = 5, .tight = 0.95};
    struct random_case many = {
        .gpus_min = 33000, .gpus_max = 33000, .services = 5, .tight = 0.95};
    struct plan from, to;
    support_random_plan(&rng, &few, random_boards, 1, &from);
    support_random_plan(&rng, &many, random_boards, 1, &to);
    measure("growth", &from, &to);
    measure("shrinking", &to, &from);
    plan_done(&from);
    plan_done(&to);
}

int main(void)
{
    static const int sizes[][2] = {{24, 5}, {100, 50}, {300, 150}, {1000, 500}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rng rng = rng_seed(1);
        struct random_case given = {.gpus_min = sizes[i][0],
                                    .gpus_max = sizes[i][0],
                                    .services = sizes[i][1],
                                    .tight = 0.95};
        struct plan from, to, shuffled;
        support_random_plan(&rng, &given, random_boards, 1, &from);
        support_random_plan(&rng, &given, random_boards, 1, &to);
        support_shuffle(&rng, &from, &shuffled);
        measure("independent", &from, &to);
        measure("shuffled", &from, &shuffled);
        plan_done(&from);
        plan_done(&to);
        plan_done(&shuffled);
    }
    measure_growth();
    return 0;
}
