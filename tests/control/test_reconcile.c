/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's rounds in scenarios without faults: what comes of each change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "kube/api.h"
#include "scenario.h"

static void test_covers(void **state)
{
    (void)state;
    static const struct {
        const char *actual, *wanted;
        bool covers;
    } cases[] = {
        {"{\"a\": 1, \"b\": 2}", "{\"a\": 1.0}", true},
        {"{\"a\": 1}", "{\"a\": 2}", false},
        {"{\"a\": [{\"x\": 1, \"y\": 2}]}", "{\"a\": [{\"x\": 1}]}", true},
        {"{\"a\": [1, 2]}", "{\"a\": [1]}", false},
        {"{\"a\": null}", "{\"a\": []}", true},
        {"{}", "{\"a\": \"\", \"b\": {}}", true},
        {"{\"a\": [1]}", "{\"a\": []}", false},
        {"{\"a\": 1}", "{\"a\": null}", false},
        {"{}", "{\"a\": null}", true},
        {"{}", "{\"a\": 0}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *actual = json_loads(cases[i].actual, 0, NULL),
               *wanted = json_loads(cases[i].wanted, 0, NULL);
        assert_int_equal(json_covers(actual, wanted), cases[i].covers);
        json_decref(actual);
        json_decref(wanted);
    }
}

static void test_start(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 2, 2);
    scenario_set_service(&scenario, "ranker", "bert", 50);
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 50);
    assert_true(scenario.steps_started > 0 && scenario.steps_done > 0);
    unsigned long writes = scenario.cluster.writes, done = scenario.steps_done;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(scenario_run(&scenario, &SCENARIO_ROUND_PLAIN), 0);
        scenario_tick(&scenario, 60);
    }
    assert_int_equal(scenario.cluster.writes, writes);
    assert_int_equal(scenario.steps_done, done);
    scenario_done(&scenario);
}

static void test_demand(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 2, 2);
    scenario_set_service(&scenario, "ranker", "bert", 50);
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    assert_true(scenario_settle(&scenario, 60));
    for (int i = 0; i < 4; i++) {
        scenario_set_service(&scenario, "ranker", "bert", i % 2 ? 50 : 150);
        scenario_set_service(&scenario, "tagger", "resnet", i % 2 ? 60 : 20);
        assert_true(scenario_settle(&scenario, 100));
        assert_true(scenario_check_end(&scenario));
    }
    scenario_set_service(&scenario, "tagger", "resnet", 0);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "tagger") == 0);
    scenario_done(&scenario);
}

static void test_template(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 2);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    scenario_set_template(&scenario, "ranker", 2);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    scenario_done(&scenario);
}

static void test_node_lost(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 3, 1);
    scenario_set_service(&scenario, "ranker", "bert", 60);
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    assert_true(scenario_settle(&scenario, 60));
    scenario_set_node(&scenario, 0, false);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 60);
    scenario_set_node(&scenario, 0, true);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    scenario_done(&scenario);
}

static void test_infeasible(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    scenario_set_service(&scenario, "ranker", "bert", 3000);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_set_service(&scenario, "ranker", "bert", 40);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    /* A model that nobody measured does not keep others from being planned. */
    scenario_set_service(&scenario, "mystery", "unknown", 10);
    scenario_set_service(&scenario, "ranker", "bert", 60);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 60);
    scenario_done(&scenario);
}

static double status_rate(const struct scenario *scenario, const char *service,
                          const char *member)
{
    return json_number_value(
        json_at(fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, "shop", service),
                "status", member, NULL));
}

/* A service that fills a GPU gets a new template, for which there is no order; another one gets
 * its rate on another board. The plan is never reached, and yet that rate is promised. */
