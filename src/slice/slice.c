/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices. See slice.h; processes are in process.c.
 */
#include "slice/slice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "slice/slice_internal.h"

static const char *const method_names[SLICE_METHOD_COUNT] = {
    [SLICE_AUTO] = "auto",
    [SLICE_CGROUP2] = "cgroup2",
    [SLICE_CGROUP1] = "cgroup1",
    [SLICE_PACED] = "paced",
};

const char *slice_method_name(enum slice_method method)
{
    assert(method < SLICE_METHOD_COUNT);
    return method_names[method];
}

/* A group of this version with the memory cap in force and the quota tried once, so that
 * a refusal shows here. */
static int open_cgroup(struct slice *slice, int version, struct error *err)
{
    cgroup_sweep(slice->cgroup_root, version);
    int failure = cgroup_create(slice->cgroup_root, version, &slice->group, err);
    if (!failure && slice->cpu_cores > 0)
        failure = cgroup_limit_cpu(&slice->group, slice->cpu_cores, slice->period_ns, err);
    if (!failure)
        failure = cgroup_limit_cpu(&slice->group, 0, slice->period_ns, err);
    if (!failure && slice->memory_bytes > 0 && slice->group.has_memory)
        failure = cgroup_limit_memory(&slice->group, slice->memory_bytes, err);
    if (failure && slice->group.version)
        cgroup_remove(&slice->group);
    return failure;
}

static int open_paced(struct slice *slice, struct error *err)
{
    assert(slice->period_ns > 0);
    /* A whole core or more needs no pacing, and would only lose by it. */
    if (slice->cpu_cores <= 0 || slice->cpu_cores >= 1)
        return 0;
    return pacer_new(slice->cpu_cores, slice->period_ns, &slice->pacer, err);
}

static int open_by_method(struct slice *slice, enum slice_method method, struct error *err)
{
    slice->method = method;
    switch (method) {
    case SLICE_CGROUP2:
        return open_cgroup(slice, 2, err);
    case SLICE_CGROUP1:
        return open_cgroup(slice, 1, err);
    case SLICE_PACED:
        return open_paced(slice, err);
    case SLICE_AUTO:
    case SLICE_METHOD_COUNT:
        break;
    }
    assert(!"a method");
    return -E_UNSUPPORTED;
}

int slice_open(const struct slice_options *options, struct slice **ret_slice, struct error *err)
{
    CLEANUP(slice_free_ptr) struct slice *slice = xcalloc(1, sizeof *slice);
    assert(options && ret_slice);
    slice->mig_uuid = xstrdup(options->mig_uuid);
    slice->cgroup_root =
        xstrdup(options->cgroup_root ? options->cgroup_root : "/sys/fs/cgroup");
    slice->cpu_cores = options->cpu_cores;
    slice->period_ns = options->period_ns > 0 ? options->period_ns : SLICE_PERIOD_NS_DEFAULT;
    slice->memory_bytes = options->memory_bytes;
    int failure = -E_UNSUPPORTED;
    if (slice->mig_uuid || (slice->cpu_cores <= 0 && slice->memory_bytes == 0))
        failure = open_by_method(slice, SLICE_PACED, err); /* nothing to limit */
    else if (options->method != SLICE_AUTO)
        failure = open_by_method(slice, options->method, err);
    else
        for (int m = SLICE_CGROUP2; m <= SLICE_PACED && failure; m++)
            failure = open_by_method(slice, (enum slice_method)m, err);
    if (failure)
        return failure;
    *ret_slice = STEAL(slice);
    return 0;
}

void slice_free(struct slice *slice)
{
    if (!slice)
        return;
    assert(slice->process_count == 0);
    pacer_free(slice->pacer);
    if (slice->group.version)
        cgroup_remove(&slice->group);
    free(slice->mig_uuid);
    free(slice->cgroup_root);
    free(slice);
}

int slice_limit(struct slice *slice, bool limited, struct error *err)
{
    if (slice->pacer)
        pacer_enable(slice->pacer, limited);
    if (slice->group.version && slice->cpu_cores > 0)
        return cgroup_limit_cpu(&slice->group, limited ? slice->cpu_cores : 0, slice->period_ns,
                                err);
    return 0;
}

enum slice_method slice_method_used(const struct slice *slice)
{
    return slice->method;
}

void slice_describe(const struct slice *slice, struct str *text)
{
    static const char *const how[SLICE_METHOD_COUNT] = {
        [SLICE_CGROUP2] = "cgroup v2 quota",
        [SLICE_CGROUP1] = "cgroup v1 quota",
        [SLICE_PACED] = "pacing signals",
    };
    assert(slice->period_ns > 0);
    if (slice->mig_uuid) {
        str_addf(text, "cuda: %s", slice->mig_uuid);
        return;
    }
    str_add(text, "cpu-slice (emulated): ");
    if (slice->cpu_cores <= 0)
        str_add(text, "all cores");
    else if (slice->method == SLICE_PACED && !slice->pacer)
        str_addf(text, "%.3f cores, not enforced", slice->cpu_cores);
    else
        str_addf(text, "%.3f cores by %s, period %g ms", slice->cpu_cores, how[slice->method],
                 (double)slice->period_ns / 1e6);
}

void slice_read_usage(struct slice *slice, struct slice_usage *ret_usage)
{
    struct slice_usage usage = {.throttled_ns = -1, .periods = -1, .throttled_periods = -1};
    assert(ret_usage);
    if (slice->group.version)
        cgroup_read_usage(&slice->group, &usage);
    else
        usage.cpu_ns = processes_cpu_ns(slice);
    if (slice->pacer)
        usage.throttled_ns = pacer_stopped_ns(slice->pacer);
    *ret_usage = usage;
}
