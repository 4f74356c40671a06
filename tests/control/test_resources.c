/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom resources read into structs and written back: round trips, defaults, unknown fields
 * and words, and tables of wrong input with the field that the message names.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "control/kinds.h"
#include "control/resources.h"
#include "control/timestamp.h"

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    struct error err = {0};
    int rc = json_parse("case", text, strlen(text), &json, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
    return json;
}

/* Single quotes stand for double ones. */
static json_t *object_of(const char *meta, const char *spec, const char *status)
{
    CLEANUP(free_ptr)
    char *text = xasprintf("{'metadata':{%s},'spec':%s%s%s}", meta, spec,
                           status ? ",'status':" : "", status ? status : "");
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    return parse(text);
}

#define POD_TEMPLATE "'podTemplate':{'spec':{'containers':[{'name':'serve','image':'x'}]}}"
#define SHOP         "'name':'ranker','namespace':'shop'"

static void test_service(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct gpu_service service;
    struct error err = {0};
    CLEANUP(json_decref_ptr)
    json_t *object = object_of(
        SHOP ",'uid':'u1','resourceVersion':'17','generation':3,"
             "'finalizers':['other/f','tranche.dev/finalizer']",
        "{'model':'bert','rateRps':1200,'latencyMs':100.5,'percentile':'99.9','spread':'node',"
        "'priority':-3,'minInstances':2,'allowedSlices':['1g','3g.20gb'],'gateway':'infra/gw',"
        "'drainSeconds':0,'port':9000,'pool':'blue','futureField':{'a':[1]}," POD_TEMPLATE "}",
        NULL);
    assert_int_equal(gpu_service_read(object, &arena, &service, &err), 0);
    assert_string_equal(service.meta.namespace, "shop");
    assert_string_equal(service.meta.uid, "u1");
    assert_string_equal(service.meta.resource_version, "17");
    assert_int_equal(service.meta.generation, 3);
    assert_true(service.meta.has_finalizer && !service.meta.deleting);
    assert_string_equal(service.pool, "blue");
    assert_true(service.rate_rps == 1200 && service.latency_ms == 100.5);
    assert_true(service.percentile == 99.9 && service.max_wait_ms == 100.5 / 4);
    assert_int_equal(service.spread, SPREAD_NODE);
    assert_int_equal(service.priority, -3);
    assert_int_equal(service.min_instances, 2);
    assert_int_equal(service.allowed_slices.count, 2);
    assert_string_equal(service.allowed_slices.data[1], "3g.20gb");
    assert_string_equal(service.gateway, "infra/gw");
    assert_int_equal(service.drain_seconds, 0);
    assert_int_equal(service.port, 9000);
    assert_non_null(json_object_get(service.pod_template, "spec"));
    arena_done(&arena);
}

static void test_service_defaults(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct gpu_service service;
    struct error err = {0};
    CLEANUP(json_decref_ptr)
    json_t *object = object_of(SHOP ",'deletionTimestamp':'2026-03-01T12:00:00Z'",
                               "{'model':'resnet50','rateRps':0.5,'task':'training',"
                               "'minInstances':null," POD_TEMPLATE "}",
                               NULL);
    assert_int_equal(gpu_service_read(object, &arena, &service, &err), 0);
    assert_true(service.meta.deleting && !service.meta.has_finalizer);
    assert_string_equal(service.pool, "default");
    assert_string_equal(service.gateway, "");
    assert_int_equal(service.task, TASK_TRAINING);
    assert_true(isnan(service.latency_ms) && isnan(service.max_wait_ms));
    assert_true(service.percentile == 99);
    assert_int_equal(service.min_instances, 1);
    assert_int_equal(service.drain_seconds, 15);
    assert_int_equal(service.port, 8000);
    assert_int_equal(service.allowed_slices.count, 0);
    arena_done(&arena);
}

