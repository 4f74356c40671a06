/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner is asked for beyond rates: reasons, priorities, fixed instances, spread,
 * training, extremes, and plans that change an earlier one little.
 */
#include "support.h"

#include "base/executor.h"
#include "base/str.h"

#include <math.h>

static const char csv[] = "model,board,slice,batch,procs,throughput_rps,latency_ms_p90,memory_"
                          "mib,status,task,device\n"
                          "a,a100-40gb,1g,1,1,10,20,1000,ok,inference,\n"
                          "a,a100-40gb,2g,1,1,22,15,1000,ok,inference,\n"
                          "a,a100-40gb,3g,1,1,30,12,1000,ok,inference,\n"
                          "a,a100-40gb,7g,1,1,80,8,1000,ok,inference,\n"
                          "a,a100-40gb,1g,8,1,40,150,6000,ok,inference,\n"
                          "b,a100-40gb,7g,4,2,50,90,30000,ok,inference,\n"
                          "c,a100-40gb,1g,1,1,,,,oom,inference,\n"
                          "d,a100-40gb,1g,1,1,100,,,ok,training,\n"
                          "d,a100-40gb,3g,1,1,290,,,ok,training,\n"
                          "e,t4-16gb,whole,4,1,33,70,9000,ok,inference,cpu-slice\n"
                          "f,a100-40gb,1g,1,1,10,20,9000,ok,inference,\n"
                          "g,a100-40gb,7g,64,1,1e6,50,9000,ok,inference,\n"
                          "h,a100-40gb,2g,1,1,,,,timeout,inference,\n"
                          "h,a100-40gb,4g,8,2,120,60,,ok,inference,\n"
                          "k,a100-40gb,2g,1,1,55,,,ok,training,\n"
                          "k,a100-40gb,7g,1,1,200,,,ok,training,\n";

#define BATCH "latency_rule: batch\n"
#define SERVICE(name, model, rate)                                                             \
    "- {name: " name ", model: " model ", rate_rps: " rate ", latency_ms: 100, percentile: 90"

static void run_yaml(const char *yaml, const struct plan *from, int max_moves,
                     struct plan *plan)
{
    struct inputs inputs;
    inputs_read(&inputs, yaml, csv);
    struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
    request.from = from;
    request.max_moves = max_moves;
    plan_or_fail(&request, plan);
    inputs_done(&inputs);
}

