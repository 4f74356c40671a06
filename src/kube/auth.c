/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of credentials, the pod's service account, and the order in which places are tried.
 * kubeconfig.c reads kubeconfig files.
 */
#include "kube/auth.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/str.h"

#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum { SECRET_SIZE_LIMIT = 1 << 20 };

struct kube_auth *kube_auth_new(const char *server)
{
    struct kube_auth *auth = xcalloc(1, sizeof *auth);
    size_t length = strlen(server);

    while (length > 0 && server[length - 1] == '/')
        length--;
    auth->server = xstrndup(server, length);
    auth->namespace = xstrdup("default");
    return auth;
}

/* Credentials do not stay in freed memory. */
static void free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void kube_auth_free(struct kube_auth *auth)
{
    if (!auth)
        return;
    free(auth->server);
    free(auth->unix_socket);
    free(auth->namespace);
    free(auth->ca_pem);
    free(auth->certificate_pem);
    free_secret(auth->key_pem);
    free(auth->tls_server_name);
    free(auth->proxy_url);
    free_secret(auth->token);
    free(auth->token_file);
    free(auth->username);
    free_secret(auth->password);
    free(auth);
}

/* A token travels in a header: one word of printable ASCII. */
static bool token_is_good(const char *token)
{
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return *token != '\0';
}

int kube_auth_refresh(struct kube_auth *auth, int64_t now_ns, bool now, bool *ret_changed,
                      struct error *err)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;

    if (ret_changed)
        *ret_changed = false;
    if (!auth->token_file)
        return 0;
    if (!now && auth->token && now_ns - auth->token_at_ns < KUBE_TOKEN_AGE_NS)
        return 0;
    if (file_read(auth->token_file, SECRET_SIZE_LIMIT, &text, err) < 0)
        return error_wrap(err, "reading the token of the Kubernetes client");
    while (text.length > 0 && strchr(" \t\r\n", text.bytes[text.length - 1]))
        text.bytes[--text.length] = '\0';
    if (!token_is_good(text.bytes) || strlen(text.bytes) != text.length)
        return error_set(err, E_INPUT, "%s: not a token; expected one word", auth->token_file);
    auth->token_at_ns = now_ns;
    if (auth->token && strcmp(auth->token, text.bytes) == 0)
        return 0;
    free_secret(auth->token);
    auth->token = str_take(&text);
    if (ret_changed)
        *ret_changed = true;
    return 0;
}

/* The content of FOLDER/NAME, trimmed at its end. */
static int read_pod_file(const char *folder, const char *name, char **ret_text,
                         struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", folder, name);
    CLEANUP(str_done) struct str text = STR_EMPTY;

    int rc = file_read(path, SECRET_SIZE_LIMIT, &text, err);
    if (rc < 0)
        return rc;
    while (text.length > 0 && strchr(" \t\r\n", text.bytes[text.length - 1]))
        text.bytes[--text.length] = '\0';
    if (text.length == 0)
        return error_set(err, E_INPUT, "%s: empty", path);
    *ret_text = str_take(&text);
    return 0;
}

int kube_auth_from_pod(const char *folder, const char *host, const char *port,
                       struct kube_auth **ret_auth, struct error *err)
{
    bool v6 = strchr(host, ':') != NULL;
    CLEANUP(free_ptr)
    char *server = xasprintf("https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = kube_auth_new(server);
    CLEANUP(free_ptr) char *namespace = NULL;

    auth->token_file = xasprintf("%s/token", folder);
    if (read_pod_file(folder, "ca.crt", &auth->ca_pem, err) < 0 ||
        read_pod_file(folder, "namespace", &namespace, err) < 0)
        return error_wrap(err, "the service account in %s", folder);
    free(auth->namespace);
    auth->namespace = STEAL(namespace);
    *ret_auth = STEAL(auth);
    return 0;
}

/* The first file named by $KUBECONFIG, or ~/.kube/config; NULL when neither is set. */
static char *default_kubeconfig(void)
{
    const char *named = getenv("KUBECONFIG");
    const char *home = getenv("HOME");

    if (named && *named)
        return xstrndup(named, strcspn(named, ":"));
    return home && *home ? xasprintf("%s/.kube/config", home) : NULL;
}

int kube_auth_find(const struct kube_auth_options *options, struct kube_auth **ret_auth,
                   struct error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *named = getenv("KUBECONFIG");
    CLEANUP(free_ptr) char *path = default_kubeconfig();

    if (options->kubeconfig)
        return kube_auth_from_file(options->kubeconfig, options->context, ret_auth, err);
    if (host && *host && port && *port && !(named && *named))
        return kube_auth_from_pod(POD_FOLDER, host, port, ret_auth, err);
    if (path && ((named && *named) || access(path, F_OK) == 0))
        return kube_auth_from_file(path, options->context, ret_auth, err);
    return error_set(err, E_MISSING,
                     "no Kubernetes cluster is known: give --kubeconfig FILE, set KUBECONFIG, "
                     "or run in a pod with a service account");
}
