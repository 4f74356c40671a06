/* SPDX-License-Identifier: Apache-2.0
 *
 * Transition objects: names become the indices of a struct transition by way of the
 * document's own reader, which checks slices, references and the order.
 */
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "control/kinds.h"
#include "control/resource_rows.h"
#include "control/schema.h"

static json_t *document_gpus(const struct transition_rows *rows)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->gpus.count; i++) {
        const struct transition_gpu_row *row = &rows->gpus.data[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id", row->uuid, "board",
                                              row->board->slug, "node", row->node));
    }
    return list;
}

static json_t *document_action(const struct transition_action_row *row)
{
    json_t *after = json_array();
    json_t *action = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:f}", "id", row->id, "kind",
                               action_kind_name(row->kind), "group",
                               action_group_name(row->group), "gpu", row->gpu_uuid, "slice",
                               row->slice, "start", row->start, "seconds", row->seconds);

    for (size_t i = 0; i < row->after.count; i++)
        json_array_append_new(after, json_string(row->after.data[i]));
    json_object_set_new(action, "after", after);
    if (*row->service == '\0')
        return action;
    json_object_set_new(action, "service", json_string(row->service));
    json_object_set_new(action, "batch", json_integer(row->batch));
    json_object_set_new(action, "procs", json_integer(row->procs));
    json_object_set_new(action, "rate_rps", json_real(row->rate_rps));
    return action;
}

/* The object as a document without GPUs in its plans; each service requires its floor. */
static json_t *document_of(const struct transition_rows *rows)
{
    json_t *actions = json_array(), *services = json_array(), *floor = json_object();

    for (size_t i = 0; i < rows->services.count; i++) {
        const struct transition_service *service = &rows->services.data[i];
        json_array_append_new(services, json_pack("{s:s, s:f, s:f}", "name", service->name,
                                                  "required_rps", service->floor_rps,
                                                  "provided_rps", service->floor_rps));
        json_object_set_new(floor, service->name, json_real(service->floor_rps));
    }
    for (size_t i = 0; i < rows->actions.count; i++)
        json_array_append_new(actions, document_action(&rows->actions.data[i]));
    json_t *plan = json_pack("{s:[], s:o}", "gpus", "services", services);
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:i, s:o, s:o, s:{}, s:o, s:O, s:o}", "schema", "tranche.transition/1",
        "algorithm", "", "extra_gpus", 0, "makespan_seconds", 0, "floor_rps", floor, "gpus",
        document_gpus(rows), "match", "actions", actions, "from", plan, "to", plan);
    assert(root);
    return root;
}

/* A rate that is absent counts as none; the document's reader wants a number. */
static void fill_rates(struct transition_rows *rows)
{
    for (size_t i = 0; i < rows->actions.count; i++)
        if (!(rows->actions.data[i].rate_rps >= 0))
            rows->actions.data[i].rate_rps = 0;
}

/* The states by the transition's order of actions; what the status lacks is pending. */
static void order_states(const struct transition_rows *rows, struct arena *arena,
                         struct transition_object *object)
{
    size_t count = object->transition.actions.count;
    struct map positions = {0};
    struct action_state *states = arena_alloc(arena, count, sizeof *states);

    for (size_t i = 0; i < count; i++) {
        states[i].reason = "";
        map_put(&positions, object->transition.actions.data[i].id, NULL);
    }
    for (size_t i = 0; i < rows->states.count; i++) {
        ptrdiff_t at = map_find(&positions, rows->states.data[i].id);
        if (at >= 0)
            states[at] = rows->states.data[i].state;
    }
    map_done(&positions);
    object->states.data = states;
    object->states.count = object->states.capacity = count;
}

int transition_object_read(const json_t *object, struct arena *arena,
                           struct transition_object *ret, struct error *err)
{
    struct transition_rows rows = {0};
    struct object_meta meta;

