/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing of a command line by its command's table. What the tables say in print is in
 * option_help.c and option_manual.c, the choice of the command in command.c.
 */
#include "base/option.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/expect.h"
#include "base/memory.h"
#include "base/vec.h"

/* One parse in progress. */
struct parser {
    const struct command *command;
    struct arguments words;
    size_t next; /* index of the word to read */
    struct parsed_options *parsed;
    struct error *err;
};

static const struct option_spec common_specs[] = {
    OPTION_FLAG('h', "help", struct option_common, help, "print this help and exit"),
    OPTION_FLAG(0, "version", struct option_common, version, "print the version and exit"),
    OPTION_FLAG('v', "verbose", struct option_common, verbose,
                "say more of what is done, on standard error"),
    OPTION_FLAG('q', "quiet", struct option_common, quiet,
                "say nothing but errors, show no progress"),
};
enum { COMMON_COUNT = sizeof common_specs / sizeof *common_specs };

const struct option_spec *option_common_specs(size_t *ret_count)
{
    *ret_count = COMMON_COUNT;
    return common_specs;
}

/* --- values --- */

static bool has_range(const struct option_spec *spec)
{
    return spec->minimum < spec->maximum;
}

static long long to_bound(double bound)
{
    if (bound >= (double)LLONG_MAX)
        return LLONG_MAX;
    return bound <= (double)LLONG_MIN ? LLONG_MIN : (long long)bound;
}

static int refuse_number(const struct option_spec *spec, const char *value, struct error *err)
{
    bool whole = spec->kind == OPTION_KIND_INT;
    CLEANUP(str_done) struct str expected = STR_EMPTY;

    expect_number(&expected, has_range(spec) ? spec->minimum : -INFINITY,
                  has_range(spec) ? spec->maximum : INFINITY, whole);
    return error_set(err, E_USAGE, "option --%s is '%.80s', expected %s", spec->name, value,
                     expected.bytes);
}

static int read_int(const struct option_spec *spec, const char *value, long long *field,
                    struct error *err)
{
    long long low = has_range(spec) ? to_bound(spec->minimum) : LLONG_MIN;
    long long high = has_range(spec) ? to_bound(spec->maximum) : LLONG_MAX;

    assert(low < high);
    return text_to_int(value, low, high, field) ? 0 : refuse_number(spec, value, err);
}

static int read_number(const struct option_spec *spec, const char *value, double *field,
                       struct error *err)
{
    double number = 0;

    if (!text_to_double(value, &number))
        return refuse_number(spec, value, err);
    if (has_range(spec) && (number < spec->minimum || number > spec->maximum))
        return refuse_number(spec, value, err);
    *field = number;
    return 0;
}

enum { CHOICE_LIMIT = 32 };

static int refuse_choice(const struct option_spec *spec, const char *value, struct error *err)
{
    const char *names[CHOICE_LIMIT], *nearest = NULL;
    CLEANUP(free_ptr) char *copy = xstrdup(spec->choices);
    size_t count = 0;

    for (char *rest = copy, *name = strsep(&rest, "|"); name; name = strsep(&rest, "|")) {
        assert(count < CHOICE_LIMIT);
        names[count++] = name;
    }
    nearest = text_nearest(value, names, count);
    return error_set(err, E_USAGE, "option --%s is '%.80s', expected one of %s%s%s%s",
                     spec->name, value, spec->choices, nearest ? " (did you mean '" : "",
                     nearest ? nearest : "", nearest ? "'?)" : "");
}

static int read_choice(const struct option_spec *spec, const char *value, const char **field,
                       struct error *err)
{
    size_t length = strlen(value);
    const char *at = spec->choices;

