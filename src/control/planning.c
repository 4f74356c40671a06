/* SPDX-License-Identifier: Apache-2.0
 *
 * From services, profiles and GPUs to a PartitionPlan. The planner changes what is there as
 * little as possible; services that no slice can serve are left out, so that one of them does
 * not keep the others from being planned.
 */
#include "control/planning.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/planning_admission.h"
#include "control/status_edit.h"
#include "control/timestamp.h"
#include "kube/api.h"
#include "plan/run.h"

enum { ITEMS_MAX = 4000, GPUS_PER_NODE_UNKNOWN = 0 };

/* What is spent on a pool that is too small for its services, of the budget of a plan. */
enum { ADMISSION_PLANS_MAX = 64, ADMISSION_BUDGETS = 2, ADMISSION_PLANS_A_BUDGET = 4 };

/* ---- the inputs ------------------------------------------------------------------- */

static const struct gpu_service *service_of(const struct pool_view *view, size_t index)
{
    assert(index < view->services.count);
    int at = view->services.data[index].service;

    return at < 0 ? NULL : &view->world->services.data[at];
}

/* Services are planned for unless they are going. */
static bool is_planned(const struct gpu_service *service)
{
    return service && !service->meta.deleting;
}

static int compare_gpus(const void *a, const void *b)
{
    const struct world_gpu *const *left = a, *const *right = b;

    return strcmp((*left)->uuid, (*right)->uuid);
}

struct gpu_list {
    VEC(const struct world_gpu *) items;
};

static void gpu_list_done(struct gpu_list *list)
{
    vec_done(&list->items);
}

static void list_usable(const struct pool_view *view, struct gpu_list *list)
{
    for (size_t g = 0; g < view->gpus->gpus.count; g++)
        if (pool_view_is_usable(view, (int)g))
            vec_add(&list->items, &view->gpus->gpus.data[g]);
    if (list->items.count > 0)
        qsort(list->items.data, list->items.count, sizeof *list->items.data, compare_gpus);
}

static void add_numbers(struct str *text, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        str_add_char(text, ' ');
        if (isfinite(values[i]))
            str_add_number(text, values[i]);
    }
}

static void add_service_text(struct str *text, const struct gpu_service *service)
{
    const double numbers[] = {service->rate_rps, service->latency_ms, service->percentile,
                              service->max_wait_ms};

    str_addf(text, "service %s/%s %s %d %d %d %d", service->meta.namespace, service->meta.name,
             service->model, (int)service->task, service->min_instances, (int)service->spread,
             service->priority);
    add_numbers(text, numbers, sizeof numbers / sizeof *numbers);
    for (size_t i = 0; i < service->allowed_slices.count; i++)
        str_addf(text, " %s", service->allowed_slices.data[i]);
    str_add_char(text, '\n');
}

static void add_profile_text(struct str *text, const struct perf_profile *profile)
{
    str_addf(text, "profile %s %s %s %s\n", profile->meta.name, profile->meta.uid,
             profile->model, profile->board->slug);
    for (size_t i = 0; i < profile->rows.count; i++) {
        const struct measurement *row = &profile->rows.data[i];
        str_addf(text, "%d %d %d %d %d", row->profile, (int)row->task, (int)row->status,
                 row->batch, row->procs);
        add_numbers(text, &row->throughput_rps, 1);
        add_numbers(text, row->latency_ms, LATENCY_COLUMN_COUNT);
        str_add_char(text, '\n');
    }
}

void planning_hash(const struct pool_view *view, char ret_hash[INPUT_HASH_SIZE])
{
    const double numbers[] = {view->pool->derate, view->pool->headroom};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(gpu_list_done) struct gpu_list gpus = {0};

    str_addf(&text, "rule %d", (int)view->pool->latency_rule);
    add_numbers(&text, numbers, 2);
    str_add_char(&text, '\n');
    for (size_t s = 0; s < view->services.count; s++)
        if (is_planned(service_of(view, s)))
            add_service_text(&text, service_of(view, s));
    for (size_t p = 0; p < view->world->profiles.count; p++)
        add_profile_text(&text, &view->world->profiles.data[p]);
    list_usable(view, &gpus);
    for (size_t g = 0; g < gpus.items.count; g++)
        str_addf(&text, "gpu %s %s %s\n", gpus.items.data[g]->uuid,
                 gpus.items.data[g]->board->slug,
                 view->world->nodes.data[gpus.items.data[g]->node].name);
    text_hash(text.bytes, INPUT_HASH_SIZE - 1, ret_hash);
}

