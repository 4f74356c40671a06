/* SPDX-License-Identifier: Apache-2.0
 *
 * Times: an action takes its seconds; with jitter, times a log-normal factor (sigma 0.25), and
 * one in twenty also a Pareto factor (shape 1.5, at most 100): a long tail, as pods that pull
 * an image or load a model have. Requests of a service are a Poisson stream of load × floor;
 * they queue before its ready capacity as a whole, and are late when the wait on arrival
 * exceeds the largest latency_ms of the service in the plans.
 */
#include "transition/simulate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/rng.h"

enum { RETRIES_MAX = 3, LOSSES_MAX = 8, STEPS = 20000 };
static const double STEP_MIN_SECONDS = 0.01, LATENCY_DEFAULT_SECONDS = 0.1;
static const double SIGMA = 0.25, TAIL_SHARE = 0.05, TAIL_SHAPE = 1.5, TAIL_MAX = 100;

/* A service as requests see it; lives through all transitions of a run. */
struct flow {
    double demand_rps, latency_seconds, backlog;
    double capacity_rps;
};

struct running {
    int action, attempts;
    double ends_seconds;
};

struct borrowed {
    double first_seconds, last_seconds;
};

/* One transition being played. */
struct player {
    const struct simulate_options *options;
    struct simulation *simulation;
    const struct transition *transition;
    struct rng rng;
    double now_seconds, step_seconds, lost_at_seconds;
    VEC(struct flow) flows; /* one a service of the first transition */
    struct map borrowed;    /* id → position in borrowed_times */
    VEC(struct borrowed) borrowed_times;
    VEC(struct running) running;
    bool *done, *begun;
    bool *effective;  /* drains that may begin: their capacity is gone */
    const char *lost; /* the GPU that was just lost, NULL: none */
};

void simulation_done(struct simulation *simulation)
{
    for (size_t i = 0; i < simulation->losses.count; i++)
        recovery_done(&simulation->losses.data[i].recovery);
    vec_done(&simulation->losses);
    vec_done(&simulation->services);
    if (simulation->replanned)
        transition_done(&simulation->last);
    arena_done(&simulation->arena);
}

/* Index of the service in the run, by name: later transitions may order them otherwise. */
static int flow_of(const struct player *player, int service)
{
    assert(service >= 0 && (size_t)service < player->transition->services.count);
    const char *name = player->transition->services.data[service].name;
    size_t count = player->simulation->services.count;
    for (size_t k = 0; k < count; k++) {
        size_t at = ((size_t)service + k) % count;
        if (strcmp(player->simulation->services.data[at].name, name) == 0)
            return (int)at;
    }
    return -1;
}

static double latency_of(const struct plan *plan, const char *name)
{
    double latency_ms = 0;
    int service = plan_find_service(plan, name);
    for (size_t g = 0; service >= 0 && g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service == service && !isnan(instance->latency_ms))
                latency_ms = fmax(latency_ms, instance->latency_ms);
        }
    return latency_ms / 1000;
}

static void add_services(struct player *player)
{
    const struct transition *transition = player->transition;
    struct simulation *simulation = player->simulation;
    for (size_t s = 0; s < transition->services.count; s++) {
        const struct transition_service *service = &transition->services.data[s];
        double latency = fmax(latency_of(&transition->from, service->name),
                              latency_of(&transition->to, service->name));
        struct simulated_service simulated = {
            .name = arena_strdup(&simulation->arena, service->name),
            .floor_rps = service->floor_rps,
            .minimum_rps = INFINITY};
        struct flow flow = {.demand_rps = service->floor_rps * player->options->load,
                            .latency_seconds = latency > 0 ? latency : LATENCY_DEFAULT_SECONDS};
        vec_add(&simulation->services, simulated);
        vec_add(&player->flows, flow);
    }
}

/* One service from now on for `seconds` at a constant capacity. */
static void let_flow(struct player *player, size_t index, double seconds)
{
    assert(index < player->flows.count && player->step_seconds > 0);
    struct flow *flow = &player->flows.data[index];
    struct simulated_service *service = &player->simulation->services.data[index];
    /* In steps, so that a backlog that grows is seen to make later requests late. */
    while (seconds > 0) {
        double step = fmin(seconds, player->step_seconds);
        double served = flow->capacity_rps * step;
        uint64_t arrived = rng_poisson(&player->rng, flow->demand_rps * step);
        bool late = flow->capacity_rps <= 0 ||
                    flow->backlog / flow->capacity_rps > flow->latency_seconds;
        service->requests += arrived;
        service->late += late ? arrived : 0;
        flow->backlog = fmax(flow->backlog + (double)arrived - served, 0);
        seconds -= step;
    }
}

