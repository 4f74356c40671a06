/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport without a wire, on a fake clock that jumps to what is next: a function of the
 * test answers each request. A stream can stay open; then it ends with E_TIMEOUT once it has
 * been silent for as long as its request allows.
 */
#ifndef TRANCHE_TESTS_KUBE_FAKE_TRANSPORT_H
#define TRANCHE_TESTS_KUBE_FAKE_TRANSPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/api.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           INT64_C(1000000)
#define SECONDS      (1000 * MS)

struct fake_answer {
    int status;      /* 0: no connection (an error) */
    struct str body; /* owned; the transport frees it */
    size_t chunk;    /* bytes a piece of a stream; 0: all */
    bool cut;        /* after the body the connection breaks */
    bool stay_open;  /* after the body, a stream says nothing more */
    int64_t retry_after_ns;
    int64_t delay_ns; /* until it comes */
};

typedef void fake_answer_function(void *context, const struct kube_request *request,
                                  struct fake_answer *answer);

struct fake_exchange {
    uint64_t id;
    struct kube_receiver receiver;
    struct fake_answer answer;
    bool stream, silent;
    int64_t timeout_ns, due_ns;
};

struct fake_transport {
    struct kube_transport transport;
    struct fake_clock clock;
    fake_answer_function *function;
    void *context;
    VEC(struct fake_exchange) exchanges;
    uint64_t last_id;
    size_t requests;
    bool log; /* print each request */
};

static uint64_t fake_start(void *self, const struct kube_request *request,
                           const struct kube_receiver *receiver)
{
    struct fake_transport *fake = self;
    struct fake_exchange exchange = {.id = ++fake->last_id,
                                     .receiver = *receiver,
                                     .stream = request->stream,
                                     .timeout_ns = request->timeout_ns,
                                     .answer = {.body = STR_EMPTY, .retry_after_ns = -1}};
    fake->requests++;
    if (fake->log)
        print_message("# %6.3f s %s %s %s\n", (double)fake->clock.time_ns / 1e9,
                      request->method, request->path,
                      request->body_length ? request->body : "");
    fake->function(fake->context, request, &exchange.answer);
    exchange.due_ns = fake->clock.time_ns + exchange.answer.delay_ns;
    vec_add(&fake->exchanges, exchange);
    return exchange.id;
}

static bool fake_take(struct fake_transport *fake, uint64_t id, struct fake_exchange *ret)
{
    for (size_t i = 0; i < fake->exchanges.count; i++)
        if (fake->exchanges.data[i].id == id) {
            *ret = fake->exchanges.data[i];
            memmove(&fake->exchanges.data[i], &fake->exchanges.data[i + 1],
                    (--fake->exchanges.count - i) * sizeof *ret);
            return true;
        }
    return false;
}

static void fake_cancel(void *self, uint64_t id)
{
    struct fake_exchange exchange;

    if (fake_take(self, id, &exchange))
        str_done(&exchange.answer.body);
}

/* Hands the bytes of a stream over; false when the receiver wants no more. */
static bool fake_stream(const struct fake_exchange *exchange)
{
    const struct str *body = &exchange->answer.body;
    size_t chunk = exchange->answer.chunk ? exchange->answer.chunk : SIZE_MAX;

    if (exchange->receiver.opened)
        exchange->receiver.opened(exchange->receiver.context);
    for (size_t at = 0; at < body->length;) {
        size_t length = body->length - at < chunk ? body->length - at : chunk;
        if (!exchange->receiver.bytes(exchange->receiver.context, body->bytes + at, length))
            return false;
        at += length;
    }
    return true;
}

static void fake_finish(struct fake_transport *fake, struct fake_exchange exchange)
{
    struct kube_response response = {.status = exchange.answer.status,
                                     .retry_after_ns = exchange.answer.retry_after_ns,
                                     .body = ""};
    bool streaming = exchange.stream && response.status / 100 == 2;
    bool stopped = streaming && !exchange.silent && !fake_stream(&exchange);

    if (streaming && !stopped && exchange.answer.stay_open && !exchange.silent) {
        exchange.silent = true;
        exchange.due_ns = fake->clock.time_ns + exchange.timeout_ns;
        vec_add(&fake->exchanges, exchange);
        return;
    }
    if (!streaming) {
        response.body = exchange.answer.body.bytes;
        response.length = exchange.answer.body.length;
    }
    if (response.status == 0)
        error_set(&response.error, E_IO, "no connection");
    else if (exchange.silent)
        error_set(&response.error, E_TIMEOUT, "silence");
    else if (exchange.answer.cut && !stopped)
        error_set(&response.error, E_IO, "connection reset");
    exchange.receiver.done(exchange.receiver.context, &response);
    str_done(&exchange.answer.body);
}

static int fake_wait(void *self, int64_t wait_ns, struct pollfd *descriptors, size_t count,
                     struct error *err)
{
    struct fake_transport *fake = self;
    struct fake_exchange *next = NULL, taken;

    (void)descriptors;
    (void)count;
    (void)err;
    for (size_t i = 0; i < fake->exchanges.count; i++)
        if (!next || fake->exchanges.data[i].due_ns < next->due_ns)
            next = &fake->exchanges.data[i];
    if (!next || next->due_ns > fake->clock.time_ns + wait_ns) {
        fake->clock.time_ns += wait_ns;
        return 0;
    }
    if (next->due_ns > fake->clock.time_ns)
        fake->clock.time_ns = next->due_ns;
    fake_take(fake, next->id, &taken);
    fake_finish(fake, taken);
    return 0;
}

static void fake_init(struct fake_transport *fake, fake_answer_function *function,
                      void *context)
{
    *fake = (struct fake_transport){
        .transport = {fake_start, fake_cancel, fake_wait, fake},
        .function = function,
        .context = context,
        .log = getenv("TRANCHE_TEST_LOG") != NULL,
    };
    fake_clock_init(&fake->clock, 1000 * SECONDS);
}

static void fake_done(struct fake_transport *fake)
{
    for (size_t i = 0; i < fake->exchanges.count; i++)
        str_done(&fake->exchanges.data[i].answer.body);
    vec_done(&fake->exchanges);
}

#endif
