/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML through libyaml as a tree with positions. One document a file, no anchors that
 * recurse, no duplicate keys, depth at most 64, size bounded; complaints are E_INPUT
 * "FILE:LINE:COL: …". JSON is read by the same reader.
 *
 * The typed getters below leave *ret alone when the key is absent or null, so that defaults are
 * set before; a value of the wrong kind or range is E_INPUT naming place and expectation.
 */
#ifndef TRANCHE_BASE_YAML_H
#define TRANCHE_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

enum yaml_kind { YAML_KIND_SCALAR, YAML_KIND_LIST, YAML_KIND_MAP, YAML_KIND_COUNT };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line, column;        /* 1-based */
    const char *text;             /* scalar text, "" for an empty one */
    bool quoted;                  /* a quoted scalar is text, never number, bool or null */
    size_t count;                 /* items of a list, pairs of a map */
    const char **keys;            /* map only */
    struct yaml_node **items;     /* list items or map values */
    struct yaml_node **key_nodes; /* map only: where each key stands */
};

struct yaml; /* owns the tree */

/* Parses bytes; name is for messages. The tree is freed with yaml_free(). */
int yaml_parse(const char *name, const char *bytes, size_t length, struct yaml **ret_yaml,
               struct error *err);
/* file_read() then yaml_parse(), with the path as name. */
int yaml_read(const char *path, struct yaml **ret_yaml, struct error *err);
/* Frees the tree with all nodes and texts; NULL is fine. */
void yaml_free(struct yaml *yaml);
CLEANUP_DEFINE_FREE(yaml)
/* The outermost node; never NULL. */
const struct yaml_node *yaml_root(const struct yaml *yaml);
/* The name given to yaml_parse(), for messages. */
const char *yaml_name(const struct yaml *yaml);

/* The value under key, or NULL; map must be a map. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Whether the node is plain and empty, ~ or null: all that YAML's core schema calls null. */
bool yaml_is_null(const struct yaml_node *node);
/* E_INPUT "FILE:LINE:COL: …" at this node. */
int yaml_error(const struct yaml *yaml, const struct yaml_node *node, struct error *err,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* E_INPUT unless node is of this kind; what: "a list of services". */
int yaml_expect(const struct yaml *yaml, const struct yaml_node *node, enum yaml_kind kind,
                const char *what, struct error *err);
/* E_INPUT on the first key of map that is not in the NULL-terminated list; the message
 * names the nearest known key. */
int yaml_only_keys(const struct yaml *yaml, const struct yaml_node *map,
                   const char *const *known, struct error *err);

/* The scalar under key, borrowed from the tree; a list or a map is no text. */
int yaml_get_text(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                  const char **ret, struct error *err);
/* A finite number in [minimum, maximum]; infinite bounds are open. A quoted scalar is text. */
int yaml_get_number(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                    double minimum, double maximum, double *ret, struct error *err);
/* A whole number in [minimum, maximum], without fraction or exponent. */
int yaml_get_int(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                 long long minimum, long long maximum, long long *ret, struct error *err);
/* true or false as YAML's core schema writes them; yes and no are texts. */
int yaml_get_bool(const struct yaml *yaml, const struct yaml_node *map, const char *key,
                  bool *ret, struct error *err);

#endif
