/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller at scale, in one process: the real loop and the real decisions against an API
 * server in memory, nodes of the actuator `sim`, kubelets that make pods ready, time that
 * jumps.
 *
 *     bench_controller [NODES [SERVICES]]
 *
 * Reported: a full reconcile from nothing, the same state met by a process that starts anew,
 * the steady state, and a transition of 64 GPUs step by step against the critical path of its
 * actions. Seconds of "work" are this machine's, of "cluster time" those of the fake clock, on
 * which an API call takes 5 ms.
 */
#include "../tests/control/fake_api.h"

#include <time.h>

#include "base/log.h"
#include "control/controller.h"
#include "control/kinds.h"

#define GROUP   "/apis/tranche.dev/v1alpha1/"
#define PODS    "/api/v1/namespaces/shop/pods"
#define CALL_NS (5 * MS)

enum { GPUS_A_NODE = 8, READY_SECONDS = 5, DRAIN_SECONDS = 5, CREATE_SECONDS = 2 };

static struct api_store store;
static size_t calls_all;

static int64_t wall_s(void)
{
    return store.clock.time_ns / SECONDS + 1750000000;
}

static void on_request(void *context, const struct kube_request *request,
                       struct api_fault *fault)
{
    (void)context;
    (void)request;
    calls_all += !request->stream;
    fault->delay_ns = CALL_NS;
}

/* ---- the cluster ---- */

static void put_node(int index)
{
    CLEANUP(free_ptr) char *path = xasprintf("/api/v1/nodes/node-%d", index);
    CLEANUP(free_ptr) char *fleet = xasprintf("a100-40gb:%d", GPUS_A_NODE);
    CLEANUP(free_ptr) char *rules = xasprintf("create %d;delete %d", CREATE_SECONDS, 1);
    api_put(&store, path,
            json_pack("{s:{s:{s:s, s:s}}, s:{}, s:{s:[{s:s, s:s}]}}", "metadata", "annotations",
                      "tranche.dev/simulated-gpus", fleet, "tranche.dev/simulation", rules,
                      "spec", "status", "conditions", "type", "Ready", "status", "True"));
}

static void put_profiles(int models)
{
    static const struct {
        const char *slice;
        double share;
    } slices[] = {
        {"1g.5gb", 1}, {"2g.10gb", 1.9}, {"3g.20gb", 2.7}, {"4g.20gb", 3.5}, {"7g.40gb", 5.6}};
    for (int i = 0; i < models; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%sperfprofiles/model-%d", GROUP, i);
        CLEANUP(free_ptr) char *model = xasprintf("model-%d", i);
        json_t *entries = json_array();
        for (size_t j = 0; j < sizeof slices / sizeof *slices; j++)
            for (int batch = 1; batch <= 8; batch *= 8) {
                double rate = (20 + 7 * (i % 9)) * slices[j].share * (batch == 1 ? 1 : 1.6);
                json_array_append_new(entries, json_pack("{s:s, s:i, s:i, s:f, s:f}", "slice",
                                                         slices[j].slice, "batch", batch,
                                                         "procs", 1, "throughputRps", rate,
                                                         "latencyMsP99", batch / rate * 1000));
            }
        api_put(&store, path,
                json_pack("{s:s, s:{}, s:{s:s, s:s, s:o}}", "kind", "PerfProfile", "metadata",
                          "spec", "model", model, "board", "a100-40gb", "entries", entries));
    }
}

