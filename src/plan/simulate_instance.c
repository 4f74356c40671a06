/* SPDX-License-Identifier: Apache-2.0
 *
 * Batching of one simulated instance.
 */
#include "plan/simulate_instance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void simulated_instance_done(struct simulated_instance *instance)
{
    free(instance->waiting);
    vec_done(&instance->sizes);
}

static double waiting_at(const struct simulated_instance *instance, size_t index)
{
    assert(index < instance->count);
    return instance->waiting[(instance->head + index) % instance->capacity];
}

void simulated_instance_push(struct simulated_instance *instance, double arrival_ms)
{
    assert(instance->count <= instance->capacity);
    if (instance->count == instance->capacity) {
        size_t capacity = instance->capacity ? 2 * instance->capacity : 64;
        double *ring = xcalloc(capacity, sizeof *ring);
        for (size_t i = 0; i < instance->count; i++)
            ring[i] = waiting_at(instance, i);
        free(instance->waiting);
        instance->waiting = ring;
        instance->capacity = capacity;
        instance->head = 0;
    }
    instance->waiting[(instance->head + instance->count++) % instance->capacity] = arrival_ms;
    instance->outstanding++;
}

bool simulated_instance_is_ready(const struct simulated_instance *instance, double now_ms)
{
    assert(instance->busy >= 0 && instance->busy <= instance->procs);
    if (instance->count == 0 || instance->busy == instance->procs)
        return false;
    return instance->count >= (size_t)instance->batch ||
           now_ms >= waiting_at(instance, 0) + instance->max_wait_ms;
}

double simulated_instance_timer(const struct simulated_instance *instance)
{
    assert(instance->busy >= 0 && instance->busy <= instance->procs);
    if (instance->count == 0 || instance->busy == instance->procs)
        return INFINITY;
    return waiting_at(instance, 0) + instance->max_wait_ms;
}

double simulated_instance_start(struct simulated_instance *instance, double *ret_arrivals,
                                int *ret_size)
{
    int size =
        instance->count < (size_t)instance->batch ? (int)instance->count : instance->batch;
    size_t row = 0;
    assert(size > 0 && instance->busy < instance->procs);
    for (int i = 0; i < size; i++)
        ret_arrivals[i] = waiting_at(instance, (size_t)i);
    instance->head = (instance->head + (size_t)size) % instance->capacity;
    instance->count -= (size_t)size;
    instance->busy++;
    while (instance->sizes.data[row].batch < size)
        row++;
    assert(row < instance->sizes.count);
    instance->busy_ms += instance->sizes.data[row].latency_ms;
    instance->batches++;
    *ret_size = size;
    return instance->sizes.data[row].latency_ms;
}
