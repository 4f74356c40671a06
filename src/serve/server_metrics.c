/* SPDX-License-Identifier: Apache-2.0
 *
 * Prometheus exposition format 0.0.4.
 */
#include "serve/server_metrics.h"

#include <assert.h>
#include <inttypes.h>

/* Upper ends of the latency buckets, in milliseconds. */
static const double BUCKET_MS[SERVER_METRICS_BUCKETS] = {
    0.5, 1, 2, 5, 10, 20, 35, 50, 75, 100, 200, 350, 500, 1000, 2000, 5000};

static const char *const REFUSAL_NAMES[REFUSED_COUNT] = {[REFUSED_MALFORMED] = "malformed",
                                                         [REFUSED_BUSY] = "busy",
                                                         [REFUSED_TOO_LARGE] = "too_large"};

/* Triton's names. */
static const struct {
    const char *metric, *help;
} PHASES[SERVER_PHASE_COUNT] = {
    [PHASE_QUEUE] = {"nv_inference_queue_duration_us", "Time in the queue"},
    [PHASE_INPUT] = {"nv_inference_compute_input_duration_us", "Time to join and bind inputs"},
    [PHASE_COMPUTE] = {"nv_inference_compute_infer_duration_us", "Time in the model"},
    [PHASE_OUTPUT] = {"nv_inference_compute_output_duration_us", "Time to take outputs apart"},
};

void server_metrics_init(struct server_metrics *metrics)
{
    *metrics = (struct server_metrics){0};
    pthread_mutex_init(&metrics->lock, NULL);
}

void server_metrics_done(struct server_metrics *metrics)
{
    pthread_mutex_destroy(&metrics->lock);
}

void server_metrics_refused(struct server_metrics *metrics, enum server_refusal why)
{
    assert(why < REFUSED_COUNT);
    pthread_mutex_lock(&metrics->lock);
    metrics->refused[why]++;
    pthread_mutex_unlock(&metrics->lock);
}

void server_metrics_completed(struct server_metrics *metrics, const struct batch_item *item,
                              int64_t received_ns, bool failed)
{
    const int64_t ends[] = {item->submitted_ns, item->started_ns, item->bound_ns,
                            item->computed_ns, item->finished_ns};
    int64_t request_ns = item->finished_ns - received_ns;
    int bucket = 0;
    while (bucket < SERVER_METRICS_BUCKETS && (double)request_ns > BUCKET_MS[bucket] * 1e6)
        bucket++;
    pthread_mutex_lock(&metrics->lock);
    if (failed) {
        metrics->failed++;
    } else {
        metrics->succeeded++;
        for (int i = 0; i < SERVER_PHASE_COUNT; i++)
            metrics->phase_ns[i] += (uint64_t)(ends[i + 1] - ends[i]);
        metrics->request_ns += (uint64_t)request_ns;
        metrics->latency_buckets[bucket]++;
    }
    pthread_mutex_unlock(&metrics->lock);
}

static void add_counter(struct str *text, const char *name, const char *help, const char *model,
                        uint64_t value)
{
    str_addf(text,
             "# HELP %s %s\n# TYPE %s counter\n%s{model=\"%s\",version=\"1\"} %" PRIu64 "\n",
             name, help, name, name, model, value);
}

static void add_gauge(struct str *text, const char *name, const char *help, const char *model,
                      int value)
{
    str_addf(text, "# HELP %s %s\n# TYPE %s gauge\n%s{model=\"%s\",version=\"1\"} %d\n", name,
             help, name, name, model, value);
}

static void add_histogram(struct str *text, const struct server_metrics *metrics,
                          const char *model)
{
    static const char NAME[] = "tranche_request_duration_seconds";
    str_addf(
        text,
        "# HELP %s Time from a whole request received to its answer\n# TYPE %s histogram\n",
        NAME, NAME);
    uint64_t below = 0;
    for (int i = 0; i < SERVER_METRICS_BUCKETS; i++) {
        below += metrics->latency_buckets[i];
        str_addf(text, "%s_bucket{model=\"%s\",le=\"", NAME, model);
        str_add_number(text, BUCKET_MS[i] / 1000);
        str_addf(text, "\"} %" PRIu64 "\n", below);
    }
    below += metrics->latency_buckets[SERVER_METRICS_BUCKETS];
    str_addf(text, "%s_bucket{model=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", NAME, model, below);
    str_addf(text, "%s_sum{model=\"%s\"} ", NAME, model);
    str_add_number(text, (double)metrics->request_ns / 1e9);
    str_addf(text, "\n%s_count{model=\"%s\"} %" PRIu64 "\n", NAME, model, below);
}

void server_metrics_write(struct server_metrics *metrics, const struct batcher_stats *batcher,
                          const char *model, struct str *text)
{
    pthread_mutex_lock(&metrics->lock);
    struct server_metrics now = *metrics;
    pthread_mutex_unlock(&metrics->lock);
    add_counter(text, "nv_inference_request_success", "Requests answered", model,
                now.succeeded);
    add_counter(text, "nv_inference_request_failure", "Requests that the model failed", model,
                now.failed);
    add_counter(text, "nv_inference_count", "Rows computed", model, batcher->rows);
    add_counter(text, "nv_inference_exec_count", "Batches computed", model, batcher->batches);
    add_counter(text, "nv_inference_request_duration_us", "Time of requests", model,
                now.request_ns / 1000);
    for (int i = 0; i < SERVER_PHASE_COUNT; i++)
        add_counter(text, PHASES[i].metric, PHASES[i].help, model, now.phase_ns[i] / 1000);
    add_gauge(text, "nv_inference_pending_request_count", "Rows that wait", model,
              batcher->queued_rows);
    add_gauge(text, "tranche_batches_running", "Batches in the model now", model,
              batcher->running);
    str_add(text, "# HELP tranche_requests_refused_total Requests answered without the model\n"
                  "# TYPE tranche_requests_refused_total counter\n");
    for (int i = 0; i < REFUSED_COUNT; i++)
        str_addf(text,
                 "tranche_requests_refused_total{model=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                 model, REFUSAL_NAMES[i], now.refused[i]);
    add_histogram(text, &now, model);
}