static void test_pool(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct gpu_pool pool;
    struct error err = {0};
    CLEANUP(json_decref_ptr) json_t *object = object_of("'name':'default'", "{}", NULL);
    assert_int_equal(gpu_pool_read(object, &arena, &pool, &err), 0);
    assert_string_equal(pool.meta.namespace, "");
    assert_null(pool.node_selector);
    assert_int_equal(pool.actuator, ACTUATOR_AUTO);
    assert_int_equal(pool.latency_rule, RULE_QUEUE);
    assert_true(pool.derate == 1 && pool.headroom == 1);
    assert_int_equal(pool.replan_seconds, 30);
    assert_int_equal(pool.action_timeout_seconds, 600);
    assert_int_equal(pool.spare_gpus, 0);
    assert_true(!pool.paused && pool.exact_placement);
    assert_string_equal(pool.window.start, "");
    CLEANUP(json_decref_ptr)
    json_t *other = object_of("'name':'default'",
                              "{'nodeSelector':{'a':'b'},'actuator':'mig-manager','derate':0.9,"
                              "'latencyRule':'half','paused':true,'spareGpus':2,"
                              "'window':{'start':'22:00','end':'04:00','days':['Sat','Sun']}}",
                              "{'actuator':'a-word-of-tomorrow','gpus':'many'}");
    assert_int_equal(gpu_pool_read(other, &arena, &pool, &err), 0);
    assert_int_equal(json_object_size(pool.node_selector), 1);
    assert_int_equal(pool.actuator, ACTUATOR_MIG_MANAGER);
    assert_int_equal(pool.latency_rule, RULE_HALF);
    assert_true(pool.derate == 0.9 && pool.paused);
    assert_string_equal(pool.window.start, "22:00");
    assert_string_equal(pool.window.end, "04:00");
    assert_int_equal(pool.window.days.count, 2);
    assert_string_equal(pool.window.days.data[1], "Sun");
    arena_done(&arena);
}

static void test_profile(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct perf_profile profile;
    struct error err = {0};
    CLEANUP(json_decref_ptr)
    json_t *object = object_of(
        "'name':'bert'",
        "{'model':'bert','board':'a100-40gb','source':{'tool':'tranche','extra':1},'entries':["
        "{'slice':'3g','batch':8,'procs':2,'throughputRps':971.25,'latencyMsP50':8,"
        "'latencyMsP99':16.5,'memoryMib':1024},"
        "{'slice':'7g.40gb','batch':64,'procs':1,'status':'oom','reason':'too large'}]}",
        NULL);
    assert_int_equal(perf_profile_read(object, &arena, &profile, &err), 0);
    assert_int_equal(profile.rows.count, 2);
    const struct measurement *row = &profile.rows.data[0];
    assert_string_equal(row->model, "bert");
    assert_string_equal(row->board->profiles[row->profile].name, "3g.20gb");
    assert_int_equal(row->batch * 10 + row->procs, 82);
    assert_true(row->throughput_rps == 971.25 && row->latency_ms[LATENCY_P99] == 16.5);
    assert_true(row->latency_ms[LATENCY_P50] == 8 && isnan(row->latency_ms[LATENCY_MEAN]));
    assert_true(row->memory_mib == 1024 && isnan(row->power_w));
    assert_string_equal(row->device, "");
    assert_int_equal(profile.rows.data[1].status, STATUS_OOM);
    assert_true(profile.rows.data[1].throughput_rps == 0);
    assert_string_equal(profile.rows.data[1].reason, "too large");
    struct perf_profile back;
    CLEANUP(json_decref_ptr) json_t *written = perf_profile_to_json(&profile);
    assert_int_equal(perf_profile_read(written, &arena, &back, &err), 0);
    CLEANUP(json_decref_ptr) json_t *again = perf_profile_to_json(&back);
    assert_true(json_equal(written, again));
    assert_true(back.rows.data[0].latency_ms[LATENCY_P99] == 16.5);
    assert_true(isnan(back.rows.data[0].latency_ms[LATENCY_P95]));
    arena_done(&arena);
}

