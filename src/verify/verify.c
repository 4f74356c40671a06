/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the checks: form, layouts, instances, services, fleet. Everything is worked
 * out from the inputs again; nothing that the plan states is taken for granted.
 */
#include "verify/verify.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mig/layout.h"
#include "verify/check.h"
#include "verify/fleet.h"

void violations_done(struct violations *violations)
{
    vec_done(&violations->list);
    arena_done(&violations->arena);
}

void check_violation(struct check *check, const char *rule, const char *place,
                     const char *format, ...)
{
    assert(rule && place && format);
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct violations *violations = check->violations;
    vec_add(&violations->list,
            ((struct violation){.rule = rule,
                                .place = arena_strdup(&violations->arena, place),
                                .text = arena_strdup(&violations->arena, text)}));
}

static void check_init(struct check *check)
{
    assert(check->names.count == 0 && check->keys.count == 0);
    for (size_t i = 0; i < check->services->services.count; i++)
        map_put(&check->names, check->services->services.data[i].name, NULL);
    struct str key = STR_EMPTY;
    for (size_t r = 0; r < check->rows->rows.count; r++) {
        const struct measurement *row = &check->rows->rows.data[r];
        str_clear(&key);
        check_row_key(row->model, row->board, row->profile, row->batch, row->procs, row->task,
                      &key);
        map_put(&check->keys, key.bytes, NULL);
        struct model_rows *model = map_get(&check->models, row->model);
        if (!model) {
            model = xcalloc(1, sizeof *model);
            map_put(&check->models, row->model, model);
        }
        vec_add(&model->rows, (int)r);
    }
    str_done(&key);
}

static void check_done(struct check *check)
{
    for (size_t i = 0; i < check->models.count; i++) {
        struct model_rows *model = check->models.entries[i].value;
        vec_done(&model->rows);
        free(model);
    }
    map_done(&check->names);
    map_done(&check->keys);
    map_done(&check->models);
    map_done(&check->judged);
}

/* Requests that all replays of the queue rule share, how many replays one question takes (at
 * two rates, for two latencies, each beside its comparison), and the least and most requests
 * of one group. */
enum { REPLAYED_REQUESTS = 24000000, REPLAYS_EACH = 8, GROUP_LEAST = 1024, GROUP_MOST = 8192 };

/* Different (board, slice, batch, processes, service) are different questions, and only
 * several processes with batches are replayed. */
static void size_replays(struct check *check)
{
    struct map cases = {0};
    struct str key = STR_EMPTY;
    for (size_t g = 0; g < check->plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &check->plan->gpus.data[g];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            if (instance->procs == 1 || instance->batch == 1)
                continue;
            str_clear(&key);
            str_addf(&key, "%s/%d/%d/%d/%d", gpu->board->slug, instance->profile,
                     instance->batch, instance->procs, instance->service);
            map_put(&cases, key.bytes, NULL);
        }
    }
    size_t groups = (cases.count + 1) * REPLAYS_EACH * QUEUE_GROUPS;
    int size = (int)(REPLAYED_REQUESTS / groups);
    check->group_requests = size < GROUP_LEAST  ? GROUP_LEAST
                            : size > GROUP_MOST ? GROUP_MOST
                                                : size;
    assert(check->group_requests >= GROUP_LEAST && check->group_requests <= GROUP_MOST);
    str_done(&key);
    map_done(&cases);
}

static bool is_paper_plan(const struct plan *plan)
{
    const char *rules = json_string_value(json_object_get(plan->options, "rules"));
    return rules && strcmp(rules, "paper") == 0;
}

/* MIG-serving's rule: a 4g and a 3g never share a GPU. */
static bool mixes_four_and_three(const struct plan_gpu *gpu)
{
    bool four = false, three = false;
    for (size_t i = 0; i < gpu->instances.count; i++) {
        int slices = gpu->board->profiles[gpu->instances.data[i].profile].compute_slices;
        four |= slices == 4;
        three |= slices == 3;
    }
    return four && three;
}

