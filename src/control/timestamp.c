/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing RFC 3339 through the proleptic Gregorian calendar of libc.
 */
#include "control/timestamp.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void timestamp_format(int64_t seconds, char ret_text[21])
{
    time_t time = (time_t)seconds;
    struct tm parts;

    gmtime_r(&time, &parts);
    size_t length = strftime(ret_text, 21, "%Y-%m-%dT%H:%M:%SZ", &parts);
    assert(length == 20);
}

/* "Z", "+hh:mm" or "-hh:mm", after an optional fraction. */
static bool parse_zone(const char *text, int *ret_offset_seconds)
{
    int hours = 0, minutes = 0, length = 0;

    if (*text == '.') {
        text++;
        if (!isdigit((unsigned char)*text))
            return false;
        while (isdigit((unsigned char)*text))
            text++;
    }
    if (strcmp(text, "Z") == 0) {
        *ret_offset_seconds = 0;
        return true;
    }
    if ((*text != '+' && *text != '-') ||
        sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &length) != 2 || length != 5 ||
        text[6] != '\0' || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ret_offset_seconds = (*text == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

bool timestamp_parse(const char *text, int64_t *ret_seconds)
{
    struct tm parts = {0};
    int offset = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);

    assert(ret_seconds);
    if (!rest || rest - text != 19 || !parse_zone(rest, &offset))
        return false;
    *ret_seconds = (int64_t)timegm(&parts) - offset;
    return true;
}
