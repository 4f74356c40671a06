/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV with a header row (RFC 4180: quoted fields, doubled quotes; LF or CRLF; a BOM and a
 * missing final newline are fine). The whole file is parsed at once; every complaint is
 * E_INPUT "FILE:LINE:COL: what is wrong, what was expected".
 */
#ifndef TRANCHE_BASE_CSV_H
#define TRANCHE_BASE_CSV_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct csv; /* owns all text */

/* Parses bytes; name is for messages. Empty, binary (NUL), duplicate or empty header
 * names, a row with another number of fields than the header, an unclosed quote, a line
 * over 1 MiB: E_INPUT. Blank lines and lines that start with '#' are skipped. */
int csv_parse(const char *name, const char *bytes, size_t length, struct csv **ret_csv,
              struct error *err);
/* file_read() then csv_parse(). */
int csv_read(const char *path, struct csv **ret_csv, struct error *err);
/* Frees the table and every text that was borrowed from it; NULL is fine. */
void csv_free(struct csv *csv);
CLEANUP_DEFINE_FREE(csv)

/* The name given to csv_parse(), for messages. */
const char *csv_name(const struct csv *csv);
/* Columns of the header; every row has as many fields. */
size_t csv_column_count(const struct csv *csv);
/* The header of a column below csv_column_count(); borrowed. */
const char *csv_column_name(const struct csv *csv, size_t column);
/* Index of the column of this name, compared byte by byte; -1 when absent. */
int csv_find_column(const struct csv *csv, const char *name); /* -1 when absent */
/* Rows below the header; blank lines and comments do not count. */
size_t csv_row_count(const struct csv *csv);
/* The field of a row below csv_row_count() and a column below csv_column_count(): without its
 * quotes, surrounding blanks removed; "" when empty. Borrowed until csv_free(). */
const char *csv_field(const struct csv *csv, size_t row, size_t column);
/* Line of the row in its file, from 1: for messages. */
unsigned csv_line(const struct csv *csv, size_t row);
/* Column, in characters from 1, at which the field begins, its quote included. */
unsigned csv_field_position(const struct csv *csv, size_t row, size_t column);
/* E_INPUT with the field's FILE:LINE:COL before the text. */
int csv_error(const struct csv *csv, size_t row, size_t column, struct error *err,
              const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The field as a finite number in [minimum, maximum]; an empty field leaves *ret_value
 * alone and returns 0. Else E_INPUT with place, value and expectation. */
int csv_number(const struct csv *csv, size_t row, size_t column, double minimum, double maximum,
               double *ret_value, struct error *err);

/* Appends one field with quotes where RFC 4180 needs them. */
struct str;
void csv_add_field(struct str *text, const char *field);

#endif
