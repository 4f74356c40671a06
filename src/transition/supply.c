/* SPDX-License-Identifier: Apache-2.0 */
#include "transition/supply.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double WHOLE = 1125899906842624.0; /* 2^50: what a service's sum becomes */
/* As tight as the planners' own sums (work.c). */
static const double TOLERANCE = 1e-11;
static const size_t ROWS_BYTES_MAX = (size_t)128 << 20;
static const int64_t EFFORT = 400 * 1000 * 1000;

static const struct transition_action *action_at(const struct supply *supply, int action)
{
    assert(action >= 0 && (size_t)action < supply->transition->actions.count);
    return &supply->transition->actions.data[action];
}

static uint64_t *row_at(const struct supply *supply, int action)
{
    assert(supply->row_of[action] >= 0);
    return &supply->rows[(size_t)supply->row_of[action] * supply->words];
}

static bool has_column(const uint64_t *row, int column)
{
    return row[column / 64] >> (column % 64) & 1;
}

/* Rows are needed of what comes before a drain, columns of the starts among it. */
static bool number_rows(struct supply *supply)
{
    const struct transition *transition = supply->transition;
    size_t count = transition->actions.count, services = transition->services.count;
    bool *needed = xcalloc(count, sizeof *needed), *drains = xcalloc(services, sizeof *drains);
    size_t rows = 0, columns = 0;
    for (size_t i = count; i-- > 0;) {
        const struct transition_action *action = &transition->actions.data[i];
        needed[i] |= action->kind == ACTION_DRAIN;
        if (action->kind == ACTION_DRAIN)
            drains[action->service] = true;
        for (size_t j = 0; needed[i] && j < action->after.count; j++)
            needed[action->after.data[j]] = true;
    }
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        bool gives = needed[i] && action->kind == ACTION_START && drains[action->service];
        supply->row_of[i] = needed[i] ? (int)rows++ : -1;
        supply->column_of[i] = gives ? (int)columns++ : -1;
    }
    free(needed);
    free(drains);
    supply->words = columns / 64 + 1;
    return rows <= ROWS_BYTES_MAX / (supply->words * sizeof(uint64_t));
}

static void find_row(const struct supply *supply, int action, uint64_t *row)
{
    const struct transition_action *here = action_at(supply, action);
    memset(row, 0, supply->words * sizeof *row);
    for (size_t j = 0; j < here->after.count; j++) {
        int before = here->after.data[j], column = supply->column_of[before];
        const uint64_t *other = row_at(supply, before);
        for (size_t w = 0; w < supply->words; w++)
            row[w] |= other[w];
        if (column >= 0)
            row[column / 64] |= UINT64_C(1) << (column % 64);
    }
}

static void fill_rows(struct supply *supply)
{
    size_t count = supply->transition->actions.count, rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += supply->row_of[i] >= 0;
    supply->rows = xcalloc(rows * supply->words, sizeof *supply->rows);
    for (size_t i = 0; i < count; i++)
        if (supply->row_of[i] >= 0)
            find_row(supply, (int)i, row_at(supply, (int)i));
}

static void fill_successors(struct supply *supply)
{
    const struct transition *transition = supply->transition;
    size_t count = transition->actions.count, edges = 0;
    int *first = supply->successor_first = xcalloc(count + 2, sizeof(int));
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t j = 0; j < action->after.count; j++, edges++)
            first[action->after.data[j] + 2]++;
    }
    for (size_t i = 2; i < count + 2; i++)
        first[i] += first[i - 1];
    supply->successors = xcalloc(edges, sizeof(int));
    for (size_t i = 0; i < count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        for (size_t j = 0; j < action->after.count; j++)
            supply->successors[first[action->after.data[j] + 1]++] = (int)i;
    }
}

static bool can_give(const struct supply *supply, const struct supply_giver *giver,
                     const struct supply_taker *taker)
{
    return giver->column < 0 || has_column(row_at(supply, taker->action), giver->column);
}

static void add_share(struct supply_service *service, int giver, int taker, int64_t amount)
{
    assert(amount > 0);
    for (size_t i = 0; i < service->shares.count; i++) {
        struct supply_share *share = &service->shares.data[i];
        if (share->giver == giver && share->taker == taker) {
            share->amount += amount;
            return;
        }
    }
    vec_add(&service->shares, ((struct supply_share){giver, taker, amount}));
}

#define FILL_NONE(v, wanted)                                                                   \
    do {                                                                                       \
        (v)->count = 0;                                                                        \
        while ((v)->count < (wanted))                                                          \
            vec_add(v, -1);                                                                    \
    } while (0)

