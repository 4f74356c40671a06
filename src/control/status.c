/* SPDX-License-Identifier: Apache-2.0
 *
 * What our objects say of themselves, finalizers, and how long history is kept.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/planning.h"
#include "control/resource_fields.h"
#include "control/routing.h"
#include "control/status.h"
#include "control/status_edit.h"
#include "kube/api.h"

enum { HISTORY_MAX = 5, INSTANCES_LISTED_MAX = 2000, CONFLICTS_LISTED_MAX = 200 };

struct teller {
    struct pool_view view;
    struct effects *effects;
    int64_t now_s;
    struct transition_object *open;
    struct target_plan target;
    bool has_target, is_reached, is_due;
    int *wanted; /* by the view's services: instances in the target */
};

static const struct gpu_service *service_of(const struct teller *teller, size_t s)
{
    assert(s < teller->view.services.count);
    int at = teller->view.services.data[s].service;

    return at < 0 ? NULL : &teller->view.world->services.data[at];
}

/* ---- services --------------------------------------------------------------------- */

static json_t *instance_json(const struct world_pod *pod)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:b}", "pod", pod->meta.name,
                  "node", pod->node, "gpuUUID", pod->gpu_uuid, "slice", pod->slice, "start",
                  pod->start, "batch", pod->batch, "procs", pod->procs, "rateRps",
                  pod->rate_rps, "ready", pod_is_serving(pod));

    if (pod->draining_since_s > 0)
        json_object_set_new(object, "draining", json_true());
    return object;
}

/* A service's pods, in the order of their names. */
struct service_pods {
    VEC(const struct world_pod *) pods;
    double lowest_rps, sum_rps; /* of those that serve */
    int serving, gpus;
};

static void collect_pods(const struct teller *teller, struct service_pods *all)
{
    const struct world *world = teller->view.world;

    for (size_t i = 0; i < world->pods.count; i++) {
        const struct world_pod *pod = &world->pods.data[i];
        int s = pool_view_service(&teller->view, pod->service);
        if (s < 0)
            continue;
        vec_add(&all[s].pods, pod);
        if (!pod_is_serving(pod))
            continue;
        all[s].lowest_rps =
            all[s].serving == 0 ? pod->rate_rps : fmin(all[s].lowest_rps, pod->rate_rps);
        all[s].sum_rps += pod->rate_rps;
        all[s].serving++;
    }
}

static json_t *instances_json(const struct service_pods *pods)
{
    json_t *list = json_array();

    for (size_t i = 0; i < pods->pods.count && i < INSTANCES_LISTED_MAX; i++)
        json_array_append_new(list, instance_json(pods->pods.data[i]));
    return list;
}

static int count_gpus(const struct service_pods *pods)
{
    CLEANUP(map_done) struct map uuids = {0};

    for (size_t i = 0; i < pods->pods.count; i++)
        map_put(&uuids, pods->pods.data[i]->gpu_uuid, NULL);
    return (int)uuids.count;
}

/* What can be used of the capacity: without weights the slowest pod sets the pace. */
static double usable_rps(const struct teller *teller, const struct gpu_service *service,
                         const struct service_pods *pods)
{
    if (routing_is_weighted(teller->view.world, service))
        return pods->sum_rps;
    return pods->serving * pods->lowest_rps;
}

static bool provides(double capacity, double required)
{
    assert(capacity >= 0 && required >= 0);
    return capacity >= required * (1 - 1e-9);
}

static void tell_capacity(const struct teller *teller, const struct gpu_service *service,
                          const struct service_pods *pods, struct status_edit *edit)
{
    double usable = usable_rps(teller, service, pods);
    bool enough = provides(pods->sum_rps, service->rate_rps);

    if (!enough)
        status_edit_condition(edit, "Degraded", true, "CapacityShort",
                              "%.9g of %.9g rps are ready", pods->sum_rps, service->rate_rps);
    else if (!provides(usable, service->rate_rps))
        status_edit_condition(edit, "Degraded", true, "SharedEvenly",
                              "requests are shared evenly among %d pods of unequal rates: "
                              "%.9g of %.9g rps can be used; set spec.gateway, or allow one "
                              "slice profile alone",
                              pods->serving, usable, pods->sum_rps);
    else
        status_edit_condition(edit, "Degraded", false, "CapacityReady",
                              "the required rate is ready");
}

