/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting planes on the Lagrangian, the master by CLP. Services are put into groups, one
 * plane a group and round, so that the master stays small when there are thousands. The
 * point of evaluation lies between the master's optimum and the best prices so far (in-out
 * separation, Ben-Ameur and Neto 2007), which needs far fewer rounds than the optimum alone.
 */
#include "plan/dual.h"

#include <assert.h>
#include <coin/Clp_C_Interface.h>
#include <math.h>
#include <string.h>

enum { GROUPS_MAX = 256, LOG_SILENT = 0 };
/* How far from the best prices towards the master's optimum the next evaluation is. */
static const double IN_OUT = 0.6;
static const double PLANE_EPSILON = 1e-9;

/* One plane: theta_group <= slots . prices, with slots summed over the group's services. */
struct plane {
    int group, round;
};

struct ascent {
    const struct problem *problem;
    const struct pattern_list *patterns;
    const struct cover *covers;
    const struct dual_options *options;
    int slots, kinds, services, groups;
    int columns; /* slots, then kinds, then groups */
    double price_limit;
    Clp_Simplex *master;
    VEC(struct plane) planes;
    VEC(int *) rounds; /* covers met in each round: services rows of slots */
    double *point;     /* slot prices, then scarcity prices, where L is evaluated */
    double *best_point;
    double best_bound;
    double *sums; /* groups rows of slots */
};

static void ascent_done(struct ascent *ascent)
{
    if (ascent->master)
        Clp_deleteModel(ascent->master);
    for (size_t r = 0; r < ascent->rounds.count; r++)
        free(ascent->rounds.data[r]);
    vec_done(&ascent->rounds);
    vec_done(&ascent->planes);
    free(ascent->point);
    free(ascent->best_point);
    free(ascent->sums);
}

static int group_of(const struct ascent *ascent, int service)
{
    assert(ascent->groups > 0 && service >= 0 && service < ascent->services);
    return service % ascent->groups;
}

static double kind_price(const struct ascent *ascent, int kind)
{
    assert(kind >= 0 && kind < ascent->kinds);
    return ascent->options->feasibility ? 0 : ascent->problem->kinds.data[kind].price;
}

static bool is_limited(const struct ascent *ascent, int kind)
{
    assert(kind >= 0 && kind < ascent->kinds);
    return ascent->problem->kinds.data[kind].stock != PROBLEM_UNLIMITED;
}

/* Columns with bounds and costs; minimises the negative of the bound. */
static void add_columns(struct ascent *ascent)
{
    assert(!ascent->master &&
           ascent->columns == ascent->slots + ascent->kinds + ascent->groups);
    int count = ascent->columns;
    double *lower = xcalloc((size_t)count, sizeof *lower);
    double *upper = xcalloc((size_t)count, sizeof *upper);
    double *cost = xcalloc((size_t)count, sizeof *cost);
    for (int s = 0; s < ascent->slots; s++)
        upper[s] = ascent->price_limit;
    for (int k = 0; k < ascent->kinds; k++) {
        upper[ascent->slots + k] = is_limited(ascent, k) ? ascent->price_limit : 0;
        cost[ascent->slots + k] =
            is_limited(ascent, k) ? ascent->problem->kinds.data[k].stock : 0;
    }
    for (int g = 0; g < ascent->groups; g++) {
        lower[ascent->slots + ascent->kinds + g] = 0;
        upper[ascent->slots + ascent->kinds + g] = 1e30;
        cost[ascent->slots + ascent->kinds + g] = -1;
    }
    ascent->master = Clp_newModel();
    Clp_setLogLevel(ascent->master, LOG_SILENT);
    Clp_resize(ascent->master, 0, 0);
    int *starts = xcalloc((size_t)count + 1, sizeof *starts);
    Clp_addColumns(ascent->master, count, lower, upper, cost, starts, NULL, NULL);
    free(starts);
    free(lower);
    free(upper);
    free(cost);
}

