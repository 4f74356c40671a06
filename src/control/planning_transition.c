/* SPDX-License-Identifier: Apache-2.0
 *
 * From the state that is there to the state that is wanted: a Transition object. Large ones
 * come in pieces, each a safe change of its own, the next planned from the state reached:
 *
 *     GPUs      in a pool of more than POOL_GPUS_MAX GPUs the first PIECE_GPUS that differ,
 * those that only gain instances before others, as far as every service has its floor when they
 * are changed and the rest is not; what the rest gives is taken off the floor that the order
 * has to hold actions   the first actions_max of the order, which is a down-set of it: what
 * each waits for is among them
 *
 * Where no order leads to the whole, GPUs that only gain instances are changed all the same.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "control/kinds.h"
#include "control/object.h"
#include "control/planning.h"
#include "transition/plan.h"

enum {
    ACTIONS_MAX = 500,
    PIECE_GPUS = 128,
};

/* What one Transition takes on. */
enum extent {
    EXTENT_PIECE, /* in a large pool a piece, else all */
    EXTENT_ALL,
    EXTENT_GROWTH, /* the GPUs that only gain instances */
};

struct maker {
    const struct pool_view *view;
    const struct planning_change *change;
    struct plan from, to;
    bool *chosen;     /* by GPU of the change: it is part of the piece */
    double *left_rps; /* by service: above the floor when the piece is done */
    bool is_piece;
};

static void maker_done(struct maker *maker)
{
    free(maker->chosen);
    free(maker->left_rps);
    plan_done(&maker->from);
    plan_done(&maker->to);
}

/* ---- which GPUs ------------------------------------------------------------------- */

/* Everything that serves there goes on as it does. */
static bool is_growth(const struct plan_gpu *observed, const struct plan_gpu *wanted)
{
    for (size_t i = 0; i < observed->instances.count; i++) {
        const struct plan_instance *before = &observed->instances.data[i];
        bool kept = before->service < 0;
        for (size_t j = 0; j < wanted->instances.count && !kept; j++)
            kept = planning_serves_same(before, &wanted->instances.data[j]);
        if (!kept)
            return false;
    }
    return true;
}

static void add_gpu(struct plan *plan, const struct plan_gpu *gpu)
{
    struct plan_gpu *copy = vec_push(&plan->gpus);

    *copy = (struct plan_gpu){.id = gpu->id, .board = gpu->board, .node = gpu->node};
    for (size_t i = 0; i < gpu->instances.count; i++)
        vec_add(&copy->instances, gpu->instances.data[i]);
}

static double floor_of(const struct planning_change *change, size_t s)
{
    return fmin(change->observed->services.data[s].required_rps,
                change->wanted->services.data[s].required_rps);
}

static void add_rates(double *rates, const struct plan_gpu *gpu, double sign)
{
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].service >= 0)
            rates[gpu->instances.data[i].service] += sign * gpu->instances.data[i].rate_rps;
}

/* Whether every service concerned keeps its floor when the GPU is changed too. */
static bool may_join(struct maker *maker, size_t g)
{
    const struct plan_gpu *observed = &maker->change->observed->gpus.data[g],
                          *wanted = &maker->change->wanted->gpus.data[g];
    bool fits = true;

    add_rates(maker->left_rps, observed, -1);
    add_rates(maker->left_rps, wanted, 1);
    for (size_t i = 0; i < observed->instances.count; i++) {
        int service = observed->instances.data[i].service;
        double floor_rps = service < 0 ? 0 : floor_of(maker->change, (size_t)service);
        fits &= service < 0 || maker->left_rps[service] >= -1e-9 * floor_rps;
    }
    if (fits)
        return true;
    add_rates(maker->left_rps, observed, 1);
    add_rates(maker->left_rps, wanted, -1);
    return false;
}

static size_t piece_gpus(const struct planning_change *change)
{
    return change->piece_gpus > 0 ? (size_t)change->piece_gpus : PIECE_GPUS;
}

static size_t choose_piece(struct maker *maker, bool growth_alone)
{
    const struct planning_change *change = maker->change;
    size_t chosen = 0, most = piece_gpus(change);

    for (size_t s = 0; s < change->observed->services.count; s++)
        maker->left_rps[s] =
            change->observed->services.data[s].provided_rps - floor_of(change, s);
    for (int growth = 1; growth >= growth_alone; growth--)
        for (size_t g = 0; g < change->observed->gpus.count && chosen < most; g++) {
            const struct plan_gpu *observed = &change->observed->gpus.data[g],
                                  *wanted = &change->wanted->gpus.data[g];
            if (maker->chosen[g] || planning_is_same_gpu(observed, wanted) ||
                is_growth(observed, wanted) != growth || !may_join(maker, g))
                continue;
            maker->chosen[g] = true;
            chosen++;
        }
    return chosen;
}

