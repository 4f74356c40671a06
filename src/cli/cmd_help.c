/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche help [COMMAND…]`: the help of a command; the manual page and the completion
 * script of all.
 */
#include <assert.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/output.h"

struct help_options {
    bool manual;
    const char *completion;
    const char *output;
};

static const struct option_spec options[] = {
    OPTION_FLAG(0, "man", struct help_options, manual,
                "print the manual page (`tranche help --man | man -l -`)"),
    OPTION_CHOICE(0, "completion", struct help_options, completion, "bash", NULL,
                  "print the completion script of this shell"),
    OPTION_TEXT('o', "output", struct help_options, output, "FILE", NULL,
                "write to FILE instead of standard output"),
};

static int add_command_help(struct arguments words, struct str *text, struct error *err)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    const struct command *command = NULL;

    str_add(&path, command_root.name);
    size_t taken = command_find(&command_root, words, &command, &path);
    assert(command && taken <= words.count);
    if (taken < words.count)
        return command_unknown(command, words.items[taken], err);
    command_help(command, path.bytes, text);
    return 0;
}

static int run(const void *raw, struct arguments arguments, struct error *err)
{
    const struct help_options *given = raw;
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if ((given->manual || given->completion) && arguments.count > 0)
        return error_set(err, E_USAGE,
                         "--man and --completion are of the whole program; "
                         "unexpected argument '%s'",
                         arguments.items[0]);
    if (given->manual && given->completion)
        return error_set(err, E_USAGE, "--man and --completion exclude each other");
    if (given->manual)
        command_manual(&command_root, &text);
    else if (given->completion)
        command_completion_bash(&command_root, &text);
    else if (add_command_help(arguments, &text, err) < 0)
        return -err->code;
    return output_write(given->output, &text, err);
}

const struct command cmd_help = {
    .name = "help",
    .summary = "what a command does and takes",
    .positionals = "[COMMAND…]",
    .arguments_max = 8,
    .description = "Prints the help of the named command, as its --help does; without a "
                   "name the list of commands.",
    .examples =
        "tranche help layout place\n"
        "tranche help --completion bash > ~/.local/share/bash-completion/completions/tranche",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct help_options),
    .run = run,
};
