/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/hash.h"
#include "sim/processes.h"

enum { PAGE = 4096, STATE_BYTE = 0, CLIENT_BYTE = 1, FORMAT = 1 };

static const char default_fleet[] = "a100-40gb:2";
static const char magic[8] = "TRCHSIM";

struct header {
    char magic[8];
    uint32_t format, machine_size;
    uint64_t active;
};

struct slot_head {
    uint64_t checksum, length;
};

static off_t slot_offset(uint64_t slot)
{
    size_t size = sizeof(struct slot_head) + sizeof(struct sim_machine);
    return PAGE + (off_t)(slot * ((size + PAGE - 1) / PAGE * PAGE));
}

static int read_all(int fd, void *bytes, size_t length, off_t offset)
{
    ssize_t got = pread(fd, bytes, length, offset);
    return got == (ssize_t)length ? 0 : -1;
}

/* 0, or -1 with errno: a full disk writes a part first, and only then says why. */
static int write_all(int fd, const void *bytes, size_t length, off_t offset)
{
    const char *rest = bytes;
    while (length > 0) {
        ssize_t put = pwrite(fd, rest, length, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        rest += put;
        length -= (size_t)put;
        offset += put;
    }
    return 0;
}

/* ---- locks ---- */

static int set_lock(int fd, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int status;
    do
        status = fcntl(fd, F_OFD_SETLKW, &lock);
    while (status < 0 && errno == EINTR);
    return status;
}

bool sim_store_held_by_others(const struct sim_store *store)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = CLIENT_BYTE, .l_len = 1};
    return fcntl(store->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- where ---- */

static const char *fleet_text(void)
{
    const char *fleet = getenv("TRANCHE_SIM_FLEET");
    return fleet && *fleet ? fleet : default_fleet;
}

static const char *seed_text(void)
{
    const char *seed = getenv("TRANCHE_SIM_SEED");
    return seed ? seed : "";
}

/* Makes the folder of default state files; another user's, or one that others may write
 * to, is refused. */
static int make_private_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, E_IO, "cannot make %s", path);
    struct stat status;
    if (lstat(path, &status) < 0)
        return error_set_errno(err, E_IO, "cannot look at %s", path);
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 077)
        return error_set(
            err, E_IO,
            "%s is not a folder of mode 0700 that belongs to this user: remove it, "
            "or set TRANCHE_SIM_STATE",
            path);
    return 0;
}

int sim_store_path(char *ret_path, size_t size, struct error *err)
{
    const char *state = getenv("TRANCHE_SIM_STATE");
    if (state && *state) {
        int length = snprintf(ret_path, size, "%s", state);
        return length < (int)size ? 0
                                  : error_set(err, E_INPUT, "TRANCHE_SIM_STATE is too long");
    }
    char folder[256];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime == '/' && strlen(runtime) < sizeof folder - 16)
        snprintf(folder, sizeof folder, "%s/tranche-sim", runtime);
    else
        snprintf(folder, sizeof folder, "/tmp/tranche-sim-%u", (unsigned)geteuid());
    int status = make_private_folder(folder, err);
    if (status < 0)
        return status;
    uint64_t name = sim_hash(fleet_text(), strlen(fleet_text()), 3) ^
                    sim_hash(seed_text(), strlen(seed_text()), 4);
    snprintf(ret_path, size, "%s/%016llx.state", folder, (unsigned long long)name);
    return 0;
}

/* ---- slots ---- */

static int load(struct sim_store *store, struct error *err)
{
    struct header header;
    if (read_all(store->fd, &header, sizeof header, 0) < 0 ||
        memcmp(header.magic, magic, sizeof magic) != 0)
        return error_set(err, E_INPUT, "%s is not the state of a simulated machine",
                         store->path);
    if (header.format != FORMAT || header.machine_size != sizeof(struct sim_machine))
        return error_set(err, E_INPUT,
                         "%s was written by another version of the simulator: remove it",
                         store->path);
    if (store->cached && header.active == store->active)
        return 0;
    struct slot_head head;
    off_t offset = slot_offset(header.active & 1);
    store->cached = false;
    if (read_all(store->fd, &head, sizeof head, offset) < 0 ||
        head.length < offsetof(struct sim_machine, gpus) ||
        head.length > sizeof store->machine ||
        read_all(store->fd, &store->machine, head.length, offset + (off_t)sizeof head) < 0 ||
        sim_hash(&store->machine, head.length, 5) != head.checksum ||
        store->machine.gpu_count > SIM_GPUS_MAX ||
        sim_machine_size(&store->machine) != head.length || !sim_machine_valid(&store->machine))
        return error_set(err, E_INPUT, "%s is damaged: remove it", store->path);
    store->active = header.active;
    store->cached = true;
    return 0;
}

static int write_slot(struct sim_store *store, uint64_t slot)
{
    struct slot_head head = {.length = sim_machine_size(&store->machine)};
    head.checksum = sim_hash(&store->machine, head.length, 5);
    off_t offset = slot_offset(slot);
    if (write_all(store->fd, &head, sizeof head, offset) < 0)
        return -1;
    return write_all(store->fd, &store->machine, head.length, offset + (off_t)sizeof head);
}

static int write_error(const struct sim_store *store, struct error *err)
{
    return error_set_errno(err, E_IO, "%s: cannot write the simulated machine's state",
                           store->path);
}

int sim_store_commit(struct sim_store *store, struct error *err)
{
    assert(sim_machine_valid(&store->machine));
    uint64_t slot = (store->active & 1) ^ 1;
    uint64_t active = ((store->active >> 1) + 1) << 1 | slot;
    if (write_slot(store, slot) < 0)
        return write_error(store, err);
    if (store->kill_commit)
        raise(SIGKILL);
    if (write_all(store->fd, &active, sizeof active, offsetof(struct header, active)) < 0)
        return write_error(store, err);
    store->active = active;
    return 0;
}

