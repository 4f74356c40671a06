/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue rule's promises against an event-by-event simulation: 100 random cases. Prints
 * for each the share of saturation that is promised, the share of requests that are late at
 * it (1 % is the objective), and at 5 % more; then how long a promise takes.
 *
 *     bench_queue [REQUESTS]
 */
#include <stdio.h>
#include <time.h>

#include "../tests/plan/queue_oracle.h"
#include "base/stats.h"

enum { CASES = 100 };

int main(int argc, char **argv)
{
    CLEANUP(queue_model_free_ptr) struct queue_model *model = queue_model_new();
    struct rng rng = rng_seed(43);
    long requests = argc > 1 ? atol(argv[1]) : 2000000;
    double late[CASES], milliseconds[CASES];
    int cases = 0, kept = 0, broken = 0;
    printf("%4s %5s %5s %8s %8s %10s %9s %9s %8s\n", "case", "procs", "batch", "limit/S",
           "wait/lim", "saturation", "late_%", "at+5%_%", "ms");
    while (cases < CASES) {
        struct oracle_case made;
        oracle_case_make(&made, &rng, 4);
        double saturation = queue_saturation_rps(&made.server);
        clock_t start = clock();
        double promise =
            queue_promise_rps(model, &made.server, &made.objective,
                              &(struct queue_wanted){.limit_rps = saturation * 1.02});
        milliseconds[cases] = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC;
        if (promise == 0)
            continue;
        uint64_t seed = 1000 + (uint64_t)cases;
        late[cases] = oracle_run(&made.server, &made.objective, promise, requests, seed).late;
        double less =
            oracle_run(&made.server, &made.objective, promise * 0.995, requests, seed).late;
        double more =
            oracle_run(&made.server, &made.objective, promise * 1.05, requests / 4, seed).late;
        kept += less <= 0.01;
        broken += more > 0.01;
        printf("%4d %5d %5d %8.2f %8.2f %10.4f %9.3f %9.3f %8.2f\n", cases + 1,
               made.server.procs, made.server.batch_max,
               made.objective.latency_ms / made.latency_ms[made.server.size_count - 1],
               made.objective.max_wait_ms / made.objective.latency_ms, promise / saturation,
               100 * late[cases], 100 * more, milliseconds[cases]);
        cases++;
    }
    printf("late share at the promise, median: %.3f %%\n", 100 * stats_median(late, CASES));
    printf("attainment >= 0.99 at 0.5 %% less than promised: %d of %d\n", kept, CASES);
    printf("broken by 5 %% more: %d of %d\n", broken, CASES);
    printf("a promise takes, CPU time, median: %.2f ms, mean: %.2f ms\n",
           stats_median(milliseconds, CASES), stats_mean(milliseconds, CASES));
    return broken >= 90 ? 0 : 1;
}
