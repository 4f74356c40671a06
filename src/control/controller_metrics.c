/* SPDX-License-Identifier: Apache-2.0
 *
 * Prometheus exposition format 0.0.4. Pools' figures are one table.
 */
#include "control/controller_metrics.h"

#include <assert.h>

static const double BUCKET_SECONDS[METRIC_BUCKETS] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                                      1,     3,     10,   30,   100};
static const char *const ROUND_END_NAMES[ROUND_END_COUNT] = {[ROUND_SETTLED] = "settled",
                                                             [ROUND_ACTED] = "acted",
                                                             [ROUND_FAILED] = "failed",
                                                             [ROUND_DISCARDED] = "discarded"};
static const char *const EXECUTE_END_NAMES[EXECUTE_END_COUNT] = {[EXECUTE_DONE] = "done",
                                                                 [EXECUTE_CONFLICT] =
                                                                     "conflict",
                                                                 [EXECUTE_FAILED] = "failed",
                                                                 [EXECUTE_STOPPED] = "stopped"};
/* The words of kubectl and the API server's own metrics. */
static const char *const VERB_NAMES[KUBE_VERB_COUNT] = {
    [KUBE_GET] = "get",       [KUBE_LIST] = "list",         [KUBE_CREATE] = "create",
    [KUBE_DELETE] = "delete", [KUBE_MERGE_PATCH] = "patch", [KUBE_APPLY] = "apply"};

void controller_counters_round(struct controller_counters *counters, enum round_end end,
                               int64_t took_ns)
{
    int bucket = 0;

    assert(end < ROUND_END_COUNT);
    while (bucket < METRIC_BUCKETS && (double)took_ns / 1e9 > BUCKET_SECONDS[bucket])
        bucket++;
    counters->rounds[end]++;
    counters->round_buckets[bucket]++;
    counters->round_seconds += (double)took_ns / 1e9;
}

static void add_head(struct str *text, const char *name, const char *type, const char *help)
{
    str_addf(text, "# HELP tranche_%s %s\n# TYPE tranche_%s %s\n", name, help, name, type);
}

static void add_gauge(struct str *text, const char *name, const char *help, double value)
{
    add_head(text, name, "gauge", help);
    str_addf(text, "tranche_%s ", name);
    str_add_number(text, value);
    str_add_char(text, '\n');
}

static void add_rounds(struct str *text, const struct controller_counters *counters)
{
    unsigned long below = 0;

    add_head(text, "controller_reconcile_total", "counter", "Rounds by how they ended");
    for (int i = 0; i < ROUND_END_COUNT; i++)
        str_addf(text, "tranche_controller_reconcile_total{result=\"%s\"} %lu\n",
                 ROUND_END_NAMES[i], counters->rounds[i]);
    add_head(text, "controller_reconcile_seconds", "histogram",
             "Time of a round's decisions, without its effects");
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        below += counters->round_buckets[i];
        str_add(text, "tranche_controller_reconcile_seconds_bucket{le=\"");
        str_add_number(text, BUCKET_SECONDS[i]);
        str_addf(text, "\"} %lu\n", below);
    }
    below += counters->round_buckets[METRIC_BUCKETS];
    str_addf(text, "tranche_controller_reconcile_seconds_bucket{le=\"+Inf\"} %lu\n", below);
    str_add(text, "tranche_controller_reconcile_seconds_sum ");
    str_add_number(text, counters->round_seconds);
    str_addf(text, "\ntranche_controller_reconcile_seconds_count %lu\n", below);
}

static void add_effects(struct str *text, const struct controller_counters *counters)
{
    add_head(text, "controller_effects_total", "counter", "Effects carried out, by kind");
    for (int i = 0; i < EFFECT_KIND_COUNT; i++)
        str_addf(text, "tranche_controller_effects_total{effect=\"%s\"} %lu\n",
                 effect_kind_name((enum effect_kind)i), counters->effects[i]);
    add_head(text, "controller_executions_total", "counter",
             "Lists of effects by how they ended");
    for (int i = 0; i < EXECUTE_END_COUNT; i++)
        str_addf(text, "tranche_controller_executions_total{result=\"%s\"} %lu\n",
                 EXECUTE_END_NAMES[i], counters->executions[i]);
}

static void add_calls(struct str *text, const struct kube_client *client)
{
    add_head(text, "kube_requests_total", "counter",
             "Requests to the API server by verb and HTTP status (0: no answer), without "
             "watches");
    for (int verb = 0; verb < KUBE_VERB_COUNT; verb++)
        for (int status = 0; status < KUBE_STATUS_COUNT; status++) {
            unsigned long count = kube_client_answers(client, (enum kube_verb)verb, status);
            if (count > 0)
                str_addf(text, "tranche_kube_requests_total{verb=\"%s\",code=\"%d\"} %lu\n",
                         VERB_NAMES[verb], status, count);
        }
}

static const struct {
    const char *name, *type, *help;
    size_t offset; /* of an unsigned long in struct kube_watch_counts */
} watch_table[] = {
    {"kube_watch_lists_total", "counter", "Lists that were completed",
     offsetof(struct kube_watch_counts, lists)},
    {"kube_watch_streams_total", "counter", "Watches that were opened",
     offsetof(struct kube_watch_counts, streams)},
    {"kube_watch_events_total", "counter", "Changes that watches told of",
     offsetof(struct kube_watch_counts, events)},
    {"kube_watch_expired_total", "counter", "Times that a version was too old (410)",
     offsetof(struct kube_watch_counts, expired)},
    {"kube_watch_failures_total", "counter", "Lists and watches that failed",
     offsetof(struct kube_watch_counts, failures)},
};

