/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading experiments and listing their cells. See experiment.h.
 */
#include "load/experiment.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/yaml.h"
#include "load/arrivals.h"

enum { CELLS_MAX = 1000000, VALUES_MAX = 256, START_S = 1 };

static const struct {
    const char *word, *meaning;
} modes[SHARING_MODE_COUNT] = {
#define X(name, word, meaning) [SHARING_##name] = {word, meaning},
    SHARING_MODES(X)
#undef X
};

const char *sharing_mode_name(enum sharing_mode mode)
{
    assert(mode < SHARING_MODE_COUNT);
    return modes[mode].word;
}

/* One dimension's values as the file has them, and a filter of include and exclude. */
struct dimension {
    const char *key;      /* of the list */
    const char *cell_key; /* in include and exclude */
    const char *standard; /* the only value when the list is absent */
    VEC(const struct yaml_node *) nodes;
};

enum axis {
    AXIS_MODEL,
    AXIS_SLICE,
    AXIS_BATCH,
    AXIS_SEQUENCE,
    AXIS_PROCS,
    AXIS_LOAD,
    AXIS_TASK,
    AXIS_MODE,
    AXIS_COUNT
};

static const struct dimension dimensions[AXIS_COUNT] = {
    [AXIS_MODEL] = {"models", "model", NULL},
    [AXIS_SLICE] = {"slices", "slice", NULL},
    [AXIS_BATCH] = {"batches", "batch", "1"},
    [AXIS_SEQUENCE] = {"sequences", "sequence", "0"},
    [AXIS_PROCS] = {"procs", "procs", "1"},
    [AXIS_LOAD] = {"loads", "load", "closed"},
    [AXIS_TASK] = {"tasks", "task", "inference"},
    [AXIS_MODE] = {"modes", "mode", "alone"},
};

struct reader {
    const struct yaml *yaml;
    struct experiment *experiment;
    const struct yaml_node *lists[AXIS_COUNT]; /* NULL: the standard value alone */
    const struct yaml_node *include, *exclude;
};

static const char *keep(struct experiment *experiment, const char *text)
{
    return text ? arena_strdup(&experiment->arena, text) : NULL;
}

static int read_command(struct reader *reader, const struct yaml_node *node,
                        struct experiment_model *model, struct error *err)
{
    const struct yaml_node *list = yaml_get(node, "command");
    if (!list)
        return 0;
    int failure =
        yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of words of a command", err);
    if (failure)
        return failure;
    model->command =
        arena_alloc(&reader->experiment->arena, list->count + 1, sizeof *model->command);
    for (size_t i = 0; i < list->count; i++) {
        failure = yaml_expect(reader->yaml, list->items[i], YAML_KIND_SCALAR, "a word", err);
        if (failure)
            return failure;
        model->command[i] = keep(reader->experiment, list->items[i]->text);
    }
    return list->count
               ? 0
               : yaml_error(reader->yaml, list, err, "an empty command, expected words");
}

static const char *name_of_model(struct experiment *experiment, const char *model)
{
    const char *slash = strrchr(model, '/');
    const char *file = slash ? slash + 1 : model;
    size_t length = strlen(file);
    if (text_ends_with(file, ".onnx"))
        length -= strlen(".onnx");
    return arena_strndup(&experiment->arena, file, length);
}

/* "resnet:depth=50", or a map with name, model, shapes or command. */
static int read_model(struct reader *reader, const struct yaml_node *node,
                      struct experiment_model *ret_model, struct error *err)
{
    static const char *const known[] = {"name", "model", "shapes", "command",
                                        "task", "batch", "slice",  NULL};
    struct experiment *experiment = reader->experiment;
    struct experiment_model model = {0};
    const char *name = NULL, *file = NULL, *shapes = NULL;
    int failure = 0;
    if (node->kind == YAML_KIND_SCALAR) {
        file = node->text;
    } else {
        failure = yaml_expect(reader->yaml, node, YAML_KIND_MAP, "a model", err);
        if (!failure)
            failure = yaml_only_keys(reader->yaml, node, known, err);
        if (!failure)
            failure = yaml_get_text(reader->yaml, node, "name", &name, err);
        if (!failure)
            failure = yaml_get_text(reader->yaml, node, "model", &file, err);
        if (!failure)
            failure = yaml_get_text(reader->yaml, node, "shapes", &shapes, err);
        if (!failure)
            failure = read_command(reader, node, &model, err);
    }
    if (failure)
        return failure;
    if (!file && !(name && model.command))
        return yaml_error(reader->yaml, node, err,
                          "a model without `model`, expected a file, a built-in model, or "
                          "name and command");
    model.model = keep(experiment, file ? file : name);
    model.name = name ? keep(experiment, name) : name_of_model(experiment, model.model);
    model.shapes = keep(experiment, shapes);
    *ret_model = model;
    return 0;
}

