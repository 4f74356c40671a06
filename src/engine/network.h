/* SPDX-License-Identifier: Apache-2.0
 *
 * A neural network under construction, written to ONNX as it grows. Values have known
 * shapes and are named by small integers. For inference the parameters are stored in the
 * model; for training they are inputs of the graph, every operation is remembered, and
 * network_finish_training() (gradient.c) appends the gradients and the update, so that the
 * plain inference runtime trains: outputs new_P of one step are inputs P of the next.
 *
 * Parameters start from a fixed linear congruential generator (Numerical Recipes'
 * constants), uniform with the deviation asked for, so that another framework can be
 * given the very same values (docs/spec/training.md).
 */
#ifndef TRANCHE_ENGINE_NETWORK_H
#define TRANCHE_ENGINE_NETWORK_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "engine/onnx_writer.h"

enum network_purpose { NETWORK_INFERENCE, NETWORK_TRAINING };

struct network;

/* An empty network; never NULL. */
struct network *network_new(enum network_purpose purpose);
/* Frees the network; NULL is fine. */
void network_free(struct network *network);
CLEANUP_DEFINE_FREE(network)

/* The generator of parameters and training data: 24 bits in [0, 1), then the next state. */
float reference_random(uint32_t *state);

/* Shapes as literals: NETWORK_SHAPE(batch, 3, 32, 32). */
#define NETWORK_SHAPE(...)                                                                     \
    ((struct tensor_shape){.rank = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),   \
                           .size = {__VA_ARGS__}})

/* Adds an input of the graph; the number of its value. */
int network_input(struct network *network, const char *name, enum tensor_element element,
                  struct tensor_shape shape);
/* A trainable tensor with this standard deviation at the start (0: all zero, and
 * `constant` is added to each: 1 for the gain of a layer norm). */
struct network_start {
    float deviation, constant;
};
/* Adds a parameter with its start values; the number of its value. */
int network_parameter(struct network *network, const char *name, struct tensor_shape shape,
                      struct network_start start);
/* The shape of a value; borrowed until the next value is added. */
const struct tensor_shape *network_shape(const struct network *network, int value);
/* Trainable numbers in all parameters, not tensors. */
size_t network_parameter_count(const struct network *network);

/* x [N,C,H,W] by w [K,C,s,s] plus b [K], padded by s / 2. */
int network_conv(struct network *network, int x, int w, int b, int stride);
/* Largest of 3x3, stride 2, padded by 1; inference only. */
int network_max_pool(struct network *network, int x);
/* Mean over the picture: [N,C,H,W] to [N,C]. */
int network_mean_picture(struct network *network, int x);
/* max(x, 0). */
int network_relu(struct network *network, int x);
/* x Φ(x), Φ by the error function (no approximation by tanh). */
int network_gelu(struct network *network, int x);
/* a + b, of the same shape. */
int network_add(struct network *network, int a, int b);
/* x + b, b [last size of x]. */
int network_add_bias(struct network *network, int x, int b);
/* Matrix product over the last two sizes; b has rank 2, or a's rank and leading sizes. */
int network_matmul(struct network *network, int a, int b);
/* x × factor. */
int network_scale(struct network *network, int x, float factor);
/* The same elements in another shape; their number must agree. */
int network_reshape(struct network *network, int x, struct tensor_shape shape);
/* The axes of x in this order, as many entries as x has axes. */
int network_transpose(struct network *network, int x, const int64_t *order);
/* Softmax over the last size. */
int network_softmax(struct network *network, int x);
/* Layer norm over the last size, gain and bias of that size, epsilon 1e-5 (Ba, Kiros and Hinton
 * 2016). */
int network_layer_norm(struct network *network, int x, int gain, int bias);
/* Rows of table [V,H] by ids [N,L] (int64). */
int network_embed(struct network *network, int table, int ids);
/* Mean cross-entropy of softmax(logits [R,C]) against classes [R] (int64): a number. */
int network_cross_entropy(struct network *network, int logits, int classes);

/* Ends an inference model with one output, "y". */
void network_finish_inference(struct network *network, int output, const char *name,
                              struct str *ret_model);

/* Ends a training step. Graph inputs: those of the network, then "lr" (a number), then
 * P and m_P for each parameter in order of creation; outputs: "loss", then new_P and
 * new_m_P. The update is SGD with momentum, as PyTorch has it:
 * m := momentum m + gradient, P := P − lr m. */
void network_finish_training(struct network *network, int loss, float momentum,
                             const char *name, struct str *ret_model);
/* All start values in a row, in order of creation; borrowed. */
const float *network_start_values(const struct network *network);

#endif
