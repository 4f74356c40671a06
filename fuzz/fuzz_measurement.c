/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements: what is read is written and reads the same.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/measurement.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct measurement_set set, again;
    struct error err = {0};
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;

    if (measurement_set_parse("input", (const char *)data, size, &set, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "input", 5) == 0);
        return 0;
    }
    measurement_set_format(&set, &first);
    int result = measurement_set_parse("again", first.bytes, first.length, &again, &err);
    assert(result == 0);
    (void)result;
    measurement_set_format(&again, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
    measurement_set_done(&set);
    measurement_set_done(&again);
    return 0;
}
