/* SPDX-License-Identifier: Apache-2.0
 *
 * The preflight: version, APIs, definitions and owners of nodes are asked one after the other,
 * the rights all at once.
 */
#include "control/preflight.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "control/actuator_internal.h"
#include "control/kinds.h"
#include "control/pool_nodes.h"
#include "control/preflight_rights.h"
#include "control/resources.h"
#include "control/schema.h"

/* CustomResourceDefinitions with rules, and admission policies, are GA from here on. */
enum { MINOR_LEAST = 30, MINOR_DYNAMIC_MIG = 36, LIST_LIMIT = 500 };
static const int64_t VERSION_TIMEOUT_NS = INT64_C(30000000000);

/* What is gathered on the way. */
struct preflight {
    const struct preflight_options *options;
    struct preflight_report *report;
    json_t *nodes, *slices, *pools; /* lists of objects; NULL: not there or not readable */
};

static void preflight_done(struct preflight *preflight)
{
    json_decref(preflight->nodes);
    json_decref(preflight->slices);
    json_decref(preflight->pools);
}

const char *finding_level_name(enum finding_level level)
{
    static const char *const names[FINDING_LEVEL_COUNT] = {"good", "note", "bad"};

    assert(level < FINDING_LEVEL_COUNT);
    return names[level];
}

static const char *definition_state_name(enum definition_state state)
{
    static const char *const names[DEFINITION_STATE_COUNT] = {"current", "other", "missing",
                                                              "unknown"};

    assert(state < DEFINITION_STATE_COUNT);
    return names[state];
}

void preflight_report_done(struct preflight_report *report)
{
    vec_done(&report->definitions);
    vec_done(&report->rights);
    vec_done(&report->conflicts);
    vec_done(&report->findings);
    arena_done(&report->arena);
}

static void find(struct preflight *preflight, enum finding_level level, const char *subject,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

static void find(struct preflight *preflight, enum finding_level level, const char *subject,
                 const char *format, ...)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    va_list arguments;

    va_start(arguments, format);
    str_vaddf(&text, format, arguments);
    va_end(arguments);
    struct preflight_finding *finding = vec_push(&preflight->report->findings);
    *finding = (struct preflight_finding){level, subject,
                                          arena_strdup(&preflight->report->arena, text.bytes)};
}

/* The API server's version: /version is no object, so it goes past the client. */

struct version_wait {
    struct error error;
    int status;
    json_t *json;
    bool done;
};

static void version_done(void *context, const struct kube_response *response)
{
    struct version_wait *wait = context;

    wait->error = response->error;
    wait->status = response->status;
    if (response->error.code == E_NONE && response->status == 200)
        wait->json = json_loadb(response->body, response->length, 0, NULL);
    wait->done = true;
}

/* "v1.36.3-vendor.1": major and minor; 0 and 0 when it is something else. */
static void read_version(struct preflight_report *report)
{
    char *rest = NULL;
    long major = *report->version == 'v' ? strtol(report->version + 1, &rest, 10) : 0;

    if (!rest || *rest != '.' || major < 0 || major > INT_MAX)
        return;
    long minor = strtol(rest + 1, NULL, 10);
    if (minor < 0 || minor > INT_MAX)
        return;
    report->major = (int)major;
    report->minor = (int)minor;
}

static int ask_version(struct preflight *preflight, struct error *err)
{
    struct preflight_report *report = preflight->report;
    struct kube_loop *loop = kube_client_loop(preflight->options->client);
    const struct kube_transport *transport = kube_loop_transport(loop);
    struct version_wait wait = {.done = false};
    struct kube_receiver receiver = {.done = version_done, .context = &wait};
    struct kube_request request = {
        .method = "GET", .path = "/version", .timeout_ns = VERSION_TIMEOUT_NS};
    transport->start(transport->self, &request, &receiver);
    while (!wait.done) {
        int rc = kube_loop_turn(loop, VERSION_TIMEOUT_NS, err);
        if (rc < 0)
            return rc;
    }
    if (wait.error.code != E_NONE)
        return error_set(err, wait.error.code, "%s", wait.error.text);
    if (!wait.json)
        return error_set(err, wait.status == 401 || wait.status == 403 ? E_USAGE : E_IO,
                         "the API server answered %d when asked for its version", wait.status);
    report->version = arena_strdup(&report->arena, json_text(wait.json, "gitVersion"));
    json_decref(wait.json);
    read_version(report);
    bool old = report->major < 1 || (report->major == 1 && report->minor < MINOR_LEAST);
    find(preflight, old ? FINDING_BAD : FINDING_GOOD, "Kubernetes", "%s%s", report->version,
         old ? ", expected v1.30 or later" : "");
    return 0;
}

