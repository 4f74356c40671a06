/* SPDX-License-Identifier: Apache-2.0
 *
 * One queueing system at one arrival rate, as queue.c hands it to its methods.
 */
#ifndef TRANCHE_PLAN_QUEUE_CASE_H
#define TRANCHE_PLAN_QUEUE_CASE_H

enum { QUEUE_GROUPS_MAX = 64 };

/* Batches of `from` … `to` requests take one time. */
struct queue_group {
    int from, to;
    double service_ms; /* how long one keeps its process from starting another */
    double total_ms;   /* how long its requests take from its start */
};

struct queue_case {
    int procs;
    int batch;       /* b */
    double wait_ms;  /* longest the oldest waits for its batch to fill */
    double rate;     /* requests per ms */
    int group_count; /* they cover 1 … b without gaps, in rising order */
    const struct queue_group *groups;
};

/* The group of full batches. */
static inline const struct queue_group *queue_last_group(const struct queue_case *system)
{
    return &system->groups[system->group_count - 1];
}

/* What to measure of each request: whether it takes longer than limit_ms, or how long. */
enum queue_measure { QUEUE_LATE, QUEUE_MEAN };

#endif
