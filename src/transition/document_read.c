/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of the transition document (schema "tranche.transition/1"): form, names and a
 * cycle-free order. Members that we do not know are passed over.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/document.h"

enum { ACTIONS_MAX = 4000000, GPUS_MAX = 4000000, EXTRA_MAX = 1 << 20 };
static const double RATE_MAX = 1e300, SECONDS_MAX = 1e9;

struct reader {
    struct transition *transition;
    struct map gpus, services, actions; /* name → position = index */
};

static void reader_done(struct reader *reader)
{
    map_done(&reader->gpus);
    map_done(&reader->services);
    map_done(&reader->actions);
}

static const char *keep(struct reader *reader, const char *text)
{
    assert(text);
    return arena_strdup(&reader->transition->arena, text);
}

static struct json_place below(const struct json_place *parent, const char *key)
{
    assert(parent && key);
    return (struct json_place){.file = parent->file, .parent = parent, .key = key};
}

static struct json_place item(const struct json_place *parent, size_t index)
{
    return (struct json_place){.file = parent->file, .parent = parent, .index = index};
}

static int read_plan_part(const struct json_place *place, const json_t *root, const char *key,
                          struct plan *ret_plan, struct error *err)
{
    const json_t *object = NULL, *gpus = NULL, *services = NULL;
    struct json_place at = below(place, key);
    int rc = json_get_object(place, root, key, true, &object, err);
    if (rc == 0)
        rc = json_get_list(&at, object, "gpus", true, &gpus, err);
    if (rc == 0)
        rc = json_get_list(&at, object, "services", true, &services, err);
    return rc < 0 ? rc : plan_gpus_from_json(&at, gpus, services, ret_plan, err);
}

static void add_service(struct reader *reader, const char *name)
{
    if (map_find(&reader->services, name) >= 0)
        return;
    map_put(&reader->services, name, NULL);
    struct transition_service *service = vec_push(&reader->transition->services);
    service->name = keep(reader, name);
}

static int read_floor(struct reader *reader, const struct json_place *place, const json_t *root,
                      struct error *err)
{
    assert(reader->transition->services.count == 0);
    struct transition *transition = reader->transition;
    const json_t *object = NULL;
    struct json_place at = below(place, "floor_rps");
    for (size_t i = 0; i < transition->from.services.count; i++)
        add_service(reader, transition->from.services.data[i].name);
    for (size_t i = 0; i < transition->to.services.count; i++)
        add_service(reader, transition->to.services.data[i].name);
    int rc = json_get_object(place, root, "floor_rps", true, &object, err);
    for (size_t i = 0; rc == 0 && i < transition->services.count; i++)
        rc = json_get_number(&at, object, transition->services.data[i].name, true, 0, RATE_MAX,
                             &transition->services.data[i].floor_rps, err);
    return rc;
}

static int read_gpu(struct reader *reader, const struct json_place *place, const json_t *object,
                    struct error *err)
{
    const char *id = NULL, *board = NULL, *node = "";
    struct transition_gpu gpu = {0};
    struct error inner;
    if (!json_is_object(object))
        return json_error_at(place, err, "expected an object with id and board");
    int rc = json_get_text(place, object, "id", true, &id, err);
    if (rc == 0)
        rc = json_get_text(place, object, "board", true, &board, err);
    if (rc == 0)
        rc = json_get_text(place, object, "node", false, &node, err);
    if (rc < 0)
        return rc;
    struct json_place id_place = below(place, "id"), board_place = below(place, "board");
    if (map_find(&reader->gpus, id) >= 0)
        return json_error_at(&id_place, err, "\"%s\" is used twice, expected unique ids", id);
    if (mig_board_get(board, &gpu.board, &inner) < 0)
        return json_error_at(&board_place, err, "%s", inner.text);
    map_put(&reader->gpus, id, NULL);
    gpu.id = keep(reader, id);
    gpu.node = keep(reader, node);
    assert(reader->gpus.count == reader->transition->gpus.count + 1);
    vec_add(&reader->transition->gpus, gpu);
    return 0;
}

static int read_match(struct reader *reader, const struct json_place *place, const json_t *root,
                      struct error *err)
{
    const json_t *object = NULL;
    struct json_place at = below(place, "match");
    int rc = json_get_object(place, root, "match", true, &object, err);
    if (rc < 0)
        return rc;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        struct json_place member = below(&at, key);
        if (!json_is_string(value))
            return json_error_at(&member, err, "expected the id of a GPU");
        struct transition_match match = {.to_id = keep(reader, key),
                                         .id = keep(reader, json_string_value(value))};
        vec_add(&reader->transition->match, match);
    }
    return 0;
}

