/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table: parsing, defaults, ranges, suggestions, help, manual, completion, and
 * the exit status of a whole run.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/option.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

struct sample_options {
    bool json, fast;
    long long count;
    double ratio;
    const char *output, *mode;
    struct option_list labels;
};

static const struct option_spec sample_specs[] = {
    OPTION_FLAG('j', "json", struct sample_options, json, "print JSON"),
    OPTION_FLAG('f', "fast", struct sample_options, fast, "be fast"),
    OPTION_INT('n', "count", struct sample_options, count, "N", "3", 1, 9, "how many"),
    OPTION_NUMBER('r', "ratio", struct sample_options, ratio, "X", "0.5", DBL_MIN, 1,
                  "which part"),
    OPTION_TEXT('o', "output", struct sample_options, output, "FILE", NULL, "where to"),
    OPTION_CHOICE('m', "mode", struct sample_options, mode, "exact|greedy|mcts", "exact",
                  "how to plan"),
    OPTION_LIST('l', "label", struct sample_options, labels, "KEY", "mark it"),
};

/* The code that run_sample() fails with, and what it saw. */
static enum error_code sample_failure;
static size_t sample_runs;

static int run_sample(const void *options, struct arguments arguments, struct error *err)
{
    const struct sample_options *given = options;

    sample_runs++;
    for (size_t i = 0; i < arguments.count; i++)
        printf("argument %s\n", arguments.items[i]);
    printf("count %lld\n", given->count);
    return sample_failure ? error_set(err, sample_failure, "the \033[31msample failed") : 0;
}

static const struct command sample = {
    .name = "sample",
    .summary = "show what options do",
    .positionals = "FROM [TO]",
    .arguments_min = 1,
    .arguments_max = 2,
    .description = "One paragraph.\n\nAnother one.",
    .examples = "tool sample a b\ntool sample -n 3 a",
    .options = sample_specs,
    .option_count = COUNT(sample_specs),
    .options_size = sizeof(struct sample_options),
    .run = run_sample,
};

static int run_plain(const void *options, struct arguments arguments, struct error *err)
{
    (void)options, (void)arguments, (void)err;
    puts("plain");
    return 0;
}

struct verify_options {
    const char *services;
    struct option_list files;
};

static const struct option_spec verify_specs[] = {
    OPTION_TEXT_REQUIRED('s', "services", struct verify_options, services, "FILE", "what"),
    OPTION_LIST_REQUIRED('m', "measurements", struct verify_options, files, "FILE", "how fast"),
};

static const struct command verify = {
    .name = "verify",
    .summary = "check",
    .options = verify_specs,
    .option_count = COUNT(verify_specs),
    .options_size = sizeof(struct verify_options),
    .run = run_plain,
};

/* A command that runs itself and has one below it. */
static const struct command plan = {
    .name = "plan",
    .summary = "plan something",
    .run = run_plain,
    .subcommands = (const struct command *const[]){&verify, NULL},
};

static const struct command group = {
    .name = "group",
    .summary = "things",
    .subcommands = (const struct command *const[]){&sample, &plan, NULL},
};

static const struct command tool = {
    .name = "tool",
    .summary = "a tool for tests",
    .description = "What it is.\n.not a request\n'nor this \\ one",
    .subcommands = (const struct command *const[]){&group, &plan, &sample, NULL},
    .version = "1.2.3",
};

enum { WORD_LIMIT = 16 };

/* Splits at blanks into words; `_` stands for a blank within a word. */
static size_t split(char *line, const char **words)
{
    size_t count = 0;

    for (char *rest = line, *word = strsep(&rest, " "); word; word = strsep(&rest, " "))
        if (*word) {
            assert_true(count < WORD_LIMIT);
            words[count++] = word;
        }
    return count;
}

