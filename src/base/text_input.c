/* SPDX-License-Identifier: Apache-2.0
 *
 * Text files before they are parsed; see text_input.h.
 */
#include "base/text_input.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char byte_order_mark[] = "\xEF\xBB\xBF";

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* The well-formed UTF-8 sequences of the Unicode standard, table 3-7: no overlong forms,
 * no surrogates, nothing past U+10FFFF. Bytes after the second are continuations. */
static const struct {
    unsigned char lead_low, lead_high, length, second_low, second_high;
} sequences[] = {
    {0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static bool is_sequence(const unsigned char *bytes, size_t row)
{
    for (size_t i = 2; i < sequences[row].length; i++)
        if (!is_continuation((char)bytes[i]))
            return false;
    return sequences[row].length == 1 ||
           (bytes[1] >= sequences[row].second_low && bytes[1] <= sequences[row].second_high);
}

/* Bytes of the UTF-8 sequence at bytes, `left` of which are there; 0 when it is none. */
static size_t sequence_length(const unsigned char *bytes, size_t left)
{
    assert(left > 0);
    for (size_t row = 0; row < sizeof sequences / sizeof *sequences; row++)
        if (bytes[0] >= sequences[row].lead_low && bytes[0] <= sequences[row].lead_high)
            return sequences[row].length <= left && is_sequence(bytes, row)
                       ? sequences[row].length
                       : 0;
    return 0;
}

static bool is_control(unsigned char byte)
{
    return (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
}

struct text_position text_input_position(const struct text_input *input, size_t offset)
{
    struct text_position position = {1, 1};

    assert(offset <= input->length);
    for (size_t i = 0; i < offset; i++) {
        if (input->bytes[i] == '\n') {
            position.line++;
            position.column = 1;
        } else if (!is_continuation(input->bytes[i])) {
            position.column++;
        }
    }
    return position;
}

int text_error_at(const char *name, struct text_position position, struct error *err,
                  const char *format, va_list arguments)
{
    assert(name && position.line > 0 && position.column > 0);
    CLEANUP(str_done) struct str text = STR_EMPTY;

    str_vaddf(&text, format, arguments);
    return error_set(err, E_INPUT, "%s:%u:%u: %s", name, position.line, position.column,
                     text.bytes);
}

int text_input_error(const struct text_input *input, size_t offset, struct error *err,
                     const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result =
        text_error_at(input->name, text_input_position(input, offset), err, format, arguments);
    va_end(arguments);
    return result;
}

static int check_bytes(const struct text_input *input, struct error *err)
{
    const unsigned char *bytes = (const unsigned char *)input->bytes;

    for (size_t i = 0; i < input->length;) {
        size_t length = sequence_length(bytes + i, input->length - i);
        if (length == 0)
            return text_input_error(input, i, err, "byte 0x%02X is not UTF-8, expected text",
                                    bytes[i]);
        if (is_control(bytes[i]))
            return text_input_error(
                input, i, err,
                "control character 0x%02X, expected text (is this a binary file?)", bytes[i]);
        i += length;
    }
    return 0;
}

int text_input_open(struct text_input *ret_input, const char *name, const char *bytes,
                    size_t length, const char *expected, struct error *err)
{
    assert(ret_input && name && expected && (bytes || length == 0));
    size_t mark = sizeof byte_order_mark - 1;
    bool marked = length >= mark && memcmp(bytes, byte_order_mark, mark) == 0;
    struct text_input input = {
        .name = name,
        .bytes = marked ? bytes + mark : bytes,
        .length = marked ? length - mark : length,
    };

    if (input.length == 0)
        return text_input_error(&input, 0, err, "the file is empty, expected %s", expected);
    int result = check_bytes(&input, err);
    if (result == 0)
        *ret_input = input;
    return result;
}
