/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node agent says in NodeGpuState's status and on its Node: pure functions from what
 * it found to JSON.
 */
#ifndef TRANCHE_CONTROL_AGENT_STATUS_H
#define TRANCHE_CONTROL_AGENT_STATUS_H

#include "control/agent_gpus.h"

/* Why the spec is not followed. */
enum agent_refusal {
    AGENT_FOLLOWS,
    AGENT_REFUSES_SPEC,  /* it cannot be read */
    AGENT_REFUSES_EPOCH, /* of a leader that is over */
    AGENT_REFUSES_OWNER, /* another program drives the node's MIG state */
    AGENT_REFUSAL_COUNT
};

struct agent_view {
    const json_t *object;                  /* the NodeGpuState; NULL: none yet */
    const struct agent_findings *findings; /* the last ones; NULL: none yet */
    bool followed;                         /* … came of an order to change */
    long long generation;                  /* of the spec that they speak of */
    long long epoch;                       /* the highest seen; -1: none */
    enum agent_refusal refusal;
    const char *why; /* of a refusal */
    const char *agent_version;
    int64_t now_s;
};

/* status; a new reference. GPUs that cannot be read now stay as they were said to be. */
json_t *agent_status_make(const struct agent_view *view);
/* Whether both say the same, the time of writing aside. NULL is a status without a word. */
bool agent_status_equal(const json_t *a, const json_t *b);
/* "AsOrdered", "InUse", …: the reason of the condition Synced. */
const char *agent_status_reason(const struct agent_view *view);

/* Extended resources: one tranche.dev/mig-PROFILE for each ready instance of a GPU that is
 * ours. A merge patch of the node's status, or NULL when it says so already. */
json_t *agent_resources_patch(const json_t *node, const struct agent_order *order,
                              const struct agent_findings *findings);

#endif
