/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of transitions share: plans from one-line texts and at random, and the
 * slow truth: every reachable state, one by one.
 */
#ifndef TRANCHE_TESTS_TRANSITION_SUPPORT_H
#define TRANCHE_TESTS_TRANSITION_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "transition/plan.h"
#include "transition/verify.h"

/* What random plans are made of. */
struct random_case {
    int gpus_min, gpus_max;
    int services; /* a, b … */
    double tight; /* required / provided is at least this */
    double idle;  /* share of instances that serve nothing */
    bool partial; /* layouts may have holes */
};

static const char *const random_boards[] = {"a100-40gb", "a30-24gb", "h100-80gb-sxm5",
                                            "h200-141gb"};

/* Requests per second of a service on a profile: fixed by name, board and size. */
static inline double support_rate(const struct mig_board *board, int profile, int service)
{
    double base = 100 + 37 * service;
    double slices = board->profiles[profile].compute_slices;
    return floor(base * pow(slices, 0.8 + 0.05 * (service % 5)) * 10) / 10;
}

static inline void support_add_services(struct plan *plan, int count)
{
    for (int s = 0; s < count; s++) {
        struct plan_service service = {.name = count <= 26
                                                   ? arena_printf(&plan->arena, "%c", 'a' + s)
                                                   : arena_printf(&plan->arena, "s%d", s)};
        vec_add(&plan->services, service);
    }
}

static inline void support_sum(struct plan *plan)
{
    for (size_t s = 0; s < plan->services.count; s++)
        plan->services.data[s].provided_rps = 0;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service >= 0)
                plan->services.data[instance->service].provided_rps += instance->rate_rps;
        }
}

static inline void support_random_gpu(struct rng *rng, const struct random_case *given,
                                      struct plan_gpu *gpu)
{
    struct mig_layout layout = {0};
    const struct mig_board *board = gpu->board;
    for (int attempt = 0; attempt < (given->partial ? 8 : 40); attempt++) {
        struct mig_instance instance = {(int8_t)rng_below(rng, (uint64_t)board->profile_count),
                                        (int8_t)rng_below(rng, (uint64_t)board->memory_units)};
        const struct mig_profile *profile = &board->profiles[instance.profile];
        if (profile->group != MIG_GROUP_BASE && rng_below(rng, 8) > 0)
            continue;
        if ((profile->starts >> instance.start & 1) &&
            mig_layout_can_add(board, &layout, instance))
            mig_layout_add(board, &layout, instance);
    }
    for (int i = 0; i < layout.count; i++) {
        struct plan_instance instance = {.profile = layout.instances[i].profile,
                                         .start = layout.instances[i].start,
                                         .service =
                                             (int)rng_below(rng, (uint64_t)given->services),
                                         .batch = 8,
                                         .procs = 1,
                                         .max_wait_ms = NAN,
                                         .latency_ms = NAN};
        instance.rate_rps = support_rate(board, instance.profile, instance.service);
        if (rng_unit(rng) < given->idle)
            instance = (struct plan_instance){.profile = instance.profile,
                                              .start = instance.start,
                                              .service = -1,
                                              .max_wait_ms = NAN,
                                              .latency_ms = NAN};
        vec_add(&gpu->instances, instance);
    }
}

/* boards: how many of random_boards are mixed. */
static inline void support_random_plan(struct rng *rng, const struct random_case *given,
                                       const char *const *boards, int board_count,
                                       struct plan *ret_plan)
{
    plan_init(ret_plan);
    support_add_services(ret_plan, given->services);
    int gpus = given->gpus_min +
               (int)rng_below(rng, (uint64_t)(given->gpus_max - given->gpus_min + 1));
    for (int g = 0; g < gpus; g++) {
        struct plan_gpu *gpu = vec_push(&ret_plan->gpus);
        gpu->id = arena_printf(&ret_plan->arena, "g%d", g);
        gpu->node = arena_printf(&ret_plan->arena, "n%d", g / 8);
        gpu->board = mig_board_find(boards[rng_below(rng, (uint64_t)board_count)]);
        support_random_gpu(rng, given, gpu);
    }
    support_sum(ret_plan);
    for (size_t s = 0; s < ret_plan->services.count; s++)
        ret_plan->services.data[s].required_rps =
            ret_plan->services.data[s].provided_rps * rng_uniform(rng, given->tight, 1);
}

