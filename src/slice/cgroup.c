/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups. See cgroup.h. What the kernel wants: a limit is lifted before its period
 * changes (version 1); a quota is at least 1 ms; a group with members cannot be removed.
 */
#include "slice/cgroup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum {
    SMALL_FILE_LIMIT = 1 << 16,
    QUOTA_US_MIN = 1000,
    CPU_SHARES_MAX = 262144, /* so that neighbours outside do not eat into the slice */
    CPU_WEIGHT_MAX = 10000,
    REMOVE_TRIES = 200,
    REMOVE_WAIT_NS = 5000000,
};

static const char *const v1_controllers[CGROUP_FOLDERS_MAX] = {"cpu", "cpuacct", "memory"};

static int write_text(const char *folder, const char *file, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, file);
    assert(folder && file && text);
    /* O_CREAT is for the plain folders of tests; the kernel's own files all exist. */
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    size_t length = strlen(text);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length)
        return error_set_errno(err, E_UNSUPPORTED, "%s: cannot write \"%s\"", path, text);
    return 0;
}

static bool read_text(const char *folder, const char *file, struct str *ret_text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, file);
    str_clear(ret_text);
    return file_read(path, SMALL_FILE_LIMIT, ret_text, NULL) == 0;
}

/* The number after "key " at the start of a line, or -1. */
static int64_t read_key(const char *folder, const char *file, const char *key)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    size_t length = strlen(key);
    if (!read_text(folder, file, &text))
        return -1;
    for (const char *line = text.bytes; line && *line;) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoll(line + length, NULL, 10);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return -1;
}

/* Start time of a process in clock ticks (field 22 of /proc/PID/stat); 0: no such. */
static unsigned long long start_time(long pid)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *folder = xasprintf("/proc/%ld", pid);
    if (!read_text(folder, "stat", &text))
        return 0;
    const char *at = strrchr(text.bytes, ')'); /* the name may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static bool maker_is_gone(const char *name)
{
    static const char prefix[] = "tranche-"; /* then PID-START TIME-… */
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false; /* not one of ours */
    const char *at = name + strlen(prefix);
    char *end;
    long pid = strtol(at, &end, 10);
    if (end == at || *end != '-')
        return false;
    at = end + 1;
    unsigned long long started = strtoull(at, &end, 10);
    return end != at && *end == '-' && start_time(pid) != started;
}

/* Where this process stands in a hierarchy ("cpu", or "" for version 2), as a path. */
static char *own_path(const char *controller)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (!read_text("/proc/self", "cgroup", &text))
        return xstrdup("/");
    char *rest = text.bytes, *line;
    while ((line = strsep(&rest, "\n"))) {
        strsep(&line, ":"); /* number of the hierarchy */
        char *names = line ? strsep(&line, ":") : NULL;
        if (!names || !line)
            continue;
        if (!*names && !*controller)
            return xstrdup(line);
        for (char *name; (name = strsep(&names, ","));)
            if (*controller && strcmp(name, controller) == 0)
                return xstrdup(line);
    }
    return xstrdup("/");
}

/* The folder in which groups of a version 1 controller are made: below this process's own
 * where that is visible (a container may hide it), else below the root. */
static char *v1_parent(const char *root, const char *controller)
{
    CLEANUP(free_ptr) char *own = own_path(controller);
    char *path = xasprintf("%s/%s%s", root, controller, strcmp(own, "/") == 0 ? "" : own);
    CLEANUP(free_ptr) char *members = xasprintf("%s/cgroup.procs", path);
    if (access(members, F_OK) == 0)
        return path;
    free(path);
    return xasprintf("%s/%s", root, controller);
}

static bool hands_out_cpu(const char *folder)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    write_text(folder, "cgroup.subtree_control", "+memory", NULL); /* if it may */
    write_text(folder, "cgroup.subtree_control", "+cpu", NULL);
    if (!read_text(folder, "cgroup.subtree_control", &text))
        return false;
    return strstr(text.bytes, "cpu") != NULL;
}

/* Version 2: a folder with processes in it hands out no controllers, so groups are made
 * beside this process's own, or in the first folder above that may be written. */
