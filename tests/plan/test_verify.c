/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier accepts what the planner makes and refuses every planted fault, under the
 * rule that it breaks.
 */
#include "support.h"

#include <math.h>

#include "base/str.h"
#include "verify/verify.h"

enum { TRIES = 100 };

static const char csv[] =
    "model,board,slice,batch,procs,throughput_rps,latency_ms_p90,memory_mib,task,status\n"
    "a,a100-40gb,1g,1,1,10,20,1000,inference,ok\n"
    "a,a100-40gb,2g,1,1,22,15,1000,inference,ok\n"
    "a,a100-40gb,3g,1,1,35,12,1000,inference,ok\n"
    "a,a100-40gb,7g,1,1,80,8,1000,inference,ok\n"
    "a,a100-40gb,1g,8,1,60,140,1000,inference,ok\n"
    "a,a100-40gb,2g,8,1,60,140,1000,inference,ok\n"
    "a,a100-40gb,3g,8,1,60,140,1000,inference,ok\n"
    "a,a100-40gb,7g,8,1,60,140,1000,inference,ok\n"
    "a,a100-40gb,2g,4,1,30,40,20000,inference,ok\n"
    "b,a100-40gb,1g,1,1,14,50,1000,inference,ok\n"
    "b,a100-40gb,4g,2,2,70,90,9000,inference,ok\n"
    "b,a100-40gb,4g,4,2,90,95,9000,inference,timeout\n"
    "c,a100-40gb,2g,1,1,40,,,training,ok\n"
    "c,h100-80gb-sxm5,2g,1,1,80,,,training,ok\n";
/* Under each rule, with an objective that it makes of use: 140 ms is too slow for all. */
struct case_of_rule {
    const char *rule;
    int latency_ms;
    int times; /* that each fault is planted */
};
static const struct case_of_rule rules[] = {
    {"batch", 100, 10}, {"half", 220, 10}, {"queue", 120, 4}};
static const char yaml_format[] =
    "services:\n"
    "- {name: x, model: a, rate_rps: 131, latency_ms: %d, percentile: 90, spread: gpu}\n"
    "- {name: y, model: b, rate_rps: 97, latency_ms: %d, percentile: 90, min_instances: 4}\n"
    "- {name: z, model: c, task: training, rate_rps: 79}\n"
    "fleet:\n"
    "- {board: a100-40gb, count: 30, price: 1, gpus_per_node: 3}\n"
    "- {board: a100-40gb, gpus: [{id: held, node: n9, instances: [{slice: 1g, start: 0, "
    "reserved: true}, {slice: 1g, start: 1, service: x}]}]}\n"
    "latency_rule: %s\n";

struct fault {
    const char *name;
    const char *rule; /* that must be among the violations */
    /* Plants it somewhere by chance; false when there is no place for it. */
    bool (*plant)(struct plan *plan, struct rng *rng);
};

/* A serving instance by chance. */
static struct plan_instance *any_instance(struct plan *plan, struct rng *rng,
                                          struct plan_gpu **ret_gpu)
{
    for (;;) {
        struct plan_gpu *gpu = &plan->gpus.data[rng_below(rng, plan->gpus.count)];
        struct plan_instance *instance =
            &gpu->instances.data[rng_below(rng, gpu->instances.count)];
        if (instance->service < 0)
            continue;
        if (ret_gpu)
            *ret_gpu = gpu;
        return instance;
    }
}

static bool plant_rate(struct plan *plan, struct rng *rng)
{
    any_instance(plan, rng, NULL)->rate_rps *= 0.999;
    return true;
}

static bool plant_provided(struct plan *plan, struct rng *rng)
{
    plan->services.data[rng_below(rng, plan->services.count)].provided_rps *= 1.001;
    return true;
}

static bool plant_required(struct plan *plan, struct rng *rng)
{
    plan->services.data[rng_below(rng, plan->services.count)].required_rps *= 0.999;
    return true;
}

static bool plant_start(struct plan *plan, struct rng *rng)
{
    struct plan_gpu *gpu;
    struct plan_instance *instance = any_instance(plan, rng, &gpu);
    instance->start = (instance->start + 1) % 8;
    struct mig_layout layout;
    plan_gpu_layout(gpu, &layout);
    return mig_layout_check(gpu->board, &layout, NULL) < 0;
}