static void check_gpus(struct check *check)
{
    bool paper = is_paper_plan(check->plan);
    for (size_t g = 0; g < check->plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &check->plan->gpus.data[g];
        struct mig_layout layout;
        struct error reason;
        char place[64];
        snprintf(place, sizeof place, "gpus[%zu]", g);
        plan_gpu_layout(gpu, &layout);
        if (mig_layout_check(gpu->board, &layout, &reason) < 0)
            check_violation(check, "layout", place, "%s", reason.text);
        if (paper && mixes_four_and_three(gpu))
            check_violation(check, "layout", place,
                            "a 4g beside a 3g, which rules \"paper\" forbid");
        for (size_t i = 0; i < gpu->instances.count; i++) {
            snprintf(place, sizeof place, "gpus[%zu].instances[%zu]", g, i);
            if (gpu->instances.data[i].service >= 0)
                check_instance(check, gpu, &gpu->instances.data[i], place);
            else if (gpu->instances.data[i].rate_rps > 0)
                check_violation(check, "rate", place, "promises a rate but serves nothing");
        }
    }
}

/* What one service of the plan has. */
struct holding {
    double rate_rps;
    double largest_rps; /* on one GPU */
    long instances;
};

static struct holding *measure_holdings(const struct plan *plan)
{
    struct holding *holdings = xcalloc(plan->services.count + 1, sizeof *holdings);
    for (size_t g = 0; g < plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            int service = gpu->instances.data[i].service;
            double here_rps = 0;
            if (service < 0)
                continue;
            /* What the GPU has of the service up to here; at its last instance, all of it. */
            for (size_t j = 0; j <= i; j++)
                if (gpu->instances.data[j].service == service)
                    here_rps += gpu->instances.data[j].rate_rps;
            holdings[service].rate_rps += gpu->instances.data[i].rate_rps;
            holdings[service].instances++;
            holdings[service].largest_rps = fmax(holdings[service].largest_rps, here_rps);
        }
    }
    return holdings;
}

/* The most that one node has of a service; GPUs of unknown node could all share one. */
static double largest_on_node(const struct plan *plan, int service)
{
    assert(service >= 0 && (size_t)service < plan->services.count);
    struct map nodes = {0};
    double *loads_rps = xcalloc(plan->gpus.count + 1, sizeof *loads_rps), largest_rps = 0;
    for (size_t g = 0; g < plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        ptrdiff_t at = map_find(&nodes, gpu->node);
        if (at < 0)
            at = (ptrdiff_t)map_put(&nodes, gpu->node, NULL);
        for (size_t i = 0; i < gpu->instances.count; i++)
            if (gpu->instances.data[i].service == service)
                loads_rps[at] += gpu->instances.data[i].rate_rps;
        largest_rps = fmax(largest_rps, loads_rps[at]);
    }
    free(loads_rps);
    map_done(&nodes);
    return largest_rps;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= VERIFY_TOLERANCE * fmax(fabs(a), fabs(b));
}

static void check_holding(struct check *check, const struct service *service, int index,
                          const struct holding *holding, const char *place)
{
    const struct plan_service *stated = &check->plan->services.data[index];
    double largest_rps = service->spread == SPREAD_NODE ? largest_on_node(check->plan, index)
                                                        : holding->largest_rps;
    if (!near(stated->required_rps, service->rate_rps))
        check_violation(check, "rate", place, "required_rps of \"%s\" is %.10g, expected %.10g",
                        service->name, stated->required_rps, service->rate_rps);
    if (!near(stated->provided_rps, holding->rate_rps))
        check_violation(check, "rate", place,
                        "provided_rps of \"%s\" is %.10g, but its instances add up to %.10g",
                        service->name, stated->provided_rps, holding->rate_rps);
    if (holding->rate_rps < service->rate_rps * (1 - VERIFY_TOLERANCE))
        check_violation(check, "rate", place,
                        "\"%s\" has %.10g a second, expected at least %.10g", service->name,
                        holding->rate_rps, service->rate_rps);
    else if (service->spread != SPREAD_NONE &&
             holding->rate_rps - largest_rps < service->rate_rps * (1 - VERIFY_TOLERANCE))
        check_violation(check, "spread", place,
                        "\"%s\" keeps %.10g a second when it loses one %s, expected %.10g",
                        service->name, holding->rate_rps - largest_rps,
                        spread_name(service->spread), service->rate_rps);
    if (holding->instances < service->min_instances)
        check_violation(check, "instances", place, "\"%s\" has %ld instances, expected %d",
                        service->name, holding->instances, service->min_instances);
}

