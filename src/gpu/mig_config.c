/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing mig-parted's config format; see mig_config.h.
 */
#include "gpu/mig_config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/option.h"
#include "base/yaml.h"

enum { CONFIG_SIZE_LIMIT = 4 << 20, DEVICE_INDEX_MAX = 1023, DEVICE_COUNT_MAX = 64 };

/* The reader: one document and where its values go. */
struct reader {
    const struct yaml *yaml;
    struct mig_config_file *file;
};

static void entry_done(struct mig_config_entry *entry)
{
    vec_done(&entry->filters);
    vec_done(&entry->devices);
    vec_done(&entry->mig_devices);
}

void mig_config_file_done(struct mig_config_file *file)
{
    for (size_t i = 0; i < file->configs.count; i++) {
        struct mig_config *config = &file->configs.data[i];
        for (size_t j = 0; j < config->entries.count; j++)
            entry_done(&config->entries.data[j]);
        vec_done(&config->entries);
    }
    vec_done(&file->configs);
    arena_done(&file->arena);
}

static int read_filter(const struct reader *reader, const struct yaml_node *node,
                       struct mig_config_entry *entry, struct error *err)
{
    char *end;
    unsigned long id;

    if (node->kind != YAML_KIND_SCALAR)
        return yaml_error(reader->yaml, node, err,
                          "expected a PCI device id such as \"0x20B010DE\"");
    id = strtoul(node->text, &end, 0);
    if (end == node->text || *end || id > UINT32_MAX)
        return yaml_error(reader->yaml, node, err,
                          "device-filter \"%.40s\" is no PCI device id; expected one such as "
                          "\"0x20B010DE\" (device, then vendor)",
                          node->text);
    vec_add(&entry->filters, (uint32_t)id);
    return 0;
}

static int read_filters(const struct reader *reader, const struct yaml_node *node,
                        struct mig_config_entry *entry, struct error *err)
{
    int r = 0;

    if (!node || yaml_is_null(node))
        return 0;
    if (node->kind == YAML_KIND_SCALAR)
        return read_filter(reader, node, entry, err);
    if (node->kind != YAML_KIND_LIST)
        return yaml_error(reader->yaml, node, err,
                          "device-filter: expected one PCI device id or a list of them");
    for (size_t i = 0; !r && i < node->count; i++)
        r = read_filter(reader, node->items[i], entry, err);
    return r;
}

static int read_index(const struct reader *reader, const struct yaml_node *node,
                      struct mig_config_entry *entry, struct error *err)
{
    long long index;

    if (node->kind != YAML_KIND_SCALAR || !text_to_int(node->text, 0, DEVICE_INDEX_MAX, &index))
        return yaml_error(reader->yaml, node, err,
                          "expected a GPU index, a whole number from 0");
    for (size_t i = 0; i < entry->devices.count; i++)
        if (entry->devices.data[i] == index)
            return yaml_error(reader->yaml, node, err, "GPU %lld is listed twice", index);
    vec_add(&entry->devices, (int)index);
    return 0;
}

static int read_devices(const struct reader *reader, const struct yaml_node *node,
                        struct mig_config_entry *entry, struct error *err)
{
    int r = 0;

    if (node->kind == YAML_KIND_SCALAR && !strcmp(node->text, "all")) {
        entry->all = true;
        return 0;
    }
    if (node->kind != YAML_KIND_LIST)
        return yaml_error(reader->yaml, node, err,
                          "devices: expected all, or a list of GPU indexes such as [0, 1]");
    for (size_t i = 0; !r && i < node->count; i++)
        r = read_index(reader, node->items[i], entry, err);
    return r;
}

/* mig-devices: {NAME: COUNT}; an entry of null or {} is an empty layout. */
static int read_mig_devices(const struct reader *reader, const struct yaml_node *node,
                            struct mig_config_entry *entry, struct error *err)
{
    if (!node || yaml_is_null(node))
        return 0;
    int r = yaml_expect(reader->yaml, node, YAML_KIND_MAP, "a map of profile to count", err);
    for (size_t i = 0; !r && i < node->count; i++) {
        const struct yaml_node *value = node->items[i];
        long long count;
        if (value->kind != YAML_KIND_SCALAR ||
            !text_to_int(value->text, 0, DEVICE_COUNT_MAX, &count))
            return yaml_error(reader->yaml, value, err,
                              "\"%.60s\": expected how many, a whole number from 0 to %d",
                              node->keys[i], DEVICE_COUNT_MAX);
        if (!count)
            continue;
        struct mig_config_device *device = vec_push(&entry->mig_devices);
        *device = (struct mig_config_device){
            .name = arena_strdup(&reader->file->arena, node->keys[i]),
            .count = (int)count,
            .line = node->key_nodes[i]->line,
            .column = node->key_nodes[i]->column};
    }
    return r;
}

static int read_entry(const struct reader *reader, const struct yaml_node *node,
                      struct mig_config_entry *entry, struct error *err)
{
    static const char *const keys[] = {"device-filter", "devices", "mig-enabled", "mig-devices",
                                       NULL};
    int r = yaml_expect(reader->yaml, node, YAML_KIND_MAP,
                        "a map with devices, mig-enabled and mig-devices", err);

