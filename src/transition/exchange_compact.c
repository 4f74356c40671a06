/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/exchange_compact.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "transition/cluster.h"
#include "transition/match.h"
#include "transition/weaken.h"

static const double TOLERANCE = 1e-9;
enum { SPARES_UNLIMITED = 1 << 20 };

/* An instance that `to` has and the machine lacks, and what it replaces. */
struct exchange {
    const struct mig_board *board;
    int profile;
    struct serving serving;
    VEC(int) replaced; /* pods */
    bool done;
};

struct controller {
    struct cluster cluster;
    struct transition *transition;
    int *services; /* of to's services: index here */
    VEC(struct exchange) exchanges;
    struct error *err;
};

static const struct mig_board *board_of(const struct controller *controller, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < controller->transition->gpus.count);
    return controller->transition->gpus.data[gpu].board;
}

static struct serving serving_of(const struct controller *controller,
                                 const struct plan_instance *instance)
{
    assert(instance->service >= -1);
    if (instance->service < 0)
        return (struct serving){.service = -1};
    return (struct serving){controller->services[instance->service], instance->batch,
                            instance->procs, instance->rate_rps};
}

static bool same_serving(const struct serving *a, const struct serving *b)
{
    return a->service == b->service && a->batch == b->batch && a->procs == b->procs &&
           fabs(a->rate_rps - b->rate_rps) <= TOLERANCE * fabs(b->rate_rps);
}

/* A pod that serves like this on this profile and board, and is not claimed yet. */
static int find_alike(const struct controller *controller, const struct mig_board *board,
                      int profile, const struct serving *serving, const bool *claimed)
{
    assert(serving->service >= 0 && claimed);
    for (size_t i = 0; i < controller->cluster.pods.count; i++) {
        const struct pod *pod = &controller->cluster.pods.data[i];
        if (!claimed[i] && pod->there && pod->slot.profile == profile &&
            board_of(controller, pod->slot.gpu) == board &&
            same_serving(&pod->serving, serving))
            return (int)i;
    }
    return -1;
}

/* The difference of the two plans per service: what is new becomes an exchange, what nobody
 * claims is unneeded. */
static void find_difference(struct controller *controller)
{
    assert(controller->exchanges.count == 0);
    const struct plan *to = &controller->transition->to;
    size_t pods = controller->cluster.pods.count;
    bool *claimed = xcalloc(pods, sizeof *claimed);
    for (size_t g = 0; g < to->gpus.count; g++)
        for (size_t i = 0; i < to->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &to->gpus.data[g].instances.data[i];
            struct serving serving = serving_of(controller, instance);
            if (serving.service < 0)
                continue;
            int pod = find_alike(controller, to->gpus.data[g].board, instance->profile,
                                 &serving, claimed);
            if (pod >= 0)
                claimed[pod] = true;
            else
                vec_add(&controller->exchanges,
                        ((struct exchange){.board = to->gpus.data[g].board,
                                           .profile = instance->profile,
                                           .serving = serving}));
        }
    for (size_t i = 0; i < pods; i++)
        controller->cluster.pods.data[i].unneeded =
            controller->cluster.pods.data[i].serving.service >= 0 && !claimed[i];
    free(claimed);
}

static int compare_exchanges(const void *a, const void *b)
{
    const struct exchange *left = a, *right = b;
    if (left->serving.service != right->serving.service)
        return left->serving.service - right->serving.service;
    if (left->serving.rate_rps != right->serving.rate_rps)
        return left->serving.rate_rps > right->serving.rate_rps ? -1 : 1;
    return left->profile - right->profile;
}

/* Each new instance, the largest first, takes unneeded ones of its service, the largest first,
 * as long as their rates together do not exceed its own. */