static int read_name(const struct json_place *place, const json_t *object, const char *key,
                     const char *const *names, struct error *err)
{
    const char *text = NULL;
    struct json_place at = below(place, key);
    CLEANUP(str_done) struct str known = STR_EMPTY;
    int rc = json_get_text(place, object, key, true, &text, err);
    if (rc < 0)
        return rc;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
        str_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    return json_error_at(&at, err, "\"%s\", expected one of %s", text, known.bytes);
}

static int read_kind(const struct json_place *place, const json_t *object,
                     struct transition_action *action, struct error *err)
{
    const char *kinds[ACTION_KIND_COUNT + 1] = {NULL}, *groups[ACTION_GROUP_COUNT + 1] = {NULL};
    for (int i = 0; i < ACTION_KIND_COUNT; i++)
        kinds[i] = action_kind_name((enum action_kind)i);
    for (int i = 0; i < ACTION_GROUP_COUNT; i++)
        groups[i] = action_group_name((enum action_group)i);
    int kind = read_name(place, object, "kind", kinds, err);
    if (kind < 0)
        return kind;
    int group = read_name(place, object, "group", groups, err);
    if (group < 0)
        return group;
    action->kind = (enum action_kind)kind;
    action->group = (enum action_group)group;
    return 0;
}

static int read_slot(struct reader *reader, const struct json_place *place,
                     const json_t *object, struct transition_action *action, struct error *err)
{
    const char *gpu = NULL, *slice = NULL;
    long long start = 0;
    struct error inner;
    struct json_place gpu_place = below(place, "gpu"), slice_place = below(place, "slice");
    struct json_place start_place = below(place, "start");
    int rc = json_get_text(place, object, "gpu", true, &gpu, err);
    if (rc == 0)
        rc = json_get_text(place, object, "slice", true, &slice, err);
    if (rc == 0)
        rc = json_get_int(place, object, "start", true, 0, MIG_UNITS_MAX - 1, &start, err);
    if (rc < 0)
        return rc;
    action->gpu = (int)map_find(&reader->gpus, gpu);
    action->start = (int)start;
    if (action->gpu < 0)
        return json_error_at(&gpu_place, err, "\"%s\" is not in the list gpus", gpu);
    const struct mig_board *board = reader->transition->gpus.data[action->gpu].board;
    if (mig_profile_get(board, slice, &action->profile, &inner) < 0)
        return json_error_at(&slice_place, err, "%s", inner.text);
    if (!(board->profiles[action->profile].starts >> action->start & 1))
        return json_error_at(&start_place, err, "%d is not one of %s's on %s", action->start,
                             board->profiles[action->profile].name, board->slug);
    return 0;
}

static int read_serving(struct reader *reader, const struct json_place *place,
                        const json_t *object, struct transition_action *action,
                        struct error *err)
{
    assert(action->kind < ACTION_KIND_COUNT);
    const char *name = NULL;
    long long batch = 0, procs = 0;
    struct json_place at = below(place, "service");
    bool serves =
        action->kind != ACTION_CREATE_INSTANCE && action->kind != ACTION_DELETE_INSTANCE;
    action->service = -1;
    if (!serves)
        return 0;
    int rc = json_get_text(place, object, "service", true, &name, err);
    if (rc == 0)
        rc = json_get_int(place, object, "batch", true, 0, 1 << 20, &batch, err);
    if (rc == 0)
        rc = json_get_int(place, object, "procs", true, 0, 1 << 10, &procs, err);
    if (rc == 0)
        rc = json_get_number(place, object, "rate_rps", true, 0, RATE_MAX, &action->rate_rps,
                             err);
    if (rc < 0)
        return rc;
    action->service = (int)map_find(&reader->services, name);
    action->batch = (int)batch;
    action->procs = (int)procs;
    if (action->service < 0)
        return json_error_at(&at, err, "\"%s\" is in neither plan", name);
    return 0;
}