static void test_rate_without_order(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_init(&scenario, 1);
    scenario.piece_gpus = 1;
    scenario_add_pool(&scenario, 0, NULL);
    scenario_add_profile(&scenario, "bert", "a100-40gb", 10);
    scenario_add_profile(&scenario, "vgg", "a30-24gb", 10);
    fake_cluster_add_node(&scenario.cluster, mig_board_find("a100-40gb"), 1);
    fake_cluster_add_node(&scenario.cluster, mig_board_find("a30-24gb"), 1);
    scenario_set_service(&scenario, "ranker", "bert", 70);
    assert_true(scenario_settle(&scenario, 60));
    scenario_set_template(&scenario, "ranker", 2);
    scenario_set_service(&scenario, "writer", "vgg", 30);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_capacity(&scenario, "writer") >= 30);
    assert_string_equal(json_text(object_condition(fake_cluster_get(&scenario.cluster,
                                                                    &KIND_GPU_POOL, "", "pool"),
                                                   "Stalled"),
                                  "reason"),
                        "NoSafeTransition");
    assert_true(status_rate(&scenario, "writer", "floorRps") == 30);
    scenario_done(&scenario);
}

/* The controller dies while it tells that there is no plan, and the demand is as before: what
 * it told services does not stay. */
static void test_half_told(void **state)
{
    (void)state;
    size_t asked = 1;

    for (int stop = 0; stop < (int)asked; stop++) {
        struct scenario scenario;
        scenario_set_up(&scenario, 1, 1);
        scenario_set_service(&scenario, "ranker", "bert", 30);
        scenario_set_service(&scenario, "tagger", "resnet", 25);
        assert_true(scenario_settle(&scenario, 60));
        scenario_set_service(&scenario, "ranker", "bert", 3000);
        asked = scenario_run(&scenario,
                             &(struct scenario_round){.stop_at = stop, .stop_after = true});
        assert_true(asked > 1);
        scenario_set_service(&scenario, "ranker", "bert", 30);
        assert_true(scenario_settle(&scenario, 60));
        const json_t *service =
            fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker");
        assert_true(condition_is_true(service, "SLOFeasible"));
        assert_true(scenario_check_end(&scenario));
        scenario_done(&scenario);
    }
}

static void check_stock(const struct scenario *scenario, const char *name, double least_rps,
                        double most_rps)
{
    const json_t *object =
        fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, "shop", name);
    const json_t *condition = object_condition(object, "SLOFeasible");
    double required_rps = status_rate(scenario, name, "requiredRps");
    char rate[32];

    assert_string_equal(json_text(condition, "reason"), "Stock");
    assert_false(condition_is_true(object, "Ready"));
    snprintf(rate, sizeof rate, "suffice for %.9g of", required_rps);
    assert_non_null(strstr(json_text(condition, "message"), rate));
    assert_true(required_rps >= least_rps && required_rps <= most_rps);
    assert_true(scenario_capacity(scenario, name) >= required_rps);
}

/* Nobody gave priorities, and the pool (70 of bert, 175 of resnet) is too small from the start:
 * the older one is served, the next in part; later ones and more demand take from nobody. */
static void test_too_small(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "b-first", "bert", 40);
    scenario_tick(&scenario, 5);
    scenario_set_service(&scenario, "a-second", "bert", 60);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "b-first") >= 40);
    check_stock(&scenario, "a-second", 20, 30);
    double second_rps = scenario_capacity(&scenario, "a-second");
    scenario_set_service(&scenario, "a-third", "resnet", 60);
    scenario_set_service(&scenario, "b-first", "bert", 4000);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_capacity(&scenario, "b-first") >= 40);
    assert_true(scenario_capacity(&scenario, "a-second") >= second_rps);
    check_stock(&scenario, "a-third", 0, 0);
    unsigned long writes = scenario.cluster.writes;
    scenario_tick(&scenario, 60);
    assert_int_equal(scenario_run(&scenario, &SCENARIO_ROUND_PLAIN), 0);
    assert_int_equal(scenario.cluster.writes, writes);
    scenario_set_service(&scenario, "b-first", "bert", 10);
    scenario_set_service(&scenario, "a-second", "bert", 20);
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "a-third") >= 60);
    scenario_done(&scenario);
}

