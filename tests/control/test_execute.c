/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects against a store in memory: what is carried out, in which order, and what ends it.
 */
#include "control/execute.h"

#include "control/kinds.h"
#include "fake_api.h"

#define POD_A        "/api/v1/namespaces/shop/pods/a"
#define COUNT(table) (sizeof(table) / sizeof *(table))

struct bench {
    struct api_store store;
    struct api_process process;
    struct kube_loop *loop;
    struct kube_client *client;
    struct effects effects;
    struct execution *execution;
    bool over;
    struct execute_outcome outcome;
    size_t refused;             /* told */
    size_t wrote, allowed_most; /* effects that are allowed */
    size_t asked;
    size_t fault_at; /* of counted writes, from 1; 0: none */
    struct api_fault fault;
    size_t requests;
    size_t in_flight_most;
};

static void on_fault(void *context, const struct kube_request *request, struct api_fault *fault)
{
    struct bench *bench = context;
    bool read = strcmp(request->method, "GET") == 0;
    size_t in_flight = bench->process.exchanges.count + 1;

    if (in_flight > bench->in_flight_most)
        bench->in_flight_most = in_flight;
    fault->delay_ns = 2 * MS;
    if (!read && ++bench->requests == bench->fault_at)
        *fault = bench->fault;
}

static bool on_allowed(void *context, const struct effect *effect)
{
    struct bench *bench = context;
    (void)effect;
    return bench->asked++ < bench->allowed_most;
}

static void on_wrote(void *context, const struct effect *effect, const json_t *answer)
{
    struct bench *bench = context;
    (void)effect;
    (void)answer;
    bench->wrote++;
}

static void on_refused(void *context, const struct effect *effect, const struct error *error)
{
    struct bench *bench = context;
    assert_non_null(effect->name);
    assert_true(*error->text != '\0');
    bench->refused++;
}

static void on_done(void *context, const struct execute_outcome *outcome)
{
    struct bench *bench = context;
    assert_false(bench->over);
    bench->over = true;
    bench->outcome = *outcome;
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){.allowed_most = SIZE_MAX};
    api_store_init(&bench->store);
    api_process_init(&bench->process, &bench->store);
    bench->store.fault = on_fault;
    bench->store.context = bench;
    bench->loop = kube_loop_new(&bench->process.transport, &bench->store.clock.source);
    bench->client = kube_client_new(
        &(struct kube_client_options){.loop = bench->loop, .field_manager = "test", .seed = 1});
    effects_init(&bench->effects);
}

static void bench_done(struct bench *bench)
{
    execution_free(bench->execution);
    effects_done(&bench->effects);
    kube_client_free(bench->client);
    kube_loop_free(bench->loop);
    api_process_done(&bench->process);
    api_store_done(&bench->store);
}

#define BENCH(name)                                                                            \
    __attribute__((cleanup(bench_done))) struct bench name;                                    \
    bench_init(&name)

static void turn(struct bench *bench, int steps)
{
    for (int i = 0; i < steps; i++) {
        assert_int_equal(kube_loop_turn(bench->loop, 0, NULL), 0);
        bench->store.clock.time_ns += MS;
    }
}

static void start(struct bench *bench, unsigned window)
{
    bench->execution = execute_start(&(struct execute_options){.client = bench->client,
                                                               .action = "Test",
                                                               .window = window,
                                                               .allowed = on_allowed,
                                                               .wrote = on_wrote,
                                                               .refused = on_refused,
                                                               .done = on_done,
                                                               .context = bench},
                                     &bench->effects);
}

static void run(struct bench *bench, unsigned window)
{
    start(bench, window);
    for (int i = 0; i < 100000 && !bench->over; i++)
        turn(bench, 1);
    assert_true(bench->over);
}

static json_t *pod(const char *name, const char *hash)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}}", "apiVersion", "v1", "kind", "Pod",
                     "metadata", "name", name, "namespace", "shop", "annotations", NOTE_HASH,
                     hash);
}

static void put_pod(struct bench *bench, const char *hash)
{
    api_put(&bench->store, POD_A, pod("a", hash));
}

static const json_t *pod_a(const struct bench *bench)
{
    return json_object_get(bench->store.objects, POD_A);
}