/* ---- whether ---------------------------------------------------------------------- */

static const char *pool_status_text(const struct gpu_pool *pool, const char *key)
{
    return json_text(json_object_get(pool->meta.json, "status"), key);
}

/* The plan cannot be carried out as it is. */
static bool stands_on_lost_gpus(const struct pool_view *view)
{
    struct target_plan target;
    bool found = false;

    if (!target_plan_find(view, &target))
        return false;
    for (size_t p = 0; p < target.parts.count && !found; p++)
        for (size_t i = 0; i < target.parts.data[p]->items.count && !found; i++) {
            int gpu = pool_view_gpu(view, target.parts.data[p]->items.data[i].gpu_uuid);
            found = gpu < 0 || !pool_view_is_usable(view, gpu);
        }
    target_plan_done(&target);
    return found;
}

static bool has_target(const struct pool_view *view)
{
    struct target_plan target;

    if (!target_plan_find(view, &target))
        return false;
    target_plan_done(&target);
    return true;
}

/* A service was told of a planning that the pool does not know of: something came between the
 * two writes. Where the inputs are as before it, nothing else would take that word back. */
static bool is_half_told(const struct pool_view *view, int64_t planned_s)
{
    for (size_t s = 0; s < view->services.count; s++) {
        const struct gpu_service *service = service_of(view, s);
        int64_t told_s = 0;
        if (!is_planned(service))
            continue;
        const json_t *feasible = object_condition(service->meta.json, "SLOFeasible");
        if (timestamp_parse(json_text(feasible, "lastTransitionTime"), &told_s) &&
            told_s > planned_s)
            return true;
    }
    return false;
}

bool planning_is_due(const struct pool_view *view, const char *hash, int64_t *ret_again_s)
{
    assert(hash && ret_again_s);
    const char *last = pool_status_text(view->pool, "inputHash"),
               *plan = pool_status_text(view->pool, "plan"),
               *at = pool_status_text(view->pool, "plannedAt");
    int64_t planned_s = 0;

    *ret_again_s = INT64_MAX;
    bool is_timed = *at && timestamp_parse(at, &planned_s);
    if (strcmp(hash, last) == 0 && (!*plan || has_target(view)) &&
        !is_half_told(view, planned_s))
        return false;
    if (!is_timed || stands_on_lost_gpus(view))
        return true;
    int64_t earliest_s = planned_s + view->pool->replan_seconds;
    if (view->world->sources.now_s >= earliest_s)
        return true;
    *ret_again_s = earliest_s;
    return false;
}

/* ---- the request ------------------------------------------------------------------ */

struct planner {
    struct pool_view *view;
    const struct reconcile_options *options;
    struct effects *effects;
    struct service_set services;
    struct measurement_set rows;
    VEC(size_t) planned;  /* the view's positions of services in `services` */
    const char **reasons; /* by the view's position: why it is not served whole, or NULL */
    double *given_rps;    /* by the view's position: what is planned for, of its rate */
    struct plan observed, from; /* what is there; what the planner may change of it */
    bool reached;               /* the last plan was: what is there is what it wants */
    bool is_stuck;              /* too few GPUs for what services have already */
    double budget_seconds;      /* of the next plan; 0: none */
};

static void planner_done(struct planner *planner)
{
    service_set_done(&planner->services);
    measurement_set_done(&planner->rows);
    vec_done(&planner->planned);
    free(planner->reasons);
    free(planner->given_rps);
    plan_done(&planner->observed);
    plan_done(&planner->from);
}

/* A service that cannot be planned keeps what it has, just where it is. */
static bool is_held(const struct planner *planner, int service)
{
    assert(service < (int)planner->view->services.count);
    if (service < 0)
        return false;
    const char *reason = planner->reasons[service];
    return planner->view->services.data[service].is_unreadable ||
           (reason && is_planned(service_of(planner->view, (size_t)service)) &&
            strcmp(reason, "stock") != 0);
}

