/* SPDX-License-Identifier: Apache-2.0
 *
 * Aligned tables for people. Cells are filled row by row; widths count what a terminal
 * shows (text_columns()). The last column is never padded.
 */
#ifndef TRANCHE_CLI_TABLE_H
#define TRANCHE_CLI_TABLE_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"

enum table_align { TABLE_ALIGN_LEFT, TABLE_ALIGN_RIGHT };

struct table_column {
    const char *title; /* borrowed */
    enum table_align align;
};

struct table;

/* A table without rows; columns is copied. Never NULL. */
struct table *table_new(const struct table_column *columns, size_t column_count);
/* Frees the table; NULL is fine. */
void table_free(struct table *table);
CLEANUP_DEFINE_FREE(table)

/* Fills the next cell, from left to right, then the next row. NULL is an empty cell. */
void table_add(struct table *table, const char *cell);
/* Adds the next cell, formatted. */
void table_addf(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A number with this many decimals. */
void table_add_number(struct table *table, double value, int decimals);

/* Appends the titles and all rows, two blanks between columns, no blanks at line ends. An
 * unfinished row counts as filled up with empty cells. */
void table_write(const struct table *table, struct str *text);

#endif