static void log_is(const struct bench *bench, const char *const *lines, size_t count)
{
    assert_int_equal(bench->store.log.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(bench->store.log.data[i], lines[i]);
}

static void test_in_order(void **state)
{
    (void)state;
    static const char *const expected[] = {"POST " POD_A, "PATCH " POD_A, "DELETE " POD_A,
                                           "PATCH /api/v1/namespaces/shop/services/s"};
    BENCH(bench);
    CLEANUP(json_decref_ptr) json_t *about = pod("a", "h");
    effect_ensure(&bench.effects, &KUBE_POD, pod("a", "h"));
    effect_patch(&bench.effects, &KUBE_POD, about, json_pack("{s:{s:s}}", "spec", "x", "y"),
                 false);
    effect_event(&bench.effects, &KUBE_POD, about, false, "Tested", "%s", "x");
    effect_delete(&bench.effects, &KUBE_POD, about, false);
    effect_apply(&bench.effects, &KIND_SERVICE,
                 json_pack("{s:{s:s, s:s}}", "metadata", "name", "s", "namespace", "shop"));
    run(&bench, 0);
    assert_int_equal(bench.outcome.end, EXECUTE_DONE);
    assert_int_equal(bench.outcome.carried_out, 5);
    assert_int_equal(bench.wrote, 4);
    assert_int_equal(bench.asked, 5);
    log_is(&bench, expected, COUNT(expected));
}

static void test_nothing(void **state)
{
    (void)state;
    BENCH(bench);
    start(&bench, 0);
    assert_false(bench.over); /* never from inside the start */
    turn(&bench, 2);
    assert_true(bench.over);
    assert_int_equal(bench.outcome.end, EXECUTE_DONE);
}

/* Twice the same list changes nothing. */
static void test_twice(void **state)
{
    (void)state;
    BENCH(bench);
    for (int i = 0; i < 2; i++) {
        bench.over = false;
        execution_free(bench.execution);
        effect_ensure(&bench.effects, &KUBE_POD, pod("a", "h"));
        effect_ensure(&bench.effects, &KUBE_POD, pod("b", "h"));
        run(&bench, 0);
        assert_int_equal(bench.outcome.end, EXECUTE_DONE);
        assert_int_equal(bench.store.writes, 2);
    }
}

static void test_window(void **state)
{
    (void)state;
    static const unsigned windows[] = {1, 3, 8};
    for (size_t w = 0; w < COUNT(windows); w++) {
        BENCH(bench);
        for (int i = 0; i < 20; i++) {
            char name[8];
            snprintf(name, sizeof name, "p%d", i);
            effect_ensure(&bench.effects, &KUBE_POD, pod(name, "h"));
        }
        run(&bench, windows[w]);
        assert_int_equal(bench.outcome.end, EXECUTE_DONE);
        assert_int_equal(bench.store.writes, 20);
        assert_int_equal(bench.in_flight_most, windows[w]);
    }
}

/* Effects of another kind, or about an object that is being written, wait. */
static void test_no_overtaking(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(json_decref_ptr) json_t *about = pod("a", "h");
    put_pod(&bench, "h");
    for (int i = 0; i < 3; i++)
        effect_patch(&bench.effects, &KUBE_POD, about, json_pack("{s:{s:i}}", "spec", "n", i),
                     false);
    run(&bench, 0);
    assert_int_equal(bench.in_flight_most, 1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(pod_a(&bench), "spec"), "n")), 2);
}

/* Two patches tied to one version are one decision; a stranger's change between is not. */
static void test_tied_twice(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        BENCH(bench);
        put_pod(&bench, "h");
        CLEANUP(json_decref_ptr) json_t *about = json_deep_copy(pod_a(&bench));
        for (int i = 0; i < 3; i++)
            effect_patch(&bench.effects, &KUBE_POD, about,
                         json_pack("{s:{s:i}}", "spec", "n", i), true);
        if (foreign)
            put_pod(&bench, "h");
        run(&bench, 0);
        assert_int_equal(bench.outcome.end, foreign ? EXECUTE_CONFLICT : EXECUTE_DONE);
        assert_int_equal(bench.store.writes, foreign ? 0 : 3);
    }
}

