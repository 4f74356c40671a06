/* SPDX-License-Identifier: Apache-2.0
 *
 * Yesterday's window may still be open and the next one is at most a week ahead: nine days are
 * looked at. UTC has no summer time, so each has 86,400 seconds.
 */
#include "control/window.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

enum { DAY_SECONDS = 86400, DAYS_AHEAD = 7 };

/* From that of 1 January 1970 on. */
static const char *const day_names[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};

/* Seconds since midnight of "HH:MM"; -1 when it is none. */
static int seconds_of(const char *text)
{
    long long hours, minutes;

    if (!text || !text_take_int(&text, 23, &hours) || *text++ != ':' ||
        !text_take_int(&text, 59, &minutes) || *text)
        return -1;
    return (int)(hours * 60 + minutes) * 60;
}

bool window_is_set(const struct gpu_pool *pool)
{
    return seconds_of(pool->window.start) >= 0 && seconds_of(pool->window.end) >= 0;
}

static bool has_day(const struct gpu_pool *pool, int64_t day)
{
    assert(day >= -1);
    const char *name = day_names[(day + 7) % 7]; /* of the day before the first, too */

    for (size_t i = 0; i < pool->window.days.count; i++)
        if (strcmp(pool->window.days.data[i], name) == 0)
            return true;
    return pool->window.days.count == 0;
}

int64_t window_opens_s(const struct gpu_pool *pool, int64_t now_s)
{
    int64_t start_s = seconds_of(pool->window.start), end_s = seconds_of(pool->window.end);
    int64_t today = now_s / DAY_SECONDS;

    assert(now_s >= 0);
    if (!window_is_set(pool))
        return now_s;
    if (end_s <= start_s)
        end_s += DAY_SECONDS;
    for (int64_t day = today - 1; day <= today + DAYS_AHEAD; day++) {
        int64_t midnight_s = day * DAY_SECONDS;
        if (!has_day(pool, day) || now_s >= midnight_s + end_s)
            continue;
        return now_s > midnight_s + start_s ? now_s : midnight_s + start_s;
    }
    assert(!"a week has each of its days");
    return now_s;
}
