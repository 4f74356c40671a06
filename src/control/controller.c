/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop's callbacks. A pool is idle, reconciling or executing; pump() moves idle ones on.
 */
#include "control/controller.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"
#include "control/controller_metrics.h"
#include "control/kinds.h"
#include "kube/queue.h"
#include "kube/table.h"

#define MILLISECOND_NS INT64_C(1000000)
#define SECOND_NS      (1000 * MILLISECOND_NS)
#define SEEN_WAIT_NS   SECOND_NS
#define RETRY_NS_MOST  (60 * SECOND_NS)
#define STALE_NS       (60 * SECOND_NS)  /* caches may be stale for that long */
#define REFUSED_NS     (600 * SECOND_NS) /* a refusal is acted on for that long */
#define ONCE_SYNC_NS   (60 * SECOND_NS)

enum { DISCARDS_MAX = 3 };

struct pool {
    struct controller *controller;
    char *name;
    struct execution *execution;
    int64_t began_ns;         /* the last round */
    int64_t not_before_ns;    /* what the server asked for, by Retry-After */
    int64_t again_ns;         /* what the round under way asked for */
    int64_t seen_deadline_ns; /* how long to wait for the caches */
    struct kube_table
        unseen;             /* written objects that no cache has told of: "Kind key version" */
    struct kube_table seen; /* told of while effects are carried out, likewise */
    json_t *refusals;       /* {effect_key(): [why, when]} */
    int discards;           /* in a row */
    bool had_round;         /* of `once` */
    struct reconcile_figures figures;
};

struct controller {
    struct controller_options options;
    struct kube_loop *loop;
    struct sources *sources;
    struct rounds *rounds;
    struct kube_lease *lease; /* NULL: no election */
    struct kube_queue *queue;
    struct kube_table pools;
    struct kube_timer pump;
    uint64_t epoch_call; /* without an election */
    long long epoch;     /* -1: not leading */
    unsigned long moved; /* changes of what was asked for */
    int64_t started_ns;
    bool was_fresh, was_synced;
    int64_t tell_missing_ns; /* not before then again */
    int64_t fresh_ns;        /* when the caches were last fresh, or not yet synced */
    bool runs_for_leader;    /* from the first time that the caches are synced */
    bool stopping, lost;
    struct error failure; /* of `once` */
    struct controller_counters counters;
};

static int64_t now_ns(const struct controller *controller)
{
    return kube_loop_now_ns(controller->loop);
}

static void pump_at(struct controller *controller, int64_t at_ns)
{
    if (controller->pump.loop && controller->pump.due_ns <= at_ns)
        return;
    kube_timer_set(&controller->pump, controller->loop, at_ns);
}

/* ---- pools ---- */

static struct pool *pool_get(struct controller *controller, const char *name)
{
    struct pool *pool = kube_table_get(&controller->pools, name);

    if (pool)
        return pool;
    pool = xcalloc(1, sizeof *pool);
    pool->controller = controller;
    pool->name = xstrdup(name);
    pool->refusals = json_object();
    pool->began_ns = INT64_MIN / 2;
    kube_table_put(&controller->pools, name, pool);
    return pool;
}

static void pool_free(struct pool *pool)
{
    execution_free(pool->execution);
    kube_table_done(&pool->unseen);
    kube_table_done(&pool->seen);
    json_decref(pool->refusals);
    free(pool->name);
    free(pool);
}

static void forget_pool(struct controller *controller, struct pool *pool)
{
    kube_table_remove(&controller->pools, pool->name);
    pool_free(pool);
}

/* When the pool's next round may begin. */
static int64_t earliest_ns(const struct pool *pool)
{
    int64_t at_ns = pool->began_ns + pool->controller->options.round_gap_ns;

    return at_ns > pool->not_before_ns ? at_ns : pool->not_before_ns;
}

/* The pool's next round begins as soon as it may. */
static void want_round(struct controller *controller, const char *name)
{
    const struct controller_options *options = &controller->options;

    if (options->pool && strcmp(options->pool, name) != 0)
        return;
    const struct pool *pool = kube_table_get(&controller->pools, name);
    int64_t now = now_ns(controller), at_ns = now;
    if (pool && earliest_ns(pool) > now)
        at_ns = earliest_ns(pool);
    kube_queue_add_at(controller->queue, name, at_ns);
    pump_at(controller, at_ns);
}

