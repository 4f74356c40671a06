/* SPDX-License-Identifier: Apache-2.0
 *
 * `--from` against brute force: on small random problems the plan keeps the most instances
 * that any plan of its cost can keep, and what it states as the bound is one. The oracle
 * tries every set of instances to keep, every way to fill the GPUs beside them by starts,
 * and every way to share the slots among the services.
 */
#include "support.h"

#include <math.h>

#include "mig/layout.h"

enum {
    CASES = 120,
    CASES_MANY = 12,
    SERVICES = 3,
    GPUS_MOST = 3,
    INSTANCES_MOST = 14,
    FILLS_MOST = 200,
    PROFILES = 5
};

static const char *const slices[PROFILES] = {"1g", "2g", "3g", "4g", "7g"};

struct keep_case {
    const struct mig_board *board;
    int profiles[PROFILES];
    double rate_rps[SERVICES][PROFILES];
    double demand_rps[SERVICES];
    struct str csv;
};

struct fill {
    int counts[PROFILES];
};

struct fill_list {
    struct fill fills[FILLS_MOST];
    int count;
};

struct oracle {
    const struct keep_case *drawn;
    const struct plan *old;
    int gpus; /* that the plan may use */
    struct fill_list *beside[GPUS_MOST];
    struct fill_list empty;
};

static void draw_rows(struct keep_case *drawn, struct rng *rng)
{
    drawn->board = mig_board_find("a100-40gb");
    str_add(&drawn->csv, "model,board,slice,batch,procs,throughput_rps,latency_ms_p99\n");
    for (int k = 0; k < PROFILES; k++)
        drawn->profiles[k] = mig_profile_find(drawn->board, slices[k]);
    for (int i = 0; i < SERVICES; i++)
        for (int k = 0; k < PROFILES; k++) {
            int compute = drawn->board->profiles[drawn->profiles[k]].compute_slices;
            int slower = i == 0 ? 0 : compute - 1; /* two services that want small slices */
            drawn->rate_rps[i][k] = 10 * compute - slower + (double)rng_below(rng, 9) - 4;
            str_addf(&drawn->csv, "m%d,a100-40gb,%s,1,1,%g,50\n", i, slices[k],
                     drawn->rate_rps[i][k]);
        }
}

static void draw_services(struct keep_case *drawn, double least_rps, struct rng *rng,
                          struct str *yaml)
{
    str_add(yaml, "latency_rule: batch\nservices:\n");
    for (int i = 0; i < SERVICES; i++) {
        drawn->demand_rps[i] = least_rps + (double)rng_below(rng, 30);
        str_addf(yaml, "- {name: s%d, model: m%d, rate_rps: %g, latency_ms: 50}\n", i, i,
                 drawn->demand_rps[i]);
    }
}

/* ---- the oracle ---- */

static void add_fill(struct fill_list *list, const struct fill *fill)
{
    for (int f = 0; f < list->count; f++)
        if (memcmp(&list->fills[f], fill, sizeof *fill) == 0)
            return;
    assert_true(list->count < FILLS_MOST);
    list->fills[list->count++] = *fill;
}

/* Adds instances to a layout by profile and start until none fits. */
static void fill_gpu(const struct keep_case *drawn, const struct mig_layout *layout, int first,
                     struct fill *fill, struct fill_list *list)
{
    bool full = true;
    for (int at = 0; at < PROFILES * 8; at++) {
        struct mig_instance added = {(int8_t)drawn->profiles[at / 8], (int8_t)(at % 8)};
        struct mig_layout more = *layout;
        if (!mig_layout_can_add(drawn->board, layout, added))
            continue;
        full = false;
        if (at < first)
            continue;
        mig_layout_add(drawn->board, &more, added);
        fill->counts[at / 8]++;
        fill_gpu(drawn, &more, at, fill, list);
        fill->counts[at / 8]--;
    }
    if (full)
        add_fill(list, fill);
}

