/* SPDX-License-Identifier: Apache-2.0
 *
 * MIG-serving's slow algorithm (arXiv 2109.11067, section 5.2): a tree search whose nodes
 * are completion vectors, whose edges are configurations and whose leaves are complete;
 * the goal is the cheapest path from the root to a leaf. A node's children are the
 * mcts-children best configurations over mcts-services unsatisfied services drawn at
 * random; playouts use memoised pools (rollout.h).
 *
 * Ours, where the paper is silent: UCT with rewards scaled to 0 … 1 over the costs seen in
 * this tree; after each batch of playouts the search moves to the child on the cheapest
 * path seen and keeps its subtree; the answer is the cheapest path of the whole search.
 */
#include "plan/mcts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plan/greedy.h"

struct node {
    struct solution_gpu gpu; /* the edge that leads here */
    int first_child;         /* index of the first of child_count nodes; -1: not expanded */
    int child_count;
    long visits;
    double reward;     /* sum over visits */
    double least_cost; /* of complete paths through it, the root's part included */
};

struct tree {
    const struct arm *arm;
    struct rollout_pools *pools;
    struct rng *rng;
    VEC(struct node) nodes;
    struct arm_state state; /* working memory of a playout */
    struct arm_plan path;   /* of a playout, from the present root */
    struct arm_plan walked; /* steps already made */
    double walked_cost;
    struct arm_plan best; /* cheapest complete plan */
    double best_cost, worst_cost;
};

static int add_node(struct tree *tree, const struct solution_gpu *gpu)
{
    struct node *node = vec_push(&tree->nodes);
    node->first_child = -1;
    node->least_cost = INFINITY;
    if (gpu)
        node->gpu = *gpu;
    return (int)tree->nodes.count - 1;
}

/* mcts-services distinct unsatisfied services at random. */
static int draw_services(struct tree *tree, int services[CANDIDATE_SERVICES_MAX])
{
    int most = (int)tree->arm->parameters->mcts_services, count = 0;
    assert(most >= 1 && most <= CANDIDATE_SERVICES_MAX);
    long seen = 0;
    for (int i = 0; i < tree->arm->service_count; i++) {
        if (arm_missing(&tree->state, i) <= 0)
            continue;
        seen++;
        if (count < most)
            services[count++] = i;
        else { /* reservoir sampling */
            uint64_t at = rng_below(tree->rng, (uint64_t)seen);
            if (at < (uint64_t)most)
                services[at] = i;
        }
    }
    return count;
}

static void expand(struct tree *tree, int index)
{
    struct candidate found[CANDIDATE_SERVICES_MAX * 4];
    int services[CANDIDATE_SERVICES_MAX];
    int drawn = draw_services(tree, services);
    int most = (int)tree->arm->parameters->mcts_children;
    assert(most <= CANDIDATE_SERVICES_MAX * 4);
    assert(tree->nodes.data[index].first_child < 0);
    int count =
        drawn == 0 ? 0 : candidates_top(tree->arm, &tree->state, services, drawn, found, most);
    tree->nodes.data[index].first_child = (int)tree->nodes.count;
    tree->nodes.data[index].child_count = count;
    for (int i = 0; i < count; i++)
        add_node(tree, &found[i].gpu);
}

/* The child with the highest upper confidence bound; unvisited ones first, in order. */
static int choose_child(const struct tree *tree, const struct node *node)
{
    int best = node->first_child;
    assert(node->child_count > 0);
    double best_bound = -INFINITY, logarithm = log((double)node->visits + 1);
    for (int i = 0; i < node->child_count; i++) {
        const struct node *child = &tree->nodes.data[node->first_child + i];
        if (child->visits == 0)
            return node->first_child + i;
        double bound =
            child->reward / (double)child->visits +
            tree->arm->parameters->mcts_exploration * sqrt(logarithm / (double)child->visits);
        if (bound > best_bound) {
            best_bound = bound;
            best = node->first_child + i;
        }
    }
    return best;
}

/* 1 for the cheapest cost seen, 0 for the dearest. */
static double reward_of(struct tree *tree, double cost)
{
    if (isinf(cost))
        return 0;
    if (cost > tree->worst_cost)
        tree->worst_cost = cost;
    assert(cost >= tree->best_cost);
    double span = tree->worst_cost - tree->best_cost;
    return span > 0 ? (tree->worst_cost - cost) / span : 1;
}

