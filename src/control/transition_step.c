/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of the pool's open Transition. Its status is the journal of intent:
 *
 *     Pending → Started    written by a patch tied to the resourceVersion, with our epoch
 *     Started              in later rounds, while the status shows our epoch, the world is made
 *                          so: every act may be repeated
 *     Started → Done       read off the world, never off our own doing
 *     Started → Failed     the pod ended or was refused, or the actuator says so; begun again
 *                          after a while
 *
 * A drain is begun, and acted on, only while the observed capacity of its service less all
 * drains that are begun and not yet seen stays at or above the floor. A Done start whose pod
 * has gone is begun again, unless its instance is being left.
 *
 * The Transition is closed (Complete=False, Superseded) when another plan is due or taken, when
 * it is deleted, when a GPU it needs is gone, or when it waits for capacity that nobody will
 * bring. What it has begun is then part of the state that the next one starts from.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/planning.h"
#include "control/pod_object.h"
#include "control/status_edit.h"
#include "control/timestamp.h"
#include "control/transition_obstruction.h"

static const double TOLERANCE = 1e-9;
enum {
    DRAIN_SECONDS_DEFAULT = 15,
    RETRY_SECONDS = 5,
    RETRY_SECONDS_MOST = 300,
    LATE_SECONDS = 60 /* a call that was not answered by then is not carried out any more */
};

struct step {
    struct pool_view view;
    struct transition_object *object;
    const struct transition *transition;
    const struct actuator_ops *ops;
    struct effects *effects;
    int64_t now_s;
    struct action_state *states; /* as they will be written */
    bool *done, *begun, *acts;
    int *gpus;        /* of the transition's GPUs: the view's, -1: gone or lost */
    double *room_rps; /* of the transition's services: capacity above the floor */
    bool *touched;    /* by the view's GPUs: an action is under way there */
    int touched_count;
    int held;          /* an action that waits for capacity, -1: none */
    int stuck;         /* an action that takes too long, -1: none */
    const char *close; /* why the Transition ends here, NULL: it goes on */
    const char *close_text;
    VEC(struct actuator_slot) creates, deletes;
};

static const struct transition_action *action_of(const struct step *step, size_t index)
{
    assert(index < step->transition->actions.count);
    return &step->transition->actions.data[index];
}

static const char *service_name(const struct step *step, const struct transition_action *action)
{
    return action->service < 0 ? "" : step->transition->services.data[action->service].name;
}

static const struct gpu_service *service_object(const struct step *step,
                                                const struct transition_action *action)
{
    int at = world_find_service(step->view.world, service_name(step, action));

    return at < 0 ? NULL : &step->view.world->services.data[at];
}

/* The pod in the action's slot that matters: one that stays before one that goes. */
static const struct world_pod *pod_of(const struct step *step,
                                      const struct transition_action *action)
{
    int gpu = step->gpus[action->gpu];
    bool goes = action->kind == ACTION_DRAIN || action->kind == ACTION_STOP;
    const struct view_slot slot = {gpu, action->profile, action->start,
                                   service_name(step, action)};

    if (gpu < 0)
        return NULL;
    const struct world_pod *pod = pool_view_pod(&step->view, &slot);
    return goes && pod && strcmp(pod->service, slot.service) != 0 ? NULL : pod;
}

static const struct world_instance *instance_of(const struct step *step,
                                                const struct transition_action *action)
{
    int gpu = step->gpus[action->gpu];

    return gpu < 0 ? NULL
                   : pool_view_instance(&step->view, gpu, action->profile, action->start);
}

static bool is_under_way(const struct action_state *state)
{
    return state->phase == PHASE_STARTED || state->phase == PHASE_FAILED;
}

static void look_again(struct step *step, int64_t at_s)
{
    int64_t wait_s = at_s > step->now_s ? at_s - step->now_s : 0;

    effects_again_at(step->effects,
                     step->view.world->sources.now_ns + wait_s * INT64_C(1000000000));
}

/* ---- what the world says ---------------------------------------------------------- */

enum outcome { OUTCOME_OPEN, OUTCOME_DONE, OUTCOME_FAILED };

