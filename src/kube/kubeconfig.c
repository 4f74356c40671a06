/* SPDX-License-Identifier: Apache-2.0
 *
 * kubeconfig files (kind Config, v1): a context names a cluster and a user. What is data in
 * base64 and what is a file beside the kubeconfig both become text in memory. Credential
 * plug-ins (exec, auth-provider) are refused: they would run programs that the file names.
 * Format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
 */
#include "kube/auth.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/yaml.h"

enum { PEM_SIZE_LIMIT = 1 << 20 };

struct kubeconfig {
    const struct yaml *yaml;
    const char *path;
    struct kube_auth *auth;
};

/* Appends what base64 text (blanks allowed, as YAML folds lines) stands for. The library passes
 * over what is no digit at the end, and takes padding anywhere. */
static bool base64_decode(const char *text, struct str *ret)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    CLEANUP(str_done) struct str dense = STR_EMPTY;

    for (; *text; text++)
        if (!strchr(" \t\r\n", *text))
            str_add_char(&dense, *text);
    size_t digits = strspn(dense.bytes, alphabet), padding = dense.length - digits;
    if (dense.length % 4 != 0 || padding > 2 || strspn(dense.bytes + digits, "=") != padding)
        return false;
    unsigned char *bytes = xcalloc(dense.length / 4 + 1, 3);
    int length = EVP_DecodeBlock(bytes, (const unsigned char *)dense.bytes, (int)dense.length);
    if (length >= 0)
        str_add_bytes(ret, bytes, (size_t)length - padding);
    free(bytes);
    return length >= 0;
}

/* A path of the file is relative to the file's own folder. */
static char *beside(const char *kubeconfig, const char *path)
{
    const char *slash = strrchr(kubeconfig, '/');

    if (path[0] == '/' || !slash)
        return xstrdup(path);
    return xasprintf("%.*s/%s", (int)(slash - kubeconfig), kubeconfig, path);
}

/* The text under key, copied into *ret when it is there. */
static int copy_text(const struct kubeconfig *config, const struct yaml_node *map,
                     const char *key, char **ret, struct error *err)
{
    const char *text = NULL;
    int rc = yaml_get_text(config->yaml, map, key, &text, err);

    if (rc < 0)
        return rc;
    if (text && *text) {
        free(*ret);
        *ret = xstrdup(text);
    }
    return 0;
}

/* The PEM text of NAME-data (base64, goes first) or of the file NAME. */
static int copy_pem(const struct kubeconfig *config, const struct yaml_node *map,
                    const char *name, char **ret, struct error *err)
{
    CLEANUP(free_ptr) char *data_key = xasprintf("%s-data", name);
    CLEANUP(free_ptr) char *file = NULL;
    CLEANUP(free_ptr) char *data = NULL;
    CLEANUP(str_done) struct str pem = STR_EMPTY;
    int rc = copy_text(config, map, data_key, &data, err);

    if (rc == 0)
        rc = copy_text(config, map, name, &file, err);
    if (rc < 0)
        return rc;
    if (data) {
        if (!base64_decode(data, &pem) || strlen(pem.bytes) != pem.length)
            return yaml_error(config->yaml, yaml_get(map, data_key), err,
                              "%s: expected PEM text in base64", data_key);
    } else if (file) {
        CLEANUP(free_ptr) char *path = beside(config->path, file);
        rc = file_read(path, PEM_SIZE_LIMIT, &pem, err);
        if (rc < 0)
            return error_wrap(err, "%s of %s", name, config->path);
    } else {
        return 0;
    }
    *ret = str_take(&pem);
    return 0;
}

static int read_cluster(const struct kubeconfig *config, const struct yaml_node *cluster,
                        struct error *err)
{
    struct kube_auth *auth = config->auth;
    int rc = copy_text(config, cluster, "server", &auth->server, err);

    if (rc == 0)
        rc = copy_pem(config, cluster, "certificate-authority", &auth->ca_pem, err);
    if (rc == 0)
        rc = copy_text(config, cluster, "tls-server-name", &auth->tls_server_name, err);
    if (rc == 0)
        rc = copy_text(config, cluster, "proxy-url", &auth->proxy_url, err);
    if (rc == 0)
        rc = yaml_get_bool(config->yaml, cluster, "insecure-skip-tls-verify", &auth->insecure,
                           err);
    if (rc < 0)
        return rc;
    size_t length = strlen(auth->server);
    while (length > 0 && auth->server[length - 1] == '/')
        auth->server[--length] = '\0';
    if (!text_starts_with(auth->server, "https://") &&
        !text_starts_with(auth->server, "http://"))
        return yaml_error(config->yaml, cluster, err,
                          "server: expected a URL like https://host:6443");
    return 0;
}

