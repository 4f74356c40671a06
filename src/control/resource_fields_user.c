/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of the kinds that people write: GpuService, PerfProfile, GpuPool.
 */
#include "control/kinds.h"
#include "control/resource_fields.h"
#include "control/resources.h"

static const char *const tasks[TASK_COUNT] = {"inference", "training"};
static const char *const spreads[SPREAD_COUNT] = {"none", "gpu", "node"};
static const char *const rules[LATENCY_RULE_COUNT] = {"queue", "batch", "half"};
static const char *const statuses[MEASUREMENT_STATUS_COUNT] = {"ok", "oom", "unsupported",
                                                               "timeout", "error"};
static const char *const actuators[ACTUATOR_KIND_COUNT] = {"auto", "agent", "dra",
                                                           "mig-manager", "sim"};

/* GpuService */

static const struct field template_metadata[] = {
    {"labels", "Labels of the pods; tranche adds its own.", FIELD_MAP, SCHEMA_ONLY},
    {"annotations", "Annotations of the pods; tranche adds its own.", FIELD_MAP, SCHEMA_ONLY},
};

static const struct field template_spec[] = {
    {"containers",
     "Containers of the pod. The first one gets the MIG instance, and what it shall serve in "
     "its environment.",
     FIELD_OPEN_LIST, SCHEMA_ONLY, .required = true, .minimum = 1, .maximum = 64},
};

static const struct field template_fields[] = {
    {"metadata", "Labels and annotations.", FIELD_GROUP, SCHEMA_ONLY,
     FIELDS(template_metadata)},
    {"spec", "The pod's spec, as of a Deployment's template.", FIELD_GROUP, SCHEMA_ONLY,
     .required = true, .open = true, FIELDS(template_spec)},
};

static const struct field service_spec[] = {
    {"pool", "The GpuPool that it runs in.", FIELD_TEXT, AT(gpu_service, pool), .minimum = 1,
     .maximum = 40, .fallback = "\"default\"", .pattern = PATTERN_NAME},
    {"model", "The model, by its name in PerfProfiles.", FIELD_TEXT, AT(gpu_service, model),
     .required = true, .minimum = 1, .maximum = NAME_MAX_BYTES, .pattern = PATTERN_LINE},
    {"task", "inference has a latency objective, training has none.", FIELD_CHOICE,
     AT(gpu_service, task), .fallback = "\"inference\"", CHOICES(tasks)},
    {"rateRps", "Required rate: requests a second (of training: samples a second).",
     FIELD_NUMBER, AT(gpu_service, rate_rps), .required = true, .above = true,
     .maximum = FIELD_RATE_MAX},
    {"latencyMs", "Latency objective in milliseconds, at the percentile.", FIELD_NUMBER,
     AT(gpu_service, latency_ms), .above = true, .maximum = FIELD_MS_MAX},
    {"percentile", "Where the objective holds: 50, 90, 95, 99, \"99.9\" or mean.",
     FIELD_PERCENTILE, AT(gpu_service, percentile), .fallback = "99"},
    {"maxWaitMs",
     "Longest time in milliseconds that a request waits for its batch to fill; default: a "
     "quarter of the objective.",
     FIELD_NUMBER, AT(gpu_service, max_wait_ms), .maximum = FIELD_MS_MAX},
    {"minInstances", "Fewest instances, whatever the rate.", FIELD_INT,
     AT(gpu_service, min_instances), .minimum = 1, .maximum = 1000000, .fallback = "1"},
    {"spread", "Whether the rate shall survive the loss of any one GPU or node.", FIELD_CHOICE,
     AT(gpu_service, spread), .fallback = "\"none\"", CHOICES(spreads)},
    {"priority", "Higher is kept longer when the pool is too small.", FIELD_INT,
     AT(gpu_service, priority), .minimum = -1000000, .maximum = 1000000, .fallback = "0"},
    {"drainSeconds", "Time between leaving the endpoints and the end of a pod.", FIELD_INT,
     AT(gpu_service, drain_seconds), .maximum = 86400, .fallback = "15"},
    {"port", "Port that the pods listen on.", FIELD_INT, AT(gpu_service, port), .minimum = 1,
     .maximum = 65535, .fallback = "8000"},
    {"allowedSlices", "Slice profiles that it may run on, as 1g.5gb or 3g; empty: any.",
     FIELD_TEXTS, AT(gpu_service, allowed_slices), .maximum = 64, .pattern = PATTERN_SLICE,
     .keys = ""},
    {"gateway",
     "Gateway (namespace/name) that an HTTPRoute is attached to, which shares traffic by the "
     "instances' rates; empty: a Service alone.",
     FIELD_TEXT, AT(gpu_service, gateway), .maximum = 317, .pattern = PATTERN_PATH},
    {"podTemplate", "The pods, one an instance.", FIELD_GROUP, SCHEMA_ONLY, .required = true,
     FIELDS(template_fields)},
};

