/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/reduction.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Ancestors are bits, in blocks of columns, so that memory grows with the actions alone. */
enum { BLOCK_WORDS = 16, BLOCK_COLUMNS = BLOCK_WORDS * 64 };

struct reduction {
    struct transition *transition;
    int *column_of; /* of each action that begins an edge in question, -1: none */
    int columns;
    uint64_t *rows; /* a block: the ancestors of each action */
};

static void number_columns(struct reduction *reduction)
{
    const struct transition *transition = reduction->transition;
    for (size_t i = 0; i < transition->actions.count; i++)
        reduction->column_of[i] = -1;
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t j = 0; action->after.count > 1 && j < action->after.count; j++) {
            assert(action->after.data[j] < (int)i);
            if (reduction->column_of[action->after.data[j]] < 0)
                reduction->column_of[action->after.data[j]] = reduction->columns++;
        }
    }
}

/* The place of an action in the block of columns that begins with `first`, or -1. */
static int place_in_block(const struct reduction *reduction, int action, int first)
{
    int column = reduction->column_of[action];
    return column >= first && column < first + BLOCK_COLUMNS ? column - first : -1;
}

static void fill_block(struct reduction *reduction, int first)
{
    const struct transition *transition = reduction->transition;
    assert(first >= 0 && first < reduction->columns);
    memset(reduction->rows, 0,
           transition->actions.count * BLOCK_WORDS * sizeof *reduction->rows);
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        uint64_t *row = &reduction->rows[i * BLOCK_WORDS];
        for (size_t j = 0; j < action->after.count; j++) {
            int before = action->after.data[j],
                place = place_in_block(reduction, before, first);
            const uint64_t *other = &reduction->rows[(size_t)before * BLOCK_WORDS];
            for (int w = 0; w < BLOCK_WORDS; w++)
                row[w] |= other[w];
            if (place >= 0)
                row[place / 64] |= UINT64_C(1) << (place % 64);
        }
    }
}

/* Whether another action of the list comes after the one at `index`. */
static bool is_implied(const struct reduction *reduction,
                       const struct transition_action *action, size_t index, int place)
{
    assert(index < action->after.count && place >= 0);
    for (size_t j = index + 1; j < action->after.count; j++) /* the list ascends */
        if (reduction->rows[(size_t)action->after.data[j] * BLOCK_WORDS + (size_t)place / 64] >>
                (place % 64) &
            1)
            return true;
    return false;
}

/* Edges of the block's columns go; what implies them stays, be it in another block's. */
static void shorten(struct reduction *reduction, struct transition_action *action, int first)
{
    size_t kept = 0;
    for (size_t j = 0; j < action->after.count; j++) {
        int place = place_in_block(reduction, action->after.data[j], first);
        if (place < 0 || !is_implied(reduction, action, j, place))
            action->after.data[kept++] = action->after.data[j];
    }
    action->after.count = kept;
}

void transition_reduce(struct transition *transition)
{
    size_t count = transition->actions.count;
    struct reduction reduction = {.transition = transition,
                                  .column_of = xcalloc(count, sizeof(int))};
    number_columns(&reduction);
    if (reduction.columns > 0)
        reduction.rows = xcalloc(count, BLOCK_WORDS * sizeof *reduction.rows);
    for (int first = 0; first < reduction.columns; first += BLOCK_COLUMNS) {
        fill_block(&reduction, first);
        for (size_t i = 0; i < count; i++)
            if (transition->actions.data[i].after.count > 1)
                shorten(&reduction, &transition->actions.data[i], first);
    }
    free(reduction.rows);
    free(reduction.column_of);
}
