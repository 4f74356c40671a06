/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of open loops. See arrivals.h.
 */
#include "load/arrivals.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/str.h"

enum { BURST_MAX = 1000000, TRACE_SIZE_LIMIT = 256 << 20 };
static const double RATE_MIN = 1e-3, RATE_MAX = 1e7, OFFSET_S_MAX = 1e7;

static const char *const kind_names[ARRIVAL_KIND_COUNT] = {
    [ARRIVAL_CONSTANT] = "constant", [ARRIVAL_POISSON] = "poisson", [ARRIVAL_BURST] = "burst",
    [ARRIVAL_RAMP] = "ramp",         [ARRIVAL_TRACE] = "trace",
};

static int bad_text(const char *text, struct error *err)
{
    return error_set(err, E_INPUT,
                     "arrivals \"%s\": expected constant:RATE, poisson:RATE, burst:RATE,SIZE, "
                     "ramp:FROM..TO or trace:FILE, rates from 0.001 to 10000000 a second",
                     text);
}

/* A rate that ends at `end` of the text, or at its end. */
static bool read_rate(const char *text, const char *end, double *ret_rate)
{
    CLEANUP(free_ptr) char *number = end ? xstrndup(text, (size_t)(end - text)) : xstrdup(text);
    assert(text);
    return text_to_double(number, ret_rate) && *ret_rate >= RATE_MIN && *ret_rate <= RATE_MAX;
}

static int read_trace(const char *path, struct arrivals *arrivals, struct error *err)
{
    CLEANUP(str_done) struct str bytes = STR_EMPTY;
    int failure = file_read(path, TRACE_SIZE_LIMIT, &bytes, err);
    unsigned number = 0;
    if (failure)
        return failure;
    char *rest = bytes.bytes, *line;
    while ((line = strsep(&rest, "\n"))) {
        double seconds;
        number++;
        line[strcspn(line, "\r")] = '\0';
        if (!*line || *line == '#')
            continue;
        size_t count = arrivals->trace_ns.count;
        int64_t last_ns = count ? arrivals->trace_ns.data[count - 1] : 0;
        if (!text_to_double(line, &seconds) || seconds < 0 || seconds > OFFSET_S_MAX ||
            (int64_t)llround(seconds * 1e9) < last_ns)
            return error_set(
                err, E_INPUT,
                "%s:%u:1: \"%.40s\": expected seconds from the start, not below the "
                "line before",
                path, number, line);
        vec_add(&arrivals->trace_ns, (int64_t)llround(seconds * 1e9));
    }
    if (arrivals->trace_ns.count == 0)
        return error_set(err, E_INPUT, "%s: empty, expected one offset in seconds a line",
                         path);
    if (arrivals->duration_ns == 0)
        arrivals->duration_ns = arrivals->trace_ns.data[arrivals->trace_ns.count - 1] + 1;
    return 0;
}

static bool read_values(const char *values, struct arrivals *arrivals)
{
    const char *comma = strchr(values, ','), *dots = strstr(values, "..");
    long long size;
    switch (arrivals->kind) {
    case ARRIVAL_CONSTANT:
    case ARRIVAL_POISSON:
        return read_rate(values, NULL, &arrivals->rate_rps);
    case ARRIVAL_BURST:
        if (!comma || !text_to_int(comma + 1, 1, BURST_MAX, &size))
            return false;
        arrivals->burst_size = (int)size;
        return read_rate(values, comma, &arrivals->rate_rps);
    case ARRIVAL_RAMP:
        return dots && read_rate(values, dots, &arrivals->rate_rps) &&
               read_rate(dots + 2, NULL, &arrivals->end_rps);
    case ARRIVAL_TRACE:
    case ARRIVAL_KIND_COUNT:
        break;
    }
    return false;
}

int arrivals_parse(const char *text, int64_t duration_ns, uint64_t seed,
                   struct arrivals *ret_arrivals, struct error *err)
{
    CLEANUP(arrivals_done)
    struct arrivals arrivals = {.duration_ns = duration_ns, .rng = rng_seed(seed)};
    const char *colon = strchr(text, ':');
    int kind = 0;
    assert(text && duration_ns >= 0);
    while (kind < ARRIVAL_KIND_COUNT &&
           (!colon || strlen(kind_names[kind]) != (size_t)(colon - text) ||
            strncmp(kind_names[kind], text, (size_t)(colon - text)) != 0))
        kind++;
    if (kind == ARRIVAL_KIND_COUNT)
        return bad_text(text, err);
    arrivals.kind = (enum arrival_kind)kind;
    if (kind == ARRIVAL_TRACE) {
        int failure = read_trace(colon + 1, &arrivals, err);
        if (failure)
            return failure;
    } else if (!read_values(colon + 1, &arrivals)) {
        return bad_text(text, err);
    }
    *ret_arrivals = arrivals;
    arrivals.trace_ns.data = NULL;
    return 0;
}

void arrivals_done(struct arrivals *arrivals)
{
    vec_done(&arrivals->trace_ns);
}

/* The time at which a ramp has sent n: n = from t + (to − from) t² / (2 duration). */
static double ramp_ns(const struct arrivals *arrivals, double n)
{
    double duration = (double)arrivals->duration_ns / 1e9;
    double slope = (arrivals->end_rps - arrivals->rate_rps) / duration;
    double from = arrivals->rate_rps;
    double root = from * from + 2 * slope * n;
    assert(n >= 0);
    /* The form that does not cancel when the slope is small; past the top of a falling ramp
     * nothing is sent any more. */
    return root < 0 ? INFINITY : 2 * n / (from + sqrt(root)) * 1e9;
}

bool arrivals_next(struct arrivals *arrivals, int64_t *ret_offset_ns)
{
    double at_ns = 0, n = (double)arrivals->made;
    assert(arrivals->duration_ns > 0);
    switch (arrivals->kind) {
    case ARRIVAL_CONSTANT:
        at_ns = n / arrivals->rate_rps * 1e9;
        break;
    case ARRIVAL_POISSON:
        at_ns = arrivals->at_ns + rng_exponential(&arrivals->rng, 1e9 / arrivals->rate_rps);
        break;
    case ARRIVAL_BURST:
        at_ns = arrivals->at_ns;
        if (arrivals->made % (uint64_t)arrivals->burst_size == 0)
            at_ns += rng_exponential(&arrivals->rng,
                                     1e9 * arrivals->burst_size / arrivals->rate_rps);
        break;
    case ARRIVAL_RAMP:
        at_ns = ramp_ns(arrivals, n);
        break;
    case ARRIVAL_TRACE:
        at_ns = arrivals->made < arrivals->trace_ns.count
                    ? (double)arrivals->trace_ns.data[arrivals->made]
                    : INFINITY;
        break;
    case ARRIVAL_KIND_COUNT:
        assert(!"a kind");
    }
    if (arrivals->ended || at_ns >= (double)arrivals->duration_ns) {
        arrivals->ended = true; /* the next gap may be shorter, but the end is the end */
        return false;
    }
    arrivals->at_ns = at_ns;
    arrivals->made++;
    *ret_offset_ns = (int64_t)at_ns;
    return true;
}
