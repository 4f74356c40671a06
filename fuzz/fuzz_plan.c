/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan documents: what is read is written and reads the same; verifying any of them against
 * a fixed small problem ends without a crash.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "format/plan_document.h"
#include "fuzz.h"
#include "verify/verify.h"

static const char csv[] = "model,board,slice,batch,procs,throughput_rps,latency_ms_p90\n"
                          "m,a100-40gb,1g,1,1,10,20\nm,a100-40gb,3g,8,2,971.25,83\n";
static const char yaml[] =
    "services:\n- {name: a, model: m, rate_rps: 900, latency_ms: 100, percentile: 90}\n"
    "fleet:\n- {board: a100-40gb, gpus: [{id: g0, node: n0, instances: [{slice: 1g, start: 0, "
    "reserved: true}]}]}\nlatency_rule: batch\n";

static void verify(const struct plan *plan)
{
    struct service_set services;
    struct measurement_set rows;
    struct violations violations;
    int result = service_set_parse("s", yaml, strlen(yaml), &services, NULL);

    assert(result == 0);
    result = measurement_set_parse("m", csv, strlen(csv), &rows, NULL);
    assert(result == 0);
    (void)result;
    plan_verify(plan, &services, &rows, &violations);
    violations_done(&violations);
    service_set_done(&services);
    measurement_set_done(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan plan, again;
    struct error err = {0};
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(json_decref_ptr) json_t *reread = NULL;
    CLEANUP(str_done) struct str first = STR_EMPTY;
    CLEANUP(str_done) struct str second = STR_EMPTY;

    if (json_parse("input", (const char *)data, size, &root, &err) < 0)
        return 0;
    if (plan_from_json("input", root, &plan, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "input", 5) == 0);
        return 0;
    }
    verify(&plan);
    plan_format(&plan, &first);
    int result = json_parse("again", first.bytes, first.length, &reread, &err);
    assert(result == 0);
    result = plan_from_json("again", reread, &again, &err);
    assert(result == 0);
    (void)result;
    plan_format(&again, &second);
    assert(strcmp(first.bytes, second.bytes) == 0);
    plan_done(&plan);
    plan_done(&again);
    return 0;
}
