/* SPDX-License-Identifier: Apache-2.0
 *
 * Walking the labellings: slots of one kind are alike, so a pattern's labellings are, slot
 * kind by slot kind, the ways to share its count among the services. Scores are sums of
 * the services' parts and are taken at the leaves; a branch is left where even the best rest,
 * every slot at the service that gains most from it and nothing capped, would not make it
 * into the list.
 */
#include "plan/candidates.h"

#include <assert.h>
#include <string.h>

struct walk {
    const struct arm *arm;
    const struct arm_state *state;
    int services[CANDIDATE_SERVICES_MAX]; /* the one that gains most from a GPU first */
    int service_count;
    const struct arm_pattern *pattern;
    double missing[CANDIDATE_SERVICES_MAX];
    double utility[CANDIDATE_SERVICES_MAX];
    int given[MIG_INSTANCES_MAX][CANDIDATE_SERVICES_MAX]; /* by slot of the pattern, service */
    double slot_best[MIG_INSTANCES_MAX];     /* most that one slot of a kind can score */
    double rest_best[MIG_INSTANCES_MAX + 1]; /* … and all slots from a kind on */
    bool is_capped; /* some service is almost satisfied: see arm_worth() */
    struct candidate *best;
    int count, most;
};

static struct solution_gpu make_gpu(const struct walk *walk)
{
    struct solution_gpu gpu = {.kind = walk->pattern->kind};
    assert(walk->service_count > 0);
    for (int k = 0; k < walk->pattern->slot_count; k++)
        for (int m = 0; m < walk->service_count; m++) {
            int slot = walk->pattern->slots[k];
            bool useful =
                arm_share(walk->arm, walk->services[m], slot) > 0 && walk->missing[m] > 0;
            for (int i = 0; i < walk->given[k][m] && useful; i++)
                gpu.items[gpu.count++] =
                    (struct solution_item){.slot = slot, .service = walk->services[m]};
        }
    assert(gpu.count <= MIG_INSTANCES_MAX);
    return gpu;
}

static bool is_same(const struct solution_gpu *a, const struct solution_gpu *b)
{
    return a->kind == b->kind && a->count == b->count &&
           memcmp(a->items, b->items, (size_t)a->count * sizeof *a->items) == 0;
}

/* Keeps the labelling if it is among the best; the first found wins a tie. */
static void keep_leaf(struct walk *walk, double uncapped)
{
    double score = walk->is_capped ? 0 : uncapped;
    for (int m = 0; m < walk->service_count && walk->is_capped; m++)
        score += arm_worth(walk->arm, walk->services[m], walk->missing[m], walk->utility[m]);
    score /= walk->pattern->price;
    assert(walk->count <= walk->most);
    if (score <= 0 || (walk->count == walk->most && score <= walk->best[walk->most - 1].score))
        return;
    struct candidate found = {.score = score, .gpu = make_gpu(walk)};
    for (int i = 0; i < walk->count; i++)
        if (walk->best[i].score == score && is_same(&walk->best[i].gpu, &found.gpu))
            return;
    int at = walk->count < walk->most ? walk->count++ : walk->most - 1;
    for (; at > 0 && walk->best[at - 1].score < score; at--)
        walk->best[at] = walk->best[at - 1];
    walk->best[at] = found;
}

/* What the score must pass to be kept, times the price. */
static double threshold(const struct walk *walk)
{
    assert(walk->count <= walk->most);
    return walk->count < walk->most ? 0
                                    : walk->best[walk->most - 1].score * walk->pattern->price;
}

/* Shares `left` slots of the k-th kind among the services from m on, then goes on; `score`
 * is what the slots given so far score at most. */
static void walk_slots(struct walk *walk, int k, int m, int left, double score)
{
    assert(m >= 0 && m < walk->service_count);
    const struct arm_pattern *pattern = walk->pattern;
    assert(k <= pattern->slot_count && left >= 0);
    if (k == pattern->slot_count) {
        keep_leaf(walk, score);
        return;
    }
    /* Nothing in this branch can make it into the list; the factor lets ties by rounding
     * pass. */
    if (score + left * walk->slot_best[k] + walk->rest_best[k + 1] <=
        threshold(walk) * (1 - 1e-12))
        return;
    double share = arm_share(walk->arm, walk->services[m], pattern->slots[k]);
    double before = walk->utility[m];
    bool last = m == walk->service_count - 1;
    for (int take = left; take >= (last ? left : 0); take--) {
        double more = score + take * share * walk->missing[m];
        walk->given[k][m] = take;
        walk->utility[m] = before + take * share;
        if (!last)
            walk_slots(walk, k, m + 1, left - take, more);
        else
            walk_slots(walk, k + 1, 0, k + 1 < pattern->slot_count ? pattern->counts[k + 1] : 0,
                       more);
    }
    walk->given[k][m] = 0;
    walk->utility[m] = before;
}

