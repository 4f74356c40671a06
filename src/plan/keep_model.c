/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns: x, instances of a service on a slot kind; k, how many of those stay in place; y,
 * GPUs by pattern; w, GPUs of a class of like old GPUs by what places they keep and what
 * slots they have beside. Rows: covers, supply, stock and cost as in the compact model; a
 * class has so many GPUs; k is at most the places that are there and at most x.
 *
 * The relaxation alone says little, as covers are fractional in it. So rows are added that
 * hold for every whole cover: at any prices p, what a service uses is worth at least its
 * cheapest cover. With the prices of the relaxation's own dual these are the planes of
 * dual.h; the bound rises until none is violated.
 */
#include "plan/keep_model.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/relaxation.h"

enum {
    COLUMNS_MAX = 6000,
    GPUS_MAX = 400, /* of the earlier plan */
    CUT_ROUNDS_MAX = 60,
    CUT_WAYS_MAX = 400 /* of keeping a service's instances, walked for one row */
};
static const double COUNT_MAX = 1e9;
static const double CUT_EPSILON = 1e-6;
static const double BOUND_SLACK = 1e-5; /* of tolerances: far more than they can make */

/* ---- classes and columns ---- */

static int instances_of(const struct old_plan *old, int gpu)
{
    return old->first[gpu + 1] - old->first[gpu];
}

static bool is_alike(const struct keep_model *model, int a, int b)
{
    const struct old_plan *old = model->old;
    const struct problem_kind *kind = &model->problem->kinds.data[old->kind[a]];
    if (old->kind[a] != old->kind[b] || kind->gpu ||
        instances_of(old, a) != instances_of(old, b))
        return false;
    for (int n = 0; n < instances_of(old, a); n++) {
        const struct old_instance *x = &old->instances[old->first[a] + n];
        const struct old_instance *y = &old->instances[old->first[b] + n];
        if (x->service != y->service || x->slot != y->slot || x->start != y->start)
            return false;
    }
    return true;
}

static void find_classes(struct keep_model *model)
{
    const struct old_plan *old = model->old;
    model->class_of = xcalloc((size_t)old->gpu_count + 1, sizeof *model->class_of);
    for (int g = 0; g < old->gpu_count; g++) {
        size_t c = 0;
        model->class_of[g] = -1;
        if (instances_of(old, g) == 0)
            continue;
        while (c < model->classes.count && !is_alike(model, model->classes.data[c].gpu, g))
            c++;
        if (c == model->classes.count)
            vec_add(&model->classes, ((struct keep_class){.gpu = g}));
        model->classes.data[c].count++;
        model->class_of[g] = (int)c;
    }
}

static const struct old_instance *instance_at(const struct keep_model *model, int class, int n)
{
    return &model->old->instances[model->old->first[model->classes.data[class].gpu] + n];
}

/* All slots of a column by slot kind: those that stay and those beside. */
static void count_slots(const struct keep_model *model, const struct keep_column *column,
                        int *counts)
{
    int gpu = model->classes.data[column->class].gpu;
    for (int s = 0; s < model->problem->slot_count; s++)
        counts[s] = column->pattern ? column->pattern[s] : 0;
    for (int n = 0; n < instances_of(model->old, gpu); n++)
        if (column->places & 1u << n)
            counts[instance_at(model, column->class, n)->slot]++;
}

/* Whether a column of the class from `first` on has all that this one has. */
static bool is_dominated(const struct keep_model *model, const struct keep_column *column,
                         size_t first)
{
    int mine[PROBLEM_SLOTS_MAX], other[PROBLEM_SLOTS_MAX];
    count_slots(model, column, mine);
    for (size_t c = first; c < model->columns.count; c++) {
        const struct keep_column *before = &model->columns.data[c];
        bool less = (column->places & ~before->places) == 0;
        if (!less)
            continue;
        count_slots(model, before, other);
        for (int s = 0; s < model->problem->slot_count && less; s++)
            less = mine[s] <= other[s];
        if (less)
            return true;
    }
    return false;
}