static enum outcome look_at_create(const struct step *step,
                                   const struct transition_action *action,
                                   const char **ret_reason)
{
    const struct world_instance *instance = instance_of(step, action);

    if (!instance)
        return OUTCOME_OPEN;
    if (instance->phase == INSTANCE_FAILED) {
        *ret_reason = instance->message ? instance->message : "the instance failed";
        return OUTCOME_FAILED;
    }
    return instance->phase == INSTANCE_READY ? OUTCOME_DONE : OUTCOME_OPEN;
}

/* Why the server does not take the action's pod: a quota, an admission rule, a template that is
 * wrong. NULL: it did not refuse it. */
static const char *refusal_of(const struct step *step, const struct transition_action *action)
{
    const struct gpu_service *service = service_object(step, action);
    char name[64];

    if (!service || !step->view.world->sources.refusals)
        return NULL;
    pod_object_name(service->meta.name, step->object->meta.name, action->id, name);
    return world_refusal(step->view.world, "ensure", &KUBE_POD, service->meta.namespace, name);
}

static enum outcome look_at_start(const struct step *step,
                                  const struct transition_action *action,
                                  const char **ret_reason)
{
    const struct world_pod *pod = pod_of(step, action);
    const char *refusal = pod ? NULL : refusal_of(step, action);

    if (refusal) {
        *ret_reason = refusal;
        return OUTCOME_FAILED;
    }
    if (!pod || pod->meta.deleting || strcmp(pod->service, service_name(step, action)) != 0)
        return OUTCOME_OPEN;
    if (pod->ended) {
        *ret_reason = "the pod ended";
        return OUTCOME_FAILED;
    }
    return pod_is_serving(pod) ? OUTCOME_DONE : OUTCOME_OPEN;
}

static int64_t drain_seconds(const struct step *step, const struct transition_action *action)
{
    const struct gpu_service *service = service_object(step, action);

    return service ? service->drain_seconds : DRAIN_SECONDS_DEFAULT;
}

static enum outcome look_at_drain(struct step *step, const struct transition_action *action)
{
    const struct world_pod *pod = pod_of(step, action);

    if (!pod)
        return OUTCOME_DONE;
    if (pod->in_endpoints)
        return OUTCOME_OPEN;
    if (pod->meta.deleting || pod->ended)
        return OUTCOME_DONE;
    if (pod->draining_since_s == 0)
        return OUTCOME_OPEN;
    int64_t until_s = pod->draining_since_s + drain_seconds(step, action);
    if (step->now_s >= until_s)
        return OUTCOME_DONE;
    look_again(step, until_s);
    return OUTCOME_OPEN;
}

static enum outcome look(struct step *step, const struct transition_action *action,
                         const char **ret_reason)
{
    assert(action->kind < ACTION_KIND_COUNT);
    if (step->gpus[action->gpu] < 0)
        return OUTCOME_OPEN;
    switch (action->kind) {
    case ACTION_CREATE_INSTANCE:
        return look_at_create(step, action, ret_reason);
    case ACTION_DELETE_INSTANCE:
        return instance_of(step, action) ? OUTCOME_OPEN : OUTCOME_DONE;
    case ACTION_START:
        return look_at_start(step, action, ret_reason);
    case ACTION_DRAIN:
        return look_at_drain(step, action);
    case ACTION_STOP:
        return pod_of(step, action) ? OUTCOME_OPEN : OUTCOME_DONE;
    case ACTION_KIND_COUNT:
        break;
    }
    assert(!"an action");
    return OUTCOME_OPEN;
}

/* ---- settling --------------------------------------------------------------------- */

static int64_t retry_at(const struct action_state *state)
{
    int64_t wait_s = RETRY_SECONDS;

    for (int i = 1; i < state->attempts && wait_s < RETRY_SECONDS_MOST; i++)
        wait_s *= 2;
    return state->finished_s + (wait_s < RETRY_SECONDS_MOST ? wait_s : RETRY_SECONDS_MOST);
}

