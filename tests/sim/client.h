/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of the simulated library as any other: dlopen, dlsym, calls. Each test gets a
 * state file of its own.
 */
#ifndef TRANCHE_TESTS_SIM_CLIENT_H
#define TRANCHE_TESTS_SIM_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/api.h"

/* Every function of both tables, by its own name. */
struct nvml {
    void *library;
#define X(need, type, name, parameters) type(*name) parameters;
    NVML_FUNCTIONS(X)
#undef X
#define X(name, parameters) nvmlReturn_t(*name) parameters;
    SIM_MORE_FUNCTIONS(X)
#undef X
};

static inline void nvml_load(struct nvml *nvml)
{
    nvml->library = dlopen(getenv("TRANCHE_SIM_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        fail_msg("%s", dlerror());
#define X(need, type, name, parameters)                                                        \
    *(void **)&nvml->name = dlsym(nvml->library, #name);                                       \
    assert_non_null(nvml->name);
    NVML_FUNCTIONS(X)
#undef X
#define X(name, parameters)                                                                    \
    *(void **)&nvml->name = dlsym(nvml->library, #name);                                       \
    assert_non_null(nvml->name);
    SIM_MORE_FUNCTIONS(X)
#undef X
}

static inline void new_machine(const char *fleet)
{
    static int count;
    static char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/tranche-sim-test-%d-%d.state", folder ? folder : "/tmp",
             (int)getpid(), count++);
    unlink(path);
    setenv("TRANCHE_SIM_STATE", path, 1);
    setenv("TRANCHE_SIM_FLEET", fleet, 1);
    unsetenv("TRANCHE_SIM_FAULTS");
    unsetenv("TRANCHE_SIM_PRIVILEGE");
    unsetenv("TRANCHE_SIM_TRACE");
    unsetenv("TRANCHE_SIM_SEED");
}

static inline void drop_machine(void)
{
    unlink(getenv("TRANCHE_SIM_STATE"));
}

#define OK(call)          assert_int_equal((call), NVML_SUCCESS)
#define FAILS(code, call) assert_int_equal((call), NVML_ERROR_##code)

/* Initialised, with MIG on in every GPU that has it. */
static inline void start_with_mig(struct nvml *nvml, const char *fleet)
{
    new_machine(fleet);
    OK(nvml->nvmlInit_v2());
    unsigned count;
    OK(nvml->nvmlDeviceGetCount_v2(&count));
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t device;
        nvmlReturn_t activation;
        OK(nvml->nvmlDeviceGetHandleByIndex_v2(i, &device));
        if (nvml->nvmlDeviceSetMigMode(device, 1, &activation) == NVML_SUCCESS)
            assert_int_equal(activation, NVML_SUCCESS);
    }
}

static inline void stop(struct nvml *nvml)
{
    OK(nvml->nvmlShutdown());
    drop_machine();
}

static inline nvmlDevice_t device_at(struct nvml *nvml, unsigned index)
{
    nvmlDevice_t device;
    OK(nvml->nvmlDeviceGetHandleByIndex_v2(index, &device));
    return device;
}

/* Runs tranche-sim (or its nvidia-smi name) with these words; returns the exit status. */
static inline int control(const char *program, const char *const *words)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char path[512];
        const char *library = getenv("TRANCHE_SIM_LIBRARY");
        snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(library, '/') - library), library,
                 program);
        const char *argv[16] = {program};
        for (int i = 0; i < 14 && words[i]; i++)
            argv[i + 1] = words[i];
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execv(path, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CONTROL(...) control("tranche-sim", (const char *const[]){__VA_ARGS__, NULL})

#endif
