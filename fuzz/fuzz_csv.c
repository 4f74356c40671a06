/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV: what is read and written again reads the same; complaints name a place.
 */
#include <assert.h>
#include <string.h>

#include "base/csv.h"
#include "base/str.h"
#include "fuzz.h"

static void write_rows(const struct csv *csv, struct str *text)
{
    size_t columns = csv_column_count(csv);

    for (size_t c = 0; c < columns; c++) {
        str_add(text, c > 0 ? "," : "");
        csv_add_field(text, csv_column_name(csv, c));
    }
    for (size_t r = 0; r < csv_row_count(csv); r++) {
        str_add_char(text, '\n');
        for (size_t c = 0; c < columns; c++) {
            str_add(text, c > 0 ? "," : "");
            csv_add_field(text, csv_field(csv, r, c));
        }
    }
}

/* A row of one empty field is a blank line, which is no row. */
static bool has_blank_rows(const struct csv *csv)
{
    for (size_t r = 0; csv_column_count(csv) == 1 && r < csv_row_count(csv); r++)
        if (!*csv_field(csv, r, 0))
            return true;
    return false;
}

static void check_again(const struct csv *csv)
{
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;
    CLEANUP(csv_free_ptr) struct csv *again = NULL;

    write_rows(csv, &first);
    int result = csv_parse("again", first.bytes, first.length, &again, NULL);
    assert(result == 0);
    write_rows(again, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
    (void)result;
}

static void check_places(const struct csv *csv)
{
    for (size_t r = 0; r < csv_row_count(csv); r++)
        for (size_t c = 0; c < csv_column_count(csv); c++) {
            struct error err = {0};
            double value = 0;
            int result = csv_number(csv, r, c, -1e9, 1e9, &value, &err);
            assert(result == 0 || strncmp(err.text, "fuzz:", 5) == 0);
            assert(value >= -1e9 && value <= 1e9);
            assert(csv_line(csv, r) >= 2 && csv_field_position(csv, r, c) >= 1);
            (void)result;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    struct error err = {0};

    if (csv_parse("fuzz", (const char *)data, size, &csv, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz:", 5) == 0 && !csv);
        return 0;
    }
    check_places(csv);
    if (!has_blank_rows(csv))
        check_again(csv);
    return 0;
}
