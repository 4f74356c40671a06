/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's decisions, as pure functions from the world to effects. One round for a
 * pool:
 *
 *     observe    the actuator says which GPUs and instances there are
 *     transition the pool's open Transition is carried a step on (transition_step.c)
 *     plan       when none is open and services, profiles or GPUs changed: a new PartitionPlan
 * and the Transition to it (planning.c) routing    Services, EndpointSlices, HTTPRoutes follow
 * the pods (routing.c) status     conditions and figures of our objects; finalizers (status.c)
 *
 * A settled world yields no effect. State is derived from the world; a Transition's status only
 * says what was begun.
 */
#ifndef TRANCHE_CONTROL_RECONCILE_H
#define TRANCHE_CONTROL_RECONCILE_H

#include "base/clock.h"
#include "control/actuator.h"

struct reconcile_options {
    const char *pool;
    double plan_budget_seconds;       /* of one plan; 0: none */
    const struct clock_source *clock; /* for that budget alone; NULL: none is kept */
    int actions_max;                  /* of one Transition object; 0: 500 */
    int piece_gpus; /* changed by one Transition in pools of more than twice as
                       many; 0: 128 */
    int items_max;  /* of one PartitionPlan object; 0: 4000 */
};

struct reconcile_figures { /* for /metrics */
    int gpus, gpus_lost, instances, pods, pods_ready;
    int actions_open, actions_done;
    double required_rps, capacity_rps, floor_rps; /* sums over services */
    bool floor_held, settled;
};

/* E_NOT_FOUND when there is no such pool and nothing that names it has to be let go; all other
 * trouble becomes conditions and events. */
int reconcile_pool(struct world *world, const struct reconcile_options *options,
                   struct effects *ret_effects, struct reconcile_figures *ret_figures,
                   struct error *err);

/* The parts of a round, each with its own tests; gpus as the actuator observes. This one makes
 * a new PartitionPlan where one is due, and the Transition to the current one. */
void reconcile_plan(struct world *world, const struct gpu_pool *pool,
                    const struct actuator_gpus *gpus, const struct reconcile_options *options,
                    struct effects *effects);
/* Carries the open Transition on: begins actions whose predecessors are done and whose floors
 * hold, notes what is done, and closes it. */
void reconcile_transition(struct world *world, const struct gpu_pool *pool,
                          const struct actuator_gpus *gpus, struct transition_object *object,
                          struct effects *effects);
/* Brings Services, EndpointSlices and routes to the pods that serve. */
void reconcile_routing(struct world *world, const struct gpu_pool *pool,
                       struct effects *effects);
/* Writes conditions and figures of the pool and its objects where they changed. */
void reconcile_status(struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus, struct effects *effects);

#endif
