/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rates a pool serves that is too small, over a pool that is one number: what fits is a
 * sum. Case tables, then random services against what must hold of any answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "control/planning_admission.h"

enum { SERVICES_MAX = 8 };

struct pool {
    struct admission admission;
    struct admission_service services[SERVICES_MAX];
    double capacity_rps;
    int calls;
    double fitted_rps[SERVICES_MAX]; /* given when it fitted last */
};

static int fits(void *context, bool *ret_fits, struct error *err)
{
    struct pool *pool = context;
    double sum = 0;

    (void)err;
    pool->calls++;
    for (size_t i = 0; i < pool->admission.count; i++)
        sum += pool->services[i].given_rps;
    *ret_fits = sum <= pool->capacity_rps * (1 + 1e-12);
    for (size_t i = 0; *ret_fits && i < pool->admission.count; i++)
        pool->fitted_rps[i] = pool->services[i].given_rps;
    return 0;
}

static int run(struct pool *pool, size_t count, int tries_max)
{
    struct error err = {0};

    pool->admission = (struct admission){.services = pool->services,
                                         .count = count,
                                         .fits = fits,
                                         .context = pool,
                                         .tries_max = tries_max};
    return admission_run(&pool->admission, &err);
}

#define OLD   "2026-01-01T00:00:00Z"
#define NEWER "2026-02-01T00:00:00Z"

static void test_cases(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double capacity_rps;
        struct admission_service services[3];
        double given_rps[3];
        int rc;
    } cases[] = {
        {"the older one first",
         100,
         {{"a", NEWER, 0, 80, 0, 0}, {"b", OLD, 0, 80, 0, 0}},
         {20, 80},
         0},
        {"of one age by name",
         80,
         {{"b", OLD, 0, 80, 0, 0}, {"a", OLD, 0, 80, 0, 0}},
         {0, 80},
         0},
        {"the more urgent one first",
         80,
         {{"a", OLD, 0, 80, 80, 0}, {"b", NEWER, 1, 80, 0, 0}},
         {0, 80},
         0},
        {"nobody loses what he has to an equal",
         100,
         {{"a", OLD, 0, 400, 40, 0}, {"b", NEWER, 0, 40, 40, 0}},
         {56.25, 40},
         0},
        {"nor is what an equal has given to an older one",
         80,
         {{"a", OLD, 0, 60, 10, 0}, {"b", NEWER, 0, 50, 50, 0}},
         {30, 50},
         0},
        {"what fits whole is served before parts of what does not",
         100,
         {{"a", OLD, 0, 400, 0, 0}, {"b", NEWER, 0, 60, 0, 0}},
         {37.5, 60},
         0},
        {"alone too large", 10, {{"a", OLD, 0, 80, 0, 0}}, {10, 0}, 0},
        {"it takes no part", 10, {{"a", OLD, 0, 0, 0, 0}, {"b", OLD, 0, 20, 0, 0}}, {0, 10}, 0},
        {"even what there is does not fit",
         70,
         {{"a", OLD, 0, 40, 40, 0}, {"b", OLD, 0, 40, 40, 0}},
         {0, 0},
         -E_NO},
        {"of what there is, the less urgent loses",
         70,
         {{"a", OLD, 0, 40, 40, 0}, {"b", OLD, -1, 40, 40, 0}},
         {40, 30},
         0},
        {"parts of less than it has",
         50,
         {{"a", OLD, 1, 40, 0, 0}, {"b", OLD, 0, 80, 40, 0}},
         {40, 10},
         0},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct pool pool = {.capacity_rps = cases[c].capacity_rps};
        memcpy(pool.services, cases[c].services, sizeof cases[c].services);
        size_t count = 0;
        while (count < 3 && pool.services[count].name)
            count++;
        if (run(&pool, count, 1000) != cases[c].rc)
            fail_msg("%s: another result", cases[c].what);
        for (size_t i = 0; i < count && cases[c].rc == 0; i++)
            if (fabs(pool.services[i].given_rps - cases[c].given_rps[i]) > 1e-9)
                fail_msg("%s: %s is given %.9g, expected %.9g", cases[c].what,
                         pool.services[i].name, pool.services[i].given_rps,
                         cases[c].given_rps[i]);
    }
}