static void search_begin(struct supply_search *search, const struct supply_service *service)
{
    FILL_NONE(&search->taker_of_giver, service->givers.count);
    FILL_NONE(&search->share_of_giver, service->givers.count);
    FILL_NONE(&search->share_of_taker, service->takers.count);
    FILL_NONE(&search->next_share, service->shares.count);
    for (size_t i = 0; i < service->shares.count; i++) {
        int giver = service->shares.data[i].giver;
        search->next_share.data[i] = search->share_of_giver.data[giver];
        search->share_of_giver.data[giver] = (int)i;
    }
    vec_clear(&search->queue);
}

/* Those who have a share of a giver in reach would take from others if they lost it. */
static void reach_takers(struct supply_search *search, const struct supply_service *service,
                         size_t giver, int taker)
{
    for (int i = search->share_of_giver.data[giver]; i >= 0; i = search->next_share.data[i]) {
        int other = service->shares.data[i].taker;
        if (other == taker || search->share_of_taker.data[other] >= 0)
            continue;
        search->share_of_taker.data[other] = i;
        vec_add(&search->queue, other);
    }
}

/* Breadth first from a taker; returns a giver with something left, or -1. */
static int find_giver(struct supply *supply, const struct supply_service *service, int taker)
{
    struct supply_search *search = &supply->search;
    search_begin(search, service);
    vec_add(&search->queue, taker);
    supply->effort_left -= (int64_t)(service->shares.count + service->takers.count);
    for (size_t head = 0; head < search->queue.count; head++) {
        int at = search->queue.data[head];
        supply->effort_left -= (int64_t)service->givers.count;
        for (size_t g = 0; g < service->givers.count; g++) {
            if (search->taker_of_giver.data[g] >= 0 ||
                !can_give(supply, &service->givers.data[g], &service->takers.data[at]))
                continue;
            search->taker_of_giver.data[g] = at;
            if (service->givers.data[g].left > 0)
                return (int)g;
            reach_takers(search, service, g, taker);
        }
    }
    return -1;
}

/* What the path from the taker to the giver can carry. */
static int64_t path_room(const struct supply_search *search,
                         const struct supply_service *service, int giver, int taker)
{
    int64_t room = service->givers.data[giver].left, lack = service->takers.data[taker].lack;
    room = lack < room ? lack : room;
    for (int t = search->taker_of_giver.data[giver]; t != taker;) {
        const struct supply_share *share =
            &service->shares.data[search->share_of_taker.data[t]];
        room = share->amount < room ? share->amount : room;
        t = search->taker_of_giver.data[share->giver];
    }
    return room;
}

/* The giver at the end of the path gives, and each taker on the way trades a share of the
 * giver before for one of the giver after it. */
static void pass_on(const struct supply_search *search, struct supply_service *service,
                    int giver, int taker)
{
    int64_t amount = path_room(search, service, giver, taker);
    int at = search->taker_of_giver.data[giver];
    size_t kept = 0;
    assert(amount > 0);
    service->givers.data[giver].left -= amount;
    service->takers.data[taker].lack -= amount;
    service->lack -= amount;
    add_share(service, giver, at, amount);
    while (at != taker) {
        struct supply_share *share = &service->shares.data[search->share_of_taker.data[at]];
        share->amount -= amount;
        at = search->taker_of_giver.data[share->giver];
        add_share(service, share->giver, at, amount);
    }
    for (size_t i = 0; i < service->shares.count; i++)
        if (service->shares.data[i].amount > 0)
            service->shares.data[kept++] = service->shares.data[i];
    service->shares.count = kept;
}

/* Deals out what is left; whether what is still lacking then is mere rounding. */
static bool deal(struct supply *supply, struct supply_service *service)
{
    for (size_t t = 0; t < service->takers.count; t++)
        while (service->takers.data[t].lack > 0 && supply->effort_left > 0) {
            int giver = find_giver(supply, service, (int)t);
            if (giver < 0)
                break;
            pass_on(&supply->search, service, giver, (int)t);
        }
    return service->lack <= service->lack_max;
}

/* giver_of: of each start that gives, its index in its service. */
static void add_givers_and_takers(struct supply *supply, const struct work *work,
                                  const double *sums, int *giver_of)
{
    const struct transition *transition = supply->transition;
    for (size_t s = 0; s < transition->services.count; s++) {
        const struct work_service *here = &work->services[s];
        double scale = sums[s] > 0 ? WHOLE / sums[s] : 0;
        double slack = fmax((double)(here->capacity_rps - here->floor_rps), 0);
        struct supply_giver giver = {-1, llround(slack * scale)};
        vec_add(&supply->services[s].givers, giver);
        supply->services[s].lack_max = llround(TOLERANCE * here->floor_rps * scale);
    }
    for (size_t i = 0; i < transition->actions.count; i++) {
        const struct transition_action *action = &transition->actions.data[i];
        if (action->kind != ACTION_DRAIN && supply->column_of[i] < 0)
            continue;
        struct supply_service *service = &supply->services[action->service];
        double scale = sums[action->service] > 0 ? WHOLE / sums[action->service] : 0;
        int64_t amount = llround(action->rate_rps * scale);
        struct supply_giver giver = {supply->column_of[i], amount};
        struct supply_taker taker = {(int)i, amount};
        if (action->kind == ACTION_DRAIN) {
            vec_add(&service->takers, taker);
            continue;
        }
        giver_of[i] = (int)service->givers.count;
        vec_add(&service->givers, giver);
    }
}