/* A service that may use some slices alone has a model of its own, with those rows. */
static const char *model_of(struct planner *planner, const struct gpu_service *service)
{
    if (service->allowed_slices.count == 0)
        return service->model;
    return arena_printf(&planner->view->world->arena, "%s for %s/%s", service->model,
                        service->meta.namespace, service->meta.name);
}

static bool is_allowed(const struct gpu_service *service, const struct measurement *row)
{
    for (size_t i = 0; i < service->allowed_slices.count; i++)
        if (mig_profile_find(row->board, service->allowed_slices.data[i]) == row->profile)
            return true;
    return false;
}

static void add_row(struct planner *planner, struct map *keys, const struct measurement *row,
                    const char *model)
{
    char key[512];

    snprintf(key, sizeof key, "%s|%s|%d|%d|%d|%d", model, row->board->slug, row->profile,
             row->batch, row->procs, (int)row->task);
    if (map_find(keys, key) >= 0)
        return; /* another profile has it already */
    map_put(keys, key, NULL);
    struct measurement copy = *row;
    copy.model = model;
    vec_add(&planner->rows.rows, copy);
}

static void add_rows(struct planner *planner)
{
    CLEANUP(map_done) struct map keys = {0};
    const struct world *world = planner->view->world;

    for (size_t p = 0; p < world->profiles.count; p++) {
        const struct perf_profile *profile = &world->profiles.data[p];
        for (size_t i = 0; i < profile->rows.count; i++)
            add_row(planner, &keys, &profile->rows.data[i], profile->model);
    }
    /* Only rows of shared models are copied for services with slices of their own. */
    size_t shared = planner->rows.rows.count;
    for (size_t s = 0; s < planner->planned.count; s++) {
        const struct gpu_service *service = service_of(planner->view, planner->planned.data[s]);
        for (size_t i = 0; service->allowed_slices.count > 0 && i < shared; i++) {
            struct measurement row = planner->rows.rows.data[i];
            if (strcmp(row.model, service->model) == 0 && is_allowed(service, &row))
                add_row(planner, &keys, &row, planner->services.services.data[s].model);
        }
    }
}

static void add_services(struct planner *planner)
{
    const struct pool_view *view = planner->view;

    vec_clear(&planner->services.services);
    vec_clear(&planner->planned);
    for (size_t s = 0; s < view->services.count; s++) {
        const struct gpu_service *from = service_of(view, s);
        if (!is_planned(from) || is_held(planner, (int)s) || planner->given_rps[s] <= 0)
            continue;
        struct service service = {.name = view->services.data[s].name,
                                  .model = model_of(planner, from),
                                  .task = from->task,
                                  .rate_rps =
                                      planner->given_rps[s] * fmax(view->pool->headroom, 1),
                                  .latency_ms = from->latency_ms,
                                  .percentile = from->percentile,
                                  .max_wait_ms = from->max_wait_ms,
                                  .min_instances = from->min_instances,
                                  .spread = from->spread};
        vec_add(&planner->services.services, service);
        vec_add(&planner->planned, s);
    }
}

static struct fleet_part *part_of(struct service_set *services, const struct mig_board *board)
{
    for (size_t p = 0; p < services->fleet.count; p++)
        if (services->fleet.data[p].board == board)
            return &services->fleet.data[p];
    struct fleet_part *part = vec_push(&services->fleet);
    part->board = board;
    part->price = 1;
    part->gpus_per_node = GPUS_PER_NODE_UNKNOWN;
    return part;
}

/* Splits what is on a GPU into what the planner may change and what it must leave. */
static void split_gpu(struct planner *planner, const struct plan_gpu *observed,
                      struct fleet_gpu *listed)
{
    assert(listed->instances.count == 0);
    struct plan_gpu *gpu = vec_push(&planner->from.gpus);

