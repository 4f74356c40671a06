/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's loop against an API server in memory, on a fake clock, with a small
 * reconciler in place of the real one: a pool's spec.pods pods are to be there, and one Service
 * that counts them.
 */
#ifndef TRANCHE_TESTS_CONTROL_CONTROLLER_BENCH_H
#define TRANCHE_TESTS_CONTROL_CONTROLLER_BENCH_H

#include "control/controller.h"

#include "base/log.h"
#include "control/kinds.h"
#include "fake_api.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define POOLS        "/apis/tranche.dev/v1alpha1/gpupools"
#define PODS         "/api/v1/namespaces/shop/pods"
#define LEASE        "/apis/coordination.k8s.io/v1/namespaces/system/leases/tranche-controller"
#define STEP_NS      (5 * MS)

enum { PROCESSES = 2, PODS_WANTED = 4 };

/* What the reconciler saw, and what it does in a round before it decides. */
extern int rounds_run, gateways_seen, claims_seen;
extern void (*during_round)(void);

struct process {
    struct api_process api;
    struct kube_loop *loop;
    struct kube_client *client;
    struct kube_events *events;
    struct controller *controller;
    char identity[32];
    bool stopped; /* as by SIGSTOP */
    bool runs;
};

struct bench {
    struct api_store store;
    struct process processes[PROCESSES];
    int starts;
    size_t write, fault_at; /* counted writes asked for, from 1 */
    struct api_fault fault;
    int kill_at_fault;  /* index of the process that ends there; -1 none */
    bool stop_at_fault; /* it is stopped instead */
};

struct setup {
    bool elect, once;
    const char *pool;
    void (*show)(void *context, const char *pool, const struct effects *effects);
    void *context;
};

extern const struct setup ELECTED, ALONE;

/* The store's fault hook of every bench: a delay, and bench->fault at the write asked for. */
void bench_on_request(void *context, const struct kube_request *request,
                      struct api_fault *fault);
void bench_init(struct bench *bench);
void bench_done(struct bench *bench);
#define BENCH(name)                                                                            \
    __attribute__((cleanup(bench_done))) struct bench name;                                    \
    bench_init(&name)

void process_start(struct bench *bench, int index, const struct setup *setup);
void process_end(struct process *process);
/* Time goes on for all processes that run; one that was killed is taken away. */
void pass(struct bench *bench, int64_t time_ns);
void put_pool(struct bench *bench, const char *name, int pods);
size_t count_log(const struct bench *bench, const char *prefix);
/* The pool's pods, each made exactly once, and the Service that counts them. */
void is_settled(struct bench *bench, int pods, size_t made);

#endif
