/* SPDX-License-Identifier: Apache-2.0
 *
 * The transition document. What is read is written and reads the same; verification takes
 * anything; what passes it can be applied, simulated and taken back from its end.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "fuzz.h"
#include "transition/rollback.h"
#include "transition/simulate.h"
#include "transition/verify.h"

enum { ACTIONS_MAX = 200 };

static void check_round_trip(const struct transition *transition)
{
    CLEANUP(json_decref_ptr) json_t *first = transition_to_json(transition);
    CLEANUP(transition_done) struct transition again;
    int result = transition_from_json("again", first, &again, NULL);
    assert(result == 0);
    CLEANUP(json_decref_ptr) json_t *second = transition_to_json(&again);
    assert(json_equal(first, second));
    (void)result;
}

static void check_end(const struct transition *transition)
{
    CLEANUP(free_ptr) bool *done = xcalloc(transition->actions.count, sizeof *done);
    CLEANUP(transition_done) struct transition back;
    CLEANUP(simulation_done) struct simulation simulation = {0};
    struct simulate_options options = {.load = 0, .seed = 1};
    struct error err;
    transition_init(&back);
    for (size_t i = 0; i < transition->actions.count; i++)
        done[i] = true;
    int result = transition_simulate(transition, &options, &simulation, &err);
    assert(result == 0);
    for (size_t s = 0; s < transition->services.count; s++)
        assert(simulation.services.data[s].minimum_rps >=
               transition->services.data[s].floor_rps * (1 - 1e-6));
    result = transition_rollback(transition, done, NULL, &back, &err);
    assert(result == 0);
    (void)result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_decref_ptr) json_t *root = NULL;
    CLEANUP(transition_done) struct transition transition;
    CLEANUP(transition_report_done) struct transition_report report = {0};
    struct error err = {0};
    transition_init(&transition);
    if (json_parse("fuzz", (const char *)data, size, &root, &err) < 0)
        return 0;
    if (transition_from_json("fuzz", root, &transition, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz: ", 6) == 0);
        return 0;
    }
    check_round_trip(&transition);
    transition_verify(&transition, &report);
    if (report.violations.count == 0 && transition.actions.count <= ACTIONS_MAX)
        check_end(&transition);
    return 0;
}
