/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/times.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/yaml.h"

static const double SECONDS_MAX = 1e6;

/* measured: we1yq/OR_sim_planner, medians on A100-40GB through nvidia-smi and CDI: partial
 * layout change 2.38 (taken for a creation), clear 1.60 (for a deletion), activate 11.9;
 * Jormungandr (doi 10.1145/3688351.3689156): a pod killed after its last request 1.09. A
 * drain that waits for the requests under way is taken to last 1.
 * paper: MIG-serving (arXiv 2109.11067, section 8): create 47.4, delete 37.9, GPU partition
 * 49.8, of which a creation and a deletion of an instance take one half each; its delete
 * includes the drain. */
static const struct {
    const char *name;
    struct action_times times;
} tables[] = {
    {"measured",
     {.seconds = {[ACTION_CREATE_INSTANCE] = 2.38,
                  [ACTION_DELETE_INSTANCE] = 1.6,
                  [ACTION_START] = 11.9,
                  [ACTION_DRAIN] = 1,
                  [ACTION_STOP] = 1.09}}},
    {"paper",
     {.seconds = {[ACTION_CREATE_INSTANCE] = 24.9,
                  [ACTION_DELETE_INSTANCE] = 24.9,
                  [ACTION_START] = 47.4,
                  [ACTION_DRAIN] = 0,
                  [ACTION_STOP] = 37.9}}},
};

const struct action_times *action_times_find(const char *name)
{
    assert(name);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i].name, name) == 0)
            return &tables[i].times;
    return NULL;
}

double action_times_seconds(const struct action_times *times, enum action_kind kind,
                            const char *service)
{
    assert(kind < ACTION_KIND_COUNT);
    for (size_t i = 0; service && i < times->services.count; i++)
        if (strcmp(times->services.data[i].service, service) == 0 &&
            !isnan(times->services.data[i].seconds[kind]))
            return times->services.data[i].seconds[kind];
    return times->seconds[kind];
}

void action_times_done(struct action_times *times)
{
    vec_done(&times->services);
    arena_done(&times->arena);
}

static int read_seconds(const struct yaml *yaml, const struct yaml_node *map, double *seconds,
                        struct error *err)
{
    int rc = 0;
    for (int kind = 0; rc == 0 && kind < ACTION_KIND_COUNT; kind++)
        rc = yaml_get_number(yaml, map, action_kind_name((enum action_kind)kind), 0,
                             SECONDS_MAX, &seconds[kind], err);
    return rc;
}

static int read_service(const struct yaml *yaml, const struct yaml_node *node,
                        struct action_times *times, struct error *err)
{
    static const char *const known[] = {"name", "start", "drain", "stop", NULL};
    assert(times);
    struct service_times service = {0};
    for (int kind = 0; kind < ACTION_KIND_COUNT; kind++)
        service.seconds[kind] = NAN;
    int rc = yaml_expect(yaml, node, YAML_KIND_MAP, "a service's times", err);
    if (rc == 0)
        rc = yaml_only_keys(yaml, node, known, err);
    if (rc == 0)
        rc = yaml_get_text(yaml, node, "name", &service.service, err);
    if (rc == 0 && !service.service)
        return yaml_error(yaml, node, err, "expected the service's name");
    if (rc == 0)
        rc = read_seconds(yaml, node, service.seconds, err);
    if (rc < 0)
        return rc;
    service.service = arena_strdup(&times->arena, service.service);
    vec_add(&times->services, service);
    return 0;
}

static int read_root(const struct yaml *yaml, struct action_times *times, struct error *err)
{
    static const char *const known[] = {"seconds", "services", NULL};
    static const char *const kinds[] = {
        "create_instance", "delete_instance", "start", "drain", "stop", NULL};
    const struct yaml_node *root = yaml_root(yaml);
    int rc = yaml_expect(yaml, root, YAML_KIND_MAP, "seconds and services", err);
    if (rc == 0)
        rc = yaml_only_keys(yaml, root, known, err);
    if (rc < 0)
        return rc;
    const struct yaml_node *seconds = yaml_get(root, "seconds"),
                           *services = yaml_get(root, "services");
    if (seconds)
        rc = yaml_expect(yaml, seconds, YAML_KIND_MAP, "seconds by kind of action", err);
    if (rc == 0 && seconds)
        rc = yaml_only_keys(yaml, seconds, kinds, err);
    if (rc == 0 && seconds)
        rc = read_seconds(yaml, seconds, times->seconds, err);
    if (rc == 0 && services)
        rc = yaml_expect(yaml, services, YAML_KIND_LIST, "a list of services", err);
    for (size_t i = 0; rc == 0 && services && i < services->count; i++)
        rc = read_service(yaml, services->items[i], times, err);
    return rc;
}

int action_times_parse(const char *name, const char *bytes, size_t length,
                       struct action_times *ret_times, struct error *err)
{
    assert(name && ret_times);
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct action_times times = *action_times_find("measured");
    int rc = yaml_parse(name, bytes, length, &yaml, err);
    if (rc == 0)
        rc = read_root(yaml, &times, err);
    if (rc < 0)
        action_times_done(&times);
    else
        *ret_times = times;
    return rc;
}
