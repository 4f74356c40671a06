/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tranche controller` does besides running: --check and --clean-up.
 */
#ifndef TRANCHE_CLI_CONTROLLER_TOOLS_H
#define TRANCHE_CLI_CONTROLLER_TOOLS_H

#include <stdbool.h>

#include "kube/api.h"

struct controller_check {
    struct kube_client *client;
    const char *namespace, *lease;
    bool json;
};

/* Prints what preflight.h found. E_NO when the cluster is not ready. */
int controller_check(const struct controller_check *check, struct error *err);

/* Deletes our objects and frees what is held by our finalizer; says so. E_NO when something is
 * left that another holds. */
int controller_clean_up(struct kube_client *client, double wait_s, struct error *err);

#endif
