/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is of NVIDIA's DRA driver in the world, sorted once a round: the slices of each
 * node, our claims by the GPU that they are for, and every claim by the GPU that it holds a
 * part of. Pure; all in the world's arena.
 */
#ifndef TRANCHE_CONTROL_ACTUATOR_DRA_H
#define TRANCHE_CONTROL_ACTUATOR_DRA_H

#include "control/world.h"

/* A partition by its name, gpu-MINOR-mig-PROFILE-PROFILEID-START. */
struct dra_device {
    const char *name, *pool;
    int minor, profile_id, start;
};

/* The spec of a node's ResourceSlice; slices of an old generation of a pool are left out. */
struct dra_slice {
    const char *node;
    const json_t *spec;
};

/* A claim of ours, by the GPU, slice and start that are written on it. */
struct dra_claim {
    const char *gpu, *slice;
    int start;
    const json_t *json;
};

/* A device that is allocated to a claim, of whomever; admin access holds nothing. */
struct dra_taken {
    const char *pool;
    const json_t *claim;
    int minor;
    bool is_whole; /* the GPU itself; device has no more than its name then */
    bool is_ours;
    struct dra_device device;
};

struct dra_index {
    struct dra_slice *slices;
    struct dra_claim *claims;
    struct dra_taken *taken;
    size_t slice_count, claim_count, taken_count;
};

/* Reads a device's name; the name is borrowed. False: it is not that of a partition. */
bool dra_device_read(const char *name, struct dra_device *ret);
/* The first partition that is allocated to a claim; false: none is. */
bool dra_claim_device(const json_t *claim, struct dra_device *ret);

/* world->dra_index, made when it is not there yet. */
const struct dra_index *dra_index_of(struct world *world);
/* The slices of one node; NULL and 0 when it has none. In the world's arena, as all of the
 * index. */
const struct dra_slice *dra_slices_of(const struct dra_index *index, const char *node,
                                      size_t *ret_count);
/* Our claims for one GPU; NULL and 0: none. */
const struct dra_claim *dra_claims_of(const struct dra_index *index, const char *gpu,
                                      size_t *ret_count);
/* What is allocated of the GPU with this minor number in a pool; NULL and 0: nothing. */
const struct dra_taken *dra_taken_of(const struct dra_index *index, const char *pool, int minor,
                                     size_t *ret_count);

#endif
