/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths are escaped byte by byte, so no name can reach out of its segment.
 */
#include "kube/path.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const struct kube_kind KUBE_POD = {"", "v1", "pods", "Pod", true};
const struct kube_kind KUBE_NODE = {"", "v1", "nodes", "Node", false};
const struct kube_kind KUBE_LEASE = {"coordination.k8s.io", "v1", "leases", "Lease", true};
const struct kube_kind KUBE_EVENT = {"events.k8s.io", "v1", "events", "Event", true};

/* RFC 3986: all but unreserved characters. */
static void add_escaped(struct str *path, const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);

    if (!escaped)
        abort(); /* no memory, as base/memory.h has it */
    str_add(path, escaped);
    curl_free(escaped);
}

bool kube_name_is_valid(const char *name, bool label)
{
    static const char alphanumeric[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(name);

    if (length > (label ? 63 : 253))
        return false;
    for (const char *part = name;; part++) {
        size_t here = strcspn(part, ".");
        if (here == 0 || part[0] == '-' || part[here - 1] == '-')
            return false;
        for (size_t i = 0; i < here; i++)
            if (part[i] != '-' && !strchr(alphanumeric, part[i]))
                return false;
        part += here;
        if (*part == '\0')
            return true;
        if (label)
            return false;
    }
}

static void add_segment(struct str *path, const char *segment)
{
    str_add_char(path, '/');
    add_escaped(path, segment);
}

void kube_path_add(struct str *path, const struct kube_target *target)
{
    const struct kube_kind *kind = target->kind;

    assert(kind->namespaced || !target->namespace);
    assert(!kind->namespaced || target->namespace || !target->name);
    assert(!target->name || (*target->name && strcmp(target->name, ".") != 0 &&
                             strcmp(target->name, "..") != 0));
    str_add(path, *kind->group ? "/apis" : "/api");
    if (*kind->group)
        add_segment(path, kind->group);
    add_segment(path, kind->version);
    if (target->namespace) {
        str_add(path, "/namespaces");
        add_segment(path, target->namespace);
    }
    add_segment(path, kind->plural);
    if (target->name)
        add_segment(path, target->name);
    if (target->subresource)
        add_segment(path, target->subresource);
}

void kube_path_add_query(struct str *path, const char *key, const char *value)
{
    if (!value)
        return;
    str_add_char(path, strchr(path->bytes, '?') ? '&' : '?');
    add_escaped(path, key);
    str_add_char(path, '=');
    add_escaped(path, value);
}

char *kube_api_version(const struct kube_kind *kind)
{
    return *kind->group ? xasprintf("%s/%s", kind->group, kind->version)
                        : xstrdup(kind->version);
}

char *kube_target_text(const struct kube_target *target)
{
    return xasprintf("%s %s%s%s%s%s", target->kind->kind,
                     target->namespace ? target->namespace : "", target->namespace ? "/" : "",
                     target->name ? target->name : "(all)", target->subresource ? "/" : "",
                     target->subresource ? target->subresource : "");
}
