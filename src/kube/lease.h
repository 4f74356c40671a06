/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election over a Lease (coordination.k8s.io/v1), as client-go does it: the holder
 * writes renewTime; another takes over when the Lease has not changed for its duration, by its
 * own clock, so clocks need not agree. Every take-over adds one to leaseTransitions, which is
 * the leader's epoch.
 *
 * Election alone is no fencing: a leader that was stopped may wake up and go on for a moment.
 * Ask kube_lease_holds() right before each effect, write the epoch with the effect, and let
 * those who carry it out refuse a lower one.
 */
#ifndef TRANCHE_KUBE_LEASE_H
#define TRANCHE_KUBE_LEASE_H

#include "kube/api.h"

struct kube_lease_options {
    struct kube_client *client; /* borrowed */
    const char *namespace, *name;
    const char *identity;      /* of this process, no other's, also not an earlier one's */
    int64_t duration_ns;       /* whole seconds; 0: 15 s */
    int64_t renew_deadline_ns; /* 0: 10 s; less than the duration */
    int64_t retry_ns;          /* 0: 2 s; less than the deadline */
    uint64_t seed;             /* of the jitter, up to a fifth of retry_ns */
    /* The highest epoch that is known of elsewhere, -1 none: a Lease that was deleted begins
     * anew, what was written under it does not. Asked at each take-over, whose epoch is higher.
     * NULL: the Lease alone counts. */
    long long (*epoch_elsewhere)(void *context);
    /* We lead from now on, with this epoch. */
    void (*started)(void *context, long long epoch);
    /* We do not lead any more: stop what is under way, or exit. */
    void (*stopped)(void *context);
    void *context;
};

struct kube_lease;

/* Begins to look at the Lease in the next turn of the loop; never NULL. Texts are copied. */
struct kube_lease *kube_lease_new(const struct kube_lease_options *options);
/* Does not release the Lease. */
void kube_lease_free(struct kube_lease *lease);
CLEANUP_DEFINE_FREE(kube_lease)

/* We lead, and the last renewal that is known to have arrived was sent less than the renew
 * deadline ago; true even of a process that was stopped only if that is so now. */
bool kube_lease_holds(const struct kube_lease *lease);
/* leaseTransitions of our leadership; -1 while we do not lead. */
long long kube_lease_epoch(const struct kube_lease *lease);
/* Who holds it, as last seen; "" when nobody. Borrowed. */
const char *kube_lease_holder(const struct kube_lease *lease);

/* Gives the Lease up, so that another need not wait for its end; stopped() is called when we
 * led. Nothing more is tried after. Not from inside a callback of the loop. */
int kube_lease_release(struct kube_lease *lease, struct error *err);

#endif