static void test_plan_round_trip(void **state)
{
    (void)state;
    const struct mig_board *board = mig_board_find("a100-40gb");
    struct arena arena = {0};
    struct partition_item items[] = {
        {"GPU-1", "n1", board, mig_profile_find(board, "3g"), 4, "shop/ranker", 8, 1, 25,
         971.25, 83.5},
        {"GPU-1", "n1", board, mig_profile_find(board, "1g"), 0, "", 0, 0, NAN, 0, NAN},
    };
    struct partition_plan plan = {.meta.name = "default-0a1b2c3d",
                                  .pool = "default",
                                  .plan = "default-0a1b2c3d",
                                  .part = 1,
                                  .parts = 2,
                                  .input_hash = "h",
                                  .algorithm = "exact",
                                  .cost = 3,
                                  .bound_cost = NAN};
    struct partition_plan back;
    struct error err = {0};
    plan.items.data = items;
    plan.items.count = 2;
    CLEANUP(json_decref_ptr) json_t *object = partition_plan_to_json(&plan);
    assert_string_equal(json_string_value(json_object_get(object, "apiVersion")),
                        "tranche.dev/v1alpha1");
    assert_int_equal(partition_plan_read(object, &arena, &back, &err), 0);
    assert_string_equal(back.meta.name, "default-0a1b2c3d");
    assert_string_equal(back.plan, plan.plan);
    assert_int_equal(back.part * 10 + back.parts, 12);
    assert_true(back.cost == 3 && isnan(back.bound_cost));
    assert_int_equal(back.items.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct partition_item *a = &items[i], *b = &back.items.data[i];
        assert_string_equal(a->gpu_uuid, b->gpu_uuid);
        assert_string_equal(a->node, b->node);
        assert_string_equal(a->service, b->service);
        assert_ptr_equal(a->board, b->board);
        assert_int_equal(a->profile * 100 + a->start, b->profile * 100 + b->start);
        assert_int_equal(a->batch * 100 + a->procs, b->batch * 100 + b->procs);
        assert_true(a->rate_rps == b->rate_rps);
        assert_true(isnan(a->latency_ms) ? isnan(b->latency_ms)
                                         : a->latency_ms == b->latency_ms);
    }
    CLEANUP(json_decref_ptr) json_t *again = partition_plan_to_json(&back);
    assert_true(json_equal(object, again));
    arena_done(&arena);
}

static const char TRANSITION_TEXT[] =
    "{'schema':'tranche.transition/1','algorithm':'dag','extra_gpus':0,'makespan_seconds':0,"
    "'floor_rps':{'shop/a':10.5,'shop/b':0},'match':{},"
    "'gpus':[{'id':'GPU-1','board':'a100-40gb','node':'n1'},"
    "{'id':'GPU-2','board':'a30-24gb','node':null}],"
    "'actions':["
    "{'id':'a1','kind':'create_instance','gpu':'GPU-1','slice':'3g.20gb','start':4,"
    "'service':null,'batch':null,'procs':null,'rate_rps':null,'after':[],'seconds':2,"
    "'group':'create'},"
    "{'id':'a2','kind':'start','gpu':'GPU-1','slice':'3g.20gb','start':4,'service':'shop/a',"
    "'batch':8,'procs':2,'rate_rps':20.25,'after':['a1'],'seconds':12.5,'group':'create'},"
    "{'id':'a3','kind':'drain','gpu':'GPU-2','slice':'1g.6gb','start':3,'service':'shop/b',"
    "'batch':1,'procs':1,'rate_rps':5,'after':['a1','a2'],'seconds':15,'group':'delete'}],"
    "'from':{'gpus':[],'services':[{'name':'shop/b','required_rps':5,'provided_rps':5},"
    "{'name':'shop/a','required_rps':10.5,'provided_rps':11}]},"
    "'to':{'gpus':[],'services':[{'name':'shop/a','required_rps':12,'provided_rps':31}]}}";

