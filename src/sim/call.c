/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/call.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim/processes.h"
#include "sim/store.h"

enum { PLAN_SIZE_LIMIT = 1 << 20 };

/* This process's library. state_lock guards store and init_count, plan_lock the rest;
 * tables_lock is taken within state_lock. */
static struct {
    pthread_mutex_t state_lock, plan_lock, tables_lock;
    struct sim_store store;
    int init_count;
    struct sim_faults *faults;
    char *faults_text; /* what faults was parsed from */
    unsigned long calls;
} library = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
             .store = {.fd = -1}};

/* ---- fork: the child starts with free locks and must initialise NVML itself ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&library.plan_lock);
    pthread_mutex_lock(&library.state_lock);
    pthread_mutex_lock(&library.tables_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&library.tables_lock);
    pthread_mutex_unlock(&library.state_lock);
    pthread_mutex_unlock(&library.plan_lock);
}

static void after_fork_in_child(void)
{
    if (library.init_count > 0)
        sim_store_close(&library.store); /* the parent's locks are not ours to use */
    library.init_count = 0;
    after_fork_in_parent();
}

__attribute__((constructor)) static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void sim_tables_lock(void)
{
    pthread_mutex_lock(&library.tables_lock);
}

void sim_tables_unlock(void)
{
    pthread_mutex_unlock(&library.tables_lock);
}

/* ---- the fault plan ---- */

/* A simulator has no log, and NVML's codes cannot say which file or word is wrong. */
static void complain(const struct error *err)
{
    fprintf(stderr, "tranche: simulated NVML: %s\n", err->text);
}

static char *read_plan_file(const char *path, struct error *err)
{
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    if (!file) {
        error_set_errno(err, E_IO, "TRANCHE_SIM_FAULTS: cannot open %s", path);
        return NULL;
    }
    char *text = xcalloc(1, PLAN_SIZE_LIMIT + 1);
    size_t length = fread(text, 1, PLAN_SIZE_LIMIT, file);
    text[length] = '\0';
    return text;
}

/* A program that closes the library again and again must not grow. */
static __attribute__((destructor)) void unload(void)
{
    sim_faults_free(library.faults);
    free(library.faults_text);
}

/* Reads TRANCHE_SIM_FAULTS ("@FILE" or the plan itself) when it changed. */
static int load_faults(struct error *err)
{
    const char *given = getenv("TRANCHE_SIM_FAULTS");
    CLEANUP(free_ptr)
    char *text = !given          ? xstrdup("")
                 : *given == '@' ? read_plan_file(given + 1, err)
                                 : xstrdup(given);
    if (!text)
        return -E_IO;
    if (library.faults_text && strcmp(text, library.faults_text) == 0)
        return 0;
    struct sim_faults *faults = NULL;
    int status = sim_faults_parse(text, &faults, err);
    if (status < 0)
        return status;
    sim_faults_free(library.faults);
    free(library.faults_text);
    library.faults = faults;
    library.faults_text = STEAL(text);
    return 0;
}

static int named_gpu(const struct sim_call *call)
{
    struct sim_handle handle;
    return sim_handle_read(call->handle, &handle) ? (int)handle.gpu : -1;
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) < 0)
        continue;
}

static nvmlReturn_t faults_before(struct sim_call *call)
{
    if (call->repeated)
        return NVML_SUCCESS;
    pthread_mutex_lock(&library.plan_lock);
    call->number = ++library.calls;
    call->effects = sim_faults_next(library.faults, call->name, named_gpu(call));
    pthread_mutex_unlock(&library.plan_lock);
    if (call->effects.hang_ms > 0)
        sleep_ms(call->effects.hang_ms);
    if (call->effects.kill_before)
        raise(SIGKILL);
    return call->effects.error_before;
}

/* One line a call, "PID NUMBER FUNCTION GPU RESULT", appended whole. */
static void trace(const struct sim_call *call, nvmlReturn_t status)
{
    const char *path = getenv("TRANCHE_SIM_TRACE");
    if (!path || !*path)
        return;
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    char line[160];
    int gpu = named_gpu(call);
    int length = snprintf(line, sizeof line, "%d %lu %s %d %s\n", (int)getpid(), call->number,
                          call->name, gpu, sim_return_name(status));
    if (fd >= 0 && write(fd, line, (size_t)length) != length)
        return; /* a trace is a help, not a duty */
}

