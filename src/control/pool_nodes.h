/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GpuPool a node belongs to. Selectors of several pools may meet on a node; each node is
 * one pool's all the same, since a pool takes what is not in its plan for something to delete.
 * On GpuPool objects as the API server has them, so that one whose spec cannot be read keeps
 * its nodes too. Pure.
 */
#ifndef TRANCHE_CONTROL_POOL_NODES_H
#define TRANCHE_CONTROL_POOL_NODES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the pool's spec.nodeSelector selects the node; without one it selects every node. */
bool pool_selects(const json_t *pool, const json_t *node);
/* Of GpuPools, the one that a node belongs to, or NULL: of those that select it the first by
 * creationTimestamp, then by name; borrowed. */
const json_t *pool_of_node(const json_t *const *pools, size_t count, const json_t *node);

#endif