static void add_places(struct keep_model *model, int class, unsigned places, size_t first)
{
    const struct problem *problem = model->problem;
    int gpu = model->classes.data[class].gpu;
    struct problem_kind kind = problem->kinds.data[model->old->kind[gpu]];
    for (int n = 0; n < instances_of(model->old, gpu); n++) {
        const struct old_instance *instance = instance_at(model, class, n);
        if (places & 1u << n)
            mig_layout_add(kind.board, &kind.taken,
                           (struct mig_instance){(int8_t)problem->slots[instance->slot].profile,
                                                 (int8_t)instance->start});
    }
    old_plan_patterns(model->old, problem, &kind);
    for (int p = 0; p < kind.pattern_count || p == 0; p++) {
        struct keep_column column = {class, places, NULL};
        if (kind.pattern_count > 0)
            column.pattern = kind.patterns + (size_t)p * (size_t)problem->slot_count;
        if (!is_dominated(model, &column, first))
            vec_add(&model->columns, column);
    }
}

/* The most places first, so that a column is dominated by earlier ones only. */
static void find_columns(struct keep_model *model)
{
    for (size_t c = 0; c < model->classes.count; c++) {
        int count = instances_of(model->old, model->classes.data[c].gpu);
        size_t first = model->columns.count;
        assert(count <= MIG_INSTANCES_MAX);
        for (int kept = count; kept > 0; kept--)
            for (unsigned places = 1; places < 1u << count; places++)
                if (__builtin_popcount(places) == kept)
                    add_places(model, (int)c, places, first);
        if (model->columns.count > COLUMNS_MAX)
            return;
    }
}

/* ---- the program ---- */

static int cell(const struct keep_model *model, int service, int slot)
{
    return service * model->problem->slot_count + slot;
}

static void add_columns(struct keep_model *model)
{
    const struct problem *problem = model->problem;
    struct milp *milp = &model->milp;
    int cells = problem->service_count * problem->slot_count;
    int *old = xcalloc((size_t)cells + 1, sizeof *old);
    model->kept_column = xcalloc((size_t)cells + 1, sizeof *model->kept_column);
    model->link_row = xcalloc((size_t)cells + 1, sizeof *model->link_row);
    for (int i = 0; i < model->old->instance_count; i++)
        old[cell(model, model->old->instances[i].service, model->old->instances[i].slot)]++;
    for (int i = 0; i < problem->service_count; i++)
        for (int s = 0; s < problem->slot_count; s++) {
            bool usable = problem_option(problem, i, s)->row >= 0 && !problem->dropped[i];
            milp_add_column(milp, 0, usable ? COUNT_MAX : 0, 0, true);
        }
    for (int c = 0; c < cells; c++)
        model->kept_column[c] = old[c] ? milp_add_column(milp, 0, old[c], -1, true) : -1;
    model->first_y = (int)milp->objective.count;
    for (int p = 0; p < model->patterns.count; p++)
        milp_add_column(milp, 0, COUNT_MAX, 0, true);
    model->first_w = (int)milp->objective.count;
    for (size_t w = 0; w < model->columns.count; w++)
        milp_add_column(milp, 0, model->classes.data[model->columns.data[w].class].count, 0,
                        true);
    free(old);
}

/* Rates, scaled to 1 and within the contract's tolerance, and instances. */
static void add_covers(struct keep_model *model)
{
    const struct problem *problem = model->problem;
    for (int i = 0; i < problem->service_count; i++) {
        double demand_rps = problem->demand_rps[i];
        double full_rps = problem->services->services.data[i].rate_rps;
        if (problem->dropped[i])
            continue;
        if (demand_rps > 0) {
            int row = milp_add_row(&model->milp, 1 - 1e-9 * full_rps / demand_rps, INFINITY);
            for (int s = 0; s < problem->slot_count; s++)
                milp_set(&model->milp, row, cell(model, i, s),
                         problem_option(problem, i, s)->rate_rps / demand_rps);
        }
        if (problem->instances_min[i] > 0) {
            int row = milp_add_row(&model->milp, problem->instances_min[i], INFINITY);
            for (int s = 0; s < problem->slot_count; s++)
                milp_set(&model->milp, row, cell(model, i, s), 1);
        }
    }
}

