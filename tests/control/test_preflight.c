/* SPDX-License-Identifier: Apache-2.0
 *
 * Preflight and clean-up against a model of an API server: what is found in clusters that lack
 * something, and that no finalizer of ours is left, whatever happens meanwhile.
 */
#include "../kube/fake_transport.h"
#include "base/json.h"
#include "control/clean_up.h"
#include "control/kinds.h"
#include "control/preflight.h"
#include "control/schema.h"

struct cluster {
    struct fake_transport fake;
    struct kube_loop *loop;
    struct kube_client *client;
    /* Of the preflight. */
    const char *version, *slices, *nodes, *pools; /* items of lists; NULL: not served */
    bool gateway;
    enum definition_state definitions;
    const char *denied; /* "verb resource" */
    int status;         /* of every answer; 0: as it should be */
    /* Of the clean-up: paths → objects. */
    json_t *objects;
    int lists_until_controller; /* then it takes our finalizers off; 0: there is none */
    int conflicts;              /* patches that are answered 409 */
    bool has_agent;             /* that makes its NodeGpuState anew */
};

static void answer_json(struct fake_answer *answer, int status, json_t *json)
{
    answer->status = status;
    json_write_line(json, &answer->body);
    json_decref(json);
}

static void refuse(struct fake_answer *answer, int status)
{
    answer_json(answer, status,
                json_pack("{s:s, s:i, s:s}", "kind", "Status", "code", status, "reason",
                          status == 404   ? "NotFound"
                          : status == 409 ? "Conflict"
                                          : "Forbidden"));
}

/* Single quotes stand for double ones. */
static void answer_list(struct fake_answer *answer, const char *items)
{
    if (!items) {
        refuse(answer, 404);
        return;
    }
    answer->status = 200;
    str_addf(&answer->body, "{\"metadata\":{},\"items\":[%s]}", items);
    for (char *c = answer->body.bytes; *c; c++)
        if (*c == '\'')
            *c = '"';
}

static void answer_definition(struct cluster *cluster, const char *name,
                              struct fake_answer *answer)
{
    for (int i = 0; i < SCHEMA_KIND_COUNT; i++) {
        char hash[17];
        schema_hash(SCHEMA_KINDS[i], hash);
        if (!text_starts_with(name, SCHEMA_KINDS[i]->kind->plural))
            continue;
        if (cluster->definitions == DEFINITION_MISSING)
            refuse(answer, 404);
        else if (cluster->definitions == DEFINITION_UNKNOWN)
            refuse(answer, 403);
        else
            answer_json(answer, 200,
                        json_pack("{s:{s:{s:s}}}", "metadata", "annotations", SCHEMA_HASH_NOTE,
                                  cluster->definitions == DEFINITION_OTHER ? "old" : hash));
        return;
    }
    refuse(answer, 404);
}

static void answer_review(struct cluster *cluster, const struct kube_request *request,
                          struct fake_answer *answer)
{
    json_t *body = json_loadb(request->body, request->body_length, 0, NULL);
    const json_t *asked = json_object_get(json_object_get(body, "spec"), "resourceAttributes");
    CLEANUP(free_ptr)
    char *what = xasprintf("%s %s", json_string_value(json_object_get(asked, "verb")),
                           json_string_value(json_object_get(asked, "resource")));
    bool allowed = !cluster->denied || strcmp(cluster->denied, what) != 0;

    answer_json(answer, 201, json_pack("{s:{s:b}}", "status", "allowed", allowed));
    json_decref(body);
}

static void on_preflight(void *context, const struct kube_request *request,
                         struct fake_answer *answer)
{
    struct cluster *cluster = context;
    static const char definitions[] =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

    if (cluster->status)
        refuse(answer, cluster->status);
    else if (strcmp(request->path, "/version") == 0)
        answer_json(answer, 200, json_pack("{s:s}", "gitVersion", cluster->version));
    else if (text_starts_with(request->path, definitions))
        answer_definition(cluster, request->path + strlen(definitions), answer);
    else if (strstr(request->path, "/selfsubjectaccessreviews"))
        answer_review(cluster, request, answer);
    else if (strstr(request->path, "/resourceslices"))
        answer_list(answer, cluster->slices);
    else if (strstr(request->path, "/httproutes"))
        answer_list(answer, cluster->gateway ? "" : NULL);
    else if (strstr(request->path, "/nodes"))
        answer_list(answer, cluster->nodes);
    else if (strstr(request->path, "/gpupools"))
        answer_list(answer, cluster->pools);
    else
        fail_msg("asked for %s", request->path);
}

