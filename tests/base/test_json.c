/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON reader, its typed getters and the writer: exact places and words of complaints,
 * limits, layout, and numbers that read back.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/str.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    struct error err = {0};

    if (json_parse("t", text, strlen(text), &root, &err) < 0)
        fail_msg("%s", err.text);
    return root;
}

/* Text that is read and written on one line. */
static const struct {
    const char *text, *expected;
} good[] = {
    {"{}", "{}"},
    {"[]", "[]"},
    {" [ 1 , 2 ]\r\n", "[1,2]"},
    {"\xEF\xBB\xBF{\"a\": 1}", "{\"a\":1}"},
    {"{\"z\": 1, \"a\": [true, false, null]}", "{\"z\":1,\"a\":[true,false,null]}"},
    {"[1.0, 2.50, 1e3, -0.0, 0.1, 1e-7]", "[1,2.5,1000,0,0.1,1e-07]"},
    {"[9223372036854775807, -9223372036854775808]",
     "[9223372036854775807,-9223372036854775808]"},
    {"[\"\\u00e9\\n\\\"\\\\\\t\\u0001/\"]", "[\"é\\n\\\"\\\\\\t\\u0001/\"]"},
    {"[\"\\ud83d\\ude00\"]", "[\"😀\"]"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        CLEANUP(json_decref_ptr) json_t *root = parse(good[i].text);
        CLEANUP(str_done) struct str got = STR_EMPTY;
        json_write_line(root, &got);
        assert_string_equal(got.bytes, good[i].expected);
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "t:1:1: the file is empty, expected a JSON document"},
    {"\xEF\xBB\xBF", "t:1:1: the file is empty, expected a JSON document"},
    {"  \n ", "t:2:2: expected '{' or '['"},
    {"hello", "t:1:1: expected '{' or '[' near 'hello'"},
    {"{\"a\": }", "t:1:7: unexpected token near '}'"},
    {"{\"a\": 1,}", "t:1:9: string or '}' expected near '}'"},
    {"{\n  \"a\": 1\n  \"b\": 2\n}", "t:3:3: '}' expected near '\"b\"'"},
    {"{\"a\" 1}", "t:1:6: ':' expected near '1'"},
    {"[1, 2", "t:1:6: ']' expected near end of file"},
    {"{\"ü\": \"x", "t:1:7: the file ends too early, expected more JSON near '\"x'"},
    {"[1] [2]", "t:1:5: text after the end, expected one JSON value near '['"},
    {"{} x", "t:1:4: text after the end, expected one JSON value near 'x'"},
    {"{\"a\": 1,\n \"a\": 2}", "t:2:2: a key that is there twice, expected each key once near "
                               "'\"a\"'"},
    {"{\"services\": {\"x\": 1, \"y\": 2, \"x\": 3}}",
     "t:1:31: a key that is there twice, expected each key once near '\"x\"'"},
    {"[NaN]", "t:1:2: invalid token near 'NaN'"},
    {"[nan]", "t:1:2: invalid token near 'nan'"},
    {"[-Infinity]", "t:1:2: invalid token near '-'"},
    {"[1e400]", "t:1:2: a number too large, expected a finite number near '1e400'"},
    {"[12345678901234567890]", "t:1:2: a whole number too large, expected at most "
                               "9223372036854775807 near '12345678901234567890'"},
    {"[-12345678901234567890]", "t:1:2: a whole number too small, expected at least "
                                "-9223372036854775808"},
    {"[01]", "t:1:2: invalid token near '0'"},
    {"['a']", "t:1:2: invalid token near '''"},
    {"[\"a\nb\"]", "t:1:2: unexpected newline near '\"a'"},
    {"[\"\\u0000\"]", "t:1:2: the character \\u0000, expected text without it "
                      "near '\"\\u0000\"'"},
    {"[\"\\ud800\"]", "t:1:2: invalid Unicode '\\uD800' near '\"\\ud800\"'"},
    {"[\"é\xFF\"]", "t:1:4: byte 0xFF is not UTF-8, expected text"},
    {"[1,\x01]", "t:1:4: control character 0x01, expected text (is this a binary file?)"},
    {"// no\n{}", "t:1:1: expected '{' or '[' near '/'"},
};