    *gpu =
        (struct plan_gpu){.id = observed->id, .board = observed->board, .node = observed->node};
    for (size_t i = 0; i < observed->instances.count; i++) {
        struct plan_instance instance = observed->instances.data[i];
        if (is_held(planner, instance.service)) {
            struct fixed_instance fixed = {.profile = instance.profile,
                                           .start = instance.start,
                                           .service = -1,
                                           .reserved = true};
            vec_add(&listed->instances, fixed);
        } else {
            if (instance.procs >= PROCS_OUTDATED)
                instance.procs -= PROCS_OUTDATED;
            vec_add(&gpu->instances, instance);
        }
    }
}

static void clear_fleet(struct planner *planner)
{
    for (size_t p = 0; p < planner->services.fleet.count; p++) {
        struct fleet_part *part = &planner->services.fleet.data[p];
        for (size_t g = 0; g < part->gpus.count; g++)
            vec_done(&part->gpus.data[g].instances);
        vec_done(&part->gpus);
    }
    vec_clear(&planner->services.fleet);
    plan_done(&planner->from);
    plan_init(&planner->from);
}

static void add_fleet(struct planner *planner)
{
    CLEANUP(gpu_list_done) struct gpu_list gpus = {0};
    CLEANUP(map_done) struct map ids = {0};

    clear_fleet(planner);
    for (size_t g = 0; g < planner->observed.gpus.count; g++)
        map_put(&ids, planner->observed.gpus.data[g].id, NULL);
    for (size_t s = 0; s < planner->observed.services.count; s++)
        vec_add(&planner->from.services, planner->observed.services.data[s]);
    list_usable(planner->view, &gpus);
    for (size_t g = 0; g < gpus.items.count; g++) {
        const struct world_gpu *gpu = gpus.items.data[g];
        struct fleet_part *part = part_of(&planner->services, gpu->board);
        struct fleet_gpu *listed = vec_push(&part->gpus);
        listed->id = gpu->uuid;
        listed->node = planner->view->world->nodes.data[gpu->node].name;
        part->count++;
        assert(map_find(&ids, gpu->uuid) >= 0);
        split_gpu(planner, &planner->observed.gpus.data[map_find(&ids, gpu->uuid)], listed);
    }
}

static const char *const own_reasons[] = {"latency", "memory", "no_measurement"};

static bool is_own_reason(const char *reason)
{
    for (size_t i = 0; i < sizeof own_reasons / sizeof *own_reasons; i++)
        if (strcmp(reason, own_reasons[i]) == 0)
            return true;
    return false;
}

/* Notes why services are left out; returns how many are by a fault of their own. */
static int note_reasons(struct planner *planner, const struct plan *plan)
{
    int own = 0;

    for (size_t i = 0; i < plan->infeasible.count; i++) {
        const struct plan_infeasible *one = &plan->infeasible.data[i];
        int service = pool_view_service(planner->view, one->service);
        assert(service >= 0);
        for (size_t r = 0; r < sizeof own_reasons / sizeof *own_reasons; r++)
            if (strcmp(one->reason, own_reasons[r]) == 0)
                planner->reasons[service] = own_reasons[r];
        if (!is_own_reason(one->reason))
            planner->reasons[service] = "stock";
        own += is_own_reason(one->reason);
    }
    assert(own >= 0 && (size_t)own <= plan->infeasible.count);
    return own;
}

/* Without services there is nothing to choose. */
static int plan_nothing(struct plan *ret_plan)
{
    plan_init(ret_plan);
    ret_plan->algorithm = "exact";
    ret_plan->status = PLAN_OPTIMAL;
    return 0;
}

static int plan_once(struct planner *planner, struct plan *ret_plan, struct error *err)
{
    const struct reconcile_options *options = planner->options;
    struct plan_request request = plan_request_default(&planner->services, &planner->rows);

    add_services(planner);
    add_fleet(planner);
    vec_clear(&planner->rows.rows);
    add_rows(planner);
    if (planner->planned.count == 0)
        return plan_nothing(ret_plan);
    request.from = &planner->from;
    request.all_or_nothing = true;
    if (options->clock && planner->budget_seconds > 0) {
        request.settings.clock = options->clock;
        request.settings.budget_s = planner->budget_seconds;
    }
    return plan_run(&request, ret_plan, err);
}