static char *v2_parent(const char *root)
{
    CLEANUP(free_ptr) char *own = own_path("");
    CLEANUP(free_ptr) char *path = xasprintf("%s%s", root, strcmp(own, "/") == 0 ? "" : own);
    CLEANUP(free_ptr) char *members = xasprintf("%s/cgroup.controllers", path);
    if (access(members, F_OK) != 0) /* hidden from a container */
        path[strlen(root)] = '\0';
    while (strlen(path) > strlen(root)) {
        *strrchr(path, '/') = '\0';
        CLEANUP(free_ptr) char *control = xasprintf("%s/cgroup.subtree_control", path);
        if (access(control, W_OK) == 0 && hands_out_cpu(path))
            return STEAL(path);
    }
    return hands_out_cpu(path) ? STEAL(path) : NULL;
}

static char *parent_folder(const char *root, int version, const char *controller)
{
    return version == 2 ? v2_parent(root) : v1_parent(root, controller);
}

/* Group folders of this version: all controllers in one, or one each. */
static int folder_count(int version)
{
    return version == 2 ? 1 : CGROUP_FOLDERS_MAX;
}

int cgroup_create(const char *root, int version, struct cgroup *ret_group, struct error *err)
{
    static atomic_int counter;
    struct cgroup group = {.version = version};
    int number = atomic_fetch_add(&counter, 1);
    CLEANUP(free_ptr)
    char *mark = xasprintf("%s/%s", root, version == 2 ? "cgroup.controllers" : "cpu");
    assert(version == 1 || version == 2);
    if (access(mark, F_OK) != 0)
        return error_set(err, E_UNSUPPORTED, "%s: no control groups of version %d", root,
                         version);
    for (int i = 0; i < folder_count(version); i++) {
        CLEANUP(free_ptr) char *parent = parent_folder(root, version, v1_controllers[i]);
        if (!parent || access(parent, F_OK) != 0) {
            if (i != CGROUP_MEMORY) {
                cgroup_remove(&group);
                return error_set(err, E_UNSUPPORTED, "%s: no %s controller to use", root,
                                 v1_controllers[i]);
            }
            continue;
        }
        char *folder = xasprintf("%s/tranche-%ld-%llu-%d", parent, (long)getpid(),
                                 start_time(getpid()), number);
        group.folders[i] = folder;
        if (mkdir(folder, 0755) && errno != EEXIST) {
            int failure =
                error_set_errno(err, E_UNSUPPORTED, "%s: cannot make a control group", folder);
            group.folders[i] = NULL;
            free(folder);
            cgroup_remove(&group);
            return failure;
        }
    }
    const char *memory = cgroup_folder(&group, CGROUP_MEMORY);
    CLEANUP(free_ptr)
    char *cap = memory ? xasprintf("%s/%s", memory,
                                   version == 2 ? "memory.max" : "memory.limit_in_bytes")
                       : NULL;
    group.has_memory = cap && access(cap, F_OK) == 0;
    *ret_group = group;
    return 0;
}

const char *cgroup_folder(const struct cgroup *group, enum cgroup_folder which)
{
    assert(which <= CGROUP_MEMORY);
    return group->folders[group->version == 2 ? CGROUP_CPU : which];
}

static void kill_members(const char *folder)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    if (!read_text(folder, "cgroup.procs", &text))
        return;
    char *rest = text.bytes, *line;
    while (text.length && (line = strsep(&rest, "\n"))) {
        long pid = strtol(line, NULL, 10);
        if (pid > 0 && pid != (long)getpid())
            kill((pid_t)pid, SIGKILL);
    }
}

static void remove_folder(const char *folder)
{
    struct timespec wait = {.tv_nsec = REMOVE_WAIT_NS};
    assert(folder && *folder);
    for (int i = 0; i < REMOVE_TRIES && rmdir(folder) && errno == EBUSY; i++) {
        kill_members(folder);
        nanosleep(&wait, NULL);
    }
}

void cgroup_remove(struct cgroup *group)
{
    for (int i = 0; i < CGROUP_FOLDERS_MAX; i++) {
        if (!group->folders[i])
            continue;
        remove_folder(group->folders[i]);
        free(group->folders[i]);
        group->folders[i] = NULL;
    }
    group->version = 0;
}

