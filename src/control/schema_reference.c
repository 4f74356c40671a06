/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of the API (docs/spec/kubernetes-api.md) out of the tables.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "control/schema.h"

static const char *const type_names[FIELD_TYPE_COUNT] = {
    [FIELD_TEXT] = "text",
    [FIELD_INT] = "whole number",
    [FIELD_LONG] = "whole number",
    [FIELD_NUMBER] = "number",
    [FIELD_BOOL] = "true or false",
    [FIELD_CHOICE] = "",
    [FIELD_TIME] = "time",
    [FIELD_BOARD] = "board",
    [FIELD_SLICE] = "slice profile",
    [FIELD_START] = "whole number",
    [FIELD_PERCENTILE] = "whole number or text",
    [FIELD_TEXTS] = "list of texts",
    [FIELD_MAP] = "map of texts",
    [FIELD_OPEN] = "object",
    [FIELD_OPEN_LIST] = "list of objects",
    [FIELD_GROUP] = "object",
    [FIELD_LIST] = "list",
    [FIELD_CONDITIONS] = "list of conditions",
};

static bool is_number(const struct field *field)
{
    return field->type == FIELD_INT || field->type == FIELD_LONG ||
           field->type == FIELD_NUMBER || field->type == FIELD_START;
}

static void add_range(const struct field *field, struct str *text)
{
    if (is_number(field)) {
        str_add(text, field->above ? ", above " : ", from ");
        str_add_number(text, field->minimum);
        if (field->maximum > 0) {
            str_add(text, " to ");
            str_add_number(text, field->maximum);
        }
    } else if (field->maximum > 0 &&
               (field->type == FIELD_LIST || field->type == FIELD_TEXTS)) {
        str_addf(text, ", at most %.0f", field->maximum);
    }
    if (field->keys && *field->keys)
        str_addf(text, ", by %s", field->keys);
}

static void add_row(const struct field *field, const char *path, struct str *text)
{
    str_addf(text, "| `%s` | ", path);
    str_add(text, type_names[field->type]);
    for (size_t i = 0; i < field->choice_count; i++)
        str_addf(text, "%s`%s`", i ? ", " : "", field->choices[i]);
    add_range(field, text);
    str_add(text, " | ");
    if (field->required)
        str_add(text, "required");
    else if (field->fallback)
        str_addf(text, "`%s`", field->fallback);
    str_addf(text, " | %s |\n", field->help);
}

static void add_rows(const struct field *group, const char *prefix, struct str *text)
{
    for (size_t i = 0; i < group->field_count; i++) {
        const struct field *field = &group->fields[i];
        CLEANUP(free_ptr) char *path = xasprintf("%s.%s", prefix, field->name);
        CLEANUP(free_ptr) char *items = xasprintf("%s[]", path);
        add_row(field, path, text);
        if (field->type == FIELD_LIST)
            add_rows(field, items, text);
        else if (field->type == FIELD_GROUP)
            add_rows(field, path, text);
    }
}

static void add_rules(const struct schema_kind *kind, struct str *text)
{
    size_t count = kind->spec.rule_count + kind->rule_count;

    if (count == 0)
        return;
    str_add(text, "\nRules that the API server checks:\n\n");
    for (size_t i = 0; i < count; i++) {
        const struct field_rule *rule = i < kind->spec.rule_count
                                            ? &kind->spec.rules[i]
                                            : &kind->rules[i - kind->spec.rule_count];
        str_addf(text, "- %s: `%s`\n", rule->message, rule->rule);
    }
}

void schema_write_reference(const struct schema_kind *kind, struct str *text)
{
    assert(kind && text);
    str_addf(text, "## %s\n\n%s %s; `kubectl get %s` or `%s`.\n\n", kind->kind->kind,
             kind->help, kind->kind->namespaced ? "Namespaced" : "Cluster-scoped",
             kind->kind->plural, kind->short_name);
    str_add(text, "| field | type | default | meaning |\n| --- | --- | --- | --- |\n");
    add_rows(&kind->spec, "spec", text);
    add_rows(&kind->status, "status", text);
    add_rules(kind, text);
    str_add(text, "\n| condition | True means |\n| --- | --- |\n");
    for (size_t i = 0; i < kind->condition_count; i++)
        str_addf(text, "| `%s` | %s |\n", kind->conditions[i].type, kind->conditions[i].help);
}
