/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche controller --profiles FILE.csv`: measurements as PerfProfiles.
 */
#ifndef TRANCHE_CLI_CONTROLLER_PROFILES_H
#define TRANCHE_CLI_CONTROLLER_PROFILES_H

#include "base/error.h"

/* Prints one PerfProfile for each model and board of a measurement file, as YAML. E_INPUT with
 * place for a wrong file, E_IO. */
int controller_profiles(const char *path, struct error *err);

#endif
