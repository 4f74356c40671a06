/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault plans: which NVML call of this process fails, hangs or dies.
 *
 *     plan   = [ rule { (";" | newline) rule } ]           "#" starts a comment
 *     rule   = when ":" effect { "," effect }
 *     when   = ( "call" N | PATTERN ) [ "gpu" G ] [ "nth" N | "from" N | "every" ]
 *     effect = "error" CODE [ "after" ] | "hang" TIME | "kill" [ "after" | "commit" ]
 *
 * PATTERN is a function's name, with or without "nvml" and the "_v2" at its end, or a glob
 * ("*Destroy"). "call N" is the N-th call of any name since nvmlInit read the plan (that
 * nvmlInit is call 1; the plan is read again only when it changed). Without
 * "nth" the first matching call is meant. CODE is a name ("IN_USE", "NVML_ERROR_IN_USE") or
 * a number; TIME has a unit ("250ms", "2s").
 *
 * error: the call does nothing and returns CODE; with "after" it acts and then returns it.
 * hang: sleeps first, holding no lock. kill: SIGKILL before the call acts; "after": when it
 * has acted, before it returns; "commit": half-way, with the change written but not valid.
 */
#ifndef TRANCHE_SIM_FAULT_H
#define TRANCHE_SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gpu/nvml_abi.h"

struct sim_faults; /* a parsed plan with its counters; not thread safe */

struct sim_fault_effects {
    int64_t hang_ms;
    bool kill_before, kill_commit, kill_after;
    nvmlReturn_t error_before, error_after; /* NVML_SUCCESS: none */
};

/* E_INPUT with the place and what was expected. */
int sim_faults_parse(const char *text, struct sim_faults **ret_faults, struct error *err);
/* Frees the plan; NULL is fine. */
void sim_faults_free(struct sim_faults *faults);
CLEANUP_DEFINE_FREE(sim_faults)

/* What befalls this call; counts it. gpu: −1 for a call that names none. faults: may be
 * NULL. */
struct sim_fault_effects sim_faults_next(struct sim_faults *faults, const char *function,
                                         int gpu);

/* A code by name, with or without NVML_ and ERROR_, or by number; false: no such code. */
bool sim_return_parse(const char *text, nvmlReturn_t *ret_code);
/* "NVML_ERROR_IN_USE" and the like. */
const char *sim_return_name(nvmlReturn_t code);

#endif
