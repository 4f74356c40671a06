/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification, slot by slot: the actions on one slot are a chain in the order, each makes
 * sense after the one before, and what stands there in the end is what `to` wants.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "transition/reach.h"
#include "transition/verify_internal.h"

/* All that concerns one slot: an action, or (action -1) content of from or to. */
struct mention {
    int gpu, start, profile;
    int action; /* -1: none */
    const struct plan_instance *from, *to;
};

struct walk {
    struct verifier *verifier;
    struct slot_content content;
    int last; /* action on this slot so far, -1: none */
    int life, period;
    VEC(struct reach_query) queries;
};

static int compare_mentions(const void *a, const void *b)
{
    const struct mention *left = a, *right = b;
    if (left->gpu != right->gpu)
        return left->gpu - right->gpu;
    if (left->start != right->start)
        return left->start - right->start;
    if (left->profile != right->profile)
        return left->profile - right->profile;
    return left->action - right->action;
}

static int *service_map(const struct transition *transition, const struct plan *plan)
{
    int *map = xcalloc(plan->services.count, sizeof *map);
    for (size_t i = 0, next = 0; i < plan->services.count; i++) {
        /* Services come in the plans' order: look where the last one was first. */
        size_t count = transition->services.count;
        for (size_t k = 0; k < count; k++) {
            size_t at = (next + k) % count;
            if (strcmp(transition->services.data[at].name, plan->services.data[i].name) == 0) {
                map[i] = (int)at;
                next = at + 1;
                break;
            }
        }
    }
    return map;
}

static struct slot_content content_of(const struct plan_instance *instance, const int *services)
{
    assert(services || !instance);
    if (!instance)
        return (struct slot_content){.state = SLOT_ABSENT, .service = -1};
    if (instance->service < 0)
        return (struct slot_content){.state = SLOT_IDLE, .service = -1};
    return (struct slot_content){.state = SLOT_SERVING,
                                 .service = services[instance->service],
                                 .batch = instance->batch,
                                 .procs = instance->procs,
                                 .rate_rps = instance->rate_rps};
}

static bool same_serving(const struct slot_content *a, const struct slot_content *b)
{
    return a->service == b->service && a->batch == b->batch && a->procs == b->procs &&
           fabs(a->rate_rps - b->rate_rps) <= verifier_tolerance(a->rate_rps);
}

static bool same_content(const struct slot_content *a, const struct slot_content *b)
{
    return a->state == b->state && (a->state != SLOT_SERVING || same_serving(a, b));
}

/* What an action of each kind finds and leaves. */
static const struct {
    enum slot_state before, after;
    const char *needs;
} steps[ACTION_KIND_COUNT] = {
    [ACTION_CREATE_INSTANCE] = {SLOT_ABSENT, SLOT_IDLE, "an empty slot"},
    [ACTION_DELETE_INSTANCE] = {SLOT_IDLE, SLOT_ABSENT, "an instance that serves nothing"},
    [ACTION_START] = {SLOT_IDLE, SLOT_SERVING, "an instance that serves nothing"},
    [ACTION_DRAIN] = {SLOT_SERVING, SLOT_DRAINED, "an instance that serves"},
    [ACTION_STOP] = {SLOT_DRAINED, SLOT_IDLE, "an instance that was drained"},
};

static void open_life(struct walk *walk, const struct mention *slot, int create)
{
    assert(create >= -1);
    struct life life = {slot->gpu, slot->profile, slot->start, create, -1};
    walk->life = (int)walk->verifier->lives.count;
    vec_add(&walk->verifier->lives, life);
}

static void open_period(struct walk *walk, const struct slot_content *content, int start)
{
    assert(content->service >= 0 && content->state == SLOT_SERVING);
    struct period period = {content->service, content->rate_rps, start, -1};
    walk->period = (int)walk->verifier->periods.count;
    vec_add(&walk->verifier->periods, period);
}

