/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of fields a kind of object (resource_fields.c), and what is made of it: values
 * read into the structs of resources.h, structs written as JSON, the CustomResourceDefinition
 * with its structural schema, and the reference in docs/spec/kubernetes-api.md. A field is
 * therefore described once.
 *
 * Reading checks types, ranges and words of a spec as the API server does; patterns and rules
 * are the server's alone. A status is read tolerantly: a value that cannot be read counts as
 * absent, an item of a list that lacks what it needs is left out.
 */
#ifndef TRANCHE_CONTROL_SCHEMA_H
#define TRANCHE_CONTROL_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "kube/path.h"

enum field_type {
    FIELD_TEXT,       /* const char *; absent: "" */
    FIELD_INT,        /* int; absent: 0 */
    FIELD_LONG,       /* long long; absent: 0 */
    FIELD_NUMBER,     /* double; absent: NAN */
    FIELD_BOOL,       /* bool; absent: false */
    FIELD_CHOICE,     /* int or an enum: index into choices; absent: 0 */
    FIELD_TIME,       /* int64_t seconds since 1970, RFC 3339 in JSON; absent: 0 */
    FIELD_BOARD,      /* const struct mig_board *, by slug; fields below it read slices of it */
    FIELD_SLICE,      /* int: profile of the board above */
    FIELD_START,      /* int: memory unit, one of the starts of the slice before it */
    FIELD_PERCENTILE, /* double: 50, 90, 95, 99, "99.9", "mean" */
    FIELD_TEXTS,      /* VEC(const char *) */
    FIELD_MAP,        /* const json_t *: object of texts; absent: NULL */
    FIELD_OPEN,       /* const json_t *: object kept as it is; absent: NULL */
    FIELD_OPEN_LIST,  /* in the schema alone: list of objects kept as they are */
    FIELD_GROUP,      /* fields of an object of their own, in the same struct */
    FIELD_LIST,       /* VEC(struct …) of `size` bytes each */
    FIELD_CONDITIONS, /* in the schema alone: metav1.Condition by type */
    FIELD_TYPE_COUNT
};

struct field_rule { /* CEL, checked by the API server */
    const char *rule, *message;
};

#define FIELD_UNREAD SIZE_MAX /* offset of a field that stands in the schema alone */

struct field {
    const char *name;
    const char *help; /* sentences */
    enum field_type type;
    bool required;
    bool above;              /* more than the minimum */
    bool open;               /* a group that keeps what it does not know */
    double minimum, maximum; /* of a number; of a text's length; of a list's count */
    size_t offset;           /* in the struct of the object or list item */
    const char *fallback;    /* default, as JSON; NULL: none */
    const char *pattern;     /* of a text, or NULL */
    const char *const *choices;
    size_t choice_count;
    const struct field *fields; /* of a group or of a list's items */
    size_t field_count;
    size_t size;      /* of a list's items */
    const char *keys; /* of a list: "slice,start", its items are told apart by these; NULL:
                         the list is one value (atomic) */
    const struct field_rule *rules;
    size_t rule_count;
};

struct schema_column { /* of kubectl get */
    const char *name, *type, *path;
    bool wide; /* with -o wide alone */
};

struct schema_condition {
    const char *type, *help;
};

struct schema_kind {
    const struct kube_kind *kind;
    const char *singular, *short_name;
    const char *help;
    struct field spec, status; /* groups */
    const struct field_rule *rules;
    size_t rule_count; /* on the whole object */
    const struct schema_column *columns;
    size_t column_count;
    const struct schema_condition *conditions;
    size_t condition_count;
};

enum schema_kind_index {
    SCHEMA_GPU_POOL,
    SCHEMA_GPU_SERVICE,
    SCHEMA_NODE_GPU_STATE,
    SCHEMA_PARTITION_PLAN,
    SCHEMA_PERF_PROFILE,
    SCHEMA_TRANSITION,
    SCHEMA_KIND_COUNT
};
extern const struct schema_kind *const SCHEMA_KINDS[SCHEMA_KIND_COUNT];

/* Reads spec and status of an object into *ret (zeroed before). Lists are allocated in the
 * arena: never push to them. E_INPUT "Kind ns/name: spec.field: found …, expected …". */
int schema_read(const struct schema_kind *kind, const json_t *object, struct arena *arena,
                void *ret, struct error *err);
/* A group's fields of a struct as an object; a new reference. Absent values are left out. */
json_t *schema_write(const struct field *group, const void *from);
/* The items of a list field as a list: schema_write() of each. */
json_t *schema_write_items(const struct field *list, const void *items, size_t count);
/* The field of a group by name; it must be there. */
const struct field *schema_field(const struct field *group, const char *name);

/* The CustomResourceDefinition; a new reference. Annotation SCHEMA_HASH_NOTE tells versions
 * of it apart. */
#define SCHEMA_HASH_NOTE "tranche.dev/schema-hash"
/* The CustomResourceDefinition (apiextensions.k8s.io/v1); a new reference. The annotation
 * SCHEMA_HASH_NOTE tells versions of it apart. */
json_t *schema_definition(const struct schema_kind *kind);
/* The hash of that annotation: 16 hexadecimal digits. */
void schema_hash(const struct schema_kind *kind, char ret_hash[17]);

/* Appends JSON as block YAML; keys in their order. */
void schema_write_yaml(const json_t *json, struct str *text);
/* Appends the reference of one kind as Markdown. */
void schema_write_reference(const struct schema_kind *kind, struct str *text);

#endif
