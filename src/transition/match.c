/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/match.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "transition/assignment.h"

static const double TOLERANCE = 1e-9;
enum {
    WEIGHT_ID = 1,
    WEIGHT_NODE = 2,
    WEIGHT_SLOT = 1000, /* a compute slice whose instance stays */
    WEIGHT_SERVING = 1000000,
};
static const int64_t FORBIDDEN = -(INT64_C(1) << 45);

/* One board's GPUs. */
struct matcher {
    struct transition *transition;
    const struct match_options *options;
    int *to_services;       /* of from's services: index in to, -1 */
    VEC(int) rows, columns; /* GPUs of to, GPUs of from */
    int *here;              /* of each GPU of to: index into transition->gpus */
    bool *taken;            /* of each GPU of from */
};

static const struct plan_gpu *from_gpu(const struct matcher *matcher, int index)
{
    assert(index >= 0 && (size_t)index < matcher->transition->from.gpus.count);
    return &matcher->transition->from.gpus.data[index];
}

static struct plan_gpu *to_gpu(const struct matcher *matcher, int index)
{
    assert(index >= 0 && (size_t)index < matcher->transition->to.gpus.count);
    return &matcher->transition->to.gpus.data[index];
}

static bool serves_alike(const struct matcher *matcher, const struct plan_instance *before,
                         const struct plan_instance *after)
{
    assert(before->service < (int)matcher->transition->from.services.count);
    if (before->service < 0 || after->service < 0)
        return before->service < 0 && after->service < 0;
    return matcher->to_services[before->service] == after->service &&
           before->batch == after->batch && before->procs == after->procs &&
           fabs(before->rate_rps - after->rate_rps) <= TOLERANCE * fabs(after->rate_rps);
}

bool match_serves_alike(const struct plan *from, const struct plan_instance *before,
                        const struct plan *to, const struct plan_instance *after)
{
    assert(from && before && to && after);
    if (before->service < 0 || after->service < 0)
        return before->service < 0 && after->service < 0;
    return strcmp(from->services.data[before->service].name,
                  to->services.data[after->service].name) == 0 &&
           before->batch == after->batch && before->procs == after->procs &&
           fabs(before->rate_rps - after->rate_rps) <= TOLERANCE * fabs(after->rate_rps);
}

static const struct plan_instance *find_slot(const struct plan_gpu *gpu, int profile, int start)
{
    for (size_t i = 0; i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == profile && gpu->instances.data[i].start == start)
            return &gpu->instances.data[i];
    return NULL;
}

/* Whether the layout of `to`'s GPU stays legal when its instance `index` becomes `larger`. */
static bool fits_larger(const struct plan_gpu *to, size_t index,
                        const struct plan_instance *larger)
{
    assert(index < to->instances.count);
    struct mig_layout layout = {0};
    for (size_t i = 0; i < to->instances.count; i++) {
        const struct plan_instance *instance = i == index ? larger : &to->instances.data[i];
        layout.instances[layout.count++] =
            (struct mig_instance){(int8_t)instance->profile, (int8_t)instance->start};
    }
    mig_layout_sort(&layout);
    return mig_layout_check(to->board, &layout, NULL) == 0;
}

static bool is_larger(const struct plan_gpu *gpu, const struct plan_instance *before,
                      const struct plan_instance *after)
{
    assert(before->profile >= 0 && after->profile >= 0);
    const struct mig_profile *profiles = gpu->board->profiles;
    return profiles[before->profile].compute_slices > profiles[after->profile].compute_slices;
}

/* Whether an instance of from may stay in place of a smaller one of to: the same service, a
 * larger profile, no lower rate, and wanted as it is by nothing else there. */
static bool may_stay(const struct matcher *matcher, const struct plan_gpu *to,
                     const struct plan_instance *before, size_t index)
{
    assert(index < to->instances.count);
    const struct plan_instance *after = &to->instances.data[index];
    if (before->service < 0 || after->service < 0 ||
        matcher->to_services[before->service] != after->service)
        return false;
    if (!is_larger(to, before, after) || before->rate_rps < after->rate_rps * (1 - TOLERANCE))
        return false;
    return !find_slot(to, before->profile, before->start) && fits_larger(to, index, before);
}

/* The instance of from that could serve for one of to: the same service, at least as large,
 * no lower rate, not taken yet; the smallest of them. */
