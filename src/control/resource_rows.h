/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the reading and writing of Transitions: the object's fields as the table reads
 * them, before they become a struct transition, which has indices where these have names.
 */
#ifndef TRANCHE_CONTROL_RESOURCE_ROWS_H
#define TRANCHE_CONTROL_RESOURCE_ROWS_H

#include "control/resources.h"

struct transition_gpu_row {
    const char *uuid, *node;
    const struct mig_board *board;
};

struct transition_action_row {
    const char *id, *gpu_uuid, *slice, *service;
    enum action_kind kind;
    enum action_group group;
    int start, batch, procs;
    double rate_rps, seconds;
    VEC(const char *) after;
};

struct transition_state_row {
    const char *id;
    struct action_state state;
};

struct transition_rows {
    const char *pool, *from, *to;
    VEC(struct transition_gpu_row) gpus;
    VEC(struct transition_service) services;
    VEC(struct transition_action_row) actions;
    VEC(struct transition_state_row) states;
    long long epoch;
};

#endif
