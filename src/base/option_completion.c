/* SPDX-License-Identifier: Apache-2.0
 *
 * The bash completion script: commands, options, and the choices of options; files
 * elsewhere. The script knows the tree as three `case` tables keyed by the path of the
 * command (" layout place").
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/option.h"

/* The path below the root: "tranche layout place" → " layout place". */
static const char *below_root(const char *path)
{
    const char *blank = strchr(path, ' ');

    return blank ? blank : "";
}

static void add_path_case(const struct command *command, const char *path, void *context)
{
    assert(command->name);
    if (strchr(path, ' '))
        str_addf(context, "        \"%s\") path=\"%s\" ;;\n", below_root(path),
                 below_root(path));
}

static void add_choice_case(struct str *text, const char *path, const struct option_spec *spec)
{
    str_addf(text, "    \"%s --%s\"", below_root(path), spec->name);
    if (spec->letter)
        str_addf(text, " | \"%s -%c\"", below_root(path), spec->letter);
    str_add(text, ")\n        words=\"");
    for (const char *at = spec->choices ? spec->choices : ""; *at; at++)
        str_add_char(text, *at == '|' ? ' ' : *at);
    str_add(text, "\" ;;\n");
}

/* Options that take a value: their choices, or no word at all, which leaves files. */
static void add_value_cases(const struct command *command, const char *path, void *context)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].kind != OPTION_KIND_FLAG)
            add_choice_case(context, path, &command->options[i]);
}

static void add_words_case(const struct command *command, const char *path, void *context)
{
    struct str *text = context;
    size_t common_count = 0;
    const struct option_spec *common = option_common_specs(&common_count);

    str_addf(text, "    \"%s\")\n        words=\"", below_root(path));
    const char *separator = "";
    for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
        if (command->subcommands[i]->hidden)
            continue;
        str_addf(text, "%s%s", separator, command->subcommands[i]->name);
        separator = " ";
    }
    str_add(text, "\"\n        options=\"");
    for (size_t i = 0; i < command->option_count; i++)
        str_addf(text, "--%s ", command->options[i].name);
    for (size_t i = 0; i < common_count; i++)
        str_addf(text, "--%s%s", common[i].name, i + 1 < common_count ? " " : "");
    str_add(text, "\" ;;\n");
}

void command_completion_bash(const struct command *root, struct str *text)
{
    const char *name = root->name;

    str_addf(text, "# bash completion of %s: source this file, or install it as\n", name);
    str_addf(text, "# share/bash-completion/completions/%s\n_%s()\n{\n", name, name);
    str_add(text, "    local current=${COMP_WORDS[COMP_CWORD]} path= words= options= word\n"
                  "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                  "        case \"$path $word\" in\n");
    command_walk(root, name, add_path_case, text);
    str_add(text, "        esac\n    done\n    COMPREPLY=()\n"
                  "    case \"$path ${COMP_WORDS[COMP_CWORD-1]}\" in\n");
    command_walk(root, name, add_value_cases, text);
    str_add(text, "    *)\n        case \"$path\" in\n");
    command_walk(root, name, add_words_case, text);
    str_add(text, "        esac\n"
                  "        [[ $current == -* ]] && words=$options\n"
                  "        ;;\n    esac\n"
                  "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n");
    str_addf(text, "complete -o default -F _%s %s\n", name, name);
}
