/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: field values, and the calls whose answer is "none of those here".
 */
#include <stddef.h>
#include <time.h>

#include "sim/api.h"
#include "sim/call.h"
#include "sim/processes.h"
#include "sim/product.h"

enum { FIELDS_MAX = 1024, BOTH_ECC_OFFSET = 3 };
enum {
    FIELD_ECC_CURRENT = 1,
    FIELD_ECC_PENDING = 2,
    FIELD_ECC_SBE_VOL = 3,
    FIELD_ECC_DBE_VOL = 4
};

static int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void set_unsigned(nvmlFieldValue_t *field, unsigned value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
}

static void set_long(nvmlFieldValue_t *field, unsigned long long value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = value;
}

static nvmlReturn_t read_field(const struct sim_call *call, nvmlFieldValue_t *field)
{
    const struct mig_board *board = sim_gpu_board(call->gpu);
    switch (field->fieldId) {
    case FIELD_ECC_CURRENT:
    case FIELD_ECC_PENDING:
        set_unsigned(field, 1);
        return NVML_SUCCESS;
    case FIELD_ECC_SBE_VOL:
    case FIELD_ECC_DBE_VOL:
        set_long(field, call->gpu->ecc_errors[field->fieldId - BOTH_ECC_OFFSET]);
        return NVML_SUCCESS;
    case NVML_FI_DEV_MEMORY_TEMP:
        set_unsigned(field, sim_temperature_celsius(call->machine, call->gpu_index) + 5);
        return NVML_SUCCESS;
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        set_long(field, (unsigned long long)sim_energy_mj(call->machine, call->gpu_index,
                                                          call->now_ns));
        return NVML_SUCCESS;
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
        set_unsigned(field, sim_power_mw(call->machine, call->gpu_index));
        return NVML_SUCCESS;
    case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
        set_unsigned(field, board->has_mig && !board->mode_change_needs_reset);
        return NVML_SUCCESS;
    case NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE:
        set_unsigned(field, board->has_mig);
        return NVML_SUCCESS;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* Each field has its own status; the call fails only on bad arguments. */
static nvmlReturn_t field_values(const struct sim_call *call, int count,
                                 nvmlFieldValue_t *values)
{
    if (!values || count <= 0 || count > FIELDS_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].timestamp = wall_us();
        values[i].latencyUsec = 1;
        values[i].nvmlReturn =
            call->is_mig ? NVML_ERROR_NOT_SUPPORTED : read_field(call, &values[i]);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    return NVML_CALL(DEVICE, device, field_values(&call, count, values));
}

static nvmlReturn_t clear_fields(int count, nvmlFieldValue_t *values)
{
    if (!values || count <= 0 || count > FIELDS_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count,
                                        nvmlFieldValue_t *values)
{
    return NVML_CALL(DEVICE, device, clear_fields(count, values));
}

nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
    return NVML_CALL(STATELESS, NULL, NVML_SET(count, 0));
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    return NVML_CALL(STATELESS, NULL, NVML_SET(count, 0));
}

/* Features that no simulated board has: vGPU, NVLink, units, fans, confidential computing,
 * page retirement, … The arguments are not looked at, so one body fits every signature of
 * the calling convention. */
#define UNSUPPORTED(name)                                                                      \
    SIM_EXPORT nvmlReturn_t name(void);                                                        \
    nvmlReturn_t name(void)                                                                    \
    {                                                                                          \
        return NVML_CALL(STATELESS, NULL, NVML_ERROR_NOT_SUPPORTED);                           \
    }
#include "sim/unsupported.def"
