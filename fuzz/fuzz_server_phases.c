/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server says of itself, in Triton's JSON or Prometheus text.
 */
#include "fuzz.h"
#include "load/server_phases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct server_sums sums = {0}, none = {0};
    const char *page = (const char *)data;
    if (size == 0)
        return 0;
    server_sums_add(page, size, NULL, &sums, NULL);
    server_sums_add(page, size, "m", &sums, NULL);
    server_phases_between(&none, &sums);
    return 0;
}