static double sum_given(const struct pool *pool)
{
    double sum = 0;

    for (size_t i = 0; i < pool->admission.count; i++)
        sum += pool->services[i].given_rps;
    return sum;
}

/* Held rates fit together, as they are there; wanted ones do not. */
static void make_pool(struct rng *rng, struct pool *pool, size_t count)
{
    static const char *const names[SERVICES_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    double held = 0, wanted = 0;

    for (size_t i = 0; i < count; i++) {
        double want = 1 + (double)rng_below(rng, 100);
        double have = i > 0 && rng_below(rng, 2) ? fmin(want, (double)rng_below(rng, 100)) : 0;
        pool->services[i] =
            (struct admission_service){.name = names[i],
                                       .created = rng_below(rng, 2) ? OLD : NEWER,
                                       .priority = (int)rng_below(rng, 3),
                                       .wanted_rps = want,
                                       .held_rps = have};
        held += have;
        wanted += want;
    }
    pool->capacity_rps = held + (wanted - held) * 0.9 * rng_unit(rng);
}

/* Less than another that comes after it may have: it was not given what is left. */
static void check_answer(const struct pool *pool, size_t count, unsigned long long seed)
{
    int top = pool->services[0].priority;
    double left_rps = pool->capacity_rps - sum_given(pool);

    assert_true(left_rps > -1e-6);
    for (size_t i = 0; i < count; i++)
        top = pool->services[i].priority > top ? pool->services[i].priority : top;
    for (size_t i = 0; i < count; i++) {
        const struct admission_service *one = &pool->services[i];
        double next_rps =
            fmin(one->wanted_rps, fmax(one->given_rps * 9 / 8, one->wanted_rps / 32768));
        if (one->priority == top && one->given_rps < one->held_rps)
            fail_msg("seed %llu: %s lost what it had", seed, one->name);
        if (one->given_rps < one->wanted_rps && next_rps - one->given_rps < left_rps - 1e-6)
            fail_msg("seed %llu: %s has %g of %g, and %g are left", seed, one->name,
                     one->given_rps, one->wanted_rps, left_rps);
        if (fabs(one->given_rps - pool->fitted_rps[i]) > 0 && sum_given(pool) > 0)
            fail_msg("seed %llu: %s was never seen to fit", seed, one->name);
    }
}

static void test_random(void **state)
{
    (void)state;
    for (unsigned long long seed = 1; seed <= 2000; seed++) {
        struct rng rng = rng_seed(seed);
        struct pool pool = {0};
        size_t count = 1 + rng_below(&rng, SERVICES_MAX);
        make_pool(&rng, &pool, count);
        assert_int_equal(run(&pool, count, 1000), 0);
        check_answer(&pool, count, seed);
        /* What was given is held then: the same comes out again, and no crumb more. */
        double given[SERVICES_MAX];
        for (size_t i = 0; i < count; i++)
            given[i] = pool.services[i].held_rps = pool.services[i].given_rps;
        assert_int_equal(run(&pool, count, 1000), 0);
        for (size_t i = 0; i < count; i++)
            if (pool.services[i].given_rps != given[i])
                fail_msg("seed %llu: %s is given %g, and %g when planned again", seed,
                         pool.services[i].name, given[i], pool.services[i].given_rps);
    }
}

/* With few tries less is given, never more than was seen to fit. */
static void test_few_tries(void **state)
{
    (void)state;
    for (int tries = 0; tries < 20; tries++) {
        struct pool pool = {.capacity_rps = 100,
                            .services = {{"a", OLD, 0, 80, 0, 0},
                                         {"b", OLD, 0, 70, 0, 0},
                                         {"c", OLD, 0, 60, 0, 0}}};
        assert_int_equal(run(&pool, 3, tries), 0);
        assert_true(pool.calls <= tries && sum_given(&pool) <= 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_few_tries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
