/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's loop against an API server in memory, on a fake clock, with a small
 * reconciler in place of the real one: a pool's spec.pods pods are to be there, and one Service
 * that counts them. Whatever is lost, refused, slow, stopped or killed: the same end, each pod
 * made once.
 */
#include "control/controller.h"

#include "base/log.h"
#include "control/kinds.h"
#include "fake_api.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define POOLS        "/apis/tranche.dev/v1alpha1/gpupools"
#define PODS         "/api/v1/namespaces/shop/pods"
#define LEASE        "/apis/coordination.k8s.io/v1/namespaces/system/leases/tranche-controller"
#define STEP_NS      (5 * MS)

enum { PROCESSES = 2, PODS_WANTED = 4 };

/* ---- the reconciler ---- */

static int rounds_run, gateways_seen, claims_seen;
static void (*during_round)(void);

static json_t *wanted_pod(const char *pool, int index)
{
    CLEANUP(free_ptr) char *name = xasprintf("%s-%d", pool, index);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}, s:{s:s}}}", "apiVersion", "v1",
                     "kind", "Pod", "metadata", "name", name, "namespace", "shop", "labels",
                     LABEL_MANAGED_BY, "tranche", LABEL_POOL, pool, "annotations", NOTE_HASH,
                     "h");
}

/* The index at the end of "pool-3" when the pod is of this pool, else -1. */
static int pod_index(const char *pool, const json_t *pod)
{
    const char *name = kube_metadata(pod, "name");
    size_t length = strlen(pool);
    return strncmp(name, pool, length) == 0 && name[length] == '-' ? atoi(name + length + 1)
                                                                   : -1;
}

static void want_pods(const struct world_sources *sources, const char *pool, int wanted,
                      struct effects *effects)
{
    int there = 0;
    for (int i = 0; i < wanted; i++) {
        bool found = false;
        for (size_t j = 0; j < sources->pods.count; j++)
            assert_non_null(json_object_get(sources->pods.items[j], "kind"));
        for (size_t j = 0; j < sources->pods.count; j++)
            found = found || pod_index(pool, sources->pods.items[j]) == i;
        there += found;
        if (!found)
            effect_ensure(effects, &KUBE_POD, wanted_pod(pool, i));
    }
    const char *counted = "";
    for (size_t i = 0; i < sources->kube_services.count; i++)
        if (strcmp(kube_metadata(sources->kube_services.items[i], "name"), pool) == 0)
            counted = json_string_value(json_object_get(
                json_object_get(sources->kube_services.items[i], "spec"), "count"));
    CLEANUP(free_ptr) char *count = xasprintf("%d", there);
    if (strcmp(counted, count) != 0)
        effect_apply(effects, &KIND_SERVICE,
                     json_pack("{s:{s:s, s:s, s:{s:s, s:s}}, s:{s:s}}", "metadata", "name",
                               pool, "namespace", "shop", "labels", LABEL_MANAGED_BY, "tranche",
                               LABEL_POOL, pool, "spec", "count", count));
    for (size_t j = 0; sources->fresh && j < sources->pods.count; j++)
        if (pod_index(pool, sources->pods.items[j]) >= wanted)
            effect_delete(effects, &KUBE_POD, sources->pods.items[j], true)->destructive = true;
}

static int small_reconcile(const struct world_sources *sources,
                           const struct reconcile_options *options, struct effects *ret_effects,
                           struct reconcile_figures *ret_figures, struct error *err)
{
    rounds_run++;
    gateways_seen += sources->has_gateway;
    claims_seen = (int)sources->claims.count;
    if (during_round)
        during_round();
    for (size_t i = 0; i < sources->pools.count; i++) {
        const json_t *pool = sources->pools.items[i];
        if (strcmp(kube_metadata(pool, "name"), options->pool) != 0)
            continue;
        const json_t *spec = json_object_get(pool, "spec");
        if (json_is_true(json_object_get(spec, "broken")))
            return error_set(err, E_INPUT, "a broken pool");
        int wanted = (int)json_integer_value(json_object_get(spec, "pods"));
        want_pods(sources, options->pool, wanted, ret_effects);
        ret_figures->pods = wanted;
        ret_figures->floor_held = true;
        return 0;
    }
    return error_set(err, E_NOT_FOUND, "no GpuPool %s", options->pool);
}

