/* SPDX-License-Identifier: Apache-2.0
 *
 * bert: the shape of BERT (Devlin et al., 2018): token and position embeddings, layers of
 * attention and feed-forward with the norm after the addition, and a classifier over the
 * mean of the last layer. The standard sizes are those of MiniLM-L6; BERT-base is
 * layers=12,hidden=768. Hidden is a multiple of 64: heads have width 32 below 768, else 64.
 *
 * transformer: two layers with the norm before each part, a last norm and a linear layer
 * over the vocabulary, one class a token: small, and the second reference of training.
 */
#include "engine/model_catalog.h"
#include "engine/model_layers.h"

enum { LAYERS, HIDDEN, LENGTH, VOCABULARY, CLASSES };
enum { FEED_FORWARD_GROWTH = 4, LARGE = 768, HEAD_SMALL = 32, HEAD_LARGE = 64 };

static int embed(struct network *network, const int64_t *sizes, int64_t batch)
{
    int ids = network_input(network, "x", TENSOR_I64, NETWORK_SHAPE(batch, sizes[LENGTH]));
    int table =
        network_parameter(network, "embedding", NETWORK_SHAPE(sizes[VOCABULARY], sizes[HIDDEN]),
                          (struct network_start){.deviation = 0.02f});
    return network_embed(network, table, ids);
}

static int64_t heads(const int64_t *sizes)
{
    return sizes[HIDDEN] / (sizes[HIDDEN] < LARGE ? HEAD_SMALL : HEAD_LARGE);
}

static int feed_forward(struct network *network, int x, int64_t width, const char *name)
{
    int up =
        layer_linear(network, x, width * FEED_FORWARD_GROWTH, onnx_name("%s_up", name).text);
    return layer_linear(network, network_gelu(network, up), width,
                        onnx_name("%s_down", name).text);
}

/* Adds one bias row to each position: as a bias over [N, L × H]. */
static int add_positions(struct network *network, int x)
{
    struct tensor_shape shape = *network_shape(network, x);
    int64_t width = shape.size[1] * shape.size[2];
    int positions = network_parameter(network, "positions", NETWORK_SHAPE(width),
                                      (struct network_start){.deviation = 0.02f});
    int flat = network_reshape(network, x, NETWORK_SHAPE(shape.size[0], width));
    return network_reshape(network, network_add_bias(network, flat, positions), shape);
}

/* [N, L, H] to [N, H]: a product with 1/L, as [N, H, L] by [L, 1] would be. */
static int mean_tokens(struct network *network, int x)
{
    struct tensor_shape shape = *network_shape(network, x);
    int turned = network_transpose(network, x, (const int64_t[]){0, 2, 1});
    int picture = network_reshape(
        network, turned, NETWORK_SHAPE(shape.size[0], shape.size[2], shape.size[1], 1));
    return network_mean_picture(network, picture);
}

static int build_bert(struct network *network, const int64_t *sizes, int64_t batch)
{
    int x = add_positions(network, embed(network, sizes, batch));
    x = layer_norm(network, x, "n");
    for (int64_t i = 0; i < sizes[LAYERS]; i++) {
        int layer = (int)i;
        int mixed = layer_attention(network, x, heads(sizes), onnx_name("a%d", layer).text);
        x = layer_norm(network, network_add(network, x, mixed), onnx_name("na%d", layer).text);
        int fed = feed_forward(network, x, sizes[HIDDEN], onnx_name("f%d", layer).text);
        x = layer_norm(network, network_add(network, x, fed), onnx_name("nf%d", layer).text);
    }
    return layer_linear(network, mean_tokens(network, x), sizes[CLASSES], "c");
}

static int build_transformer(struct network *network, const int64_t *sizes, int64_t batch)
{
    int x = embed(network, sizes, batch);
    for (int64_t i = 0; i < sizes[LAYERS]; i++) {
        int layer = (int)i;
        int normal = layer_norm(network, x, onnx_name("na%d", layer).text);
        int mixed =
            layer_attention(network, normal, heads(sizes), onnx_name("a%d", layer).text);
        x = network_add(network, x, mixed);
        normal = layer_norm(network, x, onnx_name("nf%d", layer).text);
        int fed = feed_forward(network, normal, sizes[HIDDEN], onnx_name("f%d", layer).text);
        x = network_add(network, x, fed);
    }
    x = layer_norm(network, x, "n");
    int rows = network_reshape(network, x, NETWORK_SHAPE(batch * sizes[LENGTH], sizes[HIDDEN]));
    return layer_linear(network, rows, sizes[VOCABULARY], "c");
}

const struct model_kind model_bert = {
    .name = "bert",
    .summary = "the shape of BERT; MiniLM-L6 unless sizes say otherwise",
    .sizes = {{"layers", 6, 1, 48},
              {"hidden", 384, 64, 4096},
              {"length", 128, 1, 8192},
              {"vocabulary", 30522, 2, 1000000},
              {"classes", 5, 2, 100000}},
    .can_train = true,
    .learning_rate = 0.05f,
    .build = build_bert,
};

const struct model_kind model_transformer = {
    .name = "transformer",
    .summary = "a small transformer with one class a token",
    .sizes = {{"layers", 2, 1, 48},
              {"hidden", 128, 64, 4096},
              {"length", 64, 1, 8192},
              {"vocabulary", 1000, 2, 1000000}},
    .can_train = true,
    .learning_rate = 0.05f,
    .build = build_transformer,
};
