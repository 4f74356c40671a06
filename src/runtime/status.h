/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a runtime for people and programs, schema "tranche.status/1":
 * docs/spec/runtime.md.
 */
#ifndef TRANCHE_RUNTIME_STATUS_H
#define TRANCHE_RUNTIME_STATUS_H

#include "runtime/runtime.h"

/* A new reference. */
json_t *status_to_json(const struct runtime *runtime);

#endif