/* ---- processes ---- */

struct process {
    struct api_process api;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_events *events;
    struct controller *controller;
    char identity[32];
    bool stopped; /* as by SIGSTOP */
    bool runs;
};

struct bench {
    struct api_store store;
    struct process processes[PROCESSES];
    int starts;
    size_t write, fault_at; /* counted writes asked for, from 1 */
    struct api_fault fault;
    int kill_at_fault;  /* index of the process that ends there; -1 none */
    bool stop_at_fault; /* it is stopped instead */
};

struct setup {
    bool elect, once;
    const char *pool;
    void (*show)(void *context, const char *pool, const struct effects *effects);
    void *context;
};

static void on_request(void *context, const struct kube_request *request,
                       struct api_fault *fault)
{
    struct bench *bench = context;
    bool read = strcmp(request->method, "GET") == 0;

    fault->delay_ns = STEP_NS;
    if (read || !api_is_counted(request->path) || ++bench->write != bench->fault_at)
        return;
    *fault = bench->fault;
    if (bench->kill_at_fault >= 0 && bench->stop_at_fault)
        bench->processes[bench->kill_at_fault].stopped = true;
    else if (bench->kill_at_fault >= 0)
        bench->processes[bench->kill_at_fault].runs = false;
}

static void process_start(struct bench *bench, int index, const struct setup *setup)
{
    struct process *process = &bench->processes[index];

    api_process_init(&process->api, &bench->store);
    snprintf(process->identity, sizeof process->identity, "process-%d-%d", index,
             ++bench->starts);
    process->loop = kube_loop_new(&process->api.transport, &bench->store.clock.source);
    process->client =
        kube_client_new(&(struct kube_client_options){.loop = process->loop,
                                                      .field_manager = MANAGER_CONTROLLER,
                                                      .seed = (uint64_t)bench->starts});
    process->events =
        kube_events_new(&(struct kube_event_options){.client = process->client,
                                                     .controller = "tranche.dev/controller",
                                                     .instance = process->identity});
    struct controller_options options = {.client = process->client,
                                         .events = process->events,
                                         .reconcile = small_reconcile,
                                         .pool = setup->pool,
                                         .identity = process->identity,
                                         .lease_namespace = "system",
                                         .lease_name = "tranche-controller",
                                         .window = 1,
                                         .seed = (uint64_t)bench->starts,
                                         .elect = setup->elect,
                                         .once = setup->once,
                                         .show = setup->show,
                                         .context = setup->context};
    assert_int_equal(controller_new(&options, &process->controller, NULL), 0);
    process->runs = true;
    process->stopped = false;
}

static void process_end(struct process *process)
{
    if (!process->controller)
        return;
    controller_free(process->controller);
    kube_events_free(process->events);
    kube_client_free(process->client);
    kube_loop_free(process->loop);
    api_process_done(&process->api);
    *process = (struct process){0};
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.kill_at_fault = -1};
    api_store_init(&bench->store);
    bench->store.fault = on_request;
    bench->store.context = bench;
    bench->store.missing[0] = "/apis/gateway.networking.k8s.io";
    rounds_run = gateways_seen = 0;
    during_round = NULL;
}

static void bench_done(struct bench *bench)
{
    for (int i = 0; i < PROCESSES; i++)
        process_end(&bench->processes[i]);
    api_store_done(&bench->store);
}

#define BENCH(name)                                                                            \
    __attribute__((cleanup(bench_done))) struct bench name;                                    \
    bench_init(&name)