static void put_service(int index, int models, double rate)
{
    CLEANUP(free_ptr)
    char *path = xasprintf("%sgpuservices", "/apis/tranche.dev/v1alpha1/namespaces/shop/");
    CLEANUP(free_ptr) char *whole = xasprintf("%s/service-%d", path, index);
    CLEANUP(free_ptr) char *model = xasprintf("model-%d", index % models);
    const json_t *before = json_object_get(store.objects, whole);
    json_t *object = before
                         ? json_deep_copy(before)
                         : json_pack("{s:s, s:s, s:{}}", "apiVersion", "tranche.dev/v1alpha1",
                                     "kind", "GpuService", "metadata");
    json_int_t generation =
        json_integer_value(json_object_get(json_object_get(object, "metadata"), "generation"));
    json_object_set_new(json_object_get(object, "metadata"), "generation",
                        json_integer(generation + 1));
    json_object_set_new(object, "spec",
                        json_pack("{s:s, s:s, s:f, s:f, s:i, s:{s:{s:[{s:s, s:s}]}}}", "pool",
                                  "default", "model", model, "rateRps", rate, "latencyMs",
                                  500.0, "drainSeconds", DRAIN_SECONDS, "podTemplate", "spec",
                                  "containers", "name", "server", "image",
                                  "registry.invalid/server:1"));
    api_put(&store, whole, object);
}

static void put_pool(void)
{
    api_put(&store, GROUP "gpupools/default",
            json_pack("{s:s, s:{}, s:{s:s, s:i, s:i}}", "kind", "GpuPool", "metadata", "spec",
                      "actuator", "sim", "replanSeconds", 0, "spareGpus", 64));
}

/* ---- kubelets and the scheduler: a pod is bound and ready READY_SECONDS after it came ---- */

static const char *pinned_node(const json_t *pod)
{
    static const char *const path[] = {"spec", "affinity", "nodeAffinity",
                                       "requiredDuringSchedulingIgnoredDuringExecution"};
    const json_t *at = pod;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        at = json_object_get(at, path[i]);
    at = json_array_get(json_object_get(at, "nodeSelectorTerms"), 0);
    at = json_array_get(json_object_get(at, "matchFields"), 0);
    return json_string_value(json_array_get(json_object_get(at, "values"), 0));
}

static json_t *born; /* path → fake seconds */
static int addresses;

static void run_pod(const char *path, const json_t *pod)
{
    json_t *object = json_deep_copy(pod);
    CLEANUP(free_ptr)
    char *address =
        xasprintf("10.%d.%d.%d", addresses / 62500, addresses / 250 % 250, addresses % 250 + 1);
    addresses++;
    json_object_set_new(json_object_get(object, "spec"), "nodeName",
                        json_string(pinned_node(pod)));
    json_object_set_new(object, "status",
                        json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "phase", "Running", "podIP",
                                  address, "conditions", "type", "Ready", "status", "True"));
    api_put(&store, path, object);
}

static void kubelets(void)
{
    VEC(char *) due = {0};
    const char *path;
    json_t *object;
    json_int_t now = store.clock.time_ns / SECONDS;
    json_object_foreach(store.objects, path, object)
    {
        if (!text_starts_with(path, PODS) || json_object_get(object, "status"))
            continue;
        const json_t *since = json_object_get(born, path);
        if (!since)
            json_object_set_new(born, path, json_integer(now));
        else if (now - json_integer_value(since) >= READY_SECONDS)
            vec_add(&due, xstrdup(path));
    }
    for (size_t i = 0; i < due.count; i++) {
        run_pod(due.data[i], json_object_get(store.objects, due.data[i]));
        free(due.data[i]);
    }
    vec_done(&due);
}

/* ---- the controller ---- */

struct process {
    struct api_process api;
    struct kube_loop *loop;
    struct kube_client *client;
    struct controller *controller;
};

static void process_start(struct process *process)
{
    api_process_init(&process->api, &store);
    process->loop = kube_loop_new(&process->api.transport, &store.clock.source);
    process->client = kube_client_new(&(struct kube_client_options){
        .loop = process->loop, .field_manager = MANAGER_CONTROLLER, .seed = 1});
    const struct controller_options options = {
        .client = process->client,
        .reconcile = controller_reconcile,
        .identity = "bench",
        .lease_namespace = "system",
        .lease_name = "tranche-controller",
        .wall_s = wall_s,
        .reconcile_options = {.plan_budget_seconds = 10, .clock = clock_real()},
        .seed = 1,
    };
    if (controller_new(&options, &process->controller, NULL) < 0)
        exit(4);
}

static void process_end(struct process *process)
{
    controller_free(process->controller);
    kube_client_free(process->client);
    kube_loop_free(process->loop);
    api_process_done(&process->api);
}

