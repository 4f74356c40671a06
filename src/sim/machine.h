/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated machine as one plain value: GPUs with their MIG mode, GPU instances and
 * compute instances, the processes on them and the events of the past. Everything here is
 * pure: no file, no clock, no lock. sim/store.c keeps the value in a file that several
 * processes share; the api_*.c files answer NVML's calls from it.
 *
 * GPU-instance ids index sim_gpu.gis, compute-instance ids index sim_gi.cis, as both are
 * NVML's own small numbers. Functions that change the machine return NVML's codes and, when
 * they fail, leave it alone.
 */
#ifndef TRANCHE_SIM_MACHINE_H
#define TRANCHE_SIM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml_abi.h"
#include "mig/fleet.h"
#include "mig/layout.h"

enum {
    SIM_GPUS_MAX = 64,
    SIM_GI_IDS = NVML_GPU_INSTANCE_ID_LIMIT,
    SIM_CI_IDS = NVML_COMPUTE_INSTANCE_ID_LIMIT,
    SIM_PROCESSES_MAX = 256,
    SIM_EVENTS_MAX = 64,
    SIM_FLEET_TEXT_SIZE = 1024,
    SIM_SLUG_SIZE = 32,
    SIM_NAME_SIZE = 64,
    SIM_UUID_SIZE = NVML_DEVICE_UUID_V2_BUFFER_SIZE
};

struct sim_ci {
    bool used;
    uint8_t profile;     /* index for sim_ci_profile_at() */
    uint8_t start;       /* compute slice inside the GPU instance */
    uint8_t engine;      /* graphics engine, part of the UUID */
    uint32_t generation; /* tells a handle from one of an earlier instance of this id */
};

/* Work done, integrated over time: what GPM's counters are made of. */
struct sim_activity {
    double busy_percent_ns;
};

struct sim_gi {
    bool used;
    uint8_t profile; /* index into board->profiles */
    uint8_t start;   /* memory unit */
    uint8_t engines; /* bit mask of graphics engines held */
    uint32_t generation;
    struct sim_activity activity;
    struct sim_ci cis[SIM_CI_IDS];
};

struct sim_gpu {
    char board[SIM_SLUG_SIZE];
    bool mig_current, mig_pending;
    bool ids_swapped;  /* the halves' instance ids are exchanged (two kinds of board) */
    bool reset_needed; /* the platform cannot reset the GPU itself (passthrough VM) */
    bool lost;         /* fallen off the bus: every call answers GPU_IS_LOST */
    bool persistence;
    uint8_t compute_mode;
    uint32_t power_limit_mw;
    uint32_t generation;    /* of the last instance made */
    uint64_t ecc_errors[2]; /* volatile: corrected, uncorrected */
    double energy_mj;       /* up to settled_ns */
    int64_t settled_ns;
    struct sim_activity activity;
    struct sim_gi gis[SIM_GI_IDS];
};

enum sim_process_type { SIM_COMPUTE, SIM_GRAPHICS, SIM_MPS, SIM_PROCESS_TYPE_COUNT };

struct sim_process {
    uint32_t pid;
    uint64_t
        start_ticks; /* /proc/PID/stat field 22; 0: stays though no such process is there */
    uint32_t gpu;
    uint32_t gi, ci; /* NVML_NO_INSTANCE_ID on a GPU without MIG */
    uint32_t type;   /* enum sim_process_type */
    uint32_t memory_mib;
    uint32_t sm_percent; /* of the instance it is on */
    char name[SIM_NAME_SIZE];
};

struct sim_event {
    uint64_t sequence; /* 1, 2, … */
    uint64_t type, data;
    uint32_t gpu, gi, ci;
};

struct sim_machine {
    char fleet[SIM_FLEET_TEXT_SIZE];
    char seed[SIM_NAME_SIZE]; /* makes the UUIDs of one machine differ from another's */
    uint64_t event_count;     /* ever; event i is in events[(i - 1) % SIM_EVENTS_MAX] */
    uint32_t process_count;
    uint32_t gpu_count;
    struct sim_process processes[SIM_PROCESSES_MAX];
    struct sim_event events[SIM_EVENTS_MAX];
    struct sim_gpu gpus[SIM_GPUS_MAX]; /* last: only gpu_count of them are stored */
};

/* Bytes of the machine that matter. */
size_t sim_machine_size(const struct sim_machine *machine);

/* A machine of this fleet, MIG off, nothing running. E_INPUT: unlimited or too many GPUs. */
int sim_machine_init(struct sim_machine *machine, const char *fleet_text, const char *seed,
                     struct error *err);
/* Whether every number is in its range and every layout legal: for what a file gave. */
bool sim_machine_valid(const struct sim_machine *machine);

/* The board of a GPU; never NULL. */
const struct mig_board *sim_gpu_board(const struct sim_gpu *gpu);
/* The profile of a GPU instance that is there. */
const struct mig_profile *sim_gi_profile(const struct sim_gpu *gpu, const struct sim_gi *gi);
/* The compute-instance profiles of a GPU-instance profile: those of the table; a double-memory
 * one has a second profile of one slice, 1_SLICE beside 1_SLICE_REV1, with the multiprocessors
 * of a plain 1g (NVIDIA/go-nvlib#85; mig-parted makes its 1g.10gb with it). */