static void walk_pattern(struct walk *walk, const struct arm_pattern *pattern)
{
    assert(pattern->slot_count > 0 && pattern->slot_count <= MIG_INSTANCES_MAX);
    walk->pattern = pattern;
    walk->rest_best[pattern->slot_count] = 0;
    for (int k = pattern->slot_count - 1; k >= 0; k--) {
        walk->slot_best[k] = 0;
        for (int m = 0; m < walk->service_count; m++) {
            double value =
                walk->missing[m] * arm_share(walk->arm, walk->services[m], pattern->slots[k]);
            if (value > walk->slot_best[k])
                walk->slot_best[k] = value;
        }
        walk->rest_best[k] = walk->rest_best[k + 1] + pattern->counts[k] * walk->slot_best[k];
    }
    if (walk->rest_best[0] > threshold(walk))
        walk_slots(walk, 0, 0, pattern->counts[0], 0);
}

static void add_service(struct walk *walk, int service)
{
    assert(walk->service_count < CANDIDATE_SERVICES_MAX);
    double missing = arm_missing(walk->state, service);
    double gain = missing * walk->arm->gpu_share[service];
    int at = walk->service_count++;
    for (;
         at > 0 && walk->missing[at - 1] * walk->arm->gpu_share[walk->services[at - 1]] < gain;
         at--) {
        walk->services[at] = walk->services[at - 1];
        walk->missing[at] = walk->missing[at - 1];
    }
    walk->services[at] = service;
    walk->missing[at] = missing;
    walk->is_capped |= arm_is_almost(walk->arm, service, missing);
}

int candidates_top(const struct arm *arm, const struct arm_state *state, const int *services,
                   int service_count, struct candidate *ret_candidates, int most)
{
    assert(service_count >= 1 && service_count <= CANDIDATE_SERVICES_MAX && most >= 1);
    struct walk walk = {.arm = arm, .state = state, .best = ret_candidates, .most = most};
    for (int m = 0; m < service_count; m++)
        add_service(&walk, services[m]);
    for (size_t p = 0; p < arm->patterns.count; p++) {
        if (arm_has_stock(arm, state, arm->patterns.data[p].kind))
            walk_pattern(&walk, &arm->patterns.data[p]);
    }
    assert(walk.count >= 0 && walk.count <= most);
    return walk.count;
}

/* Adds up what a GPU gives each of the services on it. */
struct tally {
    int count;
    int services[MIG_INSTANCES_MAX];
    double utility[MIG_INSTANCES_MAX];
};

static int tally_find(struct tally *tally, int service)
{
    for (int i = 0; i < tally->count; i++)
        if (tally->services[i] == service)
            return i;
    assert(tally->count < MIG_INSTANCES_MAX);
    tally->services[tally->count] = service;
    tally->utility[tally->count] = 0;
    return tally->count++;
}

double candidates_score(const struct arm *arm, const struct arm_state *state,
                        const struct solution_gpu *gpu)
{
    struct tally tally = {0};
    double score = 0, price = 0;
    for (size_t p = 0; p < arm->patterns.count && price == 0; p++)
        if (arm->patterns.data[p].kind == gpu->kind)
            price = arm->patterns.data[p].price;
    for (int k = 0; k < gpu->count; k++)
        tally.utility[tally_find(&tally, gpu->items[k].service)] +=
            arm_share(arm, gpu->items[k].service, gpu->items[k].slot);
    for (int i = 0; i < tally.count; i++)
        score += arm_worth(arm, tally.services[i], arm_missing(state, tally.services[i]),
                           tally.utility[i]);
    assert(price > 0);
    return score / price;
}

/* The services that gain most from one slot of a kind on an empty GPU, the best first; of
 * equals the first in the file. One more than a GPU has instances, so that one of them is
 * not on it yet. */
