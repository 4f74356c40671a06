/* SPDX-License-Identifier: Apache-2.0
 *
 * Watch and cache over real HTTP: a stream cut at every byte, one that stalls, lines split
 * over chunks, and a wake-up from another thread.
 */
#include "kube/cache.h"
#include "world.h"

#define EVENT(type, name, version)                                                             \
    "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name                        \
    "\",\"uid\":\"u\",\"resourceVersion\":\"" version "\"}}}\n"

static const char LIST[] = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
static const char STREAM[] = EVENT("ADDED", "a", "2") EVENT("ADDED", "b", "3");
static const char SECOND[] = EVENT("ADDED", "b", "3");

static void on_changed(void *context, const char *key, const json_t *before,
                       const json_t *after)
{
    (void)before;
    (void)after;
    str_addf(context, "%s ", key);
}

static struct kube_cache *start_cache(struct world *world, struct str *heard)
{
    const struct kube_watch_options options = {
        .client = world->client,
        .target = {&KUBE_NODE, NULL, NULL, NULL},
        .backoff_ns = MS,
        .silence_ns = SECONDS,
    };
    return kube_cache_new(
        &options, &(struct kube_cache_handler){.changed = on_changed, .context = heard});
}

/* Until n changes were heard; the limit only keeps a broken test from hanging. */
static void run_until(struct world *world, const struct str *heard, size_t n)
{
    int64_t limit_ns = clock_now_ns(clock_real()) + 60 * SECONDS;

    while (heard->length < n * strlen("a ")) {
        assert_int_equal(kube_loop_turn(world->loop, 100 * MS, NULL), 0);
        if (clock_now_ns(clock_real()) > limit_ns)
            fail_msg("heard only '%s'", heard->bytes);
    }
}

static void test_cut_at_every_byte(void **state)
{
    const size_t first_line = sizeof STREAM - sizeof SECOND;

    (void)state;
    for (size_t cut = 0; cut < sizeof STREAM - 1; cut++) {
        const bool a_came = cut >= first_line;
        const struct server_step steps[] = {
            {200, LIST},
            {200, STREAM, .chunk = 17, .fault = SERVER_CUT, .fault_at = cut},
            {200, a_came ? SECOND : STREAM, .chunk = 1000, .fault = SERVER_STALL,
             .fault_at = sizeof STREAM},
        };
        WORLD(world, steps, 0);
        CLEANUP(str_done) struct str heard = STR_EMPTY;
        CLEANUP(kube_cache_free_ptr) struct kube_cache *cache = start_cache(&world, &heard);
        run_until(&world, &heard, 2);
        assert_string_equal(heard.bytes, "a b ");
        assert_true(kube_watch_is_fresh(kube_cache_watch(cache)));
        assert_non_null(strstr(world.server.requests[2].uri,
                               a_came ? "resourceVersion=2" : "resourceVersion=1"));
    }
}

static void test_stall(void **state)
{
    const struct server_step steps[] = {
        {200, LIST},
        {200, STREAM, .chunk = 1000, .fault = SERVER_STALL, .fault_at = 90},
        {200, SECOND, .chunk = 1000, .fault = SERVER_STALL, .fault_at = 1000},
    };
    WORLD(world, steps, 0);
    CLEANUP(str_done) struct str heard = STR_EMPTY;
    CLEANUP(kube_cache_free_ptr) struct kube_cache *cache = start_cache(&world, &heard);

    (void)state;
    run_until(&world, &heard, 2);
    assert_string_equal(heard.bytes, "a b ");
    assert_int_equal(kube_watch_counts(kube_cache_watch(cache)).failures, 1);
}

static void *wake(void *http)
{
    kube_http_wake(http);
    return NULL;
}

/* Ready when the pipe has a byte: a descriptor of the loop. */
static void on_ready(void *context)
{
    *(bool *)context = true;
}

static void test_wake_and_descriptor(void **state)
{
    const struct server_step steps[] = {{200, LIST}};
    WORLD(world, steps, 0);
    pthread_t thread;
    int ends[2];
    bool ready = false;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, wake, world.http), 0);
    assert_int_equal(kube_loop_turn(world.loop, 50 * SECONDS, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pipe(ends), 0);
    kube_loop_add_descriptor(world.loop,
                             &(struct kube_descriptor){ends[0], POLLIN, on_ready, &ready});
    assert_int_equal(write(ends[1], "x", 1), 1);
    while (!ready)
        assert_int_equal(kube_loop_turn(world.loop, 50 * SECONDS, NULL), 0);
    kube_loop_remove_descriptor(world.loop, ends[0]);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_wake_and_descriptor),
    };
    return cmocka_run_group_tests_name("kube/watch_wire", tests, NULL, NULL);
}
