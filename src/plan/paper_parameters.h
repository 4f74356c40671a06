/* SPDX-License-Identifier: Apache-2.0
 *
 * What the papers leave open: every parameter of the reference algorithms in one table,
 * with our default. docs/spec/paper-arm.md gives the reasons.
 */
#ifndef TRANCHE_PLAN_PAPER_PARAMETERS_H
#define TRANCHE_PLAN_PAPER_PARAMETERS_H

/* X(field, option, default, minimum, maximum, what it is) */
#define PAPER_PARAMETERS(X)                                                                    \
    X(last_mile, "last-mile", 1, 0, 1000,                                                      \
      "greedy, mcts, ga: a service that misses less than this many GPUs counts as almost "     \
      "satisfied")                                                                             \
    X(mcts_services, "mcts-services", 5, 1, 16,                                                \
      "mcts, ga: unsatisfied services drawn for the children of a node")                       \
    X(mcts_children, "mcts-children", 10, 1, 64, "mcts, ga: children kept at a node")          \
    X(mcts_exploration, "mcts-exploration", 1.4142135623730951, 0, 1000,                       \
      "mcts, ga: exploration constant of UCT, for rewards scaled to 0 … 1")                    \
    X(mcts_levels, "mcts-levels", 4, 1, 64,                                                    \
      "mcts, ga: steps in which what a service misses of its last GPU enters the type of a "   \
      "completion vector")                                                                     \
    X(ga_population, "ga-population", 4, 1, 1000, "ga: plans kept from round to round")        \
    X(ga_erase, "ga-erase", 0.1, 0, 1, "ga: share of the GPUs that a crossover erases")        \
    X(ga_erase_most, "ga-erase-most", 16, 1, 1e6, "ga: most GPUs that a crossover erases")     \
    X(ga_swaps, "ga-swaps", 0.1, 0, 1,                                                         \
      "ga: pairs that a mutation swaps, as a share of the instances")                          \
    X(ga_patience, "ga-patience", 10, 1, 1e6,                                                  \
      "ga: rounds without a better plan after which it stops")                                 \
    X(parvagpu_light, "parvagpu-light", 4, 0, 100,                                             \
      "parvagpu: a GPU with at most this many busy compute slices is taken apart if its "      \
      "services fit elsewhere")

struct paper_parameters {
#define PAPER_PARAMETER_FIELD(field, option, value, low, high, help) double field;
    PAPER_PARAMETERS(PAPER_PARAMETER_FIELD)
#undef PAPER_PARAMETER_FIELD
};

extern const struct paper_parameters paper_parameters_default;

#endif
