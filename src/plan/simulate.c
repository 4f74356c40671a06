/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulation of one service after the other. Events are arrivals (generated as time
 * goes), ends of batches and ends of waits, in a heap by time; ties go by order of entry.
 */
#include "plan/simulate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/hist.h"
#include "base/rng.h"
#include "plan/simulate_instance.h"

const double simulate_percentiles[SIMULATE_PERCENTILES] = {50, 90, 95, 99, 99.9};

static const double WARM_SHARE = 0.05;

struct event {
    double time_ms;
    long order;
    int instance;
    bool is_end;      /* of a batch; else of a wait */
    int size;         /* of the batch */
    double *arrivals; /* of its requests, owned */
};

struct simulation {
    const struct simulate_settings *settings;
    VEC(struct simulated_instance) instances;
    VEC(struct event) events; /* binary heap */
    long entered;             /* events, for ties */
    long routed;              /* requests */
    double warm_ms, end_ms;   /* counted from warm_ms on; arrivals stop at end_ms */
    struct rng arrivals, choices;
    struct hist *hist;
    double objective_ms, total_ms, last_ms;
    double weight_sum;
    uint64_t counted, within, offered;
};

static void simulation_done(struct simulation *simulation)
{
    for (size_t i = 0; i < simulation->instances.count; i++)
        simulated_instance_done(&simulation->instances.data[i]);
    vec_done(&simulation->instances);
    for (size_t i = 0; i < simulation->events.count; i++)
        free(simulation->events.data[i].arrivals);
    vec_done(&simulation->events);
    hist_free(simulation->hist);
}

/* --- the heap ------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->time_ms != b->time_ms ? a->time_ms < b->time_ms : a->order < b->order;
}

static void push_event(struct simulation *simulation, struct event event)
{
    assert(!isnan(event.time_ms) && event.instance >= 0);
    event.order = simulation->entered++;
    vec_add(&simulation->events, event);
    struct event *heap = simulation->events.data;
    size_t at = simulation->events.count - 1;
    for (; at > 0 && is_before(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
}

static struct event pop_event(struct simulation *simulation)
{
    assert(simulation->events.count > 0);
    struct event *heap = simulation->events.data;
    struct event first = heap[0], last = heap[--simulation->events.count];
    size_t count = simulation->events.count, at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (child >= count || is_before(&last, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    if (count > 0)
        heap[at] = last;
    return first;
}

/* --- events -------------------------------------------------------------------- */

/* Starts what can start on an instance, then sets the timer for who waits on. */
static void start_batches(struct simulation *simulation, int index, double now_ms)
{
    assert(index >= 0 && (size_t)index < simulation->instances.count);
    struct simulated_instance *instance = &simulation->instances.data[index];
    while (simulated_instance_is_ready(instance, now_ms)) {
        struct event end = {.instance = index, .is_end = true};
        end.arrivals = xcalloc((size_t)instance->batch, sizeof *end.arrivals);
        end.time_ms = now_ms + simulated_instance_start(instance, end.arrivals, &end.size);
        push_event(simulation, end);
    }
    double timer = simulated_instance_timer(instance);
    if (isfinite(timer))
        push_event(simulation, (struct event){.instance = index, .time_ms = timer});
}

static void count_request(struct simulation *simulation, double arrival_ms, double took_ms)
{
    assert(took_ms >= 0);
    if (arrival_ms < simulation->warm_ms)
        return;
    simulation->counted++;
    simulation->within += took_ms <= simulation->objective_ms * (1 + 1e-12);
    simulation->total_ms += took_ms;
    hist_record(simulation->hist, (int64_t)(took_ms * 1e6 + 0.5));
}

