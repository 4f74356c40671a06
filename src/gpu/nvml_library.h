/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside gpu/: one loaded NVML library and the helpers that nvml*.c share.
 */
#ifndef TRANCHE_GPU_NVML_LIBRARY_H
#define TRANCHE_GPU_NVML_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/driver.h"
#include "gpu/nvml_abi.h"

struct nvml_functions {
#define X(need, type, name, parameters) type(*name) parameters;
    NVML_FUNCTIONS(X)
#undef X
};

struct nvml {
    void *library; /* of dlopen() */
    bool initialised;
    bool has_mig;          /* every function of need MIG was found */
    nvmlEventSet_t events; /* NULL: nobody asked for them yet */
    struct nvml_functions call;
};

/* Loads the library and resolves the table; does not initialise. E_MISSING names every
 * place tried; a library that lacks a REQUIRED symbol is E_MISSING too. */
int nvml_library_open(const struct gpu_driver_options *options, struct nvml *ret_nvml,
                      struct error *err);
/* Shuts NVML down and unloads it. */
void nvml_library_close(struct nvml *nvml);

/* The name of a return code, "NVML_ERROR_IN_USE"; never NULL. */
const char *nvml_return_name(nvmlReturn_t result);
/* The code that an NVML return value stands for (driver.h has the list); E_IO for what we do
 * not know. */
enum error_code nvml_error_code(nvmlReturn_t result);
/* "CALL on OBJECT: words (NVML_ERROR_…)" with the code for callers. Returns the negative
 * code. `object` may be NULL. */
int nvml_fail(const struct nvml *nvml, nvmlReturn_t result, const char *call,
              const char *object, struct error *err);

/* The handle of the GPU with this UUID, fetched anew. */
int nvml_device(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
                struct error *err);
/* The MIG device handle of a compute instance (ci GPU_NO_INSTANCE: of any in the GPU
 * instance), found by walking the handles, which needs no permission. E_NOT_FOUND. */
int nvml_mig_device(const struct nvml *nvml, const struct gpu_entity *entity,
                    nvmlDevice_t *ret_device, struct error *err);

/* The same where MIG functions are needed: E_UNSUPPORTED when the library lacks them. */
int nvml_device_for_mig(const struct nvml *nvml, const char *uuid, nvmlDevice_t *ret_device,
                        struct error *err);
/* Every profile of the board, without placements. Enums that the board lacks are skipped;
 * INVALID_ARGUMENT is the end of the enums that the library knows. */
int nvml_list_profiles(const struct nvml *nvml, nvmlDevice_t device, const char *uuid,
                       struct gpu_live_profile ret[GPU_LIVE_PROFILES_MAX], int *ret_count,
                       struct error *err);

/* gpu_driver_ops, see driver.h; self is a struct nvml. */
int nvml_mig_mode(void *self, const char *uuid, struct gpu_mig_mode *ret_mode,
                  struct error *err);
int nvml_take_xids(void *self, struct gpu_xid_list *xids, struct error *err);
int nvml_instances(void *self, const char *uuid, struct gpu_gi_list *ret_list,
                   struct error *err);
int nvml_ci_profiles(void *self, const char *uuid, uint32_t gi,
                     struct gpu_live_ci_profile *ret_profiles, int *ret_count,
                     struct error *err);
int nvml_create_gi(void *self, const char *uuid, int profile_id, struct gpu_placement placement,
                   uint32_t *ret_gi, struct error *err);
int nvml_destroy_gi(void *self, const char *uuid, uint32_t gi, struct error *err);
int nvml_create_ci(void *self, const char *uuid, uint32_t gi, int profile_id, uint32_t *ret_ci,
                   struct error *err);
int nvml_destroy_ci(void *self, const char *uuid, uint32_t gi, uint32_t ci, struct error *err);
int nvml_read(void *self, const struct gpu_entity *entity, enum gpu_reading reading,
              double *ret_value, struct error *err);
int nvml_processes(void *self, const char *uuid, struct gpu_process_list *processes,
                   struct error *err);
int nvml_gpm_sample(void *self, const struct gpu_entity *entity, void **ret_sample,
                    struct error *err);
int nvml_gpm_metrics(void *self, void *first, void *second, struct gpu_gpm_metric *metrics,
                     size_t count, struct error *err);
void nvml_gpm_free(void *self, void *sample);

#endif