static void want_one(void *context, const char *name)
{
    want_round(context, name);
}

static void want_all(struct controller *controller)
{
    sources_each_pool(controller->sources, want_one, controller);
}

/* ---- what the caches tell ---- */

static void on_changed(void *context, const char *pool)
{
    struct controller *controller = context;

    if (!controller->sources) /* within sources_new() */
        return;
    if (pool)
        want_round(controller, pool);
    else
        want_all(controller);
    pump_at(controller, now_ns(controller));
}

static char *unseen_key(const struct kube_kind *kind, const json_t *object)
{
    return xasprintf("%s %s/%s %s", kind->kind, kube_metadata(object, "namespace"),
                     kube_metadata(object, "name"), kube_metadata(object, "resourceVersion"));
}

/* Whether an object's generation, which its spec's changes count, or its being there changed;
 * of the kinds that say what is wanted. */
static bool is_move(const struct kube_kind *kind, const json_t *before, const json_t *after)
{
    static const struct kube_kind *const kinds[] = {&KIND_GPU_POOL, &KIND_GPU_SERVICE,
                                                    &KIND_PERF_PROFILE, &KIND_PARTITION_PLAN,
                                                    &KIND_TRANSITION};
    bool asks = false;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        asks = asks || kinds[i] == kind;
    if (!asks || !before || !after)
        return asks;
    const json_t *was = json_object_get(json_object_get(before, "metadata"), "generation");
    const json_t *is = json_object_get(json_object_get(after, "metadata"), "generation");
    return json_integer_value(was) != json_integer_value(is);
}

/* Whether a cache will tell of the object: those of our labels and kinds. */
static bool is_watched(const struct kube_kind *kind, const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");

    return strcmp(kind->group, CONTROL_GROUP) == 0 || json_object_get(labels, LABEL_MANAGED_BY);
}

static void on_seen(void *context, const struct kube_kind *kind, const json_t *before,
                    const json_t *after)
{
    struct controller *controller = context;

    controller->moved += is_move(kind, before, after);
    CLEANUP(free_ptr) char *key = after ? unseen_key(kind, after) : NULL;
    for (size_t i = 0; key && i < controller->pools.map.count; i++) {
        struct pool *pool = controller->pools.map.entries[i].value;
        if (!pool)
            continue;
        kube_table_remove(&pool->unseen, key);
        if (pool->execution && is_watched(kind, after))
            kube_table_put(&pool->seen, key, pool); /* the answer may come later */
    }
}

/* ---- effects ---- */

static bool may_act(const struct controller *controller)
{
    return controller->epoch >= 0 && !controller->lost && !controller->stopping &&
           (!controller->lease || kube_lease_holds(controller->lease));
}

static bool on_allowed(void *context, const struct effect *effect)
{
    const struct pool *pool = context;

    return may_act(pool->controller) &&
           (!effect->destructive || sources_are_fresh(pool->controller->sources));
}

static char *refusal_key(const struct effect *effect)
{
    return effect_key(effect_kind_name(effect->kind), effect->object_kind, effect->namespace,
                      effect->name);
}

/* What a status says is told by the status itself. */
static void on_refused(void *context, const struct effect *effect, const struct error *error)
{
    struct pool *pool = context;
    CLEANUP(free_ptr) char *key = refusal_key(effect);

    if (!effect->subresource)
        json_object_set_new(
            pool->refusals, key,
            json_pack("[s, I]", error->text, (json_int_t)now_ns(pool->controller)));
}

/* {key: why} for a round; those of long ago are forgotten. */
static json_t *recent_refusals(struct pool *pool)
{
    json_t *recent = json_object(), *entry;
    const char *key;
    void *next;

    json_object_foreach_safe(pool->refusals, next, key, entry)
    {
        json_int_t at_ns = json_integer_value(json_array_get(entry, 1));
        if (now_ns(pool->controller) - at_ns > REFUSED_NS)
            json_object_del(pool->refusals, key);
        else
            json_object_set_new(recent, key, json_deep_copy(json_array_get(entry, 0)));
    }
    return recent;
}