/* Patterns: what their slots are worth, less the scarcity price, is at most the price. */
static void add_patterns(struct ascent *ascent)
{
    assert(ascent->master);
    int count = ascent->patterns->count;
    VEC(int) index = {0};
    VEC(double) value = {0};
    int *starts = xcalloc((size_t)count + 2, sizeof *starts);
    double *lower = xcalloc((size_t)count + 1, sizeof *lower);
    double *upper = xcalloc((size_t)count + 1, sizeof *upper);
    for (int p = 0; p < count; p++) {
        int kind = ascent->patterns->kind[p];
        for (int s = 0; s < ascent->slots; s++) {
            if (ascent->patterns->slots[p][s] == 0)
                continue;
            vec_add(&index, s);
            vec_add(&value, ascent->patterns->slots[p][s]);
        }
        if (is_limited(ascent, kind)) {
            vec_add(&index, ascent->slots + kind);
            vec_add(&value, -1);
        }
        lower[p] = -1e30;
        upper[p] = kind_price(ascent, kind);
        starts[p + 1] = (int)index.count;
    }
    Clp_addRows(ascent->master, count, lower, upper, starts, index.data, value.data);
    vec_done(&index);
    vec_done(&value);
    free(starts);
    free(lower);
    free(upper);
}

/* Prices to begin with: in proportion to compute slices, as high as patterns allow. */
static void set_first_point(struct ascent *ascent)
{
    for (int s = 0; s < ascent->slots; s++) {
        const struct problem_slot *slot = &ascent->problem->slots[s];
        int slices = slot->board->profiles[slot->profile].compute_slices;
        double worth = slices > 0 ? slices : 1, price = INFINITY;
        for (int p = 0; p < ascent->patterns->count; p++) {
            if (ascent->patterns->slots[p][s] == 0)
                continue;
            double total = 0;
            for (int t = 0; t < ascent->slots; t++) {
                const struct problem_slot *other = &ascent->problem->slots[t];
                int width = other->board->profiles[other->profile].compute_slices;
                total += ascent->patterns->slots[p][t] * (double)(width > 0 ? width : 1);
            }
            price = fmin(price, kind_price(ascent, ascent->patterns->kind[p]) * worth / total);
        }
        /* A slot that no GPU has room for may cost anything. */
        ascent->point[s] = isfinite(price) ? price : ascent->price_limit;
    }
}

/* Brings prices that exceed a pattern by rounding back inside. */
static void make_feasible(const struct ascent *ascent, double *point)
{
    for (int p = 0; p < ascent->patterns->count; p++) {
        int kind = ascent->patterns->kind[p];
        double worth = 0;
        for (int s = 0; s < ascent->slots; s++)
            worth += ascent->patterns->slots[p][s] * point[s];
        double room = kind_price(ascent, kind) + point[ascent->slots + kind];
        if (worth <= room)
            continue;
        if (is_limited(ascent, kind)) {
            point[ascent->slots + kind] += (worth - room) * (1 + 1e-12) + 1e-15;
            continue;
        }
        for (int s = 0; s < ascent->slots; s++)
            if (ascent->patterns->slots[p][s] > 0)
                point[s] *= room / worth * (1 - 1e-15);
    }
}

/* L at the point; the covers that it rests on become the round's. */
static double evaluate(struct ascent *ascent)
{
    size_t slots = (size_t)ascent->slots;
    int *met = xcalloc((size_t)ascent->services * slots + 1, sizeof *met);
    double bound = 0, price;
    make_feasible(ascent, ascent->point);
    memset(ascent->sums, 0, (size_t)ascent->groups * slots * sizeof *ascent->sums);
    for (int i = 0; i < ascent->services; i++) {
        int *counts = &met[(size_t)i * slots];
        bound += cover_cheapest(&ascent->covers[i], ascent->point, counts, &price);
        double *sums = &ascent->sums[(size_t)group_of(ascent, i) * slots];
        for (size_t s = 0; s < slots; s++)
            sums[s] += counts[s];
    }
    for (int k = 0; k < ascent->kinds; k++)
        if (is_limited(ascent, k))
            bound -= ascent->problem->kinds.data[k].stock * ascent->point[ascent->slots + k];
    assert(!isnan(bound));
    vec_add(&ascent->rounds, met);
    return bound;
}

