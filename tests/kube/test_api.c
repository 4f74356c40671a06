/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls against the scripted server: what is sent, what comes back, and what is sent again.
 */
#include "world.h"

static const struct kube_target POD_A = {&KUBE_POD, "ns", "a", NULL};
static const struct kube_target PODS = {&KUBE_POD, "ns", NULL, NULL};
static const char POD[] =
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
    "\"resourceVersion\":\"7\",\"annotations\":{\"hash\":\"h1\"}},\"newField\":[1,{\"x\":2}]}";
static const char CONFLICT[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":409,"
                               "\"reason\":\"Conflict\",\"message\":\"modified\"}";
static const char EXISTS[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":409,"
                             "\"reason\":\"AlreadyExists\",\"message\":\"exists\"}";

/* What a call sends. */
static const struct {
    struct kube_call call;
    const char *body;
    const char *method, *uri, *type, *sent;
} sent_table[] = {
    {{.verb = KUBE_GET, .target = {&KUBE_NODE, NULL, "n 1/é", NULL}},
     NULL,
     "GET",
     "/api/v1/nodes/n%201%2F%C3%A9",
     NULL,
     ""},
    {{.verb = KUBE_LIST,
      .target = {&KUBE_LEASE, NULL, NULL, NULL},
      .limit = 2,
      .label_selector = "a=b,c"},
     NULL,
     "GET",
     "/apis/coordination.k8s.io/v1/leases?labelSelector=a%3Db%2Cc&limit=2",
     NULL,
     ""},
    {{.verb = KUBE_CREATE, .target = {&KUBE_POD, "ns", NULL, NULL}},
     "{\"a\": 1}",
     "POST",
     "/api/v1/namespaces/ns/pods?fieldManager=tranche-test",
     "application/json",
     "{\"a\":1}"},
    {{.verb = KUBE_MERGE_PATCH, .target = {&KUBE_POD, "ns", "a", "status"}},
     "{\"status\": {\"x\": null}}",
     "PATCH",
     "/api/v1/namespaces/ns/pods/a/status?fieldManager=tranche-test",
     "application/merge-patch+json",
     "{\"status\":{\"x\":null}}"},
    {{.verb = KUBE_APPLY,
      .target = {&KUBE_POD, "ns", "a", NULL},
      .force = true,
      .field_manager = "m"},
     "{\"k\": []}",
     "PATCH",
     "/api/v1/namespaces/ns/pods/a?fieldManager=m&force=true",
     "application/apply-patch+yaml",
     "{\"k\":[]}"},
    {{.verb = KUBE_DELETE,
      .target = {&KUBE_POD, "ns", "a", NULL},
      .uid = "u",
      .resource_version = "7",
      .has_grace = true,
      .propagation = KUBE_BACKGROUND},
     NULL,
     "DELETE",
     "/api/v1/namespaces/ns/pods/a",
     "application/json",
     "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"u\","
     "\"resourceVersion\":\"7\"},\"gracePeriodSeconds\":0,\"propagationPolicy\":"
     "\"Background\"}"},
};

static void test_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sent_table); i++) {
        const struct server_step steps[] = {{.body = POD}};
        WORLD(world, steps, 0);
        struct kube_call call = sent_table[i].call;
        struct error err = {0};
        json_t *body = sent_table[i].body ? json_loads(sent_table[i].body, 0, NULL) : NULL;
        call.body = body;
        if (kube_client_call(world.client, &call, NULL, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        json_decref(body);
        const struct server_request *request = &world.server.requests[0];
        assert_string_equal(request->method, sent_table[i].method);
        assert_string_equal(request->uri, sent_table[i].uri);
        assert_string_equal(request->body, sent_table[i].sent);
        if (sent_table[i].type)
            assert_string_equal(request->content_type, sent_table[i].type);
        else
            assert_null(request->content_type);
    }
}

static void test_unknown_fields_survive(void **state)
{
    (void)state;
    const struct server_step steps[] = {{.body = POD}};
    WORLD(world, steps, 0);
    struct kube_answer answer = {0};

    assert_int_equal(kube_client_call(world.client,
                                      &(struct kube_call){.verb = KUBE_GET, .target = POD_A},
                                      &answer, NULL),
                     0);
    json_t *expected = json_loads(POD, 0, NULL);
    assert_true(json_equal(answer.json, expected));
    json_decref(expected);
    kube_answer_done(&answer);
}

enum { GET, CREATE, DELETE, PATCH, TIED_PATCH, APPLY };

/* Faults and what a client of five attempts makes of them. */
static const struct {
    const char *name;
    int call;
    struct server_step steps[4];
    int code;
    const char *reason;
    size_t requests;
    bool unknown;
} fault_table[] = {
    {"404",
     GET,
     {{404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"}},
     E_NOT_FOUND,
     "NotFound",
     1,
     false},
    {"403",
     GET,
     {{403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}"}},
     E_USAGE,
     "Forbidden",
     1,
     false},
    {"409 of a create", CREATE, {{409, EXISTS}}, E_CONFLICT, "AlreadyExists", 1, false},
    {"409 of a patch", TIED_PATCH, {{409, CONFLICT}}, E_CONFLICT, "Conflict", 1, false},
    {"410",
     GET,
     {{410, "{\"kind\":\"Status\",\"reason\":\"Expired\"}"}},
     E_CONFLICT,
     "Expired",
     1,
     false},
    {"422",
     CREATE,
     {{422, "{\"kind\":\"Status\",\"reason\":\"Invalid\"}"}},
     E_INPUT,
     "Invalid",
     1,
     false},
    {"429 of a get", GET, {{429, "busy", "0"}, {200, POD}}, 0, "", 2, false},
    {"429 of a create", CREATE, {{429, NULL, "0"}, {429}, {201, POD}}, 0, "", 3, false},
    {"429 for too long", CREATE, {{429, NULL, "60"}}, E_BUSY, "", 1, false},
    {"500 of a get", GET, {{500}, {503, "<html>"}, {200, POD}}, 0, "", 3, false},
    {"500 of a create", CREATE, {{500}}, E_IO, "", 1, true},
    {"504 of a create", CREATE, {{504}}, E_TIMEOUT, "", 1, true},
    {"500 of an apply", APPLY, {{500}, {200, POD}}, 0, "", 2, false},
    {"500 of a patch", PATCH, {{500}, {200, POD}}, 0, "", 2, false},
    {"500 of a tied patch", TIED_PATCH, {{500}}, E_IO, "", 1, true},
    {"500 of a delete, then gone",
     DELETE,
     {{500}, {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"}},
     E_NOT_FOUND,
     "NotFound",
     2,
     true},
    {"half an answer",
     GET,
     {{200, POD, .chunk = 9, .fault = SERVER_CUT, .fault_at = 40}, {200, POD}},
     0,
     "",
     2,
     false},
    {"half an answer of a create",
     CREATE,
     {{201, POD, .chunk = 9, .fault = SERVER_CUT, .fault_at = 40}},
     E_IO,
     "",
     1,
     true},
    {"wrong JSON, then right", GET, {{200, "{\"kind\": }"}, {200, POD}}, 0, "", 2, false},
    {"wrong JSON of a create", CREATE, {{201, "{\"kind\": }"}}, E_INPUT, "", 1, true},
    {"an error without JSON", GET, {{400, "what?"}}, E_INPUT, "", 1, false},
};

static struct kube_call call_of(int what, const json_t *body)
{
    static const enum kube_verb verbs[] = {
        [GET] = KUBE_GET,           [CREATE] = KUBE_CREATE,          [DELETE] = KUBE_DELETE,
        [PATCH] = KUBE_MERGE_PATCH, [TIED_PATCH] = KUBE_MERGE_PATCH, [APPLY] = KUBE_APPLY};
    return (struct kube_call){.verb = verbs[what],
                              .target = what == CREATE ? PODS : POD_A,
                              .body = what == GET || what == DELETE ? NULL : body};
}

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fault_table); i++) {
        WORLD(world, fault_table[i].steps, 0);
        struct kube_answer answer = {0};
        struct error err = {0};
        json_t *body = json_loads(fault_table[i].call == TIED_PATCH
                                      ? "{\"metadata\":{\"resourceVersion\":\"6\"}}"
                                      : "{\"metadata\":{}}",
                                  0, NULL);
        const struct kube_call call = call_of(fault_table[i].call, body);
        int rc = kube_client_call(world.client, &call, &answer, &err);
        json_decref(body);
        if (rc != -fault_table[i].code || answer.unknown != fault_table[i].unknown ||
            strcmp(answer.reason, fault_table[i].reason) != 0 ||
            server_requests(&world.server) != fault_table[i].requests)
            fail_msg("%s: rc %d (%s), reason '%s', %zu requests, unknown %d",
                     fault_table[i].name, rc, err.text, answer.reason,
                     server_requests(&world.server), answer.unknown);
        assert_int_equal(answer.sent, fault_table[i].requests);
        kube_answer_done(&answer);
    }
}

/* Retry-After: 1 is heeded: the second sending is not earlier. */
static void test_retry_after_waits(void **state)
{
    (void)state;
    const struct server_step steps[] = {{503, NULL, "1"}, {200, POD}};
    WORLD(world, steps, 0);
    int64_t before_ns = clock_now_ns(clock_real());

    assert_int_equal(kube_client_call(world.client,
                                      &(struct kube_call){.verb = KUBE_GET, .target = POD_A},
                                      NULL, NULL),
                     0);
    assert_true(clock_now_ns(clock_real()) - before_ns >= SECONDS);
    assert_int_equal(kube_client_answers(world.client, KUBE_GET, 503), 1);
    assert_int_equal(kube_client_answers(world.client, KUBE_GET, 200), 1);
    assert_int_equal(kube_client_answers(world.client, KUBE_LIST, 200), 0);
}

static void test_stall_is_timeout(void **state)
{
    (void)state;
    const struct server_step steps[] = {
        {201, POD, .chunk = 5, .fault = SERVER_STALL, .fault_at = 20}};
    WORLD(world, steps, .timeout_ns = 200 * MS);
    struct kube_answer answer = {0};
    json_t *body = json_object();
    const struct kube_call call = call_of(CREATE, body);

    assert_int_equal(kube_client_call(world.client, &call, &answer, NULL), -E_TIMEOUT);
    assert_true(answer.unknown);
    json_decref(body);
    kube_answer_done(&answer);
}

/* libcurl by itself would send the request a second time. */
static void test_used_connection_hangs_up(void **state)
{
    (void)state;
    const struct server_step steps[] = {
        {200, POD}, {.fault = SERVER_HANG_UP}, {409, "{\"reason\":\"AlreadyExists\"}"}};
    WORLD(world, steps, 0);
    struct kube_answer answer = {0};
    json_t *body = json_object();
    const struct kube_call get = call_of(GET, NULL), create = call_of(CREATE, body);

    assert_int_equal(kube_client_call(world.client, &get, NULL, NULL), 0);
    assert_int_equal(kube_client_call(world.client, &create, &answer, NULL), -E_IO);
    assert_true(answer.unknown);
    assert_non_null(strstr(answer.error.text, "ended before an answer"));
    assert_int_equal(server_requests(&world.server), 2);
    json_decref(body);
    kube_answer_done(&answer);
}

static void test_large_answer(void **state)
{
    (void)state;
    const struct server_step steps[] = {{200, POD}};
    WORLD(world, steps, .body_limit = 64);
    struct error err = {0};

    assert_int_equal(
        kube_client_call(world.client,
                         &(struct kube_call){.verb = KUBE_GET, .target = POD_A, .attempts = 1},
                         NULL, &err),
        -E_INPUT);
    assert_non_null(strstr(err.text, "larger than 64 bytes"));
}

/* The token in the file is replaced; the server wants the new one. */
static void test_token_is_read_again(void **state)
{
    (void)state;
    char path[] = "/tmp/tranche-token-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "old\n", 4), 4);
    const struct server_step steps[] = {{200, POD, .token = "Bearer old"},
                                        {200, POD, .token = "Bearer new"},
                                        {200, POD, .token = "Bearer new"},
                                        {200, POD, .token = "Bearer other"}};
    WORLD(world, steps, .token_file = path);
    const struct kube_call call = {.verb = KUBE_GET, .target = POD_A};
    assert_int_equal(kube_client_call(world.client, &call, NULL, NULL), 0);
    assert_int_equal(pwrite(fd, "new\n", 4, 0), 4);
    assert_int_equal(kube_client_call(world.client, &call, NULL, NULL), 0);
    assert_int_equal(server_requests(&world.server), 3);
    /* No other token is there: 401 is the answer, once. */
    assert_int_equal(kube_client_call(world.client, &call, NULL, NULL), -E_USAGE);
    assert_int_equal(server_requests(&world.server), 4);
    close(fd);
    unlink(path);
}

static void test_no_server(void **state)
{
    (void)state;
    const struct server_step steps[] = {{200, POD}};
    WORLD(world, steps, 0);
    struct kube_auth *auth = kube_auth_new("http://127.0.0.1:1");
    struct kube_http *http = kube_http_new(&(struct kube_http_options){.auth = auth}, NULL);
    struct kube_loop *loop = kube_loop_new(kube_http_transport(http), clock_real());
    struct kube_client *client = kube_client_new(&(struct kube_client_options){
        .loop = loop, .field_manager = "t", .attempts = 3, .backoff_ns = MS});
    struct kube_answer answer = {0};

    assert_int_equal(kube_client_call(client,
                                      &(struct kube_call){.verb = KUBE_GET, .target = POD_A},
                                      &answer, NULL),
                     -E_IO);
    assert_int_equal(answer.sent, 3);
    kube_answer_done(&answer);
    kube_client_free(client);
    kube_loop_free(loop);
    kube_http_free(http);
    kube_auth_free(auth);
}

static void test_names(void **state)
{
    (void)state;
    char longest[255];
    memset(longest, 'a', sizeof longest - 1);
    longest[254] = '\0';
    const struct {
        const char *name;
        bool name_is_valid, label_is_valid;
    } table[] = {
        {"a", true, true},          {"gpu-node-1", true, true},  {"1", true, true},
        {"a.b-c.d2", true, false},  {"", false, false},          {"-a", false, false},
        {"a-", false, false},       {"a.-b", false, false},      {"a-.b", false, false},
        {".a", false, false},       {"a.", false, false},        {"a..b", false, false},
        {"Gpu", false, false},      {"a_b", false, false},       {"../../x", false, false},
        {"a/b", false, false},      {"\xc3\xa9", false, false},  {longest, false, false},
        {longest + 1, true, false}, {longest + 191, true, true}, {longest + 190, true, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (kube_name_is_valid(table[i].name, false) != table[i].name_is_valid ||
            kube_name_is_valid(table[i].name, true) != table[i].label_is_valid)
            fail_msg("case %zu: '%s'", i, table[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown_fields_survive),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_retry_after_waits),
        cmocka_unit_test(test_stall_is_timeout),
        cmocka_unit_test(test_used_connection_hangs_up),
        cmocka_unit_test(test_large_answer),
        cmocka_unit_test(test_token_is_read_again),
        cmocka_unit_test(test_no_server),
    };
    return cmocka_run_group_tests_name("kube/api", tests, NULL, NULL);
}