static void begin_again(struct step *step, size_t index, const char *why)
{
    struct action_state *state = &step->states[index];
    const struct transition_action *action = action_of(step, index);

    state->phase = PHASE_STARTED;
    state->attempts++;
    state->finished_s = 0;
    state->reason = "";
    effect_event(step->effects, &KIND_TRANSITION, step->object->meta.json, true, "StepRetry",
                 "%s %s: attempt %d: %s", action->id, action_kind_name(action->kind),
                 state->attempts, why);
}

static void settle_open(struct step *step, size_t index)
{
    struct action_state *state = &step->states[index];
    const char *reason = "";

    switch (look(step, action_of(step, index), &reason)) {
    case OUTCOME_DONE:
        state->phase = PHASE_DONE;
        state->finished_s = step->now_s;
        state->reason = "";
        return;
    case OUTCOME_FAILED:
        if (state->phase == PHASE_STARTED) {
            state->phase = PHASE_FAILED;
            state->finished_s = step->now_s;
            state->reason = reason;
        }
        break;
    case OUTCOME_OPEN:
        break;
    }
    if (state->phase != PHASE_FAILED)
        return;
    if (step->now_s >= retry_at(state))
        begin_again(step, index, state->reason);
    else
        look_again(step, retry_at(state));
}

/* Whether an action after this one on its slot was begun. */
static bool is_left(const struct step *step, size_t index)
{
    assert(index < step->transition->actions.count);
    const struct transition_action *action = action_of(step, index);

    for (size_t i = index + 1; i < step->transition->actions.count; i++) {
        const struct transition_action *other = action_of(step, i);
        if (other->gpu == action->gpu && other->profile == action->profile &&
            other->start == action->start && step->states[i].phase != PHASE_PENDING)
            return true;
    }
    return false;
}

static void settle_done_start(struct step *step, size_t index)
{
    if (step->gpus[action_of(step, index)->gpu] < 0 || pod_of(step, action_of(step, index)) ||
        is_left(step, index))
        return;
    begin_again(step, index, "its pod is gone");
}

static void settle(struct step *step)
{
    for (size_t i = 0; i < step->transition->actions.count; i++) {
        if (is_under_way(&step->states[i]))
            settle_open(step, i);
        else if (step->states[i].phase == PHASE_DONE &&
                 action_of(step, i)->kind == ACTION_START)
            settle_done_start(step, i);
        step->done[i] = step->states[i].phase == PHASE_DONE;
        step->begun[i] = step->states[i].phase != PHASE_PENDING;
    }
}

/* ---- the floor -------------------------------------------------------------------- */

/* What the service loses of its capacity when the action's pod leaves the endpoints. */
static double loss_of(const struct step *step, const struct transition_action *action)
{
    const struct world_pod *pod = pod_of(step, action);

    return pod && pod_is_serving(pod) ? pod->rate_rps : 0;
}

static void find_room(struct step *step)
{
    for (size_t s = 0; s < step->transition->services.count; s++) {
        const struct transition_service *service = &step->transition->services.data[s];
        int at = pool_view_service(&step->view, service->name);
        double ready = at < 0 ? 0 : step->view.services.data[at].here_rps;
        step->room_rps[s] = ready - service->floor_rps;
    }
}

/* Takes the action's share of the room, or says that there is none. */
static bool take_room(struct step *step, const struct transition_action *action)
{
    assert(action->kind == ACTION_DRAIN && action->service >= 0);
    double loss = loss_of(step, action), *room = &step->room_rps[action->service];
    double floor_rps = step->transition->services.data[action->service].floor_rps;

    if (loss > 0 && loss > *room + TOLERANCE * fmax(floor_rps, loss))
        return false;
    *room -= loss;
    return true;
}

/* Drains that were begun go first; one that has become too much waits, and its share with it.
 */
static void hold_started_drains(struct step *step)
{
    for (size_t i = 0; i < step->transition->actions.count; i++) {
        const struct transition_action *action = action_of(step, i);
        if (action->kind != ACTION_DRAIN || step->states[i].phase != PHASE_STARTED)
            continue;
        if (take_room(step, action))
            continue;
        step->acts[i] = false;
        step->held = (int)i;
        /* It was begun and may be carried out yet, by an earlier act that is on its way: others
         * must not count on what it takes. */
        step->room_rps[action->service] -= loss_of(step, action);
    }
}

