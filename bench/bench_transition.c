/* SPDX-License-Identifier: Apache-2.0
 *
 * What planning and verifying transitions of large machines takes, beside the floors that
 * docs/spec/transition.md states for 1,000 GPUs and 500 services: 5 s each.
 */
#include "../tests/transition/support.h"

#include "base/clock.h"

static const double FLOOR_SECONDS = 5;

static double seconds_since(int64_t start_ns)
{
    return (double)(clock_now_ns(clock_real()) - start_ns) / 1e9;
}

static void measure(const char *name, const struct plan *from, const struct plan *to)
{
    struct transition transition;
    struct transition_report report;
    struct error err;
    struct transition_options options = {.spare = 1000, .seed = 1};
    int64_t start_ns = clock_now_ns(clock_real());
    if (transition_plan(from, to, &options, &transition, &err) < 0) {
        printf("%s: %s\n", name, err.text);
        return;
    }
    double planned = seconds_since(start_ns);
    start_ns = clock_now_ns(clock_real());
    transition_verify(&transition, &report);
    double verified = seconds_since(start_ns);
    printf("%-12s %5zu GPUs %4zu services %6zu actions, %d borrowed, makespan %6.1f s: planned "
           "and "
           "verified in %6.2f s, verified in %6.3f s (floors %.0f s) %s\n",
           name, from->gpus.count, from->services.count, transition.actions.count,
           transition.extra_gpus, transition.makespan_seconds, planned, verified, FLOOR_SECONDS,
           planned <= FLOOR_SECONDS && verified <= FLOOR_SECONDS && report.violations.count == 0
               ? "met"
               : "MISSED");
    transition_report_done(&report);
    transition_done(&transition);
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
    return 0;
}