static int read_task(const struct reader *reader, const struct yaml_node *node,
                     enum task *ret_task, struct error *err)
{
    for (int i = 0; i < TASK_COUNT; i++) {
        if (strcmp(node->text, task_name((enum task)i)) == 0) {
            *ret_task = (enum task)i;
            return 0;
        }
    }
    return yaml_error(reader->yaml, node, err, "task \"%s\", expected inference or training",
                      node->text);
}

static int read_profile(const struct reader *reader, const struct yaml_node *node,
                        int *ret_profile, struct error *err)
{
    struct error inner;
    assert(node && node->kind == YAML_KIND_SCALAR);
    if (mig_profile_get(reader->experiment->board, node->text, ret_profile, &inner) < 0)
        return yaml_error(reader->yaml, node, err, "%s", inner.text);
    return 0;
}

static int read_count(const struct reader *reader, const struct yaml_node *node,
                      long long minimum, int *ret_value, struct error *err)
{
    long long value;
    if (!text_to_int(node->text, minimum, 1 << 20, &value))
        return yaml_error(reader->yaml, node, err,
                          "\"%s\", expected a whole number of at least %lld", node->text,
                          minimum);
    *ret_value = (int)value;
    return 0;
}

static int read_load(const struct reader *reader, const struct yaml_node *node,
                     const char **ret_load, struct error *err)
{
    struct error inner;
    struct arrivals arrivals = {0};
    if (strcmp(node->text, "closed") != 0 &&
        arrivals_parse(node->text, 1000000000, 1, &arrivals, &inner) < 0)
        return yaml_error(reader->yaml, node, err, "%s", inner.text);
    arrivals_done(&arrivals);
    *ret_load = keep(reader->experiment, node->text);
    return 0;
}

static int read_mode(const struct reader *reader, const struct yaml_node *node,
                     enum sharing_mode *ret_mode, struct error *err)
{
    CLEANUP(str_done) struct str known = STR_EMPTY;
    for (int i = 0; i < SHARING_MODE_COUNT; i++) {
        if (strcmp(node->text, modes[i].word) == 0) {
            *ret_mode = (enum sharing_mode)i;
            return 0;
        }
        str_addf(&known, "%s%s", i ? ", " : "", modes[i].word);
    }
    return yaml_error(reader->yaml, node, err, "mode \"%s\", expected one of %s", node->text,
                      known.bytes);
}

/* Puts one value of an axis into the cell. */
static int set_axis(const struct reader *reader, enum axis axis, const struct yaml_node *node,
                    struct experiment_cell *cell, struct error *err)
{
    switch (axis) {
    case AXIS_SLICE:
        return read_profile(reader, node, &cell->profile, err);
    case AXIS_BATCH:
        return read_count(reader, node, 1, &cell->batch, err);
    case AXIS_SEQUENCE:
        return read_count(reader, node, 0, &cell->sequence, err);
    case AXIS_PROCS:
        return read_count(reader, node, 1, &cell->procs, err);
    case AXIS_LOAD:
        return read_load(reader, node, &cell->load, err);
    case AXIS_TASK:
        return read_task(reader, node, &cell->task, err);
    case AXIS_MODE:
        return read_mode(reader, node, &cell->mode, err);
    case AXIS_MODEL:
    case AXIS_COUNT:
        break;
    }
    return 0; /* models are read before */
}

/* Include and exclude. */

static bool values_match(const struct yaml_node *wanted, const char *value)
{
    if (wanted->kind == YAML_KIND_SCALAR)
        return strcmp(wanted->text, value) == 0;
    for (size_t i = 0; i < wanted->count; i++)
        if (wanted->items[i]->kind == YAML_KIND_SCALAR &&
            strcmp(wanted->items[i]->text, value) == 0)
            return true;
    return false;
}

