/* SPDX-License-Identifier: Apache-2.0
 *
 * Watch and cache against a model of the server with a history: every change is heard once,
 * in order, whatever happens to the streams. The recorded stream is cut at every byte, in
 * chunks of every small size.
 */
#include "fake_transport.h"
#include "kube/cache.h"

/* The history after the list (which is at version v10 and has a, b): one line a change. */
static const struct {
    const char *version, *line;
} history[] = {
    {"v11", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\","
            "\"uid\":\"u3\",\"resourceVersion\":\"v11\"},\"x\":\"\xc3\xa9\\n\"}}\n"},
    {"v12",
     "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
     "\"uid\":\"u1\",\"resourceVersion\":\"v12\"}}}\n"},
    {"v15",
     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"v15\"}}}\n"},
    {"v16",
     "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\","
     "\"uid\":\"u2\",\"resourceVersion\":\"v16\"}}}\n"},
    {"v17", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\","
            "\"uid\":\"u4\",\"resourceVersion\":\"v17\"}}}\r\n"},
};

#define OBJECT(name, uid, version)                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"" uid                  \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                   \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                       \
    "\"},\"items\":[" items "]}"
#define STATUS_410                                                                             \
    "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

/* What a handler hears of the list and the history. */
static const char HEARD[] = "+n/a +n/b synced +n/c ~n/a -n/b +n/b ";

struct scene {
    struct fake_transport fake;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_cache *cache;
    struct str heard;
    size_t streams, lists;
    size_t cut_at, chunk; /* of the first stream */
};

static void on_changed(void *context, const char *key, const json_t *before,
                       const json_t *after)
{
    struct scene *scene = context;

    str_addf(&scene->heard, "%c%s ", !before ? '+' : !after ? '-' : '~', key);
}

static void on_synced(void *context)
{
    struct scene *scene = context;

    str_add(&scene->heard, "synced ");
}

static void scene_start(struct scene *scene, fake_answer_function *function)
{
    struct kube_cache_handler handler = {on_changed, on_synced, scene};

    scene->heard = STR_EMPTY;
    fake_init(&scene->fake, function, scene);
    scene->loop = kube_loop_new(&scene->fake.transport, &scene->fake.clock.source);
    scene->client = kube_client_new(
        &(struct kube_client_options){.loop = scene->loop, .field_manager = "t", .seed = 3});
    scene->cache =
        kube_cache_new(&(struct kube_watch_options){.client = scene->client,
                                                    .target = {&KUBE_POD, "n", NULL, NULL}},
                       &handler);
}

static void scene_stop(struct scene *scene)
{
    kube_cache_free(scene->cache);
    kube_client_free(scene->client);
    kube_loop_free(scene->loop);
    fake_done(&scene->fake);
    str_done(&scene->heard);
}

/* Turns the loop for a while of fake time. */
static void run_for(struct scene *scene, int64_t length_ns)
{
    int64_t end_ns = scene->fake.clock.time_ns + length_ns;

    for (int turns = 0; scene->fake.clock.time_ns < end_ns; turns++) {
        assert_int_equal(kube_loop_turn(scene->loop, end_ns - scene->fake.clock.time_ns, NULL),
                         0);
        if (turns > 20000)
            fail_msg("the loop spins");
    }
}

static bool is_watch(const struct kube_request *request)
{
    return strstr(request->path, "watch=true") != NULL;
}

/* The history from the version asked for on. */
static void add_history(const struct kube_request *request, struct fake_answer *answer)
{
    const char *from = strstr(request->path, "resourceVersion=") + strlen("resourceVersion=");
    size_t i = 0;

    if (strncmp(from, "v10", 3) != 0) {
        while (i < COUNT(history) && strncmp(history[i].version, from, 3) != 0)
            i++;
        assert_true(i < COUNT(history));
        i++;
    }
    for (; i < COUNT(history); i++)
        str_add(&answer->body, history[i].line);
}

static void answer_with_cut(void *context, const struct kube_request *request,
                            struct fake_answer *answer)
{
    struct scene *scene = context;