static void tell_kstatus(const struct teller *teller, const struct gpu_service *service,
                         const struct service_pods *pods, struct status_edit *edit)
{
    const json_t *feasible = status_edit_find(edit, "SLOFeasible");
    const char *word = json_string_value(json_object_get(feasible, "status"));
    bool infeasible = word && strcmp(word, "False") == 0;
    bool enough = provides(pods->sum_rps, service->rate_rps);
    bool moving = teller->open || teller->is_due || (teller->has_target && !teller->is_reached);
    const char *reason = infeasible ? "SLOInfeasible"
                         : enough   ? "CapacityReady"
                                    : "CapacityShort";

    status_edit_condition(edit, "Ready", enough && !infeasible, reason, "%s",
                          enough && !infeasible ? "ready instances provide the required rate"
                          : infeasible          ? "no plan provides rate and latency"
                                       : "ready instances provide less than the required rate");
    status_edit_condition(
        edit, "Reconciling", moving && !infeasible, moving ? "UnderWay" : "Settled", "%s",
        moving ? "instances are being made or moved" : "the instances are those of the plan");
    status_edit_condition(
        edit, "Progressing", moving && !infeasible, moving ? "UnderWay" : "Settled", "%s",
        moving ? "instances are being made or moved" : "the instances are those of the plan");
    status_edit_condition(edit, "Stalled", infeasible,
                          infeasible ? "SLOInfeasible" : "Readable", "%s",
                          infeasible ? "no plan provides rate and latency: see SLOFeasible"
                                     : "the spec can be read");
}

/* It is being deleted, and nothing of it is left. */
static bool has_left(const struct teller *teller, size_t s)
{
    const struct gpu_service *service = service_of(teller, s);

    return service && service->meta.deleting && teller->view.services.data[s].pods == 0;
}

/* From when on the service is held to the rate that the plan was made for: when the plan is
 * reached, or when the service has it and nothing moves (the plan may have no safe order). */
static bool has_its_rate(const struct teller *teller, const struct service_pods *pods,
                         double required_rps)
{
    return teller->has_target && !teller->is_due && !teller->open &&
           (teller->is_reached || provides(pods->sum_rps, required_rps));
}

static void tell_service(const struct teller *teller, size_t s, struct service_pods *pods)
{
    const struct gpu_service *service = service_of(teller, s);
    double required_rps = planning_status_rate(&teller->view, s, "requiredRps");
    struct status_edit edit;

    if (!service || has_left(teller, s))
        return;
    pods->gpus = count_gpus(pods);
    status_edit_begin(&edit, teller->effects, &KIND_GPU_SERVICE, service->meta.json,
                      teller->now_s);
    status_edit_set(&edit, "capacityRps", json_real(fmin(pods->sum_rps, FIELD_RATE_MAX)));
    status_edit_set(&edit, "readyInstances", json_integer(pods->serving));
    status_edit_set(&edit, "wantedInstances", json_integer(teller->wanted[s]));
    status_edit_set(&edit, "gpus", json_integer(pods->gpus));
    status_edit_set(&edit, "instances", instances_json(pods));
    status_edit_set(&edit, "plan", json_string(teller->has_target ? teller->target.name : ""));
    status_edit_set(&edit, "transition",
                    json_string(teller->open ? teller->open->meta.name : ""));
    if (has_its_rate(teller, pods, required_rps))
        status_edit_set(&edit, "floorRps", json_real(required_rps));
    tell_capacity(teller, service, pods, &edit);
    tell_kstatus(teller, service, pods, &edit);
    status_edit_end(&edit);
}

static void tell_all_services(struct teller *teller)
{
    size_t count = teller->view.services.count;
    struct service_pods *all = xcalloc(count + 1, sizeof *all);

    collect_pods(teller, all);
    for (size_t s = 0; s < count; s++) {
        tell_service(teller, s, &all[s]);
        vec_done(&all[s].pods);
    }
    free(all);
}

/* ---- the pool --------------------------------------------------------------------- */

struct pool_figures {
    int nodes, gpus, gpus_lost, gpus_used, instances, services, services_short;
    double required_rps, capacity_rps;
};

static bool is_used(const struct teller *teller, size_t g)
{
    assert(g < teller->view.on.count);
    const struct view_gpu *here = &teller->view.on.data[g];

    for (size_t i = 0; i < here->pods.count; i++)
        if (pod_is_serving(&teller->view.world->pods.data[here->pods.data[i]]))
            return true;
    return false;
}

static struct pool_figures figures_of(const struct teller *teller)
{
    const struct pool_view *view = &teller->view;
    struct pool_figures figures = {.gpus = (int)view->gpus->gpus.count};

