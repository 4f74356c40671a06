/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, loading and resolving an NVML library. There is no link-time dependency: a
 * machine without a driver runs everything that needs none. Where NVML renamed a function
 * without changing its binary form, the older name serves too.
 */
#include "gpu/nvml_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum need { NEED_REQUIRED, NEED_MIG, NEED_OPTIONAL };

static const struct symbol {
    const char *name;
    size_t offset; /* in struct nvml_functions */
    enum need need;
} symbols[] = {
#define X(need, type, name, parameters)                                                        \
    {#name, offsetof(struct nvml_functions, name), NEED_##need},
    NVML_FUNCTIONS(X)
#undef X
};

/* Older names with the same binary form. */
static const struct {
    const char *name, *older;
} older_names[] = {
    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
     "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
    {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"},
};

static const struct {
    nvmlReturn_t result;
    const char *name;
} return_names[] = {
#define X(name) {name, #name},
    NVML_RETURNS(X)
#undef X
};

/* Where drivers and container runtimes put the library when the loader does not know. */
static const char *const library_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
};

#define SIM_LIBRARY "libnvidia-ml.so.1"
/* From the program's folder: build tree, then install tree. */
static const char *const sim_folders[] = {
    "sim",        "src/sim",       ".", "../lib/tranche/sim", "../lib/tranche",
    "../src/sim", "../../src/sim",
};

const char *nvml_return_name(nvmlReturn_t result)
{
    for (size_t i = 0; i < sizeof return_names / sizeof return_names[0]; i++)
        if (return_names[i].result == result)
            return return_names[i].name;
    return "an unknown NVML error";
}

enum error_code nvml_error_code(nvmlReturn_t result)
{
    static const struct {
        nvmlReturn_t result;
        enum error_code code;
    } codes[] = {
        {NVML_ERROR_NOT_SUPPORTED, E_UNSUPPORTED},
        {NVML_ERROR_FUNCTION_NOT_FOUND, E_UNSUPPORTED},
        {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, E_UNSUPPORTED},
        {NVML_ERROR_NOT_FOUND, E_NOT_FOUND},
        {NVML_ERROR_GPU_NOT_FOUND, E_NOT_FOUND},
        {NVML_ERROR_DRIVER_NOT_LOADED, E_MISSING},
        {NVML_ERROR_LIBRARY_NOT_FOUND, E_MISSING},
        {NVML_ERROR_LIB_RM_VERSION_MISMATCH, E_MISSING},
        {NVML_ERROR_GPU_IS_LOST, E_MISSING},
        {NVML_ERROR_IN_USE, E_BUSY},
        {NVML_ERROR_NOT_READY, E_BUSY},
        {NVML_ERROR_INSUFFICIENT_RESOURCES, E_CONFLICT},
        {NVML_ERROR_TIMEOUT, E_TIMEOUT},
    };
    assert(result != NVML_SUCCESS);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].result == result)
            return codes[i].code;
    return E_IO;
}

int nvml_fail(const struct nvml *nvml, nvmlReturn_t result, const char *call,
              const char *object, struct error *err)
{
    const char *words = nvml->call.nvmlErrorString ? nvml->call.nvmlErrorString(result) : NULL;
    const char *advice = "";

    assert(call);
    if (result == NVML_ERROR_NO_PERMISSION)
        advice = "; run as root, or grant CAP_SYS_ADMIN and the MIG config capability";
    else if (result == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        advice = "; the kernel module and the library differ: reload the module or reboot";
    else if (result == NVML_ERROR_DRIVER_NOT_LOADED)
        advice = "; load the nvidia kernel module, or use --driver sim";
    return error_set(err, nvml_error_code(result), "%s%s%s: %s (%s)%s", call,
                     object ? " on " : "", object ? object : "", words ? words : "failed",
                     nvml_return_name(result), advice);
}

static void *find_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    for (size_t i = 0; !symbol && i < sizeof older_names / sizeof older_names[0]; i++)
        if (!strcmp(older_names[i].name, name))
            symbol = dlsym(library, older_names[i].older);
    return symbol;
}

static int resolve(struct nvml *nvml, const char *path, struct error *err)
{
    nvml->has_mig = true;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = find_symbol(nvml->library, symbols[i].name);
        memcpy((char *)&nvml->call + symbols[i].offset, &symbol, sizeof symbol);
        if (symbol)
            continue;
        if (symbols[i].need == NEED_REQUIRED)
            return error_set(err, E_MISSING,
                             "%s has no %s: this is no NVML, or one older than driver 450; "
                             "install a newer driver",
                             path, symbols[i].name);
        if (symbols[i].need == NEED_MIG)
            nvml->has_mig = false;
    }
    return 0;
}

/* Tries one path; notes it in `tried`. */
static bool try_open(struct nvml *nvml, const char *path, struct str *tried)
{
    nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        str_addf(tried, "%s%s", tried->length ? ", " : "", path);
    return nvml->library != NULL;
}

static bool try_folders(struct nvml *nvml, const char *base, const char *const *folders,
                        size_t count, struct str *tried)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(str_done) struct str path = STR_EMPTY;
        str_addf(&path, "%s%s%s/%s", base, *base ? "/" : "", folders[i], SIM_LIBRARY);
        if (try_open(nvml, path.bytes, tried))
            return true;
    }
    return false;
}

static void program_folder(char ret[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    ret[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(ret, '/');
    if (slash)
        *slash = '\0';
}

static bool open_sim(struct nvml *nvml, const char *library, struct str *tried)
{
    char folder[PATH_MAX];

    if (!library)
        library = getenv("TRANCHE_SIM_LIBRARY");
    if (library && *library)
        return try_open(nvml, library, tried);
    program_folder(folder);
    return try_folders(nvml, folder, sim_folders, sizeof sim_folders / sizeof sim_folders[0],
                       tried);
}

static bool open_nvml(struct nvml *nvml, const char *library, struct str *tried)
{
    if (!library)
        library = getenv("TRANCHE_NVML_LIBRARY");
    if (library && *library)
        return try_open(nvml, library, tried);
    return try_open(nvml, NVML_LIBRARY_SONAME, tried) ||
           try_folders(nvml, "", library_folders,
                       sizeof library_folders / sizeof library_folders[0], tried);
}

int nvml_library_open(const struct gpu_driver_options *options, struct nvml *ret_nvml,
                      struct error *err)
{
    CLEANUP(str_done) struct str tried = STR_EMPTY;
    struct nvml nvml = {0};
    bool sim = options->kind == GPU_DRIVER_SIM;

    assert(options->kind < GPU_DRIVER_KIND_COUNT);
    if (!(sim ? open_sim : open_nvml)(&nvml, options->library, &tried))
        return error_set(err, E_MISSING,
                         sim ? "no simulated NVML library: looked for %s; build it (make) or "
                               "set TRANCHE_SIM_LIBRARY"
                             : "no NVIDIA driver on this machine: looked for %s; install the "
                               "driver, set TRANCHE_NVML_LIBRARY, or use --driver sim",
                         tried.bytes);
    int r = resolve(&nvml, options->library ? options->library : NVML_LIBRARY_SONAME, err);
    if (r) {
        nvml_library_close(&nvml);
        return r;
    }
    *ret_nvml = nvml;
    return 0;
}

void nvml_library_close(struct nvml *nvml)
{
    if (nvml->events)
        nvml->call.nvmlEventSetFree(nvml->events);
    if (nvml->initialised)
        nvml->call.nvmlShutdown();
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct nvml){0};
}
