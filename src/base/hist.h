/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-linear latency histogram in HdrHistogram's scheme with 3 significant digits: a
 * recorded value and the value read back for it differ by at most 0.1 %. Values are
 * int64 nanoseconds from 1 ns to one hour (larger ones are recorded as one hour and
 * counted in `saturated`). Histograms merge exactly: merging then reading equals
 * recording everything into one.
 */
#ifndef TRANCHE_BASE_HIST_H
#define TRANCHE_BASE_HIST_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

struct hist;

/* An empty histogram; never NULL; hist_free() it. */
struct hist *hist_new(void);
void hist_free(struct hist *hist); /* NULL is fine */
CLEANUP_DEFINE_FREE(hist)

/* Counts one value: below 1 ns as 1 ns, above an hour as an hour (saturated). */
void hist_record(struct hist *hist, int64_t value_ns);
/* Counts the same value `count` times. */
void hist_record_many(struct hist *hist, int64_t value_ns, uint64_t count);
/* Adds all counts of `from`; percentiles are then those of both together. */
void hist_merge(struct hist *into, const struct hist *from);
/* Forgets all values. */
void hist_reset(struct hist *hist);

/* How many values were recorded, saturated ones included. */
uint64_t hist_count(const struct hist *hist);
/* How many of them were above an hour. */
uint64_t hist_saturated(const struct hist *hist);
int64_t hist_min_ns(const struct hist *hist); /* 0 when empty */
int64_t hist_max_ns(const struct hist *hist); /* both exact */
double hist_mean_ns(const struct hist *hist); /* from bucket midpoints; 0 when empty */
/* Standard deviation over bucket midpoints, dividing by the count; 0 when empty. */
double hist_stddev_ns(const struct hist *hist);
/* The smallest recorded bucket value v such that at least percent % of the records are
 * <= v (nearest rank), 0 < percent <= 100; 0 when empty. */
int64_t hist_percentile_ns(const struct hist *hist, double percent);
/* Share of the records that are read back as <= limit_ns, 0 … 1 (1 when empty):
 * percentile(p) <= limit exactly when share_within(limit) >= p %. */
double hist_share_within(const struct hist *hist, int64_t limit_ns);

/* Text form for files and pipes, "bucket:count …" with a version word in front. Exact:
 * hist_decode() gives back the same counts, smallest and largest value. */
void hist_encode(const struct hist *hist, struct str *ret_text);
/* Reads what hist_encode() wrote into a new histogram that the caller frees. Bad text, or one
 * of another version, is E_INPUT and leaves *ret_hist alone. */
int hist_decode(const char *text, struct hist **ret_hist, struct error *err);

#endif