static int read_action(struct reader *reader, const struct json_place *place,
                       const json_t *object, struct error *err)
{
    const char *id = NULL;
    struct transition_action action = {0};
    struct json_place id_place = below(place, "id");
    if (!json_is_object(object))
        return json_error_at(place, err, "expected an object with id, kind, gpu and after");
    int rc = json_get_text(place, object, "id", true, &id, err);
    if (rc < 0)
        return rc;
    if (map_find(&reader->actions, id) >= 0)
        return json_error_at(&id_place, err, "\"%s\" is used twice, expected unique ids", id);
    rc = read_kind(place, object, &action, err);
    if (rc == 0)
        rc = read_slot(reader, place, object, &action, err);
    if (rc == 0)
        rc = read_serving(reader, place, object, &action, err);
    if (rc == 0)
        rc = json_get_number(place, object, "seconds", true, 0, SECONDS_MAX, &action.seconds,
                             err);
    if (rc < 0)
        return rc;
    map_put(&reader->actions, id, NULL);
    action.id = keep(reader, id);
    assert(reader->actions.count == reader->transition->actions.count + 1);
    vec_add(&reader->transition->actions, action);
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int read_after(struct reader *reader, const struct json_place *place,
                      const json_t *object, struct transition_action *action, struct error *err)
{
    assert(action->after.count == 0);
    const json_t *list = NULL;
    struct json_place at = below(place, "after");
    int rc = json_get_list(place, object, "after", true, &list, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const char *id = json_string_value(json_array_get(list, i));
        struct json_place here = item(&at, i);
        int index = id ? (int)map_find(&reader->actions, id) : -1;
        if (!id)
            return json_error_at(&here, err, "expected the id of an action");
        if (index < 0)
            return json_error_at(&here, err, "\"%s\" is not an action", id);
        vec_add(&action->after, index);
    }
    if (action->after.count > 0)
        qsort(action->after.data, action->after.count, sizeof(int), compare_ints);
    size_t kept = 0;
    for (size_t i = 0; i < action->after.count; i++)
        if (kept == 0 || action->after.data[kept - 1] != action->after.data[i])
            action->after.data[kept++] = action->after.data[i];
    action->after.count = kept;
    return rc;
}

/* Who waits for whom, reversed: lists of successors in one array. */
struct successors {
    int *first; /* count + 1 entries */
    int *list;
};

static struct successors successors_of(const struct transition *transition)
{
    size_t count = transition->actions.count, edges = 0;
    struct successors next = {.first = xcalloc(count + 2, sizeof(int))};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < transition->actions.data[i].after.count; j++, edges++)
            next.first[transition->actions.data[i].after.data[j] + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        next.first[i] += next.first[i - 1];
    next.list = xcalloc(edges, sizeof(int));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < transition->actions.data[i].after.count; j++)
            next.list[next.first[transition->actions.data[i].after.data[j] + 1]++] = (int)i;
    return next;
}

/* A heap of indices, smallest first. */
struct heap {
    int *items;
    size_t count;
};

static void heap_push(struct heap *heap, int value)
{
    size_t at = heap->count++;
    while (at > 0 && heap->items[(at - 1) / 2] > value) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = value;
}