static const struct field service_instance[] = {
    {"pod", "Name of the pod.", FIELD_TEXT, SCHEMA_ONLY, .required = true,
     .maximum = NAME_MAX_BYTES},
    {"node", "Node of the GPU.", FIELD_TEXT, SCHEMA_ONLY, .maximum = NAME_MAX_BYTES},
    {"gpuUUID", "The GPU.", FIELD_TEXT, SCHEMA_ONLY, .maximum = UUID_MAX_BYTES},
    {"slice", "Slice profile.", FIELD_TEXT, SCHEMA_ONLY, .maximum = 32},
    {"start", "First memory unit.", FIELD_INT, SCHEMA_ONLY, .maximum = FIELD_UNITS_MAX},
    {"batch", "Largest batch.", FIELD_INT, SCHEMA_ONLY, .maximum = FIELD_BATCH_MAX},
    {"procs", "Processes that share the instance.", FIELD_INT, SCHEMA_ONLY,
     .maximum = FIELD_PROCS_MAX},
    {"rateRps", "What the instance promises.", FIELD_NUMBER, SCHEMA_ONLY,
     .maximum = FIELD_RATE_MAX},
    {"ready", "The pod is ready and in the endpoints.", FIELD_BOOL, SCHEMA_ONLY},
    {"draining", "Taken out of the endpoints, to be deleted.", FIELD_BOOL, SCHEMA_ONLY},
};

static const struct field service_status[] = {
    FIELD_OBSERVED_GENERATION,
    {"plan", "PartitionPlan that places it.", FIELD_TEXT, SCHEMA_ONLY,
     .maximum = NAME_MAX_BYTES},
    {"transition", "Transition under way, empty when none is.", FIELD_TEXT, SCHEMA_ONLY,
     .maximum = NAME_MAX_BYTES},
    {"requiredRps", "The rate that the plan was made for.", FIELD_NUMBER, SCHEMA_ONLY,
     .maximum = FIELD_RATE_MAX},
    {"capacityRps", "Sum of the rates of the instances that are ready.", FIELD_NUMBER,
     SCHEMA_ONLY, .maximum = FIELD_RATE_MAX},
    {"floorRps", "The capacity does not fall below this in the transition under way.",
     FIELD_NUMBER, SCHEMA_ONLY, .maximum = FIELD_RATE_MAX},
    {"wantedInstances", "Instances in the plan.", FIELD_INT, SCHEMA_ONLY},
    {"readyInstances", "Instances that serve.", FIELD_INT, SCHEMA_ONLY},
    {"gpus", "GPUs with an instance of it.", FIELD_INT, SCHEMA_ONLY},
    {"instances", "The instances, by pod.", FIELD_LIST, SCHEMA_ONLY, .maximum = 2000,
     ITEMS(service_instance, 1), .keys = "pod"},
    FIELD_STATUS_CONDITIONS,
};

