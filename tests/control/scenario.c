/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scenario.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/reconcile.h"
#include "kube/api.h"

#define NAMESPACE "shop"
#define POOL      "pool"

/* ---- setting up ------------------------------------------------------------------- */

void scenario_init(struct scenario *scenario, uint64_t seed)
{
    *scenario = (struct scenario){.seed = seed, .refusals = json_object()};
    fake_cluster_init(&scenario->cluster, seed);
}

void scenario_done(struct scenario *scenario)
{
    for (int i = 0; i < scenario->past_count; i++)
        fake_snapshot_done(&scenario->past[i]);
    fake_cluster_done(&scenario->cluster);
    json_decref(scenario->refusals);
}

void scenario_add_profile(struct scenario *scenario, const char *model, const char *slug,
                          double rps_a_slice)
{
    const struct mig_board *board = mig_board_find(slug);
    json_t *entries = json_array();
    char name[64];

    for (int p = 0; p < board->profile_count; p++) {
        const struct mig_profile *profile = &board->profiles[p];
        if (profile->group != MIG_GROUP_BASE)
            continue;
        double rate = rps_a_slice * profile->compute_slices;
        json_array_append_new(entries, json_pack("{s:s, s:i, s:i, s:f, s:f}", "slice",
                                                 profile->name, "batch", 4, "procs", 1,
                                                 "throughputRps", rate, "latencyMsP99", 20.0));
    }
    assert(scenario->profile_count < SCENARIO_PROFILES_MAX);
    struct scenario_profile *known = &scenario->profiles[scenario->profile_count++];
    *known = (struct scenario_profile){.board = board, .rps_a_slice = rps_a_slice};
    snprintf(known->model, sizeof known->model, "%s", model);
    snprintf(name, sizeof name, "%s-%s", model, slug);
    fake_cluster_put(&scenario->cluster, &KIND_PERF_PROFILE,
                     json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:o}}", "apiVersion",
                               "tranche.dev/v1alpha1", "kind", "PerfProfile", "metadata",
                               "name", name, "spec", "model", model, "board", slug, "entries",
                               entries));
}

static const char *pool_of(const struct scenario *scenario)
{
    return scenario->pool ? scenario->pool : POOL;
}

void scenario_add_pool(struct scenario *scenario, int spare_gpus, const char *more)
{
    json_t *spec = json_pack("{s:s, s:s, s:i, s:i}", "actuator", "agent", "latencyRule",
                             "batch", "spareGpus", spare_gpus, "replanSeconds", 10);

    if (more) {
        json_t *extra = json_loads(more, 0, NULL);
        assert_non_null(extra);
        json_object_update(spec, extra);
        json_decref(extra);
    }
    fake_cluster_put(&scenario->cluster, &KIND_GPU_POOL,
                     json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "tranche.dev/v1alpha1",
                               "kind", "GpuPool", "metadata", "name", pool_of(scenario), "spec",
                               spec));
}

void scenario_set_up(struct scenario *scenario, int nodes, int gpus)
{
    scenario_init(scenario, 1);
    scenario->verbose = getenv("TRANCHE_VERBOSE") != NULL;
    scenario_add_pool(scenario, 1, NULL);
    scenario_add_profile(scenario, "bert", "a100-40gb", 10);
    scenario_add_profile(scenario, "resnet", "a100-40gb", 25);
    for (int n = 0; n < nodes; n++)
        fake_cluster_add_node(&scenario->cluster, mig_board_find("a100-40gb"), gpus);
}

const char *scenario_state_version(const struct scenario *scenario, const char *node)
{
    return kube_metadata(fake_cluster_get(&scenario->cluster, &KIND_NODE_GPU_STATE, "", node),
                         "resourceVersion");
}

static struct scenario_service *service_of(struct scenario *scenario, const char *name)
{
    for (int s = 0; s < scenario->service_count; s++)
        if (strcmp(scenario->services[s].name, name) == 0)
            return &scenario->services[s];
    assert(scenario->service_count < SCENARIO_SERVICES_MAX);
    struct scenario_service *service = &scenario->services[scenario->service_count++];
    *service = (struct scenario_service){0};
    snprintf(service->name, sizeof service->name, "%s", name);
    return service;
}