static void advance(struct player *player, double to_seconds)
{
    double seconds = fmax(to_seconds - player->now_seconds, 0);
    for (size_t s = 0; s < player->flows.count; s++) {
        struct simulated_service *service = &player->simulation->services.data[s];
        double capacity = player->flows.data[s].capacity_rps;
        service->minimum_rps = fmin(service->minimum_rps, fmax(capacity, 0));
        if (capacity < service->floor_rps - 1e-9 * fmax(service->floor_rps, 1))
            service->below_seconds += seconds;
        if (player->flows.data[s].demand_rps > 0)
            let_flow(player, s, seconds);
    }
    player->now_seconds = fmax(player->now_seconds, to_seconds);
}

static double draw_seconds(struct player *player, double seconds)
{
    assert(seconds >= 0);
    if (!player->options->jitter)
        return seconds;
    double factor = rng_lognormal(&player->rng, 0, SIGMA);
    if (rng_unit(&player->rng) < TAIL_SHARE)
        factor *= fmin(pow(1 - rng_unit(&player->rng), -1 / TAIL_SHAPE), TAIL_MAX);
    return seconds * factor;
}

static double nominal_seconds(const struct player *player,
                              const struct transition_action *action)
{
    const char *service =
        action->service < 0 ? NULL : player->transition->services.data[action->service].name;
    return player->options->times
               ? action_times_seconds(player->options->times, action->kind, service)
               : action->seconds;
}

static void change_capacity(struct player *player, const struct transition_action *action,
                            double sign)
{
    assert(action->service >= 0 && (sign == 1 || sign == -1));
    int flow = flow_of(player, action->service);
    if (flow >= 0)
        player->flows.data[flow].capacity_rps += sign * action->rate_rps;
}

static void note_borrowed(struct player *player, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < player->transition->gpus.count);
    const char *id = player->transition->gpus.data[gpu].id;
    ptrdiff_t at = map_find(&player->borrowed, id);
    if (!text_starts_with(id, "spare"))
        return;
    if (at < 0) {
        struct borrowed times = {player->now_seconds, player->now_seconds};
        at = (ptrdiff_t)map_put(&player->borrowed, id, NULL);
        vec_add(&player->borrowed_times, times);
    }
    player->borrowed_times.data[at].last_seconds = player->now_seconds;
}

static void begin(struct player *player, int index, int attempts)
{
    assert(attempts >= 0);
    assert(!player->done[index]);
    const struct transition_action *action = &player->transition->actions.data[index];
    struct running running = {index, attempts,
                              player->now_seconds +
                                  draw_seconds(player, nominal_seconds(player, action))};
    player->begun[index] = true;
    note_borrowed(player, action->gpu);
    if (action->kind == ACTION_DRAIN && !player->effective[index]) {
        player->effective[index] = true;
        change_capacity(player, action, -1);
    }
    vec_add(&player->running, running);
}

static void begin_ready(struct player *player, int *ready)
{
    size_t count = transition_next(player->transition, player->done, player->begun, ready);
    for (size_t i = 0; i < count; i++)
        begin(player, ready[i], 0);
}

static size_t next_to_end(const struct player *player)
{
    assert(player->running.count > 0);
    size_t next = 0;
    for (size_t i = 1; i < player->running.count; i++)
        if (player->running.data[i].ends_seconds < player->running.data[next].ends_seconds)
            next = i;
    return next;
}

static bool is_lost(struct player *player, int attempts)
{
    assert(attempts >= 0);
    return player->simulation->losses.count < LOSSES_MAX && !player->lost &&
           (attempts >= RETRIES_MAX || rng_unit(&player->rng) < player->options->lost_share);
}

/* An action's end: success, another try, or the loss of its GPU. */
static void end(struct player *player, struct running ended)
{
    assert(player->begun[ended.action]);
    const struct transition_action *action = &player->transition->actions.data[ended.action];
    const char *gpu = player->transition->gpus.data[action->gpu].id;
    note_borrowed(player, action->gpu);
    if (player->lost && strcmp(player->lost, gpu) == 0)
        return; /* it went with its GPU */
    if (player->options->fail > 0 && rng_unit(&player->rng) < player->options->fail) {
        if (is_lost(player, ended.attempts)) {
            player->lost = gpu;
            player->lost_at_seconds = player->now_seconds;
        } else {
            player->simulation->failures++;
            begin(player, ended.action, ended.attempts + 1);
        }
        return;
    }
    player->done[ended.action] = true;
    player->simulation->actions[action->kind]++;
    if (action->kind == ACTION_START)
        change_capacity(player, action, 1);
}

/* Ready capacity of the lost GPU goes at once. */
static void drop_lost(struct player *player)
{
    assert(player->lost);
    const struct transition *transition = player->transition;
    struct plan state;
    transition_state(transition, player->done, &state);
    int gpu = plan_find_gpu(&state, player->lost);
    for (size_t i = 0; gpu >= 0 && i < state.gpus.data[gpu].instances.count; i++) {
        const struct plan_instance *instance = &state.gpus.data[gpu].instances.data[i];
        bool drains = false;
        for (size_t a = 0; a < transition->actions.count; a++) {
            const struct transition_action *action = &transition->actions.data[a];
            drains |= action->kind == ACTION_DRAIN && player->effective[a] &&
                      !player->done[a] &&
                      strcmp(transition->gpus.data[action->gpu].id, player->lost) == 0 &&
                      action->profile == instance->profile && action->start == instance->start;
        }
        int flow = instance->service < 0 ? -1 : flow_of(player, instance->service);
        if (flow >= 0 && !drains)
            player->flows.data[flow].capacity_rps -= instance->rate_rps;
    }
    plan_done(&state);
}

