/* SPDX-License-Identifier: Apache-2.0
 *
 * One cell of an experiment as slices at work together. Private to this folder.
 */
#ifndef TRANCHE_LOAD_EXPERIMENT_CELL_H
#define TRANCHE_LOAD_EXPERIMENT_CELL_H

#include "load/experiment.h"
#include "load/instance_group.h"

struct cell_instances {
    struct group_instance list[GROUP_INSTANCES_MAX];
    size_t count;
    struct measure_cell companion; /* training within the slice */
    char impossible[256];          /* why this cell cannot be run here; "" */
};

/* The instances that the cell's sharing mode asks for, in *ret_instances, which must not
 * move afterwards. */
void cell_instances_make(struct experiment *experiment, const struct experiment_cell *cell,
                         struct cell_instances *ret_instances);

#endif