static void on_wrote(void *context, const struct effect *effect, const json_t *answer)
{
    struct pool *pool = context;

    if (json_object_size(pool->refusals) > 0) {
        CLEANUP(free_ptr) char *refused = refusal_key(effect);
        json_object_del(pool->refusals, refused);
    }
    pool->controller->counters.effects[effect->kind]++;
    log_write(LOG_DEBUG, "carried out", "pool=%s effect=%s kind=%s namespace=%s name=%s",
              pool->name, effect_kind_name(effect->kind), effect->object_kind->kind,
              effect->namespace ? effect->namespace : "", effect->name);
    if (effect->kind == EFFECT_DELETE || !answer || !is_watched(effect->object_kind, answer))
        return;
    CLEANUP(free_ptr) char *key = unseen_key(effect->object_kind, answer);
    if (!kube_table_get(&pool->seen, key))
        kube_table_put(&pool->unseen, key, pool);
}

static void log_failure(const struct pool *pool, const struct execute_outcome *outcome)
{
    log_write(outcome->end == EXECUTE_CONFLICT ? LOG_INFO : LOG_WARN,
              outcome->end == EXECUTE_CONFLICT ? "the world has changed: looking again"
                                               : "an effect failed",
              "pool=%s effect=%s reason=\"%s\" unknown=%d error=\"%s\"", pool->name,
              outcome->at ? effect_kind_name(outcome->at->kind) : "",
              outcome->at && outcome->at->reason ? outcome->at->reason : "", outcome->unknown,
              outcome->error.text);
}

static void end_round(struct pool *pool)
{
    struct controller *controller = pool->controller;

    kube_queue_done(controller->queue, pool->name);
    if (pool->again_ns != INT64_MAX && !controller->options.once)
        kube_queue_add_at(controller->queue, pool->name, pool->again_ns);
    pump_at(controller, now_ns(controller));
}

/* After a round that failed, of whose effects some were carried out before: it came further
 * than the one before, so its failures do not add up. */
static void retry_round(struct pool *pool, int64_t retry_after_ns, bool came_further)
{
    struct controller *controller = pool->controller;
    int64_t now = now_ns(controller);

    if (retry_after_ns > 0 || came_further) {
        int64_t wait_ns = came_further ? 2 * controller->options.round_gap_ns : 0;
        pool->not_before_ns = now + (retry_after_ns > wait_ns ? retry_after_ns : wait_ns);
        kube_queue_done(controller->queue, pool->name);
        kube_queue_add_at(controller->queue, pool->name, pool->not_before_ns);
    } else {
        kube_queue_retry(controller->queue, pool->name, now);
    }
    pump_at(controller, now);
}

static void on_executed(void *context, const struct execute_outcome *outcome)
{
    struct pool *pool = context;
    struct controller *controller = pool->controller;
    bool bad = outcome->end == EXECUTE_CONFLICT || outcome->end == EXECUTE_FAILED;

    controller->counters.executions[outcome->end]++;
    if (bad)
        log_failure(pool, outcome);
    if (outcome->end == EXECUTE_FAILED || (bad && controller->options.once))
        controller->failure = outcome->error;
    execution_free(pool->execution);
    pool->execution = NULL;
    kube_table_done(&pool->seen);
    pool->seen_deadline_ns = now_ns(controller) + SEEN_WAIT_NS;
    pool->had_round = true;
    if (outcome->end == EXECUTE_STOPPED)
        pool->again_ns = now_ns(controller) + controller->options.round_gap_ns;
    if (bad && !controller->options.once) {
        retry_round(pool, outcome->retry_after_ns, outcome->carried_out > 0);
        /* What was not refused goes on in its time. */
        if (pool->again_ns != INT64_MAX && pool->again_ns > now_ns(controller))
            kube_queue_add_at(controller->queue, pool->name, pool->again_ns);
    } else
        end_round(pool);
}