    for (size_t n = 0; n < view->world->nodes.count; n++)
        figures.nodes += world_in_pool(view->world, view->pool, n);
    for (size_t g = 0; g < view->gpus->gpus.count; g++) {
        figures.gpus_lost += view->gpus->gpus.data[g].lost;
        figures.gpus_used += is_used(teller, g);
        figures.instances += (int)view->gpus->gpus.data[g].instances.count;
    }
    for (size_t s = 0; s < view->services.count; s++) {
        const struct gpu_service *service = service_of(teller, s);
        if (!service || service->meta.deleting)
            continue;
        figures.services++;
        figures.required_rps += service->rate_rps;
        figures.capacity_rps += view->services.data[s].ready_rps;
        figures.services_short +=
            !provides(view->services.data[s].ready_rps, service->rate_rps);
    }
    return figures;
}

static json_t *conflicts_json(const struct teller *teller)
{
    const struct world *world = teller->view.world;
    json_t *list = json_array();

    for (size_t n = 0; n < world->nodes.count; n++) {
        const struct world_node *node = &world->nodes.data[n];
        const char *why = node->conflict && *node->conflict ? node->conflict : node->doubt;
        if (why && world_in_pool(world, teller->view.pool, n) &&
            json_array_size(list) < CONFLICTS_LISTED_MAX)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "node", node->name, "message", why));
    }
    return list;
}

static bool has_reason(const json_t *condition, const char *reason)
{
    return strcmp(json_text(condition, "reason"), reason) == 0;
}

static void tell_ready(const struct teller *teller, const struct pool_figures *figures,
                       bool moving, struct status_edit *edit)
{
    if (!teller->has_target)
        status_edit_condition(edit, "Ready", false, "NoPlan", "there is no plan yet");
    else if (moving)
        status_edit_condition(edit, "Ready", false, "UnderWay", "the plan is not reached yet");
    else if (figures->services_short > 0)
        status_edit_condition(edit, "Ready", false, "CapacityShort",
                              "a service has less than its required rate");
    else
        status_edit_condition(edit, "Ready", true, "Settled",
                              "the world is as the plan has it");
}

static void tell_pool_conditions(const struct teller *teller,
                                 const struct pool_figures *figures, struct status_edit *edit)
{
    bool moving = teller->open || teller->is_due || (teller->has_target && !teller->is_reached);
    const json_t *stalled = status_edit_find(edit, "Stalled");

    tell_ready(teller, figures, moving, edit);
    status_edit_condition(edit, "Reconciling", moving, moving ? "UnderWay" : "Settled", "%s",
                          moving ? "a plan is being made or carried out"
                                 : "there is nothing to do");
    if (!stalled || has_reason(stalled, "CannotBeRead") ||
        (has_reason(stalled, "NoSafeTransition") && (!moving || teller->open)))
        status_edit_condition(edit, "Stalled", false, "NotStalled", "it goes on by itself");
}

static bool is_foreign(const struct world_fault *fault, const struct gpu_pool *pool)
{
    return fault->kind == &KUBE_POD &&
           strcmp(object_label(fault->object, LABEL_POOL), pool->meta.name) == 0;
}

/* Pods that have our labels and that we did not make. False: there is none. */
static bool tell_foreign(const struct teller *teller, struct status_edit *edit)
{
    const struct world_fault *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < teller->view.world->faults.count; i++) {
        const struct world_fault *fault = &teller->view.world->faults.data[i];
        if (!is_foreign(fault, teller->view.pool))
            continue;
        first = first ? first : fault;
        count++;
    }
    if (first)
        status_edit_condition(
            edit, "Degraded", true, "ForeignPods",
            "%zu pods have our labels and are left alone, the first is %s/%s: "
            "%s; take the label " LABEL_MANAGED_BY " off, or delete them",
            count, kube_metadata(first->object, "namespace"),
            kube_metadata(first->object, "name"), first->text);
    return first != NULL;
}

