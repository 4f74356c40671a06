/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, growing text, terminal width and numbers as text.
 */
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/str.h"

static void test_memory(void **state)
{
    (void)state;
    CLEANUP(free_ptr) unsigned char *zeroed = xcalloc(100, 3);
    for (int i = 0; i < 300; i++)
        assert_int_equal(zeroed[i], 0);
    CLEANUP(free_ptr) char *none = xcalloc(0, 8);
    assert_non_null(none);
    none = xrealloc(none, 0, 8);
    assert_non_null(none);
    assert_null(xstrdup(NULL));
    CLEANUP(free_ptr) char *part = xstrndup("abcdef", 3);
    assert_string_equal(part, "abc");
    CLEANUP(free_ptr) char *short_text = xstrndup("ab", 30);
    assert_string_equal(short_text, "ab");
    CLEANUP(free_ptr) char *copy = xmemdup("a\0b", 3);
    assert_memory_equal(copy, "a\0b", 3);
    CLEANUP(free_ptr) char *printed = xasprintf("%d-%s", 5, "x");
    assert_string_equal(printed, "5-x");
}

static void grow_beyond(void)
{
    free(xrealloc(NULL, SIZE_MAX / 2, 4));
}

static void allocate_beyond(void)
{
    free(xcalloc(SIZE_MAX / 2, 4));
}

/* Sizes that overflow end the process, they never wrap to a small block. */
static void test_memory_overflow(void **state)
{
    (void)state;
    void (*const attempts[])(void) = {grow_beyond, allocate_beyond};
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        pid_t child = fork();
        if (child == 0) {
            fclose(stderr);
            attempts[i]();
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_str_grows(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    assert_string_equal(text.bytes, "");
    str_clear(&text);
    str_add(&text, "");
    str_add_bytes(&text, NULL, 0);
    assert_int_equal(text.capacity, 0);
    for (int i = 0; i < 1000; i++) {
        str_addf(&text, "%d,", i);
        assert_int_equal(strlen(text.bytes), text.length);
        assert_true(text.length < text.capacity);
    }
    assert_int_equal(text.length, 10 + 90 * 2 + 900 * 3 + 1000);
    assert_true(text_ends_with(text.bytes, ",998,999,"));
    str_clear(&text);
    assert_string_equal(text.bytes, "");
    str_add_bytes(&text, "a\0b", 3);
    str_add_char(&text, 'c');
    assert_int_equal(text.length, 4);
    assert_memory_equal(text.bytes, "a\0bc", 5);
}

static void test_str_take(void **state)
{
    (void)state;
    struct str text = STR_EMPTY;
    CLEANUP(free_ptr) char *empty = str_take(&text);
    assert_string_equal(empty, "");
    str_add(&text, "x");
    CLEANUP(free_ptr) char *taken = str_take(&text);
    assert_string_equal(taken, "x");
    assert_string_equal(text.bytes, "");
    str_done(&text);
    str_done(&text);
    assert_string_equal(str_empty_bytes, "");
}

static void test_prefix_suffix(void **state)
{
    (void)state;
    assert_true(text_starts_with("plan.json", "plan"));
    assert_true(text_starts_with("", ""));
    assert_false(text_starts_with("pla", "plan"));
    assert_true(text_ends_with("plan.json", ".json"));
    assert_true(text_ends_with("x", ""));
    assert_false(text_ends_with("son", "json"));
}

static void test_columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"é", 1},
        {"漢字", 4},
        {"e\u0301", 1},
        {"😀", 2},
        {"a\xff"
         "b",
         3},
        {"\xe6\xbc", 2},
        {"\xc0\xaf", 2},
        {"\xed\xa0\x80", 3},
        {"…─│", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(text_columns(cases[i].text), cases[i].columns);
}

static void check_number(double value, const char *expected)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    str_add_number(&text, value);
    if (expected)
        assert_string_equal(text.bytes, expected);
    double back;
    assert_true(text_to_double(text.bytes, &back));
    assert_true(back == value);
}

static void test_number_text(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {12, "12"},
        {-12.5, "-12.5"},
        {971.25, "971.25"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {1e300, "1e+300"},
        {1e22, "1e+22"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {9007199254740993.0, "9007199254740992"},
        {5e-324, "5e-324"},
        {4.35e-322, "4.35e-322"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0x1p-44, "5.684341886080802e-14"},
        {-0x1p-44, "-5.684341886080802e-14"},
        {9.5367431640625e-07, "9.5367431640625e-07"},
        {1e-5, "1e-05"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_number(cases[i].value, cases[i].text);
}

/* Digits of the mantissa in a number's text, without trailing zeros of whole numbers. */
static int significant_digits(const char *text)
{
    char digits[64] = "";
    size_t count = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0'))
            digits[count++] = *text;
    while (count > 0 && digits[count - 1] == '0')
        count--;
    return (int)count;
}

/* No decimal with one digit less, neither the one below nor the one above, reads back. */
static void check_shortest(double value)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    str_add_number(&text, value);
    assert_true(strtod(text.bytes, NULL) == value);
    int digits = significant_digits(text.bytes);
    if (digits < 2)
        return;
    char shorter[64];
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
    assert_true(strtod(shorter, NULL) != value);
    char *last = strchr(shorter, 'e') - 1;
    for (int step = -1; step <= 1; step += 2) {
        if (*last + step < '0' || *last + step > '9')
            continue;
        *last = (char)(*last + step);
        assert_true(strtod(shorter, NULL) != value);
        *last = (char)(*last - step);
    }
}

static void test_number_shortest(void **state)
{
    (void)state;
    struct rng rng = rng_seed(20260301);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value) && value != 0)
            check_shortest(value);
    }
    for (int exponent = -1074; exponent < 1024; exponent++) {
        check_shortest(ldexp(1, exponent));
        check_shortest(-nextafter(ldexp(1, exponent), 0));
        check_shortest(nextafter(ldexp(1, exponent), INFINITY));
    }
    for (int i = 1; i < 20000; i++)
        check_shortest((double)rng_below(&rng, 1000000) / 1000 + 0.001);
}

