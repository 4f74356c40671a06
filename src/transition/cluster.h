/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as the exchange-and-compact controller moves it: instances on GPUs, and the
 * MIG-serving paper's actions (create, delete, migrate, repartition), each made of low-level
 * ones. Actions on one GPU follow one another, actions on other GPUs do not wait: that
 * is the paper's parallelism.
 */
#ifndef TRANCHE_TRANSITION_CLUSTER_H
#define TRANCHE_TRANSITION_CLUSTER_H

#include "transition/builder.h"

struct pod { /* an instance, serving or idle */
    struct slot slot;
    struct serving serving; /* service -1: idle */
    int action;             /* the last on the instance, -1: none */
    bool there;
    bool unneeded; /* the exchange will delete it */
};

struct cluster_gpu {
    struct mig_layout layout;
    VEC(int) pods;
    VEC(int) last; /* actions that end the last one on this GPU */
    bool settled;  /* it is as `to` wants it */
    bool borrowed;
};

struct cluster {
    const struct work *work;
    struct transition *transition;
    struct builder builder;
    VEC(struct pod) pods;
    VEC(struct cluster_gpu) gpus;
    int spares, spares_max;
    bool gpu_order; /* actions on one GPU follow one another, as the paper has it */
};

void cluster_init(struct cluster *cluster, const struct work *work,
                  const struct action_times *times, int spares_max);
void cluster_done(struct cluster *cluster);

/* A slot for an instance of this profile on a GPU that is not settled, `avoid` (-1: none)
 * left out: an idle instance of the profile, else room that idle instances may make, else a
 * borrowed GPU. A GPU of the node comes first. False when there is none. */
bool cluster_find_slot(struct cluster *cluster, const struct mig_board *board, int profile,
                       int avoid, const char *node, struct slot *ret_slot);
/* Makes the slot an idle instance, by repartitioning if it is not one yet; returns it. */
int cluster_repartition(struct cluster *cluster, struct slot slot);
/* Deletes an idle instance. */
void cluster_delete_idle(struct cluster *cluster, int pod);
/* The paper's create, delete and migrate. */
void cluster_create(struct cluster *cluster, int pod, struct serving serving);
void cluster_delete(struct cluster *cluster, int pod);
void cluster_migrate(struct cluster *cluster, int from_pod, int to_pod);

/* The instance in a slot, or -1. */
int cluster_pod_at(const struct cluster *cluster, struct slot slot);

#endif
