/* SPDX-License-Identifier: Apache-2.0
 *
 * Short forms for the tables of fields (resource_fields_*.c).
 */
#ifndef TRANCHE_CONTROL_RESOURCE_FIELDS_H
#define TRANCHE_CONTROL_RESOURCE_FIELDS_H

#include "control/schema.h"

#define COUNT_OF(array)     (sizeof(array) / sizeof *(array))
#define AT(type, member)    .offset = offsetof(struct type, member)
#define SCHEMA_ONLY         .offset = FIELD_UNREAD
#define FIELDS(array)       .fields = (array), .field_count = COUNT_OF(array)
#define ITEMS(array, bytes) FIELDS(array), .size = (bytes)
#define CHOICES(array)      .choices = (array), .choice_count = COUNT_OF(array)
#define RULES(array)        .rules = (array), .rule_count = COUNT_OF(array)

enum { NAME_MAX_BYTES = 253, UUID_MAX_BYTES = 64, TEXT_MAX_BYTES = 1024 };
enum { FIELD_BATCH_MAX = 1 << 20, FIELD_PROCS_MAX = 1 << 10, FIELD_UNITS_MAX = 11 };
#define FIELD_RATE_MAX 1e12
#define FIELD_MS_MAX   1e9

#define PATTERN_NAME   "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
#define PATTERN_PATH   "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
#define PATTERN_SLICE  "^([1-9]g(\\.[0-9]+gb)?([+-][a-z.]+|\\*2)?|whole)$"
#define PATTERN_MINUTE "^([01][0-9]|2[0-3]):[0-5][0-9]$"
#define PATTERN_BOARD  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
#define PATTERN_LINE   "^[^\\x00-\\x1f\\x7f]*$" /* no control characters */

/* In every status. */
#define FIELD_OBSERVED_GENERATION                                                              \
    {                                                                                          \
        .name = "observedGeneration", .type = FIELD_LONG, SCHEMA_ONLY,                         \
        .help = "metadata.generation of the spec that this status speaks of.",                 \
    }
#define FIELD_STATUS_CONDITIONS                                                                \
    {                                                                                          \
        .name = "conditions", .type = FIELD_CONDITIONS, SCHEMA_ONLY,                           \
        .help = "Conditions in the form of metav1.Condition; Ready, Reconciling and Stalled "  \
                "mean what kstatus says.",                                                     \
    }

extern const struct schema_kind SCHEMA_OF_GPU_POOL, SCHEMA_OF_GPU_SERVICE,
    SCHEMA_OF_NODE_GPU_STATE, SCHEMA_OF_PARTITION_PLAN, SCHEMA_OF_PERF_PROFILE,
    SCHEMA_OF_TRANSITION;

#endif
