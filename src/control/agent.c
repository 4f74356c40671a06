/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent's loop; see agent.h. Everything is decided in look(), which is called when
 * anything happened and may be called at any time.
 */
#include "control/agent.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "control/actuator_internal.h"
#include "control/agent_status.h"
#include "control/agent_worker.h"
#include "kube/cache.h"

#define SECOND_NS INT64_C(1000000000)

enum { BACKOFF_DOUBLINGS = 5, WAIT_SECONDS = 2, LAG_SECONDS = 30 };

/* One kind of call to the API server, of which one at a time is under way. */
struct call_slot {
    uint64_t number; /* 0: none */
    int failures;    /* in a row */
    int64_t not_before_ns;
};

struct agent {
    struct agent_options options;
    struct kube_loop *loop;
    struct kube_cache *states, *nodes, *slices;
    struct agent_worker *worker;
    struct kube_timer timer;

    long long epoch;          /* the highest seen */
    struct agent_order order; /* the last one given, for the resources; owned */
    long long order_generation;
    bool order_given, order_change;
    struct agent_findings findings; /* the last ones */
    bool has_findings, followed;
    long long findings_generation; /* of the spec last followed; 0: none */
    bool has_no_slices;            /* the server said once that it does not serve them */
    int failures;                  /* of orders, in a row */
    int64_t due_ns;
    int64_t tell_missing_ns; /* not before then again */

    struct call_slot create, status, resources;
    json_t *sent;     /* the status as written last; NULL: none */
    json_t *answered; /* … as the server has it since; NULL: not known */
    /* Of the objects in the caches when they were written last: a watch may lag. */
    char *status_base, *resources_base;
    json_t *resources_sent; /* the patch; NULL: none */
    int64_t resources_ns;   /* when that was */
    char *reason;           /* of the last event */
    struct {
        unsigned long orders, changes, status_writes, resource_writes, refused;
    } counts;
};

/* What the objects say at the moment. */
struct view {
    const json_t *object, *node;
    struct arena arena;
    struct node_gpu_state state;
    enum agent_refusal refusal;
    struct str why;
};

static void look(struct agent *agent);

static int64_t now_ns(const struct agent *agent)
{
    return kube_loop_now_ns(agent->loop);
}

static void look_again_at(struct agent *agent, int64_t at_ns)
{
    if (!agent->timer.loop || at_ns < agent->timer.due_ns)
        kube_timer_set(&agent->timer, agent->loop, at_ns);
}

static void refuse(struct view *view, enum agent_refusal refusal, const char *why)
{
    view->refusal = refusal;
    str_clear(&view->why);
    str_add(&view->why, why);
}

/* --- reading the cluster --- */

static const char *foreign_owner(const struct agent *agent, const json_t *node)
{
    size_t position = 0;

    if (*object_label(node, LABEL_MIG_CONFIG))
        return "the node has the label " LABEL_MIG_CONFIG ": mig-manager drives its MIG state";
    for (const json_t *slice; (slice = kube_cache_next(agent->slices, &position));) {
        const json_t *spec = json_object_get(slice, "spec"), *device;
        size_t i;
        if (strcmp(json_text(spec, "driver"), DRA_DRIVER) != 0)
            continue;
        json_array_foreach(json_object_get(spec, "devices"), i, device)
        {
            if (device_is_partition(device))
                return "the DRA driver " DRA_DRIVER " publishes partitions of the node's GPUs "
                       "(DynamicMIG)";
        }
    }
    return NULL;
}

static void read_view(struct agent *agent, struct view *view)
{
    struct error err;
    const char *name = agent->options.node_name;

    *view = (struct view){.object = kube_cache_get(agent->states, name),
                          .node = kube_cache_get(agent->nodes, name),
                          .why = STR_EMPTY};
    view->state.observed_epoch = -1;
    if (view->object && node_gpu_state_read(view->object, &view->arena, &view->state, &err)) {
        refuse(view, AGENT_REFUSES_SPEC, err.text);
        view->state.desired.count = 0;
    }
    /* The status outlives the process: a new agent learns from it what the last had seen. */
    if (view->state.observed_epoch > agent->epoch)
        agent->epoch = view->state.observed_epoch;
    /* Fencing: a controller that has lost the lease unknowingly writes an older epoch. */
    if (!view->refusal && view->object && view->state.epoch < agent->epoch) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        str_addf(&text, "epoch %lld is over: %lld was seen", view->state.epoch, agent->epoch);
        refuse(view, AGENT_REFUSES_EPOCH, text.bytes);
    }
    const char *owner = foreign_owner(agent, view->node);
    if (owner)
        refuse(view, AGENT_REFUSES_OWNER, owner);
}

