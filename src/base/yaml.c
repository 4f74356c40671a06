/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML: libyaml's events made into a tree. An alias shares the node of its anchor, so that
 * nothing is copied; what aliases stand for still counts as often as they stand, so that a
 * few lines cannot make a reader walk a billion values. The getters are in yaml_get.c.
 */
#include "base/yaml.h"

#include <assert.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text_input.h"
#include "base/vec.h"

enum {
    YAML_SIZE_LIMIT = 16 << 20, /* bytes */
    YAML_DEPTH_LIMIT = 64,
    YAML_VALUE_LIMIT = 1 << 20, /* values, aliases written out */
};

struct yaml {
    struct arena arena;
    char *name;
    struct yaml_node *root;
};

/* A list or map under construction. */
struct yaml_level {
    struct yaml_node *node;
    VEC(struct yaml_node *) items;
    VEC(struct yaml_node *) key_nodes;
    struct map seen;       /* keys of a map */
    struct yaml_node *key; /* the key whose value comes next */
    size_t values;         /* in this node, aliases written out */
    const char *anchor;    /* NULL: none */
};

/* What an anchor names. */
struct yaml_anchor {
    struct yaml_node *node; /* NULL while it is under construction */
    size_t values;
};

struct yaml_builder {
    struct yaml *yaml;
    yaml_parser_t *parser;
    struct text_input input;
    struct yaml_level levels[YAML_DEPTH_LIMIT];
    size_t depth;
    struct map anchors; /* name → struct yaml_anchor in the arena */
    struct error *err;
};

