/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables and what is made of them: definitions are structural and complete, YAML reads
 * back, defaults fit their own ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/yaml.h"
#include "control/schema.h"

/* Each value has a type, or is int-or-string; every object lists its properties or says that
 * it keeps what it does not know; every text and list of a spec is bounded. */
static void check_schema(const json_t *schema, const char *path)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    const char *key;
    json_t *value;

    if (!type)
        assert_true(json_is_true(json_object_get(schema, "x-kubernetes-int-or-string")));
    if (type && strcmp(type, "array") == 0) {
        assert_non_null(json_object_get(schema, "maxItems"));
        assert_non_null(json_object_get(schema, "x-kubernetes-list-type"));
        check_schema(json_object_get(schema, "items"), path);
        const json_t *keys = json_object_get(schema, "x-kubernetes-list-map-keys");
        const json_t *items = json_object_get(schema, "items");
        for (size_t i = 0; i < json_array_size(keys); i++)
            assert_non_null(json_object_get(json_object_get(items, "properties"),
                                            json_string_value(json_array_get(keys, i))));
    }
    const json_t *properties = json_object_get(schema, "properties");
    if (type && strcmp(type, "object") == 0 && strcmp(path, "metadata") != 0)
        assert_true(
            properties || json_object_get(schema, "additionalProperties") ||
            json_is_true(json_object_get(schema, "x-kubernetes-preserve-unknown-fields")));
    json_object_foreach((json_t *)properties, key, value) check_schema(value, key);
}

static void test_definitions(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEMA_KIND_COUNT; i++) {
        CLEANUP(json_decref_ptr) json_t *definition = schema_definition(SCHEMA_KINDS[i]);
        assert_non_null(definition);
        const json_t *version =
            json_array_get(json_object_get(json_object_get(definition, "spec"), "versions"), 0);
        check_schema(json_object_get(json_object_get(version, "schema"), "openAPIV3Schema"),
                     "");
        char hash[17], again[17];
        schema_hash(SCHEMA_KINDS[i], hash);
        schema_hash(SCHEMA_KINDS[(i + 1) % SCHEMA_KIND_COUNT], again);
        assert_string_not_equal(hash, again);
        const json_t *notes =
            json_object_get(json_object_get(definition, "metadata"), "annotations");
        assert_string_equal(json_string_value(json_object_get(notes, SCHEMA_HASH_NOTE)), hash);
    }
}

static void check_fallbacks(const struct field *group)
{
    for (size_t i = 0; i < group->field_count; i++) {
        const struct field *field = &group->fields[i];
        assert_non_null(field->help);
        assert_true(strlen(field->help) > 2);
        assert_int_equal(field->help[strlen(field->help) - 1], '.');
        if (field->fallback) {
            json_t *value = json_loads(field->fallback, JSON_DECODE_ANY, NULL);
            assert_non_null(value);
            if (json_is_number(value) && field->type != FIELD_PERCENTILE) {
                assert_true(json_number_value(value) >= field->minimum);
                assert_true(field->maximum == 0 || json_number_value(value) <= field->maximum);
            }
            json_decref(value);
        }
        check_fallbacks(field);
    }
}

static void test_tables(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEMA_KIND_COUNT; i++) {
        check_fallbacks(&SCHEMA_KINDS[i]->spec);
        check_fallbacks(&SCHEMA_KINDS[i]->status);
    }
}

static const struct yaml_node *find(const struct yaml_node *node, const char *key)
{
    node = yaml_get(node, key);
    assert_non_null(node);
    return node;
}

static void test_yaml(void **state)
{
    (void)state;
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct error err = {0};
    CLEANUP(json_decref_ptr)
    json_t *json = json_loads(
        "{\"plain\":\"apps/v1\",\"no\":\"no\",\"colon\":\"a: b\",\"empty\":\"\",\"n\":-1.5,"
        "\"t\":true,\"none\":null,\"e\":{},\"l\":[],\"quote\":\"a\\\"b\\n#\",\"deep\":[{\"a\":"
        "1,"
        "\"b\":{\"c\":[\"x\",\"7\"]}},[2,3]]}",
        0, NULL);
    assert_non_null(json);
    schema_write_yaml(json, &text);
    static const char expected[] =
        "plain: apps/v1\n\"no\": \"no\"\ncolon: \"a: b\"\nempty: \"\"\n"
        "\"n\": -1.5\nt: true\nnone: null\ne: {}\nl: []\n"
        "quote: \"a\\\"b\\n#\"\ndeep:\n- a: 1\n  b:\n    c:\n"
        "    - x\n    - \"7\"\n- - 2\n  - 3\n";
    assert_string_equal(text.bytes, expected);
    struct yaml *yaml = NULL;
    assert_int_equal(yaml_parse("case", text.bytes, text.length, &yaml, &err), 0);
    assert_string_equal(find(yaml_root(yaml), "quote")->text, "a\"b\n#");
    yaml_free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_yaml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