/* Adds the round's planes that the master's solution violates; returns how many. */
static int add_planes(struct ascent *ascent, const double *solution)
{
    VEC(int) index = {0};
    VEC(double) value = {0};
    int *starts = xcalloc((size_t)ascent->groups + 2, sizeof *starts);
    double *lower = xcalloc((size_t)ascent->groups + 1, sizeof *lower);
    double *upper = xcalloc((size_t)ascent->groups + 1, sizeof *upper);
    int added = 0, first_theta = ascent->slots + ascent->kinds;
    for (int g = 0; g < ascent->groups; g++) {
        const double *sums = &ascent->sums[(size_t)g * (size_t)ascent->slots];
        double worth = 0;
        for (int s = 0; solution && s < ascent->slots; s++)
            worth += sums[s] * solution[s];
        if (solution && solution[first_theta + g] <= worth + PLANE_EPSILON * fmax(1, worth))
            continue;
        for (int s = 0; s < ascent->slots; s++) {
            if (sums[s] == 0)
                continue;
            vec_add(&index, s);
            vec_add(&value, -sums[s]);
        }
        vec_add(&index, first_theta + g);
        vec_add(&value, 1);
        vec_add(&ascent->planes,
                ((struct plane){.group = g, .round = (int)ascent->rounds.count - 1}));
        lower[added] = -1e30;
        starts[++added] = (int)index.count;
    }
    assert(added <= ascent->groups);
    if (added > 0)
        Clp_addRows(ascent->master, added, lower, upper, starts, index.data, value.data);
    vec_done(&index);
    vec_done(&value);
    free(starts);
    free(lower);
    free(upper);
    return added;
}

static void keep_if_better(struct ascent *ascent, double bound)
{
    assert(!isnan(bound));
    if (bound <= ascent->best_bound)
        return;
    ascent->best_bound = bound;
    memcpy(ascent->best_point, ascent->point,
           (size_t)(ascent->slots + ascent->kinds) * sizeof *ascent->point);
}

static void step_towards(struct ascent *ascent, const double *solution, double step)
{
    assert(step > 0 && step <= 1);
    for (int c = 0; c < ascent->slots + ascent->kinds; c++)
        ascent->point[c] = fmax(0, step * solution[c] + (1 - step) * ascent->best_point[c]);
}

/* Rounds of cutting planes until the bound meets the master's value. */
static double ascend(struct ascent *ascent, double gap)
{
    assert(gap >= 0 && ascent->options->rounds_max >= 1);
    double upper = INFINITY, step = IN_OUT;
    set_first_point(ascent);
    keep_if_better(ascent, evaluate(ascent));
    add_planes(ascent, NULL);
    Clp_initialDualSolve(ascent->master);
    for (int round = 1; round < ascent->options->rounds_max; round++) {
        if (ascent->options->stop && ascent->options->stop(ascent->options->context))
            break;
        Clp_dual(ascent->master, 0);
        if (Clp_status(ascent->master) != 0)
            break;
        const double *solution = Clp_primalColumnSolution(ascent->master);
        upper = -Clp_objectiveValue(ascent->master);
        if (upper - ascent->best_bound <= gap)
            break;
        step_towards(ascent, solution, step);
        keep_if_better(ascent, evaluate(ascent));
        int added = add_planes(ascent, solution);
        if (added == 0 && step == 1)
            break; /* the master's prices are the best there are */
        step = added == 0 ? 1 : IN_OUT;
        if (ascent->options->feasibility && ascent->best_bound > gap)
            break;
    }
    return upper;
}

/* The cover that weighs most for each service; in a group, services take turns so that
 * each plane gets its share of them. */