static void pass(struct process *process, int64_t time_ns)
{
    int64_t end_ns = store.clock.time_ns + time_ns;
    while (store.clock.time_ns < end_ns) {
        int64_t second = store.clock.time_ns / SECONDS;
        kube_loop_turn(process->loop, 0, NULL);
        store.clock.time_ns += CALL_NS;
        if (store.clock.time_ns / SECONDS != second)
            kubelets();
    }
}

static bool condition_of(const json_t *object, const char *type)
{
    return condition_is_true(object, type);
}

/* Whether the pool is Ready and every service too, for the spec of now. */
static bool is_settled(void)
{
    const char *path;
    json_t *object;
    if (!condition_of(json_object_get(store.objects, GROUP "gpupools/default"), "Ready"))
        return false;
    json_object_foreach(store.objects, path, object)
    {
        if (!strstr(path, "/gpuservices/"))
            continue;
        const json_t *status = json_object_get(object, "status");
        if (json_number_value(json_object_get(status, "requiredRps")) !=
                json_number_value(
                    json_object_get(json_object_get(object, "spec"), "rateRps")) ||
            !condition_of(object, "Ready"))
            return false;
    }
    return true;
}

static size_t count_kind(const char *plural)
{
    size_t count = 0;
    const char *path;
    json_t *object;
    json_object_foreach(store.objects, path, object)
    {
        count += strstr(path, plural) != NULL;
    }
    return count;
}

static double resident_mib(void)
{
    double total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lf %lf", &total, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

struct lap {
    int64_t work_ns, cluster_ns;
    size_t calls, writes;
};

/* Processor time of this process: what else the machine does is not in it. */
static int64_t work_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * SECONDS + now.tv_nsec;
}

static struct lap lap_start(void)
{
    return (struct lap){work_ns(), store.clock.time_ns, calls_all, store.writes};
}

static void lap_print(const char *name, const struct lap *start)
{
    printf("%-34s %8.2f s work %9.1f s cluster time %8zu calls %8zu writes %7.0f MiB\n", name,
           (double)(work_ns() - start->work_ns) / 1e9,
           (double)(store.clock.time_ns - start->cluster_ns) / 1e9, calls_all - start->calls,
           store.writes - start->writes, resident_mib());
    fflush(stdout);
}

static bool settle(struct process *process, int limit_s)
{
    for (int i = 0; i < limit_s * 2; i++) {
        pass(process, SECONDS / 2);
        if (is_settled())
            return true;
    }
    const json_t *pool = json_object_get(store.objects, GROUP "gpupools/default");
    CLEANUP(str_done) struct str text = STR_EMPTY;
    json_write_line(json_object_get(pool, "status"), &text);
    printf("not settled after %d s: %s\n", limit_s, text.bytes);
    return false;
}

/* ---- what is measured ---- */

static void demand(int services, int models, double scale)
{
    for (int i = 0; i < services; i++)
        put_service(i, models, scale * (60 + 31 * (i % 13)));
}

static int full_reconcile(int nodes, int services)
{
    struct process process;
    const int models = 40;
    for (int i = 0; i < nodes; i++)
        put_node(i);
    put_profiles(models);
    put_pool();
    demand(services, models, 1);
    printf("%d nodes, %d GPUs, %d services; %.0f MiB with the server's objects\n", nodes,
           nodes * GPUS_A_NODE, services, resident_mib());
    struct lap lap = lap_start();
    process_start(&process);
    bool good = settle(&process, 36000);
    lap_print("from nothing to all services ready", &lap);
    printf("  %zu pods, %zu transitions, %zu plans\n", count_kind("/pods/"),
           count_kind("/transitions/"), count_kind("/partitionplans/"));
    pass(&process, 60 * SECONDS);
    lap = lap_start();
    pass(&process, 600 * SECONDS);
    lap_print("ten minutes of steady state", &lap);
    good = good && store.writes == lap.writes;
    process_end(&process);
    lap = lap_start();
    process_start(&process);
    pass(&process, 10 * SECONDS);
    lap_print("a process that starts anew, 10 s", &lap);
    good = good && store.writes == lap.writes;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    controller_metrics_page(process.controller, &text);
    const char *sum = strstr(text.bytes, "tranche_controller_reconcile_seconds_sum");
    printf("  its rounds: %.*s\n", (int)strcspn(sum, "\n"), sum);
    process_end(&process);
    return good ? 0 : 1;
}

