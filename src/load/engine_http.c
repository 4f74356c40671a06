/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP load engine. See engine_http.h. Events are edge-triggered: a connection is put into
 * the epoll set once, for reading and writing.
 */
#include "load/engine_http.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/vec.h"
#include "load/http_parser.h"
#include "load/token_stream.h"

enum {
    EVENTS_AT_ONCE = 256,
    READ_SIZE = 64 << 10,
    SPARE_DESCRIPTORS = 64,
    /* Shorter waits are spun: a sleep would end later than that. */
    SPIN_NS = 60000,
};

struct connection {
    int fd;
    size_t address;
    bool connecting, busy, reused;
    uint64_t request;
    const struct http_payload *payload;
    size_t written;
    int64_t sent_ns;
    struct http_parser parser;
    struct token_stream tokens;
    struct http_engine *engine;
    struct connection *next, *previous; /* in the list of busy ones, or of idle ones */
};

struct http_engine {
    struct http_engine_options options;
    struct http_engine_stats stats;
    int epoll_fd;
    size_t open_count, next_address;
    size_t *next_payload;               /* of each address */
    struct connection **idle;           /* of each address, the last used first */
    struct connection *oldest, *newest; /* busy ones, in the order of sending */
    VEC(struct load_completion) ready;
    int64_t now_ns, count_from_ns;
    bool no_pwait2; /* the kernel is older than 5.11 */
    char buffer[READ_SIZE];
};

static const char *const failure_names[HTTP_FAILURE_COUNT] = {
    [HTTP_FAILURE_CONNECT] = "connect", [HTTP_FAILURE_RESET] = "reset",
    [HTTP_FAILURE_STATUS] = "status",   [HTTP_FAILURE_PROTOCOL] = "protocol",
    [HTTP_FAILURE_TIMEOUT] = "timeout",
};

const char *http_failure_name(enum http_failure failure)
{
    assert(failure < HTTP_FAILURE_COUNT);
    return failure_names[failure];
}

static int64_t now(void)
{
    return clock_now_ns(clock_real());
}

static bool is_counted(const struct connection *connection)
{
    return connection->sent_ns >= connection->engine->count_from_ns;
}

/* Lists. */

static void add_busy(struct http_engine *engine, struct connection *connection)
{
    connection->previous = engine->newest;
    connection->next = NULL;
    *(engine->newest ? &engine->newest->next : &engine->oldest) = connection;
    engine->newest = connection;
    connection->busy = true;
}

static void remove_busy(struct http_engine *engine, struct connection *connection)
{
    assert(connection->busy);
    *(connection->previous ? &connection->previous->next : &engine->oldest) = connection->next;
    *(connection->next ? &connection->next->previous : &engine->newest) = connection->previous;
    connection->busy = false;
}

static void add_idle(struct http_engine *engine, struct connection *connection)
{
    struct connection **first = &engine->idle[connection->address];
    connection->previous = NULL;
    connection->next = *first;
    if (*first)
        (*first)->previous = connection;
    *first = connection;
}

static void remove_idle(struct http_engine *engine, struct connection *connection)
{
    if (connection->next)
        connection->next->previous = connection->previous;
    *(connection->previous ? &connection->previous->next : &engine->idle[connection->address]) =
        connection->next;
}

static void free_connection(struct connection *connection)
{
    connection->engine->open_count--;
    close(connection->fd);
    http_parser_done(&connection->parser);
    token_stream_done(&connection->tokens);
    free(connection);
}

/* The end of a request. */

static void finish(struct connection *connection, enum load_outcome outcome)
{
    struct http_engine *engine = connection->engine;
    vec_add(&engine->ready, ((struct load_completion){connection->request, outcome,
                                                      connection->sent_ns, engine->now_ns}));
    remove_busy(engine, connection);
    assert(engine->oldest != connection);
    if (outcome == LOAD_OK && connection->parser.keeps_alive) {
        connection->reused = true;
        add_idle(engine, connection);
    } else {
        free_connection(connection);
    }
}

static void note_failure(struct connection *connection, enum http_failure failure,
                         const char *detail)
{
    struct http_engine_stats *stats = &connection->engine->stats;
    if (!*stats->first_failure)
        snprintf(stats->first_failure, sizeof stats->first_failure, "%s: %s",
                 failure_names[failure], detail);
    if (is_counted(connection))
        stats->failures[failure]++;
}

static void fail(struct connection *connection, enum http_failure failure, const char *detail)
{
    note_failure(connection, failure, detail);
    finish(connection, LOAD_FAILED);
}

