/* SPDX-License-Identifier: Apache-2.0
 *
 * See status.h.
 */
#include "runtime/status.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static const char *unit_state(const struct unit *unit)
{
    if (unit->want == UNIT_STOP)
        return "stopping";
    if (unit->want == UNIT_DRAIN)
        return "draining";
    if (!unit->ready)
        return unit->failures > 0 ? "failing" : "starting";
    if (unit->training)
        return "training";
    return unit->routed && unit->router_state == SERVER_UP ? "serving" : "down";
}

static void add_progress(const struct unit_progress *progress, json_t *json)
{
    json_object_set_new(json, "task", json_string("training"));
    json_object_set_new(json, "steps", json_integer(progress->steps));
    json_object_set_new(json, "steps_per_s", json_real(progress->steps_per_s));
    json_object_set_new(json, "samples_per_s", json_real(progress->rate_rps));
    json_object_set_new(json, "loss", number_or_null(progress->loss));
}

static json_t *unit_to_json(const struct unit *unit)
{
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:o, s:i, s:i, s:i, s:i}", "slice",
                  unit->slice, "start", unit->start, "service", unit->service, "state",
                  unit_state(unit), "server", unit->key, "batch", unit->batch, "procs",
                  unit->procs, "rate_rps", json_real(unit->rate_rps), "port", unit->port, "pid",
                  (int)unit->server.pid, "weight", unit->weight, "outstanding", unit->sessions);
    if (unit->training)
        add_progress(&unit->progress, json);
    return json;
}

/* Of a training service: what its instances do together. */
static void add_training(const struct runtime *runtime, const char *service, json_t *json)
{
    struct unit_progress sum = {.loss = NAN};
    for (size_t i = 0; i < runtime->units.count; i++) {
        const struct unit *unit = runtime->units.data[i];
        if (strcmp(unit->service, service) != 0 || !runtime_unit_works(unit))
            continue;
        sum.steps += unit->progress.steps;
        sum.steps_per_s += unit->progress.steps_per_s;
        sum.rate_rps += unit->progress.rate_rps;
        sum.loss = fmin(sum.loss, unit->progress.loss); /* the least; NAN counts for nothing */
    }
    add_progress(&sum, json);
    json_object_set_new(json, "rate_rps", json_real(sum.rate_rps));
}

static json_t *gpus_to_json(const struct runtime *runtime)
{
    json_t *list = json_array();
    for (size_t g = 0; g < runtime->machine.gpus.count; g++) {
        const struct machine_gpu *gpu = &runtime->machine.gpus.data[g];
        json_t *instances = json_array();
        for (int start = 0; start < 128; start++) {
            const struct unit *unit = runtime_find_unit(runtime, (int)g, start);
            if (unit)
                json_array_append_new(instances, unit_to_json(unit));
        }
        json_array_append_new(list, json_pack("{s:s?, s:s, s:s, s:o}", "id", gpu->id, "uuid",
                                              gpu->uuid, "board", gpu->board->slug, "instances",
                                              instances));
    }
    return list;
}

static void add_counts(const struct runtime *runtime, int backend, json_t *json)
{
    unsigned long long requests = runtime->requests_before[backend];
    unsigned long long failed = runtime->failed_before[backend];
    for (size_t i = 0; i < runtime->statistics.backends.count; i++)
        if (runtime->statistics.backends.data[i].backend == backend) {
            requests += runtime->statistics.backends.data[i].requests;
            failed += runtime->statistics.backends.data[i].failed;
        }
    json_object_set_new(json, "requests", json_integer((json_int_t)requests));
    json_object_set_new(json, "failed", json_integer((json_int_t)failed));
    json_object_set_new(json, "observed",
                        json_integer((json_int_t)runtime->traffic.backends[backend].count));
    json_object_set_new(json, "late",
                        json_integer((json_int_t)runtime->traffic.backends[backend].late));
}

