/* SPDX-License-Identifier: Apache-2.0
 *
 * The CSV reader: what it accepts, and the exact place and words of each complaint.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/csv.h"
#include "base/memory.h"
#include "base/str.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* All fields as text: "a|b/1|2/" for header and rows. */
static char *render(const struct csv *csv)
{
    struct str text = STR_EMPTY;

    for (size_t c = 0; c < csv_column_count(csv); c++)
        str_addf(&text, "%s%s", c ? "|" : "", csv_column_name(csv, c));
    for (size_t r = 0; r < csv_row_count(csv); r++) {
        str_addf(&text, "/%u:", csv_line(csv, r));
        for (size_t c = 0; c < csv_column_count(csv); c++)
            str_addf(&text, "%s%s", c ? "|" : "", csv_field(csv, r, c));
    }
    return str_take(&text);
}

static const struct {
    const char *text, *expected;
} good[] = {
    {"a\n", "a"},
    {"a", "a"},
    {"a,b\n1,2\n", "a|b/2:1|2"},
    {"a,b\n1,2", "a|b/2:1|2"},
    {"a,b\r\n1,2\r\n", "a|b/2:1|2"},
    {"a,b\r\n1,2", "a|b/2:1|2"},
    {"a,b\r\n1,2\n3,4\r\n", "a|b/2:1|2/3:3|4"},
    {"\xEF\xBB\xBF"
     "a,b\n1,2\n",
     "a|b/2:1|2"},
    {"a,b\n1,\n,2\n,\n", "a|b/2:1|/3:|2/4:|"},
    {"a,b\n\n1,2\n\n  \n3,4\n\n", "a|b/3:1|2/6:3|4"},
    {"# made by hand\na,b\n# more\n1,2\n", "a|b/4:1|2"},
    {"\n\na,b\n1,2\n", "a|b/4:1|2"},
    {" a ,\tb\t\n 1 , 2 \n", "a|b/2:1|2"},
    {"a,b\n\"1\",\"x,y\"\n", "a|b/2:1|x,y"},
    {"a,b\n\"say \"\"hi\"\"\",\"\"\n", "a|b/2:say \"hi\"|"},
    {"a,b\n \" 1 \" ,2\n", "a|b/2: 1 |2"},
    {"a,b\n\"1\n2\",3\n4,5\n", "a|b/2:1\n2|3/4:4|5"},
    {"a,b\n\"1\r\n2\",3\r\n", "a|b/2:1\r\n2|3"},
    {"a,b\n1,#2\n", "a|b/2:1|#2"},
    {"é,ü\nß,日本\n", "é|ü/2:ß|日本"},
    {"a\n\"#1\"\n", "a/2:#1"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        CLEANUP(csv_free_ptr) struct csv *csv = NULL;
        struct error err = {0};
        if (csv_parse("t.csv", good[i].text, strlen(good[i].text), &csv, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        CLEANUP(free_ptr) char *got = render(csv);
        assert_string_equal(got, good[i].expected);
        assert_string_equal(csv_name(csv), "t.csv");
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "t.csv:1:1: the file is empty, expected a header row"},
    {"\xEF\xBB\xBF", "t.csv:1:1: the file is empty, expected a header row"},
    {"\n\n", "t.csv:3:1: nothing but blank lines and comments, expected a header row"},
    {"# only this", "t.csv:1:12: nothing but blank lines and comments, expected a header row"},
    {"a,b\n1\n", "t.csv:2:2: 1 field, expected 2 as in the header"},
    {"a,b,c\n1,2,3\n4,5\n", "t.csv:3:4: 2 fields, expected 3 as in the header"},
    {"a,b\n1,2\n3", "t.csv:3:2: 1 field, expected 2 as in the header"},
    {"a,b\n1,2,3\n", "t.csv:2:5: more than 2 fields, expected as many as in the header"},
    {"a,b\n1,2,\n", "t.csv:2:5: more than 2 fields, expected as many as in the header"},
    {"ä,b\nöö,2,3\n", "t.csv:2:6: more than 2 fields, expected as many as in the header"},
    {"a,,c\n", "t.csv:1:3: column 2 has no name, expected one in the header"},
    {"a,b,\n", "t.csv:1:5: column 3 has no name, expected one in the header"},
    {"a,b, a\n", "t.csv:1:6: column 'a' is there twice, first as column 1, expected each name "
                 "once"},
    {"a,b\n1,\"2\n3,4\n", "t.csv:2:3: a quote opens here and is never closed"},
    {"a,b\n1,\"2\"x\n", "t.csv:2:6: text after a closing quote, expected a comma or the line's "
                        "end (a quote within quotes is doubled)"},
    {"a,b\n\"x\ny\" z,2\n", "t.csv:3:4: text after a closing quote, expected a comma or the "
                            "line's end (a quote within quotes is doubled)"},
    {"a,b\n1,2\"\n", "t.csv:2:4: a quote within a field, expected the whole field in quotes "
                     "with this one doubled"},
    {"a,b\r1,2\r", "t.csv:1:4: carriage return without line feed, expected LF or CRLF"},
    {"a,b\n1,\x01\n", "t.csv:2:3: control character 0x01, expected text (is this a binary "
                      "file?)"},
    {"a,b\n1,\x7F\n", "t.csv:2:3: control character 0x7F, expected text (is this a binary "
                      "file?)"},
    {"a,b\nü,\xFF\n", "t.csv:2:3: byte 0xFF is not UTF-8, expected text"},
    {"a,b\n1,\xC0\x80\n", "t.csv:2:3: byte 0xC0 is not UTF-8, expected text"},
    {"a,b\n1,\xED\xA0\x80\n", "t.csv:2:3: byte 0xED is not UTF-8, expected text"},
    {"a,b\n1,\xF4\x90\x80\x80\n", "t.csv:2:3: byte 0xF4 is not UTF-8, expected text"},
    {"a,b\n1,\xE2\x82", "t.csv:2:3: byte 0xE2 is not UTF-8, expected text"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct csv *csv = NULL;
        struct error err = {0};
        int result = csv_parse("t.csv", bad[i].text, strlen(bad[i].text), &csv, &err);
        if (result != -E_INPUT)
            fail_msg("case %zu was accepted", i);
        assert_null(csv);
        assert_string_equal(err.text, bad[i].message);
    }
}

static void test_binary(void **state)
{
    static const char bytes[] = "\177ELF\2\1\1\0\0\0";
    static const char nul[] = "a,b\n1,\0002\n";
    struct csv *csv = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(csv_parse("t", bytes, sizeof bytes - 1, &csv, &err), -E_INPUT);
    assert_string_equal(
        err.text, "t:1:1: control character 0x7F, expected text (is this a binary file?)");
    assert_int_equal(csv_parse("t", nul, sizeof nul - 1, &csv, &err), -E_INPUT);
    assert_string_equal(
        err.text, "t:2:3: control character 0x00, expected text (is this a binary file?)");
}

/* Every proper prefix of a good file is either good or refused, never worse. */
static void test_truncated(void **state)
{
    static const char text[] = "model,board\r\n\"a \"\"b\"\" ü\",x\r\nc,d\r\n";

    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        CLEANUP(csv_free_ptr) struct csv *csv = NULL;
        CLEANUP(free_ptr) char *copy = xmemdup(text, length + 1);
        struct error err = {0};
        int result = csv_parse("t", copy, length, &csv, &err);
        assert_true(result == 0 || (result == -E_INPUT && err.text[0] == 't'));
    }
}

static void test_long_lines(void **state)
{
    enum { LENGTH = 10 << 20 };
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct csv *csv = NULL;
    struct error err = {0};

    (void)state;
    str_add(&text, "a,b\n1,2\n");
    for (size_t i = 0; i < LENGTH; i++)
        str_add_char(&text, 'x');
    assert_int_equal(csv_parse("t", text.bytes, text.length, &csv, &err), -E_INPUT);
    assert_string_equal(err.text, "t:3:1: a line of 10485760 bytes, expected at most 1048576");
}

static void test_too_many_columns(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct csv *csv = NULL;
    struct error err = {0};

    (void)state;
    for (size_t i = 0; i < 5000; i++)
        str_addf(&text, "%sc%zu", i ? "," : "", i);
    assert_int_equal(csv_parse("t", text.bytes, text.length, &csv, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "more than 4096 fields, expected fewer"));
}

static const struct {
    const char *field;
    double minimum, maximum, expected; /* NAN: refused */
    const char *message;
} numbers[] = {
    {"1.5", 0, 10, 1.5, NULL},
    {"", 0, 10, 77, NULL},
    {"1e3", 0, 1e6, 1000, NULL},
    {"-1", -5, 10, -1, NULL},
    {"0", 0, INFINITY, 0, NULL},
    {"nan", 0, 10, NAN, "t:2:2: x is 'nan', expected a number from 0 to 10"},
    {"inf", 0, INFINITY, NAN, "t:2:2: x is 'inf', expected a number of at least 0"},
    {"1e400", -INFINITY, INFINITY, NAN, "t:2:2: x is '1e400', expected a finite number"},
    {"-1", 0, 10, NAN, "t:2:2: x is '-1', expected a number from 0 to 10"},
    {"0", DBL_MIN, 1, NAN, "t:2:2: x is '0', expected a number above 0 and at most 1"},
    {"0", DBL_MIN, INFINITY, NAN, "t:2:2: x is '0', expected a number above 0"},
    {"11", -INFINITY, 10, NAN, "t:2:2: x is '11', expected a number of at most 10"},
    {"12abc", 0, 100, NAN, "t:2:2: x is '12abc', expected a number from 0 to 100"},
    {"0x10", 0, 100, NAN, "t:2:2: x is '0x10', expected a number from 0 to 100"},
    {"\"1,5\"", 0, 100, NAN, "t:2:2: x is '1,5', expected a number from 0 to 100"},
};

static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        CLEANUP(free_ptr) char *text = xasprintf("x,y\n %s,1\n", numbers[i].field);
        CLEANUP(csv_free_ptr) struct csv *csv = NULL;
        struct error err = {0};
        double value = 77;
        assert_int_equal(csv_parse("t", text, strlen(text), &csv, &err), 0);
        int result =
            csv_number(csv, 0, 0, numbers[i].minimum, numbers[i].maximum, &value, &err);
        if (numbers[i].message) {
            assert_int_equal(result, -E_INPUT);
            assert_string_equal(err.text, numbers[i].message);
            assert_true(value == 77);
        } else {
            assert_int_equal(result, 0);
            assert_true(value == numbers[i].expected);
        }
    }
}

