/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection of a cluster's program. See cluster_link.h.
 */
#include "cli/cluster_link.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

int cluster_name_check(const char *option, const char *name, bool label, struct error *err)
{
    if (!name || kube_name_is_valid(name, label))
        return 0;
    return error_set(err, E_USAGE,
                     "%s '%s': no object can have this name; expected at most %d of a-z, 0-9%s "
                     "and '-', a letter or digit first and last (RFC 1123)",
                     option, name, label ? 63 : 253, label ? "" : ", '.'");
}

int cluster_link_watch_signals(struct cluster_link *link, struct error *err)
{
    sigset_t set;

    assert(link->signals < 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    link->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return link->signals < 0 ? error_set_errno(err, E_IO, "cannot wait for signals") : 0;
}

int cluster_link_open(struct cluster_link *link, const struct cluster_link_options *options,
                      struct error *err)
{
    const struct kube_auth_options where = {options->kubeconfig, options->context};
    int failed = kube_auth_find(&where, &link->auth, err);

    if (failed)
        return failed;
    link->http = kube_http_new(
        &(struct kube_http_options){.auth = link->auth, .user_agent = options->manager}, err);
    if (!link->http)
        return -err->code;
    link->loop = kube_loop_new(kube_http_transport(link->http), clock_real());
    link->client = kube_client_new(
        &(struct kube_client_options){.loop = link->loop,
                                      .field_manager = options->manager,
                                      .seed = (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL)});
    link->events =
        kube_events_new(&(struct kube_event_options){.client = link->client,
                                                     .controller = options->controller,
                                                     .instance = options->instance});
    if (link->signals >= 0)
        kube_loop_add_descriptor(link->loop,
                                 &(struct kube_descriptor){link->signals, POLLIN,
                                                           options->on_signal, options->owner});
    return 0;
}

bool cluster_link_take_signal(const struct cluster_link *link)
{
    struct signalfd_siginfo info;

    return read(link->signals, &info, sizeof info) == sizeof info;
}

void cluster_link_done(struct cluster_link *link)
{
    kube_events_free(link->events);
    kube_client_free(link->client);
    if (link->signals >= 0 && link->loop)
        kube_loop_remove_descriptor(link->loop, link->signals);
    kube_loop_free(link->loop);
    kube_http_free(link->http);
    kube_auth_free(link->auth);
    close_fd(&link->signals);
}
