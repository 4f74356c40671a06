/* SPDX-License-Identifier: Apache-2.0
 *
 * The one loop of a controller: exchanges of a transport, timers and descriptors (a signalfd,
 * a listening socket), all in the calling thread. Time comes from a clock, so tests with a fake
 * one wait for nothing.
 */
#ifndef TRANCHE_KUBE_LOOP_H
#define TRANCHE_KUBE_LOOP_H

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/transport.h"

enum { KUBE_LOOP_DESCRIPTORS_MAX = 64 };

struct kube_loop;

/* A timer lives in its owner's structure; zeroed it is unarmed. It fires once a setting. */
struct kube_timer {
    void (*fire)(void *context);
    void *context;
    int64_t due_ns;
    struct kube_loop *loop; /* while armed */
};

/* Transport and clock are borrowed and outlive the loop. */
struct kube_loop *kube_loop_new(const struct kube_transport *transport,
                                const struct clock_source *clock);
/* Timers that are still armed become unarmed. NULL is fine. */
void kube_loop_free(struct kube_loop *loop);
CLEANUP_DEFINE_FREE(kube_loop)

/* The transport it was made with; borrowed. */
const struct kube_transport *kube_loop_transport(const struct kube_loop *loop);
/* The time of its clock. */
int64_t kube_loop_now_ns(const struct kube_loop *loop);

/* Arms the timer, or moves it. */
void kube_timer_set(struct kube_timer *timer, struct kube_loop *loop, int64_t due_ns);
/* Disarms the timer; one that is not armed is fine. */
void kube_timer_stop(struct kube_timer *timer);

/* Calls ready(context) in each turn in which fd has one of these poll() events; at most
 * KUBE_LOOP_DESCRIPTORS_MAX of them. */
struct kube_descriptor {
    int fd;
    short events;
    void (*ready)(void *context);
    void *context;
};
/* The descriptor stays the caller's, to be taken out before it is closed. */
void kube_loop_add_descriptor(struct kube_loop *loop, const struct kube_descriptor *descriptor);
/* From this turn on; one that is not there is fine. */
void kube_loop_remove_descriptor(struct kube_loop *loop, int fd);

/* Fires due timers, then waits for at most wait_ns, the next timer, or something to happen.
 * Not from inside a callback of the loop. */
int kube_loop_turn(struct kube_loop *loop, int64_t wait_ns, struct error *err);

#endif