static void cluster_init(struct cluster *cluster, fake_answer_function *function)
{
    *cluster = (struct cluster){.version = "v1.36.3",
                                .slices = "",
                                .nodes = "{'metadata':{'name':'n1'}}",
                                .pools = "",
                                .gateway = true};
    fake_init(&cluster->fake, function, cluster);
    cluster->loop = kube_loop_new(&cluster->fake.transport, &cluster->fake.clock.source);
    cluster->client = kube_client_new(&(struct kube_client_options){
        .loop = cluster->loop, .field_manager = "test", .attempts = 1});
}

static void cluster_done(struct cluster *cluster)
{
    kube_client_free(cluster->client);
    kube_loop_free(cluster->loop);
    fake_done(&cluster->fake);
    json_decref(cluster->objects);
}

#define SLICE_OF(node, device)                                                                 \
    "{'spec':{'driver':'gpu.nvidia.com','nodeName':'" node "','devices':[" device "]}}"
#define PARTITION          "{'name':'gpu-0-mig-1g5gb-19-0','consumesCounters':[{'counterSet':'a'}]}"
#define WHOLE              "{'name':'gpu-0'}"
#define NODE(name, labels) "{'metadata':{'name':'" name "','labels':{" labels "}}}"
#define MANAGED            "'nvidia.com/mig.config':'all-1g'"
#define POOL(actuator)                                                                         \
    "{'metadata':{'name':'default'},'spec':{'actuator':'" actuator                             \
    "','nodeSelector':{'gpu':'yes'}}}"

#define POOL_OF(name, created)                                                                 \
    "{'metadata':{'name':'" name "','creationTimestamp':'" created "'},"                       \
    "'spec':{'actuator':'agent','nodeSelector':{'gpu':'yes'}}}"

