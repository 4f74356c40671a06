/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML: trees are sound and within the limits, whatever the aliases; complaints name a
 * place.
 */
#include <assert.h>
#include <string.h>

#include "base/yaml.h"
#include "fuzz.h"

enum { DEPTH_LIMIT = 64, VALUE_LIMIT = 1 << 20 };

static void check_map(const struct yaml *yaml, const struct yaml_node *map)
{
    static const char *const known[] = {"name", "model", "rate_rps", NULL};
    struct error err = {0};

    for (size_t i = 0; i < map->count; i++) {
        double number = 0;
        long long whole = 0;
        bool flag = false;
        const char *text = "";
        assert(yaml_get(map, map->keys[i]) == map->items[i]);
        yaml_get_number(yaml, map, map->keys[i], -10, 10, &number, &err);
        yaml_get_int(yaml, map, map->keys[i], -10, 10, &whole, &err);
        yaml_get_bool(yaml, map, map->keys[i], &flag, &err);
        yaml_get_text(yaml, map, map->keys[i], &text, &err);
        assert(number >= -10 && number <= 10 && whole >= -10 && whole <= 10 && text);
    }
    yaml_only_keys(yaml, map, known, &err);
}

/* Visits every value, aliases as often as they stand; returns how many. */
static size_t check_node(const struct yaml *yaml, const struct yaml_node *node, size_t depth)
{
    size_t values = 1;

    assert(node->kind < YAML_KIND_COUNT && node->line >= 1 && node->column >= 1);
    assert(depth <= DEPTH_LIMIT * DEPTH_LIMIT && node->text);
    if (node->kind == YAML_KIND_MAP && node->count < 100)
        check_map(yaml, node);
    for (size_t i = 0; i < node->count; i++)
        values += check_node(yaml, node->items[i], depth + 1);
    return values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct error err = {0};

    if (yaml_parse("fuzz", (const char *)data, size, &yaml, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz:", 5) == 0 && !yaml);
        return 0;
    }
    size_t values = check_node(yaml, yaml_root(yaml), 0);
    assert(values <= VALUE_LIMIT + 1);
    (void)values;
    return 0;
}
