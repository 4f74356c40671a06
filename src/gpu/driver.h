/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam to a GPU driver: what apply, inventory and metrics need of NVML, and nothing
 * more. Implementations: the NVML library of the machine or the simulated one, both by
 * gpu/nvml.c through dlopen(); fakes and the faulty wrapper live in tests/gpu.
 *
 * Every GPU is named by its UUID: indexes change with CUDA_DEVICE_ORDER, names repeat, and
 * NVML handles die on reset, so a driver resolves the UUID at each call. Instances are
 * named by NVML's ids, which only struct gpu_gi ties to a start.
 *
 * Error codes: E_MISSING no driver, GPU lost; E_UNSUPPORTED the board or driver cannot;
 * E_BUSY somebody holds it (NVML IN_USE); E_CONFLICT no room (INSUFFICIENT_RESOURCES);
 * E_NOT_FOUND; E_TIMEOUT; E_IO no permission and everything else. The text names the call,
 * the GPU and NVML's words.
 */
#ifndef TRANCHE_GPU_DRIVER_H
#define TRANCHE_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

enum {
    GPU_TEXT_SIZE = 96, /* UUIDs and names, as NVML's buffers */
    GPU_PCI_SIZE = 32,
    GPU_PLACEMENTS_MAX = 16,
    GPU_CI_MAX = 8,
    GPU_INSTANCES_MAX = 15, /* ids 0 … 14 */
    GPU_CI_PROFILES_MAX = 9,
    GPU_LIVE_PROFILES_MAX = 18,
    GPU_START_UNKNOWN = -1,
    GPU_GPM_INTERVAL_MS = 100, /* the shortest window that NVML promises values for */
};
#define GPU_NO_INSTANCE UINT32_MAX /* of a process: none, or not told */

struct gpu_identity {
    char uuid[GPU_TEXT_SIZE];      /* "GPU-…" */
    char pci_bus_id[GPU_PCI_SIZE]; /* "00000000:07:00.0" */
    uint32_t pci_device_id;        /* 0xDDDDVVVV: device, vendor */
    char name[GPU_TEXT_SIZE];      /* "NVIDIA A100-SXM4-40GB" */
    int index;                     /* NVML's, for people; never a key */
    int minor;                     /* /dev/nvidiaN; -1: unknown */
    uint64_t memory_bytes;         /* 0: not told */
    int cc_major, cc_minor;        /* CUDA compute capability; 0: unknown */
    bool mig_capable;
};

struct gpu_mig_mode {
    bool current, pending; /* differ: a reset is owed */
};

/* What became of a mode change that the driver took. */
struct gpu_mode_result {
    bool pending;               /* taken, not active yet */
    char reason[GPU_TEXT_SIZE]; /* why pending: NVML's words */
};

struct gpu_placement {
    int start, size; /* memory units */
};

/* One GPU-instance profile as the live driver gives it. */
struct gpu_live_profile {
    int nvml_enum;
    int profile_id;
    char name[GPU_TEXT_SIZE]; /* "1g.5gb" without "MIG "; "" when the driver gives none */
    int compute_slices;
    int max_instances;
    int sm;
    int copy_engines;
    int decoders, encoders, jpeg, ofa;
    int memory_mib;
    int placement_count; /* -1: the driver would not say (no permission) */
    struct gpu_placement placements[GPU_PLACEMENTS_MAX];
};

/* One compute-instance profile inside a GPU instance. */
struct gpu_live_ci_profile {
    int nvml_enum;
    int profile_id;
    int compute_slices;
    int max_instances;
    int sm;
};

struct gpu_ci {
    uint32_t id;
    int profile_id; /* -1: not told */
    int compute_slices;
    int sm;                   /* of the MIG device; 0: not told */
    char uuid[GPU_TEXT_SIZE]; /* "MIG-…"; "" when not told */
};

struct gpu_gi {
    uint32_t id;
    int profile_id;     /* -1: not told */
    int compute_slices; /* 0: not told */
    int memory_mib;     /* 0: not told */
    int start, size;    /* memory units; GPU_START_UNKNOWN without permission */
    int ci_count;
    struct gpu_ci ci[GPU_CI_MAX]; /* ascending id */
};

struct gpu_gi_list {
    int count;
    struct gpu_gi gi[GPU_INSTANCES_MAX]; /* by start, then id */
};

struct gpu_process {
    uint32_t pid;
    uint32_t gi, ci;          /* GPU_NO_INSTANCE: none */
    uint64_t memory_bytes;    /* 0: not told */
    char name[GPU_TEXT_SIZE]; /* "" unknown */
};
struct gpu_process_list {
    VEC(struct gpu_process) items;
};

/* A critical error of a GPU, by NVIDIA's number. */
struct gpu_xid {
    char uuid[GPU_TEXT_SIZE];
    unsigned long long number;
};
struct gpu_xid_list {
    VEC(struct gpu_xid) items;
};

/* Which thing a reading is of. gi and ci GPU_NO_INSTANCE: the whole GPU. */
struct gpu_entity {
    const char *uuid; /* of the GPU */
    uint32_t gi, ci;
};

