/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers are few (one or two for each watch, one for each call that waits to be retried), so
 * they are an unordered list that is searched.
 */
#include "kube/loop.h"

#include <assert.h>

#include "base/memory.h"
#include "base/vec.h"

struct kube_loop {
    const struct kube_transport *transport;
    const struct clock_source *clock;
    VEC(struct kube_timer *) timers;
    VEC(struct kube_descriptor) descriptors;
    bool turning;
};

struct kube_loop *kube_loop_new(const struct kube_transport *transport,
                                const struct clock_source *clock)
{
    struct kube_loop *loop = xcalloc(1, sizeof *loop);

    assert(transport->start && transport->cancel && transport->wait);
    loop->transport = transport;
    loop->clock = clock;
    return loop;
}

void kube_loop_free(struct kube_loop *loop)
{
    if (!loop)
        return;
    for (size_t i = 0; i < loop->timers.count; i++)
        loop->timers.data[i]->loop = NULL;
    vec_done(&loop->timers);
    vec_done(&loop->descriptors);
    free(loop);
}

const struct kube_transport *kube_loop_transport(const struct kube_loop *loop)
{
    return loop->transport;
}

int64_t kube_loop_now_ns(const struct kube_loop *loop)
{
    return clock_now_ns(loop->clock);
}

void kube_timer_stop(struct kube_timer *timer)
{
    struct kube_loop *loop = timer->loop;

    if (!loop)
        return;
    for (size_t i = 0; i < loop->timers.count; i++)
        if (loop->timers.data[i] == timer)
            loop->timers.data[i] = loop->timers.data[--loop->timers.count];
    timer->loop = NULL;
}

void kube_timer_set(struct kube_timer *timer, struct kube_loop *loop, int64_t due_ns)
{
    assert(timer->fire);
    kube_timer_stop(timer);
    timer->due_ns = due_ns;
    timer->loop = loop;
    vec_add(&loop->timers, timer);
}

void kube_loop_add_descriptor(struct kube_loop *loop, const struct kube_descriptor *descriptor)
{
    assert(loop->descriptors.count < KUBE_LOOP_DESCRIPTORS_MAX && descriptor->ready);
    vec_add(&loop->descriptors, *descriptor);
}

void kube_loop_remove_descriptor(struct kube_loop *loop, int fd)
{
    for (size_t i = 0; i < loop->descriptors.count; i++)
        if (loop->descriptors.data[i].fd == fd) {
            loop->descriptors.data[i] = loop->descriptors.data[--loop->descriptors.count];
            return;
        }
}

/* The armed timer that is due first, or NULL. */
static struct kube_timer *next_timer(const struct kube_loop *loop)
{
    struct kube_timer *next = NULL;

    for (size_t i = 0; i < loop->timers.count; i++)
        if (!next || loop->timers.data[i]->due_ns < next->due_ns)
            next = loop->timers.data[i];
    return next;
}

/* A timer that is set anew for a time already past waits for the next turn, lest a turn
 * never ends. */
static bool fire_due(struct kube_loop *loop)
{
    int64_t now_ns = kube_loop_now_ns(loop);
    size_t most = loop->timers.count;
    bool fired = false;

    for (size_t i = 0; i < most; i++) {
        struct kube_timer *timer = next_timer(loop);
        if (!timer || timer->due_ns > now_ns)
            break;
        kube_timer_stop(timer);
        timer->fire(timer->context);
        fired = true;
    }
    return fired;
}

static void call_ready(struct kube_loop *loop, const struct pollfd *polled, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!polled[i].revents)
            continue;
        /* An earlier callback may have removed this one. */
        for (size_t j = 0; j < loop->descriptors.count; j++) {
            struct kube_descriptor descriptor = loop->descriptors.data[j];
            if (descriptor.fd == polled[i].fd) {
                descriptor.ready(descriptor.context);
                break;
            }
        }
    }
}

int kube_loop_turn(struct kube_loop *loop, int64_t wait_ns, struct error *err)
{
    struct pollfd polled[KUBE_LOOP_DESCRIPTORS_MAX];

    assert(!loop->turning && "a callback of the loop waits for the loop");
    loop->turning = true;
    if (fire_due(loop))
        wait_ns = 0;
    const struct kube_timer *next = next_timer(loop);
    int64_t left_ns = next ? next->due_ns - kube_loop_now_ns(loop) : wait_ns;
    if (left_ns < wait_ns)
        wait_ns = left_ns > 0 ? left_ns : 0;
    size_t count = loop->descriptors.count;
    for (size_t i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = loop->descriptors.data[i].fd,
                                    .events = loop->descriptors.data[i].events};
    int rc = loop->transport->wait(loop->transport->self, wait_ns, polled, count, err);
    if (rc == 0)
        call_ready(loop, polled, count);
    loop->turning = false;
    return rc;
}