/* All objects of a kind. *ret_items stays NULL where the kind is not served or not readable. */
static int list_all(struct preflight *preflight, const struct kube_kind *kind,
                    json_t **ret_items, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *items = json_array();
    CLEANUP(free_ptr) char *more = NULL;

    do {
        struct kube_call call = {.verb = KUBE_LIST,
                                 .target = {.kind = kind},
                                 .limit = LIST_LIMIT,
                                 .continue_token = more};
        struct kube_answer answer = {0};
        int rc = kube_client_call(preflight->options->client, &call, &answer, err);
        if (rc < 0) {
            int status = answer.status;
            kube_answer_done(&answer);
            return status == 404 || status == 403 ? 0 : rc;
        }
        json_array_extend(items, json_object_get(answer.json, "items"));
        free(more);
        more = xstrdup(json_text(json_object_get(answer.json, "metadata"), "continue"));
        kube_answer_done(&answer);
    } while (*more);
    *ret_items = STEAL(items);
    return 0;
}

/* Definitions. */

static int ask_definition(struct preflight *preflight, const struct schema_kind *kind,
                          struct error *err)
{
    struct preflight_report *report = preflight->report;
    struct kube_answer answer = {0};
    char *name = arena_printf(&report->arena, "%s.%s", kind->kind->plural, kind->kind->group);
    struct kube_call call = {.verb = KUBE_GET,
                             .target = {.kind = &KIND_DEFINITION, .name = name}};
    char wanted[17];

    schema_hash(kind, wanted);
    int rc = kube_client_call(preflight->options->client, &call, &answer, err);
    struct preflight_definition definition = {name, DEFINITION_MISSING, ""};
    if (rc == 0) {
        const json_t *metadata = json_object_get(answer.json, "metadata");
        definition.hash =
            arena_strdup(&report->arena,
                         json_text(json_object_get(metadata, "annotations"), SCHEMA_HASH_NOTE));
        definition.state =
            strcmp(definition.hash, wanted) == 0 ? DEFINITION_CURRENT : DEFINITION_OTHER;
    } else if (answer.status == 403) {
        definition.state = DEFINITION_UNKNOWN;
    }
    bool told = rc == 0 || answer.status == 403 || answer.status == 404;
    kube_answer_done(&answer);
    vec_add(&report->definitions, definition);
    return told ? 0 : rc;
}

static int ask_definitions(struct preflight *preflight, struct error *err)
{
    static const enum finding_level levels[DEFINITION_STATE_COUNT] = {
        FINDING_GOOD, FINDING_BAD, FINDING_BAD, FINDING_NOTE};
    static const char *const texts[DEFINITION_STATE_COUNT] = {
        "are installed, with this program's schemas",
        "have the schema of another version of tranche: apply those of this version",
        "are not installed: install the chart, or apply deploy/install.yaml",
        "cannot be read with these credentials"};

    for (int i = 0; i < SCHEMA_KIND_COUNT; i++) {
        int rc = ask_definition(preflight, SCHEMA_KINDS[i], err);
        if (rc < 0)
            return rc;
    }
    for (int state = 0; state < DEFINITION_STATE_COUNT; state++) {
        CLEANUP(str_done) struct str names = STR_EMPTY;
        for (size_t i = 0; i < preflight->report->definitions.count; i++)
            if ((int)preflight->report->definitions.data[i].state == state)
                str_addf(&names, "%s%s", names.length ? ", " : "",
                         preflight->report->definitions.data[i].name);
        if (names.length)
            find(preflight, levels[state], "definitions", "%s %s", names.bytes, texts[state]);
    }
    return 0;
}

