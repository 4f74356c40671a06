/* SPDX-License-Identifier: Apache-2.0
 *
 * A corpus as a plain test: each file of the folder goes through the fuzzer's entry point,
 * whole and cut off at every byte (of the first PREFIX_LIMIT). What is wrong aborts.
 *
 *     replay_csv FOLDER
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/memory.h"
#include "fuzz.h"

enum { PREFIX_LIMIT = 1024 };

/* In memory of just that size, so that a sanitizer sees each byte read past the end. */
static void run_exact(const char *bytes, size_t length)
{
    CLEANUP(free_ptr) uint8_t *copy = xmemdup(bytes, length);

    LLVMFuzzerTestOneInput(copy, length);
}

static int replay(const char *folder, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, name);
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    struct error err = {0};

    if (file_read(path, FILE_SIZE_LIMIT, &bytes, &err) < 0) {
        printf("not ok - %s\n# %s\n", name, err.text);
        return 1;
    }
    for (size_t length = 0; length < bytes.length && length < PREFIX_LIMIT; length++)
        run_exact(bytes.bytes, length);
    run_exact(bytes.bytes, bytes.length);
    printf("ok - %s\n", name);
    return 0;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int failed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    int count = scandir(argv[1], &entries, is_input, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no inputs there\n", argv[1]);
        return 1;
    }
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        failed |= replay(argv[1], entries[i]->d_name);
        fflush(stdout);
        free(entries[i]);
    }
    free(entries);
    return failed;
}
