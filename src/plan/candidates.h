/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidate configurations: all labellings of all patterns by a few services, scored as
 * MIG-serving does (section 5.1): the sum over services of (1 - c) u, per price.
 */
#ifndef TRANCHE_PLAN_CANDIDATES_H
#define TRANCHE_PLAN_CANDIDATES_H

#include "plan/arm.h"

enum { CANDIDATE_SERVICES_MAX = 16 };

struct candidate {
    double score;
    struct solution_gpu gpu;
};

/* The best `most` labellings by these services in the state, best first; returns how many
 * there are with a positive score. Kinds out of stock are left out. */
int candidates_top(const struct arm *arm, const struct arm_state *state, const int *services,
                   int service_count, struct candidate *ret_candidates, int most);
/* The score of a given GPU in a state: the sum over the services on it of arm_worth(), over its
 * price. */
double candidates_score(const struct arm *arm, const struct arm_state *state,
                        const struct solution_gpu *gpu);
/* The last mile: for each pattern, its slots from the largest on go to the service with the
 * greatest (1 - c) u among those still missing something, at most service_limit services on
 * the GPU; the best such GPU. Zero score: there is none. */
struct candidate candidates_mix(const struct arm *arm, const struct arm_state *state,
                                int service_limit);

#endif
