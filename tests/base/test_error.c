/* SPDX-License-Identifier: Apache-2.0
 *
 * The error object: codes, context, cutting, errno.
 */
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_set(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(error_set(&err, E_BUSY, "gi %u on gpu %s", 7U, "g0"), -E_BUSY);
    assert_int_equal(err.code, E_BUSY);
    assert_string_equal(err.text, "gi 7 on gpu g0");
    assert_int_equal(error_set(NULL, E_NO, "nobody asks"), -E_NO);
}

static void test_set_from_itself(void **state)
{
    (void)state;
    struct error err = {0};
    error_set(&err, E_NO, "inner");
    error_set(&err, E_INPUT, "[%s] [%s]", err.text, err.text);
    assert_string_equal(err.text, "[inner] [inner]");
}

static void test_errno(void **state)
{
    (void)state;
    struct error err = {0};
    errno = ENOSPC;
    assert_int_equal(error_set_errno(&err, E_IO, "%s: cannot write", "plan.json"), -E_IO);
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(err.text, "plan.json: cannot write: No space left on device");
    errno = ENOSPC;
    assert_int_equal(error_set_errno(NULL, E_IO, "x"), -E_IO);
    assert_int_equal(errno, ENOSPC);
}

static void test_wrap(void **state)
{
    (void)state;
    struct error err = {0};
    error_set(&err, E_CONFLICT, "changed meanwhile");
    assert_int_equal(error_wrap(&err, "node %d", 3), -E_CONFLICT);
    assert_string_equal(err.text, "node 3: changed meanwhile");
    assert_int_equal(error_wrap(NULL, "node"), -E_IO);
    struct error none = {0};
    assert_int_equal(error_wrap(&none, "node"), -E_IO);
    assert_string_equal(none.text, "");
}

/* Whether text is whole UTF-8 characters. */
static bool is_whole_utf8(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int more = *p < 0x80 ? 0 : *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : *p >= 0xC0 ? 1 : -1;
        if (more < 0)
            return false;
        for (p++; more > 0; more--, p++)
            if ((*p & 0xC0) != 0x80)
                return false;
    }
    return true;
}

/* A text of `lead` ASCII letters and then copies of character, length bytes at least. */
static void fill(char *text, int lead, const char *character, size_t length)
{
    memset(text, 'a', (size_t)lead);
    text[lead] = '\0';
    while (strlen(text) < length)
        strcat(text, character);
}

static void test_cut_at_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "é", "漢", "😀"};
    for (size_t c = 0; c < sizeof characters / sizeof *characters; c++) {
        for (int lead = 0; lead < 4; lead++) {
            char text[2 * ERROR_TEXT_SIZE];
            fill(text, lead, characters[c], ERROR_TEXT_SIZE);
            struct error err = {0};
            error_set(&err, E_INPUT, "%s", text);
            size_t length = strlen(err.text);
            assert_in_range(length, ERROR_TEXT_SIZE - 4, ERROR_TEXT_SIZE - 1);
            assert_string_equal(err.text + length - 3, "...");
            assert_memory_equal(err.text, text, length - 3);
            assert_true(is_whole_utf8(err.text));
        }
    }
}

static void test_longest_whole(void **state)
{
    (void)state;
    char text[ERROR_TEXT_SIZE + 1];
    memset(text, 'x', sizeof text);
    text[ERROR_TEXT_SIZE - 1] = '\0';
    struct error err = {0};
    error_set(&err, E_INPUT, "%s", text);
    assert_string_equal(err.text, text);
    error_wrap(&err, "FILE");
    assert_int_equal(strlen(err.text), ERROR_TEXT_SIZE - 1);
    assert_memory_equal(err.text, "FILE: xxx", 9);
    assert_string_equal(err.text + ERROR_TEXT_SIZE - 5, "x...");
}

/* A text of bytes that are no UTF-8 must not be unwound to its beginning. */
static void test_cut_garbage(void **state)
{
    (void)state;
    char text[ERROR_TEXT_SIZE + 100];
    memset(text, 0x80, sizeof text);
    text[sizeof text - 1] = '\0';
    struct error err = {0};
    error_set(&err, E_INPUT, "%s", text);
    assert_in_range(strlen(err.text), ERROR_TEXT_SIZE - 5, ERROR_TEXT_SIZE - 1);
}

static void test_exit_status(void **state)
{
    (void)state;
    static const int expected[E_CODE_COUNT] = {
        [E_NO] = 1,      [E_USAGE] = 2,       [E_INPUT] = 3,       [E_IO] = 4,
        [E_MISSING] = 4, [E_NOT_FOUND] = 4,   [E_BUSY] = 4,        [E_CONFLICT] = 4,
        [E_TIMEOUT] = 4, [E_UNSUPPORTED] = 4, [E_INTERRUPTED] = 4,
    };
    for (int code = 0; code < E_CODE_COUNT; code++) {
        assert_int_equal(error_exit_status((enum error_code)code), expected[code]);
        assert_memory_equal(error_code_name((enum error_code)code), "E_", 2);
    }
    assert_string_equal(error_code_name(E_NOT_FOUND), "E_NOT_FOUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_from_itself),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_cut_at_character),
        cmocka_unit_test(test_longest_whole),
        cmocka_unit_test(test_cut_garbage),
        cmocka_unit_test(test_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
