/* SPDX-License-Identifier: Apache-2.0
 *
 * Each effect under way is a job: at most two calls one after the other (look, then write; or
 * create, then look). The jobs of a batch run side by side; a batch ends where the next effect
 * is of another kind or about an object that is being written.
 */
#include "control/execute.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "control/kinds.h"
#include "control/object.h"

enum { WINDOW = 16 };

enum job_phase { JOB_LOOK, JOB_WRITE, JOB_CHECK };

struct job {
    struct execution *execution;
    size_t index; /* of the effect */
    enum job_phase phase;
    uint64_t call;
    struct job *next;
};

struct execution {
    struct execute_options options;
    struct effects effects;
    size_t next;
    struct job *jobs; /* under way */
    size_t job_count;
    bool stopping;
    VEC(size_t) refused; /* indexes */
    struct execute_outcome outcome;
    struct kube_timer timer; /* goes on, or reports the end, from the loop */
};

static const struct {
    const char *name;
    enum kube_verb verb;
} kind_table[EFFECT_KIND_COUNT] = {
    [EFFECT_ENSURE] = {"ensure", KUBE_CREATE},    [EFFECT_APPLY] = {"apply", KUBE_APPLY},
    [EFFECT_PATCH] = {"patch", KUBE_MERGE_PATCH}, [EFFECT_DELETE] = {"delete", KUBE_DELETE},
    [EFFECT_EVENT] = {"event", KUBE_CREATE},
};

const char *effect_kind_name(enum effect_kind kind)
{
    assert(kind < EFFECT_KIND_COUNT);
    return kind_table[kind].name;
}

json_t *effect_to_json(const struct effect *effect)
{
    bool event = effect->kind == EFFECT_EVENT;
    json_t *json = json_pack(
        "{s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:s*}", "effect", kind_table[effect->kind].name,
        "kind", effect->object_kind->kind, "namespace", effect->namespace, "name", effect->name,
        "subresource", effect->subresource, "reason", effect->reason, "note", effect->note);

    if (effect->body && !event)
        json_object_set(json, "body", effect->body);
    return json;
}

static struct effect *effect_of(const struct job *job)
{
    return &job->execution->effects.items.data[job->index];
}