/* One service alone, more than the pool can do: it is served as far as that goes. */
static void test_alone_too_large(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 3000);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    check_stock(&scenario, "ranker", 60, 70);
    assert_true(condition_is_true(
        fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker"), "Stalled"));
    scenario_done(&scenario);
}

/* Everything is deleted at once, the pool first: no finalizer stays. */
static void test_uninstall(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    fake_cluster_delete(&scenario.cluster, &KIND_GPU_POOL, "", "pool");
    scenario_set_service(&scenario, "ranker", "bert", 0);
    assert_non_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker"));
    assert_int_equal(scenario_run(&scenario, &SCENARIO_ROUND_PLAIN), 1);
    assert_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker"));
    scenario_done(&scenario);
}

/* What the newest Transition says; until the next call. */
static const char *transition_text(const struct scenario *scenario)
{
    static char text[16384];
    const struct fake_list *list = &scenario->cluster.lists[FAKE_TRANSITIONS];

    assert_true(list->items.count > 0);
    CLEANUP(free_ptr)
    char *whole = json_dumps(list->items.data[list->items.count - 1], JSON_COMPACT);
    snprintf(text, sizeof text, "%s", whole);
    return text;
}

/* A pod with our labels on the slot of the first pod, with one thing about it changed. */
static void plant_pod(struct scenario *scenario, const char *name, const char *note,
                      const char *text)
{
    json_t *pod = json_deep_copy(scenario->cluster.lists[FAKE_PODS].items.data[0]);
    json_t *metadata = json_object_get(pod, "metadata");

    json_object_set_new(metadata, "name", json_string(name));
    json_object_del(json_object_get(metadata, "annotations"), NOTE_HASH);
    if (note)
        json_object_set_new(json_object_get(metadata, "annotations"), note, json_string(text));
    else
        json_object_del(metadata, "ownerReferences");
    fake_cluster_append(&scenario->cluster, &KUBE_POD, pod);
}

/* Pods that anybody could make: nobody's, with numbers that are none of ours. They give
 * nothing, are not touched, and the pool says so. */
static void test_foreign_pods(void **state)
{
    (void)state;
    static const struct {
        const char *name, *note, *text;
    } cases[] = {
        {"nobodys", NULL, NULL},
        {"huge", NOTE_RATE_RPS, "1e308"},
        {"huge-too", NOTE_RATE_RPS, "1e308"},
        {"endless", NOTE_RATE_RPS, "inf"},
        {"nothing", NOTE_RATE_RPS, "nan"},
        {"negative", NOTE_RATE_RPS, "-5"},
        {"far", NOTE_START, "99"},
        {"farther", NOTE_START, "200"},
        {"long", NOTE_SLICE, "1g.5gb.and.so.on.and.so.on.and.so.on"},
        {"hashed", NOTE_HASH, "0123456789"},
        {"many", NOTE_PROCS, "1000000001"},
    };
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    size_t count = scenario.cluster.lists[FAKE_PODS].items.count;
    scenario.cluster.strangers = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        plant_pod(&scenario, cases[i].name, cases[i].note, cases[i].text);
    assert_true(scenario_settle(&scenario, 20));
    assert_int_equal(scenario.cluster.lists[FAKE_PODS].items.count,
                     count + sizeof cases / sizeof *cases);
    const json_t *service =
        fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker");
    const json_t *pool = fake_cluster_get(&scenario.cluster, &KIND_GPU_POOL, "", "pool");
    assert_int_equal(json_integer_value(json_at(service, "status", "readyInstances", NULL)),
                     count);
    assert_true(json_number_value(json_at(service, "status", "capacityRps", NULL)) < 1000);
    assert_true(condition_is_true(pool, "Degraded"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fake_cluster_drop(&scenario.cluster, &KUBE_POD, "shop", cases[i].name);
    scenario.cluster.strangers = false;
    assert_true(scenario_settle(&scenario, 20));
    assert_false(condition_is_true(
        fake_cluster_get(&scenario.cluster, &KIND_GPU_POOL, "", "pool"), "Degraded"));
    scenario_done(&scenario);
}

/* A pod of another service says that it is on an instance that is in use: it goes, and the pod
 * whose instance it is stays. */
static void test_shadowing_pod(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    CLEANUP(free_ptr)
    char *there =
        xstrdup(kube_metadata(scenario.cluster.lists[FAKE_PODS].items.data[0], "uid"));
    scenario_set_service(&scenario, "tagger", "resnet", 20);
    assert_true(scenario_settle(&scenario, 60));
    const json_t *owner =
        fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "tagger");
    scenario.cluster.strangers = true;
    plant_pod(&scenario, "aaa-shadow", NOTE_RATE_RPS, "1000");
    struct fake_list *pods = &scenario.cluster.lists[FAKE_PODS];
    json_t *metadata = json_object_get(pods->items.data[pods->items.count - 1], "metadata");
    json_object_set_new(json_object_get(metadata, "labels"), LABEL_SERVICE,
                        json_string("tagger"));
    json_t *reference = json_array_get(json_object_get(metadata, "ownerReferences"), 0);
    json_object_set_new(reference, "name", json_string("tagger"));
    json_object_set_new(reference, "uid", json_string(kube_metadata(owner, "uid")));
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_null(fake_cluster_get(&scenario.cluster, &KUBE_POD, "shop", "aaa-shadow"));
    assert_string_equal(kube_metadata(pods->items.data[0], "uid"), there);
    scenario_done(&scenario);
}

static size_t pods_on(const struct scenario *scenario, const char *uuid)
{
    const struct fake_list *pods = &scenario->cluster.lists[FAKE_PODS];
    size_t count = 0;

    for (size_t i = 0; i < pods->items.count; i++) {
        const char *gpu = json_string_value(
            json_at(pods->items.data[i], "metadata", "annotations", NOTE_GPU, NULL));
        count += strcmp(gpu, uuid) == 0;
    }
    return count;
}

/* Its agent reports a GPU no more, its pods go on serving: they do until others have taken
 * over, and then they go. */
static void test_gpu_not_observed(void **state)
{
    (void)state;
    struct scenario scenario;
    char uuid[64];

    scenario_set_up(&scenario, 2, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    snprintf(uuid, sizeof uuid, "%s",
             json_string_value(json_at(scenario.cluster.lists[FAKE_PODS].items.data[0],
                                       "metadata", "annotations", NOTE_GPU, NULL)));
    fake_cluster_hide_gpu(&scenario.cluster, uuid);
    assert_true(scenario_settle(&scenario, 100)); /* the floor is checked at every effect */
    assert_true(scenario_check_end(&scenario));
    assert_int_equal(pods_on(&scenario, uuid), 0);
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_done(&scenario);
}

/* There is no other GPU: they stay, until the service is deleted. */
static void test_no_gpu_observed(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    fake_cluster_hide_gpu(&scenario.cluster, scenario.cluster.gpus.data[0].uuid);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_set_service(&scenario, "ranker", "bert", 0);
    assert_true(scenario_settle(&scenario, 60));
    assert_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker"));
    scenario_done(&scenario);
}

static void forget_routing(struct scenario *scenario, const char *name)
{
    CLEANUP(free_ptr) char *slice = xasprintf("%s-0", name);

    fake_cluster_delete(&scenario->cluster, &KIND_SERVICE, "shop", name);
    fake_cluster_delete(&scenario->cluster, &KIND_ENDPOINT_SLICE, "shop", slice);
}

/* Somebody breaks the pool's spec: nothing is let go undrained, endpoints follow the pods, the
 * pool says so; mended, all goes on. */
static void test_unreadable_pool(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    scenario_set_service(&scenario, "tagger", "resnet", 20);
    assert_true(scenario_settle(&scenario, 60));
    scenario_add_pool(&scenario, 1, "{\"derate\": \"much\"}");
    forget_routing(&scenario, "ranker");
    scenario.services[0].floor_rps = 0; /* that was somebody else */
    scenario_set_service(&scenario, "tagger", "resnet", 0);
    for (int i = 0; i < 5; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
    }
    assert_non_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "tagger"));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    assert_true(condition_is_true(
        fake_cluster_get(&scenario.cluster, &KIND_GPU_POOL, "", "pool"), "Stalled"));
    assert_true(scenario_settle(&scenario, 10));
    scenario_add_pool(&scenario, 1, NULL);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "tagger"));
    scenario_done(&scenario);
}

