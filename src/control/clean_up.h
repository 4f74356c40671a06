/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche controller --clean-up`: before tranche is uninstalled, deletes all our objects, so
 * that a controller which still runs drains the services; then takes our finalizer off what is
 * left, so that nothing hangs once the controller is gone.
 */
#ifndef TRANCHE_CONTROL_CLEAN_UP_H
#define TRANCHE_CONTROL_CLEAN_UP_H

#include "base/arena.h"
#include "base/vec.h"
#include "kube/api.h"

struct clean_up_options {
    struct kube_client *client; /* borrowed */
    int64_t wait_ns;            /* how long the controller has for its part */
};

struct clean_up_report {
    struct arena arena;     /* owns all text */
    int deleted;            /* objects that were there */
    int released;           /* whose finalizer was taken off */
    VEC(const char *) left; /* "GpuPool x: held by finalizer example.org/y" */
};

/* Frees the report's texts. */
void clean_up_report_done(struct clean_up_report *report);
/* 0 with a report, also when something is left: another's finalizer holds it. Objects that
 * agents, still running, make anew meanwhile have no finalizer and are no concern. Kinds that
 * are not installed have no objects. An error (E_IO, E_USAGE …) leaves the rest undone; running
 * it again goes on. */
int clean_up_run(const struct clean_up_options *options, struct clean_up_report *ret_report,
                 struct error *err);

#endif
