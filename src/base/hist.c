/* SPDX-License-Identifier: Apache-2.0
 *
 * The histogram. Bucket index of a value v with its highest set bit at position b:
 *
 *     shift = max(b, 10) − 10,  index = shift·1024 + (v >> shift).
 *
 * Below 2048 every value has its own bucket (shift 0). From there on the bucket holds
 * the 2^shift values that agree in their eleven highest bits, v >> shift = k with
 * 1024 <= k < 2048, hence indices rise without gaps.
 *
 * Error bound. A value is read back as the highest one of its bucket, or as the largest
 * value recorded where that is less. Both lie in the bucket of v, so the difference is
 * at most 2^shift − 1, and v >= k·2^shift >= 1024·2^shift, hence
 *
 *     |read back − v| / v <= (2^shift − 1) / (1024·2^shift) < 1/1024 < 0.1 %.
 *
 * Mean and deviation use the bucket's midpoint, half that far off at most: < 0.05 %.
 * One hour, 3.6e12 ns, has b = 41: shift 31, and the last index below is 33420.
 *
 * Smallest and largest value are kept exactly, and all else is a sum of counts, so merging
 * and then reading is reading what was recorded into one.
 */
#include "base/hist.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HOUR_NS INT64_C(3600000000000)

enum {
    HALF_BITS = 10,
    HALF = 1 << HALF_BITS,
    BUCKET_COUNT = 33421, /* bucket_of(HOUR_NS) + 1 */
};

struct hist {
    uint64_t total;
    uint64_t saturated;
    int64_t min_ns, max_ns; /* INT64_MAX and 0 when empty */
    uint64_t counts[BUCKET_COUNT];
};

static const char hist_version[] = "tranche.hist/1";

static size_t bucket_of(int64_t value_ns)
{
    assert(value_ns >= 0 && value_ns <= HOUR_NS);
    uint64_t value = (uint64_t)value_ns;
    int shift = 63 - HALF_BITS - __builtin_clzll(value | HALF);
    return ((size_t)shift << HALF_BITS) + (size_t)(value >> shift);
}

static int bucket_shift(size_t bucket)
{
    return bucket < HALF ? 0 : (int)(bucket >> HALF_BITS) - 1;
}

static int64_t bucket_low(size_t bucket)
{
    assert(bucket < BUCKET_COUNT);
    int shift = bucket_shift(bucket);
    return (int64_t)(bucket - ((size_t)shift << HALF_BITS)) << shift;
}

static int64_t bucket_high(size_t bucket)
{
    return bucket_low(bucket) + (INT64_C(1) << bucket_shift(bucket)) - 1;
}

static double bucket_middle(size_t bucket)
{
    return ((double)bucket_low(bucket) + (double)bucket_high(bucket)) / 2;
}

/* What every record of the bucket is read back as. */
static int64_t bucket_value(const struct hist *hist, size_t bucket)
{
    int64_t high = bucket_high(bucket);
    return high < hist->max_ns ? high : hist->max_ns;
}

/* The filled range: [bucket_of(min), bucket_of(max)]; empty as first > last. */
static size_t first_bucket(const struct hist *hist)
{
    return hist->total ? bucket_of(hist->min_ns) : 1;
}

static size_t last_bucket(const struct hist *hist)
{
    return hist->total ? bucket_of(hist->max_ns) : 0;
}

/* The rank, from 1, of the record at percent. 99.9 % of 1000 records are 999, though no
 * double is 99.9: what rounding may have added is taken off before rounding up. */
static uint64_t nearest_rank(double percent, uint64_t total)
{
    assert(percent > 0 && percent <= 100 && total > 0);
    double exact = percent * (double)total / 100;
    double rank = ceil(exact * (1 - 2 * DBL_EPSILON));
    if (rank >= (double)total)
        return total;
    return rank < 1 ? 1 : (uint64_t)rank;
}

/* Reads digits of a number of at most `limit`; on success *text is behind them. */
static bool take_number(const char **text, uint64_t limit, uint64_t *ret)
{
    const char *p = *text;
    uint64_t value = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value) || value > limit)
            return false;
    *text = p;
    *ret = value;
    return true;
}

/* The buckets, which must hold `total` records together. */
static bool take_buckets(const char *text, uint64_t total, struct hist *hist)
{
    assert(total > 0);
    for (size_t next = 0; hist->total < total;) {
        uint64_t bucket, count, left = total - hist->total;
        if (*text++ != ' ' || !take_number(&text, BUCKET_COUNT - 1, &bucket) || bucket < next ||
            *text++ != ':' || !take_number(&text, left, &count) || count == 0)
            return false;
        hist->counts[bucket] = count;
        hist->total += count;
        next = bucket + 1;
    }
    return *text == '\0';
}

/* Whether the range is exactly what the buckets fill, as loops run over it alone. */
static bool is_consistent(const struct hist *hist)
{
    if (hist->min_ns < 1 || hist->min_ns > hist->max_ns)
        return false;
    size_t first = 0, last = BUCKET_COUNT - 1;
    while (!hist->counts[first])
        first++;
    while (!hist->counts[last])
        last--;
    bool saturation_fits = hist->saturated == 0 ||
                           (hist->max_ns == HOUR_NS && hist->saturated <= hist->counts[last]);
    return first == first_bucket(hist) && last == last_bucket(hist) && saturation_fits;
}