/* A namespace is deleted: its Services go at once, nothing can be created in it, and our
 * finalizer must not hold it up for ever, nor keep the pool's other work waiting. */
static void test_namespace_terminates(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    scenario_set_service(&scenario, "tagger", "resnet", 40);
    assert_true(scenario_settle(&scenario, 60));
    scenario_set_service(&scenario, "ranker", "bert", 0);
    scenario.services[1].floor_rps = 0; /* of the same namespace: loses its Service too */
    scenario.cluster.terminating = "shop";
    forget_routing(&scenario, "ranker");
    forget_routing(&scenario, "tagger");
    for (int i = 0; i < 40; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
    }
    assert_null(fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker"));
    scenario.cluster.terminating = NULL; /* the rest was another namespace's, say */
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    scenario_done(&scenario);
}

/* A quota refuses one service's pods: the others come up, the refusal is told on the action
 * and tried again ever less often. */
static void test_refused_pods(void **state)
{
    (void)state;
    struct scenario scenario;
    unsigned long early, late;

    scenario_set_up(&scenario, 1, 2);
    scenario.cluster.refused_pods = "ranker";
    scenario_set_service(&scenario, "ranker", "bert", 40);
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    for (int i = 0; i < 20; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
    }
    early = scenario.cluster.refused;
    assert_true(scenario_capacity(&scenario, "tagger") >= 60);
    assert_true(scenario_capacity(&scenario, "ranker") == 0);
    assert_non_null(strstr(transition_text(&scenario), "exceeded quota"));
    for (int i = 0; i < 20; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
    }
    late = scenario.cluster.refused - early;
    assert_true(late > 0 && late < early);
    scenario.cluster.refused_pods = NULL;
    assert_true(scenario_settle(&scenario, 200));
    assert_true(scenario_check_end(&scenario));
    scenario_done(&scenario);
}

/* The service may run on one kind of slice alone from now on. */
static void limit_slices(struct scenario *scenario, const char *name, const char *slice)
{
    json_t *changed =
        json_deep_copy(fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, "shop", name));

    json_object_set_new(json_object_get(changed, "spec"), "allowedSlices",
                        json_pack("[s]", slice));
    fake_cluster_put(&scenario->cluster, &KIND_GPU_SERVICE, changed);
}