static struct kube_target target_of(const struct effect *effect)
{
    return (struct kube_target){.kind = effect->object_kind,
                                .namespace = effect->namespace,
                                .name = effect->name,
                                .subresource = effect->subresource};
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The outcome is reported, and the next effects begin, from the loop: never from inside
 * execute_start(). */
static void wake(struct execution *execution)
{
    struct kube_loop *loop = kube_client_loop(execution->options.client);

    kube_timer_set(&execution->timer, loop, kube_loop_now_ns(loop));
}

static void end_job(struct job *job)
{
    struct execution *execution = job->execution;
    struct job **link = &execution->jobs;

    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    execution->job_count--;
    free(job);
    wake(execution);
}

/* The first failure is the one that is told. */
static void note_failure(struct job *job, enum execute_end end,
                         const struct kube_answer *answer)
{
    struct execute_outcome *outcome = &job->execution->outcome;

    if (outcome->end != EXECUTE_DONE && outcome->end != EXECUTE_STOPPED)
        return;
    outcome->end = end;
    outcome->failed = job->index;
    outcome->retry_after_ns = answer->retry_after_ns;
    outcome->unknown = answer->unknown;
    outcome->error = answer->error;
}

static void fail(struct job *job, enum execute_end end, const struct kube_answer *answer)
{
    note_failure(job, end, answer);
    job->execution->stopping = true;
    end_job(job);
}

/* The server has judged this one: nothing is wrong with it, the world or us. */
static void refuse(struct job *job, const struct kube_answer *answer)
{
    struct execution *execution = job->execution;

    note_failure(job, EXECUTE_FAILED, answer);
    vec_add(&execution->refused, job->index);
    if (execution->options.refused)
        execution->options.refused(execution->options.context, effect_of(job), &answer->error);
    end_job(job);
}

/* Whether an answer is about the object alone: not about who we are, nor about the server. */
static bool is_refusal(const struct job *job, const struct kube_answer *answer)
{
    static const int statuses[] = {400, 403, 405, 413, 415, 422};
    enum effect_kind kind = effect_of(job)->kind;

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (answer->status == statuses[i])
            return true;
    /* Its namespace or its definition is gone. */
    return answer->status == 404 && (kind == EFFECT_ENSURE || kind == EFFECT_APPLY);
}

/* Neither carried out nor in conflict. */
static void fail_or_refuse(struct job *job, const struct kube_answer *answer)
{
    if (is_refusal(job, answer))
        refuse(job, answer);
    else
        fail(job, EXECUTE_FAILED, answer);
}

static void conflict(struct job *job, const char *why)
{
    const struct effect *effect = effect_of(job);
    struct kube_answer answer = {.retry_after_ns = -1};

    error_set(&answer.error, E_CONFLICT, "%s %s: %s", effect->object_kind->kind, effect->name,
              why);
    fail(job, EXECUTE_CONFLICT, &answer);
}

/* Two effects of a round tied to the same version of an object: what the first made of it is
 * no surprise to the second. */
static void follow_version(struct job *job, const json_t *answer)
{
    struct execution *execution = job->execution;
    const struct effect *written = effect_of(job);
    const char *version = kube_metadata(answer, "resourceVersion");

    if (written->kind != EFFECT_PATCH || !written->resource_version || !*version)
        return;
    for (size_t i = job->index + 1; i < execution->effects.items.count; i++) {
        struct effect *later = &execution->effects.items.data[i];
        if (later->object_kind != written->object_kind || !later->resource_version ||
            strcmp(later->resource_version, written->resource_version) != 0 ||
            !same_text(later->name, written->name) ||
            !same_text(later->namespace, written->namespace))
            continue;
        free(later->resource_version);
        later->resource_version = xstrdup(version);
    }
}

static void succeed(struct job *job, const json_t *answer)
{
    struct execution *execution = job->execution;

    execution->outcome.carried_out++;
    follow_version(job, answer);
    if (execution->options.wrote)
        execution->options.wrote(execution->options.context, effect_of(job), answer);
    end_job(job);
}

static void write_effect(struct job *job);
static void on_answer(void *context, const struct kube_answer *answer);

static void start_call(struct job *job, enum job_phase phase, const struct kube_call *call)
{
    job->phase = phase;
    job->call = kube_client_start(job->execution->options.client, call, on_answer, job);
}

static void look(struct job *job, enum job_phase phase)
{
    struct kube_target target = target_of(effect_of(job));

    target.subresource = NULL;
    start_call(job, phase, &(struct kube_call){.verb = KUBE_GET, .target = target});
}

static bool is_ours(const json_t *object)
{
    return strcmp(object_label(object, LABEL_MANAGED_BY), "tranche") == 0;
}

/* Somebody else's object has the name: it stays as it is, and its events say why nothing
 * comes of ours. The other effects go on. */
static void yield(struct job *job, const json_t *object)
{
    const struct effect *effect = effect_of(job);
    struct execution *execution = job->execution;

    if (execution->options.events)
        kube_events_emit(execution->options.events,
                         &(struct kube_event){.kind = effect->object_kind,
                                              .object = object,
                                              .warning = true,
                                              .reason = "NameTaken",
                                              .action = execution->options.action,
                                              .note = "a GpuService of this name needs it: "
                                                      "rename one of them, or delete this"});
    execution->outcome.carried_out++;
    end_job(job);
}

/* The read before an object is made under a name that may be somebody else's. */
static void on_name_looked(struct job *job, const struct kube_answer *answer)
{
    if (answer->error.code != E_NONE && answer->error.code != E_NOT_FOUND)
        fail_or_refuse(job, answer);
    else if (answer->error.code == E_NONE && !is_ours(answer->json))
        yield(job, answer->json);
    else
        write_effect(job);
}

/* The quorum read before something destructive. */
static void on_looked(struct job *job, const struct kube_answer *answer)
{
    const struct effect *effect = effect_of(job);
    bool gone = answer->error.code == E_NOT_FOUND;

    if (gone && effect->kind == EFFECT_DELETE) {
        succeed(job, NULL);
    } else if (gone) {
        conflict(job, "it is gone");
    } else if (answer->error.code != E_NONE) {
        fail_or_refuse(job, answer);
    } else if (effect->uid && strcmp(effect->uid, kube_metadata(answer->json, "uid")) != 0) {
        conflict(job, "another object has its name now");
    } else if (effect->resource_version &&
               strcmp(effect->resource_version,
                      kube_metadata(answer->json, "resourceVersion")) != 0) {
        conflict(job, "it has changed since it was looked at");
    } else if (effect->kind == EFFECT_DELETE &&
               *kube_metadata(answer->json, "deletionTimestamp")) {
        succeed(job, answer->json);
    } else if (!job->execution->options.allowed(job->execution->options.context, effect)) {
        job->execution->stopping = true; /* it took so long that much may have changed */
        if (job->execution->outcome.end == EXECUTE_DONE)
            job->execution->outcome.end = EXECUTE_STOPPED;
        end_job(job);
    } else {
        write_effect(job);
    }
}

static const char *hash_of(const json_t *object)
{
    return object_note(object, NOTE_HASH);
}

/* After a creation that met something, or whose end is unknown. */
static void on_checked(struct job *job, const struct kube_answer *answer)
{
    const struct effect *effect = effect_of(job);

    if (answer->error.code == E_NOT_FOUND) {
        conflict(job, "its creation got no answer, and it is not there: again");
    } else if (answer->error.code != E_NONE) {
        fail_or_refuse(job, answer);
    } else if (strcmp(hash_of(effect->body), hash_of(answer->json)) != 0) {
        struct kube_answer foreign = {.retry_after_ns = -1};
        error_set(&foreign.error, E_CONFLICT,
                  "%s %s is there already and is not what is wanted: its annotation %s is "
                  "'%s', expected '%s'; delete it",
                  effect->object_kind->kind, effect->name, NOTE_HASH, hash_of(answer->json),
                  hash_of(effect->body));
        refuse(job, &foreign);
    } else {
        succeed(job, answer->json);
    }
}

static void on_written(struct job *job, const struct kube_answer *answer)
{
    const struct effect *effect = effect_of(job);

    if (answer->error.code == E_NONE)
        succeed(job, answer->json);
    else if (effect->kind == EFFECT_ENSURE &&
             (answer->unknown || strcmp(answer->reason, "AlreadyExists") == 0))
        look(job, JOB_CHECK);
    else if (effect->kind == EFFECT_DELETE && answer->error.code == E_NOT_FOUND)
        succeed(job, NULL);
    else if (is_refusal(job, answer))
        refuse(job, answer);
    else if (answer->error.code == E_CONFLICT || answer->error.code == E_NOT_FOUND)
        fail(job, EXECUTE_CONFLICT, answer);
    else
        fail(job, EXECUTE_FAILED, answer);
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct job *job = context;

    job->call = 0;
    switch (job->phase) {
    case JOB_LOOK:
        if (effect_of(job)->yields)
            on_name_looked(job, answer);
        else
            on_looked(job, answer);
        break;
    case JOB_CHECK:
        on_checked(job, answer);
        break;
    case JOB_WRITE:
        on_written(job, answer);
        break;
    }
}

/* A merge patch that is tied carries the version in its body. */
static json_t *patch_body(const struct effect *effect)
{
    json_t *body = json_copy(effect->body);
    json_t *metadata = json_object_get(body, "metadata");

    if (!effect->resource_version)
        return body;
    metadata = metadata ? json_copy(metadata) : json_object();
    json_object_set_new(metadata, "resourceVersion", json_string(effect->resource_version));
    if (effect->uid)
        json_object_set_new(metadata, "uid", json_string(effect->uid));
    json_object_set_new(body, "metadata", metadata);
    return body;
}

static void write_effect(struct job *job)
{
    const struct effect *effect = effect_of(job);
    bool patches = effect->kind == EFFECT_PATCH;
    json_t *body = patches ? patch_body(effect) : NULL;
    struct kube_call call = {.verb = kind_table[effect->kind].verb,
                             .target = target_of(effect),
                             .body = patches ? body : effect->body,
                             .field_manager = effect->manager,
                             .attempts = 1, /* the Lease is asked before each sending */
                             .force = effect->kind == EFFECT_APPLY};

    assert(effect->kind != EFFECT_EVENT);
    if (effect->kind == EFFECT_ENSURE)
        call.target.name = NULL;
    if (effect->kind == EFFECT_DELETE) {
        call.body = NULL;
        call.uid = effect->uid;
        call.resource_version = effect->resource_version;
    }
    start_call(job, JOB_WRITE, &call);
    json_decref(body);
}

static void start_job(struct execution *execution, size_t index)
{
    struct job *job = xcalloc(1, sizeof *job);

    *job = (struct job){.execution = execution, .index = index, .next = execution->jobs};
    execution->jobs = job;
    execution->job_count++;
    if (effect_of(job)->destructive || effect_of(job)->yields)
        look(job, JOB_LOOK);
    else
        write_effect(job);
}

static void emit(struct execution *execution, const struct effect *effect)
{
    const struct kube_event event = {.kind = effect->object_kind,
                                     .object = effect->body,
                                     .warning = effect->warning,
                                     .reason = effect->reason,
                                     .action = execution->options.action,
                                     .note = effect->note};

    if (execution->options.events)
        kube_events_emit(execution->options.events, &event);
    execution->outcome.carried_out++;
}

/* Whether the effect may go out beside those under way. */
static bool may_join(const struct execution *execution, const struct effect *effect)
{
    for (const struct job *job = execution->jobs; job; job = job->next) {
        const struct effect *other = effect_of(job);
        if (other->kind != effect->kind || other->object_kind != effect->object_kind ||
            !same_text(other->subresource, effect->subresource))
            return false;
        if (same_text(other->name, effect->name) &&
            same_text(other->namespace, effect->namespace))
            return false;
    }
    return true;
}

static bool is_left_out(const struct execution *execution, const struct effect *effect)
{
    for (size_t i = 0; i < execution->refused.count; i++)
        if (effect_depends(effect, &execution->effects.items.data[execution->refused.data[i]]))
            return true;
    return false;
}

/* Begins what may begin now. */
static void go_on(struct execution *execution)
{
    size_t window = execution->options.window ? execution->options.window : WINDOW;

    while (!execution->stopping && execution->next < execution->effects.items.count) {
        const struct effect *effect = &execution->effects.items.data[execution->next];
        if (execution->job_count >= window || !may_join(execution, effect))
            return;
        if (is_left_out(execution, effect)) {
            execution->outcome.left_out++;
            execution->next++;
            continue;
        }
        if (!execution->options.allowed(execution->options.context, effect)) {
            execution->stopping = true;
            if (execution->outcome.end == EXECUTE_DONE)
                execution->outcome.end = EXECUTE_STOPPED;
            return;
        }
        execution->next++;
        if (effect->kind == EFFECT_EVENT)
            emit(execution, effect);
        else
            start_job(execution, execution->next - 1);
    }
}

static void on_timer(void *context)
{
    struct execution *execution = context;

    go_on(execution);
    if (execution->job_count > 0)
        return;
    struct execute_outcome outcome = execution->outcome;
    if (outcome.failed != SIZE_MAX)
        outcome.at = &execution->effects.items.data[outcome.failed];
    execution->options.done(execution->options.context, &outcome);
}

struct execution *execute_start(const struct execute_options *options, struct effects *effects)
{
    struct execution *execution = xcalloc(1, sizeof *execution);

    assert(options->client && options->allowed && options->done);
    execution->options = *options;
    execution->effects = *effects;
    effects_init(effects);
    execution->outcome = (struct execute_outcome){.failed = SIZE_MAX, .retry_after_ns = -1};
    execution->timer = (struct kube_timer){.fire = on_timer, .context = execution};
    wake(execution);
    return execution;
}

void execute_stop(struct execution *execution)
{
    if (!execution->stopping && execution->next < execution->effects.items.count &&
        execution->outcome.end == EXECUTE_DONE)
        execution->outcome.end = EXECUTE_STOPPED;
    execution->stopping = true;
    wake(execution);
}

void execution_free(struct execution *execution)
{
    if (!execution)
        return;
    kube_timer_stop(&execution->timer);
    while (execution->jobs) {
        struct job *job = execution->jobs;
        execution->jobs = job->next;
        if (job->call)
            kube_client_cancel(execution->options.client, job->call);
        free(job);
    }
    effects_done(&execution->effects);
    vec_done(&execution->refused);
    free(execution);
}