static void view_done(struct view *view)
{
    arena_done(&view->arena);
    str_done(&view->why);
}

/* Whether all that decides is known. The slices of a server without DRA never are: its error
 * will do, and is remembered, as any other may follow it while the server restarts. */
static bool is_informed(struct agent *agent)
{
    const struct kube_watch *slices = kube_cache_watch(agent->slices);
    enum error_code code = kube_watch_error(slices)->code;

    agent->has_no_slices = !kube_watch_is_synced(slices) &&
                           (agent->has_no_slices || code == E_NOT_FOUND || code == E_USAGE);
    return kube_watch_is_synced(kube_cache_watch(agent->states)) &&
           kube_watch_is_synced(kube_cache_watch(agent->nodes)) &&
           (kube_watch_is_synced(slices) || agent->has_no_slices);
}

/* --- events --- */

static void emit(struct agent *agent, const struct view *view, const char *reason,
                 const char *note)
{
    static const char *const quiet[] = {"AsOrdered", "InUse", "Starting"};
    bool warning = true;

    if (agent->reason && !strcmp(agent->reason, reason))
        return;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        warning = warning && strcmp(reason, quiet[i]) != 0;
    log_write(warning ? LOG_WARN : LOG_INFO, reason, "node=%s message=\"%s\"",
              agent->options.node_name, note);
    if (agent->options.events && view->object && warning)
        kube_events_emit(agent->options.events, &(struct kube_event){
                                                    .kind = &KIND_NODE_GPU_STATE,
                                                    .object = view->object,
                                                    .warning = true,
                                                    .reason = reason,
                                                    .action = "SyncNode",
                                                    .note = note,
                                                });
    free(agent->reason);
    agent->reason = xstrdup(reason);
}

/* --- writing --- */

static bool may_call(struct agent *agent, const struct call_slot *slot)
{
    if (slot->number)
        return false;
    if (slot->not_before_ns > now_ns(agent)) {
        look_again_at(agent, slot->not_before_ns);
        return false;
    }
    return true;
}

/* The end of a call: whether it went well. */
static bool call_done(struct agent *agent, struct call_slot *slot, const char *what,
                      const struct kube_answer *answer)
{
    slot->number = 0;
    if (answer->error.code == E_NONE) {
        slot->failures = 0;
        return true;
    }
    log_write(LOG_WARN, what, "node=%s error=\"%s\"", agent->options.node_name,
              answer->error.text);
    int doublings = slot->failures < BACKOFF_DOUBLINGS ? slot->failures : BACKOFF_DOUBLINGS;
    slot->not_before_ns = now_ns(agent) + (SECOND_NS << doublings);
    slot->failures++;
    look_again_at(agent, slot->not_before_ns);
    return false;
}

static struct kube_target own_target(const struct agent *agent, const char *subresource)
{
    return (struct kube_target){&KIND_NODE_GPU_STATE, NULL, agent->options.node_name,
                                subresource};
}

static json_t *own_object(const struct agent *agent)
{
    return json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", CONTROL_GROUP "/" CONTROL_VERSION,
                     "kind", "NodeGpuState", "metadata", "name", agent->options.node_name);
}

static void created(void *context, const struct kube_answer *answer)
{
    struct agent *agent = context;

    /* Somebody else was faster: just as good. */
    if (answer->error.code == E_CONFLICT)
        agent->create.number = 0;
    else
        call_done(agent, &agent->create, "cannot make the NodeGpuState", answer);
}

/* The object that the controller finds the node's GPUs in. */
static void create_object(struct agent *agent)
{
    CLEANUP(json_decref_ptr) json_t *body = own_object(agent);

    if (!may_call(agent, &agent->create))
        return;
    json_object_set_new(body, "spec", json_object());
    struct kube_call call = {
        .verb = KUBE_CREATE, .target = own_target(agent, NULL), .body = body};
    call.target.name = NULL;
    agent->create.number = kube_client_start(agent->options.client, &call, created, agent);
}

static bool is_version(const json_t *object, const char *version)
{
    return version && !strcmp(kube_metadata(object, "resourceVersion"), version);
}

static void set_version(char **version, const json_t *object)
{
    free(*version);
    *version = xstrdup(kube_metadata(object, "resourceVersion"));
}

static void forget_sent(struct agent *agent)
{
    json_decref(agent->sent);
    json_decref(agent->answered);
    agent->sent = agent->answered = NULL;
}

