/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_inputs.h"

void plan_inputs_done(struct plan_inputs *inputs)
{
    service_set_done(&inputs->services);
    measurement_set_done(&inputs->rows);
}

static int read_all(struct plan_inputs *inputs, const char *services_path,
                    const char *measurements_path, const char *fleet_text, struct error *err)
{
    int rc = service_set_read(services_path, &inputs->services, err);
    if (rc == 0)
        rc = measurement_set_read(measurements_path, &inputs->rows, err);
    if (rc == 0)
        rc = service_set_match(&inputs->services, &inputs->rows, services_path, err);
    if (rc < 0 || !fleet_text)
        return rc;
    rc = service_set_use_fleet(&inputs->services, fleet_text, err);
    return rc < 0 ? error_wrap(err, "--fleet") : 0;
}

int plan_inputs_read(struct plan_inputs *inputs, const char *services_path,
                     const char *measurements_path, const char *fleet_text, struct error *err)
{
    *inputs = (struct plan_inputs){0};
    int rc = read_all(inputs, services_path, measurements_path, fleet_text, err);
    if (rc < 0) {
        plan_inputs_done(inputs);
        *inputs = (struct plan_inputs){0};
    }
    return rc;
}
