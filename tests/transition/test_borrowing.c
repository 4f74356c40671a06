/* SPDX-License-Identifier: Apache-2.0
 *
 * Borrowed GPUs against the truth: where a planned transition of a small machine borrows, every
 * sequence of steps is searched for one that borrows less. The seed is printed;
 * TRANCHE_CASES sets how many transitions are looked at.
 */
#include "support.h"

#include "base/map.h"

enum { CASES = 150, KINDS_MAX = 32, CONTENTS_MAX = 20000, GPUS_MAX = 4, STATES_MAX = 1 << 18 };
static const uint64_t SEED = 17;

/* A way to run a service that one of the plans uses. */
struct kind {
    int profile, service; /* of the transition */
    double rate_rps;
};

/* What a GPU may hold: ids of kinds by start, −1: no instance begins there. */
struct content {
    signed char at[MIG_UNITS_MAX];
};

struct truth_search {
    const struct transition *transition;
    const struct mig_board *board;
    struct kind kinds[KINDS_MAX];
    int kind_count;
    struct map ids; /* of contents */
    VEC(struct content) contents;
    uint64_t *seen; /* a hash table of states; 0: free */
    VEC(uint64_t) queue;
};

struct tally {
    int cases, borrowing, borrowed, needless, unknown;
};

static int content_id(const struct truth_search *search, const struct content *content)
{
    char key[MIG_UNITS_MAX + 1] = {0};
    for (int i = 0; i < MIG_UNITS_MAX; i++)
        key[i] = (char)(content->at[i] + 2);
    return (int)map_find(&search->ids, key);
}

static void add_contents(struct truth_search *search, struct content content,
                         struct mig_layout layout, int start)
{
    if (start == search->board->memory_units) {
        char key[MIG_UNITS_MAX + 1] = {0};
        for (int i = 0; i < MIG_UNITS_MAX; i++)
            key[i] = (char)(content.at[i] + 2);
        if (search->contents.count < CONTENTS_MAX) {
            map_put(&search->ids, key, NULL);
            vec_add(&search->contents, content);
        }
        return;
    }
    add_contents(search, content, layout, start + 1);
    for (int k = 0; k < search->kind_count && search->contents.count < CONTENTS_MAX; k++) {
        int profile = search->kinds[k].profile;
        struct mig_instance instance = {(int8_t)profile, (int8_t)start};
        if (!(search->board->profiles[profile].starts >> start & 1) ||
            !mig_layout_can_add(search->board, &layout, instance))
            continue;
        struct mig_layout with = layout;
        struct content more = content;
        mig_layout_add(search->board, &with, instance);
        more.at[start] = (signed char)k;
        add_contents(search, more, with, start + 1);
    }
}

static int find_kind(struct truth_search *search, int profile, int service, double rate_rps)
{
    int k = 0;
    while (k < search->kind_count &&
           (search->kinds[k].profile != profile || search->kinds[k].service != service))
        k++;
    if (k == search->kind_count) {
        assert_true(k < KINDS_MAX);
        search->kinds[search->kind_count++] = (struct kind){profile, service, rate_rps};
    }
    return k;
}

static struct content content_of(struct truth_search *search, const struct plan *plan,
                                 const struct plan_gpu *gpu)
{
    struct content content;
    memset(content.at, -1, sizeof content.at);
    for (size_t i = 0; i < gpu->instances.count; i++) {
        const struct plan_instance *instance = &gpu->instances.data[i];
        content.at[instance->start] = (signed char)find_kind(
            search, instance->profile,
            truth_service(search->transition, plan, instance->service), instance->rate_rps);
    }
    return content;
}

