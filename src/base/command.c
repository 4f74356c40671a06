/* SPDX-License-Identifier: Apache-2.0
 *
 * From the words of a command line to the command that runs, and from its result to the
 * exit status of the contract.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/option.h"
#include "base/vec.h"

static const struct command *find_subcommand(const struct command *command, const char *name)
{
    for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
        if (strcmp(command->subcommands[i]->name, name) == 0)
            return command->subcommands[i];
    return NULL;
}

size_t command_find(const struct command *root, struct arguments words,
                    const struct command **ret_command, struct str *path)
{
    size_t taken = 0;

    *ret_command = root;
    for (; taken < words.count; taken++) {
        const struct command *next = find_subcommand(*ret_command, words.items[taken]);
        if (!next)
            break;
        str_addf(path, " %s", next->name);
        *ret_command = next;
    }
    return taken;
}

int command_unknown(const struct command *command, const char *word, struct error *err)
{
    VEC(const char *) names = {0};

    for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
        if (!command->subcommands[i]->hidden)
            vec_add(&names, command->subcommands[i]->name);
    const char *nearest = text_nearest(word, names.data, names.count);
    vec_done(&names);
    return error_set(err, E_USAGE, "unknown command '%s'%s%s%s", word,
                     nearest ? " (did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?)" : "");
}

void command_walk(const struct command *command, const char *path,
                  void (*visit)(const struct command *command, const char *path, void *context),
                  void *context)
{
    visit(command, path, context);
    for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
        if (command->subcommands[i]->hidden)
            continue;
        CLEANUP(str_done) struct str deeper = STR_EMPTY;
        str_addf(&deeper, "%s %s", path, command->subcommands[i]->name);
        command_walk(command->subcommands[i], deeper.bytes, visit, context);
    }
}

/* What one run of the program is about. */
struct invocation {
    const struct command *root;
    const struct command *command;
    const char *path; /* "tranche layout place" */
    struct arguments words;
    struct option_common common; /* given before the command's name */
};

/* Text that quotes the user's input must not drive the terminal. Further lines belong to the
 * first: `line_break` indents them, unless each names its place in a file. */
static void add_safely(struct str *line, const char *text, const char *line_break)
{
    for (; *text; text++)
        if (*text == '\n')
            str_add(line, line_break);
        else if (iscntrl((unsigned char)*text))
            str_addf(line, "\\x%02x", (unsigned char)*text);
        else
            str_add_char(line, *text);
}

static void print_message(const struct invocation *call, const struct error *err)
{
    CLEANUP(str_done) struct str line = STR_EMPTY;

    if (err->code != E_INPUT)
        str_addf(&line, "%s: ", call->path);
    add_safely(&line, err->text, err->code != E_INPUT ? "\n  " : "\n");
    fprintf(stderr, "%s\n", line.bytes);
    if (err->code != E_USAGE)
        return;
    const char *positionals = call->command->positionals;
    fprintf(stderr, "usage: %s%s%s%s\n", call->path,
            call->command->run ? " [OPTION…]" : " COMMAND", positionals ? " " : "",
            positionals ? positionals : "");
    const char *rest = strchr(call->path, ' ');
    fprintf(stderr, "help:  %s help%s\n", call->root->name, rest ? rest : "");
}

/* Whether stdout is a pipe that nobody reads any more: `tranche … | head` is done, and
 * needs no complaint. */
static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

/* Flushes stdout; the exit status for a run that ended with err. */
static int finish(const struct invocation *call, struct error *err)
{
    bool failed_before = ferror(stdout);
    errno = 0;
    bool failed = fflush(stdout) != 0 || failed_before;

    if (err->code == E_NONE && failed)
        error_set(err, E_IO, "cannot write to standard output: %s",
                  errno ? strerror(errno) : "an earlier write failed");
    bool silent = failed && err->code == E_IO && reader_is_gone();
    if (err->code != E_NONE && err->text[0] && !silent)
        print_message(call, err);
    return error_exit_status(err->code);
}

static void print_help(const struct invocation *call, FILE *file)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    command_help(call->command, call->path, &text);
    fputs(text.bytes, file);
}

/* A command without run was named, and nothing under it. */
static int refuse_incomplete(const struct invocation *call, const struct parsed_options *parsed,
                             struct error *err)
{
    if (parsed->arguments.count > 0)
        return command_unknown(call->command, parsed->arguments.items[0], err);
    print_help(call, stderr);
    return error_set(err, E_USAGE, "a command is missing");
}

static int execute(const struct invocation *call, struct parsed_options *parsed,
                   struct error *err)
{
    const struct command *command = call->command;
    struct option_common common = parsed->common;

    /* A name that is none is refused before help: `tranche bogus --help`. */
    if (!command->run && parsed->arguments.count > 0)
        return refuse_incomplete(call, parsed, err);
    if (common.help || call->common.help) {
        print_help(call, stdout);
        return 0;
    }
    if (common.version || call->common.version) {
        printf("%s %s\n", call->root->name, call->root->version);
        return 0;
    }
    if (common.verbose || call->common.verbose)
        log_set_level(LOG_DEBUG);
    if (common.quiet || call->common.quiet)
        log_set_level(LOG_ERROR);
    if (!command->run)
        return refuse_incomplete(call, parsed, err);
    return command->run(parsed->options, parsed->arguments, err);
}

/* What follows a command without run can only be a wrong name. After one with both run and
 * subcommands, `tranche plan verfy x` is more likely a wrong name than a wrong argument. */
static int refuse_argument(const struct command *command, struct arguments words,
                           struct error *err)
{
    bool takes_none = !command->run || (command->subcommands && command->arguments_max == 0);

    if (takes_none && words.count > 0 && words.items[0][0] != '-')
        return command_unknown(command, words.items[0], err);
    return 0;
}

static int run_call(const struct invocation *call, struct error *err)
{
    struct parsed_options parsed = {0};
    struct command command = *call->command;
    bool asked = call->common.help || call->common.version;

    if (!command.run)
        command.arguments_max = SIZE_MAX;
    int result = refuse_argument(call->command, call->words, err);
    if (result == 0 && !asked)
        result = options_parse(&command, call->words, &parsed, err);
    if (result < 0)
        return result;
    result = execute(call, &parsed, err);
    options_done(&command, &parsed);
    return result;
}

/* The options before the first command's name: the common ones. Returns how many words. */
static int parse_leading(struct invocation *call, struct error *err)
{
    struct arguments leading = {call->words.items, 0};
    struct command common_only = {.name = call->root->name};
    struct parsed_options parsed = {0};

    while (leading.count < call->words.count && call->words.items[leading.count][0] == '-')
        leading.count++;
    int result = options_parse(&common_only, leading, &parsed, err);
    if (result < 0)
        return result;
    call->common = parsed.common;
    call->words.items += leading.count;
    call->words.count -= leading.count;
    options_done(&common_only, &parsed);
    return 0;
}

int command_main(const struct command *root, int argc, char **argv)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    struct error err = {0};
    size_t count = argc > 1 ? (size_t)argc - 1 : 0;
    struct invocation call = {root, root, root->name, {(const char **)argv + 1, count}, {0}};

    assert(root->subcommands && root->version);
    if (parse_leading(&call, &err) < 0)
        return finish(&call, &err);
    str_add(&path, root->name);
    size_t taken = command_find(root, call.words, &call.command, &path);
    call.path = path.bytes;
    call.words.items += taken;
    call.words.count -= taken;
    if (run_call(&call, &err) == 0)
        err.code = E_NONE;
    return finish(&call, &err);
}
