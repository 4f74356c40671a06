/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact planner against brute force: on small random problems of every board, with
 * prices, stock, numbers of instances and reserved slices, the cost is the least of all
 * combinations of at most three GPUs.
 */
#include "support.h"

#include <math.h>

enum {
    CASES = 400,
    GPUS_MOST = 3,
    PROFILES_MOST = 4,
    SERVICES_MOST = 3,
    PATTERNS_MOST = 400,
    BOARDS_MOST = 128
};

/* A random problem as text, and its numbers for the oracle. */
struct small {
    const struct mig_board *boards[2];
    int board_count;
    int stock[2]; /* -1: unlimited */
    double price[2];
    int profiles[2][PROFILES_MOST];
    int profile_count[2];
    int service_count;
    double demand[SERVICES_MOST];
    int instances_min[SERVICES_MOST];
    double rate[SERVICES_MOST][2][PROFILES_MOST]; /* 0: cannot run */
    struct str yaml, csv;
};

/* The first board is given, so that every one is drawn; the second is by chance. */
static void choose_boards(struct small *small, size_t first, struct rng *rng)
{
    small->board_count = 1 + (int)rng_below(rng, 2);
    for (int b = 0; b < small->board_count; b++) {
        do
            small->boards[b] = mig_board_at(b == 0 ? first : rng_below(rng, mig_board_count()));
        while (b == 1 && small->boards[0] == small->boards[1]);
        small->stock[b] = rng_below(rng, 3) == 0 ? (int)rng_below(rng, 4) : -1;
        small->price[b] = rng_below(rng, 2) ? 1 : 0.25 * (double)(1 + rng_below(rng, 12));
        small->profile_count[b] = 0;
        for (int p = 0; p < small->boards[b]->profile_count; p++)
            if (rng_below(rng, 3) > 0 && small->profile_count[b] < PROFILES_MOST)
                small->profiles[b][small->profile_count[b]++] = p;
        if (small->profile_count[b] == 0)
            small->profiles[b][small->profile_count[b]++] = 0;
    }
}

