/* SPDX-License-Identifier: Apache-2.0
 *
 * The bench of the controller's tests. See controller_bench.h.
 */
#include "controller_bench.h"

/* ---- the reconciler ---- */

int rounds_run, gateways_seen, claims_seen;
void (*during_round)(void);

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

void bench_on_request(void *context, const struct kube_request *request,
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

void process_start(struct bench *bench, int index, const struct setup *setup)
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

void process_end(struct process *process)
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

void bench_init(struct bench *bench)
{
    *bench = (struct bench){.kill_at_fault = -1};
    api_store_init(&bench->store);
    bench->store.fault = bench_on_request;
    bench->store.context = bench;
    bench->store.missing[0] = "/apis/gateway.networking.k8s.io";
    rounds_run = gateways_seen = 0;
    during_round = NULL;
}

void bench_done(struct bench *bench)
{
    for (int i = 0; i < PROCESSES; i++)
        process_end(&bench->processes[i]);
    api_store_done(&bench->store);
}

void pass(struct bench *bench, int64_t time_ns)
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

void put_pool(struct bench *bench, const char *name, int pods)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", POOLS, name);
    const json_t *before = json_object_get(bench->store.objects, path);
    json_int_t generation =
        json_integer_value(json_object_get(json_object_get(before, "metadata"), "generation"));
    api_put(&bench->store, path,
            json_pack("{s:{s:I}, s:{s:i}}", "metadata", "generation", generation + 1, "spec",
                      "pods", pods));
}

size_t count_log(const struct bench *bench, const char *prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < bench->store.log.count; i++)
        count += text_starts_with(bench->store.log.data[i], prefix);
    return count;
}

void is_settled(struct bench *bench, int pods, size_t made)
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

const struct setup ELECTED = {.elect = true};
const struct setup ALONE = {.elect = false};
