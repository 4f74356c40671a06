/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the API server is and who we are: from a kubeconfig file or from a pod's service
 * account. Tokens in files are read again, as projected tokens rotate. No secret is ever put
 * into an error.
 */
#ifndef TRANCHE_KUBE_AUTH_H
#define TRANCHE_KUBE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

/* How long a token read from a file is used before the file is looked at again. */
#define KUBE_TOKEN_AGE_NS INT64_C(60000000000)

/* All texts are owned, or NULL. */
struct kube_auth {
    char *server;          /* "https://host:port", maybe with a path, no slash at its end */
    char *unix_socket;     /* a path: connect there, whatever server says */
    char *namespace;       /* the default one; never NULL */
    char *ca_pem;          /* certificates of the authorities; NULL: those of the system */
    char *certificate_pem; /* the client's, with key_pem */
    char *key_pem;
    char *tls_server_name; /* the name to find in the server's certificate */
    char *proxy_url;
    char *token;
    char *token_file; /* the token is what is in there */
    char *username;   /* HTTP basic, with password */
    char *password;
    bool insecure;       /* the server's certificate is not checked */
    int64_t token_at_ns; /* when token_file was read */
};

struct kube_auth_options {
    const char *kubeconfig; /* a path; NULL: $KUBECONFIG (its first file), ~/.kube/config,
                               then the pod's service account, which goes first when the
                               program runs in a pod and $KUBECONFIG is not set */
    const char *context;    /* NULL: the file's current-context */
};

/* Tries the places above in their order. E_MISSING when there is none; E_INPUT with place for
 * a wrong kubeconfig; E_UNSUPPORTED for credentials that need a plug-in. */
int kube_auth_find(const struct kube_auth_options *options, struct kube_auth **ret_auth,
                   struct error *err);

/* From the kubeconfig at path; context NULL means its current-context. */
int kube_auth_from_file(const char *path, const char *context, struct kube_auth **ret_auth,
                        struct error *err);

/* From a service account's folder (token, ca.crt, namespace) and the host and port of the API
 * server, as a pod finds them: KUBERNETES_SERVICE_HOST and _PORT. */
int kube_auth_from_pod(const char *folder, const char *host, const char *port,
                       struct kube_auth **ret_auth, struct error *err);

/* Reads the token file again if that was longer than KUBE_TOKEN_AGE_NS ago, or if `now` is
 * asked for. *ret_changed (may be NULL): the token is another one. Without a token file
 * nothing happens. On failure (E_IO, E_INPUT) the old token stays. */
int kube_auth_refresh(struct kube_auth *auth, int64_t now_ns, bool now, bool *ret_changed,
                      struct error *err);

/* No credentials and the system's authorities, for this server (its text is copied, slashes at
 * its end dropped); never NULL. */
struct kube_auth *kube_auth_new(const char *server);
/* Frees all texts, keys and tokens among them; NULL is fine. */
void kube_auth_free(struct kube_auth *auth);
CLEANUP_DEFINE_FREE(kube_auth)

#endif