/* Whether every member of the rule holds for the values, which are text as in the lists. */
static bool rule_matches(const struct yaml_node *rule, const char *const *values)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const struct yaml_node *wanted = yaml_get(rule, dimensions[axis].cell_key);
        if (wanted && !values_match(wanted, values[axis]))
            return false;
    }
    return true;
}

static bool any_matches(const struct yaml_node *rules, const char *const *values)
{
    for (size_t i = 0; rules && i < rules->count; i++)
        if (rule_matches(rules->items[i], values))
            return true;
    return false;
}

static int check_rules(const struct reader *reader, const struct yaml_node *rules,
                       struct error *err)
{
    const char *known[AXIS_COUNT + 1] = {NULL};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        known[axis] = dimensions[axis].cell_key;
    if (!rules)
        return 0;
    int failure = yaml_expect(reader->yaml, rules, YAML_KIND_LIST, "a list of rules", err);
    for (size_t i = 0; !failure && i < rules->count; i++) {
        failure = yaml_expect(reader->yaml, rules->items[i], YAML_KIND_MAP,
                              "a rule, such as {slice: 1g, batch: 8}", err);
        if (!failure)
            failure = yaml_only_keys(reader->yaml, rules->items[i], known, err);
    }
    return failure;
}

/* Cells. */

static size_t axis_size(const struct reader *reader, enum axis axis)
{
    return reader->lists[axis] ? reader->lists[axis]->count : 1;
}

static bool is_listed(const struct experiment *experiment, const struct experiment_cell *cell)
{
    for (size_t i = 0; i < experiment->cells.count; i++) {
        const struct experiment_cell *other = &experiment->cells.data[i];
        if (other->model == cell->model && other->profile == cell->profile &&
            other->batch == cell->batch && other->procs == cell->procs &&
            other->sequence == cell->sequence && strcmp(other->load, cell->load) == 0 &&
            other->task == cell->task && other->mode == cell->mode)
            return true;
    }
    return false;
}

/* Without MIG there is one slice, whatever `slices` says: the largest stands for it. */
static int largest_profile(const struct mig_board *board)
{
    int largest = 0;
    for (int i = 0; i < board->profile_count; i++)
        if (board->profiles[i].group == MIG_GROUP_BASE &&
            board->profiles[i].compute_slices > board->profiles[largest].compute_slices)
            largest = i;
    return largest;
}

/* The cell number `index`: the last axis changes fastest. */
static int add_cell(struct reader *reader, size_t index, struct error *err)
{
    struct experiment *experiment = reader->experiment;
    struct experiment_cell cell = {0};
    struct yaml_node standard[AXIS_COUNT];
    const char *values[AXIS_COUNT];
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        size_t size = axis_size(reader, (enum axis)axis), at = index % size;
        standard[axis] = (struct yaml_node){.text = dimensions[axis].standard};
        const struct yaml_node *node =
            reader->lists[axis] ? reader->lists[axis]->items[at] : &standard[axis];
        index /= size;
        if (axis == AXIS_MODEL)
            cell.model = at;
        values[axis] = axis == AXIS_MODEL ? experiment->models.data[at].name : node->text;
        int failure = set_axis(reader, (enum axis)axis, node, &cell, err);
        if (failure)
            return failure;
    }
    bool wanted = !reader->include || any_matches(reader->include, values);
    if (cell.mode == SHARING_WHOLE)
        cell.profile = largest_profile(experiment->board);
    if (wanted && !any_matches(reader->exclude, values) &&
        !(cell.mode == SHARING_WHOLE && is_listed(experiment, &cell)))
        vec_add(&experiment->cells, cell);
    return 0;
}

static int list_cells(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    size_t count = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        count *= axis_size(reader, (enum axis)axis); /* at most 256 each */
    if (count > CELLS_MAX)
        return yaml_error(reader->yaml, root, err, "%zu cells, expected at most %d", count,
                          CELLS_MAX);
    int failure = 0;
    for (size_t i = 0; i < count && !failure; i++)
        failure = add_cell(reader, i, err);
    if (!failure && reader->experiment->cells.count == 0)
        failure = yaml_error(reader->yaml, root, err, "no cell is left, expected at least one");
    return failure;
}