/* What differs from a cluster that is ready, and what the findings must say. */
static const struct preflight_case {
    struct cluster cluster;
    bool ok;
    const char *expected; /* "level subject: part of the text" */
} cases[] = {
    {{.status = 0}, true, "good Kubernetes: v1.36.3"},
    {{.status = 0}, true, "good definitions: gpupools.tranche.dev, gpuservices"},
    {{.status = 0},
     true,
     "note DRA: resource.k8s.io/v1 is served, driver gpu.nvidia.com publishes "},
    {{.version = "v1.29.4"}, false, "bad Kubernetes: v1.29.4, expected v1.30 or later"},
    {{.version = "v2.0.0"}, true, "good Kubernetes"},
    {{.version = "strange"}, false, "bad Kubernetes"},
    {{.slices = SLICE_OF("n1", PARTITION)}, true, "good DRA: driver gpu.nvidia.com with Dyn"},
    {{.slices = SLICE_OF("n1", WHOLE)}, true, "note DRA: driver gpu.nvidia.com without part"},
    {{.slices = SLICE_OF("n1", WHOLE), .version = "v1.34.1"}, true, "needs Kubernetes 1.36"},
    {{.definitions = DEFINITION_OTHER}, false, "bad definitions: gpupools.tranche.dev"},
    {{.definitions = DEFINITION_MISSING}, false, "are not installed"},
    {{.definitions = DEFINITION_UNKNOWN}, true, "note definitions: gpupools"},
    {{.denied = "create pods"}, false, "bad rights: may not create pods"},
    {{.denied = "patch leases"},
     false,
     "bad rights: may not patch leases.coordination.k8s.io "
     "in tranche-system"},
    {{.denied = "create resourceclaims"},
     true,
     "note rights: may not create resourceclaims."
     "resource.k8s.io (not needed now)"},
    {{.denied = "create resourceclaims", .slices = SLICE_OF("n1", PARTITION)},
     false,
     "bad rights: may not create resourceclaims"},
    {{.denied = "create resourceclaims", .pools = POOL("dra")}, false, "bad rights"},
    {{.denied = "patch nodes"}, true, "not needed now"},
    {{.denied = "patch nodes", .pools = POOL("mig-manager")}, false, "may not patch nodes"},
    {{.nodes = NODE("n1", MANAGED)}, true, "good nodes: 1, none with two owners"},
    {{.nodes = NODE("n1", MANAGED), .slices = SLICE_OF("n1", PARTITION)},
     false,
     "bad nodes: n1: label nvidia.com/mig.config (mig-manager) and gpu.nvidia.com"},
    {{.nodes = NODE("n1", MANAGED ",'gpu':'yes'"), .pools = POOL("agent")},
     false,
     "bad nodes: n1: label nvidia.com/mig.config"},
    {{.nodes = NODE("n1", MANAGED ",'gpu':'no'"), .pools = POOL("agent")}, true, "1 GpuPool"},
    {{.nodes = NODE("n1", MANAGED ",'gpu':'yes'"), .pools = POOL("mig-manager")}, true, "none"},
    {{.nodes = NODE("n1", "'gpu':'yes'"),
      .pools = POOL("agent"),
      .slices = SLICE_OF("n1", PARTITION)},
     false,
     "does not use dra"},
    {{.nodes = NODE("n1", "'gpu':'yes'"),
      .pools = POOL("auto"),
      .slices = SLICE_OF("n1", PARTITION)},
     true,
     "none with two owners"},
    {{.nodes = NODE("n1", "'gpu':'yes'"),
      .pools = POOL_OF("a", "2026-02-01T00:00:00Z") "," POOL_OF("b", "2026-01-01T00:00:00Z")},
     false,
     "bad pools: GpuPools b and a both select node n1: it belongs to b"},
    {{.nodes = NODE("n1", "'gpu':'no'"),
      .pools = POOL_OF("a", "2026-02-01T00:00:00Z") "," POOL_OF("b", "2026-01-01T00:00:00Z")},
     true,
     "good pools: 2 GpuPools"},
};

static bool is_found(const struct preflight_report *report, const char *expected)
{
    for (size_t i = 0; i < report->findings.count; i++) {
        const struct preflight_finding *finding = &report->findings.data[i];
        CLEANUP(free_ptr)
        char *line = xasprintf("%s %s: %s", finding_level_name(finding->level),
                               finding->subject, finding->text);
        if (strstr(line, expected))
            return true;
    }
    return false;
}

static void show(const struct preflight_report *report)
{
    for (size_t i = 0; i < report->findings.count; i++)
        print_error("  %s %s: %s\n", finding_level_name(report->findings.data[i].level),
                    report->findings.data[i].subject, report->findings.data[i].text);
}

static void test_findings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster;
        struct preflight_report report;
        struct error err = {0};
        cluster_init(&cluster, on_preflight);
        cluster.version = cases[i].cluster.version ?: cluster.version;
        cluster.slices = cases[i].cluster.slices ?: cluster.slices;
        cluster.nodes = cases[i].cluster.nodes ?: cluster.nodes;
        cluster.pools = cases[i].cluster.pools ?: cluster.pools;
        cluster.denied = cases[i].cluster.denied;
        cluster.definitions = cases[i].cluster.definitions;
        struct preflight_options options = {cluster.client, "tranche-system", NULL};
        assert_int_equal(preflight_run(&options, &report, &err), 0);
        if (report.ok != cases[i].ok || !is_found(&report, cases[i].expected)) {
            print_error("case %zu: wanted %s\n", i, cases[i].expected);
            show(&report);
        }
        assert_int_equal(report.ok, cases[i].ok);
        assert_true(is_found(&report, cases[i].expected));
        CLEANUP(json_decref_ptr) json_t *json = preflight_to_json(&report);
        assert_non_null(json);
        assert_int_equal(json_is_true(json_object_get(json, "ok")), cases[i].ok);
        preflight_report_done(&report);
        cluster_done(&cluster);
    }
}