static int find_substitute(const struct matcher *matcher, const struct plan_gpu *from,
                           const struct plan_instance *after, unsigned taken)
{
    int best = -1;
    for (size_t j = 0; j < from->instances.count; j++) {
        const struct plan_instance *before = &from->instances.data[j];
        bool serves = before->service >= 0 && after->service >= 0 &&
                      matcher->to_services[before->service] == after->service &&
                      before->rate_rps >= after->rate_rps * (1 - TOLERANCE);
        if (taken >> j & 1 || !serves ||
            !(is_larger(from, before, after) || before->profile == after->profile))
            continue;
        if (best < 0 || is_larger(from, &from->instances.data[best], before))
            best = (int)j;
    }
    return best;
}

/* All of to's GPU at once: what can stay where it is does, be it larger or elsewhere on the
 * GPU. Returns how many larger ones stay, 0 (and *to unchanged) when that is illegal. */
static int keep_together(const struct matcher *matcher, const struct plan_gpu *from,
                         struct plan_gpu *to)
{
    assert(to->instances.count <= MIG_INSTANCES_MAX && from->board == to->board);
    struct plan_instance kept[MIG_INSTANCES_MAX];
    struct mig_layout layout = {0};
    unsigned taken = 0;
    int larger = 0;
    for (size_t i = 0; i < to->instances.count; i++) {
        const struct plan_instance *after = &to->instances.data[i];
        int substitute = find_substitute(matcher, from, after, taken);
        kept[i] = *after;
        if (substitute >= 0) {
            kept[i] = from->instances.data[substitute];
            kept[i].service = after->service;
            larger += is_larger(to, &kept[i], after);
            taken |= 1U << substitute;
        }
        layout.instances[layout.count++] =
            (struct mig_instance){(int8_t)kept[i].profile, (int8_t)kept[i].start};
    }
    mig_layout_sort(&layout);
    if (larger == 0 || mig_layout_check(to->board, &layout, NULL) < 0)
        return 0;
    memcpy(to->instances.data, kept, to->instances.count * sizeof *kept);
    return larger;
}

/* Puts the larger instances that may stay into *to, all at once or one by one; returns how
 * many. */
static int keep_larger(const struct matcher *matcher, const struct plan_gpu *from,
                       struct plan_gpu *to)
{
    assert(from->board == to->board);
    int kept = keep_together(matcher, from, to);
    bool together = kept > 0;
    for (size_t i = 0; !together && i < to->instances.count; i++) {
        struct plan_instance *after = &to->instances.data[i];
        const struct plan_instance *stays = find_slot(from, after->profile, after->start);
        if (stays && serves_alike(matcher, stays, after))
            continue;
        for (size_t j = 0; j < from->instances.count; j++) {
            const struct plan_instance *before = &from->instances.data[j];
            if (!may_stay(matcher, to, before, i))
                continue;
            int service = after->service;
            *after = *before;
            after->service = service;
            kept++;
            break;
        }
    }
    return kept;
}

static int64_t kept_weight(const struct matcher *matcher, const struct plan_gpu *from,
                           const struct plan_gpu *to)
{
    int64_t weight = 0;
    for (size_t i = 0; i < to->instances.count; i++) {
        const struct plan_instance *after = &to->instances.data[i];
        const struct plan_instance *before = find_slot(from, after->profile, after->start);
        if (!before)
            continue;
        int slices = to->board->profiles[after->profile].compute_slices;
        bool serves = after->service >= 0 && serves_alike(matcher, before, after);
        weight += (int64_t)slices * (serves ? WEIGHT_SERVING : WEIGHT_SLOT);
    }
    assert(weight >= 0);
    return weight;
}

static int64_t weigh(const struct matcher *matcher, int to_index, int from_index)
{
    const struct plan_gpu *from = from_gpu(matcher, from_index),
                          *to = to_gpu(matcher, to_index);
    bool known = *from->node && *to->node;
    bool same_node = known && strcmp(from->node, to->node) == 0;
    int64_t weight = 0;
    if (known && !same_node && matcher->options->keep_nodes)
        return FORBIDDEN;
    if (matcher->options->allow_larger_slice) {
        /* Tried on a copy: only the pairs that are chosen are changed
         * (keep_larger_everywhere). */
        struct plan_instance copy[MIG_INSTANCES_MAX];
        struct plan_gpu trial = *to;
        assert(to->instances.count <= MIG_INSTANCES_MAX);
        if (to->instances.count > 0)
            memcpy(copy, to->instances.data, to->instances.count * sizeof *copy);
        trial.instances.data = copy;
        keep_larger(matcher, from, &trial);
        weight = kept_weight(matcher, from, &trial);
    } else {
        weight = kept_weight(matcher, from, to);
    }
    return weight + (same_node ? WEIGHT_NODE : 0) +
           (strcmp(from->id, to->id) == 0 ? WEIGHT_ID : 0);
}

