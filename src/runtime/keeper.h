/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper: the process that owns one slice and the model server in it, and outlives the
 * runtime, so that a runtime that dies takes no server with it. When the keeper dies, its
 * server does too (PR_SET_PDEATHSIG). What it shall do lies in units/KEY.json:
 *
 *     {"service": NAME, "model": FILE, "provider": "cpu"|"cuda", "batch": N, "procs": N,
 *      "max_wait_ms": X, "threads": N, "program": FILE, "ort_library": FILE|null,
 *      "uuid": "MIG-…"|null, "cpu_cores": X, "period_ms": X, "method": "auto"|…,
 *      "memory_mib": N, "identity": TEXT}
 *
 * With "task": "training" it trains in the slice instead, the built-in worker once a process;
 * "checkpoint" is what files are called where it saves what it has learnt (".0" … are added),
 * "resume" the one to go on from, if any.
 *
 * While it lives it holds units/KEY.lock, and says how far it is in units/KEY.live:
 *
 *     {"pid", "start", "identity", "ready": bool, "port", "max_wait_ms", "server": {"pid",
 *      "start"}, "training": {"steps", "steps_per_s", "rate_rps", "loss"}}
 *
 * SIGHUP: it reads KEY.json again, and tells the server a new max_wait_ms, the only thing
 * that may have changed; once it stands in KEY.live, it is in force.
 * SIGTERM: the server answers what it accepted, then both end, and KEY.live is removed.
 */
#ifndef TRANCHE_RUNTIME_KEEPER_H
#define TRANCHE_RUNTIME_KEEPER_H

#include "base/error.h"

/* The whole life of a keeper; 0 when it was told to end. E_BUSY when another one keeps this
 * unit, else why its server ended. */
int keeper_run(const char *folder, const char *key, struct error *err);

#endif
