/* SPDX-License-Identifier: Apache-2.0
 *
 * CustomResourceDefinitions out of the tables: structural OpenAPI v3 schemas with ranges,
 * words, defaults, list types and rules.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/memory.h"
#include "control/kinds.h"
#include "control/schema.h"

static json_t *schema_of(const struct field *field);

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *number(double value)
{
    return trunc(value) == value && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                       : json_real(value);
}

static json_t *rules_json(const struct field_rule *rules, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "rule", rules[i].rule, "message", rules[i].message));
    return list;
}

static json_t *names_json(const char *const *names, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

/* "a,b" as a list. */
static json_t *split(const char *names)
{
    json_t *list = json_array();

    while (*names) {
        size_t length = strcspn(names, ",");
        json_array_append_new(list, json_stringn(names, length));
        names += length + (names[length] == ',');
    }
    return list;
}

static void add_text(const struct field *field, json_t *schema)
{
    set(schema, "type", json_string("string"));
    if (field->minimum > 0)
        set(schema, "minLength", number(field->minimum));
    if (field->maximum > 0)
        set(schema, "maxLength", number(field->maximum));
    if (field->pattern)
        set(schema, "pattern", json_string(field->pattern));
}

static void add_number(const struct field *field, const char *type, const char *format,
                       json_t *schema)
{
    set(schema, "type", json_string(type));
    if (format)
        set(schema, "format", json_string(format));
    set(schema, "minimum", number(field->minimum));
    if (field->above)
        set(schema, "exclusiveMinimum", json_true());
    if (field->maximum > 0)
        set(schema, "maximum", number(field->maximum));
}

static void add_fields(const struct field *group, json_t *schema)
{
    json_t *properties = json_object(), *required = json_array();

    set(schema, "type", json_string("object"));
    for (size_t i = 0; i < group->field_count; i++) {
        const struct field *field = &group->fields[i];
        set(properties, field->name, schema_of(field));
        if (field->required)
            json_array_append_new(required, json_string(field->name));
    }
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    set(schema, "properties", properties);
    if (group->open)
        set(schema, "x-kubernetes-preserve-unknown-fields", json_true());
    if (group->rule_count > 0)
        set(schema, "x-kubernetes-validations", rules_json(group->rules, group->rule_count));
}

static void add_list_limits(const struct field *field, json_t *schema)
{
    set(schema, "type", json_string("array"));
    if (field->minimum > 0)
        set(schema, "minItems", number(field->minimum));
    if (field->maximum > 0)
        set(schema, "maxItems", number(field->maximum));
}

static void add_list(const struct field *field, json_t *schema)
{
    json_t *items = json_object();

    add_list_limits(field, schema);
    set(schema, "x-kubernetes-list-type", json_string(field->keys ? "map" : "atomic"));
    if (field->keys)
        set(schema, "x-kubernetes-list-map-keys", split(field->keys));
    struct field inner = *field;
    inner.rule_count = 0;
    add_fields(&inner, items);
    set(schema, "items", items);
}

static void add_texts(const struct field *field, json_t *schema)
{
    json_t *item = json_pack("{s:s, s:i}", "type", "string", "maxLength", 253);

    add_list_limits(field, schema);
    set(schema, "x-kubernetes-list-type", json_string(field->keys ? "set" : "atomic"));
    if (field->pattern)
        set(item, "pattern", json_string(field->pattern));
    set(schema, "items", item);
}

static void add_open_list(const struct field *field, json_t *schema)
{
    add_list_limits(field, schema);
    set(schema, "x-kubernetes-list-type", json_string("atomic"));
    set(schema, "items",
        json_pack("{s:s, s:[s], s:{s:{s:s}}, s:b}", "type", "object", "required", "name",
                  "properties", "name", "type", "string",
                  "x-kubernetes-preserve-unknown-fields", 1));
}

static void add_open(json_t *schema)
{
    set(schema, "type", json_string("object"));
    set(schema, "x-kubernetes-preserve-unknown-fields", json_true());
}

static void add_map(json_t *schema)
{
    set(schema, "type", json_string("object"));
    set(schema, "additionalProperties",
        json_pack("{s:s, s:i}", "type", "string", "maxLength", 262144));
}

/* A number or text, as YAML writes 99 and "99.9". */
static void add_percentile(json_t *schema)
{
    set(schema, "x-kubernetes-int-or-string", json_true());
    set(schema, "enum",
        json_pack("[i, i, i, i, s, s, s, s, s, s]", 50, 90, 95, 99, "50", "90", "95", "99",
                  "99.9", "mean"));
}

static void add_conditions(json_t *schema)
{
    static const char text[] =
        "{\"type\":\"array\",\"maxItems\":32,\"x-kubernetes-list-type\":\"map\","
        "\"x-kubernetes-list-map-keys\":[\"type\"],\"items\":{\"type\":\"object\","
        "\"required\":[\"type\",\"status\",\"reason\",\"message\",\"lastTransitionTime\"],"
        "\"properties\":{\"type\":{\"type\":\"string\",\"maxLength\":316},"
        "\"status\":{\"type\":\"string\",\"enum\":[\"True\",\"False\",\"Unknown\"]},"
        "\"reason\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024},"
        "\"message\":{\"type\":\"string\",\"maxLength\":32768},"
        "\"observedGeneration\":{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0},"
        "\"lastTransitionTime\":{\"type\":\"string\",\"format\":\"date-time\"}}}}";
    json_t *conditions = json_loads(text, 0, NULL);

    assert(conditions);
    json_object_update(schema, conditions);
    json_decref(conditions);
}

