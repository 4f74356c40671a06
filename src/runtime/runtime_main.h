/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of the process that steers.
 */
#ifndef TRANCHE_RUNTIME_RUNTIME_MAIN_H
#define TRANCHE_RUNTIME_RUNTIME_MAIN_H

#include "base/error.h"

/* Steers what was brought up in a state folder until `tranche down` (or SIGINT), which ends
 * it all, or SIGTERM, which leaves everything running for the next one. A first start that
 * fails undoes what it did; why is also left in FOLDER/failure. */
int runtime_main(const char *folder, struct error *err);

#endif
