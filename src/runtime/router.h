/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing with HAProxy: one process of its own that outlives the runtime, a configuration
 * written once, and every change by its runtime API, without reload.
 *
 * One address serves all: /v2/models/SERVICE… goes to the backend that services.map names.
 * Backends cannot be added without reload, so the configuration holds a pool of unnamed
 * ones, and a service takes a free one. Servers are named by their unit's key; each has the
 * weight of its rate_rps, and of those the one with the fewest outstanding requests for its
 * weight is chosen (leastconn).
 *
 * Every function that asks HAProxy is E_TIMEOUT or E_IO when it does not answer, with its
 * words when it refuses.
 */
#ifndef TRANCHE_RUNTIME_ROUTER_H
#define TRANCHE_RUNTIME_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "runtime/process_id.h"

enum { ROUTER_BACKENDS = 64, ROUTER_NAME_SIZE = 128, ROUTER_WEIGHT_MAX = 256 };

struct router {
    char *folder; /* state folder */
    const char *address;
    int port;
    struct process_id process;
    char services[ROUTER_BACKENDS][ROUTER_NAME_SIZE]; /* of each backend; "": free */
};

enum router_server_state { SERVER_DOWN, SERVER_UP, SERVER_DRAIN, SERVER_MAINTENANCE };

struct router_server {
    int backend;
    char name[ROUTER_NAME_SIZE];
    enum router_server_state state;
    int sessions; /* requests outstanding */
    int weight;
};

struct router_backend {
    int backend;
    unsigned long long requests; /* answered by servers or by HAProxy in their place */
    unsigned long long failed;   /* with 5xx, or cut off */
};

struct router_statistics {
    VEC(struct router_server) servers;
    VEC(struct router_backend) backends;
};
/* Frees the lists. */
void router_statistics_done(struct router_statistics *statistics);

/* A router that is not started. folder is copied, address borrowed. */
void router_init(struct router *router, const char *folder, const char *address, int port);
/* Frees names; HAProxy goes on. */
void router_done(struct router *router);

/* Adopts the HAProxy that the state folder names while it lives, else starts one and waits
 * until it answers. *ret_adopted may be NULL. E_MISSING without HAProxy, E_IO when the port
 * is taken. */
int router_start(struct router *router, bool *ret_adopted, struct error *err);
/* Whether its HAProxy process is there. */
bool router_alive(const struct router *router);
/* Ends it: outstanding requests are cut after the grace. */
void router_stop(struct router *router);

/* The backend of a service, named now if it has none. E_BUSY when all are taken. */
int router_service(struct router *router, const char *service, int *ret_backend,
                   struct error *err);
/* Frees a service's backend, which has no server any more. */
int router_forget(struct router *router, const char *service, struct error *err);
/* -1 when it has none. */
int router_find(const struct router *router, const char *service);

struct router_target {
    int backend;
    const char *name;
    int port; /* on 127.0.0.1 */
    int weight;
};
/* Adds and enables a server; one of that name is replaced. */
int router_add(struct router *router, const struct router_target *target, struct error *err);
/* Changes a server's weight, 1 … ROUTER_WEIGHT_MAX. */
int router_weigh(struct router *router, int backend, const char *name, int weight,
                 struct error *err);
/* No new requests from now on. */
int router_drain(struct router *router, int backend, const char *name, struct error *err);
/* Takes it out at once. A server that is not there is removed. */
int router_remove(struct router *router, int backend, const char *name, struct error *err);

/* Reads states and counters of all servers and appends them to *ret_statistics, which
 * router_statistics_done() frees. */
int router_read(struct router *router, struct router_statistics *ret_statistics,
                struct error *err);

/* N of a backend's name "poolN"; -1 for any other. *ret_end (may be NULL): what follows. */
int router_pool_number(const char *name, const char **ret_end);

/* Private: router_config.c */
int router_write_config(const struct router *router, struct error *err);
/* Writes services.map, whole or not at all: which backend each service has after a restart. */
int router_write_map(const struct router *router, struct error *err);
/* Sends one command to HAProxy's socket and appends its whole answer. */
int router_ask(const struct router *router, const char *command, struct str *ret_answer,
               struct error *err);

#endif
