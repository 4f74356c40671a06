/* SPDX-License-Identifier: Apache-2.0
 *
 * One call at a time: a look at the Lease, or a write tied to the resourceVersion that was
 * looked at. Every retry_ns there is a new round; a leader's round is a write.
 */
#include "kube/lease.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"

#define SECOND_NS INT64_C(1000000000)

struct kube_lease {
    struct kube_lease_options options;
    char *namespace, *name, *identity;
    struct kube_loop *loop;
    struct rng rng;
    struct kube_timer timer;  /* the next round */
    struct kube_timer expiry; /* the renew deadline, while we lead */
    uint64_t call;
    int64_t sent_ns;   /* when the call under way was sent */
    char *version;     /* of the Lease as last seen; NULL: there is none, or nobody looked */
    int64_t seen_ns;   /* when that version was first seen */
    char *holder;      /* as last seen */
    int64_t theirs_ns; /* the duration that the holder asked for */
    long long transitions;
    bool leading, released;
    bool acquiring;     /* the write under way would make us the leader */
    int64_t renewed_ns; /* when the last renewal that arrived was sent */
    long long epoch;
};

static struct kube_target target_of(const struct kube_lease *lease)
{
    return (struct kube_target){&KUBE_LEASE, lease->namespace, lease->name, NULL};
}

static void set_text(char **text, const char *value)
{
    char *copy = xstrdup(value);

    free(*text);
    *text = copy;
}

static void lead(struct kube_lease *lease)
{
    bool new_leader = !lease->leading;

    lease->renewed_ns = lease->sent_ns;
    kube_timer_set(&lease->expiry, lease->loop,
                   lease->renewed_ns + lease->options.renew_deadline_ns);
    if (!new_leader)
        return;
    lease->leading = true;
    lease->epoch = lease->transitions;
    lease->options.started(lease->options.context, lease->epoch);
}

static void stop_leading(struct kube_lease *lease)
{
    if (!lease->leading)
        return;
    lease->leading = false;
    kube_timer_stop(&lease->expiry);
    lease->options.stopped(lease->options.context);
}

static void on_expiry(void *context)
{
    stop_leading(context);
}

/* Notes the Lease as it is now. */
static void see(struct kube_lease *lease, const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
    const char *version = kube_metadata(object, "resourceVersion");

    if (!lease->version || strcmp(lease->version, version) != 0) {
        set_text(&lease->version, version);
        lease->seen_ns = kube_loop_now_ns(lease->loop);
    }
    set_text(&lease->holder, holder ? holder : "");
    lease->transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
    lease->theirs_ns =
        json_integer_value(json_object_get(spec, "leaseDurationSeconds")) * SECOND_NS;
    if (lease->theirs_ns <= 0)
        lease->theirs_ns = lease->options.duration_ns;
}

static void plan_round(struct kube_lease *lease)
{
    int64_t jitter_ns =
        (int64_t)rng_below(&lease->rng, (uint64_t)lease->options.retry_ns / 5 + 1);

    if (!lease->released)
        kube_timer_set(&lease->timer, lease->loop,
                       kube_loop_now_ns(lease->loop) + lease->options.retry_ns - jitter_ns);
}

/* Two tries fit into the renew deadline, even of a server that says nothing. */
static void start_call(struct kube_lease *lease, struct kube_call call,
                       void (*done)(void *, const struct kube_answer *))
{
    assert(!lease->call);
    call.attempts = 1;
    call.timeout_ns = lease->options.renew_deadline_ns / 2;
    lease->sent_ns = kube_loop_now_ns(lease->loop);
    lease->call = kube_client_start(lease->options.client, &call, done, lease);
}

/* What a write was answered. */
static void on_written(void *context, const struct kube_answer *answer)
{
    struct kube_lease *lease = context;
    int64_t now_ns = kube_loop_now_ns(lease->loop);

    lease->call = 0;
    plan_round(lease);
    if (answer->error.code != E_NONE) {
        /* Somebody else wrote, or nobody knows: look again before the next write. */
        set_text(&lease->version, NULL);
        return;
    }
    see(lease, answer->json);
    /* A renewal that arrives after we stopped leading does not bring leadership back: that
     * takes a new epoch. */
    bool ours = strcmp(lease->holder, lease->identity) == 0;
    if (ours && (lease->leading || lease->acquiring) &&
        now_ns - lease->sent_ns < lease->options.renew_deadline_ns)
        lead(lease);
}

/* spec of our Lease, to be written; acquiring also says when it began. */
static json_t *spec_of(struct kube_lease *lease, bool acquiring, long long transitions)
{
    char now[28];

    lease->acquiring = acquiring;
    clock_wall_text_micro(now);
    json_t *spec =
        json_pack("{s:s, s:I, s:s, s:I}", "holderIdentity", lease->identity,
                  "leaseDurationSeconds", (json_int_t)(lease->options.duration_ns / SECOND_NS),
                  "renewTime", now, "leaseTransitions", (json_int_t)transitions);
    if (acquiring)
        json_object_set_new(spec, "acquireTime", json_string(now));
    return spec;
}

/* The epoch of a take-over of the Lease; `transitions`: what it has now, -1 without one. */
static long long next_epoch(const struct kube_lease *lease, long long transitions)
{
    const struct kube_lease_options *options = &lease->options;
    long long elsewhere =
        options->epoch_elsewhere ? options->epoch_elsewhere(options->context) : -1;

    return (elsewhere > transitions ? elsewhere : transitions) + 1;
}

