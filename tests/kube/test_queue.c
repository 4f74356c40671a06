/* SPDX-License-Identifier: Apache-2.0
 *
 * The work queue: order, one at a time, backoff, and a random run against a simple model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kube/queue.h"

#define MS INT64_C(1000000)

static struct kube_queue *make(void)
{
    return kube_queue_new(&(struct kube_queue_options){.seed = 1});
}

static void test_order_and_once(void **state)
{
    CLEANUP(kube_queue_free_ptr) struct kube_queue *queue = make();

    (void)state;
    assert_null(kube_queue_take(queue, 0));
    assert_true(kube_queue_next_ns(queue) == INT64_MAX);
    kube_queue_add(queue, "b");
    kube_queue_add(queue, "a");
    kube_queue_add(queue, "b");
    assert_int_equal(kube_queue_count(queue), 2);
    assert_string_equal(kube_queue_take(queue, 0), "b");
    assert_string_equal(kube_queue_take(queue, 0), "a");
    assert_null(kube_queue_take(queue, 0));
    kube_queue_done(queue, "a");
    kube_queue_done(queue, "b");
    assert_int_equal(kube_queue_count(queue), 0);
}

/* Added while worked on: it comes again, afterwards. */
static void test_added_while_taken(void **state)
{
    CLEANUP(kube_queue_free_ptr) struct kube_queue *queue = make();

    (void)state;
    kube_queue_add(queue, "a");
    assert_string_equal(kube_queue_take(queue, 0), "a");
    kube_queue_add(queue, "a");
    assert_null(kube_queue_take(queue, 0));
    assert_true(kube_queue_next_ns(queue) == INT64_MAX);
    kube_queue_done(queue, "a");
    assert_string_equal(kube_queue_take(queue, 0), "a");
    kube_queue_done(queue, "a");
    assert_int_equal(kube_queue_count(queue), 0);
}

static void test_later(void **state)
{
    CLEANUP(kube_queue_free_ptr) struct kube_queue *queue = make();

    (void)state;
    kube_queue_add_at(queue, "a", 100);
    kube_queue_add_at(queue, "a", 50);
    kube_queue_add_at(queue, "a", 70);
    assert_int_equal(kube_queue_next_ns(queue), 50);
    assert_null(kube_queue_take(queue, 49));
    assert_string_equal(kube_queue_take(queue, 50), "a");
    kube_queue_done(queue, "a");
}

/* Each delay lies in [half, whole] of a doubling base, up to the most; done forgets. */
static void test_backoff(void **state)
{
    CLEANUP(kube_queue_free_ptr)
    struct kube_queue *queue = kube_queue_new(
        &(struct kube_queue_options){.base_ns = 5 * MS, .most_ns = 1000 * MS, .seed = 7});
    int64_t now_ns = 0;

    (void)state;
    kube_queue_add(queue, "a");
    for (int round = 0; round < 2; round++) {
        int64_t whole_ns = 5 * MS;
        for (int i = 0; i < 80; i++) {
            assert_string_equal(kube_queue_take(queue, now_ns), "a");
            int64_t next_ns = kube_queue_retry(queue, "a", now_ns);
            assert_in_range(next_ns - now_ns, whole_ns - whole_ns / 2, whole_ns);
            assert_null(kube_queue_take(queue, next_ns - 1));
            now_ns = next_ns;
            whole_ns = whole_ns * 2 < 1000 * MS ? whole_ns * 2 : 1000 * MS;
        }
        assert_string_equal(kube_queue_take(queue, now_ns), "a");
        kube_queue_add_at(queue, "a", now_ns);
        kube_queue_done(queue, "a");
    }
}

/* An event does not let a failing key jump its backoff. */
static void test_retry_beats_add(void **state)
{
    CLEANUP(kube_queue_free_ptr) struct kube_queue *queue = make();

    (void)state;
    kube_queue_add(queue, "a");
    assert_non_null(kube_queue_take(queue, 0));
    kube_queue_add(queue, "a");
    assert_true(kube_queue_retry(queue, "a", 0) > 0);
    assert_null(kube_queue_take(queue, 0));
}

enum { KEYS = 300, STEPS = 30000 };

/* No key is lost, none is out twice, whatever the order of calls. */
static void test_random(void **state)
{
    CLEANUP(kube_queue_free_ptr) struct kube_queue *queue = make();
    bool wanted[KEYS] = {false}, out[KEYS] = {false};
    struct rng rng = rng_seed(20261130);
    char key[16];

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        size_t k = rng_below(&rng, KEYS);
        snprintf(key, sizeof key, "%zu", k);
        if (rng_below(&rng, 2) == 0) {
            kube_queue_add(queue, key);
            wanted[k] = true;
        } else if (out[k]) {
            kube_queue_done(queue, key);
            out[k] = false;
        } else {
            const char *taken = kube_queue_take(queue, 0);
            if (!taken)
                continue;
            k = (size_t)strtoul(taken, NULL, 10);
            assert_true(wanted[k] && !out[k]);
            wanted[k] = false;
            out[k] = true;
        }
    }
    size_t left = 0;
    for (size_t k = 0; k < KEYS; k++)
        left += wanted[k] || out[k];
    assert_int_equal(kube_queue_count(queue), left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_once),  cmocka_unit_test(test_added_while_taken),
        cmocka_unit_test(test_later),           cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_retry_beats_add), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests_name("kube/queue", tests, NULL, NULL);
}
