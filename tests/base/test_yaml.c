/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML reader: the trees it makes, the exact place and words of each complaint, the
 * limits on depth, size and aliases, and the typed getters.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/str.h"
#include "base/yaml.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The tree in flow style with positions left out; quoted scalars in quotes. */
static void render(const struct yaml_node *node, struct str *text)
{
    static const char open[] = {[YAML_KIND_LIST] = '[', [YAML_KIND_MAP] = '{'};
    static const char close[] = {[YAML_KIND_LIST] = ']', [YAML_KIND_MAP] = '}'};

    if (node->kind == YAML_KIND_SCALAR) {
        str_addf(text, node->quoted ? "\"%s\"" : "%s", node->text);
        return;
    }
    str_add_char(text, open[node->kind]);
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            str_add(text, ", ");
        if (node->kind == YAML_KIND_MAP)
            str_addf(text, "%s: ", node->keys[i]);
        render(node->items[i], text);
    }
    str_add_char(text, close[node->kind]);
}

static const struct {
    const char *text, *expected;
} good[] = {
    {"a: 1\n", "{a: 1}"},
    {"a: 1", "{a: 1}"},
    {"a: 1\r\nb: [x, y]\r\n", "{a: 1, b: [x, y]}"},
    {"\xEF\xBB\xBF"
     "a: 1\n",
     "{a: 1}"},
    {"---\na: 1\n...\n", "{a: 1}"},
    {"# comment\na: 1 # more\n", "{a: 1}"},
    {"- {a: 1, b: '2'}\n- \"x\"\n-\n", "[{a: 1, b: \"2\"}, \"x\", ]"},
    {"{\"a\": [1, 2.5, true, null], \"b\": {}}", "{a: [1, 2.5, true, null], b: {}}"},
    {"{\n\t\"a\": 1,\n\t\"b\": [\n\t\t2\n\t]\n}\n", "{a: 1, b: [2]}"},
    {"a: &x {k: 1}\nb: *x\n", "{a: {k: 1}, b: {k: 1}}"},
    {"a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}"},
    {"a: |\n  one\n  two\nb: >\n  three\n  four\n", "{a: \"one\ntwo\n\", b: \"three four\n\"}"},
    {"a: !!str 5\nb: !!int 5\n", "{a: \"5\", b: 5}"},
    {"é: ü\n", "{é: ü}"},
    {"just text", "just text"},
    {"---\n", ""},
    {"[]", "[]"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
        CLEANUP(str_done) struct str got = STR_EMPTY;
        struct error err = {0};
        if (yaml_parse("t.yaml", good[i].text, strlen(good[i].text), &yaml, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        render(yaml_root(yaml), &got);
        assert_string_equal(got.bytes, good[i].expected);
        assert_string_equal(yaml_name(yaml), "t.yaml");
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "t:1:1: the file is empty, expected a YAML document"},
    {"# only a comment\n", "t:1:1: nothing but comments, expected a YAML document"},
    {"\n\n", "t:1:1: nothing but comments, expected a YAML document"},
    {"a: 1\n---\nb: 2\n", "t:2:1: a second document, expected one in the file"},
    {"a: 1\nb: 2\na: 3\n", "t:3:1: key 'a' is there twice, first at line 1, expected each key "
                           "once"},
    {"s:\n  - {name: x, name: y}\n", "t:2:15: key 'name' is there twice, first at line 2, "
                                     "expected each key once"},
    {"\"a\": 1\na: 2\n",
     "t:2:1: key 'a' is there twice, first at line 1, expected each key once"},
    {"a:\n\tb: 1\n", "t:2:1: a tab, expected blanks for indentation"},
    {"é:\n\tb: 1\n", "t:2:1: a tab, expected blanks for indentation"},
    {"a: [1, 2\n",
     "t:2:1: did not find expected ',' or ']', while parsing a flow sequence that "
     "began at line 1, column 4"},
    {"a: {b: 1\n", "t:2:1: did not find expected ',' or '}', while parsing a flow mapping that "
                   "began at line 1, column 4"},
    {"a: \"x\n", "t:2:1: found unexpected end of stream, while scanning a quoted scalar that "
                 "began at line 1, column 4"},
    {"a: 1\n b: 2\n", "t:2:3: mapping values are not allowed in this context, expected YAML"},
    {"a: *x\n", "t:1:4: alias '*x' without an anchor '&x' before it"},
    {"a: &x [1, *x]\n", "t:1:11: alias '*x' within what it stands for"},
    {"a: &x {b: {c: *x}}\n", "t:1:15: alias '*x' within what it stands for"},
    {"[a]: 1\n", "t:1:1: a list or map as a key, expected text"},
    {"a: &x {k: 1}\nb: {<<: *x}\n", "t:2:5: merge keys (<<) are not supported, expected the "
                                    "keys themselves"},
    {"a: !secret x\n", "t:1:4: tag '!secret', expected a plain value"},
    {"a: \"x\\0y\"\n", "t:1:4: a NUL character in a text, expected printable characters"},
    {"a: \x01\n", "t:1:4: control character 0x01, expected text (is this a binary file?)"},
    {"ü: \xFF\n", "t:1:4: byte 0xFF is not UTF-8, expected text"},
    {"a: @x\n",
     "t:1:4: found character that cannot start any token, while scanning for the next "
     "token that began at line 1, column 4"},
    {"%YAML 9.9\n---\na: 1\n", "t:1:1: found incompatible YAML document, expected YAML"},
    {"a: 1\n... \nb\n", "t:3:1: did not find expected <document start>, expected YAML"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct yaml *yaml = NULL;
        struct error err = {0};
        if (yaml_parse("t", bad[i].text, strlen(bad[i].text), &yaml, &err) != -E_INPUT)
            fail_msg("case %zu was accepted", i);
        assert_null(yaml);
        assert_string_equal(err.text, bad[i].message);
    }
}

static int parse_repeated(const char *unit, size_t count, const char *tail, struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;

    for (size_t i = 0; i < count; i++)
        str_add(&text, unit);
    str_add(&text, tail);
    return yaml_parse("t", text.bytes, text.length, &yaml, err);
}

static void test_depth(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(parse_repeated("- ", 64, "x", &err), 0);
    assert_int_equal(parse_repeated("- ", 65, "x", &err), -E_INPUT);
    assert_string_equal(err.text, "t:1:129: more than 64 levels of lists and maps");
    assert_int_equal(parse_repeated("[", 100000, "", &err), -E_INPUT);
    assert_string_equal(err.text, "t:1:65: more than 64 levels of lists and maps");
    assert_int_equal(parse_repeated("{a: ", 5000000, "", &err), -E_INPUT);
    assert_int_equal(parse_repeated("- ", 5000000, "", &err), -E_INPUT);
}

/* Ten levels of ten aliases each stand for ten thousand million values. */
static void test_alias_bomb(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct yaml *yaml = NULL;
    struct error err = {0};

    (void)state;
    str_add(&text, "a0: &a0 lol\n");
    for (int level = 1; level <= 10; level++) {
        str_addf(&text, "a%d: &a%d [", level, level);
        for (int i = 0; i < 10; i++)
            str_addf(&text, "%s*a%d", i ? "," : "", level - 1);
        str_add(&text, "]\n");
    }
    assert_int_equal(yaml_parse("t", text.bytes, text.length, &yaml, &err), -E_INPUT);
    assert_string_equal(err.text,
                        "t:7:46: more than 1048576 values, counting what aliases stand for");
}

static void test_sizes(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(parse_repeated("xxxxxxxxxx", 1 << 20, "", &err), 0);
    assert_int_equal(parse_repeated("xxxxxxxxxxxxxxxx", 1 << 20, "yyy", &err), -E_INPUT);
    assert_string_equal(err.text, "t: larger than 16777216 bytes, expected a smaller file");
    assert_int_equal(parse_repeated("- x\n", (1 << 20) + 1, "", &err), -E_INPUT);
    assert_non_null(strstr(err.text, "t:1048577:3: more than 1048576 values"));
}

/* Every prefix of a good file is good or refused, never worse. */
static void test_truncated(void **state)
{
    static const char text[] =
        "services:\n  - &a {name: \"é\", rate: [1, 2]}\n  - *a\nx: |\n y\n";

    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
        CLEANUP(free_ptr) char *copy = xmemdup(text, length + 1);
        struct error err = {0};
        int result = yaml_parse("t", copy, length, &yaml, &err);
        assert_true(result == 0 || (result == -E_INPUT && strncmp(err.text, "t:", 2) == 0));
    }
}

/* One value under `k`, read by each getter; NULL: it is accepted. */
static const struct {
    const char *value, *number, *whole, *boolean, *text;
} values[] = {
    {"5", NULL, NULL, "t:1:4: k is '5', expected true or false", NULL},
    {"0.5", NULL, "t:1:4: k is '0.5', expected a whole number from 0 to 10",
     "t:1:4: k is '0.5', expected true or false", NULL},
    {"", NULL, NULL, NULL, NULL},
    {"null", NULL, NULL, NULL, NULL},
    {"true", "t:1:4: k is 'true', expected a number from 0 to 10",
     "t:1:4: k is 'true', expected a whole number from 0 to 10", NULL, NULL},
    {"'5'", "t:1:4: k is the text '5', expected a number from 0 to 10",
     "t:1:4: k is the text '5', expected a whole number from 0 to 10",
     "t:1:4: k is the text '5', expected true or false", NULL},
    {".nan", "t:1:4: k is '.nan', expected a number from 0 to 10",
     "t:1:4: k is '.nan', expected a whole number from 0 to 10",
     "t:1:4: k is '.nan', expected true or false", NULL},
    {"1e400", "t:1:4: k is '1e400', expected a number from 0 to 10",
     "t:1:4: k is '1e400', expected a whole number from 0 to 10",
     "t:1:4: k is '1e400', expected true or false", NULL},
    {"-1", "t:1:4: k is '-1', expected a number from 0 to 10",
     "t:1:4: k is '-1', expected a whole number from 0 to 10",
     "t:1:4: k is '-1', expected true or false", NULL},
    {"99999999999999999999",
     "t:1:4: k is '99999999999999999999', expected a number from 0 to 10",
     "t:1:4: k is '99999999999999999999', expected a whole number from 0 to 10",
     "t:1:4: k is '99999999999999999999', expected true or false", NULL},
    {"[1]", "t:1:4: k is a list, expected a number from 0 to 10",
     "t:1:4: k is a list, expected a whole number from 0 to 10",
     "t:1:4: k is a list, expected true or false", "t:1:4: k is a list, expected text"},
    {"{a: 1}", "t:1:4: k is a map, expected a number from 0 to 10",
     "t:1:4: k is a map, expected a whole number from 0 to 10",
     "t:1:4: k is a map, expected true or false", "t:1:4: k is a map, expected text"},
};

static void check_getter(int result, const struct error *err, const char *message)
{
    assert_int_equal(result, message ? -E_INPUT : 0);
    if (message)
        assert_string_equal(err->text, message);
}

static void test_getters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        CLEANUP(free_ptr) char *source = xasprintf("k: %s\n", values[i].value);
        CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
        struct error err = {0};
        double number = 77;
        long long whole = 77;
        bool boolean = false;
        const char *text = "unset";
        assert_int_equal(yaml_parse("t", source, strlen(source), &yaml, &err), 0);
        const struct yaml_node *map = yaml_root(yaml);
        check_getter(yaml_get_number(yaml, map, "k", 0, 10, &number, &err), &err,
                     values[i].number);
        check_getter(yaml_get_int(yaml, map, "k", 0, 10, &whole, &err), &err, values[i].whole);
        check_getter(yaml_get_bool(yaml, map, "k", &boolean, &err), &err, values[i].boolean);
        check_getter(yaml_get_text(yaml, map, "k", &text, &err), &err, values[i].text);
        assert_true(!values[i].number || number == 77);
        assert_true(!values[i].whole || whole == 77);
        assert_true(!values[i].text || strcmp(text, "unset") == 0);
    }
}

