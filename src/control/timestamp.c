/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading RFC 3339 through the proleptic Gregorian calendar of libc.
 */
#include "control/timestamp.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <time.h>

/* Two digits from 0 to most, or -1. */
static int two_digits(const char *text, int most)
{
    assert(most >= 0 && most <= 99);
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]))
        return -1;
    int value = (text[0] - '0') * 10 + text[1] - '0';
    return value <= most ? value : -1;
}

/* "Z", "+hh:mm" or "-hh:mm", after an optional fraction. */
static bool parse_zone(const char *text, int *ret_offset_seconds)
{
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
    if ((*text != '+' && *text != '-') || strlen(text) != 6 || text[3] != ':')
        return false;
    int hours = two_digits(text + 1, 23), minutes = two_digits(text + 4, 59);
    if (hours < 0 || minutes < 0)
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