static const struct field_rule service_spec_rules[] = {
    {"self.pool == oldSelf.pool",
     "a service stays in its pool: make another one there, and delete this one when it serves"},
    {"self.task == 'training' || has(self.latencyMs)",
     "latencyMs is missing: an inference service has a latency objective"},
    {"self.task == 'inference' || (!has(self.latencyMs) && !has(self.maxWaitMs))",
     "a training service has no latency objective: leave latencyMs and maxWaitMs out"},
};

static const struct field_rule service_rules[] = {
    {"self.metadata.name.size() <= 50 && "
     "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
     "the name is that of a Service too: at most 50 of a-z, 0-9 and -, a letter first"},
};

static const struct schema_column service_columns[] = {
    {"Model", "string", ".spec.model"},
    {"Rate", "number", ".spec.rateRps"},
    {"Latency", "number", ".spec.latencyMs"},
    {"At", "string", ".spec.percentile"},
    {"Capacity", "number", ".status.capacityRps"},
    {"Instances", "integer", ".status.readyInstances"},
    {"GPUs", "integer", ".status.gpus"},
    {"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
    {"Floor", "number", ".status.floorRps", .wide = true},
    {"Pool", "string", ".spec.pool", .wide = true},
    {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", .wide = true},
};

static const struct schema_condition service_conditions[] = {
    {"Ready", "ready instances provide the required rate"},
    {"Reconciling", "a transition that concerns it is under way"},
    {"Stalled", "it cannot go on by itself: the spec is wrong, or no plan is found"},
    {"SLOFeasible", "the plan provides rate and latency; else the reason says what is short: "
                    "latency, memory, stock, no_measurement"},
    {"Progressing", "instances are being made or moved"},
    {"Degraded", "it serves less than the required rate"},
};

const struct schema_kind SCHEMA_OF_GPU_SERVICE = {
    .kind = &KIND_GPU_SERVICE,
    .singular = "gpuservice",
    .short_name = "gsvc",
    .help =
        "A model to be served (or trained) at a rate and within a latency, on MIG instances "
        "that tranche chooses, makes and moves.",
    .spec = {"spec", "What is asked for.", FIELD_GROUP, .required = true, FIELDS(service_spec),
             RULES(service_spec_rules)},
    .status = {"status", "What is there.", FIELD_GROUP, FIELDS(service_status)},
    RULES(service_rules),
    .columns = service_columns,
    .column_count = COUNT_OF(service_columns),
    .conditions = service_conditions,
    .condition_count = COUNT_OF(service_conditions),
};

/* PerfProfile */

#define LATENCY(name, help, column)                                                            \
    {                                                                                          \
        name, help, FIELD_NUMBER, AT(measurement, latency_ms[column]), .maximum = FIELD_MS_MAX \
    }

static const struct field profile_source[] = {
    {"tool", "Program that measured.", FIELD_TEXT, SCHEMA_ONLY, .maximum = TEXT_MAX_BYTES},
    {"version", "Its version.", FIELD_TEXT, SCHEMA_ONLY, .maximum = TEXT_MAX_BYTES},
    {"commit", "Its commit.", FIELD_TEXT, SCHEMA_ONLY, .maximum = TEXT_MAX_BYTES},
    {"seed", "Seed of the run.", FIELD_LONG, SCHEMA_ONLY},
    {"sha256", "Hash of the measurement file.", FIELD_TEXT, SCHEMA_ONLY, .maximum = 72},
};

static const struct field profile_entry[] = {
    {"slice", "Slice profile of the board, or a bare kind as 3g.", FIELD_SLICE,
     AT(measurement, profile), .required = true, .maximum = 32, .pattern = PATTERN_SLICE},
    {"batch", "Batch size.", FIELD_INT, AT(measurement, batch), .required = true, .minimum = 1,
     .maximum = FIELD_BATCH_MAX},
    {"procs", "Processes that share the instance.", FIELD_INT, AT(measurement, procs),
     .required = true, .minimum = 1, .maximum = FIELD_PROCS_MAX},
    {"task", "inference or training.", FIELD_CHOICE, AT(measurement, task),
     .fallback = "\"inference\"", CHOICES(tasks)},
    {"throughputRps", "Requests a second of the whole instance, all processes together.",
     FIELD_NUMBER, AT(measurement, throughput_rps), .fallback = "0", .maximum = FIELD_RATE_MAX},
    LATENCY("latencyMsMean", "Mean time of one batch, without queueing.", LATENCY_MEAN),
    LATENCY("latencyMsP50", "50th percentile of it.", LATENCY_P50),
    LATENCY("latencyMsP90", "90th percentile of it.", LATENCY_P90),
    LATENCY("latencyMsP95", "95th percentile of it.", LATENCY_P95),
    LATENCY("latencyMsP99", "99th percentile of it.", LATENCY_P99),
    LATENCY("latencyMsP999", "99.9th percentile of it.", LATENCY_P999),
    {"memoryMib", "Memory in MiB.", FIELD_NUMBER, AT(measurement, memory_mib),
     .maximum = FIELD_RATE_MAX},
    {"powerW", "Power in watts.", FIELD_NUMBER, AT(measurement, power_w),
     .maximum = FIELD_RATE_MAX},
    {"status", "Only entries that are ok may serve.", FIELD_CHOICE, AT(measurement, status),
     .fallback = "\"ok\"", CHOICES(statuses)},
    {"device", "What ran: cuda, cpu-slice.", FIELD_TEXT, AT(measurement, device),
     .maximum = 64},
    {"reason", "Of a status that is not ok.", FIELD_TEXT, AT(measurement, reason),
     .maximum = TEXT_MAX_BYTES},
};

static const struct field profile_spec[] = {
    {"model", "The model.", FIELD_TEXT, AT(perf_profile, model), .required = true, .minimum = 1,
     .maximum = NAME_MAX_BYTES, .pattern = PATTERN_LINE},
    {"board", "The GPU board, by its slug: a100-40gb (tranche board list).", FIELD_BOARD,
     AT(perf_profile, board), .required = true, .maximum = 63, .pattern = PATTERN_BOARD},
    {"source", "Where the figures come from.", FIELD_GROUP, SCHEMA_ONLY,
     FIELDS(profile_source)},
    {"entries", "Rows of the measurement file.", FIELD_LIST, AT(perf_profile, rows),
     .required = true, .minimum = 1, .maximum = 2000,
     ITEMS(profile_entry, sizeof(struct measurement)), .keys = "slice,batch,procs,task"},
};

static const struct field profile_status[] = {
    FIELD_OBSERVED_GENERATION,
    {"entriesAccepted", "Entries that can be read.", FIELD_INT, SCHEMA_ONLY},
    FIELD_STATUS_CONDITIONS,
};

static const struct field_rule profile_entry_rules[] = {
    {"self.entries.all(e, e.status != 'ok' || e.throughputRps > 0.0)",
     "an entry that is ok has a throughputRps above 0"},
};

static const struct schema_column profile_columns[] = {
    {"Model", "string", ".spec.model"},
    {"Board", "string", ".spec.board"},
    {"Entries", "integer", ".status.entriesAccepted"},
    {"Valid", "string", ".status.conditions[?(@.type==\"Valid\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
};

static const struct schema_condition profile_conditions[] = {
    {"Valid", "board, slices and figures can be used"},
    {"Ready", "the same, for kubectl wait and others that follow kstatus"},
    {"Stalled", "it cannot be read: the message names the field"},
};

const struct schema_kind SCHEMA_OF_PERF_PROFILE = {
    .kind = &KIND_PERF_PROFILE,
    .singular = "perfprofile",
    .short_name = "prof",
    .help = "What one model did on the slices of one board: the rows of a measurement file.",
    .spec = {"spec", "The measurements.", FIELD_GROUP, .required = true, FIELDS(profile_spec),
             RULES(profile_entry_rules)},
    .status = {"status", "What was made of them.", FIELD_GROUP, FIELDS(profile_status)},
    .columns = profile_columns,
    .column_count = COUNT_OF(profile_columns),
    .conditions = profile_conditions,
    .condition_count = COUNT_OF(profile_conditions),
};

/* GpuPool */

static const struct field pool_window[] = {
    {"start", "When it opens, as 22:00.", FIELD_TEXT, AT(gpu_pool, window.start), .maximum = 5,
     .pattern = PATTERN_MINUTE},
    {"end", "When it closes; not after the start: on the next day.", FIELD_TEXT,
     AT(gpu_pool, window.end), .maximum = 5, .pattern = PATTERN_MINUTE},
    {"days", "Days on which it opens, as Mon, Sat; none: every day.", FIELD_TEXTS,
     AT(gpu_pool, window.days), .maximum = 7, .pattern = "^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)$",
     .keys = ""},
};

static const struct field_rule pool_window_rules[] = {
    {"has(self.start) && has(self.end) && self.start != self.end",
     "a window has a start and an end, at different times"},
};

static const struct field pool_spec[] = {
    {"nodeSelector", "Labels that a node must have; none: every node with GPUs.", FIELD_MAP,
     AT(gpu_pool, node_selector)},
    {"actuator",
     "What makes the instances: agent (tranche's DaemonSet), dra (NVIDIA's DRA driver with "
     "DynamicMIG), mig-manager (of the GPU Operator), sim (none, for trials); auto: dra where "
     "its driver offers partitions, else agent.",
     FIELD_CHOICE, AT(gpu_pool, actuator), .fallback = "\"auto\"", CHOICES(actuators)},
    {"exactPlacement",
     "dra: write the claims' allocation ourselves, so that an instance is just where the plan "
     "has it. false: the scheduler takes the first free place on the GPU, which can leave no "
     "room for the plan's next instance.",
     FIELD_BOOL, AT(gpu_pool, exact_placement), .fallback = "true"},
    {"latencyRule",
     "How latency is predicted: queue, batch (the MIG-serving paper's) or half "
     "(ParvaGPU's).",
     FIELD_CHOICE, AT(gpu_pool, latency_rule), .fallback = "\"queue\"", CHOICES(rules)},
    {"derate", "Measured throughput times this may be promised.", FIELD_NUMBER,
     AT(gpu_pool, derate), .above = true, .maximum = 1, .fallback = "1"},
    {"spareGpus", "GPUs that a transition may borrow beyond those of both plans.", FIELD_INT,
     AT(gpu_pool, spare_gpus), .maximum = 10000, .fallback = "0"},
    {"maxUnavailableGpus", "GPUs that a transition touches at once; 0: no limit.", FIELD_INT,
     AT(gpu_pool, max_unavailable_gpus), .maximum = 100000, .fallback = "0"},
    {"replanSeconds", "Least time between two plans.", FIELD_INT, AT(gpu_pool, replan_seconds),
     .maximum = 86400, .fallback = "30"},
    {"headroom", "Plans are made for the required rates times this.", FIELD_NUMBER,
     AT(gpu_pool, headroom), .minimum = 1, .maximum = 100, .fallback = "1"},
    {"actionTimeoutSeconds", "An action that takes longer makes its Transition Stalled.",
     FIELD_INT, AT(gpu_pool, action_timeout_seconds), .minimum = 1, .maximum = 86400,
     .fallback = "600"},
    {"window",
     "Times of the day, in UTC, in which a transition may begin; none: at any time. Outside "
     "them plans are made and wait; only a service that fell below its floor is helped.",
     FIELD_GROUP, SCHEMA_ONLY, FIELDS(pool_window), RULES(pool_window_rules)},
    {"paused", "Nothing is planned and no action is begun.", FIELD_BOOL, AT(gpu_pool, paused),
     .fallback = "false"},
};

static const struct field pool_conflict[] = {
    {"node", "The node.", FIELD_TEXT, SCHEMA_ONLY, .required = true, .maximum = NAME_MAX_BYTES},
    {"message", "Who drives it.", FIELD_TEXT, SCHEMA_ONLY, .maximum = TEXT_MAX_BYTES},
};

static const struct field pool_status[] = {
    FIELD_OBSERVED_GENERATION,
    {"actuator", "The actuator in use.", FIELD_TEXT, SCHEMA_ONLY, .maximum = 32},
    {"nodes", "Nodes of the pool.", FIELD_INT, SCHEMA_ONLY},
    {"gpus", "GPUs of its nodes.", FIELD_INT, SCHEMA_ONLY},
    {"gpusUsed", "GPUs with an instance that serves.", FIELD_INT, SCHEMA_ONLY},
    {"gpusLost", "GPUs of nodes that are not ready.", FIELD_INT, SCHEMA_ONLY},
    {"instances", "Instances on its GPUs.", FIELD_INT, SCHEMA_ONLY},
    {"services", "GpuServices of the pool.", FIELD_INT, SCHEMA_ONLY},
    {"requiredRps", "Sum of the required rates.", FIELD_NUMBER, SCHEMA_ONLY,
     .maximum = FIELD_RATE_MAX},
    {"capacityRps", "Sum of the rates of the instances that are ready.", FIELD_NUMBER,
     SCHEMA_ONLY, .maximum = FIELD_RATE_MAX},
    {"plan", "The current plan.", FIELD_TEXT, SCHEMA_ONLY, .maximum = NAME_MAX_BYTES},
    {"transition", "Transition under way.", FIELD_TEXT, SCHEMA_ONLY, .maximum = NAME_MAX_BYTES},
    {"plannedAt", "When the last plan was made.", FIELD_TIME, SCHEMA_ONLY},
    {"inputHash", "Of services, profiles and inventory that it was made from.", FIELD_TEXT,
     SCHEMA_ONLY, .maximum = 80},
    {"conflicts", "Nodes left alone, as another owner drives their MIG state.", FIELD_LIST,
     SCHEMA_ONLY, .maximum = 200, ITEMS(pool_conflict, 1), .keys = "node"},
    FIELD_STATUS_CONDITIONS,
};

static const struct field_rule pool_rules[] = {
    {"self.metadata.name.size() <= 40",
     "the name begins those of plans and transitions: at most 40 characters"},
};

static const struct schema_column pool_columns[] = {
    {"Actuator", "string", ".status.actuator"},
    {"Nodes", "integer", ".status.nodes"},
    {"GPUs", "integer", ".status.gpus"},
    {"Used", "integer", ".status.gpusUsed"},
    {"Lost", "integer", ".status.gpusLost"},
    {"Rate", "number", ".status.requiredRps"},
    {"Capacity", "number", ".status.capacityRps"},
    {"Transition", "string", ".status.transition"},
    {"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"},
    {"Age", "date", ".metadata.creationTimestamp"},
    {"Plan", "string", ".status.plan", .wide = true},
    {"Paused", "boolean", ".spec.paused", .wide = true},
};

static const struct schema_condition pool_conditions[] = {
    {"Ready", "the world is as the last plan has it, and every service has its rate"},
    {"Reconciling", "a plan is being made or a transition is under way"},
    {"Stalled", "it cannot go on by itself: the reason says why"},
    {"Waiting", "the plan is carried out when the window opens: the message says when"},
    {"Degraded",
     "nodes belong to an older pool (NodesShared), or foreign pods have our labels"},
};

const struct schema_kind SCHEMA_OF_GPU_POOL = {
    .kind = &KIND_GPU_POOL,
    .singular = "gpupool",
    .short_name = "gpool",
    .help = "Nodes whose GPUs tranche partitions, by what means, and within which budgets.",
    .spec = {"spec", "The nodes, the means and the budgets.", FIELD_GROUP, .required = true,
             FIELDS(pool_spec)},
    .status = {"status", "What is there.", FIELD_GROUP, FIELDS(pool_status)},
    RULES(pool_rules),
    .columns = pool_columns,
    .column_count = COUNT_OF(pool_columns),
    .conditions = pool_conditions,
    .condition_count = COUNT_OF(pool_conditions),
};