int sim_ci_profile_count(const struct mig_profile *profile);
/* The one at a position below the count; never NULL. */
const struct mig_ci_profile *sim_ci_profile_at(const struct mig_profile *profile, int index);
/* The profile of a compute instance that is there. */
const struct mig_ci_profile *sim_ci_profile(const struct sim_gpu *gpu, const struct sim_gi *gi,
                                            const struct sim_ci *ci);
/* The profile id that calls use: the table's, or 128 + enum where no source gives one. */
unsigned sim_profile_id(const struct mig_profile *profile);
/* Index into board->profiles, or -1. */
int sim_profile_by_id(const struct mig_board *board, unsigned profile_id);
int sim_profile_by_enum(const struct mig_board *board, unsigned nvml_enum);
/* The GPU instances as a layout, sorted. */
void sim_gpu_layout(const struct sim_gpu *gpu, struct mig_layout *ret_layout);
/* How many GPU instances a GPU has, and compute instances a GPU instance. */
int sim_gi_count(const struct sim_gpu *gpu);
int sim_ci_count(const struct sim_gi *gi);

/* How many more instances of a profile could be made now. */
unsigned sim_gi_capacity(const struct sim_gpu *gpu, int profile);
/* How many more compute instances of a profile could be made now. */
unsigned sim_ci_capacity(const struct sim_gpu *gpu, const struct sim_gi *gi, int ci_profile);

/* What the driver would choose without a placement: the free start after which the most
 * (profile, start) pairs stay possible, the lowest of equals; -1 when none is free. It is
 * the model of 20 public transcripts, not a promise of the real driver. */
int sim_driver_start(const struct sim_gpu *gpu, int profile);

/* start: MIG_START_ANY lets the driver choose. INSUFFICIENT_RESOURCES when occupied or
 * full, INVALID_ARGUMENT for a start that the profile does not have, NOT_SUPPORTED with MIG
 * off. */
nvmlReturn_t sim_gi_create(struct sim_machine *machine, unsigned gpu, int profile, int start,
                           unsigned *ret_id);
/* IN_USE while a compute instance or a process is on it. */
nvmlReturn_t sim_gi_destroy(struct sim_machine *machine, unsigned gpu, unsigned gi);
/* start: a compute slice inside the GPU instance, or MIG_START_ANY. INSUFFICIENT_RESOURCES when
 * there is no room. */
nvmlReturn_t sim_ci_create(struct sim_machine *machine, unsigned gpu, unsigned gi,
                           int ci_profile, int start, unsigned *ret_id);
/* IN_USE while a process is on it. */
nvmlReturn_t sim_ci_destroy(struct sim_machine *machine, unsigned gpu, unsigned gi,
                            unsigned ci);

/* The i-th compute instance in ascending (GPU instance id, id); false past the last. */
bool sim_mig_device_at(const struct sim_gpu *gpu, unsigned index, unsigned *ret_gi,
                       unsigned *ret_ci);

/* Sets the mode. The change is immediate, or pending until a reset, as the board has it;
 * *ret_activation says why it is pending. held: another client has the driver open. */
nvmlReturn_t sim_set_mig_mode(struct sim_machine *machine, unsigned gpu, bool enabled,
                              bool held, nvmlReturn_t *ret_activation);
/* `nvidia-smi --gpu-reset`: instances vanish, a pending mode becomes current. IN_USE while
 * a process runs on the GPU or another client holds the driver. */
nvmlReturn_t sim_gpu_reset(struct sim_machine *machine, unsigned gpu, bool held);
/* A reboot (or, with reload_only, a reload of the driver): as a reset of every GPU with no
 * process left; the mode stays only on boards that keep it. */
void sim_reboot(struct sim_machine *machine);

/* Appends an event with the next sequence number, in place of the oldest when the ring is
 * full. */
void sim_add_event(struct sim_machine *machine, const struct sim_event *event);
/* IN_USE-free bookkeeping of processes: false when the table is full. */
bool sim_add_process(struct sim_machine *machine, const struct sim_process *process);
/* Takes the process off every GPU and instance. */
void sim_remove_process(struct sim_machine *machine, uint32_t pid);
/* Whether a process is on the GPU (gi NVML_NO_INSTANCE_ID), the instance (ci
 * NVML_NO_INSTANCE_ID) or the compute instance. */
bool sim_has_process(const struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci);

/* UUIDs: a hash of the machine's seed and the GPU's place, or of the GPU's UUID, the
 * instance id and the graphics engine, so that a layout built in the same order gets the
 * same UUIDs. */
void sim_gpu_uuid(const struct sim_machine *machine, unsigned gpu, char ret[SIM_UUID_SIZE]);
void sim_mig_uuid(const struct sim_machine *machine, unsigned gpu, unsigned gi, unsigned ci,
                  char ret[SIM_UUID_SIZE]);

#endif
