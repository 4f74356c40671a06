/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue rule of the contract, replayed event by event: Poisson arrivals, a batch
 * starts when a process is free and either `batch` requests wait or the oldest has waited
 * max_wait_ms, and a batch of k takes the latency at the smallest measured batch >= k.
 * Deterministic (one seed). Errors are of batch means, so that correlation counts.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "verify/check.h"

enum { GROUPS = QUEUE_GROUPS, WARM_UP = 4096, WINDOW = 1 << 16 };

struct replay {
    const struct queue_case *queue;
    struct rng rng;
    double *arrivals_ms; /* ring of requests that wait, WINDOW long */
    uint64_t head, tail; /* waiting are head … tail − 1 */
    double next_ms;      /* the next arrival */
    double *free_ms;     /* when each process is free, unsorted */
    uint64_t started;    /* requests whose batch has started */
    double within[GROUPS], total_ms[GROUPS];
};

static void draw_arrival(struct replay *replay)
{
    replay->next_ms += rng_exponential(&replay->rng, 1000 / replay->queue->rate_rps);
}

static void admit(struct replay *replay)
{
    assert(replay->tail - replay->head < WINDOW);
    replay->arrivals_ms[replay->tail++ % WINDOW] = replay->next_ms;
    draw_arrival(replay);
}

static double batch_latency(const struct queue_case *queue, int size)
{
    for (int i = 0; i < queue->size_count; i++)
        if (queue->sizes[i] >= size)
            return queue->latency_ms[i];
    assert(false);
    return INFINITY;
}

static int first_free(const struct replay *replay)
{
    int best = 0;
    for (int p = 1; p < replay->queue->procs; p++)
        if (replay->free_ms[p] < replay->free_ms[best])
            best = p;
    return best;
}

static void note_finished(struct replay *replay, double arrival_ms, double end_ms)
{
    uint64_t number = replay->started++;
    if (number < WARM_UP)
        return;
    uint64_t group = (number - WARM_UP) / (uint64_t)replay->queue->group_requests;
    if (group >= GROUPS)
        return;
    double time_ms = end_ms - arrival_ms;
    replay->within[group] += time_ms <= replay->queue->limit_ms * (1 + VERIFY_TOLERANCE);
    replay->total_ms[group] += time_ms;
}

/* One batch. False when the queue has grown beyond all bounds: the rate is unsustainable. */
static bool run_batch(struct replay *replay)
{
    const struct queue_case *queue = replay->queue;
    int process = first_free(replay);
    if (replay->head == replay->tail)
        admit(replay);
    double oldest_ms = replay->arrivals_ms[replay->head % WINDOW];
    double free_ms = replay->free_ms[process];
    double due_ms = fmax(free_ms, oldest_ms + queue->max_wait_ms);
    /* Requests that come before the batch is due join; a full batch goes as soon as it can. */
    while (replay->tail - replay->head < (uint64_t)queue->batch_max &&
           replay->next_ms <= due_ms)
        admit(replay);
    double start_ms = due_ms;
    if (replay->tail - replay->head >= (uint64_t)queue->batch_max) {
        double full_ms =
            replay->arrivals_ms[(replay->head + (uint64_t)queue->batch_max - 1) % WINDOW];
        start_ms = fmax(free_ms, full_ms);
    }
    while (replay->next_ms <= start_ms) {
        if (replay->tail - replay->head >= WINDOW - 1)
            return false;
        admit(replay);
    }
    uint64_t waiting = replay->tail - replay->head;
    int size = waiting < (uint64_t)queue->batch_max ? (int)waiting : queue->batch_max;
    double end_ms = start_ms + batch_latency(queue, size);
    replay->free_ms[process] = end_ms;
    for (int i = 0; i < size; i++)
        note_finished(replay, replay->arrivals_ms[replay->head++ % WINDOW], end_ms);
    return true;
}

static void summarise(const double *groups, int size, double *ret_mean, double *ret_error)
{
    double sum = 0, squares = 0;
    for (int g = 0; g < GROUPS; g++)
        sum += groups[g] / size;
    double mean = sum / GROUPS;
    for (int g = 0; g < GROUPS; g++)
        squares += pow(groups[g] / size - mean, 2);
    *ret_mean = mean;
    *ret_error = sqrt(squares / (GROUPS - 1) / GROUPS);
}

struct queue_outcome queue_replay_outcome(const struct queue_case *queue)
{
    struct replay replay = {.queue = queue, .rng = rng_seed(20230102)};
    replay.arrivals_ms = xcalloc(WINDOW, sizeof *replay.arrivals_ms);
    replay.free_ms = xcalloc((size_t)queue->procs, sizeof *replay.free_ms);
    draw_arrival(&replay);
    bool stable = true;
    while (stable &&
           replay.started < WARM_UP + (uint64_t)GROUPS * (uint64_t)queue->group_requests)
        stable = run_batch(&replay);
    struct queue_outcome outcome = {.share = 0, .mean_ms = INFINITY};
    if (stable) {
        summarise(replay.within, queue->group_requests, &outcome.share, &outcome.share_error);
        summarise(replay.total_ms, queue->group_requests, &outcome.mean_ms,
                  &outcome.mean_error_ms);
    }
    free(replay.arrivals_ms);
    free(replay.free_ms);
    return outcome;
}