    answer->status = 200;
    if (!is_watch(request)) {
        scene->lists++;
        str_add(&answer->body,
                LIST("v10", OBJECT("a", "u1", "v1") "," OBJECT("b", "u2", "v2")));
        return;
    }
    assert_true(request->stream);
    add_history(request, answer);
    answer->chunk = scene->chunk;
    answer->stay_open = true;
    if (scene->streams++ == 0 && scene->cut_at < answer->body.length) {
        answer->body.length = scene->cut_at;
        answer->cut = true;
        answer->stay_open = false;
    }
}

static void test_cut_at_every_byte(void **state)
{
    size_t length = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(history); i++)
        length += strlen(history[i].line);
    for (size_t chunk = 0; chunk <= 7; chunk++)
        for (size_t cut = 0; cut <= length; cut++) {
            struct scene scene = {.cut_at = cut, .chunk = chunk};
            scene_start(&scene, answer_with_cut);
            run_for(&scene, 5 * SECONDS);
            if (strcmp(scene.heard.bytes, HEARD) != 0)
                fail_msg("cut %zu, chunk %zu: heard %s", cut, chunk, scene.heard.bytes);
            assert_int_equal(scene.lists, 1);
            assert_true(kube_watch_is_fresh(kube_cache_watch(scene.cache)));
            assert_string_equal(kube_metadata(kube_cache_get(scene.cache, "n/b"), "uid"), "u4");
            scene_stop(&scene);
        }
    print_message("# %zu cuts, in 8 chunk sizes\n", length + 1);
}

/* Silence is a dead stream: it is opened again, from where it was, and nothing is heard twice.
 */
static void test_silence(void **state)
{
    struct scene scene = {.cut_at = SIZE_MAX};

    (void)state;
    scene_start(&scene, answer_with_cut);
    run_for(&scene, 3600 * SECONDS);
    assert_string_equal(scene.heard.bytes, HEARD);
    /* 330 to 630 s each. */
    assert_in_range(scene.streams, 5, 12);
    assert_int_equal(scene.lists, 1);
    scene_stop(&scene);
}

enum expiry { EXPIRY_STATUS, EXPIRY_EVENT, EXPIRY_PAGE, EXPIRY_COUNT };
static enum expiry expiry;

/* The second stream (or page) is too late: meanwhile a went, b was made anew, d came. */
static void answer_expired(void *context, const struct kube_request *request,
                           struct fake_answer *answer)
{
    struct scene *scene = context;

    answer->status = 200;
    if (!is_watch(request)) {
        assert_null(strstr(request->path, "resourceVersion="));
        if (strstr(request->path, "continue=")) {
            answer->status = 410;
            str_add(&answer->body, STATUS_410);
        } else if (scene->lists++ == 0) {
            str_add(&answer->body,
                    LIST("v10", OBJECT("a", "u1", "v1") "," OBJECT("b", "u2", "v2")));
        } else if (expiry == EXPIRY_PAGE && scene->lists == 2) {
            str_add(&answer->body,
                    "{\"metadata\":{\"resourceVersion\":\"v1\",\"continue\":\"c\"},"
                    "\"items\":[" OBJECT("b", "u2", "v2") "]}");
        } else {
            str_add(&answer->body,
                    LIST("v20", OBJECT("b", "u9", "v19") "," OBJECT("d", "u4", "v18")));
        }
        return;
    }
    scene->streams++;
    answer->stay_open = scene->streams > 1;
    if (scene->streams > 1)
        return;
    answer->status = expiry == EXPIRY_STATUS ? 410 : 200;
    str_add(&answer->body, expiry == EXPIRY_STATUS
                               ? STATUS_410
                               : "{\"type\":\"ERROR\",\"object\":" STATUS_410 "}\n");
}

static void test_expired(void **state)
{
    (void)state;
    for (expiry = EXPIRY_STATUS; expiry < EXPIRY_COUNT; expiry++) {
        struct scene scene = {0};
        scene_start(&scene, answer_expired);
        run_for(&scene, 10 * SECONDS);
        assert_string_equal(scene.heard.bytes, "+n/a +n/b synced -n/b +n/b +n/d -n/a synced ");
        assert_int_equal(kube_cache_count(scene.cache), 2);
        assert_int_equal(kube_watch_counts(kube_cache_watch(scene.cache)).expired,
                         expiry == EXPIRY_PAGE ? 2 : 1);
        scene_stop(&scene);
    }
}

