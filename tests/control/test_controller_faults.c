/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's loop under faults. Whatever is lost, refused, slow, stopped or killed: the
 * same end, each pod made once.
 */
#include "controller_bench.h"

/* Each write fails in turn, in each way. */
static const struct api_fault write_faults[] = {
    {.lose_request = true},
    {.lose_answer = true},
    {.status = 409},
    {.status = 500},
    {.status = 503, .retry_after_ns = 3 * SECONDS},
    {.status = 429, .retry_after_ns = 5 * SECONDS},
    {.status = 403},
    {.delay_ns = 8 * SECONDS},
};

/* Up to four pods, then down to one: this many writes. */
static size_t grow_and_shrink(struct bench *bench)
{
    pass(bench, 60 * SECONDS);
    assert_int_equal(api_count(&bench->store, PODS), PODS_WANTED);
    put_pool(bench, "p", 1);
    pass(bench, 60 * SECONDS);
    is_settled(bench, 1, PODS_WANTED);
    return bench->store.writes;
}

static void test_every_write_fails(void **state)
{
    (void)state;
    size_t writes = 9, cases = 0;
    for (size_t fault = 0; fault < COUNT(write_faults); fault++)
        for (size_t at = 0; at <= writes; at++, cases++) {
            BENCH(bench);
            bench.fault = write_faults[fault];
            bench.fault_at = at;
            put_pool(&bench, "p", PODS_WANTED);
            process_start(&bench, 0, &ELECTED);
            size_t had = grow_and_shrink(&bench);
            if (at == 0)
                writes = had;
            assert_true(bench.write >= at);
        }
    print_message("# %zu failed writes\n", cases);
}

static void on_slow_write(void *context, const struct kube_request *request,
                          struct api_fault *fault)
{
    (void)context;
    bool read = strcmp(request->method, "GET") == 0;

    fault->delay_ns = read ? STEP_NS : 8 * STEP_NS;
}

/* The watch tells of a write before the write is answered: the next round does not wait for
 * what has been seen already. */
static void test_seen_before_answer(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", 1);
    process_start(&bench, 0, &ALONE);
    pass(&bench, 5 * SECONDS);
    bench.store.fault = on_slow_write;
    put_pool(&bench, "p", 2);
    pass(&bench, 800 * MS); /* less than a round waits for what it does not see */
    const json_t *service =
        json_object_get(bench.store.objects, "/api/v1/namespaces/shop/services/p");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(service, "spec"), "count")), "2");
}

/* The process is killed at each write, before and after it is carried out, and another, of the
 * same place, starts ten seconds later. */
static void test_killed_at_every_write(void **state)
{
    (void)state;
    size_t cases = 0;
    for (int after = 0; after < 2; after++)
        for (size_t at = 1; at <= 9; at++, cases++) {
            BENCH(bench);
            bench.fault = (struct api_fault){.lose_request = !after, .lose_answer = after};
            bench.fault_at = at;
            bench.kill_at_fault = 0;
            put_pool(&bench, "p", PODS_WANTED);
            process_start(&bench, 0, &ELECTED);
            pass(&bench, 2 * SECONDS);
            put_pool(&bench, "p", bench.processes[0].runs ? 1 : PODS_WANTED);
            pass(&bench, 10 * SECONDS);
            assert_false(bench.processes[0].runs);
            process_start(&bench, 0, &ELECTED);
            pass(&bench, 40 * SECONDS);
            put_pool(&bench, "p", 1);
            pass(&bench, 10 * SECONDS);
            is_settled(&bench, 1, PODS_WANTED);
        }
    print_message("# %zu kills\n", cases);
}

/* The leader is stopped at each write for longer than its Lease; the other takes over; the
 * first goes on, and ends without another write. */