static void add_supply(struct keep_model *model)
{
    const struct problem *problem = model->problem;
    struct milp *milp = &model->milp;
    int counts[PROBLEM_SLOTS_MAX];
    model->first_supply = (int)milp->row_lower.count;
    for (int s = 0; s < problem->slot_count; s++) {
        int row = milp_add_row(milp, 0, INFINITY);
        for (int i = 0; i < problem->service_count; i++)
            milp_set(milp, row, cell(model, i, s), -1);
        for (int p = 0; p < model->patterns.count; p++)
            milp_set(milp, row, model->first_y + p, model->patterns.slots[p][s]);
    }
    for (size_t w = 0; w < model->columns.count; w++) {
        count_slots(model, &model->columns.data[w], counts);
        for (int s = 0; s < problem->slot_count; s++)
            milp_set(milp, model->first_supply + s, model->first_w + (int)w, counts[s]);
    }
}

static int kind_of(const struct keep_model *model, size_t w)
{
    return model->old->kind[model->classes.data[model->columns.data[w].class].gpu];
}

static void add_limits(struct keep_model *model, double room)
{
    const struct problem *problem = model->problem;
    struct milp *milp = &model->milp;
    for (size_t k = 0; k < problem->kinds.count; k++) {
        if (problem->kinds.data[k].stock == PROBLEM_UNLIMITED)
            continue;
        int row = milp_add_row(milp, 0, problem->kinds.data[k].stock);
        for (int p = 0; p < model->patterns.count; p++)
            milp_set(milp, row, model->first_y + p, model->patterns.kind[p] == (int)k);
        for (size_t w = 0; w < model->columns.count; w++)
            milp_set(milp, row, model->first_w + (int)w, kind_of(model, w) == (int)k);
    }
    int first = (int)milp->row_lower.count;
    for (size_t c = 0; c < model->classes.count; c++)
        milp_add_row(milp, 0, model->classes.data[c].count);
    int cost = milp_add_row(milp, -INFINITY, fmax(0, room) * (1 + 1e-9) + 1e-9);
    for (int p = 0; p < model->patterns.count; p++)
        milp_set(milp, cost, model->first_y + p, model->patterns.price[p]);
    for (size_t w = 0; w < model->columns.count; w++) {
        milp_set(milp, first + model->columns.data[w].class, model->first_w + (int)w, 1);
        milp_set(milp, cost, model->first_w + (int)w,
                 problem->kinds.data[kind_of(model, w)].price);
    }
}

/* k is at most the places that stay, and at most the instances that there are. */
static void add_links(struct keep_model *model)
{
    struct milp *milp = &model->milp;
    int cells = model->problem->service_count * model->problem->slot_count;
    int *places = xcalloc((size_t)cells + 1, sizeof *places);
    for (int c = 0; c < cells; c++) {
        if (model->kept_column[c] < 0)
            continue;
        model->link_row[c] = milp_add_row(milp, 0, INFINITY);
        milp_set(milp, model->link_row[c], c, 1);
        milp_set(milp, model->link_row[c], model->kept_column[c], -1);
        places[c] = milp_add_row(milp, 0, INFINITY);
        milp_set(milp, places[c], model->kept_column[c], -1);
    }
    for (size_t w = 0; w < model->columns.count; w++) {
        const struct keep_column *column = &model->columns.data[w];
        int gpu = model->classes.data[column->class].gpu, count = instances_of(model->old, gpu);
        for (int n = 0; n < count; n++) {
            const struct old_instance *instance = instance_at(model, column->class, n);
            int at = cell(model, instance->service, instance->slot), same = 0;
            bool first = true;
            for (int m = 0; m < count; m++) {
                const struct old_instance *other = instance_at(model, column->class, m);
                if (cell(model, other->service, other->slot) != at)
                    continue;
                first &= m >= n;
                same += (column->places & 1u << m) != 0;
            }
            if (first)
                milp_set(milp, places[at], model->first_w + (int)w, same);
        }
    }
    free(places);
}

bool keep_model_init(struct keep_model *model, const struct problem *problem,
                     struct old_plan *old, double cost_max)
{
    *model = (struct keep_model){.problem = problem, .old = old};
    if (old->gpu_count > GPUS_MAX)
        return false;
    find_classes(model);
    find_columns(model);
    if (model->columns.count > COLUMNS_MAX)
        return false;
    pattern_list_init(&model->patterns, problem);
    model->covers = xcalloc((size_t)problem->service_count + 1, sizeof *model->covers);
    for (int i = 0; i < problem->service_count; i++)
        cover_init(&model->covers[i], problem, i);
    add_columns(model);
    add_covers(model);
    add_supply(model);
    add_limits(model, cost_max - problem->base_cost);
    add_links(model);
    return true;
}

