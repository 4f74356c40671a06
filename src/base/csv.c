/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV after RFC 4180, read in one pass. Fields are decoded into one buffer that is never
 * longer than the file: quotes only shrink a field, and its terminator takes the place of
 * the comma or line end.
 */
#include "base/csv.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/expect.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text_input.h"
#include "base/vec.h"

enum { CSV_SIZE_LIMIT = 64 << 20, CSV_LINE_LIMIT = 1 << 20, CSV_COLUMN_LIMIT = 4096 };

struct csv_field {
    const char *text;
    struct text_position position; /* of its first character */
};

struct csv {
    char *name;
    char *text;                   /* all fields, each terminated */
    VEC(struct csv_field) fields; /* the header, then row by row */
    size_t column_count, row_count;
};

/* Where the parser stands in the file. */
struct csv_parser {
    struct text_input input;
    size_t at;         /* next byte */
    size_t written;    /* bytes of csv->text in use */
    size_t counted_to; /* the byte of the current line up to which `column` counts */
    struct text_position position;
    struct csv *csv;
    struct error *err;
};

static bool at_end(const struct csv_parser *parser)
{
    return parser->at >= parser->input.length;
}

/* The byte ahead, 0 past the end: the text itself has none. */
static char peek(const struct csv_parser *parser, size_t ahead)
{
    size_t at = parser->at + ahead;

    return at < parser->input.length ? parser->input.bytes[at] : '\0';
}