/* 410 for ever must not spin. */
static void answer_always_expired(void *context, const struct kube_request *request,
                                  struct fake_answer *answer)
{
    (void)context;
    answer->status = is_watch(request) ? 410 : 200;
    str_add(&answer->body, is_watch(request) ? STATUS_410 : LIST("v10", ""));
}

static void test_expired_for_ever(void **state)
{
    struct scene scene = {0};

    (void)state;
    scene_start(&scene, answer_always_expired);
    run_for(&scene, 600 * SECONDS);
    assert_in_range(scene.fake.requests, 40, 200);
    assert_false(kube_watch_is_fresh(kube_cache_watch(scene.cache)));
    scene_stop(&scene);
}

/* The server is away from 10 s to 20 s after the start; then it lists nothing for once (an
 * error), then well. Nothing is deleted before a whole list says so. */
static void answer_away(void *context, const struct kube_request *request,
                        struct fake_answer *answer)
{
    struct scene *scene = context;
    int64_t at_ns = scene->fake.clock.time_ns - 1000 * SECONDS;

    if (at_ns >= 10 * SECONDS && at_ns < 20 * SECONDS)
        return;
    answer->status = 200;
    if (is_watch(request)) {
        if (at_ns >= 20 * SECONDS) {
            answer->stay_open = true;
            return;
        }
        answer->delay_ns = 10 * SECONDS - at_ns;
        answer->cut = true;
        return;
    }
    scene->lists++;
    if (scene->lists == 1) {
        str_add(&answer->body, LIST("v10", OBJECT("a", "u1", "v1")));
    } else if (scene->lists == 2) {
        answer->status = 500;
    } else if (scene->lists == 3) {
        str_add(&answer->body, "{\"metadata\":{}}");
    } else {
        str_add(&answer->body, LIST("v30", OBJECT("a", "u1", "v1")));
    }
}

static void test_server_away(void **state)
{
    struct scene scene = {0};

    (void)state;
    scene_start(&scene, answer_away);
    run_for(&scene, 15 * SECONDS);
    assert_true(kube_watch_is_synced(kube_cache_watch(scene.cache)));
    assert_false(kube_watch_is_fresh(kube_cache_watch(scene.cache)));
    assert_int_not_equal(kube_watch_error(kube_cache_watch(scene.cache))->code, E_NONE);
    assert_int_equal(kube_cache_count(scene.cache), 1);
    run_for(&scene, 120 * SECONDS);
    assert_true(kube_watch_is_fresh(kube_cache_watch(scene.cache)));
    assert_int_equal(scene.lists, 4);
    assert_string_equal(scene.heard.bytes, "+n/a synced synced ");
    scene_stop(&scene);
}