static void give(struct supply_service *service, int giver, int taker)
{
    int64_t left = service->givers.data[giver].left, lack = service->takers.data[taker].lack;
    int64_t amount = left < lack ? left : lack;
    if (amount == 0)
        return;
    service->givers.data[giver].left -= amount;
    service->takers.data[taker].lack -= amount;
    vec_add(&service->shares, ((struct supply_share){giver, taker, amount}));
}

/* The deal that a planner had in mind, or nearly: the slack to those who come first, and then
 * from the starts that a drain waits for by itself. What it leaves open is dealt by search. */
static void deal_first(struct supply *supply, struct supply_service *service,
                       const int *giver_of)
{
    assert(service->shares.count == 0 && service->lack == 0);
    for (size_t t = 0; t < service->takers.count; t++) {
        int index = service->takers.data[t].action;
        const struct transition_action *drain = action_at(supply, index);
        give(service, 0, (int)t);
        for (size_t j = 0; j < drain->after.count; j++) {
            int start = drain->after.data[j];
            if (giver_of[start] > 0 && action_at(supply, start)->service == drain->service)
                give(service, giver_of[start], (int)t);
        }
        service->lack += service->takers.data[t].lack;
    }
}

static void deal_all(struct supply *supply, const struct work *work)
{
    const struct transition *transition = supply->transition;
    double *sums = xcalloc(transition->services.count, sizeof *sums);
    int *giver_of = xcalloc(transition->actions.count, sizeof *giver_of);
    for (size_t s = 0; s < transition->services.count; s++)
        sums[s] = (double)work->services[s].capacity_rps;
    for (size_t i = 0; i < transition->actions.count; i++)
        if (transition->actions.data[i].service >= 0)
            sums[transition->actions.data[i].service] += transition->actions.data[i].rate_rps;
    add_givers_and_takers(supply, work, sums, giver_of);
    for (size_t s = 0; s < transition->services.count; s++) {
        deal_first(supply, &supply->services[s], giver_of);
        if (!deal(supply, &supply->services[s])) /* the planner's sums rounded otherwise */
            supply->services[s].lack_max = supply->services[s].lack;
    }
    free(sums);
    free(giver_of);
}

bool supply_init(struct supply *supply, const struct work *work)
{
    struct transition *transition = work->transition;
    size_t count = transition->actions.count;
    *supply = (struct supply){.transition = transition,
                              .row_of = xcalloc(count, sizeof(int)),
                              .column_of = xcalloc(count, sizeof(int)),
                              .effort_left = EFFORT};
    if (!number_rows(supply))
        return false;
    supply->is_dirty = xcalloc(count, sizeof(bool));
    supply->is_affected = xcalloc(transition->services.count, sizeof(bool));
    supply->services = xcalloc(transition->services.count, sizeof *supply->services);
    supply->scratch = xcalloc(supply->words, sizeof(uint64_t));
    fill_rows(supply);
    fill_successors(supply);
    deal_all(supply, work);
    return true;
}

static void service_done(struct supply_service *service)
{
    vec_done(&service->givers);
    vec_done(&service->takers);
    vec_done(&service->shares);
}

void supply_done(struct supply *supply)
{
    for (size_t s = 0; supply->services && s < supply->transition->services.count; s++)
        service_done(&supply->services[s]);
    free(supply->services);
    service_done(&supply->kept);
    free(supply->row_of);
    free(supply->column_of);
    free(supply->rows);
    free(supply->successor_first);
    free(supply->successors);
    free(supply->is_dirty);
    free(supply->is_affected);
    free(supply->scratch);
    vec_done(&supply->search.queue);
    vec_done(&supply->search.taker_of_giver);
    vec_done(&supply->search.share_of_taker);
    vec_done(&supply->search.share_of_giver);
    vec_done(&supply->search.next_share);
    vec_done(&supply->changed);
    vec_done(&supply->old_rows);
}

