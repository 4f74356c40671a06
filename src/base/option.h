/* SPDX-License-Identifier: Apache-2.0
 *
 * One table a command: it yields parsing, defaults, ranges, help, manual page and shell
 * completion. A command has either subcommands or a run function. Options are written
 * into a plain struct through offsets:
 *
 *     struct place_options { const char *existing; bool json; };
 *     static const struct option_spec options[] = {
 *         OPTION_TEXT('e', "existing", struct place_options, existing, "LAYOUT", NULL,
 *                     "instances that are already there"),
 *         OPTION_FLAG(0, "json", struct place_options, json, "print JSON"),
 *     };
 *
 * Every command also takes --help; options and positionals mix; `--` ends options;
 * long options may be `--name=value`. A wrong command line is E_USAGE, with the nearest
 * known option or command named, and two lines that say how to get help.
 */
#ifndef TRANCHE_BASE_OPTION_H
#define TRANCHE_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

enum option_kind {
    OPTION_KIND_FLAG,   /* bool */
    OPTION_KIND_INT,    /* long long in [minimum, maximum] */
    OPTION_KIND_NUMBER, /* double in [minimum, maximum] */
    OPTION_KIND_TEXT,   /* const char *, borrowed from argv */
    OPTION_KIND_CHOICE, /* const char *, one of `choices` ("a|b|c") */
    OPTION_KIND_LIST,   /* struct option_list: may be given several times */
    OPTION_KIND_COUNT
};

struct option_list {
    const char **items; /* owned by the options (options_done) */
    size_t count;
};

struct option_spec {
    char letter;      /* 0: none */
    const char *name; /* long name without dashes */
    enum option_kind kind;
    size_t offset;
    const char *value_name;   /* "FILE", "N", NULL for a flag */
    const char *default_text; /* read like a value; NULL: zero/NULL/false */
    double minimum, maximum;
    const char *choices;
    bool required;
    const char *help; /* one sentence, no full stop */
};

#define OPTION_FLAG(c, n, s, m, h)                                                         \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_FLAG, .offset = offsetof(s, m),       \
     .help = (h)}
#define OPTION_INT(c, n, s, m, v, d, lo, hi, h)                                            \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_INT, .offset = offsetof(s, m),        \
     .value_name = (v), .default_text = (d), .minimum = (lo), .maximum = (hi), .help = (h)}
#define OPTION_NUMBER(c, n, s, m, v, d, lo, hi, h)                                         \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_NUMBER, .offset = offsetof(s, m),     \
     .value_name = (v), .default_text = (d), .minimum = (lo), .maximum = (hi), .help = (h)}
#define OPTION_TEXT(c, n, s, m, v, d, h)                                                   \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_TEXT, .offset = offsetof(s, m),       \
     .value_name = (v), .default_text = (d), .help = (h)}
#define OPTION_CHOICE(c, n, s, m, ch, d, h)                                                \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_CHOICE, .offset = offsetof(s, m),     \
     .value_name = (ch), .choices = (ch), .default_text = (d), .help = (h)}
#define OPTION_LIST(c, n, s, m, v, h)                                                      \
    {.letter = (c), .name = (n), .kind = OPTION_KIND_LIST, .offset = offsetof(s, m),       \
     .value_name = (v), .help = (h)}

struct arguments {
    const char **items; /* positionals, borrowed */
    size_t count;
};

struct command {
    const char *name;
    const char *summary;     /* one line for lists */
    const char *positionals; /* "BOARD LAYOUT", "PLAN.json", "[FILE…]"; NULL: none */
    size_t arguments_min, arguments_max; /* SIZE_MAX: any number */
    const char *description; /* paragraphs for help and manual; blank line separates */
    const char *examples;    /* one command line a line, or NULL */
    const struct option_spec *options;
    size_t option_count;
    size_t options_size; /* sizeof the options struct */
    /* Returns 0 or a negative error code; the caller prints err to stderr and exits with
     * error_exit_status(). `options` points to the filled struct. */
    int (*run)(const void *options, struct arguments arguments, struct error *err);
    const struct command *const *subcommands; /* NULL-terminated, or NULL */
};

/* Parses argv (the words after the command's name) into *options (options_size bytes,
 * zeroed and defaulted here) and *ret_arguments; `path` ("layout place") is for messages.
 * *ret_help is true when --help stands there. Free with options_done(). */
int options_parse(const struct command *command, const char *path, size_t count,
                  const char **words, void *options, struct arguments *ret_arguments,
                  bool *ret_help, struct error *err);
void options_done(const struct command *command, void *options,
                  struct arguments *arguments);

/* Finds the command for argv, parses, runs; prints help to stdout when asked. The exit
 * status of the contract. Messages go to stderr as "tranche PATH: text". */
int command_main(const struct command *root, int argc, char **argv);

/* Whole help text of a command, 80 columns, with its subcommands or options. */
void command_help(const struct command *command, const char *path, struct str *text);
/* roff manual page (man(7)) of the whole tree; bash completion script. */
void command_manual(const struct command *root, const char *version, struct str *text);
void command_completion_bash(const struct command *root, struct str *text);

/* The candidate nearest to word by edit distance (at most 2, or a third of its length),
 * or NULL: for "did you mean". */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

#endif
