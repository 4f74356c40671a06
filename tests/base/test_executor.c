/* SPDX-License-Identifier: Apache-2.0
 *
 * Every piece runs once, on a worker that runs nothing else meanwhile; under TSan, memory
 * of a worker needs no lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/executor.h"

enum { PIECES = 5000, WORKERS = 5 };

struct job {
    int runs[PIECES];
    size_t last; /* written by one worker: the order of its pieces */
    long sums[WORKERS];
    int workers;
};

static void run_piece(void *context, size_t piece, int worker)
{
    struct job *job = context;
    assert_true(worker >= 0 && worker < job->workers);
    job->runs[piece]++;
    job->sums[worker] += (long)piece;
    if (job->workers == 1) {
        assert_true(piece == 0 || piece == job->last + 1);
        job->last = piece;
    }
}

static void runs_every_piece_once(void **state)
{
    static const size_t counts[] = {0, 1, 2, WORKERS, PIECES};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int workers = 0; workers <= WORKERS; workers++) {
            static struct job job;
            job = (struct job){.workers = workers ? workers : 1};
            const struct executor executor = {.workers = workers};
            executor_run(workers ? &executor : NULL, counts[c], run_piece, &job);
            long sum = 0;
            for (int w = 0; w < WORKERS; w++)
                sum += job.sums[w];
            assert_int_equal(sum, (long)counts[c] * ((long)counts[c] - 1) / 2);
            for (size_t p = 0; p < PIECES; p++)
                assert_int_equal(job.runs[p], p < counts[c]);
        }
}

static void counts_workers(void **state)
{
    (void)state;
    assert_int_equal(executor_workers(NULL), 1);
    assert_int_equal(executor_workers(&(struct executor){.workers = 3}), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_every_piece_once),
        cmocka_unit_test(counts_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