/* Time goes on for all processes that run; one that was killed is taken away. */
static void pass(struct bench *bench, int64_t time_ns)
{
    for (int64_t end_ns = bench->store.clock.time_ns + time_ns;
         bench->store.clock.time_ns < end_ns; bench->store.clock.time_ns += STEP_NS)
        for (int i = 0; i < PROCESSES; i++) {
            struct process *process = &bench->processes[i];
            if (process->runs && !process->stopped && !controller_is_over(process->controller))
                assert_int_equal(kube_loop_turn(process->loop, 0, NULL), 0);
            else if (process->controller && !process->runs)
                process_end(process);
        }
}

static void put_pool(struct bench *bench, const char *name, int pods)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", POOLS, name);
    const json_t *before = json_object_get(bench->store.objects, path);
    json_int_t generation =
        json_integer_value(json_object_get(json_object_get(before, "metadata"), "generation"));
    api_put(&bench->store, path,
            json_pack("{s:{s:I}, s:{s:i}}", "metadata", "generation", generation + 1, "spec",
                      "pods", pods));
}

static size_t count_log(const struct bench *bench, const char *prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < bench->store.log.count; i++)
        count += text_starts_with(bench->store.log.data[i], prefix);
    return count;
}

/* The pool's pods, each made exactly once, and the Service that counts them. */
static void is_settled(struct bench *bench, int pods, size_t made)
{
    const json_t *service =
        json_object_get(bench->store.objects, "/api/v1/namespaces/shop/services/p");
    const char *count =
        json_string_value(json_object_get(json_object_get(service, "spec"), "count"));
    assert_int_equal(api_count(&bench->store, PODS), pods);
    assert_non_null(count);
    assert_int_equal(atoi(count), pods);
    assert_int_equal(count_log(bench, "POST " PODS), made);
    size_t writes = bench->store.writes;
    pass(bench, 30 * SECONDS);
    assert_int_equal(bench->store.writes, writes);
}

static const struct setup ELECTED = {.elect = true};
static const struct setup ALONE = {.elect = false};

/* ---- tests ---- */

static void test_converges_and_rests(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    int before = rounds_run;
    pass(&bench, 100 * SECONDS);
    assert_int_equal(rounds_run, before); /* nothing happens: no round */
    put_pool(&bench, "p", 1);
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
    assert_int_equal(count_log(&bench, "DELETE " PODS), PODS_WANTED - 1);
}

static void test_two_pools_and_one_gone(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", 2);
    put_pool(&bench, "q", 3);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 5);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_non_null(strstr(text.bytes, "tranche_pool_pods{pool=\"q\"} 3\n"));
    api_remove(&bench.store, POOLS "/q");
    pass(&bench, 5 * SECONDS);
    str_clear(&text);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_null(strstr(text.bytes, "pool=\"q\""));
    assert_non_null(strstr(text.bytes, "tranche_pool_pods{pool=\"p\"} 2\n"));
}

/* The definitions are installed after the controller. */
static void test_definitions_come_later(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str why = STR_EMPTY;
    put_pool(&bench, "p", 1);
    bench.store.missing[1] = "/apis/tranche.dev";
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 20 * SECONDS);
    assert_false(controller_is_ready(bench.processes[0].controller, &why));
    assert_non_null(strstr(why.bytes, "404"));
    assert_int_equal(rounds_run, 0);
    bench.store.missing[1] = NULL;
    pass(&bench, 20 * SECONDS);
    assert_true(controller_is_ready(bench.processes[0].controller, &why));
    is_settled(&bench, 1, 1);
    assert_int_equal(gateways_seen, 0);
    bench.store.missing[0] = NULL; /* and Gateway API's later still */
    pass(&bench, 40 * SECONDS);
    assert_true(gateways_seen > 0);
}

/* ---- optional APIs that seem to be gone ---- */

