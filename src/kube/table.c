/* SPDX-License-Identifier: Apache-2.0
 *
 * Removed keys keep their entry until they are the most of them.
 */
#include "kube/table.h"

#include <assert.h>

enum { COMPACT_AT = 64 };

void *kube_table_get(const struct kube_table *table, const char *key)
{
    return map_get(&table->map, key);
}

void kube_table_put(struct kube_table *table, const char *key, void *value)
{
    assert(value);
    if (!map_get(&table->map, key))
        table->live++;
    map_put(&table->map, key, value);
}

static void compact(struct kube_table *table)
{
    struct map kept = {0};

    for (size_t i = 0; i < table->map.count; i++)
        if (table->map.entries[i].value)
            map_put(&kept, table->map.entries[i].key, table->map.entries[i].value);
    map_done(&table->map);
    table->map = kept;
}

void kube_table_remove(struct kube_table *table, const char *key)
{
    if (!map_get(&table->map, key))
        return;
    map_put(&table->map, key, NULL);
    assert(table->live > 0);
    table->live--;
    if (table->map.count >= COMPACT_AT && table->live < table->map.count / 2)
        compact(table);
}

void kube_table_done(struct kube_table *table)
{
    map_done(&table->map);
    table->live = 0;
}
