/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of the services and fleet YAML. Services come first, so that the fleet's fixed
 * instances can name them.
 */
#include "format/service.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/map.h"
#include "base/option.h"
#include "base/yaml.h"
#include "mig/layout.h"

enum { MIN_INSTANCES_MAX = 1000000, PRIORITY_LIMIT = 1000000 };
static const double LATENCY_MS_MAX = 1e9;
static const double RATE_RPS_MAX = 1e12;
static const double POSITIVE_MIN = 1e-9; /* less is a slip, and would not survive division */
static const double PRICE_MAX = 1e9;

static const char *const spread_names[SPREAD_COUNT] = {"none", "gpu", "node"};
static const char *const rule_names[LATENCY_RULE_COUNT] = {"queue", "batch", "half"};

const char *spread_name(enum spread spread)
{
    assert(spread < SPREAD_COUNT);
    return spread_names[spread];
}

const char *latency_rule_name(enum latency_rule rule)
{
    assert(rule < LATENCY_RULE_COUNT);
    return rule_names[rule];
}

void service_set_done(struct service_set *set)
{
    for (size_t i = 0; i < set->fleet.count; i++) {
        struct fleet_part *part = &set->fleet.data[i];
        for (size_t j = 0; j < part->gpus.count; j++)
            vec_done(&part->gpus.data[j].instances);
        vec_done(&part->gpus);
    }
    vec_done(&set->fleet);
    vec_done(&set->services);
    arena_done(&set->arena);
}

/* What the readers below share. */
struct reader {
    const struct yaml *yaml;
    struct service_set *set;
    struct map names;   /* of services; position = index */
    struct map gpu_ids; /* of all listed GPUs */
};

static void reader_done(struct reader *reader)
{
    map_done(&reader->names);
    map_done(&reader->gpu_ids);
}

static const struct yaml_node *node_at(const struct yaml_node *map, const char *key)
{
    assert(map->kind == YAML_KIND_MAP);
    const struct yaml_node *node = yaml_get(map, key);
    return node ? node : map;
}

/* Text that must be there and not be empty. */
static int read_text(struct reader *reader, const struct yaml_node *map, const char *key,
                     const char **ret, struct error *err)
{
    const char *text = NULL;
    int rc = yaml_get_text(reader->yaml, map, key, &text, err);
    if (rc < 0)
        return rc;
    if (!text || *text == '\0')
        return yaml_error(reader->yaml, node_at(map, key), err,
                          text ? "%s is empty, expected text" : "%s is missing, expected text",
                          key);
    *ret = arena_strdup(&reader->set->arena, text);
    return 0;
}

/* A number above zero; an absent one leaves *ret alone, an empty one is a slip. */
static int read_positive(struct reader *reader, const struct yaml_node *map, const char *key,
                         double maximum, double *ret, struct error *err)
{
    assert(maximum >= POSITIVE_MIN && ret);
    double value = 0;
    const struct yaml_node *node = yaml_get(map, key);
    if (!node)
        return 0;
    if (yaml_is_null(node))
        return yaml_error(reader->yaml, node, err, "%s is empty, expected a number above 0",
                          key);
    int rc = yaml_get_number(reader->yaml, map, key, 0, maximum, &value, err);
    if (rc < 0)
        return rc;
    if (value < POSITIVE_MIN)
        return yaml_error(reader->yaml, node, err, "%s is %s, expected a number of at least %g",
                          key, node->text, POSITIVE_MIN);
    *ret = value;
    return 0;
}

static int read_int(struct reader *reader, const struct yaml_node *map, const char *key,
                    const long long range[2], int *ret, struct error *err)
{
    assert(range[0] <= range[1]);
    long long value = *ret;
    int rc = yaml_get_int(reader->yaml, map, key, range[0], range[1], &value, err);
    if (rc == 0)
        *ret = (int)value;
    return rc;
}

/* One word out of a list; an absent one leaves *ret alone. */
static int read_choice(struct reader *reader, const struct yaml_node *map, const char *key,
                       const char *const *choices, int count, int *ret, struct error *err)
{
    assert(choices && count > 0 && ret);
    const char *text = NULL;
    int rc = yaml_get_text(reader->yaml, map, key, &text, err);
    if (rc < 0 || !text)
        return rc;
    struct str expected = STR_EMPTY;
    for (int i = 0; i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *ret = i;
            str_done(&expected);
            return 0;
        }
        str_addf(&expected, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", choices[i]);
    }
    rc = yaml_error(reader->yaml, yaml_get(map, key), err, "%s is \"%s\", expected %s", key,
                    text, expected.bytes);
    str_done(&expected);
    return rc;
}

