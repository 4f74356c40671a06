/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiment files: complaints name a place; what is accepted has cells that lie within its
 * lists, each with a key and a model.
 */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "load/experiment.h"

enum { CELLS_LOOKED_AT = 50 };

static void check_cell(struct experiment *experiment, const struct experiment_cell *cell)
{
    CLEANUP(json_decref_ptr) json_t *key = experiment_cell_key(experiment, cell);
    assert(cell->model < experiment->models.count);
    assert(cell->profile >= 0 && cell->profile < experiment->board->profile_count);
    assert(cell->batch >= 1 && cell->procs >= 1 && cell->sequence >= 0 && cell->load);
    assert(cell->task < TASK_COUNT && cell->mode < SHARING_MODE_COUNT);
    assert(json_is_object(key) && json_object_size(key) > 0);
    assert(experiment->models.data[cell->model].command ||
           experiment_cell_model(experiment, cell));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(experiment_done) struct experiment experiment = {0};
    struct error err = {0};

    if (experiment_parse("fuzz", (const char *)data, size, &experiment, &err) < 0) {
        assert(err.code == E_INPUT && strncmp(err.text, "fuzz:", 5) == 0);
        return 0;
    }
    assert(experiment.board && experiment.name && experiment.cells.count > 0);
    assert(experiment.repetitions >= 1);
    for (size_t i = 0; i < experiment.cells.count && i < CELLS_LOOKED_AT; i++)
        check_cell(&experiment, &experiment.cells.data[i]);
    double seconds = experiment_estimate_s(&experiment);
    assert(seconds >= 0);
    (void)seconds;
    return 0;
}
