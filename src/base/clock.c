/* SPDX-License-Identifier: Apache-2.0
 *
 * The real clock and the fake one.
 */
#include "base/clock.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static int64_t real_now_ns(void *self)
{
    (void)self;
    struct timespec now;
    int failed = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(!failed);
    (void)failed;
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void real_sleep_until_ns(void *self, int64_t deadline_ns)
{
    (void)self;
    if (deadline_ns <= 0) /* past; the kernel refuses negative times */
        return;
    struct timespec deadline = {.tv_sec = deadline_ns / SECOND_NS,
                                .tv_nsec = deadline_ns % SECOND_NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

static int64_t fake_now_ns(void *self)
{
    const struct fake_clock *fake = self;
    return fake->time_ns;
}

static void fake_sleep_until_ns(void *self, int64_t deadline_ns)
{
    struct fake_clock *fake = self;
    if (deadline_ns > fake->time_ns)
        fake->time_ns = deadline_ns;
}

const struct clock_source *clock_real(void)
{
    static const struct clock_source real = {.now_ns = real_now_ns,
                                             .sleep_until_ns = real_sleep_until_ns};
    return &real;
}

int64_t clock_now_ns(const struct clock_source *clock)
{
    return clock->now_ns(clock->self);
}

void clock_sleep_until_ns(const struct clock_source *clock, int64_t deadline_ns)
{
    clock->sleep_until_ns(clock->self, deadline_ns);
}

void clock_utc_text(int64_t seconds, char ret[21])
{
    time_t time = (time_t)seconds;
    struct tm parts;

    gmtime_r(&time, &parts);
    size_t length = strftime(ret, 21, "%Y-%m-%dT%H:%M:%SZ", &parts);
    assert(length == 20 && "the year has four digits");
    (void)length;
}

void clock_wall_text(char ret[21])
{
    clock_utc_text(time(NULL), ret);
}

void clock_wall_text_micro(char ret[28])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    clock_utc_text(now.tv_sec, ret);
    snprintf(ret + strlen("2026-03-01T12:00:00"), sizeof ".000000Z", ".%06ldZ",
             now.tv_nsec / 1000 % 1000000);
}

void fake_clock_init(struct fake_clock *fake, int64_t start_ns)
{
    *fake = (struct fake_clock){
        .source = {.now_ns = fake_now_ns, .sleep_until_ns = fake_sleep_until_ns, .self = fake},
        .time_ns = start_ns};
}
