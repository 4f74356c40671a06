/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and opening ONNX Runtime. See onnx_runtime.h and ort_slots.h.
 */
#include "engine/onnx_runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/onnx_runtime_internal.h"

static const char HOW_TO_INSTALL[] =
    "install it with `pip install onnxruntime` (onnxruntime-gpu for CUDA), or unpack the "
    "pinned one with `tools/fetch_packages.sh build`, or give --ort-library FILE";

/* The one symbol that the library exports. */
struct ort_base {
    void *const *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
};

int ort_check(const struct onnx_runtime *runtime, struct ort_status *status,
              enum error_code code, struct error *err)
{
    assert(runtime);
    if (!status)
        return 0;
    int failure = error_set(err, code, "%s", runtime->table.GetErrorMessage(status));
    runtime->table.ReleaseStatus(status);
    return failure;
}

/* The path of the newest file that matches, or NULL. Appends what was looked for. */
static char *newest_match(const char *pattern, struct str *searched)
{
    glob_t found = {0};
    const char *best = NULL;
    str_addf(searched, "\n  %s", pattern);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!best || strverscmp(found.gl_pathv[i], best) > 0)
                best = found.gl_pathv[i];
    char *path = xstrdup(best);
    globfree(&found);
    return path;
}

static char *beside_binary(struct str *searched)
{
    char binary[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", binary, sizeof binary - 1);
    if (length <= 0)
        return NULL;
    binary[length] = '\0';
    char *slash = strrchr(binary, '/');
    *slash = '\0';
    CLEANUP(free_ptr) char *pattern = xasprintf("%s/ort/libonnxruntime.so*", binary);
    return newest_match(pattern, searched);
}

/* Asks PATH's python3 where its onnxruntime package is, without importing it. */
static char *in_active_python(struct str *searched)
{
    static const char COMMAND[] =
        "python3 -c 'import importlib.util as u; s = u.find_spec(\"onnxruntime\"); "
        "print(s.submodule_search_locations[0] if s else \"\")' 2>/dev/null </dev/null";
    char folder[PATH_MAX] = "";
    FILE *answer = popen(COMMAND, "re");
    if (answer) {
        if (!fgets(folder, sizeof folder, answer))
            folder[0] = '\0';
        pclose(answer);
    }
    folder[strcspn(folder, "\n")] = '\0';
    if (!folder[0]) {
        str_add(searched, "\n  onnxruntime/capi of the active python3 (no such package)");
        return NULL;
    }
    CLEANUP(free_ptr) char *pattern = xasprintf("%s/capi/libonnxruntime.so*", folder);
    return newest_match(pattern, searched);
}

/* Steps 1 to 4 of the search; NULL leaves it to the loader. */
static char *find_library(const char *path, struct str *searched)
{
    const char *from_environment = getenv("TRANCHE_ORT_LIBRARY");
    if (path)
        return xstrdup(path);
    if (from_environment && *from_environment)
        return xstrdup(from_environment);
    char *found = beside_binary(searched);
    return found ? found : in_active_python(searched);
}

static void *open_by_loader(struct str *searched)
{
    static const char *const names[] = {"libonnxruntime.so", "libonnxruntime.so.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        str_addf(searched, "\n  %s by the loader", names[i]);
    }
    return NULL;
}

/* Fills the table of functions. */
static int read_table(struct onnx_runtime *runtime, void *library, struct error *err)
{
    const struct ort_base *(*get_base)(void) = NULL;
    void *symbol = dlsym(library, "OrtGetApiBase");
    assert(library);
    memcpy(&get_base, &symbol, sizeof symbol); /* object to function pointer */
    const struct ort_base *base = get_base ? get_base() : NULL;
    if (!base)
        return error_set(err, E_UNSUPPORTED, "%s: this library is not ONNX Runtime",
                         runtime->path);
    void *const *slots = base->GetApi(ORT_TABLE_VERSION);
    runtime->version = base->GetVersionString();
    if (!slots)
        return error_set(err, E_UNSUPPORTED,
                         "%s: ONNX Runtime %s is too old, expected 1.%d or later",
                         runtime->path, runtime->version, ORT_TABLE_VERSION);
#define X(slot, type, name, parameters)                                                        \
    memcpy(&runtime->table.name, &slots[slot], sizeof(void *));
    ORT_SLOTS(X)
#undef X
    return 0;
}

static int make_environment(struct onnx_runtime *runtime, struct error *err)
{
    const struct ort_table *ort = &runtime->table;
    assert(!runtime->env);
    /* We report every failure ourselves: the library keeps quiet. */
    if (ort_check(runtime, ort->CreateEnv(ORT_LOG_FATAL, "tranche", &runtime->env),
                  E_UNSUPPORTED, err) ||
        ort_check(runtime, ort->GetAllocatorWithDefaultOptions(&runtime->allocator),
                  E_UNSUPPORTED, err) ||
        ort_check(
            runtime,
            ort->CreateCpuMemoryInfo(ORT_ALLOCATOR_ARENA, ORT_MEMORY_DEFAULT, &runtime->memory),
            E_UNSUPPORTED, err))
        return error_wrap(err, "%s", runtime->path);
    return 0;
}

/* dlopens what was found, or asks the loader; sets runtime->path. NULL on failure. */
static void *open_library(struct onnx_runtime *runtime, const char *found, struct str *searched,
                          struct error *err)
{
    if (found) {
        /* Provider libraries are looked for beside the path that is opened, and the
         * library does not follow links itself. */
        runtime->path = realpath(found, NULL);
        if (!runtime->path) {
            error_set_errno(err, E_MISSING, "ONNX Runtime: %s (%s)", found, HOW_TO_INSTALL);
            return NULL;
        }
        void *library = dlopen(runtime->path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            error_set(err, E_MISSING, "ONNX Runtime: %s (%s)", dlerror(), HOW_TO_INSTALL);
        return library;
    }
    void *library = open_by_loader(searched);
    if (!library) {
        error_set(err, E_MISSING, "ONNX Runtime is not installed; searched:%s\n%s",
                  searched->bytes, HOW_TO_INSTALL);
        return NULL;
    }
    struct link_map *map = NULL;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    runtime->path = xstrdup(map ? map->l_name : "libonnxruntime.so");
    return library;
}

int onnx_runtime_open(const char *path, struct onnx_runtime **ret_runtime, struct error *err)
{
    CLEANUP(str_done) struct str searched = STR_EMPTY;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = xcalloc(1, sizeof *runtime);
    CLEANUP(free_ptr) char *found = find_library(path, &searched);
    void *library = open_library(runtime, found, &searched, err);
    if (!library)
        return err ? -(int)err->code : -E_MISSING;
    int failure = read_table(runtime, library, err);
    if (!failure)
        failure = make_environment(runtime, err);
    if (failure)
        return failure;
    *ret_runtime = STEAL(runtime);
    return 0;
}

void onnx_runtime_free(struct onnx_runtime *runtime)
{
    if (!runtime)
        return;
    if (runtime->memory)
        runtime->table.ReleaseMemoryInfo(runtime->memory);
    if (runtime->env)
        runtime->table.ReleaseEnv(runtime->env);
    free(runtime->path);
    free(runtime);
}

const char *onnx_runtime_version(const struct onnx_runtime *runtime)
{
    assert(runtime->version);
    return runtime->version;
}

const char *onnx_runtime_path(const struct onnx_runtime *runtime)
{
    assert(runtime->path);
    return runtime->path;
}

void onnx_runtime_providers(const struct onnx_runtime *runtime, struct str *names)
{
    const struct ort_table *ort = &runtime->table;
    char **list = NULL;
    int count = 0;
    assert(runtime && names);
    if (ort_check(runtime, ort->GetAvailableProviders(&list, &count), E_UNSUPPORTED, NULL))
        return;
    for (int i = 0; i < count; i++)
        str_addf(names, "%s%s", i ? " " : "", list[i]);
    ort_check(runtime, ort->ReleaseAvailableProviders(list, count), E_UNSUPPORTED, NULL);
}

bool onnx_runtime_text_is_oom(const char *text)
{
    static const char *const signs[] = {
        "bad_alloc",
        "out of memory",
        "Failed to allocate memory",
        "CUDA failure 2:",
        "cudaErrorMemoryAllocation",
        "CUBLAS_STATUS_ALLOC_FAILED",
    };
    assert(text);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcasestr(text, signs[i]))
            return true;
    return false;
}