static const struct unserved {
    const char *name;
    int status;
    int64_t time_ns; /* how long it is answered */
    bool stays;
} unserved_table[] = {
    {"a token that is renewed", 401, 200 * SECONDS, true},
    {"a role that is being changed", 403, 200 * SECONDS, true},
    {"the server's own trouble", 500, 200 * SECONDS, true},
    {"a look too few", 404, 29 * SECONDS, true},
    {"gone", 404, 61 * SECONDS, false},
};
static const struct unserved *unserved;

static void on_gateway_request(void *context, const struct kube_request *request,
                               struct api_fault *fault)
{
    (void)context;
    fault->delay_ns = STEP_NS;
    if (unserved && strstr(request->path, "/httproutes"))
        fault->status = unserved->status;
}

/* Once served, an API is not taken for absent by a wrong answer: Services would be deleted
 * under live routes. */
static void test_api_that_seems_gone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(unserved_table); i++) {
        BENCH(bench);
        bench.store.missing[0] = NULL;
        bench.store.fault = on_gateway_request;
        unserved = NULL;
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, &ELECTED);
        pass(&bench, 20 * SECONDS);
        assert_true(gateways_seen > 0 && gateways_seen == rounds_run);
        unserved = &unserved_table[i];
        pass(&bench, unserved->time_ns);
        unserved = NULL;
        put_pool(&bench, "p", 2);
        pass(&bench, SECONDS);
        if ((gateways_seen == rounds_run) != unserved_table[i].stays)
            fail_msg("%s: %d of %d rounds saw it", unserved_table[i].name, gateways_seen,
                     rounds_run);
        pass(&bench, 30 * SECONDS);
        int rounds = rounds_run, seen = gateways_seen;
        put_pool(&bench, "p", 3); /* and it comes back */
        pass(&bench, SECONDS);
        if (rounds_run == rounds || gateways_seen - seen != rounds_run - rounds)
            fail_msg("%s, back: %d of %d rounds saw it", unserved_table[i].name,
                     gateways_seen - seen, rounds_run - rounds);
    }
}

/* At the start 403 means that it is not wanted (no rights were given for it), 401 nothing. */
static void test_api_that_is_forbidden(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool starts;
    } table[] = {{403, true}, {404, true}, {401, false}, {503, false}};
    for (size_t i = 0; i < COUNT(table); i++) {
        BENCH(bench);
        struct unserved answer = {.status = table[i].status};
        bench.store.missing[0] = NULL;
        bench.store.fault = on_gateway_request;
        unserved = &answer;
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, &ELECTED);
        pass(&bench, 20 * SECONDS);
        assert_int_equal(rounds_run > 0, table[i].starts);
        assert_int_equal(gateways_seen, 0);
        unserved = NULL;
    }
}

/* The Lease is gone, what was written under it is not: the new epoch is above, with an
 * election, and with none the same. */
static void test_lease_deleted(void **state)
{
    (void)state;
    static const struct {
        const char *path, *part, *field;
        long long epoch, elected, alone;
    } table[] = {
        {"/apis/tranche.dev/v1alpha1/transitions/t", "status", "epoch", 7, 8, 7},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "spec", "epoch", 9, 10, 9},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "status", "observedEpoch", 3, 4, 3},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "status", "observedEpoch", 1LL << 40, 0,
         0},
    };
    for (size_t i = 0; i < 2 * COUNT(table); i++) {
        bool elect = i % 2;
        BENCH(bench);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        api_put(&bench.store, table[i / 2].path,
                json_pack("{s:{s:I}}", table[i / 2].part, table[i / 2].field,
                          (json_int_t)table[i / 2].epoch));
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, elect ? &ELECTED : &ALONE);
        pass(&bench, 5 * SECONDS);
        is_settled(&bench, 1, 1);
        controller_metrics_page(bench.processes[0].controller, &text);
        CLEANUP(free_ptr)
        char *line = xasprintf("tranche_controller_epoch %lld\n",
                               elect ? table[i / 2].elected : table[i / 2].alone);
        if (!strstr(text.bytes, line))
            fail_msg("case %zu, %s: not %s", i / 2, elect ? "elected" : "alone", line);
    }
}

