/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at what servers say of themselves (server_phases.h) while they are under load: once
 * at a time to come, in a thread of its own so that the load is not disturbed, and once
 * more in the end.
 */
#ifndef TRANCHE_LOAD_SERVER_WATCH_H
#define TRANCHE_LOAD_SERVER_WATCH_H

#include "load/server_phases.h"

/* Where servers say it: a page for each. */
struct server_pages {
    const char *const *addresses;
    size_t count;
    const char *model; /* NULL: all that the page has */
};

struct server_watch;
/* The pages must outlive the watch; first_look_ns is of CLOCK_MONOTONIC. */
struct server_watch *server_watch_start(const struct server_pages *pages,
                                        int64_t first_look_ns);
/* Looks again, ends the thread and frees the watch. What failed is the reason. */
struct server_phases server_watch_finish(struct server_watch *watch);

#endif