static void handle_event(struct simulation *simulation)
{
    struct event event = pop_event(simulation);
    struct simulated_instance *instance = &simulation->instances.data[event.instance];
    if (event.is_end) {
        for (int i = 0; i < event.size; i++)
            count_request(simulation, event.arrivals[i], event.time_ms - event.arrivals[i]);
        free(event.arrivals);
        instance->busy--;
        instance->outstanding -= event.size;
        assert(instance->busy >= 0 && instance->outstanding >= 0);
        simulation->last_ms = event.time_ms;
        start_batches(simulation, event.instance, event.time_ms);
    } else if (simulated_instance_is_ready(instance, event.time_ms)) {
        start_batches(simulation, event.instance, event.time_ms);
    } /* else the wait ended by a batch that filled meanwhile */
}

/* HAProxy's key: 0 when idle, else (outstanding + 1) / weight. */
static double load_key(const struct simulated_instance *instance)
{
    assert(instance->weight > 0);
    return instance->outstanding == 0 ? 0
                                      : (double)(instance->outstanding + 1) / instance->weight;
}

static int route_least(const struct simulation *simulation)
{
    assert(simulation->instances.count > 0);
    int best = 0;
    double best_key = load_key(&simulation->instances.data[0]);
    for (size_t i = 1; i < simulation->instances.count; i++) {
        double key = load_key(&simulation->instances.data[i]);
        if (key < best_key ||
            (key == best_key && simulation->instances.data[i].chosen_at <
                                    simulation->instances.data[best].chosen_at)) {
            best = (int)i;
            best_key = key;
        }
    }
    return best;
}

static int route_random(struct simulation *simulation)
{
    assert(simulation->instances.count > 0);
    double at = rng_unit(&simulation->choices) * simulation->weight_sum;
    size_t i = 0;
    for (; i + 1 < simulation->instances.count; i++) {
        at -= simulation->instances.data[i].weight;
        if (at < 0)
            break;
    }
    return (int)i;
}

static void handle_arrival(struct simulation *simulation, double now_ms)
{
    assert(now_ms >= 0);
    int index = simulation->settings->routing == ROUTE_RANDOM ? route_random(simulation)
                                                              : route_least(simulation);
    struct simulated_instance *instance = &simulation->instances.data[index];
    bool first = instance->count == 0;
    simulation->offered += now_ms >= simulation->warm_ms;
    instance->chosen_at = ++simulation->routed;
    simulated_instance_push(instance, now_ms);
    /* a timer runs already when others wait */
    if (first || simulated_instance_is_ready(instance, now_ms))
        start_batches(simulation, index, now_ms);
}

/* --- arrivals ------------------------------------------------------------------ */

struct rates {
    const struct simulate_trace *trace; /* NULL: constant */
    size_t service, service_count;
    double constant_rps, load;
};

/* The rate at a time and until when it holds, ms. */
static double rate_at(const struct rates *rates, double now_ms, double *ret_until_ms)
{
    assert(rates->service < rates->service_count);
    const struct simulate_trace *trace = rates->trace;
    *ret_until_ms = INFINITY;
    if (!trace)
        return rates->constant_rps;
    size_t step = 0;
    while (step + 1 < trace->step_count && trace->start_s[step + 1] * 1000 <= now_ms)
        step++;
    if (step + 1 < trace->step_count)
        *ret_until_ms = trace->start_s[step + 1] * 1000;
    double rate = trace->rates_rps[step * rates->service_count + rates->service];
    return isnan(rate) ? rates->constant_rps : rate * rates->load;
}

/* The next arrival after now_ms: exponential, begun anew where the rate changes. */
static double next_arrival(struct simulation *simulation, const struct rates *rates,
                           double now_ms)
{
    for (;;) {
        double until_ms, rate = rate_at(rates, now_ms, &until_ms);
        double next_ms =
            rate > 0 ? now_ms + rng_exponential(&simulation->arrivals, 1000 / rate) : INFINITY;
        if (next_ms < until_ms || isinf(until_ms))
            return next_ms;
        now_ms = until_ms;
    }
}