/* Plans for the services that can be; those that cannot be have a reason after. */
static int plan_possible(struct planner *planner, struct plan *ret_plan, struct error *err)
{
    /* Ends: each turn leaves out at least one service more than the one before. */
    for (;;) {
        int rc = plan_once(planner, ret_plan, err);
        if (rc < 0)
            return rc;
        int own = note_reasons(planner, ret_plan);
        if (ret_plan->status != PLAN_INFEASIBLE || own == 0)
            return 0;
        plan_done(ret_plan);
    }
}

/* ---- a pool that is too small ------------------------------------------------------ */

/* An admission under way. */
struct trial {
    struct planner *planner;
    struct admission admission; /* its services are by the view's position */
    struct plan best;           /* of what was given when it fitted last */
    int64_t deadline_ns;        /* INT64_MAX: none */
};

static void trial_done(struct trial *trial)
{
    free(trial->admission.services);
    plan_done(&trial->best);
}

/* What a service has of what it wants: no more than it was planned for. */
static double held_rps(const struct pool_view *view, size_t s)
{
    double planned_rps = planning_status_rate(view, s, "requiredRps");

    return fmin(fmin(planned_rps, view->services.data[s].existing_rps),
                service_of(view, s)->rate_rps);
}

static void list_wanted(struct trial *trial)
{
    const struct planner *planner = trial->planner;
    const struct pool_view *view = planner->view;
    struct admission *admission = &trial->admission;

    admission->services = xcalloc(view->services.count + 1, sizeof *admission->services);
    admission->count = view->services.count;
    for (size_t s = 0; s < admission->count; s++) {
        const struct gpu_service *service = service_of(view, s);
        struct admission_service *one = &admission->services[s];
        *one = (struct admission_service){.name = view->services.data[s].name, .created = ""};
        if (!is_planned(service) || is_held(planner, (int)s))
            continue;
        one->created = kube_metadata(service->meta.json, "creationTimestamp");
        one->priority = service->priority;
        one->wanted_rps = service->rate_rps;
        one->held_rps = held_rps(view, s);
    }
}

static bool has_time(const struct trial *trial)
{
    return trial->deadline_ns == INT64_MAX ||
           clock_now_ns(trial->planner->options->clock) < trial->deadline_ns;
}

static int fits(void *context, bool *ret_fits, struct error *err)
{
    struct trial *trial = context;
    struct planner *planner = trial->planner;
    struct plan plan;

    *ret_fits = false;
    if (!has_time(trial))
        return 0;
    for (size_t s = 0; s < trial->admission.count; s++)
        planner->given_rps[s] = trial->admission.services[s].given_rps;
    int rc = plan_once(planner, &plan, err);
    if (rc < 0)
        return rc == -E_NO ? 0 : rc; /* no places were found for what fits by numbers */
    *ret_fits = plan.status != PLAN_INFEASIBLE;
    if (!*ret_fits) {
        plan_done(&plan);
        return 0;
    }
    plan_done(&trial->best);
    trial->best = plan;
    return 0;
}

static void note_given(struct planner *planner, const struct admission *admission)
{
    for (size_t s = 0; s < admission->count; s++) {
        const struct admission_service *one = &admission->services[s];
        planner->given_rps[s] = one->given_rps;
        if (one->wanted_rps > 0 && one->given_rps < one->wanted_rps)
            planner->reasons[s] = "stock";
    }
}

/* Plans for as much as the pool can give. E_NO where those that matter most would lose what
 * they have. */
static int plan_admitted(struct planner *planner, struct plan *ret_plan, struct error *err)
{
    double budget_s = planner->options->plan_budget_seconds;
    const struct clock_source *clock = planner->options->clock;
    CLEANUP(trial_done)
    struct trial trial = {.planner = planner,
                          .admission = {.fits = fits, .tries_max = ADMISSION_PLANS_MAX},
                          .deadline_ns = INT64_MAX};

    plan_nothing(&trial.best);
    if (clock && budget_s > 0)
        trial.deadline_ns = clock_now_ns(clock) + (int64_t)(ADMISSION_BUDGETS * budget_s * 1e9);
    planner->budget_seconds = budget_s / ADMISSION_PLANS_A_BUDGET;
    trial.admission.context = &trial;
    list_wanted(&trial);
    int rc = admission_run(&trial.admission, err);
    planner->is_stuck = rc == -E_NO;
    if (rc < 0)
        return rc;
    note_given(planner, &trial.admission);
    *ret_plan = trial.best;
    plan_init(&trial.best);
    return 0;
}

