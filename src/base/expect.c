/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for ranges; see expect.h.
 */
#include "base/expect.h"

#include <assert.h>
#include <float.h>

/* From here on a bound says no more than the type does. */
static const double unbounded_whole = 9.2e18;

static bool is_bound(double bound, bool whole)
{
    double limit = whole ? unbounded_whole : DBL_MAX;

    return bound > -limit && bound < limit;
}

static void add_bound(struct str *text, const char *words, double bound)
{
    str_add(text, words);
    str_add_number(text, bound);
}

static void add_minimum(struct str *text, double minimum)
{
    if (minimum > 0 && minimum <= DBL_MIN)
        str_add(text, " above 0");
    else
        add_bound(text, " of at least ", minimum);
}

void expect_number(struct str *text, double minimum, double maximum, bool whole)
{
    bool low = is_bound(minimum, whole), high = is_bound(maximum, whole);
    bool positive = minimum > 0 && minimum <= DBL_MIN;

    assert(minimum <= maximum);
    str_add(text, whole ? "a whole number" : low || high ? "a number" : "a finite number");
    if (low && high && !positive) {
        add_bound(text, " from ", minimum);
        add_bound(text, " to ", maximum);
        return;
    }
    if (low)
        add_minimum(text, minimum);
    if (high)
        add_bound(text, low ? " and at most " : " of at most ", maximum);
}