static void execute(struct pool *pool, struct effects *effects)
{
    struct controller *controller = pool->controller;

    pool->execution =
        execute_start(&(struct execute_options){.client = controller->options.client,
                                                .events = controller->options.events,
                                                .action = "Reconcile",
                                                .window = controller->options.window,
                                                .allowed = on_allowed,
                                                .wrote = on_wrote,
                                                .refused = on_refused,
                                                .done = on_executed,
                                                .context = pool},
                      effects);
}

/* ---- rounds ---- */

/* What a round decided is thrown away: decided by an earlier leadership, or on something that
 * was asked for and is not any more. */
static bool is_stale(const struct controller *controller, const struct round *round,
                     const struct pool *pool)
{
    if (!may_act(controller) && !controller->options.show)
        return true;
    if (round->snapshot.world.epoch != controller->epoch)
        return true;
    return round->moved != controller->moved && pool->discards < DISCARDS_MAX;
}

static void round_failed(struct pool *pool, const struct round *round)
{
    struct controller *controller = pool->controller;

    if (round->error.code == E_NOT_FOUND) {
        CLEANUP(free_ptr) char *name = xstrdup(pool->name);
        if (controller->options.pool)
            controller->failure = round->error;
        kube_queue_done(controller->queue, name);
        forget_pool(controller, pool);
        return;
    }
    log_write(LOG_WARN, "a round failed", "pool=%s error=\"%s\"", pool->name,
              round->error.text);
    controller->failure = round->error;
    pool->had_round = true;
    if (controller->options.once)
        end_round(pool);
    else
        retry_round(pool, -1, false);
}

static enum round_end take_round(struct controller *controller, struct pool *pool,
                                 struct round *round)
{
    if (is_stale(controller, round, pool)) {
        pool->discards++;
        pool->again_ns = now_ns(controller);
        end_round(pool);
        return ROUND_DISCARDED;
    }
    pool->discards = 0;
    if (round->error.code != E_NONE) {
        round_failed(pool, round);
        return ROUND_FAILED;
    }
    pool->figures = round->figures;
    pool->again_ns = round->effects.again_ns;
    if (controller->options.show)
        controller->options.show(controller->options.context, pool->name, &round->effects);
    if (round->effects.items.count == 0 || controller->options.show) {
        pool->had_round = true;
        end_round(pool);
        return ROUND_SETTLED;
    }
    execute(pool, &round->effects);
    return ROUND_ACTED;
}

static void on_round(void *context, struct round *round)
{
    struct controller *controller = context;
    struct pool *pool = kube_table_get(&controller->pools, round->pool);

    assert(pool && !pool->execution);
    enum round_end end = take_round(controller, pool, round);
    controller_counters_round(&controller->counters, end, round->took_ns);
    pump_at(controller, now_ns(controller));
}

static void start_round(struct controller *controller, struct pool *pool)
{
    struct snapshot snapshot;

    snapshot_take(controller->sources, &snapshot);
    snapshot.world.epoch = controller->epoch;
    snapshot.world.now_ns = now_ns(controller);
    snapshot.world.now_s =
        controller->options.wall_s ? controller->options.wall_s() : time(NULL);
    json_t *refusals = recent_refusals(pool);
    vec_add(&snapshot.references, refusals);
    snapshot.world.refusals = refusals;
    pool->began_ns = snapshot.world.now_ns;
    rounds_start(controller->rounds, pool->name, &snapshot, controller->moved);
}

/* Whether what the last round wrote has been seen, or has been waited for long enough. */
static bool has_seen(const struct pool *pool)
{
    return pool->unseen.live == 0 || now_ns(pool->controller) >= pool->seen_deadline_ns;
}

static void take_pool(struct controller *controller, const char *name)
{
    struct pool *pool = pool_get(controller, name);
    int64_t now = now_ns(controller);
    int64_t at_ns = now;

    if (controller->options.once && pool->had_round) {
        kube_queue_done(controller->queue, name);
        return;
    }
    if (earliest_ns(pool) > now)
        at_ns = earliest_ns(pool);
    else if (!has_seen(pool))
        at_ns = now + 20 * MILLISECOND_NS;
    if (at_ns > now) {
        kube_queue_done(controller->queue, name);
        kube_queue_add_at(controller->queue, pool->name, at_ns);
        return;
    }
    kube_table_done(&pool->unseen);
    start_round(controller, pool);
}