static void note_step(struct walk *walk, const struct mention *mention)
{
    assert(mention->action >= 0);
    const struct transition_action *action =
        &walk->verifier->transition->actions.data[mention->action];
    struct slot_content given = {SLOT_SERVING, action->service, action->batch, action->procs,
                                 action->rate_rps};
    if (action->kind == ACTION_CREATE_INSTANCE)
        open_life(walk, mention, mention->action);
    if (action->kind == ACTION_DELETE_INSTANCE && walk->life >= 0)
        walk->verifier->lives.data[walk->life].delete = mention->action;
    if (action->kind == ACTION_START) {
        walk->content = given;
        open_period(walk, &given, mention->action);
    }
    bool ends = action->kind == ACTION_DRAIN || action->kind == ACTION_STOP;
    if (ends && !same_serving(&walk->content, &given))
        verifier_violation(
            walk->verifier, "lifecycle", action->id,
            "%s names a service, batch, processes or rate that %s has not",
            action_kind_name(action->kind),
            verifier_slot_text(walk->verifier, mention->gpu, mention->profile, mention->start));
    if (action->kind == ACTION_DRAIN && walk->period >= 0)
        walk->verifier->periods.data[walk->period].drain = mention->action;
}

static void step(struct walk *walk, const struct mention *mention)
{
    const struct transition_action *action =
        &walk->verifier->transition->actions.data[mention->action];
    if (walk->last >= 0) {
        struct reach_query query = {.before = walk->last, .after = mention->action};
        vec_add(&walk->queries, query);
    }
    assert(mention->action > walk->last);
    walk->last = mention->action;
    if (walk->content.state != steps[action->kind].before) {
        verifier_violation(
            walk->verifier, "lifecycle", action->id, "%s on %s needs %s",
            action_kind_name(action->kind),
            verifier_slot_text(walk->verifier, mention->gpu, mention->profile, mention->start),
            steps[action->kind].needs);
        /* Go on as if it had been so, without counting capacity that never was. */
        if (action->kind == ACTION_DRAIN || action->kind == ACTION_DELETE_INSTANCE)
            return;
    }
    note_step(walk, mention);
    walk->content.state = steps[action->kind].after;
}

static void check_end(struct walk *walk, const struct mention *slot,
                      const struct slot_content *wanted)
{
    assert(walk->content.state <= SLOT_DRAINED && wanted->state <= SLOT_DRAINED);
    static const char *const words[] = {"is not there", "serves nothing", "serves",
                                        "is drained"};
    if (same_content(&walk->content, wanted))
        return;
    verifier_violation(
        walk->verifier, "end",
        verifier_slot_text(walk->verifier, slot->gpu, slot->profile, slot->start),
        "%s in the end; to wants that it %s%s", words[walk->content.state],
        words[wanted->state],
        walk->content.state == wanted->state
            ? " with another service, batch, process count or rate"
            : "");
}

/* One slot: mentions first … last − 1. */
static void walk_slot(struct walk *walk, const struct mention *first,
                      const struct mention *last, int *const services[2])
{
    assert(first < last);
    const struct plan_instance *from = NULL, *to = NULL;
    for (const struct mention *mention = first; mention < last; mention++) {
        if (from && mention->from)
            verifier_violation(
                walk->verifier, "slots",
                verifier_slot_text(walk->verifier, first->gpu, first->profile, first->start),
                "from has it twice");
        from = mention->from ? mention->from : from;
        to = mention->to ? mention->to : to;
    }
    struct slot_content wanted = content_of(to, services[1]);
    walk->content = content_of(from, services[0]);
    walk->last = walk->life = walk->period = -1;
    if (walk->content.state != SLOT_ABSENT)
        open_life(walk, first, -1);
    if (walk->content.state == SLOT_SERVING)
        open_period(walk, &walk->content, -1);
    for (const struct mention *mention = first; mention < last; mention++)
        if (mention->action >= 0)
            step(walk, mention);
    check_end(walk, first, &wanted);
}

