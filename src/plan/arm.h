/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reference algorithms (MIG-serving's greedy, MCTS and GA, ParvaGPU, Jormungandr,
 * the baselines) share: the problem in the papers' terms. A configuration is one GPU whose
 * slots are labelled with services (a struct solution_gpu); its utility to a service is the
 * fraction of the service's need that it adds; the completion vector c holds the fraction
 * of every need that is met so far.
 */
#ifndef TRANCHE_PLAN_ARM_H
#define TRANCHE_PLAN_ARM_H

#include "base/vec.h"
#include "plan/paper_parameters.h"
#include "plan/solver.h"

/* A pattern with the slot kinds that it holds, the largest first. */
struct arm_pattern {
    int kind;
    double price; /* of the kind, at least a small positive number */
    int slot_count;
    int slots[MIG_INSTANCES_MAX];
    int counts[MIG_INSTANCES_MAX];
};

struct arm {
    const struct problem *problem;
    const struct solver_settings *settings;
    const struct paper_parameters *parameters;
    int service_count, slot_count;
    double *need_rps;  /* 0: nothing to do. Under spread, the largest instance on top */
    double *share;     /* service_count rows of slot_count: utility of one instance */
    double *gpu_share; /* utility of a GPU given wholly to the service, the best kind */
    VEC(struct arm_pattern) patterns;
    int64_t deadline_ns; /* INT64_MAX: none */
};

/* Works out needs, utilities and patterns. The deadline is settings->budget_s from now by its
 * clock. Problem and settings are borrowed and must outlive it. */
void arm_init(struct arm *arm, const struct problem *problem,
              const struct solver_settings *settings);
/* Frees what arm_init() made. */
void arm_done(struct arm *arm);
/* Whether the budget is spent; never without one. */
bool arm_is_late(const struct arm *arm);

/* Utility u of one instance: the fraction of the service's need that it gives; 0 when it cannot
 * run there or nothing is needed. */
static inline double arm_share(const struct arm *arm, int service, int slot)
{
    return arm->share[(size_t)service * (size_t)arm->slot_count + (size_t)slot];
}
/* Compute slices of a slot kind; a board without MIG counts as one. */
int arm_slices(const struct arm *arm, int slot);

/* How far a plan under construction is. */
struct arm_state {
    double *completion; /* c, by service */
    int *used;          /* GPUs used, by kind */
};
/* The state of an empty plan: what needs nothing is complete. */
void arm_state_init(struct arm_state *state, const struct arm *arm);
/* Copies a state; both are of this arm. */
void arm_state_copy(struct arm_state *to, const struct arm_state *from, const struct arm *arm);
/* Frees a state; zero after. */
void arm_state_done(struct arm_state *state);
/* Adds a GPU to the state: one more used of its kind, and what its instances give. */
void arm_apply(const struct arm *arm, struct arm_state *state, const struct solution_gpu *gpu);
/* What a service still misses: max(0, 1 - c), 0 when it is met within 1e-10. */
double arm_missing(const struct arm_state *state, int service);
/* Whether no service misses anything. */
bool arm_is_complete(const struct arm *arm, const struct arm_state *state);
/* Whether another GPU of the kind is there. */
bool arm_has_stock(const struct arm *arm, const struct arm_state *state, int kind);
/* Whether the service misses something, but less than parameters->last_mile GPUs of the kind
 * that serves it best (MIG-serving's last mile, section 5.1). */
bool arm_is_almost(const struct arm *arm, int service, double missing);
/* The service's part of the score (1 - c) u. An almost satisfied service counts at most
 * what it misses: it could not use more. */
double arm_worth(const struct arm *arm, int service, double missing, double utility);

struct arm_plan {
    VEC(struct solution_gpu) gpus;
    /* No GPU before this one has room for the slot kind: arm_plan_add() looks from there. To
     * be zeroed when GPUs are taken out. */
    size_t open[PROBLEM_SLOTS_MAX];
};
/* Sum of the prices of the plan's GPUs, base_cost left out. */
double arm_plan_cost(const struct arm *arm, const struct arm_plan *plan);
/* The state that a plan leads to, from nothing. */
void arm_plan_state(const struct arm *arm, const struct arm_plan *plan,
                    struct arm_state *state);
/* Adds an instance to a GPU of the plan with room, or to a new one; false when there is no
 * stock. `slot` must be usable by the service. */
bool arm_plan_add(const struct arm *arm, struct arm_plan *plan, struct arm_state *state,
                  struct solution_item item);
/* Gives the plan to the solver's caller: adds instances where a service has fewer than its
 * minimum, and sets feasible when every need is met. */
void arm_finish(const struct arm *arm, struct arm_plan *plan, struct solution *solution);

#endif
