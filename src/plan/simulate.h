/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan under load, event by event: Poisson requests per service, routed to its instances
 * as the load balancer in front of them does, batched and served as the `queue` rule of the
 * contract says. Services do not touch each other, so each is simulated by itself, with its
 * own stream of random numbers.
 */
#ifndef TRANCHE_PLAN_SIMULATE_H
#define TRANCHE_PLAN_SIMULATE_H

#include "base/vec.h"
#include "format/measurement.h"
#include "format/plan_document.h"
#include "format/service.h"

enum simulate_routing {
    /* HAProxy's leastconn with weights: the instance with the least outstanding requests
     * per promised rate; idle ones first; among equals the one not chosen for longest. */
    ROUTE_LEAST_OUTSTANDING,
    /* Independently at random in proportion to the promised rates: each instance then gets
     * a Poisson stream, as the queue rule assumes. */
    ROUTE_RANDOM,
    SIMULATE_ROUTING_COUNT
};

/* Rates over time: from start_s[k] on, service i of the plan gets rates_rps[k x services + i]
 * (NAN: what it gets without a trace). start_s[0] is 0. */
struct simulate_trace {
    size_t step_count;
    const double *start_s;
    const double *rates_rps;
};

struct simulate_settings {
    uint64_t seed;
    double duration_s; /* > 0 */
    long requests;     /* > 0: so many a service instead of duration_s */
    double load;       /* rates are multiplied by it */
    bool promised;     /* offer what the plan provides, not what is required */
    enum simulate_routing routing;
    const struct simulate_trace *trace; /* NULL: constant rates */
};

enum { SIMULATE_PERCENTILES = 5 };
extern const double simulate_percentiles[SIMULATE_PERCENTILES]; /* 50, 90, 95, 99, 99.9 */

struct simulate_service {
    const char *name; /* borrowed from the plan */
    bool training;    /* nothing was simulated */
    int instances;
    uint64_t requests; /* counted: those of the first 5 % of the time are not */
    double offered_rps, served_rps;
    double objective_ms, percentile; /* of the service */
    double mean_ms, percentiles_ms[SIMULATE_PERCENTILES];
    double attainment; /* share of the requests within the objective */
    bool met;          /* the objective: attainment >= percentile, or mean <= objective */
    double batch_mean, busy_share;
};

struct simulate_result {
    VEC(struct simulate_service) services;
};
/* Frees the list of services. */
void simulate_result_done(struct simulate_result *result);

/* Simulates every inference service of the plan; training ones are listed without figures. The
 * caller frees *ret_result; names are borrowed from the plan. E_INPUT when an instance of the
 * plan has no usable measurement, naming it, or the services lack one of the plan's. */
int simulate_run(const struct plan *plan, const struct service_set *services,
                 const struct measurement_set *rows, const struct simulate_settings *settings,
                 struct simulate_result *ret_result, struct error *err);

#endif