static void test_find_and_error(void **state)
{
    static const char text[] = "model,slice\na,\"x\ny\"\nüü, 9g\n";
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(csv_parse("m.csv", text, sizeof text - 1, &csv, &err), 0);
    assert_int_equal(csv_find_column(csv, "slice"), 1);
    assert_int_equal(csv_find_column(csv, "board"), -1);
    assert_int_equal(csv_error(csv, 1, 1, &err, "no slice '%s'", csv_field(csv, 1, 1)),
                     -E_INPUT);
    assert_string_equal(err.text, "m.csv:4:5: no slice '9g'");
    assert_int_equal(csv_line(csv, 1), 4);
    assert_int_equal(csv_field_position(csv, 1, 1), 5);
}

/* What csv_add_field() writes, csv_parse() reads back. */
static void test_round_trip(void **state)
{
    static const char *const fields[] = {"plain", "a,b",    "say \"hi\"", " blank ",       "#x",
                                         "a\nb",  "a\r\nb", "ü",          "\xEF\xBB\xBFx", "\"",
                                         "x\ty"};

    (void)state;
    for (size_t i = 0; i < COUNT(fields); i++) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        CLEANUP(csv_free_ptr) struct csv *csv = NULL;
        struct error err = {0};
        str_add(&text, "a,b\n");
        csv_add_field(&text, fields[i]);
        str_add(&text, ",end\n");
        assert_int_equal(csv_parse("t", text.bytes, text.length, &csv, &err), 0);
        assert_string_equal(csv_field(csv, 0, 0), fields[i]);
        assert_string_equal(csv_field(csv, 0, 1), "end");
    }
}

