/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs of a cluster stand on: the connection to the API server, its loop, events,
 * and the signals that end them.
 */
#ifndef TRANCHE_CLI_CLUSTER_LINK_H
#define TRANCHE_CLI_CLUSTER_LINK_H

#include "kube/event.h"
#include "kube/http.h"

/* In the order in which they are made; owned. Begin with CLUSTER_LINK_EMPTY. */
struct cluster_link {
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_events *events;
    int signals; /* -1: they are not watched */
};
#define CLUSTER_LINK_EMPTY                                                                     \
    {                                                                                          \
        .signals = -1                                                                          \
    }

/* Texts are borrowed for as long as the link. */
struct cluster_link_options {
    const char *kubeconfig, *context; /* NULL: see kube_auth_find() */
    const char *manager;              /* of fields, and the user agent: "tranche-agent" */
    const char *controller;           /* of events: "tranche.dev/agent" */
    const char *instance;             /* of events: the pod's name, or the machine's */
    void (*on_signal)(void *owner);   /* after SIGTERM or SIGINT, from the loop */
    void *owner;
};

/* E_USAGE unless an object may have this name. option: what gave it, "--node-name". NULL: none
 * was given. label: a namespace's name. */
int cluster_name_check(const char *option, const char *name, bool label, struct error *err);
/* SIGTERM and SIGINT wait for the loop from here on. Before any thread starts, so that all
 * inherit the mask. */
int cluster_link_watch_signals(struct cluster_link *link, struct error *err);
/* Errors as kube_auth_find() and kube_http_new(); no call is made yet. */
int cluster_link_open(struct cluster_link *link, const struct cluster_link_options *options,
                      struct error *err);
/* Takes the signal that made the loop call on_signal(); false when there is none. */
bool cluster_link_take_signal(const struct cluster_link *link);
/* Closes the link; one that was never opened is fine. */
void cluster_link_done(struct cluster_link *link);

#endif