/* Plans for all that can be served, or for as much of it as fits. A plan is not PLAN_INFEASIBLE
 * unless time was too short to tell. */
static int plan_all(struct planner *planner, struct plan *ret_plan, struct error *err)
{
    planner->budget_seconds = planner->options->plan_budget_seconds;
    int rc = plan_possible(planner, ret_plan, err);
    if (rc < 0 || ret_plan->status != PLAN_INFEASIBLE || ret_plan->stopped_by)
        return rc;
    plan_done(ret_plan);
    return plan_admitted(planner, ret_plan, err);
}

/* ---- the objects ------------------------------------------------------------------ */

static void collect_held(const struct planner *planner, struct partition_plan *all)
{
    const struct plan *plan = &planner->observed;

    for (size_t g = 0; g < plan->gpus.count; g++) {
        int at = pool_view_gpu(planner->view, plan->gpus.data[g].id);
        assert(at >= 0);
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (!is_held(planner, instance->service) || instance->rate_rps <= 0 ||
                !pool_view_is_usable(planner->view, at))
                continue;
            struct partition_item item = {.gpu_uuid = plan->gpus.data[g].id,
                                          .node = plan->gpus.data[g].node,
                                          .board = plan->gpus.data[g].board,
                                          .profile = instance->profile,
                                          .start = instance->start,
                                          .service =
                                              plan->services.data[instance->service].name,
                                          .batch = instance->batch,
                                          .procs = instance->procs % PROCS_OUTDATED,
                                          .max_wait_ms = NAN,
                                          .rate_rps = instance->rate_rps,
                                          .latency_ms = NAN};
            vec_add(&all->items, item);
        }
    }
}

static void collect_items(const struct planner *planner, const struct plan *plan,
                          struct partition_plan *all)
{
    const struct pool_view *view = planner->view;

    for (size_t g = 0; g < plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        int at = pool_view_gpu(view, gpu->id);
        assert(at >= 0);
        const struct world_gpu *there = &view->gpus->gpus.data[at];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            if (instance->service < 0)
                continue; /* nobody asks for an idle instance */
            struct partition_item item = {.gpu_uuid = there->uuid,
                                          .node = view->world->nodes.data[there->node].name,
                                          .board = there->board,
                                          .profile = instance->profile,
                                          .start = instance->start,
                                          .service =
                                              plan->services.data[instance->service].name,
                                          .batch = instance->batch,
                                          .procs = instance->procs,
                                          .max_wait_ms = instance->max_wait_ms,
                                          .rate_rps = instance->rate_rps,
                                          .latency_ms = instance->latency_ms};
            vec_add(&all->items, item);
        }
    }
}

static json_t *owner_of(const struct object_meta *meta, const struct kube_kind *kind)
{
    CLEANUP(free_ptr) char *version = kube_api_version(kind);

    return json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", version, "kind", kind->kind,
                     "name", meta->name, "uid", meta->uid);
}

void planning_decorate(json_t *object, const struct gpu_pool *pool, const char *hash)
{
    assert(json_is_object(json_object_get(object, "metadata")));
    json_t *metadata = json_object_get(object, "metadata");

    json_object_set_new(
        metadata, "labels",
        json_pack("{s:s, s:s}", LABEL_MANAGED_BY, "tranche", LABEL_POOL, pool->meta.name));
    json_object_set_new(metadata, "annotations", json_pack("{s:s}", NOTE_HASH, hash));
    json_object_set_new(metadata, "ownerReferences", owner_of(&pool->meta, &KIND_GPU_POOL));
}