static bool plant_board(struct plan *plan, struct rng *rng)
{
    struct plan_gpu *gpu;
    any_instance(plan, rng, &gpu);
    gpu->board = mig_board_find("a100-80gb");
    return true;
}

static bool plant_missing(struct plan *plan, struct rng *rng)
{
    (void)rng;
    int gone = (int)plan->services.count - 1;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++)
            if (plan->gpus.data[g].instances.data[i].service == gone)
                plan->gpus.data[g].instances.data[i] =
                    plan->gpus.data[g].instances.data[--plan->gpus.data[g].instances.count];
    plan->services.count--;
    return true;
}

static bool plant_unserved(struct plan *plan, struct rng *rng)
{
    int service = any_instance(plan, rng, NULL)->service;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service != service)
                continue;
            instance->service = -1;
            instance->rate_rps = 0;
        }
    plan->services.data[service].provided_rps = 0;
    return true;
}

static bool plant_memory(struct plan *plan, struct rng *rng)
{
    struct plan_gpu *gpu;
    struct plan_instance *instance = any_instance(plan, rng, &gpu);
    if (mig_profile_get(gpu->board, "2g", &instance->profile, NULL) < 0)
        return false;
    instance->service = 0;
    instance->batch = 4;
    instance->procs = 1;
    instance->rate_rps = 30;
    instance->latency_ms = 40;
    return true;
}

static bool plant_latency(struct plan *plan, struct rng *rng)
{
    struct plan_instance *instance = any_instance(plan, rng, NULL);
    if (instance->service != 0)
        return false;
    plan->services.data[0].provided_rps += 60 - instance->rate_rps;
    instance->batch = 8;
    instance->rate_rps = 60;
    instance->latency_ms = 99;
    return true;
}

static bool plant_stated_latency(struct plan *plan, struct rng *rng)
{
    struct plan_instance *instance = any_instance(plan, rng, NULL);
    if (isnan(instance->latency_ms))
        return false;
    instance->latency_ms *= 1.01;
    return true;
}

static bool plant_batch(struct plan *plan, struct rng *rng)
{
    any_instance(plan, rng, NULL)->batch += 100;
    return true;
}

static bool plant_stock(struct plan *plan, struct rng *rng)
{
    (void)rng;
    for (int i = 0; i < 32; i++) {
        struct plan_gpu *gpu = vec_push(&plan->gpus);
        gpu->id = arena_printf(&plan->arena, "extra%d", i);
        gpu->node = "";
        gpu->board = mig_board_find("a100-40gb");
    }
    return true;
}

static bool plant_reserved(struct plan *plan, struct rng *rng)
{
    (void)rng;
    struct plan_gpu *gpu = &plan->gpus.data[plan_find_gpu(plan, "held")];
    for (size_t i = 0; i < gpu->instances.count; i++) {
        if (gpu->instances.data[i].start != 0)
            continue;
        gpu->instances.data[i].service = 0;
        gpu->instances.data[i].rate_rps = 10;
        gpu->instances.data[i].latency_ms = 20;
        plan->services.data[0].provided_rps += 10;
    }
    return true;
}

static bool plant_fixed(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->gpus.data[plan_find_gpu(plan, "held")].id = "other";
    return true;
}

static bool plant_cost(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->cost -= 1;
    plan->bound_cost = plan->cost;
    return true;
}

static bool plant_used(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->gpus_used--;
    return true;
}

static bool plant_bound(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->status = PLAN_OPTIMAL;
    plan->bound_cost = plan->cost - 1.5;
    return true;
}

static bool plant_bound_gpus(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->bound_gpus = (int)ceil(plan->cost) + 1;
    return true;
}

static bool plant_emulated(struct plan *plan, struct rng *rng)
{
    (void)rng;
    plan->emulated = true;
    return true;
}

static bool plant_node(struct plan *plan, struct rng *rng)
{
    (void)rng;
    for (size_t g = 0; g < plan->gpus.count; g++)
        plan->gpus.data[g].node = "n0";
    return true;
}