    if (r || (r = yaml_only_keys(reader->yaml, node, keys, err)))
        return r;
    entry->line = node->line;
    entry->column = node->column;
    const struct yaml_node *devices = yaml_get(node, "devices");
    if (!devices || !yaml_get(node, "mig-enabled"))
        return yaml_error(reader->yaml, node, err, "the entry lacks %s",
                          devices ? "mig-enabled" : "devices");
    if ((r = read_filters(reader, yaml_get(node, "device-filter"), entry, err)) ||
        (r = read_devices(reader, devices, entry, err)) ||
        (r = yaml_get_bool(reader->yaml, node, "mig-enabled", &entry->mig_enabled, err)) ||
        (r = read_mig_devices(reader, yaml_get(node, "mig-devices"), entry, err)))
        return r;
    if (!entry->mig_enabled && entry->mig_devices.count)
        return yaml_error(reader->yaml, node, err,
                          "mig-devices beside mig-enabled: false; one of them is wrong");
    return 0;
}

static int read_config(const struct reader *reader, const struct yaml_node *map, size_t index,
                       struct error *err)
{
    assert(index < map->count);
    const struct yaml_node *list = map->items[index];
    struct mig_config *config = vec_push(&reader->file->configs);
    int r = yaml_expect(reader->yaml, list, YAML_KIND_LIST, "a list of entries", err);

    config->name = arena_strdup(&reader->file->arena, map->keys[index]);
    config->line = map->key_nodes[index]->line;
    config->column = map->key_nodes[index]->column;
    for (size_t i = 0; !r && i < list->count; i++)
        r = read_entry(reader, list->items[i], vec_push(&config->entries), err);
    return r;
}

/* A map of lists whose items have `devices` is what stands inside a config file. */
static bool looks_like_fragment(const struct yaml_node *root)
{
    return root->count && root->items[0]->kind == YAML_KIND_LIST && root->items[0]->count &&
           root->items[0]->items[0]->kind == YAML_KIND_MAP &&
           yaml_get(root->items[0]->items[0], "devices");
}

static int read_version(const struct reader *reader, const struct yaml_node *root,
                        struct error *err)
{
    const struct yaml_node *version = yaml_get(root, "version");

    if (!version && looks_like_fragment(root))
        return yaml_error(reader->yaml, root, err,
                          "this is a fragment: put \"version: v1\" and \"mig-configs:\" around "
                          "the config \"%s\"",
                          root->keys[0]);
    if (!version || version->kind != YAML_KIND_SCALAR || strcmp(version->text, "v1"))
        return yaml_error(reader->yaml, version ? version : root, err,
                          "expected \"version: v1\" (mig-parted's config format)");
    return 0;
}

static int read_root(const struct reader *reader, const struct yaml_node *root,
                     struct error *err)
{
    static const char *const keys[] = {"version", "mig-configs", NULL};
    int r = read_version(reader, root, err);

    if (r || (r = yaml_only_keys(reader->yaml, root, keys, err)))
        return r;
    const struct yaml_node *configs = yaml_get(root, "mig-configs");
    if (!configs)
        return yaml_error(reader->yaml, root, err, "there is no mig-configs");
    r = yaml_expect(reader->yaml, configs, YAML_KIND_MAP, "a map of config names", err);
    for (size_t i = 0; !r && i < configs->count; i++)
        r = read_config(reader, configs, i, err);
    return r;
}

/* The file inside a Kubernetes ConfigMap, or NULL when root is none. */
static const struct yaml_node *config_map_text(const struct yaml_node *root)
{
    const struct yaml_node *kind = yaml_get(root, "kind"), *data = yaml_get(root, "data");

    if (!kind || kind->kind != YAML_KIND_SCALAR || strcmp(kind->text, "ConfigMap") || !data ||
        data->kind != YAML_KIND_MAP)
        return NULL;
    const struct yaml_node *text = yaml_get(data, "config.yaml");
    return text && text->kind == YAML_KIND_SCALAR ? text : NULL;
}

int mig_config_parse(const char *name, const char *bytes, size_t length,
                     struct mig_config_file *ret_file, struct error *err)
{
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    struct mig_config_file file = {0};

    assert(name && bytes && ret_file);
    int r = yaml_parse(name, bytes, length, &yaml, err);
    if (r)
        return r;
    const struct yaml_node *root = yaml_root(yaml);
    if ((r = yaml_expect(yaml, root, YAML_KIND_MAP, "a mig-parted config file", err)))
        return r;
    const struct yaml_node *inner = config_map_text(root);
    if (inner) {
        CLEANUP(str_done) struct str inner_name = STR_EMPTY;
        str_addf(&inner_name, "%s(data.config.yaml)", name);
        return mig_config_parse(inner_name.bytes, inner->text, strlen(inner->text), ret_file,
                                err);
    }
    struct reader reader = {.yaml = yaml, .file = &file};
    file.path = arena_strdup(&file.arena, name);
    if ((r = read_root(&reader, root, err))) {
        mig_config_file_done(&file);
        return r;
    }
    *ret_file = file;
    return 0;
}