static void simulate(struct simulation *simulation, const struct rates *rates)
{
    assert(simulation->instances.count > 0);
    double next_ms = next_arrival(simulation, rates, 0);
    long most = simulation->settings->requests;
    bool more = next_ms < simulation->end_ms;
    while (more || simulation->events.count > 0) {
        bool arrives = more && (simulation->events.count == 0 ||
                                next_ms < simulation->events.data[0].time_ms);
        if (!arrives) {
            handle_event(simulation);
            continue;
        }
        handle_arrival(simulation, next_ms);
        next_ms = next_arrival(simulation, rates, next_ms);
        more = most > 0 ? simulation->routed < most : next_ms < simulation->end_ms;
    }
}

/* --- setting up ---------------------------------------------------------------- */

static int find_service(const struct service_set *services, const char *name)
{
    for (size_t i = 0; i < services->services.count; i++)
        if (strcmp(services->services.data[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Measured batches of the instance's slice and process count, up to its own batch. */
static void collect_sizes(const struct measurement_set *rows, const struct service *service,
                          const struct mig_board *board, const struct plan_instance *planned,
                          struct simulated_instance *instance)
{
    for (size_t r = 0; r < rows->rows.count; r++) {
        const struct measurement *row = &rows->rows.data[r];
        int column = measurement_latency_column(row, service->percentile);
        if (column < 0 || row->status != STATUS_OK || row->task != TASK_INFERENCE ||
            row->board != board || row->profile != planned->profile ||
            row->procs != planned->procs || row->batch > planned->batch ||
            strcmp(row->model, service->model) != 0)
            continue;
        vec_add(&instance->sizes, ((struct batch_size){.batch = row->batch,
                                                       .latency_ms = row->latency_ms[column]}));
        size_t at = instance->sizes.count - 1;
        for (; at > 0 && instance->sizes.data[at - 1].batch > row->batch; at--) {
            struct batch_size kept = instance->sizes.data[at - 1];
            instance->sizes.data[at - 1] = instance->sizes.data[at];
            instance->sizes.data[at] = kept;
        }
    }
}

static int add_instance(struct simulation *simulation, const struct measurement_set *rows,
                        const struct service *service, const struct plan_gpu *gpu,
                        const struct plan_instance *planned, struct error *err)
{
    assert(planned->batch >= 1 && planned->procs >= 1);
    struct simulated_instance *instance = vec_push(&simulation->instances);
    *instance = (struct simulated_instance){
        .batch = planned->batch,
        .procs = planned->procs,
        .max_wait_ms =
            isnan(planned->max_wait_ms) ? service->max_wait_ms : planned->max_wait_ms,
        .weight = planned->rate_rps > 0 ? planned->rate_rps : 1e-9};
    simulation->weight_sum += instance->weight;
    collect_sizes(rows, service, gpu->board, planned, instance);
    size_t count = instance->sizes.count;
    if (count == 0 || instance->sizes.data[count - 1].batch != planned->batch)
        return error_set(err, E_INPUT,
                         "GPU \"%s\": no measurement of %s on %s %s with batch %d and %d "
                         "processes gives the latency that service \"%s\" asks for",
                         gpu->id, service->model, gpu->board->slug,
                         gpu->board->profiles[planned->profile].name, planned->batch,
                         planned->procs, service->name);
    return 0;
}

static int add_instances(struct simulation *simulation, const struct plan *plan, int index,
                         const struct service *service, const struct measurement_set *rows,
                         struct error *err)
{
    int rc = 0;
    for (size_t g = 0; g < plan->gpus.count && rc == 0; g++) {
        const struct plan_gpu *gpu = &plan->gpus.data[g];
        for (size_t k = 0; k < gpu->instances.count && rc == 0; k++)
            if (gpu->instances.data[k].service == index)
                rc = add_instance(simulation, rows, service, gpu, &gpu->instances.data[k], err);
    }
    return rc;
}

/* --- results ------------------------------------------------------------------- */

static void fill_result(const struct simulation *simulation, struct simulate_service *result)
{
    assert(simulation->within <= simulation->counted);
    double counted = (double)simulation->counted, busy_ms = 0, batches = 0, processes = 0;
    double span_ms = fmax(simulation->last_ms, 1e-9);
    double counted_ms = fmax(simulation->end_ms - simulation->warm_ms, 1e-9);
    for (size_t i = 0; i < simulation->instances.count; i++) {
        busy_ms += simulation->instances.data[i].busy_ms;
        batches += (double)simulation->instances.data[i].batches;
        processes += simulation->instances.data[i].procs;
    }
    result->requests = simulation->counted;
    result->offered_rps = (double)simulation->offered * 1000 / counted_ms;
    /* what came in the counted time, over the time until all of it was served */
    result->served_rps =
        counted * 1000 / fmax(counted_ms, simulation->last_ms - simulation->warm_ms);
    result->mean_ms = counted > 0 ? simulation->total_ms / counted : 0;
    result->attainment = counted > 0 ? (double)simulation->within / counted : 1;
    for (int p = 0; p < SIMULATE_PERCENTILES; p++)
        result->percentiles_ms[p] =
            (double)hist_percentile_ns(simulation->hist, simulate_percentiles[p]) / 1e6;
    result->met = result->percentile == MEASUREMENT_PERCENTILE_MEAN
                      ? result->mean_ms <= result->objective_ms
                      : result->attainment * 100 >= result->percentile;
    result->batch_mean = batches > 0 ? (double)simulation->routed / batches : 0;
    result->busy_share = processes > 0 ? busy_ms / (span_ms * processes) : 0;
}

static int simulate_service(const struct plan *plan, size_t index,
                            const struct service *service, const struct measurement_set *rows,
                            const struct simulate_settings *settings,
                            struct simulate_service *result, struct error *err)
{
    assert(index < plan->services.count && service->task == TASK_INFERENCE);
    const struct plan_service *planned = &plan->services.data[index];
    double rate =
        settings->load * (settings->promised ? planned->provided_rps : planned->required_rps);
    struct rates rates = {.trace = settings->trace,
                          .service = index,
                          .service_count = plan->services.count,
                          .constant_rps = rate,
                          .load = settings->load};
    struct simulation simulation = {.settings = settings,
                                    .arrivals = rng_seed_stream(settings->seed, 2 * index),
                                    .choices = rng_seed_stream(settings->seed, 2 * index + 1),
                                    .hist = hist_new(),
                                    .objective_ms = service->latency_ms,
                                    .end_ms = settings->requests > 0 && rate > 0
                                                  ? (double)settings->requests * 1000 / rate
                                                  : settings->duration_s * 1000};
    simulation.warm_ms = simulation.end_ms * WARM_SHARE;
    int rc = add_instances(&simulation, plan, (int)index, service, rows, err);
    if (rc == 0 && simulation.instances.count > 0)
        simulate(&simulation, &rates);
    result->instances = (int)simulation.instances.count;
    if (rc == 0)
        fill_result(&simulation, result);
    simulation_done(&simulation);
    return rc;
}

void simulate_result_done(struct simulate_result *result)
{
    vec_done(&result->services);
}

int simulate_run(const struct plan *plan, const struct service_set *services,
                 const struct measurement_set *rows, const struct simulate_settings *settings,
                 struct simulate_result *ret_result, struct error *err)
{
    struct simulate_result result = {0};
    int rc = 0;
    assert(settings->duration_s > 0 && settings->load >= 0);
    for (size_t i = 0; i < plan->services.count && rc == 0; i++) {
        int index = find_service(services, plan->services.data[i].name);
        if (index < 0) {
            rc = error_set(err, E_INPUT, "the plan's service \"%s\" is not among the services",
                           plan->services.data[i].name);
            break;
        }
        const struct service *service = &services->services.data[index];
        struct simulate_service *one = vec_push(&result.services);
        one->name = plan->services.data[i].name;
        one->training = service->task == TASK_TRAINING;
        one->objective_ms = service->latency_ms;
        one->percentile = service->percentile;
        one->met = true;
        if (!one->training)
            rc = simulate_service(plan, i, service, rows, settings, one, err);
    }
    if (rc < 0)
        simulate_result_done(&result);
    else
        *ret_result = result;
    return rc;
}