/* What a GPU holds, as text to look equal ones up by. */
static void contents_key(const struct plan *plan, const struct plan_gpu *gpu, bool keep_nodes,
                         struct str *key)
{
    str_clear(key);
    if (keep_nodes)
        str_addf(key, "%s/", gpu->node);
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        str_addf(key, "%d@%d=", instance->profile, instance->start);
        if (instance->service >= 0)
            str_addf(key, "%s:%d:%d:%.9g", plan->services.data[instance->service].name,
                     instance->batch, instance->procs, instance->rate_rps);
        str_add_char(key, ' ');
    }
}

static void carry_out(struct matcher *matcher, int to_index, int from_index)
{
    assert(matcher->here[to_index] < 0 && !matcher->taken[from_index]);
    assert(from_gpu(matcher, from_index)->board == to_gpu(matcher, to_index)->board);
    matcher->here[to_index] = from_index;
    matcher->taken[from_index] = true;
}

static bool is_more_alike(const struct plan_gpu *to, const struct plan_gpu *a,
                          const struct plan_gpu *b)
{
    int alike[2] = {0, 0};
    const struct plan_gpu *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        alike[i] = 2 * (*to->node && strcmp(both[i]->node, to->node) == 0) +
                   (strcmp(both[i]->id, to->id) == 0);
    return alike[0] > alike[1];
}

/* GPUs that hold the same in both plans stay together: an optimal assignment that does so
 * exists (exchange the partners of such a pair; what two sets share with a third is at most
 * the third and what the two share). It shrinks the problem when little changes. */
static void match_equal(struct matcher *matcher)
{
    CLEANUP(map_done) struct map first = {0};
    CLEANUP(str_done) struct str key = STR_EMPTY;
    size_t from_count = matcher->columns.count;
    int *next = xcalloc(from_count, sizeof *next), *head = xcalloc(from_count, sizeof *head);
    for (size_t i = from_count; i-- > 0;) {
        const struct plan_gpu *gpu = from_gpu(matcher, matcher->columns.data[i]);
        contents_key(&matcher->transition->from, gpu, matcher->options->keep_nodes, &key);
        ptrdiff_t entry = map_find(&first, key.bytes);
        next[i] = entry < 0 ? -1 : head[entry];
        head[entry < 0 ? (ptrdiff_t)map_put(&first, key.bytes, NULL) : entry] = (int)i;
    }
    size_t kept = 0;
    for (size_t r = 0; r < matcher->rows.count; r++) {
        int to_index = matcher->rows.data[r], best = -1;
        const struct plan_gpu *to = to_gpu(matcher, to_index);
        contents_key(&matcher->transition->to, to, matcher->options->keep_nodes, &key);
        ptrdiff_t entry = map_find(&first, key.bytes);
        for (int i = entry < 0 ? -1 : head[entry]; i >= 0; i = next[i])
            if (!matcher->taken[matcher->columns.data[i]] &&
                (best < 0 || is_more_alike(to, from_gpu(matcher, matcher->columns.data[i]),
                                           from_gpu(matcher, matcher->columns.data[best]))))
                best = i;
        if (best >= 0 && to->instances.count > 0)
            carry_out(matcher, to_index, matcher->columns.data[best]);
        else
            matcher->rows.data[kept++] = to_index;
    }
    assert(kept <= matcher->rows.count);
    matcher->rows.count = kept;
    kept = 0;
    for (size_t c = 0; c < from_count; c++)
        if (!matcher->taken[matcher->columns.data[c]])
            matcher->columns.data[kept++] = matcher->columns.data[c];
    matcher->columns.count = kept;
    free(next);
    free(head);
}

/* The smaller side's GPUs are the rows of the problem, so that its cost, rows² × columns, stays
 * small where a few GPUs become many. Columns beyond the other side's stand for "none": a GPU
 * whose partners are all forbidden takes one. */
static void match_rest(struct matcher *matcher)
{
    bool by_to = matcher->rows.count <= matcher->columns.count;
    size_t rows = by_to ? matcher->rows.count : matcher->columns.count;
    size_t real = by_to ? matcher->columns.count : matcher->rows.count;
    size_t columns = real + (matcher->options->keep_nodes ? rows : 0);
    if (rows == 0)
        return;
    assert(columns >= rows);
    int64_t *weights = xcalloc(rows * columns, sizeof *weights);
    int *column_of = xcalloc(rows, sizeof *column_of);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < real; c++)
            weights[r * columns + c] = weigh(matcher, matcher->rows.data[by_to ? r : c],
                                             matcher->columns.data[by_to ? c : r]) +
                                       1;
    assignment_maximise(rows, columns, weights, column_of);
    for (size_t r = 0; r < rows; r++) {
        size_t c = (size_t)column_of[r];
        if (c < real && weights[r * columns + c] > 0)
            carry_out(matcher, matcher->rows.data[by_to ? r : c],
                      matcher->columns.data[by_to ? c : r]);
    }
    free(weights);
    free(column_of);
}