/* ---- beginning -------------------------------------------------------------------- */

static bool is_destructive(enum action_kind kind)
{
    return kind == ACTION_DRAIN || kind == ACTION_STOP || kind == ACTION_DELETE_INSTANCE;
}

static bool has_pods(const struct step *step, int gpu)
{
    return step->view.on.data[gpu].pods.count > 0;
}

static bool may_touch(const struct step *step, int gpu)
{
    assert(gpu >= 0);
    int most = step->view.pool->max_unavailable_gpus;

    return most <= 0 || step->touched[gpu] || step->touched_count < most;
}

static void touch(struct step *step, int gpu)
{
    if (gpu < 0)
        return;
    step->touched_count += !step->touched[gpu];
    step->touched[gpu] = true;
}

/* The pod is another pool's, whose floor only that pool knows: it is not drained here. */
static bool waits_for_other_pool(const struct step *step,
                                 const struct transition_action *action)
{
    const struct world_pod *pod = pod_of(step, action);

    if (action->kind != ACTION_DRAIN || !pod || pool_view_is_own(&step->view, pod))
        return false;
    const char *label = object_label(pod->meta.json, LABEL_POOL);
    for (size_t i = 0; i < step->view.world->pools.count; i++)
        if (strcmp(step->view.world->pools.data[i].meta.name, label) == 0)
            return true;
    return false;
}

static bool may_begin(struct step *step, size_t index)
{
    const struct transition_action *action = action_of(step, index);
    int gpu = step->gpus[action->gpu];
    bool changes_layout =
        action->kind == ACTION_CREATE_INSTANCE || action->kind == ACTION_DELETE_INSTANCE;

    if (gpu < 0 || !may_touch(step, gpu) || waits_for_other_pool(step, action))
        return false;
    if (is_destructive(action->kind) && !step->view.world->sources.fresh)
        return false;
    if (changes_layout && step->ops->needs_whole_gpu && has_pods(step, gpu))
        return false;
    if (action->kind == ACTION_START && !service_object(step, action))
        return false;
    if (action->kind != ACTION_DRAIN || take_room(step, action))
        return true;
    step->held = (int)index;
    return false;
}

static void begin_ready(struct step *step)
{
    size_t count = step->transition->actions.count;
    int *ready = xcalloc(count, sizeof *ready);

    count = transition_next(step->transition, step->done, step->begun, ready);
    for (size_t i = 0; i < count; i++) {
        struct action_state *state = &step->states[ready[i]];
        if (!may_begin(step, (size_t)ready[i]))
            continue;
        *state = (struct action_state){
            .phase = PHASE_STARTED, .attempts = 1, .started_s = step->now_s, .reason = ""};
        touch(step, step->gpus[action_of(step, (size_t)ready[i])->gpu]);
    }
    free(ready);
}

/* ---- the end ---------------------------------------------------------------------- */

static size_t count_phase(const struct step *step, enum action_phase phase)
{
    size_t count = 0;

    for (size_t i = 0; i < step->transition->actions.count; i++)
        count += step->states[i].phase == phase;
    return count;
}

static bool needs_lost_gpu(const struct step *step)
{
    for (size_t i = 0; i < step->transition->actions.count; i++)
        if (!step->done[i] && step->gpus[action_of(step, i)->gpu] < 0)
            return true;
    return false;
}

/* Even if every pod that exists were ready, the action that waits could not begin. */
static bool waits_in_vain(const struct step *step)
{
    if (step->held < 0 ||
        count_phase(step, PHASE_STARTED) + count_phase(step, PHASE_FAILED) > 0)
        return false;
    const struct transition_action *action = action_of(step, (size_t)step->held);
    const struct transition_service *service =
        &step->transition->services.data[action->service];
    int at = pool_view_service(&step->view, service->name);
    double existing = at < 0 ? 0 : step->view.services.data[at].existing_rps;

    return existing - loss_of(step, action) < service->floor_rps * (1 - TOLERANCE);
}