static void count_tokens(struct connection *connection)
{
    struct http_engine_stats *stats = &connection->engine->stats;
    const struct token_stream *tokens = &connection->tokens;
    uint64_t count = token_stream_count(tokens);
    stats->tokens += count;
    if (tokens->events > 0)
        hist_record(stats->first_token, tokens->first_ns - connection->sent_ns);
    if (tokens->events > 1 && count > 1)
        hist_record(stats->per_token,
                    (tokens->last_ns - tokens->first_ns) / (int64_t)(count - 1));
}

/* The parser has all of the answer, or cannot go on. */
static void take_answer(struct connection *connection)
{
    struct http_engine *engine = connection->engine;
    const struct http_parser *parser = &connection->parser;
    if (parser->state == HTTP_BROKEN) {
        char text[128];
        bool cut = strstr(parser->problem, "before the connection's end") != NULL;
        snprintf(text, sizeof text, "expected %s", parser->problem);
        fail(connection, cut ? HTTP_FAILURE_RESET : HTTP_FAILURE_PROTOCOL, text);
    } else if (parser->status / 100 != 2) {
        char text[32];
        snprintf(text, sizeof text, "%d", parser->status);
        note_failure(connection, HTTP_FAILURE_STATUS, text);
        finish(connection, LOAD_FAILED);
    } else if (engine->options.streams_tokens &&
               (connection->tokens.broken || connection->tokens.events == 0)) {
        fail(connection, HTTP_FAILURE_PROTOCOL, "a stream without text, or broken events");
    } else {
        if (is_counted(connection)) {
            engine->stats.body_bytes += (uint64_t)parser->body_bytes;
            if (engine->options.streams_tokens)
                count_tokens(connection);
        }
        finish(connection, LOAD_OK);
    }
}

static void take_body(void *context, const char *bytes, size_t length)
{
    struct connection *connection = context;
    struct http_engine *engine = connection->engine;
    token_stream_feed(&connection->tokens, bytes, length, engine->now_ns,
                      is_counted(connection) ? engine->stats.token_gap : NULL);
}

/* Sending. */

static struct connection *open_connection(struct http_engine *engine, size_t address)
{
    const struct http_address *to = &engine->options.addresses[address];
    int one = 1,
        fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    struct connection *connection = xcalloc(1, sizeof *connection);
    connection->fd = fd;
    connection->address = address;
    connection->engine = engine;
    connection->tokens.usage_tokens = -1;
    connection->parser.context = connection;
    if (engine->options.streams_tokens)
        connection->parser.on_body = take_body;
    engine->open_count++;
    engine->stats.connections++;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = connection};
    /* In this order: a socket that is not connecting yet counts as hung up. */
    if ((connect(fd, (const struct sockaddr *)&to->address, to->length) < 0 &&
         errno != EINPROGRESS) ||
        epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        int reason = errno;
        free_connection(connection);
        errno = reason;
        return NULL;
    }
    connection->connecting = true; /* until the socket can be written */
    return connection;
}

static void start(struct connection *connection, uint64_t request)
{
    struct http_engine *engine = connection->engine;
    connection->request = request;
    connection->written = 0;
    http_parser_reset(&connection->parser);
    token_stream_reset(&connection->tokens);
    add_busy(engine, connection);
}

/* Sends the same once more on a fresh connection in place of this one; false when that is
 * not allowed. */
static bool repeat(struct connection *connection)
{
    struct http_engine *engine = connection->engine;
    if (!connection->reused || http_parser_has_begun(&connection->parser))
        return false;
    struct connection *fresh = open_connection(engine, connection->address);
    if (!fresh)
        return false;
    fresh->payload = connection->payload;
    fresh->sent_ns = connection->sent_ns;
    remove_busy(engine, connection);
    start(fresh, connection->request);
    free_connection(connection);
    engine->stats.repeated++;
    return true;
}

/* Writes what can be written; false when the connection is gone. */
static bool write_some(struct connection *connection)
{
    const struct http_payload *payload = connection->payload;
    while (connection->written < payload->length) {
        ssize_t sent = send(connection->fd, payload->bytes + connection->written,
                            payload->length - connection->written, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            return true;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (!repeat(connection))
                fail(connection, HTTP_FAILURE_RESET, strerror(errno));
            return false;
        }
        connection->written += (size_t)sent;
    }
    return true;
}

static void fail_at_once(struct http_engine *engine, uint64_t request)
{
    struct connection none = {.engine = engine, .sent_ns = engine->now_ns};
    note_failure(&none, HTTP_FAILURE_CONNECT, strerror(errno));
    vec_add(&engine->ready,
            ((struct load_completion){request, LOAD_FAILED, engine->now_ns, engine->now_ns}));
}

