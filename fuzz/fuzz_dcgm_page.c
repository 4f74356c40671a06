/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of a dcgm-exporter: each value is a finite number in its range, or null with a
 * reason.
 */
#include <assert.h>
#include <math.h>

#include "fuzz.h"
#include "gpu/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(str_done) struct str text = STR_EMPTY;
    CLEANUP(metric_sample_done) struct metric_sample sample = {0};

    str_add_bytes(&text, data, size);
    metric_page_parse(text.bytes, NULL, &sample);
    for (size_t i = 0; i < sample.rows.count; i++)
        for (int j = 0; j < METRIC_COUNT; j++) {
            const struct metric_value *value = &sample.rows.data[i].values[j];
            assert(isnan(value->value) == (value->reason[0] != '\0'));
            assert(!isinf(value->value));
        }
    return 0;
}
