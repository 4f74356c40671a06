/* SPDX-License-Identifier: Apache-2.0
 *
 * Time as a seam: int64 nanoseconds of a monotonic clock, and sleeping. clock_real() is
 * CLOCK_MONOTONIC; a struct fake_clock moves only when told or slept on.
 */
#ifndef TRANCHE_BASE_CLOCK_H
#define TRANCHE_BASE_CLOCK_H

#include <stdint.h>

struct clock_source {
    int64_t (*now_ns)(void *self);
    /* Sleeps until now_ns() >= deadline_ns; may return early on a signal. */
    void (*sleep_until_ns)(void *self, int64_t deadline_ns);
    void *self;
};

/* CLOCK_MONOTONIC of this machine; borrowed, never NULL. */
const struct clock_source *clock_real(void);
/* Nanoseconds since an arbitrary start; never goes back. */
int64_t clock_now_ns(const struct clock_source *clock);
/* Sleeps until the clock shows deadline_ns; may return early on a signal. */
void clock_sleep_until_ns(const struct clock_source *clock, int64_t deadline_ns);
/* "2026-03-01T12:00:00Z" of seconds since 1970, which must lie in the years 1000 to 9999. */
void clock_utc_text(int64_t seconds, char ret[21]);
/* Wall time (CLOCK_REALTIME) in that form; for provenance. */
void clock_wall_text(char ret[21]);
/* … with microseconds, "2026-03-01T12:00:00.000000Z": Kubernetes' metav1.MicroTime. For people:
 * nobody reckons with it. */
void clock_wall_text_micro(char ret[28]);

struct fake_clock {
    struct clock_source source; /* pass &fake.source */
    int64_t time_ns;
};
/* A clock for tests: it shows start_ns and moves only by sleeping or by hand. */
void fake_clock_init(struct fake_clock *fake, int64_t start_ns);

#endif