static void render(const struct parsed_options *parsed, struct str *text)
{
    const struct sample_options *options = parsed->options;

    str_addf(text, "%s%s%s%s", options->json ? "json " : "", options->fast ? "fast " : "",
             parsed->common.verbose ? "verbose " : "", parsed->common.quiet ? "quiet " : "");
    str_addf(text, "count=%lld ratio=%g output=%s mode=%s", options->count, options->ratio,
             options->output ? options->output : "-", options->mode);
    for (size_t i = 0; i < options->labels.count; i++)
        str_addf(text, " label=%s", options->labels.items[i]);
    for (size_t i = 0; i < parsed->arguments.count; i++)
        str_addf(text, " %s", parsed->arguments.items[i]);
}

static const struct {
    const char *words, *expected;
} good[] = {
    {"a", "count=3 ratio=0.5 output=- mode=exact a"},
    {"a b", "count=3 ratio=0.5 output=- mode=exact a b"},
    {"--json a --fast", "json fast count=3 ratio=0.5 output=- mode=exact a"},
    {"-jf a", "json fast count=3 ratio=0.5 output=- mode=exact a"},
    {"-jn 5 a", "json count=5 ratio=0.5 output=- mode=exact a"},
    {"-n5 a", "count=5 ratio=0.5 output=- mode=exact a"},
    {"--count=5 a", "count=5 ratio=0.5 output=- mode=exact a"},
    {"--count 5 a", "count=5 ratio=0.5 output=- mode=exact a"},
    {"--count 5 --count 6 a", "count=6 ratio=0.5 output=- mode=exact a"},
    {"--ratio=1 a", "count=3 ratio=1 output=- mode=exact a"},
    {"--ratio 1e-3 a", "count=3 ratio=0.001 output=- mode=exact a"},
    {"-o file a", "count=3 ratio=0.5 output=file mode=exact a"},
    {"--output= a", "count=3 ratio=0.5 output= mode=exact a"},
    {"--output=--json a", "count=3 ratio=0.5 output=--json mode=exact a"},
    {"--output=a=b a", "count=3 ratio=0.5 output=a=b mode=exact a"},
    {"-o - a", "count=3 ratio=0.5 output=- mode=exact a"},
    {"--mode greedy a", "count=3 ratio=0.5 output=- mode=greedy a"},
    {"-l x --label=y a -lz", "count=3 ratio=0.5 output=- mode=exact label=x label=y label=z a"},
    {"- a", "count=3 ratio=0.5 output=- mode=exact - a"},
    {"-- --json -x", "count=3 ratio=0.5 output=- mode=exact --json -x"},
    {"a -- -b", "count=3 ratio=0.5 output=- mode=exact a -b"},
    {"-vq a", "verbose quiet count=3 ratio=0.5 output=- mode=exact a"},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        CLEANUP(free_ptr) char *line = strdup(good[i].words);
        CLEANUP(str_done) struct str got = STR_EMPTY;
        const char *words[WORD_LIMIT];
        struct arguments given = {words, split(line, words)};
        struct parsed_options parsed;
        struct error err = {0};
        if (options_parse(&sample, given, &parsed, &err) < 0)
            fail_msg("%s: %s", good[i].words, err.text);
        render(&parsed, &got);
        assert_string_equal(got.bytes, good[i].expected);
        options_done(&sample, &parsed);
    }
}

