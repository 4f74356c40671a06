/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as block YAML. Texts are plain where every YAML 1.1 and 1.2 reader takes them for
 * texts, double-quoted (a superset of JSON's quoting) otherwise.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "control/schema.h"

static bool is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "yes",  "no",    "on",
                                        "off",  "y",     "n",    "True", "False", "Unknown"};

    if (!isalpha((unsigned char)*text))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i], text) == 0)
            return false;
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789-_./")] == '\0';
}

static void add_scalar(const json_t *json, struct str *text)
{
    if (json_is_string(json) && is_plain(json_string_value(json)))
        str_add(text, json_string_value(json));
    else
        json_write_line(json, text);
}

static bool is_block(const json_t *json)
{
    return (json_is_object(json) && json_object_size(json) > 0) ||
           (json_is_array(json) && json_array_size(json) > 0);
}

static void add_block(const json_t *json, int indent, struct str *text);

static void add_indent(int indent, struct str *text)
{
    for (int i = 0; i < indent; i++)
        str_add_char(text, ' ');
}

/* What follows "key:"; a list stands at the key's own indent. */
static void add_value(const json_t *value, int indent, struct str *text)
{
    if (!is_block(value)) {
        str_add_char(text, ' ');
        add_scalar(value, text);
        str_add_char(text, '\n');
        return;
    }
    str_add_char(text, '\n');
    int inner = json_is_array(value) ? indent : indent + 2;
    add_indent(inner, text);
    add_block(value, inner, text);
}

/* The first line is indented already. */
static void add_block(const json_t *json, int indent, struct str *text)
{
    const char *key;
    json_t *value;
    bool first = true;

    assert(is_block(json));
    json_object_foreach((json_t *)json, key, value)
    {
        if (!first)
            add_indent(indent, text);
        first = false;
        str_addf(text, is_plain(key) ? "%s:" : "\"%s\":", key);
        add_value(value, indent, text);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        if (i > 0)
            add_indent(indent, text);
        str_add(text, "- ");
        value = json_array_get(json, i);
        if (is_block(value)) {
            add_block(value, indent + 2, text);
        } else {
            add_scalar(value, text);
            str_add_char(text, '\n');
        }
    }
}

void schema_write_yaml(const json_t *json, struct str *text)
{
    add_block(json, 0, text);
}