static void test_unreachable(void **state)
{
    (void)state;
    static const struct {
        int status, code;
    } answers[] = {{401, E_USAGE}, {403, E_USAGE}, {500, E_IO}, {503, E_IO}};
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct cluster cluster;
        struct preflight_report report;
        struct error err = {0};
        cluster_init(&cluster, on_preflight);
        cluster.status = answers[i].status;
        struct preflight_options options = {cluster.client, "x", NULL};
        assert_int_equal(preflight_run(&options, &report, &err), -answers[i].code);
        assert_true(*err.text);
        cluster_done(&cluster);
    }
}

/* The clean-up's server: objects by path, deleted in two steps when they have finalizers. */

static bool is_held(const json_t *object)
{
    return json_array_size(json_object_get(json_object_get(object, "metadata"), "finalizers")) >
           0;
}

static void settle(struct cluster *cluster)
{
    const char *path;
    json_t *object;
    void *next;

    json_object_foreach_safe(cluster->objects, next, path, object)
    {
        json_t *metadata = json_object_get(object, "metadata");
        if (json_object_get(metadata, "deletionTimestamp") && !is_held(object))
            json_object_del(cluster->objects, path);
    }
}

/* What a controller does that is still there. */
static void play_controller(struct cluster *cluster)
{
    const char *path;
    json_t *object;

    if (cluster->lists_until_controller == 0 || --cluster->lists_until_controller > 0)
        return;
    json_object_foreach(cluster->objects, path, object)
    {
        json_t *metadata = json_object_get(object, "metadata");
        if (json_object_get(metadata, "deletionTimestamp"))
            json_object_del(metadata, "finalizers");
    }
    settle(cluster);
}

static void answer_objects(struct cluster *cluster, const char *collection,
                           struct fake_answer *answer)
{
    json_t *items = json_array();
    const char *path;
    json_t *object;

    play_controller(cluster);
    json_object_foreach(cluster->objects, path, object)
    {
        /* a collection over all namespaces names the plural alone */
        if (strstr(path, strrchr(collection, '/')))
            json_array_append(items, object);
    }
    answer_json(answer, 200, json_pack("{s:o}", "items", items));
}

static void add_object(struct cluster *cluster, const char *path, const char *finalizers)
{
    json_t *metadata = json_pack("{s:s, s:s, s:s}", "name", strrchr(path, '/') + 1, "uid", path,
                                 "resourceVersion", "1");
    if (strstr(path, "/namespaces/shop/"))
        json_object_set_new(metadata, "namespace", json_string("shop"));
    json_object_set_new(metadata, "finalizers", json_loads(finalizers, 0, NULL));
    json_object_set_new(cluster->objects, path, json_pack("{s:o}", "metadata", metadata));
}

static void on_clean_up(void *context, const struct kube_request *request,
                        struct fake_answer *answer)
{
    struct cluster *cluster = context;
    CLEANUP(free_ptr) char *path = xstrdup(request->path);
    *(strchr(path, '?') ?: path + strlen(path)) = '\0';
    json_t *object = json_object_get(cluster->objects, path);
    json_t *metadata = json_object_get(object, "metadata");

    if (cluster->status) {
        refuse(answer, cluster->status);
    } else if (strcmp(request->method, "GET") == 0) {
        answer_objects(cluster, path, answer);
    } else if (!object) {
        refuse(answer, 404);
    } else if (strcmp(request->method, "DELETE") == 0) {
        json_object_set_new(metadata, "deletionTimestamp", json_string("2026-03-01T12:00:00Z"));
        answer_json(answer, 200, json_incref(object));
        settle(cluster);
        if (cluster->has_agent && strstr(path, "/nodegpustates/"))
            add_object(cluster, path, "[]");
    } else if (cluster->conflicts > 0) {
        cluster->conflicts--;
        refuse(answer, 409);
    } else {
        json_t *patch = json_loadb(request->body, request->body_length, 0, NULL);
        json_object_update_recursive(object, patch);
        json_decref(patch);
        answer_json(answer, 200, json_incref(object));
        settle(cluster);
    }
}

#define OURS   "[\"tranche.dev/finalizer\"]"
#define THEIRS "[\"tranche.dev/finalizer\",\"example.org/theirs\"]"
#define API    "/apis/tranche.dev/v1alpha1/"