static void remember_best(struct tree *tree, double cost)
{
    assert(!isnan(cost));
    if (!(cost < tree->best_cost))
        return;
    tree->best_cost = cost;
    vec_clear(&tree->best.gpus);
    for (size_t g = 0; g < tree->walked.gpus.count; g++)
        vec_add(&tree->best.gpus, tree->walked.gpus.data[g]);
    for (size_t g = 0; g < tree->path.gpus.count; g++)
        vec_add(&tree->best.gpus, tree->path.gpus.data[g]);
}

/* One playout from `root`: down the tree, one node further, then by the pools. */
static void play(struct tree *tree, const struct arm_state *start, int root)
{
    assert(root >= 0 && (size_t)root < tree->nodes.count);
    enum { DEPTH_MAX = 4096 };
    int line[DEPTH_MAX], depth = 0, at = root;
    double cost = tree->walked_cost;
    arm_state_copy(&tree->state, start, tree->arm);
    vec_clear(&tree->path.gpus);
    line[depth++] = at;
    while (depth < DEPTH_MAX && !arm_is_late(tree->arm) &&
           !arm_is_complete(tree->arm, &tree->state)) {
        if (tree->nodes.data[at].first_child < 0) {
            if (at != root && tree->nodes.data[at].visits == 0)
                break; /* a new node is played out before it is expanded */
            expand(tree, at);
        }
        if (tree->nodes.data[at].child_count == 0)
            break;
        at = choose_child(tree, &tree->nodes.data[at]);
        line[depth++] = at;
        arm_apply(tree->arm, &tree->state, &tree->nodes.data[at].gpu);
        vec_add(&tree->path.gpus, tree->nodes.data[at].gpu);
        cost += tree->arm->problem->kinds.data[tree->nodes.data[at].gpu.kind].price;
    }
    /* Playouts that are already dearer than half as much again as the best are cut short: they
     * teach nothing that a reward of 0 does not. */
    double most = isinf(tree->best_cost) ? INFINITY : tree->best_cost * 1.5 + 1 - cost;
    cost += rollout_play(tree->arm, tree->pools, tree->rng, &tree->state, most, &tree->path);
    remember_best(tree, cost);
    double reward = reward_of(tree, cost);
    for (int i = 0; i < depth; i++) {
        struct node *node = &tree->nodes.data[line[i]];
        node->visits++;
        node->reward += reward;
        if (cost < node->least_cost)
            node->least_cost = cost;
    }
}

/* The child on the cheapest path; -1: none was played. */
static int best_child(const struct tree *tree, int root)
{
    assert(root >= 0 && (size_t)root < tree->nodes.count);
    const struct node *node = &tree->nodes.data[root];
    int best = -1;
    for (int i = 0; i < node->child_count; i++) {
        const struct node *child = &tree->nodes.data[node->first_child + i];
        const struct node *leader = best < 0 ? NULL : &tree->nodes.data[best];
        if (child->visits > 0 &&
            (!leader || child->least_cost < leader->least_cost ||
             (child->least_cost == leader->least_cost && child->visits > leader->visits)))
            best = node->first_child + i;
    }
    return best;
}

/* Playouts before each step such that the whole search makes about this many picks. */
static const double PICKS = 1.5e6;
enum { ITERATIONS = 50, NODES_MAX = 1 << 20 };

static long default_iterations(const struct arm *arm, const struct arm_state *state)
{
    double gpus = 1;
    for (int i = 0; i < arm->service_count; i++)
        if (arm_missing(state, i) > 0)
            gpus += arm_missing(state, i) / arm->gpu_share[i];
    assert(gpus >= 1);
    double bounded = PICKS / (gpus * gpus / 2);
    return bounded < 1 ? 1 : bounded < ITERATIONS ? (long)bounded : ITERATIONS;
}

