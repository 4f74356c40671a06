/* SPDX-License-Identifier: Apache-2.0
 *
 * The ONNX Runtime library, found and opened at run time: no header of the vendor's is
 * compiled in and nothing is linked, so one binary serves every runtime from 1.11 on.
 *
 * It is searched for in this order, and the newest by version wins within a folder:
 *   1. the path given (--ort-library);
 *   2. $TRANCHE_ORT_LIBRARY;
 *   3. ort/libonnxruntime.so* beside the running binary (what tools/fetch_packages.sh lays);
 *   4. onnxruntime/capi/libonnxruntime.so* of the active Python (PATH's python3);
 *   5. the loader's own path (libonnxruntime.so, then .so.1).
 * A path given by 1 or 2 is used or fails: nothing else is tried in its place.
 */
#ifndef TRANCHE_ENGINE_ONNX_RUNTIME_H
#define TRANCHE_ENGINE_ONNX_RUNTIME_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

struct onnx_runtime;

/* Opens the library. path may be NULL. E_MISSING naming every path searched and how to
 * install it; E_UNSUPPORTED when the file found is not an ONNX Runtime of 1.11 or later. */
int onnx_runtime_open(const char *path, struct onnx_runtime **ret_runtime, struct error *err);
/* Sessions must be gone before. The library itself stays mapped until the process ends:
 * its threads and static objects do not survive unloading. NULL is fine. */
void onnx_runtime_free(struct onnx_runtime *runtime);
CLEANUP_DEFINE_FREE(onnx_runtime)

/* "1.31.1", and the resolved path: for provenance. */
const char *onnx_runtime_version(const struct onnx_runtime *runtime);
/* Where the library was found; borrowed. */
const char *onnx_runtime_path(const struct onnx_runtime *runtime);
/* Appends the names of its execution providers, separated by blanks
 * ("CPUExecutionProvider"). */
void onnx_runtime_providers(const struct onnx_runtime *runtime, struct str *names);

/* Whether a message of the runtime speaks of memory that could not be had (on the host or
 * on a GPU), which makes a result `oom` instead of `error`. */
bool onnx_runtime_text_is_oom(const char *text);

#endif
