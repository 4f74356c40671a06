/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake clock, and what can be said of the real one without measuring it.
 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_fake(void **state)
{
    (void)state;
    struct fake_clock fake;
    fake_clock_init(&fake, 1000);
    assert_int_equal(clock_now_ns(&fake.source), 1000);
    assert_int_equal(clock_now_ns(&fake.source), 1000);
    clock_sleep_until_ns(&fake.source, 5000);
    assert_int_equal(clock_now_ns(&fake.source), 5000);
    clock_sleep_until_ns(&fake.source, 4000); /* never backwards */
    assert_int_equal(clock_now_ns(&fake.source), 5000);
    fake.time_ns += 7;
    assert_int_equal(clock_now_ns(&fake.source), 5007);
}

static void test_real(void **state)
{
    (void)state;
    const struct clock_source *clock = clock_real();
    int64_t before = clock_now_ns(clock);
    assert_true(before > 0);
    clock_sleep_until_ns(clock, before - 1);
    clock_sleep_until_ns(clock, -5);
    clock_sleep_until_ns(clock, INT64_MIN);
    int64_t deadline = clock_now_ns(clock) + 3000000;
    clock_sleep_until_ns(clock, deadline);
    assert_true(clock_now_ns(clock) >= deadline);
}

static void test_wall_text(void **state)
{
    (void)state;
    char text[21];
    time_t before = time(NULL);
    clock_wall_text(text);
    assert_int_equal(strlen(text), 20);
    struct tm parts = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    assert_non_null(end);
    assert_string_equal(end, "");
    time_t read = timegm(&parts);
    assert_true(before <= read && read <= time(NULL));
}

static void test_micro_text(void **state)
{
    (void)state;
    char text[28];
    unsigned micro = 0;
    int end = 0;
    clock_wall_text_micro(text);
    assert_int_equal(strlen(text), 27);
    assert_int_equal(sscanf(text, "%*4u-%*2u-%*2uT%*2u:%*2u:%*2u.%6uZ%n", &micro, &end), 1);
    assert_int_equal(end, 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fake),
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_wall_text),
        cmocka_unit_test(test_micro_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