static nvmlReturn_t faults_after(struct sim_call *call, nvmlReturn_t status)
{
    if (call->effects.kill_after)
        raise(SIGKILL);
    if (call->effects.error_after != NVML_SUCCESS)
        status = call->effects.error_after;
    trace(call, status);
    return status;
}

/* ---- the handle ---- */

static nvmlReturn_t check_kind(struct sim_call *call, enum sim_handle_kind kind)
{
    switch (call->flags & CALL_HANDLE_MASK) {
    case CALL_PARENT:
        return kind == SIM_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    case CALL_READING:
        return kind == SIM_GPU          ? NVML_SUCCESS
               : kind == SIM_MIG_DEVICE ? NVML_ERROR_NOT_SUPPORTED
                                        : NVML_ERROR_INVALID_ARGUMENT;
    case CALL_DEVICE:
        return kind == SIM_GPU || kind == SIM_MIG_DEVICE ? NVML_SUCCESS
                                                         : NVML_ERROR_INVALID_ARGUMENT;
    case CALL_MIG:
        return kind == SIM_MIG_DEVICE ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    case CALL_GI:
        return kind == SIM_GI ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    default:
        return kind == SIM_CI ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    }
}

static nvmlReturn_t find_handle(struct sim_call *call)
{
    struct sim_handle handle;
    if (!sim_handle_read(call->handle, &handle) || handle.gpu >= call->machine->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t status = check_kind(call, handle.kind);
    if (status != NVML_SUCCESS)
        return status;
    struct sim_gpu *gpu = &call->machine->gpus[handle.gpu];
    /* A lost GPU says so of all its handles, whatever became of their instances. */
    if (gpu->lost)
        return NVML_ERROR_GPU_IS_LOST;
    if (!sim_handle_alive(call->machine, &handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    call->gpu = gpu;
    call->gpu_index = handle.gpu;
    call->is_mig = handle.kind == SIM_MIG_DEVICE;
    if (handle.kind == SIM_GPU)
        return NVML_SUCCESS;
    call->gi_index = handle.gi;
    call->gi = &gpu->gis[handle.gi];
    if (handle.kind == SIM_GI)
        return NVML_SUCCESS;
    call->ci_index = handle.ci;
    call->ci = &call->gi->cis[handle.ci];
    return NVML_SUCCESS;
}

static bool is_privileged(void)
{
    const char *privilege = getenv("TRANCHE_SIM_PRIVILEGE");
    return !privilege || strcmp(privilege, "user") != 0;
}

static nvmlReturn_t check_call(struct sim_call *call)
{
    if (call->flags & CALL_HANDLE_MASK) {
        nvmlReturn_t status = find_handle(call);
        if (status != NVML_SUCCESS)
            return status;
    }
    if (call->flags & CALL_MIG_BOARD && !sim_gpu_board(call->gpu)->has_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    bool secret = call->flags & CALL_MEMORY && !call->is_mig && call->gpu->mig_current;
    if ((call->flags & CALL_PRIVILEGED || secret) && !is_privileged())
        return NVML_ERROR_NO_PERMISSION;
    if (call->flags & CALL_MIG_ON && !call->gpu->mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* ---- a call ---- */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static nvmlReturn_t lock_machine(struct sim_call *call)
{
    struct error err;
    int status = sim_store_lock(&library.store, (call->flags & CALL_WRITE) != 0, &err);
    if (status == -E_UNSUPPORTED)
        return NVML_ERROR_NO_PERMISSION;
    if (status < 0) {
        complain(&err);
        return NVML_ERROR_UNKNOWN;
    }
    call->locked = true;
    call->machine = &library.store.machine;
    call->now_ns = monotonic_ns();
    sim_drop_dead_processes(call->machine, call->now_ns);
    if (call->flags & CALL_WRITE)
        sim_settle(call->machine, call->now_ns);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_call_begin(struct sim_call *call)
{
    assert(call->name && !call->locked);
    nvmlReturn_t status = faults_before(call);
    if (status != NVML_SUCCESS)
        return status;
    pthread_mutex_lock(&library.state_lock);
    if (library.init_count == 0)
        status = NVML_ERROR_UNINITIALIZED;
    else if (!(call->flags & CALL_STATELESS))
        status = lock_machine(call);
    if (status == NVML_SUCCESS && call->locked)
        status = check_call(call);
    if (!call->locked)
        pthread_mutex_unlock(&library.state_lock);
    return status;
}

/* With the state lock held. */
static nvmlReturn_t leave_machine(struct sim_call *call, nvmlReturn_t status)
{
    assert(library.init_count > 0 && call->machine);
    bool write = (call->flags & CALL_WRITE) != 0, committed = false;
    if (write && status == NVML_SUCCESS) {
        struct error err;
        if (call->effects.kill_commit)
            sim_store_kill_next_commit(&library.store);
        committed = sim_store_commit(&library.store, &err) == 0;
        if (!committed) {
            complain(&err);
            status = NVML_ERROR_UNKNOWN;
        }
    }
    sim_store_unlock(&library.store, write && !committed);
    return status;
}

nvmlReturn_t sim_call_end(struct sim_call *call, nvmlReturn_t status)
{
    if (call->locked) {
        status = leave_machine(call, status);
        call->locked = false;
        pthread_mutex_unlock(&library.state_lock);
    }
    return faults_after(call, status);
}

bool sim_call_held_by_others(void)
{
    return sim_store_held_by_others(&library.store);
}

/* ---- init and shutdown ---- */

static nvmlReturn_t open_machine(void)
{
    struct error err;
    int status = sim_store_open(&library.store, &err);
    if (status == 0)
        return NVML_SUCCESS;
    complain(&err);
    return status == -E_CONFLICT ? NVML_ERROR_LIB_RM_VERSION_MISMATCH
           : status == -E_IO     ? NVML_ERROR_DRIVER_NOT_LOADED
                                 : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t sim_library_init(const char *name)
{
    struct sim_call call = {.name = name};
    struct error err;
    pthread_mutex_lock(&library.plan_lock);
    int plan = load_faults(&err);
    pthread_mutex_unlock(&library.plan_lock);
    if (plan < 0) {
        complain(&err);
        return NVML_ERROR_UNKNOWN;
    }
    nvmlReturn_t status = faults_before(&call);
    if (status == NVML_SUCCESS) {
        pthread_mutex_lock(&library.state_lock);
        if (library.init_count == 0)
            status = open_machine();
        if (status == NVML_SUCCESS)
            library.init_count++;
        pthread_mutex_unlock(&library.state_lock);
    }
    return faults_after(&call, status);
}

nvmlReturn_t sim_library_shutdown(const char *name)
{
    struct sim_call call = {.name = name};
    nvmlReturn_t status = faults_before(&call);
    if (status == NVML_SUCCESS) {
        pthread_mutex_lock(&library.state_lock);
        if (library.init_count == 0)
            status = NVML_ERROR_UNINITIALIZED;
        else if (--library.init_count == 0)
            sim_store_close(&library.store);
        pthread_mutex_unlock(&library.state_lock);
    }
    return faults_after(&call, status);
}

/* ---- helpers of the API files ---- */

nvmlReturn_t sim_copy_text(char *buffer, unsigned length, const char *text)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    size_t needed = strlen(text) + 1;
    if (length < needed)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, needed);
    return NVML_SUCCESS;
}

const void *sim_index_handle(unsigned index)
{
    return index < SIM_GPUS_MAX
               ? sim_handle_make(&(struct sim_handle){.kind = SIM_GPU, .gpu = index})
               : NULL;
}

nvmlDevice_t sim_device_handle(const struct sim_machine *machine, unsigned gpu)
{
    assert(gpu < machine->gpu_count);
    struct sim_handle handle = sim_handle_of(machine, SIM_GPU, gpu, 0, 0);
    return sim_handle_make(&handle);
}

nvmlDevice_t sim_mig_handle(const struct sim_machine *machine, unsigned gpu, unsigned gi,
                            unsigned ci)
{
    assert(gpu < machine->gpu_count && gi < SIM_GI_IDS && ci < SIM_CI_IDS);
    struct sim_handle handle = sim_handle_of(machine, SIM_MIG_DEVICE, gpu, gi, ci);
    return sim_handle_make(&handle);
}
