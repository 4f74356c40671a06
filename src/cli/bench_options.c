/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that the subcommands of bench share. See bench_options.h.
 */
#include "cli/bench_options.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "engine/model_catalog.h"
#include "load/result_row.h"

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* Without SA_RESTART, so that waiting ends. The second Ctrl-C ends the program at once. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const volatile sig_atomic_t *bench_interrupts(void)
{
    catch_interrupts();
    return &interrupted;
}

static enum measure_device find_device(const char *name)
{
    for (int i = 0; i < MEASURE_DEVICE_COUNT; i++)
        if (strcmp(measure_device_name((enum measure_device)i), name) == 0)
            return (enum measure_device)i;
    return DEVICE_CPU_SLICE; /* the option table lets no other through */
}

static enum slice_method find_method(const char *name)
{
    for (int i = 0; i < SLICE_METHOD_COUNT; i++)
        if (strcmp(slice_method_name((enum slice_method)i), name) == 0)
            return (enum slice_method)i;
    return SLICE_AUTO;
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

int bench_settings(const struct bench_how *how, struct measure_settings *ret_settings,
                   const struct mig_board **ret_board, struct error *err)
{
    enum measure_device device = find_device(how->device);
    if (device == DEVICE_CPU_SLICE && how->uuid)
        return error_set(err, E_USAGE, "--uuid goes with --device cuda or tensorrt");
    if (device != DEVICE_CPU_SLICE && !how->uuid)
        return error_set(
            err, E_USAGE,
            "--device %s needs --uuid, the MIG instance (see `tranche gpu list` or "
            "`nvidia-smi -L`)",
            how->device);
    int failure = mig_board_get(how->board, ret_board, err);
    if (failure)
        return failure;
    catch_interrupts();
    *ret_settings = (struct measure_settings){
        .device = device,
        .uuid = how->uuid,
        .ort_library = how->ort_library,
        .threads = (int)how->threads,
        .cpu_full_slice = how->cpu_full_slice,
        .period_ns = nanoseconds(how->period_ms / 1e3),
        .method = find_method(how->slice_method),
        .memory_bytes = (uint64_t)(how->memory_limit_mib * (1 << 20)),
        .warmup_ns = nanoseconds(how->warmup_s),
        .duration_ns = nanoseconds(how->duration_s),
        .longest_ns = nanoseconds(fmax(how->longest_s, how->duration_s)),
        .warmup_steps = 1,
        .min_steps = (int)how->min_steps,
        .ready_timeout_ns = nanoseconds(how->ready_timeout_s),
        .silence_timeout_ns = nanoseconds(how->silence_timeout_s),
        .seed = (uint64_t)how->seed,
        .stop = &interrupted,
    };
    return 0;
}

int bench_model(const char *text, const char **ret_model, char **ret_name, struct error *err)
{
    const char *equals = strchr(text, '='), *colon = strchr(text, ':');
    CLEANUP(free_ptr) char *name = NULL;
    const char *model = text;
    if (equals && (!colon || equals < colon)) { /* resnet:depth=50 is no name */
        name = xstrndup(text, (size_t)(equals - text));
        model = equals + 1;
    }
    if (model_is_builtin(model)) {
        struct model_choice choice;
        int failure = model_choose(model, &choice, err);
        if (failure)
            return failure;
    } else if (access(model, R_OK) != 0) {
        return error_set_errno(err, E_IO,
                               "%s: cannot read this model (an ONNX file, or a built-in one: "
                               "conv-stack, resnet, bert, cnn, transformer)",
                               model);
    }
    if (!name) {
        const char *slash = model_is_builtin(model) ? NULL : strrchr(model, '/');
        name = xstrdup(slash ? slash + 1 : model);
        if (text_ends_with(name, ".onnx"))
            name[strlen(name) - strlen(".onnx")] = '\0';
    }
    if (!*name)
        return error_set(err, E_USAGE, "\"%s\": expected MODEL or NAME=MODEL", text);
    *ret_model = model;
    *ret_name = STEAL(name);
    return 0;
}

void bench_reference_done(struct bench_reference *reference)
{
    free(reference->key);
    *reference = (struct bench_reference){0};
}

static int find_reference(const struct measure_settings *settings,
                          const struct measure_cell *cell, struct bench_reference *reference,
                          struct error *err)
{
    CLEANUP(free_ptr)
    char *key = xasprintf("%s\n%d\n%d\n%s", cell->model, cell->batch, (int)cell->task,
                          cell->shapes ? cell->shapes : "");
    if (reference->key && strcmp(reference->key, key) == 0)
        return 0;
    bench_reference_done(reference);
    int failure = measure_reference(cell, settings, &reference->ready, &reference->found, err);
    if (!failure)
        reference->key = STEAL(key);
    return failure;
}

int bench_measure(const struct bench_how *how, const struct measure_settings *settings,
                  const struct measure_cell *cell, struct bench_reference *reference,
                  struct measurement_set *set, struct verdict *ret_verdict, struct error *err)
{
    CLEANUP(measure_result_done) struct measure_result result = {.how = STR_EMPTY};
    struct measure_settings with_reference = *settings;
    int failure = 0;
    if (!how->no_output_check && !settings->served)
        failure = find_reference(settings, cell, reference, err);
    if (!failure) {
        with_reference.reference = reference->found ? &reference->ready : NULL;
        failure = measure_repeated(cell, &with_reference, (int)how->repetitions, &result, err);
    }
    if (failure)
        return failure;
    result_row_add(set, cell, settings, &result);
    *ret_verdict = result.verdict;
    return 0;
}

int bench_read_existing(const char *path, bool append, struct measurement_set *set,
                        struct error *err)
{
    if (!append)
        return 0;
    if (!path)
        return error_set(err, E_USAGE, "--append goes with -o FILE");
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return 0;
    return measurement_set_read(path, set, err);
}