static int read_user(const struct kubeconfig *config, const struct yaml_node *user,
                     struct error *err)
{
    static const char *const plug_ins[] = {"exec", "auth-provider"};
    struct kube_auth *auth = config->auth;
    CLEANUP(free_ptr) char *token_file = NULL;
    int rc = copy_pem(config, user, "client-certificate", &auth->certificate_pem, err);

    for (size_t i = 0; i < sizeof plug_ins / sizeof *plug_ins; i++)
        if (yaml_get(user, plug_ins[i]))
            return error_set(err, E_UNSUPPORTED,
                             "%s: the user has %s credentials, which run a program; give a "
                             "kubeconfig with a token or a client certificate",
                             config->path, plug_ins[i]);
    if (rc == 0)
        rc = copy_pem(config, user, "client-key", &auth->key_pem, err);
    if (rc == 0)
        rc = copy_text(config, user, "tokenFile", &token_file, err);
    if (rc == 0 && token_file)
        auth->token_file = beside(config->path, token_file);
    else if (rc == 0)
        rc = copy_text(config, user, "token", &auth->token, err);
    if (rc == 0)
        rc = copy_text(config, user, "username", &auth->username, err);
    if (rc == 0)
        rc = copy_text(config, user, "password", &auth->password, err);
    if (rc == 0 && !auth->certificate_pem != !auth->key_pem)
        return yaml_error(config->yaml, user, err,
                          "client-certificate and client-key: expected both or none");
    return rc;
}

/* The map under `member` of the item named `name` in the list under `list`: "the cluster
 * "c" of the list clusters". */
static int find_item(const struct kubeconfig *config, const char *list, const char *name,
                     const char *member, const struct yaml_node **ret, struct error *err)
{
    const struct yaml_node *root = yaml_root(config->yaml);
    const struct yaml_node *items = yaml_get(root, list);

    if (!items || items->kind != YAML_KIND_LIST)
        return yaml_error(config->yaml, root, err, "expected a list '%s'", list);
    for (size_t i = 0; i < items->count; i++) {
        const char *item_name = NULL;
        int rc = yaml_expect(config->yaml, items->items[i], YAML_KIND_MAP, "a named item", err);
        if (rc == 0)
            rc = yaml_get_text(config->yaml, items->items[i], "name", &item_name, err);
        if (rc < 0)
            return rc;
        if (!item_name || strcmp(item_name, name) != 0)
            continue;
        *ret = yaml_get(items->items[i], member);
        if (*ret)
            return yaml_expect(config->yaml, *ret, YAML_KIND_MAP, member, err);
        return yaml_error(config->yaml, items->items[i], err, "expected a map '%s'", member);
    }
    return yaml_error(config->yaml, items, err, "no item of '%s' is named '%s'", list, name);
}

static int read_context(const struct kubeconfig *config, const char *name, struct error *err)
{
    const struct yaml_node *context = NULL, *cluster = NULL, *user = NULL;
    const char *cluster_name = NULL, *user_name = NULL;
    int rc = find_item(config, "contexts", name, "context", &context, err);

    if (rc == 0)
        rc = yaml_get_text(config->yaml, context, "cluster", &cluster_name, err);
    if (rc == 0)
        rc = yaml_get_text(config->yaml, context, "user", &user_name, err);
    if (rc == 0)
        rc = copy_text(config, context, "namespace", &config->auth->namespace, err);
    if (rc == 0 && !cluster_name)
        return yaml_error(config->yaml, context, err, "expected the name of a cluster");
    if (rc == 0)
        rc = find_item(config, "clusters", cluster_name, "cluster", &cluster, err);
    if (rc == 0)
        rc = read_cluster(config, cluster, err);
    if (rc == 0 && user_name && *user_name) {
        rc = find_item(config, "users", user_name, "user", &user, err);
        if (rc == 0)
            rc = read_user(config, user, err);
    }
    return rc;
}

int kube_auth_from_file(const char *path, const char *context, struct kube_auth **ret_auth,
                        struct error *err)
{
    CLEANUP(yaml_free_ptr) struct yaml *yaml = NULL;
    CLEANUP(kube_auth_free_ptr) struct kube_auth *auth = kube_auth_new("");
    struct kubeconfig config = {.path = path, .auth = auth};
    int rc = yaml_read(path, &yaml, err);

    if (rc < 0)
        return rc;
    config.yaml = yaml;
    rc = yaml_expect(yaml, yaml_root(yaml), YAML_KIND_MAP, "a kubeconfig", err);
    if (rc == 0 && !context)
        rc = yaml_get_text(yaml, yaml_root(yaml), "current-context", &context, err);
    if (rc == 0 && (!context || !*context))
        return yaml_error(yaml, yaml_root(yaml), err,
                          "no current-context, expected one (or name a context)");
    if (rc == 0)
        rc = read_context(&config, context, err);
    if (rc == 0)
        *ret_auth = STEAL(auth);
    return rc;
}