/* A drain of ours may be on its way to a pod that we still see serving. */
static bool has_unseen_drain(struct step *step)
{
    for (size_t i = 0; i < step->transition->actions.count; i++) {
        const struct action_state *state = &step->object->states.data[i];
        const struct transition_action *action = action_of(step, i);
        if (action->kind != ACTION_DRAIN || state->phase != PHASE_STARTED ||
            loss_of(step, action) <= 0)
            continue;
        if (step->view.world->sources.fresh && step->now_s >= state->started_s + LATE_SECONDS)
            continue;
        look_again(step, state->started_s + LATE_SECONDS);
        return true;
    }
    return false;
}

static void close_for(struct step *step, const char *text)
{
    if (!step->close)
        step->close_text = text;
    step->close = "Superseded";
}

static void decide_close(struct step *step)
{
    const struct gpu_pool *pool = step->view.pool;
    const char *plan = json_string_value(json_at(pool->meta.json, "status", "plan", NULL));
    char hash[INPUT_HASH_SIZE];
    int64_t again_s = INT64_MAX;

    if (step->object->meta.deleting)
        close_for(step, "it is being deleted");
    if (needs_lost_gpu(step))
        close_for(step, "a GPU that it needs is gone");
    const struct obstruction_query query = {step->transition, step->done, step->gpus,
                                            step->view.gpus};
    if (step->view.world->sources.fresh && transition_is_obstructed(&query))
        close_for(step, "an instance that it does not know is in the place of one to be made");
    if (plan && *plan && strcmp(plan, step->object->to) != 0)
        close_for(step, "another plan was taken");
    planning_hash(&step->view, hash);
    if (!pool->paused && planning_is_due(&step->view, hash, &again_s))
        close_for(step, "services, profiles or GPUs changed");
    else if (again_s != INT64_MAX)
        look_again(step, again_s);
}

/* ---- acting ----------------------------------------------------------------------- */

static struct actuator_slot slot_of(const struct step *step,
                                    const struct transition_action *action)
{
    assert(step->gpus[action->gpu] >= 0);
    return (struct actuator_slot){.gpu = &step->view.gpus->gpus.data[step->gpus[action->gpu]],
                                  .profile = action->profile,
                                  .start = action->start,
                                  .transition = step->object->meta.name};
}

/* What the plan says beyond the action; an instance for the way only has the service's own. */
static double max_wait_ms(const struct step *step, const struct transition_action *action,
                          const struct gpu_service *service)
{
    struct target_plan target;
    const struct partition_item *item = NULL;
    double wait_ms = service->max_wait_ms;

    if (target_plan_find(&step->view, &target)) {
        item = target_plan_item(&target, step->transition->gpus.data[action->gpu].id,
                                action->profile, action->start);
        if (item && !isnan(item->max_wait_ms))
            wait_ms = item->max_wait_ms;
        target_plan_done(&target);
    }
    return wait_ms;
}

static void make_pod(struct step *step, const struct transition_action *action,
                     const struct gpu_service *service, const struct world_instance *instance)
{
    assert(instance->phase == INSTANCE_READY);
    const struct world *world = step->view.world;
    struct pod_request request = {
        .service = service,
        .pool = step->view.pool->meta.name,
        .gpu = &step->view.gpus->gpus.data[step->gpus[action->gpu]],
        .profile = action->profile,
        .start = action->start,
        .transition = step->object->meta.name,
        .action = action->id,
        .batch = action->batch,
        .procs = action->procs,
        .max_wait_ms = max_wait_ms(step, action, service),
        .rate_rps = action->rate_rps,
        .epoch = world->sources.epoch,
    };
    json_t *pod = pod_object_make(&request);

    step->ops->bind(world, request.gpu, instance, pod);
    effect_ensure(step->effects, &KUBE_POD, pod)->reason = "start";
}

/* dra: the claim is in the namespace of the tenant before, where no pod of this one finds it.
 */
static bool is_out_of_reach(const struct world_instance *instance,
                            const struct gpu_service *service)
{
    return *instance->claim && service &&
           !name_is_in_namespace(instance->claim, service->meta.namespace);
}

