/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's decisions at size: 1,000 nodes of 8 GPUs, 500 services (or as given). Times
 * the cold plan, the first transition, and a round over the settled cluster, which must ask for
 * nothing; and says how much memory the process took. Exit 1 when it asks for more, and when a
 * round fails or an effect is refused.
 *
 *     bench_reconcile [NODES [SERVICES]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "control/json_covers.h"
#include "control/kinds.h"
#include "control/pod_object.h"
#include "control/reconcile.h"
#include "fake_cluster.h"

#define NAMESPACE "shop"
#define POOL      "pool"

enum { GPUS_A_NODE = 8, ROUNDS_MOST = 40 };

static int failures; /* rounds, and effects that were refused */

static double memory_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* Of this process alone: other work on the machine does not count. */
static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void add_profile(struct fake_cluster *cluster)
{
    const struct mig_board *board = mig_board_find("a100-40gb");
    json_t *entries = json_array();

    for (int p = 0; p < board->profile_count; p++)
        if (board->profiles[p].group == MIG_GROUP_BASE)
            json_array_append_new(entries, json_pack("{s:s, s:i, s:i, s:f, s:f}", "slice",
                                                     board->profiles[p].name, "batch", 4,
                                                     "procs", 1, "throughputRps",
                                                     10.0 * board->profiles[p].compute_slices,
                                                     "latencyMsP99", 20.0));
    fake_cluster_put(cluster, &KIND_PERF_PROFILE,
                     json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:o}}", "apiVersion",
                               "tranche.dev/v1alpha1", "kind", "PerfProfile", "metadata",
                               "name", "bert", "spec", "model", "bert", "board", "a100-40gb",
                               "entries", entries));
}

static void add_service(struct fake_cluster *cluster, int number, double rate_rps)
{
    char name[32];

    snprintf(name, sizeof name, "service-%d", number);
    fake_cluster_put(
        cluster, &KIND_GPU_SERVICE,
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:f, s:f, s:{s:{s:[{s:s, s:s}]}}}}",
                  "apiVersion", "tranche.dev/v1alpha1", "kind", "GpuService", "metadata",
                  "name", name, "namespace", NAMESPACE, "spec", "pool", POOL, "model", "bert",
                  "rateRps", rate_rps, "latencyMs", 100.0, "podTemplate", "spec", "containers",
                  "name", "server", "image", "server:1"));
}

static void set_up(struct fake_cluster *cluster, int nodes, int services)
{
    struct rng rng = rng_seed(1);
    double share = 0.85 * nodes * GPUS_A_NODE * 70 / services; /* of the pool's rate */

    fake_cluster_init(cluster, 1);
    fake_cluster_put(cluster, &KIND_GPU_POOL,
                     json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s}}", "apiVersion",
                               "tranche.dev/v1alpha1", "kind", "GpuPool", "metadata", "name",
                               POOL, "spec", "actuator", "agent", "latencyRule", "batch"));
    add_profile(cluster);
    for (int n = 0; n < nodes; n++)
        fake_cluster_add_node(cluster, mig_board_find("a100-40gb"), GPUS_A_NODE);
    for (int s = 0; s < services; s++)
        add_service(cluster, s, share * rng_uniform(&rng, 0.5, 1.5));
}

/* One round, timed; carries its effects out when asked to. Returns their number. */
static size_t run_round(struct fake_cluster *cluster, const char *what, bool carry_out)
{
    struct fake_snapshot view;
    struct world_sources sources;
    struct world world;
    struct effects effects;
    struct error err = {0};
    struct reconcile_options options = {.pool = POOL};

    fake_snapshot_take(cluster, &view);
    fake_snapshot_sources(&view, cluster, &sources);
    double start = processor_seconds();
    world_build(&sources, &world);
    double built = processor_seconds() - start;
    if (reconcile_pool(&world, &options, &effects, NULL, &err) < 0) {
        printf("%s: failed: %s\n", what, err.text);
        failures++;
    }
    double decided = processor_seconds() - start;
    world_done(&world);
    size_t count = effects.items.count;
    printf("%-28s %7.3f s of a processor (world %.3f s), %zu effects, %.0f MiB\n", what,
           decided, built, count, memory_mib());
    fflush(stdout);
    for (size_t i = 0; carry_out && i < count; i++)
        if (fake_cluster_apply(cluster, &effects.items.data[i], &err) < 0) {
            printf("refused: %s\n", err.text);
            failures++;
        }
    effects_done(&effects);
    fake_snapshot_done(&view);
    return count;
}

/* ---- the settled cluster, without the way there ----------------------------------- */

static json_t *instance_json(const struct partition_item *item)
{
    char uuid[128];

    snprintf(uuid, sizeof uuid, "MIG-%s-%d", item->gpu_uuid, item->start);
    return json_pack("{s:s, s:i, s:s, s:b}", "slice", item->board->profiles[item->profile].name,
                     "start", item->start, "uuid", uuid, "ready", true);
}

