/* SPDX-License-Identifier: Apache-2.0
 *
 * The batcher's promises: order, largest batch, longest wait, a full queue, draining, shapes
 * that never mix, every request answered once with its own rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/rng.h"
#include "fake_session.h"
#include "serve/batcher.h"

enum { ITEMS_MAX = 2000, WIDTH = 2 };
#define SECOND_NS INT64_C(1000000000)

static struct session session;
static struct kserve_request requests[ITEMS_MAX];
static struct batch_item items[ITEMS_MAX];
static float values[ITEMS_MAX][8][WIDTH];
static int failures[ITEMS_MAX];
static atomic_int completed;
static int order[ITEMS_MAX];

static void on_complete(struct batch_item *item, int failed, const struct error *err)
{
    (void)err;
    int index = (int)(item - items);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    failures[index] = failed;
    order[atomic_load(&completed)] = index;
    atomic_fetch_add(&completed, 1); /* last: who sees it may read the above */
    pthread_mutex_unlock(&lock);
}

static int setup(void **state)
{
    (void)state;
    session = (struct session)FAKE_SESSION;
    atomic_store(&completed, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < ITEMS_MAX; i++)
        kserve_request_done(&requests[i]);
    return 0;
}

static struct batch_item *make_item(int index, int rows)
{
    struct kserve_request *request = &requests[index];
    *request =
        (struct kserve_request){.id = "", .input_count = 1, .output_count = 1, .rows = rows};
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < WIDTH; w++)
            values[index][r][w] = (float)(index * 100 + r * 10 + w);
    request->inputs[0].tensor =
        (struct tensor){.element = TENSOR_F32,
                        .shape = {.rank = 2, .size = {rows, WIDTH}},
                        .data = values[index],
                        .size_bytes = sizeof(float) * WIDTH * (size_t)rows};
    items[index] = (struct batch_item){.request = request, .complete = on_complete};
    return &items[index];
}

static void submit(struct batcher *batcher, int index, int rows)
{
    struct error err = {0};
    if (batcher_submit(batcher, make_item(index, rows), &err) != 0)
        fail_msg("%s", err.text);
}

/* Waits for a state that another thread brings about; fails after 20 s. */
#define WAIT_FOR(condition)                                                                    \
    do {                                                                                       \
        int64_t end_ns_ = clock_now_ns(clock_real()) + 20 * SECOND_NS;                         \
        while (!(condition) && clock_now_ns(clock_real()) < end_ns_)                           \
            clock_sleep_until_ns(clock_real(), clock_now_ns(clock_real()) + 1000000);          \
        assert_true(condition);                                                                \
    } while (0)

static void check_answers(int count)
{
    assert_int_equal(atomic_load(&completed), count);
    for (int i = 0; i < count; i++) {
        const struct tensor *answer = &requests[i].outputs[0].tensor;
        assert_int_equal(failures[i], 0);
        assert_int_equal(answer->shape.size[0], requests[i].rows);
        for (int r = 0; r < requests[i].rows; r++)
            for (int w = 0; w < WIDTH; w++)
                assert_true(((float *)answer->data)[r * WIDTH + w] == values[i][r][w] + 1);
    }
}

static void waits_for_a_full_batch_and_no_longer(void **state)
{
    struct batcher_options options = {
        .batch_max = 4, .procs = 1, .max_wait_ms = 60000, .queue_rows_max = 100};
    (void)state;
    struct batcher *batcher = batcher_new(&session, &options);
    for (int i = 0; i < 3; i++)
        submit(batcher, i, 1);
    clock_sleep_until_ns(clock_real(), clock_now_ns(clock_real()) + SECOND_NS / 20);
    assert_int_equal(fake_run_count(&session), 0); /* three of four: it waits */
    submit(batcher, 3, 1);
    WAIT_FOR(atomic_load(&completed) == 4);
    assert_int_equal(session.run_count, 1);
    assert_int_equal(session.runs[0], 4);
    check_answers(4);
    batcher_free(batcher);
}

static void starts_when_the_oldest_has_waited(void **state)
{
    struct batcher_options options = {
        .batch_max = 8, .procs = 1, .max_wait_ms = 500, .queue_rows_max = 100};
    (void)state;
    struct batcher *batcher = batcher_new(&session, &options);
    submit(batcher, 0, 1);
    submit(batcher, 1, 1);
    WAIT_FOR(atomic_load(&completed) == 2);
    assert_int_equal(session.runs[0], 2);
    assert_true(items[0].started_ns - items[0].submitted_ns >= SECOND_NS / 2);
    batcher_free(batcher);
}

static void answers_in_order_and_never_above_the_largest_batch(void **state)
{
    struct batcher_options options = {
        .batch_max = 4, .procs = 1, .max_wait_ms = 1, .queue_rows_max = ITEMS_MAX * 4};
    struct rng rng = rng_seed(7);
    (void)state;
    fake_hold(&session, true);
    struct batcher *batcher = batcher_new(&session, &options);
    for (int i = 0; i < 500; i++)
        submit(batcher, i, 1 + (int)rng_below(&rng, 4));
    fake_hold(&session, false);
    WAIT_FOR(atomic_load(&completed) == 500);
    check_answers(500);
    for (int i = 0; i < 500; i++)
        assert_int_equal(order[i], i);
    struct batcher_stats stats = batcher_stats(batcher); /* also: what was run is seen */
    for (int i = 0; i < fake_run_count(&session); i++)
        assert_in_range(session.runs[i], 1, 4);
    assert_int_equal(stats.batches, fake_run_count(&session));
    assert_int_equal(stats.queued_rows, 0);
    batcher_free(batcher);
}

