/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's multisets, derived from the board's placement starts, and their count.
 */
#include "plan/paper_rules.h"

#include <assert.h>
#include <string.h>

struct gather {
    const struct mig_board *board;
    enum plan_rules rules;
    struct paper_multiset *multisets;
    size_t count;
};

static bool add_layout(const struct mig_layout *layout, void *context)
{
    struct gather *gather = context;
    struct paper_multiset found = {{0}};
    for (int i = 0; i < layout->count; i++) {
        int slices = gather->board->profiles[layout->instances[i].profile].compute_slices;
        assert(slices < PAPER_SIZES);
        found.counts[slices]++;
    }
    if (gather->rules == RULES_PAPER && found.counts[4] > 0 && found.counts[3] > 0)
        return true;
    for (size_t i = 0; i < gather->count; i++)
        if (memcmp(&gather->multisets[i], &found, sizeof found) == 0)
            return true;
    assert(gather->count < PAPER_MULTISETS_MAX);
    gather->multisets[gather->count++] = found;
    return true;
}

size_t paper_multisets(const struct mig_board *board, enum plan_rules rules,
                       struct paper_multiset ret_multisets[PAPER_MULTISETS_MAX])
{
    struct gather gather = {.board = board, .rules = rules, .multisets = ret_multisets};
    uint32_t base = 0;
    for (int p = 0; p < board->profile_count; p++)
        if (board->profiles[p].group == MIG_GROUP_BASE)
            base |= 1u << p;
    mig_layout_enumerate(board, base, true, add_layout, &gather);
    assert(gather.count <= PAPER_MULTISETS_MAX);
    return gather.count;
}

/* C(n, k) for small k; exact while below 2^53. */
static double choose(int n, int k)
{
    assert(n >= 0 && k >= 0);
    double value = 1;
    for (int i = 1; i <= k; i++)
        value = value * (n - k + i) / i;
    return value;
}

double paper_configuration_count(const struct paper_multiset *multisets, size_t count,
                                 int services)
{
    double sum = 0;
    assert(services >= 1);
    for (size_t m = 0; m < count; m++) {
        double product = 1;
        for (int size = 0; size < PAPER_SIZES; size++)
            product *=
                choose(services + multisets[m].counts[size] - 1, multisets[m].counts[size]);
        sum += product;
    }
    return sum;
}