static int heap_pop(struct heap *heap)
{
    assert(heap->count > 0);
    int top = heap->items[0], last = heap->items[--heap->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        child += child + 1 < heap->count && heap->items[child + 1] < heap->items[child];
        if (heap->items[child] >= last)
            break;
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
    return top;
}

/* order[k] = the k-th action: Kahn's algorithm, smallest index first, so that an order that is
 * good already stays. Returns how many could be ordered. */
static size_t order_actions(const struct transition *transition, int *order)
{
    size_t count = transition->actions.count, done = 0;
    struct successors next = successors_of(transition);
    int *missing = xcalloc(count, sizeof *missing);
    struct heap heap = {.items = xcalloc(count, sizeof(int))};
    for (size_t i = 0; i < count; i++) {
        missing[i] = (int)transition->actions.data[i].after.count;
        if (missing[i] == 0)
            heap_push(&heap, (int)i);
    }
    while (heap.count > 0) {
        int action = heap_pop(&heap);
        order[done++] = action;
        for (int j = next.first[action]; j < next.first[action + 1]; j++)
            if (--missing[next.list[j]] == 0)
                heap_push(&heap, next.list[j]);
    }
    free(heap.items);
    free(missing);
    free(next.first);
    free(next.list);
    assert(done <= count);
    return done;
}

static int sort_actions(struct reader *reader, const struct json_place *place,
                        struct error *err)
{
    struct transition *transition = reader->transition;
    size_t count = transition->actions.count;
    CLEANUP(free_ptr) int *order = xcalloc(count, sizeof *order);
    CLEANUP(free_ptr) int *position = xcalloc(count, sizeof *position);
    size_t done = order_actions(transition, order);
    if (done < count) {
        CLEANUP(free_ptr) bool *ordered = xcalloc(count, sizeof *ordered);
        size_t first = 0;
        for (size_t i = 0; i < done; i++)
            ordered[order[i]] = true;
        while (ordered[first])
            first++;
        return json_error_at(place, err, "action \"%s\" waits for itself through `after`",
                             transition->actions.data[first].id);
    }
    struct transition_action *sorted = xcalloc(count, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        position[order[i]] = (int)i;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = transition->actions.data[order[i]];
        for (size_t j = 0; j < sorted[i].after.count; j++)
            sorted[i].after.data[j] = position[sorted[i].after.data[j]];
        if (sorted[i].after.count > 0)
            qsort(sorted[i].after.data, sorted[i].after.count, sizeof(int), compare_ints);
    }
    free(transition->actions.data);
    transition->actions.data = sorted;
    transition->actions.capacity = count;
    return 0;
}

static int read_lists(struct reader *reader, const struct json_place *place, const json_t *root,
                      struct error *err)
{
    const json_t *gpus = NULL, *actions = NULL;
    struct json_place gpus_place = below(place, "gpus"),
                      actions_place = below(place, "actions");
    int rc = json_get_list(place, root, "gpus", true, &gpus, err);
    if (rc == 0)
        rc = json_get_list(place, root, "actions", true, &actions, err);
    if (rc < 0)
        return rc;
    if (json_array_size(gpus) > GPUS_MAX || json_array_size(actions) > ACTIONS_MAX)
        return json_error_at(place, err, "expected at most %d GPUs and %d actions", GPUS_MAX,
                             ACTIONS_MAX);
    for (size_t i = 0; rc == 0 && i < json_array_size(gpus); i++) {
        struct json_place at = item(&gpus_place, i);
        rc = read_gpu(reader, &at, json_array_get(gpus, i), err);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(actions); i++) {
        struct json_place at = item(&actions_place, i);
        rc = read_action(reader, &at, json_array_get(actions, i), err);
    }
    for (size_t i = 0; rc == 0 && i < json_array_size(actions); i++) {
        struct json_place at = item(&actions_place, i);
        rc = read_after(reader, &at, json_array_get(actions, i),
                        &reader->transition->actions.data[i], err);
    }
    return rc < 0 ? rc : sort_actions(reader, &actions_place, err);
}

static int read_figures(struct reader *reader, const struct json_place *place,
                        const json_t *root, struct error *err)
{
    struct transition *transition = reader->transition;
    long long extra = 0;
    int rc = json_get_text(place, root, "algorithm", false, &transition->algorithm, err);
    if (rc == 0)
        rc = json_get_int(place, root, "extra_gpus", true, 0, EXTRA_MAX, &extra, err);
    if (rc == 0)
        rc = json_get_number(place, root, "makespan_seconds", true, 0, RATE_MAX,
                             &transition->makespan_seconds, err);
    transition->algorithm = keep(reader, transition->algorithm);
    transition->extra_gpus = (int)extra;
    return rc;
}

static int read_root(struct reader *reader, const struct json_place *place, const json_t *root,
                     struct error *err)
{
    const char *schema = NULL;
    struct transition *transition = reader->transition;
    struct json_place schema_place = below(place, "schema");
    if (!json_is_object(root))
        return json_error_at(place, err, "expected a transition, an object");
    int rc = json_get_text(place, root, "schema", true, &schema, err);
    if (rc < 0)
        return rc;
    if (strcmp(schema, "tranche.transition/1") != 0)
        return json_error_at(&schema_place, err, "\"%s\", expected \"tranche.transition/1\"",
                             schema);
    rc = read_plan_part(place, root, "from", &transition->from, err);
    if (rc == 0)
        rc = read_plan_part(place, root, "to", &transition->to, err);
    if (rc == 0)
        rc = read_floor(reader, place, root, err);
    if (rc == 0)
        rc = read_match(reader, place, root, err);
    if (rc == 0)
        rc = read_lists(reader, place, root, err);
    return rc < 0 ? rc : read_figures(reader, place, root, err);
}

int transition_from_json(const char *name, const json_t *root,
                         struct transition *ret_transition, struct error *err)
{
    assert(name && ret_transition);
    struct transition transition;
    struct json_place place = {.file = name};
    transition_init(&transition);
    CLEANUP(reader_done) struct reader reader = {.transition = &transition};
    int rc = read_root(&reader, &place, root, err);
    if (rc < 0)
        transition_done(&transition);
    else
        *ret_transition = transition;
    return rc;
}