/* DRA and Gateway API. */

static bool is_of_driver(const json_t *slice)
{
    return strcmp(json_text(json_object_get(slice, "spec"), "driver"), DRA_DRIVER) == 0;
}

static int ask_dra(struct preflight *preflight, struct error *err)
{
    struct preflight_report *report = preflight->report;
    int rc = list_all(preflight, &KIND_RESOURCE_SLICE, &preflight->slices, err);

    if (rc < 0)
        return rc;
    report->has_dra = preflight->slices != NULL;
    for (size_t i = 0; i < json_array_size(preflight->slices); i++) {
        const json_t *slice = json_array_get(preflight->slices, i);
        report->has_dra_driver |= is_of_driver(slice);
        report->has_dynamic_mig |= slice_offers_partitions(slice);
    }
    if (report->has_dynamic_mig)
        find(preflight, FINDING_GOOD, "DRA",
             "driver " DRA_DRIVER " with DynamicMIG: pools with actuator auto use dra");
    else if (report->has_dra_driver)
        find(preflight, FINDING_NOTE, "DRA",
             "driver " DRA_DRIVER " without partitions: its feature gate DynamicMIG is off%s",
             report->minor < MINOR_DYNAMIC_MIG ? ", and it needs Kubernetes 1.36" : "");
    else
        find(preflight, FINDING_NOTE, "DRA", "%s",
             report->has_dra ? "resource.k8s.io/v1 is served, driver " DRA_DRIVER
                               " publishes nothing: pools with actuator auto use the agent"
                             : "resource.k8s.io/v1 is not served or not readable: pools with "
                               "actuator auto use the agent");
    return 0;
}

static int ask_gateway(struct preflight *preflight, struct error *err)
{
    json_t *routes = NULL;
    int rc = list_all(preflight, &KIND_HTTP_ROUTE, &routes, err);

    preflight->report->has_gateway = routes != NULL;
    json_decref(routes);
    if (rc < 0)
        return rc;
    find(preflight, preflight->report->has_gateway ? FINDING_GOOD : FINDING_NOTE, "Gateway API",
         "%s",
         preflight->report->has_gateway
             ? "HTTPRoute is served: traffic can be shared by the instances' rates"
             : "HTTPRoute is not served or not readable: traffic is shared per pod");
    return 0;
}

/* Owners of nodes. */

static bool has_partitions(const struct preflight *preflight, const json_t *node)
{
    const char *name = kube_metadata(node, "name");

    for (size_t i = 0; i < json_array_size(preflight->slices); i++) {
        const json_t *slice = json_array_get(preflight->slices, i);
        if (slice_offers_partitions(slice) &&
            strcmp(json_text(json_object_get(slice, "spec"), "nodeName"), name) == 0)
            return true;
    }
    return false;
}

/* What is wrong with a node whose MIG state these drive; NULL: nothing. pool: of its pool, or
 * ACTUATOR_KIND_COUNT. */
static const char *conflict_of(bool manager, bool driver, enum actuator_kind actuator)
{
    if (manager && driver)
        return "label " LABEL_MIG_CONFIG " (mig-manager) and " DRA_DRIVER
               " with DynamicMIG both drive its MIG state";
    if (manager && (actuator == ACTUATOR_AGENT || actuator == ACTUATOR_DRA))
        return "label " LABEL_MIG_CONFIG ": mig-manager drives its MIG state, its GpuPool does "
               "not use mig-manager";
    if (driver && (actuator == ACTUATOR_AGENT || actuator == ACTUATOR_MIG_MANAGER))
        return DRA_DRIVER " with DynamicMIG drives its MIG state, its GpuPool does not use dra";
    return NULL;
}

/* The GpuPool that a node belongs to, or NULL. */
static const json_t *owner_of_node(const struct preflight *preflight, const json_t *node)
{
    size_t count = json_array_size(preflight->pools);
    const json_t **pools = xcalloc(count + 1, sizeof *pools);

    for (size_t i = 0; i < count; i++)
        pools[i] = json_array_get(preflight->pools, i);
    const json_t *owner = pool_of_node(pools, count, node);
    free(pools);
    return owner;
}