/* One effect, of which something is wrong. */
static const struct {
    const char *name;
    enum effect_kind kind;
    bool destructive, tied;
    const char *there; /* hash of the pod that is there; NULL: none */
    bool other_uid, other_version;
    struct api_fault fault;
    enum execute_end end;
    size_t writes;
    int code; /* of the error */
    int64_t retry_after_ns;
    bool goes_on; /* refused for what it is: the next is carried out */
} end_table[] = {
    {"ensure, there and ours",
     EFFECT_ENSURE,
     false,
     false,
     "h",
     false,
     false,
     {0},
     EXECUTE_DONE,
     0,
     E_NONE,
     -1},
    {"ensure, there and not ours",
     EFFECT_ENSURE,
     false,
     false,
     "g",
     false,
     false,
     {0},
     EXECUTE_FAILED,
     0,
     E_CONFLICT,
     -1,
     true},
    {"ensure, answer lost",
     EFFECT_ENSURE,
     false,
     false,
     NULL,
     false,
     false,
     {.lose_answer = true},
     EXECUTE_DONE,
     1,
     E_NONE,
     -1},
    {"ensure, request lost",
     EFFECT_ENSURE,
     false,
     false,
     NULL,
     false,
     false,
     {.lose_request = true},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"ensure, 429",
     EFFECT_ENSURE,
     false,
     false,
     NULL,
     false,
     false,
     {.status = 429, .retry_after_ns = 30 * SECONDS},
     EXECUTE_FAILED,
     0,
     E_BUSY,
     30 * SECONDS},
    {"ensure, 403",
     EFFECT_ENSURE,
     false,
     false,
     NULL,
     false,
     false,
     {.status = 403},
     EXECUTE_FAILED,
     0,
     E_USAGE,
     -1,
     true},
    {"ensure, 401",
     EFFECT_ENSURE,
     false,
     false,
     NULL,
     false,
     false,
     {.status = 401},
     EXECUTE_FAILED,
     0,
     E_USAGE,
     -1},
    {"patch, 422",
     EFFECT_PATCH,
     false,
     true,
     "h",
     false,
     false,
     {.status = 422},
     EXECUTE_FAILED,
     0,
     E_INPUT,
     -1,
     true},
    {"patch, tied",
     EFFECT_PATCH,
     false,
     true,
     "h",
     false,
     false,
     {0},
     EXECUTE_DONE,
     1,
     E_NONE,
     -1},
    {"patch, changed meanwhile",
     EFFECT_PATCH,
     false,
     true,
     "h",
     false,
     true,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"patch, gone",
     EFFECT_PATCH,
     false,
     false,
     NULL,
     false,
     false,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_NOT_FOUND,
     -1},
    {"patch, 500",
     EFFECT_PATCH,
     false,
     true,
     "h",
     false,
     false,
     {.status = 500},
     EXECUTE_FAILED,
     0,
     E_IO,
     -1},
    {"destructive patch, changed meanwhile",
     EFFECT_PATCH,
     true,
     true,
     "h",
     false,
     true,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"delete", EFFECT_DELETE, true, false, "h", false, false, {0}, EXECUTE_DONE, 1, E_NONE, -1},
    {"delete, gone",
     EFFECT_DELETE,
     true,
     false,
     NULL,
     false,
     false,
     {0},
     EXECUTE_DONE,
     0,
     E_NONE,
     -1},
    {"delete, made again",
     EFFECT_DELETE,
     true,
     false,
     "h",
     true,
     false,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"delete, made again, no look",
     EFFECT_DELETE,
     false,
     false,
     "h",
     true,
     false,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"delete, tied and changed",
     EFFECT_DELETE,
     true,
     true,
     "h",
     false,
     true,
     {0},
     EXECUTE_CONFLICT,
     0,
     E_CONFLICT,
     -1},
    {"delete, answer lost",
     EFFECT_DELETE,
     true,
     false,
     "h",
     false,
     false,
     {.lose_answer = true},
     EXECUTE_FAILED,
     1,
     E_IO,
     -1},
};

static void add_effect(struct bench *bench, size_t row)
{
    CLEANUP(json_decref_ptr)
    json_t *about = pod_a(bench) ? json_deep_copy(pod_a(bench)) : pod("a", "h");
    json_t *metadata = json_object_get(about, "metadata");
    struct effect *effect;

    if (!pod_a(bench))
        json_object_set_new(metadata, "uid", json_string("u"));
    if (end_table[row].other_uid)
        json_object_set_new(metadata, "uid", json_string("another"));
    if (end_table[row].other_version)
        json_object_set_new(metadata, "resourceVersion", json_string("0"));
    if (end_table[row].kind == EFFECT_ENSURE)
        effect = effect_ensure(&bench->effects, &KUBE_POD, pod("a", "h"));
    else if (end_table[row].kind == EFFECT_PATCH)
        effect = effect_patch(&bench->effects, &KUBE_POD, about,
                              json_pack("{s:{s:s}}", "spec", "x", "y"), end_table[row].tied);
    else
        effect = effect_delete(&bench->effects, &KUBE_POD, about, end_table[row].tied);
    effect->destructive = end_table[row].destructive;
}

