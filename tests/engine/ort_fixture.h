/* SPDX-License-Identifier: Apache-2.0
 *
 * The library and real models that tools/fetch_packages.sh laid, in this build folder or in
 * build/, where `make` has them ($TRANCHE_BUILD_ROOT and $TRANCHE_SOURCE_ROOT are set by
 * tests/engine/meson.build). Tests that need them skip, saying so, when they are not there.
 */
#ifndef TRANCHE_TESTS_ENGINE_ORT_FIXTURE_H
#define TRANCHE_TESTS_ENGINE_ORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/onnx_runtime.h"

/* The first file that matches a pattern in the build folders, or NULL; in CI it is there. */
static inline char *find_fetched(const char *pattern)
{
    const char *folders[] = {getenv("TRANCHE_BUILD_ROOT"), getenv("TRANCHE_SOURCE_ROOT")};
    char *found = NULL;
    for (int i = 0; i < 2 && !found; i++) {
        glob_t matches = {0};
        CLEANUP(free_ptr)
        char *path =
            xasprintf("%s%s/%s", folders[i] ? folders[i] : ".", i ? "/build" : "", pattern);
        if (glob(path, 0, NULL, &matches) == 0)
            found = xstrdup(matches.gl_pathv[0]);
        globfree(&matches);
    }
    if (!found && getenv("CI"))
        fail_msg("no %s (tools/fetch_packages.sh)", pattern);
    if (!found)
        print_message("no %s (tools/fetch_packages.sh)\n", pattern);
    return found;
}

static inline struct onnx_runtime *open_runtime(void)
{
    struct onnx_runtime *runtime = NULL;
    struct error err;
    CLEANUP(free_ptr) char *library = find_fetched("ort/libonnxruntime.so*");
    if (!library)
        skip();
    if (onnx_runtime_open(library, &runtime, &err))
        fail_msg("%s", err.text);
    return runtime;
}

/* The path of a real model; NULL when it was not fetched. */
static inline char *find_model(const char *name)
{
    CLEANUP(free_ptr) char *pattern = xasprintf("models/%s.onnx", name);
    return find_fetched(pattern);
}

#endif
