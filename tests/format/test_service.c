/* SPDX-License-Identifier: Apache-2.0
 *
 * The services YAML: defaults, fleets with instances in place, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/service.h"

static int parse(const char *text, struct service_set *set, struct error *err)
{
    return service_set_parse("s.yaml", text, strlen(text), set, err);
}

static void fills_defaults(void **state)
{
    struct service_set set;
    struct error err = {0};
    (void)state;
    assert_int_equal(parse("services:\n"
                           "- {name: a, model: m, rate_rps: 10, latency_ms: 100}\n"
                           "- {name: b, model: m, task: training, rate_rps: 5}\n"
                           "- {name: c, model: m, rate_rps: 1, latency_ms: 8, percentile: mean,"
                           " max_wait_ms: 0, min_instances: 3, spread: node, priority: -2}\n",
                           &set, &err),
                     0);
    const struct service *a = &set.services.data[0];
    assert_true(a->percentile == 99 && a->max_wait_ms == 25 && a->min_instances == 1);
    assert_int_equal(a->spread, SPREAD_NONE);
    assert_true(isnan(set.services.data[1].latency_ms));
    const struct service *c = &set.services.data[2];
    assert_true(c->percentile == MEASUREMENT_PERCENTILE_MEAN && c->max_wait_ms == 0);
    assert_true(c->min_instances == 3 && c->spread == SPREAD_NODE && c->priority == -2);
    assert_int_equal(set.latency_rule, RULE_QUEUE);
    assert_true(set.derate == 1);
    assert_int_equal(set.fleet.count, 0);
    service_set_done(&set);
}

static void reads_a_fleet(void **state)
{
    struct service_set set;
    struct error err = {0};
    (void)state;
    assert_int_equal(
        parse("services: [{name: a, model: m, rate_rps: 10, latency_ms: 100}]\n"
              "fleet:\n"
              "- {board: a100-40gb, count: 24, price: 1.5, gpus_per_node: 8}\n"
              "- {board: a30-24gb}\n"
              "- {board: a100-40gb, gpus: [{id: g7, node: n1, instances: "
              "[{slice: 3g, start: 4, service: a}, {slice: 1g, start: 0, reserved: true}]}]}\n"
              "latency_rule: half\nderate: 0.9\n",
              &set, &err),
        0);
    assert_int_equal(set.fleet.count, 3);
    assert_int_equal(set.fleet.data[0].count, 24);
    assert_int_equal(set.fleet.data[1].count, MIG_FLEET_UNLIMITED);
    assert_int_equal(set.fleet.data[2].count, 1);
    assert_int_equal(set.fleet.data[2].gpus.data[0].instances.count, 2);
    assert_int_equal(set.fleet.data[2].gpus.data[0].instances.data[0].service, 0);
    assert_true(set.fleet.data[2].gpus.data[0].instances.data[1].reserved);
    assert_int_equal(service_set_use_fleet(&set, "a100-40gb:2,t4-16gb:*", &err), 0);
    assert_int_equal(set.fleet.count, 2);
    assert_true(set.fleet.data[0].price == 1.5 && set.fleet.data[0].gpus_per_node == 8);
    assert_true(set.fleet.data[1].price == 1 && set.fleet.data[1].count == MIG_FLEET_UNLIMITED);
    assert_int_equal(service_set_use_fleet(&set, "a100-40gb:x", &err), -E_INPUT);
    service_set_done(&set);
}

#define A "services: [{name: a, model: m, rate_rps: 10, latency_ms: 100}]\n"

static void refuses_with_place(void **state)
{
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {"", "s.yaml", ""},
        {"services: 3\n", "s.yaml:1", "list"},
        {"fleet: []\n", "s.yaml:1", "services"},
        {"services: [{name: a}]\n", "s.yaml:1", "model"},
        {"services: [{name: a, model: m, latency_ms: 5}]\n", "s.yaml:1", "rate_rps"},
        {"services: [{name: a, model: m, rate_rps: 5}]\n", "s.yaml:1", "latency_ms"},
        {"services: [{name: a, model: m, rate_rps: 0, latency_ms: 5}]\n", "s.yaml:1",
         "rate_rps"},
        {"services: [{name: a, model: m, rate_rps: -1, latency_ms: 5}]\n", "s.yaml:1",
         "rate_rps"},
        {"services: [{name: a, model: m, rate_rps: .nan, latency_ms: 5}]\n", "s.yaml:1", ""},
        {"services: [{name: a, model: m, rate_rps: 1e400, latency_ms: 5}]\n", "s.yaml:1", ""},
        {"services: [{name: a, model: m, rate_rps: 1e13, latency_ms: 5}]\n", "s.yaml:1",
         "1e13"},
        {"services: [{name: a, model: m, rate_rps: 1e-320, latency_ms: 5}]\n", "s.yaml:1",
         "at least"},
        {"services: [{name: a, model: m, rate_rps: null, latency_ms: 5}]\n", "s.yaml:1",
         "empty"},
        {"services: [{name: a, model: m, rate_rps: 5, latency_ms: ~}]\n", "s.yaml:1", "empty"},
        {A "derate:\n", "s.yaml:2:8", "empty"},
        {"services: [{name: a, model: m, rate_rps: 1, latency_ms: 5, percentile: 97}]\n",
         "s.yaml:1", "97"},
        {"services: [{name: a, model: m, rate_rps: 1, latency_ms: 5, spread: rack}]\n",
         "s.yaml:1", "rack"},
        {"services: [{name: a, model: m, rate_rps: 1, latency_ms: 5, rte: 3}]\n", "s.yaml:1",
         "rte"},
        {"services: [{name: a, model: m, rate_rps: 1, task: training, latency_ms: 5}]\n",
         "s.yaml:1", "training"},
        {"services:\n- {name: a, model: m, rate_rps: 1, latency_ms: 5}\n"
         "- {name: a, model: m, rate_rps: 1, latency_ms: 5}\n",
         "s.yaml:3:10", "line 2"},
        {A "fleet: [{board: a100}]\n", "s.yaml:2", "a100"},
        {A "fleet: [{board: a100-40gb, count: -1}]\n", "s.yaml:2", "count"},
        {A "fleet: [{board: a100-40gb, price: 0}]\n", "s.yaml:2", "price"},
        {A "fleet: [{board: a100-40gb, count: 0, gpus: [{id: x}]}]\n", "s.yaml:2", "listed"},
        {A "fleet: [{board: a100-40gb, gpus: [{id: x}, {id: x}]}]\n", "s.yaml:2", "twice"},
        {A
         "fleet: [{board: a100-40gb, gpus: [{id: x, instances: [{slice: 3g, start: 1, reserved:"
         " true}]}]}]\n",
         "s.yaml:2", "start"},
        {A
         "fleet: [{board: a100-40gb, gpus: [{id: x, instances: [{slice: 3g, start: 0, service:"
         " b}]}]}]\n",
         "s.yaml:2", "\"b\""},
        {A "fleet: [{board: a100-40gb, gpus: [{id: x, instances: [{slice: 3g, start: 0}]}]}]\n",
         "s.yaml:2", "reserved"},
        {A "latency_rule: fast\n", "s.yaml:2", "fast"},
        {A "derate: 1.5\n", "s.yaml:2", "derate"},
        {A "derate: 0\n", "s.yaml:2", "derate"},
        {A "services: []\n", "s.yaml:2", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service_set set;
        struct error err = {0};
        if (parse(cases[i].text, &set, &err) != -E_INPUT)
            fail_msg("case %zu was accepted: %s", i, cases[i].text);
        if (!strstr(err.text, cases[i].place) || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: %s", i, err.text);
    }
}

static void matches_models(void **state)
{
    static const char csv[] = "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n"
                              "resnet50,a100-40gb,1g,1,1,5,5\n";
    static const char yaml[] =
        "services:\n- {name: a, model: resnet5, rate_rps: 10, latency_ms: 100}\n";
    struct service_set set;
    struct measurement_set rows;
    struct error err = {0};
    (void)state;
    assert_int_equal(measurement_set_parse("m", csv, strlen(csv), &rows, &err), 0);
    assert_int_equal(parse(yaml, &set, &err), 0);
    assert_int_equal(service_set_match(&set, &rows, "s.yaml", &err), -E_INPUT);
    assert_non_null(strstr(err.text, "s.yaml:2"));
    assert_non_null(strstr(err.text, "did you mean \"resnet50\""));
    set.services.data[0].model = "resnet50";
    assert_int_equal(service_set_match(&set, &rows, "s.yaml", &err), 0);
    service_set_done(&set);
    measurement_set_done(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_defaults),
        cmocka_unit_test(reads_a_fleet),
        cmocka_unit_test(refuses_with_place),
        cmocka_unit_test(matches_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