static int read_percentile(struct reader *reader, const struct yaml_node *map, double *ret,
                           struct error *err)
{
    static const double allowed[] = {50, 90, 95, 99, 99.9};
    const struct yaml_node *node = yaml_get(map, "percentile");
    if (!node)
        return 0;
    double value;
    if (node->kind == YAML_KIND_SCALAR && strcmp(node->text, "mean") == 0) {
        *ret = MEASUREMENT_PERCENTILE_MEAN;
        return 0;
    }
    if (node->kind == YAML_KIND_SCALAR && text_to_double(node->text, &value)) {
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
            if (value == allowed[i]) {
                *ret = value;
                return 0;
            }
        }
    }
    return yaml_error(reader->yaml, node, err,
                      "percentile is \"%s\", expected 50, 90, 95, 99, 99.9 or mean",
                      node->kind == YAML_KIND_SCALAR ? node->text : "not a number");
}

static int read_objective(struct reader *reader, const struct yaml_node *map,
                          struct service *service, struct error *err)
{
    assert(service->name && service->task < TASK_COUNT);
    static const char *const keys[] = {"latency_ms", "percentile", "max_wait_ms"};
    service->latency_ms = service->max_wait_ms = NAN;
    service->percentile = 99;
    if (service->task == TASK_TRAINING) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (yaml_get(map, keys[i]))
                return yaml_error(reader->yaml, yaml_get(map, keys[i]), err,
                                  "%s of a training service, which has no latency objective; "
                                  "expected it to be left out",
                                  keys[i]);
        return 0;
    }
    int rc =
        read_positive(reader, map, "latency_ms", LATENCY_MS_MAX, &service->latency_ms, err);
    if (rc < 0)
        return rc;
    if (isnan(service->latency_ms))
        return yaml_error(reader->yaml, map, err,
                          "latency_ms of service \"%s\" is missing, expected its objective in "
                          "milliseconds (or task: training)",
                          service->name);
    /* A batch may fill for a quarter of the objective: what is left is for the queue and the
     * work itself. */
    service->max_wait_ms = service->latency_ms / 4;
    rc = read_percentile(reader, map, &service->percentile, err);
    if (rc < 0)
        return rc;
    return yaml_get_number(reader->yaml, map, "max_wait_ms", 0, LATENCY_MS_MAX,
                           &service->max_wait_ms, err);
}

static int read_identity(struct reader *reader, const struct yaml_node *map,
                         struct service *service, struct error *err)
{
    assert(reader->names.count + 1 == reader->set->services.count);
    int rc = read_text(reader, map, "name", &service->name, err);
    if (rc == 0)
        rc = read_text(reader, map, "model", &service->model, err);
    if (rc < 0)
        return rc;
    service->model_line = yaml_get(map, "model")->line;
    service->model_column = yaml_get(map, "model")->column;
    ptrdiff_t earlier = map_find(&reader->names, service->name);
    if (earlier >= 0)
        return yaml_error(reader->yaml, yaml_get(map, "name"), err,
                          "service \"%s\" is already defined in line %u, expected unique names",
                          service->name, reader->set->services.data[earlier].line);
    map_put(&reader->names, service->name, NULL);
    return 0;
}

static int read_service(struct reader *reader, const struct yaml_node *map, struct error *err)
{
    static const char *const known[] = {"name",       "model",         "rate_rps", "latency_ms",
                                        "percentile", "max_wait_ms",   "task",     "spread",
                                        "priority",   "min_instances", NULL};
    static const char *const tasks[TASK_COUNT] = {"inference", "training"};
    int rc = yaml_expect(reader->yaml, map, YAML_KIND_MAP,
                         "a service with name, model, rate_rps", err);
    if (rc == 0)
        rc = yaml_only_keys(reader->yaml, map, known, err);
    if (rc < 0)
        return rc;
    struct service *service = vec_push(&reader->set->services);
    int task = TASK_INFERENCE, spread = SPREAD_NONE;
    service->line = map->line;
    service->min_instances = 1;
    service->rate_rps = NAN;
    rc = read_identity(reader, map, service, err);
    if (rc == 0)
        rc = read_choice(reader, map, "task", tasks, TASK_COUNT, &task, err);
    if (rc == 0)
        rc = read_choice(reader, map, "spread", spread_names, SPREAD_COUNT, &spread, err);
    if (rc == 0)
        rc = read_positive(reader, map, "rate_rps", RATE_RPS_MAX, &service->rate_rps, err);
    if (rc == 0)
        rc = read_int(reader, map, "min_instances", (const long long[]){1, MIN_INSTANCES_MAX},
                      &service->min_instances, err);
    if (rc == 0)
        rc = read_int(reader, map, "priority",
                      (const long long[]){-PRIORITY_LIMIT, PRIORITY_LIMIT}, &service->priority,
                      err);
    if (rc < 0)
        return rc;
    if (isnan(service->rate_rps))
        return yaml_error(reader->yaml, map, err,
                          "rate_rps of service \"%s\" is missing, expected requests a second",
                          service->name);
    service->task = (enum task)task;
    service->spread = (enum spread)spread;
    return read_objective(reader, map, service, err);
}