static void pair(struct controller *controller)
{
    size_t pods = controller->cluster.pods.count;
    bool *paired = xcalloc(pods, sizeof *paired);
    if (controller->exchanges.count > 0)
        qsort(controller->exchanges.data, controller->exchanges.count, sizeof(struct exchange),
              compare_exchanges);
    for (size_t e = 0; e < controller->exchanges.count; e++) {
        struct exchange *exchange = &controller->exchanges.data[e];
        double room = exchange->serving.rate_rps;
        for (int best = 0; best >= 0;) {
            best = -1;
            for (size_t i = 0; i < pods; i++) {
                const struct pod *pod = &controller->cluster.pods.data[i];
                if (!pod->unneeded || paired[i] ||
                    pod->serving.service != exchange->serving.service ||
                    pod->serving.rate_rps > room)
                    continue;
                if (best < 0 || pod->serving.rate_rps >
                                    controller->cluster.pods.data[best].serving.rate_rps)
                    best = (int)i;
            }
            if (best < 0)
                break;
            paired[best] = true;
            assert(room >= controller->cluster.pods.data[best].serving.rate_rps);
            room -= controller->cluster.pods.data[best].serving.rate_rps;
            vec_add(&exchange->replaced, best);
        }
    }
    free(paired);
}

static void delete_unneeded(struct controller *controller, int pod)
{
    assert(controller->cluster.pods.data[pod].unneeded);
    controller->cluster.pods.data[pod].unneeded = false;
    cluster_delete(&controller->cluster, pod);
}

/* Creates the new instance, then deletes those that it replaces. */
static bool run_exchange(struct controller *controller, struct exchange *exchange)
{
    assert(!exchange->done);
    struct cluster *cluster = &controller->cluster;
    struct slot slot;
    const char *node = "";
    if (exchange->replaced.count > 0) {
        const struct pod *pod = &cluster->pods.data[exchange->replaced.data[0]];
        node = controller->transition->gpus.data[pod->slot.gpu].node;
    }
    if (!cluster_find_slot(cluster, exchange->board, exchange->profile, -1, node, &slot))
        return false;
    cluster_create(cluster, cluster_repartition(cluster, slot), exchange->serving);
    for (size_t i = 0; i < exchange->replaced.count; i++)
        delete_unneeded(controller, exchange->replaced.data[i]);
    exchange->done = true;
    return true;
}

/* Rounds: in each, every pair that finds room runs; what it deletes makes room for the next.
 * Borrowed GPUs are for the first that no round could help. */
static bool run_exchanges(struct controller *controller)
{
    struct cluster *cluster = &controller->cluster;
    int allowed = cluster->spares_max;
    cluster->spares_max = 0;
    for (;;) {
        bool progress = false, left = false;
        for (size_t e = 0; e < controller->exchanges.count; e++) {
            struct exchange *exchange = &controller->exchanges.data[e];
            if (exchange->done)
                continue;
            bool ran = run_exchange(controller, exchange);
            progress |= ran;
            left |= !ran;
            if (ran)
                cluster->spares_max = cluster->spares;
        }
        if (!left)
            break;
        if (progress)
            continue;
        if (cluster->spares_max >= allowed)
            return false;
        cluster->spares_max++;
    }
    cluster->spares_max = allowed;
    for (size_t i = 0; i < cluster->pods.count; i++)
        if (cluster->pods.data[i].unneeded)
            delete_unneeded(controller, (int)i);
    assert(cluster->spares <= allowed);
    return true;
}

/* Whether the pod is just what the GPU of `to` has in that slot. */
static bool is_in_place(const struct controller *controller, const struct plan_gpu *gpu,
                        const struct pod *pod)
{
    assert(gpu && pod);
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        struct serving serving = serving_of(controller, instance);
        if (instance->profile == pod->slot.profile && instance->start == pod->slot.start)
            return serving.service < 0 ? pod->serving.service < 0
                                       : same_serving(&serving, &pod->serving);
    }
    return false;
}

static int slices_in_place(const struct controller *controller, const struct plan_gpu *gpu,
                           int here)
{
    assert(here >= 0 && (size_t)here < controller->cluster.gpus.count);
    const struct cluster_gpu *machine = &controller->cluster.gpus.data[here];
    int slices = 0;
    for (size_t i = 0; i < machine->pods.count; i++) {
        const struct pod *pod = &controller->cluster.pods.data[machine->pods.data[i]];
        if (pod->there && is_in_place(controller, gpu, pod))
            slices += gpu->board->profiles[pod->slot.profile].compute_slices;
    }
    return slices;
}

