/* SPDX-License-Identifier: Apache-2.0
 *
 * A round of a pool, and how its parts come together. Effects are in an order in which what
 * keeps requests going comes first, since one that fails may end the round: routing, plans and
 * statuses, then the acts of the Transition.
 */
#include "control/reconcile.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/kinds.h"
#include "control/planning.h"
#include "control/status.h"
#include "control/status_edit.h"
#include "control/strays.h"
#include "control/window.h"
#include "kube/api.h"

static const double FLOOR_TOLERANCE = 1e-9;

/* ---- planning --------------------------------------------------------------------- */

static void look_again_at(struct effects *effects, const struct world *world, int64_t at_s)
{
    assert(at_s >= 0);
    if (at_s == INT64_MAX)
        return;
    int64_t wait_s = at_s > world->sources.now_s ? at_s - world->sources.now_s : 0;
    effects_again_at(effects, world->sources.now_ns + wait_s * INT64_C(1000000000));
}

static void tell_no_transition(const struct pool_view *view, const struct error *err,
                               struct effects *effects)
{
    struct status_edit edit;

    status_edit_begin(&edit, effects, &KIND_GPU_POOL, view->pool->meta.json,
                      view->world->sources.now_s);
    status_edit_condition(&edit, "Stalled", true, "NoSafeTransition", "%s", err->text);
    status_edit_end(&edit);
}

/* Less is there of a service than it is held to: something was lost, and nobody gave it up. */
static bool is_floor_broken(const struct pool_view *view)
{
    for (size_t s = 0; s < view->services.count; s++)
        if (view->services.data[s].existing_rps <
            planning_status_rate(view, s, "floorRps") * (1 - FLOOR_TOLERANCE))
            return true;
    return false;
}

/* Whether what is wanted waits for the pool's window; the pool says until when. */
static bool waits_for_window(const struct pool_view *view, bool is_wanted,
                             struct effects *effects)
{
    const struct gpu_pool *pool = view->pool;
    int64_t now_s = view->world->sources.now_s;
    int64_t opens_s = window_opens_s(pool, now_s);
    bool waits = is_wanted && opens_s > now_s && !is_floor_broken(view);
    struct status_edit edit;
    char opens[21];

    status_edit_begin(&edit, effects, &KIND_GPU_POOL, pool->meta.json, now_s);
    clock_utc_text(opens_s, opens);
    if (waits)
        status_edit_condition(&edit, "Waiting", true, "WindowClosed",
                              "the plan is carried out from %s on", opens);
    else if (window_is_set(pool) || status_edit_find(&edit, "Waiting"))
        status_edit_condition(&edit, "Waiting", false, "NothingWaits",
                              "no plan waits for the window");
    status_edit_end(&edit);
    if (waits)
        look_again_at(effects, view->world, opens_s);
    return waits;
}

/* From the state that is there to the current plan, if these differ. */
static void carry_on(struct pool_view *view, const struct reconcile_options *options,
                     struct effects *effects)
{
    struct target_plan target;
    struct plan observed, wanted;
    struct error err = {0};

    if (!target_plan_find(view, &target))
        return;
    planning_observed(view, &observed);
    planning_wanted(view, &target, &observed, &wanted);
    struct planning_change change = {.target = target.name,
                                     .observed = &observed,
                                     .wanted = &wanted,
                                     .actions_max = options->actions_max,
                                     .piece_gpus = options->piece_gpus};
    bool is_wanted = !planning_is_same(&observed, &wanted);
    bool waits = waits_for_window(view, is_wanted, effects);
    if (is_wanted && !waits && !planning_make_transition(view, &change, effects, &err))
        tell_no_transition(view, &err, effects);
    plan_done(&wanted);
    plan_done(&observed);
    target_plan_done(&target);
}

void reconcile_plan(struct world *world, const struct gpu_pool *pool,
                    const struct actuator_gpus *gpus, const struct reconcile_options *options,
                    struct effects *effects)
{
    CLEANUP(pool_view_done) struct pool_view view = {0};
    char hash[INPUT_HASH_SIZE];
    int64_t again_s;

    pool_view_init(&view, world, pool, gpus);
    planning_hash(&view, hash);
    if (planning_is_due(&view, hash, &again_s)) {
        planning_make(&view, hash, options, effects);
        return;
    }
    look_again_at(effects, world, again_s);
    carry_on(&view, options, effects);
}

/* ---- a pool ----------------------------------------------------------------------- */

static const struct gpu_pool *find_pool(const struct world *world, const char *name)
{
    assert(name);
    for (size_t i = 0; i < world->pools.count; i++)
        if (strcmp(world->pools.data[i].meta.name, name) == 0)
            return &world->pools.data[i];
    return NULL;
}

/* A Transition that a later leader has begun: this controller has nothing to say any more. */
static struct transition_object *find_fence(struct world *world, const struct gpu_pool *pool)
{
    for (size_t i = 0; i < world->transitions.count; i++)
        if (strcmp(world->transitions.data[i].pool, pool->meta.name) == 0 &&
            world->transitions.data[i].epoch > world->sources.epoch)
            return &world->transitions.data[i];
    return NULL;
}

/* A pool that is there, and cannot be read. */
static const struct world_fault *find_unreadable(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->faults.count; i++)
        if (world->faults.data[i].kind == &KIND_GPU_POOL &&
            strcmp(kube_metadata(world->faults.data[i].object, "name"), name) == 0)
            return &world->faults.data[i];
    return NULL;
}