    object_meta_read(object, &meta);
    int rc = schema_read(SCHEMA_KINDS[SCHEMA_TRANSITION], object, arena, &rows, err);
    if (rc < 0)
        return rc;
    fill_rates(&rows);
    CLEANUP(json_decref_ptr) json_t *document = document_of(&rows);
    CLEANUP(free_ptr) char *title = xasprintf("Transition %s: spec", meta.name);
    struct transition transition;
    rc = transition_from_json(title, document, &transition, err);
    if (rc < 0)
        return rc;
    *ret = (struct transition_object){
        .meta = meta,
        .pool = rows.pool,
        .from = rows.from,
        .to = rows.to,
        .transition = transition,
        .epoch = rows.epoch,
        .complete = condition_is_true(object, "Complete"),
        .stalled = condition_is_true(object, "Stalled"),
    };
    order_states(&rows, arena, ret);
    return 0;
}

static void fill_action(const struct transition *transition,
                        const struct transition_action *action, struct arena *arena,
                        struct transition_action_row *row)
{
    const struct transition_gpu *gpu = &transition->gpus.data[action->gpu];
    const char **after = arena_alloc(arena, action->after.count, sizeof *after);

    for (size_t i = 0; i < action->after.count; i++)
        after[i] = transition->actions.data[action->after.data[i]].id;
    *row = (struct transition_action_row){
        .id = action->id,
        .kind = action->kind,
        .group = action->group,
        .gpu_uuid = gpu->id,
        .slice = gpu->board->profiles[action->profile].name,
        .service = action->service < 0 ? "" : transition->services.data[action->service].name,
        .start = action->start,
        .batch = action->batch,
        .procs = action->procs,
        .rate_rps = action->rate_rps,
        .seconds = action->seconds,
    };
    row->after.data = after;
    row->after.count = action->after.count;
}

/* *ret_rows lies in the arena. */
static void fill_rows(const struct transition *transition, struct arena *arena,
                      struct transition_rows *rows)
{
    rows->gpus.count = transition->gpus.count;
    rows->gpus.data = arena_alloc(arena, rows->gpus.count, sizeof *rows->gpus.data);
    for (size_t i = 0; i < rows->gpus.count; i++) {
        const struct transition_gpu *gpu = &transition->gpus.data[i];
        rows->gpus.data[i] = (struct transition_gpu_row){gpu->id, gpu->node, gpu->board};
    }
    rows->services.count = transition->services.count;
    rows->services.data = transition->services.data;
    rows->actions.count = transition->actions.count;
    rows->actions.data = arena_alloc(arena, rows->actions.count, sizeof *rows->actions.data);
    for (size_t i = 0; i < rows->actions.count; i++)
        fill_action(transition, &transition->actions.data[i], arena, &rows->actions.data[i]);
}

json_t *transition_object_to_json(const char *name, const char *pool, const char *from,
                                  const char *to, const struct transition *transition)
{
    const struct schema_kind *schema = SCHEMA_KINDS[SCHEMA_TRANSITION];
    struct transition_rows rows = {.pool = pool, .from = from, .to = to};
    struct arena arena = {0};

    assert(name && pool && from && to);
    fill_rows(transition, &arena, &rows);
    json_t *spec = schema_write(&schema->spec, &rows);
    arena_done(&arena);
    return json_pack("{s:s+, s:s, s:{s:s}, s:o}", "apiVersion", CONTROL_GROUP "/",
                     CONTROL_VERSION, "kind", schema->kind->kind, "metadata", "name", name,
                     "spec", spec);
}

json_t *action_states_to_json(const struct transition_object *object)
{
    const struct field *list =
        schema_field(&SCHEMA_KINDS[SCHEMA_TRANSITION]->status, "actions");
    struct transition_state_row *rows = xcalloc(object->states.count, sizeof *rows);

    assert(object->states.count == object->transition.actions.count);
    for (size_t i = 0; i < object->states.count; i++) {
        rows[i].id = object->transition.actions.data[i].id;
        rows[i].state = object->states.data[i];
    }
    json_t *made = schema_write_items(list, rows, object->states.count);
    free(rows);
    return made;
}
