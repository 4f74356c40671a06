/* SPDX-License-Identifier: Apache-2.0
 *
 * Transitions as values: names, look-ups, the longest path, the walk along the order, and
 * writing as JSON. document_read.c reads, state.c applies actions.
 */
#include "transition/document.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const kind_names[ACTION_KIND_COUNT] = {"create_instance", "delete_instance",
                                                          "start", "drain", "stop"};
static const char *const group_names[ACTION_GROUP_COUNT] = {"create", "delete", "migrate-local",
                                                            "migrate-remote", "repartition"};

const char *action_kind_name(enum action_kind kind)
{
    assert(kind < ACTION_KIND_COUNT);
    return kind_names[kind];
}

const char *action_group_name(enum action_group group)
{
    assert(group < ACTION_GROUP_COUNT);
    return group_names[group];
}

void transition_init(struct transition *transition)
{
    *transition = (struct transition){.algorithm = ""};
    plan_init(&transition->from);
    plan_init(&transition->to);
}

void transition_done(struct transition *transition)
{
    for (size_t i = 0; i < transition->actions.count; i++)
        vec_done(&transition->actions.data[i].after);
    vec_done(&transition->actions);
    vec_done(&transition->gpus);
    vec_done(&transition->match);
    vec_done(&transition->services);
    plan_done(&transition->from);
    plan_done(&transition->to);
    arena_done(&transition->arena);
    transition_init(transition);
}

int transition_find_action(const struct transition *transition, const char *id)
{
    assert(transition && id);
    for (size_t i = 0; i < transition->actions.count; i++)
        if (strcmp(transition->actions.data[i].id, id) == 0)
            return (int)i;
    return -1;
}

int transition_find_gpu(const struct transition *transition, const char *id)
{
    assert(transition && id);
    for (size_t i = 0; i < transition->gpus.count; i++)
        if (strcmp(transition->gpus.data[i].id, id) == 0)
            return (int)i;
    return -1;
}

int transition_find_service(const struct transition *transition, const char *name)
{
    assert(transition && name);
    for (size_t i = 0; i < transition->services.count; i++)
        if (strcmp(transition->services.data[i].name, name) == 0)
            return (int)i;
    return -1;
}

const char *transition_match_of(const struct transition *transition, const char *to_id)
{
    assert(transition && to_id);
    for (size_t i = 0; i < transition->match.count; i++)
        if (strcmp(transition->match.data[i].to_id, to_id) == 0)
            return transition->match.data[i].id;
    return NULL;
}

double transition_floor_rps(const struct plan *from, const struct plan *to, const char *service)
{
    assert(from && to && service);
    int before = plan_find_service(from, service);
    int after = plan_find_service(to, service);
    if (before < 0 || after < 0)
        return 0;
    return fmin(from->services.data[before].required_rps,
                to->services.data[after].required_rps);
}

double transition_makespan(const struct transition *transition)
{
    double longest = 0;
    double *end = xcalloc(transition->actions.count, sizeof *end);
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        double begin = 0;
        for (size_t j = 0; j < action->after.count; j++) {
            assert(action->after.data[j] < (int)i);
            begin = fmax(begin, end[action->after.data[j]]);
        }
        end[i] = begin + action->seconds;
        assert(action->seconds >= 0);
        longest = fmax(longest, end[i]);
    }
    free(end);
    return longest;
}

static bool all_done(const struct transition_action *action, const bool *done)
{
    assert(action && done);
    for (size_t i = 0; i < action->after.count; i++)
        if (!done[action->after.data[i]])
            return false;
    return true;
}

size_t transition_next(const struct transition *transition, const bool *done, const bool *begun,
                       int *ret_ready)
{
    size_t count = 0;
    assert(done && ret_ready);
    for (size_t i = 0; i < transition->actions.count; i++)
        if (!done[i] && !(begun && begun[i]) && all_done(&transition->actions.data[i], done))
            ret_ready[count++] = (int)i;
    return count;
}

