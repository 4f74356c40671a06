/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed values out of a YAML tree, with the place of each complaint.
 */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/expect.h"
#include "base/option.h"
#include "base/str.h"
#include "base/text_input.h"
#include "base/yaml.h"

static const char *const kind_names[YAML_KIND_COUNT] = {
    [YAML_KIND_SCALAR] = "a single value",
    [YAML_KIND_LIST] = "a list",
    [YAML_KIND_MAP] = "a map",
};

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    assert(map->kind == YAML_KIND_MAP);
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return map->items[i];
    return NULL;
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

bool yaml_is_null(const struct yaml_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

    return node->kind == YAML_KIND_SCALAR && !node->quoted && is_one_of(node->text, nulls, 5);
}

int yaml_error(const struct yaml *yaml, const struct yaml_node *node, struct error *err,
               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result =
        text_error_at(yaml_name(yaml), (struct text_position){node->line, node->column}, err,
                      format, arguments);
    va_end(arguments);
    return result;
}

/* What stands there, for messages: "a list", "'abc'", "nothing". */
static void add_found(struct str *text, const struct yaml_node *node)
{
    if (yaml_is_null(node))
        str_add(text, "nothing");
    else if (node->kind != YAML_KIND_SCALAR)
        str_add(text, kind_names[node->kind]);
    else
        str_addf(text, "%s'%.40s'", node->quoted ? "the text " : "", node->text);
}

static int fail_expected(const struct yaml *yaml, const struct yaml_node *node,
                         const char *what, struct error *err)
{
    CLEANUP(str_done) struct str found = STR_EMPTY;

    add_found(&found, node);
    return yaml_error(yaml, node, err, "found %s, expected %s", found.bytes, what);
}

int yaml_expect(const struct yaml *yaml, const struct yaml_node *node, enum yaml_kind kind,
                const char *what, struct error *err)
{
    assert(kind < YAML_KIND_COUNT);
    return node->kind == kind ? 0 : fail_expected(yaml, node, what, err);
}

static int fail_unknown_key(const struct yaml *yaml, const struct yaml_node *key,
                            const char *const *known, struct error *err)
{
    CLEANUP(str_done) struct str list = STR_EMPTY;
    size_t count = 0;

    for (; known[count]; count++)
        str_addf(&list, "%s%s", count > 0 ? ", " : "", known[count]);
    const char *nearest = text_nearest(key->text, known, count);
    if (nearest)
        return yaml_error(yaml, key, err, "unknown key '%.80s', expected '%s' or another of %s",
                          key->text, nearest, list.bytes);
    return yaml_error(yaml, key, err, "unknown key '%.80s', expected one of %s", key->text,
                      list.bytes);
}

int yaml_only_keys(const struct yaml *yaml, const struct yaml_node *map,
                   const char *const *known, struct error *err)
{
    size_t count = 0;

    assert(map->kind == YAML_KIND_MAP);
    while (known[count])
        count++;
    for (size_t i = 0; i < map->count; i++)
        if (!is_one_of(map->keys[i], known, count))
            return fail_unknown_key(yaml, map->key_nodes[i], known, err);
    return 0;
}

/* The scalar under key, NULL when absent or null. */
static const struct yaml_node *get_scalar(const struct yaml_node *map, const char *key)
{
    assert(map->kind == YAML_KIND_MAP);
    const struct yaml_node *node = yaml_get(map, key);

    return node && !yaml_is_null(node) ? node : NULL;
}

static int fail_value(const struct yaml *yaml, const struct yaml_node *node, const char *key,
                      const char *what, struct error *err)
{
    CLEANUP(str_done) struct str found = STR_EMPTY;

    add_found(&found, node);
    return yaml_error(yaml, node, err, "%s is %s, expected %s", key, found.bytes, what);
}

int yaml_get_text(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                  const char **ret, struct error *err)
{
    assert(ret);
    const struct yaml_node *node = get_scalar(map, key);

    if (!node)
        return 0;
    if (node->kind != YAML_KIND_SCALAR)
        return fail_value(yaml, node, key, "text", err);
    *ret = node->text;
    return 0;
}

int yaml_get_number(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                    double minimum, double maximum, double *ret, struct error *err)
{
    assert(ret && minimum <= maximum);
    const struct yaml_node *node = get_scalar(map, key);
    CLEANUP(str_done) struct str expected = STR_EMPTY;
    double value = 0;

    if (!node)
        return 0;
    if (node->kind == YAML_KIND_SCALAR && !node->quoted && text_to_double(node->text, &value) &&
        value >= minimum && value <= maximum) {
        *ret = value;
        return 0;
    }
    expect_number(&expected, minimum, maximum, false);
    return fail_value(yaml, node, key, expected.bytes, err);
}

int yaml_get_int(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                 long long minimum, long long maximum, long long *ret, struct error *err)
{
    assert(ret && minimum <= maximum);
    const struct yaml_node *node = get_scalar(map, key);
    CLEANUP(str_done) struct str expected = STR_EMPTY;

    if (!node || (node->kind == YAML_KIND_SCALAR && !node->quoted &&
                  text_to_int(node->text, minimum, maximum, ret)))
        return 0;
    expect_number(&expected, (double)minimum, (double)maximum, true);
    return fail_value(yaml, node, key, expected.bytes, err);
}

int yaml_get_bool(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                  bool *ret, struct error *err)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    const struct yaml_node *node = get_scalar(map, key);
    bool plain = node && node->kind == YAML_KIND_SCALAR && !node->quoted;

    if (!node)
        return 0;
    if (!plain || (!is_one_of(node->text, yes, 3) && !is_one_of(node->text, no, 3)))
        return fail_value(yaml, node, key, "true or false", err);
    *ret = is_one_of(node->text, yes, 3);
    return 0;
}
