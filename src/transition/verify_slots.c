/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification of every reachable layout. An instance is there from when its creation may
 * begin until its deletion is done, so two are there together in some state unless the
 * deletion of one comes before the creation of the other in the order. Hence, a memory unit is
 * never taken twice exactly when its takers, sorted, each wait for the one before; and since
 * instances that are pairwise together somewhere are all together in one state, each limit
 * by count (a profile's maximum, engines, instances in all) is held exactly when no
 * maximum-weight closure of creations that may begin, less deletions done, exceeds it.
 */
#include <assert.h>

#include "transition/reach.h"
#include "transition/subgraph.h"
#include "transition/verify_internal.h"

struct slot_check {
    struct verifier *verifier;
    struct subgraph subgraph;
    struct closure closure;
    VEC(struct reach_query) queries;
    VEC(int) units; /* the memory unit that each query is about */
    VEC(int) creates, deletes;
};

static int compare_lives(const void *a, const void *b)
{
    const struct life *left = a, *right = b;
    if (left->gpu != right->gpu)
        return left->gpu - right->gpu;
    return left->create - right->create;
}

static void unit_violation(struct slot_check *check, const struct life *a, const struct life *b,
                           int unit)
{
    assert(a->gpu == b->gpu);
    struct verifier *verifier = check->verifier;
    const char *first = verifier_slot_text(verifier, a->gpu, a->profile, a->start);
    const char *second = verifier_slot_text(verifier, b->gpu, b->profile, b->start);
    verifier_violation(verifier, "slots", second, "may take memory unit %d while %s holds it",
                       unit, first);
}

static void check_unit(struct slot_check *check, const struct life *lives, size_t count,
                       int unit)
{
    assert(count > 0 && unit >= 0 && unit < MIG_UNITS_MAX);
    const struct mig_board *board = check->verifier->transition->gpus.data[lives[0].gpu].board;
    const struct life *holder = NULL;
    for (size_t i = 0; i < count; i++) {
        struct mig_instance instance = {(int8_t)lives[i].profile, (int8_t)lives[i].start};
        if (!(mig_instance_span(board, instance) >> unit & 1))
            continue;
        if (holder && (holder->delete < 0 || lives[i].create < 0)) {
            unit_violation(check, holder, &lives[i], unit);
        } else if (holder) {
            struct reach_query query = {.before = holder->delete, .after = lives[i].create};
            vec_add(&check->queries, query);
            vec_add(&check->units, unit);
        }
        holder = &lives[i];
    }
}

/* The most that the weights of instances there together may sum to. */
static int64_t most_together(struct slot_check *check, const struct life *lives, size_t count,
                             const int *weights)
{
    const struct transition *transition = check->verifier->transition;
    assert(count > 0 && weights);
    struct closure *closure = &check->closure;
    int64_t always = 0;
    closure_clear(closure);
    vec_clear(&check->creates);
    vec_clear(&check->deletes);
    for (size_t i = 0; i < count; i++) {
        if (lives[i].create >= 0)
            vec_add(&check->creates, lives[i].create);
        else
            always += weights[i];
        if (lives[i].delete >= 0)
            vec_add(&check->deletes, lives[i].delete);
    }
    subgraph_between(&check->subgraph, check->deletes.data, check->deletes.count,
                     check->creates.data, check->creates.count, closure);
    for (size_t i = 0; i < count; i++) {
        int node = lives[i].delete < 0 ? -1 : check->subgraph.node[lives[i].delete];
        if (node >= 0)
            closure->weights.data[node] -= weights[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (lives[i].create < 0)
            continue;
        const struct transition_action *create = &transition->actions.data[lives[i].create];
        int begun = closure_add_node(closure, weights[i]);
        for (size_t j = 0; j < create->after.count; j++)
            if (check->subgraph.node[create->after.data[j]] >= 0)
                closure_require(closure, begun, check->subgraph.node[create->after.data[j]]);
    }
    bool *members = xcalloc(closure->weights.count, sizeof *members);
    int64_t most = always + closure_solve(closure, members);
    free(members);
    return most;
}

static void check_limit(struct slot_check *check, const struct life *lives, size_t count,
                        const int *weights, int limit, const char *what)
{
    assert(count > 0 && limit >= 0);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    if (sum <= limit)
        return;
    int64_t most = most_together(check, lives, count, weights);
    if (most > limit)
        verifier_violation(
            check->verifier, "slots", check->verifier->transition->gpus.data[lives[0].gpu].id,
            "%lld %s may be there together, the board has %d", (long long)most, what, limit);
}

static void check_counts(struct slot_check *check, const struct life *lives, size_t count)
{
    assert(count > 0);
    const struct mig_board *board = check->verifier->transition->gpus.data[lives[0].gpu].board;
    int *weights = xcalloc(count, sizeof *weights);
    for (size_t i = 0; i < count; i++)
        weights[i] = 1;
    check_limit(check, lives, count, weights, board->max_instances, "instances");
    for (int p = 0; p < board->profile_count; p++) {
        for (size_t i = 0; i < count; i++)
            weights[i] = lives[i].profile == p;
        check_limit(check, lives, count, weights, board->profiles[p].max_instances,
                    board->profiles[p].name);
    }
    for (int e = 0; e < MIG_ENGINE_COUNT; e++) {
        for (size_t i = 0; i < count; i++) {
            int engines = board->profiles[lives[i].profile].engines[e];
            weights[i] = engines == MIG_UNKNOWN ? 0 : engines;
        }
        if (board->engine_limits[e] != MIG_UNKNOWN)
            check_limit(check, lives, count, weights, board->engine_limits[e],
                        mig_engine_name((enum mig_engine)e));
    }
    free(weights);
}

static void answer(struct slot_check *check)
{
    const struct transition *transition = check->verifier->transition;
    reach_answer(transition, check->queries.data, check->queries.count);
    assert(check->units.count == check->queries.count);
    for (size_t i = 0; i < check->queries.count; i++) {
        const struct reach_query *query = &check->queries.data[i];
        const struct transition_action *before = &transition->actions.data[query->before];
        const struct transition_action *after = &transition->actions.data[query->after];
        if (!query->ordered)
            verifier_violation(check->verifier, "slots", after->id,
                               "may begin before %s, which frees memory unit %d of %s, is done",
                               before->id, check->units.data[i],
                               transition->gpus.data[after->gpu].id);
    }
}

void verify_slots(struct verifier *verifier)
{
    struct slot_check check = {.verifier = verifier};
    size_t count = verifier->lives.count;
    struct life *lives = verifier->lives.data;
    subgraph_init(&check.subgraph, verifier->transition);
    if (count > 0)
        qsort(lives, count, sizeof *lives, compare_lives);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && lives[next].gpu == lives[i].gpu; next++)
            continue;
        const struct mig_board *board = verifier->transition->gpus.data[lives[i].gpu].board;
        for (int unit = 0; unit < board->memory_units; unit++)
            check_unit(&check, &lives[i], next - i, unit);
        check_counts(&check, &lives[i], next - i);
    }
    answer(&check);
    subgraph_done(&check.subgraph);
    closure_done(&check.closure);
    vec_done(&check.queries);
    vec_done(&check.units);
    vec_done(&check.creates);
    vec_done(&check.deletes);
}