/* The piece alone; each service requires of it what the other GPUs do not give. */
static void take_piece(struct maker *maker)
{
    const struct planning_change *change = maker->change;
    size_t services = change->observed->services.count;
    double *elsewhere = xcalloc(services + 1, sizeof *elsewhere);

    for (size_t g = 0; g < change->observed->gpus.count; g++) {
        if (maker->chosen[g]) {
            add_gpu(&maker->from, &change->observed->gpus.data[g]);
            add_gpu(&maker->to, &change->wanted->gpus.data[g]);
        } else {
            add_rates(elsewhere, &change->observed->gpus.data[g], 1);
        }
    }
    for (size_t s = 0; s < services; s++) {
        double required = fmax(0, floor_of(change, s) * (1 - 1e-9) - elsewhere[s]);
        maker->from.services.data[s].required_rps = required;
        maker->to.services.data[s].required_rps = required;
    }
    free(elsewhere);
}

/* All GPUs but the empty ones that stay so; of those as many as may be borrowed. */
static void take_all(struct maker *maker)
{
    const struct planning_change *change = maker->change;
    int spares = maker->view->pool->spare_gpus;

    for (size_t g = 0; g < change->observed->gpus.count; g++) {
        const struct plan_gpu *observed = &change->observed->gpus.data[g],
                              *wanted = &change->wanted->gpus.data[g];
        int at = pool_view_gpu(maker->view, observed->id);
        bool is_empty = observed->instances.count == 0 && wanted->instances.count == 0;
        if (is_empty && (!pool_view_is_usable(maker->view, at) || spares-- <= 0))
            continue;
        add_gpu(&maker->from, observed);
        add_gpu(&maker->to, wanted);
    }
}

static void add_services(struct plan *plan, const struct plan *like)
{
    for (size_t s = 0; s < like->services.count; s++)
        vec_add(&plan->services, like->services.data[s]);
}

/* False: there is no GPU of that kind. */
static bool choose_gpus(struct maker *maker, enum extent extent)
{
    const struct planning_change *change = maker->change;
    size_t gpus = change->observed->gpus.count;

    plan_init(&maker->from);
    plan_init(&maker->to);
    add_services(&maker->from, change->observed);
    add_services(&maker->to, change->wanted);
    maker->chosen = xcalloc(gpus + 1, sizeof(bool));
    maker->left_rps = xcalloc(change->observed->services.count + 1, sizeof(double));
    bool divided =
        extent == EXTENT_GROWTH || (extent == EXTENT_PIECE && gpus > 2 * piece_gpus(change));
    maker->is_piece = divided && choose_piece(maker, extent == EXTENT_GROWTH) > 0;
    if (maker->is_piece)
        take_piece(maker);
    else
        take_all(maker);
    return maker->is_piece || extent != EXTENT_GROWTH;
}

/* ---- the first actions ------------------------------------------------------------ */

struct ordering {
    const struct transition *transition;
    bool *taken;
    VEC(int) order;
    VEC(int) stack; /* actions whose `after` is being taken */
};

/* Appends an action after all that it waits for, as far as these are not there yet. */
static void take_with_those_before(struct ordering *ordering, int action)
{
    vec_add(&ordering->stack, action);
    while (ordering->stack.count > 0) {
        int top = ordering->stack.data[ordering->stack.count - 1];
        const struct transition_action *here = &ordering->transition->actions.data[top];
        size_t i = 0;
        while (i < here->after.count && ordering->taken[here->after.data[i]])
            i++;
        if (i < here->after.count) {
            vec_add(&ordering->stack, here->after.data[i]);
            continue;
        }
        ordering->stack.count--;
        if (!ordering->taken[top])
            vec_add(&ordering->order, top);
        ordering->taken[top] = true;
    }
}

/* Starts first, each with all that it needs: what is cut off shall not be the use of what was
 * begun. */