static void choose_starts(const struct ascent *ascent, const double *weights, int *start)
{
    assert(ascent->planes.count > 0);
    size_t slots = (size_t)ascent->slots;
    double *left = xcalloc(ascent->planes.count + 1, sizeof *left);
    for (size_t p = 0; p < ascent->planes.count; p++) {
        int members = (ascent->services - ascent->planes.data[p].group + ascent->groups - 1) /
                      ascent->groups;
        left[p] = fmax(0, weights[p]) * members;
    }
    for (int i = 0; i < ascent->services; i++) {
        size_t best = 0;
        double most = -INFINITY;
        for (size_t p = 0; p < ascent->planes.count; p++) {
            if (ascent->planes.data[p].group != group_of(ascent, i) || left[p] <= most)
                continue;
            most = left[p];
            best = p;
        }
        left[best] -= 1;
        memcpy(&start[(size_t)i * slots],
               &ascent->rounds.data[ascent->planes.data[best].round][(size_t)i * slots],
               slots * sizeof *start);
    }
    free(left);
}

static void extract(const struct ascent *ascent, double upper, struct dual *dual)
{
    size_t slots = (size_t)ascent->slots, kinds = (size_t)ascent->kinds;
    size_t patterns = (size_t)ascent->patterns->count;
    assert(ascent->rounds.count > 0);
    dual->bound = ascent->best_bound;
    dual->upper = upper;
    dual->rounds = (int)ascent->rounds.count;
    dual->slot_price = xmemdup(ascent->best_point, (slots + 1) * sizeof(double));
    dual->stock_price = xmemdup(ascent->best_point + slots, (kinds + 1) * sizeof(double));
    dual->pattern_weight = xcalloc(patterns + 1, sizeof(double));
    dual->start = xcalloc((size_t)ascent->services * slots + 1, sizeof(int));
    const double *rows = Clp_dualRowSolution(ascent->master);
    double *weights = xcalloc(ascent->planes.count + 1, sizeof *weights);
    for (size_t p = 0; p < patterns; p++)
        dual->pattern_weight[p] = fabs(rows[p]);
    for (size_t p = 0; p < ascent->planes.count; p++)
        weights[p] = fabs(rows[patterns + p]);
    choose_starts(ascent, weights, dual->start);
    free(weights);
}

void dual_solve(const struct problem *problem, const struct pattern_list *patterns,
                const struct cover *covers, const struct dual_options *options,
                struct dual *ret_dual)
{
    assert(patterns->slot_count == problem->slot_count && covers && options);
    CLEANUP(ascent_done)
    struct ascent ascent = {
        .problem = problem,
        .patterns = patterns,
        .covers = covers,
        .options = options,
        .slots = problem->slot_count,
        .kinds = (int)problem->kinds.count,
        .services = problem->service_count,
        .groups = problem->service_count < GROUPS_MAX ? problem->service_count : GROUPS_MAX,
        .best_bound = -INFINITY,
    };
    double dearest = 0;
    for (int k = 0; k < ascent.kinds; k++)
        dearest = fmax(dearest, kind_price(&ascent, k));
    ascent.price_limit = options->feasibility ? 1 : 1000 * dearest;
    ascent.columns = ascent.slots + ascent.kinds + ascent.groups;
    ascent.point = xcalloc((size_t)ascent.columns + 2, sizeof *ascent.point);
    ascent.best_point = xcalloc((size_t)ascent.columns + 2, sizeof *ascent.best_point);
    ascent.sums =
        xcalloc((size_t)ascent.groups * (size_t)ascent.slots + 1, sizeof *ascent.sums);
    add_columns(&ascent);
    add_patterns(&ascent);
    double upper = ascend(&ascent, options->gap);
    extract(&ascent, upper, ret_dual);
}

void dual_done(struct dual *dual)
{
    free(dual->slot_price);
    free(dual->stock_price);
    free(dual->pattern_weight);
    free(dual->start);
    *dual = (struct dual){0};
}