/* Requests go by a route that cannot be written: what comes anew is of no use yet, so nothing
 * that the route leads to goes. */
static void test_refused_routes(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_init(&scenario, 1);
    scenario.gateway = true;
    scenario_add_pool(&scenario, 1, NULL);
    scenario_add_profile(&scenario, "bert", "a100-40gb", 10);
    for (int n = 0; n < 2; n++)
        fake_cluster_add_node(&scenario.cluster, mig_board_find("a100-40gb"), 2);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    CLEANUP(free_ptr)
    char *version = xstrdup(
        kube_metadata(fake_cluster_get(&scenario.cluster, &KIND_HTTP_ROUTE, "shop", "ranker"),
                      "resourceVersion"));
    assert_true(*version);
    scenario.cluster.refuses_routes = true;
    limit_slices(&scenario, "ranker", "2g");
    for (int i = 0; i < 40; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
        assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    }
    assert_string_equal(
        kube_metadata(fake_cluster_get(&scenario.cluster, &KIND_HTTP_ROUTE, "shop", "ranker"),
                      "resourceVersion"),
        version);
    scenario.cluster.refuses_routes = false;
    assert_true(scenario_settle(&scenario, 100));
    assert_true(scenario_check_end(&scenario));
    assert_string_not_equal(
        kube_metadata(fake_cluster_get(&scenario.cluster, &KIND_HTTP_ROUTE, "shop", "ranker"),
                      "resourceVersion"),
        version);
    scenario_done(&scenario);
}

