/* SPDX-License-Identifier: Apache-2.0
 *
 * A status as a merge patch that is written only when it changes something. In one round there
 * is one patch for each object: a later edit of the same object goes on with the earlier one.
 */
#ifndef TRANCHE_CONTROL_STATUS_EDIT_H
#define TRANCHE_CONTROL_STATUS_EDIT_H

#include "control/effect.h"

struct status_edit {
    unsigned chain; /* of the effect, should it become one */
    struct effects *effects;
    const struct kube_kind *kind;
    const json_t *object;
    json_t *body;       /* {"status": …}; of the earlier patch, or owned */
    json_t *conditions; /* inside body */
    int64_t now_s;
    bool is_new;
};

/* Begins an edit, or goes on with the one of this object that is in effects already. The object
 * is borrowed until status_edit_end(). */
void status_edit_begin(struct status_edit *edit, struct effects *effects,
                       const struct kube_kind *kind, const json_t *object, int64_t now_s);
/* Sets status.key; value is a new reference that goes over. */
void status_edit_set(struct status_edit *edit, const char *key, json_t *value);
/* message as printf. It must not change while nothing else does. */
void status_edit_condition(struct status_edit *edit, const char *type, bool is_true,
                           const char *reason, const char *message, ...)
    __attribute__((format(printf, 5, 6)));
/* The condition as it will be after the edit; NULL when there is none. */
const json_t *status_edit_find(const struct status_edit *edit, const char *type);
/* Appends the patch, tied to the object's resourceVersion, if it changes anything; always
 * sets status.observedGeneration. */
void status_edit_end(struct status_edit *edit);

#endif
