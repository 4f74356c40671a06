/* SPDX-License-Identifier: Apache-2.0
 *
 * A controller's rounds over a fake cluster, with what must hold after every single effect:
 * no service falls below its floor by anything that the controller does, layouts stay legal, no
 * two pods share an instance. The floor is kept here, from what was asked for and seen, and not
 * taken from the controller.
 */
#ifndef TRANCHE_TESTS_CONTROL_SCENARIO_H
#define TRANCHE_TESTS_CONTROL_SCENARIO_H

#include "fake_cluster.h"

enum { SCENARIO_SERVICES_MAX = 8, SCENARIO_PROFILES_MAX = 8, SCENARIO_PAST = 6 };

/* What one compute slice of a board does for a model. */
struct scenario_profile {
    char model[16];
    const struct mig_board *board;
    double rps_a_slice;
};

struct scenario_service {
    char name[16], model[16];
    double rate_rps, floor_rps;
    bool there; /* asked for */
};

struct scenario {
    struct fake_cluster cluster;
    uint64_t seed;
    struct scenario_service services[SCENARIO_SERVICES_MAX];
    int service_count;
    struct scenario_profile profiles[SCENARIO_PROFILES_MAX];
    int profile_count;
    bool was_short; /* the GPUs did not suffice at some time since it settled last */
    struct fake_snapshot past[SCENARIO_PAST]; /* earlier views, the newest first */
    int past_count;
    int actions_max, items_max, piece_gpus;
    json_t *refusals; /* as the controller remembers them */
    unsigned long rounds, effects, checks;
    unsigned long carried_out;               /* effects that reached the API server */
    unsigned long steps_started, steps_done; /* events that say so */
    long die_at;    /* the controller dies once: at this effect of all, from 1; 0: never */
    bool die_after; /* … after it was carried out, else before */
    bool verbose;
    long long epoch;            /* of the rounds of scenario_settle() */
    bool gateway;               /* services that are added have one */
    const char *pool;           /* of what is added and run from now on; NULL: "pool" */
    unsigned long nodes_shared; /* events that say so */
};

/* What befalls a round. */
struct scenario_round {
    long long epoch;      /* 0: 1 */
    int stop_at;          /* the controller dies at this effect, from 0; -1: it lives */
    bool stop_after;      /* … after it was carried out, else before */
    bool twice;           /* every effect is carried out twice */
    int age;              /* so many snapshots old is the view; 0: fresh */
    unsigned stale_kinds; /* bits of enum fake_kind that are that old; 0: all */
    bool says_stale;      /* the caches know it */
};
#define SCENARIO_ROUND_PLAIN ((struct scenario_round){.stop_at = -1})

void scenario_init(struct scenario *scenario, uint64_t seed);
void scenario_done(struct scenario *scenario);
/* A PerfProfile of a model for a board: rates go with the compute slices. */
void scenario_add_profile(struct scenario *scenario, const char *model, const char *board,
                          double rps_a_slice);
void scenario_add_pool(struct scenario *scenario, int spare_gpus, const char *more);
/* A pool with one spare GPU, models bert and resnet measured, nodes of so many a100-40gb. */
void scenario_set_up(struct scenario *scenario, int nodes, int gpus);
/* metadata.resourceVersion of the node's NodeGpuState: another one after each write. */
const char *scenario_state_version(const struct scenario *scenario, const char *node);
/* Adds or changes a service; rate 0 deletes it. */
void scenario_set_service(struct scenario *scenario, const char *name, const char *model,
                          double rate_rps);
/* A new template: the pods have to be made anew. */
void scenario_set_template(struct scenario *scenario, const char *name, int number);

/* One round; returns how many effects it asked for. Fails the test where something is broken.
 */
size_t scenario_run(struct scenario *scenario, const struct scenario_round *round);
/* The cluster's own work; lowers floors by what crashed or was lost. */
void scenario_tick(struct scenario *scenario, int seconds);
void scenario_set_node(struct scenario *scenario, size_t node, bool up);
/* Rounds and ticks until two rounds in a row have nothing to do; false: not within `rounds`. */
bool scenario_settle(struct scenario *scenario, int rounds);
/* All that must be so in the end. Fails the test. Returns whether the plan is reached (else no
 * safe transition to it exists, which the pool says). */
bool scenario_check_end(struct scenario *scenario);
double scenario_capacity(const struct scenario *scenario, const char *name);

#endif