/* Until a Transition is there and nothing of it was asked of a node. */
static void run_to_transition(struct scenario *scenario)
{
    for (int i = 0; i < 10 && scenario->cluster.lists[FAKE_TRANSITIONS].items.count == 0; i++)
        (void)scenario_run(scenario, &SCENARIO_ROUND_PLAIN);
    assert_int_equal(scenario->cluster.lists[FAKE_TRANSITIONS].items.count, 1);
    const json_t *node =
        fake_cluster_get(&scenario->cluster, &KIND_NODE_GPU_STATE, "", "node-1");
    assert_int_equal(json_array_size(json_at(node, "spec", "gpus", NULL)), 0);
}

/* Somebody makes an instance where one is to be made: nothing illegal is asked of the node
 * (seen after every effect), the Transition ends, and the next one takes it away. */
static void test_foreign_instance(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    run_to_transition(&scenario);
    fake_cluster_plant_instance(&scenario.cluster, scenario.cluster.gpus.data[0].uuid,
                                "7g.40gb", 0);
    (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
    assert_non_null(strstr(transition_text(&scenario), "Superseded"));
    assert_non_null(strstr(transition_text(&scenario), "an instance that it does not know"));
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_done(&scenario);
}

/* A NodeGpuState asks for several instances in one place, as an earlier version wrote it: what
 * is written next is legal. */
static void test_broken_spec(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    run_to_transition(&scenario);
    json_t *broken =
        json_deep_copy(fake_cluster_get(&scenario.cluster, &KIND_NODE_GPU_STATE, "", "node-1"));
    json_object_set_new(json_object_get(broken, "spec"), "gpus",
                        json_pack("[{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]}]",
                                  "uuid", scenario.cluster.gpus.data[0].uuid, "board",
                                  "a100-40gb", "instances", "slice", "7g.40gb", "start", 0,
                                  "slice", "4g.20gb", "start", 0, "slice", "2g.10gb", "start",
                                  0));
    fake_cluster_put(&scenario.cluster, &KIND_NODE_GPU_STATE, broken);
    scenario.cluster.spec_is_broken = true;
    CLEANUP(free_ptr) char *version = xstrdup(scenario_state_version(&scenario, "node-1"));
    for (int i = 0; i < 10 && strcmp(scenario_state_version(&scenario, "node-1"), version) == 0;
         i++)
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
    assert_string_not_equal(scenario_state_version(&scenario, "node-1"), version);
    scenario.cluster.spec_is_broken = false; /* from here on every effect is checked */
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_done(&scenario);
}

/* Three instances of 10 rps, and a Transition that drains all of them in any order. */
static json_t *drain_all(const struct scenario *scenario, const char *plan)
{
    const struct fake_list *pods = &scenario->cluster.lists[FAKE_PODS];
    json_t *actions = json_array(), *gpus = json_array();

    assert_int_equal(pods->items.count, 3);
    for (size_t i = 0; i < pods->items.count; i++) {
        const json_t *notes = json_at(pods->items.data[i], "metadata", "annotations", NULL);
        const char *gpu = json_string_value(json_object_get(notes, NOTE_GPU));
        char id[8];
        snprintf(id, sizeof id, "a%zu", i + 1);
        if (i == 0)
            json_array_append_new(gpus, json_pack("{s:s, s:s, s:s}", "uuid", gpu, "board",
                                                  "a100-40gb", "node", ""));
        json_array_append_new(
            actions,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:f, s:f, s:[]}", "id", id,
                      "kind", "drain", "group", "delete", "gpuUUID", gpu, "slice", "1g.5gb",
                      "start", atoi(json_string_value(json_object_get(notes, NOTE_START))),
                      "service", "shop/ranker", "batch", 4, "procs", 1, "rateRps", 10.0,
                      "seconds", 1.0, "after"));
    }
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:o, s:[{s:s, s:f}], s:o}}",
                     "apiVersion", "tranche.dev/v1alpha1", "kind", "Transition", "metadata",
                     "name", "by-hand", "spec", "pool", "pool", "to", plan, "gpus", gpus,
                     "services", "name", "shop/ranker", "floorRps", 20.0, "actions", actions);
}