    while (length > 0 && !strchr(value, '|') && at) {
        if (strncmp(at, value, length) == 0 && (at[length] == '|' || !at[length])) {
            *field = value;
            return 0;
        }
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return refuse_choice(spec, value, err);
}

static void add_item(struct option_list *list, const char *item)
{
    list->items = xrealloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

/* Writes the value into its field of the struct at `base`. */
static int store(const struct option_spec *spec, const char *value, void *base,
                 struct error *err)
{
    void *field = (char *)base + spec->offset;

    switch (spec->kind) {
    case OPTION_KIND_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_KIND_INT:
        return read_int(spec, value, field, err);
    case OPTION_KIND_NUMBER:
        return read_number(spec, value, field, err);
    case OPTION_KIND_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_KIND_CHOICE:
        return read_choice(spec, value, field, err);
    case OPTION_KIND_LIST:
        add_item(field, value);
        return 0;
    case OPTION_KIND_COUNT:
        break;
    }
    assert(!"option kind");
    return 0;
}

/* --- looking up --- */

static const struct option_spec *find_in(const struct option_spec *specs, size_t count,
                                         const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(specs[i].name, name, length) == 0 && !specs[i].name[length])
            return &specs[i];
    return NULL;
}

static const struct option_spec *find_long(const struct command *command, const char *name,
                                           size_t length)
{
    const struct option_spec *own =
        find_in(command->options, command->option_count, name, length);

    return own ? own : find_in(common_specs, COMMON_COUNT, name, length);
}

static const struct option_spec *find_letter(const struct command *command, char letter)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].letter == letter)
            return &command->options[i];
    for (size_t i = 0; i < COMMON_COUNT; i++)
        if (common_specs[i].letter == letter)
            return &common_specs[i];
    return NULL;
}

static bool is_common(const struct option_spec *spec)
{
    return spec >= common_specs && spec < common_specs + COMMON_COUNT;
}

static int refuse_long(const struct parser *parser, const char *name, size_t length)
{
    VEC(const char *) names = {0};
    CLEANUP(free_ptr) char *word = xstrndup(name, length);

    for (size_t i = 0; i < parser->command->option_count; i++)
        vec_add(&names, parser->command->options[i].name);
    for (size_t i = 0; i < COMMON_COUNT; i++)
        vec_add(&names, common_specs[i].name);
    const char *nearest = text_nearest(word, names.data, names.count);
    vec_done(&names);
    return error_set(parser->err, E_USAGE, "unknown option --%s%s%s%s", word,
                     nearest ? " (did you mean --" : "", nearest ? nearest : "",
                     nearest ? "?)" : "");
}

/* --- parsing --- */

static int take(struct parser *parser, const struct option_spec *spec, const char *value)
{
    struct parsed_options *parsed = parser->parsed;

    assert(value || spec->kind == OPTION_KIND_FLAG);
    return store(spec, value, is_common(spec) ? (void *)&parsed->common : parsed->options,
                 parser->err);
}

/* The next word as the value of spec. A word that is an option of this command was more
 * likely meant as one; with `=` it can still be the value. */
static int take_next_word(struct parser *parser, const struct option_spec *spec)
{
    if (parser->next >= parser->words.count)
        return error_set(parser->err, E_USAGE, "option --%s needs a value, %s", spec->name,
                         spec->value_name);
    const char *word = parser->words.items[parser->next];
    if (text_starts_with(word, "--") &&
        find_long(parser->command, word + 2, strcspn(word + 2, "=")))
        return error_set(parser->err, E_USAGE,
                         "option --%s needs a value, %s, but option %s follows (--%s=%s if "
                         "it is the value)",
                         spec->name, spec->value_name, word, spec->name, word);
    parser->next++;
    return take(parser, spec, word);
}

static int parse_long(struct parser *parser, const char *word)
{
    size_t length = strcspn(word, "=");
    const struct option_spec *spec = find_long(parser->command, word, length);

    if (!spec)
        return refuse_long(parser, word, length);
    if (spec->kind == OPTION_KIND_FLAG && word[length])
        return error_set(parser->err, E_USAGE, "option --%s takes no value, got '%s'",
                         spec->name, word + length + 1);
    if (spec->kind == OPTION_KIND_FLAG)
        return take(parser, spec, NULL);
    return word[length] ? take(parser, spec, word + length + 1) : take_next_word(parser, spec);
}