/* The longest path of a Transition's actions, each with the seconds that it takes here. */
static double critical_path(const json_t *transition)
{
    static const struct {
        const char *kind;
        double seconds;
    } kinds[] = {{"create_instance", CREATE_SECONDS},
                 {"start", READY_SECONDS},
                 {"drain", DRAIN_SECONDS},
                 {"stop", 0},
                 {"delete_instance", 1}};
    CLEANUP(json_decref_ptr) json_t *ends = json_object();
    double longest = 0;
    size_t i, j;
    json_t *action, *id;
    json_array_foreach(json_object_get(json_object_get(transition, "spec"), "actions"), i,
                       action)
    {
        double begin = 0;
        json_array_foreach(json_object_get(action, "after"), j, id)
        {
            double end = json_number_value(json_object_get(ends, json_string_value(id)));
            begin = end > begin ? end : begin;
        }
        const char *kind = json_string_value(json_object_get(action, "kind"));
        for (j = 0; j < sizeof kinds / sizeof *kinds; j++)
            if (strcmp(kinds[j].kind, kind) == 0)
                begin += kinds[j].seconds;
        json_object_set_new(ends, json_string_value(json_object_get(action, "id")),
                            json_real(begin));
        longest = begin > longest ? begin : longest;
    }
    return longest;
}

static int transition_of_64(void)
{
    struct process process;
    const int models = 12, services = 36;
    for (int i = 0; i < 20; i++)
        put_node(i);
    put_profiles(models);
    put_pool();
    for (int i = 0; i < services; i++)
        put_service(i, models, i % 2 ? 1750 : 460);
    process_start(&process);
    bool good = settle(&process, 3600);
    size_t before = count_kind("/transitions/");
    for (int i = 0; i < services; i++)
        put_service(i, models, i % 2 ? 460 : 1750);
    struct lap lap = lap_start();
    good = settle(&process, 3600) && good;
    lap_print("a change from day to night", &lap);
    double critical = 0;
    size_t actions = 0, gpus = 0, seen = 0;
    const char *path;
    json_t *object;
    json_object_foreach(store.objects, path, object)
    {
        if (!strstr(path, "/transitions/") || seen++ < before)
            continue;
        const json_t *spec = json_object_get(object, "spec");
        critical += critical_path(object);
        actions += json_array_size(json_object_get(spec, "actions"));
        gpus = json_array_size(json_object_get(spec, "gpus")) > gpus
                   ? json_array_size(json_object_get(spec, "gpus"))
                   : gpus;
    }
    double took = (double)(store.clock.time_ns - lap.cluster_ns) / 1e9;
    size_t made = calls_all - lap.calls, written = store.writes - lap.writes;
    printf("  %zu transitions, %zu GPUs touched, %zu actions: %.2f s and %.1f calls (%.1f "
           "writes) an action; critical path %.1f s, the change took %.2f times that\n",
           seen - before, gpus, actions, took / (double)actions, (double)made / (double)actions,
           (double)written / (double)actions, critical, took / critical);
    process_end(&process);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 1000;
    int services = argc > 2 ? atoi(argv[2]) : 500;
    log_set_level(LOG_ERROR);
    for (int part = 0; part < 2; part++) {
        api_store_init(&store);
        store.fault = on_request;
        store.missing[0] = "/apis/gateway.networking.k8s.io";
        store.missing[1] = "/apis/resource.k8s.io";
        born = json_object();
        int failed = part == 0 ? transition_of_64() : full_reconcile(nodes, services);
        json_decref(born);
        api_store_done(&store);
        if (failed)
            return failed;
    }
    return 0;
}