static void test_bad(void **state)
{
    size_t failures = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        json_t *root = NULL;
        struct error err = {0};
        if (json_parse("t", bad[i].text, strlen(bad[i].text), &root, &err) != -E_INPUT)
            fail_msg("case %zu was accepted", i);
        assert_null(root);
        if (strcmp(err.text, bad[i].message) != 0) {
            print_message("# case %zu: got %s\n", i, err.text);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}

/* Text that is read leniently and written on one line. */
static const struct {
    const char *text, *expected;
} lenient[] = {
    {"[\"a\\u0000b\", \"\\u0000\"]", "[\"a\xEF\xBF\xBD"
                                     "b\",\"\xEF\xBF\xBD\"]"},
    {"{\"\\u0000\": 1}", "{\"\xEF\xBF\xBD\":1}"},
    {"{\"\\u0000\": 1, \"\\ufffd\": 2}", "{\"\xEF\xBF\xBD\":2}"},
    {"{\"a\": 1, \"a\": 2}", "{\"a\":2}"},
    {"[\"\\\\u0000\", \"\\\\\\u0000\"]", "[\"\\\\u0000\",\"\\\\\xEF\xBF\xBD\"]"},
    {"[\"\\\"\\u0000\\\"\"]", "[\"\\\"\xEF\xBF\xBD\\\"\"]"},
    {"[\"\\u0001\\u00e9\"]", "[\"\\u0001é\"]"},
    {"[\"\\ud83d\\ude00\"]", "[\"😀\"]"},
    {"[\"\\uD83Dx\", \"\\ude00\", \"\\ud83d\\ud83d\\ude00\"]",
     "[\"\xEF\xBF\xBDx\",\"\xEF\xBF\xBD\",\"\xEF\xBF\xBD😀\"]"},
    {"[9223372036854775807, -9223372036854775808]",
     "[9223372036854775807,-9223372036854775808]"},
    {"[9223372036854775808, -9223372036854775809, 10000000000000000000]",
     "[9.223372036854776e+18,-9.223372036854776e+18,1e+19]"},
    {" [ 1.5e3 , true , null , {} ]\r\n", "[1500,true,null,{}]"},
};

static void test_lenient(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lenient); i++) {
        CLEANUP(json_decref_ptr) json_t *root = NULL;
        CLEANUP(str_done) struct str got = STR_EMPTY;
        struct error err = {0};
        const char *text = lenient[i].text;
        if (json_parse_lenient("t", text, strlen(text), &root, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        json_write_line(root, &got);
        assert_string_equal(got.bytes, lenient[i].expected);
    }
}

/* A plain U+007F, which Kubernetes does not escape, stays. */
static void test_lenient_delete(void **state)
{
    static const char text[] = "[\"a\x7F\"]";
    CLEANUP(json_decref_ptr) json_t *root = NULL;

    (void)state;
    assert_int_equal(json_parse_lenient("t", text, strlen(text), &root, NULL), 0);
    assert_string_equal(json_string_value(json_array_get(root, 0)), "a\x7F");
}

/* What lies too deep is null; what stands after it is read. */
static void test_lenient_depth(void **state)
{
    for (size_t depth = 63; depth <= 5000; depth = depth < 66 ? depth + 1 : depth * 2) {
        CLEANUP(str_done) struct str text = STR_EMPTY;
        CLEANUP(json_decref_ptr) json_t *root = NULL;
        struct error err = {0};
        (void)state;
        str_add(&text, "{\"deep\":");
        for (size_t i = 0; i < depth; i++)
            str_add(&text, "[\"]\",");
        str_add(&text, "0");
        for (size_t i = 0; i < depth; i++)
            str_add(&text, "]");
        str_add(&text, ",\"after\":1}");
        if (json_parse_lenient("t", text.bytes, text.length, &root, &err) < 0)
            fail_msg("depth %zu: %s", depth, err.text);
        assert_int_equal(json_integer_value(json_object_get(root, "after")), 1);
        const json_t *at = json_object_get(root, "deep");
        size_t levels = 0;
        for (; json_is_array(at); levels++)
            at = json_array_get(at, 1);
        assert_int_equal(levels, depth < 63 ? depth : 63);
        assert_true(depth > 63 ? json_is_null(at) : json_is_integer(at));
    }
}

/* What is no JSON stays none. */
static void test_lenient_bad(void **state)
{
    static const char *const texts[] = {
        "",     "[",        "[\"\\u0000", "[\"\\",  "[\"\\u", "[\"\\u00g0\"]",
        "[01]", "{\"a\":}", "[\x01]",     "[\x7F]", "[] []",  "[\"a\nb\"]"};
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *root = NULL;
        struct error err = {0};
        assert_int_equal(json_parse_lenient("t", texts[i], strlen(texts[i]), &root, &err),
                         -E_INPUT);
        assert_null(root);
    }
}

