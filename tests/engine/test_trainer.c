/* SPDX-License-Identifier: Apache-2.0
 *
 * Training steps against another framework's losses, and falling losses on every model
 * that can train.
 */
#include "ort_fixture.h"

#include <string.h>

#include "engine/trainer.h"

enum { LOSSES = 4, STEPS = 12 };

struct reference {
    const char *model;
    int batch;
    size_t parameters;
    double loss[LOSSES];
};

/* PyTorch's first losses (tests/engine/torch_losses.py). */
static const struct reference references[] = {
    {"cnn", 16, 94538, {2.372762, 2.227712, 2.113448, 2.104708}},
    {"cnn:size=15,classes=7", 3, 94151, {1.670740, 1.387950, 1.045348, 0.793562}},
    {"transformer", 4, 653800, {7.419624, 6.524322, 5.698409, 4.874791}},
    {"bert:layers=1,hidden=64,length=8,vocabulary=50",
     4,
     54149,
     {1.826099, 0.394122, 0.282857, 0.094410}},
    {"resnet:size=32,classes=4", 2, 11173764, {1.633239, 0.358206, 0.027109, 0.000885}},
    {"resnet:depth=50,size=32,classes=4",
     2,
     23489668,
     {1.022007, 0.011130, 0.000127, 0.000002}},
};

static void run(struct onnx_runtime *runtime, const char *model, int batch, float *losses,
                int count, size_t *ret_parameters)
{
    struct error err;
    struct model_choice choice;
    CLEANUP(trainer_free_ptr) struct trainer *trainer = NULL;
    struct session_options options = {.threads = 1};
    assert_int_equal(model_choose(model, &choice, &err), 0);
    if (trainer_new(runtime, &choice, batch, &options, &trainer, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < count; i++)
        if (trainer_step(trainer, &losses[i], &err))
            fail_msg("%s", err.text);
    *ret_parameters = trainer_parameter_count(trainer);
}

static void first_losses_equal_pytorch(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    for (size_t r = 0; r < sizeof references / sizeof *references; r++) {
        const struct reference *want = &references[r];
        float losses[LOSSES];
        size_t parameters;
        run(runtime, want->model, want->batch, losses, LOSSES, &parameters);
        assert_int_equal(parameters, want->parameters);
        for (int i = 0; i < LOSSES; i++) {
            print_message("%s step %d: %.6f, PyTorch %.6f\n", want->model, i, losses[i],
                          want->loss[i]);
            assert_float_equal(losses[i], want->loss[i], 1e-5);
        }
    }
}

static void every_trainable_model_learns(void **state)
{
    (void)state;
    static const char *const models[] = {
        "cnn:size=16,classes=4", "transformer:hidden=64,length=8,vocabulary=50",
        "bert:layers=1,hidden=64,length=8,vocabulary=50", "resnet:size=32,classes=4"};
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        float losses[STEPS];
        size_t parameters;
        run(runtime, models[m], 4, losses, STEPS, &parameters);
        print_message("%s: %zu parameters, loss %.4f to %.4f\n", models[m], parameters,
                      losses[0], losses[STEPS - 1]);
        assert_true(losses[STEPS - 1] < losses[0]);
    }
}

static struct trainer *open_trainer(struct onnx_runtime *runtime, const char *model)
{
    struct model_choice choice;
    struct trainer *trainer = NULL;
    struct session_options options = {.threads = 1};
    struct error err;
    assert_int_equal(model_choose(model, &choice, &err), 0);
    assert_int_equal(trainer_new(runtime, &choice, 4, &options, &trainer, &err), 0);
    return trainer;
}

static void goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    static const char MODEL[] = "cnn:size=16,classes=4";
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    CLEANUP(str_done) struct str saved = STR_EMPTY;
    struct error err;
    float whole[6], rest;
    int64_t steps = 0;
    CLEANUP(trainer_free_ptr) struct trainer *first = open_trainer(runtime, MODEL);
    for (int i = 0; i < 6; i++) {
        if (i == 3)
            assert_int_equal(trainer_save(first, 3, &saved, &err), 0);
        assert_int_equal(trainer_step(first, &whole[i], &err), 0);
    }
    CLEANUP(trainer_free_ptr) struct trainer *second = open_trainer(runtime, MODEL);
    assert_int_equal(trainer_restore(second, &saved, &steps, &err), 0);
    assert_int_equal(steps, 3);
    for (int i = 3; i < 6; i++) {
        assert_int_equal(trainer_step(second, &rest, &err), 0);
        assert_float_equal(rest, whole[i], 1e-6);
    }

    /* Of another model, cut off, and none at all: said, and training can begin anew. */
    CLEANUP(trainer_free_ptr)
    struct trainer *other = open_trainer(runtime, "cnn:size=16,classes=5");
    assert_int_equal(trainer_restore(other, &saved, &steps, &err), -E_INPUT);
    CLEANUP(trainer_free_ptr) struct trainer *third = open_trainer(runtime, MODEL);
    size_t length = saved.length;
    saved.length = length - 1;
    assert_int_equal(trainer_restore(third, &saved, &steps, &err), -E_INPUT);
    saved.length = 7;
    assert_int_equal(trainer_restore(third, &saved, &steps, &err), -E_INPUT);
    saved.length = length;
    saved.bytes[0] = 'x';
    assert_int_equal(trainer_restore(third, &saved, &steps, &err), -E_INPUT);
    assert_int_equal(trainer_step(third, &rest, &err), 0);
    assert_float_equal(rest, whole[0], 1e-6);
}

static void refuses_a_model_without_classes(void **state)
{
    (void)state;
    CLEANUP(onnx_runtime_free_ptr) struct onnx_runtime *runtime = open_runtime();
    struct model_choice choice;
    struct trainer *trainer = NULL;
    struct session_options options = {0};
    struct error err;
    assert_int_equal(model_choose("conv-stack", &choice, &err), 0);
    assert_int_equal(trainer_new(runtime, &choice, 1, &options, &trainer, &err),
                     -E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "conv-stack"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_losses_equal_pytorch),
        cmocka_unit_test(every_trainable_model_learns),
        cmocka_unit_test(goes_on_from_a_checkpoint),
        cmocka_unit_test(refuses_a_model_without_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
