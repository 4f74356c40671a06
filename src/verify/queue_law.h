/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue rule worked out numerically, by another road than the planner's: there the
 * number of requests at a batch's start is followed, here the time.
 *
 * One process: let r be the time that the first request of a batch still has to wait for
 * the process when it arrives (0: it finds it free). With r alone the batch is known, and
 * so is the next r: a Markov chain on the times. Batches of one on c processes: with one
 * constant service time D the requests may be dealt out in turn, so each process is the
 * recursion W' = max(W + D - Erlang(c), 0) (E_c/D/1) and r is the wait W.
 *
 * docs/spec/latency-rules.md has the equations. Times in ms.
 */
#ifndef TRANCHE_VERIFY_QUEUE_LAW_H
#define TRANCHE_VERIFY_QUEUE_LAW_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "verify/check.h"

enum { QUEUE_LAW_BATCH_MAX = 1024, QUEUE_LAW_GROUPS_MAX = 64 };

/* Gauss-Legendre points of a panel of the grid. */
enum { QUEUE_LAW_POINTS = 10 };

/* A law of r: an atom at 0, max(S_g - Exp(rate), 0) of weight fresh[g] for the batch after
 * one of group g that left nobody waiting, and a density on the grid for the rest. */
struct queue_start {
    double fresh[QUEUE_LAW_GROUPS_MAX]; /* includes what falls on the atom */
    double atom;                        /* on top of that */
    double *density;                    /* at the grid's points; geometric beyond */
};

struct queue_law {
    struct queue_case queue;
    double rate;  /* per ms */
    int unit;     /* arrivals per step of the recursion: batch, or processes */
    int groups;   /* of batch sizes with one service time */
    double floor; /* the grid begins at this r: S(batch), or 0 */
    int panels;
    double *edges; /* panels + 1, of r - floor */
    double *at, *weight;
    double decay; /* per ms, beyond the grid */
    bool has_tail;
    double points[QUEUE_LAW_POINTS], weights[QUEUE_LAW_POINTS], hats[QUEUE_LAW_POINTS];
    double *log_factorial; /* 0 … unit + 1 */
    double *chance, *chance_late, *filled;
    struct queue_start start;
};

/* Whether there is such a law, of a size that can be worked out: one process or batches of
 * one, and no batch takes more than four times a full one. */
bool queue_law_covers(const struct queue_case *queue);

/* NULL at or above the rate that can be sustained. The case's arrays are borrowed. */
struct queue_law *queue_law_new(const struct queue_case *queue);
void queue_law_free(struct queue_law *law); /* NULL is fine */
CLEANUP_DEFINE_FREE(queue_law)

/* The share of requests that take longer than limit_ms, 0 … 1. */
double queue_law_late(struct queue_law *law, double limit_ms);
/* The mean time of a request, ms, waits included. */
double queue_law_mean_ms(struct queue_law *law);

/* Calls visit with points r and the mass of law at them, such that sums of mass x f(r) are
 * integrals of f: smooth but at `breaks` (any order), linear from `linear` on. */
struct queue_walk {
    const struct queue_start *start;
    const double *breaks;
    int break_count;
    double linear;
    void (*visit)(void *context, double r, double mass);
    void *context;
};
/* The walk borrows all that it is given; visit may not change the law's start. */
void queue_law_walk(const struct queue_law *law, const struct queue_walk *walk);

/* values[k] = P(Poisson(mean) = k), k < count <= unit + 2. */
void queue_law_poisson(const struct queue_law *law, double mean, int count, double *values);
/* The time, ms, for which a batch of group g holds its process. */
double queue_law_service(const struct queue_law *law, int group);
/* The time, ms, that the requests of a batch of group g take from its start. */
double queue_law_time(const struct queue_law *law, int group);
/* The largest size of a batch of group g; the last group ends with batch_max. */
int queue_law_group_end(const struct queue_law *law, int group);

/* The mean number of arrivals by which a batch is full for certain (to 1e-12). */
double queue_law_certain(const struct queue_law *law);

#endif
