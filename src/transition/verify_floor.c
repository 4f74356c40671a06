/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification of the floor. A state is a down-set D of the order. Service s has there
 *     C(D) = Σ initial rates + Σ rates of starts in D − Σ rates of drains all of whose
 *            `after` list is in D,
 * so the least C(D) is the initial sum less a maximum-weight closure in which a drain weighs
 * its rate and requires its `after` list, a start weighs minus its rate, and each action
 * requires those before it. Only actions between a start and a drain of s matter.
 */
#include <assert.h>
#include <math.h>

#include "transition/subgraph.h"
#include "transition/verify_internal.h"

/* Rates become whole numbers, so that the cut is exact; the minimum itself is summed again
 * in doubles. */
static const double WHOLE = 1125899906842624.0; /* 2^50 */
enum { DRAINS_SHOWN = 3 };

struct floor_check {
    struct verifier *verifier;
    struct subgraph subgraph;
    struct closure closure;
    VEC(int) starts, drains; /* actions */
    VEC(int) drain_nodes;
};

static int compare_periods(const void *a, const void *b)
{
    const struct period *left = a, *right = b;
    return left->service - right->service;
}

static void clear(struct floor_check *check)
{
    closure_clear(&check->closure);
    vec_clear(&check->starts);
    vec_clear(&check->drains);
    vec_clear(&check->drain_nodes);
}

static void build(struct floor_check *check, const struct period *periods, size_t count)
{
    assert(periods || count == 0);
    const struct transition *transition = check->verifier->transition;
    double total = 0;
    clear(check);
    for (size_t i = 0; i < count; i++) {
        if (periods[i].start >= 0)
            vec_add(&check->starts, periods[i].start);
        if (periods[i].drain >= 0)
            vec_add(&check->drains, periods[i].drain);
        total += 2 * periods[i].rate_rps;
    }
    double scale = total > 0 ? WHOLE / total : 0;
    subgraph_between(&check->subgraph, check->starts.data, check->starts.count,
                     check->drains.data, check->drains.count, &check->closure);
    for (size_t i = 0; i < count; i++) {
        int start = periods[i].start, node = start < 0 ? -1 : check->subgraph.node[start];
        if (node >= 0)
            check->closure.weights.data[node] = -llround(periods[i].rate_rps * scale);
    }
    for (size_t i = 0; i < count; i++) {
        if (periods[i].drain < 0)
            continue;
        const struct transition_action *drain = &transition->actions.data[periods[i].drain];
        int node = closure_add_node(&check->closure, llround(periods[i].rate_rps * scale));
        vec_add(&check->drain_nodes, node);
        for (size_t j = 0; j < drain->after.count; j++)
            if (check->subgraph.node[drain->after.data[j]] >= 0)
                closure_require(&check->closure, node,
                                check->subgraph.node[drain->after.data[j]]);
    }
}

/* Capacity in the state that the closure stands for. */
static double capacity_of(const struct floor_check *check, const struct period *periods,
                          size_t count, const bool *members)
{
    assert(check->drain_nodes.count == check->drains.count);
    double capacity = 0;
    for (size_t i = 0, k = 0; i < count; i++) {
        bool counts = periods[i].start < 0;
        if (!counts) {
            int node = check->subgraph.node[periods[i].start];
            counts = node >= 0 && members[node];
        }
        if (periods[i].drain >= 0 && members[check->drain_nodes.data[k++]])
            capacity -= periods[i].rate_rps;
        capacity += counts ? periods[i].rate_rps : 0;
    }
    return capacity;
}

static void report(struct floor_check *check, int service, double minimum, const bool *members)
{
    assert(service >= 0 && minimum >= 0);
    const struct transition *transition = check->verifier->transition;
    CLEANUP(str_done) struct str names = STR_EMPTY;
    int shown = 0, drained = 0;
    for (size_t k = 0; k < check->drains.count; k++) {
        if (!members[check->drain_nodes.data[k]])
            continue;
        if (drained++ < DRAINS_SHOWN)
            str_addf(&names, "%s%s", shown++ ? ", " : "",
                     transition->actions.data[check->drains.data[k]].id);
    }
    if (drained > shown)
        str_addf(&names, " and %d more", drained - shown);
    verifier_violation(
        check->verifier, "floor", transition->services.data[service].name,
        "%.9g rps may be all that is ready, the floor is %.9g (when %s may begin)", minimum,
        transition->services.data[service].floor_rps,
        drained ? names.bytes : "nothing has begun, and later");
}

static void check_service(struct floor_check *check, int service, const struct period *periods,
                          size_t count)
{
    const struct transition *transition = check->verifier->transition;
    const struct transition_service *here = &transition->services.data[service];
    build(check, periods, count);
    bool *members = xcalloc(check->closure.weights.count, sizeof *members);
    closure_solve(&check->closure, members);
    assert(check->drain_nodes.count == check->drains.count);
    struct transition_minimum minimum = {here->name, here->floor_rps,
                                         fmax(capacity_of(check, periods, count, members), 0)};
    vec_add(&check->verifier->report->minima, minimum);
    if (minimum.minimum_rps < here->floor_rps - verifier_tolerance(here->floor_rps))
        report(check, service, minimum.minimum_rps, members);
    free(members);
}

void verify_floor(struct verifier *verifier)
{
    struct floor_check check = {.verifier = verifier};
    size_t count = verifier->periods.count, next = 0;
    subgraph_init(&check.subgraph, verifier->transition);
    /* By service, so that each service's periods are one run. */
    if (count > 0)
        qsort(verifier->periods.data, count, sizeof *verifier->periods.data, compare_periods);
    for (size_t s = 0; s < verifier->transition->services.count; s++) {
        size_t first = next;
        while (next < count && verifier->periods.data[next].service == (int)s)
            next++;
        check_service(&check, (int)s, &verifier->periods.data[first], next - first);
    }
    assert(next == count);
    subgraph_done(&check.subgraph);
    closure_done(&check.closure);
    vec_done(&check.starts);
    vec_done(&check.drains);
    vec_done(&check.drain_nodes);
}