static int submit(void *self, uint64_t request, struct error *err)
{
    struct http_engine *engine = self;
    size_t address = engine->next_address;
    struct connection *connection = engine->idle[address];
    if (!connection && engine->open_count >= engine->options.connections_max)
        return error_set(err, E_BUSY, "%zu connections are in use", engine->open_count);
    engine->next_address = (address + 1) % engine->options.address_count;
    engine->now_ns = now();
    if (connection) {
        remove_idle(engine, connection);
    } else {
        connection = open_connection(engine, address);
        if (!connection) {
            fail_at_once(engine, request);
            return 0;
        }
    }
    size_t payload = engine->next_payload[address];
    engine->next_payload[address] = (payload + 1) % engine->options.payload_count;
    connection->payload =
        &engine->options.payloads[address * engine->options.payload_count + payload];
    connection->sent_ns = engine->now_ns;
    start(connection, request);
    if (!connection->connecting)
        write_some(connection);
    return 0;
}

/* Receiving. */

/* The peer has ended the connection. */
static void take_end(struct connection *connection, const char *detail)
{
    if (!connection->busy) {
        remove_idle(connection->engine, connection);
        free_connection(connection);
        return;
    }
    if (repeat(connection))
        return;
    http_parser_end(&connection->parser);
    if (connection->parser.state == HTTP_COMPLETE)
        take_answer(connection);
    else
        fail(connection, HTTP_FAILURE_RESET, detail);
}

/* Takes bytes; false when the connection is done with. */
static bool take_bytes(struct connection *connection, size_t length)
{
    struct http_engine *engine = connection->engine;
    if (!connection->busy) { /* bytes that nobody asked for */
        remove_idle(engine, connection);
        free_connection(connection);
        return false;
    }
    size_t taken = http_parser_feed(&connection->parser, engine->buffer, length);
    enum http_state state = connection->parser.state;
    if (state != HTTP_COMPLETE && state != HTTP_BROKEN)
        return true;
    if (taken < length || connection->written < connection->payload->length)
        connection->parser.keeps_alive = false;
    take_answer(connection);
    return false;
}

static void read_some(struct connection *connection, bool to_the_end)
{
    struct http_engine *engine = connection->engine;
    for (;;) {
        ssize_t length = recv(connection->fd, engine->buffer, READ_SIZE, 0);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            return;
        if (length <= 0) {
            take_end(connection, length < 0 ? strerror(errno) : "closed by the server");
            return;
        }
        if (!take_bytes(connection, (size_t)length))
            return;
        /* A short read has emptied the socket; new bytes come with a new event. */
        if (length < READ_SIZE && !to_the_end)
            return;
    }
}

/* Whether connecting has ended well. */
static bool finish_connecting(struct connection *connection)
{
    int problem = 0;
    socklen_t length = sizeof problem;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &problem, &length) < 0)
        problem = errno;
    if (problem == 0) {
        connection->connecting = false;
        return true;
    }
    fail(connection, HTTP_FAILURE_CONNECT, strerror(problem));
    return false;
}

