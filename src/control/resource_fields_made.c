/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of the kinds that the controller and the node agents write: PartitionPlan,
 * Transition, NodeGpuState.
 */
#include "control/kinds.h"
#include "control/resource_fields.h"
#include "control/resource_rows.h"
#include "control/resources.h"

enum { ACTIONS_MAX = 1000, PLAN_ITEMS_MAX = 4000, NODE_GPUS_MAX = 64, NODE_INSTANCES_MAX = 16 };

static const char *const action_kinds[ACTION_KIND_COUNT] = {
    "create_instance", "delete_instance", "start", "drain", "stop"};
static const char *const action_groups[ACTION_GROUP_COUNT] = {
    "create", "delete", "migrate-local", "migrate-remote", "repartition"};
static const char *const phases[ACTION_PHASE_COUNT] = {"Pending", "Started", "Done", "Failed"};

static const struct field_rule immutable[] = {
    {"self == oldSelf", "the spec cannot be changed: make another object"},
};

/* PartitionPlan */

static const struct field plan_item[] = {
    {"gpuUUID", "The GPU.", FIELD_TEXT, AT(partition_item, gpu_uuid), .required = true,
     .minimum = 1, .maximum = UUID_MAX_BYTES},
    {"node", "Its node.", FIELD_TEXT, AT(partition_item, node), .maximum = NAME_MAX_BYTES},
    {"board", "Its board.", FIELD_BOARD, AT(partition_item, board), .required = true,
     .maximum = 63, .pattern = PATTERN_BOARD},
    {"slice", "Slice profile.", FIELD_SLICE, AT(partition_item, profile), .required = true,
     .maximum = 32, .pattern = PATTERN_SLICE},
    {"start", "First memory unit.", FIELD_START, AT(partition_item, start), .required = true,
     .maximum = FIELD_UNITS_MAX},
    {"service", "GpuService (namespace/name) that it serves; empty: none.", FIELD_TEXT,
     AT(partition_item, service), .maximum = 317, .pattern = PATTERN_PATH},
    {"batch", "Largest batch.", FIELD_INT, AT(partition_item, batch),
     .maximum = FIELD_BATCH_MAX},
    {"procs", "Processes that share the instance.", FIELD_INT, AT(partition_item, procs),
     .maximum = FIELD_PROCS_MAX},
    {"maxWaitMs", "Longest time that a request waits for its batch to fill.", FIELD_NUMBER,
     AT(partition_item, max_wait_ms), .maximum = FIELD_MS_MAX},
    {"rateRps", "What the instance promises.", FIELD_NUMBER, AT(partition_item, rate_rps),
     .maximum = FIELD_RATE_MAX},
    {"latencyMs", "Predicted latency at the service's percentile.", FIELD_NUMBER,
     AT(partition_item, latency_ms), .maximum = FIELD_MS_MAX},
};

static const struct field plan_spec[] = {
    {"pool", "The GpuPool.", FIELD_TEXT, AT(partition_plan, pool), .required = true,
     .minimum = 1, .maximum = NAME_MAX_BYTES, .pattern = PATTERN_NAME},
    {"plan", "Name that the parts of one plan share.", FIELD_TEXT, AT(partition_plan, plan),
     .required = true, .minimum = 1, .maximum = NAME_MAX_BYTES, .pattern = PATTERN_NAME},
    {"part", "Which part this is, from 0.", FIELD_INT, AT(partition_plan, part),
     .maximum = 9999, .fallback = "0"},
    {"parts", "How many there are.", FIELD_INT, AT(partition_plan, parts), .minimum = 1,
     .maximum = 10000, .fallback = "1"},
    {"inputHash", "Of services, profiles and inventory that it was made from.", FIELD_TEXT,
     AT(partition_plan, input_hash), .maximum = 80},
    {"algorithm", "The planner.", FIELD_TEXT, AT(partition_plan, algorithm), .maximum = 64},
    {"cost", "Price of the GPUs used.", FIELD_NUMBER, AT(partition_plan, cost),
     .maximum = FIELD_RATE_MAX},
    {"boundCost", "No plan costs less: proved.", FIELD_NUMBER, AT(partition_plan, bound_cost),
     .maximum = FIELD_RATE_MAX},
    {"items", "The instances.", FIELD_LIST, AT(partition_plan, items), .required = true,
     .maximum = PLAN_ITEMS_MAX, ITEMS(plan_item, sizeof(struct partition_item))},
};

