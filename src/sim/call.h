/* SPDX-License-Identifier: Apache-2.0
 *
 * What every NVML call does before and after its own work: count and trace it, let the
 * fault plan act, refuse it before nvmlInit, lock and load the machine, look its handle up,
 * check the privilege; then commit, unlock, and let the plan act again. An API function is
 *
 *     nvmlReturn_t nvmlDeviceGetX(nvmlDevice_t device, unsigned int *x)
 *     {
 *         return NVML_CALL(PARENT, device, NVML_SET(x, call.gpu->x));
 *     }
 *
 * One mutex is held from lock to unlock, so threads of one process take turns; a hang of the
 * fault plan and the wait of an event set hold nothing.
 */
#ifndef TRANCHE_SIM_CALL_H
#define TRANCHE_SIM_CALL_H

#include "sim/fault.h"
#include "sim/handle.h"
#include "sim/machine.h"

/* What the handle must be, and what the call may do. */
enum {
    CALL_NONE = 0,    /* no handle */
    CALL_PARENT = 1,  /* a whole GPU; a MIG device is INVALID_ARGUMENT */
    CALL_READING = 2, /* a whole GPU; a MIG device is NOT_SUPPORTED */
    CALL_DEVICE = 3,  /* a GPU or a MIG device */
    CALL_MIG = 4,     /* a MIG device; a GPU is INVALID_ARGUMENT */
    CALL_GI = 5,
    CALL_CI = 6,
    CALL_HANDLE_MASK = 7,
    CALL_WRITE = 8,       /* changes the machine */
    CALL_PRIVILEGED = 16, /* root, or a MIG capability */
    CALL_MIG_BOARD = 32,  /* NOT_SUPPORTED on a board without MIG */
    CALL_MIG_ON = 64,     /* NOT_SUPPORTED with MIG off */
    CALL_MEMORY = 256,    /* privileged on a whole GPU with MIG on */
    CALL_STATELESS = 128, /* needs NVML initialised and nothing of the machine */
    CALL_ADMIN = CALL_WRITE | CALL_PRIVILEGED
};

struct sim_call {
    const char *name;
    unsigned flags;
    const void *handle;
    bool repeated; /* another look of one waiting call: the fault plan has had its turn */
    /* Filled by sim_call_begin(). */
    struct sim_machine *machine;
    unsigned gpu_index, gi_index, ci_index;
    struct sim_gpu *gpu; /* NULL without a handle; gi, ci as far as the handle names them */
    struct sim_gi *gi;
    struct sim_ci *ci;
    bool is_mig;    /* the handle is a MIG device */
    int64_t now_ns; /* CLOCK_MONOTONIC */
    bool locked;
    unsigned long number; /* since the library was loaded */
    struct sim_fault_effects effects;
};

/* Locks the machine and resolves the handle; another result than NVML_SUCCESS is the answer
 * of the call, which still ends with sim_call_end(). */
nvmlReturn_t sim_call_begin(struct sim_call *call);
/* Returns status, or what the fault plan says. */
nvmlReturn_t sim_call_end(struct sim_call *call, nvmlReturn_t status);

#define NVML_CALL_FLAGS(flags_, handle_, expression)                                           \
    ({                                                                                         \
        struct sim_call call = {.name = __func__, .flags = (flags_), .handle = (handle_)};     \
        nvmlReturn_t status_ = sim_call_begin(&call);                                          \
        if (status_ == NVML_SUCCESS)                                                           \
            status_ = (expression);                                                            \
        sim_call_end(&call, status_);                                                          \
    })
#define NVML_CALL(kind, handle, expression) NVML_CALL_FLAGS(CALL_##kind, handle, expression)

/* Stores through an output pointer that may be NULL. */
#define NVML_SET(pointer, value)                                                               \
    ((pointer) ? (*(pointer) = (value), NVML_SUCCESS) : NVML_ERROR_INVALID_ARGUMENT)

/* Copies text into a caller's buffer: INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t sim_copy_text(char *buffer, unsigned length, const char *text);

/* nvmlInit and nvmlShutdown: counted; the first opens the machine, the last closes it. */
nvmlReturn_t sim_library_init(const char *name);
nvmlReturn_t sim_library_shutdown(const char *name);

/* Whether another process has this machine's driver open. For use inside a call. */
bool sim_call_held_by_others(void);

/* A handle as the caller gets it, of what is there. */
nvmlDevice_t sim_device_handle(const struct sim_machine *machine, unsigned gpu);
nvmlDevice_t sim_mig_handle(const struct sim_machine *machine, unsigned gpu, unsigned gi,
                            unsigned ci);

/* For a call that takes an index: what tells the fault plan and the trace which GPU it
 * names. NULL for an index that no machine has. */
const void *sim_index_handle(unsigned index);

/* Guards the small tables of event sets and samples, which are this process's alone. */
void sim_tables_lock(void);
void sim_tables_unlock(void);

#endif