static void fill_beside(struct oracle *oracle, size_t g)
{
    const struct plan_gpu *gpu = &oracle->old->gpus.data[g];
    unsigned sets = 1u << gpu->instances.count;
    oracle->beside[g] = xcalloc(sets, sizeof *oracle->beside[g]);
    for (unsigned set = 0; set < sets; set++) {
        struct mig_layout layout = {0};
        struct fill fill = {{0}};
        for (size_t i = 0; i < gpu->instances.count; i++)
            if (set & 1u << i)
                mig_layout_add(oracle->drawn->board, &layout,
                               (struct mig_instance){(int8_t)gpu->instances.data[i].profile,
                                                     (int8_t)gpu->instances.data[i].start});
        fill_gpu(oracle->drawn, &layout, 0, &fill, &oracle->beside[g][set]);
    }
}

static bool can_share(const struct keep_case *drawn, const double *need_rps, int service,
                      int *left, int k, double rate_rps)
{
    if (service == SERVICES)
        return true;
    if (rate_rps >= need_rps[service] - drawn->demand_rps[service] * 1e-9)
        return can_share(drawn, need_rps, service + 1, left, 0, 0);
    if (k == PROFILES)
        return false;
    for (int take = 0; take <= left[k]; take++) {
        left[k] -= take;
        bool can = can_share(drawn, need_rps, service, left, k + 1,
                             rate_rps + take * drawn->rate_rps[service][k]);
        left[k] += take;
        if (can)
            return true;
    }
    return false;
}

/* Every choice of fills: of the old GPUs from g on by what they keep, then of empty ones. */
static bool can_fill(const struct oracle *oracle, unsigned set, size_t g, int used,
                     const double *need_rps, int *left)
{
    size_t old = oracle->old->gpus.count;
    if (g >= old && used == oracle->gpus)
        return can_share(oracle->drawn, need_rps, 0, left, 0, 0);
    const struct fill_list *list = &oracle->empty;
    unsigned rest = set;
    if (g < old) {
        size_t count = oracle->old->gpus.data[g].instances.count;
        rest = set >> count;
        if ((set & ((1u << count) - 1)) == 0)
            return can_fill(oracle, rest, g + 1, used, need_rps, left);
        list = &oracle->beside[g][set & ((1u << count) - 1)];
    }
    for (int f = 0; f < list->count && used < oracle->gpus; f++) {
        for (int k = 0; k < PROFILES; k++)
            left[k] += list->fills[f].counts[k];
        bool can = can_fill(oracle, rest, g + 1, used + 1, need_rps, left);
        for (int k = 0; k < PROFILES; k++)
            left[k] -= list->fills[f].counts[k];
        if (can)
            return true;
    }
    return false;
}

static bool can_keep(const struct oracle *oracle, unsigned set)
{
    double need_rps[SERVICES];
    int left[PROFILES] = {0}, bit = 0;
    memcpy(need_rps, oracle->drawn->demand_rps, sizeof need_rps);
    for (size_t g = 0; g < oracle->old->gpus.count; g++)
        for (size_t i = 0; i < oracle->old->gpus.data[g].instances.count; i++, bit++) {
            const struct plan_instance *instance = &oracle->old->gpus.data[g].instances.data[i];
            for (int k = 0; k < PROFILES && set & 1u << bit; k++)
                if (oracle->drawn->profiles[k] == instance->profile)
                    need_rps[instance->service] -=
                        oracle->drawn->rate_rps[instance->service][k];
        }
    return can_fill(oracle, set, 0, 0, need_rps, left);
}

static int most_kept(const struct keep_case *drawn, const struct plan *old, int gpus,
                     int instances)
{
    struct oracle oracle = {.drawn = drawn, .old = old, .gpus = gpus};
    struct mig_layout layout = {0};
    struct fill fill = {{0}};
    int most = -1;
    fill_gpu(drawn, &layout, 0, &fill, &oracle.empty);
    for (size_t g = 0; g < old->gpus.count; g++)
        fill_beside(&oracle, g);
    for (int kept = instances; kept >= 0 && most < 0; kept--)
        for (unsigned set = 0; set < 1u << instances && most < 0; set++)
            if (__builtin_popcount(set) == kept && can_keep(&oracle, set))
                most = kept;
    for (size_t g = 0; g < old->gpus.count; g++)
        free(oracle.beside[g]);
    return most;
}

