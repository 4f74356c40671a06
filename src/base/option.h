/* SPDX-License-Identifier: Apache-2.0
 *
 * One table a command: it yields parsing, defaults, ranges, help, manual page and shell
 * completion. A command has subcommands, a run function, or both (`plan` and `plan
 * verify`). Options are written into a plain struct through offsets:
 *
 *     struct place_options { const char *existing; bool json; };
 *     static const struct option_spec options[] = {
 *         OPTION_TEXT('e', "existing", struct place_options, existing, "LAYOUT", NULL,
 *                     "instances that are already there"),
 *         OPTION_FLAG(0, "json", struct place_options, json, "print JSON"),
 *     };
 *
 * Every command also takes the common options (--help, --version, --verbose, --quiet);
 * options and positionals mix; `--` ends options; `-` is a positional; one-letter options
 * may be joined (`-vq`, `-oFILE`), long options may be `--name=value`; of an option given
 * twice the last counts. A wrong command line is E_USAGE, with the nearest known option or
 * command named.
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
    const char *name;         /* long name without dashes */
    const char *help;         /* one sentence, no full stop */
    const char *value_name;   /* "FILE", "N", NULL for a flag */
    const char *default_text; /* read like a value; NULL: zero/NULL/false */
    const char *choices;
    size_t offset; /* of the field in the command's struct */
    double minimum, maximum;
    enum option_kind kind;
    char letter;   /* 0: none */
    bool required; /* text, choices and lists alone */
};

#define OPTION_FLAG(c, n, s, m, h)                                                             \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_FLAG, .offset = offsetof(s, m),        \
        .help = (h)                                                                            \
    }
#define OPTION_INT(c, n, s, m, v, d, lo, hi, h)                                                \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_INT, .offset = offsetof(s, m),         \
        .value_name = (v), .default_text = (d), .minimum = (lo), .maximum = (hi), .help = (h)  \
    }
#define OPTION_NUMBER(c, n, s, m, v, d, lo, hi, h)                                             \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_NUMBER, .offset = offsetof(s, m),      \
        .value_name = (v), .default_text = (d), .minimum = (lo), .maximum = (hi), .help = (h)  \
    }
#define OPTION_TEXT(c, n, s, m, v, d, h)                                                       \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_TEXT, .offset = offsetof(s, m),        \
        .value_name = (v), .default_text = (d), .help = (h)                                    \
    }
#define OPTION_CHOICE(c, n, s, m, ch, d, h)                                                    \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_CHOICE, .offset = offsetof(s, m),      \
        .value_name = (ch), .choices = (ch), .default_text = (d), .help = (h)                  \
    }
#define OPTION_LIST(c, n, s, m, v, h)                                                          \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_LIST, .offset = offsetof(s, m),        \
        .value_name = (v), .help = (h)                                                         \
    }

/* The same without a default: leaving them out is E_USAGE. */
#define OPTION_TEXT_REQUIRED(c, n, s, m, v, h)                                                 \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_TEXT, .offset = offsetof(s, m),        \
        .value_name = (v), .required = true, .help = (h)                                       \
    }
#define OPTION_LIST_REQUIRED(c, n, s, m, v, h)                                                 \
    {                                                                                          \
        .letter = (c), .name = (n), .kind = OPTION_KIND_LIST, .offset = offsetof(s, m),        \
        .value_name = (v), .required = true, .help = (h)                                       \
    }

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
    const char *version;                      /* the root's alone: for --version */
    bool hidden; /* run by the program itself: in no list, completion or manual */
};

/* The options that every command takes. A command's own option of the same letter wins. */
struct option_common {
    bool help, version, verbose, quiet;
};

struct parsed_options {
    void *options;              /* the command's struct; NULL when it has none */
    struct arguments arguments; /* the positionals */
    struct option_common common;
};

/* Parses the words after the command's name. With --help or --version among them, missing
 * and superfluous words are no error. On failure there is nothing to free. */
int options_parse(const struct command *command, struct arguments words,
                  struct parsed_options *ret_parsed, struct error *err);
/* Frees what options_parse() made. */
void options_done(const struct command *command, struct parsed_options *parsed);

/* Follows words down the tree as far as they name commands, from *ret_command = root on;
 * appends " NAME" of each step to path and returns how many words that took. */
size_t command_find(const struct command *root, struct arguments words,
                    const struct command **ret_command, struct str *path);
/* E_USAGE: no such command under this one, with the nearest name. */
int command_unknown(const struct command *command, const char *word, struct error *err);

/* Finds the command for argv, parses, runs; prints help to stdout when asked. Returns the
 * exit status of the contract. Messages go to stderr as "tranche PATH: text"; those about
 * the user's files (E_INPUT) stand alone, so that they begin with FILE:LINE:COL. E_USAGE
 * is followed by two lines that say how to get help. A failed write to stdout is E_IO;
 * when its reader has gone nothing is said. */
int command_main(const struct command *root, int argc, char **argv);

/* Whole help text of a command, 80 columns, with its subcommands and options. */
void command_help(const struct command *command, const char *path, struct str *text);
/* The manual page of the whole tree in roff, man(7) macros. */
void command_manual(const struct command *root, struct str *text);
/* The completion script for bash: commands, options and the words of choices. */
void command_completion_bash(const struct command *root, struct str *text);

/* For all that reads the table: each subcommand, depth first, parents before children. */
void command_walk(const struct command *command, const char *path,
                  void (*visit)(const struct command *command, const char *path, void *context),
                  void *context);
/* The common options, as a table over struct option_common. */
const struct option_spec *option_common_specs(size_t *ret_count);
/* Appends "default 1, 0 to 10, required": what the table says beyond its sentence. */
void option_facts(const struct option_spec *spec, struct str *text);

/* For "did you mean": the first candidate that word abbreviates, else the one nearest by
 * edit distance (at most 2, or a third of the word's length; 1 for words of two or three
 * letters), else NULL. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

#endif