void sim_store_kill_next_commit(struct sim_store *store)
{
    store->kill_commit = true;
}

/* A new file, or one whose maker was killed before the header stood: the header, with the
 * magic word, is written last. */
static int make_machine(struct sim_store *store, struct error *err)
{
    int status = sim_machine_init(&store->machine, fleet_text(), seed_text(), err);
    if (status < 0)
        return error_wrap(err, "TRANCHE_SIM_FLEET");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sim_settle(&store->machine,
               now.tv_sec * 1000000000LL + now.tv_nsec); /* energy starts now */
    struct header header = {.format = FORMAT, .machine_size = sizeof(struct sim_machine)};
    memcpy(header.magic, magic, sizeof magic);
    if (ftruncate(store->fd, slot_offset(2)) < 0 || write_slot(store, 0) < 0 ||
        write_all(store->fd, &header, sizeof header, 0) < 0)
        return write_error(store, err);
    return 0;
}

static bool is_new(const struct sim_store *store)
{
    char start[sizeof magic] = {0};
    ssize_t got = pread(store->fd, start, sizeof start, 0);
    static const char zeros[sizeof magic];
    return got >= 0 && memcmp(start, zeros, sizeof zeros) == 0;
}

/* Makes the machine in a new file, or leaves none. Others that wait for the lock notice
 * that the file has lost its name. */
static int open_new(struct sim_store *store, bool created, struct error *err)
{
    int status = make_machine(store, err);
    if (status < 0 && created)
        unlink(store->path);
    else if (status < 0 && ftruncate(store->fd, 0) < 0)
        return status; /* a header without the magic word is new to the next, too */
    return status;
}

static int open_locked(struct sim_store *store, bool created, struct error *err)
{
    if (store->writable && is_new(store)) {
        int status = open_new(store, created, err);
        if (status < 0)
            return status;
    }
    int status = load(store, err);
    if (status < 0)
        return status;
    const char *wanted = getenv("TRANCHE_SIM_FLEET");
    if (wanted && *wanted && strcmp(wanted, store->machine.fleet) != 0)
        return error_set(err, E_CONFLICT,
                         "%s is a machine with fleet '%s', but TRANCHE_SIM_FLEET says '%s': "
                         "remove the file or unset the variable",
                         store->path, store->machine.fleet, wanted);
    return 0;
}

/* Opens the file into store->fd; *ret_created: it was not there before. */
static int open_file(struct sim_store *store, bool *ret_created, struct error *err)
{
    int flags = O_CLOEXEC | O_NOCTTY;
    int fd = open(store->path, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
    *ret_created = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(store->path, O_RDWR | O_CREAT | flags, 0600);
    store->writable = fd >= 0;
    if (fd < 0 && (errno == EACCES || errno == EROFS))
        fd = open(store->path, O_RDONLY | flags);
    if (fd < 0)
        return error_set_errno(err, E_IO, "%s: cannot open the simulated machine's state",
                               store->path);
    store->fd = fd;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return 0;
    return error_set(err, E_IO,
                     "%s: is no regular file, expected the simulated machine's state",
                     store->path);
}

/* Opens and locks the file, again when another process removed it meanwhile. */
static int open_and_lock(struct sim_store *store, bool *ret_created, struct error *err)
{
    for (;;) {
        int result = open_file(store, ret_created, err);
        if (result < 0)
            return result;
        if (set_lock(store->fd, store->writable ? F_WRLCK : F_RDLCK, STATE_BYTE) < 0)
            return error_set_errno(err, E_IO, "%s: cannot lock the simulated machine's state",
                                   store->path);
        struct stat status;
        if (fstat(store->fd, &status) < 0 || status.st_nlink > 0)
            return 0;
        close(store->fd);
        store->fd = -1;
    }
}

int sim_store_open(struct sim_store *store, struct error *err)
{
    bool created = false;
    store->fd = -1;
    store->cached = store->kill_commit = false;
    int status = sim_store_path(store->path, sizeof store->path, err);
    if (status == 0)
        status = open_and_lock(store, &created, err);
    if (status == 0)
        status = open_locked(store, created, err);
    if (status == 0 && set_lock(store->fd, F_RDLCK, CLIENT_BYTE) < 0)
        status = error_set_errno(err, E_IO, "%s: cannot lock the simulated machine's state",
                                 store->path);
    if (store->fd >= 0)
        set_lock(store->fd, F_UNLCK, STATE_BYTE);
    if (status < 0)
        sim_store_close(store);
    return status;
}

void sim_store_close(struct sim_store *store)
{
    close_fd(&store->fd);
    store->fd = -1;
    store->cached = false;
}

int sim_store_lock(struct sim_store *store, bool exclusive, struct error *err)
{
    assert(store->fd >= 0);
    if (exclusive && !store->writable)
        return error_set(err, E_UNSUPPORTED, "%s may not be written", store->path);
    if (set_lock(store->fd, exclusive ? F_WRLCK : F_RDLCK, STATE_BYTE) < 0)
        return error_set_errno(err, E_IO, "cannot lock %s", store->path);
    int status = load(store, err);
    if (status < 0)
        set_lock(store->fd, F_UNLCK, STATE_BYTE);
    return status;
}

void sim_store_unlock(struct sim_store *store, bool changed)
{
    if (changed)
        store->cached = false;
    set_lock(store->fd, F_UNLCK, STATE_BYTE);
}