/* Plays, then moves one step, until complete. */
static void search(struct tree *tree, const struct arm_state *state, long iterations)
{
    assert(iterations > 0);
    struct arm_state start;
    arm_state_init(&start, tree->arm);
    arm_state_copy(&start, state, tree->arm);
    int root = add_node(tree, NULL);
    while (!arm_is_complete(tree->arm, &start)) {
        for (long i = 0; i < iterations; i++) {
            play(tree, &start, root);
            if (arm_is_late(tree->arm))
                break;
        }
        int next = best_child(tree, root);
        if (next < 0 || arm_is_late(tree->arm))
            break;
        struct solution_gpu gpu = tree->nodes.data[next].gpu;
        arm_apply(tree->arm, &start, &gpu);
        vec_add(&tree->walked.gpus, gpu);
        tree->walked_cost += tree->arm->problem->kinds.data[gpu.kind].price;
        root = next;
        if (tree->nodes.count > NODES_MAX) { /* memory stays bounded: forget the tree */
            vec_clear(&tree->nodes);
            root = add_node(tree, &gpu);
        }
    }
    arm_state_done(&start);
}

/* A service that no GPU of the fleet has room for, whatever the others get. */
static bool is_hopeless(const struct arm *arm, const struct arm_state *state)
{
    for (int i = 0; i < arm->service_count; i++)
        if (arm_missing(state, i) > 0 && arm->gpu_share[i] <= 0)
            return true;
    return false;
}

bool mcts_fill(const struct arm *arm, struct rollout_pools *pools,
               const struct arm_state *state, struct rng *rng, long iterations,
               struct arm_plan *plan)
{
    assert(pools && rng && plan);
    struct tree tree = {.arm = arm, .pools = pools, .rng = rng, .best_cost = INFINITY};
    if (arm_is_complete(arm, state))
        return true;
    if (is_hopeless(arm, state))
        return false;
    arm_state_init(&tree.state, arm);
    search(&tree, state, iterations > 0 ? iterations : default_iterations(arm, state));
    bool found = !isinf(tree.best_cost);
    for (size_t g = 0; g < tree.best.gpus.count; g++)
        vec_add(&plan->gpus, tree.best.gpus.data[g]);
    arm_state_done(&tree.state);
    vec_done(&tree.nodes);
    vec_done(&tree.path.gpus);
    vec_done(&tree.walked.gpus);
    vec_done(&tree.best.gpus);
    return found;
}

/* The bulk of a very large plan, by greedy: all but its last SEARCH_GPUS_MAX GPUs. */
static void take_bulk(const struct arm *arm, struct arm_state *state, struct arm_plan *plan)
{
    struct arm_plan whole = {0};
    struct arm_state end;
    arm_state_init(&end, arm);
    greedy_fill(arm, &end, &whole);
    for (size_t g = 0; g + SEARCH_GPUS_MAX < whole.gpus.count; g++) {
        arm_apply(arm, state, &whole.gpus.data[g]);
        vec_add(&plan->gpus, whole.gpus.data[g]);
    }
    vec_done(&whole.gpus);
    arm_state_done(&end);
}

/* Whether even whole GPUs for every service would be more than the search takes on. */
static bool is_bulky(const struct arm *arm)
{
    double gpus = 0;
    for (int i = 0; i < arm->service_count; i++)
        if (arm->gpu_share[i] > 0)
            gpus += 1 / arm->gpu_share[i];
    return gpus > SEARCH_GPUS_MAX;
}

static int mcts_solve(const struct problem *problem, const struct solver_settings *settings,
                      struct solution *ret_solution, struct error *err)
{
    struct arm arm;
    struct arm_state state;
    struct arm_plan plan = {0};
    struct rollout_pools pools = {0};
    struct rng rng = rng_seed(settings->seed);
    (void)err;
    arm_init(&arm, problem, settings);
    arm_state_init(&state, &arm);
    if (is_bulky(&arm))
        take_bulk(&arm, &state, &plan);
    if (!mcts_fill(&arm, &pools, &state, &rng, settings->iterations, &plan))
        greedy_fill(&arm, &state, &plan); /* the playouts ran out of stock: one more try */
    ret_solution->stopped_by_budget = arm_is_late(&arm);
    arm_finish(&arm, &plan, ret_solution);
    rollout_pools_done(&pools);
    vec_done(&plan.gpus);
    arm_state_done(&state);
    arm_done(&arm);
    return 0;
}

const struct solver solver_mcts = {
    .name = "mcts",
    .summary = "MIG-serving's slow algorithm: tree search with memoised playouts",
    .solve = mcts_solve,
};
