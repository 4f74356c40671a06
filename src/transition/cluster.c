/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/cluster.h"

#include <assert.h>
#include <string.h>

static void add_pod(struct cluster *cluster, struct slot slot, struct serving serving,
                    int action)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < cluster->gpus.count);
    struct pod pod = {.slot = slot, .serving = serving, .action = action, .there = true};
    vec_add(&cluster->gpus.data[slot.gpu].pods, (int)cluster->pods.count);
    vec_add(&cluster->pods, pod);
}

static void add_plan_pods(struct cluster *cluster)
{
    const struct transition *transition = cluster->transition;
    for (size_t g = 0; g < transition->from.gpus.count; g++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[g];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            struct serving serving = {.service = -1};
            if (instance->service >= 0)
                serving = (struct serving){
                    transition_find_service(
                        transition, transition->from.services.data[instance->service].name),
                    instance->batch, instance->procs, instance->rate_rps};
            add_pod(cluster, (struct slot){(int)g, instance->profile, instance->start}, serving,
                    -1);
        }
    }
}

void cluster_init(struct cluster *cluster, const struct work *work,
                  const struct action_times *times, int spares_max)
{
    assert(work && times && spares_max >= 0);
    *cluster = (struct cluster){
        .work = work, .transition = work->transition, .spares_max = spares_max};
    builder_init(&cluster->builder, work, times);
    for (size_t g = 0; g < work->layouts.count; g++)
        ((struct cluster_gpu *)vec_push(&cluster->gpus))->layout = work->layouts.data[g];
    add_plan_pods(cluster);
}

void cluster_done(struct cluster *cluster)
{
    for (size_t g = 0; g < cluster->gpus.count; g++) {
        vec_done(&cluster->gpus.data[g].pods);
        vec_done(&cluster->gpus.data[g].last);
    }
    vec_done(&cluster->gpus);
    vec_done(&cluster->pods);
    builder_done(&cluster->builder);
}

int cluster_pod_at(const struct cluster *cluster, struct slot slot)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < cluster->gpus.count);
    const struct cluster_gpu *gpu = &cluster->gpus.data[slot.gpu];
    for (size_t i = 0; i < gpu->pods.count; i++) {
        const struct pod *pod = &cluster->pods.data[gpu->pods.data[i]];
        if (pod->there && pod->slot.profile == slot.profile && pod->slot.start == slot.start)
            return gpu->pods.data[i];
    }
    return -1;
}

/* What would be left of a GPU's layout without its idle instances. */
static struct mig_layout busy_layout(const struct cluster *cluster, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < cluster->gpus.count);
    struct mig_layout layout = {0};
    const struct cluster_gpu *here = &cluster->gpus.data[gpu];
    for (size_t i = 0; i < here->pods.count; i++) {
        const struct pod *pod = &cluster->pods.data[here->pods.data[i]];
        if (pod->there && pod->serving.service >= 0)
            layout.instances[layout.count++] =
                (struct mig_instance){(int8_t)pod->slot.profile, (int8_t)pod->slot.start};
    }
    assert(layout.count <= MIG_INSTANCES_MAX);
    mig_layout_sort(&layout);
    return layout;
}

/* 3: an idle instance of the profile; 2: free memory units; 1: units of idle instances. */
static int slot_rank(const struct cluster *cluster, const struct mig_layout *busy,
                     struct slot slot)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < cluster->gpus.count);
    const struct mig_board *board = cluster->transition->gpus.data[slot.gpu].board;
    struct mig_instance instance = {(int8_t)slot.profile, (int8_t)slot.start};
    int pod = cluster_pod_at(cluster, slot);
    if (pod >= 0)
        return cluster->pods.data[pod].serving.service < 0 ? 3 : 0;
    if (mig_layout_can_add(board, &cluster->gpus.data[slot.gpu].layout, instance))
        return 2;
    return mig_layout_can_add(board, busy, instance) ? 1 : 0;
}

