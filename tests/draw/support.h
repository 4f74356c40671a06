/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of draw share: cmocka's headers, goldens, and a small judge of XML.
 */
#ifndef TRANCHE_TESTS_DRAW_SUPPORT_H
#define TRANCHE_TESTS_DRAW_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

/* Compares with tests/draw/golden/NAME; UPDATE_GOLDEN=1 writes it. */
static inline void assert_golden(const char *name, const struct str *text)
{
    CLEANUP(str_done) struct str path = STR_EMPTY, expected = STR_EMPTY;
    const char *update = getenv("UPDATE_GOLDEN");

    str_addf(&path, "%s/tests/draw/golden/%s", getenv("TRANCHE_SOURCE_ROOT"), name);
    if (update && strcmp(update, "1") == 0)
        assert_int_equal(file_write(path.bytes, text->bytes, text->length, NULL), 0);
    assert_int_equal(file_read(path.bytes, 1 << 22, &expected, NULL), 0);
    assert_string_equal(text->bytes, expected.bytes);
}

/* Every element is closed in order, attributes are quoted, "&" starts an entity. */
static inline void assert_well_formed(const char *xml)
{
    const char *open[64];
    int depth = 0;

    for (const char *at = xml; *at; at++) {
        if (*at == '&' && strncmp(at, "&amp;", 5) && strncmp(at, "&lt;", 4) &&
            strncmp(at, "&gt;", 4) && strncmp(at, "&quot;", 6))
            fail_msg("bare & at %.20s", at);
        if (*at != '<')
            continue;
        const char *end = strchr(at, '>');
        if (!end)
            fail_msg("no end of %.20s", at);
        if (at[1] == '/') {
            size_t length = (size_t)(end - at) - 2;

            assert_true(depth > 0);
            if (strncmp(open[--depth] + 1, at + 2, length) != 0)
                fail_msg("%.20s closes %.20s", at, open[depth]);
        } else if (end[-1] != '/') {
            assert_true(depth < 64);
            open[depth++] = at;
        }
        int quotes = 0;
        for (; at < end; at++)
            quotes += *at == '"';
        assert_int_equal(quotes % 2, 0);
    }
    assert_int_equal(depth, 0);
}

#endif
