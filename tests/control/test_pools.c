/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of two pools that select the same nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "control/kinds.h"
#include "control/resources.h"
#include "scenario.h"

static void label_node(struct scenario *scenario, size_t node, const char *value)
{
    json_t *object = scenario->cluster.lists[FAKE_NODES].items.data[node];

    json_object_set_new(json_object_get(object, "metadata"), "labels",
                        json_pack("{s:s}", "shared", value));
}

/* Rounds of both pools in turn. The younger changes nothing on the nodes that both select, nor
 * do its pods go there. Returns the effects of the last rounds. */
static size_t run_both(struct scenario *scenario, int rounds)
{
    size_t effects = 0;

    for (int i = 0; i < rounds; i++) {
        scenario->pool = "pool";
        effects = scenario_run(scenario, &SCENARIO_ROUND_PLAIN);
        CLEANUP(free_ptr) char *first = xstrdup(scenario_state_version(scenario, "node-1"));
        CLEANUP(free_ptr) char *second = xstrdup(scenario_state_version(scenario, "node-2"));
        scenario->pool = "another";
        effects += scenario_run(scenario, &SCENARIO_ROUND_PLAIN);
        assert_string_equal(scenario_state_version(scenario, "node-1"), first);
        assert_string_equal(scenario_state_version(scenario, "node-2"), second);
        scenario_tick(scenario, 5);
    }
    return effects;
}

static const char *degraded_text(const struct scenario *scenario, const char *pool)
{
    const json_t *object = fake_cluster_get(&scenario->cluster, &KIND_GPU_POOL, "", pool);

    return condition_is_true(object, "Degraded")
               ? json_text(object_condition(object, "Degraded"), "message")
               : "";
}

/* Two pools select the same nodes: they are the older one's, whose name comes later. Both keep
 * their floors, and the younger says what it lacks. */
static void test_pools_overlap(void **state)
{
    (void)state;
    struct scenario scenario;

    scenario_set_up(&scenario, 3, 1);
    label_node(&scenario, 0, "yes");
    label_node(&scenario, 1, "yes");
    label_node(&scenario, 2, "no");
    scenario_add_pool(&scenario, 1, "{\"nodeSelector\": {\"shared\": \"yes\"}}");
    scenario_tick(&scenario, 5);
    scenario_set_service(&scenario, "ranker", "bert", 80);
    scenario.pool = "another";
    scenario_add_pool(&scenario, 1, NULL);
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    (void)run_both(&scenario, 40);
    assert_true(scenario_capacity(&scenario, "ranker") >= 80);
    assert_true(scenario_capacity(&scenario, "tagger") >= 60);
    scenario.services[0].floor_rps = 80; /* checked after every effect */
    scenario.services[1].floor_rps = 60;
    assert_int_equal(run_both(&scenario, 10), 0);
    assert_int_equal(scenario.nodes_shared, 1);
    assert_non_null(strstr(degraded_text(&scenario, "another"),
                           "2 nodes that it selects belong to older GpuPools"));
    assert_non_null(strstr(degraded_text(&scenario, "another"), "node-1 of GpuPool pool"));
    assert_string_equal(degraded_text(&scenario, "pool"), "");
    /* More than its own node has: it stays short, and takes nobody's. */
    scenario.pool = "another";
    scenario_set_service(&scenario, "tagger", "resnet", 300);
    assert_int_equal(run_both(&scenario, 40), 0);
    /* Told apart, all is well. */
    scenario_set_service(&scenario, "tagger", "resnet", 60);
    scenario_add_pool(&scenario, 1, "{\"nodeSelector\": {\"shared\": \"no\"}}");
    assert_int_equal(run_both(&scenario, 40), 0);
    assert_string_equal(degraded_text(&scenario, "another"), "");
    assert_true(scenario_capacity(&scenario, "tagger") >= 60);
    scenario_done(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pools_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