static const struct {
    const char *words, *message;
} bad[] = {
    {"", "needs FROM [TO]"},
    {"a b c", "unexpected argument 'c'"},
    {"--jsn a", "unknown option --jsn (did you mean --json?)"},
    {"--outputs=x a", "unknown option --outputs (did you mean --output?)"},
    {"--out x a", "unknown option --out (did you mean --output?)"},
    {"--verbos a", "unknown option --verbos (did you mean --verbose?)"},
    {"--frobnicate a", "unknown option --frobnicate"},
    {"-x a", "unknown option -x"},
    {"-jx a", "unknown option -x"},
    {"-5 a", "unknown option -5"},
    {"--json=1 a", "option --json takes no value, got '1'"},
    {"a --count", "option --count needs a value, N"},
    {"a -n", "option --count needs a value, N"},
    {"a -o --json", "option --output needs a value, FILE, but option --json follows "
                    "(--output=--json if it is the value)"},
    {"--count 0 a", "option --count is '0', expected a whole number from 1 to 9"},
    {"--count 10 a", "option --count is '10', expected a whole number from 1 to 9"},
    {"--count 2.5 a", "option --count is '2.5', expected a whole number from 1 to 9"},
    {"--count 99999999999999999999 a",
     "option --count is '99999999999999999999', expected a whole number from 1 to 9"},
    {"--count= a", "option --count is '', expected a whole number from 1 to 9"},
    {"--ratio nan a", "option --ratio is 'nan', expected a number above 0 and at most 1"},
    {"--ratio 1e400 a", "option --ratio is '1e400', expected a number above 0 and at most 1"},
    {"--ratio 0 a", "option --ratio is '0', expected a number above 0 and at most 1"},
    {"--ratio -1 a", "option --ratio is '-1', expected a number above 0 and at most 1"},
    {"--mode greddy a", "option --mode is 'greddy', expected one of exact|greedy|mcts (did you "
                        "mean 'greedy'?)"},
    {"--mode exact|greedy a", "option --mode is 'exact|greedy', expected one of "
                              "exact|greedy|mcts"},
    {"--mode= a", "option --mode is '', expected one of exact|greedy|mcts"},
};

static void test_refuse(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        CLEANUP(free_ptr) char *line = strdup(bad[i].words);
        const char *words[WORD_LIMIT];
        struct arguments given = {words, split(line, words)};
        struct parsed_options parsed;
        struct error err = {0};
        if (options_parse(&sample, given, &parsed, &err) != -E_USAGE)
            fail_msg("'%s' was accepted", bad[i].words);
        assert_string_equal(err.text, bad[i].message);
    }
}

static void test_required(void **state)
{
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"-s a -m b", NULL},
        {"-m b", "option --services FILE is required"},
        {"-s a", "option --measurements FILE is required"},
        {"--help", NULL},
        {"--version", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(free_ptr) char *line = strdup(cases[i].words);
        const char *words[WORD_LIMIT];
        struct arguments given = {words, split(line, words)};
        struct parsed_options parsed;
        struct error err = {0};
        int result = options_parse(&verify, given, &parsed, &err);
        assert_int_equal(result, cases[i].message ? -E_USAGE : 0);
        if (cases[i].message)
            assert_string_equal(err.text, cases[i].message);
        else
            options_done(&verify, &parsed);
    }
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"plan", "place", "layout", "transition", "x"};
    static const struct {
        const char *word, *expected;
    } cases[] = {
        {"plan", "plan"},
        {"plna", "plan"},
        {"palce", "place"},
        {"layuot", "layout"},
        {"lay", "layout"},
        {"transitoin", "transition"},
        {"transistions", "transition"},
        {"zzz", NULL},
        {"q", NULL},
        {"", NULL},
        {"frobnicate", NULL},
        {"pl", NULL},
    };
    char long_word[200] = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *got = text_nearest(cases[i].word, names, COUNT(names));
        if (!cases[i].expected)
            assert_null(got);
        else if (!got || strcmp(got, cases[i].expected) != 0)
            fail_msg("'%s': '%s'", cases[i].word, got ? got : "none");
    }
    memset(long_word, 'a', sizeof long_word - 1);
    assert_null(text_nearest(long_word, names, COUNT(names)));
    assert_null(text_nearest("a", (const char *const[]){long_word}, 1));
}

/* --- whole runs --- */

static int redirect(int fd, FILE *to)
{
    int saved = dup(fd);

    assert_true(saved >= 0 && dup2(fileno(to), fd) == fd);
    return saved;
}

static void restore(int fd, int saved)
{
    assert_int_equal(dup2(saved, fd), fd);
    close(saved);
}

static void read_back(FILE *file, struct str *text)
{
    char buffer[4096];

    rewind(file);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
        str_add_bytes(text, buffer, got);
    fclose(file);
}