static void take_event(struct connection *connection, uint32_t events)
{
    if (connection->connecting && !finish_connecting(connection))
        return;
    if (connection->busy && connection->written < connection->payload->length &&
        !write_some(connection))
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        read_some(connection, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
}

/* Waiting. */

static void expire(struct http_engine *engine)
{
    while (engine->oldest &&
           engine->now_ns - engine->oldest->sent_ns > engine->options.timeout_ns)
        fail(engine->oldest, HTTP_FAILURE_TIMEOUT, "no whole answer in time");
}

static int wait_for_events(struct http_engine *engine, struct epoll_event *events,
                           int64_t wait_ns)
{
    int64_t left_ns = wait_ns > SPIN_NS ? wait_ns - SPIN_NS / 2 : 0;
    if (!engine->no_pwait2) {
        struct timespec wait = {left_ns / 1000000000, left_ns % 1000000000};
        int count = epoll_pwait2(engine->epoll_fd, events, EVENTS_AT_ONCE, &wait, NULL);
        if (count >= 0 || errno != ENOSYS)
            return count;
        engine->no_pwait2 = true;
    }
    int64_t wait_ms = left_ns / 1000000;
    return epoll_wait(engine->epoll_fd, events, EVENTS_AT_ONCE,
                      wait_ms < 60000 ? (int)wait_ms : 60000);
}

static size_t take_ready(struct http_engine *engine, struct load_completion *completions,
                         size_t capacity)
{
    size_t count = engine->ready.count < capacity ? engine->ready.count : capacity;
    if (count == 0)
        return 0;
    memcpy(completions, engine->ready.data, count * sizeof *completions);
    memmove(engine->ready.data, engine->ready.data + count,
            (engine->ready.count - count) * sizeof *completions);
    engine->ready.count -= count;
    return count;
}

static int64_t wait_limit(const struct http_engine *engine, int64_t deadline_ns)
{
    int64_t limit_ns = deadline_ns;
    if (engine->oldest && engine->oldest->sent_ns + engine->options.timeout_ns < limit_ns)
        limit_ns = engine->oldest->sent_ns + engine->options.timeout_ns;
    return limit_ns - now();
}

static int poll_engine(void *self, int64_t deadline_ns, struct load_completion *completions,
                       size_t capacity, size_t *ret_count, struct error *err)
{
    struct http_engine *engine = self;
    struct epoll_event events[EVENTS_AT_ONCE];
    assert(capacity > 0);
    do {
        int64_t wait_ns = engine->ready.count ? 0 : wait_limit(engine, deadline_ns);
        int count = wait_for_events(engine, events, wait_ns);
        if (count < 0 && errno != EINTR)
            return error_set_errno(err, E_IO, "cannot wait for connections");
        engine->now_ns = now();
        for (int i = 0; i < count; i++)
            take_event(events[i].data.ptr, events[i].events);
        expire(engine);
        if (count < 0)
            break; /* a signal: the caller looks whether it was Ctrl-C */
    } while (engine->ready.count == 0 && engine->now_ns < deadline_ns);
    *ret_count = take_ready(engine, completions, capacity);
    return 0;
}

static const struct load_engine http_load_engine = {
    .name = "http", .submit = submit, .poll = poll_engine};

/* As many descriptors as the connections need. */
static int raise_limit(size_t connections, struct error *err)
{
    struct rlimit limit;
    rlim_t needed = connections + SPARE_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return 0;
    if (limit.rlim_max < needed)
        return error_set(
            err, E_IO, "%zu connections need %llu open files, the limit is %llu (ulimit -n)",
            connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_set_errno(err, E_IO, "cannot raise the limit of open files");
    return 0;
}

int http_engine_open(const struct http_engine_options *options, struct load_target *ret_target,
                     struct error *err)
{
    assert(options->address_count > 0 && options->payload_count > 0);
    assert(options->connections_max > 0 && options->timeout_ns > 0);
    int failure = raise_limit(options->connections_max, err);
    if (failure)
        return failure;
    CLEANUP(close_fd) int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, E_IO, "cannot make an epoll descriptor");
    struct http_engine *engine = xcalloc(1, sizeof *engine);
    engine->options = *options;
    engine->epoll_fd = steal_fd(&fd);
    engine->idle = xcalloc(options->address_count, sizeof(struct connection *));
    engine->next_payload = xcalloc(options->address_count, sizeof *engine->next_payload);
    engine->stats.first_token = hist_new();
    engine->stats.token_gap = hist_new();
    engine->stats.per_token = hist_new();
    /* Sleeps end within a microsecond of when they should, not fifty. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    *ret_target = (struct load_target){&http_load_engine, engine, clock_real()};
    return 0;
}

void http_engine_close(struct load_target *target)
{
    struct http_engine *engine = target->self;
    if (!engine)
        return;
    while (engine->oldest) {
        struct connection *connection = engine->oldest;
        remove_busy(engine, connection);
        assert(engine->oldest != connection);
        free_connection(connection);
    }
    for (size_t i = 0; i < engine->options.address_count; i++) {
        while (engine->idle[i]) {
            struct connection *connection = engine->idle[i];
            remove_idle(engine, connection);
            assert(engine->idle[i] != connection);
            free_connection(connection);
        }
    }
    assert(engine->open_count == 0);
    hist_free(engine->stats.first_token);
    hist_free(engine->stats.token_gap);
    hist_free(engine->stats.per_token);
    vec_done(&engine->ready);
    close(engine->epoll_fd);
    free(engine->idle);
    free(engine->next_payload);
    free(engine);
    *target = (struct load_target){0};
}

void http_engine_count_from(struct load_target *target, int64_t time_ns)
{
    struct http_engine *engine = target->self;
    engine->count_from_ns = time_ns;
}

const struct http_engine_stats *http_engine_stats(const struct load_target *target)
{
    const struct http_engine *engine = target->self;
    return &engine->stats;
}
