/* SPDX-License-Identifier: Apache-2.0
 *
 * The planning problem as every solver sees it: what each service may run on each kind of
 * slot and at which promised rate (the latency rule is already applied), the kinds of GPU
 * with price, stock and the partitions they can take. Built from the services and the
 * measurements; immutable while a solver runs.
 *
 * Words: a slot kind is a (board, profile) pair that at least one service can use. A
 * pattern is a multiset of slots that one GPU can hold at once and that no other contains
 * (mig_multisets_maximal). GPUs of one kind are interchangeable; a GPU that is partly
 * taken already (reserved or fixed instances) is a kind of its own with stock 1.
 */
#ifndef TRANCHE_PLAN_PROBLEM_H
#define TRANCHE_PLAN_PROBLEM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/executor.h"
#include "base/vec.h"
#include "format/measurement.h"
#include "format/plan_document.h"
#include "format/service.h"
#include "mig/layout.h"

enum plan_rules {
    RULES_CURRENT, /* every legal partition of the board */
    RULES_PAPER,   /* MIG-serving's: a 4g and a 3g never share a GPU */
    PLAN_RULES_COUNT
};
enum { PROBLEM_UNLIMITED = -1, PROBLEM_SLOTS_MAX = 256 };

/* What a service runs on a slot kind: its best usable measurement there. */
struct problem_option {
    int row; /* index into rows->rows; -1: the service cannot use this slot */
    int batch, procs;
    double rate_rps;    /* promised capacity of one instance; 0 when row is -1 */
    double latency_ms;  /* measured, or predicted at rate_rps under `queue`; NAN: training */
    double max_wait_ms; /* NAN: training */
};

struct problem_slot {
    const struct mig_board *board;
    int profile; /* index into board->profiles */
};

struct problem_kind {
    const struct mig_board *board;
    int part;     /* index into services->fleet (or, without a fleet, into problem->parts) */
    double price; /* of using one GPU; 0 when a fixed instance makes it used anyway */
    int stock;    /* how many there are, or PROBLEM_UNLIMITED */
    const struct fleet_gpu *gpu; /* the listed GPU that is partly taken, else NULL */
    struct mig_layout taken;     /* its reserved and fixed instances */
    int pattern_count;
    const int *patterns; /* pattern_count rows of problem->slot_count counts */
};

struct problem {
    struct arena arena;
    const struct service_set *services; /* borrowed */
    const struct measurement_set *rows; /* borrowed */
    enum plan_rules rules;
    int service_count;
    /* What new instances of each service must still give: its rate less what fixed
     * instances give already; 0 when it is dropped. */
    double *demand_rps;
    int *instances_min;        /* min_instances less the fixed ones, at least 0 */
    double *fixed_rps;         /* what fixed instances give already … */
    double *fixed_largest_rps; /* … and the most of it on one GPU */
    bool *dropped;             /* left out: the fleet is too small (priority) */
    int slot_count;
    struct problem_slot *slots;
    struct problem_option *options; /* service_count rows of slot_count */
    VEC(struct fleet_part) parts;   /* the fleet; when none is given, every measured board */
    VEC(struct problem_kind) kinds;
    double base_cost; /* price of the GPUs that fixed instances make used anyway */
    VEC(struct plan_infeasible) infeasible; /* services that no slot of the fleet can serve */
    const struct pinned_problem
        *pinned;             /* set when this is what is left beside kept instances */
    const struct plan *from; /* plan to change as little as possible, or NULL */
    int max_moves;           /* instances of `from` that may leave their place; -1: any */
    double move_price;       /* added to the cost for each of those */
};

struct problem_options {
    enum plan_rules rules;
    const struct pinned_problem *pinned; /* this is what is left beside kept instances */
    const struct plan *from;             /* borrowed, may be NULL */
    int max_moves;                       /* -1: no limit */
    double move_price;
    const struct executor *executor; /* for the latency rule; NULL: the calling thread */
};

/* Applies the latency rule and memory to every row and builds the tables. A service that
 * nothing can serve goes to `infeasible` with its reason; that is not a failure. E_INPUT for
 * `spread: node` without nodes in the fleet, for a fixed instance whose service may not run
 * there, and for more than PROBLEM_SLOTS_MAX kinds of slices; *problem is freed then. services,
 * rows and options->from must outlive it. */
int problem_init(struct problem *problem, const struct service_set *services,
                 const struct measurement_set *rows, const struct problem_options *options,
                 struct error *err);
/* Frees the tables; *problem is zero after. Services, rows and the earlier plan stay the
 * caller's. */
void problem_done(struct problem *problem);

/* What a service runs on a slot kind; row -1 where it cannot. Never NULL; borrowed. */
static inline const struct problem_option *problem_option(const struct problem *problem,
                                                          int service, int slot)
{
    assert(service >= 0 && service < problem->service_count);
    assert(slot >= 0 && slot < problem->slot_count);
    return &problem->options[(size_t)service * (size_t)problem->slot_count + (size_t)slot];
}
/* The slot kind of a profile (index into the board's) on a board, or -1 when no service can use
 * it. */
int problem_find_slot(const struct problem *problem, const struct mig_board *board,
                      int profile);
/* Whether all parts of the fleet have one price: then the fewest GPUs are the cheapest. */
bool problem_prices_equal(const struct problem *problem);
/* Whether all prices are whole numbers: then so is every plan's cost, and a bound may be
 * rounded up. */
bool problem_prices_whole(const struct problem *problem);

#endif