/* Many changes at once are few rounds. */
static void test_coalesces(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    int before = rounds_run;
    for (int i = 0; i < 200; i++) {
        put_pool(&bench, "p", 0);
        pass(&bench, 10 * MS);
    }
    assert_in_range(rounds_run - before, 2, 11);
}

static json_t *node(const char *ready, const char *beat)
{
    return json_pack("{s:{s:{s:s}}, s:{}, s:{s:[{s:s, s:s, s:s}]}}", "metadata", "labels", "a",
                     "b", "spec", "status", "conditions", "type", "Ready", "status", ready,
                     "lastHeartbeatTime", beat);
}

/* A node's heartbeat is no reason for a round, its loss is. */
static void test_heartbeats(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    api_put(&bench.store, "/api/v1/nodes/n", node("True", "1"));
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    int before = rounds_run;
    api_put(&bench.store, "/api/v1/nodes/n", node("True", "2"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before);
    api_put(&bench.store, "/api/v1/nodes/n", node("Unknown", "2"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before + 1);
}

static json_t *claim(const char *device, const char *user)
{
    return json_pack("{s:{}, s:{s:{s:{s:[{s:s}]}}, s:[{s:s}]}}", "metadata", "status",
                     "allocation", "devices", "results", "device", device, "reservedFor",
                     "name", user);
}

/* Claims of others are seen, as they hold devices; they are no reason for a round beyond that.
 */
static void test_claims_of_others(void **state)
{
    static const char path[] = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/theirs";

    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    assert_int_equal(claims_seen, 0);
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-0", "a"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(claims_seen, 1);
    int before = rounds_run;
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-0", "b"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before);
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-1", "b"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before + 1);
}

/* Each write fails in turn, in each way. */
static const struct api_fault write_faults[] = {
    {.lose_request = true},
    {.lose_answer = true},
    {.status = 409},
    {.status = 500},
    {.status = 503, .retry_after_ns = 3 * SECONDS},
    {.status = 429, .retry_after_ns = 5 * SECONDS},
    {.status = 403},
    {.delay_ns = 8 * SECONDS},
};

/* Up to four pods, then down to one: this many writes. */
static size_t grow_and_shrink(struct bench *bench)
{
    pass(bench, 60 * SECONDS);
    assert_int_equal(api_count(&bench->store, PODS), PODS_WANTED);
    put_pool(bench, "p", 1);
    pass(bench, 60 * SECONDS);
    is_settled(bench, 1, PODS_WANTED);
    return bench->store.writes;
}

static void test_every_write_fails(void **state)
{
    (void)state;
    size_t writes = 9, cases = 0;
    for (size_t fault = 0; fault < COUNT(write_faults); fault++)
        for (size_t at = 0; at <= writes; at++, cases++) {
            BENCH(bench);
            bench.fault = write_faults[fault];
            bench.fault_at = at;
            put_pool(&bench, "p", PODS_WANTED);
            process_start(&bench, 0, &ELECTED);
            size_t had = grow_and_shrink(&bench);
            if (at == 0)
                writes = had;
            assert_true(bench.write >= at);
        }
    print_message("# %zu failed writes\n", cases);
}

static void on_slow_write(void *context, const struct kube_request *request,
                          struct api_fault *fault)
{
    (void)context;
    bool read = strcmp(request->method, "GET") == 0;

    fault->delay_ns = read ? STEP_NS : 8 * STEP_NS;
}

/* The watch tells of a write before the write is answered: the next round does not wait for
 * what has been seen already. */
static void test_seen_before_answer(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 1);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    bench.store.fault = on_slow_write;
    put_pool(&bench, "p", 2);
    pass(&bench, 800 * MS); /* less than a round waits for what it does not see */
    const json_t *service =
        json_object_get(bench.store.objects, "/api/v1/namespaces/shop/services/p");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(service, "spec"), "count")), "2");
}

