/* SPDX-License-Identifier: Apache-2.0
 *
 * What enumerating and placing cost, beside the floors that docs/spec/layout.md states. The
 * requests are the multisets of every legal layout (placed) and those with one instance
 * more (mostly refused): with the words of the proof, as `layout place` answers.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "mig/layout.h"

enum { ROUNDS = 7, REQUESTS_MAX = 65536 };

static const double enumerate_floor_ms = 50;
static const double place_floor_ms = 1;

static int64_t now_ns(void)
{
    return clock_now_ns(clock_real());
}

static bool visit_nothing(const struct mig_layout *layout, void *context)
{
    *(size_t *)context += (size_t)layout->count;
    return true;
}

static void measure_enumeration(const struct mig_board *board)
{
    double best_ms = 1e9;
    size_t count = 0, sink = 0;

    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = now_ns();
        count = mig_layout_enumerate(board, MIG_UNIVERSE_FULL, false, visit_nothing, &sink);
        double spent_ms = (double)(now_ns() - start_ns) / 1e6;
        if (spent_ms < best_ms)
            best_ms = spent_ms;
    }
    printf("%-16s enumerate %5zu layouts %8.3f ms   (floor %.0f ms)  %s\n", board->slug, count,
           best_ms, enumerate_floor_ms, best_ms < enumerate_floor_ms ? "met" : "MISSED");
}

struct requests {
    const struct mig_board *board;
    size_t count;
    struct mig_layout list[REQUESTS_MAX];
};

static bool add_requests(const struct mig_layout *layout, void *context)
{
    struct requests *requests = context;
    struct mig_layout open = *layout;

    for (int i = 0; i < open.count; i++)
        open.instances[i].start = MIG_START_ANY;
    if (requests->count < REQUESTS_MAX)
        requests->list[requests->count++] = open;
    for (int i = 0; i < requests->board->profile_count && open.count < MIG_INSTANCES_MAX; i++) {
        struct mig_layout more = open;

        more.instances[more.count++] = (struct mig_instance){(int8_t)i, MIG_START_ANY};
        if (requests->count < REQUESTS_MAX)
            requests->list[requests->count++] = more;
    }
    return true;
}

static void measure_placing(const struct mig_board *board)
{
    static struct requests requests;
    double slowest_ms = 0, sum_ms = 0;
    size_t refused = 0;

    requests.board = board;
    requests.count = 0;
    mig_layout_enumerate(board, MIG_UNIVERSE_FULL, false, add_requests, &requests);
    for (size_t i = 0; i < requests.count; i++) {
        double best_ms = 1e9;
        int result = 0;

        for (int round = 0; round < 3; round++) {
            struct mig_layout placed;
            struct error err = {0};
            int64_t start_ns = now_ns();

            result = mig_layout_place(board, &requests.list[i], NULL, &placed, &err);
            double spent_ms = (double)(now_ns() - start_ns) / 1e6;
            best_ms = spent_ms < best_ms ? spent_ms : best_ms;
        }
        refused += result < 0;
        sum_ms += best_ms;
        slowest_ms = best_ms > slowest_ms ? best_ms : slowest_ms;
    }
    printf("%-16s place %7zu requests (%zu refused): mean %.4f ms, slowest %.4f ms   (floor "
           "%.0f ms)  %s\n",
           board->slug, requests.count, refused, sum_ms / (double)requests.count, slowest_ms,
           place_floor_ms, slowest_ms < place_floor_ms ? "met" : "MISSED");
}

int main(void)
{
    static const char *const slugs[] = {"a100-40gb", "a30-24gb", "h100-80gb-sxm5",
                                        "rtxpro6000-96gb"};

    for (size_t i = 0; i < sizeof slugs / sizeof *slugs; i++) {
        const struct mig_board *board = mig_board_find(slugs[i]);

        measure_enumeration(board);
        measure_placing(board);
    }
    return 0;
}