/* Nothing is planned or changed, no service is let go; endpoints follow the pods, and the pool
 * says why. */
static void keep_unreadable(struct world *world, const struct world_fault *fault,
                            struct effects *effects)
{
    struct gpu_pool pool = {0};

    object_meta_read(fault->object, &pool.meta);
    if (find_fence(world, &pool))
        return;
    reconcile_routing(world, &pool, effects);
    status_tell_unreadable_pool(world, fault, effects);
}

/* Others that are open: made by a controller that did not see the first. */
static void close_others(struct world *world, const struct transition_object *open,
                         struct effects *effects)
{
    for (size_t i = 0; i < world->transitions.count; i++) {
        const struct transition_object *other = &world->transitions.data[i];
        struct status_edit edit;
        if (other == open || strcmp(other->pool, open->pool) != 0 ||
            transition_is_closed(other))
            continue;
        status_edit_begin(&edit, effects, &KIND_TRANSITION, other->meta.json,
                          world->sources.now_s);
        status_edit_set(&edit, "epoch", json_integer(world->sources.epoch));
        status_edit_condition(&edit, "Complete", false, "Superseded", "%s is open already",
                              open->meta.name);
        status_edit_end(&edit);
    }
}

static void count_pods(const struct pool_view *view, struct reconcile_figures *figures)
{
    for (size_t s = 0; s < view->services.count; s++) {
        const struct view_service *service = &view->services.data[s];
        figures->pods += service->pods;
        figures->pods_ready += service->pods_ready;
        figures->capacity_rps += service->ready_rps;
        figures->floor_rps += planning_status_rate(view, s, "floorRps");
        if (service->service >= 0)
            figures->required_rps += view->world->services.data[service->service].rate_rps;
    }
}

static bool is_false(const json_t *object, const char *type)
{
    return strcmp(json_text(object_condition(object, type), "status"), "False") == 0;
}

static void count_actions(const struct transition_object *open,
                          struct reconcile_figures *figures)
{
    for (size_t i = 0; open && i < open->states.count; i++) {
        figures->actions_done += open->states.data[i].phase == PHASE_DONE;
        figures->actions_open += open->states.data[i].phase != PHASE_DONE;
    }
    figures->floor_held = !open || !is_false(open->meta.json, "FloorHeld");
}

static void find_figures(struct world *world, const struct gpu_pool *pool,
                         const struct actuator_gpus *gpus, struct reconcile_figures *figures)
{
    CLEANUP(pool_view_done) struct pool_view view = {0};

    pool_view_init(&view, world, pool, gpus);
    figures->gpus = (int)gpus->gpus.count;
    for (size_t g = 0; g < gpus->gpus.count; g++) {
        figures->gpus_lost += gpus->gpus.data[g].lost;
        figures->instances += (int)gpus->gpus.data[g].instances.count;
    }
    count_pods(&view, figures);
    count_actions(pool_open_transition(world, pool), figures);
}

/* The pool's parts, in the order of their effects. */
static void run_round(struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus, const struct reconcile_options *options,
                      struct effects *effects)
{
    struct transition_object *open = pool_open_transition(world, pool);
    const struct actuator_ops *ops = pool_actuator(world, pool);

    reconcile_routing(world, pool, effects);
    if (status_adopt_services(world, pool, effects) == 0) {
        if (!open && !pool->paused)
            reconcile_plan(world, pool, gpus, options, effects);
        reconcile_status(world, pool, gpus, effects);
    }
    if (open) {
        close_others(world, open, effects);
        reconcile_transition(world, pool, gpus, open, effects);
    } else if (!pool->paused) {
        reconcile_strays(world, pool, gpus, effects);
    }
    if (ops->tend)
        ops->tend(world, gpus, effects);
}

int reconcile_pool(struct world *world, const struct reconcile_options *options,
                   struct effects *ret_effects, struct reconcile_figures *ret_figures,
                   struct error *err)
{
    assert(options->pool && ret_effects);
    const struct gpu_pool *pool = find_pool(world, options->pool);
    struct actuator_gpus gpus = {0};
    struct reconcile_figures figures = {0};

    effects_init(ret_effects);
    const struct world_fault *unreadable = pool ? NULL : find_unreadable(world, options->pool);
    if (unreadable) {
        keep_unreadable(world, unreadable, ret_effects);
        if (ret_figures)
            *ret_figures = figures;
        return 0;
    }
    if (!pool) {
        status_release_orphans(world, options->pool, ret_effects);
        if (ret_figures)
            *ret_figures = figures;
        return ret_effects->items.count > 0
                   ? 0
                   : error_set(err, E_NOT_FOUND, "GpuPool %s: there is none", options->pool);
    }
    pool_actuator(world, pool)->observe(world, pool, &gpus);
    world_place_pods(world, &gpus);
    const struct transition_object *fence = find_fence(world, pool);
    if (fence)
        effect_event(ret_effects, &KIND_TRANSITION, fence->meta.json, true, "Fenced",
                     "epoch %lld carries it on; this controller's is %lld", fence->epoch,
                     world->sources.epoch);
    else
        run_round(world, pool, &gpus, options, ret_effects);
    find_figures(world, pool, &gpus, &figures);
    figures.settled = ret_effects->items.count == 0 && figures.actions_open == 0;
    if (ret_figures)
        *ret_figures = figures;
    return 0;
}