/* The process is killed at each write, before and after it is carried out, and another, of the
 * same place, starts ten seconds later. */
static void test_killed_at_every_write(void **state)
{
    (void)state;
    size_t cases = 0;
    for (int after = 0; after < 2; after++)
        for (size_t at = 1; at <= 9; at++, cases++) {
            BENCH(bench);
            bench.fault = (struct api_fault){.lose_request = !after, .lose_answer = after};
            bench.fault_at = at;
            bench.kill_at_fault = 0;
            put_pool(&bench, "p", PODS_WANTED);
            process_start(&bench, 0, &ELECTED);
            pass(&bench, 2 * SECONDS);
            put_pool(&bench, "p", bench.processes[0].runs ? 1 : PODS_WANTED);
            pass(&bench, 10 * SECONDS);
            assert_false(bench.processes[0].runs);
            process_start(&bench, 0, &ELECTED);
            pass(&bench, 40 * SECONDS);
            put_pool(&bench, "p", 1);
            pass(&bench, 10 * SECONDS);
            is_settled(&bench, 1, PODS_WANTED);
        }
    print_message("# %zu kills\n", cases);
}

/* The leader is stopped at each write for longer than its Lease; the other takes over; the
 * first goes on, and ends without another write. */
static void test_stopped_leader(void **state)
{
    (void)state;
    for (size_t at = 1; at <= 5; at++) {
        BENCH(bench);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        struct error err = {0};
        put_pool(&bench, "p", PODS_WANTED);
        bench.fault_at = at;
        bench.kill_at_fault = 0;
        bench.stop_at_fault = true;
        process_start(&bench, 0, &ELECTED);
        pass(&bench, SECONDS / 10);
        process_start(&bench, 1, &ELECTED);
        pass(&bench, 60 * SECONDS);
        assert_true(bench.processes[0].stopped);
        assert_true(controller_leads(bench.processes[1].controller));
        is_settled(&bench, PODS_WANTED, PODS_WANTED);
        size_t writes = bench.store.writes;
        bench.processes[0].stopped = false;
        pass(&bench, 30 * SECONDS);
        assert_true(controller_is_over(bench.processes[0].controller));
        assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_NO);
        assert_int_equal(bench.store.writes, writes);
        controller_metrics_page(bench.processes[1].controller, &text);
        assert_non_null(strstr(text.bytes, "tranche_controller_epoch 1\n"));
        is_settled(&bench, PODS_WANTED, PODS_WANTED);
    }
}

/* The API server is away for a while, at each write. */
static void test_server_away(void **state)
{
    (void)state;
    for (size_t at = 0; at <= 9; at++) {
        BENCH(bench);
        put_pool(&bench, "p", PODS_WANTED);
        process_start(&bench, 0, &ELECTED);
        bool shrunk = false;
        for (int i = 0; i < 4000 && bench.write < at; i++) {
            pass(&bench, STEP_NS);
            if (!shrunk && bench.write == 5 + 1) {
                put_pool(&bench, "p", 1);
                shrunk = true;
            }
        }
        bench.store.down = true;
        pass(&bench, 5 * SECONDS);
        bench.store.down = false;
        pass(&bench, 60 * SECONDS);
        put_pool(&bench, "p", 1);
        pass(&bench, 60 * SECONDS);
        assert_false(controller_is_over(bench.processes[0].controller));
        is_settled(&bench, 1, count_log(&bench, "POST " PODS));
        assert_true(count_log(&bench, "POST " PODS) <= PODS_WANTED);
    }
}

