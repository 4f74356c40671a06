/* SPDX-License-Identifier: Apache-2.0
 *
 * Steady state and the words of verdicts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/vec.h"
#include "load/steady.h"
#include "load/verdict.h"

#define WINDOW ((int64_t)10000000000)

/* Back-to-back work whose length goes from `first` to `last` ns over the window, noisy. */
static struct steady_state check(double first, double last, double noise)
{
    VEC(struct steady_work) work = {0};
    struct rng rng = rng_seed(3);
    for (int64_t at = 1000; at < WINDOW + 1000;) {
        double length = first + (last - first) * (double)at / (double)WINDOW;
        length *= 1 + noise * rng_uniform(&rng, -1, 1);
        *vec_push(&work) = (struct steady_work){at, at + (int64_t)length};
        at += (int64_t)length;
    }
    struct steady_state state =
        steady_check(work.data, work.count, 1000, WINDOW + 1000, steady_rule_standard);
    vec_done(&work);
    return state;
}

static void what_is_steady(void **state)
{
    (void)state;
    assert_true(check(1e7, 1e7, 0).steady);
    assert_true(check(1e7, 1e7, 0.3).steady);
    assert_true(check(1e9, 1e9, 0).steady); /* ten pieces only: no edge effects */
    assert_true(check(3.3e8, 3.3e8, 0).steady);
    assert_float_equal(check(3.3e8, 3.3e8, 0).trend_throughput, 0, 0.03);
    assert_true(check(1e7, 1.08e7, 0.1).steady);
    assert_false(check(1e7, 1.5e7, 0.1).steady);
    assert_false(check(1.5e7, 1e7, 0.1).steady);
    assert_true(check(1e7, 1.5e7, 0).trend_throughput < -0.2);
    assert_true(check(1e7, 1.5e7, 0).trend_latency > 0.2);
}

static void a_pause_is_not_steady(void **state)
{
    (void)state;
    VEC(struct steady_work) work = {0};
    for (int64_t at = 0; at < WINDOW; at += 10000000)
        if (at < WINDOW / 5 * 2 || at >= WINDOW / 5 * 3)
            *vec_push(&work) = (struct steady_work){at, at + 10000000};
    struct steady_state got =
        steady_check(work.data, work.count, 0, WINDOW, steady_rule_standard);
    assert_false(got.steady);
    assert_float_equal(got.trend_throughput, 0, 1e-6);
    assert_float_equal(got.spread_throughput, 1, 1e-6);
    vec_done(&work);
}

static void few_pieces_say_nothing(void **state)
{
    (void)state;
    struct steady_work work[3] = {{0, 10}, {10, 20}, {20, 90}};
    assert_true(steady_check(work, 3, 0, 100, steady_rule_standard).steady);
}

static void verdicts_in_words(void **state)
{
    (void)state;
    struct verdict verdict = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    verdict_add(&verdict, REASON_DROPPED, false);
    assert_true(verdict_is_valid(verdict));
    verdict_words(verdict, ";", &text);
    assert_string_equal(text.bytes, "");
    verdict_add(&verdict, REASON_DROPPED, true);
    verdict_add(&verdict, REASON_TOO_FEW, true);
    assert_false(verdict_is_valid(verdict));
    verdict_words(verdict, ";", &text);
    assert_string_equal(text.bytes, "too-few-steps;dropped");
    str_clear(&text);
    verdict_explain(verdict, &text);
    assert_true(text_starts_with(text.bytes, "too-few-steps: fewer steps"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_steady),
        cmocka_unit_test(a_pause_is_not_steady),
        cmocka_unit_test(few_pieces_say_nothing),
        cmocka_unit_test(verdicts_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
