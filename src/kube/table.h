/* SPDX-License-Identifier: Apache-2.0
 *
 * A map whose keys also go: base/map with removal. Memory is bounded by what lives.
 */
#ifndef TRANCHE_KUBE_TABLE_H
#define TRANCHE_KUBE_TABLE_H

#include "base/map.h"

/* Entries whose value is NULL are of removed keys: skip them. */
struct kube_table {
    struct map map;
    size_t live;
};

/* The value under key, borrowed as it was put; NULL when there is none. */
void *kube_table_get(const struct kube_table *table, const char *key);
/* Adds or replaces; value is borrowed and not NULL. */
void kube_table_put(struct kube_table *table, const char *key, void *value);
/* Positions of entries may change. A key that is not there is fine. */
void kube_table_remove(struct kube_table *table, const char *key);
/* Frees keys and table, not the values; empty after. */
void kube_table_done(struct kube_table *table);

#endif
