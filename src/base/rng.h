/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** 1.0 (Blackman and Vigna, 2018), seeded by splitmix64: the one source of
 * randomness. A stream is a value that the caller owns; the same seed gives the same
 * numbers on every machine.
 */
#ifndef TRANCHE_BASE_RNG_H
#define TRANCHE_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state[4];
};

/* The generator (xoshiro256**) in the state that splitmix64 makes of the seed. */
struct rng rng_seed(uint64_t seed);
/* An independent stream for part `index` of a run with this seed. */
struct rng rng_seed_stream(uint64_t seed, uint64_t index);
/* The next 64 bits. */
uint64_t rng_next(struct rng *rng);
/* Uniform in 0 … bound − 1, without bias (Lemire 2019); bound > 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double rng_unit(struct rng *rng);
/* Uniform in [low, high). */
double rng_uniform(struct rng *rng, double low, double high);
/* Exponential with this mean: gaps of a Poisson stream. */
double rng_exponential(struct rng *rng, double mean);
/* Normal with this mean and standard deviation. */
double rng_normal(struct rng *rng, double mean, double deviation);
/* exp of a normal; mu and sigma are those of the logarithm. */
double rng_lognormal(struct rng *rng, double mu, double sigma);
/* Poisson count with this mean (inversion by sums for small, PTRS by Hörmann for large). */
uint64_t rng_poisson(struct rng *rng, double mean);

#endif
