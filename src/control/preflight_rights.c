/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights that the controller needs (deploy/chart grants just these), and the question for
 * each of them: a SelfSubjectAccessReview, all of them at once.
 */
#include "control/preflight_rights.h"

#include <assert.h>
#include <string.h>

#include "control/kinds.h"

static const struct kube_kind KIND_REVIEW = {
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false};

enum scope { EVERYWHERE, OWN_NAMESPACE };

/* Lists by commas. */
static const struct right_row {
    const char *group, *resources, *verbs;
    enum right_purpose purpose;
    enum scope scope;
    bool is_lease; /* of the Lease's name */
} right_table[] = {
    {CONTROL_GROUP, "gpuservices,gpupools,perfprofiles", "get,list,watch,patch,delete"},
    {CONTROL_GROUP, "partitionplans,transitions,nodegpustates",
     "get,list,watch,create,patch,delete"},
    {CONTROL_GROUP,
     "gpuservices/status,gpupools/status,perfprofiles/status,partitionplans/status,"
     "transitions/status,nodegpustates/status",
     "get,patch"},
    {CONTROL_GROUP,
     "gpuservices/finalizers,gpupools/finalizers,partitionplans/finalizers,"
     "transitions/finalizers",
     "update"},
    {"", "pods", "get,list,watch,create,patch,delete"},
    {"", "pods/status", "patch"},
    {"", "nodes", "get,list,watch"},
    {"", "services", "get,list,watch,create,patch,delete"},
    {"discovery.k8s.io", "endpointslices", "get,list,watch,create,patch,delete"},
    {"events.k8s.io", "events", "create,patch"},
    {"coordination.k8s.io", "leases", "create", RIGHT_ALWAYS, OWN_NAMESPACE},
    {"coordination.k8s.io", "leases", "get,patch", RIGHT_ALWAYS, OWN_NAMESPACE, true},
    {"resource.k8s.io", "resourceslices,deviceclasses", "get,list,watch", RIGHT_DRA},
    {"resource.k8s.io", "resourceclaims", "get,list,watch,create,patch,delete", RIGHT_DRA},
    {"resource.k8s.io", "resourceclaims/status,resourceclaims/binding", "patch,update",
     RIGHT_DRA},
    {"", "nodes", "patch", RIGHT_MIG_MANAGER},
    {"gateway.networking.k8s.io", "httproutes", "get,list,watch,create,patch,delete",
     RIGHT_GATEWAY},
};

static const char *const purpose_names[RIGHT_PURPOSE_COUNT] = {
    "", "actuator dra", "actuator mig-manager", "Gateway API"};

/* The next name of a list by commas, in the arena; NULL at its end. */
static char *next_name(struct arena *arena, const char **list)
{
    size_t length = strcspn(*list, ",");

    if (length == 0)
        return NULL;
    char *name = arena_strndup(arena, *list, length);
    *list += length + ((*list)[length] == ',');
    return name;
}

static void add_rights(const struct preflight_options *options, const struct right_row *row,
                       bool needed, struct preflight_report *report)
{
    const char *resources = row->resources;
    const char *lease = options->lease ? options->lease : "tranche-controller";
    char *resource;

    while ((resource = next_name(&report->arena, &resources))) {
        const char *verbs = row->verbs;
        char *slash = strchr(resource, '/'), *verb;
        if (slash)
            *slash = '\0';
        while ((verb = next_name(&report->arena, &verbs))) {
            struct preflight_right right = {
                .verb = verb,
                .group = row->group,
                .resource = resource,
                .subresource = slash ? slash + 1 : "",
                .namespace = row->scope == OWN_NAMESPACE
                                 ? arena_strdup(&report->arena, options->namespace)
                                 : "",
                .name = row->is_lease ? arena_strdup(&report->arena, lease) : "",
                .purpose = purpose_names[row->purpose],
                .needed = needed,
            };
            vec_add(&report->rights, right);
        }
    }
}

/* One question under way. */
struct question {
    struct preflight_right *right;
    struct asker *asker;
};

struct asker {
    size_t open;
    struct error error; /* the first */
};

static void answered(void *context, const struct kube_answer *answer)
{
    struct question *question = context;
    const json_t *status = json_object_get(answer->json, "status");

    assert(question->asker->open > 0);
    question->asker->open--;
    if (answer->error.code == E_NONE)
        question->right->allowed = json_is_true(json_object_get(status, "allowed"));
    else if (question->asker->error.code == E_NONE)
        question->asker->error = answer->error;
}

static json_t *review_of(const struct preflight_right *right)
{
    return json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s, s:s}}}", "apiVersion",
                     "authorization.k8s.io/v1", "kind", KIND_REVIEW.kind, "spec",
                     "resourceAttributes", "verb", right->verb, "group", right->group,
                     "resource", right->resource, "subresource", right->subresource,
                     "namespace", right->namespace, "name", right->name);
}

int preflight_ask_rights(const struct preflight_options *options,
                         const bool needs[RIGHT_PURPOSE_COUNT], struct preflight_report *report,
                         struct error *err)
{
    struct asker asker = {0};

    for (size_t i = 0; i < sizeof right_table / sizeof *right_table; i++)
        add_rights(options, &right_table[i], needs[right_table[i].purpose], report);
    struct question *questions =
        arena_alloc(&report->arena, report->rights.count, sizeof *questions);
    for (size_t i = 0; i < report->rights.count; i++) {
        json_t *body = review_of(&report->rights.data[i]);
        struct kube_call call = {
            .verb = KUBE_CREATE, .target = {.kind = &KIND_REVIEW}, .body = body};
        questions[i] = (struct question){&report->rights.data[i], &asker};
        asker.open++;
        kube_client_start(options->client, &call, answered, &questions[i]);
        json_decref(body);
    }
    while (asker.open > 0) {
        int rc = kube_loop_turn(kube_client_loop(options->client), INT64_C(1000000000), err);
        if (rc < 0)
            return rc;
    }
    if (asker.error.code != E_NONE)
        return error_set(err, asker.error.code, "%s", asker.error.text);
    return 0;
}