static struct text_position position_of(yaml_mark_t mark)
{
    return (struct text_position){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

__attribute__((format(printf, 3, 4))) static int fail_at(const struct yaml_builder *builder,
                                                         struct text_position position,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result = text_error_at(builder->yaml->name, position, builder->err, format, arguments);
    va_end(arguments);
    return result;
}

/* --- what libyaml complains about --- */

/* libyaml's words for a tab in the indentation hide what is wrong. Its index counts
 * characters. */
static bool is_tab(const struct yaml_builder *builder, yaml_mark_t mark)
{
    const struct text_input *input = &builder->input;
    size_t characters = 0;

    for (size_t i = 0; i < input->length; i++) {
        if (((unsigned char)input->bytes[i] & 0xC0) == 0x80)
            continue;
        if (characters++ == mark.index)
            return input->bytes[i] == '\t';
    }
    return false;
}

static int fail_syntax(const struct yaml_builder *builder)
{
    const yaml_parser_t *parser = builder->parser;
    yaml_mark_t mark = parser->problem_mark;
    const char *problem = parser->problem ? parser->problem : "out of memory";

    if (parser->error == YAML_SCANNER_ERROR && is_tab(builder, mark))
        return fail_at(builder, position_of(mark), "a tab, expected blanks for indentation");
    if (parser->error == YAML_READER_ERROR)
        return text_input_error(&builder->input,
                                parser->problem_offset < builder->input.length
                                    ? parser->problem_offset
                                    : builder->input.length,
                                builder->err, "%s, expected YAML text", problem);
    if (!parser->context)
        return fail_at(builder, position_of(mark), "%s, expected YAML", problem);
    struct text_position context = position_of(parser->context_mark);
    return fail_at(builder, position_of(mark), "%s, %s that began at line %u, column %u",
                   problem, parser->context, context.line, context.column);
}

/* --- putting nodes into the tree --- */

static struct yaml_node *new_node(const struct yaml_builder *builder, enum yaml_kind kind,
                                  yaml_mark_t mark)
{
    struct yaml_node *node = arena_alloc(&builder->yaml->arena, 1, sizeof *node);
    struct text_position position = position_of(mark);

    node->kind = kind;
    node->line = position.line;
    node->column = position.column;
    node->text = "";
    return node;
}

static struct yaml_level *top(struct yaml_builder *builder)
{
    assert(builder->depth > 0 && builder->depth <= YAML_DEPTH_LIMIT);
    return &builder->levels[builder->depth - 1];
}

static int add_key(struct yaml_builder *builder, struct yaml_node *node,
                   struct text_position at)
{
    struct yaml_level *level = top(builder);

    if (node->kind != YAML_KIND_SCALAR)
        return fail_at(builder, at, "a list or map as a key, expected text");
    if (strcmp(node->text, "<<") == 0 && !node->quoted)
        return fail_at(builder, at,
                       "merge keys (<<) are not supported, expected the keys "
                       "themselves");
    ptrdiff_t before = map_find(&level->seen, node->text);
    if (before >= 0)
        return fail_at(builder, at,
                       "key '%.80s' is there twice, first at line %u, expected each key once",
                       node->text, level->key_nodes.data[before]->line);
    map_put(&level->seen, node->text, NULL);
    level->key = node;
    return 0;
}

/* A finished node into the list or map above it, or as the root; `values` it stands for. */
static int add_node(struct yaml_builder *builder, struct yaml_node *node, size_t values,
                    struct text_position at)
{
    if (builder->depth == 0) {
        builder->yaml->root = node;
        return 0;
    }
    struct yaml_level *level = top(builder);
    level->values += values;
    if (level->values > YAML_VALUE_LIMIT)
        return fail_at(builder, at, "more than %d values, counting what aliases stand for",
                       YAML_VALUE_LIMIT);
    if (level->node->kind == YAML_KIND_MAP && !level->key)
        return add_key(builder, node, at);
    if (level->node->kind == YAML_KIND_MAP)
        vec_add(&level->key_nodes, level->key);
    level->key = NULL;
    vec_add(&level->items, node);
    return 0;
}

static void set_anchor(struct yaml_builder *builder, const char *name, struct yaml_node *node,
                       size_t values)
{
    struct yaml_anchor *anchor = NULL;

    if (!name)
        return;
    anchor = arena_alloc(&builder->yaml->arena, 1, sizeof *anchor);
    *anchor = (struct yaml_anchor){node, values};
    map_put(&builder->anchors, name, anchor);
}

/* --- events --- */

static const char standard_tag[] = "tag:yaml.org,2002:";

/* Standard tags only repeat what the value is, but for !!str, which makes it text. */
static int check_tag(const struct yaml_builder *builder, const yaml_char_t *tag,
                     yaml_mark_t mark)
{
    const char *name = (const char *)tag;

    if (!name || strcmp(name, "!") == 0 || text_starts_with(name, standard_tag))
        return 0;
    return fail_at(builder, position_of(mark), "tag '%.80s', expected a plain value", name);
}

static bool is_text_tag(const yaml_char_t *tag)
{
    const char *name = (const char *)tag;

    return name && (strcmp(name, "!") == 0 || strcmp(name, YAML_STR_TAG) == 0);
}

static int add_scalar(struct yaml_builder *builder, const yaml_event_t *event)
{
    int result = check_tag(builder, event->data.scalar.tag, event->start_mark);
    const char *text = (const char *)event->data.scalar.value;
    struct yaml_node *node = new_node(builder, YAML_KIND_SCALAR, event->start_mark);

    if (result < 0)
        return result;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(builder, position_of(event->start_mark),
                       "a NUL character in a text, expected printable characters");
    node->text = arena_strndup(&builder->yaml->arena, text, event->data.scalar.length);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
                   is_text_tag(event->data.scalar.tag);
    set_anchor(builder, (const char *)event->data.scalar.anchor, node, 1);
    return add_node(builder, node, 1, position_of(event->start_mark));
}

static int add_alias(struct yaml_builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct text_position at = position_of(event->start_mark);
    const struct yaml_anchor *anchor = map_get(&builder->anchors, name);

    if (!anchor)
        return fail_at(builder, at, "alias '*%.80s' without an anchor '&%.80s' before it", name,
                       name);
    if (!anchor->node)
        return fail_at(builder, at, "alias '*%.80s' within what it stands for", name);
    return add_node(builder, anchor->node, anchor->values, at);
}

static int open_level(struct yaml_builder *builder, enum yaml_kind kind,
                      const yaml_event_t *event)
{
    bool list = kind == YAML_KIND_LIST;
    const yaml_char_t *tag =
        list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    const yaml_char_t *anchor =
        list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
    int result = check_tag(builder, tag, event->start_mark);

    if (result < 0)
        return result;
    if (builder->depth == YAML_DEPTH_LIMIT)
        return fail_at(builder, position_of(event->start_mark),
                       "more than %d levels of lists and maps", YAML_DEPTH_LIMIT);
    struct yaml_level *level = &builder->levels[builder->depth++];
    *level = (struct yaml_level){.node = new_node(builder, kind, event->start_mark)};
    if (anchor)
        level->anchor = arena_strdup(&builder->yaml->arena, (const char *)anchor);
    set_anchor(builder, level->anchor, NULL, 0);
    return 0;
}

/* The keys of a map beside its values. */
static void add_keys(struct arena *arena, struct yaml_level *level)
{
    struct yaml_node *node = level->node;

    assert(level->key_nodes.count == node->count);
    node->keys = arena_alloc(arena, node->count, sizeof *node->keys);
    node->key_nodes = arena_alloc(arena, node->count, sizeof *node->key_nodes);
    for (size_t i = 0; i < node->count; i++) {
        node->key_nodes[i] = level->key_nodes.data[i];
        node->keys[i] = node->key_nodes[i]->text;
    }
}

static void level_done(struct yaml_level *level)
{
    vec_done(&level->items);
    vec_done(&level->key_nodes);
    map_done(&level->seen);
}

static int close_level(struct yaml_builder *builder)
{
    struct yaml_level *level = top(builder);
    struct yaml_node *node = level->node;
    struct arena *arena = &builder->yaml->arena;
    size_t values = level->values + 1;

    node->count = level->items.count;
    node->items = arena_alloc(arena, node->count, sizeof *node->items);
    for (size_t i = 0; i < node->count; i++)
        node->items[i] = level->items.data[i];
    if (node->kind == YAML_KIND_MAP)
        add_keys(arena, level);
    set_anchor(builder, level->anchor, node, values);
    level_done(level);
    builder->depth--;
    return add_node(builder, node, values, (struct text_position){node->line, node->column});
}

static int add_event(struct yaml_builder *builder, const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->yaml->root)
            return fail_at(builder, position_of(event->start_mark),
                           "a second document, expected one in the file");
        return 0;
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(builder, YAML_KIND_LIST, event);
    case YAML_MAPPING_START_EVENT:
        return open_level(builder, YAML_KIND_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_level(builder);
    default:
        return 0;
    }
}

/* --- the file --- */

static int build(struct yaml_builder *builder)
{
    bool ended = false;

    while (!ended) {
        yaml_event_t event;
        if (!yaml_parser_parse(builder->parser, &event))
            return fail_syntax(builder);
        ended = event.type == YAML_STREAM_END_EVENT;
        int result = add_event(builder, &event);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
    }
    if (!builder->yaml->root)
        return fail_at(builder, (struct text_position){1, 1},
                       "nothing but comments, expected a YAML document");
    return 0;
}

static int build_from_text(struct yaml_builder *builder)
{
    yaml_parser_t parser;

    if (!yaml_parser_initialize(&parser))
        return error_set(builder->err, E_IO, "%s: out of memory", builder->input.name);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)builder->input.bytes,
                                 builder->input.length);
    builder->parser = &parser;
    int result = build(builder);
    for (; builder->depth > 0; builder->depth--)
        level_done(top(builder));
    map_done(&builder->anchors);
    yaml_parser_delete(&parser);
    return result;
}