enum gpu_reading {
    GPU_READING_MEMORY_TOTAL,  /* bytes */
    GPU_READING_MEMORY_USED,   /* bytes */
    GPU_READING_POWER,         /* W */
    GPU_READING_ENERGY,        /* J since the driver was loaded */
    GPU_READING_SM_CLOCK,      /* MHz */
    GPU_READING_MEMORY_CLOCK,  /* MHz */
    GPU_READING_CLOCK_REASONS, /* bits of NVML_CLOCKS_EVENT_REASONS */
    GPU_READING_TEMPERATURE,   /* °C */
    GPU_READING_COUNT
};

/* Metrics of one GPM window, NVML_GPM_METRIC_* in, value or its own error out. */
struct gpu_gpm_metric {
    int id;
    double value;
    bool valid;
    char reason[GPU_TEXT_SIZE]; /* NVML's words when not valid */
};

struct gpu_driver_ops {
    const char *kind; /* "nvml", "sim", … */

    /* All GPUs in NVML's order. *ret_items is owned by the caller (free()). */
    int (*list)(void *self, struct gpu_identity **ret_items, size_t *ret_count,
                struct error *err);
    int (*mig_mode)(void *self, const char *uuid, struct gpu_mig_mode *ret_mode,
                    struct error *err);
    /* Asks for the mode. 0 also when the driver only noted it (ret_result->pending). */
    int (*set_mig_mode)(void *self, const char *uuid, bool enabled,
                        struct gpu_mode_result *ret_result, struct error *err);
    /* The board's GPU-instance profiles, GPU_LIVE_PROFILES_MAX at most, by enum. */
    int (*profiles)(void *self, const char *uuid, struct gpu_live_profile *ret_profiles,
                    int *ret_count, struct error *err);
    int (*instances)(void *self, const char *uuid, struct gpu_gi_list *ret_list,
                     struct error *err);
    /* Compute-instance profiles of one GPU instance, GPU_CI_PROFILES_MAX at most. */
    int (*ci_profiles)(void *self, const char *uuid, uint32_t gi,
                       struct gpu_live_ci_profile *ret_profiles, int *ret_count,
                       struct error *err);
    int (*create_gi)(void *self, const char *uuid, int profile_id,
                     struct gpu_placement placement, uint32_t *ret_gi, struct error *err);
    int (*destroy_gi)(void *self, const char *uuid, uint32_t gi, struct error *err);
    int (*create_ci)(void *self, const char *uuid, uint32_t gi, int profile_id,
                     uint32_t *ret_ci, struct error *err);
    int (*destroy_ci)(void *self, const char *uuid, uint32_t gi, uint32_t ci,
                      struct error *err);
    /* Every process on the GPU: compute, graphics and MPS clients, each pid and instance
     * once. Appends to *processes. */
    int (*processes)(void *self, const char *uuid, struct gpu_process_list *processes,
                     struct error *err);
    /* One reading; E_UNSUPPORTED when this level or driver cannot have it. */
    int (*read)(void *self, const struct gpu_entity *entity, enum gpu_reading reading,
                double *ret_value, struct error *err);
    /* Appends the critical errors since the last call; the first one begins to listen. Does not
     * wait. E_UNSUPPORTED where the driver cannot tell. NULL: the same. */
    int (*take_xids)(void *self, struct gpu_xid_list *xids, struct error *err);
    /* Takes a GPM sample of the GPU, a GPU instance or a compute instance; *ret_sample is freed
     * with gpm_free. E_UNSUPPORTED before Hopper. */
    int (*gpm_sample)(void *self, const struct gpu_entity *entity, void **ret_sample,
                      struct error *err);
    /* Metrics over the window between two samples of one entity. */
    int (*gpm_metrics)(void *self, void *first, void *second, struct gpu_gpm_metric *metrics,
                       size_t count, struct error *err);
    void (*gpm_free)(void *self, void *sample); /* NULL is fine */
    /* "driver 550.54.15, NVML 12.550" for provenance; "" when unknown. */
    void (*version)(void *self, char ret_text[GPU_TEXT_SIZE]);
    void (*close)(void *self);
};

struct gpu_driver {
    const struct gpu_driver_ops *ops; /* NULL: closed */
    void *self;
};

/* Shuts the driver down; a closed one is fine. */
void gpu_driver_close(struct gpu_driver *driver);
/* Frees the list. */
void gpu_process_list_done(struct gpu_process_list *list);
void gpu_xid_list_done(struct gpu_xid_list *list);

enum gpu_driver_kind { GPU_DRIVER_NVML, GPU_DRIVER_SIM, GPU_DRIVER_KIND_COUNT };

struct gpu_driver_options {
    enum gpu_driver_kind kind;
    const char *library; /* path of the NVML library; NULL: search */
};

/* "nvml", "sim"; NULL or "": sim when TRANCHE_SIM or TRANCHE_SIM_FLEET is set, else nvml.
 * E_USAGE otherwise. */
int gpu_driver_kind_get(const char *name, enum gpu_driver_kind *ret_kind, struct error *err);

/* Loads and initialises. NVML is looked for at options->library, $TRANCHE_NVML_LIBRARY, the
 * loader's path and the folders where drivers put it; the simulated library at
 * $TRANCHE_SIM_LIBRARY, then beside the program (build and install folder). E_MISSING
 * names every place. */
int gpu_driver_open(const struct gpu_driver_options *options, struct gpu_driver *ret_driver,
                    struct error *err);

#endif
