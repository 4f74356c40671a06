/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrival times. See arrivals.h. Sums are kept in nanoseconds as double: exact to well
 * below a microsecond over a day.
 */
#include "load/arrivals.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/csv.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/vec.h"

struct arrivals {
    struct arrivals_options options;
    struct rng rng;
    double time_ns; /* of the last arrival, or of the last burst */
    double passed;  /* ramp: expected number of arrivals until now */
    uint64_t count; /* so far */
    VEC(int64_t) trace;
};

static const char *const kind_names[ARRIVAL_KIND_COUNT] = {"constant", "poisson", "bursts",
                                                           "ramp", "trace"};

const char *arrival_kind_name(enum arrival_kind kind)
{
    assert(kind < ARRIVAL_KIND_COUNT);
    return kind_names[kind];
}

/* "2023-11-16 18:17:03.9799600", with a T or a blank, or a number of seconds. */
static bool read_time(const char *text, double *ret_seconds)
{
    struct tm fields = {0};
    if (text_to_double(text, ret_seconds))
        return true;
    const char *rest = strptime(text, "%Y-%m-%d", &fields);
    if (!rest || (*rest != ' ' && *rest != 'T'))
        return false;
    rest = strptime(rest + 1, "%H:%M:%S", &fields);
    if (!rest)
        return false;
    double fraction = 0;
    size_t digits = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    double unit = 0.1;
    for (size_t i = 1; i <= digits; i++, unit /= 10)
        fraction += (rest[i] - '0') * unit;
    *ret_seconds = (double)timegm(&fields) + fraction;
    return true;
}

static size_t time_column(const struct csv *csv)
{
    static const char *const names[] = {"time_s", "t_s", "TIMESTAMP"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int column = csv_find_column(csv, names[i]);
        if (column >= 0)
            return (size_t)column;
    }
    return 0;
}

static int read_trace(struct arrivals *arrivals, struct error *err)
{
    CLEANUP(csv_free_ptr) struct csv *csv = NULL;
    double first = 0, last = 0;
    int failure = csv_read(arrivals->options.trace, &csv, err);
    if (failure)
        return failure;
    size_t column = time_column(csv);
    for (size_t i = 0; i < csv_row_count(csv); i++) {
        double seconds;
        const char *text = csv_field(csv, i, column);
        if (!read_time(text, &seconds) || !isfinite(seconds))
            return csv_error(csv, i, column, err,
                             "time is \"%s\", expected seconds or a date and time", text);
        if (i == 0)
            first = last = seconds;
        if (seconds < last)
            return csv_error(csv, i, column, err,
                             "time %s is before that of the line above, expected rising times",
                             text);
        if (seconds - first > 1e6)
            return csv_error(csv, i, column, err,
                             "more than 1000000 s after the first, expected a shorter trace");
        last = seconds;
        vec_add(&arrivals->trace, (int64_t)llround((seconds - first) * 1e9));
    }
    return 0;
}

int arrivals_new(const struct arrivals_options *options, struct arrivals **ret_arrivals,
                 struct error *err)
{
    CLEANUP(arrivals_free_ptr) struct arrivals *arrivals = xcalloc(1, sizeof *arrivals);
    arrivals->options = *options;
    arrivals->rng = rng_seed(options->seed);
    if (options->kind == ARRIVAL_TRACE) {
        if (!options->trace)
            return error_set(err, E_USAGE, "arrivals from a trace need its file");
        int failure = read_trace(arrivals, err);
        if (failure)
            return failure;
    } else if (!(options->rate_rps > 0) ||
               (options->kind == ARRIVAL_RAMP && !(options->end_rate_rps > 0))) {
        return error_set(err, E_USAGE, "%s arrivals need a rate above 0",
                         kind_names[options->kind]);
    }
    if (options->burst < 1)
        arrivals->options.burst = 1;
    *ret_arrivals = STEAL(arrivals);
    return 0;
}

void arrivals_free(struct arrivals *arrivals)
{
    if (!arrivals)
        return;
    vec_done(&arrivals->trace);
    free(arrivals);
}

/* The time at which the ramp expects n arrivals: the inverse of its integral. A Poisson
 * stream of rate 1 mapped through it has the ramp's rate (time change). */
static double ramp_time_ns(const struct arrivals_options *options, double n)
{
    double from = options->rate_rps, to = options->end_rate_rps;
    double length = (double)options->duration_ns / 1e9, slope = 0;
    if (length > 0)
        slope = (to - from) / length;
    double at_end = (from + to) / 2 * length;
    if (length <= 0 || n >= at_end)
        return (length + (n - at_end) / to) * 1e9;
    if (fabs(slope) * length < 1e-9 * from)
        return n / from * 1e9;
    return (sqrt(from * from + 2 * slope * n) - from) / slope * 1e9;
}

static double next_ns(struct arrivals *arrivals)
{
    const struct arrivals_options *options = &arrivals->options;
    double mean_ns = 1e9 / options->rate_rps;
    if (options->kind == ARRIVAL_CONSTANT)
        return (double)arrivals->count * mean_ns;
    if (options->kind == ARRIVAL_RAMP) {
        arrivals->passed += rng_exponential(&arrivals->rng, 1);
        return ramp_time_ns(options, arrivals->passed);
    }
    uint64_t burst = options->kind == ARRIVAL_BURSTS ? (uint64_t)options->burst : 1;
    if (arrivals->count % burst == 0)
        arrivals->time_ns += rng_exponential(&arrivals->rng, mean_ns * (double)burst);
    return arrivals->time_ns;
}

bool arrivals_next(struct arrivals *arrivals, int64_t *ret_time_ns)
{
    if (arrivals->options.kind != ARRIVAL_TRACE) {
        double time_ns = next_ns(arrivals);
        assert(time_ns >= 0);
        *ret_time_ns = (int64_t)fmin(time_ns, 9e18);
    } else if (arrivals->count < arrivals->trace.count) {
        *ret_time_ns = arrivals->trace.data[arrivals->count];
    } else {
        return false;
    }
    arrivals->count++;
    return true;
}