/* The order allows all, the capacity one: one is begun, and stays the only one. */
static void test_floor_holds_drains(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 1, 1);
    scenario_set_service(&scenario, "ranker", "bert", 30);
    const json_t *service =
        fake_cluster_get(&scenario.cluster, &KIND_GPU_SERVICE, "shop", "ranker");
    json_t *changed = json_deep_copy(service);
    json_object_set_new(json_object_get(changed, "spec"), "allowedSlices",
                        json_pack("[s]", "1g.5gb"));
    fake_cluster_put(&scenario.cluster, &KIND_GPU_SERVICE, changed);
    assert_true(scenario_settle(&scenario, 60));
    scenario.services[0].floor_rps = 20; /* checked after every effect */
    const json_t *pool = fake_cluster_get(&scenario.cluster, &KIND_GPU_POOL, "", "pool");
    fake_cluster_append(
        &scenario.cluster, &KIND_TRANSITION,
        drain_all(&scenario, json_string_value(json_at(pool, "status", "plan", NULL))));
    for (int i = 0; i < 6; i++) {
        (void)scenario_run(&scenario, &SCENARIO_ROUND_PLAIN);
        scenario_tick(&scenario, 5);
    }
    assert_true(scenario_capacity(&scenario, "ranker") >= 20);
    /* No pod that exists could make room for the others: it is closed, and undone. */
    assert_false(condition_is_true(
        fake_cluster_get(&scenario.cluster, &KIND_TRANSITION, "", "by-hand"), "Complete"));
    assert_true(scenario_settle(&scenario, 60));
    assert_true(scenario_check_end(&scenario));
    assert_true(scenario_capacity(&scenario, "ranker") >= 30);
    scenario_done(&scenario);
}

/* A day, a night and a day again, with the controller dying once, at one effect. Returns how
 * many effects there were. */
static unsigned long live_through(long die_at, bool die_after)
{
    struct scenario scenario;
    static const double rates[][2] = {{50, 60}, {20, 150}, {50, 60}};

    scenario_set_up(&scenario, 2, 1);
    scenario.verbose = false;
    scenario.seed = (uint64_t)die_at;
    scenario.die_at = die_at;
    scenario.die_after = die_after;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        scenario_set_service(&scenario, "ranker", "bert", rates[i][0]);
        scenario_set_service(&scenario, "tagger", "resnet", rates[i][1]);
        assert_true(scenario_settle(&scenario, 200));
        assert_true(scenario_check_end(&scenario));
    }
    unsigned long effects = scenario.carried_out;
    scenario_done(&scenario);
    return effects;
}

/* At each effect: before, after, or (with TRANCHE_CASES) both. */
static void test_every_effect(void **state)
{
    (void)state;
    unsigned long effects = live_through(0, false), lives = 0;
    bool both = getenv("TRANCHE_CASES") != NULL;

    for (unsigned long i = 1; i <= effects; i++) {
        (void)live_through((long)i, i % 2);
        lives++;
        if (both) {
            (void)live_through((long)i, i % 2 == 0);
            lives++;
        }
    }
    printf("# every_effect: %lu effects, %lu lives\n", effects, lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_covers),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_demand),
        cmocka_unit_test(test_template),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_infeasible),
        cmocka_unit_test(test_rate_without_order),
        cmocka_unit_test(test_half_told),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_alone_too_large),
        cmocka_unit_test(test_floor_holds_drains),
        cmocka_unit_test(test_uninstall),
        cmocka_unit_test(test_namespace_terminates),
        cmocka_unit_test(test_refused_pods),
        cmocka_unit_test(test_refused_routes),
        cmocka_unit_test(test_unreadable_pool),
        cmocka_unit_test(test_gpu_not_observed),
        cmocka_unit_test(test_no_gpu_observed),
        cmocka_unit_test(test_foreign_pods),
        cmocka_unit_test(test_shadowing_pod),

        cmocka_unit_test(test_foreign_instance),
        cmocka_unit_test(test_broken_spec),
        cmocka_unit_test(test_every_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
