/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole files. Writing is temporary file, fsync, rename, fsync of the folder; symbolic
 * links are followed first, so that a link stays one. The temporary file has no name until
 * it is renamed, where the file system can do that; while it has one, the signals that would
 * leave it behind are held back.
 */
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"

enum {
    FILE_CHUNK = 64 << 10,
    FILE_LINKS_MAX = 40,        /* the kernel's own limit of links in one path */
    FILE_TEMPORARY_TRIES = 100, /* names left by a killed process with our id */
    FILE_LOCK_TRIES = 100,
    FILE_LOCK_LEFT_NS = 20000000, /* between two looks at a lock whose owner is dead */
    FILE_LOCK_LEFT_TRIES = 500,
};

static bool is_standard_stream(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int open_input(const char *path, int *ret_fd, struct error *err)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_set_errno(err, E_IO, "%s: cannot open", path);
    if (S_ISDIR(status.st_mode))
        return error_set(err, E_IO, "%s: is a directory, expected a file", path);
    *ret_fd = steal_fd(&fd);
    return 0;
}

static int read_all(int fd, const char *name, size_t limit, struct str *bytes,
                    struct error *err)
{
    assert(fd >= 0);
    CLEANUP(free_ptr) char *chunk = xcalloc(FILE_CHUNK, 1);
    size_t total = 0;
    for (;;) {
        ssize_t got = read(fd, chunk, FILE_CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(err, E_IO, "%s: cannot read", name);
        if (got == 0)
            return 0;
        if ((size_t)got > limit - total)
            return error_set(err, E_INPUT, "%s: larger than %zu bytes, expected a smaller file",
                             name, limit);
        total += (size_t)got;
        str_add_bytes(bytes, chunk, (size_t)got);
    }
}

/* Signals held back while a temporary file exists; SIGXFSZ becomes plain EFBIG. */
struct signal_hold {
    sigset_t before;
};

static struct signal_hold signals_hold(bool terminating_too)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGXFSZ);
    if (terminating_too) {
        sigaddset(&held, SIGINT);
        sigaddset(&held, SIGTERM);
        sigaddset(&held, SIGHUP);
    }
    struct signal_hold hold;
    pthread_sigmask(SIG_BLOCK, &held, &hold.before);
    return hold;
}

static void signals_release(const struct signal_hold *hold)
{
    sigset_t size_limit;
    sigemptyset(&size_limit);
    sigaddset(&size_limit, SIGXFSZ);
    int saved = errno;
    /* The write that met the limit reported it; the signal would kill us for it again. */
    if (!sigismember(&hold->before, SIGXFSZ))
        while (sigtimedwait(&size_limit, NULL, &(struct timespec){0}) == SIGXFSZ)
            continue;
    pthread_sigmask(SIG_SETMASK, &hold->before, NULL);
    errno = saved;
}

