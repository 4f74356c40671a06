/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for what a number had to be, the same in every message.
 */
#ifndef TRANCHE_BASE_EXPECT_H
#define TRANCHE_BASE_EXPECT_H

#include <stdbool.h>

#include "base/str.h"

/* Appends "a number from 0 to 1", "a whole number of at least 1", "a number above 0 and at
 * most 1" (minimum DBL_MIN, which stands for any positive number), "a finite number" (both
 * bounds infinite; for whole numbers: as large as long long goes) … */
void expect_number(struct str *text, double minimum, double maximum, bool whole);

#endif