enum { TOPS = MIG_INSTANCES_MAX + 1 };

struct tops {
    int count;
    int services[TOPS];
    double worth[TOPS];
};

static double slot_worth(double missing, double share)
{
    assert(missing >= 0 && share >= 0);
    return missing * (share < missing ? share : missing);
}

static void add_top(struct tops *tops, int service, double worth)
{
    assert(worth > 0 && tops->count <= TOPS);
    if (tops->count == TOPS && worth <= tops->worth[TOPS - 1])
        return;
    int at = tops->count < TOPS ? tops->count++ : TOPS - 1;
    for (; at > 0 && tops->worth[at - 1] < worth; at--) {
        tops->services[at] = tops->services[at - 1];
        tops->worth[at] = tops->worth[at - 1];
    }
    tops->services[at] = service;
    tops->worth[at] = worth;
}

/* By slot kind; one pass over the services, instead of one for each slot of each pattern. */
static void find_tops(const struct arm *arm, const struct arm_state *state, struct tops *tops)
{
    assert(arm->slot_count <= PROBLEM_SLOTS_MAX);
    for (int s = 0; s < arm->slot_count; s++)
        tops[s].count = 0;
    for (int i = 0; i < arm->service_count; i++) {
        double missing = arm_missing(state, i);
        for (int s = 0; missing > 0 && s < arm->slot_count; s++) {
            double worth = slot_worth(missing, arm_share(arm, i, s));
            if (worth > 0)
                add_top(&tops[s], i, worth);
        }
    }
}

static bool has_service(const struct tally *tally, int service)
{
    for (int n = 0; n < tally->count; n++)
        if (tally->services[n] == service)
            return true;
    return false;
}

/* The service that gains most from one more slot of this kind on the GPU; -1: none. Without
 * tops, only those on the GPU already, in their order there; else the first in the file of
 * equals. */
static int neediest(const struct arm *arm, const struct arm_state *state, int slot,
                    const struct tally *tally, const struct tops *tops)
{
    assert(slot >= 0 && slot < arm->slot_count);
    int best = -1;
    double best_worth = 0;
    for (int n = 0; n < tally->count; n++) {
        int service = tally->services[n];
        double missing = arm_missing(state, service) - tally->utility[n];
        double share = arm_share(arm, service, slot);
        double worth = share > 0 && missing > 0 ? slot_worth(missing, share) : 0;
        if (worth > best_worth || (tops && worth == best_worth && service < best)) {
            best_worth = worth;
            best = service;
        }
    }
    for (int n = 0; tops && n < tops->count; n++) {
        int service = tops->services[n];
        if (has_service(tally, service))
            continue;
        if (tops->worth[n] > best_worth || (tops->worth[n] == best_worth && service < best))
            best = service;
        break; /* the others gain less, or come later */
    }
    return best;
}

struct candidate candidates_mix(const struct arm *arm, const struct arm_state *state,
                                int service_limit)
{
    assert(service_limit >= 1);
    struct candidate best = {.score = 0};
    struct tops tops[PROBLEM_SLOTS_MAX];
    find_tops(arm, state, tops);
    for (size_t p = 0; p < arm->patterns.count; p++) {
        const struct arm_pattern *pattern = &arm->patterns.data[p];
        struct candidate made = {.gpu = {.kind = pattern->kind}};
        struct tally tally = {0};
        if (!arm_has_stock(arm, state, pattern->kind))
            continue;
        for (int k = 0; k < pattern->slot_count; k++)
            for (int i = 0; i < pattern->counts[k]; i++) {
                int slot = pattern->slots[k];
                int service = neediest(arm, state, slot, &tally,
                                       tally.count < service_limit ? &tops[slot] : NULL);
                if (service < 0)
                    continue;
                tally.utility[tally_find(&tally, service)] += arm_share(arm, service, slot);
                assert(made.gpu.count < MIG_INSTANCES_MAX);
                made.gpu.items[made.gpu.count++] =
                    (struct solution_item){.slot = slot, .service = service};
            }
        for (int i = 0; i < tally.count; i++)
            made.score += arm_worth(arm, tally.services[i],
                                    arm_missing(state, tally.services[i]), tally.utility[i]);
        made.score /= pattern->price;
        if (made.score > best.score)
            best = made;
    }
    return best;
}