/* ---- whether the GPUs suffice ----------------------------------------------------- */

/* Slices of a service on a board for a rate; rates go with the slices, so the smallest ones
 * waste the least. -1: the model was not measured there. */
static int slices_for(const struct scenario *scenario, const struct scenario_service *service,
                      const struct mig_board *board, double rate_rps)
{
    for (int p = 0; p < scenario->profile_count; p++) {
        const struct scenario_profile *profile = &scenario->profiles[p];
        if (profile->board == board && strcmp(profile->model, service->model) == 0)
            return rate_rps > 0 ? (int)ceil(rate_rps / profile->rps_a_slice - 1e-9) : 0;
    }
    return -1;
}

static double rps_of_slices(const struct scenario *scenario,
                            const struct scenario_service *service,
                            const struct mig_board *board, int slices)
{
    for (int p = 0; p < scenario->profile_count; p++) {
        const struct scenario_profile *profile = &scenario->profiles[p];
        if (profile->board == board && strcmp(profile->model, service->model) == 0)
            return slices * profile->rps_a_slice;
    }
    return 0;
}

static bool is_measured(const struct scenario *scenario, const struct scenario_service *service)
{
    for (int p = 0; p < scenario->profile_count; p++)
        if (strcmp(scenario->profiles[p].model, service->model) == 0)
            return true;
    return false;
}

static int slices_up(const struct scenario *scenario, const struct mig_board *board)
{
    const struct fake_cluster *cluster = &scenario->cluster;
    int count = 0;

    for (size_t g = 0; g < cluster->gpus.count; g++)
        if (cluster->gpus.data[g].board == board &&
            cluster->nodes.data[cluster->gpus.data[g].node].up)
            count += board->compute_slices;
    return count;
}

/* Whether all services that some board was measured for fit on the GPUs that are up: the least
 * slices of the one board for each number of the other's, service after service. Scenarios have
 * these two. */
static bool is_short(const struct scenario *scenario)
{
    const struct mig_board *first = mig_board_find("a100-40gb"),
                           *second = mig_board_find("a30-24gb");
    int most = slices_up(scenario, second);
    CLEANUP(free_ptr) int *least = xcalloc((size_t)most + 1, sizeof *least);
    CLEANUP(free_ptr) int *next = xcalloc((size_t)most + 1, sizeof *next);

    for (int s = 0; s < scenario->service_count; s++) {
        const struct scenario_service *service = &scenario->services[s];
        if (!service->there || !is_measured(scenario, service))
            continue;
        for (int used = 0; used <= most; used++) {
            next[used] = INT_MAX / 2;
            for (int own = 0; own <= used; own++) {
                double left_rps =
                    service->rate_rps - rps_of_slices(scenario, service, second, own);
                int slices = slices_for(scenario, service, first, left_rps);
                if (slices < 0 && left_rps > 0)
                    continue;
                int sum = least[used - own] + (slices > 0 ? slices : 0);
                next[used] = sum < next[used] ? sum : next[used];
            }
        }
        memcpy(least, next, ((size_t)most + 1) * sizeof *least);
    }
    for (int used = 1; used <= most; used++)
        least[0] = least[used] < least[0] ? least[used] : least[0];
    return least[0] > slices_up(scenario, first);
}

static void note_shortage(struct scenario *scenario)
{
    scenario->was_short |= is_short(scenario);
}

