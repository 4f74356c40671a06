/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON text before it is parsed leniently: one pass over the tokens, which copies them and
 * writes another one for each that the parser would refuse; see json_parse_lenient().
 */
#include "base/json_repair.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"

#define REPLACEMENT "\\ufffd"

enum { ESCAPE_LENGTH = 6 }; /* of "\u0000" */

/* The code unit that the escape at `at` stands for; -1 when there is none. */
static int code_unit(const char *at, const char *end)
{
    int unit = 0;

    if (end - at < ESCAPE_LENGTH || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < ESCAPE_LENGTH; i++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return -1;
        unit = unit * 16 + (int)(digit - digits < 16 ? digit - digits : digit - digits - 6);
    }
    return unit;
}

/* Copies the escape at `at`, or writes the replacement; the byte after it. */
static const char *repair_escape(const char *at, const char *end, struct str *text)
{
    int unit = code_unit(at, end);
    size_t length = unit < 0 ? 2 : ESCAPE_LENGTH;
    bool leads = unit >= 0xD800 && unit <= 0xDBFF;
    int next = leads ? code_unit(at + ESCAPE_LENGTH, end) : -1;
    bool paired = next >= 0xDC00 && next <= 0xDFFF;

    assert(*at == '\\');
    if (paired)
        length = 2 * ESCAPE_LENGTH;
    if ((size_t)(end - at) < length)
        length = (size_t)(end - at);
    if (unit == 0 || (unit >= 0xD800 && unit <= 0xDFFF && !paired))
        str_add(text, REPLACEMENT);
    else
        str_add_bytes(text, at, length);
    return at + length;
}

/* Copies the string that begins at `at`; the byte after it. */
static const char *repair_string(const char *at, const char *end, struct str *text)
{
    assert(*at == '"');
    str_add_char(text, *at++);
    while (at < end && *at != '"') {
        const char *from = at;
        while (at < end && *at != '"' && *at != '\\' && *at != 0x7F)
            at++;
        str_add_bytes(text, from, (size_t)(at - from));
        if (at < end && *at == '\\') {
            at = repair_escape(at, end, text);
        } else if (at < end && *at == 0x7F) { /* refused in text files, fine when escaped */
            str_add(text, "\\u007f");
            at++;
        }
    }
    if (at < end)
        str_add_char(text, *at++);
    return at;
}

/* More than fits 64 bits: only as a number with a fraction can it be read. */
static bool is_huge_integer(const char *digits, size_t length)
{
    bool negative = length > 0 && *digits == '-';
    const char *most = negative ? "9223372036854775808" : "9223372036854775807";

    digits += negative;
    length -= negative;
    if (length == 0 || *digits == '0' || strspn(digits, "0123456789") < length)
        return false;
    return length > strlen(most) ||
           (length == strlen(most) && strncmp(digits, most, length) > 0);
}

/* Copies the number or word at `at`; the byte after it. */
static const char *repair_word(const char *at, const char *end, struct str *text)
{
    char word[400];
    const char *from = at;

    while (at < end && *at && !strchr("[]{},:\" \t\r\n", *at))
        at++;
    if (at == from) /* a NUL byte: refused later */
        at++;
    size_t length = (size_t)(at - from);
    str_add_bytes(text, from, length);
    if (length < sizeof word) {
        memcpy(word, from, length);
        word[length] = '\0';
        if (is_huge_integer(word, length))
            str_add(text, ".0");
    }
    return at;
}

/* The byte after the list or object that begins at `at`. */
static const char *skip_nested(const char *at, const char *end)
{
    CLEANUP(str_done) struct str ignored = STR_EMPTY;
    size_t depth = 0;

    assert(*at == '[' || *at == '{');
    while (at < end) {
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        if (*at != '"')
            at++;
        else
            at = repair_string(at, end, &ignored);
        str_clear(&ignored);
        if (depth == 0)
            break;
    }
    return at;
}

void json_repair(const char *bytes, size_t length, struct str *text)
{
    const char *at = bytes, *end = bytes + length;
    size_t depth = 0;

    while (at < end) {
        bool opens = *at == '[' || *at == '{', closes = *at == ']' || *at == '}';
        if (opens && depth == JSON_DEPTH_LIMIT) {
            str_add(text, "null");
            at = skip_nested(at, end);
        } else if (*at == '"') {
            at = repair_string(at, end, text);
        } else if (*at && strchr("[]{},: \t\r\n", *at)) {
            depth += opens;
            depth -= closes && depth > 0;
            str_add_char(text, *at++);
        } else {
            at = repair_word(at, end, text);
        }
    }
}
