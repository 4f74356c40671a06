/* SPDX-License-Identifier: Apache-2.0
 *
 * What one record, one draw and one number's text cost: nanoseconds, the best of several
 * rounds. Nothing is asserted; the floor to compare with is storing the value.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hist.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/str.h"

enum { VALUES = 1 << 16, PASSES = 16, ROUNDS = 7 };

/* What the measured functions work on. */
struct material {
    int64_t latencies_ns[VALUES]; /* lognormal about 5 ms */
    double numbers[VALUES];
    int64_t stored[VALUES];
    struct hist *hist;
    struct rng rng;
    uint64_t sink; /* keeps the compiler from leaving the work out */
};

static void store(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->stored[i] = material->latencies_ns[i];
    __asm__ volatile("" : : "r"(material->stored) : "memory");
}

static void record(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        hist_record(material->hist, material->latencies_ns[i]);
}

static void draw_next(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->sink += rng_next(&material->rng);
}

static void draw_below(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->sink += rng_below(&material->rng, 1000);
}

static void draw_exponential(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->sink += (uint64_t)rng_exponential(&material->rng, 100);
}

static void draw_normal(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->sink += (uint64_t)rng_normal(&material->rng, 1000, 1);
}

static void draw_poisson(struct material *material)
{
    for (int i = 0; i < VALUES; i++)
        material->sink += rng_poisson(&material->rng, 200);
}

static void write_number(struct material *material)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    for (int i = 0; i < VALUES; i++) {
        str_clear(&text);
        str_add_number(&text, material->numbers[i]);
        material->sink += text.length;
    }
}

static double best_ns(void (*work)(struct material *), struct material *material, int passes)
{
    double best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = clock_now_ns(clock_real());
        for (int pass = 0; pass < passes; pass++)
            work(material);
        double spent_ns = (double)(clock_now_ns(clock_real()) - start_ns);
        double each_ns = spent_ns / passes / VALUES;
        if (each_ns < best)
            best = each_ns;
    }
    return best;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*work)(struct material *);
        int passes;
    } table[] = {
        {"store a value", store, PASSES},
        {"hist_record", record, PASSES},
        {"rng_next", draw_next, PASSES},
        {"rng_below", draw_below, PASSES},
        {"rng_exponential", draw_exponential, PASSES},
        {"rng_normal", draw_normal, PASSES},
        {"rng_poisson (mean 200)", draw_poisson, 1},
        {"str_add_number", write_number, 1},
    };
    CLEANUP(free_ptr) struct material *material = xcalloc(1, sizeof *material);
    CLEANUP(hist_free_ptr) struct hist *hist = hist_new();
    material->hist = hist;
    material->rng = rng_seed(1);
    for (int i = 0; i < VALUES; i++) {
        material->latencies_ns[i] = (int64_t)rng_lognormal(&material->rng, 15.4, 0.5);
        material->numbers[i] = (double)rng_below(&material->rng, 1000000) / 1000;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        printf("%-24s %7.2f ns\n", table[i].name,
               best_ns(table[i].work, material, table[i].passes));
    printf("checksum %" PRIu64 "\n", material->sink + hist_count(hist));
    return 0;
}