/* `-v`, `-vq`, `-oFILE` or `-o FILE`, without the dash. */
static int parse_letters(struct parser *parser, const char *letters)
{
    for (; *letters; letters++) {
        const struct option_spec *spec = find_letter(parser->command, *letters);
        if (!spec)
            return error_set(parser->err, E_USAGE, "unknown option -%c", *letters);
        if (spec->kind != OPTION_KIND_FLAG)
            return letters[1] ? take(parser, spec, letters + 1) : take_next_word(parser, spec);
        int result = take(parser, spec, NULL);
        if (result < 0)
            return result;
    }
    return 0;
}

static void add_argument(struct arguments *arguments, const char *word)
{
    arguments->items =
        xrealloc(arguments->items, arguments->count + 1, sizeof *arguments->items);
    arguments->items[arguments->count++] = word;
}

static int parse_words(struct parser *parser)
{
    bool only_arguments = false;

    while (parser->next < parser->words.count) {
        const char *word = parser->words.items[parser->next++];
        int result = 0;
        if (only_arguments || word[0] != '-' || !word[1])
            add_argument(&parser->parsed->arguments, word);
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else if (word[1] == '-')
            result = parse_long(parser, word + 2);
        else
            result = parse_letters(parser, word + 1);
        if (result < 0)
            return result;
    }
    return 0;
}

static void set_defaults(const struct command *command, void *options)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        if (!spec->default_text)
            continue;
        int result = store(spec, spec->default_text, options, NULL);
        assert(result == 0 && spec->kind != OPTION_KIND_FLAG);
        (void)result;
    }
}

/* Whether a required option stood there: its pointer (a list begins with one) is set. */
static bool is_given(const struct option_spec *spec, const void *options)
{
    const void *field = (const char *)options + spec->offset;

    assert(spec->kind == OPTION_KIND_TEXT || spec->kind == OPTION_KIND_CHOICE ||
           spec->kind == OPTION_KIND_LIST);
    return *(const void *const *)field != NULL;
}

static int check_complete(const struct parser *parser)
{
    const struct command *command = parser->command;
    const struct arguments *arguments = &parser->parsed->arguments;

    if (arguments->count < command->arguments_min)
        return error_set(parser->err, E_USAGE, "needs %s%s",
                         command->positionals ? command->positionals : "an argument",
                         arguments->count > 0 ? "; too few are given" : "");
    if (arguments->count > command->arguments_max)
        return error_set(parser->err, E_USAGE, "unexpected argument '%s'",
                         arguments->items[command->arguments_max]);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        if (spec->required && !is_given(spec, parser->parsed->options))
            return error_set(parser->err, E_USAGE, "option --%s %s is required", spec->name,
                             spec->value_name);
    }
    return 0;
}

int options_parse(const struct command *command, struct arguments words,
                  struct parsed_options *ret_parsed, struct error *err)
{
    struct parsed_options parsed = {0};
    struct parser parser = {command, words, 0, &parsed, err};

    assert(command->option_count == 0 || command->options_size > 0);
    parsed.options = command->options_size ? xcalloc(1, command->options_size) : NULL;
    set_defaults(command, parsed.options);
    int result = parse_words(&parser);
    if (result == 0 && !parsed.common.help && !parsed.common.version)
        result = check_complete(&parser);
    if (result < 0)
        options_done(command, &parsed);
    else
        *ret_parsed = parsed;
    return result;
}

void options_done(const struct command *command, struct parsed_options *parsed)
{
    for (size_t i = 0; i < command->option_count && parsed->options; i++) {
        const struct option_spec *spec = &command->options[i];
        if (spec->kind == OPTION_KIND_LIST)
            free(((struct option_list *)((char *)parsed->options + spec->offset))->items);
    }
    free(parsed->options);
    free(parsed->arguments.items);
    *parsed = (struct parsed_options){0};
}