static int parse_repeated(const char *unit, size_t count, const char *tail, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(json_decref_ptr) json_t *root = NULL;

    for (size_t i = 0; i < count; i++)
        str_add(&text, unit);
    str_add(&text, tail);
    return json_parse("t", text.bytes, text.length, &root, err);
}

static void test_limits(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(parse_repeated("[", 65, "", &err), -E_INPUT);
    assert_string_equal(err.text, "t:1:65: more than 64 levels of lists and objects");
    assert_int_equal(parse_repeated("[", 64, "", &err), -E_INPUT);
    assert_string_equal(err.text, "t:1:65: ']' expected near end of file");
    assert_int_equal(parse_repeated("{\"a\":", 3000000, "", &err), -E_INPUT);
    assert_int_equal(parse_repeated("          ", 7 << 20, "{}", &err), 0); /* a large plan */
    assert_int_equal(parse_repeated("xxxxxxxxxx", 1 << 20, "", &err), -E_INPUT);
    assert_true(strlen(err.text) < 200);
}

/* Brackets within texts are no levels. */
static void test_depth_ignores_texts(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(
        parse_repeated("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                       "[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[\"]",
                       1, "", &err),
        0);
}

static void test_truncated(void **state)
{
    static const char text[] =
        "{\"gpus\": [{\"id\": \"g\\u00e90\", \"rate\": 1.5e3}], \"ü\": true}";

    (void)state;
    for (size_t length = 0; length < sizeof text - 1; length++) {
        json_t *root = NULL;
        CLEANUP(free_ptr) char *copy = xmemdup(text, length + 1);
        struct error err = {0};
        assert_int_equal(json_parse("t", copy, length, &root, &err), -E_INPUT);
        assert_memory_equal(err.text, "t:1:", 4);
    }
}

/* One value under gpus[3].k, read by each getter; NULL: accepted. */
static const struct {
    const char *value, *number, *whole, *boolean, *text, *list;
} values[] = {
    {"5", NULL, NULL, "found 5, expected true or false", "found 5, expected text",
     "found 5, expected a list"},
    {"5.0", NULL, NULL, "found 5, expected true or false", "found 5, expected text",
     "found 5, expected a list"},
    {"0.5", NULL, "found 0.5, expected a whole number from 0 to 10",
     "found 0.5, expected true or false", "found 0.5, expected text",
     "found 0.5, expected a list"},
    {"-1", "found -1, expected a number from 0 to 10",
     "found -1, expected a whole number from 0 to 10", "found -1, expected true or false",
     "found -1, expected text", "found -1, expected a list"},
    {"1e300", "found 1e+300, expected a number from 0 to 10",
     "found 1e+300, expected a whole number from 0 to 10",
     "found 1e+300, expected true or false", "found 1e+300, expected text",
     "found 1e+300, expected a list"},
    {"\"5\"", "found \"5\", expected a number from 0 to 10",
     "found \"5\", expected a whole number from 0 to 10", "found \"5\", expected true or false",
     NULL, "found \"5\", expected a list"},
    {"true", "found true, expected a number from 0 to 10",
     "found true, expected a whole number from 0 to 10", NULL, "found true, expected text",
     "found true, expected a list"},
    {"[]", "found a list, expected a number from 0 to 10",
     "found a list, expected a whole number from 0 to 10",
     "found a list, expected true or false", "found a list, expected text", NULL},
    {"{}", "found an object, expected a number from 0 to 10",
     "found an object, expected a whole number from 0 to 10",
     "found an object, expected true or false", "found an object, expected text",
     "found an object, expected a list"},
    {"null", "found null, expected a number from 0 to 10",
     "found null, expected a whole number from 0 to 10", "found null, expected true or false",
     "found null, expected text", "found null, expected a list"},
};

static void check_getter(int result, const struct error *err, const char *message)
{
    assert_int_equal(result, message ? -E_INPUT : 0);
    if (!message)
        return;
    CLEANUP(free_ptr) char *expected = xasprintf("p.json: gpus[3].k: %s", message);
    assert_string_equal(err->text, expected);
}

static void test_getters(void **state)
{
    const struct json_place root = {.file = "p.json"};
    const struct json_place gpus = {.parent = &root, .key = "gpus"};
    const struct json_place place = {.parent = &gpus, .index = 3};

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        CLEANUP(free_ptr) char *source = xasprintf("{\"k\": %s}", values[i].value);
        CLEANUP(json_decref_ptr) json_t *object = parse(source);
        struct error err = {0};
        double number = 77;
        long long whole = 77;
        bool boolean = false;
        const char *text = "unset";
        const json_t *list = NULL;
        check_getter(json_get_number(&place, object, "k", true, 0, 10, &number, &err), &err,
                     values[i].number);
        check_getter(json_get_int(&place, object, "k", true, 0, 10, &whole, &err), &err,
                     values[i].whole);
        check_getter(json_get_bool(&place, object, "k", true, &boolean, &err), &err,
                     values[i].boolean);
        check_getter(json_get_text(&place, object, "k", true, &text, &err), &err,
                     values[i].text);
        check_getter(json_get_list(&place, object, "k", true, &list, &err), &err,
                     values[i].list);
        assert_true(!values[i].number || number == 77);
        assert_true(!values[i].whole || whole == 77);
        assert_true(!values[i].list || !list);
    }
}

static void test_absent(void **state)
{
    const struct json_place place = {.file = "p.json"};
    CLEANUP(json_decref_ptr) json_t *object = parse("{\"n\": null}");
    struct error err = {0};
    double number = 77;
    const json_t *list = object;
    const char *text = "default";

    (void)state;
    assert_int_equal(json_get_number(&place, object, "x", false, 0, 1, &number, &err), 0);
    assert_int_equal(json_get_number(&place, object, "n", false, 0, 1, &number, &err), 0);
    assert_true(number == 77);
    assert_int_equal(json_get_text(&place, object, "n", false, &text, &err), 0);
    assert_string_equal(text, "default");
    assert_int_equal(json_get_object(&place, object, "x", false, &list, &err), 0);
    assert_null(list);
    assert_int_equal(json_get_object(&place, object, "x", true, &list, &err), -E_INPUT);
    assert_string_equal(err.text, "p.json: x: is missing, expected an object");
    assert_int_equal(json_get_number(&place, object, "x", true, 0, INFINITY, &number, &err),
                     -E_INPUT);
    assert_string_equal(err.text, "p.json: x: is missing, expected a number of at least 0");
    assert_int_equal(json_error_at(&place, &err, "no %s", "gpus"), -E_INPUT);
    assert_string_equal(err.text, "p.json: no gpus");
}

static void test_pretty(void **state)
{
    static const char source[] =
        "{\"schema\": \"x/1\", \"empty\": [], \"none\": {}, \"flat\": [1, 2], \"gpus\": "
        "[{\"id\": "
        "\"g0\", \"instances\": [{\"slice\": \"3g.20gb\", \"start\": 4}, {\"slice\": "
        "\"1g.5gb\", "
        "\"start\": 0}]}], \"long\": [\"0123456789012345678901234567890123456789\", "
        "\"0123456789012345678901234567890123456789\", \"01234567890123456789\"]}";
    static const char expected[] =
        "{\n  \"schema\": \"x/1\",\n  \"empty\": [],\n  \"none\": {},\n  \"flat\": [1, 2],\n"
        "  \"gpus\": [\n    {\n      \"id\": \"g0\",\n      \"instances\": [\n"
        "        {\"slice\": \"3g.20gb\", \"start\": 4},\n"
        "        {\"slice\": \"1g.5gb\", \"start\": 0}\n      ]\n    }\n  ],\n"
        "  \"long\": [\n    \"0123456789012345678901234567890123456789\",\n"
        "    \"0123456789012345678901234567890123456789\",\n    \"01234567890123456789\"\n  "
        "]\n}\n";
    CLEANUP(json_decref_ptr) json_t *root = parse(source);
    CLEANUP(str_done) struct str got = STR_EMPTY;

    (void)state;
    json_write_pretty(root, &got);
    assert_string_equal(got.bytes, expected);
}

/* Lines of 100 columns are kept, of 101 are broken. */
static void test_pretty_limit(void **state)
{
    (void)state;
    for (int length = 80; length < 100; length++) {
        CLEANUP(str_done) struct str got = STR_EMPTY;
        CLEANUP(free_ptr) char *text = xcalloc((size_t)length + 1, 1);
        memset(text, 'x', (size_t)length);
        CLEANUP(json_decref_ptr) json_t *root = json_pack("{s:[s]}", "k", text);
        json_write_pretty(root, &got);
        const char *line = strchr(got.bytes, '\n') + 1;
        bool one_line = strstr(line, "[\"") != NULL;
        /* two blanks, "k": , brackets and quotes take 11; one is kept for a comma */
        assert_int_equal(one_line, length + 11 + 1 <= 100);
    }
}

/* Any double that is written reads back the same, and so does any text. */
static void test_round_trip(void **state)
{
    const uint64_t seed = 20260301;
    struct rng rng = rng_seed(seed);

    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 2000; i++) {
        union {
            uint64_t bits;
            double value;
        } number = {.bits = rng_next(&rng)};
        CLEANUP(str_done) struct str text = STR_EMPTY;
        if (!isfinite(number.value))
            continue;
        char word[3] = {(char)(1 + rng_below(&rng, 126)), (char)(1 + rng_below(&rng, 126)), 0};
        CLEANUP(json_decref_ptr) json_t *root = json_pack("[f, s]", number.value, word);
        json_write_line(root, &text);
        CLEANUP(json_decref_ptr) json_t *back = parse(text.bytes);
        assert_true(json_number_value(json_array_get(back, 0)) == number.value);
        assert_string_equal(json_string_value(json_array_get(back, 1)), word);
    }
}

static void test_files(void **state)
{
    char folder[] = "/tmp/test-json-XXXXXX";
    json_t *root = NULL;
    struct error err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(json_read(folder, &root, &err), -E_IO);
    assert_non_null(strstr(err.text, folder));
    CLEANUP(free_ptr) char *path = xasprintf("%s/absent.json", folder);
    assert_int_equal(json_read(path, &root, &err), -E_IO);
    assert_non_null(strstr(err.text, "No such file"));
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_bad),
        cmocka_unit_test(test_lenient),       cmocka_unit_test(test_lenient_delete),
        cmocka_unit_test(test_lenient_depth), cmocka_unit_test(test_lenient_bad),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_depth_ignores_texts),
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_getters),
        cmocka_unit_test(test_absent),        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_pretty_limit),  cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
