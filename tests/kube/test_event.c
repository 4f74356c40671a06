/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: their form, series, bounds, and that failures stay without effect.
 */
#include "fake_transport.h"
#include "kube/event.h"

struct scene {
    struct fake_transport fake;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_events *events;
    int status; /* of every answer */
    size_t posts, patches;
    struct str path, body; /* of the last request */
};

static void answer(void *context, const struct kube_request *request, struct fake_answer *ret)
{
    struct scene *scene = context;

    scene->posts += strcmp(request->method, "POST") == 0;
    scene->patches += strcmp(request->method, "PATCH") == 0;
    str_clear(&scene->path);
    str_add(&scene->path, request->path);
    str_clear(&scene->body);
    str_add_bytes(&scene->body, request->body, request->body_length);
    ret->status = scene->status;
    str_add(&ret->body, "{}");
}

static void scene_start(struct scene *scene)
{
    *scene = (struct scene){.status = 200, .path = STR_EMPTY, .body = STR_EMPTY};
    fake_init(&scene->fake, answer, scene);
    scene->loop = kube_loop_new(&scene->fake.transport, &scene->fake.clock.source);
    scene->client = kube_client_new(
        &(struct kube_client_options){.loop = scene->loop, .field_manager = "t"});
    scene->events = kube_events_new(&(struct kube_event_options){
        .client = scene->client, .controller = "example.org/c", .instance = "pod-1"});
}

static void scene_stop(struct scene *scene)
{
    kube_events_free(scene->events);
    kube_client_free(scene->client);
    kube_loop_free(scene->loop);
    fake_done(&scene->fake);
    str_done(&scene->path);
    str_done(&scene->body);
}

static void run_for(struct scene *scene, int64_t length_ns)
{
    int64_t end_ns = scene->fake.clock.time_ns + length_ns;

    while (scene->fake.clock.time_ns < end_ns)
        assert_int_equal(kube_loop_turn(scene->loop, end_ns - scene->fake.clock.time_ns, NULL),
                         0);
}

static void emit(struct scene *scene, const struct kube_kind *kind, const char *name,
                 const char *note)
{
    json_t *object = json_pack("{s:{s:s, s:s}}", "metadata", "name", name, "uid", "u");

    if (kind->namespaced)
        json_object_set_new(json_object_get(object, "metadata"), "namespace", json_string("n"));
    kube_events_emit(scene->events, &(struct kube_event){.kind = kind,
                                                         .object = object,
                                                         .reason = "StepDone",
                                                         .action = "Create",
                                                         .note = note});
    json_decref(object);
}

static const char *text_of(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));

    return text ? text : "";
}

static void test_form(void **state)
{
    struct scene scene;

    (void)state;
    scene_start(&scene);
    emit(&scene, &KUBE_POD, "a", "all is well");
    run_for(&scene, SECONDS);
    json_t *body = json_loads(scene.body.bytes, 0, NULL);
    const json_t *about = json_object_get(body, "regarding");
    assert_non_null(strstr(scene.path.bytes, "/apis/events.k8s.io/v1/namespaces/n/events?"));
    assert_string_equal(text_of(body, "reportingController"), "example.org/c");
    assert_string_equal(text_of(body, "reportingInstance"), "pod-1");
    assert_string_equal(text_of(body, "reason"), "StepDone");
    assert_string_equal(text_of(body, "action"), "Create");
    assert_string_equal(text_of(body, "type"), "Normal");
    assert_string_equal(text_of(body, "note"), "all is well");
    assert_int_equal(strlen(text_of(body, "eventTime")), strlen("2026-01-01T00:00:00.000000Z"));
    assert_string_equal(text_of(about, "kind"), "Pod");
    assert_string_equal(text_of(about, "apiVersion"), "v1");
    assert_string_equal(text_of(about, "uid"), "u");
    assert_int_equal(strncmp(kube_metadata(body, "name"), "a.", 2), 0);
    json_decref(body);
    emit(&scene, &KUBE_NODE, "a", "cluster-scoped");
    run_for(&scene, SECONDS);
    assert_non_null(strstr(scene.path.bytes, "/namespaces/kube-system/events?"));
    scene_stop(&scene);
}

/* A long note is cut between characters. */
static void test_long_note(void **state)
{
    struct scene scene;
    char note[2000];

    (void)state;
    scene_start(&scene);
    memset(note, 'x', sizeof note);
    memcpy(note + 1023, "\xc3\xa9", 2);
    note[sizeof note - 1] = '\0';
    emit(&scene, &KUBE_POD, "a", note);
    run_for(&scene, SECONDS);
    json_t *body = json_loads(scene.body.bytes, 0, NULL);
    assert_int_equal(strlen(text_of(body, "note")), 1023);
    json_decref(body);
    scene_stop(&scene);
}

static void test_series(void **state)
{
    struct scene scene;

    (void)state;
    scene_start(&scene);
    for (int i = 0; i < 600; i++) { /* a minute, ten a second */
        emit(&scene, &KUBE_POD, "a", "again");
        run_for(&scene, 100 * MS);
    }
    run_for(&scene, 20 * SECONDS);
    assert_int_equal(scene.posts, 1);
    assert_in_range(scene.patches, 5, 8);
    json_t *body = json_loads(scene.body.bytes, 0, NULL);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(body, "series"), "count")), 600);
    json_decref(body);
    /* Over after six minutes: a new Event. */
    run_for(&scene, 400 * SECONDS);
    emit(&scene, &KUBE_POD, "a", "again");
    run_for(&scene, SECONDS);
    assert_int_equal(scene.posts, 2);
    scene_stop(&scene);
}

static void test_failures_and_bounds(void **state)
{
    struct scene scene;
    char name[24];

    (void)state;
    scene_start(&scene);
    scene.status = 403;
    emit(&scene, &KUBE_POD, "a", "refused");
    run_for(&scene, SECONDS);
    assert_int_equal(kube_events_counts(scene.events).failed, 1);
    scene.status = 200;
    emit(&scene, &KUBE_POD, "a", "works again");
    run_for(&scene, SECONDS);
    assert_int_equal(kube_events_counts(scene.events).created, 1);
    for (int i = 0; i < KUBE_EVENT_SERIES_MAX + 10; i++) {
        snprintf(name, sizeof name, "pod-%d", i);
        emit(&scene, &KUBE_POD, name, "many");
    }
    assert_int_equal(kube_events_counts(scene.events).dropped, 11);
    run_for(&scene, 800 * SECONDS);
    emit(&scene, &KUBE_POD, "late", "there is room again");
    assert_int_equal(kube_events_counts(scene.events).dropped, 11);
    scene_stop(&scene); /* with a call under way */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_long_note),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_failures_and_bounds),
    };
    return cmocka_run_group_tests_name("kube/event", tests, NULL, NULL);
}