static void create(struct kube_lease *lease)
{
    CLEANUP(json_decref_ptr)
    json_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "coordination.k8s.io/v1",
                  "kind", "Lease", "metadata", "name", lease->name, "namespace",
                  lease->namespace, "spec", spec_of(lease, true, next_epoch(lease, -1)));
    struct kube_target collection = target_of(lease);

    collection.name = NULL;
    start_call(lease,
               (struct kube_call){.verb = KUBE_CREATE, .target = collection, .body = body},
               on_written);
}

static void write_lease(struct kube_lease *lease, json_t *spec,
                        void (*done)(void *, const struct kube_answer *))
{
    CLEANUP(json_decref_ptr)
    json_t *body = json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion", lease->version,
                             "spec", spec);

    start_call(
        lease,
        (struct kube_call){.verb = KUBE_MERGE_PATCH, .target = target_of(lease), .body = body},
        done);
}

/* Nobody holds it, or its holder has not written for as long as it said. */
static bool is_free(const struct kube_lease *lease)
{
    return !*lease->holder ||
           kube_loop_now_ns(lease->loop) - lease->seen_ns >= lease->theirs_ns;
}

static void on_seen(void *context, const struct kube_answer *answer)
{
    struct kube_lease *lease = context;

    lease->call = 0;
    if (answer->error.code == E_NOT_FOUND) {
        stop_leading(lease);
        set_text(&lease->version, NULL);
        create(lease);
        return;
    }
    if (answer->error.code != E_NONE) {
        plan_round(lease);
        return;
    }
    see(lease, answer->json);
    /* Ours again is not enough to go on: with other transitions somebody else has led
     * meanwhile. */
    bool ours = strcmp(lease->holder, lease->identity) == 0;
    if (lease->leading && (!ours || lease->transitions != lease->epoch))
        stop_leading(lease);
    if (lease->leading)
        write_lease(lease, spec_of(lease, false, lease->epoch), on_written);
    else if (ours || is_free(lease))
        write_lease(lease, spec_of(lease, true, next_epoch(lease, lease->transitions)),
                    on_written);
    else
        plan_round(lease);
}

static void on_round(void *context)
{
    struct kube_lease *lease = context;

    if (lease->leading && lease->version)
        write_lease(lease, spec_of(lease, false, lease->epoch), on_written);
    else
        start_call(lease, (struct kube_call){.verb = KUBE_GET, .target = target_of(lease)},
                   on_seen);
}

struct kube_lease *kube_lease_new(const struct kube_lease_options *options)
{
    struct kube_lease *lease = xcalloc(1, sizeof *lease);
    struct kube_lease_options *own = &lease->options;

    assert(options->started && options->stopped && *options->identity);
    *own = *options;
    own->duration_ns = own->duration_ns ? own->duration_ns : 15 * SECOND_NS;
    own->renew_deadline_ns = own->renew_deadline_ns ? own->renew_deadline_ns : 10 * SECOND_NS;
    own->retry_ns = own->retry_ns ? own->retry_ns : 2 * SECOND_NS;
    assert(own->duration_ns % SECOND_NS == 0 && own->renew_deadline_ns < own->duration_ns &&
           own->retry_ns < own->renew_deadline_ns);
    lease->namespace = xstrdup(options->namespace);
    lease->name = xstrdup(options->name);
    lease->identity = xstrdup(options->identity);
    lease->holder = xstrdup("");
    lease->loop = kube_client_loop(options->client);
    lease->rng = rng_seed(options->seed);
    lease->timer = (struct kube_timer){.fire = on_round, .context = lease};
    lease->expiry = (struct kube_timer){.fire = on_expiry, .context = lease};
    kube_timer_set(&lease->timer, lease->loop, kube_loop_now_ns(lease->loop));
    return lease;
}

static void end_rounds(struct kube_lease *lease)
{
    kube_timer_stop(&lease->timer);
    kube_timer_stop(&lease->expiry);
    if (lease->call)
        kube_client_cancel(lease->options.client, lease->call);
    lease->call = 0;
}

void kube_lease_free(struct kube_lease *lease)
{
    if (!lease)
        return;
    end_rounds(lease);
    free(lease->namespace);
    free(lease->name);
    free(lease->identity);
    free(lease->version);
    free(lease->holder);
    free(lease);
}

bool kube_lease_holds(const struct kube_lease *lease)
{
    return lease->leading &&
           kube_loop_now_ns(lease->loop) - lease->renewed_ns < lease->options.renew_deadline_ns;
}

long long kube_lease_epoch(const struct kube_lease *lease)
{
    return lease->leading ? lease->epoch : -1;
}

const char *kube_lease_holder(const struct kube_lease *lease)
{
    return lease->holder;
}

/* A renewal that was under way may have changed the Lease: look before giving it up. */
static int give_up(struct kube_lease *lease, struct error *err)
{
    CLEANUP(kube_answer_done) struct kube_answer answer = {0};
    struct kube_call call = {.verb = KUBE_GET,
                             .target = target_of(lease),
                             .attempts = 1,
                             .timeout_ns = lease->options.renew_deadline_ns / 2};
    int rc = kube_client_call(lease->options.client, &call, &answer, err);

    if (rc < 0)
        return rc;
    see(lease, answer.json);
    if (strcmp(lease->holder, lease->identity) != 0)
        return 0;
    CLEANUP(json_decref_ptr)
    json_t *body =
        json_pack("{s:{s:s}, s:{s:s, s:i}}", "metadata", "resourceVersion", lease->version,
                  "spec", "holderIdentity", "", "leaseDurationSeconds", 1);
    call.verb = KUBE_MERGE_PATCH;
    call.body = body;
    return kube_client_call(lease->options.client, &call, NULL, err);
}

int kube_lease_release(struct kube_lease *lease, struct error *err)
{
    bool led = lease->leading;

    end_rounds(lease);
    lease->released = true;
    stop_leading(lease);
    return led ? give_up(lease, err) : 0;
}
