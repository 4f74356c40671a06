/* SPDX-License-Identifier: Apache-2.0
 *
 * See journal.h. The file is opened for each record: records are rare, and a file that was
 * moved away or a disk that came back is then noticed.
 */
#include "runtime/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

enum { JOURNAL_SIZE_LIMIT = 64 << 20 };

static int write_all(int fd, const struct str *text)
{
    for (size_t done = 0; done < text->length;) {
        ssize_t wrote = write(fd, text->bytes + done, text->length - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return -1;
        done += (size_t)wrote;
    }
    return fsync(fd) == 0 || errno == EINVAL ? 0 : -1; /* EINVAL: cannot be synced at all */
}

/* A line that a crash cut off must not swallow the one that follows. */
static int cut_torn_line(int fd, off_t size)
{
    char last = '\n';
    while (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        size--;
    return ftruncate(fd, size);
}

int journal_append(const char *path, const json_t *record, struct error *err)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;
    CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat status;
    assert(json_is_object(record));
    if (fd < 0 || fstat(fd, &status) != 0)
        return error_set_errno(err, E_IO, "%s: cannot open the journal", path);
    if (S_ISREG(status.st_mode) && cut_torn_line(fd, status.st_size) != 0)
        return error_set_errno(err, E_IO, "%s: cannot mend the journal", path);
    if (fstat(fd, &status) != 0)
        return error_set_errno(err, E_IO, "%s: cannot look at the journal", path);
    json_write_line(record, &line);
    str_add_char(&line, '\n');
    if (write_all(fd, &line) == 0)
        return 0;
    error_set_errno(err, E_IO, "%s: cannot write the journal", path);
    if (S_ISREG(status.st_mode) && ftruncate(fd, status.st_size) != 0)
        error_wrap(err, "and it cannot be cut back");
    return -E_IO;
}

int journal_read(const char *path, json_t **ret_records, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *records = json_array();
    if (access(path, F_OK) == 0) {
        int failed = file_read(path, JOURNAL_SIZE_LIMIT, &text, err);
        if (failed)
            return failed;
    }
    for (const char *at = text.bytes, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *record = NULL;
        int failed = json_parse(path, at, (size_t)(end - at), &record, err);
        if (failed)
            return failed;
        json_array_append_new(records, record);
    }
    *ret_records = STEAL(records);
    return 0;
}

int journal_replace(const char *path, const json_t *records, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (size_t i = 0; i < json_array_size(records); i++) {
        json_write_line(json_array_get(records, i), &text);
        str_add_char(&text, '\n');
    }
    return file_write(path, text.bytes, text.length, err);
}