static void act_start(struct step *step, size_t index)
{
    const struct transition_action *action = action_of(step, index);
    const struct gpu_service *service = service_object(step, action);
    const struct world_instance *instance = instance_of(step, action);
    const struct world_pod *pod = pod_of(step, action);

    if (pod && pod->ended)
        pod_stop(step->view.world, pod, step->effects);
    if (!instance || instance->phase != INSTANCE_READY) {
        vec_add(&step->creates, slot_of(step, action)); /* it was made, and has gone since */
    } else if (!pod && is_out_of_reach(instance, service)) {
        struct actuator_slot slot = slot_of(step, action);
        slot.service = service_name(step, action);
        vec_add(&step->creates, slot);
    } else if (!pod && service && step->states[index].phase == PHASE_STARTED)
        make_pod(step, action, service, instance);
}

static void act_drain(struct step *step, const struct transition_action *action)
{
    const struct world_pod *pod = pod_of(step, action);

    if (pod)
        pod_drain(step->view.world, pod, step->effects);
}

static void act(struct step *step, size_t index)
{
    const struct transition_action *action = action_of(step, index);
    const struct world_pod *pod = pod_of(step, action);

    switch (action->kind) {
    case ACTION_CREATE_INSTANCE:
        vec_add(&step->creates, slot_of(step, action));
        break;
    case ACTION_DELETE_INSTANCE:
        if (step->view.world->sources.fresh && !pod)
            vec_add(&step->deletes, slot_of(step, action));
        break;
    case ACTION_START:
        act_start(step, index);
        break;
    case ACTION_DRAIN:
        act_drain(step, action);
        break;
    case ACTION_STOP:
        if (pod && !pod_is_serving(pod))
            pod_stop(step->view.world, pod, step->effects);
        break;
    case ACTION_KIND_COUNT:
        break;
    }
}

struct act_order {
    int64_t started_s;
    size_t index;
};

