/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.x response parser. See http_parser.h. Lines that arrive whole are read in place;
 * only a line cut by the end of a read is copied.
 */
#include "load/http_parser.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

void http_parser_reset(struct http_parser *parser)
{
    *parser = (struct http_parser){
        .on_body = parser->on_body, .context = parser->context, .line = parser->line};
}

void http_parser_done(struct http_parser *parser)
{
    free(parser->line);
    parser->line = NULL;
}

bool http_parser_has_begun(const struct http_parser *parser)
{
    return parser->state != HTTP_STATUS_LINE || parser->line_length > 0 ||
           parser->header_bytes > 0;
}

static void break_off(struct http_parser *parser, const char *problem)
{
    parser->state = HTTP_BROKEN;
    parser->problem = problem;
    parser->keeps_alive = false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK" */
static void take_status_line(struct http_parser *parser, const char *line, size_t length)
{
    if (length < 12 || memcmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) ||
        line[8] != ' ' || !is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11])) {
        break_off(parser, "a status line of HTTP/1.0 or 1.1");
        return;
    }
    parser->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    parser->keeps_alive = line[7] != '0';
    parser->chunked = parser->has_length = false;
    parser->state = HTTP_HEADER_LINE;
}

/* A whole number without sign and blanks; -1 otherwise or when it is absurd. */
static int64_t read_length(const char *text, size_t length)
{
    int64_t value = 0;
    if (length == 0 || length > 18)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static bool has_name(const char *line, size_t length, const char *name)
{
    return length == strlen(name) && strncasecmp(line, name, length) == 0;
}

/* Whether a comma-separated value contains the word. */
static bool has_word(const char *value, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    for (size_t i = 0; i + word_length <= length; i++)
        if (strncasecmp(value + i, word, word_length) == 0)
            return true;
    return false;
}

static void take_field(struct http_parser *parser, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon) {
        break_off(parser, "a header \"name: value\"");
        return;
    }
    size_t name_length = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + length;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_length = (size_t)(end - value);
    if (has_name(line, name_length, "content-length")) {
        parser->remaining = read_length(value, value_length);
        parser->has_length = true;
        if (parser->remaining < 0)
            break_off(parser, "a length in Content-Length");
    } else if (has_name(line, name_length, "transfer-encoding")) {
        parser->chunked = has_word(value, value_length, "chunked");
    } else if (has_name(line, name_length, "connection")) {
        if (has_word(value, value_length, "close"))
            parser->keeps_alive = false;
        else if (has_word(value, value_length, "keep-alive"))
            parser->keeps_alive = true;
    }
}

/* After the blank line: which body follows. */
static void end_headers(struct http_parser *parser)
{
    if (parser->status / 100 == 1) {
        parser->state = HTTP_STATUS_LINE;
    } else if (parser->status == 204 || parser->status == 304) {
        parser->state = HTTP_COMPLETE;
    } else if (parser->chunked) {
        parser->state = HTTP_CHUNK_SIZE;
    } else if (parser->has_length) {
        parser->state = parser->remaining > 0 ? HTTP_BODY_LENGTH : HTTP_COMPLETE;
    } else {
        parser->state = HTTP_BODY_TO_END;
        parser->keeps_alive = false;
    }
}

/* The value of a hexadecimal digit, -1 for another character. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1a0" or "1a0;extension" */
static void take_chunk_size(struct http_parser *parser, const char *line, size_t length)
{
    int64_t size = 0;
    size_t digits = 0;
    for (; digits < length && digits < 16; digits++) {
        int value = hex_value(line[digits]);
        if (value < 0)
            break;
        size = size * 16 + value;
    }
    if (digits == 0 || digits > 12 || (digits < length && !strchr("; \t", line[digits]))) {
        break_off(parser, "the size of a chunk");
        return;
    }
    parser->remaining = size;
    parser->state = size > 0 ? HTTP_CHUNK_DATA : HTTP_TRAILER_LINE;
}