static void make_transition(struct transition *ret)
{
    struct error err = {0};
    CLEANUP(free_ptr) char *text = xstrdup(TRANSITION_TEXT);
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    CLEANUP(json_decref_ptr) json_t *json = parse(text);
    int rc = transition_from_json("case", json, ret, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
}

static void test_transition_round_trip(void **state)
{
    (void)state;
    struct transition transition;
    struct transition_object object;
    struct arena arena = {0};
    struct error err = {0};
    make_transition(&transition);
    CLEANUP(json_decref_ptr)
    json_t *json = transition_object_to_json("t1", "default", "", "plan-2", &transition);
    assert_non_null(json);
    json_object_set_new(
        json, "status",
        json_loads("{\"epoch\":4,\"actions\":["
                   "{\"id\":\"a2\",\"phase\":\"Started\",\"attempts\":2,"
                   "\"startedAt\":\"2026-03-01T12:00:00Z\"},"
                   "{\"id\":\"a1\",\"phase\":\"Done\"},"
                   "{\"id\":\"a3\",\"phase\":\"Dreaming\"},{\"id\":\"a9\",\"phase\":\"Done\"}],"
                   "\"conditions\":[{\"type\":\"Stalled\",\"status\":\"True\"}]}",
                   0, NULL));
    int rc = transition_object_read(json, &arena, &object, &err);
    if (rc < 0)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
    assert_string_equal(object.pool, "default");
    assert_string_equal(object.from, "");
    assert_string_equal(object.to, "plan-2");
    assert_int_equal(object.epoch, 4);
    assert_true(object.stalled && !object.complete);
    assert_int_equal(object.transition.actions.count, 3);
    assert_int_equal(object.states.count, 3);
    assert_int_equal(object.states.data[0].phase, PHASE_DONE);
    assert_int_equal(object.states.data[1].phase, PHASE_STARTED);
    assert_int_equal(object.states.data[1].attempts, 2);
    assert_int_equal(object.states.data[1].started_s, 1772366400);
    /* a word of a later version counts as unknown: pending */
    assert_int_equal(object.states.data[2].phase, PHASE_PENDING);
    for (size_t i = 0; i < 3; i++) {
        const struct transition_action *a = &transition.actions.data[i];
        const struct transition_action *b = &object.transition.actions.data[i];
        assert_string_equal(a->id, b->id);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->group, b->group);
        assert_int_equal(a->after.count, b->after.count);
        assert_true(a->rate_rps == b->rate_rps && a->seconds == b->seconds);
        assert_int_equal(a->profile * 100 + a->start, b->profile * 100 + b->start);
    }
    int a = transition_find_service(&object.transition, "shop/a");
    assert_true(object.transition.services.data[a].floor_rps == 10.5);
    CLEANUP(json_decref_ptr) json_t *states = action_states_to_json(&object);
    assert_int_equal(json_array_size(states), 3);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(states, 1), "startedAt")),
        "2026-03-01T12:00:00Z");
    CLEANUP(json_decref_ptr)
    json_t *again =
        transition_object_to_json("t1", "default", "", "plan-2", &object.transition);
    assert_true(json_equal(json_object_get(json, "spec"), json_object_get(again, "spec")));
    transition_done(&object.transition);
    transition_done(&transition);
    arena_done(&arena);
}

static void test_node_state_round_trip(void **state)
{
    (void)state;
    const struct mig_board *board = mig_board_find("a100-40gb");
    struct node_instance instances[] = {
        {mig_profile_find(board, "3g"), 4, "MIG-1", true},
        {mig_profile_find(board, "1g"), 0, "", false},
    };
    struct node_gpu gpus[2] = {{.uuid = "GPU-1", .board = board, .mig_enabled = true},
                               {.uuid = "GPU-2", .board = board}};
    gpus[0].instances.data = instances;
    gpus[0].instances.count = 2;
    CLEANUP(json_decref_ptr)
    json_t *object =
        json_pack("{s:{s:s, s:i}, s:{s:i, s:o}, s:{s:i, s:i, s:s, s:o, s:[{s:s, s:s}]}}",
                  "metadata", "name", "n1", "generation", 7, "spec", "epoch", 5, "gpus",
                  node_desired_to_json(gpus, 2), "status", "observedEpoch", 4,
                  "observedGeneration", 6, "message", "m", "gpus", node_found_to_json(gpus, 2),
                  "conditions", "type", "Synced", "status", "True");
    /* What an agent of a later version may say: a board and a profile that we do not know. */
    json_t *found = json_object_get(json_object_get(object, "status"), "gpus");
    json_array_append_new(found, json_pack("{s:s, s:s}", "uuid", "GPU-9", "board", "z900"));
    json_array_append_new(json_object_get(json_array_get(found, 0), "instances"),
                          json_pack("{s:s, s:i}", "slice", "9g.99gb", "start", 1));
    struct arena arena = {0};
    struct node_gpu_state back;
    struct error err = {0};
    assert_int_equal(node_gpu_state_read(object, &arena, &back, &err), 0);
    assert_int_equal(back.epoch, 5);
    assert_int_equal(back.observed_epoch, 4);
    assert_int_equal(back.generation, 7);
    assert_int_equal(back.observed_generation, 6);
    assert_true(back.synced && !back.driver_conflict);
    assert_string_equal(back.message, "m");
    assert_int_equal(back.desired.count, 2);
    assert_int_equal(back.found.count, 2);
    assert_true(back.found.data[0].mig_enabled);
    assert_int_equal(back.found.data[0].instances.count, 2);
    assert_string_equal(back.found.data[0].instances.data[0].uuid, "MIG-1");
    assert_true(back.found.data[0].instances.data[0].ready);
    assert_string_equal(back.desired.data[0].instances.data[0].uuid ?: "", "");
    assert_int_equal(back.desired.data[0].instances.data[1].start, 0);
    arena_done(&arena);
}