/* The GPU of S that has the most of the target in place; a borrowed one never. */
static int pick_gpu(const struct controller *controller, const struct plan_gpu *target)
{
    int best = -1, most = -1;
    for (size_t g = 0; g < controller->cluster.gpus.count; g++) {
        const struct cluster_gpu *gpu = &controller->cluster.gpus.data[g];
        if (gpu->settled || gpu->borrowed || board_of(controller, (int)g) != target->board)
            continue;
        int slices = slices_in_place(controller, target, (int)g);
        if (slices > most) {
            most = slices;
            best = (int)g;
        }
    }
    assert(best >= 0);
    return best;
}

/* Moves what does not belong there to other GPUs of S. */
static bool evict(struct controller *controller, const struct plan_gpu *target, int here)
{
    assert(here >= 0 && (size_t)here < controller->cluster.gpus.count);
    struct cluster *cluster = &controller->cluster;
    for (size_t i = 0; i < cluster->gpus.data[here].pods.count; i++) {
        int index = cluster->gpus.data[here].pods.data[i];
        struct pod pod = cluster->pods.data[index];
        struct slot slot;
        if (!pod.there || pod.serving.service < 0 || is_in_place(controller, target, &pod))
            continue;
        if (!cluster_find_slot(cluster, target->board, pod.slot.profile, here,
                               controller->transition->gpus.data[here].node, &slot))
            return false;
        cluster_migrate(cluster, index, cluster_repartition(cluster, slot));
    }
    return true;
}

/* A pod elsewhere in S that serves like this; one of the same node, then one on a GPU with
 * little else, first. */
static int find_donor(const struct controller *controller, const struct plan_gpu *target,
                      const struct plan_instance *wanted, int here)
{
    assert(wanted->service >= 0);
    const struct cluster *cluster = &controller->cluster;
    const struct transition_gpu *gpus = controller->transition->gpus.data;
    struct serving serving = serving_of(controller, wanted);
    int best = -1, best_rank = -1;
    for (size_t i = 0; i < cluster->pods.count; i++) {
        const struct pod *pod = &cluster->pods.data[i];
        if (!pod->there || pod->slot.gpu == here || cluster->gpus.data[pod->slot.gpu].settled ||
            pod->slot.profile != wanted->profile ||
            gpus[pod->slot.gpu].board != target->board ||
            !same_serving(&pod->serving, &serving))
            continue;
        bool local = *gpus[here].node && strcmp(gpus[here].node, gpus[pod->slot.gpu].node) == 0;
        int rank = (local ? 100 : 0) + (cluster->gpus.data[pod->slot.gpu].borrowed ? 50 : 0) +
                   MIG_INSTANCES_MAX - cluster->gpus.data[pod->slot.gpu].layout.count;
        if (rank > best_rank) {
            best_rank = rank;
            best = (int)i;
        }
    }
    return best;
}

/* Idle instances that the target does not have. */
static void clear_idle(struct controller *controller, const struct plan_gpu *target, int here)
{
    assert(here >= 0 && (size_t)here < controller->cluster.gpus.count);
    struct cluster *cluster = &controller->cluster;
    for (size_t i = 0; i < cluster->gpus.data[here].pods.count; i++) {
        int index = cluster->gpus.data[here].pods.data[i];
        const struct pod *pod = &cluster->pods.data[index];
        bool wanted = false;
        for (size_t k = 0; target && k < target->instances.count; k++)
            wanted |= target->instances.data[k].profile == pod->slot.profile &&
                      target->instances.data[k].start == pod->slot.start;
        if (pod->there && pod->serving.service < 0 && !wanted)
            cluster_delete_idle(cluster, index);
    }
}

