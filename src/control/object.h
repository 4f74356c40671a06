/* SPDX-License-Identifier: Apache-2.0
 *
 * What is common to objects: reading labels and annotations, adding members, and the hashes
 * that name things. Pure.
 */
#ifndef TRANCHE_CONTROL_OBJECT_H
#define TRANCHE_CONTROL_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* metadata.labels[key], borrowed; "" when there is none. */
const char *object_label(const json_t *object, const char *key);
/* metadata.annotations[key], borrowed; "" when there is none. */
const char *object_note(const json_t *object, const char *key);
/* metadata.finalizers without ours, or with it as the last; a new reference. */
json_t *object_finalizers(const json_t *object, bool with_ours);
/* Whether "namespace/name" is in that namespace. */
bool name_is_in_namespace(const char *name, const char *namespace);
/* The object under key, made when it is not there or is none; borrowed. */
json_t *json_child(json_t *object, const char *key);
/* The list under key, likewise. */
json_t *json_child_list(json_t *object, const char *key);
/* The first `digits` hexadecimal digits, at most 64, of the SHA-256 of a text. */
void text_hash(const char *text, size_t digits, char *ret_hash);
/* Of JSON, keys sorted. */
void json_hash(const json_t *json, size_t digits, char *ret_hash);

#endif
