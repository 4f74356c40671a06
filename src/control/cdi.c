/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI specifications of MIG devices; see cdi.h.
 */
#include "control/cdi.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

#define CDI_VERSION "0.6.0"
#define CDI_KIND    "nvidia.com/gpu"
#define CDI_PREFIX  "tranche-"

enum { PROC_FILE_LIMIT = 1 << 20, DEVICE_NUMBER_MAX = 1 << 20 };

static json_t *node(const char *path)
{
    return json_pack("{s:s}", "path", path);
}

void cdi_format(const struct cdi_device *device, const int capabilities[2], struct str *text)
{
    static const char *const common[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools"};
    json_t *nodes = json_array(), *shared = json_array();
    char path[64];

    assert((capabilities != NULL) == (device->gi >= 0));
    snprintf(path, sizeof path, "/dev/nvidia%d", device->minor);
    json_array_append_new(nodes, node(path));
    for (int i = 0; capabilities && i < 2; i++) {
        snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%d", capabilities[i]);
        json_array_append_new(nodes, node(path));
    }
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        json_array_append_new(shared, node(common[i]));
    CLEANUP(json_decref_ptr)
    json_t *root =
        json_pack("{s:s, s:s, s:[{s:s, s:{s:o}}], s:{s:o}}", "cdiVersion", CDI_VERSION, "kind",
                  CDI_KIND, "devices", "name", device->uuid, "containerEdits", "deviceNodes",
                  nodes, "containerEdits", "deviceNodes", shared);
    json_write_pretty(root, text);
}

/* --- capabilities --- */

static void path_of(const struct cdi_options *options, struct str *path, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));
static void path_of(const struct cdi_options *options, struct str *path, const char *format,
                    ...)
{
    va_list arguments;

    str_clear(path);
    str_add(path, options->host_root);
    va_start(arguments, format);
    str_vaddf(path, format, arguments);
    va_end(arguments);
}

/* "gi3" or "gi3/ci0". */
static void instance_path(const struct cdi_device *device, bool compute, char ret[48])
{
    if (compute)
        snprintf(ret, 48, "gi%d/ci%d", device->gi, device->ci);
    else
        snprintf(ret, 48, "gi%d", device->gi);
}

/* The number at `text`, behind blanks. */
static bool take_minor(const char *text, int *ret_minor)
{
    long long minor;

    text += strspn(text, " \t");
    if (!text_take_int(&text, DEVICE_NUMBER_MAX, &minor))
        return false;
    *ret_minor = (int)minor;
    return true;
}

/* "DeviceFileMinor: 21" of an access file. */
static bool read_access(const struct cdi_options *options, const struct cdi_device *device,
                        bool compute, int *ret_minor)
{
    CLEANUP(str_done) struct str path = STR_EMPTY, text = STR_EMPTY;
    char instance[48];

    instance_path(device, compute, instance);
    path_of(options, &path, "/proc/driver/nvidia/capabilities/gpu%d/mig/%s/access",
            device->minor, instance);
    if (file_read(path.bytes, PROC_FILE_LIMIT, &text, NULL))
        return false;
    const char *at = strstr(text.bytes, "DeviceFileMinor:");
    return at && take_minor(at + strlen("DeviceFileMinor:"), ret_minor);
}