/* Makes one GPU of S what `to` wants and takes it out of S. */
static bool settle(struct controller *controller, const struct plan_gpu *target)
{
    struct cluster *cluster = &controller->cluster;
    int here = pick_gpu(controller, target);
    if (!evict(controller, target, here))
        return false;
    clear_idle(controller, target, here);
    for (size_t i = 0; i < target->instances.count; i++) {
        const struct plan_instance *instance = &target->instances.data[i];
        struct slot slot = {here, instance->profile, instance->start};
        int pod = cluster_repartition(cluster, slot);
        if (instance->service < 0 || cluster->pods.data[pod].serving.service >= 0)
            continue;
        int donor = find_donor(controller, target, instance, here);
        assert(donor >= 0); /* after the exchange the machine has all that `to` has */
        cluster_migrate(cluster, donor, pod);
    }
    cluster->gpus.data[here].settled = true;
    struct transition_match match = {arena_strdup(&controller->transition->arena, target->id),
                                     controller->transition->gpus.data[here].id};
    vec_add(&controller->transition->match, match);
    return true;
}

static bool compact(struct controller *controller)
{
    const struct plan *to = &controller->transition->to;
    for (size_t g = 0; g < to->gpus.count; g++)
        if (!settle(controller, &to->gpus.data[g]))
            return false;
    for (size_t g = 0; g < controller->cluster.gpus.count; g++)
        if (!controller->cluster.gpus.data[g].settled)
            clear_idle(controller, NULL, (int)g);
    return true;
}

static void controller_done(struct controller *controller)
{
    for (size_t e = 0; e < controller->exchanges.count; e++)
        vec_done(&controller->exchanges.data[e].replaced);
    vec_done(&controller->exchanges);
    free(controller->services);
    cluster_done(&controller->cluster);
}

/* Runs the controller with at most *spares borrowed GPUs, and says how many it took; leaves
 * actions and GPUs in the transition. */
static bool run(const struct work *work, const struct action_times *times, bool gpu_order,
                int *spares)
{
    assert(*spares >= 0);
    struct transition *transition = work->transition;
    struct controller controller = {.transition = transition};
    cluster_init(&controller.cluster, work, times, *spares);
    controller.cluster.gpu_order = gpu_order;
    controller.services = xcalloc(transition->to.services.count, sizeof(int));
    for (size_t s = 0; s < transition->to.services.count; s++)
        controller.services[s] =
            transition_find_service(transition, transition->to.services.data[s].name);
    vec_clear(&transition->match);
    find_difference(&controller);
    pair(&controller);
    bool ran = run_exchanges(&controller) && compact(&controller);
    *spares = controller.cluster.spares;
    controller_done(&controller);
    return ran;
}

static void take_back(struct transition *transition, size_t gpus)
{
    assert(gpus <= transition->gpus.count);
    for (size_t i = 0; i < transition->actions.count; i++)
        vec_done(&transition->actions.data[i].after);
    vec_clear(&transition->actions);
    transition->gpus.count = gpus;
}

static int refuse(const struct work *work, const struct transition_options *options,
                  struct error *err)
{
    int spares = SPARES_UNLIMITED;
    bool enough = run(work, options->times, true, &spares);
    assert(enough);
    return error_set(err, E_NO,
                     "exchange-compact finds no room for %zu leaving and %zu coming instances "
                     "within %d borrowed GPU%s; %d spare GPU%s would do (--spare %d)",
                     work->leaving.count, work->coming.count, options->spare,
                     options->spare == 1 ? "" : "s", spares, spares == 1 ? "" : "s", spares);
}

int exchange_compact_plan(struct transition *transition,
                          const struct transition_options *options, bool gpu_order,
                          struct error *err)
{
    assert(options->times && options->spare >= 0);
    struct work work;
    struct match_options match = {0};
    int spares = options->spare;
    /* Only the number of GPUs is taken from this: who becomes whom is settled on the way. */
    transition_match(transition, &match);
    int rc = work_build(transition, &work, err);
    if (rc < 0)
        return rc;
    size_t gpus = transition->gpus.count;
    transition->algorithm = gpu_order ? "exchange-compact" : "dag";
    if (run(&work, options->times, gpu_order, &spares)) {
        if (!gpu_order)
            transition_weaken(&work);
        transition_finish(transition, !gpu_order);
    } else {
        take_back(transition, gpus);
        rc = refuse(&work, options, err);
    }
    work_done(&work);
    return rc;
}