static void status_written(void *context, const struct kube_answer *answer)
{
    struct agent *agent = context;

    if (call_done(agent, &agent->status, "cannot write the status", answer)) {
        agent->counts.status_writes++;
        json_decref(agent->answered);
        agent->answered = json_incref(json_object_get(answer->json, "status"));
    } else {
        forget_sent(agent);
    }
    look(agent);
}

static json_t *make_status(struct agent *agent, const struct view *view)
{
    struct agent_view said = {
        .object = view->object,
        .findings = agent->has_findings ? &agent->findings : NULL,
        .followed = agent->followed,
        .generation = agent->findings_generation,
        .epoch = agent->epoch,
        .refusal = view->refusal,
        .why = view->why.bytes,
        .agent_version = agent->options.version,
        .now_s = time(NULL),
    };

    if (view->refusal)
        said.generation = view->state.meta.generation;
    emit(agent, view, agent_status_reason(&said),
         view->refusal ? view->why.bytes
                       : (agent->has_findings ? agent->findings.message.bytes : ""));
    return agent_status_make(&said);
}

/* Conditions keep the time of their last change, so what was sent is their base. */
static void write_status(struct agent *agent, struct view *view)
{
    CLEANUP(json_decref_ptr) json_t *object = json_copy((json_t *)(uintptr_t)view->object);

    if (!may_call(agent, &agent->status))
        return;
    if (agent->sent)
        json_object_set(object, "status", agent->sent);
    struct view based = *view;
    based.object = object;
    CLEANUP(json_decref_ptr) json_t *status = make_status(agent, &based);
    if (agent_status_equal(status, json_object_get(object, "status")))
        return;
    CLEANUP(json_decref_ptr) json_t *body = own_object(agent);
    json_object_set(body, "status", status);
    struct kube_call call = {.verb = KUBE_APPLY,
                             .target = own_target(agent, "status"),
                             .body = body,
                             .field_manager = MANAGER_AGENT,
                             .force = true};
    forget_sent(agent);
    agent->sent = json_incref(status);
    set_version(&agent->status_base, view->object);
    agent->status.number =
        kube_client_start(agent->options.client, &call, status_written, agent);
}

static void resources_written(void *context, const struct kube_answer *answer)
{
    struct agent *agent = context;

    if (call_done(agent, &agent->resources, "cannot publish the extended resources", answer)) {
        agent->counts.resource_writes++;
        agent->resources_ns = now_ns(agent);
    } else {
        free(STEAL(agent->resources_base));
    }
}

static void write_resources(struct agent *agent, const struct view *view)
{
    bool known = agent->has_findings && agent->findings.outcome != AGENT_NO_DRIVER &&
                 agent->order_change && agent->findings_generation == agent->order_generation;

    /* A stale Node would be told again what it says already. */
    if (!view->node || !known || view->refusal ||
        !kube_watch_is_fresh(kube_cache_watch(agent->nodes)))
        return;
    CLEANUP(json_decref_ptr)
    json_t *patch = agent_resources_patch(view->node, &agent->order, &agent->findings);
    if (!patch || !may_call(agent, &agent->resources))
        return;
    /* The watch is to bring what was written; until then the cache asks for it again. */
    int64_t patience_ns = agent->resources_ns + LAG_SECONDS * SECOND_NS;
    if (is_version(view->node, agent->resources_base) &&
        json_equal(patch, agent->resources_sent) && now_ns(agent) < patience_ns) {
        look_again_at(agent, patience_ns);
        return;
    }
    set_version(&agent->resources_base, view->node);
    json_decref(agent->resources_sent);
    agent->resources_sent = json_incref(patch);
    struct kube_call call = {
        .verb = KUBE_MERGE_PATCH,
        .target = {&KUBE_NODE, NULL, agent->options.node_name, "status"},
        .body = patch,
        .field_manager = MANAGER_AGENT,
    };
    agent->resources.number =
        kube_client_start(agent->options.client, &call, resources_written, agent);
}

/* --- orders --- */

/* A leader's term counts from when it stands in the status: then no restart forgets it. */
static bool epoch_is_kept(const struct view *view)
{
    return view->object && view->state.observed_epoch >= view->state.epoch;
}

static void give_order(struct agent *agent, const struct view *view)
{
    bool change = !view->refusal && epoch_is_kept(view);
    long long generation = view->state.meta.generation;
    bool fresh = !agent->order_given || agent->order_generation != generation ||
                 agent->order_change != change;
    struct agent_order order;

    if (agent_worker_is_busy(agent->worker))
        return;
    /* The epoch is being written down; only the very first look does not wait for that. */
    if (!view->refusal && view->object && !change && agent->has_findings)
        return;
    if (!fresh && now_ns(agent) < agent->due_ns) {
        look_again_at(agent, agent->due_ns);
        return;
    }
    if (fresh)
        agent->failures = 0;
    agent_order_done(&agent->order);
    agent_order_set(&agent->order, change, view->state.desired.data, view->state.desired.count);
    agent_order_set(&order, change, view->state.desired.data, view->state.desired.count);
    agent->order_given = true;
    agent->order_change = change;
    agent->order_generation = generation;
    agent->due_ns = INT64_MAX;
    agent->counts.orders++;
    agent->counts.refused += view->refusal != AGENT_FOLLOWS;
    agent_worker_give(agent->worker, &order);
}

