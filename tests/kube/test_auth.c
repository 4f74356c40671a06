/* SPDX-License-Identifier: Apache-2.0
 *
 * kubeconfig files, good and bad, the pod's service account, and token files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "kube/auth.h"

static char folder[] = "/tmp/tranche-auth-XXXXXX";

static char *write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);

    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    return path;
}

#define CONFIG(cluster, user)                                                                  \
    "apiVersion: v1\nkind: Config\ncurrent-context: one\npreferences: {}\n"                    \
    "contexts:\n- {name: one, context: {cluster: c, user: u, namespace: here}}\n"              \
    "- {name: two, context: {cluster: c, user: ''}}\n"                                         \
    "- {name: lost, context: {cluster: none}}\n"                                               \
    "clusters:\n- {name: other, cluster: {server: 'https://other'}}\n"                         \
    "- name: c\n  cluster: {" cluster "}\nusers:\n- name: u\n  user: {" user "}\n"

static void test_kubeconfig(void **state)
{
    CLEANUP(free_ptr)
    char *path = write_file(
        "good",
        CONFIG("server: 'https://h:6443/', certificate-authority: ca.pem, "
               "tls-server-name: api, proxy-url: 'http://p:1'",
               "client-certificate-data: Q0VSVA==, client-key-data: S0VZCg==, token: t"));
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = NULL;
    struct error err = {0};

    (void)state;
    free(write_file("ca.pem", "CA\n"));
    if (kube_auth_from_file(path, NULL, &auth, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(auth->server, "https://h:6443");
    assert_string_equal(auth->namespace, "here");
    assert_string_equal(auth->ca_pem, "CA\n");
    assert_string_equal(auth->certificate_pem, "CERT");
    assert_string_equal(auth->key_pem, "KEY\n");
    assert_string_equal(auth->tls_server_name, "api");
    assert_string_equal(auth->proxy_url, "http://p:1");
    assert_string_equal(auth->token, "t");
    assert_false(auth->insecure);
}

static void test_other_context(void **state)
{
    CLEANUP(free_ptr)
    char *path = write_file(
        "two", CONFIG("server: 'http://h', insecure-skip-tls-verify: true", "token: t"));
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = NULL;

    (void)state;
    assert_int_equal(kube_auth_from_file(path, "two", &auth, NULL), 0);
    assert_null(auth->token);
    assert_string_equal(auth->namespace, "default");
    assert_true(auth->insecure);
}

static const struct {
    const char *text, *context, *message;
    int code;
} bad[] = {
    {"[]", NULL, "expected", E_INPUT},
    {"a: 1", NULL, "no current-context", E_INPUT},
    {"current-context: x", NULL, "expected a list 'contexts'", E_INPUT},
    {CONFIG("server: 'https://h'", "token: t"), "absent", "no item of 'contexts' is named",
     E_INPUT},
    {CONFIG("server: 'https://h'", "token: t"), "lost", "no item of 'clusters' is named",
     E_INPUT},
    {CONFIG("", "token: t"), NULL, "expected a URL", E_INPUT},
    {CONFIG("server: 'ftp://h'", "token: t"), NULL, "expected a URL", E_INPUT},
    {CONFIG("server: [1]", "token: t"), NULL, "server", E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority: absent.pem", ""), NULL, "absent.pem",
     E_IO},
    {CONFIG("server: 'https://h', certificate-authority-data: '!'", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority-data: 'Q0V'", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority-data: 'Q=0V'", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority-data: 'Q==='", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority-data: 'Q0V-'", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h', certificate-authority-data: 'AAAA'", ""), NULL, "base64",
     E_INPUT},
    {CONFIG("server: 'https://h'", "exec: {command: aws}"), NULL, "exec", E_UNSUPPORTED},
    {CONFIG("server: 'https://h'", "client-key-data: S0VZCg=="), NULL, "expected both or none",
     E_INPUT},
};

static void test_bad_kubeconfig(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLEANUP(free_ptr) char *path = write_file("bad", bad[i].text);
        struct kube_auth *auth = NULL;
        struct error err = {0};
        int rc = kube_auth_from_file(path, bad[i].context, &auth, &err);
        if (rc != -bad[i].code || !strstr(err.text, bad[i].message) || auth)
            fail_msg("case %zu: %d '%s'", i, rc, err.text);
        if (strstr(err.text, "S0VZ"))
            fail_msg("a secret in '%s'", err.text);
    }
}

static void test_pod(void **state)
{
    CLEANUP(free_ptr) char *token = write_file("token", "first\n");
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = NULL;
    bool changed = false;

    (void)state;
    free(write_file("ca.crt", "CA\n"));
    free(write_file("namespace", "mine"));
    assert_int_equal(kube_auth_from_pod(folder, "fd00::1", "443", &auth, NULL), 0);
    assert_string_equal(auth->server, "https://[fd00::1]:443");
    assert_string_equal(auth->namespace, "mine");
    assert_string_equal(auth->ca_pem, "CA");
    assert_int_equal(kube_auth_refresh(auth, 0, false, &changed, NULL), 0);
    assert_true(changed);
    assert_string_equal(auth->token, "first");

    /* The file is looked at when the token is old, or on demand. */
    free(write_file("token", "second"));
    assert_int_equal(kube_auth_refresh(auth, KUBE_TOKEN_AGE_NS - 1, false, &changed, NULL), 0);
    assert_false(changed);
    assert_int_equal(kube_auth_refresh(auth, KUBE_TOKEN_AGE_NS, false, &changed, NULL), 0);
    assert_true(changed);
    assert_string_equal(auth->token, "second");

    /* A bad file leaves the token, and says nothing of its content. */
    struct error err = {0};
    free(write_file("token", "two words"));
    assert_int_equal(kube_auth_refresh(auth, 0, true, &changed, &err), -E_INPUT);
    assert_string_equal(auth->token, "second");
    assert_null(strstr(err.text, "two words"));
    unlink(token);
    assert_int_equal(kube_auth_refresh(auth, 0, true, NULL, &err), -E_IO);
    assert_string_equal(auth->token, "second");
}

static void test_find(void **state)
{
    CLEANUP(free_ptr) char *path = write_file("found", CONFIG("server: 'https://f'", ""));
    CLEANUP(free_ptr) char *several = xasprintf("%s:/absent", path);
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = NULL;
    struct error err = {0};

    (void)state;
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", folder, 1);
    unsetenv("KUBECONFIG");
    assert_int_equal(kube_auth_find(&(struct kube_auth_options){0}, &auth, &err), -E_MISSING);
    setenv("KUBECONFIG", several, 1);
    assert_int_equal(kube_auth_find(&(struct kube_auth_options){0}, &auth, &err), 0);
    assert_string_equal(auth->server, "https://f");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"ca.pem", "good",  "two",       "bad",
                                        "ca.crt", "token", "namespace", "found"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig),     cmocka_unit_test(test_other_context),
        cmocka_unit_test(test_bad_kubeconfig), cmocka_unit_test(test_pod),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests_name("kube/auth", tests, make_folder, remove_folder);
}
