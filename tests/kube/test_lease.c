/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election between processes on one clock against a model of one Lease: two never hold
 * it at once, whatever is lost, slow, refused or stopped, and epochs only rise.
 */
#include "base/rng.h"
#include "fake_transport.h"
#include "kube/lease.h"

enum { PROCESSES = 3 };

/* The server's one object. */
struct model {
    json_t *lease; /* NULL: there is none */
    long version;
    struct rng *faults; /* NULL: none */
    long long newest_epoch;
    long long elsewhere; /* 0: nothing is known */
    int64_t delay_ns;    /* of each answer */
};

struct process {
    struct model *model;
    struct fake_transport fake;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_lease *lease;
    char identity[16];
    int64_t stopped_until_ns;
    bool leading;
    unsigned leaderships;
};

static void add_json(struct str *text, const json_t *json)
{
    char *dumped = json_dumps(json, JSON_COMPACT);

    str_add(text, dumped);
    free(dumped);
}

static void refuse(struct fake_answer *answer, int status, const char *reason)
{
    answer->status = status;
    str_clear(&answer->body);
    str_addf(&answer->body, "{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\"}", status,
             reason);
}

static void store(struct model *model, json_t *lease)
{
    char version[24];

    snprintf(version, sizeof version, "%ld", ++model->version);
    json_object_set_new(json_object_get(lease, "metadata"), "resourceVersion",
                        json_string(version));
    if (lease != model->lease)
        json_decref(model->lease);
    model->lease = lease;
}

static void serve(struct model *model, const struct kube_request *request,
                  struct fake_answer *answer)
{
    answer->status = 200;
    if (strcmp(request->method, "POST") == 0) {
        if (model->lease) {
            refuse(answer, 409, "AlreadyExists");
            return;
        }
        store(model, json_loadb(request->body, request->body_length, 0, NULL));
    } else if (!model->lease) {
        refuse(answer, 404, "NotFound");
        return;
    } else if (strcmp(request->method, "PATCH") == 0) {
        json_t *patch = json_loadb(request->body, request->body_length, 0, NULL);
        if (strcmp(kube_metadata(patch, "resourceVersion"),
                   kube_metadata(model->lease, "resourceVersion")) != 0) {
            json_decref(patch);
            refuse(answer, 409, "Conflict");
            return;
        }
        json_object_update(json_object_get(model->lease, "spec"),
                           json_object_get(patch, "spec"));
        json_decref(patch);
        store(model, model->lease);
    }
    add_json(&answer->body, model->lease);
}

/* Carries out, then maybe loses the answer; or loses the request; or is slow. */
static void answer_lease(void *context, const struct kube_request *request,
                         struct fake_answer *answer)
{
    struct process *process = context;
    struct rng *rng = process->model->faults;
    uint64_t fault = rng ? rng_below(rng, 10) : 9;

    if (fault == 0)
        return;
    answer->delay_ns = process->model->delay_ns;
    serve(process->model, request, answer);
    if (fault == 1)
        answer->status = 0;
    else if (fault == 2)
        refuse(answer, 503, "Unavailable");
    else if (fault == 3)
        answer->delay_ns = (int64_t)rng_below(rng, 20) * SECONDS;
    else if (rng)
        answer->delay_ns = (int64_t)rng_below(rng, 400) * MS;
}

static void on_started(void *context, long long epoch)
{
    struct process *process = context;

    assert_false(process->leading);
    assert_true(epoch > process->model->newest_epoch);
    process->model->newest_epoch = epoch;
    process->leading = true;
    process->leaderships++;
}

static long long on_epoch_elsewhere(void *context)
{
    const struct process *process = context;

    return process->model->elsewhere ? process->model->elsewhere : -1;
}

static void on_stopped(void *context)
{
    struct process *process = context;

    assert_true(process->leading);
    process->leading = false;
}

static void process_start(struct process *process, struct model *model, unsigned number)
{
    memset(process, 0, sizeof *process);
    process->model = model;
    snprintf(process->identity, sizeof process->identity, "process-%u", number);
    fake_init(&process->fake, answer_lease, process);
    process->loop = kube_loop_new(&process->fake.transport, &process->fake.clock.source);
    process->client = kube_client_new(
        &(struct kube_client_options){.loop = process->loop, .field_manager = "t"});
    process->lease =
        kube_lease_new(&(struct kube_lease_options){.client = process->client,
                                                    .namespace = "n",
                                                    .name = "l",
                                                    .identity = process->identity,
                                                    .seed = number,
                                                    .epoch_elsewhere = on_epoch_elsewhere,
                                                    .started = on_started,
                                                    .stopped = on_stopped,
                                                    .context = process});
}