static void extremes(void **state)
{
    static const struct {
        const char *yaml;
        enum plan_status status;
        int gpus;
    } cases[] = {
        {BATCH "services: []\n", PLAN_OPTIMAL, 0},
        {BATCH "services:\n" SERVICE("x", "a", "0.001") "}\n", PLAN_OPTIMAL, 1},
        {BATCH "services:\n" SERVICE("x", "b", "500000") "}\n", PLAN_OPTIMAL, 10000},
        {BATCH "services:\n" SERVICE("x", "b", "50") "}\n" SERVICE("y", "b", "51") "}\n",
         PLAN_OPTIMAL, 3},
        {BATCH "services:\n" SERVICE("x", "a", "1e9") "}\n", PLAN_INFEASIBLE, 0},
        {BATCH "services:\n" SERVICE("x", "e", "80") "}\n", PLAN_OPTIMAL, 3},
        {BATCH "services:\n" SERVICE("x", "g", "1e9") "}\n", PLAN_OPTIMAL, 1000},
        {BATCH "services:\n" SERVICE("x", "a", "80") ", spread: gpu}\n", PLAN_OPTIMAL, 2},
        {BATCH "services:\n" SERVICE("x", "a", "10") ", min_instances: 8}\n", PLAN_OPTIMAL, 2},
        {BATCH "services:\n- {name: t, model: d, task: training, rate_rps: 700}\n" SERVICE(
             "x", "a", "70") "}\n",
         PLAN_OPTIMAL, 2},
        {BATCH
         "services:\n" SERVICE("x", "a", "10") "}\nfleet: [{board: a100-40gb, count: 0}]\n",
         PLAN_INFEASIBLE, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        run_yaml(cases[i].yaml, NULL, -1, &plan);
        if (plan.status != cases[i].status || plan.gpus_used != cases[i].gpus)
            fail_msg("case %zu: status %d, %d GPUs", i, (int)plan.status, plan.gpus_used);
        assert_true(plan.emulated == (strstr(cases[i].yaml, "model: e") != NULL));
        plan_done(&plan);
    }
}

/* Three services and two training jobs share GPUs: 4g + 3g, 7g, 2g + 2g + 3 x 1g, … */
static void mixes_serving_and_training(void **state)
{
    static const char yaml[] = BATCH
        "services:\n" SERVICE("x", "a", "85") "}\n" SERVICE("y", "h", "200") "}\n" SERVICE(
            "z", "b", "90") "}\n"
                            "- {name: t, model: d, task: training, rate_rps: 460}\n"
                            "- {name: u, model: k, task: training, rate_rps: 160}\n";
    struct plan plan;
    (void)state;
    run_yaml(yaml, NULL, -1, &plan);
    assert_int_equal(plan.status, PLAN_OPTIMAL);
    assert_int_equal(plan.services.count, 5);
    assert_true(plan.cost == ceil(plan.bound_cost - 1e-9));
    int shared = 0;
    for (size_t g = 0; g < plan.gpus.count; g++) {
        bool serves = false, trains = false;
        for (size_t i = 0; i < plan.gpus.data[g].instances.count; i++) {
            int service = plan.gpus.data[g].instances.data[i].service;
            serves |= service >= 0 && service < 3;
            trains |= service >= 3;
        }
        shared += serves && trains;
    }
    assert_true(shared > 0);
    plan_done(&plan);
}

static void reasons(void **state)
{
    struct plan plan;
    (void)state;
    run_yaml(BATCH
             "services:\n- {name: x, model: b, rate_rps: 5, latency_ms: 10, percentile: 90}\n"
             "- {name: y, model: c, rate_rps: 5, latency_ms: 10}\n"
             "- {name: z, model: a, rate_rps: 1, latency_ms: 100, percentile: 99}\n" SERVICE(
                 "m", "f", "1") "}\n" SERVICE("ok", "a", "1") "}\n",
             NULL, -1, &plan);
    assert_int_equal(plan.status, PLAN_INFEASIBLE);
    assert_int_equal(plan.gpus.count, 0);
    assert_int_equal(plan.infeasible.count, 4);
    assert_string_equal(plan.infeasible.data[0].reason, "latency");
    assert_true(plan.infeasible.data[0].nearest_latency_ms == 90);
    assert_string_equal(plan.infeasible.data[1].reason, "memory");
    assert_string_equal(plan.infeasible.data[2].reason, "no_measurement");
    assert_string_equal(plan.infeasible.data[3].reason, "memory");
    plan_done(&plan);
}

static void drops_the_least_urgent(void **state)
{
    struct plan plan;
    (void)state;
    run_yaml(
        BATCH "services:\n" SERVICE("low", "a", "80") ", priority: 1}\n" SERVICE(
            "high", "a",
            "80") ", priority: 3}\n" SERVICE("middle", "a",
                                             "80") ", priority: 2}\n"
                                                   "fleet: [{board: a100-40gb, count: 2}]\n",
        NULL, -1, &plan);
    assert_int_equal(plan.status, PLAN_OPTIMAL);
    assert_int_equal(plan.infeasible.count, 1);
    assert_string_equal(plan.infeasible.data[0].service, "low");
    assert_string_equal(plan.infeasible.data[0].reason, "stock");
    assert_true(plan_find_service(&plan, "high") >= 0 &&
                plan_find_service(&plan, "middle") >= 0);
    assert_int_equal(plan_find_service(&plan, "low"), -1);
    plan_done(&plan);
    run_yaml(BATCH "services:\n" SERVICE("one", "a", "80") "}\n" SERVICE(
                 "two", "a", "80") "}\n"
                                   "fleet: [{board: a100-40gb, count: 1}]\n",
             NULL, -1, &plan);
    assert_int_equal(plan.status, PLAN_INFEASIBLE);
    assert_int_equal(plan.gpus.count, 0);
    plan_done(&plan);
}

static void keeps_what_is_fixed(void **state)
{
    struct plan plan;
    (void)state;
    run_yaml(BATCH "services:\n" SERVICE(
                 "x", "a", "80") "}\n"
                                 "- {name: t, model: d, task: training, rate_rps: 300}\n"
                                 "fleet: [{board: a100-40gb, gpus: [{id: g7, node: n1, "
                                 "instances: [{slice: 3g, "
                                 "start: 4, service: x}, {slice: 1g, start: 0, reserved: "
                                 "true}]}, {id: k}]}]\n",
             NULL, -1, &plan);
    assert_int_equal(plan.status, PLAN_OPTIMAL);
    assert_int_equal(plan.gpus_used, 2);
    int index = plan_find_gpu(&plan, "g7");
    assert_true(index >= 0 && plan_find_gpu(&plan, "k") >= 0);
    assert_string_equal(plan.gpus.data[index].node, "n1");
    assert_int_equal(plan.gpus.data[index].instances.data[0].service, -1);
    plan_done(&plan);
}

/* Services with rates by chance; the same seed gives the same. */
static void random_yaml(uint64_t seed, double low, double high, struct str *yaml)
{
    struct rng rng = rng_seed(seed);
    str_add(yaml, BATCH "services:\n");
    for (int i = 0; i < 6; i++)
        str_addf(yaml, SERVICE("s%d", "a", "%g") "}\n", i, rng_uniform(&rng, low, high));
}

static void changes_little(void **state)
{
    uint64_t seed = test_seed();
    (void)state;
    for (int n = 0; n < 12; n++) {
        CLEANUP(str_done) struct str before = STR_EMPTY;
        CLEANUP(str_done) struct str after = STR_EMPTY;
        struct plan first, same, fresh, next, still;
        random_yaml(seed + (uint64_t)n, 20, n < 6 ? 60 : 200, &before);
        random_yaml(seed + 1000 + (uint64_t)n, 20, n < 6 ? 60 : 200, &after);
        run_yaml(before.bytes, NULL, -1, &first);
        run_yaml(before.bytes, &first, -1, &same);
        json_t *changes = json_object_get(same.extra, "changes");
        assert_int_equal(json_integer_value(json_object_get(changes, "moved")), 0);
        assert_int_equal(json_integer_value(json_object_get(changes, "created")), 0);
        run_yaml(after.bytes, NULL, -1, &fresh);
        run_yaml(after.bytes, &first, -1, &next);
        assert_true(next.cost == fresh.cost);
        run_yaml(after.bytes, &first, 0, &still);
        changes = json_object_get(still.extra, "changes");
        assert_int_equal(json_integer_value(json_object_get(changes, "moved")), 0);
        assert_true(still.cost >= next.cost);
        plan_done(&first);
        plan_done(&same);
        plan_done(&fresh);
        plan_done(&next);
        plan_done(&still);
    }
}

static void same_bytes_again(void **state)
{
    CLEANUP(str_done) struct str yaml = STR_EMPTY;
    CLEANUP(str_done) struct str one = STR_EMPTY;
    CLEANUP(str_done) struct str two = STR_EMPTY;
    struct plan plan;
    (void)state;
    random_yaml(7, 50, 900, &yaml);
    run_yaml(yaml.bytes, NULL, -1, &plan);
    plan_format(&plan, &one);
    plan_done(&plan);
    run_yaml(yaml.bytes, NULL, -1, &plan);
    plan_format(&plan, &two);
    plan_done(&plan);
    assert_string_equal(one.bytes, two.bytes);
}

/* Under the queue rule the promises are made on the threads as well. */
static void same_bytes_at_any_threads(void **state)
{
    CLEANUP(str_done) struct str yaml = STR_EMPTY;
    struct str texts[2] = {STR_EMPTY, STR_EMPTY};
    (void)state;
    str_add(&yaml, "services:\n");
    for (int i = 0; i < 8; i++)
        str_addf(&yaml,
                 "- {name: s%d, model: %s, rate_rps: %d, latency_ms: %d, percentile: 90}\n", i,
                 (const char *const[]){"a", "b", "h"}[i % 3], 30 + 17 * i, 150 + 5 * i);
    for (int i = 0; i < 2; i++) {
        struct inputs inputs;
        struct plan plan;
        const struct executor executor = {.workers = i == 0 ? 1 : 4};
        inputs_read(&inputs, yaml.bytes, csv);
        struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
        request.settings.executor = &executor;
        plan_or_fail(&request, &plan);
        assert_int_equal(plan.status, PLAN_OPTIMAL);
        plan_format(&plan, &texts[i]);
        plan_done(&plan);
        inputs_done(&inputs);
    }
    assert_string_equal(texts[0].bytes, texts[1].bytes);
    str_done(&texts[0]);
    str_done(&texts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixes_serving_and_training),
        cmocka_unit_test(same_bytes_at_any_threads),
        cmocka_unit_test(extremes),
        cmocka_unit_test(reasons),
        cmocka_unit_test(drops_the_least_urgent),
        cmocka_unit_test(keeps_what_is_fixed),
        cmocka_unit_test(changes_little),
        cmocka_unit_test(same_bytes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
