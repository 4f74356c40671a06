/* SPDX-License-Identifier: Apache-2.0
 *
 * A model loaded by ONNX Runtime, ready to run, and calls into it. A session may be used
 * by several threads at once, each with a call of its own; a call keeps its inputs bound,
 * so that a loop of session_call_run() does nothing but run the model.
 */
#ifndef TRANCHE_ENGINE_SESSION_H
#define TRANCHE_ENGINE_SESSION_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/onnx_runtime.h"
#include "engine/tensor.h"

struct session;
struct session_call;

enum session_provider {
    SESSION_CPU,
    SESSION_CUDA,     /* device 0 of those that CUDA_VISIBLE_DEVICES leaves visible */
    SESSION_TENSORRT, /* with CUDA for what TensorRT cannot run */
    SESSION_PROVIDER_COUNT
};

struct session_options {
    enum session_provider provider;
    int threads; /* 0 or less: 1. Operators use this many; nothing ever spins (runtimes.md) */
};

enum { SESSION_TENSORS_MAX = 1024 };

struct session_tensor {
    char *name;
    enum tensor_element element;
    struct tensor_shape shape;      /* TENSOR_OPEN where the model leaves a size open */
    char *symbols[TENSOR_RANK_MAX]; /* names of the open sizes ("batch"), or NULL */
};

/* Loads a model from a file. E_IO when it cannot be read (a directory, permissions);
 * E_MISSING when it is not a model that the runtime can run, or when the provider is not
 * there; text names the path and the runtime's own reason. */
int session_open_file(struct onnx_runtime *runtime, const char *path,
                      const struct session_options *options, struct session **ret_session,
                      struct error *err);
/* The same from bytes, which are not needed after; name is for messages. */
int session_open_bytes(struct onnx_runtime *runtime, const char *name, const struct str *bytes,
                       const struct session_options *options, struct session **ret_session,
                       struct error *err);
void session_free(struct session *session); /* its calls must be gone; NULL is fine */
CLEANUP_DEFINE_FREE(session)

/* How many inputs the model has; they count from 0 in its own order. */
size_t session_input_count(const struct session *session);
/* An input below the count; borrowed from the session. */
const struct session_tensor *session_input(const struct session *session, size_t index);
/* How many outputs the model has, in its own order. */
size_t session_output_count(const struct session *session);
/* An output below the count; borrowed from the session. */
const struct session_tensor *session_output(const struct session *session, size_t index);
/* The index of the input of this name; -1: none. */
int session_find_input(const struct session *session, const char *name);
/* The index of the output of this name; -1: none. */
int session_find_output(const struct session *session, const char *name);

/* A call of its own for each thread that runs the session; never NULL. */
struct session_call *session_call_new(struct session *session);
/* Frees the call; NULL is fine. Memory that was bound stays the caller's. */
void session_call_free(struct session_call *call);
CLEANUP_DEFINE_FREE(session_call)

/* Binds an input to the caller's memory, which must live as long as the call or until it
 * is bound again; contents may change between runs. E_INPUT when the runtime refuses. */
int session_call_bind(struct session_call *call, size_t input, const struct tensor *tensor,
                      struct error *err);
/* Feeds an output of the last run back as an input, without a copy: for training steps. */
void session_call_feed_back(struct session_call *call, size_t output, size_t input);
/* Runs the model; every input must be bound. Returns with the outputs in host memory.
 * E_UNSUPPORTED with the runtime's reason (onnx_runtime_text_is_oom() tells memory apart). */
int session_call_run(struct session_call *call, struct error *err);
/* An output of the last run, valid until the next run. E_UNSUPPORTED when it is no tensor
 * of numbers. */
int session_call_output(struct session_call *call, size_t output, struct tensor *ret_tensor,
                        struct error *err);

/* What an input is bound to, fed back or not; as session_call_output(). */
int session_call_input(struct session_call *call, size_t input, struct tensor *ret_tensor,
                       struct error *err);

/* "cpu", "cuda", "tensorrt"; static. */
const char *session_provider_name(enum session_provider provider);
/* The provider of that name; false when unknown, *ret_provider untouched. */
bool session_provider_find(const char *name, enum session_provider *ret_provider);

#endif
