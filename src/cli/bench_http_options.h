/* SPDX-License-Identifier: Apache-2.0
 *
 * What `bench http` and `bench slo` share: how servers are loaded, and a run as JSON.
 */
#ifndef TRANCHE_CLI_BENCH_HTTP_OPTIONS_H
#define TRANCHE_CLI_BENCH_HTTP_OPTIONS_H

#include "base/json.h"
#include "base/option.h"
#include "load/http_run.h"

/* The first member of each subcommand's own struct, so that the table serves both. */
struct bench_http {
    const char *api, *model, *method, *body_file, *shapes, *prompt;
    struct option_list headers, server_metrics;
    double duration_s, warmup_s, timeout_s, failures_max;
    long long batch, tokens_max, connections, requests_min, seed;
    bool binary;
};

#define BENCH_HTTP_OPTIONS                                                                     \
    OPTION_CHOICE('a', "api", struct bench_http, api, "plain|kserve|openai", "plain",          \
                  "how the server is spoken to"),                                              \
        OPTION_TEXT('m', "model", struct bench_http, model, "MODEL", NULL,                     \
                    "the model's name on the server (kserve, openai)"),                        \
        OPTION_TEXT('X', "method", struct bench_http, method, "METHOD", NULL,                  \
                    "plain: the method (default: POST with a body, else GET)"),                \
        OPTION_LIST('H', "header", struct bench_http, headers, "NAME: VALUE",                  \
                    "a header of every request; may be repeated"),                             \
        OPTION_TEXT(0, "body-file", struct bench_http, body_file, "FILE", NULL,                \
                    "plain: the body of every request"),                                       \
        OPTION_INT('b', "batch", struct bench_http, batch, "N", "1", 1, 1 << 20,               \
                   "kserve: what an open first size of inputs becomes"),                       \
        OPTION_TEXT(0, "shape", struct bench_http, shapes, "INPUT=SIZES,…", NULL,              \
                    "kserve: sizes of inputs that the model leaves open: x=Nx3x320x320"),      \
        OPTION_FLAG(0, "binary", struct bench_http, binary,                                    \
                    "kserve: tensors as bytes instead of JSON"),                               \
        OPTION_TEXT(0, "prompt", struct bench_http, prompt, "TEXT",                            \
                    "Count from one to one hundred.", "openai: what is asked"),                \
        OPTION_INT(0, "max-tokens", struct bench_http, tokens_max, "N", "64", 1, 1 << 20,      \
                   "openai: longest answer"),                                                  \
        OPTION_LIST(0, "server-metrics", struct bench_http, server_metrics, "URL",             \
                    "the server's Prometheus page, for the phases of requests (kserve: its "   \
                    "statistics by default); may be repeated"),                                \
        OPTION_NUMBER('d', "duration", struct bench_http, duration_s, "S", "10", 0.01, 86400,  \
                      "seconds to measure"),                                                   \
        OPTION_NUMBER(0, "warmup", struct bench_http, warmup_s, "S", "1", 0, 3600,             \
                      "seconds of load before measuring"),                                     \
        OPTION_NUMBER(0, "timeout", struct bench_http, timeout_s, "S", "10", 0.001, 86400,     \
                      "seconds until an answer counts as timed out"),                          \
        OPTION_INT(0, "connections", struct bench_http, connections, "N", "4096", 1, 100000,   \
                   "open loop: requests in flight beyond which others are dropped"),           \
        OPTION_NUMBER(0, "max-failures", struct bench_http, failures_max, "SHARE", "0.01", 0,  \
                      1, "share of requests that may fail, time out or be dropped"),           \
        OPTION_INT(0, "min-requests", struct bench_http, requests_min, "N", "100", 1, 1e12,    \
                   "answers that a valid run needs"),                                          \
        OPTION_INT(0, "seed", struct bench_http, seed, "N", "1", 0, 9e15,                      \
                   "seed of arrivals and made-up inputs")

/* Settings of runs without load; Ctrl-C is handled. Strings are borrowed from the options
 * and arguments (the URLs), the body file is read into *body. */
int bench_http_settings(const struct bench_http *how, struct arguments urls, struct str *body,
                        struct http_run_options *ret_run, struct error *err);

/* A run as result_document.h has it. A new reference. */
json_t *bench_http_run_json(const struct http_run_result *result);

#endif
