/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's loop: what it watches, when a round begins, how it ends; --once and
 * --dry-run; metrics. Faults: test_controller_faults.c.
 */
#include <unistd.h>

#include "controller_bench.h"

/* ---- tests ---- */
static void test_converges_and_rests(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    int before = rounds_run;
    pass(&bench, 100 * SECONDS);
    assert_int_equal(rounds_run, before); /* nothing happens: no round */
    put_pool(&bench, "p", 1);
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
    assert_int_equal(count_log(&bench, "DELETE " PODS), PODS_WANTED - 1);
}

static void test_two_pools_and_one_gone(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", 2);
    put_pool(&bench, "q", 3);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 5);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_non_null(strstr(text.bytes, "tranche_pool_pods{pool=\"q\"} 3\n"));
    api_remove(&bench.store, POOLS "/q");
    pass(&bench, 5 * SECONDS);
    str_clear(&text);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_null(strstr(text.bytes, "pool=\"q\""));
    assert_non_null(strstr(text.bytes, "tranche_pool_pods{pool=\"p\"} 2\n"));
}

/* Time passes; how often the log names these kinds as missing. */
static int times_missed(struct bench *bench, int64_t time_ns, const char *kinds)
{
    FILE *log = tmpfile();
    int stderr_copy = dup(STDERR_FILENO), times = 0;
    char line[1024];

    assert_non_null(log);
    dup2(fileno(log), STDERR_FILENO);
    log_set_level(LOG_WARN);
    pass(bench, time_ns);
    log_set_level(LOG_ERROR);
    dup2(stderr_copy, STDERR_FILENO);
    close(stderr_copy);
    rewind(log);
    while (fgets(line, sizeof line, log))
        times += strstr(line, "lacks our definitions") && strstr(line, kinds);
    fclose(log);
    return times;
}

/* The definitions are installed after the controller, which says in its log what it lacks. */
static void test_definitions_come_later(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str why = STR_EMPTY;
    put_pool(&bench, "p", 1);
    bench.store.missing[1] = "/apis/tranche.dev";
    process_start(&bench, 0, &ELECTED);
    assert_int_equal(times_missed(&bench, 20 * SECONDS,
                                  "\"GpuPool, GpuService, PerfProfile, PartitionPlan, "
                                  "Transition, NodeGpuState\""),
                     1);
    assert_int_equal(times_missed(&bench, 30 * SECONDS, ""), 0);
    assert_int_equal(times_missed(&bench, 100 * SECONDS, ""), 2);
    assert_false(controller_is_ready(bench.processes[0].controller, &why));
    assert_non_null(strstr(why.bytes, "404"));
    assert_int_equal(rounds_run, 0);
    bench.store.missing[1] = NULL;
    assert_int_equal(times_missed(&bench, 70 * SECONDS, ""), 0);
    assert_true(controller_is_ready(bench.processes[0].controller, &why));
    is_settled(&bench, 1, 1);
    assert_int_equal(gateways_seen, 0);
    bench.store.missing[0] = NULL; /* and Gateway API's later still */
    pass(&bench, 40 * SECONDS);
    assert_true(gateways_seen > 0);
}

/* ---- optional APIs that seem to be gone ---- */

static const struct unserved {
    const char *name;
    int status;
    int64_t time_ns; /* how long it is answered */
    bool stays;
} unserved_table[] = {
    {"a token that is renewed", 401, 200 * SECONDS, true},
    {"a role that is being changed", 403, 200 * SECONDS, true},
    {"the server's own trouble", 500, 200 * SECONDS, true},
    {"a look too few", 404, 29 * SECONDS, true},
    {"gone", 404, 61 * SECONDS, false},
};
static const struct unserved *unserved;

static void on_gateway_request(void *context, const struct kube_request *request,
                               struct api_fault *fault)
{
    (void)context;
    fault->delay_ns = STEP_NS;
    if (unserved && strstr(request->path, "/httproutes"))
        fault->status = unserved->status;
}

/* Once served, an API is not taken for absent by a wrong answer: Services would be deleted
 * under live routes. */