static bool borrow(struct cluster *cluster, const struct mig_board *board)
{
    struct transition *transition = cluster->transition;
    const char *id;
    int number = cluster->spares;
    if (cluster->spares >= cluster->spares_max)
        return false;
    do
        id = arena_printf(&transition->arena, "spare%d", number++);
    while (transition_find_gpu(transition, id) >= 0);
    struct transition_gpu spare = {.id = id, .board = board, .node = ""};
    vec_add(&transition->gpus, spare);
    ((struct cluster_gpu *)vec_push(&cluster->gpus))->borrowed = true;
    assert(transition->gpus.count == cluster->gpus.count);
    cluster->spares++;
    return true;
}

bool cluster_find_slot(struct cluster *cluster, const struct mig_board *board, int profile,
                       int avoid, const char *node, struct slot *ret_slot)
{
    assert(profile >= 0 && profile < board->profile_count);
    assert(node && ret_slot);
    int best = 0;
    for (size_t g = 0; g < cluster->gpus.count; g++) {
        const struct transition_gpu *here = &cluster->transition->gpus.data[g];
        if (here->board != board || (int)g == avoid || cluster->gpus.data[g].settled)
            continue;
        struct mig_layout busy = busy_layout(cluster, (int)g);
        for (int start = 0; start < board->memory_units; start++) {
            struct slot slot = {(int)g, profile, start};
            if (!(board->profiles[profile].starts >> start & 1))
                continue;
            int rank = slot_rank(cluster, &busy, slot);
            /* A slot of the same node is worth more than any other: a local migration is the
             * cheaper one (section 6). */
            bool local = *node && strcmp(here->node, node) == 0;
            int worth = rank == 0 ? 0 : rank + (local ? 4 : 0);
            if (worth > best) {
                best = worth;
                *ret_slot = slot;
            }
        }
    }
    if (best > 0)
        return true;
    return borrow(cluster, board) &&
           cluster_find_slot(cluster, board, profile, avoid, node, ret_slot);
}

/* The next action waits for what came last on the GPU. */
static void begin_on(struct cluster *cluster, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < cluster->gpus.count);
    const struct cluster_gpu *here = &cluster->gpus.data[gpu];
    for (size_t i = 0; cluster->gpu_order && i < here->last.count; i++)
        builder_also_after(&cluster->builder, here->last.data[i]);
}

static void end_on(struct cluster *cluster, int gpu, int action)
{
    assert(action >= 0);
    struct cluster_gpu *here = &cluster->gpus.data[gpu];
    vec_clear(&here->last);
    vec_add(&here->last, action);
}

static void forget(struct cluster *cluster, struct pod *pod)
{
    assert(pod->there);
    struct cluster_gpu *gpu = &cluster->gpus.data[pod->slot.gpu];
    int at = 0;
    pod->there = false;
    while (gpu->layout.instances[at].profile != pod->slot.profile ||
           gpu->layout.instances[at].start != pod->slot.start)
        at++;
    assert(at < gpu->layout.count);
    mig_layout_remove(&gpu->layout, at);
}

void cluster_delete_idle(struct cluster *cluster, int index)
{
    assert(index >= 0 && (size_t)index < cluster->pods.count);
    struct pod *pod = &cluster->pods.data[index];
    assert(pod->there && pod->serving.service < 0);
    cluster->builder.group = GROUP_REPARTITION;
    begin_on(cluster, pod->slot.gpu);
    pod->action = builder_delete(&cluster->builder, pod->slot, pod->action);
    end_on(cluster, pod->slot.gpu, pod->action);
    forget(cluster, pod);
}

/* An idle instance that stands in the way of the slot; any idle one when none overlaps but a
 * limit by count is reached; -1: none. */
static int idle_in_way(const struct cluster *cluster, struct slot slot)
{
    assert(slot.gpu >= 0 && (size_t)slot.gpu < cluster->gpus.count);
    const struct cluster_gpu *gpu = &cluster->gpus.data[slot.gpu];
    uint32_t span = slot_span(cluster->transition, slot);
    int any = -1;
    for (size_t i = 0; i < gpu->pods.count; i++) {
        const struct pod *pod = &cluster->pods.data[gpu->pods.data[i]];
        if (!pod->there || pod->serving.service >= 0)
            continue;
        any = gpu->pods.data[i];
        if (slot_span(cluster->transition, pod->slot) & span)
            return any;
    }
    return any;
}