/* A server that asks for time gets it, then goes on where it was. */
static void test_retry_after(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    bench.fault_at = 3;
    bench.fault = (struct api_fault){.status = 429, .retry_after_ns = 40 * SECONDS};
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 39 * SECONDS);
    assert_int_equal(bench.write, 3);
    assert_int_equal(bench.store.writes, 2);
    pass(&bench, 6 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

/* The caches lag behind: what was written is waited for, not written again. */
static void test_late_watches(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    bench.store.watch_delay_ns = 600 * MS;
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 20 * SECONDS);
    assert_int_equal(bench.write, PODS_WANTED + 2); /* the Service for 0 and for 4 pods */
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    bench.store.watch_delay_ns = 5 * SECONDS; /* longer than is waited for */
    put_pool(&bench, "p", 1);
    pass(&bench, 60 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
}

/* Two of them, and no election. */
static void test_two_without_election(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ALONE);
    process_start(&bench, 1, &ALONE);
    pass(&bench, 20 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    put_pool(&bench, "p", 1);
    pass(&bench, 20 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
    assert_int_equal(count_log(&bench, "DELETE " PODS), PODS_WANTED - 1);
}

/* As by SIGTERM, with an effect under way: it is finished, the Lease is given up, and the next
 * leads at once. */
static void test_stop(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    bench.fault_at = 2;
    bench.fault = (struct api_fault){.delay_ns = 500 * MS};
    while (bench.write < 2)
        pass(&bench, STEP_NS);
    controller_stop(bench.processes[0].controller);
    assert_false(controller_is_over(bench.processes[0].controller));
    pass(&bench, SECONDS);
    assert_true(controller_is_over(bench.processes[0].controller));
    assert_int_equal(bench.store.writes, 2);
    bench.store.fault = NULL;
    assert_int_equal(controller_end(bench.processes[0].controller, NULL), 0);
    const json_t *lease = json_object_get(bench.store.objects, LEASE);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(lease, "spec"), "holderIdentity")),
        "");
    process_start(&bench, 1, &ELECTED);
    pass(&bench, 3 * SECONDS);
    assert_true(controller_leads(bench.processes[1].controller));
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

static void run_once(struct bench *bench, const struct setup *setup)
{
    process_start(bench, 0, setup);
    pass(bench, 30 * SECONDS);
    assert_true(controller_is_over(bench->processes[0].controller));
    bench->store.fault = NULL;
}

static void test_once(void **state)
{
    (void)state;
    struct error err = {0};
    BENCH(bench);
    put_pool(&bench, "p", 2);
    put_pool(&bench, "q", 2);
    run_once(&bench, &(struct setup){.once = true});
    assert_int_equal(rounds_run, 2);
    assert_int_equal(controller_end(bench.processes[0].controller, &err), 0);
    assert_int_equal(api_count(&bench.store, PODS), 4);
    process_end(&bench.processes[0]);
    run_once(&bench, &(struct setup){.once = true, .pool = "nowhere"});
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_NOT_FOUND);
    process_end(&bench.processes[0]);
    bench.store.fault = on_request;
    bench.fault_at = bench.write + 1;
    bench.fault = (struct api_fault){.status = 403};
    put_pool(&bench, "q", 3);
    run_once(&bench, &(struct setup){.once = true, .pool = "q"});
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_USAGE);
}

/* A cluster without the definitions: one round is not waited for forever. */
static void test_once_without_cluster(void **state)
{
    (void)state;
    struct error err = {0};
    BENCH(bench);
    bench.store.missing[1] = "/apis/tranche.dev";
    process_start(&bench, 0, &(struct setup){.once = true});
    pass(&bench, 50 * SECONDS);
    assert_false(controller_is_over(bench.processes[0].controller));
    pass(&bench, 20 * SECONDS);
    assert_true(controller_is_over(bench.processes[0].controller));
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_TIMEOUT);
    assert_non_null(strstr(err.text, "404"));
}

