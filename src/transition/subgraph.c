/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/subgraph.h"

#include <assert.h>
#include <string.h>

void subgraph_init(struct subgraph *subgraph, const struct transition *transition)
{
    size_t count = transition->actions.count, edges = 0;
    *subgraph = (struct subgraph){.transition = transition,
                                  .successor_first = xcalloc(count + 2, sizeof(int)),
                                  .node = xcalloc(count, sizeof(int)),
                                  .seen = xcalloc(count, sizeof(unsigned))};
    int *first = subgraph->successor_first;
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        subgraph->node[i] = -1;
        for (size_t j = 0; j < action->after.count; j++, edges++)
            /* Counted two places on: filling moves each first entry up to where the next one's
             * begins. */
            first[action->after.data[j] + 2]++;
    }
    for (size_t i = 2; i < count + 2; i++)
        first[i] += first[i - 1];
    subgraph->successors = xcalloc(edges, sizeof(int));
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t j = 0; j < action->after.count; j++)
            subgraph->successors[first[action->after.data[j] + 1]++] = (int)i;
    }
}

void subgraph_done(struct subgraph *subgraph)
{
    free(subgraph->successor_first);
    free(subgraph->successors);
    free(subgraph->node);
    free(subgraph->seen);
    vec_done(&subgraph->stack);
    vec_done(&subgraph->marked);
}

/* Marks all that comes after the sources, themselves included. */
static void mark_forward(struct subgraph *subgraph, const int *sources, size_t count)
{
    assert(subgraph->stack.count == 0);
    unsigned round = ++subgraph->round;
    for (size_t i = 0; i < count; i++) {
        if (subgraph->seen[sources[i]] == round)
            continue;
        subgraph->seen[sources[i]] = round;
        vec_add(&subgraph->stack, sources[i]);
    }
    while (subgraph->stack.count > 0) {
        int at = subgraph->stack.data[--subgraph->stack.count];
        for (int i = subgraph->successor_first[at]; i < subgraph->successor_first[at + 1];
             i++) {
            int next = subgraph->successors[i];
            if (subgraph->seen[next] == round)
                continue;
            subgraph->seen[next] = round;
            vec_add(&subgraph->stack, next);
        }
    }
}

static void take(struct subgraph *subgraph, int action, struct closure *closure)
{
    assert(action >= 0 && (size_t)action < subgraph->transition->actions.count);
    if (subgraph->seen[action] != subgraph->round || subgraph->node[action] >= 0)
        return;
    subgraph->node[action] = closure_add_node(closure, 0);
    vec_add(&subgraph->marked, action);
    vec_add(&subgraph->stack, action);
}

void subgraph_between(struct subgraph *subgraph, const int *sources, size_t source_count,
                      const int *sinks, size_t sink_count, struct closure *closure)
{
    assert((sources || source_count == 0) && (sinks || sink_count == 0));
    assert(closure->weights.count == 0);
    for (size_t i = 0; i < subgraph->marked.count; i++)
        subgraph->node[subgraph->marked.data[i]] = -1;
    vec_clear(&subgraph->marked);
    mark_forward(subgraph, sources, source_count);
    for (size_t i = 0; i < sink_count; i++)
        take(subgraph, sinks[i], closure);
    while (subgraph->stack.count > 0) {
        int at = subgraph->stack.data[--subgraph->stack.count];
        const struct transition_action *action = &subgraph->transition->actions.data[at];
        for (size_t i = 0; i < action->after.count; i++) {
            int before = action->after.data[i];
            take(subgraph, before, closure);
            if (subgraph->node[before] >= 0)
                closure_require(closure, subgraph->node[at], subgraph->node[before]);
        }
    }
}
