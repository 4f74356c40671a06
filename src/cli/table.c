/* SPDX-License-Identifier: Apache-2.0
 *
 * Aligned tables; see table.h.
 */
#include "cli/table.h"

#include <assert.h>
#include <stdarg.h>

#include "base/memory.h"
#include "base/vec.h"

struct table {
    struct table_column *columns;
    size_t column_count;
    VEC(char *) cells; /* row by row, without the titles */
};

enum { GAP = 2 };

struct table *table_new(const struct table_column *columns, size_t column_count)
{
    struct table *table = xcalloc(1, sizeof *table);

    assert(column_count > 0);
    table->columns = xmemdup(columns, column_count * sizeof *columns);
    table->column_count = column_count;
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->cells.count; i++)
        free(table->cells.data[i]);
    vec_done(&table->cells);
    free(table->columns);
    free(table);
}

void table_add(struct table *table, const char *cell)
{
    vec_add(&table->cells, xstrdup(cell ? cell : ""));
}

void table_addf(struct table *table, const char *format, ...)
{
    struct str cell = STR_EMPTY;
    va_list arguments;

    va_start(arguments, format);
    str_vaddf(&cell, format, arguments);
    va_end(arguments);
    vec_add(&table->cells, str_take(&cell));
}

void table_add_number(struct table *table, double value, int decimals)
{
    table_addf(table, "%.*f", decimals, value);
}

static const char *cell_at(const struct table *table, size_t row, size_t column)
{
    size_t index = row * table->column_count + column;

    assert(column < table->column_count);
    return index < table->cells.count ? table->cells.data[index] : "";
}

static size_t row_count(const struct table *table)
{
    assert(table->column_count > 0);
    return (table->cells.count + table->column_count - 1) / table->column_count;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = text_columns(table->columns[column].title);

    for (size_t row = 0; row < row_count(table); row++) {
        size_t cell_width = text_columns(cell_at(table, row, column));
        if (cell_width > width)
            width = cell_width;
    }
    return width;
}

static void add_spaces(struct str *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_add_char(text, ' ');
}

static void add_cell(const struct table *table, size_t column, size_t width, const char *cell,
                     struct str *text)
{
    size_t pad = width - text_columns(cell);

    if (table->columns[column].align == TABLE_ALIGN_RIGHT)
        add_spaces(text, pad);
    str_add(text, cell);
    if (table->columns[column].align == TABLE_ALIGN_LEFT)
        add_spaces(text, pad);
    add_spaces(text, GAP);
}

static void end_line(struct str *text)
{
    while (text->length > 0 && text->bytes[text->length - 1] == ' ')
        text->length--;
    str_add_char(text, '\n');
}

void table_write(const struct table *table, struct str *text)
{
    CLEANUP(free_ptr) size_t *widths = xcalloc(table->column_count, sizeof *widths);

    for (size_t column = 0; column < table->column_count; column++) {
        widths[column] = column_width(table, column);
        add_cell(table, column, widths[column], table->columns[column].title, text);
    }
    end_line(text);
    for (size_t row = 0; row < row_count(table); row++) {
        for (size_t column = 0; column < table->column_count; column++)
            add_cell(table, column, widths[column], cell_at(table, row, column), text);
        end_line(text);
    }
}
