/* SPDX-License-Identifier: Apache-2.0
 *
 * `tranche worker`: the built-in workload that `tranche bench` runs in each slice. Not for
 * people: it is in no list of commands, but `tranche help worker` describes it.
 */
#include <stdlib.h>

#include "cli/commands.h"
#include "load/worker.h"

static const struct option_spec options[] = {
    OPTION_TEXT_REQUIRED('m', "model", struct worker_options, model, "MODEL",
                         "an ONNX file or a built-in model"),
    OPTION_CHOICE(0, "task", struct worker_options, task, "inference|training", "inference",
                  "what to do with it"),
    OPTION_INT('b', "batch", struct worker_options, batch, "N", "1", 1, 1 << 20,
               "samples of one step"),
    OPTION_INT(0, "threads", struct worker_options, threads, "N", "1", 1, 1024,
               "threads of one step"),
    OPTION_CHOICE(0, "provider", struct worker_options, provider, "cpu|cuda|tensorrt", "cpu",
                  "where it runs"),
    OPTION_TEXT(0, "shape", struct worker_options, shapes, "INPUT=SIZES,…", NULL,
                "sizes of inputs that the model leaves open"),
    OPTION_INT(0, "seed", struct worker_options, seed, "N", "1", 0, 9e15,
               "seed of the made-up inputs"),
    OPTION_INT(0, "steps", struct worker_options, steps, "N", "0", 0, 9e15,
               "end after this many steps, without waiting for \"go\" (0: until told)"),
    OPTION_TEXT(0, "checkpoint", struct worker_options, checkpoint, "FILE", NULL,
                "training: save what it has learnt here, at the end and now and then"),
    OPTION_TEXT(0, "resume", struct worker_options, resume, "FILE", NULL,
                "training: go on from this checkpoint, if it is there and fits"),
    OPTION_NUMBER(0, "checkpoint-every", struct worker_options, checkpoint_every_s, "SECONDS",
                  "60", 0.1, 86400, "training: time between checkpoints"),
    OPTION_FLAG(0, "requests", struct worker_options, requests,
                "run one step for each line of standard input"),
    OPTION_TEXT(0, "ort-library", struct worker_options, ort_library, "FILE", NULL,
                "the ONNX Runtime library"),
};

/* The protocol has exit statuses of its own, and its errors are events. */
static int run(const void *raw, struct arguments arguments, struct error *err)
{
    (void)arguments;
    (void)err;
    exit(worker_main(raw));
}

const struct command cmd_worker = {
    .name = "worker",
    .hidden = true,
    .summary = "the built-in workload of bench (started by it)",
    .description =
        "Runs a model step after step and says each on standard output as JSON "
        "(docs/spec/workload-protocol.md). SIGTERM ends it. Exit status 0, 2 when it "
        "cannot start, 3 when it failed while running.",
    .examples = "tranche worker --model cnn --task training --batch 16 --steps 4",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .options_size = sizeof(struct worker_options),
    .run = run,
};
