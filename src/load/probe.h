/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether frameworks see and use a device: small checks, each in a process of its own with
 * the device chosen as for any workload. ONNX Runtime is asked through the built-in
 * workload, Python frameworks through adapters/probe.py.
 */
#ifndef TRANCHE_LOAD_PROBE_H
#define TRANCHE_LOAD_PROBE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

struct probe_options {
    const char *uuid;        /* MIG instance or GPU; NULL: the CPU */
    const char *python;      /* "python3" */
    const char *adapters;    /* the folder of probe.py */
    const char *ort_library; /* NULL: searched for */
    int64_t timeout_ns;      /* of each framework */
    const volatile sig_atomic_t *stop;
};

/* All frameworks that can be asked. */
size_t probe_framework_count(void);
/* The name of the framework at a position below the count, static. */
const char *probe_framework_name(size_t index);

/* Asks one framework: {"name", "checks": [{"check", "verdict", "detail"}]}; verdicts are
 * pass, fail, none (it cannot do that at all), absent (not installed). A new reference.
 * E_MISSING when python cannot be started; E_INTERRUPTED. */
int probe_framework(const struct probe_options *options, size_t index, json_t **ret_json,
                    struct error *err);

#endif
