/* SPDX-License-Identifier: Apache-2.0
 *
 * The line splitter: every chunking of a text gives the same lines, and lines are bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/line.h"

static bool on_line(void *context, const char *bytes, size_t length)
{
    struct str *got = context;

    str_add_bytes(got, bytes, length);
    str_add_char(got, '|');
    return length != 4 || memcmp(bytes, "stop", 4) != 0;
}

static const char TEXT[] = "one\n\n\ntwo words\r\n\xc3\xa9\n{\"a\":\"b\\n\"}\nnot ended";
static const char LINES[] = "one|two words|\xc3\xa9|{\"a\":\"b\\n\"}|";

static void test_two_cuts(void **state)
{
    const size_t length = sizeof TEXT - 1;

    (void)state;
    for (size_t a = 0; a <= length; a++)
        for (size_t b = a; b <= length; b++) {
            struct str got = STR_EMPTY;
            struct kube_line line = {STR_EMPTY, 100, on_line, &got};
            assert_int_equal(kube_line_feed(&line, TEXT, a), KUBE_LINE_MORE);
            assert_int_equal(kube_line_feed(&line, TEXT + a, b - a), KUBE_LINE_MORE);
            assert_int_equal(kube_line_feed(&line, TEXT + b, length - b), KUBE_LINE_MORE);
            assert_string_equal(got.bytes, LINES);
            assert_string_equal(line.partial.bytes, "not ended");
            kube_line_reset(&line);
            str_done(&got);
        }
}

static void test_byte_by_byte(void **state)
{
    struct str got = STR_EMPTY;
    struct kube_line line = {STR_EMPTY, 100, on_line, &got};

    (void)state;
    for (size_t i = 0; i < sizeof TEXT - 1; i++)
        assert_int_equal(kube_line_feed(&line, TEXT + i, 1), KUBE_LINE_MORE);
    assert_string_equal(got.bytes, LINES);
    kube_line_reset(&line);
    str_done(&got);
}

static void test_stops(void **state)
{
    struct str got = STR_EMPTY;
    struct kube_line line = {STR_EMPTY, 100, on_line, &got};

    (void)state;
    assert_int_equal(kube_line_feed(&line, "a\nst", 4), KUBE_LINE_MORE);
    assert_int_equal(kube_line_feed(&line, "op\nb\n", 5), KUBE_LINE_STOPPED);
    assert_string_equal(got.bytes, "a|stop|");
    kube_line_reset(&line);
    str_done(&got);
}

/* Exactly the limit is a line; one byte more is not, whole or split anywhere. */
static void test_limit(void **state)
{
    const char text[] = "12345678\n123456789\n";

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct str got = STR_EMPTY;
        struct kube_line line = {STR_EMPTY, 8, on_line, &got};
        enum kube_line_result first = kube_line_feed(&line, text, cut);
        enum kube_line_result result =
            first == KUBE_LINE_MORE ? kube_line_feed(&line, text + cut, sizeof text - 1 - cut)
                                    : first;
        assert_int_equal(result, KUBE_LINE_TOO_LONG);
        assert_string_equal(got.bytes, "12345678|");
        kube_line_reset(&line);
        str_done(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_cuts),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests_name("kube/line", tests, NULL, NULL);
}
