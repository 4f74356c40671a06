/* SPDX-License-Identifier: Apache-2.0
 *
 * EndpointSlices of a service whose pods become more and fewer: whatever the last effect that
 * was carried out, no pod that was listed and still serves is listed no more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/reconcile.h"
#include "kube/api.h"
#include "scenario.h"

static void name_pod(int number, char ret_name[32])
{
    snprintf(ret_name, 32, "ranker-p%05d", number);
}

static void add_pod(struct scenario *scenario, int number)
{
    const json_t *service =
        fake_cluster_get(&scenario->cluster, &KIND_GPU_SERVICE, "shop", "ranker");
    char name[32], ip[32];

    name_pod(number, name);
    snprintf(ip, sizeof ip, "10.1.%d.%d", number / 250, number % 250);
    fake_cluster_append(
        &scenario->cluster, &KUBE_POD,
        json_pack(
            "{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:s}, s:[{s:s, s:s, s:s, s:s}]},"
            " s:{s:s}, s:{s:s, s:s, s:[{s:s, s:s}]}}",
            "apiVersion", "v1", "kind", "Pod", "metadata", "name", name, "namespace", "shop",
            "labels", LABEL_MANAGED_BY, "tranche", LABEL_POOL, "pool", LABEL_SERVICE, "ranker",
            "annotations", NOTE_RATE_RPS, "10", "ownerReferences", "apiVersion",
            "tranche.dev/v1alpha1", "kind", "GpuService", "name", "ranker", "uid",
            kube_metadata(service, "uid"), "spec", "nodeName", "node-1", "status", "phase",
            "Running", "podIP", ip, "conditions", "type", "Ready", "status", "True"));
}

/* All pods that slices list; the test fails where a slice has more than it may. */
static void collect_listed(const struct scenario *scenario, struct map *ret_names)
{
    const struct fake_list *slices = &scenario->cluster.lists[FAKE_SLICES];

    for (size_t i = 0; i < slices->items.count; i++) {
        const json_t *endpoints = json_object_get(slices->items.data[i], "endpoints");
        assert_true(json_array_size(endpoints) <= 100);
        for (size_t e = 0; e < json_array_size(endpoints); e++)
            map_put(ret_names,
                    json_string_value(
                        json_at(json_array_get(endpoints, e), "targetRef", "name", NULL)),
                    NULL);
    }
}

static void check_listed(const struct scenario *scenario, const struct map *before)
{
    CLEANUP(map_done) struct map now = {0};

    collect_listed(scenario, &now);
    for (size_t i = 0; i < before->count; i++)
        if (fake_cluster_get(&scenario->cluster, &KUBE_POD, "shop", before->entries[i].key) &&
            map_find(&now, before->entries[i].key) < 0)
            fail_msg("%s is listed no more", before->entries[i].key);
}

/* One round of routing; returns how many effects there were. */
static size_t route(struct scenario *scenario)
{
    CLEANUP(map_done) struct map before = {0};
    struct fake_snapshot view;
    struct world_sources sources;
    struct world world;
    struct effects effects;

    collect_listed(scenario, &before);
    fake_snapshot_take(&scenario->cluster, &view);
    fake_snapshot_sources(&view, &scenario->cluster, &sources);
    world_build(&sources, &world);
    effects_init(&effects);
    reconcile_routing(&world, &world.pools.data[0], &effects);
    size_t count = effects.items.count;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fake_cluster_apply(&scenario->cluster, &effects.items.data[i], NULL),
                         0);
        check_listed(scenario, &before);
    }
    effects_done(&effects);
    world_done(&world);
    fake_snapshot_done(&view);
    return count;
}

/* Makes the service have so many pods and routes until nothing changes; returns the effects. */
static size_t have_pods(struct scenario *scenario, int *pods, int wanted)
{
    size_t effects = 0, count;
    char name[32];

    for (; *pods < wanted; ++*pods)
        add_pod(scenario, *pods);
    while (*pods > wanted) {
        name_pod(--*pods, name);
        fake_cluster_drop(&scenario->cluster, &KUBE_POD, "shop", name);
    }
    for (int round = 0; (count = route(scenario)) > 0; round++) {
        assert_true(round < 10);
        effects += count;
    }
    CLEANUP(map_done) struct map listed = {0};
    collect_listed(scenario, &listed);
    assert_int_equal(listed.count, wanted);
    return effects;
}

static void set_up(struct scenario *scenario)
{
    scenario_init(scenario, 1);
    scenario_add_pool(scenario, 1, NULL);
    fake_cluster_add_node(&scenario->cluster, mig_board_find("a100-40gb"), 1);
    scenario_set_service(scenario, "ranker", "bert", 30);
}

static void test_slices(void **state)
{
    (void)state;
    static const struct {
        int pods;
        size_t slices;
    } steps[] = {{1, 1},   {100, 1}, {101, 4}, {200, 4}, {201, 8}, {330, 8}, {165, 8},
                 {160, 4}, {81, 4},  {80, 1},  {100, 1}, {250, 8}, {3, 1},   {0, 0}};
    struct scenario scenario;
    int pods = 0;

    set_up(&scenario);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        (void)have_pods(&scenario, &pods, steps[i].pods);
        assert_int_equal(scenario.cluster.lists[FAKE_SLICES].items.count, steps[i].slices);
    }
    scenario_done(&scenario);
}

/* Around the limit one pod more or less changes one slice. */
static void test_hysteresis(void **state)
{
    (void)state;
    struct scenario scenario;
    int pods = 0;

    set_up(&scenario);
    (void)have_pods(&scenario, &pods, 101);
    for (int i = 0; i < 6; i++)
        assert_int_equal(have_pods(&scenario, &pods, i % 2 ? 101 : 100), 1);
    scenario_done(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_hysteresis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
