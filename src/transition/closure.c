/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/closure.h"

#include <assert.h>
#include <string.h>

static const int64_t UNLIMITED = INT64_MAX / 2;

/* The network: nodes, then source and sink; positive nodes hang on the source, negative ones
 * on the sink, and what a node requires follows it without limit. */
struct network {
    struct closure *closure;
    int node_count, source, sink;
    int *head;  /* first arc of each node */
    int *level; /* distance from the source, -1: out of reach */
    int *turn;  /* the arc to look at next */
    int *queue;
};

int closure_add_node(struct closure *closure, int64_t weight)
{
    assert(weight > -(INT64_C(1) << 52) - 1 && weight < (INT64_C(1) << 52) + 1);
    assert(closure->weights.count < INT32_MAX - 2);
    vec_add(&closure->weights, weight);
    return (int)closure->weights.count - 1;
}

void closure_require(struct closure *closure, int node, int required)
{
    assert(node >= 0 && node < (int)closure->weights.count);
    assert(required >= 0 && required < (int)closure->weights.count);
    vec_add(&closure->requires, node);
    vec_add(&closure->requires, required);
}

void closure_clear(struct closure *closure)
{
    vec_clear(&closure->weights);
    vec_clear(&closure->arcs);
    vec_clear(&closure->requires);
}

void closure_done(struct closure *closure)
{
    vec_done(&closure->weights);
    vec_done(&closure->arcs);
    vec_done(&closure->requires);
}

static void add_arc(struct network *network, int from, int to, int64_t room)
{
    struct closure *closure = network->closure;
    assert(room >= 0);
    assert(from >= 0 && from < network->node_count && to >= 0 && to < network->node_count);
    int index = (int)closure->arcs.count;
    struct closure_arc forth = {to, index + 1, network->head[from], room};
    struct closure_arc back = {from, index, network->head[to], 0};
    vec_add(&closure->arcs, forth);
    vec_add(&closure->arcs, back);
    network->head[from] = index;
    network->head[to] = index + 1;
}

static struct network network_build(struct closure *closure)
{
    int nodes = (int)closure->weights.count;
    size_t all = (size_t)nodes + 2;
    assert(closure->requires.count % 2 == 0);
    struct network network = {.closure = closure,
                              .node_count = nodes + 2,
                              .source = nodes,
                              .sink = nodes + 1,
                              .head = xcalloc(all, sizeof(int)),
                              .level = xcalloc(all, sizeof(int)),
                              .turn = xcalloc(all, sizeof(int)),
                              .queue = xcalloc(all, sizeof(int))};
    /* -1: no arc yet. */
    memset(network.head, 0xff, all * sizeof(int));
    vec_clear(&closure->arcs);
    for (int i = 0; i < nodes; i++) {
        int64_t weight = closure->weights.data[i];
        if (weight > 0)
            add_arc(&network, network.source, i, weight);
        else if (weight < 0)
            add_arc(&network, i, network.sink, -weight);
    }
    for (size_t i = 0; i < closure->requires.count; i += 2)
        /* No finite cut goes through what is required. */
        add_arc(&network, closure->requires.data[i], closure->requires.data[i + 1], UNLIMITED);
    return network;
}

static void network_done(struct network *network)
{
    free(network->head);
    free(network->level);
    free(network->turn);
    free(network->queue);
}

/* Breadth first from the source over arcs with room; whether the sink is in reach. */
static bool find_levels(struct network *network)
{
    size_t head = 0, tail = 0;
    const struct closure_arc *arcs = network->closure->arcs.data;
    for (int i = 0; i < network->node_count; i++)
        network->level[i] = -1;
    network->level[network->source] = 0;
    network->queue[tail++] = network->source;
    while (head < tail) {
        int node = network->queue[head++];
        for (int a = network->head[node]; a >= 0; a = arcs[a].next) {
            if (arcs[a].room == 0 || network->level[arcs[a].to] >= 0)
                continue;
            network->level[arcs[a].to] = network->level[node] + 1;
            network->queue[tail++] = arcs[a].to;
        }
    }
    assert(tail <= (size_t)network->node_count);
    return network->level[network->sink] >= 0;
}

/* One path from source to sink along rising levels, found without recursion: `queue` holds
 * the arcs taken. Returns what it carries, 0 when none is left. */
static int64_t push_path(struct network *network)
{
    struct closure_arc *arcs = network->closure->arcs.data;
    int *path = network->queue, depth = 0, node = network->source;
    while (node != network->sink) {
        int a = network->turn[node];
        while (a >= 0 &&
               (arcs[a].room == 0 || network->level[arcs[a].to] != network->level[node] + 1))
            a = arcs[a].next;
        network->turn[node] = a;
        if (a >= 0) {
            path[depth++] = a;
            node = arcs[a].to;
            continue;
        }
        if (depth == 0)
            return 0;
        a = path[--depth];
        node = arcs[arcs[a].twin].to;
        network->turn[node] = arcs[a].next;
    }
    assert(depth > 0);
    int64_t carried = UNLIMITED;
    for (int i = 0; i < depth; i++)
        carried = arcs[path[i]].room < carried ? arcs[path[i]].room : carried;
    for (int i = 0; i < depth; i++) {
        arcs[path[i]].room -= carried;
        arcs[arcs[path[i]].twin].room += carried;
    }
    assert(carried > 0);
    return carried;
}

int64_t closure_solve(struct closure *closure, bool *ret_members)
{
    struct network network = network_build(closure);
    int64_t best = 0;
    for (size_t i = 0; i < closure->weights.count; i++)
        best += closure->weights.data[i] > 0 ? closure->weights.data[i] : 0;
    while (find_levels(&network)) {
        memcpy(network.turn, network.head, (size_t)network.node_count * sizeof(int));
        for (int64_t carried; (carried = push_path(&network)) > 0;)
            best -= carried;
    }
    for (size_t i = 0; i < closure->weights.count; i++)
        ret_members[i] = network.level[i] >= 0;
    network_done(&network);
    assert(best >= 0);
    return best;
}
