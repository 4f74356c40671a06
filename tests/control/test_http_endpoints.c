/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoints over real sockets, with a client in a thread.
 */
#include "control/http_endpoints.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "kube/http.h"

struct client {
    uint16_t port;
    const char *request;
    char answer[4096];
    _Atomic bool over;
};

static void *ask(void *context)
{
    struct client *client = context;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(client->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = 0;

    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, client->request, strlen(client->request), MSG_NOSIGNAL) > 0) {
        ssize_t got;
        while (length < sizeof client->answer - 1 &&
               (got = read(fd, client->answer + length, sizeof client->answer - 1 - length)) >
                   0)
            length += (size_t)got;
    }
    client->answer[length] = '\0';
    close(fd);
    client->over = true;
    return NULL;
}

static void on_metrics(void *context, struct str *text)
{
    (void)context;
    str_add(text, "tranche_test 1\n");
}

static bool on_ready(void *context, struct str *why)
{
    const bool *ready = context;
    str_add(why, "not yet");
    return *ready;
}

struct bench {
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct http_endpoints *endpoints;
    bool ready;
};

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.auth = kube_auth_new("http://127.0.0.1:1")};
    bench->http = kube_http_new(&(struct kube_http_options){.auth = bench->auth}, NULL);
    bench->loop = kube_loop_new(kube_http_transport(bench->http), clock_real());
}

static void bench_done(struct bench *bench)
{
    http_endpoints_free(bench->endpoints);
    kube_loop_free(bench->loop);
    kube_http_free(bench->http);
    kube_auth_free(bench->auth);
}

static void start(struct bench *bench, const char *listen)
{
    struct error err = {0};
    if (http_endpoints_start(&(struct http_endpoints_options){.loop = bench->loop,
                                                              .listen = listen,
                                                              .metrics = on_metrics,
                                                              .ready = on_ready,
                                                              .context = &bench->ready},
                             &bench->endpoints, &err) < 0)
        fail_msg("%s", err.text);
}

static const struct {
    const char *request_line;
    bool ready;
    const char *status, *body;
} answer_table[] = {
    {"GET /metrics HTTP/1.1", false, " 200 ", "tranche_test 1\n"},
    {"GET /healthz HTTP/1.1", false, " 200 ", "ok\n"},
    {"GET /readyz HTTP/1.1", false, " 503 ", "not yet\n"},
    {"GET /readyz?verbose HTTP/1.1", true, " 200 ", "ok\n"},
    {"GET / HTTP/1.1", true, " 404 ", ""},
    {"GET /metrics/../etc HTTP/1.1", true, " 404 ", ""},
    {"POST /metrics HTTP/1.1", true, " 405 ", ""},
    {"DELETE /healthz HTTP/1.1", true, " 405 ", ""},
};

/* Asks once, and lets the loop turn until there is an answer. */
static void ask_once(struct bench *bench, struct client *client)
{
    pthread_t thread;

    client->port = http_endpoints_port(bench->endpoints);
    assert_int_equal(pthread_create(&thread, NULL, ask, client), 0);
    while (!client->over)
        assert_int_equal(kube_loop_turn(bench->loop, 1000000, NULL), 0);
    pthread_join(thread, NULL);
}

static void test_answers(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench);
    start(&bench, "127.0.0.1:0");
    for (size_t i = 0; i < sizeof answer_table / sizeof *answer_table; i++) {
        char request[256];
        snprintf(request, sizeof request, "%s\r\nHost: x\r\nConnection: close\r\n\r\n",
                 answer_table[i].request_line);
        struct client client = {.request = request};
        bench.ready = answer_table[i].ready;
        ask_once(&bench, &client);
        const char *body = strstr(client.answer, "\r\n\r\n");
        if (!strstr(client.answer, answer_table[i].status) || !body)
            fail_msg("%s: %s", answer_table[i].request_line, client.answer);
        assert_string_equal(body + 4, answer_table[i].body);
    }
    bench_done(&bench);
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",         "127.0.0.1",      "localhost:80",    ":80",
        "1.2.3:80", "127.0.0.1:x",    "127.0.0.1:65536", "[::1:80",
        "::1",      "[127.0.0.1]:80", "127.0.0.1:",      "127.0.0.1:-1",
        "]:1",      "fd00:5:80"};
    struct bench bench;
    struct error err;
    bench_init(&bench);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int rc = http_endpoints_start(&(struct http_endpoints_options){.loop = bench.loop,
                                                                       .listen = wrong[i],
                                                                       .metrics = on_metrics,
                                                                       .ready = on_ready},
                                      &bench.endpoints, &err);
        if (rc != -E_USAGE)
            fail_msg("'%s': %d", wrong[i], rc);
    }
    start(&bench, "127.0.0.1:0");
    char taken[32];
    struct http_endpoints *second = NULL;
    snprintf(taken, sizeof taken, "127.0.0.1:%u", http_endpoints_port(bench.endpoints));
    assert_int_equal(
        http_endpoints_start(
            &(struct http_endpoints_options){
                .loop = bench.loop, .listen = taken, .metrics = on_metrics, .ready = on_ready},
            &second, &err),
        -E_IO);
    bench_done(&bench);
}

/* An address of IPv6 as status.podIP has it; every address is one of IPv4 too, whether the
 * machine has IPv6 or not. */
static void test_ipv6(void **state)
{
    (void)state;
    static const char request[] =
        "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct client client = {.request = request};
    struct bench bench;
    bench_init(&bench);
    start(&bench, "[::]:0");
    ask_once(&bench, &client);
    assert_non_null(strstr(client.answer, " 200 "));
    bench_done(&bench);
    static const char *const forms[] = {"::1:0", "[::1]:0"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct error err = {0};
        bench_init(&bench);
        int rc = http_endpoints_start(&(struct http_endpoints_options){.loop = bench.loop,
                                                                       .listen = forms[i],
                                                                       .metrics = on_metrics,
                                                                       .ready = on_ready},
                                      &bench.endpoints, &err);
        if (rc < 0 && rc != -E_IO) /* E_IO: no IPv6 here, but the address was read */
            fail_msg("%s: %s", forms[i], err.text);
        bench_done(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_ipv6),
    };
    return cmocka_run_group_tests_name("http_endpoints", tests, NULL, NULL);
}
