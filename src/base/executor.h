/* SPDX-License-Identifier: Apache-2.0
 *
 * Independent pieces of work, perhaps on several processors: the seam by which pure code
 * uses threads without knowing of them. What a piece computes must depend on its number
 * alone, so that the number of workers changes the time and nothing else.
 */
#ifndef TRANCHE_BASE_EXECUTOR_H
#define TRANCHE_BASE_EXECUTOR_H

#include <stddef.h>

enum { EXECUTOR_WORKERS_MAX = 256 };

struct executor {
    int workers; /* 1 … EXECUTOR_WORKERS_MAX */
};

/* One piece. `worker` is 0 … workers - 1; no two pieces run at once on the same worker, so
 * memory kept for each worker needs no lock. */
typedef void executor_work(void *context, size_t piece, int worker);

/* Runs all pieces and returns when the last has ended. Pieces begin in order. With one
 * worker, or NULL, everything runs on the calling thread; with more, the calling thread is
 * worker 0, and where a thread cannot be started the others do its share. */
void executor_run(const struct executor *executor, size_t pieces, executor_work *work,
                  void *context);
/* How many workers there are; 1 for NULL. */
int executor_workers(const struct executor *executor);

#endif
