/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/plan.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/dag.h"
#include "transition/exchange_compact.h"
#include "transition/match.h"
#include "transition/verify.h"

void transition_copy_plan(const struct plan *plan, struct plan *ret_copy)
{
    assert(plan && ret_copy && plan != ret_copy);
    plan_init(ret_copy);
    for (size_t s = 0; s < plan->services.count; s++) {
        struct plan_service service = plan->services.data[s];
        service.name = arena_strdup(&ret_copy->arena, service.name);
        vec_add(&ret_copy->services, service);
    }
    for (size_t g = 0; g < plan->gpus.count; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        struct plan_gpu *copy = vec_push(&ret_copy->gpus);
        copy->id = arena_strdup(&ret_copy->arena, gpu->id);
        copy->board = gpu->board;
        copy->node = arena_strdup(&ret_copy->arena, gpu->node ? gpu->node : "");
        for (size_t i = 0; i < gpu->instances.count; i++)
            vec_add(&copy->instances, gpu->instances.data[i]);
    }
}

void transition_match_by_id(struct transition *transition)
{
    CLEANUP(map_done) struct map ids = {0};
    int added = 0;
    assert(transition->gpus.count == 0 && transition->match.count == 0);
    for (size_t i = 0; i < transition->from.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[i];
        struct transition_gpu here = {arena_strdup(&transition->arena, gpu->id), gpu->board,
                                      arena_strdup(&transition->arena, gpu->node)};
        vec_add(&transition->gpus, here);
        map_put(&ids, gpu->id, NULL);
    }
    for (size_t i = 0; i < transition->to.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->to.gpus.data[i];
        const char *id = arena_strdup(&transition->arena, gpu->id);
        if (map_find(&ids, gpu->id) < 0) {
            while (map_find(&ids, id = arena_printf(&transition->arena, "new%d", added++)) >= 0)
                continue;
            struct transition_gpu here = {id, gpu->board,
                                          arena_strdup(&transition->arena, gpu->node)};
            vec_add(&transition->gpus, here);
        }
        struct transition_match match = {arena_strdup(&transition->arena, gpu->id), id};
        vec_add(&transition->match, match);
    }
}

/* Who is most like a start, among drains of its service that have no partner yet. */
static int find_partner(const struct transition *transition,
                        const struct transition_action *start, const int *drains, size_t count)
{
    assert(start->kind == ACTION_START);
    const struct transition_gpu *here = &transition->gpus.data[start->gpu];
    int best = -1, best_rank = -1;
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *drain = &transition->actions.data[drains[i]];
        const struct transition_gpu *there = &transition->gpus.data[drain->gpu];
        int rank = drain->gpu == start->gpu                              ? 2
                   : *here->node && strcmp(here->node, there->node) == 0 ? 1
                                                                         : 0;
        if (rank > best_rank) {
            best_rank = rank;
            best = (int)i;
        }
    }
    return best;
}

static bool is_local(const struct transition *transition, int a, int b)
{
    assert(a >= 0 && b >= 0);
    const struct transition_gpu *gpus = transition->gpus.data;
    return a == b || (*gpus[a].node && strcmp(gpus[a].node, gpus[b].node) == 0);
}

/* The stop that follows a drain in the list. */
static void set_group(struct transition *transition, int drain, enum action_group group)
{
    assert(drain >= 0 && (size_t)drain < transition->actions.count);
    assert(transition->actions.data[drain].kind == ACTION_DRAIN);
    struct transition_action *action = &transition->actions.data[drain];
    action->group = group;
    for (size_t i = (size_t)drain + 1; i < transition->actions.count; i++) {
        struct transition_action *stop = &transition->actions.data[i];
        if (stop->kind == ACTION_STOP && stop->gpu == action->gpu &&
            stop->start == action->start && stop->profile == action->profile) {
            stop->group = group;
            return;
        }
    }
}

struct service_drains {
    VEC(int) list;
};

/* A start and a drain of one service are a migration; starts that find no drain are the
 * paper's create, drains that find no start its delete. */
static void set_groups(struct transition *transition)
{
    size_t services = transition->services.count;
    struct service_drains *drains = xcalloc(services, sizeof *drains);
    for (size_t i = 0; i < transition->actions.count; i++)
        if (transition->actions.data[i].kind == ACTION_DRAIN)
            vec_add(&drains[transition->actions.data[i].service].list, (int)i);
    for (size_t i = 0; i < transition->actions.count; i++) {
        struct transition_action *action = &transition->actions.data[i];
        if (action->kind == ACTION_CREATE_INSTANCE || action->kind == ACTION_DELETE_INSTANCE)
            action->group = GROUP_REPARTITION;
        if (action->kind != ACTION_START)
            continue;
        struct service_drains *mine = &drains[action->service];
        int partner = find_partner(transition, action, mine->list.data, mine->list.count);
        action->group = GROUP_CREATE;
        if (partner < 0)
            continue;
        int drain = mine->list.data[partner];
        action->group = is_local(transition, action->gpu, transition->actions.data[drain].gpu)
                            ? GROUP_MIGRATE_LOCAL
                            : GROUP_MIGRATE_REMOTE;
        set_group(transition, drain, action->group);
        mine->list.data[partner] = mine->list.data[--mine->list.count];
    }
    for (size_t s = 0; s < services; s++) {
        for (size_t i = 0; i < drains[s].list.count; i++)
            set_group(transition, drains[s].list.data[i], GROUP_DELETE);
        vec_done(&drains[s].list);
    }
    free(drains);
}