static void lose_on_time(struct player *player)
{
    const struct simulate_options *options = player->options;
    bool due = options->lose_gpu && player->simulation->losses.count == 0 && !player->lost &&
               player->now_seconds >= options->lose_at_seconds;
    if (!due)
        return;
    player->lost = options->lose_gpu;
    player->lost_at_seconds = player->now_seconds;
}

/* Plays until all is done or a GPU is lost; then lets what runs elsewhere come to its end. */
static void play(struct player *player)
{
    assert(player->running.count == 0);
    int *ready = xcalloc(player->transition->actions.count, sizeof *ready);
    bool was_lost = false;
    lose_on_time(player);
    if (!player->lost)
        begin_ready(player, ready);
    while (player->running.count > 0) {
        if (player->lost && !was_lost) {
            was_lost = true;
            drop_lost(player);
        }
        size_t next = next_to_end(player);
        struct running ended = player->running.data[next];
        const struct simulate_options *options = player->options;
        bool waits =
            options->lose_gpu && player->simulation->losses.count == 0 && !player->lost;
        if (waits && options->lose_at_seconds < ended.ends_seconds) {
            advance(player, options->lose_at_seconds);
            lose_on_time(player);
            continue;
        }
        player->running.data[next] = player->running.data[--player->running.count];
        advance(player, ended.ends_seconds);
        end(player, ended);
        if (!player->lost)
            begin_ready(player, ready);
    }
    if (player->lost && !was_lost)
        drop_lost(player);
    free(ready);
}

static void load_capacity(struct player *player)
{
    const struct plan *from = &player->transition->from;
    for (size_t g = 0; g < from->gpus.count; g++)
        for (size_t i = 0; i < from->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &from->gpus.data[g].instances.data[i];
            if (instance->service < 0)
                continue;
            int service = transition_find_service(player->transition,
                                                  from->services.data[instance->service].name);
            player->flows.data[flow_of(player, service)].capacity_rps += instance->rate_rps;
        }
}

static void set_up(struct player *player, const struct transition *transition)
{
    size_t actions = transition->actions.count;
    player->transition = transition;
    free(player->done);
    free(player->begun);
    free(player->effective);
    player->done = xcalloc(actions, sizeof(bool));
    player->begun = xcalloc(actions, sizeof(bool));
    player->effective = xcalloc(actions, sizeof(bool));
    player->lost = NULL;
}

/* The way on after a loss. What is planned anew begins with the capacity that is left. */
static int go_on(struct player *player, struct error *err)
{
    assert(player->lost);
    struct simulation *simulation = player->simulation;
    struct transition_options options = {.times = player->options->times,
                                         .seed = player->options->seed};
    struct simulated_loss loss = {.gpu = arena_strdup(&simulation->arena, player->lost),
                                  .at_seconds = player->lost_at_seconds};
    struct transition next;
    int rc = transition_recover(player->transition, player->done, player->lost, &options,
                                &loss.recovery, &next, err);
    if (rc < 0)
        return rc;
    vec_add(&simulation->losses, loss);
    if (simulation->replanned)
        transition_done(&simulation->last);
    simulation->last = next;
    simulation->replanned = true;
    set_up(player, &simulation->last);
    return 0;
}

static void player_done(struct player *player)
{
    free(player->done);
    free(player->begun);
    free(player->effective);
    vec_done(&player->flows);
    vec_done(&player->running);
    vec_done(&player->borrowed_times);
    map_done(&player->borrowed);
}

int transition_simulate(const struct transition *transition,
                        const struct simulate_options *options,
                        struct simulation *ret_simulation, struct error *err)
{
    assert(transition && ret_simulation);
    struct simulation simulation = {0};
    struct player player = {.options = options,
                            .simulation = &simulation,
                            .rng = rng_seed(options->seed),
                            .step_seconds =
                                fmax(STEP_MIN_SECONDS, transition->makespan_seconds / STEPS)};
    int rc = 0;
    assert(options->fail >= 0 && options->fail <= 0.9 && options->load >= 0);
    set_up(&player, transition);
    add_services(&player);
    load_capacity(&player);
    do {
        play(&player);
        if (player.lost)
            rc = go_on(&player, err);
        else
            break;
    } while (rc == 0);
    advance(&player, player.now_seconds);
    simulation.makespan_seconds = player.now_seconds;
    for (size_t i = 0; i < player.borrowed_times.count; i++)
        simulation.extra_gpu_seconds += player.borrowed_times.data[i].last_seconds -
                                        player.borrowed_times.data[i].first_seconds;
    player_done(&player);
    if (rc < 0)
        simulation_done(&simulation);
    else
        *ret_simulation = simulation;
    return rc;
}
