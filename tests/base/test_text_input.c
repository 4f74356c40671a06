/* SPDX-License-Identifier: Apache-2.0
 *
 * What counts as text: every code point, and the sequences that only look like one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text_input.h"

enum { LAST_CODE_POINT = 0x10FFFF };

/* Behind a letter, as a byte order mark in front would be dropped. */
static bool is_text(const unsigned char *bytes, size_t length)
{
    struct text_input input;
    char text[8] = "x";

    memcpy(text + 1, bytes, length);
    return text_input_open(&input, "t", text, length + 1, "text", NULL) == 0;
}

/* RFC 3629; surrogates too, as an encoder that knows no better would write them. */
static size_t encode(uint32_t c, unsigned char *bytes)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; c >>= 6)
        bytes[i] = (unsigned char)(0x80 | (c & 0x3F));
    bytes[0] = (unsigned char)(leads[length] | c);
    return length;
}

static bool is_allowed(uint32_t c)
{
    bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;

    return c <= LAST_CODE_POINT && !surrogate && !control;
}

static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= LAST_CODE_POINT + 0x1000; c++) {
        unsigned char bytes[4];
        size_t length = encode(c, bytes);
        if (is_text(bytes, length) != is_allowed(c))
            fail_msg("U+%04X", c);
        if (length > 1 && is_text(bytes, length - 1))
            fail_msg("U+%04X cut short", c);
    }
}

/* Decodes without any check, for comparison: whether bytes are what encode() makes. */
static bool is_canonical(const unsigned char *bytes, size_t length)
{
    unsigned char again[4];
    uint32_t c = bytes[0] & (0x7Fu >> length);

    for (size_t i = 1; i < length; i++)
        c = c << 6 | (bytes[i] & 0x3Fu);
    return encode(c, again) == length && memcmp(again, bytes, length) == 0 && is_allowed(c);
}

/* Every two bytes, and every lead of three with every second byte and the edges of the
 * third: nothing but the one encoding of a code point passes. */
static void test_only_canonical(void **state)
{
    static const unsigned char thirds[] = {0x00, 0x41, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};

    (void)state;
    for (unsigned lead = 0x80; lead <= 0xFF; lead++)
        for (unsigned second = 0; second <= 0xFF; second++) {
            unsigned char bytes[3] = {(unsigned char)lead, (unsigned char)second, 0};
            assert_int_equal(is_text(bytes, 2), is_canonical(bytes, 2));
            for (size_t i = 0; lead >= 0xE0 && i < sizeof thirds; i++) {
                bytes[2] = thirds[i];
                assert_int_equal(is_text(bytes, 3), is_canonical(bytes, 3));
            }
        }
}

static void test_positions(void **state)
{
    static const char text[] = "a\xC3\xA9\n\xE6\x97\xA5z\r\n\n";
    static const struct {
        size_t offset;
        unsigned line, column;
    } cases[] = {{0, 1, 1}, {1, 1, 2}, {3, 1, 3}, {4, 2, 1}, {7, 2, 2}, {10, 3, 1}, {11, 4, 1}};
    struct text_input input;
    struct error err = {0};

    (void)state;
    assert_int_equal(text_input_open(&input, "t", text, sizeof text - 1, "text", &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text_position got = text_input_position(&input, cases[i].offset);
        assert_int_equal(got.line, cases[i].line);
        assert_int_equal(got.column, cases[i].column);
    }
    assert_int_equal(text_input_error(&input, 7, &err, "no %c", 'z'), -E_INPUT);
    assert_string_equal(err.text, "t:2:2: no z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_only_canonical),
        cmocka_unit_test(test_positions),
    };

    return cmocka_run_group_tests_name("text_input", tests, NULL, NULL);
}
