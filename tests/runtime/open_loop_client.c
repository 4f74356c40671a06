/* SPDX-License-Identifier: Apache-2.0
 *
 * Open-loop load on several services at once, for tests that need answers checked and each
 * failure told:
 *
 *     open_loop_client PORT SECONDS SEED SERVICE=RATE=OBJECTIVE_MS[=WIDTH]…
 *
 * Requests are a Poisson stream per service with binary tensors; the model is make_model's,
 * whose y is x + 1. Latency counts from the intended time. SIGTERM ends the schedule early.
 * Prints one JSON object: {"SERVICE": {"requests", "failed", "wrong", "late", "p50", "p99",
 * "attainment", "first_failure"}}. Every request is waited for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/vec.h"

enum { CONNECTIONS_MAX = 1024, ANSWER_MAX = 1 << 20, WIDTH_DEFAULT = 16, SERVICES_MAX = 16 };
#define ANSWER_TIMEOUT_NS INT64_C(30000000000)

struct service {
    char name[64];
    double rate_rps, objective_ms;
    int width;
    struct rng rng;
    int64_t next_ns;
    uint64_t requests, failed, wrong, late;
    struct hist *latency;
    char first_failure[256];
};

struct connection {
    int fd;
    struct service *service; /* NULL: idle */
    int64_t intended_ns;
    float value;
    struct str out, in;
    size_t sent;
    bool reused;
};

static struct service services[SERVICES_MAX];
static size_t service_count;
static struct connection connections[CONNECTIONS_MAX];
static int port;
static volatile sig_atomic_t stopping;

static void stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static int64_t now_ns(void)
{
    return clock_now_ns(clock_real());
}

static void make_request(const struct service *service, float value, struct str *out)
{
    CLEANUP(str_done) struct str json = STR_EMPTY;
    size_t bytes = sizeof(float) * (size_t)service->width;
    str_addf(&json,
             "{\"parameters\":{\"binary_data_output\":true},\"outputs\":[{\"name\":\"y\"}],"
             "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,%d],"
             "\"parameters\":{\"binary_data_size\":%zu}}]}",
             service->width, bytes);
    str_clear(out);
    str_addf(out,
             "POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n"
             "Inference-Header-Content-Length: %zu\r\n\r\n",
             service->name, json.length + bytes, json.length);
    str_add_bytes(out, json.bytes, json.length);
    for (int i = 0; i < service->width; i++) {
        float x = i == 0 ? value : (float)i / 100;
        str_add_bytes(out, &x, sizeof x);
    }
}

static void fail(struct connection *connection, const char *why)
{
    struct service *service = connection->service;
    service->failed++;
    if (!service->first_failure[0])
        snprintf(service->first_failure, sizeof service->first_failure, "%s%s (%.120s)", why,
                 connection->reused ? ", connection used before" : "", connection->in.bytes);
    close(connection->fd);
    connection->fd = -1;
    connection->service = NULL;
}

/* The length of a whole answer, or 0 when more must come. */
static size_t answer_length(const struct str *in, size_t *ret_body)
{
    const char *end = strstr(in->bytes, "\r\n\r\n");
    if (!end)
        return 0;
    const char *length = strcasestr(in->bytes, "\r\ncontent-length:");
    size_t head = (size_t)(end - in->bytes) + 4;
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    *ret_body = body;
    return in->length >= head + body ? head + body : 0;
}

static void complete(struct connection *connection, size_t length, size_t body)
{
    struct service *service = connection->service;
    int status = 0;
    sscanf(connection->in.bytes, "HTTP/1.1 %d", &status);
    if (status != 200) {
        fail(connection, "status");
        return;
    }
    float y = NAN;
    size_t tensor = sizeof(float) * (size_t)service->width;
    if (body >= tensor)
        memcpy(&y, connection->in.bytes + length - tensor, sizeof y);
    service->wrong += !(fabsf(y - (connection->value + 1)) < 1e-3f);
    int64_t latency_ns = now_ns() - connection->intended_ns;
    hist_record(service->latency, latency_ns > 0 ? latency_ns : 1);
    service->late += (double)latency_ns > service->objective_ms * 1e6;
    connection->service = NULL;
    connection->reused = true;
    str_clear(&connection->in);
}

static struct connection *find_connection(void)
{
    struct connection *closed = NULL;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (connections[i].service)
            continue;
        if (connections[i].fd >= 0)
            return &connections[i];
        if (!closed)
            closed = &connections[i];
    }
    if (!closed)
        return NULL;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    closed->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    closed->reused = false;
    if (connect(closed->fd, (struct sockaddr *)&address, sizeof address) != 0 &&
        errno != EINPROGRESS) {
        close(closed->fd);
        closed->fd = -1;
        return NULL;
    }
    return closed;
}