/* Leaves out GPUs that nothing happens on, but for new ones; counts the borrowed. */
static void keep_touched(struct transition *transition)
{
    size_t count = transition->gpus.count, from = transition->from.gpus.count, kept = 0;
    CLEANUP(map_done) struct map matched = {0};
    bool *touched = xcalloc(count, sizeof *touched);
    int *index = xcalloc(count, sizeof *index);
    transition->extra_gpus = 0;
    for (size_t i = 0; i < transition->match.count; i++)
        map_put(&matched, transition->match.data[i].id, NULL);
    for (size_t i = 0; i < transition->actions.count; i++)
        touched[transition->actions.data[i].gpu] = true;
    for (size_t g = 0; g < count; g++) {
        bool is_new = g >= from && map_find(&matched, transition->gpus.data[g].id) >= 0;
        index[g] = (int)kept;
        if (touched[g] || is_new)
            transition->gpus.data[kept++] = transition->gpus.data[g];
        transition->extra_gpus += touched[g] && g >= from && !is_new;
    }
    assert(kept <= count);
    transition->gpus.count = kept;
    for (size_t i = 0; i < transition->actions.count; i++)
        transition->actions.data[i].gpu = index[transition->actions.data[i].gpu];
    free(touched);
    free(index);
}

void transition_finish(struct transition *transition, bool set_groups_too)
{
    if (set_groups_too)
        set_groups(transition);
    for (size_t i = 0; i < transition->actions.count; i++)
        transition->actions.data[i].id = arena_printf(&transition->arena, "a%zu", i + 1);
    keep_touched(transition);
    transition->makespan_seconds = transition_makespan(transition);
}

static void begin_between(const struct plan *from, const struct plan *to,
                          struct transition *transition)
{
    transition_init(transition);
    transition_copy_plan(from, &transition->from);
    transition_copy_plan(to, &transition->to);
}

/* Another sequence, exchange and compact, with only the order that safety needs: taken where it
 * borrows fewer GPUs, since it moves what the match would leave in place. */
static int plan_otherwise(struct transition *transition,
                          const struct transition_options *options, int rc)
{
    assert(rc <= 0);
    struct transition other;
    struct transition_options fewer = *options;
    bool free_to_match =
        !options->keep_ids && !options->keep_nodes && !options->allow_larger_slice;
    if (!free_to_match || (rc == 0 && transition->extra_gpus == 0) || (rc < 0 && rc != -E_NO))
        return rc;
    fewer.spare = rc == 0 ? transition->extra_gpus - 1 : options->spare;
    begin_between(&transition->from, &transition->to, &other);
    if (exchange_compact_plan(&other, &fewer, false, NULL) < 0) {
        transition_done(&other);
        return rc;
    }
    transition_done(transition);
    *transition = other;
    return 0;
}

static int plan_order(struct transition *transition, const struct transition_options *options,
                      struct error *err)
{
    struct transition_options filled = *options;
    if (!filled.times)
        filled.times = action_times_find("measured");
    assert(filled.times);
    struct match_options match = {.allow_larger_slice = options->allow_larger_slice,
                                  .keep_nodes = options->keep_nodes};
    if (options->algorithm == TRANSITION_EXCHANGE_COMPACT)
        return exchange_compact_plan(transition, &filled, true, err);
    if (options->keep_ids)
        transition_match_by_id(transition);
    else
        transition_match(transition, &match);
    int rc = dag_plan(transition, &filled, err);
    return plan_otherwise(transition, &filled, rc);
}

/* No transition leaves the module unchecked. */
static int check(const struct transition *transition, struct error *err)
{
    struct transition_report report;
    transition_verify(transition, &report);
    int rc = transition_report_error(&report, err);
    transition_report_done(&report);
    return rc < 0 ? error_wrap(err, "the planned order fails its verification") : 0;
}

int transition_plan(const struct plan *from, const struct plan *to,
                    const struct transition_options *options, struct transition *ret_transition,
                    struct error *err)
{
    struct transition transition;
    assert(options->spare >= 0);
    assert(from && to && ret_transition);
    begin_between(from, to, &transition);
    int rc = plan_order(&transition, options, err);
    if (rc == 0)
        rc = check(&transition, err);
    if (rc < 0)
        transition_done(&transition);
    else
        *ret_transition = transition;
    return rc;
}
