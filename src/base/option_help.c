/* SPDX-License-Identifier: Apache-2.0
 *
 * Help texts for the terminal, 80 columns wide, from the command tables.
 */
#include <assert.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option.h"

enum { WIDTH = 80, TERM_LIMIT = 26 };

static void add_spaces(struct str *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_add_char(text, ' ');
}

/* Appends words from `from`, wrapped at WIDTH; the first line begins at column, the
 * others at indent. */
static void add_wrapped(struct str *text, const char *from, size_t column, size_t indent)
{
    bool first = true;

    assert(indent < WIDTH / 2);
    while (*(from += strspn(from, " \n"))) {
        CLEANUP(str_done) struct str word = STR_EMPTY;
        size_t length = strcspn(from, " \n");
        str_add_bytes(&word, from, length);
        size_t width = text_columns(word.bytes);
        if (!first && column + 1 + width > WIDTH) {
            str_add_char(text, '\n');
            add_spaces(text, indent);
            column = indent;
        } else if (!first) {
            str_add_char(text, ' ');
            column++;
        }
        str_add(text, word.bytes);
        column += width;
        from += length;
        first = false;
    }
    str_add_char(text, '\n');
}

/* "  TERM   sentence", the sentence at column `indent`, on the next line if TERM is wide. */
static void add_item(struct str *text, const char *term, const char *sentence, size_t indent)
{
    size_t column = text_columns(term) + 2;

    str_addf(text, "  %s", term);
    if (column + 2 > indent) {
        str_add_char(text, '\n');
        column = 0;
    }
    add_spaces(text, indent - column);
    add_wrapped(text, sentence, indent, indent);
}

static void add_fact(struct str *text, const char *fact)
{
    if (text->length > 0)
        str_add(text, ", ");
    str_add(text, fact);
}

/* "0 to 1", "at least 1", "above 0, at most 1"; bounds that nobody meets are left out. */
static void add_range(struct str *text, double minimum, double maximum)
{
    const double shown_limit = 1e9;
    bool low = minimum > -shown_limit, high = maximum < shown_limit;
    bool positive = minimum > 0 && minimum <= DBL_MIN;

    if (low) {
        add_fact(text, positive ? "above 0" : high ? "" : "at least ");
        if (!positive)
            str_add_number(text, minimum);
    }
    if (high) {
        bool range = low && !positive;
        if (range)
            str_add(text, " to ");
        else
            add_fact(text, "at most ");
        str_add_number(text, maximum);
    }
}

void option_facts(const struct option_spec *spec, struct str *text)
{
    CLEANUP(str_done) struct str facts = STR_EMPTY;

    if (spec->required)
        add_fact(&facts, "required");
    if (spec->kind == OPTION_KIND_LIST)
        add_fact(&facts, "may be repeated");
    if (spec->default_text) {
        add_fact(&facts, "default ");
        str_add(&facts, spec->default_text);
    }
    if (spec->minimum < spec->maximum)
        add_range(&facts, spec->minimum, spec->maximum);
    str_add(text, facts.bytes);
}

static void add_term(const struct option_spec *spec, struct str *term)
{
    if (spec->letter)
        str_addf(term, "-%c, --%s", spec->letter, spec->name);
    else
        str_addf(term, "    --%s", spec->name);
    if (spec->value_name)
        str_addf(term, " %s", spec->value_name);
}

/* The column where sentences start: past the widest term, within reason. */
static size_t sentence_column(const struct option_spec *specs, size_t count)
{
    size_t widest = strlen("-v, --verbose");

    for (size_t i = 0; i < count; i++) {
        CLEANUP(str_done) struct str term = STR_EMPTY;
        add_term(&specs[i], &term);
        size_t width = text_columns(term.bytes);
        if (width > widest && width <= TERM_LIMIT)
            widest = width;
    }
    return widest + 4;
}

static void add_options(struct str *text, const struct option_spec *specs, size_t count,
                        size_t indent)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(str_done) struct str term = STR_EMPTY;
        CLEANUP(str_done) struct str sentence = STR_EMPTY;
        CLEANUP(str_done) struct str facts = STR_EMPTY;
        add_term(&specs[i], &term);
        option_facts(&specs[i], &facts);
        str_add(&sentence, specs[i].help);
        if (facts.length > 0)
            str_addf(&sentence, " (%s)", facts.bytes);
        add_item(text, term.bytes, sentence.bytes, indent);
    }
}

static void add_all_options(struct str *text, const struct command *command)
{
    size_t common_count = 0;
    const struct option_spec *common = option_common_specs(&common_count);
    size_t indent = sentence_column(command->options, command->option_count);

    if (command->option_count > 0) {
        str_add(text, "\noptions:\n");
        add_options(text, command->options, command->option_count, indent);
    }
    str_add(text, "\ncommon options:\n");
    add_options(text, common, common_count, indent);
}

static void add_subcommands(struct str *text, const struct command *command)
{
    size_t widest = 0;

    if (!command->subcommands)
        return;
    for (size_t i = 0; command->subcommands[i]; i++)
        if (!command->subcommands[i]->hidden && strlen(command->subcommands[i]->name) > widest)
            widest = strlen(command->subcommands[i]->name);
    str_add(text, "\ncommands:\n");
    for (size_t i = 0; command->subcommands[i]; i++)
        if (!command->subcommands[i]->hidden)
            add_item(text, command->subcommands[i]->name, command->subcommands[i]->summary,
                     widest + 4);
}

/* Paragraphs stand between blank lines. */
static void add_description(struct str *text, const char *description)
{
    while (description && *description) {
        const char *end = strstr(description, "\n\n");
        size_t length = end ? (size_t)(end - description) : strlen(description);
        CLEANUP(str_done) struct str paragraph = STR_EMPTY;
        str_add_bytes(&paragraph, description, length);
        str_add_char(text, '\n');
        add_wrapped(text, paragraph.bytes, 0, 0);
        description = end ? end + 2 : NULL;
    }
}

static void add_examples(struct str *text, const char *examples)
{
    if (!examples)
        return;
    str_add(text, "\nexamples:\n");
    while (*examples) {
        size_t length = strcspn(examples, "\n");
        str_add(text, "  ");
        str_add_bytes(text, examples, length);
        str_add_char(text, '\n');
        examples += length + (examples[length] == '\n');
    }
}

static void add_usage(struct str *text, const struct command *command, const char *path)
{
    const char *lead = "usage: ";

    if (command->run) {
        str_addf(text, "%s%s [OPTION…]%s%s\n", lead, path, command->positionals ? " " : "",
                 command->positionals ? command->positionals : "");
        lead = "       ";
    }
    if (command->subcommands)
        str_addf(text, "%s%s COMMAND …\n", lead, path);
}

void command_help(const struct command *command, const char *path, struct str *text)
{
    CLEANUP(str_done) struct str title = STR_EMPTY;

    assert(command->run || command->subcommands);
    str_addf(&title, "%s: %s", path, command->summary);
    add_wrapped(text, title.bytes, 0, 0);
    str_add_char(text, '\n');
    add_usage(text, command, path);
    add_description(text, command->description);
    add_subcommands(text, command);
    add_all_options(text, command);
    add_examples(text, command->examples);
    if (command->subcommands)
        str_addf(text, "\n`%s COMMAND --help` says more of each command.\n", path);
}