static void choose_services(struct small *small, struct rng *rng)
{
    small->service_count = 1 + (int)rng_below(rng, SERVICES_MOST);
    str_add(&small->csv, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n");
    str_add(&small->yaml, "latency_rule: batch\nservices:\n");
    for (int i = 0; i < small->service_count; i++) {
        small->instances_min[i] = rng_below(rng, 5) == 0 ? 2 : 1;
        small->demand[i] = (double)(1 + rng_below(rng, 120));
        str_addf(&small->yaml,
                 "- {name: s%d, model: m%d, rate_rps: %g, latency_ms: 50, min_instances: %d}\n",
                 i, i, small->demand[i], small->instances_min[i]);
        for (int b = 0; b < small->board_count; b++) {
            for (int k = 0; k < small->profile_count[b]; k++) {
                const struct mig_profile *profile =
                    &small->boards[b]->profiles[small->profiles[b][k]];
                int slices = profile->compute_slices > 0 ? profile->compute_slices : 4;
                bool fast = rng_below(rng, 5) > 0;
                double rate = (double)(slices * 10) + (double)rng_below(rng, 12) - 3;
                small->rate[i][b][k] = fast ? rate : 0;
                str_addf(&small->csv, "m%d,%s,%s,1,1,%g,%d\n", i, small->boards[b]->slug,
                         profile->name, rate, fast ? 50 : 51);
            }
        }
    }
    str_add(&small->yaml, "fleet:\n");
    for (int b = 0; b < small->board_count; b++) {
        str_addf(&small->yaml, "- {board: %s, price: %g", small->boards[b]->slug,
                 small->price[b]);
        if (small->stock[b] >= 0)
            str_addf(&small->yaml, ", count: %d", small->stock[b]);
        str_add(&small->yaml, "}\n");
    }
}

/* ---- the oracle ---- */

struct pattern {
    int board;
    int counts[PROFILES_MOST];
};

struct oracle {
    const struct small *small;
    struct pattern patterns[PATTERNS_MOST];
    int pattern_count;
    double best;
};

/* Every multiset of the chosen profiles that can be placed, not the maximal ones alone. */
static void list_patterns(struct oracle *oracle, int board, struct pattern *pattern, int at)
{
    const struct small *small = oracle->small;
    const struct mig_board *table = small->boards[board];
    int counts[MIG_PROFILES_MAX] = {0}, total = 0;
    for (int k = 0; k < small->profile_count[board]; k++) {
        counts[small->profiles[board][k]] += pattern->counts[k];
        total += pattern->counts[k];
    }
    if (total > MIG_INSTANCES_MAX || !mig_multiset_place(table, counts, NULL))
        return;
    if (at == small->profile_count[board]) {
        if (total > 0 && oracle->pattern_count < PATTERNS_MOST)
            oracle->patterns[oracle->pattern_count++] = *pattern;
        return;
    }
    for (pattern->counts[at] = 0; pattern->counts[at] <= MIG_INSTANCES_MAX;
         pattern->counts[at]++) {
        int before = oracle->pattern_count;
        list_patterns(oracle, board, pattern, at + 1);
        if (oracle->pattern_count == before && pattern->counts[at] > 0)
            break;
    }
    pattern->counts[at] = 0;
}

/* Whether the slots can be shared among the services from `service` on. */
static bool can_share(const struct small *small, int service, int left[2][PROFILES_MOST], int b,
                      int k, double rate, int instances)
{
    if (service == small->service_count)
        return true;
    if (rate >= small->demand[service] * (1 - 1e-9) &&
        instances >= small->instances_min[service])
        return can_share(small, service + 1, left, 0, 0, 0, 0);
    if (b == small->board_count)
        return false;
    if (k == small->profile_count[b])
        return can_share(small, service, left, b + 1, 0, rate, instances);
    int have = small->rate[service][b][k] > 0 ? left[b][k] : 0;
    for (int take = 0; take <= have; take++) {
        left[b][k] -= take;
        bool can = can_share(small, service, left, b, k + 1,
                             rate + take * small->rate[service][b][k], instances + take);
        left[b][k] += take;
        if (can)
            return true;
    }
    return false;
}

static void add_gpus(struct oracle *oracle, int first, int left[2][PROFILES_MOST], int used[2],
                     double cost)
{
    const struct small *small = oracle->small;
    if (cost >= oracle->best - 1e-9)
        return;
    if (can_share(small, 0, left, 0, 0, 0, 0)) {
        oracle->best = cost;
        return;
    }
    if (used[0] + used[1] == GPUS_MOST)
        return;
    for (int p = first; p < oracle->pattern_count; p++) {
        const struct pattern *pattern = &oracle->patterns[p];
        int b = pattern->board;
        if (small->stock[b] >= 0 && used[b] >= small->stock[b])
            continue;
        used[b]++;
        for (int k = 0; k < small->profile_count[b]; k++)
            left[b][k] += pattern->counts[k];
        add_gpus(oracle, p, left, used, cost + small->price[b]);
        for (int k = 0; k < small->profile_count[b]; k++)
            left[b][k] -= pattern->counts[k];
        used[b]--;
    }
}

/* Drops patterns that lie in another of the same board: they never cost less. */
static void drop_dominated(struct oracle *oracle)
{
    int kept = 0;
    for (int p = 0; p < oracle->pattern_count; p++) {
        bool dominated = false;
        for (int q = 0; q < oracle->pattern_count && !dominated; q++) {
            bool within = p != q && oracle->patterns[p].board == oracle->patterns[q].board;
            bool equal = true;
            for (int k = 0; within && k < PROFILES_MOST; k++) {
                within = oracle->patterns[p].counts[k] <= oracle->patterns[q].counts[k];
                equal &= oracle->patterns[p].counts[k] == oracle->patterns[q].counts[k];
            }
            dominated = within && !equal;
        }
        if (!dominated)
            oracle->patterns[kept++] = oracle->patterns[p];
    }
    oracle->pattern_count = kept;
}

static double least_cost(const struct small *small)
{
    struct oracle oracle = {.small = small, .best = INFINITY};
    int left[2][PROFILES_MOST] = {{0}}, used[2] = {0};
    for (int b = 0; b < small->board_count; b++) {
        struct pattern pattern = {.board = b};
        list_patterns(&oracle, b, &pattern, 0);
    }
    drop_dominated(&oracle);
    add_gpus(&oracle, 0, left, used, 0);
    return oracle.best;
}

static bool can_run_everywhere(const struct small *small)
{
    for (int i = 0; i < small->service_count; i++) {
        bool runs = false;
        for (int b = 0; b < small->board_count; b++)
            for (int k = 0; k < small->profile_count[b]; k++)
                runs |= small->rate[i][b][k] > 0;
        if (!runs)
            return false;
    }
    return true;
}

static void equals_brute_force(void **state)
{
    struct rng rng = rng_seed(test_seed());
    int compared = 0, infeasible = 0, optimal = 0, on_board[BOARDS_MOST] = {0};
    (void)state;
    assert_true(mig_board_count() <= BOARDS_MOST && mig_board_count() * 10 <= CASES);
    for (int n = 0; n < CASES; n++) {
        struct small small = {.yaml = STR_EMPTY, .csv = STR_EMPTY};
        struct inputs inputs;
        struct plan plan;
        choose_boards(&small, (size_t)n % mig_board_count(), &rng);
        choose_services(&small, &rng);
        inputs_read(&inputs, small.yaml.bytes, small.csv.bytes);
        struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
        plan_or_fail(&request, &plan);
        double least = least_cost(&small);
        if (plan.status == PLAN_INFEASIBLE) {
            if (isfinite(least) && can_run_everywhere(&small))
                fail_msg("case %d: infeasible, but %g is possible\n%s%s", n, least,
                         small.yaml.bytes, small.csv.bytes);
            infeasible++;
        } else if (isfinite(least)) {
            /* Many cheap GPUs may cost less than the oracle's three. */
            bool differs = plan.gpus_used > GPUS_MOST ? plan.cost > least + 1e-9
                                                      : fabs(plan.cost - least) > 1e-9;
            if (differs)
                fail_msg("case %d: cost %g, but %g is possible\n%s%s", n, plan.cost, least,
                         small.yaml.bytes, small.csv.bytes);
            if (plan.bound_cost > least + 1e-9)
                fail_msg("case %d: bound %g above %g", n, plan.bound_cost, least);
            compared++;
            on_board[(size_t)n % mig_board_count()]++;
            optimal += plan.status == PLAN_OPTIMAL;
        }
        plan_done(&plan);
        inputs_done(&inputs);
        str_done(&small.yaml);
        str_done(&small.csv);
    }
    print_message("%d compared, %d proved optimal, %d infeasible\n", compared, optimal,
                  infeasible);
    assert_true(compared > CASES / 3);
    assert_int_equal(optimal, compared);
    for (size_t b = 0; b < mig_board_count(); b++)
        if (on_board[b] == 0)
            fail_msg("%s was never compared", mig_board_at(b)->slug);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