static void test_files(void **state)
{
    char folder[] = "/tmp/test-csv-XXXXXX";
    struct csv *csv = NULL;
    struct error err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(csv_read(folder, &csv, &err), -E_IO);
    assert_non_null(strstr(err.text, folder));
    CLEANUP(free_ptr) char *path = xasprintf("%s/absent.csv", folder);
    assert_int_equal(csv_read(path, &csv, &err), -E_IO);
    assert_non_null(strstr(err.text, "No such file"));
    rmdir(folder);
}

/* A file that this user may not read; root may read all, so a child becomes nobody. */
static void test_unreadable(void **state)
{
    enum { NOBODY = 65534, REFUSED = 11, NOT_REFUSED = 12 };
    char path[] = "/tmp/test-csv-XXXXXX";
    int fd = mkstemp(path), status = 0;

    (void)state;
    assert_true(fd >= 0 && fchmod(fd, 0) == 0);
    close(fd);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct csv *csv = NULL;
        struct error err = {0};
        if (geteuid() == 0 && setuid(NOBODY) < 0)
            _exit(NOT_REFUSED);
        bool refused = csv_read(path, &csv, &err) == -E_IO && strstr(err.text, path) &&
                       strstr(err.text, "Permission denied");
        _exit(refused ? REFUSED : NOT_REFUSED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_bad),
        cmocka_unit_test(test_binary),     cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_too_many_columns),
        cmocka_unit_test(test_numbers),    cmocka_unit_test(test_find_and_error),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_files),
        cmocka_unit_test(test_unreadable),
    };

    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