static enum actuator_kind actuator_of_node(const struct preflight *preflight,
                                           const json_t *node)
{
    const json_t *owner = owner_of_node(preflight, node);
    enum actuator_kind kind = ACTUATOR_KIND_COUNT;
    struct arena arena = {0};
    struct gpu_pool pool;

    if (owner && gpu_pool_read(owner, &arena, &pool, NULL) == 0)
        kind = pool.actuator;
    if (kind == ACTUATOR_AUTO)
        kind = preflight->report->has_dynamic_mig ? ACTUATOR_DRA : ACTUATOR_AGENT;
    arena_done(&arena);
    return kind;
}

/* Pools that select nodes of an older pool: told once a pair, by the first node. */
static void ask_shared_nodes(struct preflight *preflight, const json_t *pool)
{
    CLEANUP(map_done) struct map told = {0};

    for (size_t i = 0; i < json_array_size(preflight->nodes); i++) {
        const json_t *node = json_array_get(preflight->nodes, i);
        const json_t *owner = pool_selects(pool, node) ? owner_of_node(preflight, node) : NULL;
        if (!owner || owner == pool || map_find(&told, kube_metadata(owner, "name")) >= 0)
            continue;
        map_put(&told, kube_metadata(owner, "name"), NULL);
        find(preflight, FINDING_BAD, "pools",
             "GpuPools %s and %s both select node %s: it belongs to %s, the older one; let one "
             "spec.nodeSelector leave it out",
             kube_metadata(owner, "name"), kube_metadata(pool, "name"),
             kube_metadata(node, "name"), kube_metadata(owner, "name"));
    }
}

static void ask_owners(struct preflight *preflight)
{
    struct preflight_report *report = preflight->report;

    for (size_t i = 0; i < json_array_size(preflight->nodes); i++) {
        const json_t *node = json_array_get(preflight->nodes, i);
        const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
        const char *text =
            conflict_of(*json_text(labels, LABEL_MIG_CONFIG) != '\0',
                        has_partitions(preflight, node), actuator_of_node(preflight, node));
        if (!text)
            continue;
        struct preflight_conflict conflict = {
            arena_strdup(&report->arena, kube_metadata(node, "name")), text};
        vec_add(&report->conflicts, conflict);
        find(preflight, FINDING_BAD, "nodes", "%s: %s", conflict.node, text);
    }
    if (report->conflicts.count == 0)
        find(preflight, preflight->nodes ? FINDING_GOOD : FINDING_NOTE, "nodes",
             preflight->nodes ? "%d, none with two owners of its MIG state"
                              : "cannot be read with these credentials",
             report->nodes);
}

static int ask_objects(struct preflight *preflight, struct error *err)
{
    struct preflight_report *report = preflight->report;
    int rc = list_all(preflight, &KUBE_NODE, &preflight->nodes, err);

    if (rc == 0)
        rc = list_all(preflight, &KIND_GPU_POOL, &preflight->pools, err);
    if (rc < 0)
        return rc;
    report->nodes = (int)json_array_size(preflight->nodes);
    report->pools = (int)json_array_size(preflight->pools);
    ask_owners(preflight);
    for (size_t i = 0; i < json_array_size(preflight->pools); i++)
        ask_shared_nodes(preflight, json_array_get(preflight->pools, i));
    find(preflight, report->pools ? FINDING_GOOD : FINDING_NOTE, "pools", "%d GpuPool%s",
         report->pools, report->pools == 1 ? "" : "s");
    return 0;
}

/* Rights: those that this cluster needs, by its pools and what it serves. */

static bool uses(const struct preflight *preflight, enum actuator_kind actuator)
{
    bool used = false;
    struct arena arena = {0};

    for (size_t i = 0; i < json_array_size(preflight->pools) && !used; i++) {
        struct gpu_pool pool;
        if (gpu_pool_read(json_array_get(preflight->pools, i), &arena, &pool, NULL) == 0)
            used = pool.actuator == actuator;
    }
    arena_done(&arena);
    return used;
}