void cgroup_sweep(const char *root, int version)
{
    for (int i = 0; i < folder_count(version); i++) {
        CLEANUP(free_ptr) char *parent = parent_folder(root, version, v1_controllers[i]);
        DIR *folder = parent ? opendir(parent) : NULL;
        struct dirent *entry;
        while (folder && (entry = readdir(folder))) {
            CLEANUP(free_ptr) char *path = xasprintf("%s/%s", parent, entry->d_name);
            if (maker_is_gone(entry->d_name))
                remove_folder(path);
        }
        if (folder)
            closedir(folder);
    }
}

static int limit_cpu_v1(const char *folder, long long quota_us, long long period_us,
                        struct error *err)
{
    char shares[32], period[32], quota[32];
    snprintf(shares, sizeof shares, "%d", CPU_SHARES_MAX);
    snprintf(period, sizeof period, "%lld", period_us);
    snprintf(quota, sizeof quota, "%lld", quota_us);
    write_text(folder, "cpu.shares", shares, NULL);
    int failure = write_text(folder, "cpu.cfs_quota_us", "-1", err);
    if (failure || quota_us < 0)
        return failure;
    failure = write_text(folder, "cpu.cfs_period_us", period, err);
    return failure ? failure : write_text(folder, "cpu.cfs_quota_us", quota, err);
}

static int limit_cpu_v2(const char *folder, long long quota_us, long long period_us,
                        struct error *err)
{
    char weight[32], limit[64];
    snprintf(weight, sizeof weight, "%d", CPU_WEIGHT_MAX);
    write_text(folder, "cpu.weight", weight, NULL);
    if (quota_us < 0)
        snprintf(limit, sizeof limit, "max %lld", period_us);
    else
        snprintf(limit, sizeof limit, "%lld %lld", quota_us, period_us);
    return write_text(folder, "cpu.max", limit, err);
}

int cgroup_limit_cpu(const struct cgroup *group, double cores, int64_t period_ns,
                     struct error *err)
{
    long long period_us = period_ns / 1000;
    long long quota_us = cores > 0 ? (long long)(cores * (double)period_us + 0.5) : -1;
    const char *folder = cgroup_folder(group, CGROUP_CPU);
    assert(period_us > 0);
    if (quota_us >= 0 && quota_us < QUOTA_US_MIN)
        return error_set(err, E_UNSUPPORTED,
                         "a quota of %lld us in %lld us is below the kernel's 1000 us: give a "
                         "longer period or a larger share",
                         quota_us, period_us);
    return group->version == 2 ? limit_cpu_v2(folder, quota_us, period_us, err)
                               : limit_cpu_v1(folder, quota_us, period_us, err);
}

int cgroup_limit_memory(const struct cgroup *group, uint64_t bytes, struct error *err)
{
    char limit[32];
    const char *folder = cgroup_folder(group, CGROUP_MEMORY);
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)bytes);
    assert(group->has_memory && bytes > 0);
    int failure = write_text(
        folder, group->version == 2 ? "memory.max" : "memory.limit_in_bytes", limit, err);
    if (failure)
        return failure;
    /* Swap would hide a lack of memory; it is not always accounted for. */
    if (group->version == 2)
        write_text(folder, "memory.swap.max", "0", NULL);
    else
        write_text(folder, "memory.memsw.limit_in_bytes", limit, NULL);
    return 0;
}

void cgroup_read_usage(const struct cgroup *group, struct slice_usage *ret_usage)
{
    const char *cpu = cgroup_folder(group, CGROUP_CPU);
    const char *memory = cgroup_folder(group, CGROUP_MEMORY);
    bool v2 = group->version == 2;
    assert(group->version);
    ret_usage->periods = read_key(cpu, "cpu.stat", "nr_periods");
    ret_usage->throttled_periods = read_key(cpu, "cpu.stat", "nr_throttled");
    ret_usage->throttled_ns =
        read_key(cpu, "cpu.stat", v2 ? "throttled_usec" : "throttled_time");
    if (v2 && ret_usage->throttled_ns > 0)
        ret_usage->throttled_ns *= 1000;
    if (v2) {
        ret_usage->cpu_ns = read_key(cpu, "cpu.stat", "usage_usec") * 1000;
    } else {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        if (read_text(cgroup_folder(group, CGROUP_CPUACCT), "cpuacct.usage", &text))
            ret_usage->cpu_ns = strtoll(text.bytes, NULL, 10);
    }
    if (group->has_memory)
        ret_usage->oom_killed =
            read_key(memory, v2 ? "memory.events" : "memory.oom_control", "oom_kill") > 0;
}
