/* SPDX-License-Identifier: Apache-2.0
 *
 * A transition carried out live. Each action is recorded before it is begun and after it is
 * done; all that may begin, is begun. Every action can be done again from any point of it:
 * that is what makes a crash harmless.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/runtime.h"
#include "transition/plan.h"
#include "transition/verify.h"

#define RETRY_NS INT64_C(1000000000)

struct change *change_new(const struct transition *stolen, const struct plan *to_stolen,
                          double started_unix_s)
{
    struct change *change = xcalloc(1, sizeof *change);
    size_t actions = stolen->actions.count;
    change->transition = *stolen;
    change->to = *to_stolen;
    change->begun = xcalloc(actions, sizeof *change->begun);
    change->done = xcalloc(actions, sizeof *change->done);
    change->gpus = xcalloc(stolen->gpus.count, sizeof *change->gpus);
    timeline_init(&change->timeline, stolen, started_unix_s);
    return change;
}

void change_free(struct change *change)
{
    if (!change)
        return;
    transition_done(&change->transition);
    plan_done(&change->to);
    free(change->begun);
    free(change->done);
    free(change->gpus);
    timeline_done(&change->timeline);
    free(change);
}

static const char *slice_name(const struct change *change,
                              const struct transition_action *action)
{
    return change->transition.gpus.data[action->gpu].board->profiles[action->profile].name;
}

int change_take_gpus(struct runtime *runtime, struct error *err)
{
    struct change *change = runtime->change;
    int failed = 0;
    for (size_t g = 0; g < change->transition.gpus.count && !failed; g++) {
        const struct transition_gpu *gpu = &change->transition.gpus.data[g];
        change->gpus[g] = machine_find(&runtime->machine, gpu->id);
        if (change->gpus[g] >= 0)
            continue;
        failed = machine_take(&runtime->machine, gpu->id, gpu->board, &change->gpus[g], err);
        if (!failed)
            failed = runtime_record(
                runtime, machine_gpu_to_json(&runtime->machine.gpus.data[change->gpus[g]]),
                err);
        if (!failed) /* it may hold instances that nobody uses */
            failed = machine_clear(&runtime->machine, change->gpus[g], err);
    }
    return failed;
}

/* ---- what an action makes of the units -------------------------------------------- */

/* The instance of `to` that a start leads to, for what actions do not tell (max_wait_ms). */
static double max_wait_ms_of(const struct change *change,
                             const struct transition_action *action)
{
    const char *id = change->transition.gpus.data[action->gpu].id;
    for (size_t g = 0; g < change->to.gpus.count; g++) {
        const struct plan_gpu *gpu = &change->to.gpus.data[g];
        const char *here = transition_match_of(&change->transition, gpu->id);
        if (!here || strcmp(here, id) != 0)
            continue;
        for (size_t i = 0; i < gpu->instances.count; i++)
            if (gpu->instances.data[i].start == action->start)
                return gpu->instances.data[i].max_wait_ms;
    }
    return 0; /* a stay on the way: batches are not waited for */
}

static void enact_start(struct runtime *runtime, const struct transition_action *action)
{
    struct change *change = runtime->change;
    int gpu = change->gpus[action->gpu];
    const struct plan_instance instance = {
        .profile = action->profile,
        .start = action->start,
        .service = plan_find_service(&change->to,
                                     change->transition.services.data[action->service].name),
        .batch = action->batch,
        .procs = action->procs,
        .rate_rps = action->rate_rps,
        .max_wait_ms = max_wait_ms_of(change, action),
    };
    const struct plan *plan = &change->to;
    struct plan_instance stay = instance;
    if (stay.service < 0) { /* started for the way only */
        plan = &runtime->plan;
        stay.service =
            plan_find_service(plan, change->transition.services.data[action->service].name);
    }
    assert(stay.service >= 0);
    if (!runtime_find_unit(runtime, gpu, action->start))
        runtime_add_unit(runtime, gpu, plan, &stay);
}