/* Takes away what lets the spread service lose a GPU, but not so much that its rate is short.
 */
static bool plant_gathered(struct plan *plan, struct rng *rng)
{
    double most_rps = 0, *provided_rps = &plan->services.data[0].provided_rps;
    (void)rng;
    for (size_t g = 0; g < plan->gpus.count; g++) {
        double here_rps = 0;
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service != 0)
                continue;
            if (*provided_rps - instance->rate_rps < plan->services.data[0].required_rps) {
                here_rps += instance->rate_rps;
                continue;
            }
            *provided_rps -= instance->rate_rps;
            instance->service = -1;
            instance->rate_rps = 0;
        }
        most_rps = here_rps > most_rps ? here_rps : most_rps;
    }
    return *provided_rps - most_rps < plan->services.data[0].required_rps;
}

static const struct fault faults[] = {
    {"a rate short by 0.1%", "rate", plant_rate},
    {"a wrong sum", "rate", plant_provided},
    {"another requirement", "rate", plant_required},
    {"a start out of place", "layout", plant_start},
    {"another board", "measurement", plant_board},
    {"a service missing", "service", plant_missing},
    {"an instance unserved", "rate", plant_unserved},
    {"memory over", "memory", plant_memory},
    {"latency over", "latency", plant_latency},
    {"latency misstated", "latency", plant_stated_latency},
    {"a batch that was not measured", "measurement", plant_batch},
    {"stock over", "stock", plant_stock},
    {"a reserved slice used", "fixed", plant_reserved},
    {"a fixed instance gone", "fixed", plant_fixed},
    {"cost too low", "cost", plant_cost},
    {"GPUs miscounted", "cost", plant_used},
    {"optimal without proof", "bound", plant_bound},
    {"more GPUs than the bound proves", "bound", plant_bound_gpus},
    {"emulated without cause", "emulated", plant_emulated},
    {"a node overfull", "node", plant_node},
    {"a service gathered on one GPU", "spread", plant_gathered},
};

static bool names_rule(const struct violations *violations, const char *rule)
{
    for (size_t i = 0; i < violations->list.count; i++)
        if (strcmp(violations->list.data[i].rule, rule) == 0)
            return true;
    return false;
}

/* A copy by way of the document, so that planting starts from what is on disk. */
static void copy_plan(const struct plan *plan, struct plan *copy)
{
    struct error err = {0};
    CLEANUP(json_decref_ptr) json_t *root = plan_to_json(plan);
    if (plan_from_json("plan", root, copy, &err) < 0)
        fail_msg("%s", err.text);
}

/* One fault planted in a copy of the plan: false when there is no place for it. */
static bool is_refused(const struct inputs *inputs, const struct plan *plan,
                       const struct fault *fault, struct rng *rng)
{
    struct plan copy;
    struct violations violations;
    copy_plan(plan, &copy);
    bool planted = fault->plant(&copy, rng);
    if (planted) {
        plan_verify(&copy, &inputs->services, &inputs->rows, &violations);
        if (!names_rule(&violations, fault->rule))
            fail_msg("%s was not refused as \"%s\"", fault->name, fault->rule);
        violations_done(&violations);
    }
    plan_done(&copy);
    return planted;
}

static void refuses_every_planted_fault_under(const struct case_of_rule *rule, struct rng *rng)
{
    struct inputs inputs;
    struct plan plan, copy;
    struct violations violations;
    CLEANUP(free_ptr)
    char *yaml = xasprintf(yaml_format, rule->latency_ms, rule->latency_ms, rule->rule);
    print_message("rule %s\n", rule->rule);
    inputs_read(&inputs, yaml, csv);
    struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
    plan_or_fail(&request, &plan);
    assert_true(plan.status != PLAN_INFEASIBLE);
    copy_plan(&plan, &copy);
    assert_int_equal(plan_verify(&copy, &inputs.services, &inputs.rows, &violations), 0);
    violations_done(&violations);
    plan_done(&copy);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        int planted = 0;
        for (int n = 0; n < TRIES && planted < rule->times; n++)
            planted += is_refused(&inputs, &plan, &faults[f], rng);
        if (planted == 0)
            fail_msg("never planted: %s", faults[f].name);
    }
    plan_done(&plan);
    inputs_done(&inputs);
}