static void test_api_that_seems_gone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(unserved_table); i++) {
        BENCH(bench);
        bench.store.missing[0] = NULL;
        bench.store.fault = on_gateway_request;
        unserved = NULL;
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, &ELECTED);
        pass(&bench, 20 * SECONDS);
        assert_true(gateways_seen > 0 && gateways_seen == rounds_run);
        unserved = &unserved_table[i];
        pass(&bench, unserved->time_ns);
        unserved = NULL;
        put_pool(&bench, "p", 2);
        pass(&bench, SECONDS);
        if ((gateways_seen == rounds_run) != unserved_table[i].stays)
            fail_msg("%s: %d of %d rounds saw it", unserved_table[i].name, gateways_seen,
                     rounds_run);
        pass(&bench, 30 * SECONDS);
        int rounds = rounds_run, seen = gateways_seen;
        put_pool(&bench, "p", 3); /* and it comes back */
        pass(&bench, SECONDS);
        if (rounds_run == rounds || gateways_seen - seen != rounds_run - rounds)
            fail_msg("%s, back: %d of %d rounds saw it", unserved_table[i].name,
                     gateways_seen - seen, rounds_run - rounds);
    }
}

/* At the start 403 means that it is not wanted (no rights were given for it), 401 nothing. */
static void test_api_that_is_forbidden(void **state)
{
    (void)state;
    static const struct {
        int status;
        bool starts;
    } table[] = {{403, true}, {404, true}, {401, false}, {503, false}};
    for (size_t i = 0; i < COUNT(table); i++) {
        BENCH(bench);
        struct unserved answer = {.status = table[i].status};
        bench.store.missing[0] = NULL;
        bench.store.fault = on_gateway_request;
        unserved = &answer;
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, &ELECTED);
        pass(&bench, 20 * SECONDS);
        assert_int_equal(rounds_run > 0, table[i].starts);
        assert_int_equal(gateways_seen, 0);
        unserved = NULL;
    }
}

/* The Lease is gone, what was written under it is not: the new epoch is above, with an
 * election, and with none the same. */
static void test_lease_deleted(void **state)
{
    (void)state;
    static const struct {
        const char *path, *part, *field;
        long long epoch, elected, alone;
    } table[] = {
        {"/apis/tranche.dev/v1alpha1/transitions/t", "status", "epoch", 7, 8, 7},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "spec", "epoch", 9, 10, 9},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "status", "observedEpoch", 3, 4, 3},
        {"/apis/tranche.dev/v1alpha1/nodegpustates/n", "status", "observedEpoch", 1LL << 40, 0,
         0},
    };
    for (size_t i = 0; i < 2 * COUNT(table); i++) {
        bool elect = i % 2;
        BENCH(bench);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        api_put(&bench.store, table[i / 2].path,
                json_pack("{s:{s:I}}", table[i / 2].part, table[i / 2].field,
                          (json_int_t)table[i / 2].epoch));
        put_pool(&bench, "p", 1);
        process_start(&bench, 0, elect ? &ELECTED : &ALONE);
        pass(&bench, 5 * SECONDS);
        is_settled(&bench, 1, 1);
        controller_metrics_page(bench.processes[0].controller, &text);
        CLEANUP(free_ptr)
        char *line = xasprintf("tranche_controller_epoch %lld\n",
                               elect ? table[i / 2].elected : table[i / 2].alone);
        if (!strstr(text.bytes, line))
            fail_msg("case %zu, %s: not %s", i / 2, elect ? "elected" : "alone", line);
    }
}

/* Many changes at once are few rounds. */
static void test_coalesces(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    int before = rounds_run;
    for (int i = 0; i < 200; i++) {
        put_pool(&bench, "p", 0);
        pass(&bench, 10 * MS);
    }
    assert_in_range(rounds_run - before, 2, 11);
}