/* Nodes that this pool selects and an older one has. False: there is none. */
static bool tell_shared_nodes(const struct teller *teller, struct status_edit *edit)
{
    const struct world *world = teller->view.world;
    const struct gpu_pool *pool = teller->view.pool;
    const char *first_node = NULL, *first_pool = NULL;
    bool was_told = has_reason(status_edit_find(edit, "Degraded"), "NodesShared");
    size_t count = 0;

    for (size_t n = 0; n < world->nodes.count; n++) {
        const char *other = world_other_pool(world, pool, n);
        const char *node = world->nodes.data[n].name;
        if (!other)
            continue;
        count++;
        if (first_node && strcmp(node, first_node) > 0)
            continue;
        first_node = node;
        first_pool = other;
    }
    if (count == 0)
        return false;
    status_edit_condition(edit, "Degraded", true, "NodesShared",
                          "%zu nodes that it selects belong to older GpuPools and are not used "
                          "here, the first is %s of GpuPool %s: let one of their "
                          "spec.nodeSelector leave them out",
                          count, first_node, first_pool);
    if (!was_told)
        effect_event(teller->effects, &KIND_GPU_POOL, pool->meta.json, true, "NodesShared",
                     "node %s belongs to the older GpuPool %s and is not used here", first_node,
                     first_pool);
    return true;
}

static void tell_degraded(const struct teller *teller, struct status_edit *edit)
{
    if (!tell_shared_nodes(teller, edit) && !tell_foreign(teller, edit) &&
        status_edit_find(edit, "Degraded"))
        status_edit_condition(edit, "Degraded", false, "NotDegraded",
                              "every node that it selects and every pod with its labels is its "
                              "own");
}

static void tell_pool(const struct teller *teller)
{
    const struct gpu_pool *pool = teller->view.pool;
    struct pool_figures figures = figures_of(teller);
    struct status_edit edit;

    status_edit_begin(&edit, teller->effects, &KIND_GPU_POOL, pool->meta.json, teller->now_s);
    status_edit_set(&edit, "actuator",
                    json_string(pool_actuator(teller->view.world, pool)->name));
    status_edit_set(&edit, "nodes", json_integer(figures.nodes));
    status_edit_set(&edit, "gpus", json_integer(figures.gpus));
    status_edit_set(&edit, "gpusUsed", json_integer(figures.gpus_used));
    status_edit_set(&edit, "gpusLost", json_integer(figures.gpus_lost));
    status_edit_set(&edit, "instances", json_integer(figures.instances));
    status_edit_set(&edit, "services", json_integer(figures.services));
    status_edit_set(&edit, "requiredRps",
                    json_real(fmin(figures.required_rps, FIELD_RATE_MAX)));
    status_edit_set(&edit, "capacityRps",
                    json_real(fmin(figures.capacity_rps, FIELD_RATE_MAX)));
    status_edit_set(&edit, "transition",
                    json_string(teller->open ? teller->open->meta.name : ""));
    status_edit_set(&edit, "conflicts", conflicts_json(teller));
    tell_pool_conditions(teller, &figures, &edit);
    tell_degraded(teller, &edit);
    status_edit_end(&edit);
}

/* ---- plans, profiles, objects that cannot be read ---------------------------------- */

static int gpus_used_by(const struct partition_plan *plan)
{
    CLEANUP(map_done) struct map uuids = {0};

    for (size_t i = 0; i < plan->items.count; i++)
        map_put(&uuids, plan->items.data[i].gpu_uuid, NULL);
    return (int)uuids.count;
}

static void tell_plan(const struct teller *teller, const struct partition_plan *plan)
{
    bool current = teller->has_target && strcmp(plan->plan, teller->target.name) == 0;
    struct status_edit edit;

    if (strcmp(plan->pool, teller->view.pool->meta.name) != 0 || plan->meta.deleting)
        return;
    status_edit_begin(&edit, teller->effects, &KIND_PARTITION_PLAN, plan->meta.json,
                      teller->now_s);
    status_edit_set(&edit, "gpusUsed", json_integer(gpus_used_by(plan)));
    status_edit_condition(&edit, "Accepted", true, "Verified",
                          "it passed verification when it was made");
    status_edit_condition(&edit, "Superseded", !current, current ? "Current" : "Replaced", "%s",
                          current ? "it is the pool's plan" : "the pool has another plan");
    status_edit_end(&edit);
}

static void tell_profile(const struct teller *teller, const struct perf_profile *profile)
{
    struct status_edit edit;

    status_edit_begin(&edit, teller->effects, &KIND_PERF_PROFILE, profile->meta.json,
                      teller->now_s);
    status_edit_set(&edit, "entriesAccepted", json_integer((json_int_t)profile->rows.count));
    status_edit_condition(&edit, "Valid", true, "Readable", "the entries can be used");
    status_edit_condition(&edit, "Ready", true, "Readable", "the entries can be used");
    status_edit_condition(&edit, "Stalled", false, "Readable", "the entries can be used");
    status_edit_end(&edit);
}

