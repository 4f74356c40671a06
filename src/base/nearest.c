/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the Levenshtein distance (insert, delete, replace, each 1) by the row
 * algorithm of Wagner and Fischer (1974). Words are short; longer ones are not compared.
 */
#include <assert.h>
#include <string.h>

#include "base/option.h"

enum { WORD_LIMIT = 64, PREFIX_MINIMUM = 3 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_LIMIT + 1], b_length = strlen(b);

    assert(b_length <= WORD_LIMIT);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

static const char *first_abbreviated(const char *word, const char *const *candidates,
                                     size_t count)
{
    size_t length = strlen(word);

    for (size_t i = 0; i < count && length >= PREFIX_MINIMUM; i++)
        if (strncmp(word, candidates[i], length) == 0)
            return candidates[i];
    return NULL;
}

/* Of a word of three letters, two changes leave nothing to recognise. */
static size_t distance_limit(size_t length)
{
    if (length < 4)
        return length / 2;
    return length / 3 > 2 ? length / 3 : 2;
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word), best_distance = distance_limit(length) + 1;
    const char *best = first_abbreviated(word, candidates, count);

    if (best || length > WORD_LIMIT)
        return best;
    for (size_t i = 0; i < count; i++) {
        if (strlen(candidates[i]) > WORD_LIMIT)
            continue;
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
