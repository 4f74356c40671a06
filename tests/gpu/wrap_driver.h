/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver around another one, for tests: it fails the n-th call, changes what profiles and
 * compute-instance profiles look like, adds processes, and counts what is changed.
 */
#ifndef TRANCHE_TESTS_GPU_WRAP_DRIVER_H
#define TRANCHE_TESTS_GPU_WRAP_DRIVER_H

#include "support.h"

struct wrap {
    struct gpu_driver inner;
    int calls, fail_at; /* fail_at: 0 never */
    enum error_code fail_code;
    bool lie;    /* changes are told as done and not made */
    int changes; /* creates, destroys and mode changes that were passed on */
    void (*change_profiles)(struct gpu_live_profile *profiles, int count);
    void (*change_ci_profiles)(struct gpu_live_ci_profile *profiles, int *count);
    void (*change_identity)(struct gpu_identity *identity, size_t count);
    int last_ci_profile;               /* the profile id of the last create_ci */
    int crowded;                       /* so many create_ci find no place */
    const struct gpu_process *process; /* one more, on the GPU of process_uuid */
    const char *process_uuid;
};

static inline int wrap_turn(struct wrap *wrap, struct error *err)
{
    if (++wrap->calls == wrap->fail_at)
        return error_set(err, wrap->fail_code, "the driver call %d was made to fail",
                         wrap->calls);
    return 0;
}

static inline int wrap_list(void *self, struct gpu_identity **ret_items, size_t *ret_count,
                            struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (!r)
        r = wrap->inner.ops->list(wrap->inner.self, ret_items, ret_count, err);
    if (!r && wrap->change_identity)
        wrap->change_identity(*ret_items, *ret_count);
    return r;
}

static inline int wrap_mig_mode(void *self, const char *uuid, struct gpu_mig_mode *ret,
                                struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    return r ? r : wrap->inner.ops->mig_mode(wrap->inner.self, uuid, ret, err);
}

static inline int wrap_set_mig_mode(void *self, const char *uuid, bool enabled,
                                    struct gpu_mode_result *ret, struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (r || wrap->lie)
        return r;
    wrap->changes++;
    return wrap->inner.ops->set_mig_mode(wrap->inner.self, uuid, enabled, ret, err);
}

static inline int wrap_profiles(void *self, const char *uuid, struct gpu_live_profile *ret,
                                int *ret_count, struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (!r)
        r = wrap->inner.ops->profiles(wrap->inner.self, uuid, ret, ret_count, err);
    if (!r && wrap->change_profiles)
        wrap->change_profiles(ret, *ret_count);
    return r;
}

static inline int wrap_instances(void *self, const char *uuid, struct gpu_gi_list *ret,
                                 struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    return r ? r : wrap->inner.ops->instances(wrap->inner.self, uuid, ret, err);
}

static inline int wrap_ci_profiles(void *self, const char *uuid, uint32_t gi,
                                   struct gpu_live_ci_profile *ret, int *ret_count,
                                   struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (!r)
        r = wrap->inner.ops->ci_profiles(wrap->inner.self, uuid, gi, ret, ret_count, err);
    if (!r && wrap->change_ci_profiles)
        wrap->change_ci_profiles(ret, ret_count);
    return r;
}

static inline int wrap_create_gi(void *self, const char *uuid, int profile_id,
                                 struct gpu_placement placement, uint32_t *ret_gi,
                                 struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (r || wrap->lie) {
        *ret_gi = 0;
        return r;
    }
    wrap->changes++;
    return wrap->inner.ops->create_gi(wrap->inner.self, uuid, profile_id, placement, ret_gi,
                                      err);
}

static inline int wrap_destroy_gi(void *self, const char *uuid, uint32_t gi, struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (r || wrap->lie)
        return r;
    wrap->changes++;
    return wrap->inner.ops->destroy_gi(wrap->inner.self, uuid, gi, err);
}

static inline int wrap_create_ci(void *self, const char *uuid, uint32_t gi, int profile_id,
                                 uint32_t *ret_ci, struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    wrap->last_ci_profile = profile_id;
    if (r || wrap->lie)
        return r;
    if (wrap->crowded-- > 0)
        return error_set(err, E_CONFLICT, "no room for this compute instance");
    wrap->changes++;
    return wrap->inner.ops->create_ci(wrap->inner.self, uuid, gi, profile_id, ret_ci, err);
}

static inline int wrap_destroy_ci(void *self, const char *uuid, uint32_t gi, uint32_t ci,
                                  struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (r || wrap->lie)
        return r;
    wrap->changes++;
    return wrap->inner.ops->destroy_ci(wrap->inner.self, uuid, gi, ci, err);
}

static inline int wrap_processes(void *self, const char *uuid, struct gpu_process_list *list,
                                 struct error *err)
{
    struct wrap *wrap = self;
    int r = wrap_turn(wrap, err);
    if (!r && wrap->process && !strcmp(wrap->process_uuid, uuid))
        vec_add(&list->items, *wrap->process);
    return r ? r : wrap->inner.ops->processes(wrap->inner.self, uuid, list, err);
}

static inline void wrap_version(void *self, char ret_text[GPU_TEXT_SIZE])
{
    struct wrap *wrap = self;
    wrap->inner.ops->version(wrap->inner.self, ret_text);
}

static inline void wrap_close(void *self)
{
    struct wrap *wrap = self;
    gpu_driver_close(&wrap->inner);
}

static const struct gpu_driver_ops wrap_ops = {
    .kind = "wrap",
    .list = wrap_list,
    .mig_mode = wrap_mig_mode,
    .set_mig_mode = wrap_set_mig_mode,
    .profiles = wrap_profiles,
    .instances = wrap_instances,
    .ci_profiles = wrap_ci_profiles,
    .create_gi = wrap_create_gi,
    .destroy_gi = wrap_destroy_gi,
    .create_ci = wrap_create_ci,
    .destroy_ci = wrap_destroy_ci,
    .processes = wrap_processes,
    .version = wrap_version,
    .close = wrap_close,
};

/* Opens the simulated driver inside; the result is closed with gpu_driver_close(). */
static inline struct gpu_driver wrap_open(struct wrap *wrap)
{
    if (!wrap->fail_code)
        wrap->fail_code = E_IO;
    box_driver(&wrap->inner);
    return (struct gpu_driver){.ops = &wrap_ops, .self = wrap};
}

#endif
