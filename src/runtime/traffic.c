/* SPDX-License-Identifier: Apache-2.0
 *
 * See traffic.h.
 */
#include "runtime/traffic.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "runtime/state_folder.h"

enum { RECEIVE_BUFFER_BYTES = 4 << 20 };

void traffic_init(struct traffic *traffic)
{
    *traffic = (struct traffic){.fd = -1};
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        traffic->backends[i].objective_ms = NAN;
}

void traffic_done(struct traffic *traffic)
{
    close_fd(&traffic->fd);
    traffic->fd = -1;
    for (int i = 0; i < ROUTER_BACKENDS; i++)
        free(traffic->backends[i].ring);
}

int traffic_listen(struct traffic *traffic, const char *folder, struct error *err)
{
    CLEANUP(free_ptr) char *path = state_folder_file(folder, "traffic.sock");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = RECEIVE_BUFFER_BYTES;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    traffic->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (traffic->fd < 0 || bind(traffic->fd, (struct sockaddr *)&address, sizeof address) != 0)
        return error_set_errno(err, E_IO, "%s: cannot listen", path);
    setsockopt(traffic->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return 0;
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

void traffic_receive(struct traffic *traffic, int64_t now_ns)
{
    char line[1024];
    ssize_t got;
    while ((got = recv(traffic->fd, line, sizeof line - 1, 0)) > 0) {
        line[got] = '\0';
        traffic_note(traffic, line, now_ns);
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