bool transition_is_reachable(const struct transition *transition, const bool *done)
{
    assert(transition && done);
    for (size_t i = 0; i < transition->actions.count; i++)
        if (done[i] && !all_done(&transition->actions.data[i], done))
            return false;
    return true;
}

static json_t *gpus_json(const struct transition *transition)
{
    json_t *list = json_array();
    for (size_t i = 0; i < transition->gpus.count; i++) {
        const struct transition_gpu *gpu = &transition->gpus.data[i];
        json_t *object = json_pack("{s:s, s:s}", "id", gpu->id, "board", gpu->board->slug);
        json_object_set_new(object, "node", *gpu->node ? json_string(gpu->node) : json_null());
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *action_json(const struct transition *transition,
                           const struct transition_action *action)
{
    assert(action->gpu >= 0 && (size_t)action->gpu < transition->gpus.count);
    assert(action->service < (int)transition->services.count);
    const struct transition_gpu *gpu = &transition->gpus.data[action->gpu];
    bool serves = action->service >= 0;
    json_t *after = json_array();
    for (size_t i = 0; i < action->after.count; i++)
        json_array_append_new(after,
                              json_string(transition->actions.data[action->after.data[i]].id));
    json_t *object = json_pack("{s:s, s:s, s:s}", "id", action->id, "kind",
                               action_kind_name(action->kind), "gpu", gpu->id);
    json_object_set_new(object, "slice",
                        json_string(gpu->board->profiles[action->profile].name));
    json_object_set_new(object, "start", json_integer(action->start));
    json_object_set_new(object, "service",
                        serves ? json_string(transition->services.data[action->service].name)
                               : json_null());
    json_object_set_new(object, "batch", serves ? json_integer(action->batch) : json_null());
    json_object_set_new(object, "procs", serves ? json_integer(action->procs) : json_null());
    json_object_set_new(object, "rate_rps", serves ? json_real(action->rate_rps) : json_null());
    json_object_set_new(object, "after", after);
    json_object_set_new(object, "seconds", json_real(action->seconds));
    json_object_set_new(object, "group", json_string(action_group_name(action->group)));
    return object;
}

static json_t *plan_part_json(const struct plan *plan)
{
    return json_pack("{s:o, s:o}", "gpus", plan_gpus_to_json(plan), "services",
                     plan_services_to_json(plan));
}

json_t *transition_to_json(const struct transition *transition)
{
    assert(transition->extra_gpus >= 0 && transition->makespan_seconds >= 0);
    json_t *match = json_object(), *floor = json_object(), *actions = json_array();
    for (size_t i = 0; i < transition->match.count; i++)
        json_object_set_new(match, transition->match.data[i].to_id,
                            json_string(transition->match.data[i].id));
    for (size_t i = 0; i < transition->services.count; i++)
        json_object_set_new(floor, transition->services.data[i].name,
                            json_real(transition->services.data[i].floor_rps));
    for (size_t i = 0; i < transition->actions.count; i++)
        json_array_append_new(actions, action_json(transition, &transition->actions.data[i]));
    json_t *root = json_object();
    json_object_set_new(root, "schema", json_string("tranche.transition/1"));
    json_object_set_new(root, "algorithm", json_string(transition->algorithm));
    json_object_set_new(root, "extra_gpus", json_integer(transition->extra_gpus));
    json_object_set_new(root, "makespan_seconds", json_real(transition->makespan_seconds));
    json_object_set_new(root, "floor_rps", floor);
    json_object_set_new(root, "gpus", gpus_json(transition));
    json_object_set_new(root, "match", match);
    json_object_set_new(root, "actions", actions);
    json_object_set_new(root, "from", plan_part_json(&transition->from));
    json_object_set_new(root, "to", plan_part_json(&transition->to));
    return root;
}

void transition_format(const struct transition *transition, struct str *text)
{
    assert(transition && text);
    json_t *root = transition_to_json(transition);
    json_write_pretty(root, text);
    json_decref(root);
}