void scenario_set_service(struct scenario *scenario, const char *name, const char *model,
                          double rate_rps)
{
    struct scenario_service *service = service_of(scenario, name);

    snprintf(service->model, sizeof service->model, "%s", model);
    service->rate_rps = rate_rps;
    service->floor_rps = fmin(service->floor_rps, rate_rps);
    service->there = rate_rps > 0;
    note_shortage(scenario);
    if (!service->there) {
        fake_cluster_delete(&scenario->cluster, &KIND_GPU_SERVICE, NAMESPACE, name);
        return;
    }
    fake_cluster_put(&scenario->cluster, &KIND_GPU_SERVICE,
                     json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:f, s:f, s:i, s:s, "
                               "s:{s:{s:[{s:s, s:s}]}}}}",
                               "apiVersion", "tranche.dev/v1alpha1", "kind", "GpuService",
                               "metadata", "name", name, "namespace", NAMESPACE, "spec", "pool",
                               pool_of(scenario), "model", model, "rateRps", rate_rps,
                               "latencyMs", 100.0, "drainSeconds", 5, "gateway",
                               scenario->gateway ? "infra/main" : "", "podTemplate", "spec",
                               "containers", "name", "server", "image", "server:1"));
}

void scenario_set_template(struct scenario *scenario, const char *name, int number)
{
    const json_t *there =
        fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, NAMESPACE, name);
    char image[32];

    if (!there)
        return;
    json_t *changed = json_deep_copy(there);
    snprintf(image, sizeof image, "server:%d", number);
    json_object_set_new(
        json_array_get(
            (json_t *)json_at(changed, "spec", "podTemplate", "spec", "containers", NULL), 0),
        "image", json_string(image));
    fake_cluster_put(&scenario->cluster, &KIND_GPU_SERVICE, changed);
}

/* ---- what must hold --------------------------------------------------------------- */

double scenario_capacity(const struct scenario *scenario, const char *name)
{
    return fake_cluster_capacity(&scenario->cluster, NAMESPACE, name);
}

static const json_t *object_of(const struct scenario *scenario,
                               const struct scenario_service *service)
{
    return fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, NAMESPACE, service->name);
}

/* The pool does not plan for the service: nothing is promised to it. */
static bool is_left_out(const struct scenario *scenario, const struct scenario_service *service)
{
    const json_t *status = json_object_get(object_of(scenario, service), "status");
    const json_t *required = json_object_get(status, "requiredRps");

    return required && json_number_value(required) == 0;
}

static void check(struct scenario *scenario, const char *after)
{
    CLEANUP(free_ptr) char *broken = fake_cluster_check(&scenario->cluster);

    scenario->checks++;
    if (!broken && scenario->gateway)
        broken = fake_cluster_check_routes(&scenario->cluster);
    if (broken)
        fail_msg("seed %llu, after %s: %s", (unsigned long long)scenario->seed, after, broken);
    for (int s = 0; s < scenario->service_count; s++) {
        struct scenario_service *service = &scenario->services[s];
        if (service->there && is_left_out(scenario, service)) {
            if (!scenario->was_short && is_measured(scenario, service))
                fail_msg("seed %llu, after %s: %s is left out, but the GPUs suffice",
                         (unsigned long long)scenario->seed, after, service->name);
            service->floor_rps = 0;
        }
        double capacity = scenario_capacity(scenario, service->name);
        if (capacity < service->floor_rps * (1 - 1e-9))
            fail_msg("seed %llu, after %s: %s has %.9g rps ready, its floor is %.9g",
                     (unsigned long long)scenario->seed, after, service->name, capacity,
                     service->floor_rps);
    }
}

static void lower_floors(struct scenario *scenario)
{
    for (int s = 0; s < scenario->service_count; s++) {
        struct scenario_service *service = &scenario->services[s];
        service->floor_rps =
            fmin(service->floor_rps, scenario_capacity(scenario, service->name));
    }
}

void scenario_tick(struct scenario *scenario, int seconds)
{
    unsigned long crashes = scenario->cluster.crashes;

    fake_cluster_tick(&scenario->cluster, seconds);
    if (scenario->cluster.crashes > crashes)
        lower_floors(scenario);
    check(scenario, "a tick");
}

void scenario_set_node(struct scenario *scenario, size_t node, bool up)
{
    fake_cluster_set_node(&scenario->cluster, node, up);
    note_shortage(scenario);
    if (!up)
        lower_floors(scenario);
}

/* ---- rounds ----------------------------------------------------------------------- */