int yaml_parse(const char *name, const char *bytes, size_t length, struct yaml **ret_yaml,
               struct error *err)
{
    CLEANUP(yaml_free_ptr) struct yaml *yaml = xcalloc(1, sizeof *yaml);
    CLEANUP(free_ptr) struct yaml_builder *builder = xcalloc(1, sizeof *builder);

    if (length > YAML_SIZE_LIMIT)
        return error_set(err, E_INPUT, "%s: larger than %d bytes, expected a smaller file",
                         name, YAML_SIZE_LIMIT);
    int result = text_input_open(&builder->input, name, bytes, length, "a YAML document", err);
    if (result < 0)
        return result;
    yaml->name = xstrdup(name);
    builder->yaml = yaml;
    builder->err = err;
    result = build_from_text(builder);
    if (result < 0)
        return result;
    *ret_yaml = STEAL(yaml);
    return 0;
}

int yaml_read(const char *path, struct yaml **ret_yaml, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int result = file_read(path, YAML_SIZE_LIMIT, &bytes, err);

    if (result < 0)
        return result;
    return yaml_parse(path, bytes.bytes, bytes.length, ret_yaml, err);
}

void yaml_free(struct yaml *yaml)
{
    if (!yaml)
        return;
    arena_done(&yaml->arena);
    free(yaml->name);
    free(yaml);
}

const struct yaml_node *yaml_root(const struct yaml *yaml)
{
    return yaml->root;
}

const char *yaml_name(const struct yaml *yaml)
{
    return yaml->name;
}
