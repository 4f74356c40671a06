/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts and fleets by text. The first line is a board's slug, the rest a layout of it:
 * what is read is written and reads the same; what is placed is legal, holds the request
 * and is placed again where it is. The whole input is also read as a fleet.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "fuzz.h"
#include "mig/fleet.h"
#include "mig/layout.h"

static void check_round_trip(const struct mig_board *board, const struct mig_layout *layout)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    struct mig_layout again;

    mig_layout_format(board, layout, &text);
    int result = mig_layout_parse(board, text.bytes, &again, NULL);
    assert(result == 0 && mig_layout_equal(layout, &again));
    (void)result;
}

static void check_place(const struct mig_board *board, const struct mig_layout *request)
{
    struct mig_layout placed, again;
    struct error err = {0};

    if (mig_layout_place(board, request, NULL, &placed, &err) < 0) {
        assert(err.code == E_NO && strncmp(err.text, "rule ", 5) == 0);
        return;
    }
    assert(mig_layout_check(board, &placed, NULL) == 0 && placed.count == request->count);
    for (int i = 0; i < request->count; i++)
        assert(request->instances[i].start == MIG_START_ANY ||
               mig_layout_contains(&placed, request->instances[i]));
    int result = mig_layout_place(board, &placed, NULL, &again, NULL);
    assert(result == 0 && mig_layout_equal(&placed, &again));
    (void)result;
}

static void check_layout(const struct mig_board *board, const char *text)
{
    struct mig_layout layout = {.count = -1};
    struct error err = {0};

    if (mig_layout_parse(board, text, &layout, &err) < 0) {
        assert((err.code == E_INPUT || err.code == E_NO) && err.text[0] && layout.count == -1);
        return;
    }
    assert(layout.count >= 0 && layout.count <= MIG_INSTANCES_MAX);
    check_round_trip(board, &layout);
    check_place(board, &layout);
}

static void check_fleet(const char *text)
{
    CLEANUP(str_done) struct str first = STR_EMPTY, second = STR_EMPTY;
    struct mig_fleet fleet;
    struct error err = {0};

    if (mig_fleet_parse(text, &fleet, &err) < 0) {
        assert(err.code == E_INPUT && err.text[0]);
        return;
    }
    mig_fleet_format(&fleet, &first);
    int result = mig_fleet_parse(first.bytes, &fleet, NULL);
    assert(result == 0);
    mig_fleet_format(&fleet, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
    (void)result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(free_ptr) char *text = xstrndup((const char *)data, size);
    char *newline = strchr(text, '\n');

    check_fleet(text);
    if (newline) {
        *newline = '\0';
        const struct mig_board *board = mig_board_find(text);

        check_layout(board ? board : mig_board_at(size % mig_board_count()), newline + 1);
    }
    return 0;
}