void change_enact(struct runtime *runtime, int index)
{
    struct change *change = runtime->change;
    const struct transition_action *action = &change->transition.actions.data[index];
    struct unit *unit = runtime_find_unit(runtime, change->gpus[action->gpu], action->start);
    change->begun[index] = true;
    switch (action->kind) {
    case ACTION_START:
        enact_start(runtime, action);
        break;
    case ACTION_DRAIN:
        if (unit)
            unit->want = UNIT_DRAIN;
        break;
    case ACTION_STOP:
        if (unit)
            unit->want = UNIT_STOP;
        break;
    case ACTION_CREATE_INSTANCE:
    case ACTION_DELETE_INSTANCE:
    case ACTION_KIND_COUNT:
        break;
    }
}

void change_settle(struct runtime *runtime, int index)
{
    struct change *change = runtime->change;
    const struct transition_action *action = &change->transition.actions.data[index];
    change->begun[index] = change->done[index] = true;
    if (action->kind != ACTION_STOP)
        return;
    struct unit *unit = runtime_find_unit(runtime, change->gpus[action->gpu], action->start);
    if (unit)
        runtime_remove_unit(runtime, unit);
}

/* ---- carrying on ------------------------------------------------------------------ */

/* Said at most once a second: a disk stays full for long. */
static void say_blocked(struct runtime *runtime, const char *what, const struct error *err)
{
    int64_t now_ns = clock_now_ns(clock_real());
    runtime->change->retry_ns = now_ns + RETRY_NS;
    events_add(&runtime->events, LOG_ERROR, "%s: %s; trying again", what, err->text);
}

static bool change_instance(struct runtime *runtime, const struct transition_action *action)
{
    struct error err = {0};
    int gpu = runtime->change->gpus[action->gpu];
    const char *slice = slice_name(runtime->change, action);
    bool create = action->kind == ACTION_CREATE_INSTANCE;
    if (machine_change(&runtime->machine, gpu, slice, action->start, create, &err) == 0)
        return true;
    say_blocked(runtime, action->id, &err);
    return false;
}

/* Whether a begun action is done; those on instances are done here. */
static bool is_finished(struct runtime *runtime, const struct transition_action *action)
{
    int gpu = runtime->change->gpus[action->gpu];
    const struct unit *unit = runtime_find_unit(runtime, gpu, action->start);
    switch (action->kind) {
    case ACTION_CREATE_INSTANCE:
    case ACTION_DELETE_INSTANCE:
        return change_instance(runtime, action);
    case ACTION_START:
        return unit && runtime_unit_works(unit);
    case ACTION_DRAIN:
        if (unit && unit->training)
            return unit->keeper.pid == 0;
        return !unit || !unit->routed ||
               (unit->drained_in_router && unit->router_state != SERVER_UP &&
                unit->sessions == 0);
    case ACTION_STOP:
        return !unit || (unit->keeper.pid == 0 && !unit->routed);
    case ACTION_KIND_COUNT:
        break;
    }
    assert(!"an action");
    return false;
}

/* Times in the journal are wall time: the next runtime tells the change's from them. */
static bool record_action(struct runtime *runtime, const char *what, const char *id)
{
    struct error err = {0};
    if (runtime_record(
            runtime,
            json_pack("{s:s, s:s, s:f}", "record", what, "action", id, "at", timeline_wall_s()),
            &err) == 0)
        return true;
    say_blocked(runtime, "the change waits", &err);
    return false;
}

static void describe(const struct change *change, const struct transition_action *action,
                     char *text, size_t size)
{
    snprintf(text, size, "%s %s on %s %s@%d%s%s", action->id, action_kind_name(action->kind),
             change->transition.gpus.data[action->gpu].id, slice_name(change, action),
             action->start, action->service >= 0 ? ": " : "",
             action->service >= 0 ? change->transition.services.data[action->service].name
                                  : "");
}

