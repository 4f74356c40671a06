/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of load against servers over HTTP: requests made, sent in an open or closed loop,
 * and judged.
 */
#ifndef TRANCHE_LOAD_HTTP_RUN_H
#define TRANCHE_LOAD_HTTP_RUN_H

#include "load/engine_http.h"
#include "load/http_request.h"
#include "load/open_loop.h"
#include "load/server_watch.h"
#include "load/steady.h"
#include "load/verdict.h"

struct http_run_options {
    const char *const *urls; /* requests go to them in turn */
    size_t url_count;
    struct http_request_options request;
    /* Pages on which servers say where time goes (server_phases.h); none: where KServe servers
     * in Triton's manner have theirs. */
    const char *const *server_metrics;
    size_t server_metrics_count;
    const char *arrivals; /* arrivals_parse()'s text; NULL: closed loop */
    size_t concurrency;   /* of the closed loop */
    size_t connections_max;
    int64_t warmup_ns, duration_ns; /* the duration without the warm-up */
    int64_t timeout_ns;
    double failures_max;   /* share of requests that may fail in a valid run */
    uint64_t requests_min; /* completed, in a valid run */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
};

struct http_run_result {
    struct open_loop_result load;
    struct verdict verdict;
    struct steady_state steady;
    uint64_t failures[HTTP_FAILURE_COUNT];
    uint64_t connections, repeated, body_bytes, tokens;
    char first_failure[256];
    struct hist *first_token, *token_gap, *per_token; /* NULL unless tokens were streamed */
    double client_cpu_share;                          /* of a core, over the whole run */
    struct server_phases server;                      /* over the window */
};

/* The targets and requests of runs, made once. */
struct http_runner;
/* E_USAGE, E_MISSING, E_IO as its parts. options must outlive the runner. */
int http_runner_new(const struct http_run_options *options, struct http_runner **ret_runner,
                    struct error *err);
/* NULL is fine. */
void http_runner_free(struct http_runner *runner);
CLEANUP_DEFINE_FREE(http_runner)

/* Fills *ret_result (http_run_result_done() it in any case). E_INTERRUPTED keeps what was
 * measured. */
int http_runner_run(struct http_runner *runner, const struct http_run_options *options,
                    struct http_run_result *ret_result, struct error *err);
/* Frees histograms and samples; a zeroed one is fine. */
void http_run_result_done(struct http_run_result *result);

/* Mean time from sending less the server's own: network, HTTP, and the client. NAN: unknown. */
double http_run_outside_ms(const struct http_run_result *result);

#endif
