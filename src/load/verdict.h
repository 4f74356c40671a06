/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a measurement may be believed: VALID, or INVALID with every reason that holds.
 */
#ifndef TRANCHE_LOAD_VERDICT_H
#define TRANCHE_LOAD_VERDICT_H

#include <stdbool.h>

#include "base/str.h"

/* X(name, word in results, what it means) */
#define VERDICT_REASONS(X)                                                                     \
    X(TOO_FEW, "too-few-steps", "fewer steps than --min-steps")                                \
    X(UNSTEADY, "unsteady", "throughput or latency still moved (docs/spec/measuring.md)")      \
    X(CPU_SHORT, "cpu-short",                                                                  \
      "the slice got less CPU time than its quota: neighbours took it")                        \
    X(WRONG_OUTPUT, "wrong-output", "outputs differ from the reference")                       \
    X(WRONG_DEVICE, "wrong-device", "the workload saw another device than its slice")          \
    X(CLOCKS, "clocks-throttled", "the GPU's clocks were throttled")                           \
    X(CLIENT, "client-bottleneck", "requests were sent late: the client was the bottleneck")   \
    X(DROPPED, "dropped", "requests were dropped: over the cap on requests in flight")         \
    X(TIMED_OUT, "timed-out", "requests timed out")                                            \
    X(FAILED, "failed", "requests failed")                                                     \
    X(LOST, "behind", "the target fell behind the offered rate")

enum verdict_reason {
#define X(name, word, meaning) REASON_##name,
    VERDICT_REASONS(X)
#undef X
        VERDICT_REASON_COUNT
};

/* A set of reasons: bit i is reason i; 0 is VALID. */
struct verdict {
    unsigned reasons;
};

/* Adds the reason when it holds. */
static inline void verdict_add(struct verdict *verdict, enum verdict_reason reason, bool holds)
{
    verdict->reasons |= holds ? 1u << reason : 0;
}
/* Whether no reason holds. */
static inline bool verdict_is_valid(struct verdict verdict)
{
    return verdict.reasons == 0;
}
/* Appends the words, separated by `separator`. */
void verdict_words(struct verdict verdict, const char *separator, struct str *text);
/* Appends "word: meaning" for each reason, one a line. */
void verdict_explain(struct verdict verdict, struct str *text);

#endif
