/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** 1.0 and splitmix64 after Blackman and Vigna, "Scrambled linear pseudorandom
 * number generators" (2018), and the distributions drawn from them.
 *
 * The C library's log() and exp() may differ in the last bit from one processor to the
 * next, and one bit is enough to send two runs different ways. So both are computed here
 * from IEEE additions, multiplications and divisions alone, and this module is compiled
 * without contraction to fused multiply-add (meson.build).
 */
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#define LN_2_HIGH      0x1.62e42feep-1       /* 32 bits: times an exponent it is exact */
#define LN_2_LOW       0x1.a39ef35793c76p-33 /* ln 2 − LN_2_HIGH */
#define HALF_LN_TWO_PI 0.91893853320467274178

enum { POISSON_SMALL_MEAN = 10, POISSON_SMALL_LIMIT = 100 };

static uint64_t rotate_left(uint64_t x, int count)
{
    return x << count | x >> (64 - count);
}

/* The output function of splitmix64: a bijection that mixes all bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t splitmix64_next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state);
}

/* ln x for a positive normal x: x = m·2^e with m in [√½, √2), and with s = (m−1)/(m+1),
 * |s| < 0.1716, ln m = 2·(s + s³/3 + s⁵/5 + …); eleven terms leave less than 1e-18. */
static double natural_log(double x)
{
    assert(x > 0 && isfinite(x));
    int exponent;
    double m = frexp(x, &exponent);
    if (m < M_SQRT1_2) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 21; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * square;
    return exponent * LN_2_HIGH + (2 * s + (2 * s * sum + exponent * LN_2_LOW));
}

/* e^x = 2^k·e^r with |r| <= ln 2 / 2; the series to r^14/14! leaves less than 1e-18. */
static double exponential(double x)
{
    assert(isfinite(x));
    if (x > 710)
        return INFINITY;
    if (x < -746)
        return 0;
    double k = nearbyint(x / M_LN2);
    double r = (x - k * LN_2_HIGH) - k * LN_2_LOW, sum = 0;
    for (int n = 14; n >= 2; n--)
        sum = (sum + 1) * r / n;
    return ldexp(1 + (r + r * sum), (int)k);
}

/* ln k!: Stirling's series, which from k = 10 on leaves less than 1e-10. */
static double log_factorial(double k)
{
    assert(k >= 0);
    double product = 1;
    while (k < 10)
        product *= ++k;
    double inverse = 1 / k, square = inverse * inverse;
    double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square / 1260));
    return (k + 0.5) * natural_log(k) - k + HALF_LN_TWO_PI + series - natural_log(product);
}

/* Inversion by sequential search: subtracts the probabilities of 0, 1, 2, … from a
 * uniform number. The limit is never met but by rounding: P(X >= 100) < 1e-60. */
static uint64_t poisson_small(struct rng *rng, double mean)
{
    assert(mean >= 0 && mean < POISSON_SMALL_MEAN);
    double probability = exponential(-mean), rest = rng_unit(rng);
    uint64_t count = 0;
    while (rest >= probability && count < POISSON_SMALL_LIMIT) {
        rest -= probability;
        count++;
        probability *= mean / (double)count;
    }
    return count;
}

/* W. Hörmann, "The transformed rejection method for generating Poisson random variables"
 * (1993), algorithm PTRS, for means from 10; the letters are the paper's. */
static uint64_t poisson_large(struct rng *rng, double mean)
{
    assert(mean >= POISSON_SMALL_MEAN);
    double log_mean = natural_log(mean);
    double b = 0.931 + 2.53 * sqrt(mean);
    double a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    double v_r = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = rng_unit(rng) - 0.5;
        double v = 1 - rng_unit(rng); /* (0, 1]: its logarithm is taken */
        double us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r)
            return (uint64_t)k;
        if (!(k >= 0) || (us < 0.013 && v > us))
            continue;
        double accepted = natural_log(v * inverse_alpha / (a / (us * us) + b));
        if (accepted <= k * log_mean - mean - log_factorial(k))
            return (uint64_t)k;
    }
}

struct rng rng_seed(uint64_t seed)
{
    struct rng rng;
    for (int i = 0; i < 4; i++)
        rng.state[i] = splitmix64_next(&seed);
    return rng;
}

struct rng rng_seed_stream(uint64_t seed, uint64_t index)
{
    /* Mixed twice, so that neither neighbouring seeds nor neighbouring indices give states
     * that lie near each other in splitmix64's sequence. */
    return rng_seed(mix(mix(seed ^ UINT64_C(0xd1b54a32d192ed03)) + index));
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* D. Lemire, "Fast random integer generation in an interval" (2019): the high word of
 * x·bound, and of the low words those rejected that would favour some results. */
uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    assert(bound > 0);
    __uint128_t product = (__uint128_t)rng_next(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (__uint128_t)rng_next(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

double rng_uniform(struct rng *rng, double low, double high)
{
    assert(low <= high && isfinite(high - low));
    double value = low + (high - low) * rng_unit(rng);
    return value < high || low == high ? value : low; /* rounding may reach high */
}

double rng_exponential(struct rng *rng, double mean)
{
    assert(mean >= 0 && isfinite(mean));
    return mean * -natural_log(1 - rng_unit(rng));
}

/* Marsaglia's polar method. Its second number is dropped: a stream has no other state. */
double rng_normal(struct rng *rng, double mean, double deviation)
{
    assert(deviation >= 0 && isfinite(mean) && isfinite(deviation));
    double x, y, square;
    do {
        x = 2 * rng_unit(rng) - 1;
        y = 2 * rng_unit(rng) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return mean + deviation * x * sqrt(-2 * natural_log(square) / square);
}

double rng_lognormal(struct rng *rng, double mu, double sigma)
{
    return exponential(rng_normal(rng, mu, sigma));
}

uint64_t rng_poisson(struct rng *rng, double mean)
{
    assert(mean >= 0 && mean <= 0x1p50);
    return mean < POISSON_SMALL_MEAN ? poisson_small(rng, mean) : poisson_large(rng, mean);
}
