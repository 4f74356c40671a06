/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent: one a node. It watches the NodeGpuState of its node, brings the GPUs that
 * the spec names to the layouts that it asks for, and says in the status what is there. It
 * lives in a kube loop; the driver is called in a worker thread (agent_worker.h).
 *
 *     spec of a lower epoch than was ever seen     refused: its leader is over
 *     a higher one                                 noted in the status first, then followed
 *     mig-manager's label on the node, or a DRA    refused: one owner a node
 *     driver that publishes partitions of it
 *     a spec that cannot be                        refused, with the words why
 *
 * A node at rest costs no write: the GPUs are read again every interval, and the status is
 * written when it would say something else.
 */
#ifndef TRANCHE_CONTROL_AGENT_H
#define TRANCHE_CONTROL_AGENT_H

#include "control/agent_gpus.h"
#include "kube/event.h"

struct agent_options {
    struct kube_client *client; /* borrowed */
    struct kube_events *events; /* borrowed; NULL: none are sent */
    const char *node_name, *version;
    struct agent_gpus_options gpus; /* texts are borrowed */
    int64_t interval_ns;            /* between two looks at rest; 0: 30 s */
    uint64_t seed;
};

struct agent;

/* Begins to watch and to look in the next turn of the loop. E_IO when no thread or descriptor
 * can be had. Client, events and texts are borrowed as long as it lives. */
int agent_new(const struct agent_options *options, struct agent **ret_agent, struct error *err);
/* Waits for the driver call under way. */
void agent_free(struct agent *agent);
CLEANUP_DEFINE_FREE(agent)

/* For /metrics, Prometheus text. */
void agent_metrics(struct agent *agent, struct str *text);
/* For /readyz: its NodeGpuState was read, and the GPUs were. Appends why not. */
bool agent_is_ready(struct agent *agent, struct str *why);

#endif
