/* SPDX-License-Identifier: Apache-2.0 */
#include "control/pool_nodes.h"

#include <assert.h>
#include <string.h>

#include "control/json_covers.h"
#include "kube/api.h"

bool pool_selects(const json_t *pool, const json_t *node)
{
    const json_t *wanted = json_at(pool, "spec", "nodeSelector", NULL),
                 *labels = json_at(node, "metadata", "labels", NULL);

    return json_object_size(wanted) == 0 || (labels && json_covers(labels, wanted));
}

static bool goes_first(const json_t *pool, const json_t *other)
{
    /* RFC 3339 in UTC, to the second: older ones are less as texts too. */
    int age = strcmp(kube_metadata(pool, "creationTimestamp"),
                     kube_metadata(other, "creationTimestamp"));

    return age ? age < 0
               : strcmp(kube_metadata(pool, "name"), kube_metadata(other, "name")) < 0;
}

const json_t *pool_of_node(const json_t *const *pools, size_t count, const json_t *node)
{
    const json_t *first = NULL;

    assert(pools || count == 0);
    for (size_t i = 0; i < count; i++)
        if (pool_selects(pools[i], node) && (!first || goes_first(pools[i], first)))
            first = pools[i];
    return first;
}