/* How many cases to run: what the variable (TRANCHE_CASES, TRANCHE_PAIRS) says, else as many.
 */
static inline int support_count(const char *variable, int otherwise)
{
    const char *wanted = getenv(variable);
    return wanted ? atoi(wanted) : otherwise;
}

/* The same instances on GPUs in another order, services traded among equal instances: all
 * that each service needs before it needs after. */
static inline void support_shuffle(struct rng *rng, const struct plan *from,
                                   struct plan *ret_plan)
{
    transition_copy_plan(from, ret_plan);
    for (size_t i = ret_plan->gpus.count; i > 1; i--) {
        struct plan_gpu *a = &ret_plan->gpus.data[i - 1];
        struct plan_gpu *b = &ret_plan->gpus.data[rng_below(rng, i)];
        struct plan_gpu kept = *a;
        if (a->board != b->board)
            continue;
        memcpy(&a->instances, &b->instances, sizeof a->instances);
        memcpy(&b->instances, &kept.instances, sizeof b->instances);
    }
    for (int trade = 0; trade < 8 * (int)ret_plan->gpus.count; trade++) {
        struct plan_gpu *a = &ret_plan->gpus.data[rng_below(rng, ret_plan->gpus.count)];
        struct plan_gpu *b = &ret_plan->gpus.data[rng_below(rng, ret_plan->gpus.count)];
        if (a->board != b->board || a->instances.count == 0 || b->instances.count == 0)
            continue;
        struct plan_instance *x = &a->instances.data[rng_below(rng, a->instances.count)];
        struct plan_instance *y = &b->instances.data[rng_below(rng, b->instances.count)];
        if (x->profile != y->profile)
            continue;
        struct plan_instance kept = *x;
        int start = x->start;
        *x = *y;
        x->start = start;
        start = y->start;
        *y = kept;
        y->start = start;
    }
}

/* A plan from text: "a100-40gb: 3g@4=a 1g@0=b 1g@1=- / a100-40gb: 7g@0=a", each service
 * requiring `tight` of what it gets. */
static inline void support_plan(const char *text, double tight, struct plan *ret_plan)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *gpu_state = NULL;
    plan_init(ret_plan);
    for (char *part = strtok_r(copy, "/", &gpu_state); part;
         part = strtok_r(NULL, "/", &gpu_state)) {
        char *state = NULL, *word = strtok_r(part, " :", &state);
        struct plan_gpu *gpu = vec_push(&ret_plan->gpus);
        gpu->id = arena_printf(&ret_plan->arena, "g%zu", ret_plan->gpus.count - 1);
        gpu->node = "";
        gpu->board = mig_board_find(word);
        assert_non_null(gpu->board);
        while ((word = strtok_r(NULL, " :", &state))) {
            struct plan_instance instance = {
                .service = -1, .max_wait_ms = NAN, .latency_ms = NAN};
            char *at = strchr(word, '@'), *equals = strchr(word, '=');
            if (!at || !equals)
                continue;
            *at = *equals = '\0';
            instance.profile = mig_profile_find(gpu->board, word);
            instance.start = atoi(at + 1);
            assert_true(instance.profile >= 0);
            if (equals[1] != '-') {
                char name[2] = {equals[1], '\0'};
                instance.service = plan_find_service(ret_plan, name);
                if (instance.service < 0) {
                    struct plan_service service = {.name =
                                                       arena_strdup(&ret_plan->arena, name)};
                    instance.service = (int)ret_plan->services.count;
                    vec_add(&ret_plan->services, service);
                }
                instance.batch = 8;
                instance.procs = 1;
                instance.rate_rps = support_rate(gpu->board, instance.profile, name[0] - 'a');
            }
            vec_add(&gpu->instances, instance);
        }
    }
    support_sum(ret_plan);
    for (size_t s = 0; s < ret_plan->services.count; s++)
        ret_plan->services.data[s].required_rps =
            ret_plan->services.data[s].provided_rps * tight;
}