static void on_show(void *context, const char *pool, const struct effects *effects)
{
    size_t *shown = context;
    assert_string_equal(pool, "p");
    for (size_t i = 0; i < effects->items.count; i++) {
        CLEANUP(json_decref_ptr) json_t *json = effect_to_json(&effects->items.data[i]);
        assert_non_null(json_object_get(json, "effect"));
        assert_non_null(json_object_get(json, "name"));
        ++*shown;
    }
}

static void test_dry_run(void **state)
{
    (void)state;
    BENCH(bench);
    size_t shown = 0;
    put_pool(&bench, "p", PODS_WANTED);
    run_once(&bench, &(struct setup){.once = true, .show = on_show, .context = &shown});
    assert_int_equal(shown, PODS_WANTED + 1);
    assert_int_equal(bench.store.writes, 0);
    assert_int_equal(controller_end(bench.processes[0].controller, NULL), 0);
}

/* A round that fails is tried again with backoff, others go on. */
static void test_round_fails(void **state)
{
    (void)state;
    BENCH(bench);
    api_put(&bench.store, POOLS "/bad", json_pack("{s:{s:b}}", "spec", "broken", 1));
    put_pool(&bench, "p", 2);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 30 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 2);
    assert_in_range(rounds_run, 6, 16);
    put_pool(&bench, "bad", 1);
    pass(&bench, 120 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 3);
}

static struct bench *moving;

static void move(void)
{
    put_pool(moving, "p", PODS_WANTED);
}

/* What was asked for changes in every round: old decisions are thrown away, but not forever. */
static void test_moved_rounds(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", PODS_WANTED);
    moving = &bench;
    during_round = move;
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 20 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), PODS_WANTED);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_null(strstr(text.bytes, "{result=\"discarded\"} 0\n"));
    during_round = NULL;
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

/* Every line is a comment or NAME{labels} VALUE, every metric has HELP and TYPE. */
static void test_metrics(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    controller_metrics_page(bench.processes[0].controller, &text);
    static const char *const lines[] = {
        "tranche_controller_leader 1\n",
        "tranche_controller_epoch 0\n",
        "tranche_controller_effects_total{effect=\"ensure\"} 4\n",
        "tranche_kube_requests_total{verb=\"create\",code=\"201\"} 5\n", /* and the Lease */
        "tranche_kube_cache_objects{kind=\"Pod\"} 4\n",
        "tranche_pool_floor_held{pool=\"p\"} 1\n",
        "tranche_controller_reconcile_seconds_count ",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        if (!strstr(text.bytes, lines[i]))
            fail_msg("no %s in\n%s", lines[i], text.bytes);
    char *rest = text.bytes, *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        if (*line == '#')
            continue;
        double value;
        const char *space = strrchr(line, ' ');
        assert_non_null(space);
        assert_true(text_starts_with(line, "tranche_"));
        assert_true(text_to_double(space + 1, &value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converges_and_rests),
        cmocka_unit_test(test_two_pools_and_one_gone),
        cmocka_unit_test(test_definitions_come_later),
        cmocka_unit_test(test_api_that_seems_gone),
        cmocka_unit_test(test_api_that_is_forbidden),
        cmocka_unit_test(test_lease_deleted),
        cmocka_unit_test(test_coalesces),
        cmocka_unit_test(test_heartbeats),
        cmocka_unit_test(test_claims_of_others),
        cmocka_unit_test(test_every_write_fails),
        cmocka_unit_test(test_seen_before_answer),
        cmocka_unit_test(test_killed_at_every_write),
        cmocka_unit_test(test_stopped_leader),
        cmocka_unit_test(test_server_away),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_late_watches),
        cmocka_unit_test(test_two_without_election),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_once_without_cluster),
        cmocka_unit_test(test_dry_run),
        cmocka_unit_test(test_round_fails),
        cmocka_unit_test(test_moved_rounds),
        cmocka_unit_test(test_metrics),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