static void test_stopped_leader(void **state)
{
    (void)state;
    for (size_t at = 1; at <= 5; at++) {
        BENCH(bench);
        CLEANUP(str_done) struct str text = STR_EMPTY;
        struct error err = {0};
        put_pool(&bench, "p", PODS_WANTED);
        bench.fault_at = at;
        bench.kill_at_fault = 0;
        bench.stop_at_fault = true;
        process_start(&bench, 0, &ELECTED);
        pass(&bench, SECONDS / 10);
        process_start(&bench, 1, &ELECTED);
        pass(&bench, 60 * SECONDS);
        assert_true(bench.processes[0].stopped);
        assert_true(controller_leads(bench.processes[1].controller));
        is_settled(&bench, PODS_WANTED, PODS_WANTED);
        size_t writes = bench.store.writes;
        bench.processes[0].stopped = false;
        pass(&bench, 30 * SECONDS);
        assert_true(controller_is_over(bench.processes[0].controller));
        assert_int_equal(controller_end(bench.processes[0].controller, &err), -E_NO);
        assert_int_equal(bench.store.writes, writes);
        controller_metrics_page(bench.processes[1].controller, &text);
        assert_non_null(strstr(text.bytes, "tranche_controller_epoch 1\n"));
        is_settled(&bench, PODS_WANTED, PODS_WANTED);
    }
}

/* The API server is away for a while, at each write. */
static void test_server_away(void **state)
{
    (void)state;
    for (size_t at = 0; at <= 9; at++) {
        BENCH(bench);
        put_pool(&bench, "p", PODS_WANTED);
        process_start(&bench, 0, &ELECTED);
        bool shrunk = false;
        for (int i = 0; i < 4000 && bench.write < at; i++) {
            pass(&bench, STEP_NS);
            if (!shrunk && bench.write == 5 + 1) {
                put_pool(&bench, "p", 1);
                shrunk = true;
            }
        }
        bench.store.down = true;
        pass(&bench, 5 * SECONDS);
        bench.store.down = false;
        pass(&bench, 60 * SECONDS);
        put_pool(&bench, "p", 1);
        pass(&bench, 60 * SECONDS);
        assert_false(controller_is_over(bench.processes[0].controller));
        is_settled(&bench, 1, count_log(&bench, "POST " PODS));
        assert_true(count_log(&bench, "POST " PODS) <= PODS_WANTED);
    }
}

/* A server that asks for time gets it, then goes on where it was. */
static void test_retry_after(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    bench.fault_at = 3;
    bench.fault = (struct api_fault){.status = 429, .retry_after_ns = 40 * SECONDS};
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 39 * SECONDS);
    assert_int_equal(bench.write, 3);
    assert_int_equal(bench.store.writes, 2);
    pass(&bench, 6 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
}

/* The caches lag behind: what was written is waited for, not written again. */
static void test_late_watches(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    bench.store.watch_delay_ns = 600 * MS;
    process_start(&bench, 0, &ELECTED);
    pass(&bench, 20 * SECONDS);
    assert_int_equal(bench.write, PODS_WANTED + 2); /* the Service for 0 and for 4 pods */
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    bench.store.watch_delay_ns = 5 * SECONDS; /* longer than is waited for */
    put_pool(&bench, "p", 1);
    pass(&bench, 60 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
}

/* Two of them, and no election. */
static void test_two_without_election(void **state)
{
    (void)state;
    BENCH(bench);
    put_pool(&bench, "p", PODS_WANTED);
    process_start(&bench, 0, &ALONE);
    process_start(&bench, 1, &ALONE);
    pass(&bench, 20 * SECONDS);
    is_settled(&bench, PODS_WANTED, PODS_WANTED);
    put_pool(&bench, "p", 1);
    pass(&bench, 20 * SECONDS);
    is_settled(&bench, 1, PODS_WANTED);
    assert_int_equal(count_log(&bench, "DELETE " PODS), PODS_WANTED - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_write_fails),
        cmocka_unit_test(test_seen_before_answer),
        cmocka_unit_test(test_killed_at_every_write),
        cmocka_unit_test(test_stopped_leader),
        cmocka_unit_test(test_server_away),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_late_watches),
        cmocka_unit_test(test_two_without_election),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests_name("controller faults", tests, NULL, NULL);
}