static int find_lists(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const struct yaml_node *list = yaml_get(root, dimensions[axis].key);
        reader->lists[axis] = list;
        if (!list && dimensions[axis].standard)
            continue;
        if (!list)
            return yaml_error(reader->yaml, root, err, "%s is missing, expected a list",
                              dimensions[axis].key);
        int failure = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list", err);
        if (failure)
            return failure;
        if (list->count == 0 || list->count > VALUES_MAX)
            return yaml_error(reader->yaml, list, err, "%zu values, expected 1 to %d",
                              list->count, VALUES_MAX);
        for (size_t i = 0; axis != AXIS_MODEL && i < list->count; i++) {
            failure =
                yaml_expect(reader->yaml, list->items[i], YAML_KIND_SCALAR, "a value", err);
            if (failure)
                return failure;
        }
    }
    return 0;
}

static int read_models(struct reader *reader, struct error *err)
{
    const struct yaml_node *list = reader->lists[AXIS_MODEL];
    struct experiment *experiment = reader->experiment;
    for (size_t i = 0; i < list->count; i++) {
        struct experiment_model model = {0};
        int failure = read_model(reader, list->items[i], &model, err);
        if (failure)
            return failure;
        assert(model.name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(experiment->models.data[k].name, model.name) == 0)
                return yaml_error(reader->yaml, list->items[i], err,
                                  "a second model named %s, expected another name", model.name);
        vec_add(&experiment->models, model);
    }
    return 0;
}

static int read_neighbours(struct reader *reader, const struct yaml_node *root,
                           struct error *err)
{
    const struct yaml_node *list = yaml_get(root, "neighbours");
    if (!list)
        return 0;
    int failure = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of neighbours", err);
    for (size_t i = 0; !failure && i < list->count; i++) {
        const struct yaml_node *node = list->items[i];
        struct experiment_neighbour neighbour = {.batch = 1};
        long long batch = 1;
        failure = yaml_expect(reader->yaml, node, YAML_KIND_MAP,
                              "a neighbour with model and slice", err);
        if (!failure)
            failure = read_model(reader, node, &neighbour.model, err);
        const struct yaml_node *slice = failure ? NULL : yaml_get(node, "slice");
        const struct yaml_node *task = failure ? NULL : yaml_get(node, "task");
        if (!failure && !slice)
            failure = yaml_error(reader->yaml, node, err, "slice is missing");
        if (!failure)
            failure = yaml_expect(reader->yaml, slice, YAML_KIND_SCALAR, "a slice", err);
        if (!failure)
            failure = read_profile(reader, slice, &neighbour.profile, err);
        if (!failure && task)
            failure = yaml_expect(reader->yaml, task, YAML_KIND_SCALAR, "a task", err);
        if (!failure && task)
            failure = read_task(reader, task, &neighbour.task, err);
        if (!failure)
            failure = yaml_get_int(reader->yaml, node, "batch", 1, 1 << 20, &batch, err);
        neighbour.batch = (int)batch;
        vec_add(&reader->experiment->neighbours, neighbour);
    }
    return failure;
}

/* devices: {1g: [MIG-…, MIG-…], 7g: [GPU-…]} */
static int read_devices(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    const struct yaml_node *map = yaml_get(root, "devices");
    struct experiment *experiment = reader->experiment;
    if (!map)
        return experiment->settings.device == DEVICE_CPU_SLICE
                   ? 0
                   : yaml_error(reader->yaml, root, err,
                                "devices is missing, expected the UUIDs of each slice, such "
                                "as {1g: [MIG-…]} (see `tranche gpu list`)");
    int failure = yaml_expect(reader->yaml, map, YAML_KIND_MAP, "UUIDs by slice", err);
    for (size_t i = 0; !failure && i < map->count; i++) {
        struct experiment_devices devices = {0};
        struct yaml_node key = *map->key_nodes[i];
        failure = read_profile(reader, &key, &devices.profile, err);
        if (!failure)
            failure = yaml_expect(reader->yaml, map->items[i], YAML_KIND_LIST,
                                  "a list of UUIDs", err);
        for (size_t k = 0; !failure && k < map->items[i]->count; k++)
            vec_add(&devices.uuids, keep(experiment, map->items[i]->items[k]->text));
        vec_add(&experiment->devices, devices);
    }
    return failure;
}