static void start_leading(struct controller *controller);

/* Gone back to fresh, or synced for the first time: what waited for it may go on. */
static void look_at_caches(struct controller *controller)
{
    bool synced = sources_are_synced(controller->sources);
    bool fresh = sources_are_fresh(controller->sources);

    if (synced && !controller->was_synced)
        log_write(LOG_INFO, "caches are synced", NULL);
    if (synced && !controller->runs_for_leader)
        start_leading(controller);
    if ((synced && !controller->was_synced) || (fresh && !controller->was_fresh)) {
        want_all(controller);
        if (controller->options.pool)
            want_round(controller, controller->options.pool);
    }
    if (fresh || controller->was_fresh || !controller->was_synced)
        controller->fresh_ns = now_ns(controller);
    controller->was_synced = synced;
    controller->was_fresh = fresh;
}

/* Without its definitions a controller waits, and its log says for what; now and then, as logs
 * are turned over. */
static void tell_missing(struct controller *controller)
{
    CLEANUP(str_done) struct str kinds = STR_EMPTY;

    if (now_ns(controller) < controller->tell_missing_ns ||
        !sources_lack_kinds(controller->sources, &kinds))
        return;
    log_write(LOG_WARN, MISSING_DEFINITIONS, "kinds=\"%s\"", kinds.bytes);
    controller->tell_missing_ns = now_ns(controller) + MISSING_AGAIN_NS;
}

/* With `once` nobody waits for a cluster that does not answer. */
static void give_up(struct controller *controller)
{
    int64_t waited_ns = now_ns(controller) - controller->started_ns;

    if (!controller->options.once || controller->was_synced ||
        waited_ns < controller->options.once_sync_ns)
        return;
    error_set(&controller->failure, E_TIMEOUT, "the cluster cannot be read: %s",
              sources_trouble(controller->sources));
    controller->stopping = true;
}

static void on_pump(void *context)
{
    struct controller *controller = context;
    int64_t now = now_ns(controller);

    look_at_caches(controller);
    tell_missing(controller);
    give_up(controller);
    pump_at(controller, now + SECOND_NS);
    if (!controller->was_synced ||
        (controller->options.show ? controller->stopping : !may_act(controller)))
        return;
    while (rounds_have_room(controller->rounds)) {
        const char *name = kube_queue_take(controller->queue, now);
        if (!name)
            break;
        take_pool(controller, name);
    }
    int64_t next_ns = kube_queue_next_ns(controller->queue);
    if (next_ns != INT64_MAX && rounds_have_room(controller->rounds))
        pump_at(controller, next_ns > now ? next_ns : now + MILLISECOND_NS);
}

/* ---- leadership ---- */

static void lead(struct controller *controller, long long epoch)
{
    controller->epoch = epoch;
    log_write(LOG_INFO, "leading", "epoch=%lld identity=%s", epoch,
              controller->options.identity);
    if (controller->was_synced)
        want_all(controller);
    pump_at(controller, now_ns(controller));
}

static void on_started(void *context, long long epoch)
{
    lead(context, epoch);
}

static void on_stopped(void *context)
{
    struct controller *controller = context;

    controller->epoch = -1;
    if (controller->stopping)
        return;
    controller->lost = true;
    for (size_t i = 0; i < controller->pools.map.count; i++) {
        struct pool *pool = controller->pools.map.entries[i].value;
        if (pool && pool->execution) {
            execution_free(pool->execution);
            pool->execution = NULL;
        }
    }
}

static long long on_epoch_elsewhere(void *context)
{
    const struct controller *controller = context;

    return sources_highest_epoch(controller->sources);
}