static void remember(struct scenario *scenario)
{
    if (scenario->past_count == SCENARIO_PAST)
        fake_snapshot_done(&scenario->past[--scenario->past_count]);
    for (int i = scenario->past_count; i > 0; i--)
        scenario->past[i] = scenario->past[i - 1];
    fake_snapshot_take(&scenario->cluster, &scenario->past[0]);
    scenario->past_count++;
}

static void view_of(const struct scenario *scenario, const struct scenario_round *round,
                    struct fake_snapshot *ret_view)
{
    fake_snapshot_take(&scenario->cluster, ret_view);
    if (round->age > 0 && scenario->past_count > 0) {
        int age = round->age <= scenario->past_count ? round->age : scenario->past_count;
        fake_snapshot_mix(ret_view, &scenario->past[age - 1],
                          round->stale_kinds ? round->stale_kinds : ~0u);
    }
}

static void decide(const struct scenario *scenario, const struct scenario_round *round,
                   const struct fake_snapshot *view, struct effects *ret_effects)
{
    struct world_sources sources;
    struct world world;
    struct error err = {0};
    struct reconcile_options options = {.pool = pool_of(scenario),
                                        .actions_max = scenario->actions_max,
                                        .items_max = scenario->items_max};

    fake_snapshot_sources(view, &scenario->cluster, &sources);
    sources.epoch = round->epoch ? round->epoch : 1;
    sources.fresh = !round->says_stale;
    sources.refusals = scenario->refusals;
    world_build(&sources, &world);
    if (reconcile_pool(&world, &options, ret_effects, NULL, &err) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)scenario->seed, err.text);
    world_done(&world);
}

static void tell(const struct scenario *scenario, const struct effect *effect, int rc)
{
    static const char *const names[EFFECT_KIND_COUNT] = {"ensure", "apply", "patch", "delete",
                                                         "event"};

    if (!scenario->verbose)
        return;
    printf("#   %s %s %s (%s)%s%s%s\n", names[effect->kind], effect->object_kind->kind,
           effect->name, effect->reason, rc < 0 ? " REFUSED" : "", effect->note ? ": " : "",
           effect->note ? effect->note : "");
    if (getenv("TRANCHE_BODIES") && effect->body && effect->kind != EFFECT_EVENT) {
        char *text = json_dumps(effect->body, JSON_COMPACT);
        printf("#      %s\n", text);
        free(text);
    }
}

/* Whether it was refused for what it is; remembers what the controller would. */
static bool is_refusal(struct scenario *scenario, const struct effect *effect, int rc,
                       const struct error *err)
{
    static const char *const kinds[EFFECT_KIND_COUNT] = {"ensure", "apply", "patch", "delete",
                                                         "event"};
    CLEANUP(free_ptr)
    char *key =
        effect_key(kinds[effect->kind], effect->object_kind, effect->namespace, effect->name);

    if (rc == 0)
        json_object_del(scenario->refusals, key);
    if (rc != -E_USAGE)
        return false;
    if (!effect->subresource)
        json_object_set_new(scenario->refusals, key, json_string(err->text));
    return true;
}

enum carried { CARRIED_OUT, CARRIED_REFUSED, CARRIED_ENDS };

static enum carried carry_out(struct scenario *scenario, const struct effect *effect,
                              const struct scenario_round *round)
{
    int rc = 0;
    char what[128];
    struct error err = {0};

    for (int i = 0; i < (round->twice ? 2 : 1); i++) {
        int again = fake_cluster_apply(&scenario->cluster, effect, &err);
        rc = i == 0 ? again : rc;
    }
    tell(scenario, effect, rc);
    scenario->steps_started += strcmp(effect->reason, "StepStarted") == 0;
    scenario->steps_done += strcmp(effect->reason, "StepDone") == 0;
    scenario->nodes_shared +=
        effect->kind == EFFECT_EVENT && strcmp(effect->reason, "NodesShared") == 0;
    snprintf(what, sizeof what, "%s of %s %s", effect->reason, effect->object_kind->kind,
             effect->name);
    check(scenario, what);
    if (is_refusal(scenario, effect, rc, &err))
        return CARRIED_REFUSED;
    return rc == 0 ? CARRIED_OUT : CARRIED_ENDS;
}

