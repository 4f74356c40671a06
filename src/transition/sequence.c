/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/sequence.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/rng.h"
#include "transition/builder.h"

enum {
    GPUS_MAX = 128,
    KINDS_MAX = 120,
    NODES_FEW = 4 * 1000,
    NODES_MAX = 200 * 1000,
    STEPS_MAX = 6 * 1000 * 1000, /* looked at, in all */
    TABLE_SIZE = 1 << 19,        /* more than twice the nodes */
    NOTHING = -1,
    DISTANCE_WEIGHT = 3, /* against the length so far: less search, longer sequences */
};

/* A way to run a service that one of the plans uses; without a service, an instance that is
 * idle in both plans and stays. */
struct kind {
    const struct mig_board *board;
    int profile;
    struct serving serving;
};

/* What a GPU holds: the kind of the instance that begins at each memory unit, or NOTHING. */
struct cells {
    signed char at[MIG_UNITS_MAX];
};

/* An instance of a kind begins to serve, or (NOTHING) what is there ends. */
struct step {
    int gpu;
    signed char start, kind;
};

struct node {
    int parent; /* -1: the beginning */
    int length, distance;
    struct step step; /* from the parent */
    uint64_t hash;
};

struct sequence {
    const struct work *work;
    struct transition *transition;
    VEC(struct kind) kinds;
    VEC(struct cells) from, to; /* of each GPU; idle instances that go or come are left out */
    VEC(struct cells) now;      /* at the node being looked at */
    double *slack_rps;          /* … of each service */
    VEC(struct node) nodes;
    VEC(int) heap; /* nodes to look at, the best on top */
    uint64_t *seen;
    VEC(struct step) path;
    int steps_left;
};

static const struct mig_board *board_of(const struct sequence *sequence, int gpu)
{
    assert(gpu >= 0 && (size_t)gpu < sequence->transition->gpus.count);
    return sequence->transition->gpus.data[gpu].board;
}

static struct cells no_cells(void)
{
    struct cells nothing;
    memset(nothing.at, NOTHING, sizeof nothing.at);
    return nothing;
}

static int kind_of(struct sequence *sequence, const struct mig_board *board, int profile,
                   struct serving serving)
{
    for (size_t k = 0; k < sequence->kinds.count; k++) {
        const struct kind *kind = &sequence->kinds.data[k];
        if (kind->board == board && kind->profile == profile &&
            kind->serving.service == serving.service && kind->serving.batch == serving.batch &&
            kind->serving.procs == serving.procs && kind->serving.rate_rps == serving.rate_rps)
            return (int)k;
    }
    vec_add(&sequence->kinds, ((struct kind){board, profile, serving}));
    return (int)sequence->kinds.count - 1;
}

static const struct plan_instance *find_idle(const struct plan_gpu *gpu,
                                             const struct plan_instance *wanted)
{
    for (size_t i = 0; gpu && i < gpu->instances.count; i++)
        if (gpu->instances.data[i].profile == wanted->profile &&
            gpu->instances.data[i].start == wanted->start && gpu->instances.data[i].service < 0)
            return &gpu->instances.data[i];
    return NULL;
}

/* What a GPU holds in one plan. other: the same GPU in the other plan, NULL: not there. */
static struct cells cells_of(struct sequence *sequence, const struct plan *plan,
                             const struct plan_gpu *gpu, const struct plan_gpu *other)
{
    struct cells cells = no_cells();
    for (size_t i = 0; gpu && i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        struct serving serving = {.service = -1};
        if (instance->service >= 0)
            serving = (struct serving){
                transition_find_service(sequence->transition,
                                        plan->services.data[instance->service].name),
                instance->batch, instance->procs, instance->rate_rps};
        else if (!find_idle(other, instance))
            continue;
        int kind = kind_of(sequence, gpu->board, instance->profile, serving);
        cells.at[instance->start] = (signed char)(kind < KINDS_MAX ? kind : NOTHING);
    }
    return cells;
}

/* The GPU of `to` that is carried out on each GPU here; NULL: none. */
static const struct plan_gpu **targets_of(const struct transition *transition)
{
    CLEANUP(map_done) struct map here = {0};
    const struct plan_gpu **targets =
        xcalloc(transition->gpus.count, sizeof(const struct plan_gpu *));
    for (size_t g = 0; g < transition->gpus.count; g++)
        map_put(&here, transition->gpus.data[g].id, NULL);
    for (size_t i = 0; i < transition->match.count; i++)
        targets[map_find(&here, transition->match.data[i].id)] = &transition->to.gpus.data[i];
    return targets;
}