/* A whole line without its end. */
static void take_line(struct http_parser *parser, const char *line, size_t length)
{
    if (length > 0 && line[length - 1] == '\r')
        length--;
    switch (parser->state) {
    case HTTP_STATUS_LINE:
        if (length > 0 || parser->header_bytes > 2) /* a stray blank line is forgiven */
            take_status_line(parser, line, length);
        break;
    case HTTP_HEADER_LINE:
        if (length > 0)
            take_field(parser, line, length);
        else
            end_headers(parser);
        break;
    case HTTP_CHUNK_SIZE:
        take_chunk_size(parser, line, length);
        break;
    case HTTP_CHUNK_END:
        if (length > 0)
            break_off(parser, "the end of a chunk");
        else
            parser->state = HTTP_CHUNK_SIZE;
        break;
    case HTTP_TRAILER_LINE:
        if (length == 0)
            parser->state = HTTP_COMPLETE;
        break;
    case HTTP_BODY_LENGTH:
    case HTTP_BODY_TO_END:
    case HTTP_CHUNK_DATA:
    case HTTP_COMPLETE:
    case HTTP_BROKEN:
        assert(!"no line is read here");
    }
}

static bool reads_lines(enum http_state state)
{
    return state == HTTP_STATUS_LINE || state == HTTP_HEADER_LINE || state == HTTP_CHUNK_SIZE ||
           state == HTTP_CHUNK_END || state == HTTP_TRAILER_LINE;
}

/* Reads up to the end of a line; returns the bytes taken. */
static size_t feed_line(struct http_parser *parser, const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);
    size_t taken = newline ? (size_t)(newline - bytes) + 1 : length;
    bool is_header = parser->state == HTTP_STATUS_LINE || parser->state == HTTP_HEADER_LINE;
    parser->header_bytes += is_header || parser->state == HTTP_TRAILER_LINE ? taken : 0;
    if (parser->header_bytes > HTTP_HEADERS_MAX ||
        parser->line_length + taken > HTTP_LINE_MAX) {
        break_off(parser, "headers of at most 64 KiB");
        return taken;
    }
    if (newline && parser->line_length == 0) {
        take_line(parser, bytes, taken - 1);
        return taken;
    }
    if (!parser->line)
        parser->line = xcalloc(HTTP_LINE_MAX, 1);
    memcpy(parser->line + parser->line_length, bytes, taken);
    parser->line_length += taken;
    if (newline) {
        size_t line_length = parser->line_length - 1;
        parser->line_length = 0;
        take_line(parser, parser->line, line_length);
    }
    return taken;
}

static size_t feed_body(struct http_parser *parser, const char *bytes, size_t length)
{
    size_t taken = length;
    if (parser->state != HTTP_BODY_TO_END && (int64_t)taken > parser->remaining)
        taken = (size_t)parser->remaining;
    if (parser->on_body && parser->status / 100 != 1)
        parser->on_body(parser->context, bytes, taken);
    parser->body_bytes += (int64_t)taken;
    if (parser->state == HTTP_BODY_TO_END)
        return taken;
    parser->remaining -= (int64_t)taken;
    if (parser->remaining == 0)
        parser->state = parser->state == HTTP_BODY_LENGTH ? HTTP_COMPLETE : HTTP_CHUNK_END;
    return taken;
}

size_t http_parser_feed(struct http_parser *parser, const char *bytes, size_t length)
{
    size_t taken = 0;
    while (taken < length && parser->state != HTTP_COMPLETE && parser->state != HTTP_BROKEN) {
        if (reads_lines(parser->state))
            taken += feed_line(parser, bytes + taken, length - taken);
        else
            taken += feed_body(parser, bytes + taken, length - taken);
    }
    assert(taken <= length);
    return taken;
}

void http_parser_end(struct http_parser *parser)
{
    if (parser->state == HTTP_BODY_TO_END)
        parser->state = HTTP_COMPLETE;
    else if (parser->state != HTTP_COMPLETE && parser->state != HTTP_BROKEN)
        break_off(parser, "more of the response before the connection's end");
}
