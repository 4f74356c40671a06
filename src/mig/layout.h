/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout: the GPU instances of one GPU as a pure value. Legality is exactly
 *   1. every start is one of its profile's;  2. spans of memory units are disjoint;
 *   3. no profile more often than its max_instances;  4. engine sums within the board's
 * (a limit of MIG_UNKNOWN is not checked);  5. no more instances than the board's maximum.
 * Text form: `4g.20gb@0 2g.10gb@4 1g.5gb@6`; `-` is empty; reading also takes commas, bare
 * kinds, `3x1g` and missing starts.
 */
#ifndef TRANCHE_MIG_LAYOUT_H
#define TRANCHE_MIG_LAYOUT_H

#include "base/error.h"
#include "base/str.h"
#include "mig/board.h"

enum { MIG_START_ANY = -1 };

struct mig_instance {
    int8_t profile; /* index into board->profiles */
    int8_t start;   /* memory unit, or MIG_START_ANY in a request */
};

struct mig_layout {
    int count;
    struct mig_instance instances[MIG_INSTANCES_MAX]; /* sorted by start, then profile */
};

/* Bits of the memory units that an instance with a known start takes. */
uint32_t mig_instance_span(const struct mig_board *board, struct mig_instance instance);
/* The same of all instances of a layout. */
uint32_t mig_layout_span(const struct mig_board *board, const struct mig_layout *layout);

/* Parses one GPU's text. Starts may be left out (MIG_START_ANY). Wrong syntax or an unknown
 * profile: E_INPUT with the offending word. More than MIG_INSTANCES_MAX instances, or a
 * start above 127, no value can hold: they are illegal on every board, so E_NO with the
 * rule. Legality is not checked otherwise. */
int mig_layout_parse(const struct mig_board *board, const char *text,
                     struct mig_layout *ret_layout, struct error *err);
/* The canonical text; every start must be known or prints as bare name. */
void mig_layout_format(const struct mig_board *board, const struct mig_layout *layout,
                       struct str *text);
/* Brings the instances into the order by start, then profile. */
void mig_layout_sort(struct mig_layout *layout);
/* Whether this profile stands at this start. */
bool mig_layout_contains(const struct mig_layout *layout, struct mig_instance instance);
/* Whether both have the same instances; both sorted. */
bool mig_layout_equal(const struct mig_layout *a, const struct mig_layout *b);

/* 0 when legal; E_NO with a line for every breach, which names the rule and the instances
 * that clash. All starts known. */
int mig_layout_check(const struct mig_board *board, const struct mig_layout *layout,
                     struct error *err);
/* Whether one more instance is legal beside a legal layout; no message, for inner loops. */
bool mig_layout_can_add(const struct mig_board *board, const struct mig_layout *layout,
                        struct mig_instance instance);
/* Adds (sorted); the result must be legal (asserted). */
void mig_layout_add(const struct mig_board *board, struct mig_layout *layout,
                    struct mig_instance instance);
/* Takes out the instance at this position, 0 … count - 1; the others stay sorted. */
void mig_layout_remove(struct mig_layout *layout, int index);

/* Chooses every missing start of `request` beside `existing` (may be NULL), which stays
 * put. *ret_layout holds both, sorted. Deterministic: the lexicographically first
 * solution, largest spans first. E_NO with the proof when no choice of starts is legal. */
int mig_layout_place(const struct mig_board *board, const struct mig_layout *request,
                     const struct mig_layout *existing, struct mig_layout *ret_layout,
                     struct error *err);

/* The same, the starts chosen so that the most instances are those of `old`, a legal
 * layout: what a change to the request could leave in place. */
int mig_layout_place_near(const struct mig_board *board, const struct mig_layout *request,
                          const struct mig_layout *old, struct mig_layout *ret_layout,
                          struct error *err);

/* Whether a multiset (count of each profile, board->profile_count entries) has a legal
 * placement; if so *ret_layout (may be NULL) gets the one mig_layout_place() chooses. */
bool mig_multiset_place(const struct mig_board *board, const int *profile_counts,
                        struct mig_layout *ret_layout);

/* Calls visit for every legal layout over the universe (empty one included; with
 * maximal_only, those to which no instance of the universe can be added), in the order of
 * docs/spec/layout.md. visit returns false to stop. Returns the count. */
size_t mig_layout_enumerate(const struct mig_board *board, uint32_t universe, bool maximal_only,
                            bool (*visit)(const struct mig_layout *layout, void *context),
                            void *context);

/* The undominated multisets of the universe: profile counts that have a legal placement
 * and no legal superset, in falling lexicographic order. Writes rows of board->profile_count
 * ints; returns how many there are (may exceed `capacity`, then only the first are written).
 * ret_rows may be NULL. */
size_t mig_multisets_maximal(const struct mig_board *board, uint32_t universe, int *ret_rows,
                             size_t capacity);

/* What changes between two legal layouts: instances in both stay. */
struct mig_diff {
    struct mig_layout keep, remove, create;
};
/* Both sorted and of one board. keep and remove together are `from`, keep and create `to`; an
 * instance is the same when profile and start are: services do not count here. */
void mig_layout_diff(const struct mig_layout *from, const struct mig_layout *to,
                     struct mig_diff *ret_diff);

#endif