static void test_double_reading(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},    {"-0", 0},        {"12", 12},           {"+5", 5},      {"1.", 1},
        {".5", 0.5}, {"-.5e1", -5},    {"1e3", 1000},        {"1E-2", 0.01}, {"1e+02", 100},
        {"007", 7},  {"1e308", 1e308}, {"4.9e-324", 5e-324}, {"1e-400", 0},
    };
    static const char *const bad[] = {
        "",      " ",   "1 ",    " 1",       "1,5",   "0x10",   "inf",
        "-inf",  "nan", "NaN",   "infinity", "1e400", "-1e400", "1e",
        "1e+",   "e5",  ".",     "-",        "+",     "--1",    "1.2.3",
        "1_000", "1f",  "1e5.0", "\t1",      "1\n",   "½",      "1e999999999999999999999",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = NAN;
        assert_true(text_to_double(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 42;
        if (text_to_double(bad[i], &value))
            fail_msg("\"%s\" was taken as %g", bad[i], value);
        assert_true(value == 42);
    }
}

static void test_take_int(void **state)
{
    (void)state;
    const char *at = "12:345x";
    long long value = -1;
    assert_true(text_take_int(&at, 12, &value) && value == 12);
    assert_string_equal(at, ":345x");
    assert_false(text_take_int(&at, 1000, &value));
    at++;
    assert_false(text_take_int(&at, 344, &value));
    assert_true(value == 12);
    assert_string_equal(at, "345x");
    assert_true(text_take_int(&at, 345, &value) && value == 345);
    assert_string_equal(at, "x");
    static const char *const wrong[] = {"", "-1", "+1", " 1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at = wrong[i];
        assert_false(text_take_int(&at, LLONG_MAX, &value));
        assert_ptr_equal(at, wrong[i]);
    }
}

static void test_int_reading(void **state)
{
    (void)state;
    long long value = 42;
    assert_true(text_to_int("-7", -10, 10, &value) && value == -7);
    assert_true(text_to_int("+7", -10, 10, &value) && value == 7);
    assert_true(text_to_int("9223372036854775807", 0, LLONG_MAX, &value) && value == LLONG_MAX);
    assert_true(text_to_int("-9223372036854775808", LLONG_MIN, 0, &value) &&
                value == LLONG_MIN);
    value = 42;
    static const char *const bad[] = {
        "",
        "-",
        "+",
        "1.0",
        "1e3",
        " 1",
        "1 ",
        "0x1",
        "11",
        "-11",
        "9223372036854775808",
        "99999999999999999999999",
        "1a",
        "--1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(text_to_int(bad[i], -10, 10, &value));
    assert_false(text_to_int("9223372036854775808", LLONG_MIN, LLONG_MAX, &value));
    assert_int_equal(value, 42);
}

/* A locale with a decimal comma, made here because few machines have one installed. */
static bool set_comma_locale(void)
{
    char folder[] = "/tmp/tranche-locale-XXXXXX";
    if (!mkdtemp(folder))
        return false;
    CLEANUP(free_ptr)
    char *command =
        xasprintf("cd %s && printf 'LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                  "grouping -1\nEND LC_NUMERIC\n' >definition && "
                  "localedef --no-archive -c -i ./definition -f ANSI_X3.4-1968 "
                  "./comma >messages 2>&1",
                  folder);
    (void)!system(command); /* it warns of the other categories and fails for that */
    setenv("LOCPATH", folder, 1);
    bool found = setlocale(LC_NUMERIC, "comma") != NULL;
    unsetenv("LOCPATH");
    CLEANUP(free_ptr) char *removal = xasprintf("rm -r %s", folder);
    (void)!system(removal);
    return found;
}

/* A decimal comma changes neither direction. */
static void test_locale_independent(void **state)
{
    (void)state;
    if (!set_comma_locale()) {
        print_message("# localedef cannot make a locale here\n");
        skip();
    }
    char comma[8];
    snprintf(comma, sizeof comma, "%g", 1.5);
    assert_string_equal(comma, "1,5");
    check_number(971.25, "971.25");
    check_number(0x1p-44, "5.684341886080802e-14");
    double value;
    assert_false(text_to_double("1,5", &value));
    assert_true(text_to_double("1.5", &value) && value == 1.5);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_memory_overflow),
        cmocka_unit_test(test_str_grows),      cmocka_unit_test(test_str_take),
        cmocka_unit_test(test_prefix_suffix),  cmocka_unit_test(test_columns),
        cmocka_unit_test(test_number_text),    cmocka_unit_test(test_number_shortest),
        cmocka_unit_test(test_double_reading), cmocka_unit_test(test_int_reading),
        cmocka_unit_test(test_take_int),       cmocka_unit_test(test_locale_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
