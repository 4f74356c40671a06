/* SPDX-License-Identifier: Apache-2.0
 *
 * Services go first and pools second, each with time for the controller: with a service gone
 * it drains the pods, with a pool gone it plans no more. The rest is its own writing.
 */
#include "control/clean_up.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "control/kinds.h"
#include "control/object.h"
#include "control/resources.h"

enum { ATTEMPTS = 5 };
static const int64_t LOOK_NS = INT64_C(500000000);

static const struct kube_kind *const kinds[] = {
    &KIND_GPU_SERVICE,    &KIND_GPU_POOL,     &KIND_TRANSITION,
    &KIND_PARTITION_PLAN, &KIND_PERF_PROFILE, &KIND_NODE_GPU_STATE,
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds, WAITED_KINDS = 2 };

void clean_up_report_done(struct clean_up_report *report)
{
    vec_done(&report->left);
    arena_done(&report->arena);
}

/* The objects of a kind; an empty list where it is not installed. */
static int list(const struct clean_up_options *options, const struct kube_kind *kind,
                json_t **ret_items, struct error *err)
{
    struct kube_call call = {.verb = KUBE_LIST, .target = {.kind = kind}};
    struct kube_answer answer = {0};
    int rc = kube_client_call(options->client, &call, &answer, err);
    bool missing = answer.status == 404;

    if (rc == 0)
        *ret_items = json_incref(json_object_get(answer.json, "items"));
    else if (missing)
        *ret_items = json_array();
    kube_answer_done(&answer);
    return missing ? 0 : rc;
}

static struct kube_target target_of(const struct kube_kind *kind, const json_t *object)
{
    return (struct kube_target){
        .kind = kind,
        .namespace = kind->namespaced ? kube_metadata(object, "namespace") : NULL,
        .name = kube_metadata(object, "name")};
}

static int delete_one(const struct clean_up_options *options, const struct kube_kind *kind,
                      const json_t *object, struct error *err)
{
    struct kube_call call = {.verb = KUBE_DELETE,
                             .target = target_of(kind, object),
                             .uid = kube_metadata(object, "uid"),
                             .propagation = KUBE_BACKGROUND};
    int rc = kube_client_call(options->client, &call, NULL, err);

    return rc == -E_NOT_FOUND || rc == -E_CONFLICT ? 0 : rc;
}

static int delete_all(const struct clean_up_options *options, const struct kube_kind *kind,
                      struct clean_up_report *report, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *items = NULL;
    int rc = list(options, kind, &items, err);

    for (size_t i = 0; rc == 0 && i < json_array_size(items); i++) {
        const json_t *object = json_array_get(items, i);
        rc = delete_one(options, kind, object, err);
        report->deleted += rc == 0;
    }
    return rc;
}

/* Until none is left, or until the time is over. */
static int wait_for_none(const struct clean_up_options *options, const struct kube_kind *kind,
                         int64_t until_ns, struct error *err)
{
    struct kube_loop *loop = kube_client_loop(options->client);

    for (;;) {
        json_t *items = NULL;
        int rc = list(options, kind, &items, err);
        size_t count = json_array_size(items);
        json_decref(items);
        if (rc < 0 || count == 0)
            return rc;
        int64_t look_ns = kube_loop_now_ns(loop) + LOOK_NS;
        while (kube_loop_now_ns(loop) < look_ns) {
            if (kube_loop_now_ns(loop) >= until_ns)
                return 0;
            rc = kube_loop_turn(loop, LOOK_NS, err);
            if (rc < 0)
                return rc;
        }
    }
}

static int release_one(const struct clean_up_options *options, const struct kube_kind *kind,
                       const json_t *object, struct error *err)
{
    CLEANUP(json_decref_ptr)
    json_t *patch = json_pack("{s:{s:s, s:o}}", "metadata", "resourceVersion",
                              kube_metadata(object, "resourceVersion"), "finalizers",
                              object_finalizers(object, false));
    struct kube_call call = {
        .verb = KUBE_MERGE_PATCH, .target = target_of(kind, object), .body = patch};
    int rc = kube_client_call(options->client, &call, NULL, err);

    return rc == -E_NOT_FOUND || rc == -E_CONFLICT ? 0 : rc;
}

/* What a finalizer holds. Without one an object that is there was made anew meanwhile, as
 * agents do that still run; it hangs on nobody. */
static void add_left(const struct kube_kind *kind, const json_t *object,
                     struct clean_up_report *report)
{
    const char *namespace = kube_metadata(object, "namespace");
    CLEANUP(json_decref_ptr) json_t *others = object_finalizers(object, false);
    const char *holder = json_string_value(json_array_get(others, 0));
    struct object_meta meta;

    object_meta_read(object, &meta);
    if (!holder && !meta.has_finalizer)
        return;
    vec_add(&report->left,
            arena_printf(&report->arena, "%s %s%s%s: %s%s", kind->kind, namespace,
                         *namespace ? "/" : "", kube_metadata(object, "name"),
                         holder ? "held by finalizer " : "not gone yet", holder ? holder : ""));
}

/* Takes our finalizer off what is left. Somebody may write meanwhile, or make new objects, so
 * it looks several times. */
static int release_all(const struct clean_up_options *options, const struct kube_kind *kind,
                       struct clean_up_report *report, struct error *err)
{
    for (int attempt = 0;; attempt++) {
        CLEANUP(json_decref_ptr) json_t *items = NULL;
        int rc = list(options, kind, &items, err);
        bool again = false;
        for (size_t i = 0; rc == 0 && i < json_array_size(items); i++) {
            const json_t *object = json_array_get(items, i);
            struct object_meta meta;
            object_meta_read(object, &meta);
            if (!meta.deleting)
                rc = delete_one(options, kind, object, err);
            if (rc == 0 && meta.has_finalizer) {
                rc = release_one(options, kind, object, err);
                report->released += rc == 0;
            }
            again |= !meta.deleting || meta.has_finalizer;
        }
        if (rc < 0)
            return rc;
        if (again && attempt < ATTEMPTS)
            continue;
        for (size_t i = 0; i < json_array_size(items); i++)
            add_left(kind, json_array_get(items, i), report);
        return 0;
    }
}

int clean_up_run(const struct clean_up_options *options, struct clean_up_report *ret_report,
                 struct error *err)
{
    int64_t until_ns = kube_loop_now_ns(kube_client_loop(options->client)) + options->wait_ns;
    int rc = 0;

    assert(options->wait_ns >= 0);
    *ret_report = (struct clean_up_report){0};
    for (size_t i = 0; rc == 0 && i < KIND_COUNT; i++) {
        rc = delete_all(options, kinds[i], ret_report, err);
        if (rc == 0 && i < WAITED_KINDS)
            rc = wait_for_none(options, kinds[i], until_ns, err);
    }
    for (size_t i = 0; rc == 0 && i < KIND_COUNT; i++)
        rc = release_all(options, kinds[i], ret_report, err);
    if (rc < 0)
        clean_up_report_done(ret_report);
    return rc;
}