static void make_plan(const struct keep_case *drawn, const struct str *yaml,
                      const struct plan *from, struct plan *plan)
{
    struct inputs inputs;
    inputs_read(&inputs, yaml->bytes, drawn->csv.bytes);
    struct plan_request request = plan_request_default(&inputs.services, &inputs.rows);
    request.from = from;
    plan_or_fail(&request, plan);
    inputs_done(&inputs);
}

static int changes_number(const struct plan *plan, const char *name)
{
    json_t *number = json_object_get(json_object_get(plan->extra, "changes"), name);
    assert_non_null(number);
    return (int)json_integer_value(number);
}

static void keeps_as_many_as_brute_force(void **state)
{
    struct rng rng = rng_seed(test_seed());
    int compared = 0, moved = 0, proved = 0, many = 0;
    (void)state;
    for (int n = 0; n < CASES; n++) {
        struct keep_case drawn = {.csv = STR_EMPTY};
        CLEANUP(str_done) struct str before = STR_EMPTY;
        CLEANUP(str_done) struct str after = STR_EMPTY;
        struct plan old, plan;
        int instances = 0;
        draw_rows(&drawn, &rng);
        draw_services(&drawn, n % 2 ? 35 : 5, &rng, &before);
        make_plan(&drawn, &before, NULL, &old);
        draw_services(&drawn, n % 3 ? 30 : 5, &rng, &after);
        make_plan(&drawn, &after, &old, &plan);
        for (size_t g = 0; g < old.gpus.count; g++)
            instances += (int)old.gpus.data[g].instances.count;
        if (instances <= INSTANCES_MOST && old.gpus.count <= GPUS_MOST &&
            plan.gpus_used <= GPUS_MOST && plan.status == PLAN_OPTIMAL) {
            int most = most_kept(&drawn, &old, plan.gpus_used, instances);
            int kept = changes_number(&plan, "kept");
            int bound = changes_number(&plan, "kept_bound");
            if (kept != most || bound < most)
                fail_msg("case %d: kept %d, bound %d, but %d is the most\n%s%s%s", n, kept,
                         bound, most, drawn.csv.bytes, before.bytes, after.bytes);
            compared++;
            moved += most < instances;
            many += instances > 12;
            proved += bound == kept;
        }
        plan_done(&old);
        plan_done(&plan);
        str_done(&drawn.csv);
    }
    print_message("%d compared, %d with moves, %d of more than 12, %d proved\n", compared,
                  moved, many, proved);
    assert_true(compared > CASES / 2 && moved > CASES / 4 && many > 0);
    assert_int_equal(proved, compared);
}

/* Beyond brute force: what is kept never passes the bound, every plan is verified as it is
 * made, and the number is proved for most. */
static void bounds_hold_for_many(void **state)
{
    struct rng rng = rng_seed(test_seed());
    int proved = 0, most = 0;
    (void)state;
    for (int n = 0; n < CASES_MANY; n++) {
        struct keep_case drawn = {.csv = STR_EMPTY};
        CLEANUP(str_done) struct str before = STR_EMPTY;
        CLEANUP(str_done) struct str after = STR_EMPTY;
        struct plan old, plan, again;
        int instances = 0;
        draw_rows(&drawn, &rng);
        draw_services(&drawn, 280 + 40 * n, &rng, &before);
        make_plan(&drawn, &before, NULL, &old);
        draw_services(&drawn, 270 + 40 * n, &rng, &after);
        make_plan(&drawn, &after, &old, &plan);
        make_plan(&drawn, &after, NULL, &again);
        for (size_t g = 0; g < old.gpus.count; g++)
            instances += (int)old.gpus.data[g].instances.count;
        int kept = changes_number(&plan, "kept"), bound = changes_number(&plan, "kept_bound");
        if (kept > bound || bound > instances || plan.cost > again.cost + 1e-9)
            fail_msg("case %d: kept %d, bound %d of %d\n%s%s%s", n, kept, bound, instances,
                     drawn.csv.bytes, before.bytes, after.bytes);
        proved += kept == bound;
        most = instances > most ? instances : most;
        plan_done(&old);
        plan_done(&plan);
        plan_done(&again);
        str_done(&drawn.csv);
    }
    print_message("%d of %d proved, of up to %d instances\n", proved, CASES_MANY, most);
    assert_true(most > 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_as_many_as_brute_force),
        cmocka_unit_test(bounds_hold_for_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
