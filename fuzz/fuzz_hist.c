/* SPDX-License-Identifier: Apache-2.0
 *
 * The histogram's text form: what is read is written again as it was, but for leading
 * zeros, and answers every question within its range.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/memory.h"
#include "fuzz.h"

static void check_again(const struct hist *hist)
{
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;
    CLEANUP(hist_free_ptr) struct hist *again = NULL;

    hist_encode(hist, &first);
    int result = hist_decode(first.bytes, &again, NULL);
    assert(result == 0);
    (void)result;
    hist_encode(again, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
}

static void check_answers(const struct hist *hist)
{
    static const double percents[] = {0.001, 50, 99, 99.9, 100};
    int64_t before = 0;

    assert(hist_saturated(hist) <= hist_count(hist));
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        int64_t value = hist_percentile_ns(hist, percents[i]);
        assert(value >= before && value >= hist_min_ns(hist) && value <= hist_max_ns(hist));
        before = value;
    }
    assert(hist_share_within(hist, hist_max_ns(hist)) == 1);
    assert(hist_mean_ns(hist) >= 0 && hist_stddev_ns(hist) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(hist_free_ptr) struct hist *hist = NULL;
    CLEANUP(free_ptr) char *text = xstrndup(size ? (const char *)data : "", size);
    struct error err = {0};

    if (hist_decode(text, &hist, &err) < 0) {
        assert(err.code == E_INPUT && err.text[0] && !hist);
        return 0;
    }
    check_again(hist);
    check_answers(hist);
    return 0;
}
