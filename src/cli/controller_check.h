/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche controller --check` and `--clean-up`: calls that connect, do one thing, print and
 * end (control/preflight.h, control/clean_up.h).
 */
#ifndef TRANCHE_CLI_CONTROLLER_CHECK_H
#define TRANCHE_CLI_CONTROLLER_CHECK_H

#include <stdbool.h>

#include "base/error.h"

struct controller_check_options {
    const char *kubeconfig; /* NULL: as kube_auth_find() */
    const char *context;    /* NULL: the kubeconfig's current one */
    const char *namespace;  /* that the controller runs in; NULL: the credentials' */
    const char *lease;      /* NULL: "tranche-controller" */
    const char *output;     /* NULL: standard output */
    bool json;
    double clean_up_seconds; /* that a running controller has for draining */
};

/* 0: ready; E_NO: something is wrong, the report names it; E_IO and others: not asked. */
int controller_check(const struct controller_check_options *options, struct error *err);
/* 0: nothing is left; E_NO: objects that another's finalizer holds. */
int controller_clean_up(const struct controller_check_options *options, struct error *err);

#endif