void keep_model_done(struct keep_model *model)
{
    for (int i = 0; model->covers && i < model->problem->service_count; i++)
        cover_done(&model->covers[i]);
    free(model->covers);
    free(model->class_of);
    free(model->kept_column);
    free(model->link_row);
    vec_done(&model->classes);
    vec_done(&model->columns);
    pattern_list_done(&model->patterns);
    milp_done(&model->milp);
    *model = (struct keep_model){0};
}

/* ---- the bound ---- */

/* Prices of one service's instances by the relaxation's dual: of new ones, and of those
 * that stay, which are cheaper for each slot kind by what keeping is worth. */
struct cut_prices {
    double new[PROBLEM_SLOTS_MAX];
    double kept[PROBLEM_SLOTS_MAX];
};

static double find_prices(const struct keep_model *model, int service, const double *duals,
                          struct cut_prices *prices)
{
    double dearest = 0;
    for (int s = 0; s < model->problem->slot_count; s++) {
        int at = cell(model, service, s);
        prices->new[s] = fmax(0, duals[model->first_supply + s]);
        prices->kept[s] = prices->new[s];
        if (model->kept_column[at] >= 0)
            prices->kept[s] = fmax(0, prices->new[s] - duals[model->link_row[at]]);
        dearest = fmax(dearest, prices->new[s]);
    }
    for (int s = 0; s < model->problem->slot_count && dearest > 0; s++) {
        prices->new[s] /= dearest;
        prices->kept[s] /= dearest;
    }
    return dearest;
}

/* Walks how many instances of each slot kind from `slot` on stay; the rest of the need is
 * covered by new ones. Lowers *least; false when there are too many ways. */
static bool walk_kept(const struct keep_model *model, const struct cut_prices *prices,
                      int service, int slot, struct cover *rest, double *least, int *ways)
{
    int counts[PROBLEM_SLOTS_MAX];
    double price;
    while (slot < model->problem->slot_count &&
           (model->kept_column[cell(model, service, slot)] < 0 ||
            prices->kept[slot] >= prices->new[slot]))
        slot++;
    if (slot == model->problem->slot_count) {
        if (++*ways > CUT_WAYS_MAX)
            return false;
        double more = rest->demand > 1e-12 || rest->instances_min > 0
                          ? cover_cheapest(rest, prices->new, counts, &price)
                          : 0;
        *least = fmin(*least, more);
        return true;
    }
    int column = model->kept_column[cell(model, service, slot)];
    int most = (int)model->milp.column_upper.data[column];
    double full_rps = model->problem->services->services.data[service].rate_rps;
    double rate = problem_option(model->problem, service, slot)->rate_rps / full_rps;
    /* What costs nothing stays in full. */
    bool known = true;
    for (int n = prices->kept[slot] > 0 ? 0 : most; n <= most && known; n++) {
        struct cover less = *rest;
        double least_rest = INFINITY;
        less.demand -= n * rate;
        less.instances_min -= n < less.instances_min ? n : less.instances_min;
        known = walk_kept(model, prices, service, slot + 1, &less, &least_rest, ways);
        *least = fmin(*least, n * prices->kept[slot] + least_rest);
        if (less.demand <= 1e-12 && less.instances_min == 0)
            break;
    }
    return known;
}

/* The least that covering the service costs at these prices, whole; -1: not known. */
static double cheapest_whole(const struct keep_model *model, int service,
                             struct cut_prices *prices)
{
    struct cover cover = model->covers[service];
    int counts[PROBLEM_SLOTS_MAX], ways = 0;
    double least = INFINITY, price;
    if (!cover.spread && walk_kept(model, prices, service, 0, &cover, &least, &ways))
        return least;
    /* Any instance at the lower price: a weaker row. */
    memcpy(prices->new, prices->kept, sizeof prices->new);
    return cover_cheapest(&cover, prices->new, counts, &price);
}

/* One row for each service whose fractional cover is worth less than the cheapest whole one
 * at the relaxation's prices; returns how many. */
