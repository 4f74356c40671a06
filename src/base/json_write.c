/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON: numbers as the shortest text that reads back to the same double, members
 * in the order in which they were set, the same bytes for the same value everywhere.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

enum { INDENT = 2, LINE_LIMIT = 100 };

static void write_string(const char *bytes, size_t length, struct str *text)
{
    static const char escapes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

    str_add_char(text, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *escape = c ? strchr(escapes, c) : NULL;
        if (escape)
            str_addf(text, "\\%c", letters[escape - escapes]);
        else if (c < 0x20 || c == 0x7F)
            str_addf(text, "\\u%04x", c);
        else
            str_add_char(text, bytes[i]);
    }
    str_add_char(text, '"');
}

static void write_scalar(const json_t *json, struct str *text)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        write_string(json_string_value(json), json_string_length(json), text);
        return;
    case JSON_INTEGER:
        str_addf(text, "%lld", (long long)json_integer_value(json));
        return;
    case JSON_REAL:
        str_add_number(text, json_real_value(json));
        return;
    case JSON_TRUE:
        str_add(text, "true");
        return;
    case JSON_FALSE:
        str_add(text, "false");
        return;
    case JSON_NULL:
        str_add(text, "null");
        return;
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    assert(!"a scalar");
}

static bool is_container(const json_t *json)
{
    return json_is_object(json) || json_is_array(json);
}

/* How items are laid out: "," and ":" or ", " and ": ", or one a line. */
struct layout {
    const char *comma, *colon;
    bool pretty;
    size_t depth;
};

static void write_value(const json_t *json, const struct layout *layout, struct str *text);

static void write_key(const char *key, size_t length, const struct layout *layout,
                      struct str *text)
{
    write_string(key, length, text);
    str_add(text, layout->colon);
}

/* Before the item at this position, and (position = count) before the closing mark. */
static void write_separator(size_t position, size_t count, const struct layout *layout,
                            struct str *text)
{
    size_t depth = layout->depth + (position < count);

    if (position > 0 && position < count)
        str_add(text, layout->pretty ? "," : layout->comma);
    if (!layout->pretty || count == 0)
        return;
    str_add_char(text, '\n');
    for (size_t i = 0; i < INDENT * depth; i++)
        str_add_char(text, ' ');
}

static void write_object(const json_t *object, const struct layout *layout, struct str *text)
{
    size_t count = json_object_size(object), position = 0;
    struct layout inner = *layout;

    inner.depth++;
    str_add_char(text, '{');
    /* jansson iterates over a non-const object, without changing it. */
    json_t *members = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(members); at; at = json_object_iter_next(members, at)) {
        const char *key = json_object_iter_key(at);
        write_separator(position++, count, layout, text);
        write_key(key, json_object_iter_key_len(at), layout, text);
        write_value(json_object_iter_value(at), &inner, text);
    }
    write_separator(count, count, layout, text);
    str_add_char(text, '}');
}

static void write_list(const json_t *list, const struct layout *layout, struct str *text)
{
    size_t count = json_array_size(list);
    struct layout inner = *layout;

    inner.depth++;
    str_add_char(text, '[');
    for (size_t i = 0; i < count; i++) {
        write_separator(i, count, layout, text);
        write_value(json_array_get(list, i), &inner, text);
    }
    write_separator(count, count, layout, text);
    str_add_char(text, ']');
}

static void write_container(const json_t *json, const struct layout *layout, struct str *text)
{
    if (json_is_object(json))
        write_object(json, layout, text);
    else
        write_list(json, layout, text);
}

static bool has_inner_container(const json_t *json)
{
    json_t *members = (json_t *)(uintptr_t)json;

    for (size_t i = 0; i < json_array_size(json); i++)
        if (is_container(json_array_get(json, i)))
            return true;
    for (void *at = json_object_iter(members); at; at = json_object_iter_next(members, at))
        if (is_container(json_object_iter_value(at)))
            return true;
    return false;
}

static size_t line_length(const struct str *text)
{
    size_t length = 0;

    while (length < text->length && text->bytes[text->length - 1 - length] != '\n')
        length++;
    return length;
}

/* Appends json on the current line if that leaves room for a comma; false if not. */
static bool write_on_line(const json_t *json, struct str *text)
{
    static const struct layout one_line = {.comma = ", ", .colon = ": "};
    CLEANUP(str_done) struct str line = STR_EMPTY;

    if (has_inner_container(json))
        return false;
    write_container(json, &one_line, &line);
    if (line_length(text) + line.length + 1 > LINE_LIMIT)
        return false;
    str_add(text, line.bytes);
    return true;
}

static void write_value(const json_t *json, const struct layout *layout, struct str *text)
{
    assert(json);
    if (!is_container(json))
        write_scalar(json, text);
    else if (!layout->pretty || !write_on_line(json, text))
        write_container(json, layout, text);
}

void json_write_pretty(const json_t *json, struct str *text)
{
    static const struct layout layout = {.comma = ",", .colon = ": ", .pretty = true};

    write_value(json, &layout, text);
    str_add_char(text, '\n');
}

void json_write_line(const json_t *json, struct str *text)
{
    static const struct layout layout = {.comma = ",", .colon = ":"};

    write_value(json, &layout, text);
}
