/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/weaken.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "transition/reduction.h"
#include "transition/supply.h"

static const double TOLERANCE = 1e-9;

/* An edge from a start to a drain elsewhere. */
struct capacity_edge {
    int start, drain;
    double slack_seconds; /* how much shorter the longest path through it is than the longest */
};

struct weakening {
    struct transition *transition;
    struct supply supply;
    VEC(struct capacity_edge) edges; /* not looked at yet */
    double *head_seconds;            /* of each action: the longest path that it ends */
    double *tail_seconds;            /* … begins; its own time included in both */
};

static bool is_same_slot(const struct transition_action *a, const struct transition_action *b)
{
    return a->gpu == b->gpu && a->profile == b->profile && a->start == b->start;
}

static void collect_edges(struct weakening *weakening)
{
    const struct transition *transition = weakening->transition;
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *drain = &transition->actions.data[i];
        for (size_t j = 0; drain->kind == ACTION_DRAIN && j < drain->after.count; j++) {
            const struct transition_action *start =
                &transition->actions.data[drain->after.data[j]];
            struct capacity_edge edge = {drain->after.data[j], (int)i, 0};
            if (start->kind == ACTION_START && !is_same_slot(start, drain))
                vec_add(&weakening->edges, edge);
        }
    }
}

/* Returns the makespan. */
static double measure_paths(struct weakening *weakening)
{
    const struct transition *transition = weakening->transition;
    double *head = weakening->head_seconds, *tail = weakening->tail_seconds, longest = 0;
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        head[i] = tail[i] = 0;
        for (size_t j = 0; j < action->after.count; j++)
            head[i] = fmax(head[i], head[action->after.data[j]]);
        head[i] += action->seconds;
        longest = fmax(longest, head[i]);
    }
    for (size_t i = transition->actions.count; i-- > 0;) {
        const struct transition_action *action = &transition->actions.data[i];
        tail[i] += action->seconds;
        for (size_t j = 0; j < action->after.count; j++)
            tail[action->after.data[j]] = fmax(tail[action->after.data[j]], tail[i]);
    }
    return longest;
}

static int compare_edges(const void *a, const void *b)
{
    const struct capacity_edge *left = a, *right = b;
    if (left->slack_seconds != right->slack_seconds)
        return left->slack_seconds < right->slack_seconds ? -1 : 1;
    if (left->drain != right->drain)
        return left->drain - right->drain;
    return left->start - right->start;
}

static double rank_edges(struct weakening *weakening)
{
    double makespan = measure_paths(weakening);
    for (size_t i = 0; i < weakening->edges.count; i++) {
        struct capacity_edge *edge = &weakening->edges.data[i];
        edge->slack_seconds = makespan - weakening->head_seconds[edge->start] -
                              weakening->tail_seconds[edge->drain];
    }
    if (weakening->edges.count > 0)
        qsort(weakening->edges.data, weakening->edges.count, sizeof *weakening->edges.data,
              compare_edges);
    weakening->supply.effort_left -=
        (int64_t)(weakening->transition->actions.count + weakening->edges.count);
    return makespan;
}

static bool drop(struct weakening *weakening, const struct capacity_edge *edge)
{
    const struct transition_action *drain = &weakening->transition->actions.data[edge->drain];
    size_t index = 0;
    while (drain->after.data[index] != edge->start)
        index++;
    assert(index < drain->after.count);
    return supply_drop_edge(&weakening->supply, edge->drain, index);
}

/* Each edge is looked at once: one that is needed is needed all the more when others are gone.
 * The ranks are found again whenever an edge of a longest path went. */
static void drop_edges(struct weakening *weakening)
{
    while (weakening->edges.count > 0) {
        double makespan = rank_edges(weakening);
        size_t looked_at = 0;
        for (bool shorter = false; !shorter && looked_at < weakening->edges.count;) {
            const struct capacity_edge *edge = &weakening->edges.data[looked_at++];
            bool critical = edge->slack_seconds <= TOLERANCE * makespan;
            shorter = drop(weakening, edge) && critical;
        }
        weakening->edges.count -= looked_at;
        memmove(weakening->edges.data, weakening->edges.data + looked_at,
                weakening->edges.count * sizeof *weakening->edges.data);
    }
}

void transition_weaken(const struct work *work)
{
    size_t count = work->transition->actions.count;
    struct weakening weakening = {.transition = work->transition};
    collect_edges(&weakening);
    if (weakening.edges.count > 0) {
        weakening.head_seconds = xcalloc(count, sizeof(double));
        weakening.tail_seconds = xcalloc(count, sizeof(double));
        if (supply_init(&weakening.supply, work))
            drop_edges(&weakening);
        supply_done(&weakening.supply);
    }
    transition_reduce(work->transition);
    vec_done(&weakening.edges);
    free(weakening.head_seconds);
    free(weakening.tail_seconds);
}