static void match_board(struct matcher *matcher, const struct mig_board *board)
{
    assert(board);
    const struct transition *transition = matcher->transition;
    vec_clear(&matcher->rows);
    vec_clear(&matcher->columns);
    for (size_t i = 0; i < transition->to.gpus.count; i++)
        if (transition->to.gpus.data[i].board == board)
            vec_add(&matcher->rows, (int)i);
    for (size_t i = 0; i < transition->from.gpus.count; i++)
        if (transition->from.gpus.data[i].board == board)
            vec_add(&matcher->columns, (int)i);
    if (matcher->rows.count == 0)
        return;
    match_equal(matcher);
    match_rest(matcher);
}

static void add_gpus(struct matcher *matcher)
{
    struct transition *transition = matcher->transition;
    int added = 0;
    for (size_t i = 0; i < transition->from.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[i];
        vec_add(&transition->gpus,
                ((struct transition_gpu){.id = arena_strdup(&transition->arena, gpu->id),
                                         .board = gpu->board,
                                         .node = arena_strdup(&transition->arena, gpu->node)}));
    }
    for (size_t i = 0; i < transition->to.gpus.count; i++) {
        const struct plan_gpu *gpu = &transition->to.gpus.data[i];
        if (matcher->here[i] < 0) {
            const char *id;
            do
                id = arena_printf(&transition->arena, "new%d", added++);
            while (plan_find_gpu(&transition->from, id) >= 0);
            matcher->here[i] = (int)transition->gpus.count;
            vec_add(
                &transition->gpus,
                ((struct transition_gpu){.id = id,
                                         .board = gpu->board,
                                         .node = arena_strdup(&transition->arena, gpu->node)}));
        }
        vec_add(&transition->match,
                ((struct transition_match){.to_id = arena_strdup(&transition->arena, gpu->id),
                                           .id = transition->gpus.data[matcher->here[i]].id}));
    }
}

/* The sums of `to` after larger instances were kept. */
static void sum_rates(struct plan *plan)
{
    for (size_t s = 0; s < plan->services.count; s++)
        plan->services.data[s].provided_rps = 0;
    for (size_t i = 0; i < plan->gpus.count; i++)
        for (size_t j = 0; j < plan->gpus.data[i].instances.count; j++) {
            const struct plan_instance *instance = &plan->gpus.data[i].instances.data[j];
            if (instance->service >= 0)
                plan->services.data[instance->service].provided_rps += instance->rate_rps;
        }
}

static int compare_instances(const void *a, const void *b)
{
    const struct plan_instance *left = a, *right = b;
    return left->start != right->start ? left->start - right->start
                                       : left->profile - right->profile;
}

static void keep_larger_everywhere(struct matcher *matcher)
{
    struct plan *to = &matcher->transition->to;
    int kept = 0;
    for (size_t i = 0; i < to->gpus.count; i++) {
        struct plan_gpu *gpu = &to->gpus.data[i];
        if (matcher->here[i] < 0)
            continue;
        kept += keep_larger(matcher, from_gpu(matcher, matcher->here[i]), gpu);
        if (gpu->instances.count > 0)
            qsort(gpu->instances.data, gpu->instances.count, sizeof *gpu->instances.data,
                  compare_instances);
    }
    if (kept > 0)
        sum_rates(to);
}

void transition_match(struct transition *transition, const struct match_options *options)
{
    size_t from_count = transition->from.gpus.count, to_count = transition->to.gpus.count;
    struct matcher matcher = {.transition = transition,
                              .options = options,
                              .to_services =
                                  xcalloc(transition->from.services.count, sizeof(int)),
                              .here = xcalloc(to_count, sizeof(int)),
                              .taken = xcalloc(from_count, sizeof(bool))};
    assert(transition->gpus.count == 0 && transition->match.count == 0);
    assert(options);
    memset(matcher.here, 0xff, to_count * sizeof(int));
    for (size_t i = 0; i < transition->from.services.count; i++)
        matcher.to_services[i] =
            plan_find_service(&transition->to, transition->from.services.data[i].name);
    for (size_t b = 0; b < mig_board_count(); b++)
        match_board(&matcher, mig_board_at(b));
    if (options->allow_larger_slice)
        keep_larger_everywhere(&matcher);
    add_gpus(&matcher);
    vec_done(&matcher.rows);
    vec_done(&matcher.columns);
    free(matcher.to_services);
    free(matcher.here);
    free(matcher.taken);
}