static void test_values(void **state)
{
    static const char source[] = "n: 2.5\ni: 7\nb: true\nt: hello\ne: ''\n";
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct error err = {0};
    double number = 0;
    long long whole = 0;
    bool boolean = false;
    const char *text = NULL, *absent = "default";

    (void)state;
    assert_int_equal(yaml_parse("t", source, sizeof source - 1, &yaml, &err), 0);
    const struct yaml_node *map = yaml_root(yaml);
    assert_int_equal(yaml_get_number(yaml, map, "n", -INFINITY, INFINITY, &number, &err), 0);
    assert_true(number == 2.5);
    assert_int_equal(yaml_get_int(yaml, map, "i", 7, 7, &whole, &err), 0);
    assert_int_equal(whole, 7);
    assert_int_equal(yaml_get_bool(yaml, map, "b", &boolean, &err), 0);
    assert_true(boolean);
    assert_int_equal(yaml_get_text(yaml, map, "t", &text, &err), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(yaml_get_text(yaml, map, "e", &text, &err), 0);
    assert_string_equal(text, "");
    assert_int_equal(yaml_get_text(yaml, map, "z", &absent, &err), 0);
    assert_string_equal(absent, "default");
    assert_int_equal(yaml_get_number(yaml, map, "n", DBL_MIN, 1, &number, &err), -E_INPUT);
    assert_string_equal(err.text, "t:1:4: n is '2.5', expected a number above 0 and at most 1");
}

static void test_structure(void **state)
{
    static const char source[] = "services:\n  - name: a\n    modle: b\nfleet: 5\nzzzzzz: 1\n";
    static const char *const top_keys[] = {"services", "fleet", NULL};
    static const char *const service_keys[] = {"name", "model", NULL};
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(yaml_parse("s.yaml", source, sizeof source - 1, &yaml, &err), 0);
    const struct yaml_node *root = yaml_root(yaml), *services = yaml_get(root, "services");
    assert_non_null(services);
    assert_int_equal(services->line, 2);
    assert_int_equal(services->column, 3);
    assert_int_equal(yaml_expect(yaml, services, YAML_KIND_LIST, "a list", &err), 0);
    assert_int_equal(yaml_only_keys(yaml, services->items[0], service_keys, &err), -E_INPUT);
    assert_string_equal(err.text,
                        "s.yaml:3:5: unknown key 'modle', expected 'model' or another "
                        "of name, model");
    assert_int_equal(yaml_only_keys(yaml, root, top_keys, &err), -E_INPUT);
    assert_string_equal(err.text,
                        "s.yaml:5:1: unknown key 'zzzzzz', expected one of services, fleet");
    assert_int_equal(
        yaml_expect(yaml, yaml_get(root, "fleet"), YAML_KIND_LIST, "a list of boards", &err),
        -E_INPUT);
    assert_string_equal(err.text, "s.yaml:4:8: found '5', expected a list of boards");
    assert_int_equal(yaml_error(yaml, services, &err, "no %s", "model"), -E_INPUT);
    assert_string_equal(err.text, "s.yaml:2:3: no model");
    assert_null(yaml_get(root, "none"));
}

static void test_files(void **state)
{
    char folder[] = "/tmp/test-yaml-XXXXXX";
    struct yaml *yaml = NULL;
    struct error err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(yaml_read(folder, &yaml, &err), -E_IO);
    assert_non_null(strstr(err.text, folder));
    CLEANUP(free_ptr) char *path = xasprintf("%s/absent.yaml", folder);
    assert_int_equal(yaml_read(path, &yaml, &err), -E_IO);
    assert_non_null(strstr(err.text, "No such file"));
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_depth),     cmocka_unit_test(test_alias_bomb),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_getters),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_structure), cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