/* When to look at the GPUs again: soon when something is missing. */
static int64_t next_look_ns(struct agent *agent)
{
    int64_t interval = agent->options.interval_ns;
    int64_t wait = interval;
    enum agent_outcome outcome = agent->findings.outcome;

    if (outcome == AGENT_SYNCED) {
        agent->failures = 0;
    } else if (outcome == AGENT_WAITING) {
        wait = WAIT_SECONDS * SECOND_NS;
    } else {
        int doublings =
            agent->failures < BACKOFF_DOUBLINGS ? agent->failures : BACKOFF_DOUBLINGS;
        wait = SECOND_NS << doublings;
        agent->failures++;
    }
    return now_ns(agent) + (wait < interval ? wait : interval);
}

/* Somebody else wrote our status: say it again. */
static void check_answered(struct agent *agent)
{
    const json_t *object = kube_cache_get(agent->states, agent->options.node_name);

    if (object && agent->answered && !agent->status.number &&
        kube_watch_is_fresh(kube_cache_watch(agent->states)) &&
        !is_version(object, agent->status_base) &&
        !json_equal(agent->answered, json_object_get(object, "status")))
        forget_sent(agent);
}

static void worker_ready(void *context)
{
    struct agent *agent = context;
    struct agent_findings findings;

    if (!agent_worker_take(agent->worker, &findings))
        return;
    agent_findings_done(&agent->findings);
    agent->findings = findings;
    agent->has_findings = true;
    agent->followed = agent->order_change;
    if (agent->followed)
        agent->findings_generation = agent->order_generation;
    agent->counts.changes += findings.changes;
    agent->due_ns = next_look_ns(agent);
    check_answered(agent);
    look(agent);
}

/* --- the loop --- */

/* As the controller's: see kinds.h. */
static void tell_missing(struct agent *agent)
{
    if (kube_watch_error(kube_cache_watch(agent->states))->code != E_NOT_FOUND ||
        now_ns(agent) < agent->tell_missing_ns)
        return;
    log_write(LOG_WARN, MISSING_DEFINITIONS, "node=%s kinds=NodeGpuState",
              agent->options.node_name);
    agent->tell_missing_ns = now_ns(agent) + MISSING_AGAIN_NS;
}

static void look(struct agent *agent)
{
    struct view view;

    tell_missing(agent);
    /* Watches fail without a word to us: look from time to time until all is known. */
    if (!is_informed(agent)) {
        look_again_at(agent, now_ns(agent) + SECOND_NS);
        return;
    }
    read_view(agent, &view);
    if (!view.object)
        create_object(agent);
    if (!view.refusal && view.object && view.state.epoch > agent->epoch)
        agent->epoch = view.state.epoch; /* written below, followed once it is read back */
    give_order(agent, &view);
    if (view.object)
        write_status(agent, &view);
    write_resources(agent, &view);
    view_done(&view);
}

static void on_timer(void *context)
{
    look(context);
}

static void on_changed(void *context, const char *key, const json_t *before,
                       const json_t *after)
{
    struct agent *agent = context;

    (void)key;
    (void)before;
    /* Gone: what was written into it is gone too. */
    if (!after)
        forget_sent(agent);
    look(agent);
}

static void on_other_changed(void *context, const char *key, const json_t *before,
                             const json_t *after)
{
    (void)key;
    (void)before;
    (void)after;
    look(context);
}

static void on_synced(void *context)
{
    look(context);
}

static struct kube_cache *
watch(struct agent *agent, const struct kube_kind *kind, const char *selector,
      void (*changed)(void *, const char *, const json_t *, const json_t *))
{
    const struct kube_watch_options options = {.client = agent->options.client,
                                               .target = {kind, NULL, NULL, NULL},
                                               .field_selector = selector,
                                               .seed = agent->options.seed};
    const struct kube_cache_handler handler = {
        .changed = changed, .synced = on_synced, .context = agent};

    return kube_cache_new(&options, &handler);
}

