/* SPDX-License-Identifier: Apache-2.0
 *
 * A session of our own in place of engine/session.c, so that codec, batcher and server are
 * tested without ONNX Runtime: every output is its input plus one, in the input's shape. A
 * test can hold runs back, make them fail, and read what was run.
 */
#ifndef TRANCHE_TESTS_SERVE_FAKE_SESSION_H
#define TRANCHE_TESTS_SERVE_FAKE_SESSION_H

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "engine/session.h"

enum { FAKE_TENSORS_MAX = 4, FAKE_RUNS_MAX = 4096 };

struct session {
    struct session_tensor inputs[FAKE_TENSORS_MAX], outputs[FAKE_TENSORS_MAX];
    size_t input_count, output_count;
    pthread_mutex_t lock;
    pthread_cond_t released;
    bool held;               /* runs wait until it is false */
    bool fails;              /* runs fail */
    long run_ns;             /* a run takes so long */
    int runs[FAKE_RUNS_MAX]; /* rows of each run, in order of start */
    int run_count;
    int running, running_peak;
};

struct session_call {
    struct session *session;
    struct tensor bound[FAKE_TENSORS_MAX], results[FAKE_TENSORS_MAX];
    size_t capacities[FAKE_TENSORS_MAX];
};

/* x [-1, 2] FP32 → y. */
#define FAKE_SESSION                                                                           \
    {                                                                                          \
        .inputs = {{.name = (char *)"x",                                                       \
                    .element = TENSOR_F32,                                                     \
                    .shape = {.rank = 2, .size = {TENSOR_OPEN, 2}}}},                          \
        .outputs = {{.name = (char *)"y",                                                      \
                     .element = TENSOR_F32,                                                    \
                     .shape = {.rank = 2, .size = {TENSOR_OPEN, 2}}}},                         \
        .input_count = 1, .output_count = 1, .lock = PTHREAD_MUTEX_INITIALIZER,                \
        .released = PTHREAD_COND_INITIALIZER                                                   \
    }

static inline void fake_hold(struct session *session, bool held)
{
    pthread_mutex_lock(&session->lock);
    session->held = held;
    pthread_cond_broadcast(&session->released);
    pthread_mutex_unlock(&session->lock);
}

/* How many runs have begun, and how many are under way. */
static inline int fake_run_count(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    int count = session->run_count;
    pthread_mutex_unlock(&session->lock);
    return count;
}

static inline int fake_running(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    int count = session->running;
    pthread_mutex_unlock(&session->lock);
    return count;
}

size_t session_input_count(const struct session *session)
{
    return session->input_count;
}

const struct session_tensor *session_input(const struct session *session, size_t index)
{
    assert(index < session->input_count);
    return &session->inputs[index];
}

size_t session_output_count(const struct session *session)
{
    return session->output_count;
}

const struct session_tensor *session_output(const struct session *session, size_t index)
{
    assert(index < session->output_count);
    return &session->outputs[index];
}

int session_find_input(const struct session *session, const char *name)
{
    for (size_t i = 0; i < session->input_count; i++)
        if (strcmp(session->inputs[i].name, name) == 0)
            return (int)i;
    return -1;
}

int session_find_output(const struct session *session, const char *name)
{
    for (size_t i = 0; i < session->output_count; i++)
        if (strcmp(session->outputs[i].name, name) == 0)
            return (int)i;
    return -1;
}

struct session_call *session_call_new(struct session *session)
{
    struct session_call *call = xcalloc(1, sizeof *call);
    call->session = session;
    return call;
}

void session_call_free(struct session_call *call)
{
    for (int i = 0; call && i < FAKE_TENSORS_MAX; i++)
        free(call->results[i].data);
    free(call);
}

int session_call_bind(struct session_call *call, size_t input, const struct tensor *tensor,
                      struct error *err)
{
    (void)err;
    call->bound[input] = *tensor;
    return 0;
}

static void fake_compute(struct session_call *call, size_t index)
{
    const struct tensor *from = &call->bound[index < call->session->input_count ? index : 0];
    struct tensor *to = &call->results[index];
    if (call->capacities[index] < from->size_bytes) {
        to->data = xrealloc(to->data, from->size_bytes, 1);
        call->capacities[index] = from->size_bytes;
    }
    void *data = to->data;
    *to = *from;
    to->data = data;
    memcpy(data, from->data, from->size_bytes);
    for (size_t k = 0; from->element == TENSOR_F32 && k < from->size_bytes / sizeof(float); k++)
        ((float *)data)[k] += 1;
}

int session_call_run(struct session_call *call, struct error *err)
{
    struct session *session = call->session;
    struct timespec time = {.tv_nsec = session->run_ns};
    pthread_mutex_lock(&session->lock);
    if (session->run_count < FAKE_RUNS_MAX)
        session->runs[session->run_count++] =
            call->bound[0].shape.rank ? (int)call->bound[0].shape.size[0] : 1;
    if (++session->running > session->running_peak)
        session->running_peak = session->running;
    while (session->held)
        pthread_cond_wait(&session->released, &session->lock);
    bool fails = session->fails;
    pthread_mutex_unlock(&session->lock);
    if (time.tv_nsec)
        nanosleep(&time, NULL);
    for (size_t i = 0; i < session->output_count && !fails; i++)
        fake_compute(call, i);
    pthread_mutex_lock(&session->lock);
    session->running--;
    pthread_mutex_unlock(&session->lock);
    return fails ? error_set(err, E_UNSUPPORTED, "the model failed on purpose") : 0;
}

int session_call_output(struct session_call *call, size_t output, struct tensor *ret_tensor,
                        struct error *err)
{
    (void)err;
    *ret_tensor = call->results[output];
    return 0;
}

#endif
