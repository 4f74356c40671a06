/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds in threads: the loop turns meanwhile, and their results come back in its thread.
 */
#include "control/rounds.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "kube/http.h"

static sem_t gate;
static pthread_t main_thread;

static int slow_reconcile(const struct world_sources *sources,
                          const struct reconcile_options *options, struct effects *ret_effects,
                          struct reconcile_figures *ret_figures, struct error *err)
{
    (void)ret_effects;
    while (sem_wait(&gate) != 0)
        ;
    ret_figures->gpus = (int)sources->pods.count;
    if (strcmp(options->pool, "wrong") == 0)
        return error_set(err, E_IO, "as wanted");
    return 0;
}

struct seen {
    int count, failed;
};

static void on_done(void *context, struct round *round)
{
    struct seen *seen = context;
    assert_true(pthread_equal(pthread_self(), main_thread));
    seen->count++;
    seen->failed += round->error.code == E_IO;
    assert_int_equal(round->figures.gpus, round->moved);
}

struct bench {
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct rounds *rounds;
    struct seen seen;
};

static void bench_init(struct bench *bench, unsigned threads)
{
    main_thread = pthread_self();
    sem_init(&gate, 0, 0);
    *bench = (struct bench){.auth = kube_auth_new("http://127.0.0.1:1")};
    bench->http = kube_http_new(&(struct kube_http_options){.auth = bench->auth}, NULL);
    bench->loop = kube_loop_new(kube_http_transport(bench->http), clock_real());
    assert_int_equal(rounds_new(&(struct rounds_options){.loop = bench->loop,
                                                         .reconcile = slow_reconcile,
                                                         .threads = threads,
                                                         .done = on_done,
                                                         .context = &bench->seen},
                                &bench->rounds, NULL),
                     0);
}

static void bench_done(struct bench *bench)
{
    rounds_free(bench->rounds);
    kube_loop_free(bench->loop);
    kube_http_free(bench->http);
    kube_auth_free(bench->auth);
    sem_destroy(&gate);
}

static void start(struct bench *bench, const char *pool, size_t pods)
{
    struct snapshot snapshot = {.world = {.pods = {.count = pods}}};
    rounds_start(bench->rounds, pool, &snapshot, pods);
}

static void test_loop_turns_meanwhile(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, 2);
    start(&bench, "a", 3);
    assert_true(rounds_have_room(bench.rounds));
    start(&bench, "wrong", 5);
    assert_false(rounds_have_room(bench.rounds));
    for (int i = 0; i < 10; i++)
        assert_int_equal(kube_loop_turn(bench.loop, 1000000, NULL), 0);
    assert_int_equal(bench.seen.count, 0);
    assert_false(rounds_wait(bench.rounds, 0));
    sem_post(&gate);
    sem_post(&gate);
    while (bench.seen.count < 2)
        assert_int_equal(kube_loop_turn(bench.loop, 1000000000, NULL), 0);
    assert_int_equal(bench.seen.failed, 1);
    assert_true(rounds_have_room(bench.rounds));
    bench_done(&bench);
}

/* Ended, but not handed back: freed all the same. */
static void test_free_waits(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, 1);
    start(&bench, "a", 1);
    sem_post(&gate);
    while (!rounds_wait(bench.rounds, INT64_C(10000000000)))
        ;
    bench_done(&bench);
    assert_int_equal(bench.seen.count, 0);
}

static void test_without_threads(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, 0);
    sem_post(&gate);
    start(&bench, "a", 1);
    assert_int_equal(bench.seen.count, 0); /* never from inside the start */
    while (bench.seen.count < 1)
        assert_int_equal(kube_loop_turn(bench.loop, 1000000000, NULL), 0);
    bench_done(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_turns_meanwhile),
        cmocka_unit_test(test_free_waits),
        cmocka_unit_test(test_without_threads),
    };
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