/* How to measure: seconds and counts of `measure:`. */
static int read_measure(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    static const char *const known[] = {
        "duration_s",        "longest_s",        "warmup_s",  "min_steps",
        "threads",           "cpu_full_slice",   "period_ms", "ready_timeout_s",
        "silence_timeout_s", "memory_limit_mib", NULL};
    struct measure_settings *settings = &reader->experiment->settings;
    const struct yaml_node *map = yaml_get(root, "measure");
    double duration_s = 2, longest_s = 10, warmup_s = 0.3, period_ms = 20, ready_s = 120,
           silence_s = 60, memory_mib = 0;
    long long steps = 10, threads = 0;
    settings->cpu_full_slice = 1;
    int failure = 0;
    if (map) {
        const struct {
            const char *key;
            double minimum;
            double *value;
        } numbers[] = {{"duration_s", 0.01, &duration_s},
                       {"longest_s", 0.01, &longest_s},
                       {"warmup_s", 0, &warmup_s},
                       {"period_ms", 1, &period_ms},
                       {"cpu_full_slice", 0.01, &settings->cpu_full_slice},
                       {"ready_timeout_s", 0.1, &ready_s},
                       {"silence_timeout_s", 0.1, &silence_s},
                       {"memory_limit_mib", 0, &memory_mib}};
        failure = yaml_expect(reader->yaml, map, YAML_KIND_MAP, "how to measure", err);
        if (!failure)
            failure = yaml_only_keys(reader->yaml, map, known, err);
        for (size_t i = 0; !failure && i < sizeof numbers / sizeof *numbers; i++)
            failure = yaml_get_number(reader->yaml, map, numbers[i].key, numbers[i].minimum,
                                      1e6, numbers[i].value, err);
        if (!failure)
            failure = yaml_get_int(reader->yaml, map, "min_steps", 1, 1000000000, &steps, err);
        if (!failure)
            failure = yaml_get_int(reader->yaml, map, "threads", 0, 1024, &threads, err);
    }
    settings->duration_ns = (int64_t)(duration_s * 1e9);
    settings->longest_ns = (int64_t)(fmax(longest_s, duration_s) * 1e9);
    settings->warmup_ns = (int64_t)(warmup_s * 1e9);
    settings->period_ns = (int64_t)(period_ms * 1e6);
    settings->ready_timeout_ns = (int64_t)(ready_s * 1e9);
    settings->silence_timeout_ns = (int64_t)(silence_s * 1e9);
    settings->memory_bytes = (uint64_t)(memory_mib * (1 << 20));
    settings->min_steps = (int)steps;
    settings->warmup_steps = 1;
    settings->threads = (int)threads;
    return failure;
}

static int read_device(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    const char *device = "cpu-slice";
    int failure = yaml_get_text(reader->yaml, root, "device", &device, err);
    for (int i = 0; !failure && i < MEASURE_DEVICE_COUNT; i++) {
        if (strcmp(device, measure_device_name((enum measure_device)i)) == 0) {
            reader->experiment->settings.device = (enum measure_device)i;
            return 0;
        }
    }
    return failure ? failure
                   : yaml_error(reader->yaml, yaml_get(root, "device"), err,
                                "device \"%s\", expected cpu-slice, cuda or tensorrt", device);
}

static int read_head(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    static const char *const known[] = {
        "experiment", "question",    "board",   "device", "devices",    "models", "slices",
        "batches",    "sequences",   "procs",   "loads",  "tasks",      "modes",  "include",
        "exclude",    "repetitions", "measure", "seed",   "neighbours", NULL};
    struct experiment *experiment = reader->experiment;
    const char *name = NULL, *question = "", *board = "a100-40gb";
    long long repetitions = 1, seed = 1;
    struct error inner;
    int failure = yaml_expect(reader->yaml, root, YAML_KIND_MAP, "an experiment", err);
    if (!failure)
        failure = yaml_only_keys(reader->yaml, root, known, err);
    if (!failure)
        failure = yaml_get_text(reader->yaml, root, "experiment", &name, err);
    if (!failure)
        failure = yaml_get_text(reader->yaml, root, "question", &question, err);
    if (!failure)
        failure = yaml_get_text(reader->yaml, root, "board", &board, err);
    if (!failure)
        failure = yaml_get_int(reader->yaml, root, "repetitions", 1, 10000, &repetitions, err);
    if (!failure)
        failure = yaml_get_int(reader->yaml, root, "seed", 0, LLONG_MAX, &seed, err);
    if (failure)
        return failure;
    if (!name || !*name ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
                          "VWXYZ0123456789._-")])
        return yaml_error(reader->yaml, root, err,
                          "experiment is \"%s\", expected a name of letters, digits, . _ -",
                          name ? name : "");
    if (mig_board_get(board, &experiment->board, &inner) < 0)
        return yaml_error(reader->yaml, yaml_get(root, "board"), err, "%s", inner.text);
    experiment->name = keep(experiment, name);
    experiment->question = keep(experiment, question);
    experiment->repetitions = (int)repetitions;
    experiment->settings.seed = (uint64_t)seed;
    return 0;
}

