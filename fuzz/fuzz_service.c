/* SPDX-License-Identifier: Apache-2.0
 *
 * Services and fleets: refused with their place or read within the ranges that they state.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/service.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct service_set set;
    struct error err = {0};

    if (service_set_parse("input", (const char *)data, size, &set, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "input", 5) == 0);
        return 0;
    }
    assert(set.derate > 0 && set.derate <= 1);
    for (size_t i = 0; i < set.services.count; i++) {
        const struct service *service = &set.services.data[i];
        assert(service->rate_rps > 0 && isfinite(service->rate_rps));
        assert(service->task == TASK_TRAINING || service->latency_ms > 0);
        assert(*service->name && *service->model && service->min_instances >= 1);
    }
    for (size_t p = 0; p < set.fleet.count; p++)
        assert(set.fleet.data[p].board && set.fleet.data[p].price > 0);
    service_set_done(&set);
    return 0;
}