static void refuses_every_planted_fault(void **state)
{
    struct rng rng = rng_seed(test_seed());
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        refuses_every_planted_fault_under(&rules[i], &rng);
}

/* Rates of which one service has a thousandth less than it requires, whatever the rule: the
 * requirement grows, as rates of instances are the rule's to say. */
static void refuses_services_short_by_a_thousandth(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        struct inputs inputs;
        struct plan plan;
        struct violations violations;
        CLEANUP(free_ptr)
        char *yaml =
            xasprintf(yaml_format, rules[r].latency_ms, rules[r].latency_ms, rules[r].rule);
        inputs_read(&inputs, yaml, csv);
        struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
        plan_or_fail(&request, &plan);
        for (size_t i = 0; i < plan.services.count; i++) {
            struct service *service = &inputs.services.services.data[i];
            double kept_rps = service->rate_rps;
            double provided_rps = plan.services.data[i].provided_rps;
            service->rate_rps = plan.services.data[i].required_rps = provided_rps / 0.999;
            plan_verify(&plan, &inputs.services, &inputs.rows, &violations);
            if (!names_rule(&violations, "rate"))
                fail_msg("%s: service %zu is short by 0.1%%, accepted", rules[r].rule, i);
            violations_done(&violations);
            service->rate_rps = plan.services.data[i].required_rps = kept_rps;
        }
        plan_done(&plan);
        inputs_done(&inputs);
    }
}

static void refuses_rates_the_queue_cannot_keep(void **state)
{
    static const char queue_yaml[] =
        "services:\n- {name: x, model: a, rate_rps: 31, latency_ms: 90, percentile: 90}\n";
    struct inputs inputs;
    struct plan plan;
    struct violations violations;
    (void)state;
    inputs_read(&inputs, queue_yaml, csv);
    struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
    plan_or_fail(&request, &plan);
    assert_int_equal(plan_verify(&plan, &inputs.services, &inputs.rows, &violations), 0);
    violations_done(&violations);
    for (size_t g = 0; g < plan.gpus.count; g++)
        for (size_t i = 0; i < plan.gpus.data[g].instances.count; i++)
            plan.gpus.data[g].instances.data[i].rate_rps *= 1.1;
    plan.services.data[0].provided_rps *= 1.1;
    assert_true(plan_verify(&plan, &inputs.services, &inputs.rows, &violations) > 0);
    assert_true(names_rule(&violations, "rate"));
    violations_done(&violations);
    plan_done(&plan);
    inputs_done(&inputs);
}

/* Rates at which the next request never comes: no replay can be made of them. */
static void refuses_rates_of_next_to_nothing(void **state)
{
    static const double rates_rps[] = {0, 5e-324, 1e-300, 1e-12};
    static const char replayed_csv[] =
        "model,board,slice,batch,procs,throughput_rps,latency_ms_p90,memory_mib,task,status\n"
        "b,a100-40gb,4g,2,2,70,90,9000,inference,ok\n";
    static const char queue_yaml[] =
        "services:\n- {name: x, model: b, rate_rps: 10, latency_ms: 300, percentile: 90}\n";
    struct inputs inputs;
    struct plan plan;
    struct violations violations;
    (void)state;
    inputs_read(&inputs, queue_yaml, replayed_csv);
    struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
    plan_or_fail(&request, &plan);
    assert_int_equal(plan.gpus.count, 1);
    for (size_t r = 0; r < sizeof rates_rps / sizeof *rates_rps; r++) {
        plan.gpus.data[0].instances.data[0].rate_rps = rates_rps[r];
        assert_true(plan_verify(&plan, &inputs.services, &inputs.rows, &violations) > 0);
        assert_true(names_rule(&violations, "rate"));
        violations_done(&violations);
    }
    plan_done(&plan);
    inputs_done(&inputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_every_planted_fault),
        cmocka_unit_test(refuses_services_short_by_a_thousandth),
        cmocka_unit_test(refuses_rates_the_queue_cannot_keep),
        cmocka_unit_test(refuses_rates_of_next_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
