/* SPDX-License-Identifier: Apache-2.0
 *
 * Items are few thousands (what a controller reconciles), so the next one is searched for.
 */
#include "kube/queue.h"

#include <assert.h>

#include "base/memory.h"
#include "base/rng.h"
#include "kube/table.h"

#define BASE_NS INT64_C(5000000)
#define MOST_NS INT64_C(1000000000000)

struct item {
    char *key;
    uint64_t order; /* of being added; 0 while it is neither ready nor waiting */
    int64_t at_ns;  /* when it is ready */
    unsigned failures;
    bool taken;
};

struct kube_queue {
    struct kube_queue_options options;
    struct rng rng;
    struct kube_table items;
    uint64_t last_order;
};

struct kube_queue *kube_queue_new(const struct kube_queue_options *options)
{
    struct kube_queue *queue = xcalloc(1, sizeof *queue);

    queue->options = *options;
    if (queue->options.base_ns == 0)
        queue->options.base_ns = BASE_NS;
    if (queue->options.most_ns == 0)
        queue->options.most_ns = MOST_NS;
    assert(queue->options.base_ns > 0 && queue->options.most_ns >= queue->options.base_ns);
    queue->rng = rng_seed(options->seed);
    return queue;
}

static void item_free(struct item *item)
{
    if (item)
        free(item->key);
    free(item);
}

void kube_queue_free(struct kube_queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->items.map.count; i++)
        item_free(queue->items.map.entries[i].value);
    kube_table_done(&queue->items);
    free(queue);
}

static bool is_pending(const struct item *item)
{
    return item->order != 0;
}

static struct item *find_or_add(struct kube_queue *queue, const char *key)
{
    struct item *item = kube_table_get(&queue->items, key);

    if (item)
        return item;
    item = xcalloc(1, sizeof *item);
    item->key = xstrdup(key);
    kube_table_put(&queue->items, key, item);
    return item;
}

/* Drops an item of which there is nothing to remember. */
static void drop(struct kube_queue *queue, struct item *item)
{
    kube_table_remove(&queue->items, item->key);
    item_free(item);
}

void kube_queue_add_at(struct kube_queue *queue, const char *key, int64_t at_ns)
{
    struct item *item = find_or_add(queue, key);

    if (!is_pending(item)) {
        item->order = ++queue->last_order;
        item->at_ns = at_ns;
    } else if (at_ns < item->at_ns) {
        item->at_ns = at_ns;
    }
}

void kube_queue_add(struct kube_queue *queue, const char *key)
{
    kube_queue_add_at(queue, key, 0);
}

const char *kube_queue_take(struct kube_queue *queue, int64_t now_ns)
{
    struct item *first = NULL;

    for (size_t i = 0; i < queue->items.map.count; i++) {
        struct item *item = queue->items.map.entries[i].value;
        if (item && is_pending(item) && !item->taken && item->at_ns <= now_ns &&
            (!first || item->order < first->order))
            first = item;
    }
    if (!first)
        return NULL;
    first->taken = true;
    first->order = 0;
    return first->key;
}

static struct item *end_work(struct kube_queue *queue, const char *key)
{
    struct item *item = kube_table_get(&queue->items, key);

    assert(item && item->taken && "only a key that was taken can be done");
    item->taken = false;
    return item;
}

void kube_queue_done(struct kube_queue *queue, const char *key)
{
    struct item *item = end_work(queue, key);

    item->failures = 0;
    if (!is_pending(item))
        drop(queue, item);
}

int64_t kube_queue_retry(struct kube_queue *queue, const char *key, int64_t now_ns)
{
    struct item *item = end_work(queue, key);
    int64_t delay_ns = queue->options.base_ns;

    for (unsigned i = 0; i < item->failures && delay_ns < queue->options.most_ns; i++)
        delay_ns =
            delay_ns > queue->options.most_ns / 2 ? queue->options.most_ns : delay_ns * 2;
    if (item->failures < 64)
        item->failures++;
    delay_ns -= (int64_t)rng_below(&queue->rng, (uint64_t)delay_ns / 2 + 1);
    /* Added again meanwhile: that does not make a failing key come at once. */
    item->order = 0;
    kube_queue_add_at(queue, item->key, now_ns + delay_ns);
    return now_ns + delay_ns;
}

int64_t kube_queue_next_ns(const struct kube_queue *queue)
{
    int64_t next_ns = INT64_MAX;

    for (size_t i = 0; i < queue->items.map.count; i++) {
        const struct item *item = queue->items.map.entries[i].value;
        if (item && is_pending(item) && !item->taken && item->at_ns < next_ns)
            next_ns = item->at_ns;
    }
    return next_ns;
}

size_t kube_queue_count(const struct kube_queue *queue)
{
    return queue->items.live;
}
