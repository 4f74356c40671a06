/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wanted (the services, the profiles, the GPUs that may be planned for), what the
 * current plan says, and what is there, as plans that can be compared: shared by the parts of
 * a round that plan and that carry out.
 */
#ifndef TRANCHE_CONTROL_PLANNING_H
#define TRANCHE_CONTROL_PLANNING_H

#include "control/pool_view.h"
#include "control/reconcile.h"
#include "format/plan_document.h"

enum { INPUT_HASH_SIZE = 17, TEMPLATE_HASH_SIZE = 11 };

/* Of all that a plan is made from: 16 hexadecimal digits. */
void planning_hash(const struct pool_view *view, char ret_hash[INPUT_HASH_SIZE]);
/* Whether a new plan has to be made now: the inputs are others than those of the last one, and
 * replan_seconds are over or it stands on GPUs that are gone. Not yet: *ret_again_s is when. */
bool planning_is_due(const struct pool_view *view, const char *hash, int64_t *ret_again_s);
/* Makes it: PartitionPlan objects, and the pool's and services' status. */
void planning_make(struct pool_view *view, const char *hash,
                   const struct reconcile_options *options, struct effects *effects);

/* The pool's current plan: all its parts, by number. */
struct target_plan {
    const char *name; /* "" none */
    VEC(const struct partition_plan *) parts;
};

/* False, and nothing to free, when there is no current plan or a part is missing. */
bool target_plan_find(const struct pool_view *view, struct target_plan *ret_target);
/* Frees the list of parts, not the parts. */
void target_plan_done(struct target_plan *target);
/* The item in a slot, or NULL. */
const struct partition_item *target_plan_item(const struct target_plan *target,
                                              const char *gpu_uuid, int profile, int start);

/* What is there: the GPUs that are not lost, their instances and what pods serve on them. A pod
 * that is draining, ended or made from an older template serves otherwise than any plan can
 * want. Each service requires what it shall be held to: status.floorRps, or what there is. */
void planning_observed(const struct pool_view *view, struct plan *ret_plan);
/* status.FIELD of a service of the view, 0 when it is not there. */
double planning_status_rate(const struct pool_view *view, size_t service, const char *field);
/* The target on the GPUs of `observed`, which it must not outlive. */
void planning_wanted(const struct pool_view *view, const struct target_plan *target,
                     const struct plan *observed, struct plan *ret_plan);
/* Whether every GPU has in both the same instances that serve the same. */
bool planning_is_same(const struct plan *observed, const struct plan *wanted);
/* The same of one GPU; both sorted by start. */
bool planning_is_same_gpu(const struct plan_gpu *observed, const struct plan_gpu *wanted);
/* Whether both stand in the same slot and serve the same there: service, batch, processes and,
 * within 1e-9, rate. */
bool planning_serves_same(const struct plan_instance *a, const struct plan_instance *b);
/* Owner references and our labels and hash, put on an object that belongs to the pool. */
void planning_decorate(json_t *object, const struct gpu_pool *pool, const char *hash);

/* A change from what is observed to what is wanted. */
struct planning_change {
    const char *target; /* name of the plan that it leads to */
    const struct plan *observed, *wanted;
    int actions_max, piece_gpus; /* as of struct reconcile_options */
};
/* Creates the Transition from one to the other. False with a reason when no safe one exists. */
bool planning_make_transition(const struct pool_view *view,
                              const struct planning_change *change, struct effects *effects,
                              struct error *err);

/* Of what a pod of the service is made from, beside its instance. */
void planning_template_hash(const struct gpu_service *service,
                            char ret_hash[TEMPLATE_HASH_SIZE]);

/* Marks in drain and stop actions of outdated pods; see planning_observed(). */
enum { PROCS_OUTDATED = 1000000 };

#endif