static void order_actions(struct ordering *ordering)
{
    size_t count = ordering->transition->actions.count;

    for (size_t i = 0; i < count; i++)
        if (ordering->transition->actions.data[i].kind == ACTION_START)
            take_with_those_before(ordering, (int)i);
    for (size_t i = 0; i < count; i++)
        if (!ordering->taken[i])
            take_with_those_before(ordering, (int)i);
    assert(ordering->order.count == count);
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Gives an action's `after` the new positions. */
static void renumber(struct transition_action *action, const int *position)
{
    for (size_t i = 0; i < action->after.count; i++)
        action->after.data[i] = position[action->after.data[i]];
    if (action->after.count > 0)
        qsort(action->after.data, action->after.count, sizeof(int), compare_ints);
}

static void cut(struct transition *transition, size_t most)
{
    size_t count = transition->actions.count;
    struct ordering ordering = {.transition = transition,
                                .taken = xcalloc(count, sizeof(bool))};
    struct transition_action *kept;
    int *position;

    if (count > most) {
        order_actions(&ordering);
        kept = xcalloc(most, sizeof *kept);
        position = xcalloc(count, sizeof *position);
        for (size_t i = 0; i < count; i++)
            position[ordering.order.data[i]] = (int)i;
        for (size_t i = 0; i < most; i++) {
            kept[i] = transition->actions.data[ordering.order.data[i]];
            renumber(&kept[i], position);
        }
        for (size_t i = most; i < count; i++)
            vec_done(&transition->actions.data[ordering.order.data[i]].after);
        memcpy(transition->actions.data, kept, most * sizeof *kept);
        transition->actions.count = most;
        free(kept);
        free(position);
    }
    vec_done(&ordering.order);
    vec_done(&ordering.stack);
    free(ordering.taken);
}

/* ---- the object ------------------------------------------------------------------- */

/* Leaves out GPUs and services that no action names. */
static void keep_named(struct transition *transition, const struct pool_view *view)
{
    bool *gpus = xcalloc(transition->gpus.count, sizeof *gpus);
    int *moved = xcalloc(transition->gpus.count, sizeof *moved);
    size_t kept = 0;

    for (size_t i = 0; i < transition->actions.count; i++)
        gpus[transition->actions.data[i].gpu] = true;
    for (size_t g = 0; g < transition->gpus.count; g++) {
        moved[g] = (int)kept;
        if (gpus[g])
            transition->gpus.data[kept++] = transition->gpus.data[g];
    }
    transition->gpus.count = kept;
    for (size_t i = 0; i < transition->actions.count; i++) {
        struct transition_action *action = &transition->actions.data[i];
        action->gpu = moved[action->gpu];
        if (action->procs >= PROCS_OUTDATED)
            action->procs -= PROCS_OUTDATED;
        assert(pool_view_gpu(view, transition->gpus.data[action->gpu].id) >= 0);
    }
    free(gpus);
    free(moved);
}

static void set_floors(const struct maker *maker, struct transition *transition)
{
    for (size_t s = 0; s < transition->services.count; s++) {
        struct transition_service *service = &transition->services.data[s];
        service->floor_rps =
            transition_floor_rps(maker->change->observed, maker->change->wanted, service->name);
    }
}

static const struct transition_object *find_transition(const struct world *world,
                                                       const char *name)
{
    for (size_t i = 0; i < world->transitions.count; i++)
        if (strcmp(world->transitions.data[i].meta.name, name) == 0)
            return &world->transitions.data[i];
    return NULL;
}

/* The name follows from what is to be done. The same may be to be done again later: then a
 * Transition of that name is over already, and the next name is taken. */
static void choose_name(const struct maker *maker, const json_t *spec, char *ret_name,
                        size_t size, char ret_hash[17])
{
    const char *pool = maker->view->pool->meta.name;

    for (int again = 0;; again++) {
        json_t *whole = json_pack("{s:O, s:s, s:i}", "spec", (json_t *)spec, "to",
                                  maker->change->target, "again", again);
        json_hash(whole, 16, ret_hash);
        json_decref(whole);
        snprintf(ret_name, size, "%s-%.8s", pool, ret_hash);
        const struct transition_object *same = find_transition(maker->view->world, ret_name);
        if (!same || !transition_is_closed(same))
            return;
    }
}

static void ensure(const struct maker *maker, const struct transition *transition,
                   struct effects *effects)
{
    const struct gpu_pool *pool = maker->view->pool;
    char name[96], hash[17];
    json_t *object =
        transition_object_to_json("-", pool->meta.name, "", maker->change->target, transition);

    choose_name(maker, json_object_get(object, "spec"), name, sizeof name, hash);
    json_t *metadata = json_object_get(object, "metadata");
    json_object_set_new(metadata, "name", json_string(name));
    json_object_set_new(metadata, "finalizers", json_pack("[s]", FINALIZER));
    planning_decorate(object, pool, hash);
    effect_ensure(effects, &KIND_TRANSITION, object)->reason = "transition";
}

static bool make(const struct pool_view *view, const struct planning_change *change,
                 enum extent extent, struct effects *effects, struct error *err)
{
    CLEANUP(maker_done) struct maker maker = {.view = view, .change = change};
    struct transition transition;
    struct transition_options options = {
        .algorithm = TRANSITION_DAG, .keep_ids = true, .seed = 1};

    if (!choose_gpus(&maker, extent))
        return false;
    if (transition_plan(&maker.from, &maker.to, &options, &transition,
                        extent == EXTENT_GROWTH ? NULL : err) < 0)
        return extent != EXTENT_GROWTH &&
               make(view, change, maker.is_piece ? EXTENT_ALL : EXTENT_GROWTH, effects, err);
    if (transition.actions.count == 0) {
        transition_done(&transition);
        error_set(err, E_NO, "no action leads from the state to the plan");
        return false;
    }
    if (maker.is_piece)
        set_floors(&maker, &transition);
    cut(&transition, change->actions_max > 0 ? (size_t)change->actions_max : ACTIONS_MAX);
    keep_named(&transition, view);
    ensure(&maker, &transition, effects);
    transition_done(&transition);
    return true;
}

bool planning_make_transition(const struct pool_view *view,
                              const struct planning_change *change, struct effects *effects,
                              struct error *err)
{
    assert(change->observed->gpus.count == change->wanted->gpus.count);
    return make(view, change, EXTENT_PIECE, effects, err);
}