static void test_ends(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT(end_table); row++) {
        BENCH(bench);
        if (end_table[row].there)
            put_pod(&bench, end_table[row].there);
        add_effect(&bench, row);
        effect_ensure(&bench.effects, &KUBE_POD, pod("next", "h")); /* not after all failures */
        bench.fault = end_table[row].fault;
        bench.fault_at = 1;
        run(&bench, 1);
        bool good = end_table[row].end == EXECUTE_DONE;
        size_t writes = end_table[row].writes + (good || end_table[row].goes_on);
        if (bench.outcome.end != end_table[row].end || bench.store.writes != writes ||
            (int)bench.outcome.error.code != end_table[row].code)
            print_message("# %s: end %d, %zu writes, %s\n", end_table[row].name,
                          bench.outcome.end, bench.store.writes, bench.outcome.error.text);
        assert_int_equal(bench.outcome.end, end_table[row].end);
        assert_int_equal(bench.outcome.error.code, end_table[row].code);
        assert_int_equal(bench.store.writes, writes);
        assert_int_equal(bench.outcome.retry_after_ns, end_table[row].retry_after_ns);
        assert_int_equal(bench.outcome.failed, good ? SIZE_MAX : 0);
    }
}

/* Of a refused one, only what depends on it is left out. */
static void test_refused(void **state)
{
    (void)state;
    BENCH(bench);
    CLEANUP(json_decref_ptr) json_t *about = pod("a", "h");
    effect_ensure(&bench.effects, &KUBE_POD, pod("a", "h"))->chain = 1; /* refused */
    effect_ensure(&bench.effects, &KUBE_POD, pod("b", "h"))->chain = 1;
    effect_patch(&bench.effects, &KUBE_POD, about, json_pack("{s:{s:s}}", "spec", "x", "y"),
                 false);
    effect_ensure(&bench.effects, &KUBE_POD, pod("c", "h"))->chain = 2;
    effect_ensure(&bench.effects, &KUBE_POD, pod("d", "h"));
    bench.fault = (struct api_fault){.status = 403};
    bench.fault_at = 1;
    run(&bench, 1);
    assert_int_equal(bench.outcome.end, EXECUTE_FAILED);
    assert_int_equal(bench.outcome.failed, 0);
    assert_int_equal(bench.outcome.error.code, E_USAGE);
    assert_int_equal(bench.outcome.left_out, 2);
    assert_int_equal(bench.outcome.carried_out, 2);
    assert_int_equal(bench.refused, 1);
    assert_int_equal(bench.store.writes, 2);
}

/* The Lease ends between two effects. */
static void test_not_allowed(void **state)
{
    (void)state;
    for (size_t most = 0; most < 5; most++) {
        BENCH(bench);
        for (int i = 0; i < 5; i++) {
            char name[8];
            snprintf(name, sizeof name, "p%d", i);
            effect_ensure(&bench.effects, &KUBE_POD, pod(name, "h"));
        }
        bench.allowed_most = most;
        run(&bench, 2);
        assert_int_equal(bench.outcome.end, EXECUTE_STOPPED);
        assert_int_equal(bench.store.writes, most);
        assert_int_equal(bench.outcome.carried_out, most);
    }
}

/* The Lease ends while the object is looked at: nothing is deleted. */
static void test_not_allowed_after_look(void **state)
{
    (void)state;
    BENCH(bench);
    put_pod(&bench, "h");
    effect_delete(&bench.effects, &KUBE_POD, pod_a(&bench), true)->destructive = true;
    bench.allowed_most = 1;
    run(&bench, 0);
    assert_int_equal(bench.outcome.end, EXECUTE_STOPPED);
    assert_non_null(pod_a(&bench));
}

/* What is under way is finished, nothing else begins. */
static void test_stop(void **state)
{
    (void)state;
    BENCH(bench);
    for (int i = 0; i < 6; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", i);
        effect_ensure(&bench.effects, &KUBE_POD, pod(name, "h"));
    }
    start(&bench, 2);
    turn(&bench, 1);
    execute_stop(bench.execution);
    turn(&bench, 20);
    assert_true(bench.over);
    assert_int_equal(bench.outcome.end, EXECUTE_STOPPED);
    assert_int_equal(bench.outcome.carried_out, 2);
    assert_int_equal(bench.store.writes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),      cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_twice),         cmocka_unit_test(test_window),
        cmocka_unit_test(test_no_overtaking), cmocka_unit_test(test_tied_twice),
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_allowed),   cmocka_unit_test(test_not_allowed_after_look),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests_name("execute", tests, NULL, NULL);
}
