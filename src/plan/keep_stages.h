/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of keep_model.h in two stages, covers first and GPUs after: far cheaper than
 * as a whole, nearly as tight, and for hundreds of old instances.
 */
#ifndef TRANCHE_PLAN_KEEP_STAGES_H
#define TRANCHE_PLAN_KEEP_STAGES_H

#include "plan/keep_model.h"

struct keep_stage {
    bool with_gpus;    /* old GPUs are in, fractional: tighter and slower */
    const int *around; /* instances by service and slot kind of a plan; NULL: anywhere … */
    int distance;      /* … else only so far from it, each */
};

/* How large a stage's program is. */
int keep_stage_columns(const struct keep_model *model, const struct keep_stage *stage);

/* Branch and cut for whole covers that keep more than search->kept; x (one count a service
 * and slot kind) is filled when true. Lowers *bound, unless the stage looks around a plan. */
bool keep_stage_covers(const struct keep_model *model, const struct keep_search *search,
                       const struct keep_stage *stage, int *x, int *bound);

/* Which instances stay when the services have exactly x; true when more than search->kept
 * do, and keep (one flag an instance) is filled. */
bool keep_stage_gpus(const struct keep_model *model, const struct keep_search *search,
                     const int *x, bool *keep);

#endif