static void process_stop(struct process *process)
{
    kube_lease_free(process->lease);
    kube_client_free(process->client);
    kube_loop_free(process->loop);
    fake_done(&process->fake);
}

/* Lets a process run up to that time; one that is stopped only sees its clock jump. */
static void run_to(struct process *process, int64_t end_ns)
{
    if (end_ns < process->stopped_until_ns) {
        process->fake.clock.time_ns = end_ns;
        return;
    }
    while (process->fake.clock.time_ns < end_ns)
        assert_int_equal(
            kube_loop_turn(process->loop, end_ns - process->fake.clock.time_ns, NULL), 0);
}

static int64_t start_ns = 1000 * SECONDS;

static void test_take_over(void **state)
{
    struct model model = {.newest_epoch = -1};
    struct process a, b;

    (void)state;
    process_start(&a, &model, 0);
    process_start(&b, &model, 1);
    run_to(&a, start_ns + 1 * SECONDS);
    run_to(&b, start_ns + 1 * SECONDS);
    assert_true(kube_lease_holds(a.lease));
    assert_int_equal(kube_lease_epoch(a.lease), 0);
    assert_int_equal(kube_lease_epoch(b.lease), -1);
    assert_string_equal(kube_lease_holder(b.lease), "process-0");
    for (int i = 2; i <= 60; i++) {
        run_to(&a, start_ns + i * SECONDS);
        run_to(&b, start_ns + i * SECONDS);
        assert_true(kube_lease_holds(a.lease) && !kube_lease_holds(b.lease));
    }
    /* a is stopped: it does not hold from its deadline on, b takes over after the duration. */
    for (int i = 61; i <= 100; i++) {
        a.fake.clock.time_ns = start_ns + i * SECONDS;
        run_to(&b, start_ns + i * SECONDS);
        assert_false(kube_lease_holds(a.lease) && kube_lease_holds(b.lease));
        if (i < 60 + 12)
            assert_false(kube_lease_holds(b.lease));
    }
    assert_true(kube_lease_holds(b.lease));
    assert_int_equal(kube_lease_epoch(b.lease), 1);
    /* a wakes up: it knows at once, before it hears anything. */
    assert_true(a.leading && !kube_lease_holds(a.lease));
    run_to(&a, start_ns + 110 * SECONDS);
    assert_false(a.leading);
    assert_string_equal(kube_lease_holder(a.lease), "process-1");
    process_stop(&a);
    process_stop(&b);
    json_decref(model.lease);
}

static void test_release(void **state)
{
    struct model model = {.newest_epoch = -1};
    struct process a, b;

    (void)state;
    process_start(&a, &model, 0);
    process_start(&b, &model, 1);
    run_to(&a, start_ns + 1 * SECONDS);
    run_to(&b, start_ns + 1 * SECONDS);
    assert_int_equal(kube_lease_release(a.lease, NULL), 0);
    assert_false(a.leading);
    /* A round later, not a duration later. */
    run_to(&b, start_ns + 4 * SECONDS);
    assert_true(kube_lease_holds(b.lease));
    assert_int_equal(kube_lease_epoch(b.lease), 1);
    run_to(&a, start_ns + 60 * SECONDS);
    assert_int_equal(a.leaderships, 1);
    /* Releasing what another holds changes nothing. */
    long version = model.version;
    assert_int_equal(kube_lease_release(a.lease, NULL), 0);
    assert_int_equal(model.version, version);
    process_stop(&a);
    process_stop(&b);
    json_decref(model.lease);
}