static void sequence_init(struct sequence *sequence, const struct work *work)
{
    struct transition *transition = work->transition;
    const struct plan_gpu **targets = targets_of(transition);
    *sequence = (struct sequence){
        .work = work,
        .transition = transition,
        .slack_rps = xcalloc(transition->services.count, sizeof(double)),
        .seen = xcalloc(TABLE_SIZE, sizeof(uint64_t)),
        .steps_left = STEPS_MAX,
    };
    for (size_t g = 0; g < transition->gpus.count; g++) {
        const struct plan_gpu *from =
            g < transition->from.gpus.count ? &transition->from.gpus.data[g] : NULL;
        vec_add(&sequence->from, cells_of(sequence, &transition->from, from, targets[g]));
        vec_add(&sequence->to, cells_of(sequence, &transition->to, targets[g], from));
        vec_add(&sequence->now, no_cells());
    }
    free(targets);
}

static void sequence_done(struct sequence *sequence)
{
    vec_done(&sequence->kinds);
    vec_done(&sequence->from);
    vec_done(&sequence->to);
    vec_done(&sequence->now);
    vec_done(&sequence->nodes);
    vec_done(&sequence->heap);
    vec_done(&sequence->path);
    free(sequence->slack_rps);
    free(sequence->seen);
}

/* A number for "this kind begins here"; a state's hash is the exclusive or of them. */
static uint64_t number_of(int gpu, int start, int kind)
{
    struct rng rng = rng_seed(((uint64_t)gpu << 32) + ((uint64_t)start << 16) + (uint64_t)kind);
    return kind == NOTHING ? 0 : rng_next(&rng) | 1;
}

/* Whether the state was not seen before, and is noted now. */
static bool note(struct sequence *sequence, uint64_t hash)
{
    size_t at = (size_t)(hash % TABLE_SIZE);
    hash = hash ? hash : 1; /* 0 stands for a free place */
    while (sequence->seen[at] && sequence->seen[at] != hash)
        at = (at + 1) % TABLE_SIZE;
    if (sequence->seen[at])
        return false;
    sequence->seen[at] = hash;
    return true;
}

static bool is_better(const struct sequence *sequence, int a, int b)
{
    const struct node *left = &sequence->nodes.data[a], *right = &sequence->nodes.data[b];
    int scores[2] = {left->length + DISTANCE_WEIGHT * left->distance,
                     right->length + DISTANCE_WEIGHT * right->distance};
    return scores[0] != scores[1] ? scores[0] < scores[1] : a < b;
}

