/* SPDX-License-Identifier: Apache-2.0
 *
 * The manual page (man(7) macros) of the whole tree of commands.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option.h"

/* Appends text so that roff prints it as it is: minus signs, backslashes, and lines that
 * would begin with a control character. */
static void add_escaped(struct str *text, const char *from)
{
    bool line_start = text->length == 0 || text->bytes[text->length - 1] == '\n';

    for (; *from; from++) {
        if (line_start && (*from == '.' || *from == '\''))
            str_add(text, "\\&");
        if (*from == '-')
            str_add(text, "\\-");
        else if (*from == '\\')
            str_add(text, "\\e");
        else
            str_add_char(text, *from);
        line_start = *from == '\n';
    }
}

static void add_paragraphs(struct str *text, const char *from)
{
    while (from && *from) {
        const char *end = strstr(from, "\n\n");
        CLEANUP(str_done) struct str paragraph = STR_EMPTY;
        str_add_bytes(&paragraph, from, end ? (size_t)(end - from) : strlen(from));
        str_add(text, ".PP\n");
        add_escaped(text, paragraph.bytes);
        str_add_char(text, '\n');
        from = end ? end + 2 : NULL;
    }
}

static void add_option(struct str *text, const struct option_spec *spec)
{
    CLEANUP(str_done) struct str facts = STR_EMPTY;

    str_add(text, ".TP\n");
    if (spec->letter)
        str_addf(text, "\\fB\\-%c\\fR, ", spec->letter);
    str_add(text, "\\fB\\-\\-");
    add_escaped(text, spec->name);
    str_add(text, "\\fR");
    if (spec->value_name) {
        str_add(text, " \\fI");
        add_escaped(text, spec->value_name);
        str_add(text, "\\fR");
    }
    str_add_char(text, '\n');
    option_facts(spec, &facts);
    add_escaped(text, spec->help);
    if (facts.length > 0) {
        str_add(text, " (");
        add_escaped(text, facts.bytes);
        str_add_char(text, ')');
    }
    str_add(text, ".\n");
}

static void add_options(struct str *text, const struct option_spec *specs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_option(text, &specs[i]);
}

static void add_examples(struct str *text, const char *examples)
{
    if (!examples)
        return;
    str_add(text, ".PP\nExamples:\n.PP\n.nf\n.RS\n");
    add_escaped(text, examples);
    if (!text_ends_with(examples, "\n"))
        str_add_char(text, '\n');
    str_add(text, ".RE\n.fi\n");
}

static void add_command(const struct command *command, const char *path, void *context)
{
    struct str *text = context;

    assert(command->summary);
    if (!strchr(path, ' ')) /* the root has sections of its own */
        return;
    str_add(text, ".SS ");
    add_escaped(text, path);
    if (command->positionals) {
        str_add_char(text, ' ');
        add_escaped(text, command->positionals);
    }
    str_add_char(text, '\n');
    add_escaped(text, command->summary);
    str_add(text, ".\n");
    add_paragraphs(text, command->description);
    add_options(text, command->options, command->option_count);
    add_examples(text, command->examples);
}

static const char exit_status[] =
    ".SH EXIT STATUS\n"
    ".TP\n0\ndone; the answer is yes.\n"
    ".TP\n1\nthe answer is no: a layout is illegal, a plan infeasible, a verification or "
    "an assertion failed, a measurement is invalid, a regression was found.\n"
    ".TP\n2\nthe command line is wrong.\n"
    ".TP\n3\nwhat the user gave is wrong: the message names file, line and column, or the "
    "field; nothing was written.\n"
    ".TP\n4\nsomething cannot be opened, read or written, or is missing: a driver, "
    "library, model or server.\n";

static const char environment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBNO_COLOR\\fR\nno colour on terminals when set and not empty.\n";

void command_manual(const struct command *root, struct str *text)
{
    size_t common_count = 0;
    const struct option_spec *common = option_common_specs(&common_count);

    assert(root->version && root->summary);
    str_addf(text, ".TH %s 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- ", root->name, root->name,
             root->version, root->name);
    add_escaped(text, root->summary);
    str_addf(text, "\n.SH SYNOPSIS\n\\fB%s\\fR \\fICOMMAND\\fR …\n.SH DESCRIPTION\n",
             root->name);
    add_paragraphs(text, root->description);
    str_add(text, ".SH COMMANDS\n");
    command_walk(root, root->name, add_command, text);
    str_add(text, ".SH COMMON OPTIONS\n");
    add_options(text, common, common_count);
    str_add(text, exit_status);
    str_add(text, environment);
}