static void tell_fault(const struct world *world, const struct world_fault *fault,
                       struct effects *effects)
{
    assert(fault->object && fault->text);
    struct status_edit edit;

    if (fault->kind == &KIND_NODE_GPU_STATE || fault->kind == &KUBE_POD)
        return; /* its status is the agent's, the kubelet's */
    status_edit_begin(&edit, effects, fault->kind, fault->object, world->sources.now_s);
    status_edit_condition(&edit, "Stalled", true, "CannotBeRead", "%s", fault->text);
    status_edit_condition(&edit, "Ready", false, "CannotBeRead", "%s", fault->text);
    if (fault->kind == &KIND_PERF_PROFILE)
        status_edit_condition(&edit, "Valid", false, "CannotBeRead", "%s", fault->text);
    status_edit_end(&edit);
}

/* Objects that no pool owns are told of by the first pool. */
static void tell_common(const struct teller *teller)
{
    const struct world *world = teller->view.world;

    if (teller->view.pool != &world->pools.data[0])
        return;
    for (size_t i = 0; i < world->profiles.count; i++)
        tell_profile(teller, &world->profiles.data[i]);
    for (size_t i = 0; i < world->faults.count; i++)
        if (world->faults.data[i].kind != &KIND_GPU_POOL)
            tell_fault(world, &world->faults.data[i], teller->effects);
}

void status_tell_unreadable_pool(const struct world *world, const struct world_fault *pool,
                                 struct effects *effects)
{
    assert(pool->kind == &KIND_GPU_POOL);
    tell_fault(world, pool, effects);
    for (size_t i = 0; world->pools.count == 0 && i < world->faults.count; i++)
        if (world->faults.data[i].kind != &KIND_GPU_POOL)
            tell_fault(world, &world->faults.data[i], effects);
}

/* ---- finalizers ------------------------------------------------------------------- */

static void set_finalizer(struct effects *effects, const struct kube_kind *kind,
                          const json_t *object, bool with_ours)
{
    json_t *patch =
        json_pack("{s:{s:o}}", "metadata", "finalizers", object_finalizers(object, with_ours));

    effect_patch(effects, kind, object, patch, true)->reason = "finalizer";
}

size_t status_adopt_services(const struct world *world, const struct gpu_pool *pool,
                             struct effects *effects)
{
    size_t adopted = 0;

    for (size_t s = 0; s < world->services.count; s++) {
        const struct gpu_service *service = &world->services.data[s];
        if (strcmp(service->pool, pool->meta.name) != 0 || service->meta.deleting ||
            service->meta.has_finalizer)
            continue;
        set_finalizer(effects, &KIND_GPU_SERVICE, service->meta.json, true);
        /* One that cannot be written must not keep the others waiting. */
        adopted += !world_refusal(world, "patch", &KIND_GPU_SERVICE, service->meta.namespace,
                                  service->meta.name);
    }
    return adopted;
}

void status_release_orphans(const struct world *world, const char *pool,
                            struct effects *effects)
{
    assert(pool);
    for (size_t s = 0; s < world->services.count; s++) {
        const struct gpu_service *service = &world->services.data[s];
        if (strcmp(service->pool, pool) == 0 && service->meta.deleting &&
            service->meta.has_finalizer)
            set_finalizer(effects, &KIND_GPU_SERVICE, service->meta.json, false);
    }
    for (size_t i = 0; i < world->transitions.count; i++) {
        const struct transition_object *object = &world->transitions.data[i];
        if (strcmp(object->pool, pool) == 0 && object->meta.deleting &&
            object->meta.has_finalizer)
            set_finalizer(effects, &KIND_TRANSITION, object->meta.json, false);
    }
}

static void release_service(const struct teller *teller, size_t s)
{
    const struct gpu_service *service = service_of(teller, s);

    if (service && service->meta.has_finalizer && has_left(teller, s) &&
        teller->view.world->sources.fresh)
        set_finalizer(teller->effects, &KIND_GPU_SERVICE, service->meta.json, false);
}

static void keep_transition(const struct teller *teller, const struct transition_object *object)
{
    if (strcmp(object->pool, teller->view.pool->meta.name) == 0 && object->meta.has_finalizer &&
        transition_is_closed(object))
        set_finalizer(teller->effects, &KIND_TRANSITION, object->meta.json, false);
}

/* ---- history ---------------------------------------------------------------------- */

struct aged {
    const struct kube_kind *kind;
    const struct object_meta *meta;
};