/* Wrong specs: the message must begin with the object and hold the field's path. */
struct wrong {
    enum { SERVICE, POOL, PROFILE, PLAN, TRANSITION, NODE } kind;
    const char *spec, *expected;
};

#define SERVICE_WITH(more) "{'model':'m','rateRps':1,'latencyMs':10," POD_TEMPLATE more "}"
#define ENTRY_WITH(entry)  "{'model':'m','board':'a100-40gb','entries':[" entry "]}"
#define ITEM_WITH(item)    "{'pool':'p','plan':'q','items':[" item "]}"
#define ACTIONS_WITH(actions)                                                                  \
    "{'pool':'p','to':'q','gpus':[{'uuid':'G','board':'a100-40gb'}],"                          \
    "'services':[{'name':'s/a','floorRps':1}],'actions':[" actions "]}"
#define ACTION(id, more)                                                                       \
    "{'id':'" id "','kind':'create_instance','group':'create','gpuUUID':'G','slice':'1g.5gb'," \
    "'start':0,'seconds':1" more "}"

static const struct wrong wrongs[] = {
    {SERVICE, "{'rateRps':1,'latencyMs':10," POD_TEMPLATE "}", "spec.model: is missing"},
    {SERVICE, "{'model':'','rateRps':1,'latencyMs':10," POD_TEMPLATE "}",
     "spec.model: is empty"},
    {SERVICE, "{'model':7,'rateRps':1,'latencyMs':10," POD_TEMPLATE "}", "spec.model: found 7"},
    {SERVICE, "{'model':'m','latencyMs':10," POD_TEMPLATE "}", "spec.rateRps: is missing"},
    {SERVICE, "{'model':'m','rateRps':0,'latencyMs':10," POD_TEMPLATE "}",
     "spec.rateRps: found 0"},
    {SERVICE, "{'model':'m','rateRps':-1,'latencyMs':10," POD_TEMPLATE "}",
     "spec.rateRps: found -1"},
    {SERVICE, "{'model':'m','rateRps':'9','latencyMs':10," POD_TEMPLATE "}", "spec.rateRps"},
    {SERVICE, "{'model':'m','rateRps':1," POD_TEMPLATE "}", "spec.latencyMs: is missing"},
    {SERVICE, "{'model':'m','rateRps':1,'task':'training','latencyMs':4," POD_TEMPLATE "}",
     "training service"},
    {SERVICE, "{'model':'m','rateRps':1,'latencyMs':10}", "podTemplate"},
    {SERVICE,
     "{'model':'m','rateRps':1,'latencyMs':10,'podTemplate':{'spec':{'containers':[]}}}",
     "podTemplate.spec.containers"},
    {SERVICE, SERVICE_WITH(",'percentile':98"), "spec.percentile: expected 50, 90"},
    {SERVICE, SERVICE_WITH(",'percentile':'median'"), "spec.percentile"},
    {SERVICE, SERVICE_WITH(",'spread':'rack'"),
     "spec.spread: found \"rack\", expected none, gpu or node"},
    {SERVICE, SERVICE_WITH(",'task':'dance'"), "spec.task"},
    {SERVICE, SERVICE_WITH(",'minInstances':0"), "spec.minInstances: found 0"},
    {SERVICE, SERVICE_WITH(",'minInstances':1.5"), "spec.minInstances: found 1.5"},
    {SERVICE, SERVICE_WITH(",'port':70000"), "spec.port"},
    {SERVICE, SERVICE_WITH(",'drainSeconds':-1"), "spec.drainSeconds"},
    {SERVICE, SERVICE_WITH(",'allowedSlices':'3g'"), "spec.allowedSlices"},
    {SERVICE, SERVICE_WITH(",'allowedSlices':[3]"), "spec.allowedSlices[0]"},
    {POOL, "{'actuator':'magic'}", "spec.actuator: found \"magic\""},
    {POOL, "{'derate':0}", "spec.derate"},
    {POOL, "{'derate':1.5}", "spec.derate"},
    {POOL, "{'headroom':0.5}", "spec.headroom"},
    {POOL, "{'nodeSelector':{'a':1}}", "spec.nodeSelector.a: expected text"},
    {POOL, "{'nodeSelector':[]}", "spec.nodeSelector"},
    {POOL, "{'paused':'yes'}", "spec.paused"},
    {POOL, "{'window':{'days':[1]}}", "spec.window.days[0]"},
    {POOL, "{'window':'02:00'}", "spec.window: expected an object"},
    {POOL, "[]", "spec: expected an object"},
    {PROFILE, "{'model':'m','board':'a100','entries':[]}", "spec.board"},
    {PROFILE, "{'model':'m','board':'a100-40gb'}", "spec.entries: is missing"},
    {PROFILE, ENTRY_WITH("{'slice':'5g','batch':1,'procs':1,'throughputRps':1}"),
     "spec.entries[0].slice"},
    {PROFILE, ENTRY_WITH("{'slice':'1g','batch':0,'procs':1,'throughputRps':1}"),
     "spec.entries[0].batch"},
    {PROFILE, ENTRY_WITH("{'slice':'1g','batch':1,'procs':1}"),
     "spec.entries[0].throughputRps"},
    {PROFILE,
     ENTRY_WITH("{'slice':'1g','batch':1,'procs':1,'throughputRps':1,'status':'fine'}"),
     "spec.entries[0].status"},
    {PROFILE, ENTRY_WITH("7"), "spec.entries[0]: expected an object"},
    {PLAN, ITEM_WITH("{'gpuUUID':'G','board':'a100-40gb','slice':'3g.20gb','start':1}"),
     "spec.items[0].start: 1 is not one"},
    {PLAN, ITEM_WITH("{'board':'a100-40gb','slice':'3g.20gb','start':0}"),
     "spec.items[0].gpuUUID"},
    {PLAN, "{'pool':'p','plan':'q','part':1,'items':[]}", "spec.part"},
    {TRANSITION, ACTIONS_WITH(ACTION("a", ",'after':['b']")),
     "Transition x: spec: actions[0].after"},
    {TRANSITION, ACTIONS_WITH(ACTION("a", ",'after':['a']")), "waits for itself"},
    {TRANSITION, ACTIONS_WITH(ACTION("a", "") "," ACTION("a", "")), "used twice"},
    {TRANSITION,
     ACTIONS_WITH("{'id':'a','kind':'leap','group':'create','gpuUUID':'G','slice':'1g.5gb','"
                  "start':0,'seconds':1}"),
     "spec.actions[0].kind"},
    {TRANSITION,
     ACTIONS_WITH("{'id':'a','kind':'drain','group':'create','gpuUUID':'G','slice':'1g.5gb','"
                  "start':0,'seconds':1,'service':'s/z'}"),
     "neither plan"},
    {TRANSITION,
     ACTIONS_WITH("{'id':'a','kind':'drain','group':'create','gpuUUID':'H','slice':'1g.5gb','"
                  "start':0,'seconds':1,'service':'s/a'}"),
     "not in the list gpus"},
    {NODE, "{'gpus':[{'uuid':'G','board':'b000','instances':[]}]}", "spec.gpus[0].board"},
    {NODE, "{'gpus':[{'uuid':'G','board':'a100-40gb','instances':[{'slice':'1g','start':9}]}]}",
     "spec.gpus[0].instances[0].start"},
    {NODE, "{'epoch':-1}", "spec.epoch"},
};