static void push_out(struct connection *connection)
{
    while (connection->sent < connection->out.length) {
        ssize_t now = send(connection->fd, connection->out.bytes + connection->sent,
                           connection->out.length - connection->sent, MSG_NOSIGNAL);
        if (now < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (now <= 0) {
            fail(connection, "send");
            return;
        }
        connection->sent += (size_t)now;
    }
}

static void begin(struct service *service)
{
    struct connection *connection = find_connection();
    service->requests++;
    if (!connection) {
        service->failed++;
        if (!service->first_failure[0])
            snprintf(service->first_failure, sizeof service->first_failure, "no connection");
        return;
    }
    connection->service = service;
    connection->intended_ns = service->next_ns;
    connection->value = (float)(service->requests % 100000);
    connection->sent = 0;
    make_request(service, connection->value, &connection->out);
    push_out(connection);
}

static void pull_in(struct connection *connection)
{
    char bytes[16384];
    ssize_t got;
    while ((got = recv(connection->fd, bytes, sizeof bytes, 0)) > 0) {
        str_add_bytes(&connection->in, bytes, (size_t)got);
        size_t body, length = answer_length(&connection->in, &body);
        if (length > 0 && connection->service) {
            complete(connection, length, body);
            return;
        }
    }
    if (got < 0 && errno == EAGAIN)
        return;
    if (connection->service) {
        fail(connection, got == 0 ? "closed" : strerror(errno));
    } else {
        close(connection->fd);
        connection->fd = -1;
    }
}

static void wait_for_sockets(int64_t until_ns)
{
    static struct pollfd fds[CONNECTIONS_MAX];
    static struct connection *owners[CONNECTIONS_MAX];
    nfds_t count = 0;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (connections[i].fd < 0)
            continue;
        bool sends = connections[i].service && connections[i].sent < connections[i].out.length;
        owners[count] = &connections[i];
        fds[count++] =
            (struct pollfd){.fd = connections[i].fd, .events = POLLIN | (sends ? POLLOUT : 0)};
    }
    int64_t wait_ns = until_ns - now_ns();
    struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    if (wait_ns <= 0)
        wait = (struct timespec){0};
    if (ppoll(fds, count, &wait, NULL) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++) {
        if (fds[i].revents & POLLOUT)
            push_out(owners[i]);
        if (owners[i]->fd >= 0 && (fds[i].revents & ~POLLOUT))
            pull_in(owners[i]);
    }
}

static bool any_outstanding(void)
{
    bool any = false;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (!connections[i].service)
            continue;
        if (now_ns() - connections[i].intended_ns > ANSWER_TIMEOUT_NS)
            fail(&connections[i], "no answer");
        else
            any = true;
    }
    return any;
}

static void run(double seconds)
{
    int64_t end_ns = now_ns() + (int64_t)(seconds * 1e9);
    for (size_t s = 0; s < service_count; s++)
        services[s].next_ns =
            now_ns() + (int64_t)(rng_exponential(&services[s].rng, 1e9 / services[s].rate_rps));
    while (now_ns() < end_ns && !stopping) {
        int64_t next_ns = end_ns;
        for (size_t s = 0; s < service_count; s++) {
            struct service *service = &services[s];
            while (service->next_ns <= now_ns() && service->next_ns < end_ns) {
                begin(service);
                service->next_ns +=
                    (int64_t)(rng_exponential(&service->rng, 1e9 / service->rate_rps));
            }
            next_ns = service->next_ns < next_ns ? service->next_ns : next_ns;
        }
        wait_for_sockets(next_ns);
    }
    while (any_outstanding())
        wait_for_sockets(now_ns() + 50000000);
}

static void report(void)
{
    json_t *root = json_object();
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (size_t s = 0; s < service_count; s++) {
        const struct service *service = &services[s];
        uint64_t good = hist_count(service->latency) - service->late;
        json_object_set_new(
            root, service->name,
            json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s}", "requests",
                      (json_int_t)service->requests, "failed", (json_int_t)service->failed,
                      "wrong", (json_int_t)service->wrong, "late", (json_int_t)service->late,
                      "p50", (double)hist_percentile_ns(service->latency, 50) / 1e6, "p99",
                      (double)hist_percentile_ns(service->latency, 99) / 1e6, "attainment",
                      service->requests ? (double)good / (double)service->requests : 1.0,
                      "first_failure", service->first_failure));
    }
    json_write_pretty(root, &text);
    fputs(text.bytes, stdout);
    json_decref(root);
}

static bool read_service(char *word, uint64_t seed)
{
    struct service *service = &services[service_count];
    service->width = WIDTH_DEFAULT;
    if (service_count == SERVICES_MAX ||
        sscanf(word, "%63[^=]=%lf=%lf=%d", service->name, &service->rate_rps,
               &service->objective_ms, &service->width) < 3 ||
        service->rate_rps <= 0)
        return false;
    service->rng = rng_seed_stream(seed, service_count++);
    service->latency = hist_new();
    return true;
}

int main(int argc, char **argv)
{
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    if (argc < 5)
        return 2;
    port = atoi(argv[1]);
    for (int i = 4; i < argc; i++)
        if (!read_service(argv[i], strtoull(argv[3], NULL, 10)))
            return 2;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        connections[i] = (struct connection){.fd = -1, .out = STR_EMPTY, .in = STR_EMPTY};
    run(atof(argv[2]));
    report();
    return 0;
}