static json_t *node(const char *ready, const char *beat)
{
    return json_pack("{s:{s:{s:s}}, s:{}, s:{s:[{s:s, s:s, s:s}]}}", "metadata", "labels", "a",
                     "b", "spec", "status", "conditions", "type", "Ready", "status", ready,
                     "lastHeartbeatTime", beat);
}

/* A node's heartbeat is no reason for a round, its loss is. */
static void test_heartbeats(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    api_put(&bench.store, "/api/v1/nodes/n", node("True", "1"));
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    int before = rounds_run;
    api_put(&bench.store, "/api/v1/nodes/n", node("True", "2"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before);
    api_put(&bench.store, "/api/v1/nodes/n", node("Unknown", "2"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before + 1);
}

static json_t *claim(const char *device, const char *user)
{
    return json_pack("{s:{}, s:{s:{s:{s:[{s:s}]}}, s:[{s:s}]}}", "metadata", "status",
                     "allocation", "devices", "results", "device", device, "reservedFor",
                     "name", user);
}

/* Claims of others are seen, as they hold devices; they are no reason for a round beyond that.
 */
static void test_claims_of_others(void **state)
{
    static const char path[] = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/theirs";

    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 0);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    assert_int_equal(claims_seen, 0);
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-0", "a"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(claims_seen, 1);
    int before = rounds_run;
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-0", "b"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before);
    api_put(&bench.store, path, claim("gpu-0-mig-1g5gb-19-1", "b"));
    pass(&bench, 2 * SECONDS);
    assert_int_equal(rounds_run, before + 1);
}

/* As by SIGTERM, with an effect under way: it is finished, the Lease is given up, and the next
 * leads at once. */
static void test_stop(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    bench.fault_at = 2;
    bench.fault = (struct api_fault){.delay_ns = 500 * MS};
    while (bench.write < 2)
        pass(&bench, STEP_NS);
    controller_stop(bench.processes[0].controller);
    assert_false(controller_is_over(bench.processes[0].controller));
    pass(&bench, SECONDS);
    assert_true(controller_is_over(bench.processes[0].controller));
    assert_int_equal(bench.store.writes, 2);
    bench.store.fault = NULL;
    assert_int_equal(controller_end(bench.processes[0].controller, NULL), 0);
    const json_t *lease = json_object_get(bench.store.objects, LEASE);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(lease, "spec"), "holderIdentity")),
        "");
    process_start(&bench, 1, &ELECTED);
    pass(&bench, 3 * SECONDS);
    assert_true(controller_leads(bench.processes[1].controller));
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

static void run_once(struct bench *bench, const struct setup *setup)
{
    process_start(bench, 0, setup);
    pass(bench, 30 * SECONDS);
    assert_true(controller_is_over(bench->processes[0].controller));
    bench->store.fault = NULL;
}

static void test_once(void **state)
{
    (void)state;
    struct error err = {0};
    BENCH(bench);
    put_pool(&bench, "p", 2);
    put_pool(&bench, "q", 2);
    run_once(&bench, &(struct setup){.once = true});
    assert_int_equal(rounds_run, 2);
    assert_int_equal(controller_end(bench.processes[0].controller, &err), 0);
    assert_int_equal(api_count(&bench.store, PODS), 4);
    process_end(&bench.processes[0]);
    run_once(&bench, &(struct setup){.once = true, .pool = "nowhere"});
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_NOT_FOUND);
    process_end(&bench.processes[0]);
    bench.store.fault = bench_on_request;
    bench.fault_at = bench.write + 1;
    bench.fault = (struct api_fault){.status = 403};
    put_pool(&bench, "q", 3);
    run_once(&bench, &(struct setup){.once = true, .pool = "q"});
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_USAGE);
}

/* A cluster without the definitions: one round is not waited for forever. */
static void test_once_without_cluster(void **state)
{
    (void)state;
    struct error err = {0};
    BENCH(bench);
    bench.store.missing[1] = "/apis/tranche.dev";
    process_start(&bench, 0, &(struct setup){.once = true});
    pass(&bench, 50 * SECONDS);
    assert_false(controller_is_over(bench.processes[0].controller));
    pass(&bench, 20 * SECONDS);
    assert_true(controller_is_over(bench.processes[0].controller));
    assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_TIMEOUT);
    assert_non_null(strstr(err.text, "404"));
}

