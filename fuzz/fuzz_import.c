/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer: any bytes are refused with a place, or become measurements that our own
 * reader takes.
 */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "load/import.h"

static void check_rows(struct import *import)
{
    struct measurement_set set, again = {0};
    struct import_counts counts;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err = {0};

    import_finish(import, &set, &counts);
    measurement_set_format(&set, &text);
    int result = measurement_set_parse("again", text.bytes, text.length, &again, &err);
    /* Names of columns may collide with ours; all else is ours to get right. */
    assert(result == 0 || strstr(err.text, "column") || strstr(err.text, "again:1:"));
    if (result == 0)
        measurement_set_done(&again);
    measurement_set_done(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct import_defaults defaults = {.board = "a100-80gb", .slice = "1g", .model = "m"};
    CLEANUP(import_free_ptr) struct import *import = NULL;
    struct error err = {0};

    int result = import_new(&defaults, &import, &err);
    assert(result == 0);
    result = import_bytes(import, "fuzz", (const char *)data, size, &err);
    assert(result == 0 || (err.code == E_INPUT && strncmp(err.text, "fuzz:", 5) == 0));
    if (result == 0)
        check_rows(import);
    return 0;
}