static void add_watches(struct str *text, const struct sources *sources)
{
    struct source_figures figures;

    add_head(text, "kube_cache_objects", "gauge", "Objects in a cache");
    for (size_t i = 0; i < sources_count(sources); i++)
        if (sources_figures(sources, i, &figures))
            str_addf(text, "tranche_kube_cache_objects{kind=\"%s\"} %zu\n", figures.kind,
                     figures.objects);
    add_head(text, "kube_cache_fresh", "gauge",
             "Whether a cache follows the API server without a gap");
    for (size_t i = 0; i < sources_count(sources); i++)
        if (sources_figures(sources, i, &figures))
            str_addf(text, "tranche_kube_cache_fresh{kind=\"%s\"} %d\n", figures.kind,
                     figures.fresh);
    for (size_t row = 0; row < sizeof watch_table / sizeof *watch_table; row++) {
        add_head(text, watch_table[row].name, watch_table[row].type, watch_table[row].help);
        for (size_t i = 0; i < sources_count(sources); i++)
            if (sources_figures(sources, i, &figures))
                str_addf(text, "tranche_%s{kind=\"%s\"} %lu\n", watch_table[row].name,
                         figures.kind,
                         *(const unsigned long *)((const char *)&figures.counts +
                                                  watch_table[row].offset));
    }
}

enum figure_type { FIGURE_INT, FIGURE_DOUBLE, FIGURE_BOOL };
#define FIGURE(name, type, help)                                                               \
    {                                                                                          \
        "pool_" #name, help, type, offsetof(struct reconcile_figures, name)                    \
    }
static const struct figure {
    const char *name, *help;
    enum figure_type type;
    size_t offset;
} figure_table[] = {
    FIGURE(gpus, FIGURE_INT, "GPUs of a pool"),
    FIGURE(gpus_lost, FIGURE_INT, "GPUs on nodes that are not Ready"),
    FIGURE(instances, FIGURE_INT, "MIG instances"),
    FIGURE(pods, FIGURE_INT, "Pods of services"),
    FIGURE(pods_ready, FIGURE_INT, "Pods of services that are ready"),
    FIGURE(actions_open, FIGURE_INT, "Actions of the open Transition that are to be done"),
    FIGURE(actions_done, FIGURE_INT, "Actions of the open Transition that are done"),
    FIGURE(required_rps, FIGURE_DOUBLE, "Rate that the services ask for, requests/s"),
    FIGURE(capacity_rps, FIGURE_DOUBLE, "Rate that ready pods promise, requests/s"),
    FIGURE(floor_rps, FIGURE_DOUBLE, "Rate that must be kept, requests/s"),
    FIGURE(floor_held, FIGURE_BOOL, "Whether every service has at least its floor"),
    FIGURE(settled, FIGURE_BOOL, "Whether nothing is to be done"),
};

static double figure_value(const struct figure *figure, const struct reconcile_figures *figures)
{
    const char *at = (const char *)figures + figure->offset;

    switch (figure->type) {
    case FIGURE_INT:
        return *(const int *)(const void *)at;
    case FIGURE_BOOL:
        return *(const bool *)(const void *)at;
    case FIGURE_DOUBLE:
        return *(const double *)(const void *)at;
    }
    return 0;
}

static void add_pools(struct str *text, const struct controller_metrics *metrics)
{
    for (size_t row = 0; row < sizeof figure_table / sizeof *figure_table; row++) {
        const struct figure *figure = &figure_table[row];
        add_head(text, figure->name, "gauge", figure->help);
        for (size_t i = 0; i < metrics->pool_count; i++) {
            str_addf(text, "tranche_%s{pool=\"%s\"} ", figure->name, metrics->pools[i].name);
            str_add_number(text, figure_value(figure, metrics->pools[i].figures));
            str_add_char(text, '\n');
        }
    }
}

void controller_metrics_write(const struct controller_metrics *metrics, struct str *text)
{
    add_gauge(text, "controller_leader", "Whether this process leads", metrics->leader);
    add_gauge(text, "controller_epoch", "The Lease's epoch while this process leads, else -1",
              (double)metrics->epoch);
    add_gauge(text, "controller_queue_depth", "Pools that wait for a round or are in one",
              (double)metrics->queue_depth);
    add_gauge(text, "controller_resident_memory_bytes", "Resident memory of this process",
              metrics->resident_bytes);
    add_rounds(text, metrics->counters);
    add_effects(text, metrics->counters);
    add_head(text, "controller_events_total", "counter", "Events by what became of them");
    str_addf(text,
             "tranche_controller_events_total{result=\"created\"} %lu\n"
             "tranche_controller_events_total{result=\"patched\"} %lu\n"
             "tranche_controller_events_total{result=\"failed\"} %lu\n"
             "tranche_controller_events_total{result=\"dropped\"} %lu\n",
             metrics->events.created, metrics->events.patched, metrics->events.failed,
             metrics->events.dropped);
    add_calls(text, metrics->client);
    add_watches(text, metrics->sources);
    add_pools(text, metrics);
}