/* Without an election: as the last leader, so that what it began is not taken for another's. */
static void on_epoch(void *context, const struct kube_answer *answer)
{
    struct controller *controller = context;
    const json_t *spec = json_object_get(answer->json, "spec");

    controller->epoch_call = 0;
    long long epoch = json_integer_value(json_object_get(spec, "leaseTransitions"));
    long long elsewhere = sources_highest_epoch(controller->sources);
    lead(controller, elsewhere > epoch ? elsewhere : epoch);
}

/* Once the caches are synced: they tell of epochs that a Lease which was deleted, or is in
 * another namespace, does not know; and a process that cannot read the cluster is no leader. */
static void start_leading(struct controller *controller)
{
    const struct controller_options *options = &controller->options;
    int64_t duration_ns = options->lease_duration_ns;

    assert(!controller->runs_for_leader);
    controller->runs_for_leader = true;
    if (options->elect) {
        controller->lease = kube_lease_new(
            &(struct kube_lease_options){.client = options->client,
                                         .namespace = options->lease_namespace,
                                         .name = options->lease_name,
                                         .identity = options->identity,
                                         .duration_ns = duration_ns,
                                         .renew_deadline_ns = duration_ns * 2 / 3,
                                         .retry_ns = duration_ns * 2 / 15,
                                         .seed = options->seed,
                                         .epoch_elsewhere = on_epoch_elsewhere,
                                         .started = on_started,
                                         .stopped = on_stopped,
                                         .context = controller});
        return;
    }
    const struct kube_call call = {.verb = KUBE_GET,
                                   .target = {.kind = &KUBE_LEASE,
                                              .namespace = options->lease_namespace,
                                              .name = options->lease_name}};
    controller->epoch_call = kube_client_start(options->client, &call, on_epoch, controller);
}

/* ---- life ---- */

static void set_defaults(struct controller_options *options)
{
    if (!options->lease_duration_ns)
        options->lease_duration_ns = 15 * SECOND_NS;
    if (!options->once_sync_ns)
        options->once_sync_ns = ONCE_SYNC_NS;
    if (!options->round_gap_ns)
        options->round_gap_ns = 200 * MILLISECOND_NS;
}

int controller_new(const struct controller_options *options, struct controller **ret_controller,
                   struct error *err)
{
    struct controller *controller = xcalloc(1, sizeof *controller);

    assert(options->client && options->reconcile && options->identity && options->lease_name);
    controller->options = *options;
    set_defaults(&controller->options);
    controller->loop = kube_client_loop(options->client);
    controller->epoch = -1;
    controller->started_ns = now_ns(controller);
    int rc =
        rounds_new(&(struct rounds_options){.loop = controller->loop,
                                            .reconcile = options->reconcile,
                                            .reconcile_options = options->reconcile_options,
                                            .threads = options->threads,
                                            .done = on_round,
                                            .context = controller},
                   &controller->rounds, err);
    if (rc < 0) {
        free(controller);
        return rc;
    }
    controller->queue = kube_queue_new(&(struct kube_queue_options){
        /* Less up to half at random, and no sooner than the gap: or take_pool() would make it
         * wait anew, and its failures were forgotten. */
        .base_ns = 2 * controller->options.round_gap_ns,
        .most_ns = RETRY_NS_MOST,
        .seed = options->seed});
    controller->pump = (struct kube_timer){.fire = on_pump, .context = controller};
    controller->sources =
        sources_new(&(struct sources_options){.client = options->client,
                                              .discovery_ns = options->discovery_ns,
                                              .seed = options->seed,
                                              .changed = on_changed,
                                              .seen = on_seen,
                                              .context = controller});
    pump_at(controller, now_ns(controller));
    *ret_controller = controller;
    return 0;
}

void controller_free(struct controller *controller)
{
    if (!controller)
        return;
    kube_timer_stop(&controller->pump);
    if (controller->epoch_call)
        kube_client_cancel(controller->options.client, controller->epoch_call);
    rounds_free(controller->rounds);
    for (size_t i = 0; i < controller->pools.map.count; i++)
        if (controller->pools.map.entries[i].value)
            pool_free(controller->pools.map.entries[i].value);
    kube_table_done(&controller->pools);
    kube_lease_free(controller->lease);
    sources_free(controller->sources);
    kube_queue_free(controller->queue);
    free(controller);
}

