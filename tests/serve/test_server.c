/* SPDX-License-Identifier: Apache-2.0
 *
 * The model server over real sockets: routes, refusals, what hostile or clumsy clients do, and
 * draining under load.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "fake_session.h"
#include "serve/server.h"

enum { ANSWER_SIZE = 65536, IDLE_CONNECTIONS = 10000, KIB = 1024 };
#define SECOND_NS INT64_C(1000000000)
#define INFER     "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n"
#define BODY                                                                                   \
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}"

static struct session session;
static struct server *server;

static void start(struct server_options options)
{
    struct error err = {0};
    session = (struct session)FAKE_SESSION;
    options.address = "127.0.0.1";
    options.model = "m";
    if (!options.body_bytes_max)
        options.body_bytes_max = 4096;
    if (!options.bodies_bytes_max)
        options.bodies_bytes_max = 1 << 20;
    if (!options.connections_max)
        options.connections_max = 256;
    if (!options.idle_timeout_s)
        options.idle_timeout_s = 30;
    if (!options.batcher.batch_max)
        options.batcher =
            (struct batcher_options){.batch_max = 4, .procs = 1, .queue_rows_max = 1000};
    if (server_start(&session, &options, &server, &err) != 0)
        fail_msg("%s", err.text);
}

static int stop(void **state)
{
    (void)state;
    fake_hold(&session, false);
    server_free(server);
    server = NULL;
    return 0;
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail_msg("cannot connect");
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads one answer: until its Content-Length is there, or the end. Returns the status, 0 when
 * the connection was closed without one, -1 when nothing came within the time. */