int agent_new(const struct agent_options *options, struct agent **ret_agent, struct error *err)
{
    struct agent *agent = xcalloc(1, sizeof *agent);
    CLEANUP(str_done) struct str by_name = STR_EMPTY, by_node = STR_EMPTY;

    assert(options->client && options->node_name && options->version);
    agent->options = *options;
    if (!agent->options.interval_ns)
        agent->options.interval_ns = 30 * SECOND_NS;
    agent->loop = kube_client_loop(options->client);
    agent->epoch = -1;
    agent->findings.message = STR_EMPTY;
    agent->timer = (struct kube_timer){.fire = on_timer, .context = agent};
    int r = agent_worker_new(&options->gpus, &agent->worker, err);
    if (r) {
        free(agent);
        return r;
    }
    str_addf(&by_name, "metadata.name=%s", options->node_name);
    str_addf(&by_node, "spec.nodeName=%s", options->node_name);
    agent->states = watch(agent, &KIND_NODE_GPU_STATE, by_name.bytes, on_changed);
    agent->nodes = watch(agent, &KUBE_NODE, by_name.bytes, on_other_changed);
    agent->slices = watch(agent, &KIND_RESOURCE_SLICE, by_node.bytes, on_other_changed);
    kube_loop_add_descriptor(agent->loop,
                             &(struct kube_descriptor){agent_worker_descriptor(agent->worker),
                                                       POLLIN, worker_ready, agent});
    kube_timer_set(&agent->timer, agent->loop, now_ns(agent) + SECOND_NS);
    *ret_agent = agent;
    return 0;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    const struct call_slot *slots[] = {&agent->create, &agent->status, &agent->resources};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
        if (slots[i]->number)
            kube_client_cancel(agent->options.client, slots[i]->number);
    kube_timer_stop(&agent->timer);
    kube_loop_remove_descriptor(agent->loop, agent_worker_descriptor(agent->worker));
    kube_cache_free(agent->slices);
    kube_cache_free(agent->nodes);
    kube_cache_free(agent->states);
    agent_worker_free(agent->worker);
    agent_order_done(&agent->order);
    agent_findings_done(&agent->findings);
    forget_sent(agent);
    free(agent->status_base);
    free(agent->resources_base);
    json_decref(agent->resources_sent);
    free(agent->reason);
    free(agent);
}

/* --- for others --- */

static void add_metric(struct str *text, const char *name, const char *type, const char *help,
                       double value)
{
    str_addf(text, "# HELP tranche_agent_%s %s\n# TYPE tranche_agent_%s %s\ntranche_agent_%s ",
             name, help, name, type, name);
    str_add_number(text, value);
    str_add_char(text, '\n');
}

void agent_metrics(struct agent *agent, struct str *text)
{
    const struct agent_findings *findings = &agent->findings;
    size_t instances = 0, ready = 0;

    for (size_t i = 0; i < findings->count; i++) {
        instances += findings->gpus[i].instances.count;
        for (size_t j = 0; j < findings->gpus[i].instances.count; j++)
            ready += findings->gpus[i].instances.data[j].ready;
    }
    add_metric(text, "gpus", "gauge", "GPUs that can be read", (double)findings->count);
    add_metric(text, "gpus_lost", "gauge", "GPUs that cannot be read any more",
               (double)findings->lost);
    add_metric(text, "instances", "gauge", "GPU instances found", (double)instances);
    add_metric(text, "instances_ready", "gauge", "GPU instances with a device to use",
               (double)ready);
    add_metric(text, "synced", "gauge", "1 when the GPUs are as the spec wants",
               agent->has_findings && findings->outcome == AGENT_SYNCED && agent->order_change);
    add_metric(text, "epoch", "gauge", "highest epoch of a controller seen",
               (double)agent->epoch);
    add_metric(text, "looks_total", "counter", "times that the GPUs were read",
               (double)agent->counts.orders);
    add_metric(text, "refusals_total", "counter", "looks at which the spec was refused",
               (double)agent->counts.refused);
    add_metric(text, "changes_total", "counter", "changes of one GPU's layout",
               (double)agent->counts.changes);
    add_metric(text, "status_writes_total", "counter", "writes of the status",
               (double)agent->counts.status_writes);
    add_metric(text, "resource_writes_total", "counter", "writes of extended resources",
               (double)agent->counts.resource_writes);
}

bool agent_is_ready(struct agent *agent, struct str *why)
{
    if (!is_informed(agent))
        str_add(why, "the API server has not been read yet");
    else if (!agent->has_findings)
        str_add(why, "the GPUs have not been read yet");
    else if (agent->findings.outcome == AGENT_NO_DRIVER)
        str_add(why, agent->findings.message.bytes);
    else
        return true;
    return false;
}
