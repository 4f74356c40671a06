/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/assignment.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

/* Rows and columns count from 1; 0 stands for "none". Reduced costs stay >= 0. */
struct search {
    size_t rows, columns;
    const int64_t *weights;
    int64_t *row_potential, *column_potential;
    int64_t *slack; /* least reduced cost seen to each column */
    int *row_of;    /* of each column */
    int *came_from; /* the column before on the alternating path */
    bool *visited;
};

static int64_t reduced_cost(const struct search *search, int row, size_t column)
{
    assert(row >= 1 && (size_t)row <= search->rows && column >= 1);
    int64_t cost = -search->weights[(size_t)(row - 1) * search->columns + column - 1];
    return cost - search->row_potential[row] - search->column_potential[column];
}

/* From the visited column `at`, lowers the slack of the others; returns the nearest. */
static size_t nearest_column(struct search *search, size_t at)
{
    int row = search->row_of[at];
    size_t nearest = 0;
    int64_t least = INT64_MAX;
    for (size_t column = 1; column <= search->columns; column++) {
        if (search->visited[column])
            continue;
        int64_t cost = reduced_cost(search, row, column);
        if (cost < search->slack[column]) {
            search->slack[column] = cost;
            search->came_from[column] = (int)at;
        }
        if (search->slack[column] < least) {
            least = search->slack[column];
            nearest = column;
        }
    }
    assert(nearest > 0);
    /* Potentials move so that the nearest column's reduced cost becomes 0, and the path to it
     * may be taken. */
    for (size_t column = 0; column <= search->columns; column++) {
        if (search->visited[column]) {
            search->row_potential[search->row_of[column]] += least;
            search->column_potential[column] -= least;
        } else {
            search->slack[column] -= least;
        }
    }
    return nearest;
}

/* Dijkstra's search over reduced costs for the shortest alternating path from the new row to a
 * free column: O(rows × columns). */
static void add_row(struct search *search, int row)
{
    assert(row >= 1 && (size_t)row <= search->rows);
    size_t at = 0;
    search->row_of[0] = row;
    for (size_t column = 0; column <= search->columns; column++) {
        search->slack[column] = INT64_MAX / 2;
        search->visited[column] = false;
    }
    do {
        search->visited[at] = true;
        at = nearest_column(search, at);
    } while (search->row_of[at] != 0);
    /* A free column is reached: the path back to the new row hands each row on. */
    while (at != 0) {
        size_t before = (size_t)search->came_from[at];
        search->row_of[at] = search->row_of[before];
        at = before;
    }
}

void assignment_maximise(size_t rows, size_t columns, const int64_t *weights,
                         int *ret_column_of_row)
{
    assert(rows <= columns);
    assert(weights && ret_column_of_row);
    struct search search = {.rows = rows,
                            .columns = columns,
                            .weights = weights,
                            .row_potential = xcalloc(rows + 1, sizeof(int64_t)),
                            .column_potential = xcalloc(columns + 1, sizeof(int64_t)),
                            .slack = xcalloc(columns + 1, sizeof(int64_t)),
                            .row_of = xcalloc(columns + 1, sizeof(int)),
                            .came_from = xcalloc(columns + 1, sizeof(int)),
                            .visited = xcalloc(columns + 1, sizeof(bool))};
    for (size_t row = 1; row <= rows; row++)
        add_row(&search, (int)row);
    for (size_t column = 1; column <= columns; column++)
        if (search.row_of[column] > 0)
            ret_column_of_row[search.row_of[column] - 1] = (int)column - 1;
    free(search.row_potential);
    free(search.column_potential);
    free(search.slack);
    free(search.row_of);
    free(search.came_from);
    free(search.visited);
}