static bool is_executing(const struct controller *controller)
{
    for (size_t i = 0; i < controller->pools.map.count; i++) {
        const struct pool *pool = controller->pools.map.entries[i].value;
        if (pool && pool->execution)
            return true;
    }
    return false;
}

void controller_stop(struct controller *controller)
{
    if (controller->stopping)
        return;
    log_write(LOG_INFO, "stopping", NULL);
    controller->stopping = true;
    for (size_t i = 0; i < controller->pools.map.count; i++) {
        struct pool *pool = controller->pools.map.entries[i].value;
        if (pool && pool->execution)
            execute_stop(pool->execution);
    }
}

/* With `once`: every pool has had its round. */
static bool once_is_over(const struct controller *controller)
{
    return controller->options.once && controller->was_synced && controller->epoch >= 0 &&
           kube_queue_count(controller->queue) == 0;
}

bool controller_is_over(const struct controller *controller)
{
    if (controller->lost)
        return true;
    return (controller->stopping || once_is_over(controller)) && !is_executing(controller);
}

int controller_end(struct controller *controller, struct error *err)
{
    struct error released = {0};

    if (controller->lost)
        return error_set(err, E_NO,
                         "the Lease %s/%s was lost, to '%s': this process acts no more",
                         controller->options.lease_namespace, controller->options.lease_name,
                         kube_lease_holder(controller->lease));
    controller->stopping = true;
    if (controller->lease && kube_lease_release(controller->lease, &released) < 0)
        log_write(LOG_WARN, "the Lease was not released: the next leader waits for its end",
                  "error=\"%s\"", released.text);
    if (controller->options.once && controller->failure.code != E_NONE)
        return error_set(err, controller->failure.code, "%s", controller->failure.text);
    return 0;
}

bool controller_wait(struct controller *controller, int64_t wait_ns)
{
    return rounds_wait(controller->rounds, wait_ns);
}

bool controller_leads(const struct controller *controller)
{
    return controller->epoch >= 0;
}

bool controller_is_ready(void *context, struct str *why)
{
    const struct controller *controller = context;

    if (!sources_are_synced(controller->sources)) {
        str_addf(why, "waiting for the cluster: %s", sources_trouble(controller->sources));
        return false;
    }
    if (sources_are_fresh(controller->sources) ||
        now_ns(controller) - controller->fresh_ns <= STALE_NS)
        return true;
    str_addf(why, "what is known of the cluster is stale: %s",
             sources_trouble(controller->sources));
    return false;
}

/* Resident memory, from /proc; 0 when that cannot be read. */
static double resident_bytes(void)
{
    CLEANUP(close_file) FILE *file = fopen("/proc/self/statm", "re");
    char line[256];
    long long total, resident;
    const char *at = line;

    if (!file || !fgets(line, sizeof line, file) || !text_take_int(&at, INT64_MAX, &total) ||
        *at++ != ' ' || !text_take_int(&at, INT64_MAX, &resident))
        return 0;
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

void controller_metrics_page(void *context, struct str *text)
{
    const struct controller *controller = context;
    VEC(struct pool_metrics) pools = {0};

    for (size_t i = 0; i < controller->pools.map.count; i++) {
        const struct pool *pool = controller->pools.map.entries[i].value;
        if (pool)
            vec_add(&pools,
                    ((struct pool_metrics){.name = pool->name, .figures = &pool->figures}));
    }
    controller_metrics_write(
        &(struct controller_metrics){.counters = &controller->counters,
                                     .client = controller->options.client,
                                     .sources = controller->sources,
                                     .events =
                                         controller->options.events
                                             ? kube_events_counts(controller->options.events)
                                             : (struct kube_event_counts){0},
                                     .pools = pools.data,
                                     .pool_count = pools.count,
                                     .queue_depth = kube_queue_count(controller->queue),
                                     .leader = controller->epoch >= 0,
                                     .epoch = controller->epoch,
                                     .resident_bytes = resident_bytes()},
        text);
    vec_done(&pools);
}
