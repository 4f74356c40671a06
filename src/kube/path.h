/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of objects and the paths of the API: /api/v1/... for the core group,
 * /apis/GROUP/VERSION/... for others.
 */
#ifndef TRANCHE_KUBE_PATH_H
#define TRANCHE_KUBE_PATH_H

#include <stdbool.h>

#include "base/str.h"

struct kube_kind {
    const char *group; /* "" is the core group */
    const char *version;
    const char *plural; /* "pods" */
    const char *kind;   /* "Pod" */
    bool namespaced;
};

extern const struct kube_kind KUBE_POD, KUBE_NODE, KUBE_LEASE, KUBE_EVENT;

/* An object's or, without name, a collection's path; namespace NULL means all namespaces, or
 * a kind that has none. name and subresource may be NULL. */
struct kube_target {
    const struct kube_kind *kind;
    const char *namespace;
    const char *name;
    const char *subresource;
};

/* Whether an object may have this name: an RFC 1123 subdomain, that is parts of a-z, 0-9 and
 * inner dashes, joined by dots, at most 253 characters. label: one part of at most 63, as a
 * namespace's name. */
bool kube_name_is_valid(const char *name, bool label);

/* Appends the path of an object or a collection, names escaped. */
void kube_path_add(struct str *path, const struct kube_target *target);
/* Appends "?key=value" or "&key=value", escaped; nothing when value is NULL. */
void kube_path_add_query(struct str *path, const char *key, const char *value);
/* "v1", "apps/v1": the field apiVersion; owned by the caller. */
char *kube_api_version(const struct kube_kind *kind);
/* "Pod ns/name", for messages; owned by the caller. */
char *kube_target_text(const struct kube_target *target);

#endif
