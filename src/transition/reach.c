/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/reach.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_WORDS = 16, BLOCK_COLUMNS = BLOCK_WORDS * 64 };

static bool is_direct(const struct transition *transition, int before, int after)
{
    assert(before >= 0 && after >= 0);
    const struct transition_action *action = &transition->actions.data[after];
    for (size_t i = 0; i < action->after.count; i++)
        if (action->after.data[i] == before)
            return true;
    return false;
}

/* For every action, which of the block's columns are among its ancestors. */
static void fill_block(const struct transition *transition, const int *column_of, int first,
                       uint64_t *rows)
{
    assert(first >= 0 && rows);
    memset(rows, 0, transition->actions.count * BLOCK_WORDS * sizeof *rows);
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        uint64_t *row = &rows[i * BLOCK_WORDS];
        for (size_t j = 0; j < action->after.count; j++) {
            int earlier = action->after.data[j], column = column_of[earlier] - first;
            assert(earlier >= 0 && (size_t)earlier < i);
            const uint64_t *other = &rows[(size_t)earlier * BLOCK_WORDS];
            for (int w = 0; w < BLOCK_WORDS; w++)
                row[w] |= other[w];
            if (column_of[earlier] >= 0 && column >= 0 && column < BLOCK_COLUMNS)
                row[column / 64] |= UINT64_C(1) << (column % 64);
        }
    }
}

void reach_answer(const struct transition *transition, struct reach_query *queries,
                  size_t count)
{
    size_t actions = transition->actions.count;
    int *column_of = xcalloc(actions, sizeof *column_of), columns = 0;
    for (size_t i = 0; i < actions; i++)
        column_of[i] = -1;
    for (size_t i = 0; i < count; i++) {
        assert(queries[i].before >= 0 && (size_t)queries[i].before < actions);
        assert(queries[i].after >= 0 && (size_t)queries[i].after < actions);
        struct reach_query *query = &queries[i];
        query->ordered = is_direct(transition, query->before, query->after);
        if (!query->ordered && column_of[query->before] < 0)
            column_of[query->before] = columns++;
    }
    uint64_t *rows = columns > 0 ? xcalloc(actions, BLOCK_WORDS * sizeof *rows) : NULL;
    for (int first = 0; first < columns; first += BLOCK_COLUMNS) {
        fill_block(transition, column_of, first, rows);
        for (size_t i = 0; i < count; i++) {
            struct reach_query *query = &queries[i];
            int column = column_of[query->before] - first;
            if (!query->ordered && column >= 0 && column < BLOCK_COLUMNS)
                query->ordered =
                    rows[(size_t)query->after * BLOCK_WORDS + (size_t)column / 64] >>
                        (column % 64) &
                    1;
        }
    }
    free(rows);
    free(column_of);
}
