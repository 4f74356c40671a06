/* SPDX-License-Identifier: Apache-2.0
 *
 * A client on the real transport, talking to the scripted server.
 */
#ifndef TRANCHE_TESTS_KUBE_WORLD_H
#define TRANCHE_TESTS_KUBE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_server.h"
#include "kube/api.h"
#include "kube/http.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           INT64_C(1000000)
#define SECONDS      (1000 * MS)

struct world {
    struct fake_server server;
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct kube_client *client;
};

struct world_options {
    size_t body_limit;
    int64_t timeout_ns;
    const char *token_file;
};

__attribute__((unused)) static void world_start(struct world *world,
                                                const struct server_step *steps, size_t count,
                                                const struct world_options *options)
{
    struct error err = {0};

    server_start(&world->server, steps, count);
    world->auth = kube_auth_new(world->server.address);
    world->auth->token_file = xstrdup(options->token_file);
    world->http = kube_http_new(
        &(struct kube_http_options){.auth = world->auth, .body_limit = options->body_limit},
        &err);
    if (!world->http)
        fail_msg("%s", err.text);
    world->loop = kube_loop_new(kube_http_transport(world->http), clock_real());
    world->client =
        kube_client_new(&(struct kube_client_options){.loop = world->loop,
                                                      .field_manager = "tranche-test",
                                                      .timeout_ns = options->timeout_ns,
                                                      .backoff_ns = MS,
                                                      .backoff_ns_most = 3 * SECONDS,
                                                      .seed = 1});
}

__attribute__((unused)) static void world_stop(struct world *world)
{
    kube_client_free(world->client);
    kube_loop_free(world->loop);
    kube_http_free(world->http);
    kube_auth_free(world->auth);
    server_stop(&world->server);
}

#define WORLD(name, steps, ...)                                                                \
    __attribute__((cleanup(world_stop))) struct world name;                                    \
    world_start(&name, steps, COUNT(steps), &(struct world_options){__VA_ARGS__})

#endif
