/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS and HTTP/2 through haproxy, which asks for client certificates and tells the scripted
 * server which version and connection a request came by. Skipped without haproxy, in CI
 * failed.
 */
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/file.h"
#include "certificates.h"
#include "world.h"

enum { CALLS = 20 };

extern char **environ;

struct proxy {
    char folder[40];
    pid_t pid;
    unsigned port;
    struct certificate authority, server, client, stranger;
};

static const char *const proxy_files[] = {"haproxy.cfg", "server.pem", "ca.pem"};

static void write_file(const struct proxy *proxy, const char *name, const char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", proxy->folder, name);

    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void write_files(const struct proxy *proxy, const char *backend, int listener)
{
    CLEANUP(free_ptr) char *ca = certificate_pem(&proxy->authority);
    CLEANUP(free_ptr) char *certificate = certificate_pem(&proxy->server);
    CLEANUP(free_ptr) char *key = certificate_key_pem(&proxy->server);
    CLEANUP(free_ptr) char *both = xasprintf("%s%s", certificate, key);
    CLEANUP(free_ptr)
    char *config =
        xasprintf("defaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n"
                  "  timeout server 60s\nlisten front\n"
                  "  bind fd@%d ssl crt %s/server.pem ca-file %s/ca.pem verify required alpn "
                  "h2,http/1.1\n"
                  "  http-request set-header X-Probe %%[fc_http_major]/%%[src_port]\n"
                  "  server one %s\n",
                  listener, proxy->folder, proxy->folder, backend + strlen("http://"));

    write_file(proxy, "ca.pem", ca);
    write_file(proxy, "server.pem", both);
    write_file(proxy, "haproxy.cfg", config);
}

/* A listening socket that a child inherits. */
static int listen_on_any(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* The listening socket exists before haproxy does, so nothing has to wait for it. */
static bool proxy_start(struct proxy *proxy, const char *backend)
{
    CLEANUP(close_fd) int listener = listen_on_any(&proxy->port);
    char config[64];

    snprintf(proxy->folder, sizeof proxy->folder, "/tmp/tranche-tls-XXXXXX");
    assert_non_null(mkdtemp(proxy->folder));
    proxy->authority = certificate_make("authority", NULL);
    proxy->server = certificate_make("api.test", &proxy->authority);
    proxy->client = certificate_make("client", &proxy->authority);
    proxy->stranger = certificate_make("stranger", NULL);
    write_files(proxy, backend, listener);
    snprintf(config, sizeof config, "%s/haproxy.cfg", proxy->folder);
    const char *const arguments[] = {"haproxy", "-q", "-db", "-f", config, NULL};
    setenv("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", 1);
    return posix_spawnp(&proxy->pid, "haproxy", NULL, NULL, (char *const *)(uintptr_t)arguments,
                        environ) == 0;
}

static void proxy_stop(struct proxy *proxy)
{
    if (proxy->pid > 0) {
        kill(proxy->pid, SIGKILL);
        waitpid(proxy->pid, NULL, 0);
    }
    for (size_t i = 0; i < COUNT(proxy_files); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", proxy->folder, proxy_files[i]);
        unlink(path);
    }
    rmdir(proxy->folder);
    certificate_done(&proxy->authority);
    certificate_done(&proxy->server);
    certificate_done(&proxy->client);
    certificate_done(&proxy->stranger);
}

/* A client of the proxy. */
struct caller {
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct kube_client *client;
    unsigned left, failed;
    char text[ERROR_TEXT_SIZE];
};

static void on_done(void *context, const struct kube_answer *answer)
{
    struct caller *caller = context;

    caller->left--;
    if (answer->error.code != E_NONE) {
        caller->failed++;
        snprintf(caller->text, sizeof caller->text, "%s", answer->error.text);
    }
}

/* Begins all calls at once, and waits for their ends; frees what auth owns. */
static void call_many(struct caller *caller, struct kube_auth *auth, unsigned calls)
{
    struct error err = {0};

    *caller = (struct caller){.auth = auth, .left = calls};
    caller->http = kube_http_new(&(struct kube_http_options){.auth = auth}, &err);
    assert_non_null(caller->http);
    caller->loop = kube_loop_new(kube_http_transport(caller->http), clock_real());
    caller->client = kube_client_new(&(struct kube_client_options){
        .loop = caller->loop, .field_manager = "t", .attempts = 1});
    for (unsigned i = 0; i < calls; i++)
        kube_client_start(
            caller->client,
            &(struct kube_call){.verb = KUBE_GET, .target = {&KUBE_NODE, NULL, "n", NULL}},
            on_done, caller);
    while (caller->left > 0)
        assert_int_equal(kube_loop_turn(caller->loop, SECONDS, NULL), 0);
    kube_client_free(caller->client);
    kube_loop_free(caller->loop);
    kube_http_free(caller->http);
    kube_auth_free(auth);
}

static struct kube_auth *auth_for(const struct proxy *proxy,
                                  const struct certificate *authority,
                                  const struct certificate *client)
{
    CLEANUP(free_ptr) char *server = xasprintf("https://127.0.0.1:%u", proxy->port);
    struct kube_auth *auth = kube_auth_new(server);

    auth->tls_server_name = xstrdup("api.test");
    auth->ca_pem = certificate_pem(authority);
    auth->certificate_pem = client ? certificate_pem(client) : NULL;
    auth->key_pem = client ? certificate_key_pem(client) : NULL;
    return auth;
}

static struct proxy proxy;
static struct fake_server server;
static struct server_step steps[SERVER_REQUESTS];
static bool proxy_runs;

static int start(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++)
        steps[i] = (struct server_step){200, "{\"kind\":\"Node\"}"};
    server_start(&server, steps, COUNT(steps));
    proxy_runs = proxy_start(&proxy, server.address);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    proxy_stop(&proxy);
    server_stop(&server);
    return 0;
}

static void need_proxy(void)
{
    if (proxy_runs)
        return;
    if (getenv("CI"))
        fail_msg("haproxy is not there");
    print_message("# haproxy is not there\n");
    skip();
}

/* All calls at once go by one HTTP/2 connection, with the client's certificate. */
static void test_one_connection(void **state)
{
    struct caller caller;

    (void)state;
    need_proxy();
    call_many(&caller, auth_for(&proxy, &proxy.authority, &proxy.client), CALLS);
    if (caller.failed)
        fail_msg("%u failed: %s", caller.failed, caller.text);
    assert_int_equal(server_requests(&server), CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(strncmp(server.requests[i].probe, "2/", 2), 0);
        assert_string_equal(server.requests[i].probe, server.requests[0].probe);
    }
}

enum { WRONG_AUTHORITY, WRONG_NAME, NO_CERTIFICATE, WRONG_CERTIFICATE, WRONG_COUNT };

/* None of these gets through. Where it is we who refuse, the error says why; a server that
 * refuses may just hang up. */
static void test_refused(void **state)
{
    size_t before = server_requests(&server);

    (void)state;
    need_proxy();
    for (int wrong = 0; wrong < WRONG_COUNT; wrong++) {
        struct caller caller;
        struct kube_auth *auth =
            auth_for(&proxy, wrong == WRONG_AUTHORITY ? &proxy.stranger : &proxy.authority,
                     wrong == NO_CERTIFICATE      ? NULL
                     : wrong == WRONG_CERTIFICATE ? &proxy.stranger
                                                  : &proxy.client);
        if (wrong == WRONG_NAME) {
            free(auth->tls_server_name);
            auth->tls_server_name = xstrdup("other.test");
        }
        call_many(&caller, auth, 1);
        bool ours = wrong == WRONG_AUTHORITY || wrong == WRONG_NAME;
        if (!caller.failed || (ours && !strstr(caller.text, "SSL")))
            fail_msg("case %d: failed %u: %s", wrong, caller.failed, caller.text);
    }
    assert_int_equal(server_requests(&server), before);
}

static void test_insecure(void **state)
{
    struct caller caller;

    (void)state;
    need_proxy();
    struct kube_auth *auth = auth_for(&proxy, &proxy.stranger, &proxy.client);
    auth->insecure = true;
    call_many(&caller, auth, 1);
    if (caller.failed)
        fail_msg("%s", caller.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_connection),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_insecure),
    };
    return cmocka_run_group_tests_name("kube/tls", tests, start, stop);
}
