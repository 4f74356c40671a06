/* SPDX-License-Identifier: Apache-2.0
 *
 * Fleets by text.
 */
#include "mig/fleet.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"

enum { SLUG_MAX = 64 };

/* "8" or "*"; *ret gets the count or MIG_FLEET_UNLIMITED. */
static int count_parse(const char *word, const char *text, int *ret, struct error *err)
{
    long long count;

    assert(word && ret);
    if (strcmp(text, "*") == 0) {
        *ret = MIG_FLEET_UNLIMITED;
        return 0;
    }
    if (!text_to_int(text, 1, MIG_FLEET_COUNT_MAX, &count))
        return error_set(err, E_INPUT,
                         "fleet entry \"%.80s\": the count must be 1 to %d, or * for as many "
                         "as needed",
                         word, MIG_FLEET_COUNT_MAX);
    *ret = (int)count;
    return 0;
}

static struct mig_fleet_entry *entry_of(struct mig_fleet *fleet, const struct mig_board *board)
{
    for (int i = 0; i < fleet->count; i++)
        if (fleet->entries[i].board == board)
            return &fleet->entries[i];
    assert(fleet->count < MIG_FLEET_BOARDS_MAX); /* entries are distinct boards */
    fleet->entries[fleet->count] = (struct mig_fleet_entry){.board = board};
    return &fleet->entries[fleet->count++];
}

/* One entry, "a100-40gb:8", with room for the terminator after the slug. */
static int entry_parse(const char *word, struct mig_fleet *fleet, struct error *err)
{
    const char *colon = strchr(word, ':');
    const struct mig_board *board;
    struct mig_fleet_entry *entry;
    char slug[SLUG_MAX];
    size_t length;
    int count = 0;

    assert(fleet);
    if (!colon || colon == word)
        return error_set(err, E_INPUT,
                         "fleet entry \"%.80s\": expected BOARD:COUNT or BOARD:*, as in "
                         "a100-40gb:8",
                         word);
    length = (size_t)(colon - word);
    if (length >= sizeof(slug))
        length = sizeof(slug) - 1;
    memcpy(slug, word, length);
    slug[length] = '\0';
    if (mig_board_get(slug, &board, err) < 0)
        return error_wrap(err, "fleet entry \"%.80s\"", word);
    if (count_parse(word, colon + 1, &count, err) < 0)
        return -E_INPUT;
    entry = entry_of(fleet, board);
    if (count == MIG_FLEET_UNLIMITED || entry->count == MIG_FLEET_UNLIMITED)
        entry->count = MIG_FLEET_UNLIMITED;
    else if (entry->count + count > MIG_FLEET_COUNT_MAX)
        return error_set(err, E_INPUT, "fleet: more than %d GPUs of %s", MIG_FLEET_COUNT_MAX,
                         board->slug);
    else
        entry->count += count;
    return 0;
}

int mig_fleet_parse(const char *text, struct mig_fleet *ret_fleet, struct error *err)
{
    CLEANUP(str_done) struct str word = STR_EMPTY;
    struct mig_fleet fleet = {0};
    const char *rest = text;

    assert(text && ret_fleet);
    for (;;) {
        size_t length;

        rest += strspn(rest, " \t");
        length = strcspn(rest, ",");
        str_clear(&word);
        str_add_bytes(&word, rest, length);
        while (word.length && strchr(" \t\n", word.bytes[word.length - 1]))
            word.bytes[--word.length] = '\0';
        if (!word.length)
            return error_set(err, E_INPUT,
                             "empty fleet entry in \"%.80s\": expected BOARD:COUNT, … as in "
                             "a100-40gb:8,t4-16gb:*",
                             text);
        if (entry_parse(word.bytes, &fleet, err) < 0)
            return -E_INPUT;
        if (!rest[length])
            break;
        rest += length + 1;
    }
    *ret_fleet = fleet;
    return 0;
}

void mig_fleet_format(const struct mig_fleet *fleet, struct str *text)
{
    assert(fleet && text && fleet->count <= MIG_FLEET_BOARDS_MAX);
    for (int i = 0; i < fleet->count; i++) {
        const struct mig_fleet_entry *entry = &fleet->entries[i];

        str_addf(text, "%s%s:", i ? "," : "", entry->board->slug);
        if (entry->count == MIG_FLEET_UNLIMITED)
            str_add_char(text, '*');
        else
            str_addf(text, "%d", entry->count);
    }
}