static int compare_ids(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* GPUs are alike: a state is the sorted list of what they hold. */
static uint64_t state_of(const uint16_t *ids)
{
    uint16_t sorted[GPUS_MAX];
    uint64_t state = 0;
    memcpy(sorted, ids, sizeof sorted);
    qsort(sorted, GPUS_MAX, sizeof *sorted, compare_ids);
    for (int g = 0; g < GPUS_MAX; g++)
        state = state << 16 | sorted[g];
    return state;
}

static uint64_t state_of_plan(struct truth_search *search, const struct plan *plan, int gpus)
{
    uint16_t ids[GPUS_MAX];
    struct content nothing;
    memset(nothing.at, -1, sizeof nothing.at);
    for (int g = 0; g < GPUS_MAX; g++) {
        struct content content =
            g < (int)plan->gpus.count ? content_of(search, plan, &plan->gpus.data[g]) : nothing;
        /* CONTENTS_MAX stands for no GPU at all. */
        ids[g] = g < gpus ? (uint16_t)content_id(search, &content) : CONTENTS_MAX;
    }
    return state_of(ids);
}

static void visit(struct truth_search *search, uint64_t state)
{
    size_t at = (size_t)((state * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % (2 * STATES_MAX);
    while (search->seen[at] && search->seen[at] != state + 1)
        at = (at + 1) % (2 * STATES_MAX);
    if (search->seen[at])
        return;
    search->seen[at] = state + 1;
    vec_add(&search->queue, state);
}

static void visit_changed(struct truth_search *search, const uint16_t *ids, int gpu,
                          const struct content *content)
{
    uint16_t changed[GPUS_MAX];
    int id = content_id(search, content);
    if (id < 0)
        return;
    memcpy(changed, ids, sizeof changed);
    changed[gpu] = (uint16_t)id;
    visit(search, state_of(changed));
}

/* Every step from a state: an instance of any kind anywhere, or one less that its service can
 * do without. */
static void expand(struct truth_search *search, uint64_t state)
{
    uint16_t ids[GPUS_MAX];
    double capacity[26] = {0};
    for (int g = 0; g < GPUS_MAX; g++) {
        ids[g] = (uint16_t)(state >> (16 * g));
        for (int i = 0; ids[g] < CONTENTS_MAX && i < MIG_UNITS_MAX; i++) {
            int k = search->contents.data[ids[g]].at[i];
            if (k >= 0)
                capacity[search->kinds[k].service] += search->kinds[k].rate_rps;
        }
    }
    for (int g = 0; g < GPUS_MAX; g++) {
        for (int i = 0; ids[g] < CONTENTS_MAX && i < search->board->memory_units; i++) {
            struct content content = search->contents.data[ids[g]];
            int here = content.at[i];
            for (int k = 0; here < 0 && k < search->kind_count; k++) {
                content.at[i] = (signed char)k;
                visit_changed(search, ids, g, &content);
            }
            if (here < 0)
                continue;
            const struct kind *kind = &search->kinds[here];
            double floor_rps = search->transition->services.data[kind->service].floor_rps;
            content.at[i] = -1;
            if (capacity[kind->service] - kind->rate_rps >= floor_rps * (1 - 1e-9))
                visit_changed(search, ids, g, &content);
        }
    }
}

/* 1: `to` can be reached with so many GPUs, 0: it cannot, -1: too large to say. */
static int is_reachable(struct truth_search *search, int gpus)
{
    const struct transition *transition = search->transition;
    uint64_t wanted = state_of_plan(search, &transition->to, gpus);
    memset(search->seen, 0, 2 * STATES_MAX * sizeof *search->seen);
    vec_clear(&search->queue);
    visit(search, state_of_plan(search, &transition->from, gpus));
    for (size_t i = 0; i < search->queue.count; i++) {
        if (search->queue.data[i] == wanted)
            return 1;
        if (search->queue.count > STATES_MAX)
            return -1;
        expand(search, search->queue.data[i]);
    }
    return 0;
}

/* Whether fewer borrowed GPUs would do, as is_reachable(). */
static int is_needless(const struct transition *transition)
{
    size_t count = transition->from.gpus.count > transition->to.gpus.count
                       ? transition->from.gpus.count
                       : transition->to.gpus.count;
    int gpus = (int)count + transition->extra_gpus - 1, answer = -1;
    struct truth_search search = {.transition = transition,
                                  .board = transition->from.gpus.data[0].board};
    struct content nothing;
    memset(nothing.at, -1, sizeof nothing.at);
    for (size_t g = 0; g < transition->from.gpus.count; g++)
        content_of(&search, &transition->from, &transition->from.gpus.data[g]);
    for (size_t g = 0; g < transition->to.gpus.count; g++)
        content_of(&search, &transition->to, &transition->to.gpus.data[g]);
    add_contents(&search, nothing, (struct mig_layout){0}, 0);
    search.seen = xcalloc(2 * STATES_MAX, sizeof *search.seen);
    if (search.contents.count < CONTENTS_MAX && gpus <= GPUS_MAX)
        answer = is_reachable(&search, gpus);
    free(search.seen);
    map_done(&search.ids);
    vec_done(&search.contents);
    vec_done(&search.queue);
    return answer;
}

static void check_case(uint64_t number, struct tally *tally)
{
    struct rng rng = rng_seed_stream(SEED, number);
    bool shuffled = rng_below(&rng, 2);
    struct random_case given = {.gpus_min = 1,
                                .gpus_max = 3,
                                .services = 1 + (int)rng_below(&rng, 3),
                                .tight = shuffled ? 1 : rng_uniform(&rng, 0.9, 1),
                                .partial = rng_below(&rng, 2)};
    CLEANUP(plan_done) struct plan from, to;
    CLEANUP(transition_done) struct transition transition;
    const char *board = random_boards[rng_below(&rng, 3) > 0];
    struct error err;
    transition_init(&transition);
    support_random_plan(&rng, &given, &board, 1, &from);
    if (shuffled)
        support_shuffle(&rng, &from, &to);
    else
        support_random_plan(&rng, &given, &board, 1, &to);
    struct transition_options options = {.spare = 16, .seed = number};
    if (transition_plan(&from, &to, &options, &transition, &err) < 0)
        fail_msg("case %llu: %s", (unsigned long long)number, err.text);
    tally->cases++;
    if (transition.extra_gpus == 0)
        return;
    int needless = is_needless(&transition);
    tally->borrowing++;
    tally->borrowed += transition.extra_gpus;
    tally->unknown += needless < 0;
    tally->needless += needless > 0;
    if (needless > 0)
        print_message("# case %llu (%s, %zu and %zu GPUs): borrows %d, %d would do\n",
                      (unsigned long long)number, board, from.gpus.count, to.gpus.count,
                      transition.extra_gpus, transition.extra_gpus - 1);
}

static void test_borrowing(void **state)
{
    (void)state;
    int cases = support_count("TRANCHE_CASES", CASES);
    struct tally tally = {0};
    print_message("# seed %llu, %d cases\n", (unsigned long long)SEED, cases);
    for (int i = 0; i < cases; i++)
        check_case((uint64_t)i, &tally);
    print_message("# %d transitions: %d borrow (%d GPUs), %d of them too much, %d too large to "
                  "say\n",
                  tally.cases, tally.borrowing, tally.borrowed, tally.needless, tally.unknown);
    assert_true(tally.borrowing > tally.unknown);
    assert_int_equal(tally.needless, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borrowing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
