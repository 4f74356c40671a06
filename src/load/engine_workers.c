/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers as an engine. See engine_workers.h.
 */
#include "load/engine_workers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/vec.h"

struct workers_engine {
    struct children *children;
    struct {
        VEC(uint64_t) requests; /* sent to this child, oldest first from `done` on */
        size_t done;
    } queues[CHILDREN_MAX];
    VEC(struct load_completion) completions; /* from `taken` on */
    size_t taken;
};

/* Steps come in the order of requests. */
static void take_steps(void *context, int child, const struct steps_event *steps)
{
    struct workers_engine *workers = context;
    for (int i = 0; i < steps->count; i++) {
        if (workers->queues[child].done == workers->queues[child].requests.count)
            return; /* a step that nobody asked for */
        uint64_t request = workers->queues[child].requests.data[workers->queues[child].done++];
        vec_add(&workers->completions,
                ((struct load_completion){request, LOAD_OK, steps->start_ns[i],
                                          steps->start_ns[i] + steps->duration_ns[i]}));
    }
}

static size_t outstanding(const struct workers_engine *workers, int child)
{
    assert(child < CHILDREN_MAX);
    return workers->queues[child].requests.count - workers->queues[child].done;
}

static int child_failure(const struct workers_engine *workers, struct error *err)
{
    int failed = children_failed(workers->children);
    if (failed < 0)
        return 0;
    return error_set(err, E_IO, "%s", workers->children->list[failed].reason);
}

static int submit(void *self, uint64_t request, struct error *err)
{
    struct workers_engine *workers = self;
    int best = 0;
    assert(workers->children->count > 0);
    for (int i = 1; i < workers->children->count; i++)
        if (outstanding(workers, i) < outstanding(workers, best))
            best = i;
    if (!child_write(&workers->children->list[best], "r\n")) {
        int failure = child_failure(workers, err);
        return failure ? failure : error_set(err, E_IO, "the workload takes no requests");
    }
    vec_add(&workers->queues[best].requests, request);
    return 0;
}

static int poll_completions(void *self, int64_t deadline_ns,
                            struct load_completion *ret_completions, size_t capacity,
                            size_t *ret_count, struct error *err)
{
    struct workers_engine *workers = self;
    size_t count = 0;
    assert(capacity > 0);
    if (workers->taken == workers->completions.count) {
        workers->taken = workers->completions.count = 0;
        int64_t left_ns = deadline_ns - clock_now_ns(clock_real());
        int failure = children_listen(workers->children, left_ns > 0 ? left_ns : 0, err);
        if (!failure)
            failure = child_failure(workers, err);
        if (failure)
            return failure;
    }
    while (count < capacity && workers->taken < workers->completions.count)
        ret_completions[count++] = workers->completions.data[workers->taken++];
    *ret_count = count;
    return 0;
}

static const struct load_engine engine = {"workers", submit, poll_completions};

void workers_engine_open(struct children *children, struct load_target *ret_target)
{
    struct workers_engine *workers = xcalloc(1, sizeof *workers);
    workers->children = children;
    children->on_steps = take_steps;
    children->context = workers;
    *ret_target = (struct load_target){&engine, workers, clock_real()};
}

void workers_engine_close(struct load_target *target)
{
    struct workers_engine *workers = target->self;
    if (!workers)
        return;
    workers->children->on_steps = NULL;
    for (int i = 0; i < CHILDREN_MAX; i++)
        vec_done(&workers->queues[i].requests);
    vec_done(&workers->completions);
    free(workers);
    target->self = NULL;
}