static int ask_rights(struct preflight *preflight, struct error *err)
{
    struct preflight_report *report = preflight->report;
    bool needs[RIGHT_PURPOSE_COUNT] = {
        [RIGHT_ALWAYS] = true,
        [RIGHT_DRA] = report->has_dynamic_mig || uses(preflight, ACTUATOR_DRA),
        [RIGHT_MIG_MANAGER] = uses(preflight, ACTUATOR_MIG_MANAGER),
        [RIGHT_GATEWAY] = report->has_gateway,
    };
    int rc = preflight_ask_rights(preflight->options, needs, report, err);
    size_t missing = 0, lacking = 0;

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < report->rights.count; i++) {
        const struct preflight_right *right = &report->rights.data[i];
        missing += right->needed && !right->allowed;
        lacking += !right->needed && !right->allowed;
        if (right->allowed)
            continue;
        find(preflight, right->needed ? FINDING_BAD : FINDING_NOTE, "rights",
             "may not %s %s%s%s%s%s%s%s%s", right->verb, right->resource,
             *right->subresource ? "/" : "", right->subresource, *right->group ? "." : "",
             right->group, *right->namespace ? " in " : "", right->namespace,
             right->needed ? "" : " (not needed now)");
    }
    find(preflight, missing ? FINDING_BAD : FINDING_GOOD, "rights",
         "%zu of %zu rights are there, %zu that are needed are missing",
         report->rights.count - missing - lacking, report->rights.count, missing);
    return 0;
}

int preflight_run(const struct preflight_options *options, struct preflight_report *ret_report,
                  struct error *err)
{
    CLEANUP(preflight_done)
    struct preflight preflight = {.options = options, .report = ret_report};
    static int (*const questions[])(struct preflight *, struct error *) = {
        ask_version, ask_definitions, ask_dra, ask_gateway, ask_objects, ask_rights};

    assert(options->client && options->namespace);
    *ret_report = (struct preflight_report){.version = ""};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        int rc = questions[i](&preflight, err);
        if (rc < 0) {
            preflight_report_done(ret_report);
            return rc;
        }
    }
    ret_report->ok = true;
    for (size_t i = 0; i < ret_report->findings.count; i++)
        ret_report->ok &= ret_report->findings.data[i].level != FINDING_BAD;
    return 0;
}

/* JSON. */

static json_t *definitions_json(const struct preflight_report *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->definitions.count; i++) {
        const struct preflight_definition *definition = &report->definitions.data[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", definition->name,
                                              "state", definition_state_name(definition->state),
                                              "schema_hash", definition->hash));
    }
    return list;
}

static json_t *rights_json(const struct preflight_report *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->rights.count; i++) {
        const struct preflight_right *right = &report->rights.data[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "verb",
                            right->verb, "group", right->group, "resource", right->resource,
                            "subresource", right->subresource, "namespace", right->namespace,
                            "name", right->name, "purpose", right->purpose, "needed",
                            right->needed, "allowed", right->allowed));
    }
    return list;
}

json_t *preflight_to_json(const struct preflight_report *report)
{
    json_t *conflicts = json_array(), *findings = json_array();

    for (size_t i = 0; i < report->conflicts.count; i++)
        json_array_append_new(conflicts,
                              json_pack("{s:s, s:s}", "node", report->conflicts.data[i].node,
                                        "conflict", report->conflicts.data[i].text));
    for (size_t i = 0; i < report->findings.count; i++) {
        const struct preflight_finding *finding = &report->findings.data[i];
        json_array_append_new(findings, json_pack("{s:s, s:s, s:s}", "level",
                                                  finding_level_name(finding->level), "subject",
                                                  finding->subject, "text", finding->text));
    }
    return json_pack("{s:b, s:s, s:{s:b, s:b, s:b}, s:b, s:i, s:i, s:o, s:o, s:o, s:o}", "ok",
                     report->ok, "kubernetes", report->version, "dra", "served",
                     report->has_dra, "driver", report->has_dra_driver, "dynamic_mig",
                     report->has_dynamic_mig, "gateway_api", report->has_gateway, "nodes",
                     report->nodes, "pools", report->pools, "definitions",
                     definitions_json(report), "rights", rights_json(report), "conflicts",
                     conflicts, "findings", findings);
}