static int read_kind(const struct wrong *wrong, const json_t *object, struct error *err)
{
    struct arena arena = {0};
    union {
        struct gpu_service service;
        struct gpu_pool pool;
        struct perf_profile profile;
        struct partition_plan plan;
        struct node_gpu_state node;
        struct transition_object transition;
    } to;
    int rc = 0;
    switch (wrong->kind) {
    case SERVICE:
        rc = gpu_service_read(object, &arena, &to.service, err);
        break;
    case POOL:
        rc = gpu_pool_read(object, &arena, &to.pool, err);
        break;
    case PROFILE:
        rc = perf_profile_read(object, &arena, &to.profile, err);
        break;
    case PLAN:
        rc = partition_plan_read(object, &arena, &to.plan, err);
        break;
    case TRANSITION:
        rc = transition_object_read(object, &arena, &to.transition, err);
        break;
    case NODE:
        rc = node_gpu_state_read(object, &arena, &to.node, err);
        break;
    }
    arena_done(&arena);
    return rc;
}

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct error err = {0};
        CLEANUP(json_decref_ptr) json_t *object = object_of("'name':'x'", wrongs[i].spec, NULL);
        int rc = read_kind(&wrongs[i], object, &err);
        if (rc != -E_INPUT || !strstr(err.text, wrongs[i].expected))
            print_error("case %zu: %s\n gave %d: %s\n", i, wrongs[i].spec, rc, err.text);
        assert_int_equal(rc, -E_INPUT);
        assert_non_null(strstr(err.text, wrongs[i].expected));
        assert_non_null(strstr(err.text, "x: "));
    }
}

