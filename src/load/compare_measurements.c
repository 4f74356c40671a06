/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements as a result document: each row a cell with one run, so that two files of
 * the contract's CSV compare as two results do. Rows that are not ok have no figures.
 */
#include <assert.h>

#include "load/compare.h"
#include "load/result_document.h"

static json_t *key_of(const struct measurement *row)
{
    assert(row->board && row->profile >= 0 && row->profile < row->board->profile_count);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s}", "model", row->model, "board",
                     row->board->slug, "slice", row->board->profiles[row->profile].name,
                     "batch", row->batch, "procs", row->procs, "task", task_name(row->task));
}

static json_t *run_of(const struct measurement *row)
{
    json_t *run = result_run_new((struct verdict){0}, measurement_status_name(row->status),
                                 row->reason ? row->reason : "");

    assert(row->batch >= 1 && row->procs >= 1);
    if (row->status != STATUS_OK)
        return run;
    result_run_add_number(run, "throughput_rps", row->throughput_rps);
    for (int column = 0; column < LATENCY_COLUMN_COUNT; column++)
        result_run_add_number(run, latency_column_name((enum latency_column)column),
                              row->latency_ms[column]);
    result_run_add_number(run, "memory_mib", row->memory_mib);
    result_run_add_number(run, "power_w", row->power_w);
    return run;
}

json_t *compare_measurements_document(const struct measurement_set *set)
{
    json_t *document = result_document_new("measurements", "", 0);

    assert(set);
    struct result_index index = {0};
    for (size_t i = 0; i < set->rows.count; i++)
        result_index_add(&index, document, key_of(&set->rows.data[i]),
                         run_of(&set->rows.data[i]));
    result_index_done(&index);
    return document;
}