int cluster_repartition(struct cluster *cluster, struct slot slot)
{
    const struct mig_board *board = cluster->transition->gpus.data[slot.gpu].board;
    struct mig_instance instance = {(int8_t)slot.profile, (int8_t)slot.start};
    int pod = cluster_pod_at(cluster, slot);
    if (pod >= 0)
        return pod;
    while (!mig_layout_can_add(board, &cluster->gpus.data[slot.gpu].layout, instance)) {
        int idle = idle_in_way(cluster, slot);
        assert(idle >= 0);
        cluster_delete_idle(cluster, idle);
    }
    cluster->builder.group = GROUP_REPARTITION;
    begin_on(cluster, slot.gpu);
    int action = builder_create(&cluster->builder, slot);
    end_on(cluster, slot.gpu, action);
    mig_layout_add(board, &cluster->gpus.data[slot.gpu].layout, instance);
    add_pod(cluster, slot, (struct serving){.service = -1}, action);
    return (int)cluster->pods.count - 1;
}

static void start(struct cluster *cluster, struct pod *pod, struct serving serving)
{
    assert(pod->there && pod->serving.service < 0 && serving.service >= 0);
    pod->action = builder_start(&cluster->builder, pod->slot, serving, pod->action);
    builder_ready(&cluster->builder, pod->action);
    pod->serving = serving;
}

static void drain_and_stop(struct cluster *cluster, struct pod *pod)
{
    assert(pod->there && pod->serving.service >= 0);
    int drain = builder_drain(&cluster->builder, pod->slot, pod->serving, pod->action);
    pod->action = builder_stop(&cluster->builder, drain);
    pod->serving = (struct serving){.service = -1};
}

void cluster_create(struct cluster *cluster, int index, struct serving serving)
{
    assert(index >= 0 && (size_t)index < cluster->pods.count);
    assert(!cluster->gpus.data[cluster->pods.data[index].slot.gpu].settled);
    struct pod *pod = &cluster->pods.data[index];
    cluster->builder.group = GROUP_CREATE;
    begin_on(cluster, pod->slot.gpu);
    start(cluster, pod, serving);
    end_on(cluster, pod->slot.gpu, pod->action);
}

void cluster_delete(struct cluster *cluster, int index)
{
    assert(index >= 0 && (size_t)index < cluster->pods.count);
    struct pod *pod = &cluster->pods.data[index];
    cluster->builder.group = GROUP_DELETE;
    begin_on(cluster, pod->slot.gpu);
    drain_and_stop(cluster, pod);
    end_on(cluster, pod->slot.gpu, pod->action);
}

void cluster_migrate(struct cluster *cluster, int from_index, int to_index)
{
    assert(from_index != to_index && from_index >= 0 && to_index >= 0);
    struct pod *from = &cluster->pods.data[from_index], *to = &cluster->pods.data[to_index];
    const struct transition_gpu *gpus = cluster->transition->gpus.data;
    bool local = from->slot.gpu == to->slot.gpu ||
                 (*gpus[from->slot.gpu].node &&
                  strcmp(gpus[from->slot.gpu].node, gpus[to->slot.gpu].node) == 0);
    cluster->builder.group = local ? GROUP_MIGRATE_LOCAL : GROUP_MIGRATE_REMOTE;
    begin_on(cluster, from->slot.gpu);
    begin_on(cluster, to->slot.gpu);
    start(cluster, to, from->serving);
    if (cluster->gpu_order)
        builder_also_after(&cluster->builder, to->action);
    drain_and_stop(cluster, from);
    end_on(cluster, from->slot.gpu, from->action);
    end_on(cluster, to->slot.gpu, from->action);
}