struct aged_list {
    VEC(struct aged) items;
};

static int compare_age(const void *a, const void *b)
{
    const struct aged *left = a, *right = b;
    int order = strcmp(kube_metadata(right->meta->json, "creationTimestamp"),
                       kube_metadata(left->meta->json, "creationTimestamp")); /* newest first */

    return order ? order : strcmp(left->meta->name, right->meta->name);
}

static void delete_old(const struct teller *teller, struct aged_list *list)
{
    assert(list);
    if (list->items.count > 0)
        qsort(list->items.data, list->items.count, sizeof *list->items.data, compare_age);
    for (size_t i = HISTORY_MAX; i < list->items.count; i++)
        if (!list->items.data[i].meta->deleting && !list->items.data[i].meta->has_finalizer)
            effect_delete(teller->effects, list->items.data[i].kind,
                          list->items.data[i].meta->json, false)
                ->reason = "history";
    vec_done(&list->items);
}

static bool is_named_by_transition(const struct teller *teller, const char *plan)
{
    return teller->open && strcmp(teller->open->to, plan) == 0;
}

static void trim_history(const struct teller *teller)
{
    const struct world *world = teller->view.world;
    const char *pool = teller->view.pool->meta.name;
    struct aged_list transitions = {0}, plans = {0};

    for (size_t i = 0; i < world->transitions.count; i++)
        if (strcmp(world->transitions.data[i].pool, pool) == 0 &&
            transition_is_closed(&world->transitions.data[i]))
            vec_add(&transitions.items,
                    ((struct aged){&KIND_TRANSITION, &world->transitions.data[i].meta}));
    for (size_t i = 0; teller->has_target && i < world->plans.count; i++) {
        const struct partition_plan *plan = &world->plans.data[i];
        if (strcmp(plan->pool, pool) == 0 && strcmp(plan->plan, teller->target.name) != 0 &&
            !is_named_by_transition(teller, plan->plan))
            vec_add(&plans.items, ((struct aged){&KIND_PARTITION_PLAN, &plan->meta}));
    }
    delete_old(teller, &transitions);
    delete_old(teller, &plans);
}

/* ---- the whole -------------------------------------------------------------------- */

static void compare_with_target(struct teller *teller)
{
    struct plan observed, wanted;

    if (!teller->has_target)
        return;
    planning_observed(&teller->view, &observed);
    planning_wanted(&teller->view, &teller->target, &observed, &wanted);
    teller->is_reached = planning_is_same(&observed, &wanted);
    for (size_t g = 0; g < wanted.gpus.count; g++)
        for (size_t i = 0; i < wanted.gpus.data[g].instances.count; i++)
            if (wanted.gpus.data[g].instances.data[i].service >= 0)
                teller->wanted[wanted.gpus.data[g].instances.data[i].service]++;
    plan_done(&observed);
    plan_done(&wanted);
}

static void teller_init(struct teller *teller, struct world *world, const struct gpu_pool *pool,
                        const struct actuator_gpus *gpus)
{
    char hash[INPUT_HASH_SIZE];
    int64_t again_s;
    const char *last = json_string_value(json_at(pool->meta.json, "status", "inputHash", NULL));

    pool_view_init(&teller->view, world, pool, gpus);
    teller->now_s = world->sources.now_s;
    teller->open = pool_open_transition(world, pool);
    teller->wanted = xcalloc(teller->view.services.count + 1, sizeof(int));
    teller->has_target = target_plan_find(&teller->view, &teller->target);
    planning_hash(&teller->view, hash);
    teller->is_due =
        planning_is_due(&teller->view, hash, &again_s) || !last || strcmp(hash, last) != 0;
    compare_with_target(teller);
}

static void teller_done(struct teller *teller)
{
    if (teller->has_target)
        target_plan_done(&teller->target);
    pool_view_done(&teller->view);
    free(teller->wanted);
}

void reconcile_status(struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus, struct effects *effects)
{
    CLEANUP(teller_done) struct teller teller = {.effects = effects};

    teller_init(&teller, world, pool, gpus);
    tell_all_services(&teller);
    tell_pool(&teller);
    for (size_t i = 0; i < world->plans.count; i++)
        tell_plan(&teller, &world->plans.data[i]);
    tell_common(&teller);
    for (size_t s = 0; s < teller.view.services.count; s++)
        release_service(&teller, s);
    for (size_t i = 0; i < world->transitions.count; i++)
        keep_transition(&teller, &world->transitions.data[i]);
    trim_history(&teller);
}