static void add_pod(struct fake_cluster *cluster, const struct world *world,
                    const struct partition_item *item, int number)
{
    const struct gpu_service *service =
        &world->services.data[world_find_service(world, item->service)];
    struct world_gpu gpu = {.uuid = item->gpu_uuid, .board = item->board};
    char action[32], ip[32];
    struct pod_request request = {.service = service,
                                  .pool = POOL,
                                  .gpu = &gpu,
                                  .profile = item->profile,
                                  .start = item->start,
                                  .transition = "bench",
                                  .action = action,
                                  .batch = item->batch,
                                  .procs = item->procs,
                                  .max_wait_ms = item->max_wait_ms,
                                  .rate_rps = item->rate_rps};

    snprintf(action, sizeof action, "a%d", number);
    snprintf(ip, sizeof ip, "10.%d.%d.%d", number / 60000, number / 250 % 250, number % 250);
    json_t *pod = pod_object_make(&request);
    json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(item->node));
    json_object_set_new(pod, "status",
                        json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "phase", "Running", "podIP", ip,
                                  "conditions", "type", "Ready", "status", "True"));
    fake_cluster_append(cluster, &KUBE_POD, pod);
}

/* Every GPU's instances, wanted and found. */
static void set_nodes(struct fake_cluster *cluster, const struct map *instances)
{
    struct fake_list *states = &cluster->lists[FAKE_NODE_STATES];

    for (size_t i = 0; i < states->items.count; i++) {
        json_t *state = json_deep_copy(states->items.data[i]), *wanted = json_array();
        json_t *found = (json_t *)json_at(state, "status", "gpus", NULL);
        for (size_t g = 0; g < json_array_size(found); g++) {
            json_t *gpu = json_array_get(found, g);
            const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
            json_t *list = map_get(instances, uuid);
            if (!list)
                continue;
            json_object_set(gpu, "instances", list);
            json_array_append_new(wanted, json_pack("{s:s, s:s, s:O}", "uuid", uuid, "board",
                                                    "a100-40gb", "instances", list));
        }
        json_object_set_new(json_object_get(state, "spec"), "gpus", wanted);
        json_object_set_new(json_object_get(state, "spec"), "epoch", json_integer(1));
        json_decref(states->items.data[i]);
        states->items.data[i] = state;
    }
}

static void be_as_planned(struct fake_cluster *cluster)
{
    CLEANUP(map_done) struct map instances = {0};
    struct fake_snapshot view;
    struct world_sources sources;
    struct world world;
    int number = 0;

    fake_snapshot_take(cluster, &view);
    fake_snapshot_sources(&view, cluster, &sources);
    world_build(&sources, &world);
    for (size_t p = 0; p < world.plans.count; p++)
        for (size_t i = 0; i < world.plans.data[p].items.count; i++) {
            const struct partition_item *item = &world.plans.data[p].items.data[i];
            json_t *list = map_get(&instances, item->gpu_uuid);
            if (!list)
                map_put(&instances, item->gpu_uuid, list = json_array());
            json_array_append_new(list, instance_json(item));
            add_pod(cluster, &world, item, number++);
        }
    set_nodes(cluster, &instances);
    for (size_t i = 0; i < instances.count; i++)
        json_decref(instances.entries[i].value);
    printf("%d pods\n", number);
    world_done(&world);
    fake_snapshot_done(&view);
}

/* A tenth of the services wants a fifth more or less. */
static void change_demand(struct fake_cluster *cluster, int services)
{
    for (int s = 0; s < services; s += 10) {
        char name[32];
        snprintf(name, sizeof name, "service-%d", s);
        const json_t *there = fake_cluster_get(cluster, &KIND_GPU_SERVICE, NAMESPACE, name);
        json_t *changed = json_deep_copy(there);
        double rate = json_number_value(json_at(there, "spec", "rateRps", NULL));
        json_object_set_new(json_object_get(changed, "spec"), "rateRps",
                            json_real(rate * (s % 20 ? 0.8 : 1.2)));
        fake_cluster_put(cluster, &KIND_GPU_SERVICE, changed);
    }
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 1000, services = argc > 2 ? atoi(argv[2]) : 500;
    struct fake_cluster cluster;

    if (nodes < 1 || services < 1)
        return 2;
    set_up(&cluster, nodes, services);
    printf("%d nodes, %d GPUs, %d services\n", nodes, nodes * GPUS_A_NODE, services);
    (void)run_round(&cluster, "finalizers", true);
    (void)run_round(&cluster, "cold plan", true);
    (void)run_round(&cluster, "first transition", false);
    be_as_planned(&cluster);
    for (int i = 0; i < ROUNDS_MOST && run_round(&cluster, "on the way", true) > 0; i++)
        cluster.now_s += 5;
    size_t left = run_round(&cluster, "settled", false);
    change_demand(&cluster, services);
    (void)run_round(&cluster, "statuses", true);
    cluster.now_s += 60;
    (void)run_round(&cluster, "new plan for new demand", true);
    (void)run_round(&cluster, "transition to it", false);
    fake_cluster_done(&cluster);
    return left == 0 && failures == 0 ? 0 : 1;
}