static int read_all(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    int failure = read_head(reader, root, err);
    if (!failure)
        failure = read_device(reader, root, err);
    if (!failure)
        failure = read_measure(reader, root, err);
    if (!failure)
        failure = read_devices(reader, root, err);
    if (!failure)
        failure = find_lists(reader, root, err);
    if (!failure)
        failure = read_models(reader, err);
    if (!failure)
        failure = read_neighbours(reader, root, err);
    if (failure)
        return failure;
    reader->include = yaml_get(root, "include");
    reader->exclude = yaml_get(root, "exclude");
    failure = check_rules(reader, reader->include, err);
    if (!failure)
        failure = check_rules(reader, reader->exclude, err);
    return failure ? failure : list_cells(reader, root, err);
}

int experiment_parse(const char *name, const char *bytes, size_t length,
                     struct experiment *ret_experiment, struct error *err)
{
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct experiment experiment = {0};
    struct reader reader = {.experiment = &experiment};
    int failure = yaml_parse(name, bytes, length, &yaml, err);
    if (failure)
        return failure;
    reader.yaml = yaml;
    failure = read_all(&reader, yaml_root(yaml), err);
    if (failure) {
        experiment_done(&experiment);
        return failure;
    }
    file_sha256(bytes, length, experiment.sha256);
    *ret_experiment = experiment;
    return 0;
}

int experiment_read(const char *path, struct experiment *ret_experiment, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int failure = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    return failure ? failure
                   : experiment_parse(path, bytes.bytes, bytes.length, ret_experiment, err);
}

void experiment_done(struct experiment *experiment)
{
    for (size_t i = 0; i < experiment->devices.count; i++)
        vec_done(&experiment->devices.data[i].uuids);
    vec_done(&experiment->devices);
    vec_done(&experiment->models);
    vec_done(&experiment->neighbours);
    vec_done(&experiment->cells);
    arena_done(&experiment->arena);
}

json_t *experiment_cell_key(const struct experiment *experiment,
                            const struct experiment_cell *cell)
{
    const struct mig_profile *profile = &experiment->board->profiles[cell->profile];
    json_t *key = json_object();
    json_object_set_new(key, "model", json_string(experiment->models.data[cell->model].name));
    json_object_set_new(key, "board", json_string(experiment->board->slug));
    json_object_set_new(key, "slice", json_string(profile->name));
    json_object_set_new(key, "batch", json_integer(cell->batch));
    json_object_set_new(key, "procs", json_integer(cell->procs));
    if (cell->sequence > 0)
        json_object_set_new(key, "sequence", json_integer(cell->sequence));
    json_object_set_new(key, "task", json_string(task_name(cell->task)));
    json_object_set_new(key, "device",
                        json_string(measure_device_name(experiment->settings.device)));
    json_object_set_new(key, "mode", json_string(sharing_mode_name(cell->mode)));
    json_object_set_new(key, "load", json_string(cell->load));
    return key;
}

const char *experiment_cell_model(struct experiment *experiment,
                                  const struct experiment_cell *cell)
{
    const char *model = experiment->models.data[cell->model].model;
    if (cell->sequence == 0)
        return model;
    return arena_printf(&experiment->arena, "%s%clength=%d", model,
                        strchr(model, ':') ? ',' : ':', cell->sequence);
}

double experiment_estimate_s(const struct experiment *experiment)
{
    const struct measure_settings *settings = &experiment->settings;
    double one_s = START_S + (double)(settings->warmup_ns + settings->duration_ns) / 1e9;
    return one_s * (double)experiment->cells.count * experiment->repetitions;
}