/* Whatever a status holds, the spec is read. */
static void test_wrong_status(void **state)
{
    (void)state;
    static const char *const statuses[] = {
        "7", "[]", "{'actions':7}", "{'actions':[7,{'id':3},{'phase':'Done'}]}",
        "{'epoch':'x','actions':[{'id':'a','phase':'Done','startedAt':'yesterday'}]}"};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct error err = {0};
        struct arena arena = {0};
        struct transition_object object;
        CLEANUP(json_decref_ptr)
        json_t *json = object_of("'name':'x'", ACTIONS_WITH(ACTION("a", "")), statuses[i]);
        assert_int_equal(transition_object_read(json, &arena, &object, &err), 0);
        assert_int_equal(object.epoch, -1);
        assert_int_equal(object.states.count, 1);
        assert_int_equal(object.states.data[0].phase, i == 4 ? PHASE_DONE : PHASE_PENDING);
        assert_int_equal(object.states.data[0].started_s, 0);
        transition_done(&object.transition);
        arena_done(&arena);
    }
}

static void test_conditions(void **state)
{
    (void)state;
    CLEANUP(json_decref_ptr) json_t *list = json_array();
    struct condition ready = {"Ready", "Serving", "all is well", true, 3};
    assert_true(condition_set(list, &ready, 1000));
    assert_false(condition_set(list, &ready, 2000));
    ready.message = "all is very well";
    assert_true(condition_set(list, &ready, 3000));
    const json_t *first = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(first, "lastTransitionTime")),
                        "1970-01-01T00:16:40Z");
    ready.is_true = false;
    ready.reason = "Lost";
    assert_true(condition_set(list, &ready, 4000));
    assert_string_equal(json_string_value(json_object_get(first, "lastTransitionTime")),
                        "1970-01-01T01:06:40Z");
    assert_int_equal(json_array_size(list), 1);
    struct condition other = {"Stalled", "Fine", "", true, 0};
    assert_true(condition_set(list, &other, 5000));
    CLEANUP(json_decref_ptr)
    json_t *object = json_pack("{s:{s:O}}", "status", "conditions", list);
    assert_true(condition_is_true(object, "Stalled"));
    assert_false(condition_is_true(object, "Ready"));
    assert_false(condition_is_true(object, "Other"));
    assert_null(json_object_get(json_array_get(list, 1), "observedGeneration"));
}

static void test_timestamps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {
        {"1970-01-01T00:00:01Z", 1},
        {"2026-03-01T12:00:00Z", 1772366400},
        {"2026-03-01T12:00:00.123456Z", 1772366400},
        {"2026-03-01T14:00:00+02:00", 1772366400},
        {"2026-03-01T06:30:00.5-05:30", 1772366400},
        {"2026-03-01T12:00:00", -1},
        {"2026-03-01T12:00:00.Z", -1},
        {"2026-03-01T12:00:00+2:00", -1},
        {"2026-03-01T12:00:00+02:00x", -1},
        {"2026-13-01T12:00:00Z", -1},
        {"2026-3-1T12:00:00Z", -1},
        {"soon", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t seconds = -1;
        bool read = timestamp_parse(cases[i].text, &seconds);
        if (read != (cases[i].seconds >= 0) || seconds != cases[i].seconds)
            print_error("%s: %lld\n", cases[i].text, (long long)seconds);
        assert_int_equal(read, cases[i].seconds >= 0);
        assert_int_equal(seconds, cases[i].seconds);
    }
    char text[21];
    clock_utc_text(1772366400, text);
    assert_string_equal(text, "2026-03-01T12:00:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_service_defaults),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_plan_round_trip),
        cmocka_unit_test(test_transition_round_trip),
        cmocka_unit_test(test_node_state_round_trip),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_wrong_status),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_timestamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
