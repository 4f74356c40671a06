/* SPDX-License-Identifier: Apache-2.0
 *
 * What the subcommands of `tranche bench` share: how to measure, as options and defaults,
 * and models by text.
 */
#ifndef TRANCHE_CLI_BENCH_OPTIONS_H
#define TRANCHE_CLI_BENCH_OPTIONS_H

#include "base/option.h"
#include "load/measure.h"

#define BENCH_COMMAND(name) extern const struct command cmd_bench_##name;
#include "cli/bench_commands.def"
#undef BENCH_COMMAND

/* How to measure; the first member of each subcommand's own struct, so that the macro
 * below serves all. */
struct bench_how {
    const char *board;
    const char *device;
    const char *uuid;
    const char *slice_method;
    const char *ort_library;
    double cpu_full_slice;
    double period_ms;
    double memory_limit_mib;
    double duration_s, longest_s, warmup_s;
    long long min_steps, threads, seed, repetitions;
    bool no_output_check;
    double ready_timeout_s, silence_timeout_s;
};

/* duration, longest and min_steps differ between commands: their default texts. */
#define BENCH_HOW_OPTIONS(duration, longest, steps)                                            \
    OPTION_TEXT('B', "board", struct bench_how, board, "BOARD", "a100-40gb",                   \
                "the GPU model whose slices are measured, or that CPU slices stand for"),      \
        OPTION_CHOICE(0, "device", struct bench_how, device, "cpu-slice|cuda|tensorrt",        \
                      "cpu-slice", "where models run"),                                        \
        OPTION_TEXT(0, "uuid", struct bench_how, uuid, "UUID", NULL,                           \
                    "the MIG instance to run in (cuda, tensorrt)"),                            \
        OPTION_NUMBER(0, "cpu-full-slice", struct bench_how, cpu_full_slice, "CORES", "1.0",   \
                      0.01, 1024, "CPU cores that stand for a whole GPU"),                     \
        OPTION_NUMBER(0, "period-ms", struct bench_how, period_ms, "MS", "20", 1, 1000,        \
                      "period of the CPU quota: longer is nearer to proportional "             \
                      "throughput, shorter gives smoother latency"),                           \
        OPTION_CHOICE(0, "slice-method", struct bench_how, slice_method,                       \
                      "auto|cgroup2|cgroup1|paced", "auto", "how the CPU quota is kept"),      \
        OPTION_NUMBER(0, "memory-limit-mib", struct bench_how, memory_limit_mib, "MIB", "0",   \
                      0, 1e9, "host memory of a CPU slice (0: the profile's memory)"),         \
        OPTION_NUMBER('d', "duration", struct bench_how, duration_s, "S", duration, 0.01,      \
                      86400, "seconds to measure at least"),                                   \
        OPTION_NUMBER(0, "longest", struct bench_how, longest_s, "S", longest, 0.01, 86400,    \
                      "seconds after which to stop waiting for --min-steps"),                  \
        OPTION_NUMBER(0, "warmup", struct bench_how, warmup_s, "S", "0.3", 0, 3600,            \
                      "seconds to run before measuring"),                                      \
        OPTION_INT(0, "min-steps", struct bench_how, min_steps, "N", steps, 1, 1e9,            \
                   "batches to measure at least"),                                             \
        OPTION_INT('r', "repetitions", struct bench_how, repetitions, "N", "1", 1, 1000,       \
                   "times to measure, with new processes each time"),                          \
        OPTION_FLAG(0, "no-output-check", struct bench_how, no_output_check,                   \
                    "do not compare outputs with those of a run outside any slice"),           \
        OPTION_INT(0, "threads", struct bench_how, threads, "N", "0", 0, 1024,                 \
                   "threads of a process (0: the slice's cores, rounded up)"),                 \
        OPTION_INT(0, "seed", struct bench_how, seed, "N", "1", 0, 9e15,                       \
                   "seed of the made-up inputs"),                                              \
        OPTION_NUMBER(0, "ready-timeout", struct bench_how, ready_timeout_s, "S", "120", 0.1,  \
                      86400, "seconds for a process to load"),                                 \
        OPTION_NUMBER(0, "silence-timeout", struct bench_how, silence_timeout_s, "S", "60",    \
                      0.1, 86400, "seconds for one batch"),                                    \
        OPTION_TEXT(0, "ort-library", struct bench_how, ort_library, "FILE", NULL,             \
                    "the ONNX Runtime library (default: $TRANCHE_ORT_LIBRARY, ort/ beside "    \
                    "the program, the active Python's, the loader's)")

/* The settings that the options ask for, with Ctrl-C handled. E_USAGE or E_INPUT for
 * values that do not go together. */
int bench_settings(const struct bench_how *how, struct measure_settings *ret_settings,
                   const struct mig_board **ret_board, struct error *err);

/* Handles Ctrl-C and SIGTERM from now on: set when one has come. */
const volatile sig_atomic_t *bench_interrupts(void);

/* "NAME=MODEL" or "MODEL": the model, and its name in results: of a file its name without
 * folder and .onnx, of a built-in model its text. *ret_name is owned by the caller. E_IO
 * when the file is not there. */
int bench_model(const char *text, const char **ret_model, char **ret_name, struct error *err);

/* Measures a cell as often as asked for and adds its row to the set. The reference of its
 * outputs is kept for the next cell when model, batch and shapes are the same:
 * *reference is zeroed at first. *ret_verdict is that of an ok result, else VALID. */
struct bench_reference {
    char *key;
    struct ready_event ready;
    bool found;
};
int bench_measure(const struct bench_how *how, const struct measure_settings *settings,
                  const struct measure_cell *cell, struct bench_reference *reference,
                  struct measurement_set *set, struct verdict *ret_verdict, struct error *err);
/* Frees what the reference holds. */
void bench_reference_done(struct bench_reference *reference);

/* Reads the file of --append into the set when it is there. */
int bench_read_existing(const char *path, bool append, struct measurement_set *set,
                        struct error *err);

#endif