struct mentions {
    VEC(struct mention) list;
};

static void mention_plan(struct mentions *mentions, int gpu, const struct plan_gpu *plan_gpu,
                         bool is_from)
{
    assert(gpu >= 0);
    for (size_t i = 0; i < plan_gpu->instances.count; i++) {
        const struct plan_instance *instance = &plan_gpu->instances.data[i];
        struct mention mention = {.gpu = gpu,
                                  .start = instance->start,
                                  .profile = instance->profile,
                                  .action = -1,
                                  .from = is_from ? instance : NULL,
                                  .to = is_from ? NULL : instance};
        vec_add(&mentions->list, mention);
    }
}

static struct mentions collect(const struct verifier *verifier)
{
    const struct transition *transition = verifier->transition;
    struct mentions mentions = {0};
    for (size_t i = 0; i < transition->gpus.count; i++) {
        if (verifier->from_gpu[i] >= 0)
            mention_plan(&mentions, (int)i, &transition->from.gpus.data[verifier->from_gpu[i]],
                         true);
        if (verifier->to_gpu[i] >= 0)
            mention_plan(&mentions, (int)i, &transition->to.gpus.data[verifier->to_gpu[i]],
                         false);
    }
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        struct mention mention = {.gpu = action->gpu,
                                  .start = action->start,
                                  .profile = action->profile,
                                  .action = (int)i};
        vec_add(&mentions.list, mention);
    }
    return mentions;
}

static bool same_slot(const struct mention *a, const struct mention *b)
{
    return a->gpu == b->gpu && a->start == b->start && a->profile == b->profile;
}

/* Capacity of GPUs that nobody touches counts too. */
static void add_untouched(struct verifier *verifier, const int *services)
{
    const struct transition *transition = verifier->transition;
    bool *touched = xcalloc(transition->from.gpus.count, sizeof *touched);
    for (size_t i = 0; i < transition->gpus.count; i++)
        if (verifier->from_gpu[i] >= 0)
            touched[verifier->from_gpu[i]] = true;
    for (size_t i = 0; i < transition->from.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[i];
        for (size_t j = 0; !touched[i] && j < gpu->instances.count; j++) {
            const struct plan_instance *instance = &gpu->instances.data[j];
            struct period period = {.start = -1, .drain = -1, .rate_rps = instance->rate_rps};
            if (instance->service < 0)
                continue;
            period.service = services[instance->service];
            vec_add(&verifier->periods, period);
        }
    }
    free(touched);
}

static void answer(struct walk *walk)
{
    const struct transition *transition = walk->verifier->transition;
    reach_answer(transition, walk->queries.data, walk->queries.count);
    for (size_t i = 0; i < walk->queries.count; i++) {
        const struct reach_query *query = &walk->queries.data[i];
        if (!query->ordered)
            verifier_violation(walk->verifier, "lifecycle",
                               transition->actions.data[query->after].id,
                               "may begin before %s on the same instance is done",
                               transition->actions.data[query->before].id);
    }
}

void verify_lives(struct verifier *verifier)
{
    assert(verifier->lives.count == 0 && verifier->periods.count == 0);
    struct walk walk = {.verifier = verifier};
    int *services[2] = {service_map(verifier->transition, &verifier->transition->from),
                        service_map(verifier->transition, &verifier->transition->to)};
    struct mentions mentions = collect(verifier);
    size_t count = mentions.list.count;
    if (count > 0)
        qsort(mentions.list.data, count, sizeof *mentions.list.data, compare_mentions);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count; next++)
            if (!same_slot(&mentions.list.data[i], &mentions.list.data[next]))
                break;
        walk_slot(&walk, &mentions.list.data[i], &mentions.list.data[next], services);
    }
    answer(&walk);
    add_untouched(verifier, services[0]);
    vec_done(&walk.queries);
    vec_done(&mentions.list);
    free(services[0]);
    free(services[1]);
}