/* Whether the effect waits for one of the round that was refused. */
static bool depends_on_refused(const struct effects *effects, const bool *refused, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (refused[i] && effect_depends(&effects->items.data[index], &effects->items.data[i]))
            return true;
    return false;
}

/* Whether the controller's life ends at an effect of the round. */
static bool dies_at(struct scenario *scenario, const struct scenario_round *round, size_t index)
{
    return (int)index == round->stop_at || (long)++scenario->carried_out == scenario->die_at;
}

static bool dies_after(const struct scenario *scenario, const struct scenario_round *round)
{
    return round->stop_at >= 0 ? round->stop_after : scenario->die_after;
}

size_t scenario_run(struct scenario *scenario, const struct scenario_round *round)
{
    struct fake_snapshot view;
    struct effects effects;
    size_t count;

    view_of(scenario, round, &view);
    decide(scenario, round, &view, &effects);
    remember(scenario);
    scenario->rounds++;
    bool *refused = xcalloc(effects.items.count + 1, sizeof *refused);
    for (size_t i = 0; i < effects.items.count; i++) {
        bool dies = dies_at(scenario, round, i);
        if (dies && !dies_after(scenario, round))
            break;
        if (depends_on_refused(&effects, refused, i))
            continue;
        enum carried carried = carry_out(scenario, &effects.items.data[i], round);
        refused[i] = carried == CARRIED_REFUSED;
        if (carried == CARRIED_ENDS || dies)
            break;
    }
    free(refused);
    count = effects.items.count;
    scenario->effects += count;
    effects_done(&effects);
    fake_snapshot_done(&view);
    return count;
}

static bool has_reason(const json_t *object, const char *type, const char *reason)
{
    return strcmp(json_text(object_condition(object, type), "reason"), reason) == 0;
}

/* What is settled is promised from then on. */
static void raise_floors(struct scenario *scenario)
{
    for (int s = 0; s < scenario->service_count; s++) {
        struct scenario_service *service = &scenario->services[s];
        if (service->there && scenario_capacity(scenario, service->name) >= service->rate_rps)
            service->floor_rps = service->rate_rps;
    }
}

bool scenario_settle(struct scenario *scenario, int rounds)
{
    int quiet = 0;

    for (int i = 0; i < rounds && quiet < 4; i++) {
        struct scenario_round round = {.stop_at = -1, .epoch = scenario->epoch};
        quiet = scenario_run(scenario, &round) == 0 ? quiet + 1 : 0;
        scenario_tick(scenario, 5);
    }
    if (quiet >= 4) {
        raise_floors(scenario);
        scenario->was_short = is_short(scenario);
    }
    return quiet >= 4;
}

bool scenario_check_end(struct scenario *scenario)
{
    const json_t *pool =
        fake_cluster_get(&scenario->cluster, &KIND_GPU_POOL, "", pool_of(scenario));
    bool is_reached = condition_is_true(pool, "Ready") || has_reason(pool, "Ready", "NoPlan") ||
                      has_reason(pool, "Ready", "CapacityShort");

    if (!is_reached && !has_reason(pool, "Stalled", "NoSafeTransition"))
        fail_msg(
            "seed %llu: settled, but the plan is not reached and the pool does not say why",
            (unsigned long long)scenario->seed);
    for (int s = 0; s < scenario->service_count; s++) {
        const struct scenario_service *service = &scenario->services[s];
        const json_t *object = object_of(scenario, service);
        double capacity = scenario_capacity(scenario, service->name);
        if (!service->there) {
            if (object && is_reached)
                fail_msg("seed %llu: %s is still there", (unsigned long long)scenario->seed,
                         service->name);
            continue;
        }
        if (is_reached && condition_is_true(object, "SLOFeasible") &&
            capacity < service->rate_rps * (1 - 1e-9))
            fail_msg("seed %llu: in the end %s has %.9g of %.9g rps",
                     (unsigned long long)scenario->seed, service->name, capacity,
                     service->rate_rps);
    }
    return is_reached;
}