/* All parts of a plan; ret_name gets what the parts share. */
static void ensure_parts(struct planner *planner, struct partition_plan *all, char *ret_name,
                         size_t size)
{
    const struct reconcile_options *options = planner->options;
    size_t most = options->items_max > 0 ? (size_t)options->items_max : ITEMS_MAX;
    size_t count = all->items.count, parts = count == 0 ? 1 : (count + most - 1) / most;
    char hash[17];

    all->parts = (int)parts;
    all->plan = all->meta.name = "";
    /* The plan's name follows from all that it says, so a round that is done again makes the
     * same objects. */
    json_t *whole = partition_plan_to_json(all);
    json_hash(whole, 16, hash);
    json_decref(whole);
    snprintf(ret_name, size, "%s-%.8s", all->pool, hash);
    for (size_t p = 0; p < parts; p++) {
        struct partition_plan part = *all;
        char name[128];
        snprintf(name, sizeof name, p == 0 ? "%s" : "%s-%zu", ret_name, p);
        part.meta.name = name;
        part.plan = ret_name;
        part.part = (int)p;
        part.items.data = all->items.data + p * most;
        part.items.count = p + 1 < parts ? most : count - p * most;
        json_t *object = partition_plan_to_json(&part);
        planning_decorate(object, planner->view->pool, hash);
        struct effect *effect = effect_ensure(planner->effects, &KIND_PARTITION_PLAN, object);
        effect->reason = "plan";
        effect->chain = EFFECT_CHAIN_PLAN;
    }
}

/* What to say of a service that is not served whole; freed by the caller. */
static char *reason_text(const struct planner *planner, size_t s, const char *reason)
{
    double wanted_rps = service_of(planner->view, s)->rate_rps;

    if (strcmp(reason, "latency") == 0)
        return xstrdup(
            "no slice of the pool's boards serves the model within the latency objective");
    if (strcmp(reason, "memory") == 0)
        return xstrdup("the model fits into no slice of the pool's boards");
    if (strcmp(reason, "no_measurement") == 0)
        return xstrdup("no PerfProfile has a usable entry of the model on the pool's boards");
    if (!planner->reasons[s])
        return xstrdup("the pool's GPUs do not suffice for its services: the last plan stays");
    return xasprintf("the pool's GPUs suffice for %.9g of its %.9g rps: more urgent services, "
                     "what others of its priority have, and older ones come first",
                     planner->given_rps[s], wanted_rps);
}