static void add_window(const struct runtime *runtime, int backend, json_t *json)
{
    struct traffic_summary summary;
    traffic_summarise(&runtime->traffic, backend, clock_now_ns(clock_real()), &summary);
    json_object_set_new(json, "rate_rps", json_real(summary.rate_rps));
    json_object_set_new(json, "latency_ms_p50", number_or_null(summary.latency_ms_p50));
    json_object_set_new(json, "latency_ms_p90", number_or_null(summary.latency_ms_p90));
    json_object_set_new(json, "latency_ms_p99", number_or_null(summary.latency_ms_p99));
    json_object_set_new(json, "attainment", number_or_null(summary.attainment));
}

static json_t *service_to_json(const struct runtime *runtime,
                               const struct plan_service *service)
{
    const json_t *model = runtime_model(runtime, service->name);
    json_t *json = json_pack("{s:s, s:f, s:f, s:f}", "name", service->name, "required_rps",
                             service->required_rps, "promised_rps", service->provided_rps,
                             "ready_rps", runtime_capacity_rps(runtime, service->name));
    int backend = router_find(&runtime->router, service->name);
    static const char *const COPIED[] = {"latency_ms", "percentile"};
    for (size_t i = 0; i < sizeof COPIED / sizeof *COPIED; i++) {
        json_t *value = json_object_get(model, COPIED[i]);
        json_object_set(json, COPIED[i], value ? value : json_null());
    }
    if (runtime_is_training(runtime, service->name)) {
        add_training(runtime, service->name, json);
    } else if (backend >= 0) {
        add_counts(runtime, backend, json);
        add_window(runtime, backend, json);
    }
    return json;
}

/* Those of the plan in force, then those that a change brings. */
static json_t *services_to_json(const struct runtime *runtime)
{
    json_t *list = json_array();
    for (size_t s = 0; s < runtime->plan.services.count; s++)
        json_array_append_new(list, service_to_json(runtime, &runtime->plan.services.data[s]));
    for (size_t s = 0; runtime->change && s < runtime->change->to.services.count; s++) {
        const struct plan_service *service = &runtime->change->to.services.data[s];
        if (plan_find_service(&runtime->plan, service->name) < 0)
            json_array_append_new(list, service_to_json(runtime, service));
    }
    return list;
}

static json_t *change_to_json(const struct runtime *runtime)
{
    const struct change *change = runtime->change;
    int done = 0, begun = 0;
    if (!change)
        return json_null();
    json_t *running = json_array();
    for (size_t a = 0; a < change->transition.actions.count; a++) {
        done += change->done[a];
        begun += change->begun[a];
        if (change->begun[a] && !change->done[a])
            json_array_append_new(running, json_string(change->transition.actions.data[a].id));
    }
    return json_pack("{s:i, s:I, s:i, s:i, s:o}", "number", runtime->change_number, "actions",
                     (json_int_t)change->transition.actions.count, "begun", begun, "done", done,
                     "running", running);
}

json_t *status_to_json(const struct runtime *runtime)
{
    json_t *services = services_to_json(runtime);
    json_t *json = json_pack("{s:s, s:s, s:b, s:i, s:s, s:i}", "schema", "tranche.status/1",
                             "phase", runtime_phase_name(runtime->phase), "emulated",
                             !json_is_true(json_object_get(runtime->settings, "cuda")), "pid",
                             (int)getpid(), "address",
                             runtime->router.address ? runtime->router.address : "", "port",
                             runtime->router.port);
    json_object_set_new(json, "router_pid", json_integer(runtime->router.process.pid));
    json_object_set_new(json, "gpus", gpus_to_json(runtime));
    json_object_set_new(json, "services", services);
    json_object_set_new(json, "change", change_to_json(runtime));
    json_object_set_new(json, "last_change",
                        runtime->last_change ? json_incref(runtime->last_change) : json_null());
    json_object_set_new(json, "events", events_to_json(&runtime->events));
    json_object_set_new(json, "plan", plan_to_json(&runtime->plan));
    return json;
}