/* The slow truth: the actions simulated on plain lists, for every down-set. */
enum { TRUTH_ACTIONS_MAX = 64, TRUTH_SLOTS_MAX = 512, TRUTH_STATES_MAX = 60000 };

struct truth_slot {
    int gpu; /* of the transition */
    int profile, start;
    bool there, serving;
    int service; /* of the transition */
    int batch, procs;
    double rate_rps;
};

struct truth {
    const struct transition *transition;
    int slot_count;
    struct truth_slot slots[TRUTH_SLOTS_MAX];
    double minimum[64]; /* least capacity of each service */
    bool illegal;       /* a layout that breaks a rule was reached */
    bool senseless;     /* an action met a state that it does not fit */
    bool wrong_end;
    long states;
};

static inline struct truth_slot *truth_find(struct truth_slot *slots, int *count, int gpu,
                                            int profile, int start)
{
    for (int i = 0; i < *count; i++)
        if (slots[i].gpu == gpu && slots[i].profile == profile && slots[i].start == start)
            return &slots[i];
    assert_true(*count < TRUTH_SLOTS_MAX);
    slots[*count] =
        (struct truth_slot){.gpu = gpu, .profile = profile, .start = start, .service = -1};
    return &slots[(*count)++];
}

static inline int truth_service(const struct transition *transition, const struct plan *plan,
                                int service)
{
    return service < 0 ? -1
                       : transition_find_service(transition, plan->services.data[service].name);
}

static inline void truth_begin(struct truth *truth)
{
    const struct transition *transition = truth->transition;
    for (size_t g = 0; g < transition->from.gpus.count; g++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[g];
        int here = transition_find_gpu(transition, gpu->id);
        /* Untouched GPUs get numbers of their own, so that their capacity counts. */
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            struct truth_slot *slot =
                truth_find(truth->slots, &truth->slot_count, here < 0 ? 1000 + (int)g : here,
                           instance->profile, instance->start);
            slot->there = true;
            slot->service = truth_service(transition, &transition->from, instance->service);
            slot->serving = instance->service >= 0;
            slot->batch = instance->batch;
            slot->procs = instance->procs;
            slot->rate_rps = instance->rate_rps;
        }
    }
}

static inline void truth_layouts(struct truth *truth, const struct truth_slot *slots, int count)
{
    const struct transition *transition = truth->transition;
    for (int g = 0; g < (int)transition->gpus.count; g++) {
        struct mig_layout layout = {0};
        for (int i = 0; i < count; i++) {
            if (slots[i].gpu != g || !slots[i].there)
                continue;
            if (layout.count == MIG_INSTANCES_MAX) {
                truth->illegal = true;
                return;
            }
            layout.instances[layout.count++] =
                (struct mig_instance){(int8_t)slots[i].profile, (int8_t)slots[i].start};
        }
        mig_layout_sort(&layout);
        if (mig_layout_check(transition->gpus.data[g].board, &layout, NULL) < 0)
            truth->illegal = true;
    }
}