static void push(struct sequence *sequence, const struct node *node)
{
    int index = (int)sequence->nodes.count;
    size_t at = sequence->heap.count;
    vec_add(&sequence->nodes, *node);
    vec_add(&sequence->heap, index);
    int *heap = sequence->heap.data;
    while (at > 0 && is_better(sequence, index, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = index;
}

static int pop(struct sequence *sequence)
{
    assert(sequence->heap.count > 0);
    int *heap = sequence->heap.data, top = heap[0];
    size_t count = --sequence->heap.count, at = 0;
    int last = heap[count];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_better(sequence, heap[child + 1], heap[child]);
        if (!is_better(sequence, heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* The steps from the beginning to a node. */
static void find_path(struct sequence *sequence, int node)
{
    vec_clear(&sequence->path);
    for (int at = node; sequence->nodes.data[at].parent >= 0;
         at = sequence->nodes.data[at].parent)
        vec_add(&sequence->path, sequence->nodes.data[at].step);
    for (size_t i = 0, j = sequence->path.count; i + 1 < j; i++) {
        struct step kept = sequence->path.data[i];
        sequence->path.data[i] = sequence->path.data[--j];
        sequence->path.data[j] = kept;
    }
}

/* Sets `now` and the slack to a node's. */
static void go_to(struct sequence *sequence, int node)
{
    size_t gpus = sequence->now.count;
    find_path(sequence, node);
    memcpy(sequence->now.data, sequence->from.data, gpus * sizeof *sequence->now.data);
    for (size_t i = 0; i < sequence->path.count; i++) {
        const struct step *step = &sequence->path.data[i];
        sequence->now.data[step->gpu].at[(int)step->start] = step->kind;
    }
    for (size_t s = 0; s < sequence->transition->services.count; s++)
        sequence->slack_rps[s] = -sequence->work->services[s].floor_rps;
    for (size_t g = 0; g < gpus; g++)
        for (int start = 0; start < MIG_UNITS_MAX; start++) {
            int kind = sequence->now.data[g].at[start];
            const struct serving *serving =
                kind < 0 ? NULL : &sequence->kinds.data[kind].serving;
            if (serving && serving->service >= 0)
                sequence->slack_rps[serving->service] += serving->rate_rps;
        }
}

/* Steps that at least remain for one cell. */
static int cell_distance(int now, int wanted)
{
    return now == wanted ? 0 : (now != NOTHING) + (wanted != NOTHING);
}

static void try_step(struct sequence *sequence, int parent, struct step step)
{
    const struct node *before = &sequence->nodes.data[parent];
    int now = sequence->now.data[step.gpu].at[(int)step.start];
    int wanted = sequence->to.data[step.gpu].at[(int)step.start];
    struct node node = {.parent = parent,
                        .length = before->length + 1,
                        .distance = before->distance - cell_distance(now, wanted) +
                                    cell_distance(step.kind, wanted),
                        .step = step,
                        .hash = before->hash ^ number_of(step.gpu, step.start, now) ^
                                number_of(step.gpu, step.start, step.kind)};
    sequence->steps_left--;
    if (sequence->nodes.count < NODES_MAX && note(sequence, node.hash))
        push(sequence, &node);
}

static struct mig_layout layout_of(const struct sequence *sequence, int gpu)
{
    struct mig_layout layout = {0};
    for (int start = 0; start < MIG_UNITS_MAX; start++) {
        int kind = sequence->now.data[gpu].at[start];
        if (kind != NOTHING)
            layout.instances[layout.count++] = (struct mig_instance){
                (int8_t)sequence->kinds.data[kind].profile, (int8_t)start};
    }
    return layout;
}

static void try_starts(struct sequence *sequence, int parent, int gpu)
{
    const struct mig_board *board = board_of(sequence, gpu);
    struct mig_layout layout = layout_of(sequence, gpu);
    uint32_t taken = mig_layout_span(board, &layout);
    for (size_t k = 0; k < sequence->kinds.count; k++) {
        const struct kind *kind = &sequence->kinds.data[k];
        if (kind->board != board || kind->serving.service < 0)
            continue;
        for (int start = 0; start < board->memory_units; start++) {
            struct mig_instance instance = {(int8_t)kind->profile, (int8_t)start};
            if ((board->profiles[kind->profile].starts >> start & 1) && !(taken >> start & 1) &&
                mig_layout_can_add(board, &layout, instance))
                try_step(sequence, parent,
                         (struct step){gpu, (signed char)start, (signed char)k});
        }
    }
}

static void try_ends(struct sequence *sequence, int parent, int gpu)
{
    for (int start = 0; start < MIG_UNITS_MAX; start++) {
        int kind = sequence->now.data[gpu].at[start];
        if (kind == NOTHING || sequence->kinds.data[kind].serving.service < 0)
            continue;
        const struct serving *serving = &sequence->kinds.data[kind].serving;
        if (work_fits(serving->rate_rps, sequence->slack_rps[serving->service],
                      sequence->work->services[serving->service].floor_rps))
            try_step(sequence, parent, (struct step){gpu, (signed char)start, NOTHING});
    }
}

enum outcome { OUTCOME_FOUND, OUTCOME_NONE, OUTCOME_UNKNOWN };

/* Looks for a path from the beginning to the end over at most so many nodes. */
static enum outcome look(struct sequence *sequence, size_t nodes_max)
{
    struct node first = {.parent = -1};
    vec_clear(&sequence->nodes);
    vec_clear(&sequence->heap);
    memset(sequence->seen, 0, TABLE_SIZE * sizeof *sequence->seen);
    for (size_t g = 0; g < sequence->from.count; g++)
        for (int start = 0; start < MIG_UNITS_MAX; start++) {
            int kind = sequence->from.data[g].at[start];
            first.distance += cell_distance(kind, sequence->to.data[g].at[start]);
            first.hash ^= number_of((int)g, start, kind);
        }
    note(sequence, first.hash);
    push(sequence, &first);
    while (sequence->heap.count > 0) {
        int node = pop(sequence);
        go_to(sequence, node);
        if (sequence->nodes.data[node].distance == 0)
            return OUTCOME_FOUND;
        for (size_t g = 0; g < sequence->now.count; g++) {
            try_starts(sequence, node, (int)g);
            try_ends(sequence, node, (int)g);
        }
        if (sequence->nodes.count >= nodes_max || sequence->steps_left <= 0)
            return OUTCOME_UNKNOWN;
    }
    return OUTCOME_NONE;
}

static void swap_ends(struct sequence *sequence)
{
    for (size_t g = 0; g < sequence->from.count; g++) {
        struct cells kept = sequence->from.data[g];
        sequence->from.data[g] = sequence->to.data[g];
        sequence->to.data[g] = kept;
    }
}

/* A path found from the end to the beginning, the other way round: what a step began ends, and
 * what it ended begins. */
static void turn_path(struct sequence *sequence)
{
    size_t count = sequence->path.count;
    memcpy(sequence->now.data, sequence->to.data,
           sequence->now.count * sizeof *sequence->now.data);
    for (size_t i = 0; i < count; i++) {
        struct step *step = &sequence->path.data[i];
        signed char *cell = &sequence->now.data[step->gpu].at[(int)step->start];
        signed char before = *cell;
        *cell = step->kind;
        step->kind = before;
    }
    for (size_t i = 0, j = count; i + 1 < j; i++) {
        struct step kept = sequence->path.data[i];
        sequence->path.data[i] = sequence->path.data[--j];
        sequence->path.data[j] = kept;
    }
}

/* Steps can be taken back, under the same floors, so that both ends are as good to begin from:
 * where one of them leads nowhere, that shows soon. */
static bool find_sequence(struct sequence *sequence)
{
    static const struct {
        bool backward;
        size_t nodes_max;
    } turns[] = {{false, NODES_FEW}, {true, NODES_FEW}, {false, NODES_MAX}, {true, NODES_MAX}};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (turns[i].backward)
            swap_ends(sequence);
        enum outcome outcome = look(sequence, turns[i].nodes_max);
        if (turns[i].backward) {
            swap_ends(sequence);
            if (outcome == OUTCOME_FOUND)
                turn_path(sequence);
        }
        if (outcome != OUTCOME_UNKNOWN)
            return outcome == OUTCOME_FOUND;
    }
    return false;
}

/* The walk along the sequence found: what is there, serving or not, and the last action on
 * it. */
struct walk {
    const struct sequence *sequence;
    struct builder builder;
    struct standing {
        int profile; /* NOTHING: no instance begins here */
        int last;    /* action, -1: none */
    } (*standing)[MIG_UNITS_MAX];
};

/* Whether an instance without a service stays for the next step on its GPU that needs room, or
 * (when there is none) for the end. */
static bool is_kept(const struct walk *walk, struct slot slot, size_t next_step,
                    const struct plan_gpu *target)
{
    const struct sequence *sequence = walk->sequence;
    for (size_t i = next_step; i < sequence->path.count; i++) {
        const struct step *step = &sequence->path.data[i];
        if (step->gpu == slot.gpu && step->kind != NOTHING)
            return step->start == slot.start &&
                   sequence->kinds.data[step->kind].profile == slot.profile;
    }
    struct plan_instance wanted = {.profile = slot.profile, .start = slot.start};
    return find_idle(target, &wanted);
}

static void clear_unless_kept(struct walk *walk, struct slot slot, size_t next_step,
                              const struct plan_gpu *target)
{
    struct standing *standing = &walk->standing[slot.gpu][slot.start];
    assert(standing->profile == slot.profile);
    if (is_kept(walk, slot, next_step, target))
        return;
    builder_delete(&walk->builder, slot, standing->last);
    *standing = (struct standing){NOTHING, -1};
}

static void carry_out(struct walk *walk, size_t index, const struct plan_gpu *target)
{
    const struct sequence *sequence = walk->sequence;
    const struct step *step = &sequence->path.data[index];
    struct standing *standing = &walk->standing[step->gpu][(int)step->start];
    if (step->kind == NOTHING) {
        /* What ends is what the last step here, or `from`, began. */
        int kind = sequence->from.data[step->gpu].at[(int)step->start];
        for (size_t i = 0; i < index; i++)
            if (sequence->path.data[i].gpu == step->gpu &&
                sequence->path.data[i].start == step->start)
                kind = sequence->path.data[i].kind;
        struct slot slot = {step->gpu, standing->profile, step->start};
        standing->last = builder_stop(
            &walk->builder, builder_drain(&walk->builder, slot,
                                          sequence->kinds.data[kind].serving, standing->last));
        clear_unless_kept(walk, slot, index + 1, target);
        return;
    }
    const struct kind *kind = &sequence->kinds.data[step->kind];
    struct slot slot = {step->gpu, kind->profile, step->start};
    if (standing->profile == NOTHING)
        standing->last = builder_create(&walk->builder, slot);
    standing->profile = kind->profile;
    standing->last = builder_start(&walk->builder, slot, kind->serving, standing->last);
    builder_ready(&walk->builder, standing->last);
}

/* Idle instances of `from` that no step takes as they are go at first. */
static void begin_walk(struct walk *walk, const struct plan_gpu *const *targets)
{
    const struct transition *transition = walk->sequence->transition;
    for (size_t g = 0; g < transition->gpus.count; g++)
        for (int start = 0; start < MIG_UNITS_MAX; start++)
            walk->standing[g][start] = (struct standing){NOTHING, -1};
    for (size_t g = 0; g < transition->from.gpus.count; g++) {
        const struct plan_gpu *gpu = &transition->from.gpus.data[g];
        for (size_t i = 0; i < gpu->instances.count; i++) {
            const struct plan_instance *instance = &gpu->instances.data[i];
            struct slot slot = {(int)g, instance->profile, instance->start};
            walk->standing[g][instance->start].profile = instance->profile;
            if (instance->service < 0 && !find_idle(targets[g], instance))
                clear_unless_kept(walk, slot, 0, targets[g]);
        }
    }
}

/* Idle instances of `to` that are not there yet come at last. */
static void end_walk(struct walk *walk, const struct plan_gpu *const *targets)
{
    for (size_t g = 0; g < walk->sequence->transition->gpus.count; g++)
        for (size_t i = 0; targets[g] && i < targets[g]->instances.count; i++) {
            const struct plan_instance *instance = &targets[g]->instances.data[i];
            if (instance->service < 0 && walk->standing[g][instance->start].profile == NOTHING)
                builder_create(&walk->builder,
                               (struct slot){(int)g, instance->profile, instance->start});
        }
}

static void walk_along(const struct sequence *sequence, const struct action_times *times)
{
    struct transition *transition = sequence->transition;
    struct walk walk = {.sequence = sequence,
                        .standing = xcalloc(transition->gpus.count, sizeof *walk.standing)};
    const struct plan_gpu **targets = targets_of(transition);
    builder_init(&walk.builder, sequence->work, times);
    walk.builder.group = GROUP_REPARTITION;
    begin_walk(&walk, targets);
    for (size_t i = 0; i < sequence->path.count; i++)
        carry_out(&walk, i, targets[sequence->path.data[i].gpu]);
    end_walk(&walk, targets);
    builder_done(&walk.builder);
    free(walk.standing);
    free(targets);
}

static void add_spares(struct transition *transition, int spares, const struct mig_board *board)
{
    for (int i = 0, number = 0; i < spares; i++) {
        const char *id;
        do
            id = arena_printf(&transition->arena, "spare%d", number++);
        while (transition_find_gpu(transition, id) >= 0);
        struct transition_gpu spare = {.id = id, .board = board, .node = ""};
        vec_add(&transition->gpus, spare);
    }
}

bool sequence_search(const struct work *work, const struct action_times *times, int spares,
                     const struct mig_board *board)
{
    struct transition *transition = work->transition;
    size_t gpus = transition->gpus.count;
    assert(spares >= 0 && transition->actions.count == 0);
    if (gpus + (size_t)spares > GPUS_MAX)
        return false;
    struct sequence sequence;
    add_spares(transition, spares, board);
    sequence_init(&sequence, work);
    bool found = sequence.kinds.count <= KINDS_MAX && find_sequence(&sequence);
    if (found)
        walk_along(&sequence, times);
    else
        transition->gpus.count = gpus;
    sequence_done(&sequence);
    return found;
}