/* Runs command_main() with the words; its status, stdout and stderr. */
static int run_main(const char *line, struct str *out, struct str *err)
{
    CLEANUP(free_ptr) char *copy = strdup(line);
    const char *words[WORD_LIMIT + 2] = {"tool"};
    size_t count = split(copy, words + 1) + 1;
    FILE *out_file = tmpfile(), *err_file = tmpfile();

    assert_true(out_file && err_file);
    fflush(stdout);
    int saved_out = redirect(STDOUT_FILENO, out_file);
    int saved_err = redirect(STDERR_FILENO, err_file);
    int status = command_main(&tool, (int)count, (char **)words);
    fflush(stdout);
    restore(STDOUT_FILENO, saved_out);
    restore(STDERR_FILENO, saved_err);
    read_back(out_file, out);
    read_back(err_file, err);
    log_set_level(LOG_INFO);
    return status;
}

static const struct {
    const char *words;
    int status;
    const char *out, *err; /* beginnings */
} runs[] = {
    {"sample a", 0, "argument a\ncount 3\n", ""},
    {"group sample a b -n 4", 0, "argument a\nargument b\ncount 4\n", ""},
    {"plan", 0, "plain\n", ""},
    {"-q plan", 0, "plain\n", ""},
    {"plan verify -s a -m b", 0, "plain\n", ""},
    {"--version", 0, "tool 1.2.3\n", ""},
    {"plan verify --version", 0, "tool 1.2.3\n", ""},
    {"--version plan verify", 0, "tool 1.2.3\n", ""},
    {"group --version", 0, "tool 1.2.3\n", ""},
    {"--help", 0, "tool: a tool for tests\n", ""},
    {"group --help", 0, "tool group: things\n", ""},
    {"plan verify --help", 0, "tool plan verify: check\n", ""},
    {"-h plan verify", 0, "tool plan verify: check\n", ""},
    {"sample --help --count 5", 0, "tool sample: show what options do\n", ""},
    {"", 2, "", "tool: a tool for tests\n"},
    {"group", 2, "", "tool group: things\n"},
    {"pln", 2, "",
     "tool: unknown command 'pln' (did you mean 'plan'?)\nusage: tool COMMAND\nhelp:  tool "
     "help\n"},
    {"group sampel a", 2, "",
     "tool group: unknown command 'sampel' (did you mean 'sample'?)\nusage: tool group "
     "COMMAND\n"
     "help:  tool help group\n"},
    {"plan verfiy", 2, "", "tool plan: unknown command 'verfiy' (did you mean 'verify'?)\n"},
    {"group sample", 2, "",
     "tool group sample: needs FROM [TO]\nusage: tool group sample [OPTION…] FROM [TO]\nhelp:  "
     "tool help group sample\n"},
    {"--json sample a", 2, "", "tool: unknown option --json\n"},
    {"plan x\033[2J", 2, "", "tool plan: unknown command 'x\\x1b[2J'\n"},
};

static bool begins(const struct str *text, const char *prefix)
{
    return *prefix ? text_starts_with(text->bytes, prefix) : text->length == 0;
}

static void test_runs(void **state)
{
    (void)state;
    sample_failure = E_NONE;
    for (size_t i = 0; i < COUNT(runs); i++) {
        CLEANUP(str_done) struct str out = STR_EMPTY;
        CLEANUP(str_done) struct str err = STR_EMPTY;
        int status = run_main(runs[i].words, &out, &err);
        if (status != runs[i].status || !begins(&out, runs[i].out) ||
            !begins(&err, runs[i].err))
            fail_msg("'%s': status %d, out <%s>, err <%s>", runs[i].words, status, out.bytes,
                     err.bytes);
    }
}

