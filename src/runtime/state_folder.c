/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_folder.h.
 */
#include "runtime/state_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/memory.h"

enum { LONGEST_NAME = 20 }; /* "/control.sock" and what connects to it */

void state_folder_default(struct str *path)
{
    const char *given = getenv("TRANCHE_RUNTIME_DIR");
    const char *user = getenv("XDG_RUNTIME_DIR");
    if (given && *given)
        str_add(path, given);
    else if (geteuid() == 0 && access("/run", W_OK) == 0)
        str_add(path, "/run/tranche/runtime");
    else if (user && *user)
        str_addf(path, "%s/tranche-runtime", user);
    else
        str_addf(path, "/tmp/tranche-runtime-%u", (unsigned)geteuid());
}

char *state_folder_file(const char *folder, const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static int check_owner(const char *folder, struct error *err)
{
    struct stat status;
    if (lstat(folder, &status) != 0)
        return error_set_errno(err, E_IO, "%s: cannot look at it", folder);
    if (!S_ISDIR(status.st_mode))
        return error_set(err, E_IO, "%s: is no folder", folder);
    if (status.st_uid != geteuid())
        return error_set(err, E_IO, "%s: belongs to another user; give another --state-dir",
                         folder);
    if ((status.st_mode & 077) != 0)
        return error_set(err, E_IO,
                         "%s: others may enter it; chmod 0700, or give another "
                         "--state-dir",
                         folder);
    return 0;
}

int state_folder_make(const char *folder, struct error *err)
{
    CLEANUP(free_ptr) char *units = state_folder_file(folder, "units");
    CLEANUP(free_ptr) char *logs = state_folder_file(folder, "log");
    if (strlen(folder) + LONGEST_NAME > sizeof((struct sockaddr_un){0}).sun_path)
        return error_set(err, E_USAGE,
                         "%s: too long for a socket in it; give a shorter "
                         "--state-dir",
                         folder);
    int failed = file_make_dirs(folder, 0700, err);
    if (!failed)
        failed = check_owner(folder, err);
    if (!failed)
        failed = file_make_dirs(units, 0700, err);
    return failed ? failed : file_make_dirs(logs, 0700, err);
}