static int hear(int fd, char answer[ANSWER_SIZE], int timeout_ms)
{
    size_t length = 0;
    int64_t end_ns = clock_now_ns(clock_real()) + (int64_t)timeout_ms * 1000000;
    answer[0] = '\0';
    for (;;) {
        const char *head = strstr(answer, "\r\n\r\n");
        const char *field = strcasestr(answer, "Content-Length:");
        if (head && field &&
            length >= (size_t)(head + 4 - answer) + strtoul(field + 15, NULL, 10))
            break;
        int64_t left_ns = end_ns - clock_now_ns(clock_real());
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        if (left_ns <= 0 || poll(&waiting, 1, (int)(left_ns / 1000000) + 1) <= 0)
            return -1;
        ssize_t got = recv(fd, answer + length, ANSWER_SIZE - 1 - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
        answer[length] = '\0';
    }
    int status = 0;
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

static int ask(const char *request, char answer[ANSWER_SIZE])
{
    int fd = dial();
    say(fd, request);
    int status = hear(fd, answer, 10000);
    close(fd);
    return status;
}

static void infer_request(struct str *text, const char *body)
{
    str_clear(text);
    str_addf(text, INFER "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
}

/* Asks again and again; the last answer stays. */
static void wait_for(const char *request, int status, const char *words, char *answer)
{
    int64_t end_ns = clock_now_ns(clock_real()) + 60 * SECOND_NS;
    while (ask(request, answer) != status || !strstr(answer, words)) {
        if (clock_now_ns(clock_real()) > end_ns)
            fail_msg("no %d with '%s' comes, but %s", status, words, answer);
        usleep(1000);
    }
}

static void wait_for_runs(int count)
{
    int64_t end_ns = clock_now_ns(clock_real()) + 60 * SECOND_NS;
    while (fake_run_count(&session) < count && clock_now_ns(clock_real()) < end_ns)
        usleep(1000);
    assert_true(fake_run_count(&session) >= count);
}

/* ---- routes ----------------------------------------------------------------------- */

struct route_case {
    const char *request;
    int status;
    const char *words; /* in the answer */
};

static const struct route_case ROUTES[] = {
    {"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n", 200, "binary_tensor_data"},
    {"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
    {"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
    {"HEAD /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
    {"GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n", 200, "\"shape\":[-1,2]"},
    {"GET /v2/models/m/versions/1 HTTP/1.1\r\nHost: x\r\n\r\n", 200, "\"name\":\"m\""},
    {"GET /v2/models/m/ready HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
    {"GET /v2/models/m/config HTTP/1.1\r\nHost: x\r\n\r\n", 200, "\"max_batch_size\":4"},
    {"GET /v2/models/m/stats HTTP/1.1\r\nHost: x\r\n\r\n", 200, "\"inference_count\":"},
    {"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200,
     "nv_inference_request_success{model=\"m\""},
    {"GET /v2/models/m/versions/2 HTTP/1.1\r\nHost: x\r\n\r\n", 404, "error"},
    {"GET /v2/models/mm HTTP/1.1\r\nHost: x\r\n\r\n", 404, "error"},
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, "error"},
    {"GET /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n\r\n", 405, "POST"},
    {"POST /v2/models/m HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, "GET"},
    {INFER "Content-Length: 2\r\n\r\n{}", 400, "inputs"},
    {INFER "Content-Length: 0\r\n\r\n", 400, "error"},
    {INFER "Content-Length: 4097\r\n\r\n", 413, "too large"},
    {INFER "Content-Length: 99999999999999999999\r\n\r\n", 413, "too large"},
    {INFER "Content-Length: 2\r\nInference-Header-Content-Length: 3\r\n\r\n{}", 400,
     "Inference-Header-Content-Length"},
    {INFER "Content-Length: 2\r\nInference-Header-Content-Length: x\r\n\r\n{}", 400,
     "Inference-Header-Content-Length"},
    {"NONSENSE\r\n\r\n", 400, ""},
};

static void answers_every_route(void **state)
{
    char answer[ANSWER_SIZE];
    (void)state;
    start((struct server_options){0});
    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++) {
        int fd = dial();
        say(fd, ROUTES[i].request);
        bool head = text_starts_with(ROUTES[i].request, "HEAD");
        int status = hear(fd, answer, head ? 500 : 10000);
        if (head)
            sscanf(answer, "HTTP/1.1 %d", &status);
        close(fd);
        if (status != ROUTES[i].status &&
            !(status == 0 && text_starts_with(ROUTES[i].request, "NONSENSE")))
            fail_msg("%s gave %d: %s", ROUTES[i].request, status, answer);
        if (!strstr(answer, ROUTES[i].words))
            fail_msg("%s: no \"%s\" in %s", ROUTES[i].request, ROUTES[i].words, answer);
    }
}

/* In Triton's statistics the phases are counted and timed, and come to no more than the whole.
 */
static void phases_are_part_of_requests(const char *answer, unsigned count)
{
    static const char *const names[] = {"success", "queue", "compute_input", "compute_infer",
                                        "compute_output"};
    unsigned long long whole_ns = 0, parts_ns = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(free_ptr)
        char *member = xasprintf("\"%s\":{\"count\":%u,\"ns\":", names[i], count);
        const char *at = strstr(answer, member);
        if (!at)
            fail_msg("no %s in %s", member, answer);
        unsigned long long ns = strtoull(at + strlen(member), NULL, 10);
        assert_true(ns > 0);
        *(i == 0 ? &whole_ns : &parts_ns) += ns;
    }
    assert_true(parts_ns <= whole_ns);
}

static void infers_on_one_connection_again_and_again(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    (void)state;
    start((struct server_options){0});
    infer_request(&request, BODY);
    int fd = dial();
    for (int i = 0; i < 50; i++) {
        say(fd, request.bytes);
        assert_int_equal(hear(fd, answer, 10000), 200);
        assert_non_null(strstr(answer, "\"data\":[2,3]"));
    }
    close(fd);
    assert_int_equal(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", answer), 200);
    assert_non_null(
        strstr(answer, "nv_inference_request_success{model=\"m\",version=\"1\"} 50\n"));
    assert_int_equal(ask("GET /v2/models/m/stats HTTP/1.1\r\nHost: x\r\n\r\n", answer), 200);
    phases_are_part_of_requests(answer, 50);
}

static void takes_chunked_bodies_within_the_limit(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    (void)state;
    start((struct server_options){0});
    str_addf(&request, INFER "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
             strlen(BODY), BODY);
    assert_int_equal(ask(request.bytes, answer), 200);
    str_clear(&request);
    str_add(&request, INFER "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; i++) {
        str_add(&request, "400\r\n");
        for (int k = 0; k < 1024; k++)
            str_add_char(&request, ' ');
        str_add(&request, "\r\n");
    }
    str_add(&request, "0\r\n\r\n");
    assert_int_equal(ask(request.bytes, answer), 413);
}

/* ---- too much --------------------------------------------------------------------- */

static void full_queue_is_503_with_retry_after(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    int fds[3];
    (void)state;
    start(
        (struct server_options){.batcher = {.batch_max = 1, .procs = 1, .queue_rows_max = 2}});
    fake_hold(&session, true);
    infer_request(&request, BODY);
    for (int i = 0; i < 3; i++) { /* one runs, two wait */
        fds[i] = dial();
        say(fds[i], request.bytes);
        if (i == 0)
            wait_for_runs(1);
    }
    wait_for("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200,
             "pending_request_count{model=\"m\",version=\"1\"} 2\n", answer);
    assert_int_equal(ask(request.bytes, answer), 503);
    assert_non_null(strcasestr(answer, "Retry-After: 1"));
    assert_non_null(strstr(answer, "queue is full"));
    fake_hold(&session, false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hear(fds[i], answer, 10000), 200);
        close(fds[i]);
    }
}

static void bodies_together_are_bounded(void **state)
{
    char answer[ANSWER_SIZE];
    (void)state;
    start((struct server_options){.body_bytes_max = 4096, .bodies_bytes_max = 6000});
    int first = dial();
    say(first, INFER "Expect: 100-continue\r\nContent-Length: 4000\r\n\r\n");
    assert_true(recv(first, answer, ANSWER_SIZE - 1, 0) > 0); /* Continue: 4000 are reserved */
    say(first, "{");                                          /* and no more */
    assert_int_equal(ask(INFER "Content-Length: 4000\r\n\r\n", answer), 503);
    assert_non_null(strcasestr(answer, "Retry-After"));
    close(first);
    CLEANUP(str_done) struct str request = STR_EMPTY;
    infer_request(&request, BODY);
    wait_for(request.bytes, 200, "", answer); /* given back */
}

/* ---- clients that misbehave ------------------------------------------------------- */

static void slow_clients_are_closed_and_hold_nobody_up(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    int slow[20];
    (void)state;
    start((struct server_options){.idle_timeout_s = 1});
    infer_request(&request, BODY);
    for (int i = 0; i < 20; i++) {
        slow[i] = dial();
        say(slow[i], i % 2 ? "POST /v2/models/m/inf" : INFER "Content-Length: 100\r\n\r\n{");
    }
    assert_int_equal(ask(request.bytes, answer), 200);
    for (int i = 0; i < 20; i++) {
        assert_int_not_equal(hear(slow[i], answer, 10000), 200);
        close(slow[i]);
    }
    assert_int_equal(ask(request.bytes, answer), 200);
}

static void half_closed_clients_are_answered(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    (void)state;
    start((struct server_options){0});
    infer_request(&request, BODY);
    int fd = dial();
    say(fd, request.bytes);
    shutdown(fd, SHUT_WR);
    int status = hear(fd, answer, 10000);
    close(fd);
    /* libmicrohttpd may take the half close for an abort; what counts is that all goes on. */
    assert_true(status == 200 || status == 0);
    assert_int_equal(ask(request.bytes, answer), 200);
}

static void clients_that_go_away_cost_nothing(void **state)
{
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    (void)state;
    start((struct server_options){.body_bytes_max = 4096, .bodies_bytes_max = 10000});
    infer_request(&request, BODY);
    for (int i = 0; i < 200; i++) {
        int fd = dial();
        struct linger reset = {.l_onoff = 1};
        say(fd, i % 2 ? request.bytes : INFER "Content-Length: 4000\r\n\r\n{");
        if (i % 3 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    int64_t end_ns = clock_now_ns(clock_real()) + 10 * SECOND_NS;
    int status = 0;
    while (status != 200 && clock_now_ns(clock_real()) < end_ns)
        status = ask(request.bytes, answer); /* until their bytes are given back */
    assert_int_equal(status, 200);
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / KIB);
}

/* Beyond the limit connections wait in the listen queue or are closed; memory stays bounded
 * and the server goes on when they are gone. */
static void ten_thousand_idle_connections(void **state)
{
    static int fds[IDLE_CONNECTIONS];
    struct rlimit files;
    char answer[ANSWER_SIZE];
    CLEANUP(str_done) struct str request = STR_EMPTY;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * IDLE_CONNECTIONS - 1) {
        print_message("only %lu descriptors allowed\n", (unsigned long)files.rlim_cur);
        skip();
    }
    start((struct server_options){.connections_max = 4096, .idle_timeout_s = 300});
    infer_request(&request, BODY);
    assert_int_equal(ask(request.bytes, answer), 200);
    long before_kib = resident_kib();
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(server_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < IDLE_CONNECTIONS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fds[i] >= 0);
        int connected = connect(fds[i], (struct sockaddr *)&address, sizeof address);
        (void)connected;
        if (i < 2000 && i % 2)
            usleep(10);
    }
    usleep(500000);
    long grown_kib = resident_kib() - before_kib;
    print_message("%d idle connections: %ld KiB more\n", IDLE_CONNECTIONS, grown_kib);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    assert_true(grown_kib < 256 * KIB); /* 4096 × the 32 KiB pool of a connection, and room */
#endif
    for (int i = 0; i < IDLE_CONNECTIONS; i++)
        close(fds[i]);
    int64_t end_ns = clock_now_ns(clock_real()) + 20 * SECOND_NS;
    int status = 0;
    while (status != 200 && clock_now_ns(clock_real()) < end_ns)
        status = ask(request.bytes, answer);
    assert_int_equal(status, 200);
}

/* ---- draining --------------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    int answered, refused, lost;
};
static atomic_bool calling;

/* Sends requests on one connection until it is refused; a connection that was refused at the
 * door, or closed between two requests, loses nothing. */
static void *call(void *argument)
{
    struct caller *caller = argument;
    char *answer = xcalloc(1, ANSWER_SIZE);
    CLEANUP(str_done) struct str request = STR_EMPTY;
    infer_request(&request, BODY);
    int fd = dial();
    while (atomic_load(&calling)) {
        if (send(fd, request.bytes, request.length, MSG_NOSIGNAL) != (ssize_t)request.length)
            break;
        int status = hear(fd, answer, 20000);
        if (status == 200 && strstr(answer, "\"data\":[2,3]")) {
            caller->answered++;
        } else if (status == 503) {
            caller->refused++;
            break;
        } else {
            caller->lost += answer[0] != '\0' || status == -1;
            break;
        }
    }
    close(fd);
    free(answer);
    return NULL;
}

static void draining_loses_nothing(void **state)
{
    enum { CALLERS = 16 };
    struct caller callers[CALLERS] = {0};
    (void)state;
    start((struct server_options){
        .batcher = {.batch_max = 4, .procs = 2, .max_wait_ms = 1, .queue_rows_max = 1000}});
    session.run_ns = 2000000;
    atomic_store(&calling, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&callers[i].thread, NULL, call, &callers[i]);
    wait_for_runs(CALLERS);
    server_drain(server);
    char answer[ANSWER_SIZE];
    assert_int_equal(ask("GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n", answer), 503);
    assert_int_equal(ask("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", answer), 200);
    atomic_store(&calling, false);
    int answered = 0, lost = 0;
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        answered += callers[i].answered;
        lost += callers[i].lost;
    }
    assert_true(answered > 0);
    assert_int_equal(lost, 0);
    /* Answered outside is what was computed inside. */
    int computed = 0;
    for (int i = 0; i < fake_run_count(&session); i++)
        computed += session.runs[i];
    assert_int_equal(computed, answered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(answers_every_route, stop),
        cmocka_unit_test_teardown(infers_on_one_connection_again_and_again, stop),
        cmocka_unit_test_teardown(takes_chunked_bodies_within_the_limit, stop),
        cmocka_unit_test_teardown(full_queue_is_503_with_retry_after, stop),
        cmocka_unit_test_teardown(bodies_together_are_bounded, stop),
        cmocka_unit_test_teardown(slow_clients_are_closed_and_hold_nobody_up, stop),
        cmocka_unit_test_teardown(half_closed_clients_are_answered, stop),
        cmocka_unit_test_teardown(clients_that_go_away_cost_nothing, stop),
        cmocka_unit_test_teardown(ten_thousand_idle_connections, stop),
        cmocka_unit_test_teardown(draining_loses_nothing, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
