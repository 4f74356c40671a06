/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue rule of the contract, replayed event by event: Poisson arrivals, a batch
 * starts when a process is free and either `batch` requests wait or the oldest has waited
 * max_wait_ms, and a batch of k takes the latency at the smallest measured batch >= k.
 * Deterministic (one seed). Errors are of batch means, so that correlation counts.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/stats.h"
#include "verify/check.h"
#include "verify/queue_law.h"

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
    assert(replay->queue->rate_rps > 0);
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
    assert(size >= 1);
    for (int i = 0; i < queue->size_count; i++)
        if (queue->sizes[i] >= size)
            return queue->latency_ms[i];
    assert(false);
    return INFINITY;
}

static int first_free(const struct replay *replay)
{
    assert(replay->queue->procs >= 1);
    int best = 0;
    for (int p = 1; p < replay->queue->procs; p++)
        if (replay->free_ms[p] < replay->free_ms[best])
            best = p;
    return best;
}

static void note_finished(struct replay *replay, double arrival_ms, double end_ms)
{
    assert(end_ms >= arrival_ms);
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
    assert(size >= 1);
    double latency_ms = batch_latency(queue, size), end_ms = start_ms + latency_ms;
    replay->free_ms[process] = start_ms + queue->occupied * latency_ms;
    for (int i = 0; i < size; i++)
        note_finished(replay, replay->arrivals_ms[replay->head++ % WINDOW], end_ms);
    return true;
}

static bool run(struct replay *replay)
{
    const struct queue_case *queue = replay->queue;
    uint64_t last = WARM_UP + (uint64_t)GROUPS * (uint64_t)queue->group_requests;
    bool stable = true;
    replay->rng = rng_seed(20230102);
    replay->arrivals_ms = xcalloc(WINDOW, sizeof *replay->arrivals_ms);
    replay->free_ms = xcalloc((size_t)queue->procs, sizeof *replay->free_ms);
    draw_arrival(replay);
    while (stable && replay->started < last)
        stable = run_batch(replay);
    free(replay->arrivals_ms);
    free(replay->free_ms);
    for (int g = 0; g < GROUPS; g++) {
        replay->within[g] /= queue->group_requests;
        replay->total_ms[g] /= queue->group_requests;
    }
    return stable;
}

struct estimate {
    double value, error;
};

/* Each group's figure, less what the same arrivals give the comparison system, plus what is
 * known of that one. What the sample of it misses of the known may be missed here too: a
 * tenth of that counts as error. */
static struct estimate compare(const double *groups, const double *others, double known)
{
    double differences[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        differences[g] = groups[g] - others[g];
    double missed = fabs(stats_mean(others, GROUPS) - known) / 10;
    double error = sqrt(stats_variance(differences, GROUPS) / GROUPS);
    return (struct estimate){stats_mean(differences, GROUPS) + known, hypot(error, missed)};
}

static struct estimate sample(const double *groups)
{
    return (struct estimate){stats_mean(groups, GROUPS),
                             sqrt(stats_variance(groups, GROUPS) / GROUPS)};
}

struct queue_outcome queue_replay_outcome(const struct queue_case *queue)
{
    assert(queue->group_requests > 0 && queue->size_count > 0);
    struct queue_case fast = *queue;
    struct replay replay = {.queue = queue}, other = {.queue = &fast};
    CLEANUP(queue_law_free_ptr) struct queue_law *law = NULL;
    fast.procs = 1;
    fast.occupied = 1.0 / queue->procs;
    if (!run(&replay))
        return (struct queue_outcome){.share = 0, .mean_ms = INFINITY};
    if (queue_law_covers(&fast))
        law = queue_law_new(&fast);
    if (!law || !run(&other)) {
        struct estimate share = sample(replay.within), mean = sample(replay.total_ms);
        return (struct queue_outcome){share.value, share.error, mean.value, mean.error};
    }
    double late = queue_law_late(law, queue->limit_ms * (1 + VERIFY_TOLERANCE));
    struct estimate share = compare(replay.within, other.within, 1 - late);
    struct estimate mean = compare(replay.total_ms, other.total_ms, queue_law_mean_ms(law));
    return (struct queue_outcome){share.value, share.error, mean.value, mean.error};
}