static bool settle_finished(struct runtime *runtime)
{
    struct change *change = runtime->change;
    char text[256];
    for (size_t a = 0; a < change->transition.actions.count; a++) {
        const struct transition_action *action = &change->transition.actions.data[a];
        if (!change->begun[a] || change->done[a] || !is_finished(runtime, action))
            continue;
        if (!record_action(runtime, "done", action->id))
            return false;
        change_settle(runtime, (int)a);
        change->timeline.done_s[a] = timeline_now_s(&change->timeline);
        describe(change, action, text, sizeof text);
        events_add(&runtime->events, LOG_INFO, "done: %s", text);
    }
    return true;
}

static bool begin_ready(struct runtime *runtime)
{
    struct change *change = runtime->change;
    CLEANUP(free_ptr)
    int *ready = xcalloc(change->transition.actions.count, sizeof *ready);
    size_t count = transition_next(&change->transition, change->done, change->begun, ready);
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &change->transition.actions.data[ready[i]];
        if (!record_action(runtime, "begin", action->id))
            return false;
        change->timeline.begun_s[ready[i]] = timeline_now_s(&change->timeline);
        change_enact(runtime, ready[i]);
    }
    return true;
}

static void note_ready(struct runtime *runtime)
{
    struct change *change = runtime->change;
    for (size_t s = 0; s < change->transition.services.count; s++)
        timeline_note_ready(
            &change->timeline, s,
            runtime_capacity_rps(runtime, change->transition.services.data[s].name));
}

/* ---- the end of a change ---------------------------------------------------------- */

/* From now on the GPUs have the ids of the new plan. */
static void rename_gpus(struct runtime *runtime)
{
    struct change *change = runtime->change;
    CLEANUP(free_ptr) int *index = xcalloc(change->to.gpus.count, sizeof *index);
    if (change->renamed)
        return;
    change->renamed = true;
    for (size_t g = 0; g < change->to.gpus.count; g++) {
        const char *here = transition_match_of(&change->transition, change->to.gpus.data[g].id);
        index[g] = machine_find(&runtime->machine, here ? here : change->to.gpus.data[g].id);
    }
    for (size_t i = 0; i < runtime->machine.gpus.count; i++) {
        free(runtime->machine.gpus.data[i].id);
        runtime->machine.gpus.data[i].id = NULL;
    }
    for (size_t g = 0; g < change->to.gpus.count; g++)
        if (index[g] >= 0)
            runtime->machine.gpus.data[index[g]].id = xstrdup(change->to.gpus.data[g].id);
}

/* A service without a server any more gives its backend back. */
static void forget_services(struct runtime *runtime)
{
    struct error ignored;
    for (int i = 0; i < ROUTER_BACKENDS; i++) {
        const char *service = runtime->router.services[i];
        if (*service && plan_find_service(&runtime->plan, service) < 0)
            router_forget(&runtime->router, service, &ignored);
    }
}

static void complete(struct runtime *runtime)
{
    struct change *change = runtime->change;
    struct plan before = runtime->plan;
    struct error err = {0};
    rename_gpus(runtime);
    runtime->plan = change->to;
    if (runtime_compact(runtime, &err) != 0) {
        runtime->plan = before;
        say_blocked(runtime, "the change waits to be recorded", &err);
        return;
    }
    json_decref(runtime->last_change);
    runtime->last_change =
        timeline_to_json(&change->timeline, &change->transition, runtime->change_number);
    events_add(&runtime->events, LOG_INFO, "change %d is complete: %zu actions in %.1f s",
               runtime->change_number, change->transition.actions.count,
               timeline_now_s(&change->timeline));
    plan_done(&before);
    plan_init(&change->to); /* moved */
    runtime->change = NULL;
    change_free(change);
    runtime->phase = PHASE_SERVING;
    forget_services(runtime);
}

/* What actions do not tell: instances that stay may wait for their batches otherwise in the
 * new plan. Whether all do by now. */
static bool tune_kept(struct runtime *runtime)
{
    const struct change *change = runtime->change;
    bool tuned = true;
    for (size_t g = 0; g < change->to.gpus.count; g++) {
        const struct plan_gpu *gpu = &change->to.gpus.data[g];
        const char *here = transition_match_of(&change->transition, gpu->id);
        int index = machine_find(&runtime->machine, here && !change->renamed ? here : gpu->id);
        for (size_t i = 0; i < gpu->instances.count && index >= 0; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            struct unit *unit = runtime_find_unit(runtime, index, instance->start);
            if (!unit)
                continue;
            unit->max_wait_ms = instance->max_wait_ms;
            tuned = tuned && (!unit->routed || unit_is_tuned(unit));
        }
    }
    return tuned;
}

