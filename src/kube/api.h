/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the Kubernetes API: get, list, create, delete with preconditions, merge patch and
 * server-side apply, on objects and their subresources. Objects are JSON as read, so fields
 * that we do not know survive; there is no PUT, which would lose them.
 *
 * What is sent again by itself, up to `attempts` times with exponential backoff and jitter, or
 * when Retry-After says:
 *
 *     429                          every call: the server refused it before doing anything
 *     5xx, no answer, half of one  idempotent calls only: get, list, apply, delete, and a merge
 *                                  patch that is not tied to a resourceVersion
 *
 * Any other call that got no clear answer is `unknown`: it may have been carried out. Ask by
 * name what became of it.
 */
#ifndef TRANCHE_KUBE_API_H
#define TRANCHE_KUBE_API_H

#include <jansson.h>

#include "kube/loop.h"
#include "kube/path.h"

struct kube_client;

struct kube_client_options {
    struct kube_loop *loop;    /* borrowed */
    const char *field_manager; /* of creates, patches and applies: "tranche-controller" */
    unsigned attempts;         /* sendings of one call; 0: 5 */
    int64_t timeout_ns;        /* of one sending; 0: 30 s */
    int64_t backoff_ns;        /* before the second sending; 0: 100 ms; doubles */
    int64_t backoff_ns_most;   /* 0: 10 s; also the longest Retry-After that is heeded here */
    uint64_t seed;             /* of the jitter */
};

/* A client with nothing under way; never NULL. field_manager is copied, the loop must outlive
 * it. */
struct kube_client *kube_client_new(const struct kube_client_options *options);
/* Cancels what is under way. */
void kube_client_free(struct kube_client *client);
CLEANUP_DEFINE_FREE(kube_client)
/* The loop that it was made with; borrowed. */
struct kube_loop *kube_client_loop(const struct kube_client *client);

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_CREATE,
    KUBE_DELETE,
    KUBE_MERGE_PATCH,
    KUBE_APPLY,
    KUBE_VERB_COUNT
};
enum { KUBE_STATUS_COUNT = 600 };
/* How many sendings of that verb got that HTTP status; 0: no answer. Watches not among them. */
unsigned long kube_client_answers(const struct kube_client *client, enum kube_verb verb,
                                  int status);
enum kube_propagation { KUBE_PROPAGATE_DEFAULT, KUBE_BACKGROUND, KUBE_FOREGROUND, KUBE_ORPHAN };

/* Texts and the body are borrowed for the length of kube_client_start(). */
struct kube_call {
    enum kube_verb verb;
    struct kube_target target;
    const json_t *body;           /* create, merge patch, apply */
    const char *label_selector;   /* list */
    const char *field_selector;   /* list */
    const char *continue_token;   /* list: of the page before */
    unsigned limit;               /* list: items a page; 0: all */
    const char *resource_version; /* list: at least as new as; delete: precondition */
    const char *uid;              /* delete: precondition */
    int64_t grace_seconds;        /* delete, when has_grace */
    bool has_grace;
    enum kube_propagation propagation; /* delete */
    const char *field_manager;         /* NULL: the client's */
    bool force;                        /* apply: take fields over from other managers */
    unsigned attempts;                 /* 0: the client's */
    int64_t timeout_ns;                /* of one sending; 0: the client's */
};

/* What came of a call. reason is that of the Status object ("AlreadyExists", "Conflict"), or
 * "". error: E_NONE for 2xx, E_NOT_FOUND 404, E_CONFLICT 409 and 410, E_INPUT 400, 413 and 422,
 * E_BUSY 429, E_TIMEOUT 504 and own time limits, E_USAGE 401 and 403, E_UNSUPPORTED 405 and
 * 415, E_IO the rest. */
struct kube_answer {
    int status; /* of HTTP; 0 when none came */
    char reason[64];
    json_t *json;           /* the object, list or Status; NULL when there was none */
    int64_t retry_after_ns; /* or -1 */
    unsigned sent;          /* times */
    bool unknown;           /* it may or may not have been carried out */
    struct error error;
};

/* Drops the JSON; a zeroed answer is fine. */
void kube_answer_done(struct kube_answer *answer);

/* Begins a call. done() hears the end once, from kube_loop_turn(), and may keep the JSON by
 * json_incref(). Returns the call's number, never 0. */
uint64_t kube_client_start(struct kube_client *client, const struct kube_call *call,
                           void (*done)(void *context, const struct kube_answer *answer),
                           void *context);
/* done() will not be called; the server may still carry the call out. */
void kube_client_cancel(struct kube_client *client, uint64_t call);

/* The same, turning the loop until it is done; never from inside a callback of the loop.
 * Returns 0 or answer->error's negative code with *err set. *ret_answer (zeroed before, or
 * done with) is always filled in and owned by the caller; NULL when nobody asks. */
int kube_client_call(struct kube_client *client, const struct kube_call *call,
                     struct kube_answer *ret_answer, struct error *err);

/* metadata.FIELD of an object when that is text ("uid", "resourceVersion", "name",
 * "namespace"); borrowed; "" otherwise. */
const char *kube_metadata(const json_t *object, const char *field);
/* Decodes a Status object: its code, its reason; false when json is something else. */
bool kube_status_read(const json_t *json, int *ret_code, const char **ret_reason,
                      const char **ret_message);

#endif