/* Left out because the fleet is too small: stated, and something more urgent was kept. */
static bool is_dropped(const struct check *check, const struct service *service)
{
    bool stated = false, less_urgent = false;
    for (size_t i = 0; i < check->plan->infeasible.count; i++)
        stated |= strcmp(check->plan->infeasible.data[i].service, service->name) == 0 &&
                  strcmp(check->plan->infeasible.data[i].reason, "stock") == 0;
    for (size_t i = 0; i < check->services->services.count; i++)
        less_urgent |= check->services->services.data[i].priority > service->priority;
    return stated && less_urgent;
}

static void check_services(struct check *check)
{
    struct map planned = {0};
    struct holding *holdings = measure_holdings(check->plan);
    for (size_t i = 0; i < check->plan->services.count; i++) {
        const char *name = check->plan->services.data[i].name;
        map_put(&planned, name, NULL);
        if (map_find(&check->names, name) < 0)
            check_violation(check, "service", name, "is not among the services");
    }
    for (size_t i = 0; i < check->services->services.count; i++) {
        const struct service *service = &check->services->services.data[i];
        char place[64];
        ptrdiff_t index = map_find(&planned, service->name);
        if (index < 0 && !is_dropped(check, service))
            check_violation(check, "service", service->name, "is missing from the plan");
        if (index < 0)
            continue;
        snprintf(place, sizeof place, "services[%td]", index);
        check_holding(check, service, (int)index, &holdings[index], place);
    }
    free(holdings);
    map_done(&planned);
}

/* What the plan says of how it was made; members that it leaves out say nothing. */
static void check_options(struct check *check)
{
    const struct plan *plan = check->plan;
    const json_t *rule = json_object_get(plan->options, "latency_rule");
    const json_t *derate = json_object_get(plan->options, "derate");
    const char *expected = latency_rule_name(check->services->latency_rule);
    if (rule && (!json_is_string(rule) || strcmp(json_string_value(rule), expected) != 0))
        check_violation(check, "options", "options.latency_rule", "expected \"%s\"", expected);
    if (derate &&
        (!json_is_number(derate) || !near(json_number_value(derate), check->services->derate)))
        check_violation(check, "options", "options.derate", "expected %.10g",
                        check->services->derate);
    if (plan->stopped_by && strcmp(plan->stopped_by, "budget") != 0)
        check_violation(check, "options", "stopped_by", "is \"%s\", expected \"budget\"",
                        plan->stopped_by);
}

size_t plan_verify(const struct plan *plan, const struct service_set *services,
                   const struct measurement_set *rows, struct violations *ret_violations)
{
    assert(plan && services && rows && ret_violations);
    struct check check = {
        .plan = plan, .services = services, .rows = rows, .violations = ret_violations};
    *ret_violations = (struct violations){0};
    if (plan->status == PLAN_INFEASIBLE) {
        check_violation(&check, "status", "status",
                        "the plan is infeasible: nothing to verify");
        return ret_violations->list.count;
    }
    check_init(&check);
    if (services->latency_rule == RULE_QUEUE)
        size_replays(&check);
    check_gpus(&check);
    check_services(&check);
    check_options(&check);
    check_fleet(&check);
    if (plan->emulated != check.emulated)
        check_violation(&check, "emulated", "emulated",
                        "is %s, but %s row of device cpu-slice is used",
                        plan->emulated ? "true" : "false", check.emulated ? "a" : "no");
    check_done(&check);
    return ret_violations->list.count;
}