static void on_show(void *context, const char *pool, const struct effects *effects)
{
    size_t *shown = context;
    assert_string_equal(pool, "p");
    for (size_t i = 0; i < effects->items.count; i++) {
        CLEANUP(json_decref_ptr) json_t *json = effect_to_json(&effects->items.data[i]);
        assert_non_null(json_object_get(json, "effect"));
        assert_non_null(json_object_get(json, "name"));
        ++*shown;
    }
}

static void test_dry_run(void **state)
{
    (void)state;
    BENCH(bench);
    size_t shown = 0;
    put_pool(&bench, "p", PODS_WANTED);
    run_once(&bench, &(struct setup){.once = true, .show = on_show, .context = &shown});
    assert_int_equal(shown, PODS_WANTED + 1);
    assert_int_equal(bench.store.writes, 0);
    assert_int_equal(controller_end(bench.processes[0].controller, NULL), 0);
}

/* A round that fails is tried again with backoff, others go on. */
static void test_round_fails(void **state)
{
    (void)state;
    BENCH(bench);
    api_put(&bench.store, POOLS "/bad", json_pack("{s:{s:b}}", "spec", "broken", 1));
    put_pool(&bench, "p", 2);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 30 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 2);
    assert_in_range(rounds_run, 6, 16);
    put_pool(&bench, "bad", 1);
    pass(&bench, 120 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), 3);
}

static struct bench *moving;

static void move(void)
{
    put_pool(moving, "p", PODS_WANTED);
}

/* What was asked for changes in every round: old decisions are thrown away, but not forever. */
static void test_moved_rounds(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", PODS_WANTED);
    moving = &bench;
    during_round = move;
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 20 * SECONDS);
    assert_int_equal(api_count(&bench.store, PODS), PODS_WANTED);
    controller_metrics_page(bench.processes[0].controller, &text);
    assert_null(strstr(text.bytes, "{result=\"discarded\"} 0\n"));
    during_round = NULL;
    pass(&bench, 5 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

/* Every line is a comment or NAME{labels} VALUE, every metric has HELP and TYPE. */
static void test_metrics(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(str_done) struct str text = STR_EMPTY;
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 5 * SECONDS);
    controller_metrics_page(bench.processes[0].controller, &text);
    static const char *const lines[] = {
        "tranche_controller_leader 1\n",
        "tranche_controller_epoch 0\n",
        "tranche_controller_effects_total{effect=\"ensure\"} 4\n",
        "tranche_kube_requests_total{verb=\"create\",code=\"201\"} 5\n", /* and the Lease */
        "tranche_kube_cache_objects{kind=\"Pod\"} 4\n",
        "tranche_pool_floor_held{pool=\"p\"} 1\n",
        "tranche_controller_reconcile_seconds_count ",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        if (!strstr(text.bytes, lines[i]))
            fail_msg("no %s in\n%s", lines[i], text.bytes);
    char *rest = text.bytes, *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        if (*line == '#')
            continue;
        double value;
        const char *space = strrchr(line, ' ');
        assert_non_null(space);
        assert_true(text_starts_with(line, "tranche_"));
        assert_true(text_to_double(space + 1, &value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converges_and_rests),
        cmocka_unit_test(test_two_pools_and_one_gone),
        cmocka_unit_test(test_definitions_come_later),
        cmocka_unit_test(test_api_that_seems_gone),
        cmocka_unit_test(test_api_that_is_forbidden),
        cmocka_unit_test(test_lease_deleted),
        cmocka_unit_test(test_coalesces),
        cmocka_unit_test(test_heartbeats),
        cmocka_unit_test(test_claims_of_others),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_once_without_cluster),
        cmocka_unit_test(test_dry_run),
        cmocka_unit_test(test_round_fails),
        cmocka_unit_test(test_moved_rounds),
        cmocka_unit_test(test_metrics),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