static void fill(struct cluster *cluster)
{
    cluster->objects = json_object();
    add_object(cluster, API "namespaces/shop/gpuservices/a", OURS);
    add_object(cluster, API "namespaces/shop/gpuservices/b", "[]");
    add_object(cluster, API "gpupools/default", OURS);
    add_object(cluster, API "transitions/t1", OURS);
    add_object(cluster, API "partitionplans/p1", OURS);
    add_object(cluster, API "perfprofiles/bert", "[]");
    add_object(cluster, API "nodegpustates/n1", "[]");
}

static void run_clean_up(struct cluster *cluster, struct clean_up_report *ret)
{
    struct error err = {0};
    struct clean_up_options options = {cluster->client, 30 * SECONDS};
    int rc = clean_up_run(&options, ret, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
}

static void test_clean_up_alone(void **state)
{
    (void)state;
    struct cluster cluster;
    struct clean_up_report report;
    cluster_init(&cluster, on_clean_up);
    fill(&cluster);
    run_clean_up(&cluster, &report);
    assert_int_equal(json_object_size(cluster.objects), 0);
    assert_int_equal(report.deleted, 7);
    assert_int_equal(report.released, 4);
    assert_int_equal(report.left.count, 0);
    /* it waited for a controller, and no longer than it was told */
    assert_true(cluster.fake.clock.time_ns >= 1030 * SECONDS);
    assert_true(cluster.fake.clock.time_ns < 1040 * SECONDS);
    clean_up_report_done(&report);
    cluster_done(&cluster);
}

static void test_clean_up_with_controller(void **state)
{
    (void)state;
    struct cluster cluster;
    struct clean_up_report report;
    cluster_init(&cluster, on_clean_up);
    fill(&cluster);
    cluster.lists_until_controller = 4;
    run_clean_up(&cluster, &report);
    assert_int_equal(json_object_size(cluster.objects), 0);
    assert_int_equal(report.left.count, 0);
    assert_true(report.released < 4);
    clean_up_report_done(&report);
    cluster_done(&cluster);
}

static void test_clean_up_conflicts(void **state)
{
    (void)state;
    struct cluster cluster;
    struct clean_up_report report;
    cluster_init(&cluster, on_clean_up);
    fill(&cluster);
    add_object(&cluster, API "gpupools/theirs", THEIRS);
    cluster.conflicts = 2;
    run_clean_up(&cluster, &report);
    assert_int_equal(json_object_size(cluster.objects), 1);
    assert_int_equal(report.left.count, 1);
    assert_string_equal(report.left.data[0],
                        "GpuPool theirs: held by finalizer example.org/theirs");
    const json_t *left = json_object_get(cluster.objects, API "gpupools/theirs");
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(left, "metadata"), "finalizers")), 1);
    clean_up_report_done(&report);
    cluster_done(&cluster);
}

static void test_clean_up_beside_agents(void **state)
{
    (void)state;
    struct cluster cluster;
    struct clean_up_report report;
    cluster_init(&cluster, on_clean_up);
    fill(&cluster);
    cluster.has_agent = true;
    run_clean_up(&cluster, &report);
    assert_int_equal(json_object_size(cluster.objects), 1);
    assert_int_equal(report.left.count, 0);
    clean_up_report_done(&report);
    cluster_done(&cluster);
}

static void test_clean_up_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    struct clean_up_report report;
    struct error err = {0};
    cluster_init(&cluster, on_clean_up);
    fill(&cluster);
    struct clean_up_options options = {cluster.client, 0};
    cluster.status = 403;
    assert_int_equal(clean_up_run(&options, &report, &err), -E_USAGE);
    /* kinds that are not installed have no objects */
    cluster.status = 404;
    assert_int_equal(clean_up_run(&options, &report, &err), 0);
    assert_int_equal(report.deleted, 0);
    clean_up_report_done(&report);
    cluster_done(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_clean_up_alone),
        cmocka_unit_test(test_clean_up_with_controller),
        cmocka_unit_test(test_clean_up_conflicts),
        cmocka_unit_test(test_clean_up_beside_agents),
        cmocka_unit_test(test_clean_up_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