static void test_exit_statuses(void **state)
{
    static const int statuses[E_CODE_COUNT] = {
        [E_NO] = 1,      [E_USAGE] = 2,       [E_INPUT] = 3,       [E_IO] = 4,
        [E_MISSING] = 4, [E_NOT_FOUND] = 4,   [E_BUSY] = 4,        [E_CONFLICT] = 4,
        [E_TIMEOUT] = 4, [E_UNSUPPORTED] = 4, [E_INTERRUPTED] = 4,
    };

    (void)state;
    for (int code = E_NO; code < E_CODE_COUNT; code++) {
        CLEANUP(str_done) struct str out = STR_EMPTY;
        CLEANUP(str_done) struct str err = STR_EMPTY;
        sample_failure = (enum error_code)code;
        assert_int_equal(run_main("sample a", &out, &err), statuses[code]);
        /* A complaint about a file begins with the file; none drives the terminal. */
        assert_true(begins(&err, code == E_INPUT
                                     ? "the \\x1b[31msample failed\n"
                                     : "tool sample: the \\x1b[31msample failed\n"));
    }
    sample_failure = E_NONE;
}

static void test_log_levels(void **state)
{
    CLEANUP(str_done) struct str out = STR_EMPTY;
    CLEANUP(str_done) struct str err = STR_EMPTY;

    (void)state;
    run_main("plan", &out, &err);
    assert_true(log_enabled(LOG_INFO) && !log_enabled(LOG_DEBUG));
}

/* --- texts made from the table --- */

static void test_help(void **state)
{
    static const char expected[] =
        "tool sample: show what options do\n\nusage: tool sample [OPTION…] FROM [TO]\n\n"
        "One paragraph.\n\nAnother one.\n\noptions:\n"
        "  -j, --json         print JSON\n"
        "  -f, --fast         be fast\n"
        "  -n, --count N      how many (default 3, 1 to 9)\n"
        "  -r, --ratio X      which part (default 0.5, above 0, at most 1)\n"
        "  -o, --output FILE  where to\n"
        "  -m, --mode exact|greedy|mcts\n"
        "                     how to plan (default exact)\n"
        "  -l, --label KEY    mark it (may be repeated)\n";
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    command_help(&sample, "tool sample", &text);
    text.bytes[text.length < strlen(expected) ? text.length : strlen(expected)] = '\0';
    assert_string_equal(text.bytes, expected);
}

static void test_manual(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    command_manual(&tool, &text);
    assert_true(text_starts_with(text.bytes, ".TH tool 1 \"\" \"tool 1.2.3\"\n"));
    assert_non_null(strstr(text.bytes, "\n\\&.not a request\n\\&'nor this \\e one\n"));
    assert_non_null(strstr(text.bytes, ".SS tool group sample FROM [TO]\n"));
    assert_non_null(strstr(text.bytes, ".SS tool plan verify\n"));
    assert_non_null(strstr(text.bytes, "\\fB\\-n\\fR, \\fB\\-\\-count\\fR \\fIN\\fR\nhow many "
                                       "(default 3, 1 to 9).\n"));
}

/* Each command and option of the tree stands in the completion script. */
static void check_completed(const struct command *command, const char *path, void *context)
{
    const struct str *text = context;
    const char *below = strchr(path, ' ');
    CLEANUP(str_done) struct str line = STR_EMPTY;

    str_addf(&line, "    \"%s\")\n", below ? below : "");
    assert_non_null(strstr(text->bytes, line.bytes));
    for (size_t i = 0; i < command->option_count; i++) {
        str_clear(&line);
        str_addf(&line, "--%s ", command->options[i].name);
        assert_non_null(strstr(text->bytes, line.bytes));
    }
}

static void test_completion(void **state)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    (void)state;
    command_completion_bash(&tool, &text);
    command_walk(&tool, "tool", check_completed, &text);
    assert_non_null(strstr(text.bytes, "\" sample --mode\" | \" sample -m\")\n"
                                       "        words=\"exact greedy mcts\" ;;\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),      cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_required),   cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_runs),       cmocka_unit_test(test_exit_statuses),
        cmocka_unit_test(test_log_levels), cmocka_unit_test(test_help),
        cmocka_unit_test(test_manual),     cmocka_unit_test(test_completion),
    };

    return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