static bool at_line_end(const struct csv_parser *parser)
{
    char next = peek(parser, 0);

    return !next || next == '\n' || (next == '\r' && peek(parser, 1) == '\n');
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(struct csv_parser *parser)
{
    while (is_blank(peek(parser, 0)))
        parser->at++;
}

/* Stands on the first byte of a line now. */
static void begin_line(struct csv_parser *parser)
{
    parser->position.line++;
    parser->position.column = 1;
    parser->counted_to = parser->at;
}

/* Past LF or CRLF; nothing at the end of the file. */
static void skip_line_end(struct csv_parser *parser)
{
    assert(at_line_end(parser));
    if (at_end(parser))
        return;
    parser->at += peek(parser, 0) == '\r' ? 2 : 1;
    begin_line(parser);
}

/* Brings the column, in characters, up to the next byte. */
static struct text_position count_columns(struct csv_parser *parser)
{
    assert(parser->counted_to <= parser->at);
    for (; parser->counted_to < parser->at; parser->counted_to++)
        parser->position.column +=
            ((unsigned char)parser->input.bytes[parser->counted_to] & 0xC0) != 0x80;
    return parser->position;
}

__attribute__((format(printf, 3, 4))) static int
fail_at(const struct csv_parser *parser, struct text_position position, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result = text_error_at(parser->input.name, position, parser->err, format, arguments);
    va_end(arguments);
    return result;
}

static void put(struct csv_parser *parser, char c)
{
    assert(parser->written <= parser->input.length);
    parser->csv->text[parser->written++] = c;
}

/* --- fields --- */

/* The quoted field at the opening quote; line ends within it are kept. */
static int parse_quoted(struct csv_parser *parser)
{
    struct text_position opening = count_columns(parser);

    parser->at++;
    for (;; parser->at++) {
        if (at_end(parser))
            return fail_at(parser, opening, "a quote opens here and is never closed");
        char c = peek(parser, 0);
        if (c == '"' && peek(parser, 1) != '"')
            break;
        if (c == '"')
            parser->at++;
        put(parser, c);
        /* begin_line() counts columns from the byte that it stands on, the one after this. */
        if (c == '\n') {
            parser->at++;
            begin_line(parser);
            parser->at--;
        }
    }
    parser->at++;
    skip_blanks(parser);
    if (peek(parser, 0) != ',' && !at_line_end(parser))
        return fail_at(parser, count_columns(parser),
                       "text after a closing quote, expected a comma or the line's end "
                       "(a quote within quotes is doubled)");
    return 0;
}

static int parse_plain(struct csv_parser *parser)
{
    size_t start = parser->written;

    while (peek(parser, 0) != ',' && !at_line_end(parser)) {
        char c = peek(parser, 0);
        if (c == '"')
            return fail_at(parser, count_columns(parser),
                           "a quote within a field, expected the whole field in quotes "
                           "with this one doubled");
        if (c == '\r')
            return fail_at(parser, count_columns(parser),
                           "carriage return without line feed, expected LF or CRLF");
        put(parser, c);
        parser->at++;
    }
    while (parser->written > start && is_blank(parser->csv->text[parser->written - 1]))
        parser->written--;
    return 0;
}

static int parse_field(struct csv_parser *parser)
{
    assert(parser->csv);
    skip_blanks(parser);
    struct csv_field field = {parser->csv->text + parser->written, count_columns(parser)};
    int result = peek(parser, 0) == '"' ? parse_quoted(parser) : parse_plain(parser);
    if (result < 0)
        return result;
    put(parser, '\0');
    vec_add(&parser->csv->fields, field);
    return 0;
}

/* --- records --- */

/* Adds the fields of one record; stands at its line end after. */
static int parse_record(struct csv_parser *parser, size_t field_limit, size_t *ret_count)
{
    for (*ret_count = 0; *ret_count < field_limit; parser->at++) {
        int result = parse_field(parser);
        if (result < 0)
            return result;
        ++*ret_count;
        if (at_line_end(parser))
            return 0;
    }
    return fail_at(parser, count_columns(parser), "more than %zu fields, expected %s",
                   field_limit,
                   parser->csv->column_count ? "as many as in the header" : "fewer");
}

/* Skips blank lines and comments; false at the end of the file. */
static bool find_record(struct csv_parser *parser)
{
    while (!at_end(parser)) {
        size_t start = parser->at;
        skip_blanks(parser);
        bool blank = at_line_end(parser);
        bool comment = parser->input.bytes[start] == '#';
        if (!blank && !comment) {
            parser->at = start;
            return true;
        }
        while (!at_end(parser) && peek(parser, 0) != '\n')
            parser->at++;
        skip_line_end(parser);
    }
    return false;
}

/* --- the file --- */

/* Before all else, so that no message has to show such a line. */
static int check_line_lengths(struct csv_parser *parser)
{
    struct text_position position = {1, 1};

    for (size_t start = 0; start < parser->input.length; position.line++) {
        const char *bytes = parser->input.bytes + start;
        const char *end = memchr(bytes, '\n', parser->input.length - start);
        size_t length = end ? (size_t)(end - bytes) : parser->input.length - start;
        if (length > CSV_LINE_LIMIT)
            return fail_at(parser, position, "a line of %zu bytes, expected at most %d", length,
                           CSV_LINE_LIMIT);
        start += length + 1;
    }
    return 0;
}

static int check_header(const struct csv_parser *parser)
{
    CLEANUP(map_done) struct map seen = {0};

    for (size_t i = 0; i < parser->csv->fields.count; i++) {
        const struct csv_field *field = &parser->csv->fields.data[i];
        if (!*field->text)
            return fail_at(parser, field->position,
                           "column %zu has no name, expected one in the header", i + 1);
        ptrdiff_t before = map_find(&seen, field->text);
        if (before >= 0)
            return fail_at(parser, field->position,
                           "column '%.80s' is there twice, first as column %td, expected each "
                           "name once",
                           field->text, before + 1);
        map_put(&seen, field->text, NULL);
    }
    return 0;
}

static int parse_header(struct csv_parser *parser)
{
    size_t count = 0;

    if (!find_record(parser))
        return fail_at(parser, count_columns(parser),
                       "nothing but blank lines and comments, expected a header row");
    int result = parse_record(parser, CSV_COLUMN_LIMIT, &count);
    if (result == 0)
        result = check_header(parser);
    if (result < 0)
        return result;
    skip_line_end(parser);
    parser->csv->column_count = count;
    return 0;
}

static int parse_row(struct csv_parser *parser)
{
    size_t expected = parser->csv->column_count, count = 0;

    assert(expected > 0);
    int result = parse_record(parser, expected, &count);
    if (result < 0)
        return result;
    if (count < expected)
        return fail_at(parser, count_columns(parser),
                       "%zu field%s, expected %zu as in the header", count,
                       count == 1 ? "" : "s", expected);
    parser->csv->row_count++;
    skip_line_end(parser);
    return 0;
}

int csv_parse(const char *name, const char *bytes, size_t length, struct csv **ret_csv,
              struct error *err)
{
    struct csv_parser parser = {.position = {1, 1}, .err = err};
    CLEANUP(csv_free_ptr) struct csv *csv = xcalloc(1, sizeof *csv);

    if (length > CSV_SIZE_LIMIT)
        return error_set(err, E_INPUT, "%s: larger than %d bytes, expected a smaller file",
                         name, CSV_SIZE_LIMIT);
    int result = text_input_open(&parser.input, name, bytes, length, "a header row", err);
    if (result < 0)
        return result;
    csv->name = xstrdup(name);
    csv->text = xcalloc(parser.input.length + 1, 1);
    parser.csv = csv;
    result = check_line_lengths(&parser);
    if (result == 0)
        result = parse_header(&parser);
    while (result == 0 && find_record(&parser))
        result = parse_row(&parser);
    if (result < 0)
        return result;
    *ret_csv = STEAL(csv);
    return 0;
}

int csv_read(const char *path, struct csv **ret_csv, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int result = file_read(path, CSV_SIZE_LIMIT, &bytes, err);

    if (result < 0)
        return result;
    return csv_parse(path, bytes.bytes, bytes.length, ret_csv, err);
}

void csv_free(struct csv *csv)
{
    if (!csv)
        return;
    free(csv->name);
    free(csv->text);
    vec_done(&csv->fields);
    free(csv);
}

/* --- access --- */

static const struct csv_field *field_at(const struct csv *csv, size_t row, size_t column)
{
    assert(csv->fields.count == (csv->row_count + 1) * csv->column_count);
    assert(row < csv->row_count && column < csv->column_count);
    return &csv->fields.data[(row + 1) * csv->column_count + column];
}

const char *csv_name(const struct csv *csv)
{
    return csv->name;
}

size_t csv_column_count(const struct csv *csv)
{
    return csv->column_count;
}

const char *csv_column_name(const struct csv *csv, size_t column)
{
    assert(column < csv->column_count);
    return csv->fields.data[column].text;
}

int csv_find_column(const struct csv *csv, const char *name)
{
    assert(csv && name);
    for (size_t i = 0; i < csv->column_count; i++)
        if (strcmp(csv->fields.data[i].text, name) == 0)
            return (int)i;
    return -1;
}

size_t csv_row_count(const struct csv *csv)
{
    return csv->row_count;
}

const char *csv_field(const struct csv *csv, size_t row, size_t column)
{
    return field_at(csv, row, column)->text;
}

unsigned csv_line(const struct csv *csv, size_t row)
{
    return field_at(csv, row, 0)->position.line;
}

unsigned csv_field_position(const struct csv *csv, size_t row, size_t column)
{
    return field_at(csv, row, column)->position.column;
}

int csv_error(const struct csv *csv, size_t row, size_t column, struct error *err,
              const char *format, ...)
{
    struct text_position position = field_at(csv, row, column)->position;
    va_list arguments;

    va_start(arguments, format);
    int result = text_error_at(csv->name, position, err, format, arguments);
    va_end(arguments);
    return result;
}

int csv_number(const struct csv *csv, size_t row, size_t column, double minimum, double maximum,
               double *ret_value, struct error *err)
{
    assert(ret_value && minimum <= maximum);
    const char *text = csv_field(csv, row, column);
    CLEANUP(str_done) struct str expected = STR_EMPTY;
    double value = NAN;

    if (!*text)
        return 0;
    if (text_to_double(text, &value) && value >= minimum && value <= maximum) {
        *ret_value = value;
        return 0;
    }
    expect_number(&expected, minimum, maximum, false);
    return csv_error(csv, row, column, err, "%s is '%.40s', expected %s",
                     csv_column_name(csv, column), text, expected.bytes);
}

/* Whether a field reads back as it is, even as the first of a line or a file. */
static bool is_bare(const char *field)
{
    size_t length = strlen(field);

    if (length == 0)
        return true;
    return !strpbrk(field, ",\"\r\n") && field[0] != '#' && !is_blank(field[0]) &&
           !is_blank(field[length - 1]) && !text_starts_with(field, "\xEF\xBB\xBF");
}

void csv_add_field(struct str *text, const char *field)
{
    if (is_bare(field)) {
        str_add(text, field);
        return;
    }
    str_add_char(text, '"');
    for (; *field; field++)
        /* The field's bytes one by one, a quote followed by a second one. */
        str_add(text, (char[]){*field, *field == '"' ? '"' : '\0', '\0'});
    str_add_char(text, '"');
}
