/* SPDX-License-Identifier: Apache-2.0
 *
 * See traffic.h.
 */
#include "runtime/traffic.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "runtime/state_folder.h"

enum { READ_BYTES = 64 << 10, READS_MAX = 256 };

void traffic_init(struct traffic *traffic)
{
    *traffic = (struct traffic){.fd = -1, .lines = STR_EMPTY};
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        traffic->backends[i].objective_ms = NAN;
}

static void hang_up(struct traffic *traffic)
{
    close_fd(&traffic->fd);
    traffic->fd = -1;
    str_clear(&traffic->lines);
}

void traffic_done(struct traffic *traffic)
{
    hang_up(traffic);
    str_done(&traffic->lines);
    free(traffic->path);
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        free(traffic->backends[i].ring);
}

void traffic_open(struct traffic *traffic, const char *folder)
{
    assert(!traffic->path);
    traffic->path = state_folder_file(folder, "haproxy.sock");
}

/* New events only: what was logged before belongs to a runtime that is gone. */
static bool dial(struct traffic *traffic)
{
    static const char COMMAND[] = "show events requests -w -n\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", traffic->path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, COMMAND, strlen(COMMAND), MSG_NOSIGNAL) != (ssize_t)strlen(COMMAND))
        return false; /* it is not there yet: at the next look */
    traffic->fd = steal_fd(&fd);
    return true;
}

void traffic_note(struct traffic *traffic, const char *line, int64_t now_ns)
{
    static const char PREFIX[] = "request ";
    const char *rest = NULL;
    if (!text_starts_with(line, PREFIX))
        return;
    int backend = router_pool_number(line + strlen(PREFIX), &rest);
    const char *server = backend >= 0 && *rest == ' ' ? rest + 1 : NULL;
    const char *figures = server ? strchr(server, ' ') : NULL;
    char *after_status = NULL, *after_latency = NULL;
    if (!figures)
        return;
    long status = strtol(figures, &after_status, 10);
    double latency_ms = strtod(after_status, &after_latency);
    if (after_latency == after_status)
        return;
    struct traffic_backend *entry = &traffic->backends[backend];
    bool answered = status >= 200 && status < 300;
    if (!entry->ring)
        entry->ring = xcalloc(TRAFFIC_SAMPLES, sizeof *entry->ring);
    entry->ring[entry->count++ % TRAFFIC_SAMPLES] = (struct traffic_sample){
        .time_ns = now_ns, .latency_ms = (float)latency_ms, .answered = answered};
    if (status >= 500 || status < 200)
        entry->failed++;
    else if (answered && latency_ms > entry->objective_ms)
        entry->late++;
}

static void note_lines(struct traffic *traffic, int64_t now_ns)
{
    struct str *lines = &traffic->lines;
    size_t used = 0;
    for (char *end; (end = memchr(lines->bytes + used, '\n', lines->length - used));) {
        *end = '\0';
        traffic_note(traffic, lines->bytes + used, now_ns);
        used = (size_t)(end - lines->bytes) + 1;
    }
    memmove(lines->bytes, lines->bytes + used, lines->length - used + 1);
    lines->length -= used;
}

void traffic_receive(struct traffic *traffic, int64_t now_ns)
{
    char bytes[READ_BYTES];
    if (!traffic->path || (traffic->fd < 0 && !dial(traffic)))
        return;
    for (int i = 0; i < READS_MAX; i++) { /* the rest at the next look */
        ssize_t got = recv(traffic->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) { /* it has ended, or has hung up */
            hang_up(traffic);
            return;
        }
        str_add_bytes(&traffic->lines, bytes, (size_t)got);
        note_lines(traffic, now_ns);
    }
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(const float *sorted, size_t count, double percent)
{
    size_t rank = (size_t)ceil(percent / 100 * (double)count);
    return count ? sorted[rank > 0 ? rank - 1 : 0] : NAN;
}

void traffic_summarise(const struct traffic *traffic, int backend, int64_t now_ns,
                       struct traffic_summary *ret_summary)
{
    assert(backend >= 0 && backend < ROUTER_BACKENDS);
    const struct traffic_backend *entry = &traffic->backends[backend];
    CLEANUP(free_ptr) float *latencies = xcalloc(TRAFFIC_SAMPLES, sizeof *latencies);
    size_t kept = entry->count < TRAFFIC_SAMPLES ? (size_t)entry->count : TRAFFIC_SAMPLES;
    size_t requests = 0, answered = 0, within = 0;
    int64_t oldest_ns = now_ns;
    for (size_t i = 0; i < kept; i++) {
        const struct traffic_sample *sample = &entry->ring[i];
        if (sample->time_ns <= now_ns - TRAFFIC_WINDOW_NS)
            continue;
        requests++;
        oldest_ns = sample->time_ns < oldest_ns ? sample->time_ns : oldest_ns;
        if (sample->answered) {
            latencies[answered++] = sample->latency_ms;
            within += !(sample->latency_ms > entry->objective_ms);
        }
    }
    /* A full ring may hold less than the window. */
    double seconds = requests == TRAFFIC_SAMPLES ? (double)(now_ns - oldest_ns) / 1e9
                                                 : (double)TRAFFIC_WINDOW_NS / 1e9;
    qsort(latencies, answered, sizeof *latencies, compare_floats);
    *ret_summary = (struct traffic_summary){
        .window_requests = requests,
        .rate_rps = seconds > 0 ? (double)requests / seconds : 0,
        .latency_ms_p50 = percentile(latencies, answered, 50),
        .latency_ms_p90 = percentile(latencies, answered, 90),
        .latency_ms_p99 = percentile(latencies, answered, 99),
        .attainment = requests ? (double)within / (double)requests : NAN,
    };
}

void traffic_reset(struct traffic *traffic, int backend, double objective_ms)
{
    assert(backend >= 0 && backend < ROUTER_BACKENDS);
    struct traffic_backend *entry = &traffic->backends[backend];
    free(entry->ring);
    *entry = (struct traffic_backend){.objective_ms = objective_ms};
}