/* The newest first, so that one that fails again and again does not keep others waiting. */
static int compare_acts(const void *a, const void *b)
{
    const struct act_order *left = a, *right = b;

    if (left->started_s != right->started_s)
        return left->started_s > right->started_s ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

static void act_all(struct step *step)
{
    size_t count = step->transition->actions.count, chosen = 0;
    struct act_order *order = xcalloc(count, sizeof *order);

    for (size_t i = 0; i < count; i++)
        if (step->acts[i] && is_under_way(&step->states[i]) &&
            step->gpus[action_of(step, i)->gpu] >= 0)
            order[chosen++] = (struct act_order){step->states[i].started_s, i};
    if (chosen > 0)
        qsort(order, chosen, sizeof *order, compare_acts);
    for (size_t i = 0; i < chosen; i++)
        act(step, order[i].index);
    if (step->creates.count + step->deletes.count > 0)
        step->ops->change(step->view.world, step->view.pool, step->creates.data,
                          step->creates.count, step->deletes.data, step->deletes.count,
                          step->effects);
    free(order);
}

/* ---- the status ------------------------------------------------------------------- */

static void find_stuck(struct step *step)
{
    int64_t timeout_s = step->view.pool->action_timeout_seconds;

    for (size_t i = 0; i < step->transition->actions.count; i++) {
        const struct action_state *state = &step->states[i];
        if (!is_under_way(state))
            continue;
        if (step->now_s >= state->started_s + timeout_s) {
            if (step->stuck < 0)
                step->stuck = (int)i;
        } else {
            look_again(step, state->started_s + timeout_s);
        }
    }
}

static bool is_status(const json_t *condition, const char *status)
{
    return strcmp(json_text(condition, "status"), status) == 0;
}

static void tell_stalled(struct step *step, struct status_edit *edit)
{
    bool was_stalled = is_status(status_edit_find(edit, "Stalled"), "True");

    if (step->stuck < 0 || step->close) {
        status_edit_condition(edit, "Stalled", false, "NotStalled", "no action is stuck");
        return;
    }
    const struct transition_action *action = action_of(step, (size_t)step->stuck);
    const struct transition_gpu *gpu = &step->transition->gpus.data[action->gpu];
    const struct action_state *state = &step->states[step->stuck];
    status_edit_condition(
        edit, "Stalled", true, "ActionTimeout",
        "%s %s of %s@%d on %s takes longer than %d s%s%s", action->id,
        action_kind_name(action->kind), gpu->board->profiles[action->profile].name,
        action->start, gpu->id, step->view.pool->action_timeout_seconds,
        state->reason && *state->reason ? ": " : "", state->reason ? state->reason : "");
    if (!was_stalled)
        effect_event(step->effects, &KIND_TRANSITION, step->object->meta.json, true, "Stalled",
                     "%s %s takes longer than %d s", action->id, action_kind_name(action->kind),
                     step->view.pool->action_timeout_seconds);
}

static void tell_floor(struct step *step, struct status_edit *edit)
{
    if (step->held < 0 || step->close) {
        status_edit_condition(edit, "FloorHeld", true, "FloorHeld",
                              "no action waits for capacity");
        return;
    }
    const struct transition_action *action = action_of(step, (size_t)step->held);
    const struct transition_service *service =
        &step->transition->services.data[action->service];
    if (!is_status(status_edit_find(edit, "FloorHeld"), "False"))
        effect_event(step->effects, &KIND_TRANSITION, step->object->meta.json, true,
                     "FloorWouldBreak", "%s drain of %s waits for capacity", action->id,
                     service->name);
    status_edit_condition(edit, "FloorHeld", false, "FloorWouldBreak",
                          "%s drain of %s waits: without it the service would have less than "
                          "%.9g rps ready",
                          action->id, service->name, service->floor_rps);
}

static void tell_progress(struct step *step, struct status_edit *edit, size_t done)
{
    size_t count = step->transition->actions.count;
    bool complete = done == count && !step->close;
    bool goes_on = !complete && !step->close;

    if (step->close)
        status_edit_condition(edit, "Complete", false, step->close, "%s", step->close_text);
    else if (complete)
        status_edit_condition(edit, "Complete", true, "Done", "every action is done");
    else
        status_edit_condition(edit, "Complete", false, "UnderWay", "actions are open");
    status_edit_condition(edit, "Progressing", goes_on && step->stuck < 0,
                          goes_on ? "UnderWay" : "Closed", "%s",
                          goes_on ? "actions are open" : "nothing is left to do");
    status_edit_condition(edit, "Reconciling", goes_on, goes_on ? "UnderWay" : "Closed", "%s",
                          goes_on ? "actions are open" : "nothing is left to do");
    status_edit_condition(edit, "Ready", complete, complete ? "Done" : "NotComplete", "%s",
                          complete ? "every action is done" : "not every action is done");
    if (complete)
        effect_event(step->effects, &KIND_TRANSITION, step->object->meta.json, false,
                     "TransitionComplete", "%zu actions are done", count);
    if (step->close)
        effect_event(step->effects, &KIND_TRANSITION, step->object->meta.json, false,
                     "Superseded", "closed after %zu of %zu actions: %s", done, count,
                     step->close_text);
}

/* At most one of each a round, and one Event of each a Transition, with a count. */
static void tell_steps(struct step *step, size_t begun, size_t done)
{
    const json_t *object = step->object->meta.json;
    size_t count = step->transition->actions.count, begun_before = 0, done_before = 0;

    for (size_t i = 0; i < count; i++) {
        begun_before += step->object->states.data[i].phase != PHASE_PENDING;
        done_before += step->object->states.data[i].phase == PHASE_DONE;
    }
    if (begun > begun_before)
        effect_event(step->effects, &KIND_TRANSITION, object, false, "StepStarted",
                     "%zu of %zu actions are begun", begun, count);
    if (done > done_before)
        effect_event(step->effects, &KIND_TRANSITION, object, false, "StepDone",
                     "%zu of %zu actions are done", done, count);
}

static void tell(struct step *step)
{
    struct status_edit edit;
    struct transition_object written = *step->object;
    size_t begun = step->transition->actions.count - count_phase(step, PHASE_PENDING);
    size_t done = count_phase(step, PHASE_DONE);

    written.states.data = step->states;
    status_edit_begin(&edit, step->effects, &KIND_TRANSITION, step->object->meta.json,
                      step->now_s);
    status_edit_set(&edit, "epoch", json_integer(step->view.world->sources.epoch));
    status_edit_set(&edit, "actions", action_states_to_json(&written));
    status_edit_set(&edit, "actionsTotal",
                    json_integer((json_int_t)step->transition->actions.count));
    status_edit_set(&edit, "actionsDone", json_integer((json_int_t)done));
    status_edit_condition(&edit, "Started", begun > 0, begun > 0 ? "Begun" : "NotBegun", "%s",
                          begun > 0 ? "an action was begun" : "no action was begun yet");
    tell_floor(step, &edit);
    tell_stalled(step, &edit);
    tell_progress(step, &edit, done);
    tell_steps(step, begun, done);
    status_edit_end(&edit);
}

/* ---- the whole -------------------------------------------------------------------- */

static void step_init(struct step *step, struct world *world, const struct gpu_pool *pool,
                      const struct actuator_gpus *gpus)
{
    const struct transition *transition = step->transition;
    size_t count = transition->actions.count;

    pool_view_init(&step->view, world, pool, gpus);
    step->ops = pool_actuator(world, pool);
    step->now_s = world->sources.now_s;
    step->held = step->stuck = -1;
    step->states = xcalloc(count + 1, sizeof *step->states);
    step->done = xcalloc(count + 1, sizeof(bool));
    step->begun = xcalloc(count + 1, sizeof(bool));
    step->acts = xcalloc(count + 1, sizeof(bool));
    step->gpus = xcalloc(transition->gpus.count + 1, sizeof(int));
    step->room_rps = xcalloc(transition->services.count + 1, sizeof(double));
    step->touched = xcalloc(gpus->gpus.count + 1, sizeof(bool));
    bool ours = step->object->epoch == world->sources.epoch;
    for (size_t i = 0; i < count; i++) {
        step->states[i] = step->object->states.data[i];
        step->acts[i] = ours && is_under_way(&step->states[i]);
    }
    for (size_t g = 0; g < transition->gpus.count; g++) {
        int at = pool_view_gpu(&step->view, transition->gpus.data[g].id);
        step->gpus[g] = at >= 0 && gpus->gpus.data[at].lost ? -1 : at;
    }
}

static void step_done(struct step *step)
{
    pool_view_done(&step->view);
    free(step->states);
    free(step->done);
    free(step->begun);
    free(step->acts);
    free(step->gpus);
    free(step->room_rps);
    free(step->touched);
    vec_done(&step->creates);
    vec_done(&step->deletes);
}

static void go_on(struct step *step)
{
    settle(step);
    for (size_t i = 0; i < step->transition->actions.count; i++)
        if (is_under_way(&step->states[i]))
            touch(step, step->gpus[action_of(step, i)->gpu]);
    find_room(step);
    hold_started_drains(step);
    decide_close(step);
    /* A drain that is on its way lowers capacity after all: the next Transition must see that
     * first. */
    bool waits = step->close && has_unseen_drain(step);
    if (!step->close && !step->view.pool->paused)
        begin_ready(step);
    if (!step->close && waits_in_vain(step))
        close_for(step, "it waits for capacity that is gone");
    if (waits)
        step->close = NULL;
    find_stuck(step);
    tell(step);
    if (!step->close)
        act_all(step);
}

void reconcile_transition(struct world *world, const struct gpu_pool *pool,
                          const struct actuator_gpus *gpus, struct transition_object *object,
                          struct effects *effects)
{
    CLEANUP(step_done)
    struct step step = {
        .object = object, .transition = &object->transition, .effects = effects};

    assert(object->states.count == object->transition.actions.count);
    if (object->epoch > world->sources.epoch) {
        effect_event(effects, &KIND_TRANSITION, object->meta.json, true, "Fenced",
                     "epoch %lld carries it on; this controller's is %lld", object->epoch,
                     world->sources.epoch);
        return;
    }
    step_init(&step, world, pool, gpus);
    go_on(&step);
}