/* One state: all of `done` applied in order, then the effects of what may begin. */
static inline void truth_state(struct truth *truth, uint64_t done)
{
    const struct transition *transition = truth->transition;
    static struct truth_slot slots[TRUTH_SLOTS_MAX];
    int count = truth->slot_count;
    memcpy(slots, truth->slots, sizeof slots);
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        struct truth_slot *slot =
            truth_find(slots, &count, action->gpu, action->profile, action->start);
        bool is_done = done >> i & 1, may_begin = true;
        for (size_t j = 0; j < action->after.count; j++)
            may_begin &= done >> action->after.data[j] & 1;
        if (action->kind == ACTION_CREATE_INSTANCE && may_begin) {
            truth->senseless |= slot->there;
            slot->there = true;
        }
        if (action->kind == ACTION_DELETE_INSTANCE && is_done) {
            truth->senseless |= !slot->there || slot->serving;
            slot->there = false;
        }
        if (action->kind == ACTION_START && is_done) {
            truth->senseless |= !slot->there || slot->serving;
            slot->serving = true;
            slot->service = action->service;
            slot->batch = action->batch;
            slot->procs = action->procs;
            slot->rate_rps = action->rate_rps;
        }
        if (action->kind == ACTION_DRAIN && may_begin) {
            truth->senseless |= !slot->serving || slot->service != action->service ||
                                slot->rate_rps != action->rate_rps;
            slot->serving = false;
        }
    }
    double capacity[64] = {0};
    for (int i = 0; i < count; i++)
        if (slots[i].serving)
            capacity[slots[i].service] += slots[i].rate_rps;
    for (size_t s = 0; s < transition->services.count; s++)
        truth->minimum[s] = fmin(truth->minimum[s], capacity[s]);
    truth_layouts(truth, slots, count);
}

static inline void truth_walk(struct truth *truth, size_t next, uint64_t done)
{
    const struct transition *transition = truth->transition;
    if (truth->states > TRUTH_STATES_MAX)
        return;
    if (next == transition->actions.count) {
        truth->states++;
        truth_state(truth, done);
        return;
    }
    const struct transition_action *action = &transition->actions.data[next];
    bool may = true;
    for (size_t j = 0; j < action->after.count; j++)
        may &= done >> action->after.data[j] & 1;
    truth_walk(truth, next + 1, done);
    if (may)
        truth_walk(truth, next + 1, done | UINT64_C(1) << next);
}

/* Every reachable state; false when there are too many. */
static inline bool truth_find_all(const struct transition *transition, struct truth *truth)
{
    memset(truth, 0, sizeof *truth);
    truth->transition = transition;
    if (transition->actions.count > TRUTH_ACTIONS_MAX)
        return false;
    for (size_t s = 0; s < 64; s++)
        truth->minimum[s] = INFINITY;
    truth_begin(truth);
    truth_walk(truth, 0, 0);
    return truth->states <= TRUTH_STATES_MAX;
}

/* What no order can beat, given who is whom: something that comes takes a creation and a
 * start, after what is in its place was drained, stopped and deleted; and a drain that its
 * service cannot afford at the beginning waits for some start, which itself takes a creation
 * or a drain and a stop before, unless an idle instance is there. */
struct bound {
    const struct transition *transition;
    const double *seconds; /* by kind of action */
    double slack[64];
    double first_start;
};

static inline double bound_gone(const struct bound *bound, const struct plan_instance *before)
{
    int service = truth_service(bound->transition, &bound->transition->from, before->service);
    if (service < 0)
        return 0;
    double begin = before->rate_rps > bound->slack[service] + 1e-6 ? bound->first_start : 0;
    return begin + bound->seconds[ACTION_DRAIN] + bound->seconds[ACTION_STOP];
}

static inline bool bound_stays(const struct bound *bound, const struct plan_instance *a,
                               const struct plan_instance *b)
{
    const struct transition *transition = bound->transition;
    return a->profile == b->profile && a->start == b->start && a->batch == b->batch &&
           a->procs == b->procs && fabs(a->rate_rps - b->rate_rps) < 1e-9 &&
           truth_service(transition, &transition->from, a->service) ==
               truth_service(transition, &transition->to, b->service);
}

