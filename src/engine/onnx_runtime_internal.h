/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share about the library. Not for other folders.
 */
#ifndef TRANCHE_ENGINE_ONNX_RUNTIME_INTERNAL_H
#define TRANCHE_ENGINE_ONNX_RUNTIME_INTERNAL_H

#include "base/error.h"
#include "engine/onnx_runtime.h"
#include "engine/ort_slots.h"

struct onnx_runtime {
    struct ort_table table;
    struct ort_env *env;
    struct ort_allocator *allocator; /* the runtime's own; frees names */
    struct ort_memory_info *memory;  /* "plain host memory" */
    const char *version;             /* owned by the library */
    char *path;
};

/* 0 for success; else releases the status and returns `code` with its message. */
int ort_check(const struct onnx_runtime *runtime, struct ort_status *status,
              enum error_code code, struct error *err);

struct session;
/* The runtime's own session: for comparing with a bare loop. */
struct ort_session *session_handle(const struct session *session);

#endif