static int add_cuts(struct keep_model *model, const double *values, const double *duals)
{
    const struct problem *problem = model->problem;
    struct cut_prices prices;
    int added = 0;
    for (int i = 0; i < problem->service_count; i++) {
        double worth = 0;
        if (problem->dropped[i] || find_prices(model, i, duals, &prices) < CUT_EPSILON)
            continue;
        double least = cheapest_whole(model, i, &prices);
        for (int s = 0; s < problem->slot_count; s++) {
            int at = cell(model, i, s), kept = model->kept_column[at];
            worth += prices.new[s] * values[at];
            worth += kept < 0 ? 0 : (prices.kept[s] - prices.new[s]) * values[kept];
        }
        if (worth >= least - CUT_EPSILON * fmax(1, least))
            continue;
        int row = milp_add_row(&model->milp, least - 1e-9 * fmax(1, least), INFINITY);
        for (int s = 0; s < problem->slot_count; s++) {
            int at = cell(model, i, s);
            milp_set(&model->milp, row, at, prices.new[s]);
            if (model->kept_column[at] >= 0)
                milp_set(&model->milp, row, model->kept_column[at],
                         prices.kept[s] - prices.new[s]);
        }
        added++;
    }
    return added;
}

int keep_model_bound(struct keep_model *model)
{
    struct relaxation relaxation;
    double bound = model->old->instance_count;
    relaxation_init(&relaxation, &model->milp);
    for (int round = 0; round < CUT_ROUNDS_MAX && relaxation_solve(&relaxation); round++) {
        bound = fmin(bound, -relaxation_objective(&relaxation));
        if (add_cuts(model, relaxation_values(&relaxation), relaxation_duals(&relaxation)) == 0)
            break;
        relaxation_add_rows(&relaxation, &model->milp);
    }
    relaxation_done(&relaxation);
    return (int)floor(bound + BOUND_SLACK);
}

/* ---- whole solutions ---- */

/* Each class's GPUs get the columns in order, and of each service and slot kind no more stay
 * than there are instances. */
void keep_model_read(const struct keep_model *model, const double *values, bool *keep)
{
    const struct old_plan *old = model->old;
    int cells = model->problem->service_count * model->problem->slot_count;
    int *left = xcalloc((size_t)cells + 1, sizeof *left);
    int *next = xcalloc(model->classes.count + 1, sizeof *next);
    for (int c = 0; c < cells; c++)
        left[c] = (int)lround(values[c]);
    memset(keep, 0, (size_t)old->instance_count * sizeof *keep);
    for (size_t w = 0; w < model->columns.count; w++) {
        const struct keep_column *column = &model->columns.data[w];
        int count = (int)lround(values[model->first_w + (int)w]);
        for (int *g = &next[column->class]; *g < old->gpu_count && count > 0; (*g)++) {
            if (model->class_of[*g] != column->class)
                continue;
            count--;
            for (int n = 0; n < instances_of(old, *g); n++) {
                int i = old->first[*g] + n;
                int *of = &left[cell(model, old->instances[i].service, old->instances[i].slot)];
                keep[i] = (column->places & 1u << n) && *of > 0;
                *of -= keep[i];
            }
        }
    }
    free(left);
    free(next);
}

int keep_model_proved(const struct milp_result *result, int kept)
{
    int proved = INT_MAX;
    if (result->status == MILP_INFEASIBLE)
        proved = kept;
    else if (isfinite(result->bound) && -result->bound < INT_MAX / 2)
        proved = (int)floor(-result->bound + BOUND_SLACK);
    return proved > kept ? proved : kept;
}

bool keep_model_search(struct keep_model *model, const struct keep_search *search, bool *keep,
                       int *bound)
{
    int kept = search->kept;
    struct milp_result result;
    milp_solve(&model->milp,
               &(struct milp_limits){
                   .cutoff = -kept - 0.5, .seconds = search->seconds, .nodes = search->nodes},
               &result);
    bool found = result.values != NULL && -result.objective > kept + 0.5;
    if (found)
        keep_model_read(model, result.values, keep);
    int proved = keep_model_proved(&result, kept);
    *bound = proved < *bound ? proved : *bound;
    free(result.values);
    return found;
}