static void runs_as_many_at_once_as_processes(void **state)
{
    struct batcher_options options = {
        .batch_max = 1, .procs = 3, .max_wait_ms = 0, .queue_rows_max = 100};
    (void)state;
    fake_hold(&session, true);
    struct batcher *batcher = batcher_new(&session, &options);
    for (int i = 0; i < 10; i++)
        submit(batcher, i, 1);
    WAIT_FOR(fake_running(&session) == 3);
    assert_int_equal(batcher_stats(batcher).queued_rows, 7);
    fake_hold(&session, false);
    WAIT_FOR(atomic_load(&completed) == 10);
    assert_int_equal(session.running_peak, 3);
    check_answers(10);
    batcher_free(batcher);
}

static void refuses_what_does_not_fit(void **state)
{
    struct batcher_options options = {
        .batch_max = 4, .procs = 1, .max_wait_ms = 60000, .queue_rows_max = 3};
    struct error err = {0};
    (void)state;
    struct batcher *batcher = batcher_new(&session, &options);
    assert_int_equal(batcher_submit(batcher, make_item(9, 5), &err), -E_INPUT);
    submit(batcher, 0, 2);
    assert_int_equal(batcher_submit(batcher, make_item(9, 2), &err), -E_BUSY);
    submit(batcher, 1, 1); /* one more row does fit */
    batcher_drain(batcher);
    check_answers(2);
    assert_int_equal(batcher_submit(batcher, make_item(9, 1), &err), -E_BUSY);
    assert_non_null(strstr(err.text, "draining"));
    batcher_free(batcher);
}

static void never_mixes_shapes(void **state)
{
    struct batcher_options options = {
        .batch_max = 8, .procs = 1, .max_wait_ms = 5, .queue_rows_max = 100};
    (void)state;
    session.inputs[0].shape.size[1] = session.outputs[0].shape.size[1] = TENSOR_OPEN;
    fake_hold(&session, true);
    struct batcher *batcher = batcher_new(&session, &options);
    for (int i = 0; i < 6; i++) {
        struct batch_item *item = make_item(i, 1);
        struct error err = {0};
        item->request->inputs[0].tensor.shape.size[1] = 1 + i % 2;
        item->request->inputs[0].tensor.size_bytes = sizeof(float) * (size_t)(1 + i % 2);
        assert_int_equal(batcher_submit(batcher, item, &err), 0);
    }
    fake_hold(&session, false);
    WAIT_FOR(atomic_load(&completed) == 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(requests[i].outputs[0].tensor.shape.size[1], 1 + i % 2);
    for (int i = 0; i < fake_run_count(&session); i++)
        assert_in_range(session.runs[i], 1, 3);
    batcher_free(batcher);
}

static void a_failing_model_fails_each_request_of_the_batch(void **state)
{
    struct batcher_options options = {
        .batch_max = 4, .procs = 1, .max_wait_ms = 60000, .queue_rows_max = 100};
    (void)state;
    session.fails = true;
    struct batcher *batcher = batcher_new(&session, &options);
    for (int i = 0; i < 4; i++)
        submit(batcher, i, 1);
    WAIT_FOR(atomic_load(&completed) == 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(failures[i], -E_UNSUPPORTED);
    session.fails = false;
    submit(batcher, 4, 4);
    WAIT_FOR(atomic_load(&completed) == 5);
    assert_int_equal(failures[4], 0);
    batcher_free(batcher);
}

struct submitter {
    struct batcher *batcher;
    int first;
};

static void *submit_many(void *argument)
{
    const struct submitter *submitter = argument;
    for (int i = 0; i < 250; i++)
        submit(submitter->batcher, submitter->first + i, 1 + i % 3);
    return NULL;
}

static void many_threads_submit_while_it_drains(void **state)
{
    struct batcher_options options = {
        .batch_max = 8, .procs = 2, .max_wait_ms = 0.1, .queue_rows_max = 1000000};
    struct submitter submitters[4];
    pthread_t threads[4];
    (void)state;
    struct batcher *batcher = batcher_new(&session, &options);
    for (int t = 0; t < 4; t++) {
        submitters[t] = (struct submitter){batcher, t * 250};
        pthread_create(&threads[t], NULL, submit_many, &submitters[t]);
    }
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    batcher_drain(batcher);
    check_answers(1000);
    batcher_free(batcher);
}

static void another_wait_is_for_those_who_wait_too(void **state)
{
    struct batcher_options options = {
        .batch_max = 4, .procs = 2, .max_wait_ms = 60000, .queue_rows_max = 100};
    (void)state;
    struct batcher *batcher = batcher_new(&session, &options);
    submit(batcher, 0, 1);
    batcher_set_max_wait(batcher, 0);
    WAIT_FOR(atomic_load(&completed) == 1); /* not a minute later */
    assert_true(batcher_options_now(batcher).max_wait_ms == 0);
    batcher_set_max_wait(batcher, 60000);
    for (int i = 1; i < 5; i++) /* the four fill a batch */
        submit(batcher, i, 1);
    WAIT_FOR(atomic_load(&completed) == 5);
    assert_int_equal(items[1].batch_rows, 4);
    check_answers(5);
    batcher_free(batcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_wait_is_for_those_who_wait_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(waits_for_a_full_batch_and_no_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(starts_when_the_oldest_has_waited, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_in_order_and_never_above_the_largest_batch,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(runs_as_many_at_once_as_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_does_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(never_mixes_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failing_model_fails_each_request_of_the_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_threads_submit_while_it_drains, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