/* "gpu0/gi3/ci0/access 31" of the list of all minors. */
static bool read_list(const struct cdi_options *options, const struct cdi_device *device,
                      bool compute, int *ret_minor)
{
    CLEANUP(str_done) struct str path = STR_EMPTY, text = STR_EMPTY;
    char instance[48], wanted[96];

    instance_path(device, compute, instance);
    snprintf(wanted, sizeof wanted, "gpu%d/%s/access ", device->minor, instance);
    path_of(options, &path, "/proc/driver/nvidia-caps/mig-minors");
    if (file_read(path.bytes, PROC_FILE_LIMIT, &text, NULL))
        return false;
    for (const char *line = text.bytes; *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        if (text_starts_with(line, wanted))
            return take_minor(line + strlen(wanted), ret_minor);
    return false;
}

int cdi_read_capabilities(const struct cdi_options *options, const struct cdi_device *device,
                          int ret_minors[2], struct error *err)
{
    assert(device->gi >= 0 && device->ci >= 0);
    for (int i = 0; i < 2; i++)
        if (!read_access(options, device, i == 1, &ret_minors[i]) &&
            !read_list(options, device, i == 1, &ret_minors[i]))
            return error_set(err, E_MISSING,
                             "%s: neither %s/proc/driver/nvidia/capabilities nor nvidia-caps/"
                             "mig-minors has the capability of gpu%d/gi%d%s: is the host's "
                             "/proc there?",
                             device->uuid, options->host_root, device->minor, device->gi,
                             i ? " (its compute instance)" : "");
    return 0;
}

/* --- device nodes --- */

/* The major number of "nvidia-caps" in /proc/devices. */
static bool read_major(const struct cdi_options *options, unsigned *ret_major)
{
    CLEANUP(str_done) struct str path = STR_EMPTY, text = STR_EMPTY;

    path_of(options, &path, "/proc/devices");
    if (file_read(path.bytes, PROC_FILE_LIMIT, &text, NULL))
        return false;
    for (const char *line = text.bytes; *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        static const char name[] = "nvidia-caps";
        const char *at = line + strspn(line, " ");
        long long major;
        if (!text_take_int(&at, DEVICE_NUMBER_MAX, &major))
            continue;
        at += strspn(at, " ");
        if (text_starts_with(at, name) && strchr("\n", at[strlen(name)])) {
            *ret_major = (unsigned)major;
            return true;
        }
    }
    return false;
}

/* The node of a capability; the driver makes none by itself. */
static int ensure_node(const struct cdi_options *options, int minor, struct error *err)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    unsigned major = 0;

    path_of(options, &path, "/dev/nvidia-caps/nvidia-cap%d", minor);
    if (!access(path.bytes, F_OK))
        return 0;
    if (!read_major(options, &major))
        return error_set(err, E_MISSING,
                         "%s is not there, and %s/proc/devices has no nvidia-caps: is the "
                         "driver loaded?",
                         path.bytes, options->host_root);
    CLEANUP(str_done) struct str folder = STR_EMPTY;
    path_of(options, &folder, "/dev/nvidia-caps");
    int r = file_make_dirs(folder.bytes, 0755, err);
    if (!r && mknod(path.bytes, S_IFCHR | 0444, makedev(major, (unsigned)minor)) &&
        errno != EEXIST)
        r = error_set_errno(err, E_IO, "cannot make %s", path.bytes);
    return r;
}

/* --- files --- */

static void file_path(const struct cdi_options *options, const char *uuid, struct str *path)
{
    str_addf(path, "%s/" CDI_PREFIX "%s.json", options->folder, uuid);
}

/* A UUID comes from a driver and goes into a path. */
static bool is_file_name(const char *uuid)
{
    return *uuid && *uuid != '.' && !strchr(uuid, '/') && strlen(uuid) < 128;
}

int cdi_write(const struct cdi_options *options, const struct cdi_device *device,
              struct error *err)
{
    CLEANUP(str_done) struct str path = STR_EMPTY, text = STR_EMPTY, old = STR_EMPTY;
    int minors[2];
    bool mig = device->gi >= 0;

    if (!is_file_name(device->uuid))
        return error_set(err, E_INPUT, "\"%.90s\" is no UUID of a device", device->uuid);
    int r = mig ? cdi_read_capabilities(options, device, minors, err) : 0;
    for (int i = 0; mig && !r && i < 2; i++)
        r = ensure_node(options, minors[i], err);
    if (r)
        return r;
    cdi_format(device, mig ? minors : NULL, &text);
    file_path(options, device->uuid, &path);
    if (!file_read(path.bytes, PROC_FILE_LIMIT, &old, NULL) && !strcmp(old.bytes, text.bytes))
        return 0;
    r = file_make_dirs(options->folder, 0755, err);
    return r ? r : file_write(path.bytes, text.bytes, text.length, err);
}

/* Whether a file's name is one of ours that none of these devices has. */
static bool is_stale(const char *name, const char *const *uuids, size_t count)
{
    char own[160];

    if (!text_starts_with(name, CDI_PREFIX) || !text_ends_with(name, ".json"))
        return false;
    for (size_t i = 0; i < count; i++) {
        snprintf(own, sizeof own, CDI_PREFIX "%s.json", uuids[i]);
        if (!strcmp(own, name))
            return false;
    }
    return true;
}

int cdi_prune(const struct cdi_options *options, const char *const *uuids, size_t count,
              struct error *err)
{
    DIR *folder = opendir(options->folder);
    int r = 0;

    if (!folder)
        return errno == ENOENT ? 0 : error_set_errno(err, E_IO, "%s", options->folder);
    for (struct dirent *entry; !r && (entry = readdir(folder));) {
        if (!is_stale(entry->d_name, uuids, count))
            continue;
        if (unlinkat(dirfd(folder), entry->d_name, 0) && errno != ENOENT)
            r = error_set_errno(err, E_IO, "cannot remove %s/%s", options->folder,
                                entry->d_name);
    }
    closedir(folder);
    return r;
}