static inline double bound_gpu(const struct bound *bound, const struct plan_gpu *from,
                               const struct plan_gpu *to)
{
    const double *seconds = bound->seconds;
    double longest = 0;
    for (size_t i = 0; from && i < from->instances.count; i++) {
        const struct plan_instance *before = &from->instances.data[i];
        bool kept = false;
        for (size_t j = 0; to && j < to->instances.count; j++)
            kept |= to->instances.data[j].profile == before->profile &&
                    to->instances.data[j].start == before->start;
        if (!kept)
            longest =
                fmax(longest, bound_gone(bound, before) + seconds[ACTION_DELETE_INSTANCE]);
    }
    for (size_t j = 0; to && j < to->instances.count; j++) {
        const struct plan_instance *after = &to->instances.data[j];
        struct mig_instance here = {(int8_t)after->profile, (int8_t)after->start};
        double free = 0, create = seconds[ACTION_CREATE_INSTANCE];
        double start = after->service < 0 ? 0 : seconds[ACTION_START];
        bool stays = false;
        for (size_t i = 0; from && i < from->instances.count; i++) {
            const struct plan_instance *before = &from->instances.data[i];
            struct mig_instance there = {(int8_t)before->profile, (int8_t)before->start};
            stays |= bound_stays(bound, before, after);
            if (!(mig_instance_span(to->board, here) & mig_instance_span(to->board, there)))
                continue;
            bool same = here.profile == there.profile && here.start == there.start;
            create = same ? 0 : create;
            free = fmax(free, bound_gone(bound, before) +
                                  (same ? 0 : seconds[ACTION_DELETE_INSTANCE]));
        }
        if (!stays)
            longest = fmax(longest, free + create + start);
    }
    return longest;
}

static inline double support_makespan_bound(const struct transition *transition)
{
    struct bound bound = {.transition = transition,
                          .seconds = action_times_find("measured")->seconds};
    const double *seconds = bound.seconds;
    double longest = 0;
    bool idle = false;
    for (size_t s = 0; s < transition->services.count; s++)
        bound.slack[s] = -transition->services.data[s].floor_rps;
    for (size_t g = 0; g < transition->from.gpus.count; g++)
        for (size_t i = 0; i < transition->from.gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance =
                &transition->from.gpus.data[g].instances.data[i];
            int service = truth_service(transition, &transition->from, instance->service);
            idle |= service < 0;
            if (service >= 0)
                bound.slack[service] += instance->rate_rps;
        }
    bound.first_start =
        seconds[ACTION_START] + (idle ? 0
                                      : fmin(seconds[ACTION_CREATE_INSTANCE],
                                             seconds[ACTION_DRAIN] + seconds[ACTION_STOP]));
    for (size_t g = 0; g < transition->from.gpus.count; g++) {
        const struct plan_gpu *from = &transition->from.gpus.data[g], *to = NULL;
        for (size_t i = 0; i < transition->match.count; i++)
            if (strcmp(transition->match.data[i].id, from->id) == 0)
                to =
                    &transition->to.gpus
                         .data[plan_find_gpu(&transition->to, transition->match.data[i].to_id)];
        longest = fmax(longest, bound_gpu(&bound, from, to));
    }
    for (size_t i = 0; i < transition->match.count; i++)
        if (plan_find_gpu(&transition->from, transition->match.data[i].id) < 0)
            longest = fmax(longest,
                           bound_gpu(&bound, NULL,
                                     &transition->to.gpus.data[plan_find_gpu(
                                         &transition->to, transition->match.data[i].to_id)]));
    return longest;
}

/* Whether the report has a violation of this rule. */
static inline bool has_rule(const struct transition_report *report, const char *rule)
{
    for (size_t i = 0; i < report->violations.count; i++)
        if (strcmp(report->violations.data[i].rule, rule) == 0)
            return true;
    return false;
}

static inline void print_violations(const struct transition_report *report)
{
    for (size_t i = 0; i < report->violations.count; i++)
        print_message("# %s: %s: %s\n", report->violations.data[i].rule,
                      report->violations.data[i].place, report->violations.data[i].text);
}

#endif
