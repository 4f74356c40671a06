/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool's window: the times of the week, in UTC, in which a Transition may begin.
 */
#ifndef TRANCHE_CONTROL_WINDOW_H
#define TRANCHE_CONTROL_WINDOW_H

#include "control/resources.h"

/* spec.window is there; one that lacks its start or end is refused by the API server. */
bool window_is_set(const struct gpu_pool *pool);
/* now_s (since 1970) when the window is open, or there is none; else when it opens next. A
 * window whose end is not after its start ends on the next day; its days are those on which it
 * starts. */
int64_t window_opens_s(const struct gpu_pool *pool, int64_t now_s);

#endif