int mig_config_read(const char *path, struct mig_config_file *ret_file, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;

    int r = file_read(path, CONFIG_SIZE_LIMIT, &bytes, err);
    return r ? r
             : mig_config_parse(strcmp(path, "-") ? path : "(stdin)", bytes.bytes, bytes.length,
                                ret_file, err);
}

int mig_config_select(const struct mig_config_file *file, const char *name,
                      const struct mig_config **ret_config, struct error *err)
{
    CLEANUP(str_done) struct str known = STR_EMPTY;
    CLEANUP(free_ptr) const char **names = xcalloc(file->configs.count, sizeof *names);

    for (size_t i = 0; i < file->configs.count; i++) {
        names[i] = file->configs.data[i].name;
        if (name ? !strcmp(names[i], name) : file->configs.count == 1) {
            *ret_config = &file->configs.data[i];
            return 0;
        }
        str_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    if (!name)
        return error_set(err, E_INPUT, "%s: which config? There are %s", file->path,
                         known.length ? known.bytes : "none");
    const char *nearest = text_nearest(name, names, file->configs.count);
    return error_set(err, E_INPUT, "%s: there is no config \"%.90s\"%s%s%s; it has %s",
                     file->path, name, nearest ? ", did you mean \"" : "",
                     nearest ? nearest : "", nearest ? "\"?" : "",
                     known.length ? known.bytes : "none");
}

/* --- writing --- */

/* Text in double quotes. Line breaks of Unicode would be folded, controls are refused. */
static void format_quoted(const char *text, struct str *out)
{
    static const struct {
        const char *bytes, *escape;
    } breaks[] = {{"\xC2\x85", "\\N"},
                  {"\xE2\x80\xA8", "\\L"},
                  {"\xE2\x80\xA9", "\\P"},
                  {"\xEF\xBB\xBF", "\\uFEFF"}};

    str_add_char(out, '"');
    while (*text) {
        size_t i = 0, count = sizeof breaks / sizeof breaks[0];
        while (i < count && !text_starts_with(text, breaks[i].bytes))
            i++;
        if (i < count) {
            str_add(out, breaks[i].escape);
            text += strlen(breaks[i].bytes);
            continue;
        }
        unsigned char c = (unsigned char)*text++;
        if (c < ' ' || c == 0x7F)
            str_addf(out, "\\x%02X", c);
        else
            str_addf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
    }
    str_add_char(out, '"');
}

/* A config's name, quoted where YAML would read something else. */
static void format_name(const char *name, struct str *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._-+";
    static const char *const words[] = {"null", "Null",  "NULL",  "true", "True",
                                        "TRUE", "false", "False", "FALSE"};
    bool quote = !*name || name[strspn(name, plain)] || strchr("0123456789.-+", *name);

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        quote = quote || !strcmp(name, words[i]);
    if (quote)
        format_quoted(name, out);
    else
        str_add(out, name);
}

static void format_filter(const struct mig_config_entry *entry, struct str *text)
{
    bool list = entry->filters.count > 1;

    assert(entry->all || entry->devices.count || entry->filters.count);
    if (!entry->filters.count)
        return;
    str_add(text, list ? "device-filter: [" : "device-filter: ");
    for (size_t i = 0; i < entry->filters.count; i++)
        str_addf(text, "%s\"0x%08X\"", i ? ", " : "", entry->filters.data[i]);
    str_add(text, list ? "]\n    " : "\n    ");
}

static void format_entry(const struct mig_config_entry *entry, struct str *text)
{
    str_add(text, "  - ");
    format_filter(entry, text);
    str_addf(text, "devices: %s", entry->all ? "all" : "[");
    for (size_t i = 0; i < entry->devices.count; i++)
        str_addf(text, "%s%d", i ? ", " : "", entry->devices.data[i]);
    str_addf(text, "%s\n    mig-enabled: %s\n    mig-devices:%s\n", entry->all ? "" : "]",
             entry->mig_enabled ? "true" : "false", entry->mig_devices.count ? "" : " {}");
    for (size_t i = 0; i < entry->mig_devices.count; i++) {
        str_add(text, "      ");
        format_quoted(entry->mig_devices.data[i].name, text);
        str_addf(text, ": %d\n", entry->mig_devices.data[i].count);
    }
}

void mig_config_format(const struct mig_config_file *file, struct str *text)
{
    str_addf(text, "version: v1\nmig-configs:%s\n", file->configs.count ? "" : " {}");
    for (size_t i = 0; i < file->configs.count; i++) {
        const struct mig_config *config = &file->configs.data[i];
        str_add(text, "  ");
        format_name(config->name, text);
        str_addf(text, ":%s\n", config->entries.count ? "" : " []");
        for (size_t j = 0; j < config->entries.count; j++)
            format_entry(&config->entries.data[j], text);
    }
}
