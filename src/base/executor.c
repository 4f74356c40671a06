/* SPDX-License-Identifier: Apache-2.0 */
#include "base/executor.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

struct round {
    executor_work *work;
    void *context;
    size_t pieces;
    atomic_size_t next; /* the next piece that nobody has taken */
};

struct worker {
    struct round *round;
    pthread_t thread;
    int number;
    bool started;
};

static void *work_on(void *raw)
{
    const struct worker *worker = raw;
    struct round *round = worker->round;
    for (;;) {
        size_t piece = atomic_fetch_add(&round->next, 1);
        if (piece >= round->pieces)
            return NULL;
        round->work(round->context, piece, worker->number);
    }
}

int executor_workers(const struct executor *executor)
{
    assert(!executor || (executor->workers >= 1 && executor->workers <= EXECUTOR_WORKERS_MAX));
    return executor ? executor->workers : 1;
}

/* Signals are for the thread that was there before: handlers expect to run on it. */
static void start_workers(struct worker *workers, int count)
{
    assert(count >= 1 && count <= EXECUTOR_WORKERS_MAX);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int w = 1; w < count; w++)
        workers[w].started =
            pthread_create(&workers[w].thread, NULL, work_on, &workers[w]) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void executor_run(const struct executor *executor, size_t pieces, executor_work *work,
                  void *context)
{
    assert(work || pieces == 0);
    struct round round = {.work = work, .context = context, .pieces = pieces};
    struct worker workers[EXECUTOR_WORKERS_MAX];
    int count = executor_workers(executor);
    if ((size_t)count > pieces)
        count = pieces > 0 ? (int)pieces : 1;
    for (int w = 0; w < count; w++)
        workers[w] = (struct worker){.round = &round, .number = w};
    start_workers(workers, count);
    /* Pieces come off one counter rather than in equal shares: they take very different times,
     * and a thread that could not be started leaves no piece behind. */
    work_on(&workers[0]);
    for (int w = 1; w < count; w++)
        if (workers[w].started)
            pthread_join(workers[w].thread, NULL);
    assert(atomic_load(&round.next) >= pieces);
}