/* Sets the row of an action that lost an edge, or of one after it; whether it changed. */
static bool update_row(struct supply *supply, int action)
{
    uint64_t *row = row_at(supply, action);
    supply->effort_left -=
        (int64_t)(supply->words * (action_at(supply, action)->after.count + 1));
    find_row(supply, action, supply->scratch);
    if (memcmp(row, supply->scratch, supply->words * sizeof *row) == 0)
        return false;
    vec_add(&supply->changed, action);
    for (size_t w = 0; w < supply->words; w++)
        vec_add(&supply->old_rows, row[w]);
    memcpy(row, supply->scratch, supply->words * sizeof *row);
    return true;
}

/* Updates the rows of a drain that lost an edge and of all after it, in the order's order. */
static void update_rows(struct supply *supply, int drain)
{
    int last = drain;
    vec_clear(&supply->changed);
    vec_clear(&supply->old_rows);
    supply->is_dirty[drain] = true;
    for (int i = drain; i <= last; i++) {
        if (!supply->is_dirty[i])
            continue;
        supply->is_dirty[i] = false;
        if (!update_row(supply, i))
            continue;
        for (int k = supply->successor_first[i]; k < supply->successor_first[i + 1]; k++) {
            int next = supply->successors[k];
            if (supply->row_of[next] < 0)
                continue;
            supply->is_dirty[next] = true;
            last = next > last ? next : last;
        }
    }
}

static void restore_rows(struct supply *supply)
{
    assert(supply->old_rows.count == supply->changed.count * supply->words);
    for (size_t i = 0; i < supply->changed.count; i++)
        memcpy(row_at(supply, supply->changed.data[i]),
               &supply->old_rows.data[i * supply->words], supply->words * sizeof(uint64_t));
}

/* Takes back the shares whose giver the taker waits for no longer; whether there were any. */
static bool take_back(const struct supply *supply, struct supply_service *service)
{
    size_t kept = 0, count = service->shares.count;
    for (size_t i = 0; i < count; i++) {
        struct supply_share share = service->shares.data[i];
        struct supply_giver *giver = &service->givers.data[share.giver];
        struct supply_taker *taker = &service->takers.data[share.taker];
        if (can_give(supply, giver, taker)) {
            service->shares.data[kept++] = share;
            continue;
        }
        giver->left += share.amount;
        taker->lack += share.amount;
        service->lack += share.amount;
    }
    service->shares.count = kept;
    return kept < count;
}

static void copy_service(const struct supply_service *from, struct supply_service *to)
{
    vec_clear(&to->givers);
    vec_clear(&to->takers);
    vec_clear(&to->shares);
    for (size_t i = 0; i < from->givers.count; i++)
        vec_add(&to->givers, from->givers.data[i]);
    for (size_t i = 0; i < from->takers.count; i++)
        vec_add(&to->takers, from->takers.data[i]);
    for (size_t i = 0; i < from->shares.count; i++)
        vec_add(&to->shares, from->shares.data[i]);
    to->lack = from->lack;
    to->lack_max = from->lack_max;
}

/* Whether the deals of all services whose drains wait for less now can be made good. One that
 * was changed on the way to a no is as good as the one before: it asks for less. */
static bool deal_again(struct supply *supply)
{
    bool held = true;
    for (size_t i = 0; i < supply->changed.count; i++) {
        const struct transition_action *action = action_at(supply, supply->changed.data[i]);
        if (action->kind == ACTION_DRAIN)
            supply->is_affected[action->service] = true;
    }
    for (size_t i = 0; i < supply->changed.count; i++) {
        const struct transition_action *action = action_at(supply, supply->changed.data[i]);
        if (action->kind != ACTION_DRAIN || !supply->is_affected[action->service])
            continue;
        struct supply_service *service = &supply->services[action->service];
        supply->is_affected[action->service] = false;
        if (!held)
            continue;
        copy_service(service, &supply->kept);
        if (take_back(supply, service) && !deal(supply, service)) {
            copy_service(&supply->kept, service);
            held = false;
        }
    }
    return held;
}

bool supply_drop_edge(struct supply *supply, int drain, size_t index)
{
    struct transition_action *action = &supply->transition->actions.data[drain];
    assert(action->kind == ACTION_DRAIN && index < action->after.count);
    int before = action->after.data[index];
    size_t behind = action->after.count - index - 1;
    if (supply->effort_left <= 0)
        return false;
    memmove(&action->after.data[index], &action->after.data[index + 1], behind * sizeof(int));
    action->after.count--;
    update_rows(supply, drain);
    if (deal_again(supply))
        return true;
    restore_rows(supply);
    memmove(&action->after.data[index + 1], &action->after.data[index], behind * sizeof(int));
    action->after.data[index] = before;
    action->after.count++;
    return false;
}
