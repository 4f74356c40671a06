/* SPDX-License-Identifier: Apache-2.0
 *
 * What the papers leave open: every parameter of the reference algorithms in one table,
 * with our default. docs/spec/paper-arm.md gives the reasons.
 */
#ifndef TRANCHE_PLAN_PAPER_PARAMETERS_H
#define TRANCHE_PLAN_PAPER_PARAMETERS_H

/* X(context, field, option, default, minimum, maximum, what it is) */
#define PAPER_PARAMETERS_FOR(X, context)                                                       \
    X(context, last_mile, "last-mile", 1, 0, 1000,                                             \
      "greedy, mcts, ga: a service that misses less than this many GPUs counts as almost "     \
      "satisfied")                                                                             \
    X(context, mcts_services, "mcts-services", 5, 1, 16,                                       \
      "mcts, ga: unsatisfied services drawn for the children of a node")                       \
    X(context, mcts_children, "mcts-children", 10, 1, 64, "mcts, ga: children kept at a node") \
    X(context, mcts_exploration, "mcts-exploration", 1.4142135623730951, 0, 1000,              \
      "mcts, ga: exploration constant of UCT, for rewards scaled to 0 … 1")                    \
    X(context, mcts_levels, "mcts-levels", 2, 1, 64,                                           \
      "mcts, ga: steps in which what a service misses of its last GPU enters the type of a "   \
      "completion vector")                                                                     \
    X(context, ga_population, "ga-population", 4, 1, 1000,                                     \
      "ga: plans kept from round to round")                                                    \
    X(context, ga_erase, "ga-erase", 0.1, 0, 1,                                                \
      "ga: share of the GPUs that a crossover erases")                                         \
    X(context, ga_erase_most, "ga-erase-most", 16, 1, 1e6,                                     \
      "ga: most GPUs that a crossover erases")                                                 \
    X(context, ga_swaps, "ga-swaps", 0.1, 0, 1,                                                \
      "ga: pairs that a mutation swaps, as a share of the instances")                          \
    X(context, ga_patience, "ga-patience", 10, 1, 1e6,                                         \
      "ga: rounds without a better plan after which it stops")                                 \
    X(context, parvagpu_light, "parvagpu-light", 4, 0, 100,                                    \
      "parvagpu: a GPU with at most this many busy compute slices is taken apart if its "      \
      "services fit elsewhere")

struct paper_parameters {
#define PAPER_PARAMETER_FIELD(context, field, option, value, low, high, help) double field;
    PAPER_PARAMETERS_FOR(PAPER_PARAMETER_FIELD, )
#undef PAPER_PARAMETER_FIELD
};

extern const struct paper_parameters paper_parameters_default;

#endif
