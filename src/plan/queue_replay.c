/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay of a fixed Poisson stream. Arrival times are stored once for rate 1; a system is
 * scaled to them. Only batches cost time: the start of a batch needs its first and its b-th
 * arrival, and both counts (who is there, who is late) are searches in a sorted array.
 *
 * Each block of arrivals is stretched to its expected length, which removes the error of
 * the mean rate, the largest one of a finite sample.
 */
#include "plan/queue_replay.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"

enum {
    BLOCK = 1 << 14,
    ARRIVALS_MAX = 1 << 19,
    ARRIVALS_MIN = 1 << 18,
    BATCHES = 1 << 16, /* a replay has at most about this many */
    COARSE = 8,
    PROCS_MAX = 64,
};

struct queue_replay {
    double *arrivals; /* of rate 1 */
    size_t count;     /* made so far, whole blocks */
    struct rng rng;
};

struct queue_replay *queue_replay_new(void)
{
    struct queue_replay *replay = xcalloc(1, sizeof *replay);
    replay->rng = rng_seed(20110917);
    return replay;
}

void queue_replay_free(struct queue_replay *replay)
{
    if (!replay)
        return;
    free(replay->arrivals);
    free(replay);
}

static void make_arrivals(struct queue_replay *replay, size_t count)
{
    assert(count % BLOCK == 0 && count <= ARRIVALS_MAX);
    if (count <= replay->count)
        return;
    replay->arrivals = xrealloc(replay->arrivals, count, sizeof *replay->arrivals);
    for (; replay->count < count; replay->count += BLOCK) {
        double *block = replay->arrivals + replay->count, time = 0;
        for (int i = 0; i < BLOCK; i++)
            block[i] = time += rng_exponential(&replay->rng, 1);
        for (int i = 0; i < BLOCK; i++)
            block[i] = block[i] * BLOCK / time + (double)replay->count;
    }
}

/* How many of the sorted times[0 … count) are <= limit. */
static int count_until(const double *times, int count, double limit)
{
    assert(count >= 0);
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (times[middle] <= limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t arrivals_wanted(const struct queue_case *system, bool coarse)
{
    size_t wanted = (size_t)BATCHES * (size_t)system->batch;
    if (wanted < ARRIVALS_MIN)
        wanted = ARRIVALS_MIN;
    if (wanted > ARRIVALS_MAX)
        wanted = ARRIVALS_MAX;
    if (coarse)
        wanted /= COARSE;
    assert(wanted >= BLOCK);
    return wanted / BLOCK * BLOCK;
}

struct replay_run {
    int batch, procs;
    double wait, limit; /* in units of 1 / rate */
    double service[QUEUE_GROUPS_MAX], total[QUEUE_GROUPS_MAX];
    const struct queue_group *groups;
    double free_at[PROCS_MAX];
};

static int earliest(const struct replay_run *run)
{
    assert(run->procs >= 1 && run->procs <= PROCS_MAX);
    int best = 0;
    for (int i = 1; i < run->procs; i++)
        if (run->free_at[i] < run->free_at[best])
            best = i;
    return best;
}

/* Starts the batch whose first request is times[0]; returns its size, *ret_end its end. */
static int start_batch(struct replay_run *run, const double *times, double *ret_end)
{
    assert(run->batch >= 1 && run->wait >= 0);
    int process = earliest(run), size = run->batch, group = 0;
    double filled = times[run->batch - 1], start = times[0] + run->wait;
    if (filled < start)
        start = filled;
    if (run->free_at[process] > start)
        start = run->free_at[process];
    if (filled > start)
        size = count_until(times, run->batch, start);
    assert(size > 0);
    while (run->groups[group].to < size)
        group++;
    run->free_at[process] = start + run->service[group];
    *ret_end = start + run->total[group];
    return size;
}

double queue_replay_measure(struct queue_replay *replay, const struct queue_case *system,
                            enum queue_measure measure, double limit_ms, bool coarse)
{
    assert(system->procs >= 1 && system->procs <= PROCS_MAX);
    size_t count = arrivals_wanted(system, coarse);
    assert(count > (size_t)system->batch);
    make_arrivals(replay, count);
    /* Times are in mean gaps between arrivals, so that all rates share one stream of
     * arrivals. */
    struct replay_run run = {.batch = system->batch,
                             .procs = system->procs,
                             .wait = system->wait_ms * system->rate,
                             .limit = limit_ms * system->rate,
                             .groups = system->groups};
    for (int g = 0; g < system->group_count; g++) {
        run.service[g] = system->groups[g].service_ms * system->rate;
        run.total[g] = system->groups[g].total_ms * system->rate;
    }
    size_t warm = count / 32, last = count - (size_t)system->batch, counted = 0, i = 0;
    double figure = 0;
    size_t most = BATCHES * 3 / 2 / (coarse ? COARSE : 1), batches = 0;
    for (; i < last && batches < most; batches++) {
        const double *times = replay->arrivals + i;
        double end;
        int size = start_batch(&run, times, &end);
        i += (size_t)size;
        if (i < warm)
            continue;
        counted += (size_t)size;
        if (measure == QUEUE_LATE) {
            if (times[0] < end - run.limit)
                figure += count_until(times, size, end - run.limit);
            continue;
        }
        for (int k = 0; k < size; k++)
            figure += end - times[k];
    }
    double scale = measure == QUEUE_LATE ? 1 : 1 / system->rate;
    return counted ? figure * scale / (double)counted : 0;
}