/* 0, or -1 with errno. */
int file_write_all(int fd, const void *bytes, size_t length)
{
    assert(bytes || length == 0);
    const char *rest = bytes;
    while (length > 0) {
        ssize_t put = write(fd, rest, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        rest += put;
        length -= (size_t)put;
    }
    return 0;
}

static int write_stream(int fd, const char *name, const void *bytes, size_t length,
                        struct error *err)
{
    CLEANUP(signals_release) struct signal_hold hold = signals_hold(false);
    (void)hold;
    if (file_write_all(fd, bytes, length) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", name);
    return 0;
}

static int write_standard_output(const void *bytes, size_t length, struct error *err)
{
    /* What was printed before comes before. */
    if (fflush(stdout) != 0)
        return error_set_errno(err, E_IO, "standard output: cannot write");
    return write_stream(STDOUT_FILENO, "standard output", bytes, length, err);
}

/* The folder part of path, "." when there is none; owned by the caller. */
static char *folder_of(const char *path)
{
    assert(path);
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Where the links at the end of path lead, a missing file included. */
static int follow_links(const char *path, char **ret_target, struct error *err)
{
    CLEANUP(free_ptr) char *target = xstrdup(path);
    for (int links = 0; links < FILE_LINKS_MAX; links++) {
        char link[PATH_MAX];
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) {
            *ret_target = STEAL(target);
            return 0;
        }
        link[length] = '\0';
        CLEANUP(free_ptr) char *folder = folder_of(target);
        free(target);
        target = link[0] == '/' ? xstrdup(link) : xasprintf("%s/%s", folder, link);
    }
    errno = ELOOP;
    return error_set_errno(err, E_IO, "%s: cannot write", path);
}

/* A temporary file in the target's folder, until it is renamed. */
struct temporary {
    char *name; /* NULL when there is none to remove */
    int fd;
};

static void temporary_done(struct temporary *temporary)
{
    int saved = errno;
    close_fd(&temporary->fd);
    if (temporary->name)
        unlink(temporary->name);
    free(temporary->name);
    errno = saved;
}

/* A file without a name, which the kernel removes even when we are killed; 0, or -1 with
 * errno where the file system or the kernel has none. */
static int temporary_unnamed(const char *folder, struct temporary *temporary)
{
    assert(folder && temporary->fd < 0 && !temporary->name);
    temporary->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    return temporary->fd < 0 ? -1 : 0;
}

/* Makes `name`, which must not exist, a new file (when there is none yet) or the name of the
 * unnamed one. 0, or -1 with errno. */
static int temporary_make(const char *name, struct temporary *temporary)
{
    assert(name && !temporary->name);
    if (temporary->fd >= 0) {
        char unnamed[64];
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", temporary->fd);
        return linkat(AT_FDCWD, unnamed, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    }
    temporary->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    return temporary->fd < 0 ? -1 : 0;
}

/* Gives the temporary file a name that is free; 0, or -1 with errno. */
static int temporary_name(const char *folder, struct temporary *temporary)
{
    for (int attempt = 0; attempt < FILE_TEMPORARY_TRIES; attempt++) {
        CLEANUP(free_ptr)
        char *name = xasprintf("%s/.tranche-%ld-%d.tmp", folder, (long)getpid(), attempt);
        if (temporary_make(name, temporary) == 0) {
            temporary->name = STEAL(name);
            return 0;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* The replaced file's owner (where we may) and mode; 0, or -1 with errno. */
static int copy_attributes(const struct stat *replaced, int fd)
{
    struct stat own;
    if (fstat(fd, &own) < 0)
        return -1;
    bool same_owner = own.st_uid == replaced->st_uid && own.st_gid == replaced->st_gid;
    if (!same_owner && fchown(fd, replaced->st_uid, replaced->st_gid) < 0 && errno != EPERM)
        return -1;
    return fchmod(fd, replaced->st_mode & 07777);
}

static void sync_folder(const char *folder)
{
    /* The new file is in place already. Where folders cannot be synced (some network and
     * FUSE file systems) nothing better can be done, and the caller cannot either. */
    CLEANUP(close_fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd);
}

/* What a file is to hold; replaced: the status of the existing target, or NULL. */
struct content {
    const struct stat *replaced;
    const void *bytes;
    size_t length;
};

/* 0, or -1 with errno. */
static int temporary_fill(const struct content *content, const struct temporary *temporary)
{
    assert(temporary->fd >= 0);
    if (file_write_all(temporary->fd, content->bytes, content->length) < 0 ||
        (content->replaced && copy_attributes(content->replaced, temporary->fd) < 0))
        return -1;
    return fsync(temporary->fd);
}

/* A filled temporary file with a name. 0, or -1 with errno. */
static int temporary_create(const char *folder, const struct content *content,
                            struct temporary *temporary)
{
    if (temporary_unnamed(folder, temporary) == 0) {
        if (temporary_fill(content, temporary) < 0)
            return -1;
        if (temporary_name(folder, temporary) == 0)
            return 0;
        close_fd(&temporary->fd); /* without /proc it cannot get a name */
        temporary->fd = -1;
    }
    if (temporary_name(folder, temporary) < 0)
        return -1;
    return temporary_fill(content, temporary);
}

/* 0, or -1 with errno. */
static int replace_file(const char *target, const struct content *content)
{
    assert(target && content);
    CLEANUP(free_ptr) char *folder = folder_of(target);
    CLEANUP(signals_release) struct signal_hold hold = signals_hold(true);
    (void)hold;
    CLEANUP(temporary_done) struct temporary temporary = {.fd = -1};
    if (temporary_create(folder, content, &temporary) < 0)
        return -1;
    /* close() may be where a network file system reports that it has no room: until it has said
     * yes, the old file stays. */
    int closed = close(temporary.fd);
    temporary.fd = -1;
    if (closed < 0 || rename(temporary.name, target) < 0)
        return -1;
    free(temporary.name);
    temporary.name = NULL;
    sync_folder(folder);
    return 0;
}

static int write_device(const char *path, const void *bytes, size_t length, struct error *err)
{
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set_errno(err, E_IO, "%s: cannot open for writing", path);
    return write_stream(fd, path, bytes, length, err);
}

static bool is_stream(const struct stat *status)
{
    return S_ISCHR(status->st_mode) || S_ISFIFO(status->st_mode);
}

/* 0 when what stands at path may be replaced. */
static int check_replaceable(const char *path, const struct stat *status, struct error *err)
{
    if (S_ISDIR(status->st_mode))
        return error_set(err, E_IO, "%s: is a directory, expected a file name", path);
    if (!S_ISREG(status->st_mode))
        return error_set(err, E_IO, "%s: is a socket or a disk, expected a file name", path);
    /* A folder that we may write would let us replace a file that is write-protected. */
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
        return error_set_errno(err, E_IO, "%s: cannot write", path);
    return 0;
}

static int make_dir(const char *path, unsigned mode, struct error *err)
{
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return 0;
        return error_set(err, E_IO, "%s: is a file, expected a folder", path);
    }
    if (mkdir(path, mode) == 0)
        return 0;
    int reason = errno;
    if (reason == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0; /* another process was faster */
    errno = reason;
    return error_set_errno(err, E_IO, "%s: cannot make this folder", path);
}

/* The process id in the first line of a lock file: 0 when the file is empty, -1 when it
 * holds anything else. */
static long long lock_owner(int fd)
{
    char text[32];
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    if (length <= 0)
        return length;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    long long pid;
    return text_to_int(text, 1, INT_MAX, &pid) ? pid : -1;
}

/* Leaves our id for those who find the lock held, but never in a file that holds anything
 * else. Only a help: a full disk does not matter. */
static void leave_owner(int fd)
{
    if (lock_owner(fd) < 0)
        return;
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (pwrite(fd, text, (size_t)length, 0) == length && ftruncate(fd, length) < 0)
        return;
}

/* Whether path still names the file behind fd: it may have been replaced since open(). */
static bool is_same_file(const char *path, int fd)
{
    struct stat by_path, by_fd;
    return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 &&
           by_path.st_dev == by_fd.st_dev && by_path.st_ino == by_fd.st_ino;
}

/* A child that the owner forked holds its lock too. It ends soon after its owner: worth waiting
 * for. */
static bool is_owner_dead(int fd)
{
    long long owner = lock_owner(fd);
    return owner > 0 && kill((pid_t)owner, 0) < 0 && errno == ESRCH;
}

static int lock_held_error(const char *path, int fd, struct error *err)
{
    long long owner = lock_owner(fd);
    if (owner > 0)
        return error_set(err, E_BUSY, "%s: in use by process %lld; wait for it or stop it",
                         path, owner);
    return error_set(err, E_BUSY, "%s: in use by another process; wait for it or stop it",
                     path);
}

int file_read(const char *path, size_t limit, struct str *ret_bytes, struct error *err)
{
    assert(path && ret_bytes);
    assert(path && ret_bytes);
    CLEANUP(close_fd) int fd = -1;
    bool standard = is_standard_stream(path);
    if (!standard) {
        int result = open_input(path, &fd, err);
        if (result < 0)
            return result;
    }
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int result = read_all(standard ? STDIN_FILENO : fd, standard ? "standard input" : path,
                          limit, &bytes, err);
    if (result < 0)
        return result;
    str_add_bytes(ret_bytes, bytes.bytes, bytes.length);
    return 0;
}

int file_write(const char *path, const void *bytes, size_t length, struct error *err)
{
    assert(bytes || length == 0);
    if (!path || is_standard_stream(path) || strcmp(path, "/dev/stdout") == 0)
        return write_standard_output(bytes, length, err);
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && is_stream(&status))
        return write_device(path, bytes, length, err);
    CLEANUP(free_ptr) char *target = NULL;
    int result = exists ? check_replaceable(path, &status, err) : 0;
    if (result == 0)
        result = follow_links(path, &target, err);
    struct content content = {exists ? &status : NULL, bytes, length};
    if (result == 0 && replace_file(target, &content) < 0)
        result = error_set_errno(err, E_IO, "%s: cannot write", path);
    return result;
}

int file_make_dirs(const char *path, unsigned mode, struct error *err)
{
    assert(path && mode <= 07777);
    CLEANUP(free_ptr) char *partial = xstrdup(path);
    char *slash = path[0] ? strchr(partial + 1, '/') : NULL;
    for (; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int result = make_dir(partial, mode, err);
        *slash = '/';
        if (result < 0)
            return result;
    }
    return make_dir(path, mode, err);
}

void file_sha256(const void *bytes, size_t length, char ret[72])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    int done = EVP_Digest(bytes, length, digest, &digest_length, EVP_sha256(), NULL);
    assert(done == 1 && digest_length == 32);
    (void)done;
    char *end = stpcpy(ret, "sha256:");
    for (unsigned i = 0; i < digest_length; i++) {
        *end++ = hex[digest[i] >> 4];
        *end++ = hex[digest[i] & 15];
    }
    *end = '\0';
}

int file_lock(const char *path, int *ret_fd, struct error *err)
{
    int left = FILE_LOCK_LEFT_TRIES;
    assert(path && ret_fd);
    for (int attempt = 0; attempt < FILE_LOCK_TRIES; attempt++) {
        CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
        if (fd < 0)
            return error_set_errno(err, E_IO, "%s: cannot open", path);
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if (errno != EWOULDBLOCK)
                return error_set_errno(err, E_IO, "%s: cannot lock", path);
            if (left-- == 0 || !is_owner_dead(fd))
                return lock_held_error(path, fd, err);
            nanosleep(&(struct timespec){.tv_nsec = FILE_LOCK_LEFT_NS}, NULL);
        }
        if (!is_same_file(path, fd))
            continue;
        leave_owner(fd);
        *ret_fd = steal_fd(&fd);
        return 0;
    }
    return error_set(err, E_BUSY, "%s: replaced by others again and again; try again", path);
}