static int read_services(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    const struct yaml_node *list = yaml_get(root, "services");
    if (!list)
        return yaml_error(reader->yaml, root, err,
                          "services is missing, expected a list of services");
    int rc = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of services", err);
    for (size_t i = 0; rc == 0 && i < list->count; i++)
        rc = read_service(reader, list->items[i], err);
    return rc;
}

/* Who holds a fixed instance: a service of this file, or somebody else. */
static int read_holder(struct reader *reader, const struct yaml_node *map,
                       struct fixed_instance *instance, struct error *err)
{
    assert(!instance->reserved);
    const char *name = NULL;
    int rc = yaml_get_bool(reader->yaml, map, "reserved", &instance->reserved, err);
    if (rc == 0)
        rc = yaml_get_text(reader->yaml, map, "service", &name, err);
    if (rc < 0)
        return rc;
    instance->service = -1;
    if ((name != NULL) == instance->reserved)
        return yaml_error(reader->yaml, map, err,
                          "expected either service: NAME or reserved: true of an instance");
    if (!name)
        return 0;
    instance->service = (int)map_find(&reader->names, name);
    if (instance->service >= 0)
        return 0;
    size_t count = reader->names.count;
    const char **names = arena_alloc(&reader->set->arena, count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = reader->names.entries[i].key;
    const char *nearest = text_nearest(name, names, count);
    return yaml_error(reader->yaml, yaml_get(map, "service"), err,
                      "service \"%s\" is not among the services of this file%s%s%s", name,
                      nearest ? ", did you mean \"" : "", nearest ? nearest : "",
                      nearest ? "\"?" : "");
}

static int read_instance(struct reader *reader, const struct yaml_node *map,
                         const struct mig_board *board, struct fleet_gpu *gpu,
                         struct error *err)
{
    assert(board && gpu->instances.count < MIG_INSTANCES_MAX);
    static const char *const known[] = {"slice", "start", "service", "reserved", NULL};
    int rc = yaml_expect(reader->yaml, map, YAML_KIND_MAP,
                         "an instance with slice, start and service or reserved", err);
    if (rc == 0)
        rc = yaml_only_keys(reader->yaml, map, known, err);
    if (rc < 0)
        return rc;
    struct fixed_instance *instance = vec_push(&gpu->instances);
    const char *slice = NULL;
    rc = read_text(reader, map, "slice", &slice, err);
    if (rc < 0)
        return rc;
    struct error inner;
    if (mig_profile_get(board, slice, &instance->profile, &inner) < 0)
        return yaml_error(reader->yaml, yaml_get(map, "slice"), err, "%s", inner.text);
    if (!yaml_get(map, "start"))
        return yaml_error(
            reader->yaml, map, err,
            "start is missing, expected the memory unit where the instance begins");
    rc = read_int(reader, map, "start", (const long long[]){0, MIG_UNITS_MAX}, &instance->start,
                  err);
    return rc < 0 ? rc : read_holder(reader, map, instance, err);
}

static int check_gpu_layout(struct reader *reader, const struct yaml_node *node,
                            const struct mig_board *board, const struct fleet_gpu *gpu,
                            struct error *err)
{
    assert(gpu->instances.count <= MIG_INSTANCES_MAX);
    struct mig_layout layout = {0};
    struct error inner;
    for (size_t i = 0; i < gpu->instances.count; i++)
        layout.instances[layout.count++] =
            (struct mig_instance){.profile = (int8_t)gpu->instances.data[i].profile,
                                  .start = (int8_t)gpu->instances.data[i].start};
    mig_layout_sort(&layout);
    if (mig_layout_check(board, &layout, &inner) < 0)
        return yaml_error(reader->yaml, node, err, "the instances of GPU \"%s\": %s", gpu->id,
                          inner.text);
    return 0;
}

static int read_gpu_instances(struct reader *reader, const struct yaml_node *map,
                              const struct mig_board *board, struct fleet_gpu *gpu,
                              struct error *err)
{
    const struct yaml_node *list = yaml_get(map, "instances");
    if (!list)
        return 0;
    int rc = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of instances", err);
    if (rc < 0)
        return rc;
    if (list->count > MIG_INSTANCES_MAX)
        return yaml_error(reader->yaml, list, err,
                          "%zu instances, expected at most %d on a GPU", list->count,
                          (int)MIG_INSTANCES_MAX);
    for (size_t i = 0; rc == 0 && i < list->count; i++)
        rc = read_instance(reader, list->items[i], board, gpu, err);
    return rc < 0 ? rc : check_gpu_layout(reader, list, board, gpu, err);
}

static int read_gpu(struct reader *reader, const struct yaml_node *map, struct fleet_part *part,
                    struct error *err)
{
    assert(part->board);
    static const char *const known[] = {"id", "node", "instances", NULL};
    int rc =
        yaml_expect(reader->yaml, map, YAML_KIND_MAP, "a GPU with id, node, instances", err);
    if (rc == 0)
        rc = yaml_only_keys(reader->yaml, map, known, err);
    if (rc < 0)
        return rc;
    struct fleet_gpu *gpu = vec_push(&part->gpus);
    gpu->node = "";
    rc = read_text(reader, map, "id", &gpu->id, err);
    if (rc == 0 && yaml_get(map, "node"))
        rc = read_text(reader, map, "node", &gpu->node, err);
    if (rc < 0)
        return rc;
    if (map_find(&reader->gpu_ids, gpu->id) >= 0)
        return yaml_error(reader->yaml, yaml_get(map, "id"), err,
                          "GPU \"%s\" is listed twice, expected unique ids", gpu->id);
    map_put(&reader->gpu_ids, gpu->id, NULL);
    return read_gpu_instances(reader, map, part->board, gpu, err);
}

/* GPUs listed without a count are all there are; a count includes the listed ones. */
static int read_part_gpus(struct reader *reader, const struct yaml_node *map,
                          struct fleet_part *part, struct error *err)
{
    assert(part->board && part->count >= MIG_FLEET_UNLIMITED);
    const struct yaml_node *list = yaml_get(map, "gpus");
    if (!list)
        return 0;
    int rc = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of GPUs", err);
    for (size_t i = 0; rc == 0 && i < list->count; i++)
        rc = read_gpu(reader, list->items[i], part, err);
    if (rc < 0)
        return rc;
    if (!yaml_get(map, "count"))
        part->count = (int)list->count;
    /* MIG_FLEET_UNLIMITED is the largest size_t here, and so never too few. */
    if ((size_t)part->count < list->count)
        return yaml_error(reader->yaml, yaml_get(map, "count"), err,
                          "count is %d, but %zu GPUs are listed; expected at least as many",
                          part->count, list->count);
    return 0;
}

static int read_part(struct reader *reader, const struct yaml_node *map, struct error *err)
{
    static const char *const known[] = {"board",         "count", "price",
                                        "gpus_per_node", "gpus",  NULL};
    int rc =
        yaml_expect(reader->yaml, map, YAML_KIND_MAP, "GPUs with board, count, price", err);
    if (rc == 0)
        rc = yaml_only_keys(reader->yaml, map, known, err);
    const char *board = NULL;
    if (rc == 0)
        rc = read_text(reader, map, "board", &board, err);
    if (rc < 0)
        return rc;
    struct fleet_part *part = vec_push(&reader->set->fleet);
    *part = (struct fleet_part){.count = MIG_FLEET_UNLIMITED, .price = 1, .line = map->line};
    struct error inner;
    if (mig_board_get(board, &part->board, &inner) < 0)
        return yaml_error(reader->yaml, yaml_get(map, "board"), err, "%s", inner.text);
    rc = read_int(reader, map, "count", (const long long[]){0, MIG_FLEET_COUNT_MAX},
                  &part->count, err);
    if (rc == 0)
        rc = read_positive(reader, map, "price", PRICE_MAX, &part->price, err);
    if (rc == 0)
        rc = read_int(reader, map, "gpus_per_node", (const long long[]){1, 1024},
                      &part->gpus_per_node, err);
    return rc < 0 ? rc : read_part_gpus(reader, map, part, err);
}

static int read_fleet(struct reader *reader, const struct yaml_node *root, struct error *err)
{
    const struct yaml_node *list = yaml_get(root, "fleet");
    if (!list || yaml_is_null(list))
        return 0;
    int rc = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of boards", err);
    for (size_t i = 0; rc == 0 && i < list->count; i++)
        rc = read_part(reader, list->items[i], err);
    return rc;
}

static int read_root(struct reader *reader, struct error *err)
{
    static const char *const known[] = {"services", "fleet", "latency_rule", "derate", NULL};
    const struct yaml_node *root = yaml_root(reader->yaml);
    struct service_set *set = reader->set;
    int rule = RULE_QUEUE;
    set->derate = 1;
    int rc = yaml_expect(reader->yaml, root, YAML_KIND_MAP, "a map with services", err);
    if (rc == 0)
        rc = yaml_only_keys(reader->yaml, root, known, err);
    if (rc == 0)
        rc = read_services(reader, root, err);
    if (rc == 0)
        rc = read_fleet(reader, root, err);
    if (rc == 0)
        rc = read_choice(reader, root, "latency_rule", rule_names, LATENCY_RULE_COUNT, &rule,
                         err);
    if (rc == 0)
        rc = read_positive(reader, root, "derate", 1, &set->derate, err);
    set->latency_rule = (enum latency_rule)rule;
    return rc;
}

int service_set_parse(const char *name, const char *bytes, size_t length,
                      struct service_set *ret_set, struct error *err)
{
    assert(name && ret_set);
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    int rc = yaml_parse(name, bytes, length, &yaml, err);
    if (rc < 0)
        return rc;
    struct service_set set = {0};
    CLEANUP(reader_done) struct reader reader = {.yaml = yaml, .set = &set};
    rc = read_root(&reader, err);
    if (rc < 0) {
        service_set_done(&set);
        return rc;
    }
    file_sha256(bytes, length, set.sha256);
    *ret_set = set;
    return 0;
}

int service_set_read(const char *path, struct service_set *ret_set, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int rc = file_read(path, FILE_SIZE_LIMIT, &bytes, err);
    if (rc < 0)
        return rc;
    return service_set_parse(path, bytes.bytes, bytes.length, ret_set, err);
}

int service_set_match(const struct service_set *set, const struct measurement_set *rows,
                      const char *services_path, struct error *err)
{
    assert(set && rows && services_path);
    struct map models = {0};
    for (size_t i = 0; i < rows->rows.count; i++)
        if (map_find(&models, rows->rows.data[i].model) < 0)
            map_put(&models, rows->rows.data[i].model, NULL);
    const char **names = xcalloc(models.count + 1, sizeof *names);
    for (size_t i = 0; i < models.count; i++)
        names[i] = models.entries[i].key;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < set->services.count; i++) {
        const struct service *service = &set->services.data[i];
        if (map_find(&models, service->model) >= 0)
            continue;
        const char *nearest = text_nearest(service->model, names, models.count);
        rc = error_set(
            err, E_INPUT,
            "%s:%u:%u: model \"%s\" of service \"%s\" is not in the measurements%s%s%s",
            services_path, service->model_line, service->model_column, service->model,
            service->name, nearest ? ", did you mean \"" : ", expected one of its models",
            nearest ? nearest : "", nearest ? "\"?" : "");
    }
    free(names);
    map_done(&models);
    return rc;
}

/* The first part of the file's fleet with this board, or NULL. */
static const struct fleet_part *find_part(const struct service_set *set,
                                          const struct mig_board *board)
{
    assert(board);
    for (size_t i = 0; i < set->fleet.count; i++)
        if (set->fleet.data[i].board == board)
            return &set->fleet.data[i];
    return NULL;
}

int service_set_use_fleet(struct service_set *set, const char *text, struct error *err)
{
    assert(set && text);
    struct mig_fleet fleet;
    int rc = mig_fleet_parse(text, &fleet, err);
    if (rc < 0)
        return rc;
    /* The old parts live in a set of their own until their prices are read; texts stay in
     * set->arena. */
    struct service_set old = {.fleet.data = set->fleet.data, .fleet.count = set->fleet.count};
    memset(&set->fleet, 0, sizeof set->fleet);
    for (int i = 0; i < fleet.count; i++) {
        const struct fleet_part *known = find_part(&old, fleet.entries[i].board);
        struct fleet_part *part = vec_push(&set->fleet);
        part->board = fleet.entries[i].board;
        part->count = fleet.entries[i].count;
        part->price = known ? known->price : 1;
        part->gpus_per_node = known ? known->gpus_per_node : 0;
    }
    service_set_done(&old);
    return 0;
}
