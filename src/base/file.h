/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading whole files and writing them whole or not at all.
 */
#ifndef TRANCHE_BASE_FILE_H
#define TRANCHE_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

enum { FILE_SIZE_LIMIT = 256 << 20 }; /* the largest input read whole, bytes */

/* Appends the whole file; "-" is stdin. A directory, no permission, … is E_IO, larger than
 * limit bytes is E_INPUT; both name the path. */
int file_read(const char *path, size_t limit, struct str *ret_bytes, struct error *err);

/* Writes to a temporary file beside path, fsyncs, renames over path and fsyncs the folder.
 * On failure (E_IO) path is as it was and no temporary file stays. Mode 0644 less umask,
 * or that of the file replaced. "-" and NULL write to stdout (a short write is E_IO); a
 * path that is an existing character device or FIFO (/dev/stdout) is written directly. */
int file_write(const char *path, const void *bytes, size_t length, struct error *err);

/* mkdir -p with this mode (less umask) for what is missing. E_IO names the folder that could
 * not be made, or the file that stands in its place. */
int file_make_dirs(const char *path, unsigned mode, struct error *err);

/* "sha256:<hex>" of bytes, terminated, into ret[72]; that of no bytes is defined. */
void file_sha256(const void *bytes, size_t length, char ret[72]);

/* Writes all bytes to an open descriptor, also a pipe or socket, going on after signals. 0, or
 * -1 with errno. */
int file_write_all(int fd, const void *bytes, size_t length);

/* An exclusive advisory lock on path (created 0600 if missing), released by close() of
 * *ret_fd or process end. Held by another: E_BUSY, with its pid where known. What a killed
 * owner's children still hold is waited for, at most 10 s. */
int file_lock(const char *path, int *ret_fd, struct error *err);

#endif
