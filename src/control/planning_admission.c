/* SPDX-License-Identifier: Apache-2.0
 *
 * The order is a list of steps, each the rate that a service gets when all before it are
 * served. The longest prefix that fits is found by halving, then each later step is tried by
 * itself, then parts of those that did not fit.
 */
#include "control/planning_admission.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"

/* Parts that are tried: from one to the next at most a ninth less, 2^-16 the least. */
enum { PARTS_AN_OCTAVE = 8, PARTS = 16 * PARTS_AN_OCTAVE };

static const double TOLERANCE = 1e-9;

struct step {
    struct admission_service *service;
    double rps;
    bool grows; /* beyond what the service has */
};

struct steps {
    struct step *items;
    size_t count, top_held; /* the first of them keep what the most urgent services have */
    int tries;              /* made so far */
};

static void steps_done(struct steps *steps)
{
    free(steps->items);
}

static int compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    int order;

    if (x->service->priority != y->service->priority)
        return x->service->priority > y->service->priority ? -1 : 1;
    if (x->grows != y->grows)
        return x->grows - y->grows;
    order = strcmp(x->service->created, y->service->created);
    return order ? order : strcmp(x->service->name, y->service->name);
}

static void list_steps(const struct admission *admission, struct steps *steps)
{
    steps->items = xcalloc(2 * admission->count + 1, sizeof *steps->items);
    for (size_t i = 0; i < admission->count; i++) {
        struct admission_service *service = &admission->services[i];
        assert(service->held_rps <= service->wanted_rps);
        if (service->held_rps > 0)
            steps->items[steps->count++] = (struct step){service, service->held_rps, false};
        if (service->held_rps < service->wanted_rps * (1 - TOLERANCE))
            steps->items[steps->count++] = (struct step){service, service->wanted_rps, true};
    }
    if (steps->count > 0)
        qsort(steps->items, steps->count, sizeof *steps->items, compare_steps);
    while (steps->top_held < steps->count && !steps->items[steps->top_held].grows &&
           steps->items[steps->top_held].service->priority == steps->items[0].service->priority)
        steps->top_held++;
}

static int try_it(const struct admission *admission, struct steps *steps, bool *ret_fits,
                  struct error *err)
{
    *ret_fits = false;
    if (steps->tries >= admission->tries_max)
        return 0;
    steps->tries++;
    return admission->fits(admission->context, ret_fits, err);
}

static void give_first(const struct admission *admission, const struct steps *steps,
                       size_t count)
{
    assert(count <= steps->count);
    for (size_t i = 0; i < admission->count; i++)
        admission->services[i].given_rps = 0;
    for (size_t i = 0; i < count; i++)
        steps->items[i].service->given_rps = steps->items[i].rps;
}

/* Gives the longest prefix that fits; all steps together are known not to, and then the one
 * after it is known not to. */
static int give_prefix(const struct admission *admission, struct steps *steps, size_t *ret_fits,
                       struct error *err)
{
    size_t low = 0, high = steps->count;
    int rc = 0;

    while (rc == 0 && high > low + 1) {
        size_t middle = low + (high - low) / 2;
        bool fits;
        give_first(admission, steps, middle);
        rc = try_it(admission, steps, &fits, err);
        if (fits)
            low = middle;
        else
            high = middle;
    }
    give_first(admission, steps, low);
    *ret_fits = low;
    return rc;
}

/* Gives a service this rate if it fits. */
static int give(const struct admission *admission, struct steps *steps, const struct step *step,
                double rps, bool *ret_fits, struct error *err)
{
    double before = step->service->given_rps;

    step->service->given_rps = rps;
    int rc = try_it(admission, steps, ret_fits, err);
    if (!*ret_fits)
        step->service->given_rps = before;
    return rc;
}

static double part_of(double rps, int part)
{
    int octave = part / PARTS_AN_OCTAVE, within = part % PARTS_AN_OCTAVE;

    return ldexp(rps, -octave) * (2 * PARTS_AN_OCTAVE - within) / (2 * PARTS_AN_OCTAVE);
}

/* Gives the largest part that fits. The parts are those of the whole, whatever a service has,
 * so a plan made anew gives no crumb more. */
static int give_part(const struct admission *admission, struct steps *steps,
                     const struct step *step, struct error *err)
{
    const struct admission_service *service = step->service;
    int low = 0, high = PARTS, rc = 0; /* part low is too much, high is taken to fit */

    while (part_of(service->wanted_rps, low + 1) >= step->rps)
        low++;
    while (high > low && part_of(service->wanted_rps, high - 1) <= service->given_rps)
        high--;
    while (rc == 0 && high > low + 1) {
        int middle = low + (high - low) / 2;
        bool fits;
        rc = give(admission, steps, step, part_of(service->wanted_rps, middle), &fits, err);
        if (fits)
            high = middle;
        else
            low = middle;
    }
    return rc;
}

/* A service that cannot keep what it has does not get more either. */
static bool is_lower_rejected(const struct step *step)
{
    return step->grows && step->service->given_rps < step->service->held_rps;
}

int admission_run(struct admission *admission, struct error *err)
{
    CLEANUP(steps_done) struct steps steps = {0};
    size_t first = 0;
    bool fits;

    list_steps(admission, &steps);
    int rc = give_prefix(admission, &steps, &first, err);
    if (rc == 0 && first < steps.top_held)
        return error_set(
            err, E_NO,
            "the pool's usable GPUs do not suffice for what its services have: the "
            "last plan stays");
    for (size_t i = first + 1; i < steps.count && rc == 0; i++)
        if (!is_lower_rejected(&steps.items[i]))
            rc = give(admission, &steps, &steps.items[i], steps.items[i].rps, &fits, err);
    for (size_t i = first; i < steps.count && rc == 0; i++)
        if (steps.items[i].rps > steps.items[i].service->given_rps &&
            !is_lower_rejected(&steps.items[i]))
            rc = give_part(admission, &steps, &steps.items[i], err);
    return rc;
}
