/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller wants done to the cluster, as values: the reconcile functions return
 * lists of these, and the controller carries them out in order. Each may be carried out twice
 * without harm. One that the server refuses for what it is holds up only those that depend on
 * it (effect_depends()); where the world or the server is not as thought, the rest is left to
 * the next round, which looks anew.
 */
#ifndef TRANCHE_CONTROL_EFFECT_H
#define TRANCHE_CONTROL_EFFECT_H

#include <jansson.h>

#include "base/vec.h"
#include "kube/path.h"

enum effect_kind {
    EFFECT_ENSURE, /* create under a deterministic name; NOTE_HASH tells whether it is ours */
    EFFECT_APPLY,  /* server-side apply of our fields, forced */
    EFFECT_PATCH,  /* merge patch, tied to resource_version where that is set */
    EFFECT_DELETE, /* with preconditions */
    EFFECT_EVENT,
    EFFECT_KIND_COUNT
};

struct effect {
    enum effect_kind kind;
    const struct kube_kind *object_kind;
    char *namespace, *name;       /* owned; namespace NULL for cluster-scoped kinds */
    const char *subresource;      /* static, or NULL: "status", "binding" */
    const char *manager;          /* static: MANAGER_… */
    json_t *body;                 /* owned; of an event: the object it is about */
    char *uid, *resource_version; /* owned preconditions, or NULL */
    unsigned chain;               /* steps of one thing, in order; 0: of none */
    bool yields;        /* apply: an object of that name that is not ours is left alone */
    bool destructive;   /* only on a fresh cache, after a quorum read of the object */
    const char *reason; /* static: of an event; else what it is for, in logs */
    char *note;         /* owned: of an event */
    bool warning;
};

/* Chains of a round: those of a GpuService's routing are its position in the world, plus one.
 */
#define EFFECT_CHAIN_PLAN (~0u) /* the parts of a plan, and its being taken */

struct effects {
    VEC(struct effect) items;
    int64_t again_ns; /* look again at that time of the world's clock; INT64_MAX: when
                         something changes */
};

/* No effects, and no time at which to look again. */
void effects_init(struct effects *effects);
/* Frees effects with their objects and texts. */
void effects_done(struct effects *effects);

/* Appends an effect, valid until the next is appended; body is a reference that goes over to
 * it. The object is made under its own name if it is not there. */
struct effect *effect_ensure(struct effects *effects, const struct kube_kind *kind,
                             json_t *body);
/* The same for fields of ours by server-side apply, other fields untouched. */
struct effect *effect_apply(struct effects *effects, const struct kube_kind *kind,
                            json_t *body);
/* Of an object as read: its namespace and name; tied to its resourceVersion when `tied`. */
struct effect *effect_patch(struct effects *effects, const struct kube_kind *kind,
                            const json_t *object, json_t *patch, bool tied);
/* With the UID and, when `tied`, the resourceVersion of the object as preconditions. */
struct effect *effect_delete(struct effects *effects, const struct kube_kind *kind,
                             const json_t *object, bool tied);
/* note as printf. */
void effect_event(struct effects *effects, const struct kube_kind *kind, const json_t *object,
                  bool warning, const char *reason, const char *note, ...)
    __attribute__((format(printf, 6, 7)));
/* Whether `later` must not be carried out in this round once `failed` was refused: it is about
 * the same object, or a later step of the same chain. */
bool effect_depends(const struct effect *later, const struct effect *failed);
/* "ensure Pod shop/ranker-0": of refusals, see struct world_sources; freed by the caller. */
char *effect_key(const char *what, const struct kube_kind *kind, const char *namespace,
                 const char *name);
/* Look again at that time of the world's clock, or earlier if that was asked for. */
void effects_again_at(struct effects *effects, int64_t at_ns);

#endif
