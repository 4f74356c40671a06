/* SPDX-License-Identifier: Apache-2.0
 *
 * Scanning open descriptors for NVIDIA device files; see holders.h.
 */
#include "gpu/holders.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

static bool is_gpu_file(const char *target, int minor)
{
    char device[32];

    snprintf(device, sizeof device, "/dev/nvidia%d", minor);
    return !strcmp(target, device) || text_starts_with(target, "/dev/nvidia-caps/");
}

/* The first GPU file that the process has open, into ret; false when none. */
static bool find_gpu_file(const char *proc, const char *pid, int minor, char ret[PATH_MAX])
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    CLEANUP(close_folder) DIR *folder = NULL;
    const struct dirent *entry;

    str_addf(&path, "%s/%s/fd", proc, pid);
    folder = opendir(path.bytes);
    while (folder && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, ret, PATH_MAX - 1);
        if (length <= 0)
            continue;
        ret[length] = '\0';
        if (is_gpu_file(ret, minor))
            return true;
    }
    return false;
}

static void process_name(const char *proc, const char *pid, char ret[64])
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    CLEANUP(close_file) FILE *file = NULL;

    str_addf(&path, "%s/%s/comm", proc, pid);
    file = fopen(path.bytes, "re");
    if (!file || !fgets(ret, 64, file))
        snprintf(ret, 64, "?");
    ret[strcspn(ret, "\n")] = '\0';
}

void gpu_holders_describe(const char *proc, int minor, struct str *text)
{
    CLEANUP(close_folder) DIR *folder = opendir(proc);
    const struct dirent *entry;
    char own[16], target[PATH_MAX], name[64];
    const char *separator = "";

    assert(text);
    snprintf(own, sizeof own, "%d", (int)getpid());
    while (folder && (entry = readdir(folder))) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
            !strcmp(entry->d_name, own) || !find_gpu_file(proc, entry->d_name, minor, target))
            continue;
        process_name(proc, entry->d_name, name);
        str_addf(text, "%spid %s (%s) has %s open", separator, entry->d_name, name, target);
        separator = ", ";
    }
}
