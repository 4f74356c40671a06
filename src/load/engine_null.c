/* SPDX-License-Identifier: Apache-2.0
 *
 * The null engine. See engine_null.h. A request's start and end are known when it is
 * submitted: the earliest free server takes it.
 */
#include "load/engine_null.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/vec.h"

struct null_engine {
    struct null_engine_options options;
    int64_t *free_ns;                    /* by server: when it is free */
    VEC(struct load_completion) waiting; /* by end time from `taken` on */
    size_t taken;
};

static int64_t start_after(const struct null_engine *null, int64_t ns)
{
    int64_t stall_end_ns = null->options.stall_at_ns + null->options.stall_ns;
    bool stalled = null->options.stall_ns > 0 && ns >= null->options.stall_at_ns;
    return stalled && ns < stall_end_ns ? stall_end_ns : ns;
}

static int submit(void *self, uint64_t request, struct error *err)
{
    struct null_engine *null = self;
    int64_t now_ns = clock_now_ns(null->options.clock);
    int best = 0;
    assert(null->taken <= null->waiting.count);
    if (null->options.queue_max > 0 &&
        null->waiting.count - null->taken >= null->options.queue_max)
        return error_set(err, E_BUSY, "the queue is full");
    for (int i = 1; i < null->options.servers; i++)
        if (null->free_ns[i] < null->free_ns[best])
            best = i;
    int64_t start_ns = null->free_ns[best] > now_ns ? null->free_ns[best] : now_ns;
    start_ns = start_after(null, start_ns);
    null->free_ns[best] = start_ns + null->options.service_ns;
    /* Ends come in order of submission: service times are equal. */
    vec_add(&null->waiting,
            ((struct load_completion){request, LOAD_OK, start_ns, null->free_ns[best]}));
    return 0;
}

static int poll_completions(void *self, int64_t deadline_ns,
                            struct load_completion *ret_completions, size_t capacity,
                            size_t *ret_count, struct error *err)
{
    struct null_engine *null = self;
    size_t count = 0;
    assert(capacity > 0);
    (void)err;
    if (null->taken < null->waiting.count) {
        int64_t next_ns = null->waiting.data[null->taken].end_ns;
        clock_sleep_until_ns(null->options.clock,
                             next_ns < deadline_ns ? next_ns : deadline_ns);
    } else {
        clock_sleep_until_ns(null->options.clock, deadline_ns);
    }
    int64_t now_ns = clock_now_ns(null->options.clock);
    while (count < capacity && null->taken < null->waiting.count &&
           null->waiting.data[null->taken].end_ns <= now_ns)
        ret_completions[count++] = null->waiting.data[null->taken++];
    if (null->taken == null->waiting.count)
        null->taken = null->waiting.count = 0;
    *ret_count = count;
    return 0;
}

static const struct load_engine engine = {"null", submit, poll_completions};

void null_engine_open(const struct null_engine_options *options, struct load_target *ret_target)
{
    struct null_engine *null = xcalloc(1, sizeof *null);
    assert(options->servers >= 1 && options->service_ns >= 0);
    null->options = *options;
    null->free_ns = xcalloc((size_t)options->servers, sizeof *null->free_ns);
    *ret_target = (struct load_target){&engine, null, options->clock};
}

void null_engine_close(struct load_target *target)
{
    struct null_engine *null = target->self;
    if (!null)
        return;
    vec_done(&null->waiting);
    free(null->free_ns);
    free(null);
    target->self = NULL;
}