static const char *reason_name(const char *reason)
{
    static const struct {
        const char *reason, *name;
    } names[] = {{"latency", "Latency"},
                 {"memory", "Memory"},
                 {"no_measurement", "NoMeasurement"},
                 {"stock", "Stock"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(reason, names[i].reason) == 0)
            return names[i].name;
    return "Stock";
}

/* What the service is held to from now until the new plan is reached: min(required before,
 * required after). Before is what the last plan was made for, if that was reached. */
static void set_floor(struct planner *planner, size_t s, struct status_edit *edit)
{
    assert(s < planner->view->services.count);
    const struct pool_view *view = planner->view;
    double before =
        planning_status_rate(view, s, planner->reached ? "requiredRps" : "floorRps");
    double after = planner->given_rps[s];

    if (is_held(planner, (int)s))
        return;
    status_edit_set(edit, "requiredRps", json_real(after));
    status_edit_set(edit, "floorRps", json_real(fmin(before, after)));
}

static void tell_services(struct planner *planner, bool is_planned_at_all)
{
    const struct pool_view *view = planner->view;

    for (size_t s = 0; s < view->services.count; s++) {
        const struct gpu_service *service = service_of(view, s);
        const char *reason = planner->reasons[s];
        struct status_edit edit;
        if (!is_planned(service))
            continue;
        if (!is_planned_at_all && !reason)
            reason = "stock";
        CLEANUP(free_ptr) char *text = reason ? reason_text(planner, s, reason) : NULL;
        status_edit_begin(&edit, planner->effects, &KIND_GPU_SERVICE, service->meta.json,
                          view->world->sources.now_s);
        if (reason)
            status_edit_condition(&edit, "SLOFeasible", false, reason_name(reason), "%s", text);
        else
            status_edit_condition(&edit, "SLOFeasible", true, "Planned",
                                  "the plan provides rate and latency");
        if (is_planned_at_all)
            set_floor(planner, s, &edit);
        status_edit_end(&edit);
    }
}

/* trouble: why there is no new plan, NULL: there is one. */
static void tell_pool(struct planner *planner, const char *hash, const char *plan,
                      const char *trouble)
{
    const struct pool_view *view = planner->view;
    struct status_edit edit;
    char now[21];

    clock_utc_text(view->world->sources.now_s, now);
    status_edit_begin(&edit, planner->effects, &KIND_GPU_POOL, view->pool->meta.json,
                      view->world->sources.now_s);
    edit.chain = EFFECT_CHAIN_PLAN;
    status_edit_set(&edit, "inputHash", json_string(hash));
    status_edit_set(&edit, "plannedAt", json_string(now));
    if (plan)
        status_edit_set(&edit, "plan", json_string(plan));
    status_edit_condition(&edit, "Stalled", trouble != NULL,
                          plan ? "NotStalled" : "NoPlanFound", "%s",
                          trouble ? trouble : "it goes on by itself");
    status_edit_end(&edit);
}

static size_t count_short(const struct planner *planner)
{
    size_t count = 0;

    for (size_t s = 0; s < planner->view->services.count; s++)
        count += planner->reasons[s] != NULL;
    return count;
}

static void take_plan(struct planner *planner, const struct plan *plan, const char *hash)
{
    assert(plan->status != PLAN_INFEASIBLE && hash);
    struct gpu_pool const *pool = planner->view->pool;
    struct partition_plan all = {.pool = pool->meta.name,
                                 .input_hash = hash,
                                 .algorithm = plan->algorithm,
                                 .cost = plan->cost,
                                 .bound_cost = plan->bound_cost};
    char name[96];

    collect_items(planner, plan, &all);
    collect_held(planner, &all);
    ensure_parts(planner, &all, name, sizeof name);
    tell_services(planner, true); /* before the plan is taken: the floor goes with it */
    tell_pool(planner, hash, name, NULL);
    effect_event(planner->effects, &KIND_GPU_POOL, pool->meta.json, false, "PlanAccepted",
                 "plan %s: %zu instances on %d GPUs, %zu services short", name, all.items.count,
                 plan->gpus_used, count_short(planner));
    vec_done(&all.items);
}

static void refuse_plan(struct planner *planner, const char *hash, const char *why)
{
    assert(hash && why);
    effect_event(planner->effects, &KIND_GPU_POOL, planner->view->pool->meta.json, true,
                 "NoPlanFound", "%s", why);
    tell_pool(planner, hash, NULL, why);
}

static bool is_reached(const struct pool_view *view, const struct plan *observed)
{
    struct target_plan target;
    struct plan wanted;

    if (!target_plan_find(view, &target))
        return false;
    planning_wanted(view, &target, observed, &wanted);
    bool reached = planning_is_same(observed, &wanted);
    plan_done(&wanted);
    target_plan_done(&target);
    return reached;
}

void planning_make(struct pool_view *view, const char *hash,
                   const struct reconcile_options *options, struct effects *effects)
{
    struct plan plan;
    struct error err = {0};
    CLEANUP(planner_done)
    struct planner planner = {
        .view = view,
        .options = options,
        .effects = effects,
        .services.latency_rule = view->pool->latency_rule,
        .services.derate = view->pool->derate,
        .reasons = xcalloc(view->services.count + 1, sizeof(char *)),
        .given_rps = xcalloc(view->services.count + 1, sizeof(double)),
    };

    planning_observed(view, &planner.observed);
    plan_init(&planner.from);
    planner.reached = is_reached(view, &planner.observed);
    for (size_t s = 0; s < view->services.count; s++)
        planner.given_rps[s] =
            is_planned(service_of(view, s)) ? service_of(view, s)->rate_rps : 0;
    add_fleet(&planner);
    if (planner.services.fleet.count == 0)
        return; /* nothing to plan with yet: the last plan stays */
    int rc = plan_all(&planner, &plan, &err);
    if (planner.is_stuck)
        tell_services(&planner, false);
    if (rc < 0) {
        refuse_plan(&planner, hash, err.text);
        return;
    }
    if (plan.status == PLAN_INFEASIBLE)
        refuse_plan(&planner, hash,
                    "the time for a plan (--plan-budget) was too short to find one: the last "
                    "plan stays");
    else
        take_plan(&planner, &plan, hash);
    plan_done(&plan);
}