/* The deadline counts from the sending of the renewal, not from its answer. */
static void test_slow_answers(void **state)
{
    struct model model = {.newest_epoch = -1, .delay_ns = 4 * SECONDS};
    struct process a;

    (void)state;
    process_start(&a, &model, 0); /* looks until 4 s, then writes until 8 s */
    run_to(&a, start_ns + 7 * SECONDS);
    assert_false(kube_lease_holds(a.lease));
    run_to(&a, start_ns + 8 * SECONDS + MS);
    assert_true(kube_lease_holds(a.lease));
    model.delay_ns = 600 * SECONDS;
    run_to(&a, start_ns + 14 * SECONDS - MS);
    assert_true(kube_lease_holds(a.lease));
    run_to(&a, start_ns + 14 * SECONDS + MS);
    assert_false(kube_lease_holds(a.lease) || a.leading);
    process_stop(&a);
    json_decref(model.lease);
}

/* No fields of others are lost by our writes. */
static void test_foreign_fields(void **state)
{
    struct model model = {.newest_epoch = 6};
    struct process a;

    (void)state;
    model.lease =
        json_loads("{\"metadata\":{\"resourceVersion\":\"0\",\"labels\":{\"x\":\"y\"}},"
                   "\"spec\":{\"strategy\":\"z\",\"leaseTransitions\":6}}",
                   0, NULL);
    process_start(&a, &model, 0);
    run_to(&a, start_ns + 10 * SECONDS);
    assert_int_equal(kube_lease_epoch(a.lease), 7);
    assert_non_null(json_object_get(json_object_get(model.lease, "spec"), "strategy"));
    assert_non_null(json_object_get(json_object_get(model.lease, "metadata"), "labels"));
    process_stop(&a);
    json_decref(model.lease);
}

/* A Lease that was deleted, or that is younger than what was written, begins above that. */
static void test_epochs_elsewhere(void **state)
{
    struct model model = {.newest_epoch = 41, .elsewhere = 41};
    struct process a, b;

    (void)state;
    process_start(&a, &model, 0);
    run_to(&a, start_ns + 1 * SECONDS);
    assert_int_equal(kube_lease_epoch(a.lease), 42); /* made anew */
    assert_int_equal(kube_lease_release(a.lease, NULL), 0);
    model.elsewhere = 50;
    process_start(&b, &model, 1);
    run_to(&b, start_ns + 4 * SECONDS);
    assert_int_equal(kube_lease_epoch(b.lease), 51); /* taken over */
    model.elsewhere = 60;                            /* a renewal keeps its epoch */
    run_to(&b, start_ns + 20 * SECONDS);
    assert_true(kube_lease_holds(b.lease));
    assert_int_equal(kube_lease_epoch(b.lease), 51);
    process_stop(&a);
    process_stop(&b);
    json_decref(model.lease);
}

static void random_run(uint64_t seed, unsigned *leaderships)
{
    struct rng faults = rng_seed_stream(seed, 0), stops = rng_seed_stream(seed, 1);
    struct model model = {.faults = &faults, .newest_epoch = -1};
    struct process processes[PROCESSES];
    int64_t now_ns = start_ns;

    for (unsigned i = 0; i < PROCESSES; i++)
        process_start(&processes[i], &model, i);
    for (int step = 0; step < 4000; step++) {
        unsigned holders = 0;
        now_ns += 100 * MS;
        for (unsigned i = 0; i < PROCESSES; i++) {
            struct process *process = &processes[i];
            if (now_ns >= process->stopped_until_ns && rng_below(&stops, 400) == 0)
                process->stopped_until_ns = now_ns + (int64_t)rng_below(&stops, 40) * SECONDS;
            run_to(process, now_ns);
        }
        for (unsigned i = 0; i < PROCESSES; i++)
            holders += kube_lease_holds(processes[i].lease);
        if (holders > 1)
            fail_msg("seed %llu, step %d: %u hold the Lease", (unsigned long long)seed, step,
                     holders);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        *leaderships += processes[i].leaderships;
        process_stop(&processes[i]);
    }
    json_decref(model.lease);
}

static void test_never_two(void **state)
{
    unsigned leaderships = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        random_run(seed, &leaderships);
    print_message("# 40 runs of 400 s, %u leaderships\n", leaderships);
    assert_true(leaderships > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_over),        cmocka_unit_test(test_release),
        cmocka_unit_test(test_slow_answers),     cmocka_unit_test(test_foreign_fields),
        cmocka_unit_test(test_epochs_elsewhere), cmocka_unit_test(test_never_two),
    };
    return cmocka_run_group_tests_name("kube/lease", tests, NULL, NULL);
}