static void add_type(const struct field *field, json_t *schema)
{
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_BOARD:
    case FIELD_SLICE:
        add_text(field, schema);
        return;
    case FIELD_INT:
    case FIELD_START:
        add_number(field, "integer", "int32", schema);
        return;
    case FIELD_LONG:
        add_number(field, "integer", "int64", schema);
        return;
    case FIELD_NUMBER:
        add_number(field, "number", NULL, schema);
        return;
    case FIELD_BOOL:
        set(schema, "type", json_string("boolean"));
        return;
    case FIELD_CHOICE:
        set(schema, "type", json_string("string"));
        set(schema, "enum", names_json(field->choices, field->choice_count));
        return;
    case FIELD_TIME:
        set(schema, "type", json_string("string"));
        set(schema, "format", json_string("date-time"));
        return;
    case FIELD_PERCENTILE:
        add_percentile(schema);
        return;
    case FIELD_TEXTS:
        add_texts(field, schema);
        return;
    case FIELD_MAP:
        add_map(schema);
        return;
    case FIELD_OPEN:
        add_open(schema);
        return;
    case FIELD_OPEN_LIST:
        add_open_list(field, schema);
        return;
    case FIELD_GROUP:
        add_fields(field, schema);
        return;
    case FIELD_LIST:
        add_list(field, schema);
        return;
    case FIELD_CONDITIONS:
        add_conditions(schema);
        return;
    case FIELD_TYPE_COUNT:
        break;
    }
    assert(!"a type of the enumeration");
}

static json_t *schema_of(const struct field *field)
{
    json_t *schema = json_object();

    set(schema, "description", json_string(field->help));
    add_type(field, schema);
    if (field->fallback)
        set(schema, "default", json_loads(field->fallback, JSON_DECODE_ANY, NULL));
    return schema;
}

static json_t *root_schema(const struct schema_kind *kind)
{
    json_t *properties = json_object();
    json_t *root = json_pack("{s:s, s:s, s:[s]}", "description", kind->help, "type", "object",
                             "required", "spec");

    set(properties, "apiVersion", json_pack("{s:s}", "type", "string"));
    set(properties, "kind", json_pack("{s:s}", "type", "string"));
    set(properties, "metadata", json_pack("{s:s}", "type", "object"));
    set(properties, "spec", schema_of(&kind->spec));
    set(properties, "status", schema_of(&kind->status));
    set(root, "properties", properties);
    if (kind->rule_count > 0)
        set(root, "x-kubernetes-validations", rules_json(kind->rules, kind->rule_count));
    return root;
}

static json_t *columns_json(const struct schema_kind *kind)
{
    json_t *list = json_array();

    for (size_t i = 0; i < kind->column_count; i++) {
        const struct schema_column *column = &kind->columns[i];
        json_t *made = json_pack("{s:s, s:s, s:s}", "name", column->name, "type", column->type,
                                 "jsonPath", column->path);
        if (column->wide)
            set(made, "priority", json_integer(1));
        json_array_append_new(list, made);
    }
    return list;
}

static json_t *spec_of(const struct schema_kind *kind)
{
    const struct kube_kind *names = kind->kind;
    json_t *spec = json_object(), *version = json_object();
    CLEANUP(free_ptr) char *list_kind = xasprintf("%sList", names->kind);

    set(version, "name", json_string(names->version));
    set(version, "served", json_true());
    set(version, "storage", json_true());
    set(version, "subresources", json_pack("{s:{}}", "status"));
    set(version, "additionalPrinterColumns", columns_json(kind));
    set(version, "schema", json_pack("{s:o}", "openAPIV3Schema", root_schema(kind)));
    set(spec, "group", json_string(names->group));
    set(spec, "scope", json_string(names->namespaced ? "Namespaced" : "Cluster"));
    set(spec, "names",
        json_pack("{s:s, s:s, s:s, s:s, s:[s], s:[s]}", "kind", names->kind, "listKind",
                  list_kind, "plural", names->plural, "singular", kind->singular, "shortNames",
                  kind->short_name, "categories", "tranche"));
    set(spec, "versions", json_pack("[o]", version));
    return spec;
}

static void hash_of(const json_t *spec, char ret_hash[17])
{
    char sum[72];
    char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);

    assert(text);
    file_sha256(text, strlen(text), sum);
    free(text);
    memcpy(ret_hash, sum + strlen("sha256:"), 16);
    ret_hash[16] = '\0';
}

void schema_hash(const struct schema_kind *kind, char ret_hash[17])
{
    json_t *spec = spec_of(kind);

    hash_of(spec, ret_hash);
    json_decref(spec);
}

json_t *schema_definition(const struct schema_kind *kind)
{
    json_t *spec = spec_of(kind);
    CLEANUP(free_ptr)
    char *name = xasprintf("%s.%s", kind->kind->plural, kind->kind->group);
    char hash[17];

    hash_of(spec, hash);
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s}, s:{s:s}}, s:o}", "apiVersion",
                     "apiextensions.k8s.io/v1", "kind", "CustomResourceDefinition", "metadata",
                     "name", name, "labels", "app.kubernetes.io/part-of", "tranche",
                     "annotations", SCHEMA_HASH_NOTE, hash, "spec", spec);
}
