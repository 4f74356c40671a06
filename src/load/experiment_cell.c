/* SPDX-License-Identifier: Apache-2.0
 *
 * What each way of sharing means, in slices. See experiment_cell.h.
 *
 * On CPU slices there is no MPS: processes that share a quota are time-sliced by the kernel,
 * so `mps` and `time-slicing` are the same there; compute instances have no counterpart.
 */
#include "load/experiment_cell.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_TIMEOUT_NS ((int64_t)10 * 1000000000)

struct maker {
    struct experiment *experiment;
    const struct experiment_cell *cell;
    struct cell_instances *instances;
    struct group_instance base;
};

static bool on_gpu(const struct maker *maker)
{
    return maker->experiment->settings.device != DEVICE_CPU_SLICE;
}

/* The UUID of the `number`-th instance of a profile; NULL on CPU slices or when there are
 * not so many. */
static const char *device_of(const struct maker *maker, int profile, size_t number)
{
    const struct experiment *experiment = maker->experiment;
    for (size_t i = 0; i < experiment->devices.count; i++) {
        const struct experiment_devices *devices = &experiment->devices.data[i];
        if (devices->profile == profile && number < devices->uuids.count)
            return devices->uuids.data[number];
    }
    return NULL;
}

static void add(struct maker *maker, const struct group_instance *instance, size_t number)
{
    struct cell_instances *instances = maker->instances;
    const struct mig_board *board = maker->experiment->board;
    assert(instances->count < GROUP_INSTANCES_MAX);
    struct group_instance *added = &instances->list[instances->count++];
    *added = *instance;
    added->settings.uuid = device_of(maker, instance->cell.profile, number);
    if (on_gpu(maker) && !added->settings.uuid && !*instances->impossible)
        snprintf(instances->impossible, sizeof instances->impossible,
                 "devices names fewer than %zu of slice %s", number + 1,
                 board->profiles[instance->cell.profile].name);
}

static void add_busy(struct maker *maker)
{
    int count = maker->experiment->board->profiles[maker->cell->profile].max_instances;
    struct group_instance instance = maker->base;
    /* Equal windows, so that none is alone at the end. */
    instance.settings.longest_ns = instance.settings.duration_ns;
    instance.settings.min_steps = 1;
    for (int i = 0; i < count && i < GROUP_INSTANCES_MAX; i++)
        add(maker, &instance, (size_t)i);
}

static void add_neighbours(struct maker *maker)
{
    const struct experiment *experiment = maker->experiment;
    add(maker, &maker->base, 0);
    for (size_t i = 0; i < experiment->neighbours.count; i++) {
        const struct experiment_neighbour *neighbour = &experiment->neighbours.data[i];
        struct group_instance instance = maker->base;
        size_t number = neighbour->profile == maker->cell->profile;
        for (size_t k = 0; k < i; k++)
            number += experiment->neighbours.data[k].profile == neighbour->profile;
        if (maker->instances->count == GROUP_INSTANCES_MAX)
            break;
        instance.background = true;
        instance.cell.name = neighbour->model.name;
        instance.cell.model = neighbour->model.model;
        instance.cell.shapes = neighbour->model.shapes;
        instance.cell.task = neighbour->task;
        instance.cell.profile = neighbour->profile;
        instance.cell.batch = neighbour->batch;
        instance.cell.procs = 1;
        instance.settings.command = neighbour->model.command;
        add(maker, &instance, number);
    }
    if (experiment->neighbours.count == 0)
        snprintf(maker->instances->impossible, sizeof maker->instances->impossible,
                 "mode neighbours without `neighbours:` in the experiment");
}

/* `procs` slices with an equal part of the slice each. */
static void add_percentage(struct maker *maker)
{
    int procs = maker->cell->procs;
    struct group_instance instance = maker->base;
    instance.cell.procs = 1;
    instance.settings.longest_ns = instance.settings.duration_ns;
    instance.settings.min_steps = 1;
    instance.settings.cpu_full_slice /= procs;
    instance.mps_percentage = on_gpu(maker) ? (100 + procs - 1) / procs : 0;
    for (int i = 0; i < procs && i < GROUP_INSTANCES_MAX; i++)
        add(maker, &instance, 0);
}

static void add_training(struct maker *maker)
{
    struct group_instance instance = maker->base;
    add(maker, &maker->base, 0);
    instance.background = true;
    instance.cell.task = TASK_TRAINING;
    instance.cell.procs = 1;
    add(maker, &instance, 1);
}

static void add_companion(struct maker *maker)
{
    maker->instances->companion = maker->base.cell;
    maker->instances->companion.task = TASK_TRAINING;
    maker->instances->companion.procs = 1;
    maker->base.settings.companion = &maker->instances->companion;
    add(maker, &maker->base, 0);
}

static void add_compute_instances(struct maker *maker)
{
    if (on_gpu(maker)) { /* `devices` has the UUIDs of the compute instances */
        add_busy(maker);
        return;
    }
    add(maker, &maker->base, 0);
    snprintf(maker->instances->impossible, sizeof maker->instances->impossible,
             "compute instances have no counterpart on CPU slices");
}

void cell_instances_make(struct experiment *experiment, const struct experiment_cell *cell,
                         struct cell_instances *ret_instances)
{
    const struct experiment_model *model = &experiment->models.data[cell->model];
    struct maker maker = {.experiment = experiment, .cell = cell, .instances = ret_instances};
    *ret_instances = (struct cell_instances){0};
    maker.base = (struct group_instance){
        .cell = {.name = model->name,
                 .model = experiment_cell_model(experiment, cell),
                 .task = cell->task,
                 .board = experiment->board,
                 .profile = cell->profile,
                 .batch = cell->batch,
                 .procs = cell->procs,
                 .shapes = model->shapes},
        .settings = experiment->settings,
        .load = cell->load,
        .timeout_ns = REQUEST_TIMEOUT_NS,
    };
    maker.base.settings.command = model->command;
    switch (cell->mode) {
    case SHARING_BUSY:
        add_busy(&maker);
        return;
    case SHARING_NEIGHBOURS:
        add_neighbours(&maker);
        return;
    case SHARING_MPS_PERCENTAGE:
        add_percentage(&maker);
        return;
    case SHARING_TRAINING_BESIDE:
        add_training(&maker);
        return;
    case SHARING_TRAINING_WITHIN:
        add_companion(&maker);
        return;
    case SHARING_COMPUTE_INSTANCES:
        add_compute_instances(&maker);
        return;
    case SHARING_WHOLE:
    case SHARING_ALONE:
    case SHARING_MPS:
    case SHARING_TIME_SLICING:
    case SHARING_MODE_COUNT:
        break;
    }
    add(&maker, &maker.base, 0);
}
