/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts with compute instances: what is read is written and read as the same.
 */
#include <assert.h>

#include "fuzz.h"
#include "gpu/gpu_layout.h"

static void check(const struct live_board *live, const char *text)
{
    CLEANUP(str_done) struct str written = STR_EMPTY;
    struct gpu_layout layout, again;
    struct error err = {0};

    if (gpu_layout_parse(live, text, &layout, &err) < 0) {
        assert(err.code == E_INPUT || err.code == E_NO);
        return;
    }
    assert(layout.count >= 0 && layout.count <= MIG_INSTANCES_MAX);
    gpu_layout_format(&live->board, &layout, &written);
    int r = gpu_layout_parse(live, written.bytes, &again, &err);
    assert(r == 0 && gpu_layout_equal(&layout, &again));
    (void)r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct live_board *boards[2];
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if (!boards[0]) {
        boards[0] = live_board_of_table(mig_board_find("a100-40gb"));
        boards[1] = live_board_of_table(mig_board_find("rtxpro6000-96gb"));
    }
    str_add_bytes(&text, data, size);
    if (strlen(text.bytes) == size)
        for (int i = 0; i < 2; i++)
            check(boards[i], text.bytes);
    return 0;
}