static bool take_hist(const char *text, struct hist *hist)
{
    enum { COUNT, MIN, MAX, SATURATED, FIELD_COUNT };
    uint64_t fields[FIELD_COUNT];
    for (int i = 0; i < FIELD_COUNT; i++) {
        bool is_time = i == MIN || i == MAX;
        if (*text++ != ' ' || !take_number(&text, is_time ? HOUR_NS : UINT64_MAX, &fields[i]))
            return false;
    }
    if (fields[COUNT] == 0)
        return *text == '\0' && !fields[MIN] && !fields[MAX] && !fields[SATURATED];
    hist->min_ns = (int64_t)fields[MIN];
    hist->max_ns = (int64_t)fields[MAX];
    hist->saturated = fields[SATURATED];
    return take_buckets(text, fields[COUNT], hist) && is_consistent(hist);
}

struct hist *hist_new(void)
{
    struct hist *hist = xcalloc(1, sizeof *hist);
    hist->min_ns = INT64_MAX;
    return hist;
}

void hist_free(struct hist *hist)
{
    free(hist);
}

void hist_record(struct hist *hist, int64_t value_ns)
{
    hist_record_many(hist, value_ns, 1);
}

void hist_record_many(struct hist *hist, int64_t value_ns, uint64_t count)
{
    assert(hist);
    if (count == 0)
        return;
    if (__builtin_expect(value_ns > HOUR_NS, 0)) {
        value_ns = HOUR_NS;
        hist->saturated += count;
    }
    if (value_ns < 1)
        value_ns = 1;
    hist->counts[bucket_of(value_ns)] += count;
    hist->total += count;
    if (value_ns < hist->min_ns)
        hist->min_ns = value_ns;
    if (value_ns > hist->max_ns)
        hist->max_ns = value_ns;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    assert(into && from && into != from);
    assert(into != from);
    for (size_t i = first_bucket(from); i <= last_bucket(from); i++)
        into->counts[i] += from->counts[i];
    into->total += from->total;
    into->saturated += from->saturated;
    if (from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
}

void hist_reset(struct hist *hist)
{
    memset(hist, 0, sizeof *hist);
    hist->min_ns = INT64_MAX;
}

uint64_t hist_count(const struct hist *hist)
{
    return hist->total;
}

uint64_t hist_saturated(const struct hist *hist)
{
    assert(hist->saturated <= hist->total);
    return hist->saturated;
}

int64_t hist_min_ns(const struct hist *hist)
{
    return hist->total ? hist->min_ns : 0;
}

int64_t hist_max_ns(const struct hist *hist)
{
    return hist->max_ns;
}

double hist_mean_ns(const struct hist *hist)
{
    if (hist->total == 0)
        return 0;
    double sum = 0;
    for (size_t i = first_bucket(hist); i <= last_bucket(hist); i++)
        sum += (double)hist->counts[i] * bucket_middle(i);
    return sum / (double)hist->total;
}

double hist_stddev_ns(const struct hist *hist)
{
    if (hist->total == 0)
        return 0;
    double mean = hist_mean_ns(hist), sum = 0;
    for (size_t i = first_bucket(hist); i <= last_bucket(hist); i++) {
        double distance = bucket_middle(i) - mean;
        sum += (double)hist->counts[i] * distance * distance;
    }
    return sqrt(sum / (double)hist->total);
}

int64_t hist_percentile_ns(const struct hist *hist, double percent)
{
    assert(percent > 0 && percent <= 100);
    if (hist->total == 0)
        return 0;
    uint64_t rank = nearest_rank(percent, hist->total), seen = 0;
    size_t bucket = first_bucket(hist);
    while ((seen += hist->counts[bucket]) < rank)
        bucket++;
    assert(bucket <= last_bucket(hist));
    return bucket_value(hist, bucket);
}

double hist_share_within(const struct hist *hist, int64_t limit_ns)
{
    if (hist->total == 0)
        return 1;
    uint64_t within = 0;
    for (size_t i = first_bucket(hist); i <= last_bucket(hist); i++) {
        if (bucket_value(hist, i) > limit_ns)
            break;
        within += hist->counts[i];
    }
    return (double)within / (double)hist->total;
}

/* "tranche.hist/1 COUNT MIN MAX SATURATED BUCKET:COUNT …", buckets rising, the empty ones
 * left out. With the count in front, no part of a text that was cut passes for a whole. */
void hist_encode(const struct hist *hist, struct str *ret_text)
{
    str_addf(ret_text, "%s %llu %lld %lld %llu", hist_version, (unsigned long long)hist->total,
             (long long)hist_min_ns(hist), (long long)hist->max_ns,
             (unsigned long long)hist->saturated);
    for (size_t i = first_bucket(hist); i <= last_bucket(hist); i++)
        if (hist->counts[i])
            str_addf(ret_text, " %zu:%llu", i, (unsigned long long)hist->counts[i]);
}

int hist_decode(const char *text, struct hist **ret_hist, struct error *err)
{
    assert(text && ret_hist);
    if (!text_starts_with(text, hist_version))
        return error_set(err, E_INPUT, "histogram: expected a text that begins with %s",
                         hist_version);
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    if (!take_hist(text + strlen(hist_version), hist))
        return error_set(
            err, E_INPUT,
            "histogram: damaged, expected %s COUNT MIN MAX SATURATED BUCKET:COUNT …",
            hist_version);
    *ret_hist = STEAL(hist);
    return 0;
}
