/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault plans of the simulated NVML: a text is a plan or refused with a reason, and every
 * call gets an answer whose parts are within what a plan can say.
 */
#include <assert.h>

#include "base/memory.h"
#include "fuzz.h"
#include "sim/fault.h"

enum { CALLS = 12, HANG_MAX_MS = 3600000 };

static void check_calls(struct sim_faults *faults, size_t size)
{
    static const char *const functions[] = {"nvmlInit_v2", "nvmlDeviceCreateGpuInstance",
                                            "nvmlGpuInstanceDestroy", "nvmlDeviceGetName"};
    for (int i = 0; i < CALLS; i++) {
        struct sim_fault_effects effects = sim_faults_next(faults, functions[i % 4], i % 3 - 1);
        assert(effects.hang_ms >= 0 && effects.hang_ms <= HANG_MAX_MS * (int64_t)(size + 1));
        assert(sim_return_name(effects.error_before)[0] == 'N');
        assert(sim_return_name(effects.error_after)[0] == 'N');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(free_ptr) char *text = xstrndup((const char *)data, size);
    CLEANUP(sim_faults_free_ptr) struct sim_faults *faults = NULL;
    struct error err = {0};

    if (sim_faults_parse(text, &faults, &err) == 0)
        check_calls(faults, size);
    else
        assert(err.code == E_INPUT && err.text[0] && !faults);
    return 0;
}