/* First streams with rubbish: the client lists anew and goes on. */
static const struct {
    const char *name, *text;
    size_t lists;
} rubbish[] = {
    {"wrong JSON", "{\"type\": }\n", 2},
    {"not an event", "{\"kind\":\"Pod\"}\n", 2},
    {"no version", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n", 2},
    {"no name", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"v\"}}}\n",
     2},
    {"a type of tomorrow", "{\"type\":\"MOVED\",\"object\":{\"a\":1}}\n", 1},
    {"an error of the server",
     "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500}}\n", 1},
    {"half a line", "{\"type\":\"ADD", 1},
    {"a huge line", NULL, 2},
};
static size_t rubbish_case;

static void answer_rubbish(void *context, const struct kube_request *request,
                           struct fake_answer *answer)
{
    struct scene *scene = context;

    if (!is_watch(request) || scene->streams > 0) {
        answer_with_cut(context, request, answer);
        return;
    }
    scene->streams++;
    answer->status = 200;
    answer->chunk = 65536;
    if (rubbish[rubbish_case].text) {
        str_add(&answer->body, rubbish[rubbish_case].text);
        return;
    }
    str_add(&answer->body, "{\"type\":\"ADDED\",\"object\":\"");
    for (size_t i = 0; i < (5u << 20) / 64; i++)
        str_add(&answer->body,
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

static void test_rubbish(void **state)
{
    (void)state;
    for (rubbish_case = 0; rubbish_case < COUNT(rubbish); rubbish_case++) {
        struct scene scene = {.cut_at = SIZE_MAX};
        scene_start(&scene, answer_rubbish);
        run_for(&scene, 20 * SECONDS);
        const char *heard = scene.heard.bytes;
        if (scene.lists == 2) /* the second list tells nothing new */
            heard += strlen("+n/a +n/b synced ");
        if (scene.lists != rubbish[rubbish_case].lists ||
            strcmp(heard, scene.lists == 2 ? HEARD + strlen("+n/a +n/b ") : HEARD) != 0)
            fail_msg("%s: %zu lists, heard %s", rubbish[rubbish_case].name, scene.lists,
                     scene.heard.bytes);
        scene_stop(&scene);
    }
}

/* What anyone can write into an object, and the API server hands on: it must not cost the
 * others. */
#define HOSTILE(name, uid, version)                                                            \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"" uid                  \
    "\",\"resourceVersion\":\"" version                                                        \
    "\",\"annotations\":{\"k\":\"x\\u0000y\",\"k\\u0000\":\"\x7f\"}},"                         \
    "\"spec\":{\"model\":\"a\\u0000b\",\"huge\":10000000000000000000}}"

static void answer_hostile(void *context, const struct kube_request *request,
                           struct fake_answer *answer)
{
    struct scene *scene = context;

    answer->status = 200;
    if (!is_watch(request)) {
        scene->lists++;
        str_add(&answer->body,
                LIST("v10", OBJECT("a", "u1", "v1") "," HOSTILE("b", "u2", "v2")));
        return;
    }
    answer->chunk = scene->chunk;
    answer->stay_open = true;
    if (scene->streams++ == 0)
        str_add(&answer->body,
                "{\"type\":\"ADDED\",\"object\":" HOSTILE(
                    "c", "u3", "v11") "}\n"
                                      "{\"type\":\"MODIFIED\",\"object\":" OBJECT("a", "u1",
                                                                                  "v12") "}\n");
}

static void test_hostile_text(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk <= 64; chunk++) {
        struct scene scene = {.chunk = chunk};
        scene_start(&scene, answer_hostile);
        run_for(&scene, 20 * SECONDS);
        assert_string_equal(scene.heard.bytes, "+n/a +n/b synced +n/c ~n/a ");
        assert_int_equal(scene.lists, 1);
        assert_true(kube_watch_is_fresh(kube_cache_watch(scene.cache)));
        for (const char *const *key = (const char *const[]){"n/b", "n/c", NULL}; *key; key++) {
            const json_t *object = kube_cache_get(scene.cache, *key);
            const json_t *model = json_object_get(json_object_get(object, "spec"), "model");
            assert_string_equal(json_string_value(model), "a\xEF\xBF\xBD"
                                                          "b");
        }
        scene_stop(&scene);
    }
}

/* Three pages; the first list fails at its second page and starts over. */
static void answer_pages(void *context, const struct kube_request *request,
                         struct fake_answer *answer)
{
    struct scene *scene = context;

    answer->status = 200;
    if (is_watch(request)) {
        assert_non_null(strstr(request->path, "resourceVersion=v9"));
        answer->stay_open = true;
    } else if (strstr(request->path, "continue=p2")) {
        if (scene->lists++ == 0)
            answer->status = 500;
        str_add(&answer->body, "{\"metadata\":{\"resourceVersion\":\"v9\",\"continue\":\"p3\"},"
                               "\"items\":[" OBJECT("b", "u2", "v2") "]}");
    } else if (strstr(request->path, "continue=p3")) {
        str_add(&answer->body, LIST("v9", OBJECT("c", "u3", "v3")));
    } else {
        assert_non_null(strstr(request->path, "limit=500"));
        str_add(&answer->body, "{\"metadata\":{\"resourceVersion\":\"v9\",\"continue\":\"p2\"},"
                               "\"items\":[" OBJECT("a", "u1", "v1") "]}");
    }
}

static void test_pages(void **state)
{
    struct scene scene = {0};

    (void)state;
    scene_start(&scene, answer_pages);
    run_for(&scene, 10 * SECONDS);
    assert_string_equal(scene.heard.bytes, "+n/a +n/b +n/c synced ");
    size_t position = 0, count = 0;
    while (kube_cache_next(scene.cache, &position))
        count++;
    assert_int_equal(count, 3);
    scene_stop(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte), cmocka_unit_test(test_silence),
        cmocka_unit_test(test_expired),           cmocka_unit_test(test_expired_for_ever),
        cmocka_unit_test(test_server_away),       cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_hostile_text),      cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests_name("kube/watch", tests, NULL, NULL);
}