void change_tick(struct runtime *runtime, int64_t now_ns)
{
    struct change *change = runtime->change;
    bool all = true;
    assert(change);
    note_ready(runtime);
    if (now_ns < change->retry_ns || !settle_finished(runtime) || !begin_ready(runtime))
        return;
    for (size_t a = 0; a < change->transition.actions.count; a++)
        all = all && change->done[a];
    if (all && tune_kept(runtime))
        complete(runtime);
}

/* ---- the beginning ---------------------------------------------------------------- */

static int plan_change(const struct runtime *runtime, const struct plan *to, int spare,
                       struct transition *ret_transition, struct error *err)
{
    struct transition_options options = {
        .algorithm = TRANSITION_DAG, .spare = spare, .keep_nodes = true, .seed = 1};
    struct transition_report report = {0};
    int failed = transition_plan(&runtime->plan, to, &options, ret_transition, err);
    if (failed)
        return failed;
    transition_verify(ret_transition, &report);
    failed = transition_report_error(&report, err);
    transition_report_done(&report);
    return failed;
}

static int check_models(const struct runtime *runtime, const struct plan *to,
                        const json_t *models, struct error *err)
{
    for (size_t s = 0; s < to->services.count; s++) {
        const char *name = to->services.data[s].name;
        if (!runtime_model(runtime, name) && !json_object_get(models, name))
            return error_set(err, E_INPUT,
                             "service \"%s\": its model is not known; give -s, --models or "
                             "--model %s=FILE",
                             name, name);
    }
    return 0;
}

/* Too few GPUs is found out before anything is recorded. */
static int begin_change(struct runtime *runtime, const json_t *plan, const json_t *models,
                        struct error *err)
{
    struct change *change = runtime->change;
    CLEANUP(json_decref_ptr) json_t *document = transition_to_json(&change->transition);
    int failed = change_take_gpus(runtime, err);
    if (!failed)
        failed = runtime_record(runtime,
                                json_pack("{s:s, s:O, s:O, s:O?, s:f}", "record", "transition",
                                          "document", document, "plan", plan, "models", models,
                                          "at", change->timeline.started_unix_s),
                                err);
    return failed;
}

int runtime_apply(struct runtime *runtime, const json_t *plan, const json_t *models, int spare,
                  struct error *err)
{
    struct plan to;
    struct transition transition;
    if (runtime->phase != PHASE_SERVING)
        return error_set(err, E_BUSY, "the runtime is %s; wait until it is serving",
                         runtime_phase_name(runtime->phase));
    plan_init(&to);
    transition_init(&transition);
    int failed = plan_from_json("plan", plan, &to, err);
    if (!failed && to.status == PLAN_INFEASIBLE)
        failed = error_set(err, E_NO, "the plan is infeasible");
    if (!failed)
        failed = check_models(runtime, &to, models, err);
    if (!failed)
        failed = plan_change(runtime, &to, spare, &transition, err);
    if (failed) {
        plan_done(&to);
        transition_done(&transition);
        return failed;
    }
    runtime->change = change_new(&transition, &to, timeline_wall_s());
    failed = begin_change(runtime, plan, models, err);
    if (failed) {
        change_free(runtime->change);
        runtime->change = NULL;
        machine_forget_ids(&runtime->machine, &runtime->plan);
        return failed;
    }
    if (json_is_object(models))
        json_object_update(json_object_get(runtime->settings, "models"), (json_t *)models);
    runtime->phase = PHASE_CHANGING;
    runtime->change_number++;
    events_add(&runtime->events, LOG_INFO, "change %d begins: %zu actions",
               runtime->change_number, runtime->change->transition.actions.count);
    return 0;
}