static const struct field plan_status[] = {
    FIELD_OBSERVED_GENERATION,
    {"gpusUsed", "GPUs with an instance that serves.", FIELD_INT, SCHEMA_ONLY},
    FIELD_STATUS_CONDITIONS,
};

static const struct schema_column plan_columns[] = {
    {"Pool", "string", ".spec.pool"},
    {"Algorithm", "string", ".spec.algorithm"},
    {"Cost", "number", ".spec.cost"},
    {"Bound", "number", ".spec.boundCost"},
    {"GPUs", "integer", ".status.gpusUsed"},
    {"Accepted", "string", ".status.conditions[?(@.type==\"Accepted\")].status"},
    {"Superseded", "string", ".status.conditions[?(@.type==\"Superseded\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
};

static const struct schema_condition plan_conditions[] = {
    {"Accepted", "it passed verification and is being, or was, carried out"},
    {"Superseded", "another plan took its place"},
};

const struct schema_kind SCHEMA_OF_PARTITION_PLAN = {
    .kind = &KIND_PARTITION_PLAN,
    .singular = "partitionplan",
    .short_name = "pplan",
    .help = "Which instances exist on which GPU and what each serves. Written by the "
            "controller; its spec cannot be changed.",
    .spec = {"spec", "The plan.", FIELD_GROUP, .required = true, FIELDS(plan_spec),
             RULES(immutable)},
    .status = {"status", "What became of it.", FIELD_GROUP, FIELDS(plan_status)},
    .columns = plan_columns,
    .column_count = COUNT_OF(plan_columns),
    .conditions = plan_conditions,
    .condition_count = COUNT_OF(plan_conditions),
};

/* Transition */

static const struct field transition_gpu_fields[] = {
    {"uuid", "The GPU.", FIELD_TEXT, AT(transition_gpu_row, uuid), .required = true,
     .minimum = 1, .maximum = UUID_MAX_BYTES},
    {"board", "Its board.", FIELD_BOARD, AT(transition_gpu_row, board), .required = true,
     .maximum = 63, .pattern = PATTERN_BOARD},
    {"node", "Its node.", FIELD_TEXT, AT(transition_gpu_row, node), .maximum = NAME_MAX_BYTES},
};

static const struct field transition_service_fields[] = {
    {"name", "GpuService (namespace/name).", FIELD_TEXT, AT(transition_service, name),
     .required = true, .minimum = 1, .maximum = 317},
    {"floorRps", "Its capacity does not fall below this.", FIELD_NUMBER,
     AT(transition_service, floor_rps), .required = true, .maximum = FIELD_RATE_MAX},
};

static const struct field transition_action_fields[] = {
    {"id", "Unique in the transition.", FIELD_TEXT, AT(transition_action_row, id),
     .required = true, .minimum = 1, .maximum = 64},
    {"kind", "What is done.", FIELD_CHOICE, AT(transition_action_row, kind), .required = true,
     CHOICES(action_kinds)},
    {"group", "The MIG-serving paper's action that it belongs to.", FIELD_CHOICE,
     AT(transition_action_row, group), .required = true, CHOICES(action_groups)},
    {"gpuUUID", "The GPU.", FIELD_TEXT, AT(transition_action_row, gpu_uuid), .required = true,
     .minimum = 1, .maximum = UUID_MAX_BYTES},
    {"slice", "Slice profile.", FIELD_TEXT, AT(transition_action_row, slice), .required = true,
     .maximum = 32, .pattern = PATTERN_SLICE},
    {"start", "First memory unit.", FIELD_INT, AT(transition_action_row, start),
     .required = true, .maximum = FIELD_UNITS_MAX},
    {"service", "GpuService (namespace/name); none for create_instance and delete_instance.",
     FIELD_TEXT, AT(transition_action_row, service), .maximum = 317, .pattern = PATTERN_PATH},
    {"batch", "Largest batch.", FIELD_INT, AT(transition_action_row, batch),
     .maximum = FIELD_BATCH_MAX},
    {"procs", "Processes that share the instance.", FIELD_INT, AT(transition_action_row, procs),
     .maximum = FIELD_PROCS_MAX},
    {"rateRps", "Gained by start, lost by drain.", FIELD_NUMBER,
     AT(transition_action_row, rate_rps), .maximum = FIELD_RATE_MAX},
    {"seconds", "Expected duration.", FIELD_NUMBER, AT(transition_action_row, seconds),
     .required = true, .maximum = FIELD_MS_MAX},
    {"after", "Actions that must be done before this one may begin.", FIELD_TEXTS,
     AT(transition_action_row, after), .maximum = ACTIONS_MAX},
};

static const struct field transition_spec[] = {
    {"pool", "The GpuPool.", FIELD_TEXT, AT(transition_rows, pool), .required = true,
     .minimum = 1, .maximum = NAME_MAX_BYTES, .pattern = PATTERN_NAME},
    {"from", "The plan before; empty: the state that was found.", FIELD_TEXT,
     AT(transition_rows, from), .maximum = NAME_MAX_BYTES},
    {"to", "The plan that it leads to.", FIELD_TEXT, AT(transition_rows, to), .required = true,
     .minimum = 1, .maximum = NAME_MAX_BYTES},
    {"gpus", "The GPUs that it touches or borrows.", FIELD_LIST, AT(transition_rows, gpus),
     .required = true, .maximum = ACTIONS_MAX,
     ITEMS(transition_gpu_fields, sizeof(struct transition_gpu_row))},
    {"services", "The services, each with its floor.", FIELD_LIST,
     AT(transition_rows, services), .required = true, .maximum = ACTIONS_MAX * 2,
     ITEMS(transition_service_fields, sizeof(struct transition_service))},
    {"actions", "The actions; each comes after those that it waits for.", FIELD_LIST,
     AT(transition_rows, actions), .required = true, .maximum = ACTIONS_MAX,
     ITEMS(transition_action_fields, sizeof(struct transition_action_row))},
};

static const struct field transition_state_fields[] = {
    {"id", "The action.", FIELD_TEXT, AT(transition_state_row, id), .required = true,
     .minimum = 1, .maximum = 64},
    {"phase", "Where it stands.", FIELD_CHOICE, AT(transition_state_row, state.phase),
     .required = true, CHOICES(phases)},
    {"attempts", "How often it was begun.", FIELD_INT,
     AT(transition_state_row, state.attempts)},
    {"startedAt", "When it was first begun.", FIELD_TIME,
     AT(transition_state_row, state.started_s)},
    {"finishedAt", "When it was found done.", FIELD_TIME,
     AT(transition_state_row, state.finished_s)},
    {"reason", "Of a failure.", FIELD_TEXT, AT(transition_state_row, state.reason),
     .maximum = TEXT_MAX_BYTES},
};

static const struct field transition_capacity_fields[] = {
    {"name", "GpuService (namespace/name).", FIELD_TEXT, SCHEMA_ONLY, .required = true,
     .maximum = 317},
    {"capacityRps", "What its ready instances promise.", FIELD_NUMBER, SCHEMA_ONLY,
     .maximum = FIELD_RATE_MAX},
};

static const struct field transition_status[] = {
    FIELD_OBSERVED_GENERATION,
    {"epoch", "Leadership (Lease.leaseTransitions) that began the actions.", FIELD_LONG,
     AT(transition_rows, epoch), .fallback = "-1", .minimum = -1},
    {"actionsTotal", "How many actions there are.", FIELD_INT, SCHEMA_ONLY},
    {"actionsDone", "How many are done.", FIELD_INT, SCHEMA_ONLY},
    {"actions", "Which actions were begun; one that is missing is Pending.", FIELD_LIST,
     AT(transition_rows, states), .maximum = ACTIONS_MAX,
     ITEMS(transition_state_fields, sizeof(struct transition_state_row)), .keys = "id"},
    {"services", "The capacity of each service.", FIELD_LIST, SCHEMA_ONLY,
     .maximum = ACTIONS_MAX * 2, ITEMS(transition_capacity_fields, 1), .keys = "name"},
    FIELD_STATUS_CONDITIONS,
};

static const struct schema_column transition_columns[] = {
    {"Pool", "string", ".spec.pool"},
    {"To", "string", ".spec.to"},
    {"Done", "integer", ".status.actionsDone"},
    {"Actions", "integer", ".status.actionsTotal"},
    {"Complete", "string", ".status.conditions[?(@.type==\"Complete\")].status"},
    {"Floor", "string", ".status.conditions[?(@.type==\"FloorHeld\")].status"},
    {"Stalled", "string", ".status.conditions[?(@.type==\"Stalled\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
    {"From", "string", ".spec.from", .wide = true},
    {"Epoch", "integer", ".status.epoch", .wide = true},
};

static const struct schema_condition transition_conditions[] = {
    {"Started", "an action was begun"},
    {"Progressing", "actions are open and none is stuck"},
    {"Complete",
     "every action is done, or (False, reason Superseded) it was closed for another"},
    {"Stalled", "an action takes longer than the pool's actionTimeoutSeconds"},
    {"FloorHeld", "False while an action waits because it would break a service's floor"},
    {"Ready", "the same as Complete, for kstatus"},
    {"Reconciling", "the same as Progressing, for kstatus"},
};

const struct schema_kind SCHEMA_OF_TRANSITION = {
    .kind = &KIND_TRANSITION,
    .singular = "transition",
    .short_name = "trans",
    .help = "The ordered actions that lead from one plan to another. Written by the "
            "controller; its spec cannot be changed, its status says what was begun.",
    .spec = {"spec", "The actions.", FIELD_GROUP, .required = true, FIELDS(transition_spec),
             RULES(immutable)},
    .status = {"status", "How far it has come.", FIELD_GROUP, FIELDS(transition_status)},
    .columns = transition_columns,
    .column_count = COUNT_OF(transition_columns),
    .conditions = transition_conditions,
    .condition_count = COUNT_OF(transition_conditions),
};

/* NodeGpuState */

static const struct field wanted_instance[] = {
    {"slice", "Slice profile.", FIELD_SLICE, AT(node_instance, profile), .required = true,
     .maximum = 32, .pattern = PATTERN_SLICE},
    {"start", "First memory unit.", FIELD_START, AT(node_instance, start), .required = true,
     .maximum = FIELD_UNITS_MAX},
};

static const struct field found_instance[] = {
    {"slice", "Slice profile.", FIELD_SLICE, AT(node_instance, profile), .required = true,
     .maximum = 32},
    {"start", "First memory unit.", FIELD_START, AT(node_instance, start), .required = true,
     .maximum = FIELD_UNITS_MAX},
    {"uuid", "MIG UUID; absent: there is no compute instance.", FIELD_TEXT,
     AT(node_instance, uuid), .maximum = UUID_MAX_BYTES},
    {"ready", "GPU and compute instance are there and the CDI specification is written.",
     FIELD_BOOL, AT(node_instance, ready)},
};

static const struct field wanted_gpu[] = {
    {"uuid", "The GPU.", FIELD_TEXT, AT(node_gpu, uuid), .required = true, .minimum = 1,
     .maximum = UUID_MAX_BYTES},
    {"board", "Its board.", FIELD_BOARD, AT(node_gpu, board), .required = true, .maximum = 63,
     .pattern = PATTERN_BOARD},
    {"instances", "All instances that shall be on it.", FIELD_LIST, AT(node_gpu, instances),
     .maximum = NODE_INSTANCES_MAX, ITEMS(wanted_instance, sizeof(struct node_instance)),
     .keys = "start"},
};

static const struct field found_gpu[] = {
    {"uuid", "The GPU.", FIELD_TEXT, AT(node_gpu, uuid), .required = true, .minimum = 1,
     .maximum = UUID_MAX_BYTES},
    {"board", "Its board.", FIELD_BOARD, AT(node_gpu, board), .required = true, .maximum = 63},
    {"migEnabled", "MIG mode is on.", FIELD_BOOL, AT(node_gpu, mig_enabled)},
    {"message", "Why it could not be made as the spec wants it; absent: nothing failed on it.",
     FIELD_TEXT, AT(node_gpu, message), .maximum = TEXT_MAX_BYTES},
    {"instances", "The instances on it.", FIELD_LIST, AT(node_gpu, instances),
     .maximum = NODE_INSTANCES_MAX, ITEMS(found_instance, sizeof(struct node_instance)),
     .keys = "start"},
};

static const struct field state_spec[] = {
    {"epoch",
     "Leadership (Lease.leaseTransitions) of the controller that wants this; an agent refuses "
     "a lower one than it has seen.",
     FIELD_LONG, AT(node_gpu_state, epoch), .fallback = "0"},
    {"gpus", "GPUs that are tranche's to change; others are left alone.", FIELD_LIST,
     AT(node_gpu_state, desired), .maximum = NODE_GPUS_MAX,
     ITEMS(wanted_gpu, sizeof(struct node_gpu)), .keys = "uuid"},
};

static const struct field state_status[] = {
    {"observedGeneration", "metadata.generation of the spec that this status speaks of.",
     FIELD_LONG, AT(node_gpu_state, observed_generation)},
    {"observedEpoch", "The highest epoch that the agent has seen.", FIELD_LONG,
     AT(node_gpu_state, observed_epoch), .fallback = "-1", .minimum = -1},
    {"driverVersion", "Version of the NVIDIA driver.", FIELD_TEXT, SCHEMA_ONLY, .maximum = 64},
    {"agentVersion", "Version of the agent.", FIELD_TEXT, SCHEMA_ONLY, .maximum = 64},
    {"heartbeatAt", "When the agent last looked and wrote.", FIELD_TIME, SCHEMA_ONLY},
    {"gpus", "The GPUs and their instances as found.", FIELD_LIST, AT(node_gpu_state, found),
     .maximum = NODE_GPUS_MAX, ITEMS(found_gpu, sizeof(struct node_gpu)), .keys = "uuid"},
    {"message", "What the agent has to say: the last failure.", FIELD_TEXT,
     AT(node_gpu_state, message), .maximum = TEXT_MAX_BYTES},
    FIELD_STATUS_CONDITIONS,
};

static const struct schema_column state_columns[] = {
    {"Driver", "string", ".status.driverVersion"},
    {"Epoch", "integer", ".status.observedEpoch"},
    {"Synced", "string", ".status.conditions[?(@.type==\"Synced\")].status"},
    {"Conflict", "string", ".status.conditions[?(@.type==\"DriverConflict\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
    {"Message", "string", ".status.message", .wide = true},
};

static const struct schema_condition state_conditions[] = {
    {"Synced", "the node's instances are those that the spec wants"},
    {"DriverConflict", "another owner drives the node's MIG state: the agent changes nothing"},
    {"Ready", "the same as Synced, for kstatus"},
    {"Stalled", "a change failed and is tried again"},
};

const struct schema_kind SCHEMA_OF_NODE_GPU_STATE = {
    .kind = &KIND_NODE_GPU_STATE,
    .singular = "nodegpustate",
    .short_name = "ngs",
    .help =
        "A node's GPUs with the actuator agent: the instances that the controller wants, and "
        "those that the node's agent finds. Named as its node.",
    .spec = {"spec", "What shall be there, by the controller.", FIELD_GROUP, .required = true,
             FIELDS(state_spec)},
    .status = {"status", "What is there, by the agent.", FIELD_GROUP, FIELDS(state_status)},
    .columns = state_columns,
    .column_count = COUNT_OF(state_columns),
    .conditions = state_conditions,
    .condition_count = COUNT_OF(state_conditions),
};

const struct schema_kind *const SCHEMA_KINDS[SCHEMA_KIND_COUNT] = {
    [SCHEMA_GPU_POOL] = &SCHEMA_OF_GPU_POOL,
    [SCHEMA_GPU_SERVICE] = &SCHEMA_OF_GPU_SERVICE,
    [SCHEMA_NODE_GPU_STATE] = &SCHEMA_OF_NODE_GPU_STATE,
    [SCHEMA_PARTITION_PLAN] = &SCHEMA_OF_PARTITION_PLAN,
    [SCHEMA_PERF_PROFILE] = &SCHEMA_OF_PERF_PROFILE,
    [SCHEMA_TRANSITION] = &SCHEMA_OF_TRANSITION,
};
