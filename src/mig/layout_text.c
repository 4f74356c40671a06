/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-line text form of a layout: `4g.20gb@0 2g.10gb@4 1g.5gb@6`. Grammar in
 * docs/spec/layout.md.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "mig/layout.h"
#include "mig/rules.h"

static const char blanks[] = " \t\r\n";

/* More reads as one more than this; either is too many, and a message says which. */
static const long long number_max = 999999999999999;

enum { FAR_DIGITS_MAX = 60 }; /* of an impossible start, in a message */

/* What one entry says: `3x1g@4` is {3, profile, 4, "4"}. */
struct entry {
    long long repeat;
    int profile;
    int start;              /* at most INT8_MAX + 1 */
    const char *start_text; /* as written */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits, saturating; the number of characters read. */
static size_t digits_read(const char *text, long long *ret)
{
    size_t length = 0;
    long long value = 0;

    assert(ret);
    for (; is_digit(text[length]); length++)
        value = value > number_max ? value : value * 10 + (text[length] - '0');
    *ret = value > number_max ? number_max + 1 : value;
    return length;
}

static int syntax_error(const char *word, const char *what, struct error *err)
{
    assert(word && what);
    return error_set(err, E_INPUT,
                     "layout entry \"%.60s\": %s; expected [COUNTx]PROFILE[@START], as in "
                     "3g.20gb@4, 2g or 3x1g",
                     word, what);
}

/* The `3x` of `3x1g`, if any; how many characters it took, or a negative code. */
static int repeat_read(const char *word, long long *ret_repeat, struct error *err)
{
    long long repeat;
    size_t length = digits_read(word, &repeat);

    assert(ret_repeat);
    *ret_repeat = 1;
    if (length == 0 || word[length] != 'x')
        return 0;
    if (repeat == 0)
        return syntax_error(word, "the count must be 1 or more", err);
    *ret_repeat = repeat;
    return (int)length + 1;
}

/* The digits after "@". */
static int start_read(const char *word, const char *text, int *ret_start, struct error *err)
{
    long long start;
    size_t length = digits_read(text, &start);

    assert(text > word);
    *ret_start = start > INT8_MAX ? INT8_MAX + 1 : (int)start;
    if (length == 0 || text[length])
        return syntax_error(word, "the start after @ must be a memory unit, a whole number",
                            err);
    return 0;
}

static int entry_parse(const struct mig_board *board, const char *word, struct entry *ret_entry,
                       struct error *err)
{
    CLEANUP(str_done) struct str name = STR_EMPTY;
    struct entry entry = {.start = MIG_START_ANY};
    int skip = repeat_read(word, &entry.repeat, err);
    const char *at = strchr(word, '@');

    assert(ret_entry);
    if (skip < 0)
        return skip;
    str_add_bytes(&name, word + skip,
                  at ? (size_t)(at - word) - (size_t)skip : strlen(word + skip));
    if (!name.length)
        return syntax_error(word, "there is no profile", err);
    if (mig_profile_get(board, name.bytes, &entry.profile, err) < 0)
        return -E_INPUT;
    if (at && start_read(word, at + 1, &entry.start, err) < 0)
        return -E_INPUT;
    entry.start_text = at ? at + 1 : NULL;
    *ret_entry = entry;
    return 0;
}

/* A start that a struct mig_instance cannot even hold is illegal on every board. */
static void far_start(const struct mig_board *board, const struct entry *entry,
                      struct str *violation)
{
    const struct mig_profile *profile = &board->profiles[entry->profile];
    bool cut = strlen(entry->start_text) > FAR_DIGITS_MAX;

    assert(entry->start > INT8_MAX);
    str_addf(violation, "rule 1 (starts): %s@%.*s%s: %s may start at memory unit ",
             profile->name, (int)FAR_DIGITS_MAX, entry->start_text, cut ? "…" : "",
             profile->name);
    mig_units_text(profile->starts, "or", violation);
}

/* What parsing knows: the layout as far as it fits, and the instances in all. */
struct parse {
    const struct mig_board *board;
    struct mig_layout layout;
    long long total; /* at most number_max + 1 */
    struct str far;  /* what is wrong with the first start beyond every board */
};

static void parse_done(struct parse *parse)
{
    str_done(&parse->far);
}

static void entry_add(struct parse *parse, const struct entry *entry)
{
    assert(entry->repeat > 0);
    parse->total += entry->repeat;
    if (parse->total > number_max)
        parse->total = number_max + 1;
    if (entry->start > INT8_MAX) {
        if (!parse->far.length)
            far_start(parse->board, entry, &parse->far);
        return;
    }
    for (long long i = 0; i < entry->repeat && parse->layout.count < MIG_INSTANCES_MAX; i++)
        parse->layout.instances[parse->layout.count++] = (struct mig_instance){
            .profile = (int8_t)entry->profile, .start = (int8_t)entry->start};
}

/* Cuts the next entry off *rest into `word`. Blanks separate, and so does one comma. */
static int word_next(const char **rest, struct str *word, struct error *err)
{
    size_t length = strcspn(*rest, " \t\r\n,");

    assert(word);
    str_clear(word);
    str_add_bytes(word, *rest, length);
    *rest += length;
    *rest += strspn(*rest, blanks);
    if (!word->length)
        return error_set(err, E_INPUT,
                         "layout: an entry is missing beside a comma; expected a list like "
                         "3g.20gb@4,2g,3x1g, or - for the empty layout");
    if (**rest != ',')
        return 0;
    ++*rest;
    *rest += strspn(*rest, blanks);
    if (**rest == '\0' || **rest == ',')
        return error_set(err, E_INPUT,
                         "layout: an entry is missing after the comma that follows \"%.60s\"",
                         word->bytes);
    return 0;
}

int mig_layout_parse(const struct mig_board *board, const char *text,
                     struct mig_layout *ret_layout, struct error *err)
{
    CLEANUP(str_done) struct str word = STR_EMPTY;
    CLEANUP(parse_done) struct parse parse = {.board = board, .far = STR_EMPTY};
    const char *rest = text + strspn(text, blanks);
    bool empty = *rest == '-' && rest[1 + strspn(rest + 1, blanks)] == '\0';

    assert(board && ret_layout);
    if (!*rest)
        return error_set(err, E_INPUT, "layout: no text; expected instances, or - for none");
    while (*rest && !empty) {
        struct entry entry = {0};

        if (word_next(&rest, &word, err) < 0 || entry_parse(board, word.bytes, &entry, err) < 0)
            return -E_INPUT;
        entry_add(&parse, &entry);
    }
    if (parse.total > MIG_INSTANCES_MAX)
        return error_set(err, E_NO, "rule 5 (instances): %s%lld instances, %s holds at most %d",
                         parse.total > number_max ? "more than " : "",
                         parse.total > number_max ? number_max : parse.total, board->slug,
                         board->max_instances);
    if (parse.far.length)
        return error_set(err, E_NO, "%s", parse.far.bytes);
    mig_layout_sort(&parse.layout);
    assert(parse.layout.count == parse.total);
    mig_layout_assert_valid(board, &parse.layout);
    *ret_layout = parse.layout;
    return 0;
}

void mig_layout_format(const struct mig_board *board, const struct mig_layout *layout,
                       struct str *text)
{
    assert(board && layout && text);
    if (layout->count == 0)
        str_add_char(text, '-');
    for (int i = 0; i < layout->count; i++) {
        if (i)
            str_add_char(text, ' ');
        mig_instance_text(board, layout->instances[i], text);
    }
}
